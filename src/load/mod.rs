//! A load generator for any segstock: sends orders, measures the answers, and proves the sale.
//!
//! A run is: find or create the products ([`shop`]) → [`worker`]s send what the [`buyers`] ask for, when the
//! [`schedule`] says so, over [`connection`]s → their tallies are added up ([`tally`]) → orders whose answer was lost are
//! asked for again → the [`proof`] compares what was answered with what the service has → the [`report`].
//!
//! Does not belong here: anything of the service itself. All that is known of it is its HTTP interface.

mod buyers;
mod connection;
mod cpu;
mod proof;
mod report;
mod run;
mod schedule;
mod shop;
mod tally;
mod worker;

pub use connection::Unreachable;
pub use cpu::CpuTime;
pub use proof::Proof;
pub use report::{Generator, Percentiles, Report};
pub use run::{Event, LoadError, Progress, Run, run};
pub use shop::Shop;
pub use tally::Sold;
