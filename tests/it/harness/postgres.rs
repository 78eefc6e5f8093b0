//! A private Postgres cluster that can be stopped, crashed, started again and paused, and the
//! databases in it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use segstock::rig::postgres;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::sync::OnceCell;

use super::or_panic;

const ACQUIRE_WITHIN: Duration = Duration::from_secs(10);

const SETTINGS: &[(&str, &str)] = &[
    ("max_connections", "300"),
    ("shared_buffers", "64MB"),
    // The files outlive a crash of the server, and need not outlive one of the machine.
    ("fsync", "off"),
    ("full_page_writes", "off"),
    // Which database a line is about: tests read their own statements there.
    ("log_line_prefix", "%m [%p] %d "),
];

/// A Postgres cluster of its own. Holds no connection and nothing else that is bound to a runtime,
/// so tests with a runtime each can share one.
#[derive(Debug)]
pub(crate) struct Postgres {
    server: postgres::Postgres,
    abandoned: Abandoned,
}

/// Names of databases whose tests have ended. The next test drops them, because a destructor
/// cannot wait for it, and the disk of a long test run would fill up.
type Abandoned = Arc<Mutex<Vec<String>>>;

impl Postgres {
    /// A new cluster, for a test that stops or pauses it.
    pub(crate) async fn start() -> Postgres {
        Postgres { server: or_panic(postgres::Postgres::start(SETTINGS).await), abandoned: Abandoned::default() }
    }

    /// The cluster that all tests may share which leave it running.
    pub(crate) async fn shared() -> &'static Postgres {
        // Never dropped: its watcher ends it together with this process.
        static SHARED: OnceCell<Postgres> = OnceCell::const_new();
        SHARED.get_or_init(Postgres::start).await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The postmaster's process id. Another one after each start.
    pub(crate) fn pid(&self) -> Pid {
        self.server.pid()
    }

    /// A new, empty database.
    pub(crate) async fn database(&self) -> Database {
        self.drop_abandoned().await;
        let name = format!("test_{:016x}", rand::random::<u64>());
        let url = or_panic(self.server.database(&name).await);
        Database {
            pool: PgPoolOptions::new()
                .max_connections(8)
                // A pool goes on knocking at a stopped server for that long.
                .acquire_timeout(ACQUIRE_WITHIN)
                .connect_lazy(&url)
                .expect("the rig writes valid addresses"),
            url,
            name,
            abandoned: self.abandoned.clone(),
        }
    }

    async fn drop_abandoned(&self) {
        let abandoned = std::mem::take(&mut *self.abandoned.lock().expect("no panic under lock"));
        if abandoned.is_empty() {
            return;
        }
        let mut connection = self.server.connection().await.expect("the test's Postgres runs");
        for name in abandoned {
            let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            // Tidiness only: the whole cluster goes away in the end.
            let _ = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await;
        }
    }

    /// The first line of every statement that was begun in this database since [`Database::log_statements`], in order.
    /// It is written down before the statement runs, so a statement with an answer is here.
    pub(crate) fn statements(&self, database: &Database) -> Vec<String> {
        let log = self.server.process().stderr();
        let marker = format!("] {} LOG:  ", database.name);
        let statement = |line: &str| {
            let (_, entry) = line.split_once(&marker)?;
            // `execute <name>: …` for a prepared one, `statement: …` for another.
            let (kind, statement) = entry.split_once(": ")?;
            (kind == "statement" || kind.starts_with("execute ")).then(|| statement.to_owned())
        };
        log.lines().filter_map(statement).collect()
    }

    /// Shuts down in order: open transactions are rolled back, clients are told and disconnected.
    pub(crate) async fn stop(&self) {
        or_panic(self.server.stop().await);
    }

    /// Ends at once, as a crash does: the next start has to recover from the log.
    pub(crate) async fn crash(&self) {
        or_panic(self.server.crash().await);
    }

    /// Starts a stopped cluster with the same port and data.
    pub(crate) async fn start_again(&self) {
        or_panic(self.server.start_again().await);
    }

    /// Makes the server and all its sessions hang, with the connections open.
    pub(crate) fn pause(&self) {
        self.server.process().signal_family(Signal::SIGSTOP);
    }

    pub(crate) fn resume(&self) {
        self.server.process().signal_family(Signal::SIGCONT);
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

    /// Has the server write down the statements of every session that is opened from now on.
    pub(crate) async fn log_statements(&self) {
        let set = format!("ALTER DATABASE {} SET log_statement = 'all'", self.name);
        let done = sqlx::raw_sql(AssertSqlSafe(set)).execute(&self.pool).await;
        done.expect("a superuser may change databases");
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
