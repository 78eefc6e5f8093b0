//! What orchestrators and scrapers ask.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;

/// Whether the stores answer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Readiness {
    /// The guard (Redis, or memory) answers.
    guard: bool,
    /// The ledger (PostgreSQL, or SQLite) answers.
    ledger: bool,
}

/// Says that the process runs.
#[utoipa::path(get, path = "/livez", tag = "operations", responses((status = 200, description = "It runs")))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Says whether orders can be placed.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses(
        (status = 200, description = "They can", body = Readiness),
        (status = 503, description = "A store does not answer", body = Readiness),
    ),
)]
pub(super) async fn ready(State(api): State<Api>) -> Response {
    let health = api.sale.health().await;
    let status = if health.guard && health.ledger { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let readiness = Readiness { guard: health.guard, ledger: health.ledger };
    (status, axum::Json(readiness)).into_response()
}

/// The metrics in Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "operations", responses((status = 200, description = "The metrics")))]
pub(super) async fn metrics(State(api): State<Api>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], api.metrics.render()).into_response()
}
