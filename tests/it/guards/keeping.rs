//! The watchdog: a lease lasts as long as the work under it, and no longer.

use std::time::Instant;

use segstock::guard::{Acquired, Ending, LeaseError, Token};

use super::under::{Kind, SHORT, SOON, Under, ledger_says};
use crate::harness::wait::eventually;

/// Goes on for several time limits, and sees to it that nobody else gets the segment meanwhile.
async fn long_work(under: &Under) {
    let stranger = Token::random();
    let start = Instant::now();
    eventually("four time limits have passed", SOON, async || {
        let acquired = under.acquire(&stranger).await;
        assert!(
            matches!(acquired, Acquired::Busy { remaining } if remaining <= SHORT),
            "after {:?}: {acquired:?}",
            start.elapsed()
        );
        (start.elapsed() > SHORT * 4).then_some(())
    })
    .await;
}

pub(super) async fn long_work_keeps_the_lease(kind: Kind) {
    let under = kind.with(SHORT).await;
    under.stock(10).await;
    let mut lease = under.lease(&Token::random()).await;
    lease.keep_during(long_work(&under)).await;
    assert!(lease.remaining().is_some());
    lease.release(Ending::Clean { taken: 1 }).await.expect("it is held");
    let next = under.lease(&Token::random()).await;
    assert_eq!(next.stock(), Some(9), "it never ran out, so it was clean");
}

pub(super) async fn nothing_renews_after_the_work(kind: Kind) {
    let under = kind.with(SHORT).await;
    for _ in 0..20 {
        let mut lease = under.lease(&Token::random()).await;
        assert_eq!(lease.keep_during(async { 7 }).await, 7);
        lease.release(Ending::Dirty).await.expect("it is held");
    }
    let mut lease = under.lease(&Token::random()).await;
    lease.keep_during(tokio::time::sleep(SHORT / 2)).await;
    // Not released: what was renewed during the work ends by itself.
    under.lease_after_expiry(&Token::random()).await;
    assert_eq!(lease.remaining(), None);
}

pub(super) async fn interrupted_work_renews_nothing(kind: Kind) {
    let under = kind.with(SHORT).await;
    let mut lease = under.lease(&Token::random()).await;
    let work = lease.keep_during(std::future::pending::<()>());
    tokio::time::timeout(SHORT * 2, work).await.expect_err("it never ends");
    under.busy_for().await;
    drop(lease);
    under.lease_after_expiry(&Token::random()).await;
}

pub(super) async fn a_loss_lets_the_work_complete(kind: Kind) {
    let under = kind.with(SHORT).await;
    under.stock(10).await;
    let mut lease = under.lease(&Token::random()).await;
    let work = async {
        under.take_lease_away().await;
        // Somebody else's whole lease passes: time enough for the watchdog to find out.
        let other = under.lease(&Token::random()).await;
        let last = under.lease_after_expiry(&Token::random()).await;
        drop(other);
        (last, "done")
    };
    let (last, done) = lease.keep_during(work).await;
    assert_eq!(done, "done");
    assert_eq!(lease.remaining(), None, "its holder is told");
    let ending = lease.release(Ending::Clean { taken: 5 }).await;
    assert!(matches!(ending, Err(LeaseError::Lost)));
    last.release(Ending::Dirty).await.expect("it is untouched");
}

pub(super) async fn after_a_loss_the_next_lease_is_kept_again(kind: Kind) {
    let under = kind.with(SHORT).await;
    let token = Token::random();
    let mut lease = under.lease(&token).await;
    lease.keep_during(under.take_lease_away()).await;
    let ending = lease.release(Ending::Dirty).await;
    assert!(matches!(ending, Err(LeaseError::Lost)));

    let mut lease = under.lease(&token).await;
    let reloaded = ledger_says(&lease, 10);
    lease.reload(reloaded).await.expect("it is held");
    lease.keep_during(long_work(&under)).await;
    lease.release(Ending::Clean { taken: 0 }).await.expect("it is held");
}
