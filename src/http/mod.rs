//! The API: reads requests, calls the sale, writes answers.
//!
//! Belongs here: bytes, headers, statuses. One file a resource; [`problem`] alone maps an error to a status. Does not
//! belong here: stores, locks, any decision about stock.

mod admin;
mod body;
mod health;
mod measure;
mod orders;
mod parameters;
mod problem;
mod products;
mod router;

use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;

pub use problem::{FieldError, Problem};
pub use router::router;

use self::admin::AdminToken;
use crate::sale::Sale;

/// What every handler may use. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    sale: Arc<Sale>,
    metrics: PrometheusHandle,
    admin_token: Option<AdminToken>,
}

impl Api {
    /// The API over a sale. Without a token admin calls are open: only for a listener that others cannot reach.
    pub fn new(sale: Arc<Sale>, metrics: PrometheusHandle, admin_token: Option<&str>) -> Self {
        Self { sale, metrics, admin_token: admin_token.map(AdminToken::new) }
    }
}
