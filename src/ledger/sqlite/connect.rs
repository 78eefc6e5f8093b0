//! Opening the file: folder, migrations, pools.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::SqliteLedger;

const READERS: u32 = 4;

/// Where the file is.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of the file; made where it is missing.
    pub folder: PathBuf,
    /// How long a read, and the wait for the writer, may take.
    pub timeout: Duration,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder cannot be made.
    #[error("the folder cannot be made")]
    Folder(#[source] io::Error),
    /// The file cannot be opened.
    #[error("the database file cannot be opened")]
    File(#[source] sqlx::Error),
    /// The schema cannot be brought up to date.
    #[error("the schema cannot be migrated")]
    Migration(#[source] MigrateError),
}

impl SqliteLedger {
    /// The file's name in its folder.
    pub const FILE: &str = "segstock.db";

    /// Opens or creates the file and brings its schema up to date.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        std::fs::create_dir_all(&options.folder).map_err(OpenError::Folder)?;
        let file = SqliteConnectOptions::new()
            .filename(options.folder.join(Self::FILE))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // FULL, not NORMAL: in WAL mode NORMAL may lose the last commits when the power goes, and R1 forbids that.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(options.timeout);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(options.timeout)
            .test_before_acquire(false)
            .connect_with(file.clone())
            .await
            .map_err(OpenError::File)?;
        sqlx::migrate!("migrations/sqlite").run(&writer).await.map_err(OpenError::Migration)?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(options.timeout)
            .test_before_acquire(false)
            .connect_lazy_with(file.read_only(true));
        Ok(Self { writer, readers, timeout: options.timeout })
    }
}
