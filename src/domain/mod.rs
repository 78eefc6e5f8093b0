//! What a sale is made of, without any IO: words, rules and plans.
//!
//! Belongs here: a type or a decision that needs neither a store, nor a clock of its own, nor a task.
//! Does not belong here: anything `async`, and anything that knows Redis, SQL or HTTP.

mod customer;
mod fence;
mod fit;
mod idempotency;
pub mod invariants;
mod order;
mod probe;
mod product;
mod quantity;
mod segment;
mod sku;
mod whole;

pub use customer::CustomerId;
pub use fence::{Epoch, Fence};
pub use fit::Fit;
pub use idempotency::{IdempotencyKey, OrderKey};
pub use order::{NewOrder, Order, OrderStatus};
pub use probe::{Beliefs, Candidate, LONGEST_BUSY_PAUSE};
pub use product::{Moment, NewProduct, Product, ProductId, ProductName, SaleWindow, SegmentCount, Stock};
pub use quantity::Quantity;
pub use segment::{Reloaded, Segment, SegmentStock, split_stock};
pub use sku::Sku;

/// Why a value from outside is refused, in words for whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Invalid {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
