//! Settling a batch: first as if none of its orders were there already, because that is nearly always so.
//!
//! `ON CONFLICT DO NOTHING` looks each order up in every unique index before it inserts it, and marks the row twice: a
//! quarter of what an insert costs. Without it a repeated key fails the whole statement; then nothing has happened, and
//! the batch is settled again with it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{PostgresLedger, column, index_column};
use crate::domain::OrderStatus;
use crate::ledger::{LedgerError, Settled, Settlement};

/// After a batch with a repetition so many are expected to have one: retries come in storms.
const STORM: u32 = 50;

const TOLERANCE: &str = "ON CONFLICT DO NOTHING";

/// Leaves orders alone that are there already.
pub(super) const SETTLE: &str = include_str!("queries/settle.sql");
/// The same statement for orders that are all new.
pub(super) static SETTLE_NEW: LazyLock<String> = LazyLock::new(|| SETTLE.replace(TOLERANCE, ""));

/// Whether batches are expected to repeat orders.
#[derive(Default)]
pub(super) struct Repetitions(AtomicU32);

impl Repetitions {
    /// Counts a batch.
    pub(super) fn are_expected(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    pub(super) fn happened(&self) {
        self.0.store(STORM, Ordering::Relaxed);
    }
}

/// Whether the statement failed because an order is there already: nothing else that it writes is unique.
pub(super) fn is_repetition(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|answer| answer.is_unique_violation())
}

impl PostgresLedger {
    pub(super) async fn settle_with(
        &self,
        statement: &'static str,
        settlement: &Settlement<'_>,
    ) -> Result<Settled, LedgerError> {
        let orders = settlement.orders;
        let ids: Vec<Uuid> = orders.iter().map(|order| order.id).collect();
        let keys: Vec<Uuid> = orders.iter().map(|order| order.key.column()).collect();
        let quantities: Vec<i32> = orders.iter().map(|order| order.quantity.column()).collect();
        let customers: Vec<&str> = orders.iter().map(|order| order.customer_id.as_str()).collect();
        let total: u64 = orders.iter().map(|order| order.quantity.units()).sum();
        let query = sqlx::query(AssertSqlSafe(statement))
            .bind(settlement.segment.product.0)
            .bind(index_column(settlement.segment.index))
            .bind(settlement.fence.0)
            .bind(settlement.epoch.0)
            .bind(total as i64)
            .bind(OrderStatus::Confirmed.column())
            .bind(ids)
            .bind(keys)
            .bind(quantities)
            .bind(customers);
        let row = self.run(|connection| Box::pin(query.fetch_one(connection))).await?;
        let settled: bool = column(&row, "settled")?;
        let already_known = column(&row, "already_known")?;
        Ok(if settled { Settled::Committed { already_known } } else { Settled::Refused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_statements_differ_in_their_tolerance_only() {
        assert_eq!(SETTLE.matches(TOLERANCE).count(), 1);
        assert_eq!(SETTLE_NEW.matches("CONFLICT").count(), 0);
    }

    #[test]
    fn one_repetition_makes_a_storm_expected_and_a_storm_ends() {
        let repetitions = Repetitions::default();
        assert!(!repetitions.are_expected());
        repetitions.happened();
        assert_eq!((0..2 * STORM).filter(|_| repetitions.are_expected()).count(), STORM as usize);
    }
}
