//! The ledger in SQLite: the embedded default, for one process.
//!
//! WAL mode, one connection that writes and a few that read. A commit is on disk before it is answered
//! (`synchronous = FULL`). The rules are those of [`super::postgres`]; where PostgreSQL does with one statement, SQLite
//! takes a transaction of a few, which costs no trips.

mod connect;
mod rows;

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Row, SqliteConnection, SqlitePool};
use uuid::Uuid;

pub use connect::{OpenError, Options};

use self::rows::{order_row, product_row, segment_row};
use super::row::units;
use super::{GatherLeg, Ledger, LedgerError, OrderFilter, OrderSums, ProductTotals, Settled, SettledOrder, Settlement};
use crate::domain::{
    Epoch, Fence, NewProduct, Order, OrderKey, OrderStatus, Product, ProductId, Reloaded, Segment, SegmentStock, Sku,
    split_stock,
};

/// A ledger in one SQLite file.
pub struct SqliteLedger {
    /// One connection: SQLite has one writer at a time anyway, and here it queues without polling for the lock.
    writer: SqlitePool,
    readers: SqlitePool,
    timeout: Duration,
}

impl SqliteLedger {
    /// Runs `work` in one writing transaction: all of it is kept, or nothing. `None` rolls back.
    ///
    /// After a failure the connection is not used again: SQLite may have ended the transaction by itself, and sqlx would
    /// go on counting it as open.
    async fn write<T>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<Option<T>, sqlx::Error>,
    ) -> Result<Option<T>, LedgerError> {
        let mut connection = self.writer.acquire().await.map_err(LedgerError::NothingHappened)?;
        let outcome = transact(&mut connection, work).await;
        if outcome.is_err() {
            connection.close_on_drop();
        }
        outcome
    }

    /// Reads rows, within the time limit.
    async fn read(
        &self,
        query: sqlx::query::Query<'_, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, LedgerError> {
        let elapsed = |_| LedgerError::NothingHappened(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()));
        tokio::time::timeout(self.timeout, query.fetch_all(&self.readers))
            .await
            .map_err(elapsed)?
            .map_err(LedgerError::NothingHappened)
    }

    /// Reads the one number that a statement returns.
    async fn read_sum(&self, statement: &'static str, product: ProductId) -> Result<u64, LedgerError> {
        let rows = self.read(sqlx::query(statement).bind(product.0)).await?;
        let sum: Option<i64> = rows.first().and_then(|row| row.try_get(0).ok());
        sum.and_then(units).ok_or_else(|| LedgerError::Unreadable("a sum".to_owned()))
    }
}

async fn transact<T>(
    connection: &mut SqliteConnection,
    work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<Option<T>, sqlx::Error>,
) -> Result<Option<T>, LedgerError> {
    let begun = connection.begin_with("BEGIN IMMEDIATE").await;
    let mut transaction = begun.map_err(LedgerError::NothingHappened)?;
    // A failed statement drops the transaction, which rolls it back.
    let outcome = work(&mut transaction).await.map_err(LedgerError::NothingHappened)?;
    if outcome.is_some() {
        transaction.commit().await.map_err(LedgerError::OutcomeUnknown)?;
    } else {
        transaction.rollback().await.map_err(LedgerError::NothingHappened)?;
    }
    Ok(outcome)
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn create_product(&self, new: &NewProduct) -> Result<Option<Product>, LedgerError> {
        let shares: Vec<u64> = split_stock(new.stock.0, new.segments.0).collect();
        let row = self
            .write(async |connection| {
                let created = sqlx::query(include_str!("queries/create_product.sql"))
                    .bind(new.sku.as_str())
                    .bind(&new.name.0)
                    .bind(new.segments.0)
                    .bind(new.max_per_order.map(|quantity| quantity.column()))
                    .bind(new.window.starts_at.map(|moment| moment.timestamp_micros()))
                    .bind(new.window.ends_at.map(|moment| moment.timestamp_micros()))
                    .bind(chrono::Utc::now().timestamp_micros())
                    .fetch_optional(&mut *connection)
                    .await?;
                let Some(row) = created else { return Ok(None) };
                sqlx::query(include_str!("queries/create_segments.sql"))
                    .bind(row.try_get::<i64, _>("id")?)
                    .bind(json(&shares))
                    .execute(connection)
                    .await?;
                Ok(Some(row))
            })
            .await?;
        row.as_ref().map(product_row).transpose()
    }

    async fn product(&self, sku: &Sku) -> Result<Option<Product>, LedgerError> {
        let query = sqlx::query("SELECT * FROM products WHERE sku = ?1").bind(sku.as_str().to_owned());
        self.read(query).await?.first().map(product_row).transpose()
    }

    async fn products(&self, after: Option<&Sku>, limit: u32) -> Result<Vec<ProductTotals>, LedgerError> {
        let query = sqlx::query(include_str!("queries/products.sql"))
            .bind(after.map(|sku| sku.as_str().to_owned()))
            .bind(limit);
        let totals = |row: &SqliteRow| {
            Ok(ProductTotals {
                product: product_row(row)?,
                allotted: sum_column(row, "allotted")?,
                taken: sum_column(row, "taken")?,
            })
        };
        self.read(query).await?.iter().map(totals).collect()
    }

    async fn segments(&self, product: ProductId) -> Result<Vec<SegmentStock>, LedgerError> {
        let query = sqlx::query(
            "SELECT \"index\", allotted, taken, fence, epoch FROM segments WHERE product_id = ?1 ORDER BY \"index\"",
        );
        self.read(query.bind(product.0)).await?.iter().map(segment_row).collect()
    }

    async fn held(&self, product: ProductId) -> Result<u64, LedgerError> {
        let statement = "SELECT coalesce(sum(quantity), 0) FROM orders WHERE product_id = ?1 AND status = 0";
        self.read_sum(statement, product).await
    }

    async fn settle(&self, settlement: &Settlement<'_>) -> Result<Settled, LedgerError> {
        let Settlement { segment, fence, epoch, orders } = *settlement;
        let total: u64 = orders.iter().map(|order| order.quantity.units()).sum();
        let rows: Vec<(String, String, u64, &str)> = orders
            .iter()
            .map(|order| (hex(order.id), hex(order.key.column()), order.quantity.units(), order.customer_id.as_str()))
            .collect();
        let rows = json(&rows);
        let inserted = self
            .write(async |connection| {
                let good: i64 = sqlx::query_scalar(include_str!("queries/lease_is_good.sql"))
                    .bind(segment.product.0)
                    .bind(segment.index)
                    .bind(fence.0)
                    .bind(epoch.0)
                    .bind(total as i64)
                    .fetch_one(&mut *connection)
                    .await?;
                if good == 0 {
                    return Ok(None);
                }
                let inserted: Vec<(Uuid, i64)> = sqlx::query_as(include_str!("queries/insert_orders.sql"))
                    .bind(segment.product.0)
                    .bind(segment.index)
                    .bind(OrderStatus::Confirmed.column())
                    .bind(rows)
                    .fetch_all(&mut *connection)
                    .await?;
                sqlx::query(include_str!("queries/take.sql"))
                    .bind(segment.product.0)
                    .bind(segment.index)
                    .bind(fence.0)
                    .bind(inserted.iter().map(|(_, units)| units).sum::<i64>())
                    .execute(connection)
                    .await?;
                Ok(Some(inserted))
            })
            .await?;
        let Some(inserted) = inserted else {
            return Ok(Settled::Refused);
        };
        let inserted: std::collections::HashSet<Uuid> = inserted.into_iter().map(|(id, _)| id).collect();
        let ids = orders.iter().map(|order| order.id);
        Ok(Settled::Committed { already_known: ids.filter(|id| !inserted.contains(id)).collect() })
    }

    async fn reload(&self, segment: &Segment, fence: Fence) -> Result<Reloaded, LedgerError> {
        let (product, index) = (segment.product.0, segment.index);
        let row = self
            .write(async |connection| {
                sqlx::query(include_str!("queries/reload.sql"))
                    .bind(product)
                    .bind(index)
                    .bind(fence.0)
                    .bind(Fence::RELOAD_STRIDE)
                    .fetch_optional(connection)
                    .await
            })
            .await?
            .ok_or_else(|| LedgerError::Unreadable(format!("segment {index} of {} is missing", segment.sku)))?;
        Ok(Reloaded {
            stock: sum_column(&row, "stock")?,
            fence: Fence(column(&row, "fence")?),
            epoch: Epoch(column(&row, "epoch")?),
        })
    }

    async fn gather(&self, product: ProductId, legs: &[GatherLeg]) -> Result<bool, LedgerError> {
        let done = self
            .write(async |connection| {
                for leg in legs {
                    let changed = sqlx::query(include_str!("queries/gather_leg.sql"))
                        .bind(product.0)
                        .bind(leg.index)
                        .bind(leg.fence.0)
                        .bind(leg.epoch.0)
                        .bind(leg.units)
                        .execute(&mut *connection)
                        .await?
                        .rows_affected();
                    if changed != 1 {
                        return Ok(None);
                    }
                }
                Ok(Some(()))
            })
            .await?;
        Ok(done.is_some())
    }

    async fn settled_orders(&self, ids: &[Uuid], keys: &[OrderKey]) -> Result<Vec<SettledOrder>, LedgerError> {
        let ids: Vec<String> = ids.iter().map(|id| hex(*id)).collect();
        let keys: Vec<String> = keys.iter().map(|key| hex(key.column())).collect();
        let query = sqlx::query(include_str!("queries/settled_orders.sql")).bind(json(&ids)).bind(json(&keys));
        self.read(query).await?.iter().map(order_row).collect()
    }

    async fn order(&self, id: Uuid) -> Result<Option<Order>, LedgerError> {
        let found = self.settled_orders(&[id], &[]).await?;
        Ok(found.into_iter().next().map(|settled| settled.order))
    }

    async fn orders(&self, filter: &OrderFilter) -> Result<Vec<Order>, LedgerError> {
        let statement = match (&filter.customer_id, &filter.sku) {
            (Some(_), _) => include_str!("queries/orders_of_customer.sql"),
            (None, Some(_)) => include_str!("queries/orders_of_product.sql"),
            (None, None) => include_str!("queries/orders.sql"),
        };
        let sku = filter.sku.as_ref().map(|sku| sku.as_str().to_owned());
        let mut query =
            sqlx::query(statement).bind(filter.status.map(OrderStatus::column)).bind(filter.after).bind(filter.limit);
        if let Some(customer) = &filter.customer_id {
            let (low, high) = OrderKey::range_of(customer);
            query = query.bind(sku).bind(customer.clone()).bind(low.column()).bind(high.column());
        } else if sku.is_some() {
            query = query.bind(sku);
        }
        let rows = self.read(query).await?;
        rows.iter().map(|row| order_row(row).map(|settled| settled.order)).collect()
    }

    async fn order_keys(
        &self,
        product: ProductId,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<(Uuid, OrderKey)>, LedgerError> {
        let query = sqlx::query(include_str!("queries/order_keys.sql"))
            .bind(product.0)
            .bind(after.unwrap_or(Uuid::nil()))
            .bind(limit);
        let rows = self.read(query).await?;
        let key = |row: &SqliteRow| Ok((column(row, "id")?, OrderKey::from_column(column(row, "customer_key")?)));
        rows.iter().map(key).collect()
    }

    async fn order_sums(&self, product: ProductId) -> Result<OrderSums, LedgerError> {
        let rows = self.read(sqlx::query(include_str!("queries/order_sums.sql")).bind(product.0)).await?;
        let sum = |row: &SqliteRow| Ok((column(row, "segment")?, sum_column(row, "live_units")?));
        Ok(OrderSums {
            live_units: rows.iter().map(sum).collect::<Result<_, LedgerError>>()?,
            repeated_keys: self.read_sum(include_str!("queries/repeated_keys.sql"), product).await?,
        })
    }

    async fn ping(&self) -> Result<(), LedgerError> {
        self.read(sqlx::query("SELECT 1")).await?;
        self.write(async |_connection| Ok(None::<()>)).await?;
        Ok(())
    }

    async fn close(&self) {
        self.readers.close().await;
        // The last one to close folds the write-ahead log into the file.
        self.writer.close().await;
    }
}

/// A batch travels as one JSON parameter: SQLite has no arrays.
fn json(values: &impl serde::Serialize) -> String {
    // Strings, numbers and arrays of them always serialise.
    serde_json::to_string(values).unwrap_or_default()
}

fn hex(id: Uuid) -> String {
    id.simple().to_string()
}

/// Reads a column of a row that the program's own statement returned.
fn column<'r, T>(row: &'r SqliteRow, name: &str) -> Result<T, LedgerError>
where
    T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    row.try_get(name).map_err(|error| LedgerError::Unreadable(format!("{name}: {error}")))
}

/// Reads a column that counts units.
fn sum_column(row: &SqliteRow, name: &str) -> Result<u64, LedgerError> {
    units(column(row, name)?).ok_or_else(|| LedgerError::Unreadable(format!("{name} is negative")))
}
