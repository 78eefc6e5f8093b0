//! The two numbers that tell a current lease from one that has been overtaken.

/// A fencing token: grows with every lease of a segment; a lower one may change nothing (INV-5).
///
/// Source of the idea: M. Kleppmann, "How to do distributed locking" (2016). Below 2⁵³, so that Lua can hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub i64);

impl Fence {
    /// How far a reload jumps ahead.
    ///
    /// A guard that forgets (a flushed Redis) starts counting again from what the ledger has seen, while leases with
    /// higher fences may still be out, because a lease's fence reaches the ledger only when it settles. Adding 1 could
    /// give a new lease the fence of a living old one. A jump of 2²⁰ outruns every lease that was handed out since the
    /// ledger last heard of the segment. A replica that takes over with an old but clean count may still hand out the
    /// fence of a living lease: there the ledger's own condition on the units holds (R4).
    pub const RELOAD_STRIDE: i64 = 1 << 20;

    /// The fence of a lease that has reloaded its segment: above everything handed out before. Ledgers do this sum in
    /// their own statement.
    pub fn after_reload(self, ledger: Fence) -> Fence {
        Fence(self.0.max(ledger.0) + Self::RELOAD_STRIDE)
    }

    /// The fence of the next lease.
    pub fn next(self) -> Fence {
        Fence(self.0 + 1)
    }
}

/// Raised in the ledger by whatever changes stock past the guard (R10): a lease reloaded under an older one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);
