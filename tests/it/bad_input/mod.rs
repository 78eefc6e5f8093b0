//! Requests that are wrong: each gets its own problem document, and changes nothing.
//!
//! Here is how a table of them is checked; the tables are in the modules below.

mod fields;
mod requests;

use std::collections::BTreeMap;

use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::api::{buy, named_fields, placed, problem};
use crate::harness::instance::{Answer, Instance};
use crate::harness::shop::Shop;

/// One wrong request, and what it must be answered.
struct Case {
    what: String,
    method: Method,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Vec<u8>,
    status: u16,
    slug: &'static str,
    /// The fields that the answer names, in any order.
    fields: Vec<&'static str>,
}

impl Case {
    /// A request without a body.
    fn bare(method: Method, path: impl Into<String>, status: u16, slug: &'static str) -> Case {
        let path = path.into();
        Case {
            what: format!("{method} {path}"),
            method,
            path,
            headers: Vec::new(),
            body: Vec::new(),
            status,
            slug,
            fields: Vec::new(),
        }
    }

    /// A POST of something announced as JSON.
    fn post(path: &str, body: impl Into<Vec<u8>>, status: u16, slug: &'static str) -> Case {
        let body = body.into();
        let shown: String = String::from_utf8_lossy(&body).chars().take(120).collect();
        let mut case = Case::bare(Method::POST, path, status, slug)
            .header("content-type", HeaderValue::from_static("application/json"));
        case.what = format!("POST {path} {shown:?}");
        case.body = body;
        case
    }

    /// A POST that is refused for these fields.
    fn invalid(path: &str, body: &Value, fields: &[&'static str]) -> Case {
        Case::post(path, body.to_string(), 422, "invalid").naming(fields)
    }

    /// A GET that is refused for these parameters.
    fn query(query: &str, fields: &[&'static str]) -> Case {
        Case::bare(Method::GET, query, 422, "invalid").naming(fields)
    }

    fn header(mut self, name: &'static str, value: HeaderValue) -> Case {
        self.headers.push((HeaderName::from_static(name), value));
        self
    }

    fn naming(mut self, fields: &[&'static str]) -> Case {
        self.fields = fields.to_vec();
        self
    }

    async fn send(&self, instance: &Instance) -> reqwest::Result<Answer> {
        let mut request = instance.client().request(self.method.clone(), instance.url(&self.path));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        instance.try_send(request.body(self.body.clone())).await
    }

    fn check(&self, answer: &Answer) -> Result<(), String> {
        problem(answer, self.status, self.slug)?;
        let mut named = named_fields(answer);
        let mut expected = self.fields.clone();
        named.sort_unstable();
        expected.sort_unstable();
        if named != expected {
            return Err(format!("expected the fields {expected:?}, got {named:?}"));
        }
        Ok(())
    }
}

/// A product with a buyer, so that there is something that could be changed.
async fn open(shop: &Shop) -> &Instance {
    let product = json!({"sku": "lamp", "stock": 10, "segments": 2, "max_per_order": 5});
    let answer = shop.instance.post("/products", &product).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    placed(&buy(&shop.instance, "lamp", 1, "ada", Some("known")).await);
    &shop.instance
}

/// Everything that a wrong request could have changed.
async fn state(instance: &Instance) -> Vec<Value> {
    let mut state = Vec::new();
    for path in ["/products", "/products/lamp", "/orders"] {
        let answer = instance.get(path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        state.push(answer.body);
    }
    state
}

/// Sends every case, and panics with all that is wrong about the answers.
async fn check_all(shop: &Shop, cases: Vec<Case>) {
    let instance = open(shop).await;
    let before = state(instance).await;
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<&str, Answer> = BTreeMap::new();
    for case in &cases {
        let answer = match case.send(instance).await {
            Ok(answer) => answer,
            Err(failure) => {
                wrong.push(format!("{}: no answer: {failure:?}", case.what));
                continue;
            }
        };
        if state(instance).await != before {
            wrong.push(format!("{} changed something: {answer:#?}", case.what));
            break;
        }
        match case.check(&answer) {
            Ok(()) => drop(seen.insert(case.slug, answer)),
            Err(complaint) => wrong.push(format!("{}: {complaint}: {answer:#?}", case.what)),
        }
    }
    for (slug, answer) in seen {
        let explained = instance.get(&format!("/problems/{slug}")).await;
        for member in ["type", "title", "status"] {
            if explained.status != 200 || explained.body[member] != answer.body[member] {
                wrong.push(format!("/problems/{slug} does not explain: {explained:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    shop.audit("lamp", &[]).await;
}
