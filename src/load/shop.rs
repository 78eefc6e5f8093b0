//! The products of a run, as the service shows them.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

use super::connection::{Answer, Connection, Unreachable, host_of};
use super::run::LoadError;
use crate::config::LoadOptions;

/// Products or orders on a page.
const PAGE: usize = 1000;
/// How long a page may take: longer than an order, because looking gives way to selling.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// The products that a run buys.
#[derive(Debug, Clone)]
pub struct Shop {
    /// Their SKUs.
    pub skus: Vec<String>,
    /// Units in orders before the run, by product.
    pub taken_before: Vec<u64>,
}

/// A product's stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stock {
    pub(super) allotted: u64,
    pub(super) available: u64,
}

/// An order as the service lists it.
#[derive(Debug, Deserialize)]
pub(super) struct Listed {
    pub(super) id: Uuid,
    pub(super) sku: String,
    pub(super) quantity: u64,
}

impl Shop {
    /// Finds the products that are named, or creates some.
    pub async fn open(options: &LoadOptions) -> Result<Self, LoadError> {
        let mut office = Office::open(options).await?;
        if options.sku.is_empty() {
            let run: u32 = rand::random();
            let skus: Vec<String> = match options.products {
                1 => vec![format!("load-{run:08x}")],
                several => (1..=several).map(|number| format!("load-{run:08x}-{number}")).collect(),
            };
            for sku in &skus {
                office.create(sku, options).await?;
            }
            return Ok(Self { taken_before: vec![0; skus.len()], skus });
        }
        let stocks = office.stocks(&options.sku).await?;
        let taken_before = stocks.iter().map(|stock| stock.allotted - stock.available).collect();
        Ok(Self { skus: options.sku.clone(), taken_before })
    }
}

/// A connection for everything but orders.
pub(super) struct Office {
    connection: Connection,
    admin_token: Option<String>,
}

impl Office {
    pub(super) async fn open(options: &LoadOptions) -> Result<Self, LoadError> {
        let url = options.url.first().map_or("", String::as_str);
        let connection = Connection::open(&host_of(url)?, PAGE_TIMEOUT).await?;
        Ok(Self { connection, admin_token: options.admin_token.clone() })
    }

    async fn create(&mut self, sku: &str, options: &LoadOptions) -> Result<(), LoadError> {
        let product = json!({"sku": sku, "stock": options.stock, "segments": options.segments});
        let mut request = Request::post("/products").header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.admin_token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let answer = self.send(request, Bytes::from(product.to_string())).await?;
        if answer.status == 201 { Ok(()) } else { Err(unexpected("POST /products", &answer)) }
    }

    /// What every product has left.
    pub(super) async fn stocks(&mut self, skus: &[String]) -> Result<Vec<Stock>, LoadError> {
        #[derive(Deserialize)]
        struct Product {
            sku: String,
            allotted: u64,
            available: u64,
        }
        #[derive(Deserialize)]
        struct Page {
            products: Vec<Product>,
            next_cursor: Option<String>,
        }
        if let [sku] = skus {
            let product: Product = self.get(&format!("/products/{sku}")).await?;
            return Ok(vec![Stock { allotted: product.allotted, available: product.available }]);
        }
        let mut found = HashMap::new();
        let mut after = String::new();
        loop {
            let page: Page = self.get(&format!("/products?limit={PAGE}{after}")).await?;
            let products = page.products.into_iter();
            found.extend(products.map(|Product { sku, allotted, available }| (sku, Stock { allotted, available })));
            match page.next_cursor {
                Some(cursor) => after = format!("&after={cursor}"),
                None => break,
            }
        }
        let stock = |sku: &String| found.get(sku).copied().ok_or_else(|| LoadError::NoSuchProduct(sku.clone()));
        skus.iter().map(stock).collect()
    }

    /// Shows every order after `after` to `see`, page by page; only those of one product where there is only one.
    pub(super) async fn orders(
        &mut self,
        skus: &[String],
        after: Uuid,
        mut see: impl FnMut(Listed),
    ) -> Result<(), LoadError> {
        #[derive(Deserialize)]
        struct Page {
            orders: Vec<Listed>,
            next_cursor: Option<Uuid>,
        }
        let of_product = if let [sku] = skus { format!("&sku={sku}") } else { String::new() };
        let mut after = after;
        loop {
            let page: Page = self.get(&format!("/orders?limit={PAGE}{of_product}&after={after}")).await?;
            page.orders.into_iter().for_each(&mut see);
            match page.next_cursor {
                Some(cursor) => after = cursor,
                None => return Ok(()),
            }
        }
    }

    async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, LoadError> {
        let answer = self.send(Request::get(path), Bytes::new()).await?;
        if answer.status != 200 {
            return Err(unexpected(&format!("GET {path}"), &answer));
        }
        serde_json::from_slice(&answer.body).map_err(|_| unexpected(&format!("GET {path}"), &answer))
    }

    async fn send(&mut self, request: hyper::http::request::Builder, body: Bytes) -> Result<Answer, LoadError> {
        let host = self.connection.host().to_owned();
        let request = request.header(HOST, &host).body(Full::new(body));
        let request = request.map_err(|error| Unreachable::new(&host, error))?;
        let answer = self.connection.send(request).await;
        answer.map_err(|no_answer| LoadError::Unreachable(Unreachable::new(&host, format!("{no_answer:?}"))))
    }
}

fn unexpected(call: &str, answer: &Answer) -> LoadError {
    let body = String::from_utf8_lossy(&answer.body).chars().take(300).collect();
    LoadError::Unexpected { call: call.to_owned(), status: answer.status, body }
}
