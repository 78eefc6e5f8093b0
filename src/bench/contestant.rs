//! One configuration that is measured again and again, in turn with those that it is compared with.

use super::BenchError;
use super::meter::Used;
use super::results::{Cpu, Group, Percentiles, Row, Spread};
use super::stage::{Kind, Stage};
use crate::config::LoadOptions;
use crate::load::{self, Event, Proof, Run, Shop, Sold};

/// Units of a product that is not to be sold out.
const PLENTY: u64 = 1_000_000_000;
/// Units of a product that is sold out before it is measured.
const SOON_GONE: u64 = 2_000;

/// What the requests meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Meets {
    /// A handler without stock or ledger.
    Ceiling,
    /// Products with plenty of units.
    Stock,
    /// A product that is sold out; so many percent of the requests repeat an order that was placed.
    NoStock { retries: f64 },
}

/// What is measured, and how it is shown.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) group: Group,
    pub(super) name: String,
    pub(super) position: Option<u64>,
    pub(super) kind: Kind,
    /// Further instances that share the load.
    pub(super) instances: Vec<Kind>,
    pub(super) meets: Meets,
    pub(super) products: usize,
    pub(super) segments: u16,
    pub(super) connections: usize,
    pub(super) rate: Option<f64>,
}

impl Entry {
    /// The service as it is meant to be, 20 segments, 256 connections.
    pub(super) fn new(group: Group, name: impl Into<String>) -> Self {
        Self {
            group,
            name: name.into(),
            position: None,
            kind: Kind::DEFAULT,
            instances: Vec::new(),
            meets: Meets::Stock,
            products: 1,
            segments: 20,
            connections: 256,
            rate: None,
        }
    }
}

/// One measurement.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) answers_per_second: f64,
    pub(super) latency: Option<Percentiles>,
    pub(super) cpu: Option<Cpu>,
    pub(super) generator_share: f64,
    /// Orders placed by each service.
    pub(super) shares: Vec<u64>,
}

/// An entry with its products, and what was measured so far.
pub(super) struct Contestant {
    pub(super) entry: Entry,
    options: LoadOptions,
    shop: Shop,
    /// The run that sold the product out.
    sell_out: Option<Run>,
    sold: Vec<Sold>,
    pub(super) samples: Vec<Sample>,
}

/// How long a measurement takes, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) warm_up: f64,
    pub(super) measured: f64,
}

impl Contestant {
    /// Creates the products, and sells out what is to be sold out.
    pub(super) async fn prepare(entry: Entry, span: Span, stage: &mut Stage) -> Result<Self, BenchError> {
        let mut urls = Vec::new();
        for kind in std::iter::once(&entry.kind).chain(&entry.instances) {
            urls.push(stage.service(*kind).await?.url.clone());
        }
        let mut options = LoadOptions {
            url: urls,
            products: entry.products,
            stock: if matches!(entry.meets, Meets::NoStock { .. }) {
                SOON_GONE
            } else {
                PLENTY / entry.products as u64
            },
            segments: entry.segments,
            connections: entry.connections,
            rate: entry.rate,
            warm_up: span.warm_up,
            duration: span.measured,
            ..LoadOptions::default()
        };
        let mut sell_out = None;
        let shop = if entry.meets == Meets::Ceiling {
            options.path = "/ceiling".to_owned();
            Shop { skus: vec!["ceiling".to_owned()], taken_before: vec![0] }
        } else {
            Shop::open(&options).await?
        };
        if let Meets::NoStock { retries } = entry.meets {
            let all = LoadOptions { until_sold_out: true, duration: 60.0, warm_up: 0.0, ..options.clone() };
            sell_out = Some(load::run(&all, &shop, None, &mut |_| ()).await?);
            options.retries = retries;
        }
        Ok(Self { entry, options, shop, sell_out, sold: Vec::new(), samples: Vec::new() })
    }

    /// Measures once.
    pub(super) async fn measure(&mut self, stage: &Stage) -> Result<(), BenchError> {
        let kinds: Vec<Kind> = std::iter::once(self.entry.kind).chain(self.entry.instances.iter().copied()).collect();
        let meter = stage.meter(&kinds);
        let (mut before, mut after): (Option<Used>, Option<Used>) = (None, None);
        let mut watch = |event| match event {
            Event::Measuring => before = meter.read(),
            Event::Measured => after = meter.read(),
            Event::Progress(_) => {}
        };
        let run = load::run(&self.options, &self.shop, self.sell_out.as_ref(), &mut watch).await?;
        let report = &run.report;
        if let Some(fault) = run.faults.first() {
            return Err(BenchError::WrongSale { what: self.entry.name.clone(), fault: fault.clone() });
        }
        let used = after.zip(before).map(|(after, before)| after.since(before));
        let orders = report.answers_per_second * report.measured_seconds;
        let generator = report.generator.cpu_share * report.generator.threads as f64 * report.measured_seconds;
        let each = |seconds: f64| seconds * 1e6 / orders;
        self.samples.push(Sample {
            answers_per_second: report.answers_per_second,
            latency: report.latency_ms,
            cpu: used.filter(|_| orders > 0.0).map(|used| Cpu {
                service: each(used.service.as_secs_f64()),
                redis: each(used.redis.as_secs_f64()),
                postgres: each(used.postgres.as_secs_f64()),
                generator: each(generator),
            }),
            generator_share: report.generator.cpu_share,
            shares: report.placed_by_service.clone(),
        });
        if self.entry.meets == Meets::Stock {
            self.sold.extend(run.sold);
        }
        Ok(())
    }

    /// Orders placed so far.
    pub(super) fn orders(&self) -> usize {
        self.sold.len()
    }

    /// Proves everything that was sold: a sale that was wrong has no figures.
    pub(super) async fn prove(&self) -> Result<(), BenchError> {
        let sold = match (&self.entry.meets, &self.sell_out) {
            (Meets::Ceiling, _) => return Ok(()),
            (_, Some(run)) => &run.sold,
            (_, None) => &self.sold,
        };
        let proof = Proof::of(&self.options, &self.shop, sold).await?;
        match proof.faults.first() {
            None => Ok(()),
            Some(fault) => Err(BenchError::WrongSale { what: self.entry.name.clone(), fault: fault.clone() }),
        }
    }

    /// What was measured, as one row.
    pub(super) fn row(&self) -> Option<Row> {
        let spread = |pick: &dyn Fn(&Sample) -> Option<f64>| {
            Spread::of(&self.samples.iter().filter_map(pick).collect::<Vec<f64>>())
        };
        let median = |pick: &dyn Fn(&Sample) -> Option<f64>| spread(pick).map(|spread| spread.median);
        let latency = |pick: fn(&Percentiles) -> f64| median(&|sample| sample.latency.as_ref().map(pick));
        let cpu = |pick: fn(&Cpu) -> f64| median(&|sample| sample.cpu.as_ref().map(pick));
        Some(Row {
            group: self.entry.group,
            name: self.entry.name.clone(),
            position: self.entry.position,
            orders_per_second: spread(&|sample| Some(sample.answers_per_second))?,
            latency_ms: latency(|ms| ms.p50).map(|p50| Percentiles {
                p50,
                p90: latency(|ms| ms.p90).unwrap_or_default(),
                p99: latency(|ms| ms.p99).unwrap_or_default(),
                p999: latency(|ms| ms.p999).unwrap_or_default(),
                max: latency(|ms| ms.max).unwrap_or_default(),
            }),
            cpu_us_per_order: cpu(|us| us.service).map(|service| Cpu {
                service,
                redis: cpu(|us| us.redis).unwrap_or_default(),
                postgres: cpu(|us| us.postgres).unwrap_or_default(),
                generator: cpu(|us| us.generator).unwrap_or_default(),
            }),
            generator_share: median(&|sample| Some(sample.generator_share))?,
            note: self.note(),
        })
    }

    /// How the orders were shared out among several services.
    fn note(&self) -> Option<String> {
        let mut sums = vec![0u64; self.options.url.len()];
        for sample in &self.samples {
            sums.iter_mut().zip(&sample.shares).for_each(|(sum, share)| *sum += share);
        }
        let all: u64 = sums.iter().sum();
        let shares = sums.iter().map(|sum| format!("{:.0} %", *sum as f64 * 100.0 / all.max(1) as f64));
        (sums.len() > 1).then(|| format!("the instances sold {} of the orders", shares.collect::<Vec<_>>().join(", ")))
    }
}
