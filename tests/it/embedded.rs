//! The embedded default, as a newcomer meets it.

use std::process::Command;

use crate::api::{assert_problem, buy, orders, placed, product, replayed};
use crate::harness::instance::Instance;
use crate::harness::observer::Observer;
use crate::harness::scratch::Scratch;

#[tokio::test]
async fn the_first_start_says_where_it_is_and_what_to_do() {
    let folder = Scratch::new();
    let data = folder.join("data");
    let instance = Instance::embedded(&data).start().await;
    let greeting = instance.stdout();
    assert!(greeting.contains(&instance.url("")), "{greeting}");
    assert!(greeting.contains(&*data.to_string_lossy()), "{greeting}");
    assert!(data.is_dir());

    let demo = product(&instance, "demo").await;
    assert_eq!((&demo["allotted"], &demo["available"]), (&1000.into(), &1000.into()));
    assert_eq!(demo["segments"].as_array().map(Vec::len), Some(20));
}

#[tokio::test]
async fn the_printed_curl_line_places_an_order() {
    let folder = Scratch::new();
    let instance = Instance::embedded(folder.path()).start().await;
    let greeting = instance.stdout();
    let line = greeting
        .lines()
        .find(|line| line.trim_start().starts_with("curl "))
        .unwrap_or_else(|| panic!("no curl line in {greeting}"));

    let found = Command::new("curl").arg("--version").output();
    assert!(found.is_ok(), "this test needs curl: install it");
    // As it is, by a shell; only proxies of the machine are kept out.
    let run = Command::new("sh").args(["-c", line]).env("no_proxy", "*").output().expect("there is a shell");
    let answer = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{run:?}");
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    let listed = orders(&instance, "sku=demo").await;
    assert_eq!(listed.len(), 1);
    let id = listed[0]["id"].as_str().expect("an order has an id");
    assert!(answer.contains(id), "{answer}");
}

#[tokio::test]
async fn orders_and_stock_survive_a_restart() {
    let folder = Scratch::new();
    let instance = Instance::embedded(folder.path()).start().await;
    instance.create_product("lamp", 5, 2).await;
    let mut ids = vec![placed(&buy(&instance, "demo", 7, "ada", Some("cart-1")).await)];
    ids.push(placed(&buy(&instance, "demo", 1, "bob", None).await));
    let lamp = placed(&buy(&instance, "lamp", 5, "ada", None).await);
    let before =
        [orders(&instance, "").await, vec![product(&instance, "demo").await, product(&instance, "lamp").await]];
    assert_eq!(instance.stop_gracefully().await, Some(0));

    let instance = Instance::embedded(folder.path()).start().await;
    let after = [orders(&instance, "").await, vec![product(&instance, "demo").await, product(&instance, "lamp").await]];
    assert_eq!(after, before, "the demo product is not made anew, and nothing is lost");

    // What is left can be sold, what is sold cannot, and who asks again gets the same.
    assert_eq!(replayed(&buy(&instance, "demo", 7, "ada", Some("cart-1")).await), ids[0]);
    ids.push(placed(&buy(&instance, "demo", 992, "eve", None).await));
    assert_problem(&buy(&instance, "demo", 1, "eve", None).await, 409, "sold-out");
    assert_problem(&buy(&instance, "lamp", 1, "eve", None).await, 409, "sold-out");
    let observer = Observer::of_embedded(folder.path()).await;
    observer.audit("demo", &ids).await;
    observer.audit("lamp", &[lamp]).await;
}

#[tokio::test]
async fn an_order_survives_a_kill_right_after_its_answer() {
    let folder = Scratch::new();
    let mut ids = Vec::new();
    for number in 0..5 {
        let instance = Instance::embedded(folder.path()).start().await;
        let customer = format!("customer-{number}");
        ids.push(placed(&buy(&instance, "demo", 1, &customer, None).await));
        instance.kill_nine().await;
    }
    let instance = Instance::embedded(folder.path()).start().await;
    for id in &ids {
        assert_eq!(instance.get(&format!("/orders/{id}")).await.status, 200);
    }
    assert_eq!(product(&instance, "demo").await["available"], 995);
    let observer = Observer::of_embedded(folder.path()).await;
    observer.audit("demo", &ids).await;
}

#[tokio::test]
async fn the_demo_product_is_for_empty_ledgers_only() {
    let folder = Scratch::new();
    let instance = Instance::embedded(folder.path()).start().await;
    let demo = product(&instance, "demo").await;
    instance.create_product("lamp", 1, 1).await;
    assert_eq!(instance.stop_gracefully().await, Some(0));
    let instance = Instance::embedded(folder.path()).start().await;
    assert_eq!(product(&instance, "demo").await, demo);
    let listed = instance.get("/products").await;
    let skus: Vec<_> =
        listed.body["products"].as_array().expect("a list").iter().map(|product| product["sku"].clone()).collect();
    assert_eq!(skus, ["demo", "lamp"]);
}
