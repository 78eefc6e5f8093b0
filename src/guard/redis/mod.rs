//! The guard of the service: leases in one Redis.
//!
//! A lease is the field's usual lock (`SET NX PX` with a random token, compare-and-delete release, a watchdog) plus a
//! fence and the segment's stock, all in one script and one trip. Scripts are files in `scripts/`; each says its keys,
//! arguments, replies and rules.

mod connect;
mod keys;
mod pool;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use deadpool_redis::redis::{self, FromRedisValue, RedisError, Script, ScriptInvocation, Value};

pub use connect::{ConnectError, Options};

use self::keys::Keys;
use self::pool::Pool;
use super::lease::Held;
use super::{Acquired, Ending, Guard, GuardError, Lease, Released, Token, Trust};
use crate::domain::invariants::GuardedStock;
use crate::domain::{Epoch, Fence, Reloaded, Segment};

/// Segments leased in one Redis.
pub struct RedisGuard {
    redis: Arc<Redis>,
    time_limit: Duration,
}

/// What the guard and its leases share.
struct Redis {
    pool: Pool,
    scripts: Scripts,
}

/// Hashed once.
struct Scripts {
    acquire: Script,
    release: Script,
    renew: Script,
    reload: Script,
}

impl Scripts {
    fn new() -> Self {
        Self {
            acquire: Script::new(include_str!("scripts/acquire.lua")),
            release: Script::new(include_str!("scripts/release.lua")),
            renew: Script::new(include_str!("scripts/renew.lua")),
            reload: Script::new(include_str!("scripts/reload.lua")),
        }
    }
}

#[async_trait]
impl Guard for RedisGuard {
    async fn acquire(&self, segment: &Segment, token: &Token, trust: Trust) -> Result<Acquired, GuardError> {
        let held = HeldInRedis { redis: Arc::clone(&self.redis), keys: Keys::of(segment), token: token.clone() };
        let mut call = self.redis.scripts.acquire.key(&held.keys.lock);
        call.key(&held.keys.state)
            .arg(token.as_str())
            .arg(self.time_limit.as_millis() as u64)
            .arg(u8::from(trust == Trust::LedgerOnly));
        let (asked_at, reply) = self
            .redis
            .pool
            .run(async |connection| {
                // The lease's time runs from here: later than the wait for a connection, earlier than Redis's own clock.
                let asked_at = Instant::now();
                let mut reply: Vec<Value> = call.invoke_async(connection).await?;
                let verdict: String = redis::from_redis_value(reply.remove(0))?;
                Ok((asked_at, (verdict, reply)))
            })
            .await?;
        match read_reply(reply).map_err(GuardError::new)? {
            Reply::Busy { remaining } => Ok(Acquired::Busy { remaining }),
            Reply::Empty => Ok(Acquired::Empty),
            Reply::Leased(seen) => Ok(Acquired::Leased(Lease::new(Box::new(held), seen, asked_at, self.time_limit))),
        }
    }

    async fn inspect(&self, segment: &Segment) -> Result<Option<GuardedStock>, GuardError> {
        let keys = Keys::of(segment);
        let mut pipeline = redis::pipe();
        pipeline.atomic().cmd("HMGET").arg(&keys.state).arg(&["stock", "fence", "dirty"]).exists(&keys.lock);
        type Row = ((Option<i64>, Option<i64>, Option<String>), bool);
        let ((stock, fence, dirty), leased): Row =
            self.redis.pool.run(async |connection| pipeline.query_async(connection).await).await?;
        Ok(stock.zip(fence).map(|(stock, fence)| GuardedStock {
            stock,
            fence: Fence(fence),
            settled: dirty.is_none() && !leased,
        }))
    }

    async fn ping(&self) -> Result<(), GuardError> {
        self.redis.pool.run(async |connection| redis::cmd("PING").exec_async(connection).await).await
    }
}

enum Reply {
    Leased((Fence, Epoch, Option<u64>)),
    Empty,
    Busy { remaining: Duration },
}

/// Reads what `acquire.lua` documents.
fn read_reply((verdict, rest): (String, Vec<Value>)) -> Result<Reply, RedisError> {
    let mut numbers = rest.into_iter().map(redis::from_redis_value::<i64>);
    let mut number = || numbers.next().transpose().map(Option::unwrap_or_default);
    match verdict.as_str() {
        "leased" => {
            let (fence, epoch, stock) = (number()?, number()?, number()?);
            Ok(Reply::Leased((Fence(fence), Epoch(epoch), u64::try_from(stock).ok())))
        }
        "empty" => Ok(Reply::Empty),
        _ => Ok(Reply::Busy { remaining: Duration::from_millis(number()?.unsigned_abs()) }),
    }
}

/// The holder's side.
struct HeldInRedis {
    redis: Arc<Redis>,
    keys: Keys,
    token: Token,
}

impl HeldInRedis {
    /// Runs a script of the holder.
    ///
    /// The connection may be gone while Redis is well. Every script may run twice (R11), a lease that is renewed no more
    /// is lost to its work, and a segment that nobody gives back is closed to everybody for the rest of its time limit:
    /// worth one more try.
    async fn insist<T: FromRedisValue>(&self, call: ScriptInvocation<'_>) -> Result<T, GuardError> {
        let pool = &self.redis.pool;
        match pool.run(async |connection| call.invoke_async(connection).await).await {
            Ok(reply) => Ok(reply),
            Err(_first) => pool.run(async |connection| call.invoke_async(connection).await).await,
        }
    }
}

#[async_trait]
impl Held for HeldInRedis {
    async fn renew(&mut self, time_limit: Duration) -> Result<bool, GuardError> {
        let mut call = self.redis.scripts.renew.key(&self.keys.lock);
        call.arg(self.token.as_str()).arg(time_limit.as_millis() as u64);
        self.insist(call).await
    }

    async fn reload(&mut self, reloaded: &Reloaded) -> Result<bool, GuardError> {
        let mut call = self.redis.scripts.reload.key(&self.keys.lock);
        call.key(&self.keys.state)
            .arg(self.token.as_str())
            .arg(reloaded.stock)
            .arg(reloaded.fence.0)
            .arg(reloaded.epoch.0);
        self.insist(call).await
    }

    async fn release(self: Box<Self>, ending: Ending) -> Result<Option<Released>, GuardError> {
        let (verdict, change) = match ending {
            Ending::Clean { taken } => ("clean", -taken),
            Ending::Dirty => ("dirty", 0),
        };
        let mut call = self.redis.scripts.release.key(&self.keys.lock);
        call.key(&self.keys.state).arg(self.token.as_str()).arg(verdict).arg(change);
        let reply: u8 = self.insist(call).await?;
        Ok((reply > 0).then_some(Released { wanted: reply == 2 }))
    }
}
