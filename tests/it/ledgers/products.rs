//! Products: created with their segments or not at all, and found again.

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use segstock::domain::{Epoch, Fence, NewProduct, ProductId, SaleWindow, Sku};
use segstock::ledger::{OrderSums, ProductTotals};

use super::store::{FENCE, Store, all_new, create, new_product, order, segment, units};

fn moment(text: &str) -> Option<DateTime<Utc>> {
    Some(text.parse().expect("a moment"))
}

pub(super) async fn a_product_is_kept_as_it_was_created(store: &Store) {
    let plain = new_product("plain", 10, 3);
    let full = NewProduct {
        max_per_order: Some(units(2_147_483_647)),
        window: SaleWindow {
            starts_at: moment("2030-11-11T00:00:00.000001Z"),
            ends_at: moment("2030-11-12T02:00:00.5+02:00"),
        },
        ..new_product("full.-_9", 10, 3)
    };
    for new in [&plain, &full] {
        let before = Utc::now() - chrono::TimeDelta::minutes(1);
        let created = create(&*store.ledger, new).await;
        assert_eq!(created.sku, new.sku);
        assert_eq!(created.name, new.name.0);
        assert_eq!(created.segments, 3);
        assert_eq!(created.max_per_order, new.max_per_order);
        assert_eq!(created.window, new.window);
        assert!(created.created_at > before, "{}", created.created_at);
        let found = store.ledger.product(&new.sku).await.expect("it reads");
        assert_eq!(found, Some(created));
    }
}

pub(super) async fn stock_is_split_evenly(store: &Store) {
    for (stock, segments, shares) in
        [(10, 4, vec![3, 3, 2, 2]), (7, 1, vec![7]), (2, 3, vec![1, 1, 0]), (0, 2, vec![0, 0])]
    {
        let product = store.product(stock, segments).await;
        let kept = store.segments(&product).await;
        let allotted: Vec<u64> = kept.iter().map(|segment| segment.allotted).collect();
        assert_eq!(allotted, shares);
        for (segment, index) in kept.iter().zip(0..) {
            assert_eq!(segment.index, index);
            assert_eq!(segment.taken, 0);
            assert_eq!((segment.fence, segment.epoch), (Fence(0), Epoch(0)));
        }
    }
}

pub(super) async fn the_largest_product_can_be_created(store: &Store) {
    let product = store.product(1_000_000_000_000, 1024).await;
    let kept = store.segments(&product).await;
    assert_eq!(kept.len(), 1024);
    let allotted: u64 = kept.iter().map(|segment| segment.allotted).sum();
    assert_eq!(allotted, 1_000_000_000_000);
    let batch = [order("ada", 300_000_000), order("bob", 600_000_000)];
    let last = segment(&product, 1023);
    assert_eq!(store.settle(&last, FENCE, &batch).await, all_new());
    assert_eq!(store.taken(&product).await[1023], 900_000_000);
    store.assert_sound(&product).await;
}

pub(super) async fn a_taken_sku_creates_nothing(store: &Store) {
    let product = create(&*store.ledger, &new_product("taken", 10, 2)).await;
    let before = store.picture(&product).await;
    let again = new_product("taken", 99, 7);
    let created = store.ledger.create_product(&again).await;
    assert_eq!(created.expect("it answers"), None);
    assert_eq!(store.picture(&product).await, before);
    let listed = store.ledger.products(None, 10).await.expect("it reads");
    let totals = ProductTotals { product, allotted: 10, taken: 0 };
    assert_eq!(listed, [totals]);
    // A SKU is told from its capital letters.
    create(&*store.ledger, &new_product("Taken", 1, 1)).await;
}

pub(super) async fn one_of_many_creators_wins(store: &Store) {
    let attempts = (0..8).map(async |stock| {
        let new = new_product("wanted", stock, 4);
        let created = store.ledger.create_product(&new).await;
        created.expect("the store answers").map(|product| (product, stock))
    });
    let created: Vec<_> = join_all(attempts).await.into_iter().flatten().collect();
    let [(product, stock)] = &created[..] else {
        panic!("one wins, not {}", created.len());
    };
    let kept = store.segments(product).await;
    assert_eq!(kept.len(), 4);
    let allotted: u64 = kept.iter().map(|segment| segment.allotted).sum();
    assert_eq!(allotted, *stock);
}

pub(super) async fn an_unknown_product_has_nothing(store: &Store) {
    let sku = Sku::new("unknown").expect("the alphabet is kept");
    let nobody = ProductId(4711);
    let ledger = &store.ledger;
    ledger.ping().await.expect("it answers");
    assert_eq!(ledger.product(&sku).await.expect("it reads"), None);
    assert_eq!(ledger.products(None, 10).await.expect("it reads"), []);
    assert_eq!(ledger.segments(nobody).await.expect("it reads"), []);
    assert_eq!(ledger.held(nobody).await.expect("it reads"), 0);
    let sums = ledger.order_sums(nobody).await.expect("it reads");
    assert_eq!(sums, OrderSums::default());
    let keys = ledger.order_keys(nobody, None, 10).await;
    assert_eq!(keys.expect("it reads"), []);
}

pub(super) async fn products_are_listed_in_sku_order(store: &Store) {
    let mut skus = ["b", "a-1", "B", "a.1", "_", "a1", "0", "a"];
    for (sku, stock) in skus.iter().zip(10..) {
        create(&*store.ledger, &new_product(sku, stock, 3)).await;
    }
    let listed = store.ledger.products(None, 100).await.expect("it reads");
    let sku = |totals: &ProductTotals| totals.product.sku.as_str().to_owned();
    skus.sort_unstable();
    assert_eq!(listed.iter().map(sku).collect::<Vec<_>>(), skus);

    let sold = segment(&listed[0].product, 1);
    assert_eq!(store.settle(&sold, FENCE, &[order("ada", 3)]).await, all_new());
    let first = store.ledger.products(None, 1).await.expect("it reads");
    assert_eq!(sku(&first[0]), "0");
    assert_eq!((first[0].allotted, first[0].taken), (16, 3));

    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = store.ledger.products(after.as_ref(), 3).await;
        let page = page.expect("it reads");
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 3);
        after = Some(last.product.sku.clone());
        pages.extend(page.iter().map(sku));
    }
    assert_eq!(pages, skus);
}
