//! Loopback ports for the servers the harness starts.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Mutex;

/// Below the range that Linux (32768 and up) and macOS (49152 and up) take the local end of
/// outgoing connections from: a server that is stopped finds its port still free when it comes
/// back.
const RANGE: std::ops::RangeInclusive<u16> = 10_000..=29_999;

const START_ATTEMPTS: usize = 5;

/// Ports handed out in this process. They are never handed out twice, because a stopped server may
/// come back to its own.
static HANDED_OUT: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A loopback address nobody listens on at the moment. Another process may still be quicker to
/// bind it; see [`start_on_free_port`].
pub(crate) fn free_address() -> SocketAddr {
    let mut handed_out = HANDED_OUT.lock().expect("no panic under this lock");
    let handed_out = handed_out.get_or_insert_with(HashSet::new);
    for _ in 0..1000 {
        let port = rand::random_range(RANGE);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if !handed_out.contains(&port) && TcpListener::bind(address).is_ok() {
            handed_out.insert(port);
            return address;
        }
    }
    panic!("no free loopback port in {RANGE:?}");
}

/// Starts a server on a free port, and on another one when the first start fails, as it does when
/// some other process took the port in between.
pub(crate) async fn start_on_free_port<T>(
    what: &str,
    mut start: impl AsyncFnMut(SocketAddr) -> Result<T, String>,
) -> T {
    let mut failures = Vec::new();
    for _ in 0..START_ATTEMPTS {
        match start(free_address()).await {
            Ok(server) => return server,
            Err(failure) => failures.push(failure),
        }
    }
    panic!("{what} did not start:\n{}", failures.join("\n"));
}
