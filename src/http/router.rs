//! The whole API on one screen.

use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Router, middleware};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

use super::body::MAX_BODY_BYTES;
use super::measure::measure;
use super::problem::{self, Problem};
use super::{Api, health, orders, products};

/// All routes, with what applies to every one of them; for the benchmark also the handler that shows how fast the server
/// would be if selling cost nothing.
pub fn router(api: Api, with_ceiling: bool) -> Router {
    let (routes, document) = OpenApiRouter::with_openapi(document())
        .routes(routes!(orders::place, orders::list))
        .routes(routes!(orders::find))
        .routes(routes!(products::create, products::list))
        .routes(routes!(products::find))
        .routes(routes!(problem::explain))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
        .split_for_parts();
    let docs = Router::from(SwaggerUi::new("/docs").url("/openapi.json", document))
        .layer(middleware::map_response(explain_missing_page));
    let ceiling = Router::new().route("/ceiling", post(orders::ceiling));
    let extra = if with_ceiling { ceiling } else { Router::new() };
    routes
        .merge(docs)
        .merge(extra)
        .fallback(async || Problem::NotFound)
        .method_not_allowed_fallback(async || Problem::MethodNotAllowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(CatchPanicLayer::custom(problem::panicked))
        .layer(middleware::from_fn(measure))
        .with_state(api)
}

/// The docs page has files of its own, and an empty answer for those that it does not have.
async fn explain_missing_page(page: Response) -> Response {
    if page.status().is_client_error() { Problem::NotFound.into_response() } else { page }
}

fn document() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(info(
        title = "segstock",
        description = "Sells a product's stock during a flash sale: segment by segment, never one unit too many. \
                       Refusals are RFC 9457 problem documents; `type` names the kind and can be fetched.",
    ))]
    struct Document;
    let mut document = Document::openapi();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("admin_token", SecurityScheme::Http(scheme));
    document
}
