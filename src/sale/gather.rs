//! Serving an order that is larger than any one segment's stock (INV-8).
//!
//! Units are moved in the ledger into the segment that has most, under leases of all segments concerned, and the order is
//! sold from there: so an order always has exactly one segment. Leases are only tried for, in index order: two
//! gatherings never wait for each other.

use std::sync::Arc;

use super::on_sale::OnSale;
use super::pace::Stores;
use super::round::{LeaseOutcome, give_back, lease};
use crate::domain::Quantity;
use crate::guard::{Ending, Lease, Token, Trust};
use crate::ledger::{GatherLeg, LedgerError};

/// Segments to gather from, in index order, and what was seen of each so far.
pub(super) struct Gathering {
    quantity: Quantity,
    segments: Vec<u16>,
}

/// What a gathering saw of a segment that it has given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// So many units are left.
    Stock(u64),
    /// Somebody else has it.
    Busy,
    /// Nobody knows.
    Nothing,
}

/// How a gathering ended.
pub(super) struct GatherReport {
    /// The segment that the units are in now, still leased, with its stock.
    pub(super) gathered: Option<(u16, Lease, u64)>,
    /// All other segments of the gathering.
    pub(super) seen: Vec<(u16, Seen)>,
    /// How the stores did.
    pub(super) stores: Stores,
}

impl Gathering {
    /// Chooses the fewest segments that together are believed to have enough; `None` when all together have not.
    pub(super) fn plan(
        quantity: Quantity,
        stocks: impl Iterator<Item = (u16, u64)>,
    ) -> Option<Self> {
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

    /// Leases the segments, moves the units, and gives all but one back.
    pub(super) async fn run(self, on_sale: Arc<OnSale>) -> GatherReport {
        let mut leased: Vec<(u16, Lease, u64)> = Vec::with_capacity(self.segments.len());
        let mut seen = Vec::new();
        let mut stores = Stores::NotAsked;
        for &index in &self.segments {
            if !seen.is_empty() {
                // One segment could not be had: the others are not needed any more, and nothing is known of them.
                seen.push((index, Seen::Nothing));
                continue;
            }
            match lease(&on_sale, index, &Token::random(), Trust::Count).await {
                LeaseOutcome::Leased(lease, stock) => leased.push((index, lease, stock)),
                LeaseOutcome::Empty => seen.push((index, Seen::Stock(0))),
                LeaseOutcome::Busy => seen.push((index, Seen::Busy)),
                LeaseOutcome::Failed => {
                    stores = Stores::Failed;
                    seen.push((index, Seen::Nothing));
                }
            }
        }
        let stocks: Vec<(u16, u64)> = leased
            .iter()
            .map(|(index, _, stock)| (*index, *stock))
            .collect();
        let moves = if seen.is_empty() {
            moves(self.quantity, &stocks)
        } else {
            None
        };
        let Some(moves) = moves else {
            seen.extend(give_all_back(&on_sale, leased, Ending::Clean { taken: 0 }).await);
            return GatherReport {
                gathered: None,
                seen,
                stores,
            };
        };
        let legs: Vec<GatherLeg> = leased
            .iter()
            .zip(&moves)
            .map(|((index, lease, _), units)| GatherLeg {
                index: *index,
                fence: lease.fence(),
                epoch: lease.epoch(),
                units: *units,
            })
            .filter(|leg| leg.units != 0)
            .collect();
        match on_sale.house.ledger.gather(on_sale.product.id, &legs).await {
            Ok(true) => hand_over(&on_sale, leased, &moves).await,
            Ok(false) => {
                seen.extend(give_all_back(&on_sale, leased, Ending::Dirty).await);
                GatherReport {
                    gathered: None,
                    seen,
                    stores: Stores::Answered,
                }
            }
            Err(error) => {
                let sku = &on_sale.product.sku;
                tracing::warn!(%sku, error = &error as &dyn std::error::Error, "units could not be gathered");
                let ending = match error {
                    LedgerError::NothingHappened(_) => Ending::Clean { taken: 0 },
                    _ => Ending::Dirty,
                };
                seen.extend(give_all_back(&on_sale, leased, ending).await);
                GatherReport {
                    gathered: None,
                    seen,
                    stores: Stores::Failed,
                }
            }
        }
    }
}

/// What is added to each segment so that the largest one has `quantity`; `None` when there is not enough, or no need.
fn moves(quantity: Quantity, stocks: &[(u16, u64)]) -> Option<Vec<i64>> {
    let target = (0..stocks.len()).max_by_key(|&position| stocks[position].1)?;
    let mut missing = quantity
        .units()
        .checked_sub(stocks[target].1)
        .filter(|missing| *missing > 0)?;
    let wanted = missing as i64;
    let mut moves = Vec::with_capacity(stocks.len());
    for (position, (_, stock)) in stocks.iter().enumerate() {
        let given = if position == target {
            0
        } else {
            missing.min(*stock)
        };
        missing -= given;
        moves.push(-(given as i64));
    }
    moves[target] = wanted;
    (missing == 0).then_some(moves)
}

/// Keeps the segment that was added to, and gives the others back.
async fn hand_over(
    on_sale: &OnSale,
    leased: Vec<(u16, Lease, u64)>,
    moves: &[i64],
) -> GatherReport {
    let mut seen = Vec::new();
    let mut gathered = None;
    let target = (0..moves.len()).max_by_key(|&position| moves[position]);
    for (position, ((index, mut lease, stock), units)) in leased.into_iter().zip(moves).enumerate()
    {
        if Some(position) == target {
            lease.add(units.unsigned_abs());
            gathered = Some((index, lease, stock + units.unsigned_abs()));
        } else {
            let clean = give_back(on_sale, index, lease, Ending::Clean { taken: -units }).await;
            let left = Seen::Stock(stock - units.unsigned_abs());
            seen.push((index, if clean { left } else { Seen::Nothing }));
        }
    }
    GatherReport {
        gathered,
        seen,
        stores: Stores::Answered,
    }
}

async fn give_all_back(
    on_sale: &OnSale,
    leased: Vec<(u16, Lease, u64)>,
    ending: Ending,
) -> Vec<(u16, Seen)> {
    let mut seen = Vec::with_capacity(leased.len());
    for (index, lease, stock) in leased {
        let clean = give_back(on_sale, index, lease, ending).await && ending != Ending::Dirty;
        seen.push((
            index,
            if clean {
                Seen::Stock(stock)
            } else {
                Seen::Nothing
            },
        ));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(units: u64) -> Quantity {
        Quantity::new(units).unwrap()
    }

    #[test]
    fn the_fewest_segments_are_chosen_and_leased_in_index_order() {
        let stocks = [(0, 1), (1, 5), (2, 0), (3, 1), (4, 4)];
        let plan = |quantity| {
            Gathering::plan(units(quantity), stocks.into_iter()).map(|plan| plan.segments)
        };
        assert_eq!(plan(9), Some(vec![1, 4]));
        assert_eq!(plan(11), Some(vec![0, 1, 3, 4]));
        assert_eq!(plan(12), None);
    }

    #[test]
    fn moves_add_up_to_nothing_and_fill_the_largest() {
        let stocks = [(0, 2), (1, 3), (2, 2)];
        assert_eq!(moves(units(6), &stocks), Some(vec![-2, 3, -1]));
        assert_eq!(moves(units(7), &stocks), Some(vec![-2, 4, -2]));
        assert_eq!(moves(units(8), &stocks), None);
        assert_eq!(
            moves(units(3), &stocks),
            None,
            "the largest has enough: nothing to move"
        );
        assert_eq!(moves(units(2), &stocks), None);
    }
}
