//! The ledger in PostgreSQL: shared by any number of instances.
//!
//! Every statement is a file in `queries/`. What is here: how a statement is run within a time limit, and how its
//! outcome is told (nothing happened, or unknown).

mod connect;
mod pool;
mod rows;
mod settle;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgDatabaseError, PgRow, PgSeverity};
use sqlx::{PgConnection, Postgres, Row};
use uuid::Uuid;

pub use connect::{ConnectError, Options};

use self::pool::Pool;
use self::rows::{order_row, product_row, segment_row};
use self::settle::{Repetitions, SETTLE, SETTLE_NEW, is_repetition};
use super::row::units;
use super::{GatherLeg, Ledger, LedgerError, OrderFilter, OrderSums, ProductTotals, Settled, SettledOrder, Settlement};
use crate::domain::{
    Epoch, Fence, NewProduct, Order, OrderKey, OrderStatus, Product, ProductId, Reloaded, Segment, SegmentStock, Sku,
    split_stock,
};

/// A ledger in one PostgreSQL database.
pub struct PostgresLedger {
    pool: Pool,
    timeout: Duration,
    repetitions: Repetitions,
}

impl PostgresLedger {
    /// Runs `work` on a pooled connection, within the time limit.
    ///
    /// Where no connection can be had, nothing has happened. Once the work has begun, only an answer of the server says
    /// so; a connection that has lost one is not used again.
    async fn run<T, F>(&self, work: F) -> Result<T, LedgerError>
    where
        T: Send,
        F: for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send,
    {
        let began = Instant::now();
        let elapsed = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        let checkout = tokio::time::timeout(self.timeout, self.pool.checkout()).await.map_err(elapsed).flatten();
        let mut checkout = checkout.map_err(LedgerError::NothingHappened)?;
        let time_left = self.timeout.saturating_sub(began.elapsed());
        if time_left < self.timeout / 5 {
            // Too late to be answered in time: sent, it would only become a doubt.
            checkout.answered();
            return Err(LedgerError::NothingHappened(sqlx::Error::PoolTimedOut));
        }
        let connection = checkout.connection().map_err(LedgerError::NothingHappened)?;
        let outcome = match tokio::time::timeout(time_left, work(connection)).await {
            Ok(outcome) => outcome.map_err(classify),
            Err(late) => Err(LedgerError::OutcomeUnknown(elapsed(late))),
        };
        match &outcome {
            Err(LedgerError::OutcomeUnknown(error)) if is_broken(error) => self.pool.distrust(),
            Err(LedgerError::OutcomeUnknown(_)) => {}
            Ok(_) | Err(_) => checkout.answered(),
        }
        outcome
    }
}

/// An answer of the server with an SQLSTATE means that the statement was rolled back. Not so where a connection or the
/// whole server goes down with it (FATAL, PANIC): that may come after the commit.
fn classify(error: sqlx::Error) -> LedgerError {
    let answer = error.as_database_error().and_then(|answer| answer.try_downcast_ref::<PgDatabaseError>());
    let rolled_back = answer.is_some_and(|answer| matches!(answer.severity(), PgSeverity::Error));
    if rolled_back { LedgerError::NothingHappened(error) } else { LedgerError::OutcomeUnknown(error) }
}

/// Whether the connection was lost, rather than late.
fn is_broken(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() != std::io::ErrorKind::TimedOut,
        // FATAL or PANIC: a server that shuts down.
        sqlx::Error::Database(_) => true,
        _ => false,
    }
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn create_product(&self, new: &NewProduct) -> Result<Option<Product>, LedgerError> {
        let shares: Vec<i64> = split_stock(new.stock.0, new.segments.0).map(|share| share as i64).collect();
        let query = sqlx::query(include_str!("queries/create_product.sql"))
            .bind(new.sku.as_str().to_owned())
            .bind(new.name.0.clone())
            .bind(new.max_per_order.map(|quantity| quantity.column()))
            .bind(new.window.starts_at)
            .bind(new.window.ends_at)
            .bind(shares);
        let row = self.run(|connection| Box::pin(query.fetch_optional(connection))).await?;
        row.as_ref().map(product_row).transpose()
    }

    async fn product(&self, sku: &Sku) -> Result<Option<Product>, LedgerError> {
        let query = sqlx::query("SELECT * FROM products WHERE sku = $1").bind(sku.as_str().to_owned());
        let row = self.run(|connection| Box::pin(query.fetch_optional(connection))).await?;
        row.as_ref().map(product_row).transpose()
    }

    async fn products(&self, after: Option<&Sku>, limit: u32) -> Result<Vec<ProductTotals>, LedgerError> {
        let query = sqlx::query(include_str!("queries/products.sql"))
            .bind(after.map(|sku| sku.as_str().to_owned()))
            .bind(i64::from(limit));
        let rows = self.run(|connection| Box::pin(query.fetch_all(connection))).await?;
        let totals = |row: &PgRow| {
            Ok(ProductTotals {
                product: product_row(row)?,
                allotted: sum_column(row, "allotted")?,
                taken: sum_column(row, "taken")?,
            })
        };
        rows.iter().map(totals).collect()
    }

    async fn segments(&self, product: ProductId) -> Result<Vec<SegmentStock>, LedgerError> {
        let query = sqlx::query(include_str!("queries/segments.sql")).bind(product.0);
        let rows = self.run(|connection| Box::pin(query.fetch_all(connection))).await?;
        rows.iter().map(segment_row).collect()
    }

    async fn held(&self, product: ProductId) -> Result<u64, LedgerError> {
        let query = sqlx::query(
            "SELECT coalesce(sum(quantity), 0)::bigint AS held FROM orders WHERE product_id = $1 AND status = 0",
        )
        .bind(product.0);
        let row = self.run(|connection| Box::pin(query.fetch_one(connection))).await?;
        sum_column(&row, "held")
    }

    async fn settle(&self, settlement: &Settlement<'_>) -> Result<Settled, LedgerError> {
        if self.repetitions.are_expected() {
            return self.settle_with(SETTLE, settlement).await;
        }
        match self.settle_with(&SETTLE_NEW, settlement).await {
            // Twice as long as a statement may take; the lease is renewed meanwhile.
            Err(LedgerError::NothingHappened(error)) if is_repetition(&error) => {
                self.repetitions.happened();
                self.settle_with(SETTLE, settlement).await
            }
            settled => settled,
        }
    }

    async fn reload(&self, segment: &Segment, fence: Fence) -> Result<Reloaded, LedgerError> {
        let query = sqlx::query(include_str!("queries/reload.sql"))
            .bind(segment.product.0)
            .bind(index_column(segment.index))
            .bind(fence.0)
            .bind(Fence::RELOAD_STRIDE);
        let row = self.run(|connection| Box::pin(query.fetch_one(connection))).await?;
        Ok(Reloaded {
            stock: sum_column(&row, "stock")?,
            fence: Fence(column(&row, "fence")?),
            epoch: Epoch(column(&row, "epoch")?),
        })
    }

    async fn gather(&self, product: ProductId, legs: &[GatherLeg]) -> Result<bool, LedgerError> {
        let query = sqlx::query(include_str!("queries/gather.sql"))
            .bind(product.0)
            .bind(legs.iter().map(|leg| index_column(leg.index)).collect::<Vec<i16>>())
            .bind(legs.iter().map(|leg| leg.fence.0).collect::<Vec<i64>>())
            .bind(legs.iter().map(|leg| leg.epoch.0).collect::<Vec<i64>>())
            .bind(legs.iter().map(|leg| leg.units).collect::<Vec<i64>>());
        let wanted = legs.len() as u64;
        self.run(move |connection| {
            Box::pin(async move {
                let mut transaction = sqlx::Connection::begin(connection).await?;
                let changed = match query.execute(&mut *transaction).await {
                    Ok(done) => done.rows_affected(),
                    Err(error) => {
                        // The statement's own error says more than that of a rollback.
                        let _rolled_back = transaction.rollback().await;
                        return Err(error);
                    }
                };
                if changed == wanted {
                    transaction.commit().await?;
                } else {
                    transaction.rollback().await?;
                }
                Ok(changed == wanted)
            })
        })
        .await
    }

    async fn settled_orders(&self, ids: &[Uuid], keys: &[OrderKey]) -> Result<Vec<SettledOrder>, LedgerError> {
        let query = sqlx::query(include_str!("queries/settled_orders.sql"))
            .bind(ids.to_vec())
            .bind(keys.iter().map(|key| key.column()).collect::<Vec<Uuid>>());
        let rows = self.run(|connection| Box::pin(query.fetch_all(connection))).await?;
        rows.iter().map(order_row).collect()
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
        let mut query = sqlx::query(statement)
            .bind(filter.status.map(OrderStatus::column))
            .bind(filter.after)
            .bind(i64::from(filter.limit));
        if let Some(customer) = &filter.customer_id {
            let (low, high) = OrderKey::range_of(customer);
            query = query.bind(sku).bind(customer.clone()).bind(low.column()).bind(high.column());
        } else if sku.is_some() {
            query = query.bind(sku);
        }
        let rows = self.run(|connection| Box::pin(query.fetch_all(connection))).await?;
        rows.iter().map(|row| order_row(row).map(|settled| settled.order)).collect()
    }

    async fn order_keys(
        &self,
        product: ProductId,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<(Uuid, OrderKey)>, LedgerError> {
        let query =
            sqlx::query(include_str!("queries/order_keys.sql")).bind(product.0).bind(after).bind(i64::from(limit));
        let rows = self.run(|connection| Box::pin(query.fetch_all(connection))).await?;
        let key = |row: &PgRow| Ok((column(row, "id")?, OrderKey::from_column(column(row, "customer_key")?)));
        rows.iter().map(key).collect()
    }

    async fn order_sums(&self, product: ProductId) -> Result<OrderSums, LedgerError> {
        let sums = sqlx::query(include_str!("queries/order_sums.sql")).bind(product.0);
        let repeated = sqlx::query_scalar(include_str!("queries/repeated_keys.sql")).bind(product.0);
        let (rows, repeated): (Vec<PgRow>, i64) = self
            .run(|connection| {
                Box::pin(async move {
                    let rows = sums.fetch_all(&mut *connection).await?;
                    Ok((rows, repeated.fetch_one(connection).await?))
                })
            })
            .await?;
        let sum = |row: &PgRow| {
            let index: i16 = column(row, "segment")?;
            Ok((index.unsigned_abs(), sum_column(row, "live_units")?))
        };
        Ok(OrderSums {
            live_units: rows.iter().map(sum).collect::<Result<_, LedgerError>>()?,
            repeated_keys: repeated.unsigned_abs(),
        })
    }

    async fn ping(&self) -> Result<(), LedgerError> {
        let query = sqlx::query("SELECT 1");
        self.run(|connection| Box::pin(query.execute(connection))).await?;
        Ok(())
    }

    async fn close(&self) {
        self.pool.close();
    }
}

/// A segment index fits 16 signed bits: there are at most 1024.
fn index_column(index: u16) -> i16 {
    index as i16
}

/// Reads a column of a row that the program's own statement returned.
fn column<'r, T>(row: &'r PgRow, name: &str) -> Result<T, LedgerError>
where
    T: sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
{
    row.try_get(name).map_err(|error| LedgerError::Unreadable(format!("{name}: {error}")))
}

/// Reads a column that counts units.
fn sum_column(row: &PgRow, name: &str) -> Result<u64, LedgerError> {
    units(column(row, name)?).ok_or_else(|| LedgerError::Unreadable(format!("{name} is negative")))
}

/// The type of a column that holds a moment.
type Moment = DateTime<Utc>;
