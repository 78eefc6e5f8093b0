//! Compares ways to sell, on private servers, and shows what was measured.
//!
//! The `programme` says what is compared with what. The `stage` has the stores and the services; a `contestant` is one
//! configuration, which [`run`] measures in turn with those that it is compared with, so that whatever disturbs the
//! machine disturbs all of them. Every sale that is measured is proven, too.
//!
//! [`results`] is the data, and as JSON the file that a benchmark leaves behind. From it alone [`table`] writes what the
//! terminal shows, and [`report`] a page to look at. Both are pure, so that old results can be shown again.

mod contestant;
mod machine;
mod meter;
mod numbers;
mod programme;
pub mod report;
pub mod results;
mod run;
#[cfg(test)]
mod sample;
mod stage;
pub mod table;
mod tail;

pub use run::run;

use crate::load::LoadError;
use crate::rig::RigError;

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A private server could not be started.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// A service could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A service did not start.
    #[error("segstock did not start: {0}")]
    NotStarted(String),
    /// A sale was not right: its figures mean nothing.
    #[error("{what}: the sale was wrong: {fault}")]
    WrongSale {
        /// What was measured.
        what: String,
        /// What is wrong.
        fault: String,
    },
    /// A store does not say what it is.
    #[error("a store does not tell its version: {0}")]
    Version(String),
}
