//! How fast a product's rounds may follow each other while something is in the way, and what that is.

use std::time::{Duration, Instant};

use super::outcome::Refusal;

/// After a store has failed, the next try waits this long, doubling up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(160);

/// What a task has learnt of the stores' health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stores {
    /// The ledger did what it was asked for.
    Answered,
    /// One of them did not.
    Failed,
    /// The ledger was not asked.
    NotAsked,
}

/// Why orders are not getting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// There are too many of them.
    Crowd,
    /// Others hold the segments.
    Busy,
    /// A store fails.
    Store,
}

/// What is in the way, and until when to wait for it.
pub(super) struct Pace {
    obstacle: Obstacle,
    failures: u32,
    paused_until: Option<Instant>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { obstacle: Obstacle::Crowd, failures: 0, paused_until: None }
    }

    /// Why an order is refused whose time is up now. Without a crowd the leases that are asked for would serve all that
    /// wait: then the order waited for nothing but a store's answer, and the store's own time limit is longer.
    pub(super) fn refusal(&self, crowded: bool) -> Refusal {
        match self.obstacle {
            Obstacle::Crowd if !crowded => Refusal::Unavailable,
            Obstacle::Crowd => Refusal::Overloaded,
            Obstacle::Busy => Refusal::Contended,
            Obstacle::Store => Refusal::Unavailable,
        }
    }

    /// The end of the pause, while there is one.
    pub(super) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| *until > now)
    }

    /// Somebody else holds what is needed. A failing store is the graver obstacle.
    pub(super) fn busy(&mut self) {
        if self.obstacle == Obstacle::Crowd {
            self.obstacle = Obstacle::Busy;
        }
    }

    /// A lease was had.
    pub(super) fn leased(&mut self) {
        if self.obstacle == Obstacle::Busy {
            self.obstacle = Obstacle::Crowd;
        }
    }

    /// A task reports how the stores did.
    pub(super) fn heard_of(&mut self, stores: Stores, now: Instant) {
        match stores {
            Stores::NotAsked => {}
            Stores::Answered => *self = Self::new(),
            Stores::Failed => {
                let pause = FIRST_PAUSE * (1 << self.failures.min(4));
                self.failures += 1;
                self.obstacle = Obstacle::Store;
                self.paused_until = Some(now + pause.min(LONGEST_PAUSE));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_store_is_told_from_busy_segments_and_from_a_crowd() {
        let now = Instant::now();
        let mut pace = Pace::new();
        assert_eq!(pace.refusal(true), Refusal::Overloaded);
        assert_eq!(pace.refusal(false), Refusal::Unavailable, "a lease is asked for, and nobody answers");
        pace.busy();
        assert_eq!(pace.refusal(true), Refusal::Contended);
        pace.heard_of(Stores::Failed, now);
        pace.leased();
        pace.busy();
        assert_eq!(pace.refusal(true), Refusal::Unavailable, "the guard answers, the ledger does not");
        pace.heard_of(Stores::Answered, now);
        assert_eq!(pace.refusal(true), Refusal::Overloaded);
    }

    #[test]
    fn pauses_grow_to_a_bound_and_end() {
        let now = Instant::now();
        let mut pace = Pace::new();
        let mut last = Duration::ZERO;
        for _ in 0..10 {
            pace.heard_of(Stores::Failed, now);
            let pause = pace.paused_until(now).unwrap() - now;
            assert!(pause >= last && pause <= LONGEST_PAUSE);
            last = pause;
        }
        assert_eq!(pace.paused_until(now + LONGEST_PAUSE), None);
    }
}
