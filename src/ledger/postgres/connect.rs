//! Opening the database: version, migrations, pool.

use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use super::PostgresLedger;
use super::pool::Pool;
use super::settle::Repetitions;

/// The oldest server that the statements are tested for, as `server_version_num` says it.
const OLDEST_VERSION: i32 = 130_000;

/// How to reach the database.
#[derive(Debug, Clone)]
pub struct Options {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// The most connections at a time.
    pub max_connections: u32,
    /// How long a statement, and the wait for a connection, may take.
    pub timeout: Duration,
}

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is not one.
    #[error("it is not a PostgreSQL URL")]
    Url(#[source] sqlx::Error),
    /// Nobody answers, or not as hoped.
    #[error("the server cannot be reached")]
    Unreachable(#[source] sqlx::Error),
    /// The server is too old.
    #[error("the server is PostgreSQL {0}, and 13 is the oldest supported version")]
    TooOld(String),
    /// The database cannot hold every customer's name.
    #[error("the database's encoding is {0}, and only UTF8 holds every customer id")]
    Encoding(String),
    /// The connections cannot be managed.
    #[error("the connection pool cannot be set up: {0}")]
    Pool(String),
    /// The schema cannot be brought up to date.
    #[error("the schema cannot be migrated")]
    Migration(#[source] MigrateError),
}

impl PostgresLedger {
    /// Connects, checks the version and brings the schema up to date. Instances that start together take turns.
    pub async fn connect(options: Options) -> Result<Self, ConnectError> {
        let connect: PgConnectOptions = options.url.parse().map_err(ConnectError::Url)?;
        prepare(&connect, options.timeout).await?;
        // Sooner than here, so that a statement that takes too long ends with an answer and not with a doubt.
        let timeout_ms = options.timeout.as_millis() * 4 / 5;
        // The server gives up too, so that a lost answer is not followed by a late commit.
        let settings = format!("SET statement_timeout = {timeout_ms}");
        let pool = Pool::new(connect, settings, options.max_connections as usize, options.timeout);
        let pool = pool.map_err(|error| ConnectError::Pool(error.to_string()))?;
        Ok(Self { pool, timeout: options.timeout, repetitions: Repetitions::default() })
    }
}

/// Checks the server on a connection of its own: a migration may take longer than a statement of the sale.
async fn prepare(connect: &PgConnectOptions, timeout: Duration) -> Result<(), ConnectError> {
    let timed_out = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
    let mut connection = tokio::time::timeout(timeout, PgConnection::connect_with(connect))
        .await
        .map_err(timed_out)
        .flatten()
        .map_err(ConnectError::Unreachable)?;
    let version: String = sqlx::query_scalar("SHOW server_version_num")
        .fetch_one(&mut connection)
        .await
        .map_err(ConnectError::Unreachable)?;
    check_version(&version)?;
    let encoding: String = sqlx::query_scalar("SHOW server_encoding")
        .fetch_one(&mut connection)
        .await
        .map_err(ConnectError::Unreachable)?;
    if encoding != "UTF8" {
        return Err(ConnectError::Encoding(encoding));
    }
    sqlx::migrate!("migrations/postgres").run(&mut connection).await.map_err(ConnectError::Migration)
}

fn check_version(server_version_num: &str) -> Result<(), ConnectError> {
    match server_version_num.parse::<i32>() {
        Ok(version) if version >= OLDEST_VERSION => Ok(()),
        _ => Err(ConnectError::TooOld(server_version_num.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_refused() {
        assert!(check_version("130000").is_ok());
        assert!(check_version("180001").is_ok());
        assert!(matches!(check_version("120022"), Err(ConnectError::TooOld(_))));
    }
}
