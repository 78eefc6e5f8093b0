//! Places in a round where a test may end the process, as `kill -9` would: nothing is cleaned up, nothing is flushed.

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, raise};

/// A moment in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The lease is had, no order is fitted.
    Leased,
    /// The batch is chosen, the ledger has not seen it.
    Fitted,
    /// The ledger has committed the batch; nobody was told and the lease is held.
    Settled,
    /// The buyers were told; the lease is held.
    Answered,
    /// The lease was given back.
    Released,
}

/// Ends the process when a moment comes for the nth time. A setting for tests only.
#[derive(Debug)]
pub struct FailPoint {
    moment: Moment,
    countdown: AtomicU32,
}

impl FailPoint {
    pub(crate) fn reach(&self, moment: Moment) {
        if moment == self.moment && self.countdown.fetch_sub(1, Ordering::Relaxed) == 1 {
            let _never_returns = raise(Signal::SIGKILL);
        }
    }
}

/// `settled:3` ends the process right after the third settle.
impl FromStr for FailPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (moment, nth) = text.split_once(':').unwrap_or((text, "1"));
        let moment = match moment {
            "leased" => Moment::Leased,
            "fitted" => Moment::Fitted,
            "settled" => Moment::Settled,
            "answered" => Moment::Answered,
            "released" => Moment::Released,
            _ => {
                return Err("a fail point is leased, fitted, settled, answered or released".to_owned());
            }
        };
        let nth: u32 = nth.parse().map_err(|_| "a fail point's count is a number from 1".to_owned())?;
        Ok(Self { moment, countdown: AtomicU32::new(nth) })
    }
}
