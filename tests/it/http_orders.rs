//! Placing, refusing, finding and listing orders.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::{assert_problem, buy, named_fields, orders, placed, product};
use crate::harness::instance::Instance;
use crate::harness::shop::{Shop, on_both_stores};
use crate::harness::wait::eventually;

on_both_stores!(
    an_order_is_answered_in_full_and_found_again,
    unknown_orders_are_not_found,
    without_a_key_every_request_is_an_order,
    buyers_at_once_get_every_unit_and_no_more,
    a_sold_out_product_says_so,
    less_than_asked_for_is_told,
    an_order_larger_than_any_segment_comes_from_one,
    a_sale_that_has_not_begun_says_when,
    an_order_above_the_products_limit_is_refused,
    pages_show_every_order_once_and_the_oldest_first,
    lists_are_narrowed,
);

async fn an_order_is_answered_in_full_and_found_again(shop: Shop) {
    let shop_floor = &shop.instance;
    shop_floor.create_product("lamp", 100, 4).await;
    let before = Utc::now();
    let answer = buy(shop_floor, "lamp", 3, "Ada Lovelace ü", None).await;
    let id = placed(&answer);
    let body = answer.body.as_object().expect("an object");

    let members: BTreeSet<&str> = body.keys().map(String::as_str).collect();
    let documented =
        ["id", "sku", "quantity", "customer_id", "segment", "status", "created_at", "expires_at", "confirmed_at"];
    assert_eq!(members, BTreeSet::from(documented));
    assert_eq!(id.get_version_num(), 7);
    assert_eq!(body["id"], id.to_string(), "in lower case, with dashes");
    assert_eq!(body["sku"], "lamp");
    assert_eq!(body["quantity"], 3);
    assert_eq!(body["customer_id"], "Ada Lovelace ü");
    assert_eq!(body["status"], "confirmed");
    assert_eq!(body["expires_at"], Value::Null);
    assert_eq!(body["confirmed_at"], body["created_at"]);
    let created_at: DateTime<Utc> = serde_json::from_value(body["created_at"].clone()).expect("a time in RFC 3339");
    // To the millisecond, so possibly a little before the time it was asked for.
    assert!((before - Duration::from_millis(1)..=Utc::now()).contains(&created_at));

    let location = answer.headers["location"].to_str().expect("an address");
    let found = shop_floor.get(location).await;
    assert_eq!((found.status, &found.body), (200, &answer.body));
    let segment = body["segment"].as_u64().expect("a segment has an index");
    let stock = product(shop_floor, "lamp").await;
    assert_eq!(stock["segments"][segment as usize]["taken"], 3, "the order names the segment that served it: {stock}");
    shop.audit("lamp", &[id]).await;
}

async fn unknown_orders_are_not_found(shop: Shop) {
    let stranger = Uuid::now_v7().to_string();
    for id in [stranger.as_str(), "4711", "%F0%9F%92%A1", "%FF"] {
        let answer = shop.instance.get(&format!("/orders/{id}")).await;
        assert_problem(&answer, 404, "unknown-order");
    }
}

async fn without_a_key_every_request_is_an_order(shop: Shop) {
    shop.instance.create_product("lamp", 10, 2).await;
    let first = placed(&buy(&shop.instance, "lamp", 1, "ada", None).await);
    let second = placed(&buy(&shop.instance, "lamp", 1, "ada", None).await);
    assert_ne!(first, second);
    assert_eq!(product(&shop.instance, "lamp").await["available"], 8);
    shop.audit("lamp", &[first, second]).await;
}

async fn buyers_at_once_get_every_unit_and_no_more(shop: Shop) {
    shop.instance.create_product("lamp", 30, 20).await;
    let buying = (0..80).map(|number| {
        let customer = format!("customer-{number}");
        let instance = &shop.instance;
        async move { buy(instance, "lamp", 1, &customer, None).await }
    });
    let answers = join_all(buying).await;
    let (sold, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!((sold.len(), refused.len()), (30, 50));
    for answer in &refused {
        assert_problem(answer, 409, "sold-out");
    }
    let stock = product(&shop.instance, "lamp").await;
    assert_eq!((&stock["available"], &stock["confirmed"]), (&json!(0), &json!(30)));
    let ids: Vec<Uuid> = sold.iter().map(placed).collect();
    shop.audit("lamp", &ids).await;
}

async fn a_sold_out_product_says_so(shop: Shop) {
    shop.instance.create_product("lamp", 3, 20).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(placed(&buy(&shop.instance, "lamp", 1, "ada", None).await));
    }
    let asked = [(None, 1), (Some("k-1"), 1), (None, 2)];
    for (key, quantity) in asked {
        let answer = buy(&shop.instance, "lamp", quantity, "bob", key).await;
        assert_problem(&answer, 409, "sold-out");
    }
    if let Some(second) = shop.second_instance().await {
        let answer = buy(&second, "lamp", 1, "bob", None).await;
        assert_problem(&answer, 409, "sold-out");
    }
    shop.instance.create_product("void", 0, 20).await;
    let answer = buy(&shop.instance, "void", 1, "bob", None).await;
    assert_problem(&answer, 409, "sold-out");
    assert_eq!(orders(&shop.instance, "customer_id=bob").await, [] as [Value; 0]);
    shop.audit("lamp", &ids).await;
}

async fn less_than_asked_for_is_told(shop: Shop) {
    shop.instance.create_product("lamp", 5, 3).await;
    let first = placed(&buy(&shop.instance, "lamp", 3, "ada", None).await);
    for key in [None, Some("k-1")] {
        let answer = buy(&shop.instance, "lamp", 4, "bob", key).await;
        assert_problem(&answer, 409, "insufficient-stock");
        assert_eq!(answer.body["remaining"], 2);
    }
    // What was refused took nothing, and the key of a refusal is free for what does fit.
    let second = placed(&buy(&shop.instance, "lamp", 2, "bob", Some("k-1")).await);
    // What the last look into the ledger saw may be quoted for a second.
    let last = eventually("nothing is left", Duration::from_secs(20), async || {
        let answer = buy(&shop.instance, "lamp", 4, "bob", None).await;
        (answer.body["type"] != "/problems/insufficient-stock").then_some(answer)
    })
    .await;
    assert_problem(&last, 409, "sold-out");
    shop.audit("lamp", &[first, second]).await;
}

async fn an_order_larger_than_any_segment_comes_from_one(shop: Shop) {
    shop.instance.create_product("lamp", 40, 20).await;
    let answer = buy(&shop.instance, "lamp", 30, "ada", None).await;
    let id = placed(&answer);
    let stock = product(&shop.instance, "lamp").await;
    assert_eq!(stock["allotted"], 40, "units were moved, not made: {stock}");
    assert_eq!(stock["available"], 10);
    let segments = stock["segments"].as_array().expect("a list");
    let taken_from: Vec<&Value> = segments.iter().filter(|segment| segment["taken"] != 0).collect();
    assert_eq!(taken_from.len(), 1, "{stock}");
    assert_eq!(taken_from[0]["index"], answer.body["segment"]);
    assert_eq!(taken_from[0]["taken"], 30);

    // The rest is scattered over the other segments, and sells to the last unit.
    let rest = placed(&buy(&shop.instance, "lamp", 10, "bob", None).await);
    let answer = buy(&shop.instance, "lamp", 1, "bob", None).await;
    assert_problem(&answer, 409, "sold-out");
    shop.audit("lamp", &[id, rest]).await;
}

async fn a_sale_that_has_not_begun_says_when(shop: Shop) {
    let body = json!({"sku": "lamp", "stock": 5, "starts_at": "2999-12-31T23:00:00+02:00"});
    assert_eq!(shop.instance.post("/products", &body).await.status, 201);
    for key in [None, Some("k-1")] {
        let answer = buy(&shop.instance, "lamp", 1, "ada", key).await;
        assert_problem(&answer, 409, "sale-not-started");
        assert_eq!(answer.body["starts_at"], "2999-12-31T21:00:00Z");
    }
    assert_eq!(product(&shop.instance, "lamp").await["available"], 5);
}

async fn an_order_above_the_products_limit_is_refused(shop: Shop) {
    let body = json!({"sku": "lamp", "stock": 100, "max_per_order": 3});
    assert_eq!(shop.instance.post("/products", &body).await.status, 201);
    let answer = buy(&shop.instance, "lamp", 4, "ada", None).await;
    assert_problem(&answer, 422, "invalid");
    assert_eq!(named_fields(&answer), ["quantity"]);
    let message = answer.body["errors"][0]["message"].as_str();
    assert!(message.is_some_and(|text| text.contains('3')), "{answer:?}");
    let id = placed(&buy(&shop.instance, "lamp", 3, "ada", None).await);
    shop.audit("lamp", &[id]).await;
}

/// Follows the cursor to the end, and checks the size of every page.
async fn follow(instance: &Instance, query: &str, limit: usize) -> Vec<String> {
    let mut ids = Vec::new();
    let mut path = format!("/orders?limit={limit}{query}");
    loop {
        let answer = instance.get(&path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let page = answer.body["orders"].as_array().expect("a list");
        ids.extend(page.iter().map(|order| {
            let id = order["id"].as_str().expect("an order has an id");
            id.to_owned()
        }));
        let Some(cursor) = answer.body["next_cursor"].as_str() else {
            assert!((1..=limit).contains(&page.len()), "{answer:?}");
            return ids;
        };
        assert_eq!(page.len(), limit, "only the last page is short");
        path = format!("/orders?limit={limit}{query}&after={cursor}");
    }
}

async fn pages_show_every_order_once_and_the_oldest_first(shop: Shop) {
    shop.instance.create_product("lamp", 100, 4).await;
    shop.instance.create_product("mug", 100, 4).await;
    let mut all = Vec::new();
    for number in 0..12 {
        let (sku, customer) = [("lamp", "ada"), ("mug", "ada"), ("mug", "bob")][number % 3];
        let answer = buy(&shop.instance, sku, 1, customer, None).await;
        all.push((placed(&answer).to_string(), sku, customer));
    }
    let expected = |wanted: fn(&str, &str) -> bool| -> Vec<String> {
        let chosen = all.iter().filter(|(_, sku, customer)| wanted(sku, customer));
        chosen.map(|(id, ..)| id.clone()).collect()
    };
    type Narrowed = fn(&str, &str) -> bool;
    let lists: [(&str, Narrowed); 5] = [
        ("", |_, _| true),
        ("&sku=mug", |sku, _| sku == "mug"),
        ("&customer_id=ada", |_, customer| customer == "ada"),
        ("&customer_id=ada&sku=mug", |sku, customer| (sku, customer) == ("mug", "ada")),
        ("&status=confirmed", |_, _| true),
    ];
    for (query, wanted) in lists {
        // 4 ends on a full page in every list.
        for limit in [1, 4, 5, 1000] {
            let shown = follow(&shop.instance, query, limit).await;
            assert_eq!(shown, expected(wanted), "{query}, pages of {limit}");
        }
    }
}

async fn lists_are_narrowed(shop: Shop) {
    shop.instance.create_product("lamp", 100, 4).await;
    let answer = buy(&shop.instance, "lamp", 2, "ü & co=1", None).await;
    placed(&answer);
    placed(&buy(&shop.instance, "lamp", 1, "bob", None).await);
    let own = orders(&shop.instance, "customer_id=%C3%BC+%26%20co%3D1").await;
    assert_eq!(own, [answer.body], "an entry is the order as it was answered");
    for nobodys in [
        "customer_id=nobody",
        "sku=mug",
        "customer_id=bob&sku=mug",
        "status=reserved",
        "status=cancelled",
        "status=expired",
        "after=ffffffff-ffff-7fff-bfff-ffffffffffff",
    ] {
        assert_eq!(orders(&shop.instance, nobodys).await, [] as [Value; 0], "{nobodys}");
    }
    assert_eq!(orders(&shop.instance, "status=confirmed").await.len(), 2);
}
