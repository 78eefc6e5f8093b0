//! What a setting may be, and what settings may be together.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::{BadSetting, Settings};
use crate::sale::FailPoint;

/// Refuses the first setting that cannot be used.
pub(super) fn check(settings: &Settings) -> Result<(), BadSetting> {
    within("max_batch", settings.max_batch, 1..=10_000)?;
    within("max_rounds_in_flight", settings.max_rounds_in_flight, 1..=1024)?;
    within("queue_capacity", settings.queue_capacity, 1..=1_000_000)?;
    within("request_deadline_ms", settings.request_deadline_ms, 10..=60_000)?;
    within("lease_time_limit_ms", settings.lease_time_limit_ms, 100..=600_000)?;
    within("redis_timeout_ms", settings.redis_timeout_ms, 5..=60_000)?;
    within("ledger_timeout_ms", settings.ledger_timeout_ms, 10..=60_000)?;
    within("redis_connections", settings.redis_connections, 1..=10_000)?;
    within("database_connections", settings.database_connections, 1..=10_000)?;
    within("stop_deadline_ms", settings.stop_deadline_ms, 0..=600_000)?;
    longest_round(settings)?;
    stores(settings)?;
    admin(settings)?;
    match settings.fail_point.as_deref().map(str::parse::<FailPoint>) {
        Some(Err(problem)) => Err(BadSetting::new("fail_point", problem)),
        _ => Ok(()),
    }
}

fn within<T: PartialOrd + Display>(setting: &str, value: T, range: RangeInclusive<T>) -> Result<(), BadSetting> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(BadSetting::new(setting, format!("{value} is out of range; use {least} to {most}")))
}

/// A lease must outlive the longest round: acquire, reload in both stores, settle, release.
fn longest_round(settings: &Settings) -> Result<(), BadSetting> {
    let longest = 3 * settings.redis_timeout_ms + 2 * settings.ledger_timeout_ms;
    if settings.lease_time_limit_ms > longest {
        return Ok(());
    }
    let problem = format!(
        "{} ms is not longer than the longest round, {longest} ms (3 × redis_timeout_ms + 2 × ledger_timeout_ms); \
         raise it, or lower redis_timeout_ms or ledger_timeout_ms",
        settings.lease_time_limit_ms
    );
    Err(BadSetting::new("lease_time_limit_ms", problem))
}

fn stores(settings: &Settings) -> Result<(), BadSetting> {
    let lonely = match (&settings.redis_url, &settings.database_url) {
        (Some(_), None) => ("database_url", "redis_url"),
        (None, Some(_)) => ("redis_url", "database_url"),
        _ => return Ok(()),
    };
    let problem = format!("is missing; set it too, or leave out {} for the embedded default", lonely.1);
    Err(BadSetting::new(lonely.0, problem))
}

/// Admin calls are open on loopback only.
fn admin(settings: &Settings) -> Result<(), BadSetting> {
    let listen = settings.listen;
    match &settings.admin_token {
        None if !listen.ip().is_loopback() => {
            let problem = format!("is missing; listening on {listen} lets others reach the admin calls: set a token");
            Err(BadSetting::new("admin_token", problem))
        }
        Some(token) if token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            let problem = "use 16 or more visible ASCII characters, for instance from openssl rand -hex 16";
            Err(BadSetting::new("admin_token", problem))
        }
        _ => Ok(()),
    }
}
