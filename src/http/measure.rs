//! The duration of every request, by route, method and status.

use std::hash::{Hash, Hasher};
use std::sync::LazyLock;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use metrics::{Histogram, histogram};
use papaya::HashMap;

/// The handles registered so far: as many as there are routes, methods and statuses in use.
static HANDLES: LazyLock<HashMap<Labels, Histogram>> = LazyLock::new(HashMap::new);

/// What a request is counted under. The route is the pattern, not the path: paths have no bound.
struct Labels {
    route: Option<MatchedPath>,
    method: Method,
    status: u16,
}

impl Labels {
    fn route(&self) -> &str {
        self.route.as_ref().map_or("", MatchedPath::as_str)
    }

    /// Methods have no bound either: clients make them up.
    fn method(&self) -> &str {
        match self.method.as_str() {
            known @ ("GET" | "POST" | "HEAD" | "PATCH" | "PUT" | "DELETE" | "OPTIONS") => known,
            _ => "other",
        }
    }

    fn register(&self) -> Histogram {
        histogram!(
            "segstock_http_request_seconds",
            "route" => self.route().to_owned(),
            "method" => self.method().to_owned(),
            "status" => self.status.to_string()
        )
    }
}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.route(), self.method(), self.status).hash(state);
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        (self.route(), self.method(), self.status) == (other.route(), other.method(), other.status)
    }
}

impl Eq for Labels {}

/// Measures one request.
pub(super) async fn measure(request: Request, next: Next) -> Response {
    let started_at = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let labels = Labels { route, method, status: response.status().as_u16() };
    let handles = HANDLES.pin();
    let handle = match handles.get(&labels) {
        Some(handle) => handle,
        None => {
            let handle = labels.register();
            handles.get_or_insert(labels, handle)
        }
    };
    handle.record(started_at.elapsed());
    response
}
