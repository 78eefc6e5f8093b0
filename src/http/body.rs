//! Reading JSON bodies: fast when they are good, and precise about every field when they are not.

use std::time::Duration;

use axum::body::{Body as RequestBody, Bytes, HttpBody};
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::problem::{FieldError, Problem};

/// The largest body that is looked at, in bytes.
pub(super) const MAX_BODY_BYTES: usize = 16 * 1024;
/// A larger one is read up to here and thrown away: a client that has to send into a closed connection may lose the
/// answer, and the next one that it sends over the same connection.
const MAX_DISCARDED_BYTES: u64 = 1024 * 1024;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A JSON body of type `T`.
pub(super) struct Body<T>(pub(super) T);

/// A body whose fields can be looked at one by one, to name all that are wrong at once.
pub(super) trait Fields: DeserializeOwned {
    /// Looks at every field that the body may have.
    fn look_at(fields: &mut Examination);
}

impl<T: Fields, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let announced_as_json = content_type.is_some_and(is_json);
        let bytes = tokio::time::timeout(BODY_TIMEOUT, read(request, state)).await;
        let bytes = bytes.map_err(|_elapsed| Problem::RequestTimeout)??;
        if !announced_as_json {
            return Err(Problem::UnsupportedMediaType);
        }
        serde_json::from_slice(&bytes).map(Self).map_err(|error| explain::<T>(&bytes, &error))
    }
}

async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    if request.body().size_hint().lower() > MAX_BODY_BYTES as u64 {
        discard(request.into_body()).await;
        return Err(Problem::BodyTooLarge);
    }
    Bytes::from_request(request, state).await.map_err(|rejection| match rejection {
        BytesRejection::FailedToBufferBody(failed) if failed.status().as_u16() == 413 => Problem::BodyTooLarge,
        other => Problem::Malformed(other.body_text()),
    })
}

async fn discard(body: RequestBody) {
    if body.size_hint().lower() <= MAX_DISCARDED_BYTES {
        let mut pieces = body.into_data_stream();
        while let Some(Ok(_thrown_away)) = pieces.next().await {}
    }
}

/// `application/json` or `application/<anything>+json`, with or without parameters.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn explain<T: Fields>(bytes: &[u8], error: &serde_json::Error) -> Problem {
    match serde_json::from_slice::<Value>(bytes) {
        Err(error) => Problem::Malformed(format!("{error}")),
        Ok(Value::Object(fields)) => {
            let mut examination = Examination { fields, errors: Vec::new() };
            T::look_at(&mut examination);
            examination.verdict(error)
        }
        Ok(_) => Problem::Malformed("the body is JSON, but no object".to_owned()),
    }
}

/// Collects what is wrong with the fields of a body.
pub(super) struct Examination {
    fields: Map<String, Value>,
    errors: Vec<FieldError>,
}

impl Examination {
    /// A field that must be there.
    pub(super) fn required<T: DeserializeOwned>(&mut self, field: &str) {
        match self.fields.remove(field) {
            Some(value) => self.read::<T>(field, value),
            None => self.wrong(field, "is missing".to_owned()),
        }
    }

    /// A field that may be left out, or null.
    pub(super) fn optional<T: DeserializeOwned>(&mut self, field: &str) {
        if let Some(value) = self.fields.remove(field) {
            self.read::<Option<T>>(field, value);
        }
    }

    fn read<T: DeserializeOwned>(&mut self, field: &str, value: Value) {
        if let Err(error) = serde_json::from_value::<T>(value) {
            self.wrong(field, error.to_string());
        }
    }

    fn wrong(&mut self, field: &str, message: String) {
        self.errors.push(FieldError { field: field.to_owned(), message });
    }

    /// Fields that nobody looked at are unknown.
    fn verdict(mut self, error: &serde_json::Error) -> Problem {
        for field in std::mem::take(&mut self.fields).keys() {
            self.wrong(field, "is not a field of this request".to_owned());
        }
        if self.errors.is_empty() {
            // What only the whole body shows: a field that stands twice. The reader names it in backticks.
            let message = error.to_string();
            let field = message.split('`').nth(1).unwrap_or_default().to_owned();
            self.wrong(&field, message);
        }
        Problem::Invalid(self.errors)
    }
}
