//! One turn of the loop: lease → (fit) → settle → release → answer.
//!
//! A round runs as two tasks, because the queue fits the batch in between: [`lease`] gets a segment with a known stock,
//! [`settle`] takes the batch to the ledger and gives the segment back. Both always end, within the stores' timeouts, and
//! report what they saw; neither forgets an order.

use std::sync::Arc;
use std::time::Instant;

use super::fail_point::Moment;
use super::on_sale::OnSale;
use super::waiting::{Pending, Waiting};
use crate::domain::NewOrder;
use crate::guard::{Acquired, Ending, Lease, LeaseError, Token, Trust};
use crate::ledger::{LedgerError, Settled, Settlement};
use crate::telemetry::metrics::RoundEnding;

/// How the first half of a round ended.
pub(super) enum LeaseOutcome {
    /// The segment is ours, and has so many units.
    Leased(Lease, u64),
    /// Nothing is left in it.
    Empty,
    /// Somebody else has it.
    Busy,
    /// A store failed.
    Failed,
}

/// How the second half of a round ended.
pub(super) struct RoundReport {
    /// Units left in the segment; `None` when its next holder must find out.
    pub(super) stock: Option<u64>,
    /// Orders that must wait for another round, in arrival order.
    pub(super) returned: Vec<Waiting>,
    /// How the stores did.
    pub(super) stores: Stores,
}

/// What a task has learnt of the stores' health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stores {
    /// The ledger did what it was asked for.
    Answered,
    /// One of them did not.
    Failed,
    /// The ledger was not asked.
    NotAsked,
}

/// Leases a segment and learns its stock, from the ledger where the guard does not know it (R5).
pub(super) async fn lease(
    on_sale: &OnSale,
    index: u16,
    token: &Token,
    trust: Trust,
) -> LeaseOutcome {
    let asked_at = Instant::now();
    let segment = on_sale.segment(index);
    let acquired = match on_sale.house.guard.acquire(&segment, token, trust).await {
        Ok(acquired) => acquired,
        Err(error) => {
            tracing::warn!(sku = %segment.sku, index, error = &error as &dyn std::error::Error, "no lease");
            return LeaseOutcome::Failed;
        }
    };
    let mut lease = match acquired {
        Acquired::Leased(lease) => lease,
        Acquired::Empty => return LeaseOutcome::Empty,
        Acquired::Busy { .. } => return LeaseOutcome::Busy,
    };
    on_sale.reach(Moment::Leased);
    let stock = match lease.stock() {
        Some(stock) => stock,
        None => match reload(on_sale, index, &mut lease).await {
            Some(stock) => stock,
            None => {
                give_back(on_sale, index, lease, Ending::Dirty).await;
                return LeaseOutcome::Failed;
            }
        },
    };
    on_sale
        .metrics
        .lease_wait_seconds
        .record(asked_at.elapsed());
    LeaseOutcome::Leased(lease, stock)
}

async fn reload(on_sale: &OnSale, index: u16, lease: &mut Lease) -> Option<u64> {
    on_sale.metrics.reloads.increment(1);
    let fence = lease.fence();
    let segment = on_sale.segment(index);
    let reloaded = lease
        .keep_during(on_sale.house.ledger.reload(&segment, fence))
        .await;
    let reloaded = match reloaded {
        Ok(reloaded) => reloaded,
        Err(error) => {
            tracing::warn!(sku = %segment.sku, index, error = &error as &dyn std::error::Error, "a segment could not be reloaded");
            return None;
        }
    };
    match lease.reload(reloaded).await {
        Ok(()) => Some(reloaded.stock),
        Err(error) => {
            tracing::warn!(sku = %segment.sku, index, error = &error as &dyn std::error::Error, "a reloaded segment was lost");
            None
        }
    }
}

/// Takes a batch to the ledger, answers those it is about, and gives the segment back.
pub(super) async fn settle(
    on_sale: Arc<OnSale>,
    index: u16,
    mut lease: Lease,
    batch: Batch,
) -> RoundReport {
    on_sale.reach(Moment::Fitted);
    let stock = lease.stock().unwrap_or(0);
    if lease.remaining().is_none() {
        // Lost before anything was sent: the fence would refuse the batch anyway.
        on_sale.metrics.lease_losses.increment(1);
        return RoundReport {
            stock: None,
            returned: batch.come_back(),
            stores: Stores::NotAsked,
        };
    }
    on_sale
        .metrics
        .batch_orders
        .record(batch.orders.len() as f64);
    let segment = on_sale.segment(index);
    let (fence, epoch) = (lease.fence(), lease.epoch());
    let sent_at = Instant::now();
    let settlement = Settlement {
        segment: &segment,
        fence,
        epoch,
        orders: &batch.orders,
    };
    let settled = lease
        .keep_during(on_sale.house.ledger.settle(&settlement))
        .await;
    on_sale.metrics.settle_seconds.record(sent_at.elapsed());
    on_sale.reach(Moment::Settled);

    let (ending, taken, report) = match settled {
        Ok(Settled::Committed { already_known }) => {
            on_sale.metrics.round(RoundEnding::Settled);
            let (taken, returned) = committed(&on_sale, index, batch, &already_known).await;
            on_sale.reach(Moment::Answered);
            let taken_column = i64::try_from(taken).unwrap_or(i64::MAX);
            (
                Ending::Clean {
                    taken: taken_column,
                },
                taken,
                (returned, Stores::Answered),
            )
        }
        Ok(Settled::Refused) => {
            on_sale.metrics.round(RoundEnding::Refused);
            on_sale.metrics.settles_refused.increment(1);
            (Ending::Dirty, 0, (batch.come_back(), Stores::Answered))
        }
        Err(error) => {
            on_sale.metrics.round(RoundEnding::Failed);
            tracing::warn!(sku = %segment.sku, index, error = &error as &dyn std::error::Error, "a batch was not settled");
            match error {
                LedgerError::NothingHappened(_) => (
                    Ending::Clean { taken: 0 },
                    0,
                    (batch.come_back(), Stores::Failed),
                ),
                // R6: it may have been committed; the segment stays dirty, and the same ids are settled again.
                _ => (
                    Ending::Dirty,
                    0,
                    (batch.doubt().come_back(), Stores::Failed),
                ),
            }
        }
    };
    let clean = ending != Ending::Dirty;
    let released = give_back(&on_sale, index, lease, ending).await;
    on_sale.reach(Moment::Released);
    let (returned, stores) = report;
    RoundReport {
        stock: (clean && released).then(|| stock.saturating_sub(taken)),
        returned,
        stores,
    }
}

/// Answers a committed batch: the units that it took, and the orders that nobody can answer yet.
async fn committed(
    on_sale: &OnSale,
    index: u16,
    batch: Batch,
    already_known: &[uuid::Uuid],
) -> (u64, Vec<Waiting>) {
    let sku = &on_sale.product.sku;
    let mut taken = 0;
    let mut placed = 0;
    let mut repeated = Vec::new();
    for (order, pending) in batch.orders.into_iter().zip(batch.pending) {
        if already_known.contains(&order.id) {
            repeated.push(pending.doubt().come_back(order));
        } else {
            taken += order.quantity.units();
            placed += 1;
            pending.placed(order, sku, index);
        }
    }
    on_sale.metrics.placed(index, placed);
    if repeated.is_empty() {
        return (taken, repeated);
    }
    let Known { absent, unasked } = answer_known(on_sale, repeated).await;
    (taken, absent.into_iter().chain(unasked).collect())
}

/// What is left of orders after the ledger was asked for them.
#[derive(Default)]
pub(super) struct Known {
    /// Not in the ledger.
    pub(super) absent: Vec<Waiting>,
    /// The ledger did not say.
    pub(super) unasked: Vec<Waiting>,
}

/// Answers the orders that the ledger knows by their id or key; returns the others.
pub(super) async fn answer_known(on_sale: &OnSale, orders: Vec<Waiting>) -> Known {
    let sku = &on_sale.product.sku;
    let ids: Vec<_> = orders.iter().filter_map(Waiting::id).collect();
    let keys: Vec<_> = orders.iter().filter_map(|order| order.asked.key).collect();
    match on_sale.house.ledger.settled_orders(&ids, &keys).await {
        Ok(known) => Known {
            absent: orders
                .into_iter()
                .filter_map(|order| order.answer_if_known(on_sale, &known))
                .collect(),
            unasked: Vec::new(),
        },
        Err(error) => {
            tracing::warn!(%sku, error = &error as &dyn std::error::Error, "repeated orders could not be looked up");
            Known {
                absent: Vec::new(),
                unasked: orders,
            }
        }
    }
}

/// Releases the lease; says whether the guard agrees that it was ours to the end.
pub(super) async fn give_back(on_sale: &OnSale, index: u16, lease: Lease, ending: Ending) -> bool {
    let sku = &on_sale.product.sku;
    match lease.release(ending).await {
        Ok(()) => true,
        Err(LeaseError::Lost) => {
            on_sale.metrics.lease_losses.increment(1);
            tracing::info!(%sku, index, "a lease ended before its round");
            false
        }
        Err(LeaseError::Guard(error)) => {
            tracing::warn!(%sku, index, error = &error as &dyn std::error::Error, "a lease could not be released");
            false
        }
    }
}

/// The orders that one lease serves: what the ledger gets, and, at the same positions, what stays behind.
#[derive(Default)]
pub(super) struct Batch {
    orders: Vec<NewOrder>,
    pending: Vec<Pending>,
}

impl Batch {
    pub(super) fn push(&mut self, waiting: Waiting) {
        let (order, pending) = waiting.depart();
        self.orders.push(order);
        self.pending.push(pending);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    fn doubt(mut self) -> Self {
        self.pending = self.pending.into_iter().map(Pending::doubt).collect();
        self
    }

    fn come_back(self) -> Vec<Waiting> {
        let both = self.orders.into_iter().zip(self.pending);
        both.map(|(order, pending)| pending.come_back(order))
            .collect()
    }
}
