//! What operators see: metrics and logs. A leaf: anybody may use it, it uses nobody.

pub mod logs;
pub mod metrics;
