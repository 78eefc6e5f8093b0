//! A private redis-server that keeps nothing, and can be killed, restarted and paused.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deadpool_redis::redis::{AsyncConnectionConfig, Client, InfoDict, RedisResult, cmd};
use nix::sys::signal::Signal;

use super::ports::start_on_free_port;
use super::process::{Program, Supervised};
use super::scratch::Scratch;

pub(crate) use deadpool_redis::redis::aio::MultiplexedConnection;

const START_WITHIN: Duration = Duration::from_secs(20);

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A Redis of its own for one test.
#[derive(Debug)]
pub(crate) struct Redis {
    // Before the folder it writes to: fields are dropped in this order.
    process: Mutex<Arc<Supervised>>,
    address: SocketAddr,
    folder: Scratch,
}

impl Redis {
    pub(crate) async fn start() -> Redis {
        start_on_free_port("redis-server", async |address| {
            let folder = Scratch::new();
            let process = start_process(address, &folder).await?;
            Ok(Redis { process: Mutex::new(Arc::new(process)), address, folder })
        })
        .await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        url(self.address)
    }

    /// A new connection that lives as long as the caller's runtime.
    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        connect(self.address).await.expect("the test's own Redis runs")
    }

    /// Ends the server as a crash does.
    pub(crate) async fn kill(&self) {
        let process = self.process();
        process.signal(Signal::SIGKILL);
        process.wait_exit(START_WITHIN).await;
    }

    /// Starts the server again on its port, empty, after ending it where it still runs.
    pub(crate) async fn restart(&self) {
        self.kill().await;
        let deadline = Instant::now() + START_WITHIN;
        let process = loop {
            match start_process(self.address, &self.folder).await {
                Ok(process) => break process,
                // Someone else may sit on the port for a moment.
                Err(failure) if Instant::now() > deadline => panic!("{failure}"),
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        *self.process.lock().expect("no panic under this lock") = Arc::new(process);
    }

    pub(crate) async fn flush_all(&self) {
        let () = cmd("FLUSHALL").query_async(&mut self.connection().await).await.expect("FLUSHALL succeeds");
    }

    /// Makes the server hang: it accepts connections, by way of the kernel, and answers nothing.
    pub(crate) fn pause(&self) {
        self.process().signal(Signal::SIGSTOP);
    }

    pub(crate) fn resume(&self) {
        self.process().signal(Signal::SIGCONT);
    }

    fn process(&self) -> Arc<Supervised> {
        self.process.lock().expect("no panic under this lock").clone()
    }
}

fn url(address: SocketAddr) -> String {
    format!("redis://{address}/")
}

async fn connect(address: SocketAddr) -> RedisResult<MultiplexedConnection> {
    // The crate's own half second is not enough on a busy machine.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(10)))
        .set_response_timeout(Some(Duration::from_secs(10)));
    Client::open(url(address))?.get_multiplexed_async_connection_with_config(&config).await
}

async fn start_process(address: SocketAddr, folder: &Scratch) -> Result<Supervised, String> {
    let process = Program::new("redis-server")
        .arguments(["--bind".to_owned(), address.ip().to_string()])
        .arguments(["--port".to_owned(), address.port().to_string()])
        .arguments(["--save", "", "--appendonly", "no", "--daemonize", "no"])
        .argument("--dir")
        .argument(folder.path())
        .start(folder);
    let deadline = Instant::now() + START_WITHIN;
    while !answers(address, &process).await {
        if let Some(status) = process.exit_status() {
            return Err(format!(
                "redis-server (Debian: redis-server, Homebrew: redis) ended with {status}\n{}",
                process.logs()
            ));
        }
        if Instant::now() > deadline {
            return Err(format!("redis-server does not answer\n{}", process.logs()));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(process)
}

/// Whether the server answers, and is the one we started: another one may have had the port first.
async fn answers(address: SocketAddr, process: &Supervised) -> bool {
    let Ok(mut connection) = connect(address).await else {
        return false;
    };
    let Ok(()) = cmd("PING").query_async(&mut connection).await else {
        return false;
    };
    let info: RedisResult<InfoDict> = cmd("INFO").arg("server").query_async(&mut connection).await;
    info.is_ok_and(|info| info.get::<i32>("process_id") == Some(process.pid().as_raw()))
}
