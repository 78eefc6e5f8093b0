//! What only a guard in another process can go through: a Redis that forgets, hangs, dies and comes back, and a network
//! that is cut. Also what others may rely on: the names of the keys and the number of trips.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deadpool_redis::redis::{AsyncCommands, cmd};
use segstock::guard::{Acquired, Ending, LeaseError, Token, Trust};

use super::under::{LONG, SHORT, SOON, Under, leased, ledger_says};
use crate::harness::proxy::Proxy;
use crate::harness::redis::{MultiplexedConnection, Redis};
use crate::harness::wait::eventually;

/// The guard's limit for one call: soon over, and no risk while Redis is well.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A call may wait for a connection, make one and use it, each within the timeout.
const ALL_TIMEOUTS: Duration = Duration::from_secs(5);

async fn with_private_redis(time_limit: Duration) -> (Redis, Under) {
    let redis = Redis::start().await;
    let under = Under::redis(&redis, time_limit, TIMEOUT).await;
    (redis, under)
}

/// Fails unless the guard says that Redis does not answer, within its timeouts.
async fn assert_no_answer(under: &Under, token: &Token) {
    let start = Instant::now();
    let trying = under.guard.acquire(&under.segment, token, Trust::Count);
    let answer = tokio::time::timeout(SOON, trying).await;
    assert!(answer.expect("it does not hang").is_err());
    let elapsed = start.elapsed();
    assert!(elapsed < ALL_TIMEOUTS, "gave up after {elapsed:?}");
}

/// Each connection that has died unnoticed may cost one answer.
async fn eventually_answers(under: &Under) {
    eventually("the guard answers again", SOON, async || under.guard.ping().await.ok()).await;
}

async fn flush_scripts(connection: &mut MultiplexedConnection) {
    let () = cmd("SCRIPT").arg("FLUSH").query_async(connection).await.expect("it runs");
}

#[tokio::test]
async fn forgotten_scripts_go_unnoticed() {
    let (redis, under) = with_private_redis(LONG).await;
    let mut connection = redis.connection().await;
    under.stock(10).await;
    flush_scripts(&mut connection).await;
    let mut lease = under.lease(&Token::random()).await;
    flush_scripts(&mut connection).await;
    lease.renew().await.expect("it is held");
    flush_scripts(&mut connection).await;
    let reloaded = ledger_says(&lease, 10);
    lease.reload(reloaded).await.expect("it is held");
    flush_scripts(&mut connection).await;
    lease.release(Ending::Clean { taken: 1 }).await.expect("it is held");
    assert_eq!(under.inspect().await.map(|held| held.stock), Some(9));
}

#[tokio::test]
async fn everything_forgotten_loses_the_lease() {
    let (redis, under) = with_private_redis(LONG).await;
    under.stock(10).await;
    let lease = under.lease(&Token::random()).await;
    redis.flush_all().await;
    assert_eq!(under.inspect().await, None);
    let ending = lease.release(Ending::Clean { taken: 1 }).await;
    assert!(matches!(ending, Err(LeaseError::Lost)));
    assert_eq!(under.inspect().await, None, "nothing was written");
    let next = under.lease(&Token::random()).await;
    assert_eq!(next.stock(), None);
}

#[tokio::test]
async fn a_lost_count_needs_a_reload() {
    let (redis, under) = with_private_redis(LONG).await;
    let mut connection = redis.connection().await;
    for field in ["stock", "epoch", "fence"] {
        under.stock(10).await;
        let removed: usize = connection.hdel(under.state_key(), field).await.expect("it runs");
        assert_eq!(removed, 1);
        assert_eq!(under.lease_and_release_dirty().await, None, "no {field}");
    }
}

#[tokio::test]
async fn a_restarted_redis_is_used_again() {
    let (redis, under) = with_private_redis(LONG).await;
    under.stock(10).await;
    let lease = under.lease(&Token::random()).await;
    let before = lease.fence();
    redis.restart().await;
    // Over its own connection or a new one, the answer is the same.
    let ending = lease.release(Ending::Clean { taken: 1 }).await;
    assert!(ending.is_err(), "Redis knows nothing of it");

    eventually_answers(&under).await;
    let mut next = under.lease(&Token::random()).await;
    assert_eq!(next.stock(), None);
    // The ledger has kept the fence.
    let mut reloaded = ledger_says(&next, 9);
    reloaded.fence = next.fence().after_reload(before);
    next.reload(reloaded).await.expect("it is held");
    assert!(next.fence() > before);
    next.release(Ending::Clean { taken: 0 }).await.expect("it is held");
}

#[tokio::test]
async fn a_dead_redis_is_an_error_in_time() {
    let (redis, under) = with_private_redis(LONG).await;
    under.stock(10).await;
    let mut lease = under.lease(&Token::random()).await;
    redis.kill().await;
    for _ in 0..3 {
        assert_no_answer(&under, &Token::random()).await;
    }
    assert!(matches!(lease.renew().await, Err(LeaseError::Guard(_))));
    assert!(lease.remaining().is_some(), "an error is not a loss");
    let ending = lease.release(Ending::Dirty).await;
    assert!(matches!(ending, Err(LeaseError::Guard(_))));
    assert!(under.guard.ping().await.is_err());
    assert!(under.guard.inspect(&under.segment).await.is_err());

    redis.restart().await;
    eventually_answers(&under).await;
    under.stock(10).await;
}

#[tokio::test]
async fn a_hanging_redis_is_an_error_in_time() {
    let (redis, under) = with_private_redis(LONG).await;
    under.stock(10).await;
    let mut connection = redis.connection().await;
    let token = Token::random();
    redis.pause();
    assert_no_answer(&under, &token).await;
    redis.resume();

    // The try reaches Redis after all, when nobody waits for its answer any more.
    eventually("the late lease", SOON, async || {
        let holder: Option<String> = connection.get(under.lock_key()).await.expect("it runs");
        (holder.as_deref() == Some(token.as_str())).then_some(())
    })
    .await;
    under.busy_for().await;
    let fence = under.inspect().await.map(|held| held.fence);
    let lease = under.lease(&token).await;
    assert_eq!(Some(lease.fence()), fence, "it is the same lease");
    assert_eq!(lease.stock(), Some(10));
    lease.release(Ending::Clean { taken: 1 }).await.expect("it is held");
}

#[tokio::test]
async fn a_release_goes_around_a_cut_connection() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.address()).await;
    let url = proxy.url_through(&redis.url());
    let under = Under::redis_at(&url, LONG, TIMEOUT).await;
    under.stock(10).await;
    let lease = under.lease(&Token::random()).await;
    proxy.cut().await;
    proxy.forward().await;
    lease.release(Ending::Clean { taken: 1 }).await.expect("Redis is well");
    eventually_answers(&under).await;
    assert_eq!(under.lease(&Token::random()).await.stock(), Some(9));
}

#[tokio::test]
async fn a_release_whose_answer_is_lost_counts_once() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.address()).await;
    let url = proxy.url_through(&redis.url());
    let under = Under::redis_at(&url, LONG, TIMEOUT).await;
    under.stock(10).await;
    let token = Token::random();
    let lease = under.lease(&token).await;
    proxy.drop_answer_after(token.as_str());
    // The repetition finds that the token holds nothing any more, and cannot know why.
    let ending = lease.release(Ending::Clean { taken: 1 }).await;
    assert!(matches!(ending, Err(LeaseError::Lost)));
    assert!(proxy.armed_hit());
    eventually_answers(&under).await;
    assert_eq!(under.inspect().await.map(|held| held.stock), Some(9));
}

#[tokio::test]
async fn work_keeps_its_lease_over_a_cut_connection() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.address()).await;
    let url = proxy.url_through(&redis.url());
    let cut_off = Under::redis_at(&url, SHORT, TIMEOUT).await;
    let mut direct = Under::redis(&redis, SHORT, TIMEOUT).await;
    direct.segment = cut_off.segment.clone();
    cut_off.stock(10).await;
    let mut lease = cut_off.lease(&Token::random()).await;
    let work = async {
        proxy.cut().await;
        proxy.forward().await;
        let start = Instant::now();
        eventually("four time limits have passed", SOON, async || {
            direct.busy_for().await;
            (start.elapsed() > SHORT * 4).then_some(())
        })
        .await;
    };
    lease.keep_during(work).await;
    lease.release(Ending::Clean { taken: 1 }).await.expect("it is held");
    assert_eq!(direct.lease(&Token::random()).await.stock(), Some(9));
}

async fn sorted_keys(connection: &mut MultiplexedConnection) -> Vec<String> {
    let mut keys: Vec<String> = connection.keys("*").await.expect("it runs");
    keys.sort();
    keys
}

#[tokio::test]
async fn the_keys_are_the_documented_ones() {
    let (redis, under) = with_private_redis(LONG).await;
    let mut connection = redis.connection().await;
    let (state, lock) = (under.state_key(), under.lock_key());
    let token = Token::random();
    let mut lease = under.lease(&token).await;
    assert_eq!(sorted_keys(&mut connection).await, [state.clone(), lock.clone()]);
    let holder: String = connection.get(&lock).await.expect("it runs");
    assert_eq!(holder, token.as_str());
    let limit = LONG.as_millis() as i64;
    let lasts: i64 = connection.pttl(&lock).await.expect("it runs");
    assert!((1..=limit).contains(&lasts), "{lasts} ms");

    let reloaded = ledger_says(&lease, 10);
    lease.reload(reloaded).await.expect("it is held");
    lease.renew().await.expect("it is held");
    let lasts: i64 = connection.pttl(&lock).await.expect("it runs");
    assert!((1..=limit).contains(&lasts), "{lasts} ms");
    lease.release(Ending::Clean { taken: 1 }).await.expect("it is held");
    assert_eq!(sorted_keys(&mut connection).await, std::slice::from_ref(&state));
    let fields: BTreeMap<String, i64> = connection.hgetall(&state).await.expect("it runs");
    let expected = [("epoch", 0), ("fence", reloaded.fence.0), ("stock", 9)];
    assert_eq!(fields, expected.map(|(field, value)| (field.to_owned(), value)).into());
    let lasts: i64 = connection.pttl(&state).await.expect("it runs");
    assert_eq!(lasts, -1, "a fence that expired could be handed out again");
}

#[tokio::test]
async fn a_round_costs_two_trips() {
    const ROUNDS: u64 = 5;
    let (redis, under) = with_private_redis(LONG).await;
    under.stock(10).await;
    redis.reset_counts().await;
    for _ in 0..ROUNDS {
        let lease = under.lease(&Token::random()).await;
        lease.release(Ending::Clean { taken: 1 }).await.expect("it is held");
    }
    // One in each script: nobody asks in between.
    assert_eq!(redis.command_counts().await.get("get"), Some(&(2 * ROUNDS)));
    assert_eq!(redis.trips().await, [("evalsha".to_owned(), 2 * ROUNDS)].into());
}

#[tokio::test]
async fn a_busy_or_empty_segment_costs_one_trip_and_keeps_no_connection() {
    let (redis, under) = with_private_redis(LONG).await;
    let holder = Token::random();
    let lease = under.lease(&holder).await;
    // More than there are connections.
    for _ in 0..50 {
        let acquired = under.acquire(&Token::random()).await;
        assert!(matches!(acquired, Acquired::Busy { .. }), "{acquired:?}");
    }
    lease.release(Ending::Dirty).await.expect("it is held");
    under.stock(0).await;
    let before = redis.command_counts().await["evalsha"];
    for _ in 0..50 {
        let acquired = under.acquire(&Token::random()).await;
        assert!(matches!(acquired, Acquired::Empty), "{acquired:?}");
    }
    let after = redis.command_counts().await["evalsha"];
    assert_eq!(after - before, 50);
    let lease = leased(under.acquire_with(&holder, Trust::LedgerOnly).await);
    lease.release(Ending::Dirty).await.expect("it is held");
}
