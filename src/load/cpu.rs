//! CPU time that this process has used.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// CPU time, user and system together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default)]
pub struct CpuTime(pub Duration);

impl CpuTime {
    /// What this process has used so far. Zero where the system does not say.
    pub fn of_this_process() -> Self {
        getrusage(UsageWho::RUSAGE_SELF).map_or(Self::default(), |usage| {
            let used = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            Self(Duration::from_micros(used.unsigned_abs()))
        })
    }
}
