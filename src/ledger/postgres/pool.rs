//! Connections to PostgreSQL, kept by deadpool.
//!
//! sqlx's own pool asks a connection whether it lives whenever it comes back: one more trip for each statement. Here a
//! connection comes back only after an answer, and then it lives.

use std::time::Duration;

use deadpool::managed::{
    self, Metrics, Object, PoolConfig, PoolError, QueueMode, RecycleError, RecycleResult, Timeouts,
};
use deadpool::{Runtime, managed::BuildError};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Executor, PgConnection};

/// A connection that was used within this time is not asked whether it lives.
const FRESH: Duration = Duration::from_secs(5);
/// One that was not used for longer is not worth asking: something on the way may have forgotten it.
const STALE: Duration = Duration::from_secs(60);

/// Opens connections.
struct Manager {
    connect: PgConnectOptions,
    /// `SET` for every new connection.
    settings: String,
}

impl managed::Manager for Manager {
    type Type = PgConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect_with(&self.connect).await?;
        connection.execute(sqlx::AssertSqlSafe(self.settings.clone())).await?;
        Ok(connection)
    }

    async fn recycle(&self, connection: &mut PgConnection, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if metrics.last_used() < FRESH {
            return Ok(());
        }
        if metrics.last_used() > STALE {
            return Err(RecycleError::message("not used for long"));
        }
        connection.ping().await.map_err(RecycleError::Backend)
    }
}

/// Shared by everything that asks the ledger.
pub(super) struct Pool(managed::Pool<Manager>);

impl Pool {
    /// Up to `max_connections`, opened when they are needed; nobody waits for one longer than `timeout`.
    pub(super) fn new(
        connect: PgConnectOptions,
        settings: String,
        max_connections: usize,
        timeout: Duration,
    ) -> Result<Self, BuildError> {
        let timeouts = Timeouts { wait: Some(timeout), create: Some(timeout), recycle: Some(timeout / 5) };
        // The one that was used last is the one that is warm.
        let config = PoolConfig { max_size: max_connections, timeouts, queue_mode: QueueMode::Lifo };
        let pool = managed::Pool::builder(Manager { connect, settings }).config(config).runtime(Runtime::Tokio1);
        pool.build().map(Self)
    }

    pub(super) async fn checkout(&self) -> Result<Checkout, sqlx::Error> {
        let connection = self.0.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Closed => sqlx::Error::PoolClosed,
            _ => sqlx::Error::PoolTimedOut,
        })?;
        Ok(Checkout { connection: Some(connection), answered: false })
    }

    /// A connection broke down: the server has gone away, and the other connections with it.
    pub(super) fn distrust(&self) {
        self.0.retain(|_, _| false);
    }

    pub(super) fn close(&self) {
        self.0.close();
    }
}

/// A connection in use. Dropped before [`Checkout::answered`], it is closed: whoever had it next would get the answer that
/// was meant for somebody else.
pub(super) struct Checkout {
    connection: Option<Object<Manager>>,
    answered: bool,
}

impl Checkout {
    pub(super) fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        self.connection.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    /// The server has said how it ended.
    pub(super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        if !self.answered {
            let _closed = self.connection.take().map(Object::take);
        }
    }
}
