//! What only a ledger in a file can go through: it is opened again, by several at once, and locked by somebody else.

use std::time::{Duration, Instant};

use futures_util::future::join;
use segstock::domain::{Fence, NewOrder};
use segstock::ledger::{Ledger, LedgerError, Settled};
use sqlx::Connection;

use super::store::{
    FENCE, SOON, TIMEOUT, all_new, already_known, assert_sound, create, ids, keyed_order, new_product, open_sqlite,
    order, order_ids, segment, settle, settlement, sqlite_by_hand,
};
use crate::harness::scratch::Scratch;

#[tokio::test]
async fn an_opened_folder_holds_what_it_held() {
    let folder = Scratch::new();
    let ledger = open_sqlite(&folder, TIMEOUT).await;
    let product = create(&ledger, &new_product("kept", 20, 2)).await;
    let first = segment(&product, 0);
    let batch = [order("ada", 3), keyed_order("bob", "k", 2)];
    assert_eq!(settle(&ledger, &first, Fence(9), &batch).await, all_new());
    let segments = ledger.segments(product.id).await.expect("it reads");

    // Closed in order, and then simply gone, as after a crash of the process.
    ledger.close().await;
    for _ in 0..2 {
        let ledger = open_sqlite(&folder, TIMEOUT).await;
        let found = ledger.product(&product.sku).await.expect("it reads");
        assert_eq!(found.as_ref(), Some(&product));
        let found = ledger.segments(product.id).await.expect("it reads");
        assert_eq!(found, segments);
        assert_eq!(order_ids(&ledger, &product).await, ids(&batch));
        let stale = settle(&ledger, &first, Fence(8), &[order("eve", 1)]).await;
        assert_eq!(stale, Settled::Refused);
        let again = settle(&ledger, &first, Fence(9), &batch).await;
        assert_eq!(already_known(again), ids(&batch));
        assert_sound(&ledger, &product).await;
    }
}

#[tokio::test]
async fn a_missing_folder_is_made() {
    let folder = Scratch::new();
    let options = segstock::ledger::sqlite::Options { folder: folder.join("not").join("yet"), timeout: TIMEOUT };
    let ledger = segstock::ledger::sqlite::SqliteLedger::open(options).await;
    ledger.expect("it is made").ping().await.expect("it answers");
}

#[tokio::test]
async fn two_ledgers_on_one_folder_see_each_others_writes() {
    let folder = Scratch::new();
    let one = open_sqlite(&folder, TIMEOUT).await;
    let other = open_sqlite(&folder, TIMEOUT).await;
    let product = create(&one, &new_product("shared", 2_000, 2)).await;
    let found = other.product(&product.sku).await.expect("it reads");
    assert_eq!(found.as_ref(), Some(&product));
    let again = other.create_product(&new_product("shared", 1, 1)).await;
    assert_eq!(again.expect("it answers"), None);

    for turn in 0..20 {
        let batch: Vec<NewOrder> = (0..10).map(|number| keyed_order("ada", &format!("{turn}-{number}"), 1)).collect();
        let (first, second) = (segment(&product, 0), segment(&product, 1));
        let (first, second) = join(settle(&one, &first, FENCE, &batch), settle(&other, &second, FENCE, &batch)).await;
        let (first, second) = (already_known(first), already_known(second));
        assert!(first.is_disjoint(&second));
        assert_eq!(&first | &second, ids(&batch));
    }
    assert_eq!(order_ids(&one, &product).await.len(), 200);
    assert_sound(&one, &product).await;
    assert_sound(&other, &product).await;
}

#[tokio::test]
async fn a_file_locked_for_long_is_an_error_in_time() {
    const SHORT: Duration = Duration::from_secs(1);
    let folder = Scratch::new();
    let ledger = open_sqlite(&folder, SHORT).await;
    let product = create(&ledger, &new_product("locked", 20, 2)).await;
    let first = segment(&product, 0);
    let mut by_hand = sqlite_by_hand(&folder).await;
    let lock = by_hand.begin_with("BEGIN IMMEDIATE").await;
    let lock = lock.expect("nobody else writes");

    let batch = [order("ada", 3)];
    let start = Instant::now();
    let answer = ledger.settle(&settlement(&first, FENCE, &batch)).await;
    assert!(matches!(answer, Err(LedgerError::NothingHappened(_))), "{answer:?}");
    let elapsed = start.elapsed();
    assert!(elapsed < SOON / 4, "gave up after {elapsed:?}");
    // Readers go on meanwhile.
    assert_eq!(order_ids(&ledger, &product).await, [].into());

    lock.rollback().await.expect("it is held");
    assert_eq!(settle(&ledger, &first, FENCE, &batch).await, all_new());
    assert_sound(&ledger, &product).await;
}
