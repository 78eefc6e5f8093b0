//! Several holders at once: whatever the guard has let through, the ledger conserves every unit.

use std::collections::BTreeSet;

use futures_util::future::{join, join_all};
use rand::RngExt;
use rand::seq::SliceRandom;
use segstock::domain::{Fence, NewOrder};
use segstock::ledger::{LedgerError, Settled};

use super::store::{FENCE, Store, all_new, already_known, ids, keyed_order, order, order_ids, segment, settlement};
use crate::harness::wait::seeded_random;

pub(super) async fn the_same_orders_on_two_segments_are_settled_once(store: &Store) {
    const REPETITIONS: u64 = 40;
    const BATCH: u64 = 60;
    let mut random = seeded_random();
    let product = store.product(4 * REPETITIONS * BATCH, 2).await;
    let segments = [segment(&product, 0), segment(&product, 1)];
    for repetition in 0..REPETITIONS {
        let one: Vec<NewOrder> =
            (0..BATCH).map(|number| keyed_order("ada", &format!("{repetition}-{number}"), 1)).collect();
        // The same keys in another order of arrival; half of them under the same ids, the others as new requests.
        let mut other = one.clone();
        for order in other.iter_mut().step_by(2) {
            order.id = uuid::Uuid::now_v7();
        }
        other.shuffle(&mut *random);
        let (first, second) =
            join(store.settle(&segments[0], FENCE, &one), store.settle(&segments[1], FENCE, &other)).await;
        let (first, second) = (already_known(first), already_known(second));
        for order in &one {
            let twin = other.iter().find(|twin| twin.key == order.key);
            let twin = twin.expect("the same keys");
            assert_ne!(
                first.contains(&order.id),
                second.contains(&twin.id),
                "in repetition {repetition} one of the two is inserted"
            );
        }
    }
    let taken = store.taken(&product).await;
    assert_eq!(taken[0] + taken[1], REPETITIONS * BATCH);
    store.assert_sound(&product).await;
}

pub(super) async fn holders_of_one_segment_conserve_its_units(store: &Store) {
    const REPETITIONS: u64 = 20;
    let mut random = seeded_random();
    // Less than is asked for, so that the last ones are refused for want of units.
    let product = store.product(REPETITIONS * 8 * 4, 1).await;
    let first = segment(&product, 0);
    let (mut committed, mut refused) = (BTreeSet::new(), BTreeSet::new());
    let mut highest = Fence(0);
    for repetition in 0..REPETITIONS {
        let batches: Vec<(Fence, Vec<NewOrder>)> = (0..8)
            .map(|_| {
                let fence = Fence((repetition * 4 + random.random_range(1..=8)) as i64);
                let batch = (0..random.random_range(1..=3)).map(|_| order("ada", random.random_range(1..=5))).collect();
                (fence, batch)
            })
            .collect();
        let settling = batches.iter().map(async |(fence, batch)| {
            let settled = store.ledger.settle(&settlement(&first, *fence, batch)).await;
            (*fence, ids(batch), settled)
        });
        for (fence, batch, settled) in join_all(settling).await {
            match settled {
                Ok(settled @ Settled::Committed { .. }) => {
                    assert_eq!(settled, all_new());
                    highest = highest.max(fence);
                    committed.extend(batch);
                }
                Ok(Settled::Refused) => refused.extend(batch),
                // The server may see to it that one of two statements is repeated.
                Err(LedgerError::NothingHappened(_)) => refused.extend(batch),
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    assert!(!committed.is_empty() && !refused.is_empty());
    assert_eq!(order_ids(&*store.ledger, &product).await, committed);
    assert_eq!(store.segments(&product).await[0].fence, highest);
    store.assert_sound(&product).await;
}

pub(super) async fn a_reload_among_settles_counts_them(store: &Store) {
    const STOCK: u64 = 10_000;
    let product = store.product(STOCK, 1).await;
    let first = segment(&product, 0);
    let mut fence = Fence(1);
    for _ in 0..20 {
        let batches: Vec<Vec<NewOrder>> = (0..6).map(|_| vec![order("ada", 3), order("bob", 4)]).collect();
        let settling = batches.iter().map(|batch| store.settle(&first, fence, batch));
        let (settled, reloaded) = join(join_all(settling), store.ledger.reload(&first, fence)).await;
        let reloaded = reloaded.expect("it answers");
        assert!(settled.iter().all(|settled| {
            // Before the reload or after it: then the fence is stale.
            *settled == all_new() || *settled == Settled::Refused
        }));
        // Nothing may be settled under the old fence any more, so the count is the reload's for good.
        assert_eq!(store.settle(&first, fence, &batches[0]).await, Settled::Refused);
        let taken = store.taken(&product).await[0];
        assert_eq!(reloaded.stock, STOCK - taken);
        fence = reloaded.fence;
    }
    store.assert_sound(&product).await;
}
