//! What dies, hangs or forgets in the middle of a sale: selling goes on, the product sells out, and the books are right.

use std::sync::Arc;
use std::time::Duration;

use crate::harness::fixture::Fixture;
use crate::harness::instance::{Instance, InstanceBuilder};
use crate::harness::observer::Observer;
use crate::harness::shoppers::Shoppers;

const SKU: &str = "lamp";
const STOCK: u64 = 1500;
const SEGMENTS: u32 = 8;
const SHOPPERS: usize = 24;
/// Shorter than usual, so that a dead holder's segments are soon free again.
const LEASE_TIME_LIMIT: Duration = Duration::from_millis(1500);

fn brisk(instance: InstanceBuilder) -> InstanceBuilder {
    instance
        .setting("SEGSTOCK_LEASE_TIME_LIMIT_MS", LEASE_TIME_LIMIT.as_millis().to_string())
        .setting("SEGSTOCK_LEDGER_TIMEOUT_MS", "500")
        .setting("SEGSTOCK_REDIS_TIMEOUT_MS", "150")
        // Small batches, so that there are many rounds to die in.
        .setting("SEGSTOCK_MAX_BATCH", "4")
}

/// Two instances on common stores, and whoever checks the books.
struct Sale {
    fixture: Fixture,
    instances: Vec<Arc<Instance>>,
    observer: Observer,
}

impl Sale {
    async fn open(first: impl Fn(InstanceBuilder) -> InstanceBuilder) -> Sale {
        let mut fixture = Fixture::start(0).await;
        for instance in [first(brisk(fixture.instance())), brisk(fixture.instance())] {
            fixture.instances.push(instance.start().await);
        }
        let observer = Observer::of(&fixture.redis.url(), fixture.database.url()).await;
        fixture.instances[1].create_product(SKU, STOCK, SEGMENTS).await;
        let instances = std::mem::take(&mut fixture.instances).into_iter().map(Arc::new).collect();
        Sale { fixture, instances, observer }
    }

    fn shoppers(&self) -> Shoppers {
        Shoppers::start(&self.instances, SKU, SHOPPERS, 7)
    }
}

async fn an_instance_dies(moment: &str) {
    let fail_point = format!("{moment}:10");
    let sale = Sale::open(|instance| instance.setting("SEGSTOCK_FAIL_POINT", &fail_point)).await;
    let shoppers = sale.shoppers();
    let death = sale.instances[0].wait_exit(Duration::from_secs(60)).await;
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&death), Some(9), "it died as by kill -9");
    shoppers.settle_up(&sale.observer, SKU, STOCK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_lease_and_fit() {
    an_instance_dies("leased").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_fit_and_settle() {
    an_instance_dies("fitted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_settle_and_answer() {
    an_instance_dies("settled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_answer_and_release() {
    an_instance_dies("answered").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_release() {
    an_instance_dies("released").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_forgets_everything() {
    let sale = Sale::open(|instance| instance).await;
    let shoppers = sale.shoppers();
    for sold in [200, 500, 900] {
        shoppers.have_bought(sold).await;
        sale.fixture.redis.flush_all().await;
    }
    shoppers.settle_up(&sale.observer, SKU, STOCK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_killed_and_comes_back_empty() {
    let sale = Sale::open(|instance| instance).await;
    let shoppers = sale.shoppers();
    shoppers.have_bought(300).await;
    sale.fixture.redis.kill().await;
    sale.fixture.redis.restart().await;
    shoppers.have_bought(600).await;
    // The old observer's connections went down with the old Redis.
    let observer = Observer::of(&sale.fixture.redis.url(), sale.fixture.database.url()).await;
    shoppers.settle_up(&observer, SKU, STOCK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_sleeps_past_its_leases() {
    let sale = Sale::open(|instance| instance).await;
    let shoppers = sale.shoppers();
    for sold in [200, 600] {
        shoppers.have_bought(sold).await;
        sale.instances[0].pause();
        // The others go on: with the sleeper's segments too, once its leases have run out.
        tokio::time::sleep(LEASE_TIME_LIMIT * 2).await;
        sale.instances[0].resume();
    }
    shoppers.settle_up(&sale.observer, SKU, STOCK).await;
}
