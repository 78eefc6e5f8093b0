//! The engine: sells products segment by segment.
//!
//! An order's way: [`Sale::order`] → the product's [`queue`] → a [`round`] (lease, fit, settle, release, answer). Beside it
//! stand the [`claim`] (what may be said from memory once nothing is left), the [`judge`] (who alone refuses for want of
//! stock), [`gather`] (orders larger than any segment) and [`replays`] (retries of what was sold). Knows no HTTP, no SQL
//! and no Redis: only the two ports.

mod audit;
mod batch;
mod catalog;
mod claim;
mod fail_point;
mod gather;
mod judge;
mod line;
mod on_sale;
mod outcome;
mod pace;
mod queue;
mod replays;
mod round;
mod rounds;
mod tenure;
mod waiting;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use uuid::Uuid;

pub use audit::AuditError;
pub use fail_point::FailPoint;
pub use outcome::{Outcome, Refusal};

use self::catalog::{Catalog, Counter};
use self::claim::FromMemory;
use self::on_sale::House;
use self::queue::Message;
use self::replays::{NoAnswer, Replays};
use self::waiting::{Asked, Place, Waiting};
use crate::domain::invariants::Violation;
use crate::domain::{
    CustomerId, Epoch, Fence, IdempotencyKey, NewProduct, Order, OrderKey, Product, Quantity, SegmentStock, Sku,
    split_stock,
};
use crate::guard::Guard;
use crate::ledger::{Ledger, LedgerError, OrderFilter, ProductTotals};

/// Calls that only look at the ledger, at a time.
const MOST_READS: usize = 3;

/// How the engine works.
#[derive(Debug)]
pub struct SaleSettings {
    /// The most orders that one lease serves.
    pub max_batch: usize,
    /// The most leases at a time in this process, of all products together.
    pub max_rounds_in_flight: usize,
    /// The most orders of one product that wait for their answer in this process.
    pub queue_capacity: usize,
    /// How long an order may wait for a round.
    pub request_deadline: Duration,
    /// How long every lease is kept at least: zero, but for the benchmark that shows what a slow lock costs.
    pub turn: Duration,
    /// Where a test ends the process.
    pub fail_point: Option<FailPoint>,
}

/// What a buyer asks for.
#[derive(Debug, Clone)]
pub struct OrderRequest {
    /// The product.
    pub sku: Sku,
    /// Units.
    pub quantity: Quantity,
    /// Who buys.
    pub customer_id: CustomerId,
    /// The client's name for this order: the same one gets the same order again.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A product with its stock.
#[derive(Debug, Clone)]
pub struct ProductStock {
    /// The product.
    pub product: Product,
    /// Its segments in index order.
    pub segments: Vec<SegmentStock>,
    /// Units in orders that are reserved and not confirmed.
    pub held: u64,
}

/// Everything that can be done with products and orders.
pub struct Sale {
    house: House,
    catalog: Catalog,
    replays: Replays,
    /// Turns for looking at products and orders: whoever only looks never takes the ledger away from the sale.
    reads: Arc<Semaphore>,
}

impl Sale {
    /// A sale over the given stores. Must be called within a Tokio runtime.
    pub fn new(ledger: Arc<dyn Ledger>, guard: Arc<dyn Guard>, settings: SaleSettings) -> Self {
        let turns = Arc::new(Semaphore::new(settings.max_rounds_in_flight));
        let house = House { ledger: Arc::clone(&ledger), guard, settings: Arc::new(settings), turns };
        Self {
            catalog: Catalog::new(house.clone()),
            replays: Replays::start(ledger),
            reads: Arc::new(Semaphore::new(MOST_READS)),
            house,
        }
    }

    /// Places an order. Answers within the request deadline, and the time of one round.
    pub async fn order(&self, request: OrderRequest) -> Outcome {
        let counter = match self.catalog.find(&request.sku).await {
            Ok(Some(counter)) => counter,
            Ok(None) => return Outcome::Refused(Refusal::UnknownProduct),
            Err(error) => {
                tracing::warn!(sku = %request.sku, error = &*error as &dyn std::error::Error, "a product could not be read");
                return Outcome::Refused(Refusal::Unavailable);
            }
        };
        let on_sale = &counter.on_sale;
        if let Some(refusal) = on_sale.too_large(request.quantity) {
            return on_sale.refuse(refusal);
        }
        let asked = Asked {
            key: request.idempotency_key.map(|key| OrderKey::of_request(&request.customer_id, &key)),
            quantity: request.quantity,
            customer_id: request.customer_id,
        };
        let now = Instant::now();
        let verdict = match on_sale.closed() {
            // Nobody has an order before the sale has begun.
            Some(refusal @ Refusal::NotStarted { .. }) => FromMemory::Refuse(refusal),
            Some(refusal) if asked.key.is_none() => FromMemory::Refuse(refusal),
            Some(refusal) => FromMemory::RefuseUnlessKnown(refusal),
            None => {
                let (verdict, refresh) = on_sale.claim.consult(&asked, now);
                if refresh {
                    // A queue that is gone is noticed by the next order that is tried.
                    let _gone = counter.messages.send(Message::Refresh);
                }
                verdict
            }
        };
        match verdict {
            FromMemory::Refuse(refusal) => on_sale.refuse(refusal),
            FromMemory::RefuseUnlessKnown(refusal) => self.refuse_unless_known(&counter, asked, refusal).await,
            FromMemory::Try => self.enqueue(&counter, asked, now).await,
        }
    }

    /// Waits in the product's queue.
    async fn enqueue(&self, counter: &Arc<Counter>, asked: Asked, now: Instant) -> Outcome {
        let on_sale = &counter.on_sale;
        let Some(place) = Place::take(&counter.places, self.house.settings.queue_capacity) else {
            return on_sale.refuse(Refusal::Overloaded);
        };
        let deadline = now + self.house.settings.request_deadline;
        let (waiting, answer) = Waiting::new(asked, deadline, place);
        if counter.messages.send(Message::Order(waiting)).is_err() {
            self.catalog.forget(counter);
            return on_sale.refuse(Refusal::Unavailable);
        }
        // Only a queue that broke down drops an order without an answer, and the order may have been settled.
        answer.await.unwrap_or_else(|_| on_sale.refuse(Refusal::OutcomeUnknown))
    }

    /// A request that cannot be served gets the order that it was served with before, if there is one.
    async fn refuse_unless_known(&self, counter: &Counter, asked: Asked, refusal: Refusal) -> Outcome {
        let on_sale = &counter.on_sale;
        let Some(key) = asked.key else {
            return on_sale.refuse(refusal);
        };
        match self.replays.find(key, self.house.settings.request_deadline).await {
            Ok(Some(known)) => on_sale.count(asked.repetition(&on_sale.product.sku, known)),
            Ok(None) => on_sale.refuse(refusal),
            Err(NoAnswer::Overloaded) => on_sale.refuse(Refusal::Overloaded),
            Err(NoAnswer::Unavailable) => on_sale.refuse(Refusal::Unavailable),
        }
    }

    /// Creates a product; `None` when the SKU is taken.
    pub async fn create_product(&self, new: NewProduct) -> Result<Option<ProductStock>, LedgerError> {
        let Some(product) = self.house.ledger.create_product(&new).await? else {
            return Ok(None);
        };
        self.catalog.add(product.clone()).await;
        let shares = split_stock(new.stock.0, new.segments.0).zip(0u16..);
        let untouched =
            |(allotted, index)| SegmentStock { index, allotted, taken: 0, fence: Fence(0), epoch: Epoch(0) };
        Ok(Some(ProductStock { product, segments: shares.map(untouched).collect(), held: 0 }))
    }

    /// A product with its stock, as the ledger has it now.
    pub async fn product(&self, sku: &Sku) -> Result<Option<ProductStock>, LedgerError> {
        let sku = sku.clone();
        self.look(async move |ledger| {
            let Some(product) = ledger.product(&sku).await? else {
                return Ok(None);
            };
            Ok(Some(ProductStock {
                segments: ledger.segments(product.id).await?,
                held: ledger.held(product.id).await?,
                product,
            }))
        })
        .await
    }

    /// Up to `limit` products in SKU order, those after `after`.
    pub async fn products(&self, after: Option<&Sku>, limit: u32) -> Result<Vec<ProductTotals>, LedgerError> {
        let after = after.cloned();
        self.look(async move |ledger| ledger.products(after.as_ref(), limit).await).await
    }

    /// The order with this id.
    pub async fn find_order(&self, id: Uuid) -> Result<Option<Order>, LedgerError> {
        self.look(async move |ledger| ledger.order(id).await).await
    }

    /// Orders in order of time.
    pub async fn orders(&self, filter: OrderFilter) -> Result<Vec<Order>, LedgerError> {
        self.look(async move |ledger| ledger.orders(&filter).await).await
    }

    /// Looks at the ledger when it is one's turn.
    async fn look<T, W>(&self, work: impl FnOnce(Arc<dyn Ledger>) -> W + Send + 'static) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, LedgerError>> + Send,
    {
        let (reads, ledger) = (Arc::clone(&self.reads), Arc::clone(&self.house.ledger));
        to_the_end(async move {
            let _turn = reads.acquire().await;
            work(ledger).await
        })
        .await
    }

    /// Checks INV-1 to INV-6 of a product; `answered` are orders that were answered 201. `None` without such a product.
    pub async fn audit(&self, sku: &Sku, answered: &[Uuid]) -> Result<Option<Vec<Violation>>, AuditError> {
        match self.house.ledger.product(sku).await? {
            Some(product) => audit::audit(&self.house, &product, answered).await.map(Some),
            None => Ok(None),
        }
    }

    /// Which of the stores answer.
    pub async fn health(&self) -> Health {
        let House { ledger, guard, .. } = self.house.clone();
        to_the_end(async move {
            let (ledger, guard) = tokio::join!(ledger.ping(), guard.ping());
            Health { ledger: ledger.is_ok(), guard: guard.is_ok() }
        })
        .await
    }

    /// Takes no new orders, finishes those that wait, gives every lease back, and closes the ledger.
    pub async fn close(&self) {
        self.catalog.close().await;
        self.house.ledger.close().await;
    }
}

/// Does the work in a task of its own. Dropped half-way, because a client hung up, a statement would go on in the ledger
/// without a connection or a turn that counts it, and clients that hang up again and again could fill the ledger.
async fn to_the_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime goes down, and the caller with it.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}

/// Which of the stores answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// The ledger does.
    pub ledger: bool,
    /// The guard does.
    pub guard: bool,
}
