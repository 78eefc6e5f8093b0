//! What the tests of the API have in common: what they send, and what every answer of a kind must look like.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::instance::{Answer, Instance};

/// The body of an order.
pub(crate) fn order(sku: &str, quantity: u64, customer: &str) -> Value {
    json!({"sku": sku, "quantity": quantity, "customer_id": customer})
}

/// Places an order, or tries to, on a network that works.
pub(crate) async fn buy(instance: &Instance, sku: &str, quantity: u64, customer: &str, key: Option<&str>) -> Answer {
    let answer = instance.post_order(&order(sku, quantity, customer), key).await;
    answer.unwrap_or_else(|failure| panic!("{failure:?}\n{}", instance.logs()))
}

/// The id of an order that was placed just now.
#[track_caller]
pub(crate) fn placed(answer: &Answer) -> Uuid {
    assert!(!answer.headers.contains_key("idempotent-replayed"), "{answer:?}");
    created(answer)
}

/// The id of an order that was placed before.
#[track_caller]
pub(crate) fn replayed(answer: &Answer) -> Uuid {
    assert_eq!(
        answer.headers.get("idempotent-replayed").map(|value| value.as_bytes()),
        Some(&b"true"[..]),
        "{answer:?}"
    );
    created(answer)
}

#[track_caller]
fn created(answer: &Answer) -> Uuid {
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.body["id"].as_str().expect("an order has an id");
    assert_eq!(answer.headers["location"], format!("/orders/{id}"));
    assert_eq!(answer.headers["content-type"], "application/json");
    id.parse().expect("an id is a UUID")
}

/// Checks that an answer is a problem document (RFC 9457) of this kind, with all its parts.
#[track_caller]
pub(crate) fn assert_problem(answer: &Answer, status: u16, slug: &str) {
    if let Err(wrong) = problem(answer, status, slug) {
        panic!("{wrong}: {answer:#?}");
    }
}

/// Like [`assert_problem`], for tables that collect what is wrong.
pub(crate) fn problem(answer: &Answer, status: u16, slug: &str) -> Result<(), String> {
    let text = |member: &str| answer.body[member].as_str().is_some_and(|it| !it.is_empty());
    let checks = [
        (answer.status == status, "another status"),
        (answer.body["status"] == status, "another status member"),
        (answer.body["type"] == format!("/problems/{slug}"), "another type"),
        (text("title") && text("detail"), "no title or no detail"),
        (answer.headers.get("content-type").is_some_and(|it| it == "application/problem+json"), "no problem document"),
        ((status == 503) == answer.headers.contains_key("retry-after"), "Retry-After goes with 503"),
        ((status == 401) == answer.headers.contains_key("www-authenticate"), "WWW-Authenticate goes with 401"),
    ];
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, wrong)) => Err(format!("expected {status} {slug}, got {wrong}")),
        None => Ok(()),
    }
}

/// The fields that a 422 names, in its order.
pub(crate) fn named_fields(answer: &Answer) -> Vec<String> {
    let errors = answer.body["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let field = |error: &Value| {
        let named = error["field"].as_str().unwrap_or("(no field)");
        let explained = error["message"].as_str().is_some_and(|it| !it.is_empty());
        if explained { named.to_owned() } else { format!("{named} (no message)") }
    };
    errors.iter().map(field).collect()
}

/// The product as the service shows it.
pub(crate) async fn product(instance: &Instance, sku: &str) -> Value {
    let answer = instance.get(&format!("/products/{sku}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

/// The orders that a query lists, on one page.
pub(crate) async fn orders(instance: &Instance, query: &str) -> Vec<Value> {
    let answer = instance.get(&format!("/orders?{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["next_cursor"], Value::Null, "{answer:?}");
    answer.body["orders"].as_array().expect("a list").clone()
}
