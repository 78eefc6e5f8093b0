//! Creating, finding and listing products, and who may create them.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::api::{assert_problem, buy, placed, product};
use crate::harness::instance::{Answer, Instance};
use crate::harness::scratch::Scratch;
use crate::harness::shop::{Shop, on_both_stores};

on_both_stores!(
    a_product_has_sensible_defaults,
    a_product_is_as_it_was_asked_for,
    a_products_stock_is_shown_segment_by_segment,
    a_taken_sku_is_refused_and_changes_nothing,
    unknown_products_are_not_found,
    pages_show_every_product_once_in_sku_order,
    products_that_are_created_at_once_are_created_once,
);

const ADMIN_TOKEN: &str = "0123456789abcdef";

#[track_caller]
fn assert_created(answer: &Answer, sku: &str) {
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.headers["location"], format!("/products/{sku}"));
}

async fn a_product_has_sensible_defaults(shop: Shop) {
    let answer = shop.instance.post("/products", &json!({"sku": "lamp", "stock": 45})).await;
    assert_created(&answer, "lamp");
    let body = answer.body.as_object().expect("an object");
    let members: BTreeSet<&str> = body.keys().map(String::as_str).collect();
    let documented = [
        "sku",
        "name",
        "max_per_order",
        "starts_at",
        "ends_at",
        "created_at",
        "allotted",
        "available",
        "held",
        "confirmed",
        "segments",
    ];
    assert_eq!(members, BTreeSet::from(documented));
    assert_eq!((&body["sku"], &body["name"]), (&json!("lamp"), &json!("lamp")));
    for open in ["max_per_order", "starts_at", "ends_at"] {
        assert_eq!(body[open], Value::Null, "{open}");
    }
    let created_at: DateTime<Utc> = serde_json::from_value(body["created_at"].clone()).expect("a time in RFC 3339");
    assert!((Utc::now() - created_at).num_minutes().abs() < 2);
    assert_eq!((&body["allotted"], &body["available"]), (&json!(45), &json!(45)));
    assert_eq!((&body["held"], &body["confirmed"]), (&json!(0), &json!(0)));
    let segments: Vec<Value> = (0..20)
        .map(|index| {
            let units = if index < 5 { 3 } else { 2 };
            json!({"index": index, "allotted": units, "available": units, "taken": 0})
        })
        .collect();
    assert_eq!(body["segments"], Value::from(segments));
    assert_eq!(product(&shop.instance, "lamp").await, answer.body);
}

async fn a_product_is_as_it_was_asked_for(shop: Shop) {
    let asked = json!({
        "sku": "Lamp_1.9-x", "name": "A lamp, größer", "stock": 1_000_000_000_000_u64, "segments": 1024,
        "max_per_order": 2_147_483_647, "starts_at": "2026-01-01T10:00:00.250+01:00", "ends_at": "2999-01-01T00:00:00Z",
    });
    let answer = shop.instance.post("/products", &asked).await;
    assert_created(&answer, "Lamp_1.9-x");
    for member in ["sku", "name", "max_per_order", "ends_at"] {
        assert_eq!(answer.body[member], asked[member], "{member}");
    }
    assert_eq!(answer.body["starts_at"], "2026-01-01T09:00:00.250Z");
    assert_eq!(answer.body["allotted"], asked["stock"]);
    assert_eq!(answer.body["segments"].as_array().map(Vec::len), Some(1024));
    assert_eq!(product(&shop.instance, "Lamp_1.9-x").await, answer.body);

    // What may be left out may be null as well.
    let nulls = json!({
        "sku": "mug", "stock": 0, "name": null, "segments": null, "max_per_order": null, "starts_at": null,
        "ends_at": null,
    });
    assert_created(&shop.instance.post("/products", &nulls).await, "mug");
}

async fn a_products_stock_is_shown_segment_by_segment(shop: Shop) {
    shop.instance.create_product("lamp", 20, 4).await;
    let mut taken = [0; 4];
    let mut ids = Vec::new();
    for quantity in [1, 2, 3, 1] {
        let answer = buy(&shop.instance, "lamp", quantity, "ada", None).await;
        ids.push(placed(&answer));
        let segment = answer.body["segment"].as_u64().expect("an index");
        taken[segment as usize] += quantity;
    }
    let shown = product(&shop.instance, "lamp").await;
    let segments: Vec<Value> = taken
        .iter()
        .enumerate()
        .map(|(index, taken)| json!({"index": index, "allotted": 5, "available": 5 - taken, "taken": taken}))
        .collect();
    assert_eq!(shown["segments"], Value::from(segments));
    assert_eq!((&shown["available"], &shown["confirmed"]), (&json!(13), &json!(7)));
    let listed = shop.instance.get("/products?after=lamo&limit=1").await;
    assert_eq!(listed.body["products"][0]["available"], 13);
    assert_eq!(listed.body["products"][0]["allotted"], 20);
    shop.audit("lamp", &ids).await;
}

async fn a_taken_sku_is_refused_and_changes_nothing(shop: Shop) {
    let before = shop.instance.create_product("lamp", 20, 4).await.body;
    let second = shop.second_instance().await;
    for instance in [Some(&shop.instance), second.as_ref()].into_iter().flatten() {
        let other = json!({"sku": "lamp", "name": "Other", "stock": 99, "segments": 2, "max_per_order": 1});
        let answer = instance.post("/products", &other).await;
        assert_problem(&answer, 409, "product-exists");
        assert_eq!(product(instance, "lamp").await, before);
    }
    let id = placed(&buy(&shop.instance, "lamp", 2, "ada", None).await);
    shop.audit("lamp", &[id]).await;
}

async fn unknown_products_are_not_found(shop: Shop) {
    for sku in ["lamp", "%7Blamp%7D", "%FF"] {
        let answer = shop.instance.get(&format!("/products/{sku}")).await;
        assert_problem(&answer, 404, "unknown-product");
    }
    // Asked for in vain before, and sold as soon as it is there.
    assert_problem(&buy(&shop.instance, "lamp", 1, "ada", None).await, 404, "unknown-product");
    shop.instance.create_product("lamp", 1, 1).await;
    placed(&buy(&shop.instance, "lamp", 1, "ada", None).await);
}

async fn pages_show_every_product_once_in_sku_order(shop: Shop) {
    // By bytes, whatever the language of the database: upper case before lower case.
    let skus = ["A", "B", "Z-1", "_", "a", "a.1", "a1", "b"];
    for sku in skus.iter().rev() {
        shop.instance.create_product(sku, 1, 1).await;
    }
    for limit in [1, 3, 4, 8, 100] {
        let mut shown: Vec<String> = Vec::new();
        let mut path = format!("/products?limit={limit}");
        loop {
            let answer = shop.instance.get(&path).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let page = answer.body["products"].as_array().expect("a list");
            let sku = |product: &Value| product["sku"].as_str().map(str::to_owned);
            shown.extend(page.iter().filter_map(sku));
            let Some(cursor) = answer.body["next_cursor"].as_str() else {
                break;
            };
            assert_eq!(page.len(), limit);
            path = format!("/products?limit={limit}&after={cursor}");
        }
        // The embedded default brings its own.
        shown.retain(|sku| sku != "demo");
        assert_eq!(shown, skus, "pages of {limit}");
    }
}

async fn products_that_are_created_at_once_are_created_once(shop: Shop) {
    let bodies: Vec<Value> = (1..=8).map(|stock| json!({"sku": "lamp", "stock": stock, "segments": stock})).collect();
    let creating = bodies.iter().map(|body| shop.instance.post("/products", body));
    let answers = futures_util::future::join_all(creating).await;
    let (created, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!((created.len(), refused.len()), (1, 7));
    for answer in &refused {
        assert_problem(answer, 409, "product-exists");
    }
    assert_eq!(product(&shop.instance, "lamp").await, created[0].body);
    shop.audit("lamp", &[]).await;
}

async fn create_as(instance: &Instance, sku: &str, authorization: Option<&str>) -> Answer {
    let mut request = instance.client().post(instance.url("/products")).json(&json!({"sku": sku, "stock": 5}));
    if let Some(authorization) = authorization {
        request = request.header("Authorization", authorization);
    }
    instance.send(request).await
}

#[tokio::test]
async fn with_a_token_only_its_bearer_creates_products() {
    let folder = Scratch::new();
    let instance = Instance::embedded(folder.path()).setting("SEGSTOCK_ADMIN_TOKEN", ADMIN_TOKEN).start().await;
    for wrong in [
        None,
        Some(""),
        Some("Bearer"),
        Some("Bearer "),
        Some("Bearer 0123456789abcdeg"),
        Some("Bearer 0123456789abcde"),
        Some("Bearer 0123456789abcdef0"),
        Some("Basic 0123456789abcdef"),
        Some("0123456789abcdef"),
    ] {
        let answer = create_as(&instance, "lamp", wrong).await;
        assert_problem(&answer, 401, "unauthorized");
        assert_eq!(answer.headers["www-authenticate"], "Bearer", "{wrong:?}");
    }
    assert_problem(&instance.get("/products/lamp").await, 404, "unknown-product");

    // The scheme's name is in any case (RFC 9110 §11.1).
    for (sku, scheme) in [("lamp", "Bearer"), ("mug", "bearer")] {
        let right = format!("{scheme} {ADMIN_TOKEN}");
        assert_created(&create_as(&instance, sku, Some(&right)).await, sku);
    }
    // Buyers and readers need none.
    placed(&buy(&instance, "lamp", 1, "ada", None).await);
    for path in ["/products/lamp", "/products", "/orders", "/readyz"] {
        assert_eq!(instance.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn without_a_token_creating_is_open_on_loopback() {
    let folder = Scratch::new();
    let instance = Instance::embedded(folder.path()).start().await;
    assert_created(&create_as(&instance, "lamp", None).await, "lamp");
}
