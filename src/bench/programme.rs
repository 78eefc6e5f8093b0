//! What is compared with what, and which figures are to be reached.

use std::fmt;

use super::contestant::{Entry, Meets, Span};
use super::results::Group;
use super::stage::Kind;
use crate::config::BenchOptions;

/// The turn of the classic table, in ms, and so many orders a second a segment.
const TURN_MS: u64 = 20;
const TURNS_PER_SECOND: f64 = 1000.0 / TURN_MS as f64;

/// Names that figures refer to.
pub(super) const CEILING: &str = "ceiling";
pub(super) const DURABLE: &str = "durable orders";
pub(super) const SOLD_OUT: &str = "sold out";
pub(super) const CLASSIC: &str = "max_batch = 1";

/// Entries that are measured in turn, so that whatever disturbs the machine disturbs all of them.
pub(super) struct Heat {
    pub(super) entries: Vec<Entry>,
    pub(super) rounds: usize,
    pub(super) span: Span,
}

/// How long everything takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    core_rounds: usize,
    pub(super) other_rounds: usize,
    span: Span,
    /// Products of the comparison of many products.
    pub(super) products: usize,
    /// The service's memory is measured after so many orders at least.
    pub(super) orders_before_memory: usize,
}

impl Length {
    const QUICK: Self = Self {
        core_rounds: 5,
        other_rounds: 1,
        span: Span { warm_up: 0.2, measured: 0.8 },
        products: 1_000,
        orders_before_memory: 0,
    };

    /// For tests: everything once, for a moment.
    const SMOKE: Self = Self {
        core_rounds: 1,
        other_rounds: 1,
        span: Span { warm_up: 0.0, measured: 0.4 },
        products: 20,
        orders_before_memory: 0,
    };

    const FULL: Self = Self {
        core_rounds: 7,
        other_rounds: 3,
        span: Span { warm_up: 1.0, measured: 3.0 },
        products: 10_000,
        orders_before_memory: 1_000_000,
    };

    pub(super) fn of(options: &BenchOptions) -> Self {
        match options {
            BenchOptions { smoke: true, .. } => Self::SMOKE,
            BenchOptions { quick: true, .. } => Self::QUICK,
            _ => Self::FULL,
        }
    }

    fn heat(self, entries: Vec<Entry>) -> Heat {
        Heat { entries, rounds: self.other_rounds, span: self.span }
    }

    /// What the service is for, against what it costs to say nothing.
    pub(super) fn core(self) -> Heat {
        let entry = |name: &str| Entry::new(Group::Core, name);
        let entries = vec![
            Entry { meets: Meets::Ceiling, ..entry(CEILING) },
            entry(DURABLE),
            Entry { meets: Meets::NoStock { retries: 0.0 }, ..entry(SOLD_OUT) },
            Entry { meets: Meets::NoStock { retries: 1.0 }, ..entry("sold out, 1 % retries of winners") },
            Entry { kind: Kind::CLASSIC, ..entry(CLASSIC) },
            Entry { kind: Kind::Embedded, ..entry("durable orders, embedded default") },
        ];
        Heat { entries, rounds: self.core_rounds, span: self.span }
    }

    /// At 70 % of what the closed loop reached.
    pub(super) fn open_loop(self, capacity: f64) -> Heat {
        let rate = (capacity * 0.7).round().max(1.0);
        let name = format!("{rate:.0} arrivals/s, 70 % of capacity");
        let heat = self.heat(vec![Entry { rate: Some(rate), ..Entry::new(Group::OpenLoop, name) }]);
        Heat { rounds: self.core_rounds.min(5), ..heat }
    }

    /// The comparisons that follow one setting each.
    pub(super) fn others(self) -> Vec<Heat> {
        let at = |group, what: &str, position: u64| Entry {
            position: Some(position),
            ..Entry::new(group, format!("{position} {what}"))
        };
        let connections = [1, 16, 64, 256, 1024, 4096].map(|connections| {
            let entry = at(Group::Connections, "connections", connections as u64);
            Entry { connections, ..entry }
        });
        let batch = [1, 4, 16, 64, 256, 1000].map(|max_batch| {
            let kind = Kind::Stores { max_batch: Some(max_batch), turn_ms: 0, instance: 0 };
            Entry { kind, ..at(Group::Batch, "orders a lease at most", max_batch as u64) }
        });
        let segments = [1u16, 5, 20, 50].map(|segments| {
            let entry = at(Group::Segments, "segments", segments.into());
            let classic = Entry { segments, kind: Kind::CLASSIC, ..entry.clone() };
            let name = format!("{segments} segments, max_batch = 1");
            [Entry { segments, ..entry }, Entry { name, position: None, ..classic }]
        });
        let turns = [1u16, 5, 20, 50].map(|segments| {
            let kind = Kind::Stores { max_batch: Some(1), turn_ms: TURN_MS, instance: 0 };
            let entry = at(Group::ClassicTable, "segments", segments.into());
            Entry { segments, kind, connections: 4 * usize::from(segments), ..entry }
        });
        let instances = [20u16, 1].map(|segments| {
            let instance = |instance| Kind::Stores { max_batch: None, turn_ms: 0, instance };
            let name = format!("three instances, {segments} segment{}", if segments == 1 { "" } else { "s" });
            let entry = Entry::new(Group::Instances, name);
            Entry { segments, instances: vec![instance(1), instance(2)], connections: 255, ..entry }
        });
        let many = Entry {
            products: self.products,
            segments: 5,
            ..Entry::new(Group::ManyProducts, format!("{} products, wanted by Zipf's law", self.products))
        };
        let heats = [connections.to_vec(), batch.to_vec(), segments.concat(), instances.to_vec(), vec![many]];
        let mut heats: Vec<Heat> = heats.into_iter().map(|entries| self.heat(entries)).collect();
        // A turn of 20 ms needs a while to show its rate.
        heats.push(Heat {
            span: Span { warm_up: 0.5, measured: self.span.measured * 2.0 },
            ..self.heat(turns.to_vec())
        });
        heats
    }
}

/// What a classic lock reaches with so many segments, in orders a second.
pub(super) fn classic_ideal(segments: u64) -> f64 {
    segments as f64 * TURNS_PER_SECOND
}

impl fmt::Display for Heat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.entries.first().map_or_else(String::new, |entry| entry.group.to_string());
        write!(formatter, "{group}: {} × {}", self.entries.len(), self.rounds)
    }
}
