//! A lease: the right to work on a segment for a limited time, and its watchdog.

use std::fmt;
use std::pin::pin;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::GuardError;
use crate::domain::{Epoch, Fence, Reloaded};

/// The right to work on one segment until it expires, is lost or is released. Dropped, it ends by its time limit, and
/// whoever comes next finds the segment dirty and reloads it (R5).
pub struct Lease {
    fence: Fence,
    epoch: Epoch,
    stock: Option<u64>,
    time_limit: Duration,
    expires_at: Instant,
    lost: bool,
    /// How the stock changed under this lease, without the guard having been told.
    change: i64,
    held: Box<dyn Held>,
}

/// How a lease is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The guard's count is right once `taken` is subtracted.
    Clean {
        /// Units that left the segment under this lease; negative where more came than went.
        taken: i64,
    },
    /// The count may be wrong: the next holder must reload the segment.
    Dirty,
}

/// What a holder learns when it gives its segment back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// Somebody else asked for the segment meanwhile.
    pub wanted: bool,
}

/// Why a lease can do something no more.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// It expired, or was taken away.
    #[error("the lease is lost")]
    Lost,
    /// Nobody knows: the guard's store does not answer.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

/// A guard's side of a lease. `false` and `None` say that the token holds the segment no more.
#[async_trait]
pub(super) trait Held: Send + Sync {
    async fn renew(&mut self, time_limit: Duration) -> Result<bool, GuardError>;
    async fn reload(&mut self, reloaded: &Reloaded) -> Result<bool, GuardError>;
    async fn release(self: Box<Self>, ending: Ending) -> Result<Option<Released>, GuardError>;
}

impl Lease {
    /// A lease that was asked for at `asked_at`: it counts from then, since nobody knows when the answer was on its way.
    pub(super) fn new(
        held: Box<dyn Held>,
        (fence, epoch, stock): (Fence, Epoch, Option<u64>),
        asked_at: Instant,
        time_limit: Duration,
    ) -> Self {
        Self { fence, epoch, stock, time_limit, expires_at: asked_at + time_limit, lost: false, change: 0, held }
    }

    /// The fencing token that every change of the segment must carry.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// The epoch that the segment was reloaded under.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Units left; `None` when the segment must be reloaded first.
    pub fn stock(&self) -> Option<u64> {
        self.stock
    }

    /// How long the lease lasts unless it is renewed; `None` when it is lost.
    pub fn remaining(&self) -> Option<Duration> {
        let remaining = self.expires_at.saturating_duration_since(Instant::now());
        (!self.lost && !remaining.is_zero()).then_some(remaining)
    }

    /// Takes over what the ledger says of the segment, and tells the guard.
    pub async fn reload(&mut self, reloaded: Reloaded) -> Result<(), LeaseError> {
        let mine = self.held.reload(&reloaded).await?;
        self.still(mine)?;
        self.fence = reloaded.fence;
        self.epoch = reloaded.epoch;
        self.stock = Some(reloaded.stock);
        Ok(())
    }

    /// Starts the time limit anew.
    pub async fn renew(&mut self) -> Result<(), LeaseError> {
        let asked_at = Instant::now();
        let mine = self.held.renew(self.time_limit).await?;
        self.still(mine)?;
        self.expires_at = asked_at + self.time_limit;
        Ok(())
    }

    /// Does `work` while renewing the lease each time a third of its time limit has passed. Renewing ends with the work,
    /// so that nothing can be left behind that renews for ever.
    ///
    /// A loss does not stop the work: its outcome is settled by the fence, and dropping it halfway would only make an
    /// outcome unknown that is about to be known.
    pub async fn keep_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let watchdog = async {
            loop {
                tokio::time::sleep(self.time_limit / 3).await;
                match self.renew().await {
                    Ok(()) => metrics::counter!("segstock_lease_renewals_total").increment(1),
                    Err(LeaseError::Lost) => break,
                    // It may still be ours: try again a third later.
                    Err(LeaseError::Guard(error)) => {
                        tracing::warn!(%error, "a lease could not be renewed")
                    }
                }
            }
            std::future::pending::<T>().await
        };
        let (work, watchdog) = (pin!(work), pin!(watchdog));
        tokio::select! {
            biased;
            done = work => done,
            never = watchdog => never,
        }
    }

    /// Counts units that the ledger has moved into the segment under this lease.
    pub fn add(&mut self, units: u64) {
        self.stock = self.stock.map(|stock| stock + units);
        self.change += units as i64;
    }

    /// Counts units that were sold from the segment under this lease.
    pub fn take(&mut self, units: u64) {
        self.stock = self.stock.map(|stock| stock.saturating_sub(units));
        self.change -= units as i64;
    }

    /// Gives the segment back; what was counted under the lease goes with it.
    pub async fn release(self, ending: Ending) -> Result<Released, LeaseError> {
        let ending = match ending {
            Ending::Clean { taken } => Ending::Clean { taken: taken - self.change },
            Ending::Dirty => Ending::Dirty,
        };
        self.held.release(ending).await?.ok_or(LeaseError::Lost)
    }

    fn still(&mut self, mine: bool) -> Result<(), LeaseError> {
        if mine {
            return Ok(());
        }
        self.lost = true;
        Err(LeaseError::Lost)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Lease")
            .field("fence", &self.fence)
            .field("epoch", &self.epoch)
            .field("stock", &self.stock)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
