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

    async fn recycle(&self, connection: &mut MultiplexedConnection, metrics: &Metrics) -> RecycleResult<RedisError> {
        if metrics.last_used() < FRESH {
            return Ok(());
        }
        self.0.recycle(connection, metrics).await
    }
}

/// Shared by all rounds. A connection is out for one command and no longer: a lease whose round waits for the ledger
/// holds none, so that neither a slow ledger nor a gathering of many segments can use them up.
pub(super) struct Pool(pub(super) managed::Pool<FreshManager>);

impl Pool {
    /// Runs a command; waits for a connection no longer than the pool's own timeouts.
    ///
    /// A connection that could not answer is taken out of the pool: its next answer may be a late one.
    pub(super) async fn run<T>(
        &self,
        command: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T, GuardError> {
        let mut connection = self.0.get().await.map_err(|error| match error {
            PoolError::Backend(error) => GuardError::new(error),
            other => GuardError::new(other.to_string()),
        })?;
        let outcome = command(&mut connection).await;
        if outcome.as_ref().is_err_and(|error| error.is_unrecoverable_error() || error.is_timeout()) {
            let _broken = Object::take(connection);
        }
        outcome.map_err(GuardError::new)
    }
}
