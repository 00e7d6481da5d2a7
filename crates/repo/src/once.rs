//! A signed command acts once: which were taken, by what they sign. No packets, no clock.

use std::collections::HashMap;

/// How far the time of a command may be from the repository's clock, in milliseconds.
pub const WINDOW_MS: u64 = 120_000;
/// Commands of one owner that are remembered; further ones are refused.
pub const PER_OWNER_MAX: usize = 16_384;

/// SHA-256 of what a command signs. Not of the whole packet: a signature of ECDSA can be written in
/// two ways.
pub type Signed = [u8; 32];

/// Why a command does not act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOnce {
    /// It acted already.
    #[error("it was sent before")]
    Again,
    /// Its time is not now.
    #[error("its time differs from this clock by {0} s; at most {window} s are allowed", window = WINDOW_MS / 1000)]
    Time(u64),
    /// Too many of its owner's are remembered.
    #[error("{PER_OWNER_MAX} commands of its owner are remembered, of those without a time all")]
    TooMany,
}

/// What is remembered of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Whose it is, as a URI.
    pub owner: String,
    /// When it can be forgotten, in milliseconds since the Unix epoch; none: never.
    pub until_ms: Option<u64>,
}

impl Taken {
    /// As it is noted: eight octets of time, all ones for never, and the owner.
    #[must_use]
    pub fn to_note(&self) -> Vec<u8> {
        let until = self.until_ms.unwrap_or(u64::MAX).to_be_bytes();
        [&until[..], self.owner.as_bytes()].concat()
    }

    /// Reads what was noted.
    #[must_use]
    pub fn from_note(note: &[u8]) -> Option<Self> {
        let (until, owner) = note.split_first_chunk()?;
        let until = u64::from_be_bytes(*until);
        let owner = String::from_utf8(owner.to_vec()).ok()?;
        Some(Self { owner, until_ms: (until != u64::MAX).then_some(until) })
    }
}

/// The commands that were taken.
///
/// One with a SignatureTime is remembered for as long as its time would be accepted, one without
/// for ever: what is forgotten could act again.
#[derive(Debug, Default)]
pub struct Once {
    taken: HashMap<Signed, Taken>,
    per_owner: HashMap<String, usize>,
}

impl Once {
    /// Takes up what was noted before.
    pub fn remember(&mut self, signed: Signed, taken: Taken) {
        let owner = taken.owner.clone();
        if self.taken.insert(signed, taken).is_none() {
            *self.per_owner.entry(owner).or_default() += 1;
        }
    }

    /// Whether a command of `owner` may act at `now_ms`, and what is to be noted before it does;
    /// `time_ms` is its SignatureTime.
    ///
    /// # Errors
    /// [`NotOnce`].
    pub fn take(
        &mut self,
        signed: Signed,
        owner: &str,
        time_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<Taken, NotOnce> {
        if self.taken.contains_key(&signed) {
            return Err(NotOnce::Again);
        }
        let off = time_ms.map_or(0, |time| time.abs_diff(now_ms));
        if off > WINDOW_MS {
            return Err(NotOnce::Time(off / 1000));
        }
        if self.per_owner.get(owner).is_some_and(|count| *count >= PER_OWNER_MAX) {
            return Err(NotOnce::TooMany);
        }
        let until_ms = time_ms.map(|time| time + WINDOW_MS);
        let taken = Taken { owner: owner.to_owned(), until_ms };
        self.remember(signed, taken.clone());
        Ok(taken)
    }

    /// Forgets those whose time is past, and tells which.
    pub fn forget_past(&mut self, now_ms: u64) -> Vec<Signed> {
        let is_past = |taken: &Taken| taken.until_ms.is_some_and(|until| until < now_ms);
        let past: Vec<Signed> =
            self.taken.iter().filter(|(_, taken)| is_past(taken)).map(|(s, _)| *s).collect();
        for signed in &past {
            let Some(taken) = self.taken.remove(signed) else { continue };
            if let Some(count) = self.per_owner.get_mut(&taken.owner) {
                *count -= 1;
            }
        }
        self.per_owner.retain(|_, count| *count > 0);
        past
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn signed(n: usize) -> Signed {
        let mut signed = [0; 32];
        signed[..8].copy_from_slice(&n.to_be_bytes());
        signed
    }

    #[test]
    fn a_command_acts_once_for_as_long_as_its_time_would_be_accepted() {
        let mut once = Once::default();
        let ahead = NOW_MS + WINDOW_MS;
        once.take(signed(1), "/a", Some(ahead), NOW_MS).unwrap();
        // At every moment from now on it is either known or too old.
        for later in (0..5).map(|n| NOW_MS + n * WINDOW_MS / 2).chain([ahead + WINDOW_MS + 1]) {
            once.forget_past(later);
            assert!(once.take(signed(1), "/a", Some(ahead), later).is_err(), "{later}");
        }
        assert!(once.taken.is_empty() && once.per_owner.is_empty());
        let early = once.take(signed(2), "/a", Some(ahead + 1000), NOW_MS);
        assert_eq!(early, Err(NotOnce::Time(121)));
    }

    #[test]
    fn one_without_a_time_is_never_forgotten_and_its_owner_has_a_bound_of_its_own() {
        let mut once = Once::default();
        for n in 0..PER_OWNER_MAX {
            once.take(signed(n), "/a", None, NOW_MS).unwrap();
        }
        assert!(once.forget_past(u64::MAX).is_empty());
        assert_eq!(once.take(signed(0), "/a", None, NOW_MS), Err(NotOnce::Again));
        let more = signed(PER_OWNER_MAX);
        assert_eq!(once.take(more, "/a", None, NOW_MS), Err(NotOnce::TooMany));
        once.take(more, "/b", None, NOW_MS).unwrap();
    }

    #[test]
    fn what_was_taken_is_noted_and_read_again() {
        for until_ms in [None, Some(NOW_MS)] {
            let taken = Taken { owner: "/alice".into(), until_ms };
            assert_eq!(Taken::from_note(&taken.to_note()).unwrap(), taken);
        }
        assert_eq!(Taken::from_note(&[0; 7]), None);
    }
}
