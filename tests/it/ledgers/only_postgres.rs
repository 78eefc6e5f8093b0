//! What only a ledger in another process can go through: a server that stops, a network that breaks, sessions that wait
//! for each other. Every error says whether something may have happened (R6), and the ledger recovers from all.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use segstock::domain::Product;
use segstock::ledger::postgres::PostgresLedger;
use segstock::ledger::{Ledger, LedgerError, Settled, Settlement};
use sqlx::{PgPool, Transaction};

use super::store::{
    FENCE, SOON, all_new, already_known, assert_sound, create, ids, new_product, open_postgres, order, order_ids,
    segment, settle, settlement,
};
use crate::harness::postgres::{Database, Postgres};
use crate::harness::proxy::Proxy;
use crate::harness::wait::eventually;

/// The ledger's limit for one call: soon over, and no risk while the server is well.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// A machine may be slow to notice.
const ABOUT_THE_TIMEOUT: Duration = Duration::from_secs(4);

/// Few, so that one that got lost would be missed.
const CONNECTIONS: u32 = 2;

async fn timed<T>(call: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let answer = tokio::time::timeout(SOON, call).await;
    let answer = answer.expect("it does not hang");
    let elapsed = start.elapsed();
    assert!(elapsed < ABOUT_THE_TIMEOUT, "gave up after {elapsed:?}");
    answer
}

fn assert_nothing_happened<T: std::fmt::Debug>(answer: Result<T, LedgerError>) {
    assert!(matches!(answer, Err(LedgerError::NothingHappened(_))), "{answer:?}");
}

fn assert_unknown<T: std::fmt::Debug>(answer: Result<T, LedgerError>) {
    assert!(matches!(answer, Err(LedgerError::OutcomeUnknown(_))), "{answer:?}");
}

/// Each connection that has died unnoticed may cost one answer.
async fn eventually_answers(ledger: &dyn Ledger) {
    eventually("the ledger answers again", SOON, async || ledger.ping().await.ok()).await;
}

/// Settles while nobody can be reached: perhaps over a connection that has died unnoticed, and then over none.
async fn settle_in_vain(ledger: &dyn Ledger, settlement: &Settlement<'_>) {
    for _ in 0..CONNECTIONS {
        let answer = timed(ledger.settle(settlement)).await;
        answer.expect_err("nobody can be reached");
    }
    for _ in 0..2 {
        assert_nothing_happened(timed(ledger.settle(settlement)).await);
    }
}

async fn new_product_in(ledger: &dyn Ledger) -> Product {
    create(ledger, &new_product("far-away", 40, 2)).await
}

/// A ledger behind a proxy, with a product, and its database.
async fn behind_a_proxy() -> (Proxy, Database, PostgresLedger, Product) {
    let postgres = Postgres::shared().await;
    let database = postgres.database().await;
    let proxy = Proxy::start(postgres.address()).await;
    let url = proxy.url_through(database.url());
    let ledger = open_postgres(&url, CONNECTIONS, TIMEOUT).await;
    let product = new_product_in(&ledger).await;
    (proxy, database, ledger, product)
}

#[tokio::test]
async fn a_stopped_server_changes_nothing_and_says_so() {
    let postgres = Postgres::start().await;
    let database = postgres.database().await;
    let ledger = open_postgres(database.url(), CONNECTIONS, TIMEOUT).await;
    let product = new_product_in(&ledger).await;
    let first = segment(&product, 0);
    let before = [order("ada", 1)];
    assert_eq!(settle(&ledger, &first, FENCE, &before).await, all_new());
    for crash in [false, true] {
        match crash {
            true => postgres.crash().await,
            false => postgres.stop().await,
        }
        let late = [order("bob", 2)];
        settle_in_vain(&ledger, &settlement(&first, FENCE, &late)).await;
        assert_nothing_happened(timed(ledger.reload(&first, FENCE)).await);
        assert_nothing_happened(timed(ledger.segments(product.id)).await);
        postgres.start_again().await;
        eventually_answers(&ledger).await;
        assert_eq!(order_ids(&ledger, &product).await, ids(&before));
        assert_sound(&ledger, &product).await;
    }
    assert_eq!(settle(&ledger, &first, FENCE, &[order("bob", 2)]).await, all_new());
}

#[tokio::test]
async fn a_hanging_server_is_an_error_in_time() {
    let postgres = Postgres::start().await;
    let database = postgres.database().await;
    let ledger = open_postgres(database.url(), CONNECTIONS, TIMEOUT).await;
    let product = new_product_in(&ledger).await;
    postgres.pause();
    for _ in 0..2 * CONNECTIONS {
        timed(ledger.segments(product.id)).await.expect_err("the server hangs");
    }
    postgres.resume();
    eventually_answers(&ledger).await;
    let settled = settle(&ledger, &segment(&product, 0), FENCE, &[order("ada", 2)]).await;
    assert_eq!(settled, all_new());
    assert_sound(&ledger, &product).await;
}

#[tokio::test]
async fn a_lost_answer_leaves_the_outcome_unknown() {
    let (proxy, _database, ledger, product) = behind_a_proxy().await;
    let first = segment(&product, 0);
    let batch = [order("ada-whose-answer-is-lost", 3), order("bob", 1)];
    proxy.drop_answer_after("ada-whose-answer-is-lost");
    assert_unknown(timed(ledger.settle(&settlement(&first, FENCE, &batch))).await);
    proxy.wait_hit(SOON).await;
    assert_eq!(order_ids(&ledger, &product).await, ids(&batch));

    // Settled again under the same ids (R6), it turns out to have been committed.
    let settled = settle(&ledger, &first, FENCE, &batch).await;
    assert_eq!(already_known(settled), ids(&batch));
    let kept = ledger.segments(product.id).await.expect("it reads");
    assert_eq!(kept[0].taken, 4);
    assert_sound(&ledger, &product).await;
}

#[tokio::test]
async fn a_refusal_whose_answer_is_lost_changes_nothing() {
    let (proxy, _database, ledger, product) = behind_a_proxy().await;
    let first = segment(&product, 0);
    let batch = [order("ada-who-wants-too-much", 21)];
    proxy.drop_answer_after("ada-who-wants-too-much");
    assert_unknown(timed(ledger.settle(&settlement(&first, FENCE, &batch))).await);
    proxy.wait_hit(SOON).await;
    let settled = settle(&ledger, &first, FENCE, &batch).await;
    assert_eq!(settled, Settled::Refused);
    assert_eq!(order_ids(&ledger, &product).await, [].into());
    assert_sound(&ledger, &product).await;
}

#[tokio::test]
async fn a_black_hole_is_an_error_in_time() {
    let (proxy, _database, ledger, product) = behind_a_proxy().await;
    let first = segment(&product, 0);
    let batch = [order("ada", 3)];
    proxy.black_hole().await;
    settle_in_vain(&ledger, &settlement(&first, FENCE, &batch)).await;
    proxy.forward().await;
    eventually_answers(&ledger).await;
    assert_eq!(order_ids(&ledger, &product).await, [].into());
    assert_eq!(settle(&ledger, &first, FENCE, &batch).await, all_new());
    assert_sound(&ledger, &product).await;
}

#[tokio::test]
async fn a_cut_network_is_an_error_in_time() {
    let (proxy, _database, ledger, product) = behind_a_proxy().await;
    let first = segment(&product, 0);
    let batch = [order("ada", 3)];
    proxy.cut().await;
    settle_in_vain(&ledger, &settlement(&first, FENCE, &batch)).await;
    proxy.forward().await;
    eventually_answers(&ledger).await;
    assert_eq!(settle(&ledger, &first, FENCE, &batch).await, all_new());
    assert_sound(&ledger, &product).await;
}

#[tokio::test]
async fn a_refused_statement_changes_nothing_and_says_so() {
    let (_proxy, database, ledger, product) = behind_a_proxy().await;
    let by_hand = async |sql: &'static str| {
        let done = sqlx::raw_sql(sql).execute(database.pool()).await;
        done.expect("the statement is right");
    };
    by_hand("ALTER TABLE orders RENAME TO hidden").await;
    let batch = [order("ada", 3)];
    let first = segment(&product, 0);
    for _ in 0..2 * CONNECTIONS {
        assert_nothing_happened(ledger.settle(&settlement(&first, FENCE, &batch)).await);
    }
    by_hand("ALTER TABLE hidden RENAME TO orders").await;
    assert_eq!(settle(&ledger, &first, FENCE, &batch).await, all_new());
    assert_sound(&ledger, &product).await;
}

/// Whether a session of this database waits for a lock.
async fn somebody_waits(pool: &PgPool) -> Option<()> {
    let waiting: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    .fetch_one(pool)
    .await
    .expect("it reads");
    (waiting > 0).then_some(())
}

/// Changes something by hand, and keeps it locked until it is committed.
async fn change(pool: &PgPool, sql: &'static str) -> Transaction<'static, sqlx::Postgres> {
    let mut transaction = pool.begin().await.expect("it runs");
    let done = sqlx::raw_sql(sql).execute(&mut *transaction).await;
    done.expect("the statement is right");
    transaction
}

#[tokio::test]
async fn a_settle_in_flight_when_the_network_breaks_is_unknown() {
    let (proxy, database, ledger, product) = behind_a_proxy().await;
    let pool = database.pool();
    let first = segment(&product, 0);
    let mut all = BTreeSet::new();
    for cut in [true, false] {
        let in_flight = change(pool, "UPDATE segments SET taken = taken WHERE index = 0").await;
        let batch = [order("ada", 3), order("bob", 1)];
        let breaking = async {
            let waits = async || somebody_waits(pool).await;
            eventually("the settle waits", TIMEOUT, waits).await;
            match cut {
                true => proxy.cut().await,
                false => proxy.black_hole().await,
            }
            // The server knows of nothing, and goes on.
            in_flight.commit().await.expect("it runs");
        };
        let settlement = settlement(&first, FENCE, &batch);
        let (answer, ()) = tokio::join!(timed(ledger.settle(&settlement)), breaking);
        assert_unknown(answer);
        proxy.forward().await;
        eventually_answers(&ledger).await;
        all.extend(ids(&batch));
        eventually("the orders are there", SOON, async || (order_ids(&ledger, &product).await == all).then_some(()))
            .await;
        // Settled again under the same ids (R6), it turns out to have been committed.
        let settled = settle(&ledger, &first, FENCE, &batch).await;
        assert_eq!(already_known(settled), ids(&batch));
        assert_sound(&ledger, &product).await;
    }
}

#[tokio::test]
async fn a_reload_waits_for_a_settle_in_flight() {
    let (_proxy, database, ledger, product) = behind_a_proxy().await;
    let pool = database.pool();
    let in_flight = change(pool, "UPDATE segments SET taken = taken + 3 WHERE index = 0").await;
    let first = segment(&product, 0);
    let commit = async {
        let waits = async || somebody_waits(pool).await;
        eventually("the reload waits", TIMEOUT, waits).await;
        in_flight.commit().await.expect("it runs");
    };
    let (reloaded, ()) = tokio::join!(ledger.reload(&first, FENCE), commit);
    assert_eq!(reloaded.expect("it is there").stock, 17);
}

#[tokio::test]
async fn a_settle_that_waited_is_judged_by_what_it_finds() {
    let (_proxy, database, ledger, product) = behind_a_proxy().await;
    let pool = database.pool();
    let first = segment(&product, 0);
    // Overtaken, out of date and out of units, each time while it waits.
    for overtaking in [
        "UPDATE segments SET fence = 100 WHERE index = 0",
        "UPDATE segments SET epoch = 1 WHERE index = 0",
        "UPDATE segments SET allotted = 2 WHERE index = 0",
    ] {
        let reset = change(pool, "UPDATE segments SET fence = 0, epoch = 0").await;
        reset.commit().await.expect("it runs");
        let in_flight = change(pool, overtaking).await;
        let batch = [order("ada", 3)];
        let commit = async {
            let waits = async || somebody_waits(pool).await;
            eventually("the settle waits", TIMEOUT, waits).await;
            in_flight.commit().await.expect("it runs");
        };
        let (settled, ()) = tokio::join!(settle(&ledger, &first, FENCE, &batch), commit);
        assert_eq!(settled, Settled::Refused, "{overtaking}");
        assert_eq!(order_ids(&ledger, &product).await, [].into());
        assert_sound(&ledger, &product).await;
    }
}

#[tokio::test]
async fn a_settle_that_waits_too_long_is_never_committed_late() {
    let (_proxy, database, ledger, product) = behind_a_proxy().await;
    let pool = database.pool();
    let first = segment(&product, 0);
    let in_flight = change(pool, "UPDATE segments SET taken = taken WHERE index = 0").await;
    let batch = [order("ada", 3)];
    timed(ledger.settle(&settlement(&first, FENCE, &batch))).await.expect_err("the row is locked");
    // The server gives up as well.
    eventually("nobody waits", SOON, async || somebody_waits(pool).await.is_none().then_some(())).await;
    in_flight.commit().await.expect("it runs");
    assert_eq!(order_ids(&ledger, &product).await, [].into());
    assert_eq!(settle(&ledger, &first, FENCE, &batch).await, all_new());
    assert_sound(&ledger, &product).await;
}

/// A page begins in the index where the page before it ended, also once the server has a plan for any parameters: read from
/// the product's first order each time, a long list would take for ever.
#[tokio::test]
async fn a_page_of_a_products_orders_begins_behind_the_last_one() {
    let postgres = Postgres::shared().await;
    let database = postgres.database().await;
    open_postgres(database.url(), CONNECTIONS, TIMEOUT).await;
    let mut session = database.pool().acquire().await.expect("it runs");
    let query = include_str!("../../../src/ledger/postgres/queries/orders_of_product.sql");
    let explain = [
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;",
        &format!("PREPARE page (smallint, uuid, bigint, text) AS {query}"),
        "; EXPLAIN (COSTS OFF) EXECUTE page (NULL, NULL, 10, 'lamp')",
    ];
    let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain.concat()))
        .fetch_all(&mut *session)
        .await
        .expect("it can be explained");
    let plan: Vec<String> = rows.iter().map(|row| sqlx::Row::get(row, 0)).collect();
    let begins =
        |line: &String| line.contains("Index Cond") && line.contains("product_id") && line.contains("id > COALESCE");
    assert!(plan.iter().any(begins) && !plan.iter().any(|line| line.contains("Sort")), "{plan:#?}");
}
