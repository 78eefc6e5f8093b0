//! A ledger that stops, hangs or loses its answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::harness::fixture::Fixture;
use crate::harness::instance::{Instance, InstanceBuilder};
use crate::harness::observer::Observer;
use crate::harness::postgres::Postgres;
use crate::harness::proxy::Proxy;
use crate::harness::redis::Redis;
use crate::harness::shoppers::Shoppers;
use crate::harness::wait::eventually;

const WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_ledger_refuses_for_a_while_and_loses_nothing() {
    let (redis, postgres) = tokio::join!(Redis::start(), Postgres::start());
    let database = postgres.database().await;
    let instance = Instance::with_stores(&redis.url(), database.url())
        .setting("SEGSTOCK_REQUEST_DEADLINE_MS", "500")
        .start()
        .await;
    instance.create_product("mug", 2000, 10).await;
    let instance = Arc::new(instance);
    let shoppers = Shoppers::start(&[Arc::clone(&instance)], "mug", 16, 3);
    shoppers.have_bought(200).await;

    postgres.stop().await;
    let order = json!({"sku": "mug", "quantity": 1, "customer_id": "ada"});
    let refused = eventually("an order is refused", WITHIN, async || {
        let answer = instance.post_order(&order, None).await.expect("an answer");
        (answer.status == 503 && answer.body["type"] == "/problems/unavailable").then_some(answer)
    })
    .await;
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(instance.get("/readyz").await.status, 503);

    postgres.start_again().await;
    eventually("the service is ready again by itself", WITHIN, async || {
        (instance.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    shoppers.have_bought(400).await;
    let observer = Observer::of(&redis.url(), database.url()).await;
    shoppers.settle_up(&observer, "mug", 2000).await;
}

/// The service, with a proxy before each store.
struct Wired {
    fixture: Fixture,
    instance: Instance,
    to_redis: Proxy,
    to_postgres: Proxy,
    observer: Observer,
}

impl Wired {
    async fn start(configure: impl Fn(InstanceBuilder) -> InstanceBuilder) -> Wired {
        let fixture = Fixture::start(0).await;
        let observer = Observer::of(&fixture.redis.url(), fixture.database.url()).await;
        let to_redis = Proxy::start(fixture.redis.address()).await;
        let to_postgres = Proxy::start(Postgres::shared().await.address()).await;
        let redis_url = to_redis.url_through(&fixture.redis.url());
        let database_url = to_postgres.url_through(fixture.database.url());
        let instance = configure(Instance::with_stores(&redis_url, &database_url)).start().await;
        instance.create_product("pen", 10, 1).await;
        Wired { fixture, instance, to_redis, to_postgres, observer }
    }

    async fn somebody_holds_the_segment(&self) -> bool {
        let mut redis = self.fixture.redis.connection().await;
        let mut exists = deadpool_redis::redis::cmd("EXISTS");
        let asked = exists.arg("seg:{pen:0}:lock").query_async(&mut redis);
        asked.await.expect("Redis answers")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_lost_during_the_commit_is_found_again() {
    let wired = Wired::start(|instance| instance).await;
    for number in 0..3 {
        let customer = format!("ada-{number}");
        wired.to_postgres.drop_answer_after(customer.as_str());
        let order = json!({"sku": "pen", "quantity": 1, "customer_id": customer});
        // Without a key: only the order's own id can keep it from being placed twice.
        let answer = wired.instance.post_order(&order, None).await.expect("an answer");
        assert!(wired.to_postgres.armed_hit(), "the answer of the commit was dropped");
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let (orders, units) = wired.observer.orders("pen").await;
    assert_eq!((orders.len(), units), (3, 3), "each order is there once");
    wired.observer.audit("pen", &orders.into_iter().collect::<Vec<_>>()).await;
    assert_eq!(wired.observer.available("pen").await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_stays_unknown_is_found_by_the_retry_with_its_key() {
    // Every message is held up for a while below, those of a new connection too: that is not to be an outage.
    let wired = Wired::start(|instance| {
        instance
            .setting("SEGSTOCK_LEDGER_TIMEOUT_MS", "5000")
            .setting("SEGSTOCK_LEASE_TIME_LIMIT_MS", "15000")
            .setting("SEGSTOCK_REQUEST_DEADLINE_MS", "4000")
    })
    .await;
    // After this the segment is clean: its next lease is followed by nothing but the settle.
    let first = json!({"sku": "pen", "quantity": 1, "customer_id": "bob"});
    let first = wired.instance.post_order(&first, None).await;
    assert_eq!(first.expect("an answer").status, 201);
    // Answers may go out before the release: the lease waited for below is to be the next one.
    eventually("the segment is given back", WITHIN, async || (!wired.somebody_holds_the_segment().await).then_some(()))
        .await;

    let order = json!({"sku": "pen", "quantity": 2, "customer_id": "ada"});
    // Slow enough to cut Redis off while the batch is on its way: nobody can settle it a second time then.
    wired.to_postgres.delay(Duration::from_millis(300));
    wired.to_postgres.drop_answer_after("ada");
    let (answer, ()) = tokio::join!(wired.instance.post_order(&order, Some("k-1")), async {
        eventually("the segment is leased", WITHIN, async || wired.somebody_holds_the_segment().await.then_some(()))
            .await;
        wired.to_redis.cut().await;
    });
    let answer = answer.expect("an answer");
    assert!(wired.to_postgres.armed_hit());
    assert_eq!((answer.status, &answer.body["type"]), (503, &json!("/problems/outcome-unknown")), "{answer:?}");
    assert_eq!(answer.headers["retry-after"], "1");

    wired.to_redis.forward().await;
    wired.to_postgres.delay(Duration::ZERO);
    let found = eventually("the retry is answered", WITHIN, async || {
        let answer = wired.instance.post_order(&order, Some("k-1")).await.expect("an answer");
        (answer.status != 503).then_some(answer)
    })
    .await;
    assert_eq!((found.status, found.headers["idempotent-replayed"].as_bytes()), (201, &b"true"[..]));
    let (orders, units) = wired.observer.orders("pen").await;
    assert_eq!((orders.len(), units), (2, 3));
    wired.observer.audit("pen", &orders.into_iter().collect::<Vec<_>>()).await;
}

/// A connection that is open and says nothing: the statement's time limit ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_hangs_is_given_up_in_time() {
    let wired = Wired::start(|instance| instance).await;
    wired.to_postgres.black_hole().await;
    let order = json!({"sku": "pen", "quantity": 1, "customer_id": "ada"});
    let answer = wired.instance.post_order(&order, Some("k-2")).await.expect("an answer");
    assert_eq!(answer.status, 503, "{answer:?}");

    wired.to_postgres.forward().await;
    let placed = eventually("the retry is answered", WITHIN, async || {
        let answer = wired.instance.post_order(&order, Some("k-2")).await.expect("an answer");
        (answer.status != 503).then_some(answer)
    })
    .await;
    assert_eq!(placed.status, 201);
    let (orders, units) = wired.observer.orders("pen").await;
    assert_eq!((orders.len(), units), (1, 1));
    wired.observer.audit("pen", &orders.into_iter().collect::<Vec<_>>()).await;
}

/// A statement whose client has gone still runs in the server. It keeps its connection and its turn until it ends.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_hang_up_leave_no_more_statements_behind_than_there_are_turns() {
    let fixture = Fixture::start(1).await;
    let instance = &fixture.instances[0];
    let mut blocker = fixture.database.pool().begin().await.expect("the test's Postgres runs");
    sqlx::query("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE").execute(&mut *blocker).await.expect("nobody uses it");
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let mut most = 0;
    for _ in 0..40 {
        let mut connection = instance.connect().await;
        connection.write_all(b"GET /orders HTTP/1.1\r\nHost: shop\r\n\r\n").await.expect("it listens");
        let begun: i64 = eventually("a statement waits for the lock", WITHIN, async || {
            let count = sqlx::query_scalar(waiting).fetch_one(fixture.database.pool()).await.expect("it answers");
            (count > 0).then_some(count)
        })
        .await;
        most = most.max(begun);
    }
    assert!(most <= 3, "{most} statements at a time");
}
