//! The names of a segment's keys. Nobody else formats one.
//!
//! Both carry the same hash tag, so that in a Redis Cluster a segment lives in one slot (one script may touch both), and
//! the segments of one product spread over all masters.

use crate::domain::Segment;

/// The two keys of a segment.
pub(super) struct Keys {
    /// A string: the token of the lease's holder, with the lease's time limit.
    pub(super) lock: String,
    /// A hash: `stock`, `fence`, `epoch`, `dirty`.
    pub(super) state: String,
}

impl Keys {
    pub(super) fn of(segment: &Segment) -> Self {
        let Segment { sku, index, .. } = segment;
        Self { lock: format!("seg:{{{sku}:{index}}}:lock"), state: format!("seg:{{{sku}:{index}}}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ProductId, Sku};

    #[test]
    fn the_names_are_the_documented_ones() {
        let keys = Keys::of(&Segment { product: ProductId(1), sku: Sku::new("demo").unwrap(), index: 7 });
        assert_eq!(keys.lock, "seg:{demo:7}:lock");
        assert_eq!(keys.state, "seg:{demo:7}");
    }
}
