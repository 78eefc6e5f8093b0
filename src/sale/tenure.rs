//! A lease that serves several batches in a row, for as long as that is fair.
//!
//! While orders keep coming, taking the same segment again and again would cost two trips to the guard each time. So the
//! queue keeps a lease for the next batch, within two bounds: a lease serves no more than `max_batch` orders, however many
//! batches they come in, and no batch begins under it after [`LONGEST`]. Whoever waits for the segment meanwhile gets a
//! chance then, because the holder leaves it alone for a while.

use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::gather::Seen;
use super::on_sale::OnSale;
use super::round::give_back;
use crate::domain::LONGEST_BUSY_PAUSE;
use crate::guard::{Ending, Lease};

/// No batch begins after this: so long may others have to wait, and the time of one settle.
const LONGEST: Duration = Duration::from_millis(20);

/// A lease, and what its product's queue knows of it.
pub(super) struct Tenure {
    pub(super) index: u16,
    pub(super) lease: Lease,
    since: Instant,
    served: usize,
    /// One of the rounds that this process may have at a time; a segment that only gave units to another needs none.
    turn: Option<OwnedSemaphorePermit>,
}

/// Only the benchmark has turns that last longer than their work. A thread that sleeps is on time; the runtime's timers may
/// be a millisecond late, which is much in a turn of twenty.
async fn keep_until(end: Instant) {
    if let Some(rest) = end.checked_duration_since(Instant::now()) {
        let _slept = tokio::task::spawn_blocking(move || std::thread::sleep(rest)).await;
    }
}

/// What is known of a segment after a tenure.
pub(super) struct Ended {
    pub(super) index: u16,
    pub(super) seen: Seen,
    /// Others asked for the segment: until then it is theirs.
    pub(super) leave_until: Option<Instant>,
}

impl Tenure {
    /// A lease that was asked for at `since`.
    pub(super) fn new(index: u16, lease: Lease, since: Instant) -> Self {
        Self { index, lease, since, served: 0, turn: None }
    }

    /// Keeps the turn until the lease has been given back.
    pub(super) fn with(self, turn: OwnedSemaphorePermit) -> Self {
        Self { turn: Some(turn), ..self }
    }

    /// Counts a batch.
    pub(super) fn serves(&mut self, orders: usize) {
        self.served += orders;
    }

    /// Whether it has served nobody yet.
    pub(super) fn is_unused(&self) -> bool {
        self.served == 0
    }

    /// Whether it may serve `waiting` orders more. All or none: a rest of a batch is not worth a statement.
    pub(super) fn may_go_on(&self, waiting: usize, max_batch: usize, now: Instant) -> bool {
        let has_stock = self.lease.stock().is_some_and(|stock| stock > 0);
        let in_time = now.saturating_duration_since(self.since) < LONGEST;
        has_stock && in_time && waiting > 0 && self.served + waiting <= max_batch
    }

    /// Gives the lease back, and tells what was seen.
    pub(super) async fn end(self, on_sale: &OnSale, ending: Ending) -> Ended {
        let Self { index, lease, since, turn, .. } = self;
        keep_until(since + on_sale.house.settings.turn).await;
        let left = lease.stock().filter(|_| ending != Ending::Dirty);
        let released = give_back(on_sale, index, lease, ending).await;
        drop(turn);
        let now = Instant::now();
        // As long as the others were kept waiting, within what they take to ask again.
        let held = now.saturating_duration_since(since);
        let respite = held.clamp(LONGEST_BUSY_PAUSE / 2, LONGEST_BUSY_PAUSE.mul_f64(1.5));
        Ended {
            index,
            seen: left.filter(|_| released.is_some()).map_or(Seen::Nothing, Seen::Stock),
            leave_until: released.filter(|released| released.wanted).map(|_| now + respite),
        }
    }
}
