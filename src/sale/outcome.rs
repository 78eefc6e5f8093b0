//! How an order ends. Sold out and contended are outcomes, not errors; HTTP statuses are not chosen here.

use chrono::{DateTime, Utc};

use crate::domain::{Order, Quantity};

/// What a buyer is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The order is in the ledger (R1).
    Placed(Order),
    /// The order was in the ledger already: the request repeats an earlier one.
    Replayed(Order),
    /// There is no order, or nobody knows yet.
    Refused(Refusal),
}

/// Why there is no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No product has this SKU.
    UnknownProduct,
    /// The quantity is above what the product allows.
    AboveMaxPerOrder {
        /// What it allows.
        max: Quantity,
    },
    /// The sale has not begun.
    NotStarted {
        /// When it does.
        starts_at: DateTime<Utc>,
    },
    /// The sale is over.
    Ended {
        /// Since when.
        ended_at: DateTime<Utc>,
    },
    /// Nothing is left, says the ledger (R9).
    SoldOut,
    /// Less is left than asked for, says the ledger.
    InsufficientStock {
        /// Units left.
        remaining: u64,
    },
    /// The idempotency key belongs to an order with another product, quantity or customer.
    KeyReused,
    /// Every segment that might have served was busy until the deadline.
    Contended,
    /// Too many orders wait already, or this one never got its turn.
    Overloaded,
    /// A store did not answer until the deadline. Nothing was changed.
    Unavailable,
    /// A store lost the answer, and did not come back until the deadline. There may be an order (R6).
    OutcomeUnknown,
}

impl Refusal {
    /// Why so many units cannot be sold when `remaining` are left; `None` when they can.
    pub(super) fn for_want_of_stock(quantity: Quantity, remaining: u64) -> Option<Self> {
        match remaining {
            0 => Some(Self::SoldOut),
            _ if quantity.units() > remaining => Some(Self::InsufficientStock { remaining }),
            _ => None,
        }
    }

    /// Every label, in the order of [`Refusal::position`].
    pub(super) const LABELS: [&str; 11] = [
        "unknown-product",
        "above-max-per-order",
        "not-started",
        "ended",
        "sold-out",
        "insufficient-stock",
        "key-reused",
        "contended",
        "overloaded",
        "unavailable",
        "outcome-unknown",
    ];

    /// Where the refusal stands in a table of counters.
    pub(super) fn position(self) -> usize {
        match self {
            Self::UnknownProduct => 0,
            Self::AboveMaxPerOrder { .. } => 1,
            Self::NotStarted { .. } => 2,
            Self::Ended { .. } => 3,
            Self::SoldOut => 4,
            Self::InsufficientStock { .. } => 5,
            Self::KeyReused => 6,
            Self::Contended => 7,
            Self::Overloaded => 8,
            Self::Unavailable => 9,
            Self::OutcomeUnknown => 10,
        }
    }
}
