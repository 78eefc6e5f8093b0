//! Tests of the harness itself: what the other tests take for granted.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use deadpool_redis::redis::{AsyncCommands, RedisResult, cmd};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::RngExt;
use segstock::rig::{self, RigError};
use sqlx::{Connection, PgConnection};

use crate::harness::postgres::Postgres;
use crate::harness::process::{NoLine, Program, Supervised};
use crate::harness::proxy::Proxy;
use crate::harness::redis::Redis;
use crate::harness::scratch::Scratch;
use crate::harness::wait::{eventually, seeded_random};

/// For anything that takes milliseconds on an idle machine.
const SOON: Duration = Duration::from_secs(20);

/// Long enough to see that nothing happens, where nothing may ever happen.
const A_MOMENT: Duration = Duration::from_millis(200);

fn shell(script: &str) -> Program {
    Program::new("sh").argument("-c").argument(script)
}

/// A dead process whose exit status nobody has taken, as happens to orphans in a container without
/// an init, does not run.
fn runs(pid: Pid) -> bool {
    let dead = fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z')));
    !dead && kill(pid, None) != Err(Errno::ESRCH)
}

async fn eventually_gone(pid: Pid) {
    eventually("the process is gone", SOON, async || (!runs(pid)).then_some(())).await;
}

/// A child that cannot be asked to leave, and is past the point where it could be.
async fn stubborn_child(folder: &Scratch) -> Supervised {
    let child = shell("trap '' TERM INT HUP; echo ready; while :; do sleep 1; done").start(folder);
    child.wait_for_line(|line| (line == "ready").then_some(()), SOON).await.expect("it says so");
    child
}

#[tokio::test]
async fn a_child_dies_with_its_handle() {
    let folder = Scratch::new();
    let child = stubborn_child(&folder).await;
    let pid = child.pid();
    assert!(runs(pid));
    drop(child);
    assert_eq!(kill(pid, None), Err(Errno::ESRCH), "reaped before drop returns");
}

#[tokio::test]
async fn a_paused_child_dies_with_its_handle() {
    let folder = Scratch::new();
    let child = stubborn_child(&folder).await;
    let pid = child.pid();
    child.signal(Signal::SIGSTOP);
    drop(child);
    assert!(!runs(pid));
}

#[tokio::test]
async fn the_exit_of_a_child_is_told_as_it_was() {
    let folder = Scratch::new();
    let child = shell("echo out; echo err >&2; exit 7").start(&folder);
    assert_eq!(child.wait_exit(SOON).await.code(), Some(7));
    assert_eq!(child.stdout(), "out\n");
    assert_eq!(child.stderr(), "err\n");

    let child = stubborn_child(&folder).await;
    child.signal(Signal::SIGKILL);
    assert_eq!(child.wait_exit(SOON).await.signal(), Some(9));

    let child = shell("echo unfinished").start(&folder);
    let line = child.wait_for_line(|_| None::<()>, SOON).await;
    assert!(matches!(line, Err(NoLine::Exited(status)) if status.success()));
}

/// Not a test of its own: the process that the next test kills. Writes the process ids of what it
/// holds and the folder they live in to the file in `SEGSTOCK_TEST_HOLDER`.
#[tokio::test]
async fn holder() {
    let Some(report) = std::env::var_os("SEGSTOCK_TEST_HOLDER") else {
        return;
    };
    let folder = Scratch::new();
    let child = stubborn_child(&folder).await;
    let postgres = Postgres::start().await;
    postgres.pause();
    let text = format!("{}\n{}\n{}\n", child.pid(), postgres.pid(), folder.path().display());
    // Renamed into place, so that nobody reads half of it.
    let report = PathBuf::from(report);
    let unfinished = report.with_extension("unfinished");
    fs::write(&unfinished, text).expect("the folder is writable");
    fs::rename(unfinished, report).expect("the folder is writable");
    std::future::pending().await
}

#[tokio::test]
async fn children_die_when_the_test_binary_is_killed() {
    let folder = Scratch::new();
    let report = folder.join("report");
    let binary = std::env::current_exe().expect("the test binary is a file");
    // Without our supervision, whose watchers would otherwise lend a hand.
    let mut holder = Command::new(binary)
        .args(["--exact", "harness_works::holder"])
        .env("SEGSTOCK_TEST_HOLDER", &report)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the test binary runs");
    let report =
        eventually("the holder reports", Duration::from_secs(60), async || fs::read_to_string(&report).ok()).await;
    holder.kill().expect("it is our child");
    holder.wait().expect("it is our child");

    let lines: Vec<&str> = report.lines().collect();
    let pids = [lines[0], lines[1]].map(|pid| Pid::from_raw(pid.parse().expect("a process id")));
    for pid in pids {
        eventually_gone(pid).await;
    }
    eventually("the folder is removed", SOON, async || (!PathBuf::from(lines[2]).exists()).then_some(())).await;
}

#[tokio::test]
async fn redis_starts_dies_and_restarts_empty() {
    let redis = Redis::start().await;
    let mut connection = redis.connection().await;
    let () = connection.set("key", 1).await.expect("it runs");

    redis.kill().await;
    let answer: RedisResult<i64> = connection.get("key").await;
    answer.expect_err("it is dead");

    redis.restart().await;
    let mut connection = redis.connection().await;
    assert!(!connection.exists::<_, bool>("key").await.expect("it runs"));

    let () = connection.set("key", 1).await.expect("it runs");
    redis.flush_all().await;
    assert!(!connection.exists::<_, bool>("key").await.expect("it runs"));
}

#[tokio::test]
async fn redis_answers_after_a_pause_only() {
    let redis = Redis::start().await;
    let mut connection = redis.connection().await;
    redis.pause();
    let mut asking = tokio::spawn(async move { connection.incr::<_, _, i64>("key", 1).await });
    tokio::time::timeout(A_MOMENT, &mut asking).await.expect_err("it is paused");
    redis.resume();
    let answer = asking.await.expect("no panic");
    assert_eq!(answer.expect("it runs again"), 1);
}

/// What the rig says to someone who is not a test.
#[tokio::test]
async fn a_server_that_does_not_start_is_an_error_with_its_logs() {
    let redis = rig::redis::Redis::start(&["--maxmemory", "much"]).await;
    let postgres = rig::postgres::Postgres::start(&[("shared_buffers", "much")]).await;
    let errors = [redis.map(drop), postgres.map(drop)].map(|outcome| outcome.expect_err("much is no number"));
    for (error, setting) in errors.iter().zip(["maxmemory", "shared_buffers"]) {
        assert!(matches!(error, RigError::Ended { .. }), "{error}");
        assert!(error.to_string().contains(setting), "{error}");
    }
}

#[tokio::test]
async fn databases_of_the_shared_postgres_are_separate() {
    let postgres = Postgres::shared().await;
    let (one, other) = tokio::join!(postgres.database(), postgres.database());
    assert_ne!(one.name(), other.name());
    sqlx::query("CREATE TABLE only_here (id int)").execute(one.pool()).await.expect("a new database is empty");
    let answer: i32 = sqlx::query_scalar("SELECT 1").fetch_one(other.pool()).await.expect("it runs");
    assert_eq!(answer, 1);
    sqlx::query("CREATE TABLE only_here (id int)").execute(other.pool()).await.expect("a new database is empty");
}

#[tokio::test]
async fn postgres_keeps_what_was_committed() {
    let postgres = Postgres::start().await;
    let database = postgres.database().await;
    sqlx::query("CREATE TABLE kept (id int)").execute(database.pool()).await.expect("it runs");
    for (id, crash) in [(1, false), (2, true)] {
        sqlx::query("INSERT INTO kept VALUES ($1)").bind(id).execute(database.pool()).await.expect("it runs");
        match crash {
            true => postgres.crash().await,
            false => postgres.stop().await,
        }
        PgConnection::connect(database.url()).await.expect_err("it is down");
        postgres.start_again().await;
        let kept: i64 =
            sqlx::query_scalar("SELECT count(*) FROM kept").fetch_one(database.pool()).await.expect("it runs again");
        assert_eq!(kept, i64::from(id));
    }
}

#[tokio::test]
async fn postgres_answers_after_a_pause_only() {
    let postgres = Postgres::start().await;
    let database = postgres.database().await;
    let mut session = database.pool().acquire().await.expect("it runs");
    postgres.pause();
    let mut asking =
        tokio::spawn(async move { sqlx::query_scalar::<_, i32>("SELECT 1").fetch_one(&mut *session).await });
    tokio::time::timeout(A_MOMENT, &mut asking).await.expect_err("an open session is paused too");
    postgres.resume();
    let answer = asking.await.expect("no panic");
    assert_eq!(answer.expect("it runs again"), 1);
}

/// A connection by way of the proxy that gives up soon, and does not connect again by itself.
async fn connect_through(proxy: &Proxy, redis: &Redis) -> RedisResult<crate::harness::redis::MultiplexedConnection> {
    let config = deadpool_redis::redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(SOON))
        .set_response_timeout(Some(SOON));
    deadpool_redis::redis::Client::open(proxy.url_through(&redis.url()))?
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

#[tokio::test]
async fn the_proxy_forwards_cuts_and_forwards_again() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.address()).await;
    let mut connection = connect_through(&proxy, &redis).await.expect("it forwards");
    assert_eq!(connection.incr::<_, _, i64>("key", 1).await, Ok(1));

    proxy.cut().await;
    let answer: RedisResult<i64> = connection.incr("key", 1).await;
    answer.expect_err("the connection is cut");
    let refusal = tokio::net::TcpStream::connect(proxy.address()).await;
    let refusal = refusal.expect_err("new ones are refused");
    assert_eq!(refusal.kind(), std::io::ErrorKind::ConnectionRefused);

    proxy.forward().await;
    let mut connection = connect_through(&proxy, &redis).await.expect("it forwards");
    assert_eq!(connection.incr::<_, _, i64>("key", 1).await, Ok(2));
}

#[tokio::test]
async fn the_proxy_swallows_in_the_black_hole() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.address()).await;
    let mut connection = connect_through(&proxy, &redis).await.expect("it forwards");

    proxy.black_hole().await;
    let mut asking = tokio::spawn(async move { connection.incr::<_, _, i64>("key", 1).await });
    tokio::time::timeout(A_MOMENT, &mut asking).await.expect_err("nothing comes back");
    tokio::net::TcpStream::connect(proxy.address()).await.expect("new connections are accepted");

    proxy.forward().await;
    asking.await.expect("no panic").expect_err("bytes are missing, so the connection is closed");
    let mut connection = connect_through(&proxy, &redis).await.expect("it forwards");
    assert_eq!(connection.incr::<_, _, i64>("key", 1).await, Ok(1));
}

#[tokio::test]
async fn the_proxy_delays() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.address()).await;
    let mut connection = connect_through(&proxy, &redis).await.expect("it forwards");
    proxy.delay(A_MOMENT);
    let start = std::time::Instant::now();
    let () = cmd("PING").query_async(&mut connection).await.expect("late, but it comes");
    assert!(start.elapsed() >= A_MOMENT);
}

#[tokio::test]
async fn the_proxy_loses_an_answer_after_the_work_is_done() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.address()).await;
    let mut connection = connect_through(&proxy, &redis).await.expect("it forwards");

    proxy.drop_answer_after("marked");
    assert_eq!(connection.incr::<_, _, i64>("other", 1).await, Ok(1));
    assert!(!proxy.armed_hit());
    let answer: RedisResult<i64> = connection.incr("marked", 1).await;
    answer.expect_err("the answer is lost");
    proxy.wait_hit(SOON).await;
    let counter: i64 = redis.connection().await.get("marked").await.expect("it runs");
    assert_eq!(counter, 1);

    let mut connection = connect_through(&proxy, &redis).await.expect("it forwards");
    assert_eq!(connection.incr::<_, _, i64>("marked", 1).await, Ok(2), "the trap snaps once");
}

#[tokio::test]
async fn the_proxy_loses_the_answer_to_a_commit() {
    let database = Postgres::shared().await.database().await;
    let proxy = Proxy::start(Postgres::shared().await.address()).await;
    sqlx::query("CREATE TABLE orders (customer text)").execute(database.pool()).await.expect("it runs");
    let pool = sqlx::PgPool::connect(&proxy.url_through(database.url())).await.expect("it forwards");
    // More than a megabyte of parameters, and an answer of which parts come before the commit.
    let insert = "INSERT INTO orders SELECT unnest($1::text[]) RETURNING customer";
    for (batch, lost) in [("first", false), ("second", true)] {
        let customers: Vec<String> = (0..50_000).map(|number| format!("{batch}-customer-{number:05}")).collect();
        if lost {
            proxy.drop_answer_after(format!("{batch}-customer-00000"));
        }
        let answer = sqlx::query(insert).bind(customers).fetch_all(&pool).await;
        assert_eq!(answer.is_err(), lost);
    }
    proxy.wait_hit(SOON).await;
    let committed: i64 =
        sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(database.pool()).await.expect("it runs");
    assert_eq!(committed, 100_000);
}

#[test]
fn the_seed_repeats() {
    let numbers = || -> [u64; 4] { seeded_random().random() };
    assert_eq!(numbers(), numbers());
}
