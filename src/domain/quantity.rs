//! How many units an order asks for.

use serde::{Deserialize, Deserializer, Serialize};

use super::Invalid;
use super::whole::whole;

/// Units in one order, 1 to 2,147,483,647 (what a 32-bit signed column holds).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Quantity(u32);

impl Quantity {
    /// The largest quantity of one order.
    pub const MAX: u32 = i32::MAX as u32;

    /// Checks the range.
    pub fn new(units: u64) -> Result<Self, Invalid> {
        match u32::try_from(units) {
            Ok(units @ 1..=Self::MAX) => Ok(Self(units)),
            _ => Err(Invalid::new(format!("must be a whole number from 1 to {}", Self::MAX))),
        }
    }

    /// The number of units.
    pub fn units(self) -> u64 {
        u64::from(self.0)
    }

    /// The number of units as a 32-bit column holds it.
    pub fn column(self) -> i32 {
        // Lossless: the constructor bounds it.
        self.0 as i32
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The range fits, so the cast is lossless.
        whole(deserializer, 1..=u64::from(Self::MAX)).map(|units| Self(units as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_positive_numbers_within_32_bits_are_quantities() {
        for (json, units) in [("1", 1), ("2147483647", 2_147_483_647)] {
            let parsed: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(parsed.units(), units);
        }
        for json in ["0", "-1", "1.5", "1.0", "1e3", "2147483648", "1e99", "\"1\"", "null", "true"] {
            assert!(serde_json::from_str::<Quantity>(json).is_err(), "{json} must be refused");
        }
    }
}
