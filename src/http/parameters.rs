//! Reading query parameters, as strictly as bodies.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use super::problem::{FieldError, Problem};

/// Entries on a page unless asked otherwise.
const DEFAULT_LIMIT: u32 = 100;
/// The most entries on a page.
const MAX_LIMIT: u32 = 1000;

/// The query parameters of a request, taken one by one.
pub(super) struct Parameters {
    given: Vec<(String, String)>,
    errors: Vec<FieldError>,
}

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Query(given) = query.map_err(|rejection| Problem::invalid("", rejection.body_text()))?;
        Ok(Self { given, errors: Vec::new() })
    }
}

impl Parameters {
    /// Takes a parameter; what cannot be read is told at the end.
    pub(super) fn take<T>(&mut self, name: &str, read: impl FnOnce(String) -> Result<T, String>) -> Option<T> {
        let position = self.given.iter().position(|(given, _)| given == name)?;
        let (_, value) = self.given.remove(position);
        match read(value) {
            Ok(value) => Some(value),
            Err(message) => {
                self.wrong(name, message);
                None
            }
        }
    }

    /// Takes the size of the page.
    pub(super) fn limit(&mut self) -> u32 {
        let message = || format!("must be a whole number from 1 to {MAX_LIMIT}");
        let read = |value: String| match u32::from_str(&value) {
            Ok(limit @ 1..=MAX_LIMIT) => Ok(limit),
            _ => Err(message()),
        };
        self.take("limit", read).unwrap_or(DEFAULT_LIMIT)
    }

    /// Whatever was not taken is unknown, or stands there twice.
    pub(super) fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.given) {
            self.wrong(&name, "is not a parameter of this request, or stands twice".to_owned());
        }
        if self.errors.is_empty() { Ok(()) } else { Err(Problem::Invalid(self.errors)) }
    }

    fn wrong(&mut self, name: &str, message: String) {
        self.errors.push(FieldError { field: name.to_owned(), message });
    }
}
