//! The guard of the embedded default: locks and counts in the process's own memory.
//!
//! It keeps the same rules as the Redis scripts, time limit included, so that it can stand in for them in tests and
//! show the upper bound in comparisons. After a restart it knows nothing, and every segment is reloaded when first used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::lease::Held;
use super::{Acquired, Ending, Guard, GuardError, Lease, Released, Token, Trust};
use crate::domain::invariants::GuardedStock;
use crate::domain::{Epoch, Fence, Reloaded, Segment};

/// Segments leased within one process.
pub struct MemoryGuard {
    time_limit: Duration,
    segments: Mutex<HashMap<Segment, Arc<Mutex<State>>>>,
}

#[derive(Default)]
struct State {
    lock: Option<Lock>,
    stock: Option<i64>,
    fence: Option<Fence>,
    epoch: Option<Epoch>,
    dirty: Dirty,
    /// Somebody asked for the segment while it was leased.
    wanted: bool,
}

struct Lock {
    token: Token,
    expires_at: Instant,
}

/// Whether the count can be trusted.
#[derive(Default, PartialEq)]
enum Dirty {
    /// By everybody.
    #[default]
    No,
    /// By the holder of this token.
    KnownTo(Token),
    /// By nobody.
    Yes,
}

impl State {
    fn holder(&self, now: Instant) -> Option<&Lock> {
        self.lock.as_ref().filter(|lock| lock.expires_at > now)
    }

    fn is_held_by(&self, token: &Token) -> bool {
        self.holder(Instant::now()).is_some_and(|lock| lock.token == *token)
    }
}

impl MemoryGuard {
    /// A guard whose leases last for `time_limit` unless they are renewed.
    pub fn new(time_limit: Duration) -> Self {
        Self { time_limit, segments: Mutex::default() }
    }

    /// Forgets everything, as a flushed Redis does.
    pub fn forget(&self) {
        for state in lock(&self.segments).values() {
            *lock(state) = State::default();
        }
    }

    fn state(&self, segment: &Segment) -> Arc<Mutex<State>> {
        let mut segments = lock(&self.segments);
        match segments.get(segment) {
            Some(state) => Arc::clone(state),
            None => Arc::clone(segments.entry(segment.clone()).or_default()),
        }
    }
}

/// A panic while the lock is held leaves a state that the next holder reloads, at worst.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Guard for MemoryGuard {
    async fn acquire(&self, segment: &Segment, token: &Token, trust: Trust) -> Result<Acquired, GuardError> {
        let shared = self.state(segment);
        let now = Instant::now();
        let mut state = lock(&shared);
        let again = match state.holder(now) {
            Some(held) if held.token != *token => {
                let remaining = held.expires_at - now;
                state.wanted = true;
                return Ok(Acquired::Busy { remaining });
            }
            holder => holder.is_some(),
        };
        if !again {
            let known = state.stock.is_some() && state.epoch.is_some() && trust == Trust::Count;
            let clean = known && state.dirty == Dirty::No;
            if clean && state.stock == Some(0) {
                return Ok(Acquired::Empty);
            }
            state.fence = Some(state.fence.unwrap_or(Fence(0)).next());
            state.dirty = if clean { Dirty::KnownTo(token.clone()) } else { Dirty::Yes };
        }
        state.lock = Some(Lock { token: token.clone(), expires_at: now + self.time_limit });
        let trusted = state.dirty == Dirty::KnownTo(token.clone());
        let stock = state.stock.filter(|_| trusted).and_then(|stock| u64::try_from(stock).ok());
        let seen = (state.fence.unwrap_or(Fence(0)), state.epoch.unwrap_or(Epoch(0)), stock);
        let held = Box::new(HeldInMemory { token: token.clone(), state: Arc::clone(&shared) });
        Ok(Acquired::Leased(Lease::new(held, seen, now, self.time_limit)))
    }

    async fn inspect(&self, segment: &Segment) -> Result<Option<GuardedStock>, GuardError> {
        let shared = self.state(segment);
        let state = lock(&shared);
        let settled = state.dirty == Dirty::No && state.holder(Instant::now()).is_none();
        Ok(state.stock.zip(state.fence).map(|(stock, fence)| GuardedStock { stock, fence, settled }))
    }

    async fn ping(&self) -> Result<(), GuardError> {
        Ok(())
    }
}

struct HeldInMemory {
    token: Token,
    state: Arc<Mutex<State>>,
}

impl HeldInMemory {
    /// Changes the state if the token still holds it; says whether it did.
    fn if_mine(&self, change: impl FnOnce(&mut State, &Token)) -> bool {
        let mut state = lock(&self.state);
        let mine = state.is_held_by(&self.token);
        if mine {
            change(&mut state, &self.token);
        }
        mine
    }
}

#[async_trait]
impl Held for HeldInMemory {
    async fn renew(&mut self, time_limit: Duration) -> Result<bool, GuardError> {
        Ok(self.if_mine(|state, _| {
            if let Some(lock) = &mut state.lock {
                lock.expires_at = Instant::now() + time_limit;
            }
        }))
    }

    async fn reload(&mut self, reloaded: &Reloaded) -> Result<bool, GuardError> {
        let stock = i64::try_from(reloaded.stock).map_err(GuardError::new)?;
        Ok(self.if_mine(|state, token| {
            state.stock = Some(stock);
            state.fence = Some(reloaded.fence);
            state.epoch = Some(reloaded.epoch);
            state.dirty = Dirty::KnownTo(token.clone());
        }))
    }

    async fn release(self: Box<Self>, ending: Ending) -> Result<Option<Released>, GuardError> {
        let mut wanted = false;
        let mine = self.if_mine(|state, token| {
            if let (Ending::Clean { taken }, Some(stock)) = (ending, &mut state.stock)
                && state.dirty == Dirty::KnownTo(token.clone())
            {
                *stock -= taken;
                state.dirty = Dirty::No;
            }
            state.lock = None;
            wanted = std::mem::take(&mut state.wanted);
        });
        Ok(mine.then_some(Released { wanted }))
    }
}
