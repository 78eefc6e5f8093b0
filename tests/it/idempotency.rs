//! The same request with the same key gets the same order: at any time, anywhere.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::api::{assert_problem, buy, order, orders, placed, product, replayed};
use crate::harness::instance::Answer;
use crate::harness::shop::{Shop, on_both_stores};
use crate::harness::wait::eventually;

on_both_stores!(
    a_repeated_request_gets_its_order_again,
    a_quoted_key_is_the_same_as_a_bare_one,
    requests_at_once_are_one_order,
    a_retry_after_the_sell_out_gets_its_order,
    a_retry_after_a_restart_gets_its_order,
    a_retry_after_the_end_of_the_sale_gets_its_order,
    a_key_stands_for_one_order_only,
    customers_do_not_share_keys,
);

/// Checks that a retry was answered with the same order, to the last member.
#[track_caller]
fn assert_same_order(first: &Answer, retry: &Answer) {
    replayed(retry);
    assert_eq!(retry.body, first.body);
    assert_eq!(retry.headers["location"], first.headers["location"]);
}

async fn a_repeated_request_gets_its_order_again(shop: Shop) {
    shop.instance.create_product("lamp", 10, 2).await;
    let first = buy(&shop.instance, "lamp", 2, "ada", Some("cart-1")).await;
    let id = placed(&first);
    for _ in 0..3 {
        let retry = buy(&shop.instance, "lamp", 2, "ada", Some("cart-1")).await;
        assert_same_order(&first, &retry);
    }
    if let Some(second) = shop.second_instance().await {
        let retry = buy(&second, "lamp", 2, "ada", Some("cart-1")).await;
        assert_same_order(&first, &retry);
    }
    assert_eq!(product(&shop.instance, "lamp").await["available"], 8);
    shop.audit("lamp", &[id]).await;
}

async fn a_quoted_key_is_the_same_as_a_bare_one(shop: Shop) {
    shop.instance.create_product("lamp", 10, 2).await;
    let first = buy(&shop.instance, "lamp", 1, "ada", Some("cart-1")).await;
    let id = placed(&first);
    let retry = buy(&shop.instance, "lamp", 1, "ada", Some("\"cart-1\"")).await;
    assert_same_order(&first, &retry);
    let longest = "k".repeat(255);
    let other = placed(&buy(&shop.instance, "lamp", 1, "ada", Some(&longest)).await);
    assert_ne!(id, other);
    shop.audit("lamp", &[id, other]).await;
}

async fn requests_at_once_are_one_order(shop: Shop) {
    shop.instance.create_product("lamp", 10, 4).await;
    let second = shop.second_instance().await;
    let body = order("lamp", 1, "ada");
    let asking = (0..20).map(|number| {
        let somewhere = second.as_ref().filter(|_| number % 2 == 1);
        let instance = somewhere.unwrap_or(&shop.instance);
        instance.post_order(&body, Some("cart-1"))
    });
    let answers: Vec<Answer> =
        join_all(asking).await.into_iter().map(|answer| answer.expect("the network works")).collect();
    let (repeated, first): (Vec<&Answer>, Vec<&Answer>) =
        answers.iter().partition(|answer| answer.headers.contains_key("idempotent-replayed"));
    assert_eq!((first.len(), repeated.len()), (1, 19), "{answers:#?}");
    let id = placed(first[0]);
    for retry in repeated {
        assert_same_order(first[0], retry);
    }
    assert_eq!(product(&shop.instance, "lamp").await["available"], 9);
    assert_eq!(orders(&shop.instance, "sku=lamp").await.len(), 1);
    shop.audit("lamp", &[id]).await;
}

async fn a_retry_after_the_sell_out_gets_its_order(shop: Shop) {
    shop.instance.create_product("lamp", 3, 2).await;
    let first = buy(&shop.instance, "lamp", 2, "ada", Some("cart-1")).await;
    let last = buy(&shop.instance, "lamp", 1, "bob", Some("cart-2")).await;
    let ids = [placed(&first), placed(&last)];
    // The retry comes both before and after the service has found out that nothing is left, and while it says so
    // from memory.
    for _ in 0..3 {
        let retry = buy(&shop.instance, "lamp", 2, "ada", Some("cart-1")).await;
        assert_same_order(&first, &retry);
        let other = buy(&shop.instance, "lamp", 1, "ada", Some("cart-1")).await;
        assert_problem(&other, 422, "idempotency-key-reused");
        let stranger = buy(&shop.instance, "lamp", 1, "ada", Some("cart-9")).await;
        assert_problem(&stranger, 409, "sold-out");
    }
    let second = shop.second_instance().await;
    for instance in second.iter() {
        let retry = buy(instance, "lamp", 1, "bob", Some("cart-2")).await;
        assert_same_order(&last, &retry);
    }
    shop.audit("lamp", &ids).await;
}

async fn a_retry_after_a_restart_gets_its_order(mut shop: Shop) {
    shop.instance.create_product("lamp", 2, 2).await;
    let first = buy(&shop.instance, "lamp", 1, "ada", Some("cart-1")).await;
    let id = placed(&first);
    shop.restart().await;
    let retry = buy(&shop.instance, "lamp", 1, "ada", Some("cart-1")).await;
    assert_same_order(&first, &retry);
    assert_eq!(product(&shop.instance, "lamp").await["available"], 1);
    shop.audit("lamp", &[id]).await;
}

async fn a_retry_after_the_end_of_the_sale_gets_its_order(shop: Shop) {
    let ends_at = Utc::now() + TimeDelta::seconds(3);
    let body = json!({"sku": "lamp", "stock": 1000, "ends_at": ends_at});
    assert_eq!(shop.instance.post("/products", &body).await.status, 201);
    let first = buy(&shop.instance, "lamp", 1, "ada", Some("cart-1")).await;
    let mut ids = vec![placed(&first)];

    let over = eventually("the sale ends", Duration::from_secs(20), async || {
        let answer = buy(&shop.instance, "lamp", 1, "bob", None).await;
        if answer.status == 201 {
            ids.push(placed(&answer));
        }
        (answer.status != 201).then_some(answer)
    })
    .await;
    assert!(Utc::now() >= ends_at);
    assert_problem(&over, 410, "sale-ended");
    let told: chrono::DateTime<Utc> = serde_json::from_value(over.body["ends_at"].clone()).expect("a time in RFC 3339");
    assert_eq!(told.timestamp_micros(), ends_at.timestamp_micros());
    let retry = buy(&shop.instance, "lamp", 1, "ada", Some("cart-1")).await;
    assert_same_order(&first, &retry);
    let other = buy(&shop.instance, "lamp", 2, "ada", Some("cart-1")).await;
    assert_problem(&other, 422, "idempotency-key-reused");
    let stranger = buy(&shop.instance, "lamp", 1, "ada", Some("cart-9")).await;
    assert_problem(&stranger, 410, "sale-ended");
    shop.audit("lamp", &ids).await;
}

async fn a_key_stands_for_one_order_only(shop: Shop) {
    shop.instance.create_product("lamp", 10, 2).await;
    shop.instance.create_product("mug", 10, 2).await;
    let id = placed(&buy(&shop.instance, "lamp", 2, "ada", Some("cart-1")).await);
    for (sku, quantity) in [("lamp", 1), ("lamp", 3), ("mug", 2)] {
        let answer = buy(&shop.instance, sku, quantity, "ada", Some("cart-1")).await;
        assert_problem(&answer, 422, "idempotency-key-reused");
    }
    assert_eq!(product(&shop.instance, "lamp").await["available"], 8);
    assert_eq!(product(&shop.instance, "mug").await["available"], 10);
    shop.audit("lamp", &[id]).await;
    shop.audit("mug", &[]).await;
}

async fn customers_do_not_share_keys(shop: Shop) {
    shop.instance.create_product("lamp", 10, 2).await;
    let first = placed(&buy(&shop.instance, "lamp", 1, "ada", Some("cart-1")).await);
    let second = placed(&buy(&shop.instance, "lamp", 1, "bob", Some("cart-1")).await);
    assert_ne!(first, second);
    let listed: Vec<Value> = orders(&shop.instance, "customer_id=bob").await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["id"], second.to_string());
    shop.audit("lamp", &[first, second]).await;
}
