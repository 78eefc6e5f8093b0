//! What the integration tests stand on: private Redis and Postgres servers, segstock processes, a
//! network that can be broken, and ways to wait. No test and no assertion about segstock belongs
//! here.
//!
//! Everything listens on loopback and lives in a temporary folder. Every process that is started
//! here ends with its handle, and also when the test binary is killed. What starts servers is `segstock::rig`, which
//! returns errors; here they end the test that asked.

#![expect(dead_code, reason = "a toolbox: not every tool is in use at all times")]

pub(crate) mod fixture;
pub(crate) mod instance;
pub(crate) mod observer;
pub(crate) mod ports;
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod redis;
pub(crate) mod scratch;
pub(crate) mod shop;
pub(crate) mod shoppers;
pub(crate) mod wait;

use std::error::Error;

use segstock::rig::RigError;

/// What the rig has made. Where it could not, a test that needs it is over.
#[track_caller]
fn or_panic<T>(outcome: Result<T, RigError>) -> T {
    match outcome {
        Ok(made) => made,
        Err(error) => match error.source() {
            Some(source) => panic!("{error}: {source}"),
            None => panic!("{error}"),
        },
    }
}
