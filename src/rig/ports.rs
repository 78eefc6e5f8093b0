//! Loopback ports for servers.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::RigError;

/// Below the range that Linux (32768 and up) and macOS (49152 and up) take the local end of
/// outgoing connections from: a server that is stopped finds its port still free when it comes
/// back.
pub(super) const RANGE: RangeInclusive<u16> = 10_000..=29_999;

const START_ATTEMPTS: usize = 5;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Ports handed out in this process. They are never handed out twice, because a stopped server may
/// come back to its own.
static HANDED_OUT: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A loopback address nobody listens on at the moment. Another process may still be quicker to
/// bind it; see [`start_on_free_port`].
pub fn free_address() -> Result<SocketAddr, RigError> {
    let mut handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    let handed_out = handed_out.get_or_insert_with(HashSet::new);
    for _ in 0..1000 {
        let port = rand::random_range(RANGE);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if !handed_out.contains(&port) && TcpListener::bind(address).is_ok() {
            handed_out.insert(port);
            return Ok(address);
        }
    }
    Err(RigError::NoFreePort)
}

/// Starts a server on a free port, and on another one when the first start fails, as it does when
/// some other process took the port in between. Returns where it listens, too. The error is that of
/// the last attempt.
pub async fn start_on_free_port<T, E, Start>(mut start: impl FnMut(SocketAddr) -> Start) -> Result<(SocketAddr, T), E>
where
    E: From<RigError>,
    Start: Future<Output = Result<T, E>>,
{
    let mut attempt = 1;
    loop {
        let address = free_address()?;
        match start(address).await {
            Ok(server) => return Ok((address, server)),
            Err(_) if attempt < START_ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Starts a server where it was before. Someone else may sit on its port, or a last child of a crashed server on its
/// files, for a moment: so failures count only once that time is over.
pub(super) async fn start_again<T, Start>(within: Duration, mut start: impl FnMut() -> Start) -> Result<T, RigError>
where
    Start: Future<Output = Result<T, RigError>>,
{
    let deadline = Instant::now() + within;
    loop {
        match start().await {
            Err(_) if Instant::now() <= deadline => tokio::time::sleep(POLL_INTERVAL).await,
            outcome => return outcome,
        }
    }
}
