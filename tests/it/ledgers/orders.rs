//! Reading orders: one, those of a batch, lists, pages and sums.

use std::collections::HashSet;

use segstock::domain::{NewOrder, Order, OrderKey, OrderStatus, Product};
use segstock::ledger::{OrderFilter, SettledOrder};
use uuid::Uuid;

use super::store::{FENCE, Store, all_new, customer, ids, keyed_order, order, segment};

/// The order as the ledger is to hold it.
fn kept(new: &NewOrder, product: &Product, segment: u16) -> Order {
    Order {
        id: new.id,
        sku: product.sku.clone(),
        quantity: new.quantity,
        customer_id: new.customer_id.clone(),
        segment,
        status: OrderStatus::Confirmed,
    }
}

async fn list(store: &Store, filter: OrderFilter) -> Vec<Uuid> {
    let listed = store.ledger.orders(&filter).await.expect("it reads");
    listed.into_iter().map(|order| order.id).collect()
}

/// Narrows nothing.
fn everything() -> OrderFilter {
    OrderFilter { limit: 1000, ..OrderFilter::default() }
}

fn of_customer(name: &str) -> OrderFilter {
    OrderFilter { customer_id: Some(name.to_owned()), ..everything() }
}

pub(super) async fn an_order_is_found_by_its_id(store: &Store) {
    let product = store.product(20, 2).await;
    let new = order("ada", 3);
    let settling = segment(&product, 1);
    store.settle(&settling, FENCE, std::slice::from_ref(&new)).await;
    let found = store.ledger.order(new.id).await.expect("it reads");
    assert_eq!(found, Some(kept(&new, &product, 1)));
    let unknown = store.ledger.order(Uuid::now_v7()).await;
    assert_eq!(unknown.expect("it reads"), None);
}

pub(super) async fn settled_orders_are_found_by_id_and_by_key(store: &Store) {
    let product = store.product(20, 1).await;
    let batch = [keyed_order("ada", "1", 1), keyed_order("bob", "1", 2), order("eve", 3)];
    store.settle(&segment(&product, 0), FENCE, &batch).await;
    let find = async |ids: &[Uuid], keys: &[OrderKey]| -> Vec<SettledOrder> {
        let found = store.ledger.settled_orders(ids, keys).await;
        let mut found = found.expect("it reads");
        found.sort_by_key(|settled| settled.order.id);
        found
    };
    let settled = batch.each_ref().map(|new| SettledOrder { order: kept(new, &product, 0), key: new.key });
    let [ada, bob, eve] = &batch;
    let unknown = order("zoe", 1);
    assert_eq!(find(&[], &[]).await, []);
    assert_eq!(find(&[unknown.id], &[unknown.key]).await, []);
    assert_eq!(find(&[ada.id, unknown.id], &[]).await, settled[..1]);
    assert_eq!(find(&[], &[unknown.key, bob.key]).await, settled[1..2]);
    // Each once, even where its id and its key are asked for.
    let found = find(&[eve.id, ada.id], &[bob.key, ada.key]).await;
    assert_eq!(found, settled);
}

pub(super) async fn every_customer_id_survives(store: &Store) {
    let product = store.product(100, 1).await;
    let longest = "𝄞".repeat(128);
    let names = [
        "O'Brien",
        "\"quoted\"",
        "back\\slash",
        "\\",
        "'",
        "\"",
        "''; DROP TABLE orders; --",
        "{\"a\":[1,null]}",
        "[1,2]",
        "[]",
        "{}",
        "{a,b}",
        "{NULL}",
        "null",
        "NULL",
        "true",
        "42",
        "007",
        "1e5",
        "-0",
        ",",
        " leading and trailing ",
        "%",
        "_",
        "$1",
        "?1",
        "\u{feff}bom",
        "ünïcödé",
        "u\u{308}",
        "日本語",
        "👩‍👩‍👧",
        "\u{202e}right to left",
        "\u{2028}",
        "\u{fffe}",
        &longest,
    ];
    let batch = names.map(|name| order(name, 1));
    let settled = store.settle(&segment(&product, 0), FENCE, &batch).await;
    assert_eq!(settled, all_new());
    for new in &batch {
        let name = new.customer_id.as_str();
        let found = store.ledger.order(new.id).await.expect("it reads");
        assert_eq!(found, Some(kept(new, &product, 0)), "{name:?}");
        assert_eq!(list(store, of_customer(name)).await, [new.id], "{name:?}");
    }
    store.assert_sound(&product).await;
}

pub(super) async fn orders_are_listed_in_order_of_time(store: &Store) {
    let one = store.product(100, 3).await;
    let other = store.product(100, 1).await;
    let orders: Vec<NewOrder> = (0..12).map(|_| order("ada", 1)).collect();
    // Settled in another order than asked for.
    for (number, new) in orders.iter().enumerate().rev() {
        let settling = match number % 4 {
            3 => segment(&other, 0),
            index => segment(&one, index as u16),
        };
        store.settle(&settling, FENCE, std::slice::from_ref(new)).await;
    }
    let in_time: Vec<Uuid> = orders.iter().map(|order| order.id).collect();
    assert_eq!(list(store, everything()).await, in_time);
    assert_eq!(list(store, of_customer("ada")).await, in_time);
}

/// Six orders of two customers for two products, in order of time; every third one is cancelled.
async fn six_orders(store: &Store) -> (Product, [NewOrder; 6]) {
    let one = store.product(100, 1).await;
    let other = store.product(100, 1).await;
    let orders = ["ada", "bob", "lost-ada", "ada", "bob", "lost-ada"];
    let orders = orders.map(|name| order(name, 1));
    for (number, new) in orders.iter().enumerate() {
        let settling = segment(if number < 3 { &one } else { &other }, 0);
        let settled = store.settle(&settling, FENCE, std::slice::from_ref(new)).await;
        assert_eq!(settled, all_new());
    }
    store.by_hand("UPDATE orders SET status = 2 WHERE customer_id = 'lost-ada'").await;
    (one, orders)
}

pub(super) async fn a_list_can_be_narrowed(store: &Store) {
    let (one, orders) = six_orders(store).await;
    let id = orders.each_ref().map(|order| order.id);
    let cancelled = Some(OrderStatus::Cancelled);
    let confirmed = Some(OrderStatus::Confirmed);
    let sku = Some(one.sku.clone());
    let of_one = OrderFilter { sku: sku.clone(), ..everything() };
    assert_eq!(list(store, of_one.clone()).await, id[..3]);
    assert_eq!(list(store, of_customer("bob")).await, [id[1], id[4]]);
    for (filter, status, expected) in [
        (everything(), cancelled, vec![id[2], id[5]]),
        (everything(), confirmed, vec![id[0], id[1], id[3], id[4]]),
        (everything(), Some(OrderStatus::Reserved), vec![]),
        (of_one.clone(), cancelled, vec![id[2]]),
        (of_customer("lost-ada"), confirmed, vec![]),
        (of_customer("lost-ada"), cancelled, vec![id[2], id[5]]),
    ] {
        let filter = OrderFilter { status, ..filter };
        assert_eq!(list(store, filter.clone()).await, expected, "{filter:?}");
    }
    let both = OrderFilter { sku, ..of_customer("bob") };
    assert_eq!(list(store, both.clone()).await, [id[1]]);
    let all = OrderFilter { status: confirmed, after: Some(id[0]), ..both };
    assert_eq!(list(store, all).await, [id[1]]);
    assert!(list(store, of_customer("nobody")).await.is_empty());
}

pub(super) async fn customers_with_alike_keys_are_kept_apart(store: &Store) {
    let product = store.product(100, 1).await;
    let adas = order("ada", 1);
    // As if the digests of two customers began alike.
    let bobs = NewOrder { customer_id: customer("bob"), ..order("ada", 1) };
    let batch = [adas, bobs];
    let settled = store.settle(&segment(&product, 0), FENCE, &batch).await;
    assert_eq!(settled, all_new());
    assert_eq!(list(store, of_customer("ada")).await, [batch[0].id]);
}

pub(super) async fn a_list_goes_on_after_a_page(store: &Store) {
    let (one, orders) = six_orders(store).await;
    let of_one = OrderFilter { sku: Some(one.sku.clone()), ..everything() };
    for (filter, expected) in [(everything(), 6), (of_one, 3), (of_customer("bob"), 2)] {
        for limit in 1..=3 {
            let mut seen = Vec::new();
            let mut after = None;
            loop {
                let page = OrderFilter { after, limit, ..filter.clone() };
                let page = list(store, page).await;
                assert!(page.len() <= limit as usize);
                let Some(last) = page.last() else { break };
                after = Some(*last);
                seen.extend(page);
            }
            assert_eq!(seen.len(), expected, "{filter:?}");
            assert!(seen.is_sorted() && ids(&orders).is_superset(&seen.into_iter().collect()));
        }
    }
}

pub(super) async fn only_reserved_units_are_held(store: &Store) {
    let product = store.product(100, 2).await;
    let other = store.product(100, 1).await;
    for (taking, name, quantity) in [
        (segment(&product, 0), "held", 3),
        (segment(&product, 1), "held", 4),
        (segment(&product, 1), "sold", 8),
        (segment(&other, 0), "held", 16),
    ] {
        store.settle(&taking, FENCE, &[order(name, quantity)]).await;
    }
    let held = async || store.ledger.held(product.id).await.expect("it reads");
    assert_eq!(held().await, 0);
    store.by_hand("UPDATE orders SET status = 0 WHERE customer_id = 'held'").await;
    assert_eq!(held().await, 7);
    store.assert_sound(&product).await;
}

pub(super) async fn keys_come_in_pages(store: &Store) {
    let product = store.product(100, 2).await;
    let other = store.product(100, 1).await;
    store.settle(&segment(&other, 0), FENCE, &[order("ada", 1)]).await;
    let orders: Vec<NewOrder> = (0..10).map(|_| order("bob", 1)).collect();
    let (even, odd): (Vec<_>, Vec<_>) = orders.iter().cloned().enumerate().partition(|(n, _)| n % 2 == 0);
    for (half, index) in [(odd, 0), (even, 1)] {
        let batch: Vec<NewOrder> = half.into_iter().map(|(_, order)| order).collect();
        store.settle(&segment(&product, index), FENCE, &batch).await;
    }
    let expected: Vec<_> = orders.iter().map(|order| (order.id, order.key)).collect();
    for limit in [1, 3, 10, 11] {
        let mut seen: Vec<(Uuid, OrderKey)> = Vec::new();
        loop {
            let after = seen.last().map(|(id, _)| *id);
            let page = store.ledger.order_keys(product.id, after, limit).await;
            let page = page.expect("it reads");
            assert!(page.len() <= limit as usize);
            if page.is_empty() {
                break;
            }
            seen.extend(page);
        }
        assert_eq!(seen, expected, "pages of {limit}");
    }
    assert_eq!(expected.iter().collect::<HashSet<_>>().len(), 10);
}

pub(super) async fn only_live_orders_add_up(store: &Store) {
    let product = store.product(90, 3).await;
    for (index, name, quantity) in
        [(0, "reserved", 1), (0, "confirmed", 2), (0, "cancelled", 4), (2, "expired", 8), (2, "confirmed", 16)]
    {
        let taking = segment(&product, index);
        store.settle(&taking, FENCE, &[order(name, quantity)]).await;
    }
    assert_eq!(store.picture(&product).await.live_units, [(0, 7), (2, 24)]);
    store
        .by_hand(
            "UPDATE orders SET status = CASE customer_id
                 WHEN 'reserved' THEN 0 WHEN 'cancelled' THEN 2 WHEN 'expired' THEN 3 ELSE 1 END",
        )
        .await;
    assert_eq!(store.picture(&product).await.live_units, [(0, 3), (2, 16)]);
}
