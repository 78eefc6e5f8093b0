//! One thread of the generator: its share of the connections, and what they are answered.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::buyers::{Ask, Buyers};
use super::connection::{Answer, Connection, NoAnswer, Unreachable};
use super::schedule::Schedule;
use super::tally::{Outcome, Sold, Tally};
use crate::config::LoadOptions;

/// After a connection broke, before the next request on it.
const RECONNECT_PAUSE: Duration = Duration::from_millis(10);

/// When a run begins, and what of it is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) start: Instant,
    pub(super) measured: (Instant, Instant),
}

/// What all workers share.
pub(super) struct Run {
    pub(super) options: LoadOptions,
    pub(super) buyers: Buyers,
    /// Orders of an earlier run with the same buyers, which retries repeat.
    pub(super) earlier: Vec<Sold>,
    pub(super) first_number: u64,
    pub(super) workers: usize,
    pub(super) counts: Counts,
    /// Products that somebody was told are sold out.
    pub(super) sold_out: Vec<AtomicBool>,
    pub(super) still_selling: AtomicUsize,
    pub(super) stop: AtomicBool,
}

/// How far a run is, for whoever watches.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) placed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicU64,
}

impl Run {
    fn is_over(&self, now: Instant, times: &Times) -> bool {
        now >= times.measured.1 || self.stop.load(Ordering::Relaxed)
    }

    /// Somebody was told that a product is sold out.
    fn sold_out(&self, product: usize) {
        if !self.sold_out[product].swap(true, Ordering::Relaxed)
            && self.still_selling.fetch_sub(1, Ordering::Relaxed) == 1
            && self.options.until_sold_out
        {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Opens the connections of the worker at `position`, reports that they are open, waits for the start, and loads.
pub(super) async fn work(
    run: Arc<Run>,
    position: usize,
    hosts: Vec<(usize, String)>,
    opened: mpsc::Sender<()>,
    mut start: watch::Receiver<Option<Times>>,
) -> Result<Tally, Unreachable> {
    let timeout = Duration::from_millis(run.options.timeout_ms);
    let connections = try_join_all(hosts.iter().map(async |(service, host)| {
        let connection = Connection::open(host, timeout).await?;
        Ok((*service, connection))
    }));
    let connections: Vec<(usize, Connection)> = connections.await?;
    let _nobody_waits = opened.send(()).await;
    drop(opened);
    let times = match start.wait_for(Option::is_some).await.map(|times| *times) {
        Ok(Some(times)) => times,
        // The run was given up: another worker reached nobody.
        _ => return Ok(Tally::new((Instant::now(), Instant::now()))),
    };
    let rate = run.options.rate.map(|rate| rate / run.workers as f64);
    let worker = Worker {
        times,
        schedule: RefCell::new(Schedule::new(rate, times.start)),
        random: RefCell::new(SmallRng::seed_from_u64(run.options.seed ^ position as u64)),
        next_number: RefCell::new(run.first_number + position as u64),
        tally: RefCell::new(Tally::new(times.measured)),
        run,
    };
    tokio::time::sleep_until(times.start.into()).await;
    join_all(connections.into_iter().map(|(service, connection)| worker.serve(service, connection))).await;
    Ok(worker.tally.into_inner())
}

struct Worker {
    run: Arc<Run>,
    times: Times,
    schedule: RefCell<Schedule>,
    random: RefCell<SmallRng>,
    next_number: RefCell<u64>,
    tally: RefCell<Tally>,
}

/// What a connection does next.
struct Turn {
    ask: Ask,
    service: u16,
    number: u64,
    due: Instant,
    /// The order that must be answered, if this repeats one.
    repeats: Option<Sold>,
}

impl Worker {
    /// Sends request after request until the run is over.
    async fn serve(&self, service: usize, mut connection: Connection) {
        while let Some(turn) = self.next_turn(service) {
            if turn.due > Instant::now() {
                tokio::time::sleep_until(turn.due.into()).await;
            }
            let Ok(request) = self.run.buyers.request(&turn.ask, connection.host()) else {
                self.tally.borrow_mut().wrong.push("a request could not be built".to_owned());
                return;
            };
            let answer = connection.send(request).await;
            let lost = answer.is_err();
            self.note(&turn, answer);
            if lost {
                tokio::time::sleep(RECONNECT_PAUSE).await;
            }
        }
    }

    fn next_turn(&self, service: usize) -> Option<Turn> {
        let mut random = self.random.borrow_mut();
        let due = self.schedule.borrow_mut().next(Instant::now(), &mut random);
        if self.run.is_over(due, &self.times) {
            return None;
        }
        let repeats = (random.random::<f64>() * 100.0 < self.run.options.retries).then(|| self.earlier(&mut random));
        let repeats = repeats.flatten();
        let number = match repeats {
            Some(sold) => sold.number,
            None => {
                let mut next = self.next_number.borrow_mut();
                let number = *next;
                *next += self.run.workers as u64;
                number
            }
        };
        Some(Turn { ask: self.run.buyers.ask(number), service: service as u16, number, due, repeats })
    }

    /// Any order that was placed before.
    fn earlier(&self, random: &mut SmallRng) -> Option<Sold> {
        let tally = self.tally.borrow();
        let earlier = if self.run.earlier.is_empty() { &tally.sold } else { &self.run.earlier };
        (!earlier.is_empty()).then(|| earlier[random.random_range(0..earlier.len())])
    }

    /// Makes something of an answer.
    fn note(&self, turn: &Turn, answer: Result<Answer, NoAnswer>) {
        let now = Instant::now();
        let mut tally = self.tally.borrow_mut();
        let read = read(answer);
        let counts = &self.run.counts;
        let counter = match &read.meaning {
            Meaning::Order { .. } => &counts.placed,
            Meaning::Refused => &counts.refused,
            Meaning::Unknown => &counts.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        match read.meaning {
            Meaning::Order { id, quantity, replayed } => match turn.repeats {
                Some(sold) if (sold.id, replayed) != (id, true) => {
                    tally
                        .wrong
                        .push(format!("request {} was answered with {}, and then with {id}", sold.number, sold.id));
                }
                Some(_) => {}
                None if quantity != turn.ask.quantity => {
                    tally.wrong.push(format!("order {id} has {quantity} units instead of {}", turn.ask.quantity));
                }
                None => tally.sold.push(Sold {
                    number: turn.number,
                    id,
                    product: turn.ask.product as u32,
                    service: turn.service,
                    quantity,
                    at_us: now.saturating_duration_since(self.times.start).as_micros() as u64,
                }),
            },
            Meaning::Refused if turn.repeats.is_some() && read.outcome.status / 100 == 4 => {
                tally.wrong.push(format!("request {} has an order, and was refused later", turn.number));
            }
            Meaning::Unknown if turn.repeats.is_none() => tally.doubts.push(turn.number),
            Meaning::Refused | Meaning::Unknown => {}
        }
        if read.outcome.name == "sold-out" {
            self.run.sold_out(turn.ask.product);
        }
        tally.count(read.outcome, turn.due, now);
    }
}

/// An answer, understood.
pub(super) struct Read {
    pub(super) outcome: Outcome,
    pub(super) meaning: Meaning,
}

/// What an answer says of the order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It exists.
    Order { id: Uuid, quantity: u32, replayed: bool },
    /// It does not, and nothing was changed.
    Refused,
    /// It may or may not exist.
    Unknown,
}

/// Understands an answer of `POST /orders`.
pub(super) fn read(answer: Result<Answer, NoAnswer>) -> Read {
    #[derive(Deserialize)]
    struct Order {
        id: Uuid,
        quantity: u32,
    }
    #[derive(Deserialize)]
    struct Problem<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    let answer = match answer {
        Ok(answer) => answer,
        Err(NoAnswer::Timeout) => return Read::unknown(0, "timeout"),
        Err(NoAnswer::Lost) => return Read::unknown(0, "connection-lost"),
        Err(NoAnswer::Unsent) => {
            return Read { outcome: Outcome { status: 0, name: "not-connected".into() }, meaning: Meaning::Refused };
        }
    };
    let status = answer.status;
    if status == 201 {
        let Ok(Order { id, quantity }) = serde_json::from_slice(&answer.body) else {
            return Read::unknown(status, "unreadable");
        };
        let replayed = answer.headers.get("idempotent-replayed").is_some_and(|value| value == "true");
        let name = if replayed { "replayed" } else { "placed" };
        let meaning = Meaning::Order { id, quantity, replayed };
        return Read { outcome: Outcome { status, name: name.into() }, meaning };
    }
    let slug = match serde_json::from_slice::<Problem<'_>>(&answer.body) {
        Ok(problem) => problem.kind.rsplit('/').next().unwrap_or_default().to_owned(),
        Err(_) => return Read::unknown(status, "unreadable"),
    };
    let refused = (400..500).contains(&status) || ["contended", "overloaded", "unavailable"].contains(&slug.as_str());
    let meaning = if refused { Meaning::Refused } else { Meaning::Unknown };
    Read { outcome: Outcome { status, name: slug.into() }, meaning }
}

impl Read {
    fn unknown(status: u16, name: &'static str) -> Self {
        Self { outcome: Outcome { status, name: name.into() }, meaning: Meaning::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Read {
        read(Ok(Answer { status, headers: Default::default(), body: body.to_owned().into() }))
    }

    #[test]
    fn answers_are_understood() {
        let id = Uuid::now_v7();
        let placed = answer(201, &format!(r#"{{"id":"{id}","sku":"a","quantity":3}}"#));
        assert_eq!(placed.meaning, Meaning::Order { id, quantity: 3, replayed: false });
        let sold_out = answer(409, r#"{"type":"/problems/sold-out","title":"Sold out"}"#);
        assert_eq!((sold_out.meaning, &*sold_out.outcome.name), (Meaning::Refused, "sold-out"));
        assert_eq!(answer(503, r#"{"type":"/problems/contended"}"#).meaning, Meaning::Refused);
    }

    #[test]
    fn whatever_may_have_placed_an_order_is_a_doubt() {
        assert_eq!(answer(503, r#"{"type":"/problems/outcome-unknown"}"#).meaning, Meaning::Unknown);
        assert_eq!(answer(500, r#"{"type":"/problems/internal"}"#).meaning, Meaning::Unknown);
        assert_eq!(answer(201, "no order").meaning, Meaning::Unknown);
        assert_eq!(answer(502, "<html>").meaning, Meaning::Unknown);
        assert_eq!(read(Err(NoAnswer::Timeout)).meaning, Meaning::Unknown);
        assert_eq!(read(Err(NoAnswer::Lost)).meaning, Meaning::Unknown);
    }
}
