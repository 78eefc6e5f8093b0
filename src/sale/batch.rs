//! The orders that one lease serves.

use super::waiting::{Pending, Waiting};
use crate::domain::NewOrder;

/// What the ledger gets and, at the same positions, what stays behind.
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

    pub(super) fn orders(&self) -> &[NewOrder] {
        &self.orders
    }

    /// The ledger may have committed all of them.
    pub(super) fn doubt(mut self) -> Self {
        self.pending = self.pending.into_iter().map(Pending::doubt).collect();
        self
    }

    pub(super) fn into_parts(self) -> impl Iterator<Item = (NewOrder, Pending)> {
        self.orders.into_iter().zip(self.pending)
    }

    /// Puts the orders together again, to wait for another round.
    pub(super) fn come_back(self) -> Vec<Waiting> {
        self.into_parts().map(|(order, pending)| pending.come_back(order)).collect()
    }
}
