//! What a process believes of a product's segments, and which one it tries next.
//!
//! Beliefs are hints: a wrong one costs a trip, never a unit. They end when a round reports what it saw, when another
//! holder gets in the way, and when the ledger says otherwise (R9).

use std::time::{Duration, Instant};

use super::{Quantity, SegmentStock};

/// Waits between tries of a segment that somebody else holds double from this…
const FIRST_BUSY_PAUSE: Duration = Duration::from_millis(1);
/// …up to this (give or take a half), so that a long holder is not asked a thousand times, and comes to an end unseen.
pub const LONGEST_BUSY_PAUSE: Duration = Duration::from_millis(8);

/// Where an order may try its luck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// Lease this segment now.
    Probe {
        /// The segment.
        index: u16,
        /// Reload it from the ledger, whatever the guard says of it.
        reload: bool,
    },
    /// The segments that may serve are held by others: try again then.
    BusyUntil(Instant),
    /// The segments that may serve are leased by rounds of this process: wait for one to end.
    InOurRounds,
    /// No segment is believed to have as much.
    Nowhere,
}

/// What is believed of every segment of one product.
#[derive(Debug)]
pub struct Beliefs {
    segments: Vec<Belief>,
}

#[derive(Debug, Clone, Default)]
struct Belief {
    /// Units left when last seen; nothing is known at first, after a fault, and when the ledger disagrees.
    stock: Option<u64>,
    /// The ledger holds more than was believed: the guard's own count is not to be trusted either.
    reload: bool,
    /// A round of this process has it.
    ours: bool,
    /// Somebody else had it when last tried.
    busy_until: Option<Instant>,
    busy_tries: u32,
}

impl Belief {
    fn may_serve(&self, quantity: Quantity) -> bool {
        self.stock.is_none_or(|stock| stock >= quantity.units())
    }

    fn is_free(&self, when: Instant) -> bool {
        !self.ours && self.busy_until.is_none_or(|until| until <= when)
    }
}

impl Beliefs {
    /// Nothing is known of any of `segments` segments.
    pub fn unknown(segments: u16) -> Self {
        Self { segments: vec![Belief::default(); usize::from(segments)] }
    }

    /// Chooses among the segments that may serve `quantity`; `choose(n)` must return a number below `n`, at random.
    pub fn candidate(&self, quantity: Quantity, now: Instant, choose: impl FnOnce(usize) -> usize) -> Candidate {
        let free = |belief: &&Belief| !belief.ours && belief.busy_until.is_none_or(|until| until <= now);
        let may_serve = || self.segments.iter().filter(|belief| belief.may_serve(quantity));

        let free_count = may_serve().filter(free).count();
        if free_count > 0 {
            let chosen = choose(free_count);
            let indexed = self.segments.iter().zip(0u16..);
            let mut matching = indexed.filter(|(belief, _)| belief.may_serve(quantity) && free(belief));
            if let Some((belief, index)) = matching.nth(chosen) {
                return Candidate::Probe { index, reload: belief.reload };
            }
        }
        if may_serve().any(|belief| belief.ours) {
            return Candidate::InOurRounds;
        }
        may_serve().filter_map(|belief| belief.busy_until).min().map_or(Candidate::Nowhere, Candidate::BusyUntil)
    }

    /// A round goes for the segment.
    pub fn leasing(&mut self, index: u16) {
        self.segments[usize::from(index)].ours = true;
    }

    /// The segment was seen with `stock` units, and is free again.
    pub fn saw(&mut self, index: u16, stock: u64) {
        self.segments[usize::from(index)] = Belief { stock: Some(stock), ..Belief::default() };
    }

    /// Somebody else holds the segment; `jitter` (0.0 to 1.0) keeps contenders from coming back together.
    pub fn busy(&mut self, index: u16, now: Instant, jitter: f64) {
        let belief = &mut self.segments[usize::from(index)];
        let pause = FIRST_BUSY_PAUSE * (1 << belief.busy_tries.min(5));
        belief.ours = false;
        belief.busy_tries += 1;
        belief.busy_until = Some(now + pause.min(LONGEST_BUSY_PAUSE).mul_f64(0.5 + jitter));
    }

    /// Others shall have the segment until then.
    pub fn leave_to_others(&mut self, index: u16, until: Instant) {
        self.segments[usize::from(index)].busy_until = Some(until);
    }

    /// The last round on the segment ended in the dark: it may have any stock.
    pub fn lost_sight(&mut self, index: u16) {
        let reload = self.segments[usize::from(index)].reload;
        self.segments[usize::from(index)] = Belief { reload, ..Belief::default() };
    }

    /// Compares with the ledger (R9): a segment that holds more than was believed will be reloaded.
    pub fn correct(&mut self, ledger: &[SegmentStock]) {
        for row in ledger {
            if let Some(belief) = self.segments.get_mut(usize::from(row.index))
                && !belief.ours
                && belief.stock.is_some_and(|stock| stock < row.available())
            {
                belief.stock = None;
                belief.reload = true;
            }
        }
    }

    /// What is believed of a segment that nobody is known to hold at that moment, in units; `None` where nothing is known.
    pub fn free_stock(&self, index: u16, when: Instant) -> Option<u64> {
        let belief = &self.segments[usize::from(index)];
        belief.stock.filter(|_| belief.is_free(when))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Epoch, Fence};

    fn units(units: u64) -> Quantity {
        Quantity::new(units).unwrap()
    }

    fn ledger(index: u16, allotted: u64) -> SegmentStock {
        SegmentStock { index, allotted, taken: 0, fence: Fence(0), epoch: Epoch(0) }
    }

    #[test]
    fn every_segment_that_may_serve_can_be_chosen_and_no_other() {
        let mut beliefs = Beliefs::unknown(4);
        beliefs.saw(0, 0);
        beliefs.saw(1, 5);
        beliefs.leasing(2);
        let now = Instant::now();
        let chosen: Vec<Candidate> = (0..2).map(|nth| beliefs.candidate(units(3), now, |_| nth)).collect();
        assert_eq!(chosen, [1, 3].map(|index| Candidate::Probe { index, reload: false }));
        beliefs.candidate(units(3), now, |count| {
            assert_eq!(count, 2);
            0
        });
    }

    #[test]
    fn sold_out_is_told_from_busy_and_from_our_own_rounds() {
        let now = Instant::now();
        let mut beliefs = Beliefs::unknown(2);
        beliefs.saw(0, 1);
        beliefs.saw(1, 0);
        assert_eq!(beliefs.candidate(units(2), now, |_| 0), Candidate::Nowhere);
        beliefs.busy(0, now, 0.0);
        let Candidate::BusyUntil(until) = beliefs.candidate(units(1), now, |_| 0) else {
            panic!("a busy segment with stock is not nowhere");
        };
        assert!(until > now);
        assert!(matches!(beliefs.candidate(units(1), until, |_| 0), Candidate::Probe { index: 0, .. }));
        beliefs.leasing(0);
        assert_eq!(beliefs.candidate(units(1), until, |_| 0), Candidate::InOurRounds);
    }

    #[test]
    fn pauses_grow_and_stay_bounded() {
        let now = Instant::now();
        let mut beliefs = Beliefs::unknown(1);
        let mut last = Duration::ZERO;
        for _ in 0..40 {
            beliefs.busy(0, now, 0.5);
            let Candidate::BusyUntil(until) = beliefs.candidate(units(1), now, |_| 0) else {
                panic!("busy");
            };
            let pause = until - now;
            assert!(pause >= last && pause <= LONGEST_BUSY_PAUSE.mul_f64(1.5));
            last = pause;
        }
    }

    #[test]
    fn the_ledger_corrects_a_belief_that_hides_units_but_not_a_round_in_flight() {
        let now = Instant::now();
        let mut beliefs = Beliefs::unknown(2);
        beliefs.saw(0, 0);
        beliefs.saw(1, 0);
        beliefs.leasing(1);
        beliefs.correct(&[ledger(0, 7), ledger(1, 7)]);
        let reload = Candidate::Probe { index: 0, reload: true };
        assert_eq!(beliefs.candidate(units(1), now, |_| 0), reload);
        beliefs.leasing(0);
        beliefs.lost_sight(0);
        assert_eq!(beliefs.candidate(units(1), now, |_| 0), reload, "not reloaded yet");
        beliefs.saw(0, 7);
        assert_eq!(beliefs.candidate(units(8), now, |_| 0), Candidate::Nowhere);
    }
}
