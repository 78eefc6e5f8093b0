//! What a process may say of a product's stock without asking anybody (R9).
//!
//! After the first second of a sale nearly every request finds nothing. The last look into the ledger answers them from
//! memory, for one second at most; one request early in the second half asks for the next look, so that nobody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

use super::outcome::Refusal;
use super::waiting::Asked;
use crate::domain::{OrderKey, Quantity};

/// How long a look into the ledger may be quoted.
const VALID: Duration = Duration::from_secs(1);
/// From this age on the next look is asked for.
const REFRESH: Duration = Duration::from_millis(500);

/// The last look into the ledger, shared by all requests for one product.
#[derive(Default)]
pub(super) struct Claim(ArcSwapOption<Look>);

/// What one look into the ledger saw.
pub(super) struct Look {
    /// Units that all segments together had left.
    pub(super) remaining: u64,
    /// The sum of the segments' fences: it moves with every settle, so that an unchanged one means unchanged orders.
    pub(super) fences: i64,
    /// Who has an order, once that is loaded.
    pub(super) winners: Option<Winners>,
    taken_at: Instant,
    refresh_asked: AtomicBool,
}

/// Everybody who has an order when nothing is left. Holds for looks with the same fences.
#[derive(Debug, Clone)]
pub(super) enum Winners {
    /// The fingerprints of their keys, sorted: nobody else can have an order.
    Known { fences: i64, fingerprints: Arc<[u64]> },
    /// More than are kept: every retry asks the ledger.
    TooMany { fences: i64 },
}

impl Winners {
    fn fences(&self) -> i64 {
        match self {
            Self::Known { fences, .. } | Self::TooMany { fences } => *fences,
        }
    }

    fn may_include(&self, key: &OrderKey) -> bool {
        match self {
            Self::Known { fingerprints, .. } => fingerprints.binary_search(&key.fingerprint()).is_ok(),
            Self::TooMany { .. } => true,
        }
    }
}

impl Look {
    pub(super) fn new(remaining: u64, fences: i64, winners: Option<Winners>, taken_at: Instant) -> Self {
        Self { remaining, fences, winners, taken_at, refresh_asked: AtomicBool::new(false) }
    }

    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.taken_at)
    }

    /// Whether the set of orders is final, and not known yet.
    pub(super) fn wants_winners(&self) -> bool {
        self.remaining == 0 && self.winners.is_none()
    }
}

/// What memory says of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FromMemory {
    /// It cannot be served, and has no order yet.
    Refuse(Refusal),
    /// It cannot be served, but may repeat a request that was.
    RefuseUnlessKnown(Refusal),
    /// It may be served.
    Try,
}

impl Claim {
    /// What may be said of the request now. The flag asks the caller to have the ledger looked into again.
    pub(super) fn consult(&self, asked: &Asked, now: Instant) -> (FromMemory, bool) {
        let look = self.0.load();
        let Some(look) = look.as_deref() else {
            return (FromMemory::Try, false);
        };
        let age = look.age(now);
        let refusal = Refusal::for_want_of_stock(asked.quantity, look.remaining).filter(|_| age <= VALID);
        let Some(refusal) = refusal else {
            return (FromMemory::Try, false);
        };
        let refresh = age > REFRESH && !look.refresh_asked.swap(true, Ordering::Relaxed);
        // Only with nothing left is the set of orders final: a repetition of a refused one is refused again.
        let verdict = match (&asked.key, &look.winners) {
            (None, _) => FromMemory::Refuse(refusal),
            (Some(key), Some(winners)) if !winners.may_include(key) => FromMemory::Refuse(refusal),
            (Some(_), _) => FromMemory::RefuseUnlessKnown(refusal),
        };
        (verdict, refresh)
    }

    /// Whether the last look still counts, and saw at least as much as `quantity`.
    pub(super) fn covers(&self, quantity: Quantity, now: Instant) -> bool {
        let covers = |look: &Look| look.age(now) <= VALID && quantity.units() <= look.remaining;
        self.0.load().as_deref().is_some_and(covers)
    }

    /// Whether the set of orders is final, and not known yet.
    pub(super) fn wants_winners(&self) -> bool {
        self.0.load().as_deref().is_some_and(Look::wants_winners)
    }

    /// The last look, however old.
    pub(super) fn last(&self) -> Option<Arc<Look>> {
        self.0.load_full()
    }

    /// Adds the winners to the look that they belong to, unless another has replaced it.
    pub(super) fn add_winners(&self, winners: Winners) {
        let current = self.0.load_full();
        let theirs = current.filter(|look| look.wants_winners() && look.fences == winners.fences());
        if let Some(look) = theirs {
            self.publish(Look::new(0, look.fences, Some(winners), look.taken_at));
        }
    }

    /// Takes a new look into use.
    pub(super) fn publish(&self, look: Look) {
        self.0.store(Some(Arc::new(look)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{CustomerId, IdempotencyKey};

    fn asked(units: u64, key: Option<&str>) -> Asked {
        let customer_id = CustomerId::try_from("ada".to_owned()).unwrap();
        let key = key.map(|key| OrderKey::of_request(&customer_id, &IdempotencyKey::parse(key.as_bytes()).unwrap()));
        Asked { quantity: Quantity::new(units).unwrap(), customer_id, key }
    }

    fn claim(remaining: u64, winners: Option<&[u64]>, taken_at: Instant) -> Claim {
        let claim = Claim::default();
        claim.publish(Look::new(remaining, 7, None, taken_at));
        if let Some(fingerprints) = winners.map(Into::into) {
            claim.add_winners(Winners::Known { fences: 7, fingerprints });
        }
        claim
    }

    #[test]
    fn nothing_is_said_without_a_look_or_with_an_old_one() {
        let now = Instant::now();
        assert_eq!(Claim::default().consult(&asked(1, None), now).0, FromMemory::Try);
        let old = claim(0, None, now);
        assert_eq!(old.consult(&asked(1, None), now + VALID).0, FromMemory::Refuse(Refusal::SoldOut));
        let later = now + VALID + Duration::from_millis(1);
        assert_eq!(old.consult(&asked(1, None), later).0, FromMemory::Try);
    }

    #[test]
    fn what_may_fit_is_tried() {
        let now = Instant::now();
        let claim = claim(2, None, now);
        assert_eq!(claim.consult(&asked(2, None), now).0, FromMemory::Try);
        let refusal = Refusal::InsufficientStock { remaining: 2 };
        assert_eq!(claim.consult(&asked(3, None), now).0, FromMemory::Refuse(refusal));
        assert_eq!(claim.consult(&asked(3, Some("k")), now).0, FromMemory::RefuseUnlessKnown(refusal));
    }

    #[test]
    fn after_the_sell_out_only_winners_are_looked_up() {
        let now = Instant::now();
        let winner = asked(1, Some("won"));
        let fingerprint = winner.key.unwrap().fingerprint();
        let claim = claim(0, Some(&[fingerprint]), now);
        assert_eq!(claim.consult(&winner, now).0, FromMemory::RefuseUnlessKnown(Refusal::SoldOut));
        assert_eq!(claim.consult(&asked(1, Some("lost")), now).0, FromMemory::Refuse(Refusal::SoldOut));
    }

    #[test]
    fn one_request_asks_for_the_next_look() {
        let now = Instant::now();
        let claim = claim(0, None, now);
        assert!(!claim.consult(&asked(1, None), now).1);
        let later = now + REFRESH + Duration::from_millis(1);
        assert!(claim.consult(&asked(1, None), later).1);
        assert!(!claim.consult(&asked(1, None), later).1);
    }

    #[test]
    fn too_many_winners_are_looked_up_one_by_one_and_not_loaded_again() {
        let now = Instant::now();
        let claim = claim(0, None, now);
        assert!(claim.wants_winners());
        claim.add_winners(Winners::TooMany { fences: 7 });
        assert!(!claim.wants_winners());
        let verdict = claim.consult(&asked(1, Some("k")), now).0;
        assert_eq!(verdict, FromMemory::RefuseUnlessKnown(Refusal::SoldOut));
    }

    #[test]
    fn winners_of_another_look_are_not_added() {
        let claim = claim(0, None, Instant::now());
        claim.add_winners(Winners::TooMany { fences: 8 });
        assert!(claim.wants_winners());
    }
}
