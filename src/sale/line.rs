//! The line of waiting orders: who waits, in arrival order, and who is taken out of it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::waiting::Waiting;
use crate::domain::{Fit, Quantity};

/// Deadlines are looked at this often: an order is told so much too late at most.
pub(super) const DEADLINE_CHECK: Duration = Duration::from_millis(20);
/// How far into the line somebody is looked for who can go on while the first ones cannot.
const LOOK_AHEAD: usize = 256;

/// The orders that wait for one product.
pub(super) struct Line {
    waiting: VecDeque<Waiting>,
    next_check: Instant,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), next_check: Instant::now() }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A new order stands at the end.
    pub(super) fn join(&mut self, order: Waiting) {
        self.waiting.push_back(order);
    }

    /// Orders that were looked at and stay go back to the front, in arrival order.
    pub(super) fn put_back(&mut self, orders: Vec<Waiting>) {
        for order in orders.into_iter().rev() {
            self.waiting.push_front(order);
        }
    }

    /// The quantities that wait, each smaller than the one before: whatever blocks an order blocks all that are as large
    /// or larger.
    pub(super) fn falling_quantities(&self) -> impl Iterator<Item = Quantity> {
        let mut smallest = None;
        let quantities = self.waiting.iter().take(LOOK_AHEAD).map(|order| order.asked.quantity);
        quantities.filter(move |quantity| {
            let falls = smallest.is_none_or(|smallest| *quantity < smallest);
            if falls {
                smallest = Some(*quantity);
            }
            falls
        })
    }

    /// Takes out the orders whose time is up, and forgets those whose client has gone (R12).
    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<Waiting> {
        let mut expired = Vec::new();
        if now < self.next_check {
            return expired;
        }
        self.next_check = now + DEADLINE_CHECK;
        let ends = |order: &Waiting| order.pending.deadline <= now;
        if self.waiting.iter().any(|order| ends(order) || order.is_abandoned()) {
            for order in std::mem::take(&mut self.waiting) {
                if ends(&order) {
                    expired.push(order);
                } else if !order.is_abandoned() {
                    self.waiting.push_back(order);
                }
            }
        }
        expired
    }

    /// Shows every order of `quantity` or more to `keep`, and keeps those that it hands back.
    pub(super) fn sift(&mut self, quantity: Quantity, mut keep: impl FnMut(Waiting) -> Option<Waiting>) {
        for order in std::mem::take(&mut self.waiting) {
            let stays = if order.asked.quantity < quantity { Some(order) } else { keep(order) };
            self.waiting.extend(stays);
        }
    }

    /// Takes out the batch that a lease with `stock` units serves.
    pub(super) fn fit(&mut self, stock: u64, max_batch: usize) -> Batch {
        let mut fit = Fit::new(stock, max_batch);
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
        batch
    }
}
