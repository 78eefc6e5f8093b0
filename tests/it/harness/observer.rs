//! Someone who looks at the stores while nobody sells: the audit, and the ledger's own numbers.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use segstock::domain::{OrderStatus, Sku};
use segstock::guard::Guard;
use segstock::guard::memory::MemoryGuard;
use segstock::guard::redis::{self, RedisGuard};
use segstock::ledger::postgres::{self, PostgresLedger};
use segstock::ledger::sqlite::{self, SqliteLedger};
use segstock::ledger::{Ledger, OrderFilter};
use segstock::sale::{Sale, SaleSettings};
use uuid::Uuid;

/// Far beyond what a loaded machine needs.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A view of the stores that belongs to no instance.
pub(crate) struct Observer {
    ledger: Arc<dyn Ledger>,
    sale: Sale,
}

impl Observer {
    pub(crate) async fn of(redis_url: &str, database_url: &str) -> Observer {
        let guard = RedisGuard::connect(redis::Options {
            url: redis_url.to_owned(),
            max_connections: 2,
            timeout: TIMEOUT,
            lease_time_limit: TIMEOUT,
        });
        let ledger = PostgresLedger::connect(postgres::Options {
            url: database_url.to_owned(),
            max_connections: 2,
            timeout: TIMEOUT,
        });
        let ledger = Arc::new(ledger.await.expect("Postgres answers"));
        let guard = Arc::new(guard.await.expect("Redis answers"));
        Observer::new(ledger, guard)
    }

    /// Of an embedded instance, which may be running: its leases are in its own memory and out of sight.
    pub(crate) async fn of_embedded(data_folder: &Path) -> Observer {
        let ledger = SqliteLedger::open(sqlite::Options { folder: data_folder.to_owned(), timeout: TIMEOUT });
        let ledger = Arc::new(ledger.await.expect("the file can be read"));
        Observer::new(ledger, Arc::new(MemoryGuard::new(TIMEOUT)))
    }

    fn new(ledger: Arc<dyn Ledger>, guard: Arc<dyn Guard>) -> Observer {
        let settings = SaleSettings {
            max_batch: 1,
            max_rounds_in_flight: 1,
            turn: Duration::ZERO,
            queue_capacity: 1,
            request_deadline: TIMEOUT,
            fail_point: None,
        };
        let sale = Sale::new(Arc::clone(&ledger), guard, settings);
        Observer { ledger, sale }
    }

    /// Panics with every promise that is broken: INV-1 to INV-6.
    pub(crate) async fn audit(&self, sku: &str, answered: &[Uuid]) {
        let sku = Sku::new(sku).expect("a SKU");
        let violations = self.sale.audit(&sku, answered).await.expect("the stores answer");
        let violations = violations.expect("the product exists");
        assert!(violations.is_empty(), "broken promises: {violations:#?}");
    }

    /// Units that the ledger has left, over all segments.
    pub(crate) async fn available(&self, sku: &str) -> u64 {
        let sku = Sku::new(sku).expect("a SKU");
        let stock = self.sale.product(&sku).await.expect("the ledger answers");
        let stock = stock.expect("the product exists");
        stock.segments.iter().map(|segment| segment.available()).sum()
    }

    /// The ids and the units of all confirmed orders of a product.
    pub(crate) async fn orders(&self, sku: &str) -> (HashSet<Uuid>, u64) {
        let filter = OrderFilter {
            sku: Some(Sku::new(sku).expect("a SKU")),
            status: Some(OrderStatus::Confirmed),
            limit: 1_000_000,
            ..OrderFilter::default()
        };
        let orders = self.ledger.orders(&filter).await.expect("the ledger answers");
        let units = orders.iter().map(|order| order.quantity.units()).sum();
        (orders.into_iter().map(|order| order.id).collect(), units)
    }
}
