//! The truth: which orders exist, and how many units each segment has left.
//!
//! Belongs here: the port that the sale talks to, and its implementations over [`postgres`] and [`sqlite`]. Both keep
//! the same rules, and one suite of tests runs over both. Does not belong here: locks, beliefs, HTTP.

pub mod postgres;

mod row;
pub mod sqlite;

use async_trait::async_trait;
use uuid::Uuid;

use crate::domain::{
    Epoch, Fence, NewOrder, NewProduct, Order, OrderKey, OrderStatus, Product, ProductId, Reloaded, Segment,
    SegmentStock, Sku,
};

/// A store of products, segments and orders. Every call is bounded in time by the store's own timeout.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Creates a product with its segments; `None` when the SKU is taken.
    async fn create_product(&self, new: &NewProduct) -> Result<Option<Product>, LedgerError>;

    /// The product with this SKU.
    async fn product(&self, sku: &Sku) -> Result<Option<Product>, LedgerError>;

    /// Up to `limit` products in SKU order, those after `after`.
    async fn products(&self, after: Option<&Sku>, limit: u32) -> Result<Vec<ProductTotals>, LedgerError>;

    /// A product's segments in index order.
    async fn segments(&self, product: ProductId) -> Result<Vec<SegmentStock>, LedgerError>;

    /// Units in orders that are reserved and not confirmed.
    async fn held(&self, product: ProductId) -> Result<u64, LedgerError>;

    /// Inserts the orders and raises the segment's `taken`, both or nothing (R3, R4).
    async fn settle(&self, settlement: &Settlement<'_>) -> Result<Settled, LedgerError>;

    /// Reads a segment's stock for the holder of `fence`, and shuts out every lease handed out before (R5).
    async fn reload(&self, segment: &Segment, fence: Fence) -> Result<Reloaded, LedgerError>;

    /// Moves units between segments, all or nothing; `false` when a lease among them has been overtaken, or a giver
    /// has not as much to give.
    async fn gather(&self, product: ProductId, legs: &[GatherLeg]) -> Result<bool, LedgerError>;

    /// The orders that have one of these ids or one of these keys.
    async fn settled_orders(&self, ids: &[Uuid], keys: &[OrderKey]) -> Result<Vec<SettledOrder>, LedgerError>;

    /// The order with this id.
    async fn order(&self, id: Uuid) -> Result<Option<Order>, LedgerError>;

    /// Orders in order of their ids, which is the order of time.
    async fn orders(&self, filter: &OrderFilter) -> Result<Vec<Order>, LedgerError>;

    /// Up to `limit` of a product's orders, those after `after`, in order of their ids: ids and keys only.
    async fn order_keys(
        &self,
        product: ProductId,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<(Uuid, OrderKey)>, LedgerError>;

    /// What the orders of a product add up to, for the audit.
    async fn order_sums(&self, product: ProductId) -> Result<OrderSums, LedgerError>;

    /// Whether the store answers.
    async fn ping(&self) -> Result<(), LedgerError>;

    /// Gives up the connections.
    async fn close(&self);
}

/// One batch on its way into the ledger.
#[derive(Debug)]
pub struct Settlement<'a> {
    /// Where the units come from.
    pub segment: &'a Segment,
    /// The lease's fence: a higher one in the ledger refuses the batch.
    pub fence: Fence,
    /// The epoch that the lease was reloaded under: a higher one in the ledger refuses the batch.
    pub epoch: Epoch,
    /// The orders; their quantities must fit what the lease saw.
    pub orders: &'a [NewOrder],
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Committed, but for the orders named here, whose id or key the ledger had already.
    Committed {
        /// Ids of the batch that were not inserted.
        already_known: Vec<Uuid>,
    },
    /// The lease is overtaken, or the units are not there: nothing was changed.
    Refused,
}

/// One segment's part in a gathering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherLeg {
    /// The segment.
    pub index: u16,
    /// The fence of its lease.
    pub fence: Fence,
    /// The epoch that the lease was reloaded under.
    pub epoch: Epoch,
    /// What is added to its allotment; negative for a giver. The legs add up to 0.
    pub units: i64,
}

/// An order together with what proves that a request is its repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledOrder {
    /// The order.
    pub order: Order,
    /// Its name within its customer.
    pub key: OrderKey,
}

/// A product with the sums over its segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductTotals {
    /// The product.
    pub product: Product,
    /// Units given to its segments.
    pub allotted: u64,
    /// Units in live orders.
    pub taken: u64,
}

/// Which orders to list. Every field that is set narrows the list.
#[derive(Debug, Clone, Default)]
pub struct OrderFilter {
    /// Only this product's.
    pub sku: Option<Sku>,
    /// Only this customer's.
    pub customer_id: Option<String>,
    /// Only with this status.
    pub status: Option<OrderStatus>,
    /// Only those after this id.
    pub after: Option<Uuid>,
    /// At most so many.
    pub limit: u32,
}

/// What the orders of a product add up to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OrderSums {
    /// Units in reserved and confirmed orders, by segment index; a segment without orders may be missing.
    pub live_units: Vec<(u16, u64)>,
    /// How many order keys stand for more than one order.
    pub repeated_keys: u64,
}

/// A ledger call that did not end well. What matters is whether it may have changed something.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Nothing was changed.
    #[error("the ledger did not take the statement")]
    NothingHappened(#[source] sqlx::Error),
    /// The statement may have been committed (R6).
    #[error("the ledger's answer was lost")]
    OutcomeUnknown(#[source] sqlx::Error),
    /// The ledger holds what no version of this program writes.
    #[error("the ledger holds an unreadable row: {0}")]
    Unreadable(String),
}
