//! What must hold, numbered once: tests, the audit and assertions all speak of these.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use super::{Fence, SegmentStock};

/// A promise that segstock keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Invariant {
    /// INV-1: taken units never exceed allotted units, per segment and in sum.
    #[serde(rename = "INV-1")]
    NeverOversell,
    /// INV-2: per segment, `taken` is the sum of the quantities of its reserved and confirmed orders.
    #[serde(rename = "INV-2")]
    Conservation,
    /// INV-3: the guard's stock is never negative, and for a clean, unleased segment it is `allotted - taken`.
    #[serde(rename = "INV-3")]
    GuardAgrees,
    /// INV-4: there is one order per (customer, idempotency key).
    #[serde(rename = "INV-4")]
    OneOrderPerKey,
    /// INV-5: a stale fence changes nothing: the ledger never holds a fence that the guard has yet to hand out.
    #[serde(rename = "INV-5")]
    StaleFenceChangesNothing,
    /// INV-6: every order that was answered 201 is in the ledger.
    #[serde(rename = "INV-6")]
    AnsweredIsKept,
    /// INV-7: a unit returned is returned once.
    #[serde(rename = "INV-7")]
    ReturnedOnce,
    /// INV-8: a product that has stock for an order ends up selling it.
    #[serde(rename = "INV-8")]
    NothingStranded,
}

impl fmt::Display for Invariant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "INV-{}", *self as u8 + 1)
    }
}

/// A promise that was found broken, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which promise.
    pub invariant: Invariant,
    /// What was found, with the numbers.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.invariant, self.found)
    }
}

/// What a guard holds of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardedStock {
    /// Units left, as the guard counts them.
    pub stock: i64,
    /// The highest fence handed out.
    pub fence: Fence,
    /// Nobody holds the segment, and its last holder cleared `dirty`: the count is to be trusted.
    pub settled: bool,
}

/// Everything that an audit of one product looks at, read while nothing sells.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The ledger's segments.
    pub segments: Vec<SegmentStock>,
    /// Units in live orders, by segment index.
    pub live_units: Vec<(u16, u64)>,
    /// Order keys that stand for more than one order.
    pub repeated_keys: u64,
    /// What the guard holds, by segment index; a segment that it has never seen or has forgotten is missing.
    pub guarded: Vec<(u16, GuardedStock)>,
    /// Orders that were answered 201 and are not in the ledger.
    pub answered_but_missing: Vec<Uuid>,
}

/// Checks INV-1 to INV-6; returns every promise that is broken.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let live: HashMap<u16, u64> = evidence.live_units.iter().copied().collect();
    let known: HashMap<u16, &SegmentStock> = evidence.segments.iter().map(|segment| (segment.index, segment)).collect();
    let mut violations = Vec::new();
    let mut broken = |invariant, found: String| violations.push(Violation { invariant, found });

    for segment in &evidence.segments {
        let SegmentStock { index, allotted, taken, .. } = *segment;
        if taken > allotted {
            broken(Invariant::NeverOversell, format!("segment {index}: {taken} taken of {allotted}"));
        }
        let in_orders = live.get(&index).copied().unwrap_or(0);
        if taken != in_orders {
            let found = format!("segment {index}: {taken} taken, {in_orders} in live orders");
            broken(Invariant::Conservation, found);
        }
    }
    for index in live.keys().filter(|index| !known.contains_key(index)) {
        broken(Invariant::Conservation, format!("segment {index}: orders without a segment"));
    }
    for (index, guarded) in &evidence.guarded {
        let Some(segment) = known.get(index) else {
            continue;
        };
        let GuardedStock { stock, fence, settled } = *guarded;
        if stock < 0 || (settled && stock.unsigned_abs() != segment.available()) {
            let available = segment.available();
            broken(Invariant::GuardAgrees, format!("segment {index}: {stock} in the guard, {available} in the ledger"));
        }
        if settled && segment.fence > fence {
            let found = format!("segment {index}: fence {} in the ledger, {} in the guard", segment.fence.0, fence.0);
            broken(Invariant::StaleFenceChangesNothing, found);
        }
    }
    if evidence.repeated_keys > 0 {
        let found = format!("{} keys stand for more than one order", evidence.repeated_keys);
        broken(Invariant::OneOrderPerKey, found);
    }
    for id in &evidence.answered_but_missing {
        broken(Invariant::AnsweredIsKept, format!("order {id} was answered 201 and is not in the ledger"));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Epoch;

    fn sound() -> Evidence {
        let segment = |index, taken| SegmentStock { index, allotted: 10, taken, fence: Fence(7), epoch: Epoch(0) };
        let guarded = GuardedStock { stock: 6, fence: Fence(8), settled: true };
        Evidence {
            segments: vec![segment(0, 4), segment(1, 0)],
            live_units: vec![(0, 4)],
            guarded: vec![(0, guarded)],
            ..Evidence::default()
        }
    }

    fn broken(change: impl FnOnce(&mut Evidence)) -> Vec<Invariant> {
        let mut evidence = sound();
        change(&mut evidence);
        check(&evidence).iter().map(|violation| violation.invariant).collect()
    }

    #[test]
    fn a_sound_sale_breaks_nothing() {
        assert_eq!(broken(|_| ()), []);
        let someone_is_at_it = |evidence: &mut Evidence| {
            evidence.guarded[0].1.settled = false;
            evidence.guarded[0].1.stock = 9;
        };
        assert_eq!(broken(someone_is_at_it), []);
    }

    #[test]
    fn each_promise_is_looked_after() {
        use Invariant::*;
        let oversold = |evidence: &mut Evidence| {
            evidence.segments[1].taken = 11;
            evidence.live_units.push((1, 11));
        };
        assert_eq!(broken(oversold), [NeverOversell]);
        assert_eq!(broken(|evidence| evidence.live_units[0].1 = 3), [Conservation]);
        assert_eq!(broken(|evidence| evidence.live_units.push((9, 1))), [Conservation]);
        assert_eq!(broken(|evidence| evidence.guarded[0].1.stock = 5), [GuardAgrees]);
        assert_eq!(broken(|evidence| evidence.guarded[0].1.stock = -6), [GuardAgrees]);
        assert_eq!(broken(|evidence| evidence.guarded[0].1.fence = Fence(6)), [StaleFenceChangesNothing]);
        assert_eq!(broken(|evidence| evidence.repeated_keys = 1), [OneOrderPerKey]);
        assert_eq!(broken(|evidence| evidence.answered_but_missing.push(Uuid::nil())), [AnsweredIsKept]);
    }

    #[test]
    fn the_numbers_are_the_documented_ones() {
        assert_eq!(Invariant::NeverOversell.to_string(), "INV-1");
        assert_eq!(Invariant::NothingStranded.to_string(), "INV-8");
    }
}
