//! Thousands of buyers after the same item.

use std::collections::HashSet;
use std::sync::Arc;

use rand::RngExt;
use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::harness::fixture::Fixture;
use crate::harness::observer::Observer;
use crate::harness::shoppers::Shoppers;
use crate::harness::wait::seeded_random;

/// Each buyer orders once, all at the same time, over three instances.
#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_buyers_over_three_instances_buy_exactly_what_fits() {
    const BUYERS: usize = 2000;
    const STOCK: u64 = 1000;
    let mut random = seeded_random();
    let fixture = Fixture::start_with(3, |instance| {
        // The machine also runs the buyers: nobody is to be turned away for slowness here.
        instance.setting("SEGSTOCK_REQUEST_DEADLINE_MS", "60000")
    })
    .await;
    fixture.instances[0].create_product("sneaker", STOCK, 20).await;
    let observer = Observer::of(&fixture.redis.url(), fixture.database.url()).await;
    let instances: Vec<_> = fixture.instances.into_iter().map(Arc::new).collect();

    let mut buyers = JoinSet::new();
    for number in 0..BUYERS {
        let instance = Arc::clone(&instances[random.random_range(0..instances.len())]);
        let quantity: u64 = random.random_range(1..=3);
        buyers.spawn(async move {
            let order = json!({"sku": "sneaker", "quantity": quantity, "customer_id": format!("buyer-{number}")});
            let answer = instance.post_order(&order, None).await.expect("an answer");
            (quantity, answer)
        });
    }
    let mut sold = Vec::new();
    let mut units = 0;
    let mut least_remaining = u64::MAX;
    let mut smallest_refused = u64::MAX;
    for (quantity, answer) in buyers.join_all().await {
        match (answer.status, answer.body["type"].as_str()) {
            (201, _) => {
                let id = answer.body["id"].as_str().expect("an id");
                sold.push(id.parse::<Uuid>().expect("a UUID"));
                units += quantity;
            }
            (409, Some("/problems/sold-out")) => smallest_refused = smallest_refused.min(quantity),
            (409, Some("/problems/insufficient-stock")) => {
                smallest_refused = smallest_refused.min(quantity);
                least_remaining = least_remaining.min(answer.body["remaining"].as_u64().expect("a number"));
            }
            _ => panic!("neither sold nor refused for want of stock: {answer:?}"),
        }
    }
    observer.audit("sneaker", &sold).await;
    let (in_ledger, units_in_ledger) = observer.orders("sneaker").await;
    assert_eq!(in_ledger, sold.iter().copied().collect::<HashSet<_>>());
    assert_eq!(units_in_ledger, units);
    // 2,000 buyers of two units on average want four times the stock: every unit that anybody could use is sold.
    let left = observer.available("sneaker").await;
    assert_eq!(units + left, STOCK);
    assert!(left < smallest_refused, "INV-8: {left} units are left, and an order of {smallest_refused} was refused");
}

/// Orders of several units over segments that hold less each: nothing is stranded.
#[tokio::test(flavor = "multi_thread")]
async fn shoppers_empty_every_segment() {
    let fixture = Fixture::start(2).await;
    fixture.instances[0].create_product("scarf", 500, 100).await;
    let observer = Observer::of(&fixture.redis.url(), fixture.database.url()).await;
    let instances: Vec<_> = fixture.instances.into_iter().map(Arc::new).collect();
    let shoppers = Shoppers::start(&instances, "scarf", 32, 1);
    shoppers.settle_up(&observer, "scarf", 500).await;
}

/// Orders that take many segments together, over fewer connections than segments, from two instances at once.
#[tokio::test(flavor = "multi_thread")]
async fn large_orders_are_gathered_from_many_segments_over_few_connections() {
    let fixture = Fixture::start_with(2, |instance| {
        instance.setting("SEGSTOCK_REDIS_CONNECTIONS", "2").setting("SEGSTOCK_REQUEST_DEADLINE_MS", "20000")
    })
    .await;
    fixture.instances[0].create_product("ticket", 100, 100).await;
    let orders = (0..4).map(|number| {
        let order = json!({"sku": "ticket", "quantity": 25, "customer_id": format!("group-{number}")});
        let instance = &fixture.instances[number % 2];
        async move { instance.post_order(&order, None).await.expect("an answer") }
    });
    let answers = futures_util::future::join_all(orders).await;
    assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
    let observer = Observer::of(&fixture.redis.url(), fixture.database.url()).await;
    assert_eq!(observer.available("ticket").await, 0);
    observer.audit("ticket", &[]).await;
}
