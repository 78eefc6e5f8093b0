//! Guards: ways to lease a segment, so that one holder at a time works on it.
//!
//! Belongs here: the port that the sale talks to, and its implementations over [`redis`] and [`memory`]. All keep the
//! same rules, and one suite of tests runs over all. Does not belong here: orders (R7) and the ledger. A guard may
//! forget everything it knows at any moment: fences and the ledger's own conditions keep the sale right.

mod lease;
pub mod memory;
pub mod redis;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use lease::{Ending, Lease, LeaseError, Released};

use crate::domain::Segment;
use crate::domain::invariants::GuardedStock;

/// A way to lease segments. Every call is bounded in time by the guard's own timeout.
#[async_trait]
pub trait Guard: Send + Sync {
    /// Tries once to lease the segment; does not wait for another holder.
    ///
    /// The same token gets the same lease again, so that a try whose answer was lost can be repeated (R11).
    async fn acquire(&self, segment: &Segment, token: &Token, trust: Trust) -> Result<Acquired, GuardError>;

    /// What the guard holds of the segment; `None` when it has never seen it, or has forgotten it.
    async fn inspect(&self, segment: &Segment) -> Result<Option<GuardedStock>, GuardError>;

    /// Whether the guard answers.
    async fn ping(&self) -> Result<(), GuardError>;
}

/// Whether the guard's own count of a segment's stock may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It may, if the last holder left it clean.
    Count,
    /// It may not: the ledger says otherwise, and the segment is to be reloaded (R9).
    LedgerOnly,
}

/// How a try to lease a segment ended.
#[derive(Debug)]
pub enum Acquired {
    /// The segment is leased.
    Leased(Lease),
    /// The segment is clean and has no unit left; it was not leased.
    Empty,
    /// Somebody else holds it.
    Busy {
        /// How long the other lease lasts at most, if nobody renews it.
        remaining: Duration,
    },
}

/// The secret that tells a lease's holder from everybody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl Token {
    /// 128 random bits.
    pub fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()).into())
    }

    /// The token as stores keep it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Secrets stay out of logs.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// The guard's store does not answer, or not as hoped. The call may or may not have taken effect; repeating it with the
/// same token is safe.
#[derive(Debug, thiserror::Error)]
#[error("the guard does not answer")]
pub struct GuardError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl GuardError {
    fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}
