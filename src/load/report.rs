//! What a run has measured: as a table for people, as JSON for programs.

use std::fmt::Write;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::proof::Proof;
use super::tally::{Sold, Tally};
use super::worker::Times;
use crate::config::LoadOptions;

/// From this share of its threads' time on the generator, and not the service, may be what is measured.
const BOTTLENECK: f64 = 0.9;

/// The figures of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `closed` or `open`.
    pub r#loop: &'static str,
    /// Connections.
    pub connections: usize,
    /// Arrivals a second that were asked for, in the open loop.
    pub rate: Option<f64>,
    /// The seed.
    pub seed: u64,
    /// How long was measured, in seconds.
    pub measured_seconds: f64,
    /// Answers of any kind a second.
    pub answers_per_second: f64,
    /// Orders placed a second.
    pub placed_per_second: f64,
    /// Orders placed by each of the services, warm-up included.
    pub placed_by_service: Vec<u64>,
    /// Every kind of answer.
    pub outcomes: Vec<OutcomeCount>,
    /// Latency of all requests, from when each was due to the end of its answer.
    pub latency_ms: Option<Percentiles>,
    /// Latency of those that placed an order.
    pub placed_latency_ms: Option<Percentiles>,
    /// Over the whole run, from the first sold unit to the last, and between.
    pub selling: Option<Selling>,
    /// The generator itself.
    pub generator: Generator,
    /// Whether the sale was right; missing where it was not asked for.
    pub proof: Option<Proof>,
}

/// How often one kind of answer was given.
#[derive(Debug, Clone, Serialize)]
pub struct OutcomeCount {
    /// The status; 0 without an answer.
    pub status: u16,
    /// `placed`, `replayed`, the problem's slug, or why there is no answer.
    pub outcome: String,
    /// How often.
    pub count: u64,
}

/// How long answers took, in milliseconds: so many of a hundred came within so long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half of them.
    pub p50: f64,
    /// 90 of 100.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
    /// All of them.
    pub max: f64,
}

/// How a sale went over time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Selling {
    /// From the beginning of the run to the last order placed, in seconds.
    pub last_order_seconds: f64,
    /// The longest time in which no order was placed, in ms.
    pub longest_gap_ms: f64,
}

/// The generator's own cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Generator {
    /// Threads that send.
    pub threads: usize,
    /// CPU time used, as a share of what those threads can have: 0 to 1.
    pub cpu_share: f64,
    /// Whether the figures may be the generator's own limits.
    pub is_bottleneck: bool,
}

impl Generator {
    /// `cpu` is CPU seconds a second.
    pub(super) fn new(threads: usize, cpu: f64) -> Self {
        let cpu_share = cpu / threads as f64;
        Self { threads, cpu_share, is_bottleneck: cpu_share > BOTTLENECK }
    }
}

impl Percentiles {
    fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let ms = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
        (!histogram.is_empty()).then(|| Self {
            p50: ms(0.5),
            p90: ms(0.9),
            p99: ms(0.99),
            p999: ms(0.999),
            max: histogram.max() as f64 / 1000.0,
        })
    }
}

impl Selling {
    fn of(sold: &[Sold]) -> Option<Self> {
        // Orders that were asked for again after the run have no moment.
        let mut moments: Vec<u64> = sold.iter().map(|sold| sold.at_us).filter(|at_us| *at_us < u64::MAX).collect();
        moments.sort_unstable();
        let longest = moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let last = moments.last()?;
        Some(Self { last_order_seconds: *last as f64 / 1e6, longest_gap_ms: longest as f64 / 1e3 })
    }
}

impl Report {
    pub(super) fn new(options: &LoadOptions, tally: &Tally, times: &Times, generator: Generator) -> Self {
        let (from, to) = times.measured;
        // A sale that ended before its time is measured to its last answer.
        let to = if options.until_sold_out { tally.last_answer.unwrap_or(from) } else { to };
        let measured_seconds = (to - from).as_secs_f64();
        let mut outcomes: Vec<OutcomeCount> = tally
            .outcomes
            .iter()
            .map(|(outcome, count)| OutcomeCount {
                status: outcome.status,
                outcome: outcome.name.to_string(),
                count: *count,
            })
            .collect();
        outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.count));
        let count = |pick: &dyn Fn(&OutcomeCount) -> bool| {
            outcomes.iter().filter(|outcome| pick(outcome)).map(|outcome| outcome.count).sum::<u64>() as f64
        };
        let per_second = |count: f64| if measured_seconds > 0.0 { count / measured_seconds } else { 0.0 };
        Self {
            r#loop: if options.rate.is_some() { "open" } else { "closed" },
            connections: options.connections,
            rate: options.rate,
            seed: options.seed,
            measured_seconds,
            answers_per_second: per_second(count(&|outcome| outcome.status > 0)),
            placed_per_second: per_second(count(&|outcome| outcome.outcome == "placed")),
            latency_ms: Percentiles::of(&tally.latency),
            placed_latency_ms: Percentiles::of(&tally.placed_latency),
            selling: Selling::of(&tally.sold),
            placed_by_service: (0..options.url.len())
                .map(|service| tally.sold.iter().filter(|sold| usize::from(sold.service) == service).count() as u64)
                .collect(),
            outcomes,
            generator,
            proof: None,
        }
    }

    /// The report as people read it.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _infallible = self.write_table(&mut text);
        text
    }

    fn write_table(&self, text: &mut String) -> std::fmt::Result {
        let rate = self.rate.map_or_else(String::new, |rate| format!(", {rate} arrivals/s"));
        let Self { r#loop, connections, measured_seconds, .. } = self;
        writeln!(text, "{} loop, {connections} connections{rate}, measured {measured_seconds:.1} s", r#loop)?;
        writeln!(text, "  answers/s {:>12.0}", self.answers_per_second)?;
        writeln!(text, "  placed/s  {:>12.0}", self.placed_per_second)?;
        writeln!(text, "\n  {:<24} {:>6} {:>12} {:>7}", "outcome", "status", "count", "share")?;
        let all: u64 = self.outcomes.iter().map(|outcome| outcome.count).sum();
        for OutcomeCount { status, outcome, count } in &self.outcomes {
            let share = *count as f64 * 100.0 / all.max(1) as f64;
            writeln!(text, "  {outcome:<24} {status:>6} {count:>12} {share:>6.2}%")?;
        }
        writeln!(text, "\n  {:<12} {:>9} {:>9} {:>9} {:>9} {:>9}", "latency, ms", "p50", "p90", "p99", "p99.9", "max")?;
        for (name, latency) in [("all", &self.latency_ms), ("placed", &self.placed_latency_ms)] {
            if let Some(Percentiles { p50, p90, p99, p999, max }) = latency {
                writeln!(text, "  {name:<12} {p50:>9.2} {p90:>9.2} {p99:>9.2} {p999:>9.2} {max:>9.2}")?;
            }
        }
        if let [_, _, ..] = self.placed_by_service.as_slice() {
            writeln!(text, "\n  orders placed by each service: {:?}", self.placed_by_service)?;
        }
        if let Some(Selling { last_order_seconds, longest_gap_ms }) = &self.selling {
            writeln!(
                text,
                "\n  last order after {last_order_seconds:.3} s, longest gap between two {longest_gap_ms:.1} ms"
            )?;
        }
        let Generator { threads, cpu_share, is_bottleneck } = self.generator;
        let share = cpu_share * 100.0;
        writeln!(
            text,
            "  the generator used {share:.0} % of its {threads} thread{}",
            if threads == 1 { "" } else { "s" }
        )?;
        if is_bottleneck {
            writeln!(
                text,
                "  ATTENTION: the generator is the bottleneck: these figures say more of it than of the service"
            )?;
        }
        match &self.proof {
            Some(proof) => write_proof(text, proof),
            None => Ok(()),
        }
    }
}

fn write_proof(text: &mut String, proof: &Proof) -> std::fmt::Result {
    let Proof { orders_answered, orders_found, units_answered, units_taken, units_left, .. } = proof;
    writeln!(text, "\n  {orders_answered} orders were answered 201, and {orders_found} of them exist")?;
    writeln!(
        text,
        "  {units_answered} units were sold by the answers, and {units_taken} by the stock; {units_left} are left"
    )?;
    for fault in &proof.faults {
        writeln!(text, "  FAULT: {fault}")?;
    }
    writeln!(text, "  {}", if proof.holds() { "The sale is proven." } else { "THE SALE IS WRONG." })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_longest_gap_is_found_whatever_the_order_of_the_answers() {
        let sold = [3_000, 1_000, u64::MAX, 9_000, 4_000];
        let sold = sold.map(|at_us| Sold { number: 0, id: Uuid::nil(), product: 0, service: 0, quantity: 1, at_us });
        assert_eq!(Selling::of(&sold), Some(Selling { last_order_seconds: 0.009, longest_gap_ms: 5.0 }));
        assert_eq!(Selling::of(&[]), None);
    }

    #[test]
    fn a_busy_generator_says_so() {
        assert!(Generator::new(2, 1.9).is_bottleneck);
        assert!(!Generator::new(2, 1.0).is_bottleneck);
    }
}
