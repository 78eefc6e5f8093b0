//! A guard under test, and one segment that no other test touches.

use std::sync::Arc;
use std::time::Duration;

use deadpool_redis::redis::{AsyncCommands, AsyncConnectionConfig, Client};
use segstock::domain::invariants::GuardedStock;
use segstock::domain::{Epoch, Fence, ProductId, Reloaded, Segment, Sku};
use segstock::guard::memory::MemoryGuard;
use segstock::guard::redis::{Options, RedisGuard};
use segstock::guard::{Acquired, Ending, Guard, Lease, Token, Trust};
use tokio::sync::OnceCell;

use crate::harness::redis::Redis;
use crate::harness::wait::eventually;

/// A time limit that no test reaches.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A time limit that can be waited for, and that a busy machine does not lose by being slow.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// For anything that takes milliseconds on an idle machine, or one short time limit.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// A guard's own limit for one call, where its servers are to answer in time.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Memory,
    Redis,
}

impl Kind {
    /// A guard whose leases last that long, with a segment it has never seen.
    pub(super) async fn with(self, time_limit: Duration) -> Under {
        match self {
            Kind::Memory => {
                let guard = Arc::new(MemoryGuard::new(time_limit));
                Under::new(guard.clone(), Store::Memory(guard))
            }
            Kind::Redis => Under::redis(shared_redis().await, time_limit, TIMEOUT).await,
        }
    }
}

/// The Redis of all cases that leave it as it is, but for keys of their own.
async fn shared_redis() -> &'static Redis {
    // Never dropped: its watcher ends it together with this process.
    static SHARED: OnceCell<Redis> = OnceCell::const_new();
    SHARED.get_or_init(Redis::start).await
}

enum Store {
    Memory(Arc<MemoryGuard>),
    Redis(String),
}

/// See the module.
pub(super) struct Under {
    pub(super) guard: Arc<dyn Guard>,
    pub(super) segment: Segment,
    store: Store,
}

impl Under {
    /// A guard over this Redis, which gives up a call after `timeout`.
    pub(super) async fn redis(redis: &Redis, time_limit: Duration, timeout: Duration) -> Under {
        Under::redis_at(&redis.url(), time_limit, timeout).await
    }

    /// The same, by address.
    pub(super) async fn redis_at(url: &str, time_limit: Duration, timeout: Duration) -> Under {
        let options = Options { url: url.to_owned(), max_connections: 16, timeout, lease_time_limit: time_limit };
        let guard = RedisGuard::connect(options).await.expect("the test's Redis runs");
        Under::new(Arc::new(guard), Store::Redis(url.to_owned()))
    }

    fn new(guard: Arc<dyn Guard>, store: Store) -> Under {
        Under { guard, segment: unseen_segment(), store }
    }

    pub(super) async fn acquire(&self, token: &Token) -> Acquired {
        self.acquire_with(token, Trust::Count).await
    }

    pub(super) async fn acquire_with(&self, token: &Token, trust: Trust) -> Acquired {
        self.guard.acquire(&self.segment, token, trust).await.expect("the guard answers")
    }

    /// The lease, which must be free.
    pub(super) async fn lease(&self, token: &Token) -> Lease {
        leased(self.acquire(token).await)
    }

    /// The lease, as soon as whoever holds it has run out of time.
    pub(super) async fn lease_after_expiry(&self, token: &Token) -> Lease {
        eventually("the time limit passes", SOON, async || match self.acquire(token).await {
            Acquired::Leased(lease) => Some(lease),
            Acquired::Busy { .. } => None,
            Acquired::Empty => panic!("the segment was left dirty, and so is not empty"),
        })
        .await
    }

    /// Leaves the segment clean and free, with that many units.
    pub(super) async fn stock(&self, units: u64) {
        let token = Token::random();
        let mut lease = self.lease(&token).await;
        lease.reload(ledger_says(&lease, units)).await.expect("nobody else is there");
        lease.release(Ending::Clean { taken: 0 }).await.expect("nobody else is there");
    }

    /// The stock that a new lease sees.
    pub(super) async fn lease_and_release_dirty(&self) -> Option<u64> {
        let lease = self.lease(&Token::random()).await;
        let stock = lease.stock();
        lease.release(Ending::Dirty).await.expect("it is held");
        stock
    }

    pub(super) async fn inspect(&self) -> Option<GuardedStock> {
        self.guard.inspect(&self.segment).await.expect("the guard answers")
    }

    /// What somebody else's lease has left to run; panics where nobody holds the segment.
    pub(super) async fn busy_for(&self) -> Duration {
        match self.acquire(&Token::random()).await {
            Acquired::Busy { remaining } => remaining,
            other => panic!("nobody holds the segment: {other:?}"),
        }
    }

    /// Ends whatever lease there is without a word to its holder.
    pub(super) async fn take_lease_away(&self) {
        match &self.store {
            Store::Memory(guard) => guard.forget(),
            Store::Redis(url) => {
                // The crate's own half second is not enough on a busy machine.
                let config =
                    AsyncConnectionConfig::new().set_connection_timeout(Some(SOON)).set_response_timeout(Some(SOON));
                let mut connection = Client::open(url.as_str())
                    .expect("the harness writes valid addresses")
                    .get_multiplexed_async_connection_with_config(&config)
                    .await
                    .expect("the test's Redis runs");
                let removed: usize = connection.del(self.lock_key()).await.expect("it runs");
                assert_eq!(removed, 1, "there was a lease");
            }
        }
    }

    /// Written out, not taken from the program: other programs may rely on it.
    pub(super) fn lock_key(&self) -> String {
        format!("{}:lock", self.state_key())
    }

    pub(super) fn state_key(&self) -> String {
        let Segment { sku, index, .. } = &self.segment;
        format!("seg:{{{sku}:{index}}}")
    }
}

/// A segment that nobody has named before.
pub(super) fn unseen_segment() -> Segment {
    let sku = format!("guarded-{:016x}", rand::random::<u64>());
    Segment { product: ProductId(1), sku: Sku::new(&sku).expect("the alphabet is kept"), index: 7 }
}

/// What a ledger that has never been told of a fence answers to a reload.
pub(super) fn ledger_says(lease: &Lease, stock: u64) -> Reloaded {
    Reloaded { stock, fence: lease.fence().after_reload(Fence(0)), epoch: Epoch(0) }
}

pub(super) fn leased(acquired: Acquired) -> Lease {
    match acquired {
        Acquired::Leased(lease) => lease,
        other => panic!("the segment is free, and yet: {other:?}"),
    }
}
