//! The page that shows what a benchmark measured: one file, without a script and without anything from elsewhere.
//!
//! [`page`](fn@page) puts it together. `charts` says which rows are drawn how; `lines` and `lanes` draw on a `scale`;
//! `tables` has the numbers. All of them build `markup`, the one place that escapes.

mod charts;
mod drawing;
mod lanes;
mod lines;
mod markup;
mod page;
mod scale;
mod tables;
#[cfg(test)]
mod well_formed;

pub use page::page;
