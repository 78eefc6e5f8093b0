//! The metrics: their names, units and help in one table, and the handles that the sale records with.
//!
//! A handle is registered once per product or segment and kept, because a look-up by name costs more than the count.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Unit, counter, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use self::Kind::{Counts, Level, Spread};

/// How often the exporter folds what was recorded into its buckets.
const UPKEEP_PERIOD: Duration = Duration::from_secs(5);

/// Seconds, from well below one Redis trip to beyond the longest deadline.
const SECONDS_BUCKETS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
/// Orders in a batch.
const BATCH_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

enum Kind {
    Counts,
    Level,
    Spread(&'static [f64]),
}

struct Metric {
    name: &'static str,
    kind: Kind,
    unit: Unit,
    help: &'static str,
}

const fn metric(name: &'static str, kind: Kind, unit: Unit, help: &'static str) -> Metric {
    Metric { name, kind, unit, help }
}

const CATALOGUE: &[Metric] = &[
    metric(
        "segstock_orders_total",
        Counts,
        Unit::Count,
        "Answered orders by product, segment (empty where no segment was involved) and outcome",
    ),
    metric("segstock_rounds_total", Counts, Unit::Count, "Rounds by product and how they ended"),
    metric("segstock_batch_orders", Spread(BATCH_BUCKETS), Unit::Count, "Orders that one lease served"),
    metric(
        "segstock_fall_throughs_total",
        Counts,
        Unit::Count,
        "Probes that moved on because the segment was empty, too small or busy, by product",
    ),
    metric(
        "segstock_lease_wait_seconds",
        Spread(SECONDS_BUCKETS),
        Unit::Seconds,
        "From asking for a lease to having it, reload included",
    ),
    metric("segstock_settle_seconds", Spread(SECONDS_BUCKETS), Unit::Seconds, "Duration of the settle statement"),
    metric("segstock_lease_renewals_total", Counts, Unit::Count, "Leases renewed because their round ran long"),
    metric("segstock_lease_losses_total", Counts, Unit::Count, "Leases lost before their release, by product"),
    metric(
        "segstock_settles_refused_total",
        Counts,
        Unit::Count,
        "Batches that the ledger refused (stale fence, old epoch, too few units), by product",
    ),
    metric("segstock_reloads_total", Counts, Unit::Count, "Segments reloaded from the ledger, by product"),
    metric("segstock_segment_stock", Level, Unit::Count, "Units left in a segment when this process last saw it"),
    metric("segstock_queue_orders", Level, Unit::Count, "Orders that wait for their answer, by product"),
    metric(
        "segstock_http_request_seconds",
        Spread(SECONDS_BUCKETS),
        Unit::Seconds,
        "Duration of HTTP requests by route, method and status",
    ),
];

/// Starts recording, and returns what renders `/metrics`. Once a process.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in CATALOGUE {
        if let Spread(buckets) = metric.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)?;
        }
    }
    let handle = builder.install_recorder()?;
    for Metric { name, kind, unit, help } in CATALOGUE {
        match kind {
            Counts => metrics::describe_counter!(*name, *unit, *help),
            Level => metrics::describe_gauge!(*name, *unit, *help),
            Spread(_) => metrics::describe_histogram!(*name, *unit, *help),
        }
    }
    Ok(handle)
}

/// Keeps the exporter's memory bounded between scrapes; runs until it is dropped.
pub async fn upkeep(handle: PrometheusHandle) {
    let mut ticks = tokio::time::interval(UPKEEP_PERIOD);
    loop {
        ticks.tick().await;
        handle.run_upkeep();
    }
}

/// How a round ended, as the label of `segstock_rounds_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundEnding {
    /// Its batch was committed.
    Settled,
    /// Its lease was had and no order fitted.
    NothingFitted,
    /// The segment was empty.
    Empty,
    /// Somebody else held the segment.
    Busy,
    /// The ledger refused its batch.
    Refused,
    /// A store failed.
    Failed,
}

impl RoundEnding {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Settled, "settled"),
        (Self::NothingFitted, "nothing-fitted"),
        (Self::Empty, "empty"),
        (Self::Busy, "busy"),
        (Self::Refused, "refused"),
        (Self::Failed, "failed"),
    ];
}

/// The handles of one product.
pub struct ProductMetrics {
    sku: String,
    rounds: [Counter; RoundEnding::ALL.len()],
    segments: Box<[OnceLock<SegmentMetrics>]>,
    /// Orders a batch.
    pub batch_orders: Histogram,
    /// Probes that moved on.
    pub fall_throughs: Counter,
    /// Asking for a lease to having it.
    pub lease_wait_seconds: Histogram,
    /// The settle statement.
    pub settle_seconds: Histogram,
    /// Leases lost.
    pub lease_losses: Counter,
    /// Batches refused by the ledger.
    pub settles_refused: Counter,
    /// Segments reloaded.
    pub reloads: Counter,
    /// Orders that wait.
    pub queue_orders: Gauge,
}

struct SegmentMetrics {
    placed: Counter,
    stock: Gauge,
}

impl ProductMetrics {
    /// Registers the handles of a product with so many segments; those of a segment when it is first used.
    pub fn new(sku: &str, segments: u16) -> Self {
        let product = || sku.to_owned();
        Self {
            sku: product(),
            rounds: RoundEnding::ALL
                .map(|(_, ending)| counter!("segstock_rounds_total", "product" => product(), "ending" => ending)),
            segments: (0..segments).map(|_| OnceLock::new()).collect(),
            batch_orders: histogram!("segstock_batch_orders"),
            fall_throughs: counter!("segstock_fall_throughs_total", "product" => product()),
            lease_wait_seconds: histogram!("segstock_lease_wait_seconds"),
            settle_seconds: histogram!("segstock_settle_seconds"),
            lease_losses: counter!("segstock_lease_losses_total", "product" => product()),
            settles_refused: counter!("segstock_settles_refused_total", "product" => product()),
            reloads: counter!("segstock_reloads_total", "product" => product()),
            queue_orders: gauge!("segstock_queue_orders", "product" => product()),
        }
    }

    /// A round ended.
    pub fn round(&self, ending: RoundEnding) {
        if let Some(position) = RoundEnding::ALL.iter().position(|(candidate, _)| *candidate == ending) {
            self.rounds[position].increment(1);
        }
    }

    /// So many orders were placed in a segment.
    pub fn placed(&self, segment: u16, orders: u64) {
        self.segment(segment).placed.increment(orders);
    }

    /// A segment was seen with so many units.
    pub fn stock(&self, segment: u16, units: u64) {
        self.segment(segment).stock.set(units as f64);
    }

    fn segment(&self, index: u16) -> &SegmentMetrics {
        self.segments[usize::from(index)].get_or_init(|| {
            let (product, segment) = (self.sku.clone(), index.to_string());
            SegmentMetrics {
                placed: counter!(
                    "segstock_orders_total",
                    "product" => product.clone(), "segment" => segment.clone(), "outcome" => "placed"
                ),
                stock: gauge!("segstock_segment_stock", "product" => product, "segment" => segment),
            }
        })
    }

    /// The counter of orders that ended otherwise; for the caller to keep.
    pub fn outcome(&self, outcome: &'static str) -> Counter {
        counter!("segstock_orders_total", "product" => self.sku.clone(), "segment" => "", "outcome" => outcome)
    }
}
