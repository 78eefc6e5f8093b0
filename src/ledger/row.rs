//! From column values to domain types: what both ledgers do with a row once its numbers are out.

use uuid::Uuid;

use super::{LedgerError, SettledOrder};
use crate::domain::{CustomerId, Order, OrderKey, OrderStatus, Quantity, SegmentStock, Sku};
use crate::domain::{Epoch, Fence};

/// The columns of an order, as wide as either ledger gives them.
pub(super) struct OrderColumns {
    pub(super) id: Uuid,
    pub(super) sku: String,
    pub(super) quantity: i64,
    pub(super) customer_id: String,
    pub(super) segment: i64,
    pub(super) status: i64,
    pub(super) customer_key: Uuid,
}

impl TryFrom<OrderColumns> for SettledOrder {
    type Error = LedgerError;

    fn try_from(columns: OrderColumns) -> Result<Self, LedgerError> {
        let id = columns.id;
        let unreadable = |column: &str| LedgerError::Unreadable(format!("orders.{column} of {id}"));
        let status = i16::try_from(columns.status).ok().and_then(OrderStatus::from_column);
        Ok(Self {
            order: Order {
                id,
                sku: Sku::new(&columns.sku).map_err(|_| unreadable("sku"))?,
                quantity: quantity(columns.quantity).ok_or_else(|| unreadable("quantity"))?,
                customer_id: CustomerId::try_from(columns.customer_id).map_err(|_| unreadable("customer_id"))?,
                segment: u16::try_from(columns.segment).map_err(|_| unreadable("segment"))?,
                status: status.ok_or_else(|| unreadable("status"))?,
            },
            key: OrderKey::from_column(columns.customer_key),
        })
    }
}

/// The columns of a segment.
pub(super) struct SegmentColumns {
    pub(super) index: i64,
    pub(super) allotted: i64,
    pub(super) taken: i64,
    pub(super) fence: i64,
    pub(super) epoch: i64,
}

impl TryFrom<SegmentColumns> for SegmentStock {
    type Error = LedgerError;

    fn try_from(columns: SegmentColumns) -> Result<Self, LedgerError> {
        let index = columns.index;
        let unreadable = |column: &str| LedgerError::Unreadable(format!("segments.{column} of index {index}"));
        Ok(Self {
            index: u16::try_from(index).map_err(|_| unreadable("index"))?,
            allotted: units(columns.allotted).ok_or_else(|| unreadable("allotted"))?,
            taken: units(columns.taken).ok_or_else(|| unreadable("taken"))?,
            fence: Fence(columns.fence),
            epoch: Epoch(columns.epoch),
        })
    }
}

/// A column that counts units.
pub(super) fn units(column: i64) -> Option<u64> {
    u64::try_from(column).ok()
}

/// A column that holds an order's quantity.
pub(super) fn quantity(column: i64) -> Option<Quantity> {
    units(column).and_then(|units| Quantity::new(units).ok())
}
