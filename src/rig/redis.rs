//! A private redis-server that keeps nothing, unless it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{AsyncConnectionConfig, Client, InfoDict, RedisResult, cmd};
use nix::unistd::Pid;

use super::RigError;
use super::ports::{start_again, start_on_free_port};
use super::process::{Program, Supervised, search_path};
use super::scratch::Scratch;

const PROGRAM: &str = "redis-server";

const START_WITHIN: Duration = Duration::from_secs(20);

/// The crate's own half second is not enough on a busy machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A Redis of one's own, ended with its handle.
#[derive(Debug)]
pub struct Redis {
    // Before the folder it writes to: fields are dropped in this order.
    process: Mutex<Arc<Supervised>>,
    address: SocketAddr,
    options: Vec<String>,
    folder: Scratch,
}

impl Redis {
    /// Starts a server and waits until it answers. The options are words of its command line, `["--io-threads", "2"]`,
    /// and win over those that are given anyway: no snapshots, no append-only file.
    pub async fn start(options: &[&str]) -> Result<Redis, RigError> {
        if !search_path().iter().any(|folder| folder.join(PROGRAM).is_file()) {
            return Err(RigError::NotInstalled {
                program: PROGRAM,
                advice: "install the package redis-server (Debian, Ubuntu: `apt-get install redis-server`, Homebrew: \
                         `brew install redis`)",
            });
        }
        let folder = Scratch::new()?;
        let options: Vec<String> = options.iter().copied().map(str::to_owned).collect();
        let (address, process) = start_on_free_port(|address| start_process(address, &options, &folder)).await?;
        Ok(Redis { process: Mutex::new(Arc::new(process)), address, options, folder })
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `redis://127.0.0.1:PORT/`.
    pub fn url(&self) -> String {
        url(self.address)
    }

    /// The server's process id. Another one after each start.
    pub fn pid(&self) -> Pid {
        self.process().pid()
    }

    /// The server's process, to be ended, stopped and watched.
    pub fn process(&self) -> Arc<Supervised> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new connection that lives as long as the caller's runtime.
    pub async fn connection(&self) -> RedisResult<MultiplexedConnection> {
        connect(self.address).await
    }

    /// Starts a server that has ended again: with the same port, options and folder.
    pub async fn start_again(&self) -> Result<(), RigError> {
        let start = || start_process(self.address, &self.options, &self.folder);
        let process = start_again(START_WITHIN, start).await?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(process);
        Ok(())
    }
}

fn url(address: SocketAddr) -> String {
    format!("redis://{address}/")
}

async fn connect(address: SocketAddr) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ANSWER_WITHIN))
        .set_response_timeout(Some(ANSWER_WITHIN));
    Client::open(url(address))?.get_multiplexed_async_connection_with_config(&config).await
}

async fn start_process(address: SocketAddr, options: &[String], folder: &Scratch) -> Result<Supervised, RigError> {
    let process = Program::new(PROGRAM)
        .arguments(["--bind".to_owned(), address.ip().to_string()])
        .arguments(["--port".to_owned(), address.port().to_string()])
        .arguments(["--save", "", "--appendonly", "no", "--daemonize", "no"])
        .argument("--dir")
        .argument(folder.path())
        .arguments(options)
        .start(folder)?;
    process.wait_until_it_answers(START_WITHIN, || answers(address, process.pid())).await?;
    Ok(process)
}

/// Whether the server answers, and is the one we started: another one may have had the port first.
async fn answers(address: SocketAddr, pid: Pid) -> bool {
    let Ok(mut connection) = connect(address).await else {
        return false;
    };
    let Ok(()) = cmd("PING").query_async(&mut connection).await else {
        return false;
    };
    let info: RedisResult<InfoDict> = cmd("INFO").arg("server").query_async(&mut connection).await;
    info.is_ok_and(|info| info.get::<i32>("process_id") == Some(pid.as_raw()))
}
