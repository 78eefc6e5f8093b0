//! A private redis-server that keeps nothing, and can be killed, restarted and paused.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use deadpool_redis::redis::cmd;
use nix::sys::signal::Signal;
use segstock::rig::redis;

use super::or_panic;

pub(crate) use deadpool_redis::redis::aio::MultiplexedConnection;

const END_WITHIN: Duration = Duration::from_secs(20);

/// A Redis of its own for one test.
#[derive(Debug)]
pub(crate) struct Redis(redis::Redis);

impl Redis {
    pub(crate) async fn start() -> Redis {
        Redis(or_panic(redis::Redis::start(&[]).await))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    /// A new connection that lives as long as the caller's runtime.
    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        self.0.connection().await.expect("the test's own Redis runs")
    }

    /// Ends the server as a crash does.
    pub(crate) async fn kill(&self) {
        let process = self.0.process();
        process.signal(Signal::SIGKILL);
        or_panic(process.wait_exit(END_WITHIN).await);
    }

    /// Starts the server again on its port, empty, after ending it where it still runs.
    pub(crate) async fn restart(&self) {
        self.kill().await;
        or_panic(self.0.start_again().await);
    }

    /// Begins to count commands anew.
    pub(crate) async fn reset_counts(&self) {
        let mut connection = self.connection().await;
        let () = cmd("CONFIG").arg("RESETSTAT").query_async(&mut connection).await.expect("it runs");
    }

    /// How often the server has run each command, those inside scripts included.
    pub(crate) async fn command_counts(&self) -> BTreeMap<String, u64> {
        let mut connection = self.connection().await;
        let text: String = cmd("INFO").arg("commandstats").query_async(&mut connection).await.expect("it runs");
        let count = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let calls = rest.split(',').next()?.parse().ok()?;
            Some((name.to_owned(), calls))
        };
        text.lines().filter_map(count).collect()
    }

    /// How often clients have sent each command: without what runs inside scripts, without what a new connection says of
    /// itself, and without what tests ask.
    pub(crate) async fn trips(&self) -> BTreeMap<String, u64> {
        const INSIDE_SCRIPTS: [&str; 9] = ["get", "set", "pttl", "hget", "hmget", "hset", "hincrby", "hdel", "del"];
        const BY_TESTS: [&str; 3] = ["config", "info", "keys"];
        let mut counts = self.command_counts().await;
        counts.retain(|name, _| {
            let name = name.as_str();
            !INSIDE_SCRIPTS.contains(&name) && !BY_TESTS.contains(&name) && !name.contains('|')
        });
        counts
    }

    pub(crate) async fn flush_all(&self) {
        let () = cmd("FLUSHALL").query_async(&mut self.connection().await).await.expect("FLUSHALL succeeds");
    }

    /// Makes the server hang: it accepts connections, by way of the kernel, and answers nothing.
    pub(crate) fn pause(&self) {
        self.0.process().signal(Signal::SIGSTOP);
    }

    pub(crate) fn resume(&self) {
        self.0.process().signal(Signal::SIGCONT);
    }
}
