//! What a benchmark measured, and how it is shown.
//!
//! [`results`] is the data, and as JSON the file that a benchmark leaves behind. From it alone [`table`] writes what the
//! terminal shows, and [`report`] a page to look at. Both are pure, so that old results can be shown again.

mod numbers;
pub mod report;
pub mod results;
#[cfg(test)]
mod sample;
pub mod table;
