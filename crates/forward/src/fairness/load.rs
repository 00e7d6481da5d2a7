//! What a face has pending and what it uses.

use onym_tables::Tick;

/// Interests that a downstream may always have pending.
pub const FREE: u64 = 64;

/// Interests that an upstream may always have pending.
pub const UPSTREAM_FREE: u64 = 256;

/// A face may have pending so many times what it uses.
const SLACK: u64 = 4;

/// A downstream counts as in use when an upstream answered it in the last window, or this much is
/// pending: one notification that waits for minutes, or who asks for the node's state, contends
/// with nobody.
const IN_USE: u32 = 8;

/// What one face has pending and uses, as downstream and as upstream.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// In-records of the face.
    pub pending: u32,
    /// Out-records of the face.
    pub out_pending: u32,
    /// Octets of the long Interests that it brought and that are pending.
    pub long_octets: u64,
    /// Steps of its searches of the content store, of further copies of its Interests and of what it
    /// asks of management, in this window and in the last one.
    pub(super) steps: u64,
    pub(super) steps_last: u64,
    /// Time that its answered Interests waited, in this window.
    pub(super) waited_ns: u64,
    pub(super) out_waited_ns: u64,
    /// Average number of answered Interests, fast to grow, slow to shrink.
    pub(super) used: u64,
    pub(super) out_used: u64,
    /// What answers took on the average of a window, in nanoseconds, fast to grow, slow to shrink; 0
    /// before the first.
    pub(super) usual_ns: u64,
    /// Interests that were satisfied until this window began.
    pub(super) satisfied: u64,
}

impl Load {
    /// What the face may have pending as a downstream under contention.
    #[must_use]
    pub fn earned(&self) -> u64 {
        (SLACK * self.used).max(FREE)
    }

    /// What it can have pending as an upstream without being contended.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        (SLACK * self.out_used).max(UPSTREAM_FREE)
    }

    /// Steps charged to the face in this window and in the last one.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.steps + self.steps_last
    }

    /// Closes a window at whose end `satisfied` Interests have been satisfied in all.
    pub(super) fn roll(&mut self, elapsed_ns: u64, satisfied: u64) -> bool {
        let average =
            |waited: u64, old: u64| waited.div_ceil(elapsed_ns).max(old - old.div_ceil(4));
        let in_use = self.waited_ns > 0 || self.pending >= IN_USE;
        let answers = satisfied - std::mem::replace(&mut self.satisfied, satisfied);
        if let Some(usual) = self.waited_ns.checked_div(answers) {
            self.usual_ns = usual.max(self.usual_ns - self.usual_ns / 8);
        }
        self.used = average(self.waited_ns, self.used);
        self.out_used = average(self.out_waited_ns, self.out_used);
        (self.waited_ns, self.out_waited_ns) = (0, 0);
        self.steps_last = std::mem::take(&mut self.steps);
        in_use
    }
}

/// The current window.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(super) started: Tick,
    /// Downstreams in use.
    pub(crate) in_use: u64,
}

impl Load {
    /// The upstream answered one Interest after `waited_ns`.
    #[inline]
    pub(crate) fn answers(&mut self, waited_ns: u64) {
        self.out_waited_ns += waited_ns;
        self.out_pending = self.out_pending.saturating_sub(1);
    }

    /// One Interest of the downstream was answered by an upstream after `waited_ns`.
    #[inline]
    pub(crate) fn answered(&mut self, waited_ns: u64) {
        // At least a little, so that answers within the same moment count as use.
        self.waited_ns += waited_ns.max(1);
        self.ended();
    }

    /// One Interest of the downstream ended without using an upstream: unanswered, or answered by
    /// the management of this node.
    #[inline]
    pub(crate) fn ended(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }
}
