//! A private Postgres cluster that can be stopped, crashed, started again and paused, and the
//! databases in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tokio::sync::OnceCell;

use super::ports::start_on_free_port;
use super::postgres_programs;
use super::process::{Program, Supervised};
use super::scratch::{Account, Scratch};

const START_WITHIN: Duration = Duration::from_secs(60);

const STOP_WITHIN: Duration = Duration::from_secs(20);

const ACQUIRE_WITHIN: Duration = Duration::from_secs(10);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A Postgres cluster of its own. Holds no connection and nothing else that is bound to a runtime,
/// so tests with a runtime each can share one.
#[derive(Debug)]
pub(crate) struct Postgres {
    // Before the folder it writes to: fields are dropped in this order.
    process: Mutex<Arc<Supervised>>,
    address: SocketAddr,
    cluster: Cluster,
    abandoned: Abandoned,
}

/// Names of databases whose tests have ended. The next test drops them, because a destructor
/// cannot wait for it, and the disk of a long test run would fill up.
type Abandoned = Arc<Mutex<Vec<String>>>;

/// The files of a cluster, and how to run them.
#[derive(Debug)]
struct Cluster {
    folder: Scratch,
    account: Option<Account>,
    programs: PathBuf,
}

impl Postgres {
    /// A new cluster, for a test that stops or pauses it.
    pub(crate) async fn start() -> Postgres {
        let mut cluster = Some(Cluster::create().await);
        start_on_free_port("postgres", async |address| {
            let files = cluster.as_ref().expect("taken by the last attempt only");
            let process = files.start_process(address).await?;
            Ok(Postgres {
                process: Mutex::new(Arc::new(process)),
                address,
                cluster: cluster.take().expect("taken by the last attempt only"),
                abandoned: Abandoned::default(),
            })
        })
        .await
    }

    /// The cluster that all tests may share which leave it running.
    pub(crate) async fn shared() -> &'static Postgres {
        // Never dropped: its watcher ends it together with this process.
        static SHARED: OnceCell<Postgres> = OnceCell::const_new();
        SHARED.get_or_init(Postgres::start).await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The postmaster's process id. Another one after each start.
    pub(crate) fn pid(&self) -> Pid {
        self.process().pid()
    }

    /// A new, empty database.
    pub(crate) async fn database(&self) -> Database {
        let mut connection = connect(self.address).await.expect("the test's Postgres runs");
        let abandoned = std::mem::take(&mut *self.abandoned.lock().expect("no panic under lock"));
        for name in abandoned {
            let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            // Tidiness only: the whole cluster goes away in the end.
            let _ = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await;
        }
        let name = format!("test_{:016x}", rand::random::<u64>());
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut connection)
            .await
            .expect("a superuser may create databases");
        let url = url(self.address, &name);
        Database {
            pool: PgPoolOptions::new()
                .max_connections(8)
                // A pool goes on knocking at a stopped server for that long.
                .acquire_timeout(ACQUIRE_WITHIN)
                .connect_lazy(&url)
                .expect("the harness writes valid addresses"),
            url,
            name,
            abandoned: self.abandoned.clone(),
        }
    }

    /// Shuts down in order: open transactions are rolled back, clients are told and disconnected.
    pub(crate) async fn stop(&self) {
        self.end(Signal::SIGINT).await;
    }

    /// Ends at once, as a crash does: the next start has to recover from the log.
    pub(crate) async fn crash(&self) {
        self.end(Signal::SIGQUIT).await;
    }

    /// Starts a stopped cluster with the same port and data.
    pub(crate) async fn start_again(&self) {
        let deadline = Instant::now() + START_WITHIN;
        let process = loop {
            match self.cluster.start_process(self.address).await {
                Ok(process) => break process,
                // Someone else may sit on the port, or a last child of the crashed server on the
                // files, for a moment.
                Err(failure) if Instant::now() > deadline => panic!("{failure}"),
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        };
        *self.process.lock().expect("no panic under this lock") = Arc::new(process);
    }

    /// Makes the server and all its sessions hang, with the connections open.
    pub(crate) fn pause(&self) {
        self.process().signal_family(Signal::SIGSTOP);
    }

    pub(crate) fn resume(&self) {
        self.process().signal_family(Signal::SIGCONT);
    }

    async fn end(&self, signal: Signal) {
        let process = self.process();
        process.signal_family(Signal::SIGCONT);
        process.signal(signal);
        process.wait_exit(STOP_WITHIN).await;
    }

    fn process(&self) -> Arc<Supervised> {
        self.process.lock().expect("no panic under this lock").clone()
    }
}

impl Cluster {
    async fn create() -> Cluster {
        let account = Account::instead_of_root();
        let cluster = Cluster { folder: Scratch::owned_by(account), account, programs: postgres_programs::folder() };
        let creation = cluster
            .program("initdb")
            .argument("--pgdata")
            .argument(cluster.data())
            .arguments(["--username=postgres", "--auth=trust", "--no-sync"])
            .arguments(["--encoding=UTF8", "--locale=C"])
            .start(&cluster.folder);
        let status = creation.wait_exit(START_WITHIN).await;
        assert!(status.success(), "initdb failed\n{}", creation.logs());
        cluster
    }

    /// Starts the server and waits until it answers.
    async fn start_process(&self, address: SocketAddr) -> Result<Supervised, String> {
        let process = self
            .program("postgres")
            .argument("-D")
            .argument(self.data())
            .argument("-k")
            .argument(self.folder.path())
            .arguments(["-h".to_owned(), address.ip().to_string()])
            .arguments(["-p".to_owned(), address.port().to_string()])
            .arguments(["-c", "max_connections=300", "-c", "shared_buffers=64MB"])
            // The files outlive a crash of the server, and need not outlive one of the machine.
            .arguments(["-c", "fsync=off", "-c", "full_page_writes=off"])
            // In the data folder, where a killed server leaves nothing behind for good.
            .arguments(["-c", "dynamic_shared_memory_type=mmap"])
            // Immediate shutdown: a killed server would not give its shared memory back.
            .last_signal(Signal::SIGQUIT)
            .start(&self.folder);
        let deadline = Instant::now() + START_WITHIN;
        while !self.answers(address).await {
            if let Some(status) = process.exit_status() {
                return Err(format!("postgres ended: {status}\n{}", process.logs()));
            }
            if Instant::now() > deadline {
                return Err(format!("postgres does not answer\n{}", process.logs()));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
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

/// A database of its own for one test, in a cluster that others may use too.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
    url: String,
    pool: PgPool,
    abandoned: Abandoned,
}

impl Database {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The test's own connections, as good as the runtime the database was created in.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Ok(mut abandoned) = self.abandoned.lock() {
            abandoned.push(std::mem::take(&mut self.name));
        }
    }
}

fn url(address: SocketAddr, database: &str) -> String {
    format!("postgres://postgres@{address}/{database}")
}

async fn connect(address: SocketAddr) -> sqlx::Result<PgConnection> {
    PgConnection::connect(&url(address, "postgres")).await
}
