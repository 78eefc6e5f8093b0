//! Who may create and change products.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Api;
use super::problem::Problem;

/// The digest of the admin token: digests of one length can be compared in constant time.
#[derive(Clone)]
pub(super) struct AdminToken([u8; 32]);

impl AdminToken {
    pub(super) fn new(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    fn accepts(&self, candidate: &[u8]) -> bool {
        let candidate: [u8; 32] = Sha256::digest(candidate).into();
        self.0.ct_eq(&candidate).into()
    }
}

/// Proof that the request may do what an admin may.
pub(super) struct Admin;

impl FromRequestParts<Api> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Problem> {
        let Some(token) = &api.admin_token else {
            return Ok(Self);
        };
        let header = parts.headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        let candidate = header
            .and_then(|value| value.split_at_checked(7))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        match candidate {
            Some((_, candidate)) if token.accepts(candidate) => Ok(Self),
            _ => Err(Problem::Unauthorized),
        }
    }
}
