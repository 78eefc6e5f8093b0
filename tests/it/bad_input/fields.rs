//! Fields and headers that are wrong, one by one and all at once.

use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::{Case, check_all};
use crate::api::order;
use crate::harness::shop::{Shop, on_both_stores};

on_both_stores!(
    orders_with_wrong_fields,
    wrong_idempotency_keys,
    products_with_wrong_fields,
    products_with_several_wrong_fields,
);

async fn orders_with_wrong_fields(shop: Shop) {
    let with = |field: &str, value: Value| {
        let mut body = order("lamp", 1, "ada");
        body[field] = value;
        body
    };
    let invalid = |body: Value, fields: &[&'static str]| Case::invalid("/orders", &body, fields);
    let mut cases = vec![
        invalid(json!({}), &["sku", "quantity", "customer_id"]),
        invalid(json!({"quantity": 1}), &["sku", "customer_id"]),
        invalid(with("colour", json!("red")), &["colour"]),
        invalid(
            json!({"sku": "{lamp}", "quantity": 0, "customer": "ada", "Quantity": 1}),
            &["sku", "quantity", "customer_id", "customer", "Quantity"],
        ),
        // A name that stands twice is nobody's fault but the sender's, and not settled by guessing.
        Case::post("/orders", r#"{"sku":"lamp","quantity":1,"quantity":2,"customer_id":"ada"}"#, 422, "invalid")
            .naming(&["quantity"]),
        Case::post("/orders", with("sku", json!("mug")).to_string(), 404, "unknown-product"),
    ];
    let long_sku = "s".repeat(65);
    for sku in [
        json!(""),
        json!("la mp"),
        json!("{lamp}"),
        json!("lamp}"),
        json!("lamp\n"),
        json!("lamp:0"),
        json!("lämp"),
        json!(long_sku),
        json!(null),
        json!(7),
        json!(["lamp"]),
        json!({"sku": "lamp"}),
    ] {
        cases.push(invalid(with("sku", sku), &["sku"]));
    }
    for quantity in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1.0),
        json!(6),
        json!(2_147_483_648_u64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e99),
        json!("1"),
        json!(true),
        json!(null),
        json!([1]),
        json!({"min": 1, "max": 2}),
    ] {
        cases.push(invalid(with("quantity", quantity), &["quantity"]));
    }
    let long_id = "ü".repeat(129);
    for customer in
        [json!(""), json!(long_id), json!("a\u{0}da"), json!("ada\n"), json!("a\u{85}da"), json!(7), json!(null)]
    {
        cases.push(invalid(with("customer_id", customer), &["customer_id"]));
    }
    check_all(&shop, cases).await;
}

async fn wrong_idempotency_keys(shop: Shop) {
    let key = |values: &[&[u8]]| {
        let body = order("lamp", 1, "ada").to_string();
        let mut case = Case::post("/orders", body, 422, "invalid").naming(&["idempotency-key"]);
        for value in values {
            let value = HeaderValue::from_bytes(value).expect("a header can hold it");
            case = case.header("idempotency-key", value);
        }
        case.what = format!("{:?}", case.headers);
        case
    };
    let long = "k".repeat(256);
    let cases = vec![
        key(&[b""]),
        key(&[b"\"\""]),
        key(&[long.as_bytes()]),
        key(&[b"cart 1"]),
        key(&[b"cart\t1"]),
        key(&["schlüssel".as_bytes()]),
        key(&[b"\xff\x80"]),
        key(&[b"\"cart\"1\""]),
        key(&[b"\"cart\\1\""]),
        key(&[b"cart-1", b"cart-2"]),
        key(&[b"known", b"known"]),
    ];
    check_all(&shop, cases).await;
}

async fn products_with_wrong_fields(shop: Shop) {
    let wrong = [
        ("sku", json!(["{mug}", "m u g", "m".repeat(65), "", null])),
        ("stock", json!([-1, 1_000_000_000_001_u64, 0.5, 1e13, "5", null])),
        ("segments", json!([0, 1025, -1, 2.5, "4"])),
        ("name", json!(["n".repeat(201), "", "a\u{0}b", "a\nb", 7])),
        ("max_per_order", json!([0, -1, 2_147_483_648_u64, "2"])),
        ("starts_at", json!(["tomorrow", "2026-01-01", "2026-01-01T00:00:00", 1_767_225_600, "2026-13-01T00:00:00Z"])),
        ("ends_at", json!(["", "2026-02-30T00:00:00Z", true])),
        // What RFC 3339 cannot write, a client cannot read and a ledger need not hold.
        ("starts_at", json!(["-9999-01-01T00:00:00Z"])),
        ("ends_at", json!(["+262000-01-01T00:00:00Z"])),
    ];
    let mut cases = Vec::new();
    for (field, values) in &wrong {
        for value in values.as_array().expect("a list") {
            let mut body = json!({"sku": "mug", "stock": 10});
            body[field] = value.clone();
            cases.push(Case::invalid("/products", &body, &[field]));
        }
    }
    check_all(&shop, cases).await;
}

async fn products_with_several_wrong_fields(shop: Shop) {
    let invalid = |body: Value, fields: &[&'static str]| Case::invalid("/products", &body, fields);
    let window =
        |starts_at: &str, ends_at: &str| json!({"sku": "mug", "stock": 1, "starts_at": starts_at, "ends_at": ends_at});
    let cases = vec![
        invalid(json!({}), &["sku", "stock"]),
        invalid(json!({"stock": -1, "segments": 0, "colour": 1}), &["sku", "stock", "segments", "colour"]),
        invalid(json!({"sku": "mug", "stock": 1, "limit": 1}), &["limit"]),
        invalid(window("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"), &["ends_at"]),
        // The same moment, in two zones.
        invalid(window("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"), &["ends_at"]),
        Case::post("/products", r#"{"sku":"lamp","stock":10}"#, 409, "product-exists"),
    ];
    check_all(&shop, cases).await;
}
