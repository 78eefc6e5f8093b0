//! `/products`: creating, finding and listing.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Api;
use super::admin::Admin;
use super::body::{Body, Examination, Fields};
use super::parameters::Parameters;
use super::problem::Problem;
use crate::domain::{
    Moment, NewProduct, Product, ProductName, Quantity, SaleWindow, SegmentCount, SegmentStock, Sku, Stock,
};
use crate::ledger::ProductTotals;
use crate::sale::{ProductStock, Refusal};

/// A product to sell.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateProduct {
    /// 1 to 64 of A-Z a-z 0-9 . _ -
    #[schema(value_type = String, example = "demo", max_length = 64)]
    sku: Sku,
    /// The name for people; the SKU unless said otherwise.
    #[schema(value_type = Option<String>, max_length = 200)]
    #[serde(default)]
    name: Option<ProductName>,
    /// Units to sell.
    #[schema(value_type = u64, example = 1000, maximum = 1_000_000_000_000_u64)]
    stock: Stock,
    /// How many segments share the stock; 20 unless said otherwise.
    #[schema(value_type = Option<u16>, example = 20, minimum = 1, maximum = 1024)]
    #[serde(default)]
    segments: Option<SegmentCount>,
    /// The most units that one order may ask for; no limit unless said otherwise.
    #[schema(value_type = Option<u32>, minimum = 1)]
    #[serde(default)]
    max_per_order: Option<Quantity>,
    /// When the sale begins (RFC 3339); at once unless said otherwise.
    #[schema(value_type = Option<DateTime<Utc>>)]
    #[serde(default)]
    starts_at: Option<Moment>,
    /// When the sale ends (RFC 3339); never unless said otherwise.
    #[schema(value_type = Option<DateTime<Utc>>)]
    #[serde(default)]
    ends_at: Option<Moment>,
}

impl Fields for CreateProduct {
    fn look_at(fields: &mut Examination) {
        fields.required::<Sku>("sku");
        fields.optional::<ProductName>("name");
        fields.required::<Stock>("stock");
        fields.optional::<SegmentCount>("segments");
        fields.optional::<Quantity>("max_per_order");
        fields.optional::<Moment>("starts_at");
        fields.optional::<Moment>("ends_at");
    }
}

impl TryFrom<CreateProduct> for NewProduct {
    type Error = Problem;

    fn try_from(body: CreateProduct) -> Result<Self, Problem> {
        let window = SaleWindow {
            starts_at: body.starts_at.map(|moment| moment.0),
            ends_at: body.ends_at.map(|moment| moment.0),
        };
        if let (Some(starts_at), Some(ends_at)) = (window.starts_at, window.ends_at)
            && starts_at >= ends_at
        {
            return Err(Problem::invalid("ends_at", "must be later than starts_at"));
        }
        Ok(Self {
            name: body.name.unwrap_or_else(|| ProductName(body.sku.as_str().to_owned())),
            sku: body.sku,
            stock: body.stock,
            segments: body.segments.unwrap_or_default(),
            max_per_order: body.max_per_order,
            window,
        })
    }
}

/// A product with the sums of its stock.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProductSummary {
    #[schema(value_type = String)]
    sku: Sku,
    name: String,
    #[schema(value_type = Option<u32>)]
    max_per_order: Option<Quantity>,
    starts_at: Option<DateTime<Utc>>,
    ends_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    /// Units given to the product.
    allotted: u64,
    /// Units left.
    available: u64,
}

impl ProductSummary {
    fn new(product: Product, allotted: u64, available: u64) -> Self {
        Self {
            sku: product.sku,
            name: product.name,
            max_per_order: product.max_per_order,
            starts_at: product.window.starts_at,
            ends_at: product.window.ends_at,
            created_at: product.created_at,
            allotted,
            available,
        }
    }
}

/// A product with its stock.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProductBody {
    #[serde(flatten)]
    summary: ProductSummary,
    /// Units in orders that are reserved and not confirmed.
    held: u64,
    /// Units in confirmed orders.
    confirmed: u64,
    /// The shares of the stock.
    segments: Vec<SegmentBody>,
}

/// One share of a product's stock.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SegmentBody {
    /// 0 to N-1.
    index: u16,
    /// Units given to the segment.
    allotted: u64,
    /// Units left.
    available: u64,
    /// Units in live orders.
    taken: u64,
}

impl From<ProductStock> for ProductBody {
    fn from(stock: ProductStock) -> Self {
        let sum = |units: fn(&SegmentStock) -> u64| stock.segments.iter().map(units).sum::<u64>();
        let taken = sum(|segment| segment.taken);
        let summary = ProductSummary::new(stock.product, sum(|segment| segment.allotted), sum(SegmentStock::available));
        let segment = |segment: &SegmentStock| SegmentBody {
            index: segment.index,
            allotted: segment.allotted,
            available: segment.available(),
            taken: segment.taken,
        };
        Self {
            summary,
            held: stock.held,
            // The two were read one after the other, and orders may have moved in between.
            confirmed: taken.saturating_sub(stock.held),
            segments: stock.segments.iter().map(segment).collect(),
        }
    }
}

/// Creates a product. An admin call.
#[utoipa::path(
    post, path = "/products", tag = "products", request_body = CreateProduct, security(("admin_token" = [])),
    responses(
        (status = 201, description = "The product can be bought", body = ProductBody),
        (status = 401, description = "unauthorized"),
        (status = 409, description = "product-exists"),
        (status = 422, description = "invalid"),
    ),
)]
pub(super) async fn create(
    _admin: Admin,
    State(api): State<Api>,
    Body(body): Body<CreateProduct>,
) -> Result<Response, Problem> {
    let new = NewProduct::try_from(body)?;
    // A task of its own, so that a client that hangs up does not stop it halfway.
    let creation = tokio::spawn(async move { api.sale.create_product(new).await });
    let created = creation.await.map_err(|_panic| Problem::Internal)?;
    let stock = created.map_err(Problem::of_change)?.ok_or(Problem::ProductExists)?;
    let location = format!("/products/{}", stock.product.sku);
    Ok((StatusCode::CREATED, [(LOCATION, location)], axum::Json(ProductBody::from(stock))).into_response())
}

/// Finds a product with its stock, as the ledger has it now.
#[utoipa::path(
    get, path = "/products/{sku}", tag = "products",
    params(("sku" = String, Path, description = "The product's SKU")),
    responses((status = 200, body = ProductBody), (status = 404, description = "unknown-product")),
)]
pub(super) async fn find(
    State(api): State<Api>,
    sku: Result<Path<String>, PathRejection>,
) -> Result<axum::Json<ProductBody>, Problem> {
    let unknown = Problem::Order(Refusal::UnknownProduct);
    // What is no text is no SKU either.
    let Some(sku) = sku.ok().and_then(|Path(sku)| Sku::new(&sku).ok()) else {
        return Err(unknown);
    };
    let stock = api.sale.product(&sku).await?.ok_or(unknown)?;
    Ok(axum::Json(stock.into()))
}

/// A page of products.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProductPage {
    /// The products in SKU order.
    products: Vec<ProductSummary>,
    /// What to send as `after` for the next page; null on the last one.
    #[schema(value_type = Option<String>)]
    next_cursor: Option<Sku>,
}

/// Lists products in SKU order.
#[utoipa::path(
    get, path = "/products", tag = "products",
    params(
        ("limit" = Option<u32>, Query, description = "Products on a page, 1 to 1000, 100 unless said otherwise"),
        ("after" = Option<String>, Query, description = "The previous page's next_cursor"),
    ),
    responses((status = 200, body = ProductPage), (status = 422, description = "invalid")),
)]
pub(super) async fn list(
    State(api): State<Api>,
    mut parameters: Parameters,
) -> Result<axum::Json<ProductPage>, Problem> {
    let limit = parameters.limit();
    let after = parameters.take("after", |value| Sku::new(&value).map_err(|invalid| invalid.to_string()));
    parameters.finish()?;
    let mut products = api.sale.products(after.as_ref(), limit + 1).await?;
    let more = products.len() > limit as usize;
    products.truncate(limit as usize);
    let summary = |totals: ProductTotals| {
        let ProductTotals { product, allotted, taken } = totals;
        ProductSummary::new(product, allotted, allotted.saturating_sub(taken))
    };
    Ok(axum::Json(ProductPage {
        next_cursor: products.last().map(|totals| totals.product.sku.clone()).filter(|_| more),
        products: products.into_iter().map(summary).collect(),
    }))
}
