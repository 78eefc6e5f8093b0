//! Settling a batch: its orders and the segment's `taken`, both or nothing (R3, R4, R6, R10).

use std::collections::BTreeSet;

use segstock::domain::{Epoch, Fence};
use segstock::ledger::{LedgerError, Settled, Settlement};

use super::store::{FENCE, Store, all_new, already_known, ids, keyed_order, order, segment, settlement};

pub(super) async fn a_batch_is_inserted_and_its_units_are_taken(store: &Store) {
    let product = store.product(40, 2).await;
    let batch = [order("ada", 1), order("bob", 2), order("ada", 4)];
    let second = segment(&product, 1);
    assert_eq!(store.settle(&second, Fence(9), &batch).await, all_new());

    let kept = store.segments(&product).await;
    assert_eq!((kept[0].taken, kept[1].taken), (0, 7));
    assert_eq!((kept[0].fence, kept[1].fence), (Fence(0), Fence(9)));
    assert_eq!((kept[0].allotted, kept[1].allotted), (20, 20));
    assert_eq!(store.picture(&product).await.orders, ids(&batch));
    store.assert_sound(&product).await;
}

pub(super) async fn the_last_unit_can_be_sold(store: &Store) {
    let product = store.product(6, 2).await;
    let first = segment(&product, 0);
    let batch = [order("ada", 1), order("bob", 2)];
    assert_eq!(store.settle(&first, FENCE, &batch).await, all_new());
    let kept = store.segments(&product).await;
    assert_eq!((kept[0].available(), kept[1].available()), (0, 3));
    store.assert_sound(&product).await;
}

pub(super) async fn a_lower_fence_changes_nothing(store: &Store) {
    let product = store.product(20, 1).await;
    let first = segment(&product, 0);
    store.settle(&first, Fence(9), &[order("ada", 1)]).await;
    let before = store.picture(&product).await;
    for fence in [8, 1, 0, -1] {
        let settled = store.settle(&first, Fence(fence), &[order("bob", 1)]).await;
        assert_eq!(settled, Settled::Refused, "fence {fence}");
        assert_eq!(store.picture(&product).await, before, "fence {fence}");
    }
    store.assert_sound(&product).await;
}

pub(super) async fn an_equal_fence_settles_again(store: &Store) {
    let product = store.product(20, 1).await;
    let first = segment(&product, 0);
    for customer in ["ada", "bob"] {
        let settled = store.settle(&first, Fence(9), &[order(customer, 2)]).await;
        assert_eq!(settled, all_new());
    }
    assert_eq!(store.taken(&product).await, [4]);
    store.assert_sound(&product).await;
}

pub(super) async fn a_fence_counts_for_its_segment_only(store: &Store) {
    let product = store.product(20, 2).await;
    let other = store.product(20, 2).await;
    for (product, index, fence) in [(&product, 0, 9), (&product, 1, 3), (&other, 0, 2)] {
        let settled = store.settle(&segment(product, index), Fence(fence), &[order("ada", 1)]).await;
        assert_eq!(settled, all_new());
    }
    assert_eq!(store.segments(&product).await[1].fence, Fence(3));
    store.assert_sound(&product).await;
    store.assert_sound(&other).await;
}

pub(super) async fn an_older_epoch_changes_nothing(store: &Store) {
    let product = store.product(20, 1).await;
    let first = segment(&product, 0);
    store.settle(&first, FENCE, &[order("ada", 1)]).await;
    store.by_hand("UPDATE segments SET epoch = 2").await;
    let before = store.picture(&product).await;
    for (epoch, good) in [(0, false), (1, false), (2, true)] {
        let orders = [order("bob", 1)];
        let settlement = Settlement {
            epoch: Epoch(epoch),
            // However high the fence is.
            ..settlement(&first, Fence(1_000), &orders)
        };
        let settled = store.ledger.settle(&settlement).await.expect("it answers");
        if good {
            assert_eq!(settled, all_new());
        } else {
            assert_eq!(settled, Settled::Refused, "epoch {epoch}");
            assert_eq!(store.picture(&product).await, before);
        }
    }
    assert_eq!(store.segments(&product).await[0].epoch, Epoch(2));
    store.assert_sound(&product).await;
}

pub(super) async fn more_than_is_left_changes_nothing(store: &Store) {
    let product = store.product(10, 2).await;
    let first = segment(&product, 0);
    store.settle(&first, FENCE, &[order("ada", 3)]).await;
    let before = store.picture(&product).await;
    for quantity in [3, 5, 2_147_483_647] {
        let settled = store.settle(&first, FENCE, &[order("bob", quantity)]).await;
        assert_eq!(settled, Settled::Refused, "{quantity} of 2");
        assert_eq!(store.picture(&product).await, before, "{quantity} of 2");
    }
    assert_eq!(store.settle(&first, FENCE, &[order("bob", 2)]).await, all_new());
    store.assert_sound(&product).await;
}

pub(super) async fn a_batch_is_settled_as_a_whole(store: &Store) {
    let product = store.product(10, 1).await;
    let first = segment(&product, 0);
    let before = store.picture(&product).await;
    // Any two of them fit.
    let batch = [order("ada", 4), order("bob", 4), order("eve", 4)];
    let settled = store.settle(&first, FENCE, &batch).await;
    assert_eq!(settled, Settled::Refused);
    assert_eq!(store.picture(&product).await, before);
    // Together they are more than 32 bits hold.
    let batch = ["ada", "bob", "eve"].map(|name| order(name, 2_147_483_647));
    let settled = store.settle(&first, FENCE, &batch).await;
    assert_eq!(settled, Settled::Refused);
    assert_eq!(store.picture(&product).await, before);
}

pub(super) async fn a_known_order_takes_no_second_unit(store: &Store) {
    let product = store.product(40, 2).await;
    let first = segment(&product, 0);
    let known = [order("ada", 2), order("bob", 3)];
    store.settle(&first, FENCE, &known).await;
    let new = [order("eve", 5), order("ada", 1)];
    let batch = [&new[..1], &known, &new[1..]].concat();
    let settled = store.settle(&first, Fence(6), &batch).await;
    assert_eq!(already_known(settled), ids(&known));
    assert_eq!(store.taken(&product).await, [11, 0]);
    assert_eq!(store.segments(&product).await[0].fence, Fence(6));
    store.assert_sound(&product).await;
}

pub(super) async fn a_repeated_batch_changes_nothing(store: &Store) {
    let product = store.product(40, 2).await;
    let batch = [order("ada", 2), keyed_order("bob", "b-1", 3)];
    store.settle(&segment(&product, 0), FENCE, &batch).await;
    let before = store.picture(&product).await;
    let settled = store.settle(&segment(&product, 0), FENCE, &batch).await;
    assert_eq!(already_known(settled), ids(&batch));
    assert_eq!(store.picture(&product).await, before);

    // Also where the orders went to another segment the second time.
    let settled = store.settle(&segment(&product, 1), FENCE, &batch).await;
    assert_eq!(already_known(settled), ids(&batch));
    assert_eq!(store.taken(&product).await, [5, 0]);
    store.assert_sound(&product).await;
}

/// The room is asked for before it is known who is known already: whoever repeats looks the orders up.
pub(super) async fn a_repeated_batch_without_room_is_refused(store: &Store) {
    let product = store.product(5, 1).await;
    let first = segment(&product, 0);
    let batch = [order("ada", 2), order("bob", 3)];
    store.settle(&first, FENCE, &batch).await;
    let before = store.picture(&product).await;
    let settled = store.settle(&first, Fence(6), &batch).await;
    assert_eq!(settled, Settled::Refused);
    assert_eq!(store.picture(&product).await, before);
    let wanted: Vec<_> = ids(&batch).into_iter().collect();
    let found = store.ledger.settled_orders(&wanted, &[]).await;
    assert_eq!(found.expect("it reads").len(), 2);
}

pub(super) async fn a_key_counts_once_within_a_batch(store: &Store) {
    let product = store.product(20, 1).await;
    let first = segment(&product, 0);
    let twice = [keyed_order("ada", "k", 2), keyed_order("ada", "k", 2)];
    let batch = [&twice[..], &[order("bob", 3)]].concat();
    let known = already_known(store.settle(&first, FENCE, &batch).await);
    assert_eq!(known.len(), 1, "{known:?}");
    assert!(known.is_subset(&ids(&twice)));
    let inserted: BTreeSet<_> = ids(&batch).difference(&known).copied().collect();
    assert_eq!(store.picture(&product).await.orders, inserted);
    assert_eq!(store.taken(&product).await, [5]);
    store.assert_sound(&product).await;
}

pub(super) async fn a_key_counts_once_among_all_segments_and_products(store: &Store) {
    let product = store.product(20, 2).await;
    let other = store.product(20, 1).await;
    let first = [keyed_order("ada", "k", 2)];
    store.settle(&segment(&product, 0), FENCE, &first).await;
    let before = store.picture(&product).await;
    for elsewhere in [segment(&product, 1), segment(&other, 0)] {
        let again = [keyed_order("ada", "k", 7)];
        let settled = store.settle(&elsewhere, FENCE, &again).await;
        assert_eq!(already_known(settled), ids(&again));
    }
    assert_eq!(store.picture(&product).await.orders, before.orders);
    assert_eq!(store.taken(&product).await, [2, 0]);
    assert_eq!(store.taken(&other).await, [0]);
    store.assert_sound(&product).await;
    store.assert_sound(&other).await;
}

pub(super) async fn the_same_key_of_another_customer_is_another(store: &Store) {
    let product = store.product(20, 1).await;
    let batch = [keyed_order("ada", "k", 2), keyed_order("bob", "k", 2)];
    let settled = store.settle(&segment(&product, 0), FENCE, &batch).await;
    assert_eq!(settled, all_new());
    store.assert_sound(&product).await;
}

pub(super) async fn a_failed_statement_changes_nothing(store: &Store) {
    let product = store.product(20, 1).await;
    let first = segment(&product, 0);
    store.settle(&first, FENCE, &[order("ada", 1)]).await;
    let before = store.picture(&product).await;
    store.break_taking().await;
    // More often than there are connections: each must be left in order.
    for _ in 0..10 {
        let orders = [order("bob", 2)];
        let failure = store.ledger.settle(&settlement(&first, FENCE, &orders)).await.expect_err("it is broken");
        assert!(matches!(failure, LedgerError::NothingHappened(_)), "{failure:?}");
        assert_eq!(store.picture(&product).await, before);
    }
    store.heal().await;
    assert_eq!(store.settle(&first, FENCE, &[order("bob", 2)]).await, all_new());
    store.assert_sound(&product).await;
}
