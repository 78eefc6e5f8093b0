//! When requests are due.

use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::SmallRng;

/// The arrivals that one worker serves.
pub(super) enum Schedule {
    /// Closed loop: whenever a connection is free.
    WhenFree,
    /// Open loop: independent buyers, so the gaps between them are exponentially distributed. Arrivals that find no
    /// connection free wait, and their latency counts from when they were due (no coordinated omission).
    Arrivals { next: Instant, mean_gap: Duration },
}

impl Schedule {
    /// `rate` arrivals a second from `start` on; none for the closed loop.
    pub(super) fn new(rate: Option<f64>, start: Instant) -> Self {
        match rate {
            Some(rate) => Self::Arrivals { next: start, mean_gap: Duration::from_secs_f64(1.0 / rate) },
            None => Self::WhenFree,
        }
    }

    /// When the next request is due; in the closed loop, now.
    pub(super) fn next(&mut self, now: Instant, random: &mut SmallRng) -> Instant {
        match self {
            Self::WhenFree => now,
            Self::Arrivals { next, mean_gap } => {
                let due = *next;
                // 1 - u is never 0.
                let gap = -(1.0 - random.random::<f64>()).ln();
                *next += mean_gap.mul_f64(gap);
                due
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn arrivals_come_at_the_rate_whatever_the_time_is_now() {
        let start = Instant::now();
        let mut random = SmallRng::seed_from_u64(1);
        let mut schedule = Schedule::new(Some(1000.0), start);
        let mut last = start;
        for _ in 0..10_000 {
            let due = schedule.next(start, &mut random);
            assert!(due >= last);
            last = due;
        }
        let seconds = (last - start).as_secs_f64();
        assert!((9.5..10.5).contains(&seconds), "{seconds}");
    }

    #[test]
    fn in_the_closed_loop_a_request_is_due_when_a_connection_is_free() {
        let now = Instant::now();
        let mut random = SmallRng::seed_from_u64(1);
        assert_eq!(
            Schedule::new(None, now).next(now + Duration::from_secs(3), &mut random),
            now + Duration::from_secs(3)
        );
    }
}
