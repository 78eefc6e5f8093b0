//! What a benchmark measured. As JSON this is the file that it leaves behind.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use crate::load::Percentiles;

/// Everything that one run of the benchmark found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The version of segstock that was measured.
    pub version: String,
    /// When the run began.
    pub started_at: DateTime<Utc>,
    /// Whether it was a short run, whose numbers are rough.
    pub quick: bool,
    /// How long the run took.
    pub took_seconds: f64,
    /// The command that repeats it.
    pub command: String,
    /// Where it ran.
    pub machine: Machine,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What was to be reached.
    pub figures: Vec<Figure>,
}

impl Results {
    /// The rows of one group, in the order in which they were measured.
    pub fn rows_of(&self, group: Group) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.group == group)
    }
}

/// The machine and the stores: without them no number means anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Logical cores that the run could use.
    pub cores: usize,
    /// Memory, in GiB.
    pub memory_gib: f64,
    /// The operating system.
    pub system: String,
    /// Redis and its version.
    pub redis: String,
    /// PostgreSQL and its version.
    pub postgres: String,
    /// What a commit waits for, such as "fsync on".
    pub storage: String,
}

/// One measured configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is compared with.
    pub group: Group,
    /// What it is called within its group.
    pub name: String,
    /// Where it stands on the group's axis: segments, the largest batch, connections.
    pub position: Option<u64>,
    /// Answers a second.
    pub orders_per_second: Spread,
    /// How long an answer took, in milliseconds.
    pub latency_ms: Option<Percentiles>,
    /// What an order cost, in microseconds of processor time.
    pub cpu_us_per_order: Option<Cpu>,
    /// How busy the load generator was: 1.0 where its threads had no time left, and it was the limit itself.
    pub generator_share: f64,
    /// What a reader must know of this row.
    pub note: Option<String>,
}

/// Rows that are compared with each other. Tables show the groups in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The service as it is meant to run, and the ceilings that it is held against.
    Core,
    /// Orders come at a fixed rate, whether answers come or not.
    OpenLoop,
    /// More and more connections.
    Connections,
    /// Larger and larger batches.
    Batch,
    /// More and more segments.
    Segments,
    /// The classic algorithm, one order a lease, with more and more segments.
    ClassicTable,
    /// The end of a sale.
    Tail,
    /// Many products at a time.
    ManyProducts,
    /// Several instances on the same stores.
    Instances,
}

impl Group {
    /// Every group, in the order of the tables.
    pub const ALL: [Self; 9] = [
        Self::Core,
        Self::OpenLoop,
        Self::Connections,
        Self::Batch,
        Self::Segments,
        Self::ClassicTable,
        Self::Tail,
        Self::ManyProducts,
        Self::Instances,
    ];
}

impl fmt::Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Core => "core",
            Self::OpenLoop => "open loop",
            Self::Connections => "connections",
            Self::Batch => "batch",
            Self::Segments => "segments",
            Self::ClassicTable => "classic table",
            Self::Tail => "tail",
            Self::ManyProducts => "many products",
            Self::Instances => "instances",
        })
    }
}

/// A number that was measured several times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How often it was measured.
    pub samples: usize,
}

impl Spread {
    /// The spread of these samples; `None` where there are none, or where one is no finite number.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if !samples.iter().all(|sample| sample.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        Some(Self { median, low, high, samples: sorted.len() })
    }
}

/// What an order cost, in microseconds of processor time, by process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// segstock.
    pub service: f64,
    /// Redis.
    pub redis: f64,
    /// PostgreSQL, all its processes.
    pub postgres: f64,
    /// What placed the orders.
    pub generator: f64,
}

/// A figure to reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is, such as "durable orders ÷ ceiling".
    pub name: String,
    /// What was measured.
    pub value: Spread,
    /// "×", "ms", "µs", "MB"; empty for a plain number.
    pub unit: String,
    /// What it must reach.
    pub at_least: f64,
    /// What is wanted beyond that.
    pub then: f64,
    /// Whether more is better. Where less is, both limits are upper ones.
    pub higher_is_better: bool,
}

impl Figure {
    /// What the median reached.
    pub fn verdict(&self) -> Verdict {
        let met = |limit: f64| {
            if self.higher_is_better { self.value.median >= limit } else { self.value.median <= limit }
        };
        match (met(self.at_least), met(self.then)) {
            (true, true) => Verdict::Reached,
            (true, false) => Verdict::AtLeast,
            (false, _) => Verdict::Missed,
        }
    }
}

/// How far a figure got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All that is wanted.
    Reached,
    /// What it must reach, and no more.
    AtLeast,
    /// Less than it must.
    Missed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Reached => "reached",
            Self::AtLeast => "at least",
            Self::Missed => "missed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample;

    #[test]
    fn a_median_stands_in_the_middle() {
        let odd = Spread { median: 3.0, low: 1.0, high: 10.0, samples: 3 };
        assert_eq!(Spread::of(&[10.0, 1.0, 3.0]), Some(odd));
        let even = Spread { median: 2.5, low: 1.0, high: 10.0, samples: 4 };
        assert_eq!(Spread::of(&[10.0, 1.0, 3.0, 2.0]), Some(even));
        let single = Spread { median: 7.0, low: 7.0, high: 7.0, samples: 1 };
        assert_eq!(Spread::of(&[7.0]), Some(single));
    }

    #[test]
    fn nothing_and_no_number_have_no_spread() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(Spread::of(&[f64::INFINITY, 1.0]), None);
    }

    fn verdict(median: f64, at_least: f64, then: f64, higher_is_better: bool) -> Verdict {
        // The ends of the spread would be judged otherwise.
        let value = Spread { median, low: -1e9, high: 1e9, samples: 3 };
        Figure { name: "figure".to_owned(), value, unit: String::new(), at_least, then, higher_is_better }.verdict()
    }

    #[test]
    fn more_is_judged_against_lower_limits() {
        assert_eq!(verdict(0.79, 0.8, 0.9, true), Verdict::Missed);
        assert_eq!(verdict(0.8, 0.8, 0.9, true), Verdict::AtLeast);
        assert_eq!(verdict(0.89, 0.8, 0.9, true), Verdict::AtLeast);
        assert_eq!(verdict(0.9, 0.8, 0.9, true), Verdict::Reached);
    }

    #[test]
    fn less_is_judged_against_upper_limits() {
        assert_eq!(verdict(21.0, 20.0, 10.0, false), Verdict::Missed);
        assert_eq!(verdict(20.0, 20.0, 10.0, false), Verdict::AtLeast);
        assert_eq!(verdict(10.1, 20.0, 10.0, false), Verdict::AtLeast);
        assert_eq!(verdict(10.0, 20.0, 10.0, false), Verdict::Reached);
    }

    #[test]
    fn no_number_reaches_nothing() {
        assert_eq!(verdict(f64::NAN, 0.8, 0.9, true), Verdict::Missed);
        assert_eq!(verdict(f64::NAN, 20.0, 10.0, false), Verdict::Missed);
    }

    #[test]
    fn results_are_read_back_as_they_were_written() {
        let results = sample::results();
        let json = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
        assert!(json.contains(r#""group":"classic-table""#), "{json}");
    }

    #[test]
    fn every_group_is_listed_once_and_in_order() {
        assert!(Group::ALL.is_sorted_by(|one, next| one < next));
        assert!(sample::results().rows.iter().all(|row| Group::ALL.contains(&row.group)));
    }
}
