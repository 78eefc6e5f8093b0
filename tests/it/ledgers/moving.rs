//! Reloading a segment, and moving units between segments.

use segstock::domain::{Epoch, Fence, Reloaded};
use segstock::ledger::{GatherLeg, Settled, Settlement};

use super::store::{FENCE, Store, all_new, order, segment, settlement};

const STRIDE: i64 = Fence::RELOAD_STRIDE;

pub(super) async fn a_reload_tells_what_is_left(store: &Store) {
    let product = store.product(20, 2).await;
    let first = segment(&product, 0);
    let reloaded = store.ledger.reload(&first, FENCE).await.expect("it is there");
    assert_eq!(reloaded.stock, 10);
    let batch = [order("ada", 4), order("bob", 3)];
    assert_eq!(store.settle(&first, reloaded.fence, &batch).await, all_new());
    let reloaded = store.ledger.reload(&first, reloaded.fence).await;
    assert_eq!(reloaded.expect("it is there").stock, 3);
    let other = store.ledger.reload(&segment(&product, 1), FENCE).await;
    assert_eq!(other.expect("it is there").stock, 10);
    let missing = store.ledger.reload(&segment(&product, 2), FENCE).await;
    missing.expect_err("there is no such segment");
    store.assert_sound(&product).await;
}

pub(super) async fn a_reload_outruns_the_ledgers_fence(store: &Store) {
    let product = store.product(20, 2).await;
    let first = segment(&product, 0);
    // The holder's fence is the higher one, then the ledger's.
    let reloaded = store.ledger.reload(&first, Fence(7)).await.expect("it is there");
    assert_eq!(reloaded.fence, Fence(7 + STRIDE));
    assert_eq!(store.segments(&product).await[0].fence, reloaded.fence);
    let reloaded = store.ledger.reload(&first, Fence(1)).await.expect("it is there");
    assert_eq!(reloaded.fence, Fence(7 + 2 * STRIDE));
    let kept = store.segments(&product).await;
    assert_eq!((kept[0].fence, kept[1].fence), (reloaded.fence, Fence(0)));
}

pub(super) async fn a_reload_shuts_out_older_leases(store: &Store) {
    let product = store.product(20, 1).await;
    let first = segment(&product, 0);
    let reloaded = store.ledger.reload(&first, Fence(3)).await.expect("it is there");
    let before = store.picture(&product).await;
    for fence in [Fence(3), Fence(4), Fence(reloaded.fence.0 - 1)] {
        let settled = store.settle(&first, fence, &[order("ada", 1)]).await;
        assert_eq!(settled, Settled::Refused, "{fence:?}");
        assert_eq!(store.picture(&product).await, before);
    }
    let settled = store.settle(&first, reloaded.fence, &[order("ada", 1)]).await;
    assert_eq!(settled, all_new());
    store.assert_sound(&product).await;
}

pub(super) async fn a_reload_tells_the_epoch(store: &Store) {
    let product = store.product(20, 1).await;
    let first = segment(&product, 0);
    store.by_hand("UPDATE segments SET epoch = 2").await;
    let reloaded = store.ledger.reload(&first, FENCE).await.expect("it is there");
    let expected = Reloaded { stock: 20, fence: Fence(FENCE.0 + STRIDE), epoch: Epoch(2) };
    assert_eq!(reloaded, expected);
    let orders = [order("ada", 1)];
    let settlement = Settlement { epoch: reloaded.epoch, ..settlement(&first, reloaded.fence, &orders) };
    let settled = store.ledger.settle(&settlement).await.expect("it answers");
    assert_eq!(settled, all_new());
}

fn leg(index: u16, fence: i64, units: i64) -> GatherLeg {
    GatherLeg { index, fence: Fence(fence), epoch: Epoch(0), units }
}

pub(super) async fn gathered_units_move(store: &Store) {
    let product = store.product(30, 3).await;
    let legs = [leg(0, 1, -4), leg(1, 1, -10), leg(2, 1, 14)];
    let gathered = store.ledger.gather(product.id, &legs).await;
    assert!(gathered.expect("it answers"));
    let kept = store.segments(&product).await;
    let allotted: Vec<u64> = kept.iter().map(|segment| segment.allotted).collect();
    assert_eq!(allotted, [6, 0, 24]);
    // The largest order that this was done for.
    let settled = store.settle(&segment(&product, 2), Fence(1), &[order("ada", 24)]).await;
    assert_eq!(settled, all_new());
    store.assert_sound(&product).await;
}

pub(super) async fn a_stale_leg_moves_nothing(store: &Store) {
    let product = store.product(30, 3).await;
    for (index, fence) in [(0, 5), (1, 6), (2, 7)] {
        let taking = segment(&product, index);
        store.settle(&taking, Fence(fence), &[order("ada", 1)]).await;
    }
    let before = store.picture(&product).await;
    let good = [leg(0, 5, -2), leg(1, 6, -2), leg(2, 7, 4)];
    for stale in 0..3 {
        let mut legs = good;
        legs[stale].fence.0 -= 1;
        let gathered = store.ledger.gather(product.id, &legs).await;
        assert!(!gathered.expect("it answers"), "leg {stale}");
        assert_eq!(store.picture(&product).await, before, "leg {stale}");
    }
    let mut missing = good;
    missing[1].index = 3;
    let gathered = store.ledger.gather(product.id, &missing).await;
    assert!(!gathered.expect("it answers"));
    assert_eq!(store.picture(&product).await, before);

    store.by_hand("UPDATE segments SET epoch = 1 WHERE \"index\" = 1").await;
    let gathered = store.ledger.gather(product.id, &good).await;
    assert!(!gathered.expect("it answers"), "an older epoch");
    let mut renewed = good;
    renewed[1].epoch = Epoch(1);
    let gathered = store.ledger.gather(product.id, &renewed).await;
    assert!(gathered.expect("it answers"));
    store.assert_sound(&product).await;
}

pub(super) async fn a_giver_keeps_what_is_taken(store: &Store) {
    let product = store.product(20, 2).await;
    let first = segment(&product, 0);
    store.settle(&first, Fence(1), &[order("ada", 7)]).await;
    let before = store.picture(&product).await;
    // More often than there are connections: each must be left in order.
    for _ in 0..10 {
        for legs in [[leg(0, 2, -4), leg(1, 2, 4)], [leg(1, 2, 4), leg(0, 2, -4)]] {
            let gathered = store.ledger.gather(product.id, &legs).await;
            assert!(!gathered.expect("it answers"), "three are left");
            assert_eq!(store.picture(&product).await, before);
        }
    }
    let legs = [leg(0, 2, -3), leg(1, 2, 3)];
    let gathered = store.ledger.gather(product.id, &legs).await;
    assert!(gathered.expect("it answers"));
    assert_eq!(store.segments(&product).await[0].available(), 0);
    store.assert_sound(&product).await;
}

pub(super) async fn gathering_stores_the_fences(store: &Store) {
    let product = store.product(20, 2).await;
    let legs = [leg(0, 8, -1), leg(1, 9, 1)];
    let gathered = store.ledger.gather(product.id, &legs).await;
    assert!(gathered.expect("it answers"));
    for (index, fence) in [(0, 7), (1, 8)] {
        let overtaken = segment(&product, index);
        let settled = store.settle(&overtaken, Fence(fence), &[order("ada", 1)]).await;
        assert_eq!(settled, Settled::Refused);
    }
    let kept = store.segments(&product).await;
    assert_eq!((kept[0].fence, kept[1].fence), (Fence(8), Fence(9)));
}
