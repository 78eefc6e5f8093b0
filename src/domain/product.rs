//! What is sold, and when.

use chrono::{DateTime, Utc};

use super::{Quantity, Sku};

/// The largest number of segments of a product.
pub const MAX_SEGMENTS: u16 = 1024;
/// The largest stock of a product, in units.
pub const MAX_STOCK: u64 = 1_000_000_000_000;
/// The longest product name, in characters.
pub const MAX_PRODUCT_NAME_CHARS: usize = 200;

/// A product's identity in the ledger: small, because every order carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductId(pub i32);

/// A product to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProduct {
    /// Its public identity, unique.
    pub sku: Sku,
    /// Its name for people.
    pub name: String,
    /// Units to sell, 0 to [`MAX_STOCK`].
    pub stock: u64,
    /// How many segments share the stock, 1 to [`MAX_SEGMENTS`].
    pub segments: u16,
    /// The most units that one order may ask for.
    pub max_per_order: Option<Quantity>,
    /// When it sells.
    pub window: SaleWindow,
}

/// A product as the ledger holds it, without its stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// Its identity in the ledger.
    pub id: ProductId,
    /// Its public identity.
    pub sku: Sku,
    /// Its name for people.
    pub name: String,
    /// How many segments share the stock.
    pub segments: u16,
    /// The most units that one order may ask for.
    pub max_per_order: Option<Quantity>,
    /// When it sells.
    pub window: SaleWindow,
    /// When it was created.
    pub created_at: DateTime<Utc>,
}

/// From when to when a product sells; open on either side where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaleWindow {
    /// The first moment of the sale.
    pub starts_at: Option<DateTime<Utc>>,
    /// The first moment after the sale.
    pub ends_at: Option<DateTime<Utc>>,
}

impl SaleWindow {
    /// Whether the window says nothing, so that nobody has to ask the time.
    pub fn is_always(&self) -> bool {
        self.starts_at.is_none() && self.ends_at.is_none()
    }
}
