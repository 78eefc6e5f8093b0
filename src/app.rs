//! The composition root: the only place that builds guards, ledgers and pools, and puts them together.

use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use hyper_util::rt::TokioTimer;

use crate::config::{BadSetting, BenchOnly, Settings};
use crate::domain::{NewProduct, ProductName, SaleWindow, SegmentCount, Sku, Stock};
use crate::guard::Guard;
use crate::guard::memory::MemoryGuard;
use crate::guard::redis::{self, RedisGuard};
use crate::http::{Api, router};
use crate::ledger::postgres::{self, PostgresLedger};
use crate::ledger::sqlite::{self, SqliteLedger};
use crate::ledger::{Ledger, LedgerError};
use crate::sale::{Sale, SaleSettings};
use crate::telemetry::metrics;

/// How long a client may take to send a request's headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// What closing may take when the stop's deadline has passed already: some client never finished its request, and that is
/// no reason to leave leases behind.
const CLOSE_AT_LEAST: Duration = Duration::from_secs(1);
/// The product of the embedded default.
const DEMO_SKU: &str = "demo";
const DEMO_STOCK: u64 = 1000;

/// A service that is bound to its address and ready to be run.
pub struct App {
    listener: TcpListener,
    address: SocketAddr,
    stores: String,
    embedded: bool,
    sale: Arc<Sale>,
    router: Router,
    metrics: metrics_exporter_prometheus::PrometheusHandle,
    stop_deadline: Duration,
}

/// Why a service that was running ended badly.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The listener failed.
    #[error("the listener failed")]
    Listener(#[from] std::io::Error),
    /// Orders or leases were still on their way when the stop's deadline came.
    #[error("the stop_deadline_ms passed before all orders were answered and all leases given back")]
    StopDeadline,
}

impl App {
    /// Opens the stores and binds the address; with `bench_only` it can do what only the benchmark needs. Errors name the
    /// setting to change.
    pub async fn open(settings: &Settings, bench_only: Option<BenchOnly>) -> Result<Self, BadSetting> {
        // First the address: whoever finds it taken has opened nothing.
        let (listener, address) = bind(settings.listen)?;
        let metrics = metrics::install().map_err(|error| BadSetting::new("listen", error))?;
        let stores = open_stores(settings).await?;
        let sale = Arc::new(Sale::new(stores.ledger, stores.guard, sale_settings(settings, bench_only)?));
        if stores.embedded {
            create_demo(&sale).await.map_err(|error| BadSetting::new("data_dir", chain(&error)))?;
        }
        let api = Api::new(Arc::clone(&sale), metrics.clone(), settings.admin_token.as_deref());
        Ok(Self {
            listener,
            address,
            stores: stores.description,
            embedded: stores.embedded,
            sale,
            router: router(api, bench_only.is_some()),
            metrics,
            stop_deadline: Duration::from_millis(settings.stop_deadline_ms),
        })
    }

    /// What to tell whoever started the service.
    pub fn greeting(&self) -> String {
        let Self { address, stores, .. } = self;
        let sku = if self.embedded { DEMO_SKU } else { "YOUR-SKU" };
        let body = format!(r#"{{"sku":"{sku}","quantity":1,"customer_id":"ada"}}"#);
        format!(
            "segstock listens on http://{address} (API: http://{address}/docs)\n{stores}\n\nPlace an order:\n  \
             curl -i http://{address}/orders -H 'Content-Type: application/json' -d '{body}'\n"
        )
    }

    /// Serves until `stop` ends; then takes nothing new, finishes what is queued, gives leases back and closes.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), RunError> {
        let handle = Handle::new();
        let upkeep = tokio::spawn(metrics::upkeep(self.metrics));
        let server = axum_server::from_tcp(self.listener)?.acceptor(NoDelayAcceptor::new()).handle(handle.clone());
        // HTTP/1.1 only: telling versions apart would wait without limit for a client that never sends a byte.
        let mut server = server.http1_only();
        server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        let serving = server.serve(self.router.into_make_service());

        let deadline = self.stop_deadline;
        let stopping = async move {
            stop.await;
            tracing::info!("stopping: no new requests");
            handle.graceful_shutdown(Some(deadline));
            tokio::time::Instant::now() + deadline
        };
        let stopping = tokio::spawn(stopping);
        serving.await?;
        // The server ends by itself only when it was told to.
        let stop_by = stopping.await.unwrap_or_else(|_| tokio::time::Instant::now());
        let close_by = stop_by.max(tokio::time::Instant::now() + CLOSE_AT_LEAST);
        let closed = tokio::time::timeout_at(close_by, self.sale.close()).await;
        upkeep.abort();
        closed.map_err(|_elapsed| RunError::StopDeadline)
    }
}

fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), BadSetting> {
    let unusable = |error| BadSetting::new("listen", format!("{listen} cannot be used: {error}; choose another port"));
    let listener = TcpListener::bind(listen).map_err(unusable)?;
    listener.set_nonblocking(true).map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    Ok((listener, address))
}

fn sale_settings(settings: &Settings, bench_only: Option<BenchOnly>) -> Result<SaleSettings, BadSetting> {
    let fail_point = settings.fail_point.as_deref().map(str::parse).transpose();
    Ok(SaleSettings {
        max_batch: settings.max_batch,
        max_rounds_in_flight: settings.max_rounds_in_flight,
        queue_capacity: settings.queue_capacity,
        request_deadline: Duration::from_millis(settings.request_deadline_ms),
        turn: Duration::from_millis(bench_only.unwrap_or_default().turn_ms),
        fail_point: fail_point.map_err(|problem| BadSetting::new("fail_point", problem))?,
    })
}

struct Stores {
    guard: Arc<dyn Guard>,
    ledger: Arc<dyn Ledger>,
    description: String,
    embedded: bool,
}

async fn open_stores(settings: &Settings) -> Result<Stores, BadSetting> {
    let ledger_timeout = Duration::from_millis(settings.ledger_timeout_ms);
    let lease_time_limit = Duration::from_millis(settings.lease_time_limit_ms);
    if let (Some(redis_url), Some(database_url)) = (&settings.redis_url, &settings.database_url) {
        let guard = RedisGuard::connect(redis::Options {
            url: redis_url.clone(),
            max_connections: settings.redis_connections,
            timeout: Duration::from_millis(settings.redis_timeout_ms),
            lease_time_limit,
        });
        let ledger = PostgresLedger::connect(postgres::Options {
            url: database_url.clone(),
            max_connections: settings.database_connections,
            timeout: ledger_timeout,
        });
        return Ok(Stores {
            guard: Arc::new(guard.await.map_err(|error| unusable("redis_url", &error))?),
            ledger: Arc::new(ledger.await.map_err(|error| unusable("database_url", &error))?),
            description: "Leases are in Redis, orders in PostgreSQL.".to_owned(),
            embedded: false,
        });
    }
    let folder = settings.data_dir.clone();
    let shown = folder.display().to_string();
    let ledger = SqliteLedger::open(sqlite::Options { folder, timeout: ledger_timeout });
    Ok(Stores {
        guard: Arc::new(MemoryGuard::new(lease_time_limit)),
        ledger: Arc::new(ledger.await.map_err(|error| unusable("data_dir", &error))?),
        description: format!("Leases are in memory, orders in SQLite in {shown}/ (they survive a restart)."),
        embedded: true,
    })
}

fn unusable(setting: &str, error: &dyn Error) -> BadSetting {
    let advice = match setting {
        "data_dir" => "choose a folder that can be written to",
        _ => "check that the server runs and that the URL is right",
    };
    BadSetting::new(setting, format!("{}; {advice}", chain(error)))
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text.replace('\n', " ")
}

/// A newcomer finds something to buy.
async fn create_demo(sale: &Sale) -> Result<(), LedgerError> {
    if !sale.products(None, 1).await?.is_empty() {
        return Ok(());
    }
    let Ok(sku) = Sku::new(DEMO_SKU) else {
        return Ok(());
    };
    let demo = NewProduct {
        sku,
        name: ProductName("Demo".to_owned()),
        stock: Stock(DEMO_STOCK),
        segments: SegmentCount::default(),
        max_per_order: None,
        window: SaleWindow::default(),
    };
    sale.create_product(demo).await.map(|_created| ())
}
