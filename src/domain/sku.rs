//! A product's public identity.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Invalid;

/// A stock keeping unit: 1 to 64 of `A-Z a-z 0-9 . _ -`.
///
/// Braces are left out on purpose: a SKU becomes part of a Redis key, where braces would move the hash tag and so
/// tear a segment's two keys apart in a cluster. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sku(Arc<str>);

impl Sku {
    const MAX_LENGTH: usize = 64;

    /// Checks `text` against the SKU alphabet and length.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if (1..=Self::MAX_LENGTH).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.into()))
        } else {
            Err(Invalid::new("must be 1 to 64 characters out of A-Z, a-z, 0-9, '.', '_' and '-'"))
        }
    }

    /// The SKU as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sku {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for Sku {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(&text)
    }
}

impl From<Sku> for String {
    fn from(sku: Sku) -> Self {
        sku.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_and_the_length_are_held() {
        for good in ["a", "iPhone-17.pro_max", &"x".repeat(64)] {
            assert_eq!(Sku::new(good).unwrap().as_str(), good);
        }
        for bad in ["", " ", "a b", "{a}", "a:b", "ä", "a\n", &"x".repeat(65)] {
            assert!(Sku::new(bad).is_err(), "{bad:?} must be refused");
        }
    }
}
