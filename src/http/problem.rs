//! Problem documents (RFC 9457), and the only place where an error becomes a status.

use std::any::Any;
use std::error::Error;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::ledger::LedgerError;
use crate::sale::Refusal;

/// Seconds after which a request that met a temporary obstacle is worth repeating.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// What is wrong with one field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct FieldError {
    /// The field, header or parameter.
    pub field: String,
    /// What it must be.
    pub message: String,
}

/// Everything that a client can be told instead of what it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The body is not JSON; says where it stops being it.
    Malformed(String),
    /// The admin token is missing or wrong.
    Unauthorized,
    /// Nothing is at this address.
    NotFound,
    /// No order has this id.
    UnknownOrder,
    /// The address is known, and not with this method.
    MethodNotAllowed,
    /// The SKU of a new product is taken.
    ProductExists,
    /// The body took too long to arrive.
    RequestTimeout,
    /// The body is larger than any request's.
    BodyTooLarge,
    /// The body is not announced as JSON.
    UnsupportedMediaType,
    /// Fields are wrong; names all of them.
    Invalid(Vec<FieldError>),
    /// The sale says no.
    Order(Refusal),
    /// A store does not answer, and nothing was changed.
    Unavailable,
    /// A handler broke down, or a store holds what nobody can read.
    Internal,
}

/// A kind of problem: what is the same for all that have it.
struct Kind {
    status: StatusCode,
    slug: &'static str,
    title: &'static str,
    /// What happened, and what to do next.
    detail: &'static str,
}

const fn kind(status: StatusCode, slug: &'static str, title: &'static str, detail: &'static str) -> Kind {
    Kind { status, slug, title, detail }
}

const MALFORMED: Kind = kind(StatusCode::BAD_REQUEST, "malformed", "The body is not JSON", "Send one JSON object.");
const UNAUTHORIZED: Kind = kind(
    StatusCode::UNAUTHORIZED,
    "unauthorized",
    "An admin token is needed",
    "Send the header Authorization: Bearer <the service's admin_token>.",
);
const NOT_FOUND: Kind = kind(
    StatusCode::NOT_FOUND,
    "not-found",
    "There is nothing at this address",
    "See /docs for the addresses that exist.",
);
const UNKNOWN_ORDER: Kind = kind(
    StatusCode::NOT_FOUND,
    "unknown-order",
    "No order has this id",
    "Use an id from the answer to POST /orders, or look for the order in GET /orders.",
);
const UNKNOWN_PRODUCT: Kind = kind(
    StatusCode::NOT_FOUND,
    "unknown-product",
    "No product has this SKU",
    "Check the SKU, or create the product with POST /products.",
);
const METHOD_NOT_ALLOWED: Kind = kind(
    StatusCode::METHOD_NOT_ALLOWED,
    "method-not-allowed",
    "The address does not know this method",
    "See /docs for the methods that it knows.",
);
const PRODUCT_EXISTS: Kind =
    kind(StatusCode::CONFLICT, "product-exists", "The SKU is taken", "Nothing was changed. Choose another SKU.");
const SOLD_OUT: Kind = kind(
    StatusCode::CONFLICT,
    "sold-out",
    "Nothing is left",
    "Every unit is sold. Repeating the request helps only if units come back.",
);
const INSUFFICIENT_STOCK: Kind = kind(
    StatusCode::CONFLICT,
    "insufficient-stock",
    "Less is left than asked for",
    "Ask for at most as many units as `remaining` says.",
);
const SALE_NOT_STARTED: Kind = kind(
    StatusCode::CONFLICT,
    "sale-not-started",
    "The sale has not begun",
    "Repeat the request when the time in `starts_at` has come.",
);
const SALE_ENDED: Kind = kind(StatusCode::GONE, "sale-ended", "The sale is over", "The product is not sold any more.");
const REQUEST_TIMEOUT: Kind = kind(
    StatusCode::REQUEST_TIMEOUT,
    "request-timeout",
    "The body did not arrive in time",
    "Nothing was changed. Send the request again.",
);
const BODY_TOO_LARGE: Kind =
    kind(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "The body is too large", "Send at most 16 KiB.");
const UNSUPPORTED_MEDIA_TYPE: Kind = kind(
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "unsupported-media-type",
    "The body is not announced as JSON",
    "Send the header Content-Type: application/json.",
);
const INVALID: Kind = kind(
    StatusCode::UNPROCESSABLE_ENTITY,
    "invalid",
    "The request is not valid",
    "Nothing was changed. Correct what `errors` names.",
);
const KEY_REUSED: Kind = kind(
    StatusCode::UNPROCESSABLE_ENTITY,
    "idempotency-key-reused",
    "The idempotency key stands for another order",
    "Send the same body as the first time to get that order again, or another key for another order.",
);
const CONTENDED: Kind = kind(
    StatusCode::SERVICE_UNAVAILABLE,
    "contended",
    "Every segment was busy",
    "Nothing was changed, and units may be left. Repeat the request after the time in Retry-After.",
);
const OVERLOADED: Kind = kind(
    StatusCode::SERVICE_UNAVAILABLE,
    "overloaded",
    "Too many orders are waiting",
    "Nothing was changed. Repeat the request after the time in Retry-After.",
);
const UNAVAILABLE: Kind = kind(
    StatusCode::SERVICE_UNAVAILABLE,
    "unavailable",
    "A store does not answer",
    "Nothing was changed. Repeat the request after the time in Retry-After.",
);
const OUTCOME_UNKNOWN: Kind = kind(
    StatusCode::SERVICE_UNAVAILABLE,
    "outcome-unknown",
    "It is not known whether the change was made",
    "Repeat the request: an order with the same Idempotency-Key is placed once. Without a key, look for it first.",
);
const INTERNAL: Kind = kind(
    StatusCode::INTERNAL_SERVER_ERROR,
    "internal",
    "Something broke inside the service",
    "Repeat the request with the same Idempotency-Key; report it if it happens again.",
);

const KINDS: [&Kind; 21] = [
    &MALFORMED,
    &UNAUTHORIZED,
    &NOT_FOUND,
    &UNKNOWN_ORDER,
    &UNKNOWN_PRODUCT,
    &METHOD_NOT_ALLOWED,
    &PRODUCT_EXISTS,
    &SOLD_OUT,
    &INSUFFICIENT_STOCK,
    &SALE_NOT_STARTED,
    &SALE_ENDED,
    &REQUEST_TIMEOUT,
    &BODY_TOO_LARGE,
    &UNSUPPORTED_MEDIA_TYPE,
    &INVALID,
    &KEY_REUSED,
    &CONTENDED,
    &OVERLOADED,
    &UNAVAILABLE,
    &OUTCOME_UNKNOWN,
    &INTERNAL,
];

impl Problem {
    /// One wrong field.
    pub(super) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError { field: field.to_owned(), message: message.into() }])
    }

    fn kind(&self) -> &'static Kind {
        match self {
            Self::Malformed(_) => &MALFORMED,
            Self::Unauthorized => &UNAUTHORIZED,
            Self::NotFound => &NOT_FOUND,
            Self::UnknownOrder => &UNKNOWN_ORDER,
            Self::MethodNotAllowed => &METHOD_NOT_ALLOWED,
            Self::ProductExists => &PRODUCT_EXISTS,
            Self::RequestTimeout => &REQUEST_TIMEOUT,
            Self::BodyTooLarge => &BODY_TOO_LARGE,
            Self::UnsupportedMediaType => &UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid(_) => &INVALID,
            Self::Unavailable => &UNAVAILABLE,
            Self::Internal => &INTERNAL,
            Self::Order(refusal) => match refusal {
                Refusal::UnknownProduct => &UNKNOWN_PRODUCT,
                Refusal::AboveMaxPerOrder { .. } => &INVALID,
                Refusal::NotStarted { .. } => &SALE_NOT_STARTED,
                Refusal::Ended { .. } => &SALE_ENDED,
                Refusal::SoldOut => &SOLD_OUT,
                Refusal::InsufficientStock { .. } => &INSUFFICIENT_STOCK,
                Refusal::KeyReused => &KEY_REUSED,
                Refusal::Contended => &CONTENDED,
                Refusal::Overloaded => &OVERLOADED,
                Refusal::Unavailable => &UNAVAILABLE,
                Refusal::OutcomeUnknown => &OUTCOME_UNKNOWN,
            },
        }
    }

    /// What this problem says beyond its kind.
    fn members(&self) -> Map<String, Value> {
        let members = match self {
            Self::Malformed(what) => json!({ "detail": format!("{what}. {}", MALFORMED.detail) }),
            Self::Invalid(errors) => json!({ "errors": errors }),
            Self::Order(Refusal::AboveMaxPerOrder { max }) => {
                let message = format!("must be at most {}, the product's max_per_order", max.units());
                json!({ "errors": [{ "field": "quantity", "message": message }] })
            }
            Self::Order(Refusal::InsufficientStock { remaining }) => {
                json!({ "remaining": remaining })
            }
            Self::Order(Refusal::NotStarted { starts_at }) => json!({ "starts_at": starts_at }),
            Self::Order(Refusal::Ended { ended_at }) => json!({ "ends_at": ended_at }),
            _ => Value::Null,
        };
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

impl Kind {
    fn document(&self) -> Map<String, Value> {
        let mut document = Map::new();
        document.insert("type".to_owned(), format!("/problems/{}", self.slug).into());
        document.insert("title".to_owned(), self.title.into());
        document.insert("status".to_owned(), self.status.as_u16().into());
        document.insert("detail".to_owned(), self.detail.into());
        document
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let kind = self.kind();
        let mut document = kind.document();
        document.extend(self.members());
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if kind.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        if kind.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(kind.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
            // What was not read of the body cannot be told from the next request.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        (kind.status, headers, Value::Object(document).to_string()).into_response()
    }
}

/// A ledger that fails a read: nothing can have been changed. Logged here, once.
impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        tracing::warn!(error = &error as &dyn Error, "a request was not served");
        match error {
            LedgerError::Unreadable(_) => Self::Internal,
            LedgerError::NothingHappened(_) | LedgerError::OutcomeUnknown(_) => Self::Unavailable,
        }
    }
}

impl Problem {
    /// A ledger that fails a change: it may have been made (R6).
    pub(super) fn of_change(error: LedgerError) -> Self {
        let unknown = matches!(error, LedgerError::OutcomeUnknown(_));
        let problem = Self::from(error);
        if unknown { Self::Order(Refusal::OutcomeUnknown) } else { problem }
    }
}

/// A handler panicked: the connection lives on, the client is told.
pub(super) fn panicked(_cause: Box<dyn Any + Send>) -> Response {
    Problem::Internal.into_response()
}

/// What a kind of problem means, and what to do about it.
#[utoipa::path(
    get, path = "/problems/{slug}", tag = "problems",
    params(("slug" = String, Path, description = "The last part of a problem's `type`")),
    responses((status = 200, description = "The kind of problem"), (status = 404, description = "No such kind")),
)]
pub(super) async fn explain(slug: Result<Path<String>, PathRejection>) -> Response {
    let known = slug.ok().and_then(|Path(slug)| KINDS.into_iter().find(|kind| kind.slug == slug));
    match known {
        Some(kind) => axum::Json(Value::Object(kind.document())).into_response(),
        None => Problem::NotFound.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_unique_and_every_kind_says_what_to_do() {
        let mut slugs: Vec<_> = KINDS.iter().map(|kind| kind.slug).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), KINDS.len());
        assert!(KINDS.iter().all(|kind| kind.detail.ends_with('.')));
    }
}
