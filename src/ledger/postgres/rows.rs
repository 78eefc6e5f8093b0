//! Rows of PostgreSQL as domain types.

use sqlx::postgres::PgRow;

use super::{Moment, column};
use crate::domain::{Product, ProductId, SaleWindow, SegmentStock, Sku};
use crate::ledger::row::{OrderColumns, SegmentColumns, quantity};
use crate::ledger::{LedgerError, SettledOrder};

/// A row of `products`.
pub(super) fn product_row(row: &PgRow) -> Result<Product, LedgerError> {
    let sku: String = column(row, "sku")?;
    let unreadable = |name: &str| LedgerError::Unreadable(format!("products.{name} of {sku}"));
    let segments: i16 = column(row, "segments")?;
    let max_per_order: Option<i32> = column(row, "max_per_order")?;
    Ok(Product {
        id: ProductId(column(row, "id")?),
        sku: Sku::new(&sku).map_err(|_| unreadable("sku"))?,
        name: column(row, "name")?,
        segments: u16::try_from(segments).map_err(|_| unreadable("segments"))?,
        max_per_order: max_per_order
            .map(|units| quantity(units.into()).ok_or_else(|| unreadable("max_per_order")))
            .transpose()?,
        window: SaleWindow {
            starts_at: column::<Option<Moment>>(row, "starts_at")?,
            ends_at: column::<Option<Moment>>(row, "ends_at")?,
        },
        created_at: column(row, "created_at")?,
    })
}

/// A row of `segments`.
pub(super) fn segment_row(row: &PgRow) -> Result<SegmentStock, LedgerError> {
    let index: i16 = column(row, "index")?;
    SegmentColumns {
        index: index.into(),
        allotted: column(row, "allotted")?,
        taken: column(row, "taken")?,
        fence: column(row, "fence")?,
        epoch: column(row, "epoch")?,
    }
    .try_into()
}

/// A row of `orders` joined with its product's SKU.
pub(super) fn order_row(row: &PgRow) -> Result<SettledOrder, LedgerError> {
    let (quantity, segment, status): (i32, i16, i16) =
        (column(row, "quantity")?, column(row, "segment")?, column(row, "status")?);
    OrderColumns {
        id: column(row, "id")?,
        sku: column(row, "sku")?,
        quantity: quantity.into(),
        customer_id: column(row, "customer_id")?,
        segment: segment.into(),
        status: status.into(),
        customer_key: column(row, "customer_key")?,
    }
    .try_into()
}
