//! How many units an order asks for.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::Invalid;

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
            _ => Err(Invalid::new(Self::EXPECTED)),
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

    const EXPECTED: &str = "must be a whole number from 1 to 2147483647";
}

/// Not derived, so that a fraction, a sign or an overflow is answered with the range and not with a type name.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Units;
        impl Visitor<'_> for Units {
            type Value = Quantity;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number from 1 to 2147483647")
            }

            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
                Quantity::new(units).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, _negative: i64) -> Result<Quantity, E> {
                Err(E::custom(Quantity::EXPECTED))
            }

            fn visit_f64<E: de::Error>(self, _fraction: f64) -> Result<Quantity, E> {
                Err(E::custom(Quantity::EXPECTED))
            }
        }
        deserializer.deserialize_any(Units)
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
        for json in [
            "0",
            "-1",
            "1.5",
            "1.0",
            "1e3",
            "2147483648",
            "1e99",
            "\"1\"",
            "null",
            "true",
        ] {
            assert!(
                serde_json::from_str::<Quantity>(json).is_err(),
                "{json} must be refused"
            );
        }
    }
}
