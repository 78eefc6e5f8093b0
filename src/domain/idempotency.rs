//! The `Idempotency-Key` of a request and the name by which the ledger knows its order.
//!
//! Source: IETF draft-ietf-httpapi-idempotency-key-header-07. It wants a quoted structured-field string (RFC 8941
//! §3.3.3); most clients send the bare text. Both are taken, and mean the same key.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{CustomerId, Invalid};

/// A client's name for one order: 1 to 255 visible ASCII characters (0x21 to 0x7E).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    const MAX_LENGTH: usize = 255;

    /// Reads the header's value, quoted or bare.
    pub fn parse(header: &[u8]) -> Result<Self, Invalid> {
        let key = match header {
            [b'"', quoted @ .., b'"'] => unescape(quoted)?,
            bare => bare.to_vec(),
        };
        let visible = key.iter().all(|byte| (0x21..=0x7e).contains(byte));
        if !visible || !(1..=Self::MAX_LENGTH).contains(&key.len()) {
            return Err(Self::invalid());
        }
        String::from_utf8(key).map(Self).map_err(|_| Self::invalid())
    }

    fn invalid() -> Invalid {
        Invalid::new("must be 1 to 255 visible ASCII characters, bare or in double quotes")
    }
}

/// Inside quotes a backslash stands before a quote or another backslash, and nowhere else (RFC 8941 §3.3.3).
fn unescape(quoted: &[u8]) -> Result<Vec<u8>, Invalid> {
    let mut key = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next() {
                Some(&escaped @ (b'"' | b'\\')) => key.push(escaped),
                _ => return Err(IdempotencyKey::invalid()),
            },
            b'"' => return Err(IdempotencyKey::invalid()),
            plain => key.push(plain),
        }
    }
    Ok(key)
}

/// An order's name within its customer, in 16 bytes: what makes an order unique (INV-4) and finds a customer's orders.
///
/// The head is a digest of the customer, the tail a digest of the idempotency key, or a piece of the order's own id
/// where the request had no key. One index over it serves both the repetition of a request and the list of a customer's
/// orders, where two would cost every insert twice. Both parts come from a cryptographic hash, so that nobody can aim
/// for another customer's key; the tail alone takes 2⁴⁰ keys of one customer for even odds of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderKey([u8; 16]);

impl OrderKey {
    /// Bytes that depend on the customer alone.
    const HEAD: usize = 6;

    /// The name of the order that this customer asks for under this key.
    pub fn of_request(customer: &CustomerId, key: &IdempotencyKey) -> Self {
        let customer_digest = Sha256::digest(customer.as_str());
        // A fixed-length digest stands first, so that no two pairs read as the same bytes.
        let key_digest = Sha256::new().chain_update(customer_digest).chain_update(&key.0).finalize();
        Self::join(&customer_digest, &key_digest[..10])
    }

    /// The name of an order that came without a key: the random part of its UUIDv7 keeps it apart.
    pub fn of_id(customer: &CustomerId, id: Uuid) -> Self {
        Self::join(&Sha256::digest(customer.as_str()), &id.as_bytes()[6..])
    }

    /// The lowest and the highest name that an order of this customer can have.
    pub fn range_of(customer: &str) -> (Self, Self) {
        let customer_digest = Sha256::digest(customer);
        (Self::join(&customer_digest, &[0; 10]), Self::join(&customer_digest, &[0xff; 10]))
    }

    fn join(customer_digest: &[u8], tail: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes[..Self::HEAD].copy_from_slice(&customer_digest[..Self::HEAD]);
        bytes[Self::HEAD..].copy_from_slice(tail);
        Self(bytes)
    }

    /// The key as a ledger's 16-byte column holds it.
    pub fn column(self) -> Uuid {
        Uuid::from_bytes(self.0)
    }

    /// Reads the ledger's column.
    pub fn from_column(column: Uuid) -> Self {
        Self(column.into_bytes())
    }

    /// The last eight bytes as a number, for sets that may err towards "perhaps".
    pub fn fingerprint(&self) -> u64 {
        let mut tail = [0; 8];
        tail.copy_from_slice(&self.0[8..]);
        u64::from_be_bytes(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(header: &str) -> Option<String> {
        IdempotencyKey::parse(header.as_bytes()).ok().map(|key| key.0)
    }

    #[test]
    fn bare_and_quoted_are_the_same_key() {
        assert_eq!(parse("abc-1"), Some("abc-1".to_owned()));
        assert_eq!(parse("\"abc-1\""), Some("abc-1".to_owned()));
        assert_eq!(parse(r#""a\"b\\c""#), Some(r#"a"b\c"#.to_owned()));
    }

    #[test]
    fn everything_else_is_refused() {
        let long = "k".repeat(256);
        for bad in ["", "\"\"", "a b", "\"a b\"", "a\tb", "schlüssel", r#""a\b""#, r#""a"b""#, &long] {
            assert_eq!(parse(bad), None, "{bad:?} must be refused");
        }
        assert!(parse(&"k".repeat(255)).is_some());
    }

    fn customer(name: &str) -> CustomerId {
        CustomerId::try_from(name.to_owned()).unwrap()
    }

    #[test]
    fn customer_and_key_are_told_apart() {
        let key = |name: &str, key: &str| {
            OrderKey::of_request(&customer(name), &IdempotencyKey::parse(key.as_bytes()).unwrap())
        };
        assert_eq!(key("ada", "1"), key("ada", "\"1\""));
        assert_ne!(key("ada", "1"), key("ada", "2"));
        assert_ne!(key("ada", "1"), key("ad", "a1"));
        assert_ne!(key("ada", "1"), key("bob", "1"));
    }

    #[test]
    fn a_customers_orders_lie_in_one_range() {
        let (low, high) = OrderKey::range_of("ada");
        let within = |key: OrderKey| (low..=high).contains(&key);
        let bare = IdempotencyKey::parse(b"1").unwrap();
        assert!(within(OrderKey::of_request(&customer("ada"), &bare)));
        assert!(within(OrderKey::of_id(&customer("ada"), Uuid::now_v7())));
        assert!(!within(OrderKey::of_request(&customer("bob"), &bare)));
    }

    #[test]
    fn orders_without_a_key_are_told_apart_by_their_ids() {
        let ada = customer("ada");
        let (first, second) = (Uuid::now_v7(), Uuid::now_v7());
        assert_eq!(OrderKey::of_id(&ada, first), OrderKey::of_id(&ada, first));
        assert_ne!(OrderKey::of_id(&ada, first), OrderKey::of_id(&ada, second));
    }
}
