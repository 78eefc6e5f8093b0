//! Serving an order that is larger than any one segment's stock (INV-8).
//!
//! Units are moved in the ledger into the segment that has most, under leases of all segments concerned, and the order is
//! sold from there: so an order always has exactly one segment. Leases are only tried for, never waited for: two
//! gatherings cannot lock each other up.

use std::error::Error;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;

use super::on_sale::OnSale;
use super::pace::Stores;
use super::round::{NoLease, lease};
use crate::domain::Quantity;
use crate::guard::{Ending, Lease, Token, Trust};
use crate::ledger::{GatherLeg, LedgerError};

/// Segments leased at the same time: a few trips' time for any number of them.
const LEASED_AT_ONCE: usize = 16;

/// Segments to gather from, in index order.
pub(super) struct Gathering {
    quantity: Quantity,
    segments: Vec<u16>,
}

/// What was seen of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// So many units are left.
    Stock(u64),
    /// Somebody else has it.
    Busy,
    /// Nobody knows.
    Nothing,
}

/// A lease that a gathering is done with.
pub(super) struct Leftover {
    pub(super) index: u16,
    pub(super) lease: Lease,
    pub(super) ending: Ending,
}

/// How a gathering ended.
pub(super) struct GatherReport {
    /// The segment that the units are in now, still leased.
    pub(super) gathered: Option<(u16, Lease)>,
    /// Leases to give back, when nobody has to wait for it.
    pub(super) leftovers: Vec<Leftover>,
    /// Segments that were not leased.
    pub(super) seen: Vec<(u16, Seen)>,
    /// How the stores did.
    pub(super) stores: Stores,
}

impl Gathering {
    /// Chooses the fewest segments that together are believed to have enough; `None` when all together have not.
    pub(super) fn plan(quantity: Quantity, stocks: impl Iterator<Item = (u16, u64)>) -> Option<Self> {
        let mut stocks: Vec<(u16, u64)> = stocks.filter(|(_, stock)| *stock > 0).collect();
        stocks.sort_by_key(|(_, stock)| std::cmp::Reverse(*stock));
        let mut sum = 0;
        let mut segments = Vec::new();
        for (index, stock) in stocks {
            segments.push(index);
            sum += stock;
            if sum >= quantity.units() {
                segments.sort_unstable();
                return Some(Self { quantity, segments });
            }
        }
        None
    }

    /// The segments concerned.
    pub(super) fn segments(&self) -> &[u16] {
        &self.segments
    }

    /// Leases the segments, and moves the units into one of them.
    pub(super) async fn run(self, on_sale: Arc<OnSale>) -> GatherReport {
        let on_sale = &on_sale;
        let leases = stream::iter(self.segments).map(async |index| {
            let outcome = lease(on_sale, index, &Token::random(), Trust::Count).await;
            (index, outcome)
        });
        let outcomes: Vec<(u16, Result<Lease, NoLease>)> = leases.buffered(LEASED_AT_ONCE).collect().await;
        let mut leased = Vec::with_capacity(outcomes.len());
        let mut seen = Vec::new();
        let mut stores = Stores::NotAsked;
        for (index, outcome) in outcomes {
            match outcome {
                Ok(lease) => leased.push((index, lease)),
                Err(NoLease::Empty) => seen.push((index, Seen::Stock(0))),
                Err(NoLease::Busy) => seen.push((index, Seen::Busy)),
                Err(NoLease::Unanswered | NoLease::Failed) => {
                    stores = Stores::Failed;
                    seen.push((index, Seen::Nothing));
                }
            }
        }
        // A segment that was busy may not be needed: what was had decides.
        let stocks: Vec<u64> = leased.iter().map(|(_, lease)| lease.stock().unwrap_or(0)).collect();
        let Some(moves) = Moves::plan(self.quantity, &stocks) else {
            let leftovers = leftovers(leased, Ending::Clean { taken: 0 });
            return GatherReport { gathered: None, leftovers, seen, stores };
        };
        match move_units(on_sale, &leased, &moves).await {
            Ok(true) => {
                let (gathered, leftovers) = hand_over(leased, &moves);
                GatherReport { gathered, leftovers, seen, stores: Stores::Answered }
            }
            Ok(false) => {
                let leftovers = leftovers(leased, Ending::Dirty);
                GatherReport { gathered: None, leftovers, seen, stores: Stores::Answered }
            }
            Err(error) => {
                let sku = &on_sale.product.sku;
                tracing::warn!(%sku, error = &error as &dyn Error, "units could not be gathered");
                let ending = match error {
                    LedgerError::NothingHappened(_) => Ending::Clean { taken: 0 },
                    _ => Ending::Dirty,
                };
                let leftovers = leftovers(leased, ending);
                GatherReport { gathered: None, leftovers, seen, stores: Stores::Failed }
            }
        }
    }
}

async fn move_units(on_sale: &OnSale, leased: &[(u16, Lease)], moves: &Moves) -> Result<bool, LedgerError> {
    let legs = leased.iter().zip(&moves.units).filter(|(_, units)| **units != 0);
    let legs: Vec<GatherLeg> = legs
        .map(|((index, lease), units)| GatherLeg {
            index: *index,
            fence: lease.fence(),
            epoch: lease.epoch(),
            units: *units,
        })
        .collect();
    on_sale.house.ledger.gather(on_sale.product.id, &legs).await
}

/// What is added to each of the leased segments.
#[derive(Debug, PartialEq, Eq)]
struct Moves {
    /// The position of the segment that gets units.
    target: usize,
    /// Negative for a giver; they add up to 0.
    units: Vec<i64>,
}

impl Moves {
    /// Brings the largest stock up to `quantity`; `None` when there is not enough, or no need.
    fn plan(quantity: Quantity, stocks: &[u64]) -> Option<Self> {
        let target = (0..stocks.len()).max_by_key(|&position| stocks[position])?;
        let mut missing = quantity.units().checked_sub(stocks[target]).filter(|missing| *missing > 0)?;
        let wanted = missing as i64;
        let mut units = Vec::with_capacity(stocks.len());
        for (position, stock) in stocks.iter().enumerate() {
            let given = if position == target { 0 } else { missing.min(*stock) };
            missing -= given;
            units.push(-(given as i64));
        }
        units[target] = wanted;
        (missing == 0).then_some(Self { target, units })
    }
}

/// Keeps the segment that was added to; the others can go.
fn hand_over(leased: Vec<(u16, Lease)>, moves: &Moves) -> (Option<(u16, Lease)>, Vec<Leftover>) {
    let mut gathered = None;
    let mut leftovers = Vec::with_capacity(leased.len());
    for (position, ((index, mut lease), units)) in leased.into_iter().zip(&moves.units).enumerate() {
        if position == moves.target {
            lease.add(units.unsigned_abs());
            gathered = Some((index, lease));
        } else {
            lease.take(units.unsigned_abs());
            leftovers.push(Leftover { index, lease, ending: Ending::Clean { taken: 0 } });
        }
    }
    (gathered, leftovers)
}

fn leftovers(leased: Vec<(u16, Lease)>, ending: Ending) -> Vec<Leftover> {
    let leftover = |(index, lease)| Leftover { index, lease, ending };
    leased.into_iter().map(leftover).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(units: u64) -> Quantity {
        Quantity::new(units).unwrap()
    }

    #[test]
    fn the_fewest_segments_are_chosen() {
        let stocks = [(0, 1), (1, 5), (2, 0), (3, 1), (4, 4)];
        let plan = |quantity| Gathering::plan(units(quantity), stocks.into_iter()).map(|plan| plan.segments);
        assert_eq!(plan(9), Some(vec![1, 4]));
        assert_eq!(plan(11), Some(vec![0, 1, 3, 4]));
        assert_eq!(plan(12), None);
    }

    #[test]
    fn moves_add_up_to_nothing_and_fill_the_largest() {
        let moves = |quantity| Moves::plan(units(quantity), &[2, 3, 2]).map(|moves| (moves.target, moves.units));
        assert_eq!(moves(6), Some((1, vec![-2, 3, -1])));
        assert_eq!(moves(7), Some((1, vec![-2, 4, -2])));
        assert_eq!(moves(8), None);
        assert_eq!(moves(3), None, "the largest has enough: nothing to move");
        assert_eq!(Moves::plan(units(1), &[]), None);
    }
}
