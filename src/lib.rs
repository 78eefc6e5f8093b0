//! segstock sells a product's stock over HTTP during a flash sale: segment by segment, and never one unit too many.
//!
//! The map of the crate, in the order in which an order passes through it:
//!
//! - [`app`] builds everything from [`config`], and serves it.
//! - `http` reads requests and writes answers; the only place that knows statuses.
//! - [`sale`] is the engine: the queue of each product and the rounds that serve it.
//! - [`guard`] leases a segment; [`ledger`] holds the truth. Neither knows the other.
//! - [`domain`] is what a sale is made of, without any IO.
//! - [`telemetry`] is what operators see.
//!
//! Beside it [`load`] is a client of any segstock, and shares nothing with the service but its HTTP interface;
//! [`mod@bench`] compares, and draws what it measured; [`rig`] starts the private servers that it and the tests need.

pub mod app;
pub mod bench;
pub mod config;
pub mod domain;
pub mod guard;
pub mod http;
pub mod ledger;
pub mod load;
pub mod rig;
pub mod sale;
pub mod telemetry;
