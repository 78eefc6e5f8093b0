//! The record of a sale.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{CustomerId, OrderKey, Quantity, Sku};

/// An order that waits to be settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrder {
    /// A UUIDv7, given before the first settle and kept through every retry (R6).
    pub id: Uuid,
    /// Units asked for.
    pub quantity: Quantity,
    /// Who it is for.
    pub customer_id: CustomerId,
    /// Its name within its customer.
    pub key: OrderKey,
}

/// Where an order stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrderStatus {
    /// A hold: the units are taken until it is confirmed or expires.
    Reserved,
    /// Sold.
    Confirmed,
    /// Given up; its units went back.
    Cancelled,
    /// A hold that ran out; its units went back.
    Expired,
}

impl OrderStatus {
    /// Every status, in the order of its column value.
    pub const ALL: [Self; 4] = [Self::Reserved, Self::Confirmed, Self::Cancelled, Self::Expired];

    /// The status as the ledger's column holds it.
    pub fn column(self) -> i16 {
        self as i16
    }

    /// Reads the ledger's column.
    pub fn from_column(value: i16) -> Option<Self> {
        usize::try_from(value).ok().and_then(|index| Self::ALL.get(index).copied())
    }
}

/// An order as the ledger holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// A UUIDv7.
    pub id: Uuid,
    /// What was bought.
    pub sku: Sku,
    /// Units bought.
    pub quantity: Quantity,
    /// Who bought it.
    pub customer_id: CustomerId,
    /// The segment that the units came from.
    pub segment: u16,
    /// Where it stands.
    pub status: OrderStatus,
}

impl Order {
    /// When the order was placed, to the millisecond: a UUIDv7 carries it (RFC 9562 §5.7), so no column does.
    pub fn created_at(&self) -> DateTime<Utc> {
        let milliseconds = self.id.as_u128() >> 80;
        // 48 bits of milliseconds always fit a timestamp, so the fallback is never taken.
        DateTime::from_timestamp_millis(milliseconds as i64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_survives_its_column() {
        for status in OrderStatus::ALL {
            assert_eq!(OrderStatus::from_column(status.column()), Some(status));
        }
        assert_eq!(OrderStatus::from_column(-1), None);
        assert_eq!(OrderStatus::from_column(4), None);
    }

    #[test]
    fn the_id_tells_when_it_was_placed() {
        // The example of RFC 9562, appendix A.6: Tuesday, February 22, 2022 2:22:22.00 PM GMT-05:00.
        let order = Order {
            id: Uuid::parse_str("017F22E2-79B0-7CC3-98C4-DC0C0C07398F").unwrap(),
            sku: Sku::new("a").unwrap(),
            quantity: Quantity::new(1).unwrap(),
            customer_id: CustomerId::try_from("ada".to_owned()).unwrap(),
            segment: 0,
            status: OrderStatus::Confirmed,
        };
        assert_eq!(order.created_at().to_rfc3339(), "2022-02-22T19:22:22+00:00");
    }
}
