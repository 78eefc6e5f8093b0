//! The orders that wait for one product, and the loop that decides what happens next.
//!
//! One task owns the queue, the beliefs and the rounds in flight, so that nothing here is locked. It decides; the work
//! is done in tasks of their own ([`round`](super::round), [`judge`](super::judge), [`gather`](super::gather)), which
//! report back. A batch is whatever waits when a lease is had: no timers, as in a database's group commit.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::claim::{FromMemory, Look};
use super::gather::{GatherReport, Gathering, Seen};
use super::judge::{Judgement, judge, load_winners};
use super::on_sale::OnSale;
use super::outcome::Refusal;
use super::round::{Batch, LeaseOutcome, RoundReport, Stores, give_back, lease, settle};
use super::waiting::Waiting;
use crate::domain::{Beliefs, Candidate, Fit, Quantity};
use crate::guard::{Ending, Lease, Token, Trust};
use crate::telemetry::metrics::RoundEnding;

/// After a store has failed, the next try waits this long, doubling up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(160);
/// A gathering that met another holder is tried again after this.
const GATHER_PAUSE: Duration = Duration::from_millis(5);
/// How far into the queue the loop looks for an order that can go on while the first ones cannot.
const LOOK_AHEAD: usize = 256;
/// Messages taken at a time.
const INTAKE: usize = 1024;
/// Without a nearer reason the loop looks at the deadlines this often while orders wait.
const DEADLINE_CHECK: Duration = Duration::from_millis(20);

/// What the queue is sent.
pub(super) enum Message {
    /// A new order.
    Order(Waiting),
    /// Look into the ledger again: what is said from memory grows old.
    Refresh,
}

/// What a task reports when it ends.
enum Report {
    Lease {
        index: u16,
        token: Token,
        outcome: LeaseOutcome,
    },
    Round {
        index: u16,
        report: RoundReport,
    },
    Judged(Judgement),
    Gathered(GatherReport),
    Winners(Option<Look>),
}

/// Why orders are not getting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    None,
    Busy,
    Store,
}

/// The owner of one product's waiting orders.
pub(super) struct Queue {
    on_sale: Arc<OnSale>,
    waiting: VecDeque<Waiting>,
    beliefs: Beliefs,
    tasks: JoinSet<Report>,
    /// Rounds whose lease is still asked for: each will serve up to a batch of the waiting orders.
    leasing: usize,
    /// Rounds in flight, those included.
    rounds: usize,
    judging: bool,
    gathering: bool,
    loading_winners: bool,
    /// Tokens of leases that were asked for without an answer: asked again, they are the same leases (R11).
    unanswered: HashMap<u16, Token>,
    obstacle: Obstacle,
    failures: u32,
    paused_until: Option<Instant>,
    gather_paused_until: Option<Instant>,
    next_expiry: Instant,
    /// When the loop must look again though nobody reports anything.
    wake_at: Option<Instant>,
}

impl Queue {
    pub(super) fn new(on_sale: Arc<OnSale>) -> Self {
        Self {
            beliefs: Beliefs::unknown(on_sale.product.segments),
            on_sale,
            waiting: VecDeque::new(),
            tasks: JoinSet::new(),
            leasing: 0,
            rounds: 0,
            judging: false,
            gathering: false,
            unanswered: HashMap::new(),
            obstacle: Obstacle::None,
            failures: 0,
            paused_until: None,
            gather_paused_until: None,
            loading_winners: false,
            next_expiry: Instant::now(),
            wake_at: None,
        }
    }

    /// Runs until `stop` is called and every order is answered and every lease given back.
    pub(super) async fn run(
        mut self,
        mut messages: mpsc::UnboundedReceiver<Message>,
        stop: CancellationToken,
    ) {
        let mut intake = Vec::with_capacity(INTAKE);
        let mut open = true;
        let alarm = tokio::time::sleep(Duration::ZERO);
        let stopped = stop.cancelled();
        tokio::pin!(alarm, stopped);
        loop {
            self.go_on(Instant::now());
            if !open && self.waiting.is_empty() && self.tasks.is_empty() {
                break;
            }
            if let Some(wake_at) = self.wake_at.map(tokio::time::Instant::from_std)
                && (alarm.is_elapsed() || wake_at < alarm.deadline())
            {
                alarm.as_mut().reset(wake_at);
            }
            tokio::select! {
                received = messages.recv_many(&mut intake, INTAKE), if open => {
                    open = received > 0;
                    intake.drain(..).for_each(|message| self.take_in(message));
                }
                Some(report) = self.tasks.join_next() => self.take_note(report),
                () = &mut alarm, if self.wake_at.is_some() => {}
                () = &mut stopped, if !messages.is_closed() => messages.close(),
            }
        }
        self.on_sale.metrics.queue_orders.set(0.0);
    }

    fn take_in(&mut self, message: Message) {
        match message {
            Message::Order(order) => self.waiting.push_back(order),
            Message::Refresh if !self.judging => self.judge(Vec::new()),
            Message::Refresh => {}
        }
    }

    /// Starts whatever can be started now.
    fn go_on(&mut self, now: Instant) {
        self.wake_at = None;
        self.expire(now);
        while let Some(quantity) = self.next_step(now) {
            self.probe(quantity, now);
        }
        if !self.waiting.is_empty() {
            self.wake_by(now + DEADLINE_CHECK);
        }
        self.on_sale
            .metrics
            .queue_orders
            .set(self.waiting.len() as f64);
    }

    /// Answers the orders whose time is up, and forgets those whose client has gone (R12).
    fn expire(&mut self, now: Instant) {
        if now < self.next_expiry {
            return;
        }
        self.next_expiry = now + DEADLINE_CHECK;
        if !self
            .waiting
            .iter()
            .any(|order| order.pending.deadline <= now || order.is_abandoned())
        {
            return;
        }
        for order in std::mem::take(&mut self.waiting) {
            if order.pending.deadline > now {
                if !order.is_abandoned() {
                    self.waiting.push_back(order);
                }
                continue;
            }
            let refusal = match self.obstacle {
                _ if order.is_in_doubt() => Refusal::OutcomeUnknown,
                Obstacle::Store => Refusal::Unavailable,
                Obstacle::Busy => Refusal::Contended,
                Obstacle::None => Refusal::Overloaded,
            };
            order.answer(self.on_sale.refuse(refusal));
        }
    }

    /// The quantity to look for a segment for, if another round is worth while.
    fn next_step(&mut self, now: Instant) -> Option<Quantity> {
        let settings = &self.on_sale.house.settings;
        if self.rounds >= settings.max_rounds_in_flight
            || self.waiting.len() <= self.leasing * settings.max_batch
        {
            return None;
        }
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            self.wake_by(until);
            return None;
        }
        self.serviceable(now)
    }

    /// The first waiting quantity for which a segment can be probed now. What blocks the others is seen to on the way.
    fn serviceable(&mut self, now: Instant) -> Option<Quantity> {
        let mut smallest = u64::MAX;
        let mut nowhere = None;
        let mut busy_until = None;
        let mut found = None;
        for order in self.waiting.iter().take(LOOK_AHEAD) {
            let quantity = order.asked.quantity;
            if quantity.units() >= smallest {
                // Whatever blocks a smaller order blocks this one.
                continue;
            }
            smallest = quantity.units();
            match self.beliefs.candidate(quantity, now, |_| 0) {
                Candidate::Probe { .. } => {
                    found = Some(quantity);
                    break;
                }
                Candidate::BusyUntil(until) => {
                    busy_until =
                        Some(busy_until.map_or(until, |soonest: Instant| soonest.min(until)))
                }
                Candidate::InOurRounds => {}
                Candidate::Nowhere => nowhere = Some(quantity),
            }
        }
        if let Some(until) = busy_until {
            self.met_obstacle(Obstacle::Busy);
            self.wake_by(until);
        }
        if let Some(quantity) = nowhere {
            self.nowhere_for(quantity, now);
        }
        found
    }

    /// No segment has as much as `quantity`: refuse what may be refused, gather if there is enough, ask the ledger else.
    fn nowhere_for(&mut self, quantity: Quantity, now: Instant) {
        if self.judging || self.gathering {
            return;
        }
        let mut to_judge = Vec::new();
        let mut to_gather = None;
        for order in std::mem::take(&mut self.waiting) {
            if order.asked.quantity < quantity {
                self.waiting.push_back(order);
                continue;
            }
            match self.on_sale.claim.consult(&order.asked, now).0 {
                FromMemory::Refuse(refusal) if !order.is_in_doubt() => {
                    order.answer(self.on_sale.refuse(refusal));
                }
                FromMemory::Try if self.on_sale.claim.covers(order.asked.quantity, now) => {
                    to_gather.get_or_insert(order.asked.quantity);
                    self.waiting.push_back(order);
                }
                _ => to_judge.push(order),
            }
        }
        if !to_judge.is_empty() {
            self.judge(to_judge);
        } else if let Some(quantity) = to_gather {
            self.gather(quantity, now);
        }
    }

    fn judge(&mut self, orders: Vec<Waiting>) {
        self.judging = true;
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks
            .spawn(async move { Report::Judged(judge(on_sale, orders).await) });
    }

    fn gather(&mut self, quantity: Quantity, now: Instant) {
        if let Some(until) = self.gather_paused_until.filter(|until| *until > now) {
            self.wake_by(until);
            return;
        }
        let segments = 0..self.on_sale.product.segments;
        let known =
            segments.filter_map(|index| self.beliefs.free_stock(index).map(|stock| (index, stock)));
        let Some(plan) = Gathering::plan(quantity, known) else {
            // The ledger has enough and the beliefs do not show where: rounds in flight will tell, or the next look.
            self.met_obstacle(Obstacle::Busy);
            self.gather_paused_until = Some(now + GATHER_PAUSE);
            self.wake_by(now + GATHER_PAUSE);
            return;
        };
        self.gathering = true;
        self.rounds += 1;
        plan.segments()
            .iter()
            .for_each(|index| self.beliefs.leasing(*index));
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks
            .spawn(async move { Report::Gathered(plan.run(on_sale).await) });
    }

    /// Starts a round on a random segment that may serve the quantity.
    fn probe(&mut self, quantity: Quantity, now: Instant) {
        let choose = |count| rand::random_range(0..count);
        let Candidate::Probe { index, reload } = self.beliefs.candidate(quantity, now, choose)
        else {
            return;
        };
        self.beliefs.leasing(index);
        self.leasing += 1;
        self.rounds += 1;
        let trust = if reload {
            Trust::LedgerOnly
        } else {
            Trust::Count
        };
        let token = self.unanswered.remove(&index).unwrap_or_else(Token::random);
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks.spawn(async move {
            let outcome = lease(&on_sale, index, &token, trust).await;
            Report::Lease {
                index,
                token,
                outcome,
            }
        });
    }

    fn take_note(&mut self, report: Result<Report, tokio::task::JoinError>) {
        match report {
            Ok(Report::Lease {
                index,
                token,
                outcome,
            }) => {
                self.leasing -= 1;
                self.leased(index, token, outcome);
            }
            Ok(Report::Round { index, report }) => {
                self.rounds -= 1;
                self.saw(index, report.stock.map_or(Seen::Nothing, Seen::Stock));
                self.put_back(report.returned);
                self.heard_of(report.stores);
            }
            Ok(Report::Judged(judgement)) => self.judged(judgement),
            Ok(Report::Gathered(report)) => self.gathered(report),
            Ok(Report::Winners(look)) => {
                self.loading_winners = false;
                if let Some(look) = look {
                    self.on_sale.claim.add_winners(look);
                }
            }
            // A task that panics takes its orders with it; their requests see it. The count of rounds is lost with it.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn leased(&mut self, index: u16, token: Token, outcome: LeaseOutcome) {
        let metrics = &self.on_sale.metrics;
        match outcome {
            LeaseOutcome::Leased(lease, stock) => {
                self.obstacle = if self.obstacle == Obstacle::Busy {
                    Obstacle::None
                } else {
                    self.obstacle
                };
                self.fit(index, lease, stock);
                return;
            }
            LeaseOutcome::Empty => {
                metrics.round(RoundEnding::Empty);
                metrics.fall_throughs.increment(1);
                self.saw(index, Seen::Stock(0));
            }
            LeaseOutcome::Busy => {
                metrics.round(RoundEnding::Busy);
                metrics.fall_throughs.increment(1);
                self.saw(index, Seen::Busy);
            }
            LeaseOutcome::Failed => {
                metrics.round(RoundEnding::Failed);
                self.saw(index, Seen::Nothing);
                self.unanswered.insert(index, token);
                self.heard_of(Stores::Failed);
            }
        }
        self.rounds -= 1;
    }

    /// Gives the lease's stock to the waiting orders in arrival order, and sends them to the ledger.
    fn fit(&mut self, index: u16, lease: Lease, stock: u64) {
        let mut fit = Fit::new(stock, self.on_sale.house.settings.max_batch);
        let mut batch = Batch::default();
        let mut passed_over = Vec::new();
        while !fit.is_full()
            && let Some(order) = self.waiting.pop_front()
        {
            if order.is_abandoned() {
                continue;
            }
            if fit.take(order.asked.quantity) {
                batch.push(order);
            } else {
                passed_over.push(order);
            }
        }
        self.put_back(passed_over);
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks.spawn(async move {
            let report = if batch.is_empty() {
                on_sale.metrics.round(RoundEnding::NothingFitted);
                on_sale.metrics.fall_throughs.increment(1);
                let clean = give_back(&on_sale, index, lease, Ending::Clean { taken: 0 }).await;
                RoundReport {
                    stock: clean.then_some(stock),
                    returned: Vec::new(),
                    stores: Stores::NotAsked,
                }
            } else {
                settle(on_sale, index, lease, batch).await
            };
            Report::Round { index, report }
        });
    }

    fn judged(&mut self, judgement: Judgement) {
        self.judging = false;
        self.put_back(judgement.returned);
        self.heard_of(if judgement.segments.is_some() {
            Stores::Answered
        } else {
            Stores::Failed
        });
        if let Some(segments) = judgement.segments {
            self.beliefs.correct(&segments);
            let on_sale = Arc::clone(&self.on_sale);
            if on_sale.claim.wants_winners() && !self.loading_winners {
                self.loading_winners = true;
                self.tasks
                    .spawn(async move { Report::Winners(load_winners(on_sale).await) });
            }
        }
    }

    fn gathered(&mut self, report: GatherReport) {
        self.gathering = false;
        for (index, seen) in report.seen {
            self.saw(index, seen);
        }
        self.heard_of(report.stores);
        match report.gathered {
            Some((index, lease, stock)) => self.fit(index, lease, stock),
            None => {
                self.rounds -= 1;
                self.met_obstacle(Obstacle::Busy);
                self.gather_paused_until =
                    Some(Instant::now() + GATHER_PAUSE.mul_f64(0.5 + rand::random::<f64>()));
            }
        }
    }

    fn saw(&mut self, index: u16, seen: Seen) {
        match seen {
            Seen::Stock(stock) => {
                self.on_sale.metrics.stock(index, stock);
                self.beliefs.saw(index, stock);
            }
            Seen::Busy => self.beliefs.busy(index, Instant::now(), rand::random()),
            Seen::Nothing => self.beliefs.lost_sight(index),
        }
    }

    /// Orders that were looked at and stay go back to the front, in arrival order.
    fn put_back(&mut self, orders: Vec<Waiting>) {
        for order in orders.into_iter().rev() {
            self.waiting.push_front(order);
        }
    }

    fn heard_of(&mut self, stores: Stores) {
        match stores {
            Stores::NotAsked => {}
            Stores::Answered => {
                self.failures = 0;
                self.obstacle = Obstacle::None;
                self.paused_until = None;
            }
            Stores::Failed => {
                let pause = FIRST_PAUSE * (1 << self.failures.min(4));
                self.failures += 1;
                self.obstacle = Obstacle::Store;
                self.paused_until = Some(Instant::now() + pause.min(LONGEST_PAUSE));
            }
        }
    }

    fn met_obstacle(&mut self, obstacle: Obstacle) {
        if self.obstacle == Obstacle::None {
            self.obstacle = obstacle;
        }
    }

    fn wake_by(&mut self, moment: Instant) {
        self.wake_at = Some(self.wake_at.map_or(moment, |wake_at| wake_at.min(moment)));
    }
}
