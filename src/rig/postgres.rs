//! A private Postgres cluster: its files, its server, its databases.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::RigError;
use super::ports::{start_again, start_on_free_port};
use super::postgres_programs;
use super::process::{Program, Supervised};
use super::scratch::{Account, Scratch};

const START_WITHIN: Duration = Duration::from_secs(60);

const STOP_WITHIN: Duration = Duration::from_secs(20);

/// The database that every cluster has.
const FIRST_DATABASE: &str = "postgres";

/// A Postgres cluster of one's own, ended with its handle. Holds no connection and nothing else that is bound to a
/// runtime, so users with a runtime each can share one.
#[derive(Debug)]
pub struct Postgres {
    // Before the folder it writes to: fields are dropped in this order.
    process: Mutex<Arc<Supervised>>,
    address: SocketAddr,
    cluster: Cluster,
}

/// The files of a cluster, and how to run them.
#[derive(Debug)]
struct Cluster {
    folder: Scratch,
    account: Option<Account>,
    programs: PathBuf,
    /// `name=value`.
    settings: Vec<String>,
}

impl Postgres {
    /// Creates a cluster, starts its server and waits until it answers. Where the settings, names and values of the
    /// server's own, do not say otherwise, Postgres decides: so a commit is on disk when it is answered.
    pub async fn start(settings: &[(&str, &str)]) -> Result<Postgres, RigError> {
        let cluster = Cluster::create(settings).await?;
        let (address, process) = start_on_free_port(|address| cluster.start_process(address)).await?;
        Ok(Postgres { process: Mutex::new(Arc::new(process)), address, cluster })
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The postmaster's process id. Another one after each start.
    pub fn pid(&self) -> Pid {
        self.process().pid()
    }

    /// The postmaster's process, to be stopped and watched.
    pub fn process(&self) -> Arc<Supervised> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A connection to the database that every cluster has, as a superuser.
    pub async fn connection(&self) -> sqlx::Result<PgConnection> {
        connect(self.address).await
    }

    /// Creates an empty database and returns its URL. The name has letters, digits and underscores only.
    pub async fn database(&self, name: &str) -> Result<String, RigError> {
        let create = async {
            let mut connection = self.connection().await?;
            sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE \"{name}\""))).execute(&mut connection).await
        };
        create.await.map_err(|source| RigError::Database { name: name.to_owned(), source })?;
        Ok(url(self.address, name))
    }

    /// Shuts down in order: open transactions are rolled back, clients are told and disconnected.
    pub async fn stop(&self) -> Result<(), RigError> {
        self.end(Signal::SIGINT).await
    }

    /// Ends at once, as a crash does: the next start has to recover from the log.
    pub async fn crash(&self) -> Result<(), RigError> {
        self.end(Signal::SIGQUIT).await
    }

    /// Starts a server that has ended again: with the same port, settings and data.
    pub async fn start_again(&self) -> Result<(), RigError> {
        let start = || self.cluster.start_process(self.address);
        let process = start_again(START_WITHIN, start).await?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(process);
        Ok(())
    }

    async fn end(&self, signal: Signal) -> Result<(), RigError> {
        let process = self.process();
        // What is stopped does not hear it.
        process.signal_family(Signal::SIGCONT);
        process.signal(signal);
        process.wait_exit(STOP_WITHIN).await?;
        Ok(())
    }
}

impl Cluster {
    async fn create(settings: &[(&str, &str)]) -> Result<Cluster, RigError> {
        let programs = postgres_programs::folder()?;
        let account = Account::instead_of_root()?;
        let settings = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cluster = Cluster { folder: Scratch::owned_by(account)?, account, programs, settings };
        let creation = cluster
            .program("initdb")
            .argument("--pgdata")
            .argument(cluster.data())
            .arguments(["--username=postgres", "--auth=trust", "--no-sync"])
            .arguments(["--encoding=UTF8", "--locale=C"])
            .start(&cluster.folder)?;
        let status = creation.wait_exit(START_WITHIN).await?;
        if status.success() { Ok(cluster) } else { Err(creation.ended(status)) }
    }

    /// Starts the server and waits until it answers.
    async fn start_process(&self, address: SocketAddr) -> Result<Supervised, RigError> {
        let process = self
            .program("postgres")
            .argument("-D")
            .argument(self.data())
            .argument("-k")
            .argument(self.folder.path())
            .arguments(["-h".to_owned(), address.ip().to_string()])
            .arguments(["-p".to_owned(), address.port().to_string()])
            // In the data folder, where a killed server leaves nothing behind for good.
            .arguments(["-c", "dynamic_shared_memory_type=mmap"])
            .arguments(self.settings.iter().flat_map(|setting| ["-c", setting]))
            // Immediate shutdown: a killed server would not give its shared memory back.
            .last_signal(Signal::SIGQUIT)
            .start(&self.folder)?;
        process.wait_until_it_answers(START_WITHIN, || self.answers(address)).await?;
        Ok(process)
    }

    /// Whether the server answers, and is this cluster's: another one may have had the port first.
    async fn answers(&self, address: SocketAddr) -> bool {
        let Ok(mut connection) = connect(address).await else {
            return false;
        };
        let data: sqlx::Result<String> = sqlx::query_scalar("SHOW data_directory").fetch_one(&mut connection).await;
        data.is_ok_and(|data| self.data() == Path::new(&data))
    }

    fn program(&self, name: &str) -> Program {
        Program::new(self.programs.join(name)).run_as(self.account)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

fn url(address: SocketAddr, database: &str) -> String {
    format!("postgres://postgres@{address}/{database}")
}

async fn connect(address: SocketAddr) -> sqlx::Result<PgConnection> {
    PgConnection::connect(&url(address, FIRST_DATABASE)).await
}
