//! The integration tests: one binary, real servers.
//!
//! `harness` starts what a test needs; every other module holds the tests of one subject.

mod api;
mod bad_input;
mod crashes;
mod embedded;
mod flash_sale;
mod guards;
mod harness;
mod harness_works;
mod http_orders;
mod http_products;
mod idempotency;
mod ledger_outages;
mod ledgers;
mod load;
mod operations;
mod refusals;
mod settings;
mod stopping;
mod trips;
