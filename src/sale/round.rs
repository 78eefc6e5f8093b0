//! One turn of the loop: lease → (fit) → settle → answer → release.
//!
//! A round runs as three tasks, because the queue decides in between: [`lease`] gets a segment with a known stock, the
//! queue fits the batch, [`settle`] takes it to the ledger and answers, and the queue either fits the next batch or has
//! [`give_back`] release the lease. All always end, within the stores' timeouts, and report what they saw; none forgets
//! an order.

use std::collections::HashSet;
use std::error::Error;
use std::time::Instant;

use uuid::Uuid;

use super::batch::Batch;
use super::fail_point::Moment;
use super::on_sale::OnSale;
use super::pace::Stores;
use super::waiting::{KnownOrders, Waiting};
use crate::guard::{Acquired, Ending, Lease, LeaseError, Released, Token, Trust};
use crate::ledger::{LedgerError, Settled, Settlement};
use crate::telemetry::metrics::RoundEnding;

/// Why a segment is not leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoLease {
    /// Nothing is left in it.
    Empty,
    /// Somebody else has it.
    Busy,
    /// The guard did not answer: it may be leased after all.
    Unanswered,
    /// It could not be reloaded.
    Failed,
}

/// What became of a batch.
pub(super) struct Settling {
    /// Units that left the segment; `None` when nobody can be sure, and the segment must be left dirty.
    pub(super) taken: Option<u64>,
    /// Orders that must wait for another round, in arrival order.
    pub(super) returned: Vec<Waiting>,
    /// How the stores did.
    pub(super) stores: Stores,
}

/// Leases a segment and learns its stock, from the ledger where the guard does not know it (R5).
pub(super) async fn lease(on_sale: &OnSale, index: u16, token: &Token, trust: Trust) -> Result<Lease, NoLease> {
    let asked_at = Instant::now();
    let segment = on_sale.segment(index);
    let acquired = match on_sale.house.guard.acquire(&segment, token, trust).await {
        Ok(acquired) => acquired,
        Err(error) => {
            tracing::warn!(sku = %segment.sku, index, error = &error as &dyn Error, "no lease");
            return Err(NoLease::Unanswered);
        }
    };
    let mut lease = match acquired {
        Acquired::Leased(lease) => lease,
        Acquired::Empty => return Err(NoLease::Empty),
        Acquired::Busy { .. } => return Err(NoLease::Busy),
    };
    on_sale.reach(Moment::Leased);
    if lease.stock().is_none() && !reload(on_sale, index, &mut lease).await {
        give_back(on_sale, index, lease, Ending::Dirty).await;
        return Err(NoLease::Failed);
    }
    on_sale.metrics.lease_wait_seconds.record(asked_at.elapsed());
    Ok(lease)
}

/// Learns the stock from the ledger; says whether it could.
async fn reload(on_sale: &OnSale, index: u16, lease: &mut Lease) -> bool {
    on_sale.metrics.reloads.increment(1);
    let fence = lease.fence();
    let segment = on_sale.segment(index);
    let reloaded = lease.keep_during(on_sale.house.ledger.reload(&segment, fence)).await;
    let reloaded = match reloaded {
        Ok(reloaded) => reloaded,
        Err(error) => {
            tracing::warn!(sku = %segment.sku, index, error = &error as &dyn Error, "a segment could not be reloaded");
            return false;
        }
    };
    match lease.reload(reloaded).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(sku = %segment.sku, index, error = &error as &dyn Error, "a reloaded segment was lost");
            false
        }
    }
}

/// Takes a batch to the ledger, and answers those who are in it then.
pub(super) async fn settle(on_sale: &OnSale, index: u16, lease: &mut Lease, batch: Batch) -> Settling {
    let settling = |taken, returned, stores| Settling { taken, returned, stores };
    on_sale.reach(Moment::Fitted);
    if lease.remaining().is_none() {
        // Lost before anything was sent: the fence would refuse the batch anyway.
        return settling(None, batch.come_back(), Stores::NotAsked);
    }
    on_sale.metrics.batch_orders.record(batch.orders().len() as f64);
    let segment = on_sale.segment(index);
    let settlement =
        Settlement { segment: &segment, fence: lease.fence(), epoch: lease.epoch(), orders: batch.orders() };
    let sent_at = Instant::now();
    let settled = lease.keep_during(on_sale.house.ledger.settle(&settlement)).await;
    on_sale.metrics.settle_seconds.record(sent_at.elapsed());
    on_sale.reach(Moment::Settled);
    match settled {
        Ok(Settled::Committed { already_known }) => {
            on_sale.metrics.round(RoundEnding::Settled);
            let settling = committed(on_sale, index, batch, already_known).await;
            on_sale.reach(Moment::Answered);
            settling
        }
        Ok(Settled::Refused) => {
            on_sale.metrics.round(RoundEnding::Refused);
            on_sale.metrics.settles_refused.increment(1);
            settling(None, batch.come_back(), Stores::Answered)
        }
        Err(error) => {
            on_sale.metrics.round(RoundEnding::Failed);
            tracing::warn!(sku = %segment.sku, index, error = &error as &dyn Error, "a batch was not settled");
            match error {
                LedgerError::NothingHappened(_) => settling(Some(0), batch.come_back(), Stores::Failed),
                // R6: it may have been committed. The segment stays dirty, and the same ids are settled again.
                _ => settling(None, batch.doubt().come_back(), Stores::Failed),
            }
        }
    }
}

/// Answers a committed batch.
async fn committed(on_sale: &OnSale, index: u16, batch: Batch, already_known: Vec<Uuid>) -> Settling {
    let sku = &on_sale.product.sku;
    let already_known: HashSet<Uuid> = already_known.into_iter().collect();
    let mut taken = 0;
    let mut placed = 0;
    let mut repeated = Vec::new();
    for (order, pending) in batch.into_parts() {
        // Most batches repeat nothing, and an empty set answers without hashing.
        if already_known.contains(&order.id) {
            repeated.push(pending.doubt().come_back(order));
        } else {
            taken += order.quantity.units();
            placed += 1;
            pending.placed(order, sku, index);
        }
    }
    on_sale.metrics.placed(index, placed);
    let known = answer_known(on_sale, repeated).await;
    Settling {
        taken: Some(taken),
        stores: known.stores(),
        returned: known.absent.into_iter().chain(known.unasked).collect(),
    }
}

/// What is left of orders after the ledger was asked for them.
#[derive(Default)]
pub(super) struct Known {
    /// Not in the ledger.
    pub(super) absent: Vec<Waiting>,
    /// The ledger did not say.
    pub(super) unasked: Vec<Waiting>,
}

impl Known {
    /// What this tells of the stores.
    pub(super) fn stores(&self) -> Stores {
        if self.unasked.is_empty() { Stores::Answered } else { Stores::Failed }
    }
}

/// Answers the orders that the ledger knows by their id or key; returns the others. Without orders nobody is asked.
pub(super) async fn answer_known(on_sale: &OnSale, orders: Vec<Waiting>) -> Known {
    if orders.is_empty() {
        return Known::default();
    }
    let sku = &on_sale.product.sku;
    let ids: Vec<_> = orders.iter().filter_map(Waiting::id).collect();
    let keys: Vec<_> = orders.iter().filter_map(|order| order.asked.key).collect();
    match on_sale.house.ledger.settled_orders(&ids, &keys).await {
        Ok(known) => {
            let known = KnownOrders::new(known);
            let unknown = orders.into_iter().filter_map(|order| order.answer_if_known(on_sale, &known));
            Known { absent: unknown.collect(), unasked: Vec::new() }
        }
        Err(error) => {
            tracing::warn!(%sku, error = &error as &dyn Error, "repeated orders could not be looked up");
            Known { absent: Vec::new(), unasked: orders }
        }
    }
}

/// Releases the lease; `None` unless the guard agrees that it was ours to the end.
pub(super) async fn give_back(on_sale: &OnSale, index: u16, lease: Lease, ending: Ending) -> Option<Released> {
    let sku = &on_sale.product.sku;
    let released = match lease.release(ending).await {
        Ok(released) => Some(released),
        Err(LeaseError::Lost) => {
            on_sale.metrics.lease_losses.increment(1);
            tracing::info!(%sku, index, "a lease ended before its round");
            None
        }
        Err(LeaseError::Guard(error)) => {
            tracing::warn!(%sku, index, error = &error as &dyn Error, "a lease could not be released");
            None
        }
    };
    on_sale.reach(Moment::Released);
    released
}
