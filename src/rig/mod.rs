//! Private servers on loopback, in temporary folders, for the benchmark and the tests.
//!
//! Belongs here: starting a program so that it ends with whoever started it ([`process`], `supervise.sh`), where it may
//! write ([`scratch`]) and listen ([`ports`]), and what [`redis`] and [`postgres`] servers need besides. Does not belong
//! here: what is asked of the servers then, and anything of segstock itself. A test that cannot have its server panics;
//! the benchmark tells its user. So everything here returns a [`RigError`].

pub mod ports;
pub mod postgres;
mod postgres_programs;
pub mod process;
pub mod redis;
pub mod scratch;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a server cannot be had. The message is one line; where a program has logs, they follow it.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// A server's programs are not on this machine.
    #[error("{program} is not installed: {advice}")]
    NotInstalled {
        /// What was looked for.
        program: &'static str,
        /// Which package has it.
        advice: &'static str,
    },
    /// Root needs somebody else to run Postgres as.
    #[error("Postgres refuses to run as root, and there is no user postgres or nobody to run it as")]
    NoAccount,
    /// Temporary files cannot be written.
    #[error("{} cannot be used for temporary files", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    /// Every port that was tried is taken.
    #[error("no free loopback port from {} to {}", ports::RANGE.start(), ports::RANGE.end())]
    NoFreePort,
    /// The system starts no process.
    #[error("{program} cannot be started")]
    NotStarted {
        /// The program's file.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// A program has ended where it should have done its work, or gone on.
    #[error("{program} ended with {status}\n{logs}")]
    Ended {
        /// The program's file.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it has printed.
        logs: String,
    },
    /// A server runs, and nobody can talk to it.
    #[error("{program} does not answer within {within:?}\n{logs}")]
    NoAnswer {
        /// The program's file.
        program: String,
        /// How long it had.
        within: Duration,
        /// What it has printed.
        logs: String,
    },
    /// A program runs on that should have ended.
    #[error("{program} still runs after {within:?}\n{logs}")]
    StillRuns {
        /// The program's file.
        program: String,
        /// How long it had.
        within: Duration,
        /// What it has printed.
        logs: String,
    },
    /// The server refuses to create a database, or has gone away meanwhile.
    #[error("the database {name} cannot be created")]
    Database {
        /// The database's name.
        name: String,
        /// What the server, or the way to it, says.
        source: sqlx::Error,
    },
}
