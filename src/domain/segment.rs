//! A product's shares of stock.

use super::{Epoch, Fence, ProductId, Sku};

/// Names one segment of one product. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The product in the ledger.
    pub product: ProductId,
    /// The product in keys and messages.
    pub sku: Sku,
    /// 0 to N-1.
    pub index: u16,
}

/// What the ledger holds of one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentStock {
    /// 0 to N-1.
    pub index: u16,
    /// Units given to the segment.
    pub allotted: u64,
    /// Units in live orders; never above `allotted` (INV-1).
    pub taken: u64,
    /// The highest fence that has changed the segment.
    pub fence: Fence,
    /// The epoch that a lease must have been reloaded under.
    pub epoch: Epoch,
}

impl SegmentStock {
    /// Units left.
    pub fn available(&self) -> u64 {
        self.allotted.saturating_sub(self.taken)
    }
}

/// A segment as its new holder finds it in the ledger (R5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reloaded {
    /// Units left.
    pub stock: u64,
    /// The lease's fence from now on.
    pub fence: Fence,
    /// The epoch from now on.
    pub epoch: Epoch,
}

/// Splits `stock` into `segments` shares that differ by one unit at most; the first ones get the odd units.
///
/// `segments` must be at least 1.
pub fn split_stock(stock: u64, segments: u16) -> impl Iterator<Item = u64> {
    let count = u64::from(segments);
    let (share, odd) = (stock / count, stock % count);
    (0..count).map(move |index| share + u64::from(index < odd))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_split_keeps_every_unit_and_is_even(stock in 0u64..=1_000_000_000_000, segments in 1u16..=1024) {
            let shares: Vec<u64> = split_stock(stock, segments).collect();
            prop_assert_eq!(shares.len(), usize::from(segments));
            prop_assert_eq!(shares.iter().sum::<u64>(), stock);
            prop_assert!(shares[0] - shares[shares.len() - 1] <= 1);
        }
    }
}
