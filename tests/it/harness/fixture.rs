//! The usual set of servers for a test of the whole service.

use super::instance::{Instance, InstanceBuilder};
use super::postgres::{Database, Postgres};
use super::redis::Redis;

/// A private Redis, a new database in the shared Postgres, and instances that use them.
#[derive(Debug)]
pub(crate) struct Fixture {
    // Ended before the stores are, for quiet logs: fields are dropped in this order.
    pub(crate) instances: Vec<Instance>,
    pub(crate) redis: Redis,
    pub(crate) database: Database,
}

impl Fixture {
    /// Starts that many instances with default settings.
    pub(crate) async fn start(instances: usize) -> Fixture {
        Fixture::start_with(instances, |instance| instance).await
    }

    /// Starts that many instances, each with what `configure` sets.
    pub(crate) async fn start_with(
        instances: usize,
        configure: impl Fn(InstanceBuilder) -> InstanceBuilder,
    ) -> Fixture {
        let (redis, postgres) = tokio::join!(Redis::start(), Postgres::shared());
        let mut fixture = Fixture { instances: Vec::new(), redis, database: postgres.database().await };
        for _ in 0..instances {
            let instance = configure(fixture.instance()).start().await;
            fixture.instances.push(instance);
        }
        fixture
    }

    /// One more instance on the same stores, to be configured and started.
    pub(crate) fn instance(&self) -> InstanceBuilder {
        Instance::with_stores(&self.redis.url(), self.database.url())
    }
}
