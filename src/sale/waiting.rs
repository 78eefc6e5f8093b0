//! An order on its way through the engine, and the one who waits for its answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::on_sale::OnSale;
use super::outcome::{Outcome, Refusal};
use crate::domain::{CustomerId, NewOrder, Order, OrderKey, OrderStatus, Quantity, Sku};
use crate::ledger::SettledOrder;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) quantity: Quantity,
    pub(super) customer_id: CustomerId,
    /// The order's name within its customer, where the request came with an idempotency key.
    pub(super) key: Option<OrderKey>,
}

impl Asked {
    /// What a request is told whose key the ledger knows: the same order again, or that the key stands for another.
    pub(super) fn repetition(&self, sku: &Sku, known: Order) -> Outcome {
        let same = known.sku == *sku && known.quantity == self.quantity && known.customer_id == self.customer_id;
        if same { Outcome::Replayed(known) } else { Outcome::Refused(Refusal::KeyReused) }
    }
}

/// Orders that the ledger has, for looking up.
pub(super) struct KnownOrders {
    by_id: HashMap<Uuid, Order>,
    by_key: HashMap<OrderKey, Order>,
}

impl KnownOrders {
    pub(super) fn new(settled: Vec<SettledOrder>) -> Self {
        Self {
            by_key: settled.iter().map(|settled| (settled.key, settled.order.clone())).collect(),
            by_id: settled.into_iter().map(|settled| (settled.order.id, settled.order)).collect(),
        }
    }

    pub(super) fn by_key(&self, key: &OrderKey) -> Option<&Order> {
        self.by_key.get(key)
    }
}

/// An order that waits for a lease.
pub(super) struct Waiting {
    pub(super) asked: Asked,
    pub(super) pending: Pending,
}

/// The part of a waiting order that the ledger does not see.
pub(super) struct Pending {
    /// Given when the order is first fitted, and kept through every retry (R6).
    id: Option<Uuid>,
    /// A settle may have committed it (R6).
    in_doubt: bool,
    /// Whether the request came with an idempotency key.
    keyed: bool,
    pub(super) deadline: Instant,
    reply: oneshot::Sender<Outcome>,
    _place: Place,
}

/// A place in the bounded queue, given up when the order is answered or dropped.
pub(super) struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes a place, unless `capacity` are taken.
    pub(super) fn take(taken: &Arc<AtomicUsize>, capacity: usize) -> Option<Self> {
        let before = taken.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(taken));
        (before < capacity).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Waiting {
    pub(super) fn new(asked: Asked, deadline: Instant, place: Place) -> (Self, oneshot::Receiver<Outcome>) {
        let (reply, answer) = oneshot::channel();
        let pending = Pending { id: None, in_doubt: false, keyed: asked.key.is_some(), deadline, reply, _place: place };
        (Self { asked, pending }, answer)
    }

    /// Whether the ledger must be asked before the order may be refused: it may be there already.
    pub(super) fn may_be_known(&self) -> bool {
        self.asked.key.is_some() || self.pending.in_doubt
    }

    /// The order's id, if it has been on its way to the ledger.
    pub(super) fn id(&self) -> Option<Uuid> {
        self.pending.id
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.pending.in_doubt
    }

    /// The client has gone, and nothing was done for it yet (R12).
    pub(super) fn is_abandoned(&self) -> bool {
        !self.pending.in_doubt && self.pending.reply.is_closed()
    }

    pub(super) fn answer(self, outcome: Outcome) {
        self.pending.answer(outcome);
    }

    /// Answers if the ledger's order is this one; hands it back otherwise.
    pub(super) fn answer_if_known(self, on_sale: &OnSale, known: &KnownOrders) -> Option<Self> {
        let outcome = if let Some(own) = self.pending.id.and_then(|id| known.by_id.get(&id)) {
            Outcome::Placed(own.clone())
        } else if let Some(named) = self.asked.key.and_then(|key| known.by_key.get(&key)) {
            self.asked.repetition(&on_sale.product.sku, named.clone())
        } else {
            return Some(self);
        };
        self.answer(on_sale.count(outcome));
        None
    }

    /// Splits the order into what the ledger gets and what stays behind.
    pub(super) fn depart(mut self) -> (NewOrder, Pending) {
        let id = *self.pending.id.get_or_insert_with(Uuid::now_v7);
        let customer_id = self.asked.customer_id;
        let order = NewOrder {
            id,
            quantity: self.asked.quantity,
            key: self.asked.key.unwrap_or_else(|| OrderKey::of_id(&customer_id, id)),
            customer_id,
        };
        (order, self.pending)
    }
}

impl Pending {
    /// Puts the order together again, to wait for another round.
    pub(super) fn come_back(self, order: NewOrder) -> Waiting {
        let key = self.keyed.then_some(order.key);
        Waiting { asked: Asked { quantity: order.quantity, customer_id: order.customer_id, key }, pending: self }
    }

    /// The ledger may have committed the order: its id is settled again until somebody knows.
    pub(super) fn doubt(mut self) -> Self {
        self.in_doubt = true;
        self
    }

    /// Tells the buyer that the order is in the ledger.
    pub(super) fn placed(self, order: NewOrder, sku: &Sku, segment: u16) {
        self.answer(Outcome::Placed(Order {
            id: order.id,
            sku: sku.clone(),
            quantity: order.quantity,
            customer_id: order.customer_id,
            segment,
            status: OrderStatus::Confirmed,
        }));
    }

    fn answer(self, outcome: Outcome) {
        // A client that has gone finds its order later, by its key or in its list.
        let _gone = self.reply.send(outcome);
    }
}
