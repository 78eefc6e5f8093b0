//! How many rounds of a product are in flight, and whether one more is worth while.
//!
//! The line decides: one round serves whatever waits, because few large batches cost less than many small ones. A second
//! one beside it lets the service work while the first waits for the disk, if there is enough to do, or if the first is
//! slow. More start for full batches, so that a limit on the batch (`max_batch = 1` is the classic lock) does not limit the
//! sale, and when all others hang, so that one locked row does not stop it.

use std::time::{Duration, Instant};

/// A second round beside the first is worth so many orders: what a round costs is small against what they cost.
const WORTH_A_SECOND: usize = 64;
/// A round that takes longer than this waits for its stores rather than works, and another one costs nobody anything.
const SLOW: Duration = Duration::from_millis(5);
/// Two rounds that take longer than this hang.
const HANGING: Duration = Duration::from_millis(50);

/// The rounds of one product.
pub(super) struct Rounds {
    max_batch: usize,
    /// Those whose lease is still asked for: each will serve up to a batch of the waiting orders.
    leasing: usize,
    /// Those whose batch is on its way to the ledger.
    settling: usize,
    /// When the last lease was asked for, or the last batch sent.
    last_began: Instant,
}

/// Whether to start another round.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Another {
    Now,
    /// If nothing has ended by then.
    At(Instant),
    No,
}

impl Rounds {
    pub(super) fn new(max_batch: usize) -> Self {
        Self { max_batch, leasing: 0, settling: 0, last_began: Instant::now() }
    }

    pub(super) fn begin_leasing(&mut self, now: Instant) {
        self.leasing += 1;
        self.last_began = now;
    }

    pub(super) fn end_leasing(&mut self) {
        self.leasing -= 1;
    }

    pub(super) fn begin_settling(&mut self, now: Instant) {
        self.settling += 1;
        self.last_began = now;
    }

    pub(super) fn end_settling(&mut self) {
        self.settling -= 1;
    }

    pub(super) fn in_flight(&self) -> usize {
        self.leasing + self.settling
    }

    /// How many of the waiting orders no pending lease will serve.
    fn unserved(&self, waiting: usize) -> usize {
        waiting.saturating_sub(self.leasing * self.max_batch)
    }

    /// Whether the orders that no pending lease will serve are worth a round of their own.
    pub(super) fn another(&self, waiting: usize, now: Instant) -> Another {
        let unserved = self.unserved(waiting);
        let (worth, anyway_after) = match self.in_flight() {
            0 => (1, Duration::ZERO),
            1 => (WORTH_A_SECOND.min(self.max_batch), SLOW),
            _ => (self.max_batch, HANGING),
        };
        let anyway_at = self.last_began + anyway_after;
        match unserved {
            0 => Another::No,
            _ if unserved >= worth || now >= anyway_at => Another::Now,
            _ => Another::At(anyway_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_grow_with_the_line_and_shrink_again() {
        let now = Instant::now();
        let mut rounds = Rounds::new(1000);
        assert_eq!(rounds.another(0, now), Another::No);
        assert_eq!(rounds.another(1, now), Another::Now);
        rounds.begin_leasing(now);
        assert_eq!(rounds.another(1000, now), Another::No, "the pending lease will serve them");
        rounds.end_leasing();
        rounds.begin_settling(now);
        assert_eq!(rounds.another(WORTH_A_SECOND - 1, now), Another::At(now + SLOW));
        assert_eq!(rounds.another(WORTH_A_SECOND, now), Another::Now);
        rounds.begin_settling(now);
        assert_eq!(rounds.another(999, now + SLOW), Another::At(now + HANGING), "a third one is for full batches");
        assert_eq!(rounds.another(1000, now), Another::Now);
        rounds.end_settling();
        rounds.end_settling();
        assert_eq!(rounds.another(1, now), Another::Now);
    }

    #[test]
    fn a_slow_round_is_not_waited_for() {
        let now = Instant::now();
        let mut rounds = Rounds::new(1000);
        rounds.begin_settling(now);
        assert_eq!(rounds.another(1, now + SLOW), Another::Now);
        rounds.begin_settling(now + SLOW);
        assert_eq!(rounds.another(1, now + SLOW + HANGING), Another::Now);
    }

    #[test]
    fn the_classic_lock_has_as_many_rounds_as_orders() {
        let now = Instant::now();
        let mut rounds = Rounds::new(1);
        for waiting in 1..50 {
            assert_eq!(rounds.another(waiting, now), Another::Now);
            rounds.begin_leasing(now);
            assert_eq!(rounds.another(waiting, now), Another::No);
        }
    }
}
