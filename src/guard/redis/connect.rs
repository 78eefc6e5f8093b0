//! Reaching Redis: address, timeouts, version.

use std::time::Duration;

use deadpool::Runtime;
use deadpool_redis::Manager;
use deadpool_redis::redis::io::tcp::TcpSettings;
use deadpool_redis::redis::{self, AsyncConnectionConfig, ConnectionInfo, InfoDict, IntoConnectionInfo, RedisError};

use super::pool::{FreshManager, Pool};
use super::{Redis, RedisGuard, Scripts};
use std::sync::Arc;

/// The oldest server that the scripts are tested for.
const OLDEST_VERSION: (u32, u32) = (6, 2);

/// How to reach Redis.
#[derive(Debug, Clone)]
pub struct Options {
    /// `redis://user:password@host:port/database`.
    pub url: String,
    /// The most connections at a time.
    pub max_connections: usize,
    /// How long a command, a new connection, and the wait for one of the pool's, may take.
    pub timeout: Duration,
    /// How long a lease lasts unless it is renewed.
    pub lease_time_limit: Duration,
}

/// Why Redis cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is not one.
    #[error("it is not a Redis URL")]
    Url(#[source] RedisError),
    /// Nobody answers, or not as hoped.
    #[error("the server cannot be reached")]
    Unreachable(#[source] super::GuardError),
    /// The server is too old.
    #[error("the server is Redis {0}, and 6.2 is the oldest supported version")]
    TooOld(String),
    /// The server is part of a cluster.
    #[error("the server is a node of a Redis Cluster, and only a single Redis is supported")]
    Cluster,
}

impl RedisGuard {
    /// Connects and checks the version.
    pub async fn connect(options: Options) -> Result<Self, ConnectError> {
        let info: ConnectionInfo = options.url.as_str().into_connection_info().map_err(ConnectError::Url)?;
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let timeouts = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(options.timeout))
            .set_response_timeout(Some(options.timeout));
        let manager = Manager::new_with_config(info, timeouts).map_err(ConnectError::Url)?;
        let pool = deadpool::managed::Pool::builder(FreshManager(manager))
            .max_size(options.max_connections)
            .wait_timeout(Some(options.timeout))
            .create_timeout(Some(options.timeout))
            .recycle_timeout(Some(options.timeout))
            .runtime(Runtime::Tokio1)
            .build();
        // Only a pool with timeouts and without a runtime cannot be built.
        let pool = Pool(pool.map_err(|error| ConnectError::Unreachable(super::GuardError::new(error)))?);

        let server: InfoDict = pool
            .run(async |connection| redis::cmd("INFO").query_async(connection).await)
            .await
            .map_err(ConnectError::Unreachable)?;
        check_version(&server.get::<String>("redis_version").unwrap_or_default())?;
        if server.get::<String>("redis_mode").is_some_and(|mode| mode == "cluster") {
            return Err(ConnectError::Cluster);
        }
        Ok(Self { redis: Arc::new(Redis { pool, scripts: Scripts::new() }), time_limit: options.lease_time_limit })
    }
}

fn check_version(version: &str) -> Result<(), ConnectError> {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if (major, minor) >= OLDEST_VERSION { Ok(()) } else { Err(ConnectError::TooOld(version.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_refused() {
        for good in ["6.2.0", "7.0.15", "8.2.1", "10.0"] {
            assert!(check_version(good).is_ok(), "{good}");
        }
        for bad in ["6.0.16", "5.0.14", "", "unknown"] {
            assert!(matches!(check_version(bad), Err(ConnectError::TooOld(_))), "{bad}");
        }
    }
}
