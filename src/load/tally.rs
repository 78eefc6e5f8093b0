//! What the answers add up to.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use uuid::Uuid;

/// The slowest answer that is told from even slower ones, in µs.
const SLOWEST_US: u64 = 600_000_000;

/// An order that was answered 201.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sold {
    /// The request's number.
    pub number: u64,
    /// The order's id.
    pub id: Uuid,
    /// The product's position among the run's products.
    pub product: u32,
    /// The service's position among the run's URLs.
    pub service: u16,
    /// Units.
    pub quantity: u32,
    /// When the answer came, in µs since the run began.
    pub at_us: u64,
}

/// How a request ended, as reports name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Outcome {
    /// The status; 0 without an answer.
    pub(super) status: u16,
    /// `placed`, `replayed`, the problem's slug, or why there is no answer.
    pub(super) name: Cow<'static, str>,
}

/// The answers of one worker.
pub(super) struct Tally {
    measured: (Instant, Instant),
    /// Outcomes within the measured time, a handful.
    pub(super) outcomes: Vec<(Outcome, u64)>,
    /// Latencies of the requests that were due within the measured time, in µs.
    pub(super) latency: Histogram<u64>,
    /// Those of them that placed an order.
    pub(super) placed_latency: Histogram<u64>,
    /// Orders placed, warm-up included.
    pub(super) sold: Vec<Sold>,
    /// Requests that may have placed an order without anybody knowing.
    pub(super) doubts: Vec<u64>,
    /// Answers that cannot be right.
    pub(super) wrong: Vec<String>,
    pub(super) last_answer: Option<Instant>,
}

impl Tally {
    /// Measures from the first moment to the second.
    pub(super) fn new(measured: (Instant, Instant)) -> Self {
        Self {
            measured,
            outcomes: Vec::new(),
            latency: histogram(),
            placed_latency: histogram(),
            sold: Vec::new(),
            doubts: Vec::new(),
            wrong: Vec::new(),
            last_answer: None,
        }
    }

    /// Counts a request that was due at `due` and ended at `now`.
    pub(super) fn count(&mut self, outcome: Outcome, due: Instant, now: Instant) {
        let (from, to) = self.measured;
        if (from..to).contains(&due) {
            let latency = now.saturating_duration_since(due);
            record(&mut self.latency, latency);
            if outcome.name == "placed" {
                record(&mut self.placed_latency, latency);
            }
        }
        if (from..to).contains(&now) {
            self.last_answer = self.last_answer.max(Some(now));
            match self.outcomes.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, count)) => *count += 1,
                None => self.outcomes.push((outcome, 1)),
            }
        }
    }

    /// Adds what another worker has counted.
    pub(super) fn add(&mut self, other: Self) {
        for (outcome, count) in other.outcomes {
            match self.outcomes.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, sum)) => *sum += count,
                None => self.outcomes.push((outcome, count)),
            }
        }
        // Both have the same bounds, which is the only reason for which adding may fail.
        let _same_bounds = self.latency.add(other.latency).and(self.placed_latency.add(other.placed_latency));
        self.sold.extend(other.sold);
        self.doubts.extend(other.doubts);
        self.wrong.extend(other.wrong);
        self.last_answer = self.last_answer.max(other.last_answer);
    }
}

#[expect(clippy::unwrap_used, reason = "fails on bounds or digits out of range only, and both are constants")]
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, SLOWEST_US, 3).unwrap()
}

fn record(histogram: &mut Histogram<u64>, latency: Duration) {
    histogram.saturating_record(latency.as_micros() as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &'static str) -> Outcome {
        Outcome { status: 201, name: name.into() }
    }

    #[test]
    fn only_the_measured_time_counts_and_latency_counts_from_when_a_request_was_due() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut tally = Tally::new((at(100), at(200)));
        tally.count(outcome("placed"), at(10), at(20));
        tally.count(outcome("placed"), at(90), at(110));
        tally.count(outcome("placed"), at(150), at(180));
        tally.count(outcome("sold-out"), at(190), at(250));
        assert_eq!(tally.outcomes, [(outcome("placed"), 2)]);
        assert_eq!((tally.latency.len(), tally.placed_latency.len()), (2, 1));
        assert!((59_000..=61_000).contains(&tally.latency.max()), "{}", tally.latency.max());
    }

    #[test]
    fn tallies_add_up() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let [mut one, mut two] = [(); 2].map(|()| Tally::new((start, at(100))));
        one.count(outcome("placed"), at(1), at(2));
        two.count(outcome("placed"), at(1), at(5));
        two.count(outcome("replayed"), at(1), at(3));
        one.add(two);
        assert_eq!(one.outcomes, [(outcome("placed"), 2), (outcome("replayed"), 1)]);
        assert_eq!((one.latency.len(), one.placed_latency.len()), (3, 2));
        assert_eq!(one.last_answer, Some(at(5)), "the later one");
    }
}
