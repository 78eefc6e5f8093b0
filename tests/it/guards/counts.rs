//! What a lease knows of its segment: stock, fence, epoch, and whether they can be trusted (R5).

use segstock::domain::invariants::GuardedStock;
use segstock::domain::{Epoch, Fence, Reloaded};
use segstock::guard::{Acquired, Ending, Token, Trust};

use super::under::{Kind, LONG, SHORT, leased, ledger_says};

pub(super) async fn an_unseen_segment_needs_a_reload(kind: Kind) {
    let under = kind.with(LONG).await;
    let lease = under.lease(&Token::random()).await;
    assert_eq!(lease.stock(), None);
    assert_eq!(lease.fence(), Fence(1));
}

pub(super) async fn a_clean_count_is_handed_on(kind: Kind) {
    let under = kind.with(LONG).await;
    let mut first = under.lease(&Token::random()).await;
    first.reload(ledger_says(&first, 10)).await.expect("it is held");
    assert_eq!(first.stock(), Some(10));
    let fence = first.fence();
    first.release(Ending::Clean { taken: 3 }).await.expect("it is held");

    let next = under.lease(&Token::random()).await;
    assert_eq!(next.stock(), Some(7));
    assert!(next.fence() > fence);
}

pub(super) async fn an_empty_segment_is_not_leased(kind: Kind) {
    let under = kind.with(LONG).await;
    under.stock(2).await;
    let lease = under.lease(&Token::random()).await;
    lease.release(Ending::Clean { taken: 2 }).await.expect("it is held");
    let before = under.inspect().await;
    // The second one would find it busy, had the first one leased it.
    for _ in 0..2 {
        let acquired = under.acquire(&Token::random()).await;
        assert!(matches!(acquired, Acquired::Empty), "{acquired:?}");
    }
    assert_eq!(under.inspect().await, before);
}

pub(super) async fn a_dirty_release_needs_a_reload(kind: Kind) {
    let under = kind.with(LONG).await;
    under.stock(10).await;
    let lease = under.lease(&Token::random()).await;
    assert_eq!(lease.stock(), Some(10));
    lease.release(Ending::Dirty).await.expect("it is held");

    let mut next = under.lease(&Token::random()).await;
    assert_eq!(next.stock(), None);
    next.reload(ledger_says(&next, 4)).await.expect("it is held");
    next.release(Ending::Clean { taken: 1 }).await.expect("it is held");
    assert_eq!(under.lease(&Token::random()).await.stock(), Some(3));
}

pub(super) async fn a_clean_release_without_a_reload_stays_dirty(kind: Kind) {
    let under = kind.with(LONG).await;
    for trust in [Trust::Count, Trust::LedgerOnly] {
        let lease = leased(under.acquire_with(&Token::random(), trust).await);
        assert_eq!(lease.stock(), None);
        let ending = Ending::Clean { taken: 0 };
        lease.release(ending).await.expect("it is held");
        assert_eq!(under.lease_and_release_dirty().await, None);
        under.stock(5).await;
    }
}

pub(super) async fn an_untrusted_count_needs_a_reload(kind: Kind) {
    let under = kind.with(LONG).await;
    under.stock(10).await;
    let token = Token::random();
    let mut lease = leased(under.acquire_with(&token, Trust::LedgerOnly).await);
    assert_eq!(lease.stock(), None);
    // Once reloaded, it is the ledger's count that a repeated try gets.
    let reloaded = ledger_says(&lease, 12);
    lease.reload(reloaded).await.expect("it is held");
    let again = leased(under.acquire_with(&token, Trust::LedgerOnly).await);
    assert_eq!(again.stock(), Some(12));
}

pub(super) async fn an_untrusted_empty_segment_is_leased(kind: Kind) {
    let under = kind.with(LONG).await;
    under.stock(0).await;
    let acquired = under.acquire(&Token::random()).await;
    assert!(matches!(acquired, Acquired::Empty), "{acquired:?}");
    let mut lease = leased(under.acquire_with(&Token::random(), Trust::LedgerOnly).await);
    assert_eq!(lease.stock(), None);
    let reloaded = ledger_says(&lease, 5);
    lease.reload(reloaded).await.expect("it is held");
    lease.release(Ending::Clean { taken: 0 }).await.expect("it is held");
    assert_eq!(under.lease(&Token::random()).await.stock(), Some(5));
}

pub(super) async fn added_units_raise_the_count(kind: Kind) {
    let under = kind.with(LONG).await;
    under.stock(10).await;
    // More added than taken, fewer added than taken, and units that come without an order.
    for (added, taken, left) in [(5, 2, 13), (1, 4, 10), (3, 0, 13)] {
        let mut lease = under.lease(&Token::random()).await;
        let before = lease.stock().expect("it is clean");
        lease.add(added);
        assert_eq!(lease.stock(), Some(before + added));
        lease.release(Ending::Clean { taken }).await.expect("it is held");
        assert_eq!(under.inspect().await.map(|held| held.stock), Some(left));
    }
    let lease = under.lease(&Token::random()).await;
    lease.release(Ending::Clean { taken: -7 }).await.expect("it is held");
    assert_eq!(under.lease(&Token::random()).await.stock(), Some(20));
}

pub(super) async fn every_lease_has_a_higher_fence(kind: Kind) {
    let under = kind.with(LONG).await;
    let mut highest = Fence(0);
    for turn in 0..5 {
        let mut lease = under.lease(&Token::random()).await;
        assert!(lease.fence() > highest, "turn {turn}");
        highest = lease.fence();
        // However a lease ends, and whether it reloads or not.
        if turn % 2 == 1 {
            let reloaded = ledger_says(&lease, 10);
            lease.reload(reloaded).await.expect("it is held");
            assert_eq!(lease.fence(), Fence(highest.0 + Fence::RELOAD_STRIDE));
            highest = lease.fence();
        }
        let ending = match turn {
            2 => Ending::Dirty,
            _ => Ending::Clean { taken: 1 },
        };
        lease.release(ending).await.expect("it is held");
    }
}

pub(super) async fn a_reload_carries_the_fence_and_the_epoch_on(kind: Kind) {
    let under = kind.with(LONG).await;
    let mut lease = under.lease(&Token::random()).await;
    let reloaded = Reloaded { stock: 10, fence: lease.fence().after_reload(Fence(700)), epoch: Epoch(3) };
    lease.reload(reloaded).await.expect("it is held");
    assert_eq!((lease.fence(), lease.epoch()), (reloaded.fence, Epoch(3)));
    lease.release(Ending::Clean { taken: 0 }).await.expect("it is held");

    let next = under.lease(&Token::random()).await;
    assert_eq!((next.fence(), next.epoch()), (reloaded.fence.next(), Epoch(3)));
}

pub(super) async fn fences_grow_past_the_ledgers_after_everything_is_forgotten(kind: Kind) {
    let under = kind.with(LONG).await;
    // The ledger has heard of fences that the guard knows nothing of any more.
    let ledgers = Fence(5 * Fence::RELOAD_STRIDE);
    let mut lease = under.lease(&Token::random()).await;
    assert!(lease.fence() < ledgers);
    let reloaded = Reloaded { stock: 10, fence: lease.fence().after_reload(ledgers), epoch: Epoch(0) };
    lease.reload(reloaded).await.expect("it is held");
    assert!(lease.fence() > ledgers);
    lease.release(Ending::Clean { taken: 0 }).await.expect("it is held");
    assert!(under.lease(&Token::random()).await.fence() > reloaded.fence);
}

pub(super) async fn what_is_held_can_be_inspected(kind: Kind) {
    let under = kind.with(SHORT).await;
    assert_eq!(under.inspect().await, None);
    let mut lease = under.lease(&Token::random()).await;
    assert_eq!(under.inspect().await, None, "the stock is not known yet");

    let reloaded = ledger_says(&lease, 10);
    lease.reload(reloaded).await.expect("it is held");
    let held = |stock, fence, settled| Some(GuardedStock { stock, fence, settled });
    assert_eq!(under.inspect().await, held(10, reloaded.fence, false));
    lease.release(Ending::Clean { taken: 4 }).await.expect("it is held");
    assert_eq!(under.inspect().await, held(6, reloaded.fence, true));

    let lease = under.lease(&Token::random()).await;
    let second = lease.fence();
    assert_eq!(under.inspect().await, held(6, second, false));
    lease.release(Ending::Dirty).await.expect("it is held");
    assert_eq!(under.inspect().await, held(6, second, false));

    under.stock(6).await;
    assert!(under.inspect().await.is_some_and(|held| held.settled));
    drop(under.lease(&Token::random()).await);
    let unsettled = under.lease_after_expiry(&Token::random()).await;
    let left = under.inspect().await;
    assert_eq!(left, held(6, unsettled.fence(), false));
}
