//! `/orders`: placing, finding and listing.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Api;
use super::body::{Body, Examination, Fields};
use super::parameters::Parameters;
use super::problem::Problem;
use crate::domain::{CustomerId, IdempotencyKey, Order, OrderStatus, Quantity, Sku};
use crate::ledger::OrderFilter;
use crate::sale::{OrderRequest, Outcome};

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What to buy, and for whom.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaceOrder {
    /// The product: 1 to 64 of A-Z a-z 0-9 . _ -
    #[schema(value_type = String, example = "demo", max_length = 64)]
    sku: Sku,
    /// Units, within the product's max_per_order.
    #[schema(value_type = u32, example = 1, minimum = 1, maximum = 2_147_483_647)]
    quantity: Quantity,
    /// Who buys, as the shop names them.
    #[schema(value_type = String, example = "ada", min_length = 1, max_length = 128)]
    customer_id: CustomerId,
}

impl Fields for PlaceOrder {
    fn look_at(fields: &mut Examination) {
        fields.required::<Sku>("sku");
        fields.required::<Quantity>("quantity");
        fields.required::<CustomerId>("customer_id");
    }
}

/// An order.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OrderBody {
    /// A UUIDv7.
    id: Uuid,
    /// What was bought.
    #[schema(value_type = String)]
    sku: Sku,
    /// Units bought.
    #[schema(value_type = u32)]
    quantity: Quantity,
    /// Who bought it.
    #[schema(value_type = String)]
    customer_id: CustomerId,
    /// The segment that the units came from.
    segment: u16,
    /// Where the order stands.
    status: OrderStatus,
    /// When it was placed.
    created_at: DateTime<Utc>,
    /// When its hold ends; null where there is no hold.
    expires_at: Option<DateTime<Utc>>,
    /// When it was confirmed; an order of a product without holds is confirmed when it is placed.
    confirmed_at: Option<DateTime<Utc>>,
}

impl From<Order> for OrderBody {
    fn from(order: Order) -> Self {
        let created_at = order.created_at();
        Self {
            id: order.id,
            sku: order.sku,
            quantity: order.quantity,
            customer_id: order.customer_id,
            segment: order.segment,
            status: order.status,
            created_at,
            expires_at: None,
            confirmed_at: (order.status == OrderStatus::Confirmed).then_some(created_at),
        }
    }
}

/// Places an order.
///
/// With an `Idempotency-Key` the same request gets the same order again, at any time; without one every call is an order.
#[utoipa::path(
    post, path = "/orders", tag = "orders", request_body = PlaceOrder,
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters, bare or quoted")),
    responses(
        (status = 201, description = "The order is placed, or was placed before (then with Idempotent-Replayed: true)", body = OrderBody),
        (status = 404, description = "unknown-product"),
        (status = 409, description = "sold-out, insufficient-stock, sale-not-started"),
        (status = 410, description = "sale-ended"),
        (status = 422, description = "invalid, idempotency-key-reused"),
        (status = 503, description = "contended, overloaded, unavailable, outcome-unknown; with Retry-After"),
    ),
)]
pub(super) async fn place(
    State(api): State<Api>,
    headers: HeaderMap,
    Body(body): Body<PlaceOrder>,
) -> Result<Response, Problem> {
    let request = request(&headers, body)?;
    // Nothing is torn apart when the client hangs up here: the order lives on in its product's queue.
    match api.sale.order(request).await {
        Outcome::Placed(order) => Ok(created(order, false)),
        Outcome::Replayed(order) => Ok(created(order, true)),
        Outcome::Refused(refusal) => Err(Problem::Order(refusal)),
    }
}

/// Answers an order without any stock or ledger: the most that [`place`] could reach on the same server.
pub(super) async fn ceiling(headers: HeaderMap, Body(body): Body<PlaceOrder>) -> Result<Response, Problem> {
    let OrderRequest { sku, quantity, customer_id, idempotency_key: _ } = request(&headers, body)?;
    let order = Order { id: Uuid::now_v7(), sku, quantity, customer_id, segment: 0, status: OrderStatus::Confirmed };
    Ok(created(order, false))
}

fn request(headers: &HeaderMap, body: PlaceOrder) -> Result<OrderRequest, Problem> {
    let idempotency_key = idempotency_key(headers)?;
    let PlaceOrder { sku, quantity, customer_id } = body;
    Ok(OrderRequest { sku, quantity, customer_id, idempotency_key })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Problem::invalid(IDEMPOTENCY_KEY, "must be sent once"));
    }
    let key = IdempotencyKey::parse(value.as_bytes());
    key.map(Some).map_err(|invalid| Problem::invalid(IDEMPOTENCY_KEY, invalid.to_string()))
}

fn created(order: Order, replayed: bool) -> Response {
    let location = HeaderValue::try_from(format!("/orders/{}", order.id));
    let mut response = (StatusCode::CREATED, axum::Json(OrderBody::from(order))).into_response();
    let headers = response.headers_mut();
    if let Ok(location) = location {
        headers.insert(LOCATION, location);
    }
    if replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Finds an order by its id.
#[utoipa::path(
    get, path = "/orders/{id}", tag = "orders",
    params(("id" = String, Path, description = "The order's id")),
    responses((status = 200, body = OrderBody), (status = 404, description = "unknown-order")),
)]
pub(super) async fn find(
    State(api): State<Api>,
    id: Result<Path<String>, PathRejection>,
) -> Result<axum::Json<OrderBody>, Problem> {
    // What is no text is no id either.
    let Path(id) = id.map_err(|_| Problem::UnknownOrder)?;
    let id = Uuid::try_parse(&id).map_err(|_| Problem::UnknownOrder)?;
    let order = api.sale.find_order(id).await?.ok_or(Problem::UnknownOrder)?;
    Ok(axum::Json(order.into()))
}

/// A page of orders.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OrderPage {
    /// The orders, oldest first.
    orders: Vec<OrderBody>,
    /// What to send as `after` for the next page; null on the last one.
    next_cursor: Option<Uuid>,
}

/// Lists orders, oldest first.
#[utoipa::path(
    get, path = "/orders", tag = "orders",
    params(
        ("customer_id" = Option<String>, Query, description = "Only this customer's"),
        ("sku" = Option<String>, Query, description = "Only this product's"),
        ("status" = Option<OrderStatus>, Query, description = "Only with this status"),
        ("limit" = Option<u32>, Query, description = "Orders on a page, 1 to 1000, 100 unless said otherwise"),
        ("after" = Option<String>, Query, description = "The previous page's next_cursor"),
    ),
    responses((status = 200, body = OrderPage), (status = 422, description = "invalid")),
)]
pub(super) async fn list(State(api): State<Api>, mut parameters: Parameters) -> Result<axum::Json<OrderPage>, Problem> {
    let limit = parameters.limit();
    let filter = OrderFilter {
        customer_id: parameters
            .take("customer_id", |value| CustomerId::try_from(value).map_err(|invalid| invalid.to_string()))
            .map(String::from),
        sku: parameters.take("sku", |value| Sku::new(&value).map_err(|invalid| invalid.to_string())),
        status: parameters.take("status", |value| {
            let known = serde_json::from_value(value.into());
            known.map_err(|_| "must be reserved, confirmed, cancelled or expired".to_owned())
        }),
        after: parameters.take("after", |value| {
            Uuid::try_parse(&value).map_err(|_| "must be a next_cursor of this list".to_owned())
        }),
        // One more than the page shows whether there is a next one.
        limit: limit + 1,
    };
    parameters.finish()?;
    let mut orders = api.sale.orders(filter).await?;
    let more = orders.len() > limit as usize;
    orders.truncate(limit as usize);
    Ok(axum::Json(OrderPage {
        next_cursor: orders.last().map(|order| order.id).filter(|_| more),
        orders: orders.into_iter().map(OrderBody::from).collect(),
    }))
}
