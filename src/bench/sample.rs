//! Made-up results for the tests: every group has rows, and every optional field is there and missing.

use chrono::DateTime;

use super::results::{Cpu, Figure, Group, Machine, Percentiles, Results, Row, Spread};

pub(super) fn results() -> Results {
    Results {
        version: "0.1.0".to_owned(),
        started_at: DateTime::from_timestamp(1_795_225_681, 0).expect("a time"),
        quick: false,
        took_seconds: 725.4,
        command: "segstock bench --report bench.html".to_owned(),
        machine: Machine {
            processor: "AMD EPYC 7B13".to_owned(),
            cores: 8,
            memory_gib: 31.3,
            system: "Debian 12, Linux 6.1".to_owned(),
            redis: "Redis 7.0.15".to_owned(),
            postgres: "PostgreSQL 15.14".to_owned(),
            storage: "fsync on".to_owned(),
        },
        rows: rows(),
        figures: figures(),
    }
}

/// So many digits, and no more, come back from JSON to the last bit.
fn short(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

fn spread(median: f64) -> Spread {
    Spread { median, low: short(median * 0.93), high: short(median * 1.04), samples: 5 }
}

fn latency(p50: f64) -> Percentiles {
    let times = |factor| short(p50 * factor);
    Percentiles { p50: short(p50), p90: times(1.9), p99: times(3.4), p999: times(7.0), max: times(15.0) }
}

fn row(group: Group, name: &str, position: Option<u64>, rate: f64) -> Row {
    Row {
        group,
        name: name.to_owned(),
        position,
        orders_per_second: spread(rate),
        latency_ms: Some(latency(120_000.0 / rate)),
        cpu_us_per_order: None,
        generator_share: 0.42,
        note: None,
    }
}

fn rows() -> Vec<Row> {
    let cpu =
        |service| Some(Cpu { service, redis: short(service * 0.09), postgres: short(service * 0.8), generator: 14.0 });
    let mut rows = vec![
        Row { cpu_us_per_order: cpu(31.2), ..row(Group::Core, "durable orders", None, 21_480.0) },
        Row {
            cpu_us_per_order: cpu(19.0),
            ..row(Group::Core, "ceiling: the same inserts, nothing else", None, 26_900.0)
        },
        Row { cpu_us_per_order: cpu(7.7), ..row(Group::Core, "sold out", None, 118_000.0) },
        Row { cpu_us_per_order: cpu(36.0), ..row(Group::OpenLoop, "half the rate", None, 10_740.0) },
        Row { latency_ms: None, ..row(Group::OpenLoop, "twice the rate", None, 20_100.0) },
        Row {
            note: Some("the last 1,000 units took 0.41 s".to_owned()),
            ..row(Group::Tail, "last units", None, 9_320.0)
        },
        Row { generator_share: 0.97, ..row(Group::ManyProducts, "100 products", None, 17_900.0) },
    ];
    for (connections, rate) in [(16, 4_900.0), (64, 13_000.0), (256, 21_400.0), (1_024, 21_100.0), (4_096, 19_400.0)] {
        rows.push(row(Group::Connections, &format!("{connections} connections"), Some(connections), rate));
    }
    for (batch, rate) in [(1, 980.0), (10, 6_900.0), (100, 18_300.0), (1_000, 21_500.0)] {
        rows.push(row(Group::Batch, &format!("batches of {batch}"), Some(batch), rate));
    }
    for (segments, rate) in [(1, 9_800.0), (2, 15_900.0), (5, 20_700.0), (20, 21_500.0), (50, 21_300.0)] {
        rows.push(row(Group::Segments, &format!("{segments} segments"), Some(segments), rate));
    }
    for segments in [1_u32, 5, 10, 20, 50] {
        let rate = f64::from(segments) * 47.5;
        rows.push(row(Group::ClassicTable, &format!("classic, {segments} segments"), Some(segments.into()), rate));
    }
    rows
}

fn figures() -> Vec<Figure> {
    let figure = |name: &str, median, unit: &str, (at_least, then), higher_is_better| Figure {
        name: name.to_owned(),
        value: spread(median),
        unit: unit.to_owned(),
        at_least,
        then,
        higher_is_better,
    };
    vec![
        figure("durable orders ÷ ceiling", 0.798, "×", (0.6, 0.75), true),
        figure("durable orders ÷ classic algorithm", 430.0, "×", (100.0, 500.0), true),
        figure("p99 at half the rate", 26.4, "ms", (20.0, 10.0), false),
        figure("memory at 4,096 connections", 88.0, "MB", (256.0, 128.0), false),
    ]
}
