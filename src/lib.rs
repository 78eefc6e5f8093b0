//! segstock sells a product's stock over HTTP, segment by segment.

pub mod domain;
pub mod guard;
pub mod ledger;
