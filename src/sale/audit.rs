//! Proving that a product's units are conserved: ledger against orders against guard.

use uuid::Uuid;

use super::on_sale::House;
use crate::domain::invariants::{Evidence, Violation, check};
use crate::domain::{Product, Segment};
use crate::guard::GuardError;
use crate::ledger::LedgerError;

/// Why an audit could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The ledger failed.
    #[error("the ledger could not be read")]
    Ledger(#[from] LedgerError),
    /// The guard failed.
    #[error("the guard could not be read")]
    Guard(#[from] GuardError),
}

/// Checks INV-1 to INV-6 of a product that nobody buys at the moment; `answered` are orders that were answered 201.
///
/// Returns every promise that is broken: none, if all is well.
pub(super) async fn audit(house: &House, product: &Product, answered: &[Uuid]) -> Result<Vec<Violation>, AuditError> {
    let mut evidence = Evidence { segments: house.ledger.segments(product.id).await?, ..Evidence::default() };
    let sums = house.ledger.order_sums(product.id).await?;
    evidence.live_units = sums.live_units;
    evidence.repeated_keys = sums.repeated_keys;
    for index in 0..product.segments {
        let segment = Segment { product: product.id, sku: product.sku.clone(), index };
        if let Some(guarded) = house.guard.inspect(&segment).await? {
            evidence.guarded.push((index, guarded));
        }
    }
    for ids in answered.chunks(10_000) {
        let found = house.ledger.settled_orders(ids, &[]).await?;
        let found: std::collections::HashSet<Uuid> = found.into_iter().map(|settled| settled.order.id).collect();
        evidence.answered_but_missing.extend(ids.iter().filter(|id| !found.contains(id)));
    }
    Ok(check(&evidence))
}
