//! Reading whole numbers from outside.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Reads a whole number within a range. A fraction, a sign, an overflow or another type is answered with the range,
/// where a derived reader would name a Rust type.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D, range: RangeInclusive<u64>) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Whole(range))
}

struct Whole(RangeInclusive<u64>);

impl Whole {
    fn refuse<T, E: Error>(&self) -> Result<T, E> {
        Err(E::custom(format_args!("must be a whole number from {} to {}", self.0.start(), self.0.end())))
    }
}

impl Visitor<'_> for Whole {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a whole number from {} to {}", self.0.start(), self.0.end())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        if self.0.contains(&number) { Ok(number) } else { self.refuse() }
    }

    fn visit_i64<E: Error>(self, _negative: i64) -> Result<u64, E> {
        self.refuse()
    }

    fn visit_f64<E: Error>(self, _fraction: f64) -> Result<u64, E> {
        self.refuse()
    }
}
