//! Connections to Redis, kept by deadpool.

use std::time::Duration;

use deadpool::managed::{self, Metrics, Object, PoolError, RecycleResult};
use deadpool_redis::Manager;
use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{RedisError, RedisResult};

use crate::guard::GuardError;

/// A connection that was used within this time is not asked whether it lives.
const FRESH: Duration = Duration::from_secs(5);

/// deadpool-redis with one difference: its manager sends a PING at every checkout of a used connection, which would
/// make a third trip of every round. A connection that failed is thrown away on the spot instead.
pub(super) struct FreshManager(pub(super) Manager);

impl managed::Manager for FreshManager {
    type Type = MultiplexedConnection;
    type Error = RedisError;

    async fn create(&self) -> Result<MultiplexedConnection, RedisError> {
        self.0.create().await
    }

    async fn recycle(
        &self,
        connection: &mut MultiplexedConnection,
        metrics: &Metrics,
    ) -> RecycleResult<RedisError> {
        if metrics.last_used() < FRESH {
            return Ok(());
        }
        self.0.recycle(connection, metrics).await
    }
}

/// Shared by all rounds.
#[derive(Clone)]
pub(super) struct Pool(pub(super) managed::Pool<FreshManager>);

impl Pool {
    /// Checks a connection out; waits no longer than the pool's own timeouts.
    pub(super) async fn get(&self) -> Result<Checkout, GuardError> {
        let object = self.0.get().await.map_err(|error| match error {
            PoolError::Backend(error) => GuardError::new(error),
            other => GuardError::new(other.to_string()),
        })?;
        Ok(Checkout(Some(object)))
    }
}

/// One connection, until it is dropped or fails.
pub(super) struct Checkout(Option<Object<FreshManager>>);

impl Checkout {
    /// Runs a command. A connection that could not answer is taken out of the pool: its next answer may be a late one.
    pub(super) async fn run<T>(
        &mut self,
        command: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T, GuardError> {
        let Some(object) = &mut self.0 else {
            return Err(GuardError::new("the connection was lost"));
        };
        let outcome = command(object).await;
        if outcome
            .as_ref()
            .is_err_and(|error| error.is_unrecoverable_error() || error.is_timeout())
        {
            self.0.take().map(Object::take);
        }
        outcome.map_err(GuardError::new)
    }
}
