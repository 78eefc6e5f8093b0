//! Who an order is for.

use serde::{Deserialize, Serialize};

use super::Invalid;

/// A customer as the shop names them: 1 to 128 characters, none of them a control character.
///
/// Control characters are refused because a ledger cannot hold a NUL and nobody can read the others in a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CustomerId(String);

impl CustomerId {
    const MAX_CHARS: usize = 128;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CustomerId {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        // Bytes bound characters from above, so the usual id is not counted character by character.
        let short = text.len() <= Self::MAX_CHARS || text.chars().count() <= Self::MAX_CHARS;
        if text.is_empty() || !short || text.chars().any(char::is_control) {
            return Err(Invalid::new("must be 1 to 128 characters without control characters"));
        }
        Ok(Self(text))
    }
}

impl From<CustomerId> for String {
    fn from(customer: CustomerId) -> Self {
        customer.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_characters() {
        assert!(CustomerId::try_from("ü".repeat(128)).is_ok());
        assert!(CustomerId::try_from("ü".repeat(129)).is_err());
        assert!(CustomerId::try_from(String::new()).is_err());
        assert!(CustomerId::try_from("a\0b".to_owned()).is_err());
    }
}
