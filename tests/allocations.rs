//! How many allocations an answer takes, through the real router and without a server.
//!
//! Counted, not timed: the numbers are the same on every machine, but for a few that depend on how threads meet. What
//! SQLite allocates in C is not seen. A binary of its own, because whoever allocates in this process is counted.

use std::alloc::System;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use metrics_exporter_prometheus::PrometheusHandle;
use segstock::domain::{NewProduct, ProductName, SaleWindow, SegmentCount, Sku, Stock};
use segstock::guard::memory::MemoryGuard;
use segstock::http::{Api, router};
use segstock::ledger::sqlite::{Options, SqliteLedger};
use segstock::sale::{Sale, SaleSettings};
use segstock::telemetry::metrics;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};
use tower::ServiceExt;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations, and enlargements of what was allocated, that one sold-out answer took when this was last changed.
const SOLD_OUT: f64 = 59.0;
/// The same of one order that is placed alone, a batch of its own; most of them are the ledger's.
const PLACED: f64 = 113.0;
/// How much more than that is let pass: a look into the ledger in between, and threads that meet otherwise.
const LEEWAY: f64 = 1.1;

const REQUESTS: usize = 1000;
/// After so many requests every segment is known and every buffer has its size.
const WARM_UP: usize = 300;

/// Far beyond what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The whole service in this process, without a listener.
struct Shop {
    sale: Arc<Sale>,
    router: Router,
    // After the sale, which has its file in it: fields are dropped in this order.
    _folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Shop {
    /// Waits for its turn: two shops at a time would be counted together.
    async fn open(stock: u64) -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        static METRICS: LazyLock<PrometheusHandle> = LazyLock::new(|| metrics::install().expect("nobody else has"));
        let turn = TURN.lock().await;
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let ledger = SqliteLedger::open(Options { folder: folder.path().to_owned(), timeout: PATIENCE });
        let ledger = ledger.await.expect("the folder is writable");
        let settings = SaleSettings {
            max_batch: 1000,
            max_rounds_in_flight: 2,
            turn: Duration::ZERO,
            queue_capacity: 1000,
            request_deadline: PATIENCE,
            fail_point: None,
        };
        let sale = Arc::new(Sale::new(Arc::new(ledger), Arc::new(MemoryGuard::new(PATIENCE)), settings));
        let product = NewProduct {
            sku: Sku::new("lamp").expect("a SKU"),
            name: ProductName("Lamp".to_owned()),
            stock: Stock(stock),
            segments: SegmentCount::default(),
            max_per_order: None,
            window: SaleWindow::default(),
        };
        sale.create_product(product).await.expect("the ledger answers").expect("the SKU is new");
        let router = router(Api::new(Arc::clone(&sale), METRICS.clone(), None), false);
        Self { sale, router, _folder: folder, _turn: turn }
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let Ok(response) = self.router.clone().oneshot(request).await;
        response
    }

    /// Allocations per request, for so many that are all answered alike.
    async fn count(&self, name: &str, expected: StatusCode) -> f64 {
        for number in 0..WARM_UP {
            let response = self.answer(order(&format!("early-{name}-{number}"))).await;
            assert_eq!(response.status(), expected);
        }
        // Put together before anybody counts: a server would have read them into buffers that it has.
        let requests: Vec<_> = (0..REQUESTS).map(|number| order(&format!("{name}-{number}"))).collect();
        let counted = Region::new(ALLOCATOR);
        for request in requests {
            let response = self.answer(request).await;
            assert_eq!(response.status(), expected);
        }
        let taken = counted.change();
        (taken.allocations + taken.reallocations) as f64 / REQUESTS as f64
    }
}

/// An order of one unit as shops send it, with a key.
fn order(key: &str) -> Request<Body> {
    let request = Request::post("/orders").header("content-type", "application/json").header("idempotency-key", key);
    let body = r#"{"sku":"lamp","quantity":1,"customer_id":"customer-4711"}"#;
    request.body(body.into()).expect("it is well-formed")
}

#[track_caller]
fn assert_about(what: &str, constant: &str, measured: f64, expected: f64) {
    assert!(
        measured <= expected * LEEWAY,
        "{what} takes {measured:.1} allocations, and took {expected:.1} before. That is paid thousands of times a \
         second: find the new ones or, if they are worth it, set {constant} in tests/allocations.rs to {measured:.1}."
    );
}

#[tokio::test]
async fn a_sold_out_answer_allocates_no_more_than_before() {
    let shop = Shop::open(1).await;
    assert_eq!(shop.answer(order("winner")).await.status(), StatusCode::CREATED);
    let measured = shop.count("late", StatusCode::CONFLICT).await;
    shop.sale.close().await;
    assert_about("A sold-out answer", "SOLD_OUT", measured, SOLD_OUT);
}

#[tokio::test]
async fn a_placed_order_allocates_no_more_than_before() {
    let shop = Shop::open(1_000_000).await;
    let measured = shop.count("buyer", StatusCode::CREATED).await;
    shop.sale.close().await;
    assert_about("A placed order", "PLACED", measured, PLACED);
}
