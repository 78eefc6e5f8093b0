//! Who holds a segment, for how long, and what everybody else cannot do meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use segstock::guard::{Acquired, Ending, Lease, LeaseError, Token};

use super::under::{Kind, LONG, SHORT, SOON, Under, ledger_says, unseen_segment};
use crate::harness::wait::eventually;

pub(super) async fn a_held_segment_is_busy(kind: Kind) {
    let under = kind.with(LONG).await;
    let lease = under.lease(&Token::random()).await;
    let remaining = under.busy_for().await;
    assert!(!remaining.is_zero() && remaining <= LONG, "{remaining:?}");
    let mine = lease.remaining().expect("it is not lost");
    assert!(mine <= LONG, "{mine:?}");
}

pub(super) async fn segments_are_leased_apart(kind: Kind) {
    let mut under = kind.with(LONG).await;
    under.stock(5).await;
    let token = Token::random();
    let one = under.lease(&token).await;
    // Another segment of the same product, and then another product's.
    under.segment.index += 1;
    let other = under.lease(&token).await;
    assert_eq!((one.stock(), other.stock()), (Some(5), None));
    under.segment = unseen_segment();
    assert_eq!(under.lease(&Token::random()).await.stock(), None);
}

pub(super) async fn a_released_segment_can_be_leased_at_once(kind: Kind) {
    let under = kind.with(LONG).await;
    under.stock(5).await;
    for ending in [Ending::Clean { taken: 1 }, Ending::Dirty] {
        let lease = under.lease(&Token::random()).await;
        lease.release(ending).await.expect("it is held");
    }
    under.lease(&Token::random()).await;
}

/// Tries everything that a lease can do, in the name of a holder who holds it no more.
async fn assert_lost(mut lease: Lease) {
    let reloaded = ledger_says(&lease, 1_000);
    assert!(matches!(lease.renew().await, Err(LeaseError::Lost)));
    assert_eq!(lease.remaining(), None, "it knows of its loss");
    assert!(matches!(lease.reload(reloaded).await, Err(LeaseError::Lost)));
    let ending = Ending::Clean { taken: 3 };
    assert!(matches!(lease.release(ending).await, Err(LeaseError::Lost)));
}

pub(super) async fn an_overtaken_holder_changes_nothing(kind: Kind) {
    let under = kind.with(SHORT).await;
    under.stock(10).await;
    let old = under.lease(&Token::random()).await;
    let mut new = under.lease_after_expiry(&Token::random()).await;
    new.reload(ledger_says(&new, 8)).await.expect("it is held");

    let watching = async {
        let before = under.inspect().await.expect("it was reloaded");
        assert_lost(old).await;
        assert_eq!(under.inspect().await, Some(before));
        under.busy_for().await;
    };
    new.keep_during(watching).await;
    new.release(Ending::Clean { taken: 2 }).await.expect("it is held");
    let next = under.lease(&Token::random()).await;
    assert_eq!(next.stock(), Some(6));
}

pub(super) async fn a_stranger_cannot_release(kind: Kind) {
    let under = kind.with(LONG).await;
    under.stock(10).await;
    let stranger = under.lease(&Token::random()).await;
    under.take_lease_away().await;
    let holder = under.lease(&Token::random()).await;
    let ending = stranger.release(Ending::Dirty).await;
    assert!(matches!(ending, Err(LeaseError::Lost)));
    under.busy_for().await;
    holder.release(Ending::Dirty).await.expect("it is held");
}

pub(super) async fn a_lease_ends_with_its_time_limit(kind: Kind) {
    let under = kind.with(SHORT).await;
    under.stock(10).await;
    let old = under.lease(&Token::random()).await;
    assert_eq!(old.stock(), Some(10));
    let new = under.lease_after_expiry(&Token::random()).await;
    // The old holder was asked no earlier than the new one was let in.
    assert_eq!(old.remaining(), None);
    assert_eq!(new.stock(), None, "nobody knows what the old holder did");
    assert!(new.fence() > old.fence());
}

/// Waits until less than half of the time limit is left.
async fn let_half_pass(under: &Under) {
    eventually("half of the time limit passes", SOON, async || (under.busy_for().await < SHORT * 2).then_some(()))
        .await;
}

pub(super) async fn renewing_starts_the_time_limit_anew(kind: Kind) {
    let under = kind.with(SHORT * 4).await;
    let mut lease = under.lease(&Token::random()).await;
    let_half_pass(&under).await;
    lease.renew().await.expect("it is held");
    assert!(lease.remaining() > Some(SHORT * 2));
    assert!(under.busy_for().await > SHORT * 2);
}

pub(super) async fn an_expired_lease_cannot_be_renewed(kind: Kind) {
    let under = kind.with(SHORT).await;
    let lease = under.lease(&Token::random()).await;
    eventually("the time limit passes", SOON, async || lease.remaining().is_none().then_some(())).await;
    // Redis lets go a little later: it counts from when it was asked.
    let new = under.lease_after_expiry(&Token::random()).await;
    new.release(Ending::Dirty).await.expect("it is held");
    assert_lost(lease).await;
}

pub(super) async fn the_same_token_gets_the_same_lease_again(kind: Kind) {
    let under = kind.with(LONG).await;
    let token = Token::random();
    let mut first = under.lease(&token).await;
    let again = under.lease(&token).await;
    assert_eq!((again.fence(), again.stock()), (first.fence(), None));

    first.reload(ledger_says(&first, 10)).await.expect("it is held");
    let again = under.lease(&token).await;
    assert_eq!((again.fence(), again.stock()), (first.fence(), Some(10)));
    again.release(Ending::Clean { taken: 1 }).await.expect("it is held");

    // Of a segment that was clean, too.
    let first = under.lease(&token).await;
    let again = under.lease(&token).await;
    assert_eq!((again.fence(), again.stock()), (first.fence(), Some(9)));
}

pub(super) async fn the_same_token_starts_the_time_limit_anew(kind: Kind) {
    let under = kind.with(SHORT * 4).await;
    let token = Token::random();
    under.lease(&token).await;
    let_half_pass(&under).await;
    under.lease(&token).await;
    assert!(under.busy_for().await > SHORT * 2);
}

pub(super) async fn an_expired_token_is_a_stranger(kind: Kind) {
    let under = kind.with(SHORT).await;
    under.stock(10).await;
    let token = Token::random();
    let old = under.lease(&token).await;
    eventually("the time limit passes", SOON, async || match under.acquire(&Token::random()).await {
        Acquired::Leased(other) => Some(other),
        _ => None,
    })
    .await
    .release(Ending::Dirty)
    .await
    .expect("it is held");
    let new = under.lease(&token).await;
    assert!(new.fence() > old.fence());
    assert_eq!(new.stock(), None, "another holder came in between");
}

pub(super) async fn a_second_release_changes_nothing(kind: Kind) {
    let under = kind.with(LONG).await;
    under.stock(10).await;
    let token = Token::random();
    let (first, second) = (under.lease(&token).await, under.lease(&token).await);
    let ending = Ending::Clean { taken: 4 };
    first.release(ending).await.expect("it is held");
    let released = under.inspect().await;
    assert!(matches!(second.release(ending).await, Err(LeaseError::Lost)));
    assert_eq!(under.inspect().await, released);
    assert_eq!(under.lease(&Token::random()).await.stock(), Some(6));
}

pub(super) async fn one_of_a_hundred_contenders_wins(kind: Kind) {
    let under = Arc::new(kind.with(LONG).await);
    under.stock(10).await;
    for turn in 0..3 {
        let contenders = (0..100).map(|_| {
            let under = Arc::clone(&under);
            tokio::spawn(async move { under.acquire(&Token::random()).await })
        });
        let mut winners = Vec::new();
        for acquired in join_all(contenders).await {
            match acquired.expect("no panic") {
                Acquired::Leased(lease) => winners.push(lease),
                Acquired::Busy { .. } => {}
                Acquired::Empty => panic!("there is stock"),
            }
        }
        assert_eq!(winners.len(), 1, "turn {turn}");
        let winner = winners.remove(0);
        assert_eq!(winner.stock(), Some(10 - turn));
        winner.release(Ending::Clean { taken: 1 }).await.expect("it is held");
    }
}

pub(super) async fn many_holders_lose_no_unit(kind: Kind) {
    const HOLDERS: u64 = 200;
    let under = kind.with(LONG).await;
    under.stock(HOLDERS + 1).await;
    let inside = AtomicBool::new(false);
    join_all((0..HOLDERS).map(async |_| {
        let token = Token::random();
        let lease = eventually("the segment is free", SOON, async || match under.acquire(&token).await {
            Acquired::Leased(lease) => Some(lease),
            _ => None,
        })
        .await;
        assert!(!inside.swap(true, Ordering::SeqCst), "two holders at once");
        tokio::task::yield_now().await;
        inside.store(false, Ordering::SeqCst);
        let ending = Ending::Clean { taken: 1 };
        lease.release(ending).await.expect("it is held");
    }))
    .await;
    assert_eq!(under.lease(&Token::random()).await.stock(), Some(1));
}
