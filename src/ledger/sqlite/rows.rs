//! Rows of SQLite as domain types.

use chrono::DateTime;
use sqlx::sqlite::SqliteRow;

use super::column;
use crate::domain::{Product, ProductId, SaleWindow, SegmentStock, Sku};
use crate::ledger::row::{OrderColumns, SegmentColumns, quantity};
use crate::ledger::{LedgerError, SettledOrder};

/// A row of `products`.
pub(super) fn product_row(row: &SqliteRow) -> Result<Product, LedgerError> {
    let sku: String = column(row, "sku")?;
    let unreadable = |name: &str| LedgerError::Unreadable(format!("products.{name} of {sku}"));
    let moment = |name: &str| {
        let micros: Option<i64> = column(row, name)?;
        micros.map(|micros| DateTime::from_timestamp_micros(micros).ok_or_else(|| unreadable(name))).transpose()
    };
    let max_per_order: Option<i64> = column(row, "max_per_order")?;
    Ok(Product {
        id: ProductId(column(row, "id")?),
        sku: Sku::new(&sku).map_err(|_| unreadable("sku"))?,
        name: column(row, "name")?,
        segments: column(row, "segments")?,
        max_per_order: max_per_order
            .map(|units| quantity(units).ok_or_else(|| unreadable("max_per_order")))
            .transpose()?,
        window: SaleWindow { starts_at: moment("starts_at")?, ends_at: moment("ends_at")? },
        created_at: moment("created_at")?.ok_or_else(|| unreadable("created_at"))?,
    })
}

/// A row of `segments`.
pub(super) fn segment_row(row: &SqliteRow) -> Result<SegmentStock, LedgerError> {
    SegmentColumns {
        index: column(row, "index")?,
        allotted: column(row, "allotted")?,
        taken: column(row, "taken")?,
        fence: column(row, "fence")?,
        epoch: column(row, "epoch")?,
    }
    .try_into()
}

/// A row of `orders` joined with its product's SKU.
pub(super) fn order_row(row: &SqliteRow) -> Result<SettledOrder, LedgerError> {
    OrderColumns {
        id: column(row, "id")?,
        sku: column(row, "sku")?,
        quantity: column(row, "quantity")?,
        customer_id: column(row, "customer_id")?,
        segment: column(row, "segment")?,
        status: column(row, "status")?,
        customer_key: column(row, "customer_key")?,
    }
    .try_into()
}
