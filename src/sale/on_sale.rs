//! A product that this process sells: what its queue, its rounds and its requests share.

use std::sync::Arc;

use chrono::Utc;
use metrics::Counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::SaleSettings;
use super::claim::Claim;
use super::fail_point::Moment;
use super::outcome::{Outcome, Refusal};
use crate::domain::{Product, Quantity, Segment};
use crate::guard::Guard;
use crate::ledger::Ledger;
use crate::telemetry::metrics::ProductMetrics;

/// The stores and settings of the sale.
#[derive(Clone)]
pub(super) struct House {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) guard: Arc<dyn Guard>,
    pub(super) settings: Arc<SaleSettings>,
    /// One for each round that this process may have in flight, of whatever product.
    pub(super) turns: Arc<Semaphore>,
}

impl House {
    /// Waits for a turn, in the order of asking.
    pub(super) async fn turn(&self) -> OwnedSemaphorePermit {
        match Arc::clone(&self.turns).acquire_owned().await {
            Ok(turn) => turn,
            Err(_closed) => unreachable!("nobody closes it"),
        }
    }
}

/// One product in one process.
pub(super) struct OnSale {
    pub(super) product: Product,
    pub(super) house: House,
    pub(super) claim: Claim,
    pub(super) metrics: ProductMetrics,
    refused: [Counter; Refusal::LABELS.len()],
    replayed: Counter,
}

impl OnSale {
    pub(super) fn new(product: Product, house: House) -> Self {
        let metrics = ProductMetrics::new(product.sku.as_str(), product.segments);
        Self {
            refused: Refusal::LABELS.map(|label| metrics.outcome(label)),
            replayed: metrics.outcome("replayed"),
            claim: Claim::default(),
            metrics,
            product,
            house,
        }
    }

    pub(super) fn segment(&self, index: u16) -> Segment {
        Segment { product: self.product.id, sku: self.product.sku.clone(), index }
    }

    /// The outcome of a request that is refused; counts it.
    pub(super) fn refuse(&self, refusal: Refusal) -> Outcome {
        self.count(Outcome::Refused(refusal))
    }

    /// Counts what a request is told. Only orders that a batch has placed are counted elsewhere, all at once.
    pub(super) fn count(&self, outcome: Outcome) -> Outcome {
        match &outcome {
            Outcome::Placed(order) => self.metrics.placed(order.segment, 1),
            Outcome::Replayed(_) => self.replayed.increment(1),
            Outcome::Refused(refusal) => self.refused[refusal.position()].increment(1),
        }
        outcome
    }

    /// Why the product cannot be sold now at all.
    pub(super) fn closed(&self) -> Option<Refusal> {
        let window = self.product.window;
        if window.is_always() {
            return None;
        }
        let now = Utc::now();
        match (window.starts_at, window.ends_at) {
            (Some(starts_at), _) if now < starts_at => Some(Refusal::NotStarted { starts_at }),
            (_, Some(ended_at)) if now >= ended_at => Some(Refusal::Ended { ended_at }),
            _ => None,
        }
    }

    /// Why an order of so many units is not taken, whatever the stock.
    pub(super) fn too_large(&self, quantity: Quantity) -> Option<Refusal> {
        let max = self.product.max_per_order.filter(|max| quantity > *max)?;
        Some(Refusal::AboveMaxPerOrder { max })
    }

    /// A moment has come at which a test may end the process.
    pub(super) fn reach(&self, moment: Moment) {
        if let Some(fail_point) = &self.house.settings.fail_point {
            fail_point.reach(moment);
        }
    }
}
