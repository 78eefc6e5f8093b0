//! One benchmark from its first server to its results.

use std::time::Instant;

use chrono::Utc;

use super::contestant::{Contestant, Sample};
use super::meter::resident_mb;
use super::programme::{self, CEILING, CLASSIC, DURABLE, Heat, Length, SOLD_OUT};
use super::results::{Figure, Group, Results, Row, Spread};
use super::stage::{Kind, Stage};
use super::tail::tail;
use super::{BenchError, machine};
use crate::config::BenchOptions;

/// Measures everything. `say` is told what is being measured.
pub async fn run(options: &BenchOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<Results, BenchError> {
    let (started_at, began) = (Utc::now(), Instant::now());
    let length = Length::of(options);
    say("starting Redis and PostgreSQL");
    let mut stage = Stage::set().await?;

    let mut core = measure(length.core(), &mut stage, say).await?;
    let mut figures = core_figures(&core);
    // Before thousands of connections have left their buffers behind.
    figures.extend(memory_figure(&mut core, length, &mut stage, say).await?);
    let mut rows = rows_of(&core);
    let capacity = find(&core, DURABLE).and_then(|durable| spread(durable, rate)).map_or(0.0, |rate| rate.median);
    let open = measure(length.open_loop(capacity), &mut stage, say).await?;
    figures.extend(open.first().and_then(|open| {
        let p99 = spread(open, |sample| sample.latency.map(|latency| latency.p99))?;
        Some(at_most("p99, open loop at 70 % of capacity", p99, "ms", (10.0, 5.0)))
    }));
    rows.extend(rows_of(&open));
    for heat in length.others() {
        let measured = measure(heat, &mut stage, say).await?;
        figures.extend(measured.iter().filter_map(classic_figure));
        figures.extend(measured.iter().filter_map(fairness_figure));
        rows.extend(rows_of(&measured));
    }
    say("the end of a sale");
    rows.extend(tail(&mut stage, length.other_rounds).await?);
    for contestant in &core {
        contestant.prove().await?;
    }
    Ok(Results {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
        quick: options.quick,
        took_seconds: began.elapsed().as_secs_f64(),
        command: if options.quick { "segstock bench --quick" } else { "segstock bench" }.to_owned(),
        machine: machine::describe(&stage).await?,
        rows,
        figures,
    })
}

/// Prepares the entries of a heat, and measures them in turn.
async fn measure(
    heat: Heat,
    stage: &mut Stage,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Contestant>, BenchError> {
    say(&format!("{heat}"));
    let is_core = heat.entries.iter().any(|entry| entry.group == Group::Core);
    let mut contestants = Vec::with_capacity(heat.entries.len());
    for entry in heat.entries {
        contestants.push(Contestant::prepare(entry, heat.span, stage).await?);
    }
    for _ in 0..heat.rounds {
        for contestant in &mut contestants {
            contestant.measure(stage).await?;
        }
    }
    if !is_core {
        // The core goes on selling, and is proven at the end.
        for contestant in &contestants {
            contestant.prove().await?;
        }
    }
    Ok(contestants)
}

fn rows_of(contestants: &[Contestant]) -> Vec<Row> {
    contestants.iter().filter_map(Contestant::row).collect()
}

fn find<'a>(contestants: &'a [Contestant], name: &str) -> Option<&'a Contestant> {
    contestants.iter().find(|contestant| contestant.entry.name == name)
}

fn rate(sample: &Sample) -> Option<f64> {
    Some(sample.answers_per_second)
}

fn spread(contestant: &Contestant, pick: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
    Spread::of(&contestant.samples.iter().filter_map(pick).collect::<Vec<f64>>())
}

/// One entry divided by another, round by round.
fn ratio(contestants: &[Contestant], above: &str, below: &str) -> Option<Spread> {
    let pairs = find(contestants, above)?.samples.iter().zip(&find(contestants, below)?.samples);
    let ratios = pairs.map(|(above, below)| above.answers_per_second / below.answers_per_second);
    Spread::of(&ratios.collect::<Vec<f64>>())
}

fn at_least(name: &str, value: Spread, unit: &str, (at_least, then): (f64, f64)) -> Figure {
    Figure { name: name.to_owned(), value, unit: unit.to_owned(), at_least, then, higher_is_better: true }
}

fn at_most(name: &str, value: Spread, unit: &str, (at_least, then): (f64, f64)) -> Figure {
    Figure { name: name.to_owned(), value, unit: unit.to_owned(), at_least, then, higher_is_better: false }
}

fn core_figures(core: &[Contestant]) -> Vec<Figure> {
    let durable = find(core, DURABLE);
    let p99 = durable.and_then(|durable| spread(durable, |sample| sample.latency.map(|latency| latency.p99)));
    let cpu = durable
        .and_then(|durable| spread(durable, |sample| sample.cpu.map(|cpu| cpu.service + cpu.redis + cpu.postgres)));
    let figures = [
        ratio(core, DURABLE, CEILING).map(|value| at_least("durable orders ÷ ceiling", value, "", (0.35, 0.45))),
        ratio(core, SOLD_OUT, CEILING).map(|value| at_least("sold-out answers ÷ ceiling", value, "", (0.85, 0.95))),
        ratio(core, DURABLE, CLASSIC)
            .map(|value| at_least("leased batches ÷ max_batch = 1, 20 segments", value, "×", (8.0, 12.0))),
        p99.map(|value| at_most("p99, closed loop, 256 connections", value, "ms", (15.0, 10.0))),
        cpu.map(|value| at_most("CPU a durable order: service, Redis, PostgreSQL", value, "µs", (30.0, 20.0))),
    ];
    figures.into_iter().flatten().collect()
}

/// What the classic algorithm reached of N segments' 50 turns a second each.
fn classic_figure(contestant: &Contestant) -> Option<Figure> {
    let segments = contestant.entry.position.filter(|_| contestant.entry.group == Group::ClassicTable)?;
    let ideal = programme::classic_ideal(segments);
    let value = spread(contestant, |sample| Some(sample.answers_per_second / ideal))?;
    let name = format!("classic table: orders/s ÷ (50 × {segments} segments)");
    Some(at_least(&name, value, "", (0.95, 0.98)))
}

/// What the instance that sold least sold of its fair share.
fn fairness_figure(contestant: &Contestant) -> Option<Figure> {
    let value = spread(contestant, |sample| {
        let (all, least) = (sample.shares.iter().sum::<u64>(), sample.shares.iter().min()?);
        (sample.shares.len() > 1 && all > 0).then(|| *least as f64 * sample.shares.len() as f64 / all as f64)
    })?;
    let name = format!("{}: least ÷ fair share", contestant.entry.name);
    Some(at_least(&name, value, "", (0.5, 0.8)))
}

/// The memory of the service, once it has sold enough.
async fn memory_figure(
    core: &mut [Contestant],
    length: Length,
    stage: &mut Stage,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Option<Figure>, BenchError> {
    let Some(durable) = core.iter_mut().find(|contestant| contestant.entry.name == DURABLE) else {
        return Ok(None);
    };
    while durable.orders() < length.orders_before_memory {
        say(&format!("{} of {} orders, to measure memory", durable.orders(), length.orders_before_memory));
        durable.measure(stage).await?;
    }
    let orders = durable.orders();
    let memory = resident_mb(stage.service(Kind::DEFAULT).await?.pid());
    let name = format!("memory of the service after {orders} orders and more");
    Ok(memory.and_then(|mb| Spread::of(&[mb])).map(|value| at_most(&name, value, "MB", (100.0, 60.0))))
}
