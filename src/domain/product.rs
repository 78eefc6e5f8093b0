//! What is sold, and when.

use chrono::{DateTime, Datelike, Utc};
use serde::{Deserialize, Deserializer};

use super::whole::whole;
use super::{Invalid, Quantity, Sku};

/// Units that a product starts with, 0 to 10¹².
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stock(pub u64);

impl Stock {
    const MAX: u64 = 1_000_000_000_000;
}

impl<'de> Deserialize<'de> for Stock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        whole(deserializer, 0..=Self::MAX).map(Self)
    }
}

/// How many segments share a product's stock, 1 to 1024; 20 unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentCount(pub u16);

impl SegmentCount {
    const MAX: u16 = 1024;
}

impl Default for SegmentCount {
    fn default() -> Self {
        Self(20)
    }
}

impl<'de> Deserialize<'de> for SegmentCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The range fits, so the cast is lossless.
        whole(deserializer, 1..=u64::from(Self::MAX)).map(|count| Self(count as u16))
    }
}

/// A product's name for people: 1 to 200 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ProductName(pub String);

impl TryFrom<String> for ProductName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        let fits = (1..=200).contains(&text.chars().count());
        if fits && !text.chars().any(char::is_control) {
            Ok(Self(text))
        } else {
            Err(Invalid::new("must be 1 to 200 characters without control characters"))
        }
    }
}

/// A moment as a client may name it: years 0000 to 9999, which is what RFC 3339 can write and every ledger can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "DateTime<Utc>")]
pub struct Moment(pub DateTime<Utc>);

impl TryFrom<DateTime<Utc>> for Moment {
    type Error = Invalid;

    fn try_from(moment: DateTime<Utc>) -> Result<Self, Invalid> {
        if (0..=9999).contains(&moment.year()) {
            Ok(Self(moment))
        } else {
            Err(Invalid::new("must be in the years 0000 to 9999"))
        }
    }
}

/// A product's identity in the ledger: small, because every order carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductId(pub i32);

/// A product to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProduct {
    /// Its public identity, unique.
    pub sku: Sku,
    /// Its name for people.
    pub name: ProductName,
    /// Units to sell.
    pub stock: Stock,
    /// How many segments share the stock.
    pub segments: SegmentCount,
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
