//! CPU time and memory of the processes that are measured.

use std::time::Duration;

use nix::unistd::Pid;
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

/// What the processes of a run have used so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    pub(super) service: Duration,
    pub(super) redis: Duration,
    pub(super) postgres: Duration,
}

impl Used {
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            service: self.service.saturating_sub(earlier.service),
            redis: self.redis.saturating_sub(earlier.redis),
            postgres: self.postgres.saturating_sub(earlier.postgres),
        }
    }
}

/// The processes of a run.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    pub(super) services: Vec<Pid>,
    pub(super) redis: Pid,
    /// The postmaster; its children count too.
    pub(super) postgres: Pid,
}

impl Meter {
    /// `None` where the system does not tell.
    pub(super) fn read(&self) -> Option<Used> {
        let mut system = System::new().ok()?;
        system.refresh_processes_specifics(ProcessesToUpdate::All, false, ProcessRefreshKind::nothing().with_cpu());
        let is = |pid: sysinfo::Pid, wanted: Pid| i64::from(pid.as_u32()) == i64::from(wanted.as_raw());
        let mut used = Used::default();
        for (pid, process) in system.processes() {
            let time = Duration::from_millis(process.accumulated_cpu_time());
            if self.services.iter().any(|service| is(*pid, *service)) {
                used.service += time;
            } else if is(*pid, self.redis) {
                used.redis += time;
            } else if is(*pid, self.postgres) || process.parent().is_some_and(|parent| is(parent, self.postgres)) {
                used.postgres += time;
            }
        }
        Some(used)
    }
}

/// Memory that a process has in use, in MB; `None` when it is gone, or the system does not tell.
pub(super) fn resident_mb(pid: Pid) -> Option<f64> {
    let pid = sysinfo::Pid::from_u32(pid.as_raw().unsigned_abs());
    let mut system = System::new().ok()?;
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, memory);
    system.process(pid).map(|process| process.memory() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_its_work_is_seen() {
        let own = Pid::this();
        assert!(resident_mb(own).is_some_and(|mb| mb > 1.0));
        let nobody = Pid::from_raw(i32::MAX);
        let meter = Meter { services: vec![own], redis: nobody, postgres: nobody };
        let read = || meter.read().unwrap();
        let before = read();
        while read().since(before).service < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        assert_eq!(read().redis, Duration::ZERO);
    }
}
