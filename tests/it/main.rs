//! The integration tests: one binary, real servers.
//!
//! `harness` starts what a test needs; every other module holds the tests of one subject.

mod crashes;
mod flash_sale;
mod guards;
mod harness;
mod harness_works;
mod ledger_outages;
mod ledgers;
mod refusals;
