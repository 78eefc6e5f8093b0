//! The products that this process sells, found by SKU without asking anybody.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use moka::future::Cache;
use papaya::HashMap;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::on_sale::{House, OnSale};
use super::queue::{Message, Queue};
use super::to_the_end;
use crate::domain::{Product, Sku};
use crate::ledger::LedgerError;

/// How long a SKU that the ledger does not know is taken to be unknown: so long may another instance's new product stay
/// hidden from one that was asked for it before.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);
/// Unknown SKUs remembered: whoever asks for others costs the ledger a question each.
const MOST_UNKNOWN: u64 = 10_000;

/// A product and the way to its queue.
pub(super) struct Counter {
    pub(super) on_sale: Arc<OnSale>,
    pub(super) messages: mpsc::UnboundedSender<Message>,
    /// Orders that wait for an answer.
    pub(super) places: Arc<AtomicUsize>,
}

/// All products that this process has been asked for.
pub(super) struct Catalog {
    house: House,
    known: HashMap<Sku, Arc<Counter>>,
    /// Looks products up, one question a SKU, and remembers for a moment that there was none.
    lookups: Cache<Sku, Option<Product>>,
    queues: TaskTracker,
    stop: CancellationToken,
}

impl Catalog {
    pub(super) fn new(house: House) -> Self {
        Self {
            house,
            known: HashMap::new(),
            lookups: Cache::builder().max_capacity(MOST_UNKNOWN).time_to_live(UNKNOWN_FOR).build(),
            queues: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// The product's counter; `None` when there is no such product.
    pub(super) async fn find(&self, sku: &Sku) -> Result<Option<Arc<Counter>>, Arc<LedgerError>> {
        if let Some(counter) = self.known.pin().get(sku) {
            return Ok(Some(Arc::clone(counter)));
        }
        let (ledger, wanted) = (Arc::clone(&self.house.ledger), sku.clone());
        let lookup = to_the_end(async move { ledger.product(&wanted).await });
        let product = self.lookups.try_get_with_by_ref(sku, lookup).await?;
        Ok(product.map(|product| self.open(product)))
    }

    /// Starts to sell a product that was just created here.
    pub(super) async fn add(&self, product: Product) {
        self.lookups.invalidate(&product.sku).await;
        self.open(product);
    }

    /// Starts a product's queue, unless somebody was faster.
    fn open(&self, product: Product) -> Arc<Counter> {
        let known = self.known.pin();
        Arc::clone(known.get_or_insert_with(product.sku.clone(), || {
            let on_sale = Arc::new(OnSale::new(product, self.house.clone()));
            let (messages, inbox) = mpsc::unbounded_channel();
            self.queues.spawn(Queue::new(Arc::clone(&on_sale)).run(inbox, self.stop.clone()));
            Arc::new(Counter { on_sale, messages, places: Arc::default() })
        }))
    }

    /// Forgets a product whose queue is gone, so that the next request starts a new one.
    pub(super) fn forget(&self, gone: &Arc<Counter>) {
        if !self.stop.is_cancelled() {
            let sku = &gone.on_sale.product.sku;
            let _newer = self.known.pin().remove_if(sku, |_, counter| Arc::ptr_eq(counter, gone));
        }
    }

    /// Lets the queues finish what they have, and waits until all leases are given back.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.queues.close();
        self.queues.wait().await;
    }
}
