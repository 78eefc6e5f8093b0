//! Refusing orders for want of stock: only the ledger may (R9).
//!
//! Orders come here when no segment is believed to have enough for them. One look into the ledger decides for all of
//! them: what is there already is answered with its order, what cannot be served is refused, and where the ledger has
//! units after all, the orders go back and the segments that hold them are reloaded.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use super::claim::{Claim, Look, Winners};
use super::on_sale::OnSale;
use super::outcome::Refusal;
use super::pace::Stores;
use super::round::answer_known;
use super::waiting::Waiting;
use crate::domain::SegmentStock;

/// Keys read from the ledger at a time.
const PAGE: u32 = 10_000;
/// Sets of winners beyond this are not kept: their retries ask the ledger, one by one. 8 bytes each.
const MOST_WINNERS: usize = 4_000_000;

/// What a look into the ledger brought.
pub(super) struct Judgement {
    /// The segments as the ledger has them; none when it did not answer.
    pub(super) segments: Vec<SegmentStock>,
    /// Orders that may be served after all, or that nobody could judge, in arrival order.
    pub(super) returned: Vec<Waiting>,
    /// How the stores did.
    pub(super) stores: Stores,
}

/// Looks into the ledger, publishes the look, and answers whom it settles.
pub(super) async fn judge(on_sale: Arc<OnSale>, orders: Vec<Waiting>) -> Judgement {
    let taken_at = Instant::now();
    let segments = match on_sale.house.ledger.segments(on_sale.product.id).await {
        Ok(segments) => segments,
        Err(error) => {
            let sku = &on_sale.product.sku;
            tracing::warn!(%sku, error = &error as &dyn Error, "the ledger could not be asked what is left");
            return Judgement { segments: Vec::new(), returned: orders, stores: Stores::Failed };
        }
    };
    let remaining = segments.iter().map(SegmentStock::available).sum();
    publish(&on_sale.claim, &segments, remaining, taken_at);

    // After the look, not before: whoever took the units that are missing has committed by now, and is found.
    let (may_be_known, new): (Vec<_>, Vec<_>) = orders.into_iter().partition(Waiting::may_be_known);
    let known = answer_known(&on_sale, may_be_known).await;
    let stores = known.stores();
    let mut returned = known.unasked;
    // An order in doubt comes here only once the segment that it may have been settled on was leased again, and so
    // reloaded: its statement has been committed, and is found above, or never will be.
    for order in new.into_iter().chain(known.absent) {
        match Refusal::for_want_of_stock(order.asked.quantity, remaining) {
            Some(refusal) => order.answer(on_sale.refuse(refusal)),
            None => returned.push(order),
        }
    }
    Judgement { segments, returned, stores }
}

/// Reads the keys of everybody who has an order, once nothing is left and the set is final.
///
/// Returns nothing when they are known already or cannot be read.
pub(super) async fn load_winners(on_sale: Arc<OnSale>) -> Option<Winners> {
    let look = on_sale.claim.last().filter(|look| look.wants_winners())?;
    let mut fingerprints = Vec::new();
    let mut after = None;
    loop {
        let page = on_sale.house.ledger.order_keys(on_sale.product.id, after, PAGE).await.ok()?;
        fingerprints.extend(page.iter().map(|(_, key)| key.fingerprint()));
        if fingerprints.len() > MOST_WINNERS {
            return Some(Winners::TooMany { fences: look.fences });
        }
        match page.last() {
            Some((id, _)) if page.len() == PAGE as usize => after = Some(*id),
            _ => break,
        }
    }
    fingerprints.sort_unstable();
    Some(Winners::Known { fences: look.fences, fingerprints: fingerprints.into() })
}

fn publish(claim: &Claim, segments: &[SegmentStock], remaining: u64, taken_at: Instant) {
    let fences = segments.iter().map(|segment| segment.fence.0).sum();
    // No fence has moved: no order has come or gone, and the winners are the same.
    let same = claim.last().filter(|last| last.remaining == remaining && last.fences == fences);
    let winners = same.and_then(|last| last.winners.clone());
    claim.publish(Look::new(remaining, fences, winners, taken_at));
}
