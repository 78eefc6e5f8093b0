//! Finding the orders that requests repeat, when there is nothing to settle for them.
//!
//! Whatever waits is looked up with one statement: a storm of retries after the sell-out costs the ledger one question
//! at a time, not one each.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::waiting::KnownOrders;
use crate::domain::{Order, OrderKey};
use crate::ledger::Ledger;

/// Requests that may wait for a look-up.
const CAPACITY: usize = 16_384;
/// Keys in one statement.
const MAX_BATCH: usize = 512;

type Question = (OrderKey, oneshot::Sender<Result<Option<Order>, NoAnswer>>);

/// Why a key could not be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// Too many are looked up already.
    Overloaded,
    /// The ledger does not answer.
    Unavailable,
}

/// Asks for orders by their keys, many at a time.
pub(super) struct Replays(mpsc::Sender<Question>);

impl Replays {
    /// Starts the task that asks; it ends when this is dropped.
    pub(super) fn start(ledger: Arc<dyn Ledger>) -> Self {
        let (sender, mut questions) = mpsc::channel::<Question>(CAPACITY);
        tokio::spawn(async move {
            let mut batch = Vec::with_capacity(MAX_BATCH);
            while questions.recv_many(&mut batch, MAX_BATCH).await > 0 {
                batch.retain(|(_, answer)| !answer.is_closed());
                if batch.is_empty() {
                    continue;
                }
                let keys: Vec<OrderKey> = batch.iter().map(|(key, _)| *key).collect();
                let known = ledger.settled_orders(&[], &keys).await.map(KnownOrders::new);
                if let Err(error) = &known {
                    tracing::warn!(error = error as &dyn Error, "repeated orders could not be looked up");
                }
                for (key, answer) in batch.drain(..) {
                    let found = match &known {
                        Ok(known) => Ok(known.by_key(&key).cloned()),
                        Err(_) => Err(NoAnswer::Unavailable),
                    };
                    let _gone = answer.send(found);
                }
            }
        });
        Self(sender)
    }

    /// The order that was placed under this key; waits for an answer no longer than `patience`.
    pub(super) async fn find(&self, key: OrderKey, patience: Duration) -> Result<Option<Order>, NoAnswer> {
        let (answer, found) = oneshot::channel();
        self.0.try_send((key, answer)).map_err(|_| NoAnswer::Overloaded)?;
        match tokio::time::timeout(patience, found).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => Err(NoAnswer::Unavailable),
        }
    }
}
