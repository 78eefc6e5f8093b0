//! Loopback ports where nobody listens.

use std::net::SocketAddr;

use segstock::rig::ports;

use super::or_panic;

/// A loopback address nobody listens on at the moment, and that no server of the tests gets.
pub(crate) fn free_address() -> SocketAddr {
    or_panic(ports::free_address())
}
