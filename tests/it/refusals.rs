//! Why an order is not placed, and that nothing else is a reason: busy, overloaded, abandoned, a guard that counts wrong.

use std::time::Duration;

use deadpool_redis::redis;
use serde_json::{Value, json};

use crate::harness::fixture::Fixture;
use crate::harness::instance::Answer;
use crate::harness::observer::Observer;
use crate::harness::postgres::Postgres;
use crate::harness::proxy::Proxy;
use crate::harness::wait::eventually;

const WITHIN: Duration = Duration::from_secs(20);
const SKU: &str = "vase";

/// One instance, and a product whose segments a test can tamper with in Redis.
struct Shop {
    fixture: Fixture,
    segments: u32,
}

impl Shop {
    async fn open(stock: u64, segments: u32) -> Shop {
        let fixture = Fixture::start_with(1, |instance| instance.setting("SEGSTOCK_REQUEST_DEADLINE_MS", "400")).await;
        fixture.instances[0].create_product(SKU, stock, segments).await;
        Shop { fixture, segments }
    }

    async fn order(&self, quantity: u64) -> Answer {
        let order = json!({"sku": SKU, "quantity": quantity, "customer_id": "ada"});
        self.fixture.instances[0].post_order(&order, None).await.expect("an answer")
    }

    async fn available(&self) -> Value {
        self.fixture.instances[0].get(&format!("/products/{SKU}")).await.body["available"].clone()
    }

    /// Sends one command for every segment; `{}` in it stands for the segment's key.
    async fn tamper(&self, command: &str) {
        let mut connection = self.fixture.redis.connection().await;
        for index in 0..self.segments {
            let command = command.replace("{}", &format!("seg:{{{SKU}:{index}}}"));
            let mut words = command.split_whitespace();
            let mut call = redis::cmd(words.next().expect("a command"));
            words.for_each(|word| {
                call.arg(word);
            });
            call.exec_async(&mut connection).await.expect("Redis takes the command");
        }
    }

    /// Waits until no segment is leased: answers may go out before the release.
    async fn is_at_rest(&self) {
        let mut connection = self.fixture.redis.connection().await;
        let locks: Vec<String> = (0..self.segments).map(|index| format!("seg:{{{SKU}:{index}}}:lock")).collect();
        eventually("all leases are given back", WITHIN, async || {
            let held: u32 = redis::cmd("EXISTS").arg(&locks).query_async(&mut connection).await.expect("Redis answers");
            (held == 0).then_some(())
        })
        .await;
    }

    async fn audit(&self) {
        let observer = Observer::of(&self.fixture.redis.url(), self.fixture.database.url()).await;
        observer.audit(SKU, &[]).await;
    }
}

fn problem(answer: &Answer) -> (u16, &str) {
    let slug = answer.body["type"].as_str().unwrap_or_default();
    (answer.status, slug.strip_prefix("/problems/").unwrap_or(slug))
}

#[tokio::test]
async fn segments_that_stay_busy_make_contended_and_never_sold_out() {
    let shop = Shop::open(10, 3).await;
    shop.tamper("SET {}:lock somebody PX 60000").await;
    let refused = shop.order(1).await;
    assert_eq!(problem(&refused), (503, "contended"), "{refused:?}");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(shop.available().await, 10);

    shop.tamper("DEL {}:lock").await;
    assert_eq!(shop.order(1).await.status, 201);
    shop.audit().await;
}

#[tokio::test]
async fn one_busy_segment_is_passed_over() {
    let shop = Shop::open(20, 2).await;
    shop.tamper("SET {}:lock somebody PX 60000").await;
    let mut connection = shop.fixture.redis.connection().await;
    let unlock = redis::cmd("DEL").arg("seg:{vase:1}:lock").exec_async(&mut connection).await;
    unlock.expect("Redis takes the command");
    for _ in 0..5 {
        let placed = shop.order(1).await;
        assert_eq!((placed.status, &placed.body["segment"]), (201, &json!(1)));
    }
}

#[tokio::test]
async fn units_that_redis_has_lost_count_of_are_found_in_the_ledger() {
    let shop = Shop::open(6, 3).await;
    let gathered = shop.order(3).await;
    assert_eq!(gathered.status, 201, "every segment is known to Redis now");
    shop.is_at_rest().await;
    // A clean count that is too low, as a failover may leave it.
    shop.tamper("HSET {} stock 0").await;
    // A new process believes nothing yet, and is told "empty" by every segment.
    let second = shop.fixture.instance().start().await;
    let order = json!({"sku": SKU, "quantity": 1, "customer_id": "bob"});
    for _ in 0..3 {
        assert_eq!(second.post_order(&order, None).await.expect("an answer").status, 201);
    }
    let refused = second.post_order(&order, None).await.expect("an answer");
    assert_eq!(problem(&refused), (409, "sold-out"), "{refused:?}");
    shop.audit().await;
}

#[tokio::test]
async fn units_that_redis_makes_up_are_not_sold() {
    let shop = Shop::open(4, 2).await;
    let gathered = shop.order(3).await;
    assert_eq!(gathered.status, 201, "every segment is known to Redis now");
    shop.is_at_rest().await;
    shop.tamper("HSET {} stock 1000").await;
    let second = shop.fixture.instance().start().await;
    let mut sold = 3;
    let refused = loop {
        let order = json!({"sku": SKU, "quantity": 1, "customer_id": "bob"});
        let answer = second.post_order(&order, None).await.expect("an answer");
        if answer.status != 201 {
            break answer;
        }
        sold += 1;
        assert!(sold <= 4, "INV-1");
    };
    assert_eq!((sold, problem(&refused)), (4, (409, "sold-out")), "{refused:?}");
    shop.audit().await;
}

#[tokio::test]
async fn an_order_is_dropped_when_its_client_leaves_before_it_is_fitted() {
    let shop = Shop::open(10, 1).await;
    shop.tamper("SET {}:lock somebody PX 60000").await;
    let instance = &shop.fixture.instances[0];
    let order = json!({"sku": SKU, "quantity": 3, "customer_id": "ada"});
    let request = instance.client().post(instance.url("/orders")).json(&order).timeout(Duration::from_millis(100));
    assert!(request.send().await.expect_err("the client gives up").is_timeout());
    shop.tamper("DEL {}:lock").await;
    // Behind the first one in the queue, if that were still there.
    assert_eq!(shop.order(1).await.status, 201);
    assert_eq!(shop.available().await, 9);
    shop.audit().await;
}

#[tokio::test]
async fn a_guard_that_is_gone_makes_unavailable_and_comes_back() {
    let shop = Shop::open(10, 2).await;
    shop.fixture.redis.kill().await;
    let refused = shop.order(1).await;
    assert_eq!(problem(&refused), (503, "unavailable"), "{refused:?}");
    shop.fixture.redis.restart().await;
    eventually("orders are placed again", WITHIN, async || (shop.order(1).await.status == 201).then_some(())).await;
    shop.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_answers_at_once() {
    let fixture = Fixture::start(0).await;
    let to_postgres = Proxy::start(Postgres::shared().await.address()).await;
    let database_url = to_postgres.url_through(fixture.database.url());
    let instance = crate::harness::instance::Instance::with_stores(&fixture.redis.url(), &database_url)
        .setting("SEGSTOCK_QUEUE_CAPACITY", "2")
        .setting("SEGSTOCK_LEDGER_TIMEOUT_MS", "5000")
        .setting("SEGSTOCK_LEASE_TIME_LIMIT_MS", "15000")
        .setting("SEGSTOCK_REQUEST_DEADLINE_MS", "20000")
        .start()
        .await;
    instance.create_product(SKU, 10, 2).await;
    to_postgres.delay(Duration::from_millis(200));
    let order = json!({"sku": SKU, "quantity": 1, "customer_id": "ada"});
    let answers = futures_util::future::join_all((0..10).map(|_| instance.post_order(&order, None))).await;
    let answers: Vec<Answer> = answers.into_iter().map(|answer| answer.expect("an answer")).collect();
    let placed = answers.iter().filter(|answer| answer.status == 201).count();
    let turned_away = answers.iter().filter(|answer| problem(answer) == (503, "overloaded")).count();
    assert_eq!((placed, turned_away), (2, 8), "{answers:?}");
}
