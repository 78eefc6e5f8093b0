//! One segstock on either kind of stores, so that one test can run over both.

use uuid::Uuid;

use super::fixture::Fixture;
use super::instance::{Instance, InstanceBuilder};
use super::observer::Observer;
use super::scratch::Scratch;

/// An instance with stores that only its test uses.
#[derive(Debug)]
pub(crate) struct Shop {
    // Ended before the stores are: fields are dropped in this order.
    pub(crate) instance: Instance,
    stores: Stores,
}

#[derive(Debug)]
enum Stores {
    /// Leases in memory, a SQLite file in this folder.
    Embedded(Scratch),
    /// Redis and Postgres.
    Servers(Fixture),
}

impl Stores {
    fn instance(&self) -> InstanceBuilder {
        match self {
            Stores::Embedded(folder) => Instance::embedded(&folder.join("data")),
            Stores::Servers(fixture) => fixture.instance(),
        }
    }
}

impl Shop {
    /// On the embedded default.
    pub(crate) async fn embedded() -> Shop {
        Shop::open(Stores::Embedded(Scratch::new())).await
    }

    /// On Redis and Postgres.
    pub(crate) async fn on_servers() -> Shop {
        Shop::open(Stores::Servers(Fixture::start(0).await)).await
    }

    async fn open(stores: Stores) -> Shop {
        Shop { instance: stores.instance().start().await, stores }
    }

    /// Stops the instance in order and starts another one on the same stores.
    pub(crate) async fn restart(&mut self) {
        assert_eq!(self.instance.stop_gracefully().await, Some(0));
        self.instance = self.stores.instance().start().await;
    }

    /// A second instance on the same stores; the embedded default has none.
    pub(crate) async fn second_instance(&self) -> Option<Instance> {
        match &self.stores {
            Stores::Embedded(_) => None,
            Stores::Servers(fixture) => Some(fixture.instance().start().await),
        }
    }

    /// Panics with every promise that is broken, once nobody buys; `answered` are orders that were answered 201.
    pub(crate) async fn audit(&self, sku: &str, answered: &[Uuid]) {
        let observer = match &self.stores {
            Stores::Embedded(folder) => Observer::of_embedded(&folder.join("data")).await,
            Stores::Servers(fixture) => Observer::of(&fixture.redis.url(), fixture.database.url()).await,
        };
        observer.audit(sku, answered).await;
    }
}

/// Makes two tests of every case, an `async fn(Shop)`: on the embedded default, and on Redis and Postgres.
macro_rules! on_both_stores {
    ($($case:ident),+ $(,)?) => {
        mod embedded {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case($crate::harness::shop::Shop::embedded().await).await;
                }
            )+
        }

        mod servers {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case($crate::harness::shop::Shop::on_servers().await).await;
                }
            )+
        }
    };
}

pub(crate) use on_both_stores;
