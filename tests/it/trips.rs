//! What orders cost the stores, counted and never timed: a round is two trips to Redis and one statement, however many
//! orders it serves, and a sold-out answer costs neither.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_redis::redis::AsyncCommands;
use tokio::task::JoinSet;

use crate::api::{assert_problem, buy, placed};
use crate::harness::fixture::Fixture;
use crate::harness::instance::Instance;
use crate::harness::postgres::Postgres;
use crate::harness::wait::eventually;

const SOON: Duration = Duration::from_secs(30);

const SETTLE: &str = include_str!("../../src/ledger/postgres/queries/settle.sql");
const RELOAD: &str = include_str!("../../src/ledger/postgres/queries/reload.sql");
const LOOK: &str = include_str!("../../src/ledger/postgres/queries/segments.sql");
const LOOK_UP: &str = include_str!("../../src/ledger/postgres/queries/settled_orders.sql");

/// From this age on a look is followed by the next one (R9).
const LOOK_AGES_IN: Duration = Duration::from_millis(500);

/// One instance on stores that count what it asks of them.
struct Counted {
    instance: Arc<Instance>,
    fixture: Fixture,
    statements_before: usize,
}

impl Counted {
    /// With so much time for everything that a slow machine makes nobody ask twice, or renew a lease.
    async fn open() -> Self {
        let fixture = Fixture::start(0).await;
        fixture.database.log_statements().await;
        let instance = fixture
            .instance()
            .setting("SEGSTOCK_REQUEST_DEADLINE_MS", "60000")
            .setting("SEGSTOCK_REDIS_TIMEOUT_MS", "10000")
            .setting("SEGSTOCK_LEDGER_TIMEOUT_MS", "20000")
            .setting("SEGSTOCK_LEASE_TIME_LIMIT_MS", "300000");
        Self { instance: Arc::new(instance.start().await), fixture, statements_before: 0 }
    }

    /// Counts from here on. An order is answered before its segment is given back: that trip is waited for.
    async fn begin(&mut self) {
        let mut connection = self.fixture.redis.connection().await;
        eventually("all leases are given back", SOON, async || {
            let locks: Vec<String> = connection.keys("*:lock").await.expect("it runs");
            locks.is_empty().then_some(())
        })
        .await;
        self.fixture.redis.reset_counts().await;
        self.statements_before = self.all_statements().await.len();
    }

    async fn all_statements(&self) -> Vec<String> {
        Postgres::shared().await.statements(&self.fixture.database)
    }

    /// How often each statement was sent since the beginning.
    async fn statements(&self) -> Statements {
        let mut counts = BTreeMap::new();
        for statement in self.all_statements().await.split_off(self.statements_before) {
            // A pool may open another connection at any time, which costs no order anything.
            if !statement.starts_with("SET statement_timeout") {
                *counts.entry(statement).or_default() += 1;
            }
        }
        Statements(counts)
    }

    /// Ends the instance, so that nothing can follow what is counted then.
    async fn stop(&self) {
        assert_eq!(self.instance.stop_gracefully().await, Some(0));
    }

    /// Panics unless clients sent that many scripts to Redis since the beginning, and nothing else.
    async fn assert_trips(&self, scripts: usize) {
        let expected = (scripts > 0).then(|| ("evalsha".to_owned(), scripts as u64));
        assert_eq!(self.fixture.redis.trips().await, expected.into_iter().collect());
    }
}

/// Statements by their first line, which says what each is for.
#[derive(Debug)]
struct Statements(BTreeMap<String, usize>);

impl Statements {
    fn take(&mut self, statement: &str) -> usize {
        let first_line = statement.lines().next().expect("a statement has a header");
        self.0.remove(first_line).unwrap_or(0)
    }

    /// Panics unless all that there were have been taken.
    #[track_caller]
    fn assert_no_others(&self) {
        assert!(self.0.is_empty(), "statements that nobody expects: {:#?}", self.0);
    }
}

#[tokio::test]
async fn orders_one_after_the_other_cost_two_trips_and_one_statement_each() {
    const ORDERS: usize = 30;
    const SEGMENTS: u32 = 4;
    let mut counted = Counted::open().await;
    counted.instance.create_product("lamp", 1000, SEGMENTS).await;
    // Redis learns the scripts from it.
    placed(&buy(&counted.instance, "lamp", 1, "ada", None).await);
    counted.begin().await;
    for number in 0..ORDERS {
        let key = format!("cart-{number}");
        placed(&buy(&counted.instance, "lamp", 1, "ada", (number % 2 == 0).then_some(key.as_str())).await);
    }
    counted.stop().await;

    let mut statements = counted.statements().await;
    assert_eq!(statements.take(SETTLE), ORDERS);
    // A segment is reloaded when it is leased for the first time, which takes a trip more.
    let reloads = statements.take(RELOAD);
    assert!(reloads < SEGMENTS as usize, "{reloads} reloads");
    statements.assert_no_others();
    counted.assert_trips(2 * ORDERS + reloads).await;
}

#[tokio::test]
async fn orders_that_wait_together_share_one_round() {
    const ORDERS: usize = 100;
    let mut counted = Counted::open().await;
    counted.instance.create_product("lamp", 1000, 1).await;
    placed(&buy(&counted.instance, "lamp", 1, "ada", None).await);
    counted.begin().await;

    // One order is on its way to the ledger, and stays there until the others have come.
    let mut held_up = counted.fixture.database.pool().begin().await.expect("it runs");
    let by_hand = "SET LOCAL log_statement = 'none'; SELECT FROM segments FOR UPDATE";
    sqlx::raw_sql(by_hand).execute(&mut *held_up).await.expect("it runs");
    counted.statements_before = counted.all_statements().await.len();
    let mut orders = JoinSet::new();
    let mut order = |number: usize| {
        let instance = Arc::clone(&counted.instance);
        orders.spawn(async move { placed(&buy(&instance, "lamp", 1, &format!("customer-{number}"), None).await) });
    };
    order(0);
    eventually("the first order is settled", SOON, async || {
        (counted.statements().await.take(SETTLE) == 1).then_some(())
    })
    .await;
    (1..=ORDERS).for_each(&mut order);
    let all_wait = format!("segstock_queue_orders{{product=\"lamp\"}} {ORDERS}\n");
    eventually("the others wait", SOON, async || {
        let metrics = counted.instance.get("/metrics").await;
        metrics.body.as_str().is_some_and(|text| text.contains(&all_wait)).then_some(())
    })
    .await;
    held_up.commit().await.expect("it runs");
    assert_eq!(orders.join_all().await.len(), ORDERS + 1);
    counted.stop().await;

    let mut statements = counted.statements().await;
    assert_eq!(statements.take(SETTLE), 2, "one for the first, and one for all that waited");
    statements.assert_no_others();
    counted.assert_trips(4).await;
}

#[tokio::test]
async fn sold_out_answers_cost_no_trip_and_a_look_now_and_then() {
    const ANSWERS: usize = 200;
    let mut counted = Counted::open().await;
    let instance = Arc::clone(&counted.instance);
    instance.create_product("lamp", 3, 3).await;
    for customer in ["ada", "bob", "eve"] {
        placed(&buy(&instance, "lamp", 1, customer, Some("cart")).await);
    }
    let too_late = async |key: Option<&str>| {
        let answer = buy(&instance, "lamp", 1, "late", key).await;
        assert_problem(&answer, 409, "sold-out");
    };
    // Until all who have an order are known, each request with a key is looked up.
    eventually("the winners are known", SOON, async || {
        let before = counted.statements().await.take(LOOK_UP);
        too_late(Some("cart")).await;
        (counted.statements().await.take(LOOK_UP) == before).then_some(())
    })
    .await;

    let began_at = Instant::now();
    counted.begin().await;
    for number in 0..ANSWERS {
        let key = format!("cart-{number}");
        too_late((number % 2 == 0).then_some(key.as_str())).await;
    }
    let mut statements = counted.statements().await;
    let elapsed = began_at.elapsed();
    let looks = statements.take(LOOK);
    let most_looks = 1 + (elapsed.as_millis() / LOOK_AGES_IN.as_millis()) as usize;
    assert!(looks <= most_looks, "{looks} looks in {elapsed:?}");
    // Where the machine stands still for a second, a request comes too late for what memory says, and is looked up.
    assert!(statements.take(LOOK_UP) <= looks);
    statements.assert_no_others();
    counted.stop().await;
    counted.assert_trips(0).await;
}
