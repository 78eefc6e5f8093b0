//! Ends in the middle of an order: the service's, when it is told to stop, and the client's, when it hangs up.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_redis::redis::AsyncCommands;
use rand::RngExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::api::{buy, order, orders, placed};
use crate::harness::fixture::Fixture;
use crate::harness::instance::{Instance, InstanceBuilder};
use crate::harness::observer::Observer;
use crate::harness::postgres::Postgres;
use crate::harness::proxy::Proxy;
use crate::harness::scratch::Scratch;
use crate::harness::wait::{eventually, seeded_random};

const WITHIN: Duration = Duration::from_secs(30);
/// What a request to Postgres takes on its way, once the network is slow.
const DELAY: Duration = Duration::from_millis(300);

/// An instance whose ways to its stores can be slowed down. One round at a time and small batches, so that orders wait.
struct Slow {
    fixture: Fixture,
    to_redis: Proxy,
    to_postgres: Proxy,
    instance: Arc<Instance>,
}

impl Slow {
    async fn start() -> Slow {
        let fixture = Fixture::start(0).await;
        let to_redis = Proxy::start(fixture.redis.address()).await;
        let to_postgres = Proxy::start(Postgres::shared().await.address()).await;
        let patient = |instance: InstanceBuilder| {
            instance
                .setting("SEGSTOCK_REQUEST_DEADLINE_MS", "60000")
                .setting("SEGSTOCK_REDIS_TIMEOUT_MS", "5000")
                .setting("SEGSTOCK_LEDGER_TIMEOUT_MS", "20000")
                .setting("SEGSTOCK_LEASE_TIME_LIMIT_MS", "60000")
                .setting("SEGSTOCK_STOP_DEADLINE_MS", "60000")
                .setting("SEGSTOCK_MAX_ROUNDS_IN_FLIGHT", "1")
                .setting("SEGSTOCK_MAX_BATCH", "20")
        };
        let redis_url = to_redis.url_through(&fixture.redis.url());
        let database_url = to_postgres.url_through(fixture.database.url());
        let instance = Instance::with_stores(&redis_url, &database_url);
        let instance = Arc::new(patient(instance).start().await);
        instance.create_product("lamp", 1000, 4).await;
        placed(&buy(&instance, "lamp", 1, "first", None).await);
        to_postgres.delay(DELAY);
        Slow { fixture, to_redis, to_postgres, instance }
    }

    async fn observer(&self) -> Observer {
        Observer::of(&self.fixture.redis.url(), self.fixture.database.url()).await
    }
}

/// The number that a metric without a choice of labels shows.
async fn metric(instance: &Instance, series: &str) -> f64 {
    let answer = instance.get("/metrics").await;
    let text = answer.body.as_str().expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0.0, |value| value.trim().parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_finishes_every_order_that_was_accepted() {
    let slow = Slow::start().await;
    let mut buying = JoinSet::new();
    for number in 0..200 {
        let instance = Arc::clone(&slow.instance);
        buying.spawn(async move {
            let body = order("lamp", 1, &format!("customer-{number}"));
            instance.post_order(&body, None).await
        });
    }
    const WAITING: usize = 100;
    eventually("most orders wait", WITHIN, async || {
        let waiting = metric(&slow.instance, "segstock_queue_orders{product=\"lamp\"}").await;
        (waiting >= WAITING as f64).then_some(())
    })
    .await;
    // The last lease is given back after the last answer: slowly, so that nobody gets away with not waiting for it.
    slow.to_redis.delay(Duration::from_millis(150));
    assert_eq!(slow.instance.stop_gracefully().await, Some(0));

    let mut answered = HashSet::new();
    let mut refused = 0;
    for answer in buying.join_all().await {
        match answer {
            Ok(answer) => assert!(answered.insert(placed(&answer))),
            Err(failure) => {
                assert!(!failure.is_timeout(), "{failure:?}");
                refused += 1;
            }
        }
    }
    assert!(answered.len() >= WAITING, "{refused} got no answer");

    let observer = slow.observer().await;
    let ids: Vec<Uuid> = answered.iter().copied().collect();
    observer.audit("lamp", &ids).await;
    let (in_ledger, _) = observer.orders("lamp").await;
    assert_eq!(in_ledger.len(), answered.len() + 1, "who got no answer was never accepted, and has no order");
    let mut connection = slow.fixture.redis.connection().await;
    let locks: Vec<String> = connection.keys("seg:*:lock").await.expect("Redis answers");
    assert_eq!(locks, [] as [String; 0], "every lease was given back");
}

#[tokio::test]
async fn a_stopped_service_can_be_started_by_somebody_else_at_once() {
    let slow = Slow::start().await;
    slow.to_postgres.delay(Duration::ZERO);
    assert_eq!(slow.instance.stop_gracefully().await, Some(0));
    // Leases last for a minute here: were one left behind, this would be contended.
    let next = slow.fixture.instance().setting("SEGSTOCK_REQUEST_DEADLINE_MS", "5000").start().await;
    for _ in 0..8 {
        placed(&buy(&next, "lamp", 100, "bob", None).await);
    }
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_a_stop() {
    let folder = Scratch::new();
    let instance = Instance::embedded(folder.path()).setting("SEGSTOCK_STOP_DEADLINE_MS", "60000").start().await;
    let _silent = instance.connect().await;
    let mut kept_alive = instance.connect().await;
    kept_alive.write_all(b"GET /livez HTTP/1.1\r\nHost: shop\r\n\r\n").await.expect("it reads");
    let mut begun = [0; 12];
    kept_alive.read_exact(&mut begun).await.expect("it answers");
    assert_eq!(&begun, b"HTTP/1.1 200");

    let began_at = Instant::now();
    assert_eq!(instance.stop_gracefully().await, Some(0));
    assert!(began_at.elapsed() < Duration::from_secs(5), "{:?}", began_at.elapsed());
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_spoil_a_stop() {
    let folder = Scratch::new();
    let instance = Instance::embedded(folder.path()).setting("SEGSTOCK_STOP_DEADLINE_MS", "1000").start().await;
    let mut endless = Vec::new();
    for begun in ["", "\r\n", "\r\n{"] {
        let mut connection = instance.connect().await;
        let head = "POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 100\r\n";
        let request = format!("{head}{begun}");
        connection.write_all(request.as_bytes()).await.expect("it reads");
        endless.push(connection);
    }
    let id = placed(&buy(&instance, "demo", 1, "ada", None).await);
    // No order was lost and no lease left behind: there is nothing to complain about.
    assert_eq!(instance.stop_gracefully().await, Some(0), "{}", instance.logs());
    let observer = Observer::of_embedded(folder.path()).await;
    observer.audit("demo", &[id]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_has_an_order_or_has_none() {
    let slow = Slow::start().await;
    let mut random = seeded_random();
    let mut hanging_up = JoinSet::new();
    for number in 0..60 {
        let patience = Duration::from_millis(random.random_range(1..1500));
        let instance = Arc::clone(&slow.instance);
        hanging_up.spawn(async move {
            let request = instance
                .client()
                .post(instance.url("/orders"))
                .json(&order("lamp", 2, &format!("customer-{number}")))
                .header("Idempotency-Key", "cart-1")
                .timeout(patience);
            instance.try_send(request).await.ok()
        });
    }
    let told: Vec<_> = hanging_up.join_all().await;
    let mut ids: Vec<Uuid> = told.iter().flatten().map(placed).collect();
    assert!(ids.len() < 60, "nobody hung up");

    // Rounds run one after the other: when this one is over, so is every one before.
    slow.to_postgres.delay(Duration::ZERO);
    ids.push(placed(&buy(&slow.instance, "lamp", 1, "last", None).await));
    let observer = slow.observer().await;
    observer.audit("lamp", &ids).await;
    let (before, _) = observer.orders("lamp").await;
    assert!(before.len() < 62, "who hangs up while waiting is dropped");

    // Whoever asks again has one order, whether the first try went through or not.
    for number in 0..60 {
        let customer = format!("customer-{number}");
        let answer = buy(&slow.instance, "lamp", 2, &customer, Some("cart-1")).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let listed = orders(&slow.instance, &format!("customer_id={customer}")).await;
        assert_eq!(listed, [answer.body]);
    }
    let (after, units) = observer.orders("lamp").await;
    assert_eq!((after.len(), units), (62, 122));
    let after: Vec<Uuid> = after.into_iter().collect();
    observer.audit("lamp", &after).await;
    assert_eq!(observer.available("lamp").await, 1000 - 122);
}
