//! A ledger under test, a second way to what it keeps, and what the cases put into it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use segstock::domain::invariants::{self, Evidence};
use segstock::domain::{
    CustomerId, Epoch, Fence, IdempotencyKey, NewOrder, NewProduct, OrderKey, Product, ProductName, Quantity,
    SaleWindow, Segment, SegmentCount, SegmentStock, Sku, Stock,
};
use segstock::ledger::postgres::{self, PostgresLedger};
use segstock::ledger::sqlite::{self, SqliteLedger};
use segstock::ledger::{Ledger, Settled, Settlement};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use uuid::Uuid;

use crate::harness::postgres::{Database, Postgres};
use crate::harness::scratch::Scratch;

/// For anything that takes milliseconds on an idle machine.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// The ledger's own limit for a call, where its store is to answer in time.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// A fence to settle under where the fence does not matter.
pub(super) const FENCE: Fence = Fence(5);

/// See the module.
pub(super) struct Store {
    pub(super) ledger: Arc<dyn Ledger>,
    kept_in: KeptIn,
}

enum KeptIn {
    Postgres(Database),
    Sqlite(Scratch),
}

impl Store {
    /// A new database in the Postgres that all tests share.
    pub(super) async fn postgres() -> Store {
        let database = Postgres::shared().await.database().await;
        let ledger = open_postgres(database.url(), 8, TIMEOUT).await;
        Store { ledger: Arc::new(ledger), kept_in: KeptIn::Postgres(database) }
    }

    /// A new folder.
    pub(super) async fn sqlite() -> Store {
        let folder = Scratch::new();
        let ledger = open_sqlite(&folder, TIMEOUT).await;
        Store { ledger: Arc::new(ledger), kept_in: KeptIn::Sqlite(folder) }
    }

    /// Runs SQL past the ledger, as an operator does by hand.
    pub(super) async fn by_hand(&self, sql: &'static str) {
        match &self.kept_in {
            KeptIn::Postgres(database) => {
                let done = sqlx::raw_sql(sql).execute(database.pool()).await;
                done.expect("the statement is right");
            }
            KeptIn::Sqlite(folder) => {
                let mut connection = sqlite_by_hand(folder).await;
                let done = sqlx::raw_sql(sql).execute(&mut connection).await;
                done.expect("the statement is right");
                connection.close().await.expect("it closes");
            }
        }
    }

    /// Lets every change of a segment's `taken` fail, until [`Store::heal`].
    pub(super) async fn break_taking(&self) {
        match &self.kept_in {
            KeptIn::Postgres(_) => {
                self.by_hand(
                    "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql
                         AS $$ BEGIN RAISE 'broken by the test'; END $$;
                     CREATE TRIGGER broken BEFORE UPDATE OF taken ON segments
                         FOR EACH ROW EXECUTE FUNCTION broken()",
                )
                .await;
            }
            KeptIn::Sqlite(_) => {
                self.by_hand(
                    "CREATE TRIGGER broken BEFORE UPDATE OF taken ON segments
                     BEGIN SELECT RAISE(ABORT, 'broken by the test'); END",
                )
                .await;
            }
        }
    }

    pub(super) async fn heal(&self) {
        match &self.kept_in {
            KeptIn::Postgres(_) => self.by_hand("DROP TRIGGER broken ON segments").await,
            KeptIn::Sqlite(_) => self.by_hand("DROP TRIGGER broken").await,
        }
    }

    /// A new product with a SKU of its own.
    pub(super) async fn product(&self, stock: u64, segments: u16) -> Product {
        let sku = format!("settled-{:016x}", rand::random::<u64>());
        create(&*self.ledger, &new_product(&sku, stock, segments)).await
    }

    /// Settles and expects an outcome, good or bad.
    pub(super) async fn settle(&self, segment: &Segment, fence: Fence, orders: &[NewOrder]) -> Settled {
        settle(&*self.ledger, segment, fence, orders).await
    }

    /// Everything that the ledger holds of a product; equal when nothing was changed.
    pub(super) async fn picture(&self, product: &Product) -> Picture {
        let sums = self.ledger.order_sums(product.id).await.expect("it reads");
        let mut live_units = sums.live_units;
        live_units.sort_unstable();
        Picture {
            segments: self.segments(product).await,
            live_units,
            repeated_keys: sums.repeated_keys,
            orders: order_ids(&*self.ledger, product).await,
        }
    }

    pub(super) async fn segments(&self, product: &Product) -> Vec<SegmentStock> {
        self.ledger.segments(product.id).await.expect("it reads")
    }

    /// Units in live orders, by segment index.
    pub(super) async fn taken(&self, product: &Product) -> Vec<u64> {
        let segments = self.segments(product).await;
        segments.iter().map(|segment| segment.taken).collect()
    }

    /// Fails unless the product's units are all accounted for (INV-1, INV-2, INV-4).
    pub(super) async fn assert_sound(&self, product: &Product) {
        assert_sound(&*self.ledger, product).await;
    }
}

/// See [`Store::picture`].
#[derive(Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) segments: Vec<SegmentStock>,
    pub(super) live_units: Vec<(u16, u64)>,
    repeated_keys: u64,
    pub(super) orders: BTreeSet<Uuid>,
}

pub(super) async fn open_postgres(url: &str, max_connections: u32, timeout: Duration) -> PostgresLedger {
    let options = postgres::Options { url: url.to_owned(), max_connections, timeout };
    PostgresLedger::connect(options).await.expect("the test's Postgres runs")
}

pub(super) async fn open_sqlite(folder: &Scratch, timeout: Duration) -> SqliteLedger {
    let options = sqlite::Options { folder: folder.path().to_owned(), timeout };
    SqliteLedger::open(options).await.expect("the test's folder is writable")
}

/// A connection that knows nothing of the ledger.
pub(super) async fn sqlite_by_hand(folder: &Scratch) -> sqlx::SqliteConnection {
    SqliteConnectOptions::new()
        .filename(folder.join(SqliteLedger::FILE))
        .busy_timeout(SOON)
        .connect()
        .await
        .expect("the file is there")
}

pub(super) fn new_product(sku: &str, stock: u64, segments: u16) -> NewProduct {
    NewProduct {
        sku: Sku::new(sku).expect("the alphabet is kept"),
        name: ProductName(format!("The {sku}")),
        stock: Stock(stock),
        segments: SegmentCount(segments),
        max_per_order: None,
        window: SaleWindow::default(),
    }
}

pub(super) async fn create(ledger: &dyn Ledger, new: &NewProduct) -> Product {
    let created = ledger.create_product(new).await.expect("it writes");
    created.expect("the SKU is free")
}

pub(super) fn segment(product: &Product, index: u16) -> Segment {
    Segment { product: product.id, sku: product.sku.clone(), index }
}

pub(super) fn units(units: u64) -> Quantity {
    Quantity::new(units).expect("a quantity")
}

pub(super) fn customer(name: &str) -> CustomerId {
    CustomerId::try_from(name.to_owned()).expect("a customer id")
}

/// An order without an idempotency key.
pub(super) fn order(name: &str, quantity: u64) -> NewOrder {
    let (id, customer_id) = (Uuid::now_v7(), customer(name));
    NewOrder { id, quantity: units(quantity), key: OrderKey::of_id(&customer_id, id), customer_id }
}

/// An order with an idempotency key.
pub(super) fn keyed_order(name: &str, key: &str, quantity: u64) -> NewOrder {
    let key = IdempotencyKey::parse(key.as_bytes()).expect("a key");
    NewOrder { key: OrderKey::of_request(&customer(name), &key), ..order(name, quantity) }
}

pub(super) fn ids(orders: &[NewOrder]) -> BTreeSet<Uuid> {
    orders.iter().map(|order| order.id).collect()
}

pub(super) fn settlement<'a>(segment: &'a Segment, fence: Fence, orders: &'a [NewOrder]) -> Settlement<'a> {
    Settlement { segment, fence, epoch: Epoch(0), orders }
}

pub(super) async fn settle(ledger: &dyn Ledger, segment: &Segment, fence: Fence, orders: &[NewOrder]) -> Settled {
    let settlement = settlement(segment, fence, orders);
    let settled = ledger.settle(&settlement).await;
    settled.expect("the store answers")
}

/// All orders went in.
pub(super) fn all_new() -> Settled {
    Settled::Committed { already_known: Vec::new() }
}

/// The ids of a committed batch that were not inserted.
pub(super) fn already_known(settled: Settled) -> BTreeSet<Uuid> {
    match settled {
        Settled::Committed { already_known } => already_known.into_iter().collect(),
        Settled::Refused => panic!("the lease is good, and the units are there"),
    }
}

/// The ids of all orders of a product.
pub(super) async fn order_ids(ledger: &dyn Ledger, product: &Product) -> BTreeSet<Uuid> {
    let all = ledger.order_keys(product.id, None, 1_000_000).await;
    let all = all.expect("it reads");
    all.into_iter().map(|(id, _)| id).collect()
}

pub(super) async fn assert_sound(ledger: &dyn Ledger, product: &Product) {
    let sums = ledger.order_sums(product.id).await.expect("it reads");
    let evidence = Evidence {
        segments: ledger.segments(product.id).await.expect("it reads"),
        live_units: sums.live_units,
        repeated_keys: sums.repeated_keys,
        ..Evidence::default()
    };
    assert_eq!(invariants::check(&evidence), []);
}
