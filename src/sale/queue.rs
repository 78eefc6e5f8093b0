//! The loop of one product: takes orders in, starts rounds for them, and decides what every report means.
//!
//! One task owns the line of orders, the beliefs and the count of rounds, so that nothing here is locked. It decides;
//! the work is done in tasks of their own ([`round`](super::round), [`judge`](super::judge), [`gather`](super::gather)),
//! which report back. A batch is whatever waits when a lease is had: no timers, as in a database's group commit. The line
//! also decides how many [`rounds`](super::rounds) are in flight.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::claim::{FromMemory, Winners};
use super::gather::{GatherReport, Gathering, Leftover, Seen};
use super::judge::{Judgement, judge, load_winners};
use super::line::{DEADLINE_CHECK, Line};
use super::on_sale::{House, OnSale};
use super::outcome::Refusal;
use super::pace::{Pace, Stores};
use super::round::{NoLease, Settling, lease, settle};
use super::rounds::{Another, Rounds};
use super::tenure::{Ended, Tenure};
use super::waiting::Waiting;
use crate::domain::{Beliefs, Candidate, Quantity};
use crate::guard::{Ending, Lease, Token, Trust};
use crate::telemetry::metrics::RoundEnding;

/// A gathering that met another holder is tried again after this.
const GATHER_PAUSE: Duration = Duration::from_millis(5);
/// Messages taken at a time.
const INTAKE: usize = 1024;

/// What the queue is sent.
pub(super) enum Message {
    /// A new order.
    Order(Waiting),
    /// Look into the ledger again: what is said from memory grows old.
    Refresh,
}

/// What a task reports when it ends.
enum Report {
    Lease { index: u16, token: Token, outcome: Result<Lease, NoLease>, since: Instant, turn: OwnedSemaphorePermit },
    Settled { tenure: Tenure, settling: Settling },
    Judged(Judgement),
    Gathered { report: GatherReport, since: Instant, turn: OwnedSemaphorePermit },
    Ended(Ended),
    Winners(Option<Winners>),
}

/// The owner of one product's waiting orders.
pub(super) struct Queue {
    on_sale: Arc<OnSale>,
    line: Line,
    beliefs: Beliefs,
    pace: Pace,
    tasks: JoinSet<Report>,
    rounds: Rounds,
    judging: bool,
    gathering: bool,
    loading_winners: bool,
    gather_paused_until: Option<Instant>,
    /// Tokens of leases that were asked for without an answer: asked again, they are the same leases (R11).
    unanswered: HashMap<u16, Token>,
    /// When the loop must look again though nobody reports anything.
    wake_at: Option<Instant>,
}

impl Queue {
    pub(super) fn new(on_sale: Arc<OnSale>) -> Self {
        Self {
            beliefs: Beliefs::unknown(on_sale.product.segments),
            rounds: Rounds::new(on_sale.house.settings.max_batch),
            on_sale,
            line: Line::new(),
            pace: Pace::new(),
            tasks: JoinSet::new(),
            judging: false,
            gathering: false,
            loading_winners: false,
            gather_paused_until: None,
            unanswered: HashMap::new(),
            wake_at: None,
        }
    }

    /// Runs until `stop` is called and every order is answered and every lease given back.
    pub(super) async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>, stop: CancellationToken) {
        let mut intake = Vec::with_capacity(INTAKE);
        let mut open = true;
        let alarm = tokio::time::sleep(Duration::ZERO);
        let stopped = stop.cancelled();
        tokio::pin!(alarm, stopped);
        loop {
            self.go_on(Instant::now());
            if !open && self.line.is_empty() && self.tasks.is_empty() {
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
            Message::Order(order) => self.line.join(order),
            Message::Refresh if !self.judging => self.judge(Vec::new()),
            Message::Refresh => {}
        }
    }

    /// Starts whatever can be started now.
    fn go_on(&mut self, now: Instant) {
        self.wake_at = None;
        // More wait than the rounds in flight serve, or there is no turn to be had for a round.
        let House { settings, turns, .. } = &self.on_sale.house;
        let served = self.rounds.in_flight().max(1) * settings.max_batch;
        let crowded = self.line.len() > served || turns.available_permits() == 0;
        for order in self.line.take_expired(now) {
            let refusal = if order.is_in_doubt() { Refusal::OutcomeUnknown } else { self.pace.refusal(crowded) };
            order.answer(self.on_sale.refuse(refusal));
        }
        while let Some((index, trust)) = self.next_probe(now) {
            self.probe(index, trust);
        }
        if !self.line.is_empty() {
            self.wake_by(now + DEADLINE_CHECK);
        }
        self.on_sale.metrics.queue_orders.set(self.line.len() as f64);
    }

    /// The segment to try next, if another round is worth while.
    fn next_probe(&mut self, now: Instant) -> Option<(u16, Trust)> {
        match self.rounds.another(self.line.len(), now) {
            Another::Now => {}
            Another::At(moment) => {
                self.wake_by(moment);
                return None;
            }
            Another::No => return None,
        }
        if let Some(until) = self.pace.paused_until(now) {
            self.wake_by(until);
            return None;
        }
        let mut busy_until: Option<Instant> = None;
        let mut nowhere = None;
        let mut found = None;
        for quantity in self.line.falling_quantities() {
            match self.beliefs.candidate(quantity, now, |count| rand::random_range(0..count)) {
                Candidate::Probe { index, reload } => {
                    found = Some((index, if reload { Trust::LedgerOnly } else { Trust::Count }));
                    break;
                }
                Candidate::BusyUntil(until) => {
                    busy_until = Some(busy_until.map_or(until, |soonest| soonest.min(until)))
                }
                Candidate::InOurRounds => {}
                Candidate::Nowhere => nowhere = Some(quantity),
            }
        }
        if let Some(until) = busy_until {
            self.pace.busy();
            self.wake_by(until);
        }
        if let Some(quantity) = nowhere {
            self.nowhere_for(quantity, now);
        }
        found
    }

    /// Starts a round on a segment.
    fn probe(&mut self, index: u16, trust: Trust) {
        self.beliefs.leasing(index);
        self.rounds.begin_leasing(Instant::now());
        let token = self.unanswered.remove(&index).unwrap_or_else(Token::random);
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks.spawn(async move {
            let turn = on_sale.house.turn().await;
            let since = Instant::now();
            let outcome = lease(&on_sale, index, &token, trust).await;
            Report::Lease { index, token, outcome, since, turn }
        });
    }

    /// No segment has as much as `quantity`: refuse what may be refused, gather if there is enough, ask the ledger else.
    fn nowhere_for(&mut self, quantity: Quantity, now: Instant) {
        if self.judging || self.gathering {
            return;
        }
        if let Some(until) = self.gather_paused_until.filter(|until| *until > now) {
            self.wake_by(until);
            return;
        }
        let on_sale = &self.on_sale;
        let mut to_judge = Vec::new();
        let mut to_gather: Vec<Quantity> = Vec::new();
        let mut refresh = false;
        self.line.sift(quantity, |order| {
            let (verdict, wants_refresh) = on_sale.claim.consult(&order.asked, now);
            refresh |= wants_refresh;
            match verdict {
                FromMemory::Refuse(refusal) if !order.is_in_doubt() => order.answer(on_sale.refuse(refusal)),
                FromMemory::Try if on_sale.claim.covers(order.asked.quantity, now) => {
                    if !to_gather.contains(&order.asked.quantity) {
                        to_gather.push(order.asked.quantity);
                    }
                    return Some(order);
                }
                _ => to_judge.push(order),
            }
            None
        });
        if refresh || !to_judge.is_empty() {
            self.judge(to_judge);
        } else if !to_gather.is_empty() {
            self.gather(&to_gather, now);
        }
    }

    fn judge(&mut self, orders: Vec<Waiting>) {
        self.judging = true;
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks.spawn(async move { Report::Judged(judge(on_sale, orders).await) });
    }

    /// Gathers for the first of the quantities for which there is a plan: of segments that nobody is known to hold, or,
    /// if those have too little, of all that no round of ours has.
    fn gather(&mut self, quantities: &[Quantity], now: Instant) {
        let (beliefs, count) = (&self.beliefs, self.on_sale.product.segments);
        let stocks = |when: Instant| {
            let segments = 0..count;
            segments.filter_map(move |index| beliefs.free_stock(index, when).map(|stock| (index, stock)))
        };
        let whenever = now + GATHER_PAUSE * 100;
        let plan = |quantity: &Quantity| {
            let plan = Gathering::plan(*quantity, stocks(now));
            plan.or_else(|| Gathering::plan(*quantity, stocks(whenever)))
        };
        let Some(plan) = quantities.iter().find_map(plan) else {
            // The ledger has enough and the beliefs do not show where: rounds in flight will tell, or the next look.
            self.pause_gathering(now);
            return;
        };
        self.gathering = true;
        plan.segments().iter().for_each(|index| self.beliefs.leasing(*index));
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks.spawn(async move {
            let turn = on_sale.house.turn().await;
            let since = Instant::now();
            Report::Gathered { report: plan.run(on_sale).await, since, turn }
        });
    }

    fn pause_gathering(&mut self, now: Instant) {
        let until = now + GATHER_PAUSE.mul_f64(0.5 + rand::random::<f64>());
        self.pace.busy();
        self.gather_paused_until = Some(until);
        self.wake_by(until);
    }

    fn take_note(&mut self, report: Result<Report, JoinError>) {
        match report {
            Ok(Report::Lease { index, token, outcome, since, turn }) => {
                self.rounds.end_leasing();
                match outcome {
                    Ok(lease) => {
                        self.pace.leased();
                        self.serve(Tenure::new(index, lease, since).with(turn));
                    }
                    Err(no_lease) => self.not_leased(index, token, no_lease),
                }
            }
            Ok(Report::Settled { tenure, settling }) => self.settled(tenure, settling),
            Ok(Report::Judged(judgement)) => self.judged(judgement),
            Ok(Report::Gathered { report, since, turn }) => self.gathered(report, since, turn),
            Ok(Report::Ended(Ended { index, seen, leave_until })) => {
                self.saw(index, seen);
                leave_until.into_iter().for_each(|until| self.beliefs.leave_to_others(index, until));
            }
            Ok(Report::Winners(winners)) => {
                self.loading_winners = false;
                winners.into_iter().for_each(|winners| self.on_sale.claim.add_winners(winners));
            }
            // A task that panics takes its orders with it, and what it held is unknown. The queue goes down too: its
            // requests are told, and the next order starts a new queue that believes nothing.
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    fn not_leased(&mut self, index: u16, token: Token, why: NoLease) {
        let (ending, seen) = match why {
            NoLease::Empty => (RoundEnding::Empty, Seen::Stock(0)),
            NoLease::Busy => (RoundEnding::Busy, Seen::Busy),
            NoLease::Unanswered | NoLease::Failed => {
                if why == NoLease::Unanswered {
                    self.unanswered.insert(index, token);
                }
                self.pace.heard_of(Stores::Failed, Instant::now());
                (RoundEnding::Failed, Seen::Nothing)
            }
        };
        self.on_sale.metrics.round(ending);
        self.on_sale.metrics.fall_throughs.increment(1);
        self.saw(index, seen);
    }

    /// Gives the lease's stock to the waiting orders, and sends them to the ledger.
    fn serve(&mut self, mut tenure: Tenure) {
        let stock = tenure.lease.stock().unwrap_or(0);
        let batch = self.line.fit(stock, self.on_sale.house.settings.max_batch);
        if batch.is_empty() {
            if tenure.is_unused() {
                self.on_sale.metrics.round(RoundEnding::NothingFitted);
                self.on_sale.metrics.fall_throughs.increment(1);
            }
            self.give_back(tenure, Ending::Clean { taken: 0 });
            return;
        }
        self.rounds.begin_settling(Instant::now());
        tenure.serves(batch.orders().len());
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks.spawn(async move {
            let settling = settle(&on_sale, tenure.index, &mut tenure.lease, batch).await;
            Report::Settled { tenure, settling }
        });
    }

    /// A batch is settled: the next one follows under the same lease, or the lease ends.
    fn settled(&mut self, mut tenure: Tenure, settling: Settling) {
        let now = Instant::now();
        self.rounds.end_settling();
        self.line.put_back(settling.returned);
        self.pace.heard_of(settling.stores, now);
        let Some(taken) = settling.taken else {
            self.give_back(tenure, Ending::Dirty);
            return;
        };
        tenure.lease.take(taken);
        let well = settling.stores == Stores::Answered;
        if well && tenure.may_go_on(self.line.len(), self.on_sale.house.settings.max_batch, now) {
            self.serve(tenure);
        } else {
            self.give_back(tenure, Ending::Clean { taken: 0 });
        }
    }

    /// Ends a lease, while the next rounds begin.
    fn give_back(&mut self, tenure: Tenure, ending: Ending) {
        let on_sale = Arc::clone(&self.on_sale);
        self.tasks.spawn(async move { Report::Ended(tenure.end(&on_sale, ending).await) });
    }

    fn judged(&mut self, judgement: Judgement) {
        self.judging = false;
        self.line.put_back(judgement.returned);
        self.pace.heard_of(judgement.stores, Instant::now());
        self.beliefs.correct(&judgement.segments);
        if self.on_sale.claim.wants_winners() && !self.loading_winners {
            self.loading_winners = true;
            let on_sale = Arc::clone(&self.on_sale);
            self.tasks.spawn(async move { Report::Winners(load_winners(on_sale).await) });
        }
    }

    fn gathered(&mut self, report: GatherReport, since: Instant, turn: OwnedSemaphorePermit) {
        self.gathering = false;
        for (index, seen) in report.seen {
            self.saw(index, seen);
        }
        for Leftover { index, lease, ending } in report.leftovers {
            self.give_back(Tenure::new(index, lease, since), ending);
        }
        self.pace.heard_of(report.stores, Instant::now());
        match report.gathered {
            Some((index, lease)) => self.serve(Tenure::new(index, lease, since).with(turn)),
            None => self.pause_gathering(Instant::now()),
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

    fn wake_by(&mut self, moment: Instant) {
        self.wake_at = Some(self.wake_at.map_or(moment, |wake_at| wake_at.min(moment)));
    }
}
