//! Which of the waiting orders one lease serves.

use super::Quantity;

/// Hands one segment's stock to orders in arrival order.
///
/// An order that is too large is passed over, and smaller ones behind it may still be taken: the large one goes on to
/// the next segment, and nobody waits for it.
#[derive(Debug)]
pub struct Fit {
    units_left: u64,
    orders_left: usize,
}

impl Fit {
    /// A lease with `stock` units that may serve up to `max_batch` orders.
    pub fn new(stock: u64, max_batch: usize) -> Self {
        Self { units_left: stock, orders_left: max_batch }
    }

    /// Takes the order if it fits; says whether it did.
    pub fn take(&mut self, quantity: Quantity) -> bool {
        let fits = self.orders_left > 0 && quantity.units() <= self.units_left;
        if fits {
            self.units_left -= quantity.units();
            self.orders_left -= 1;
        }
        fits
    }

    /// Whether no further order can fit, whatever its quantity.
    pub fn is_full(&self) -> bool {
        self.units_left == 0 || self.orders_left == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_large_order_does_not_hold_up_smaller_ones() {
        let mut fit = Fit::new(3, 10);
        let taken: Vec<bool> = [2, 2, 1, 1].map(|units| fit.take(Quantity::new(units).unwrap())).to_vec();
        assert_eq!(taken, [true, false, true, false]);
        assert!(fit.is_full());
    }

    proptest! {
        #[test]
        fn never_more_than_the_stock_and_never_more_than_the_batch(
            stock in 0u64..50,
            max_batch in 0usize..10,
            wanted in prop::collection::vec(1u64..6, 0..40),
        ) {
            let mut fit = Fit::new(stock, max_batch);
            let mut taken = Vec::new();
            for &units in &wanted {
                let full = fit.is_full();
                if fit.take(Quantity::new(units).unwrap()) {
                    prop_assert!(!full);
                    taken.push(units);
                }
            }
            prop_assert!(taken.iter().sum::<u64>() <= stock);
            prop_assert!(taken.len() <= max_batch);
            // Nothing that fitted was left out: every order refused was too large for what is left, or the batch is full.
            let left = stock - taken.iter().sum::<u64>();
            if taken.len() < max_batch {
                let smallest_refused = wanted.iter().copied().filter(|&units| units > left).count() + taken.len();
                prop_assert!(smallest_refused >= wanted.len());
            }
        }
    }
}
