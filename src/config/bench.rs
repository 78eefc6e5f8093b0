//! What `segstock bench` is asked for, and what it starts the service with.

use std::path::PathBuf;

use clap::Args;

use super::Serve;

/// The options of `segstock bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchOptions {
    /// Measure for two minutes instead of ten
    #[arg(long)]
    pub quick: bool,

    /// For tests: measure for a moment only, and mean nothing
    #[arg(long, hide = true)]
    pub smoke: bool,

    /// Where the results go as JSON
    #[arg(long, value_name = "FILE", default_value = "bench.json")]
    pub json: PathBuf,

    /// Write a page with charts into this folder too
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
}

/// What the service can do while it is measured, and never else.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct BenchOnly {
    /// How long every turn lasts at least, in ms: as long as in a shop whose lock is slow
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub turn_ms: u64,
}

/// The hidden subcommand that `segstock bench` starts the service with.
#[derive(Debug, Args)]
pub(super) struct BenchServe {
    #[command(flatten)]
    pub(super) serve: Serve,
    #[command(flatten)]
    pub(super) only: BenchOnly,
}
