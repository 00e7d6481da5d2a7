//! The longest frame that the path to a peer carries, found by asking the peer (README.md, "The path's
//! MTU").
//!
//! ```text
//! Quiet ─ a long packet ─► Asking ─► Base ─► Search ─► Found ◄─► Idle
//!                           │        └─ no answer ─► Narrow ─ after a while ─► Quiet
//!                           └─ no answer ─► Silent ─ after a while, or the peer probes ─► Quiet
//! Found ─ no answer ─► Base ─ no answer ─► Quiet
//! ```

use onym_tables::Tick;
use onym_wire::lp::PathField;
use std::time::Duration;

/// Longest frame that is sent without asking: it passes wherever IPv6 does, with room for the headers
/// of IPv6 and UDP.
pub(crate) const BASE: usize = 1232;
/// Octets of the first probe, which asks only whether the peer answers; shorter ones are not answered, so
/// that an answer is never longer than what asked for it.
const SMALL: usize = 64;
/// The search ends when it knows the longest frame this well.
const STEP: usize = 16;
/// Probes of one length before it is taken for too long.
const TRIES: u8 = 3;
/// How long an answer is waited for before a round trip is known.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_MIN: Duration = Duration::from_millis(300);
const PATIENCE_MAX: Duration = Duration::from_secs(2);
/// While frames are sent the length found is asked again this often: paths change.
const CONFIRM: Duration = Duration::from_secs(2);
/// A longer one is looked for again after this, and a peer that did not answer asked again.
const RAISE: Duration = Duration::from_secs(600);
/// Probes of the peer that wait to be answered; further ones are not.
const ANSWERS_MAX: usize = 4;

/// What a face does about the MTU of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathMtu {
    /// Nothing: probes are not answered.
    #[default]
    Off,
    /// Answers the probes of its peer.
    Answer,
    /// Looks for the longest frame itself, too.
    Find,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing long was sent yet, or nothing is looked for.
    Quiet,
    /// Does the peer answer?
    Asking,
    /// Does a frame of [`BASE`] octets arrive? Again: longer ones did before.
    Base { again: bool },
    /// Frames of `low` octets arrive, of `high` perhaps. The longest is tried first.
    Search { low: usize, high: usize, is_first: bool },
    /// Known, and asked again in a while.
    Found,
    /// Known, but nothing was sent since it was asked last.
    Idle,
    /// The peer does not answer.
    Silent,
    /// It answered, but not where a frame of [`BASE`] octets was sent whole.
    Narrow,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    nonce: u64,
    len: usize,
    at: Tick,
    tries: u8,
}

/// What one link knows of its path.
#[derive(Debug)]
pub(crate) struct Path {
    finds: bool,
    phase: Phase,
    /// Longest frame that the face may be asked to send.
    most: usize,
    /// Longest frame that the first hop takes, and whether it is to be told again.
    first_hop: usize,
    asks_hop: bool,
    /// Longest frame that leaves.
    limit: usize,
    asked: Option<Asked>,
    due: Tick,
    raise: Tick,
    patience: Duration,
    /// Where the next nonce comes from.
    seed: u64,
    /// Frames that had left when the length was asked last.
    frames: u64,
    answers: Vec<(u64, u16)>,
}

impl Path {
    /// A path of which nothing is known; `seed` should be another one for each face.
    pub(crate) fn new(mtu: PathMtu, most: usize, seed: u64) -> Option<Box<Self>> {
        if mtu == PathMtu::Off {
            return None;
        }
        Some(Box::new(Self {
            finds: mtu == PathMtu::Find && most > BASE,
            phase: Phase::Quiet,
            most,
            first_hop: usize::MAX,
            asks_hop: false,
            limit: most,
            asked: None,
            due: Tick::NEVER,
            raise: Tick::NEVER,
            patience: PATIENCE,
            seed,
            frames: 0,
            answers: Vec::new(),
        }))
    }

    /// The same path where the face now does something else about it.
    pub(crate) fn change(&mut self, mtu: PathMtu, most: usize) {
        let finds = mtu == PathMtu::Find && most > BASE;
        if finds == self.finds && most == self.most {
            return;
        }
        (self.finds, self.most) = (finds, most);
        self.rest(Phase::Quiet);
        // Who owns the face is to look whether frames are still sent whole.
        self.due = Tick::default();
    }

    /// Longest frame that leaves.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Longest frame that leaves without a word to [`Self::note_long`].
    pub(crate) fn quick(&self) -> usize {
        match self.phase {
            Phase::Quiet | Phase::Idle if self.finds => self.limit.min(BASE),
            _ => self.limit,
        }
    }

    /// The longest frame that was found to arrive.
    pub(crate) fn found(&self) -> Option<usize> {
        self.sends_whole().then_some(self.limit)
    }

    /// Whether no frame may leave in IP fragments: they are as long as the path takes.
    pub(crate) fn sends_whole(&self) -> bool {
        !matches!(self.phase, Phase::Quiet | Phase::Asking | Phase::Silent | Phase::Narrow)
    }

    /// Whether [`Self::set_first_hop`] is to be called.
    pub(crate) fn asks_hop(&self) -> bool {
        self.asks_hop
    }

    /// Tells what the first hop takes. The system may have learnt it from an ICMP message, which anybody
    /// can forge: less than [`BASE`] is found by losing probes only.
    pub(crate) fn set_first_hop(&mut self, octets: usize) {
        (self.first_hop, self.asks_hop) = (octets.max(BASE), false);
        if !self.sends_whole() {
            return;
        }
        self.limit = self.limit.min(self.first_hop);
        if self.phase == Phase::Found && self.limit < self.top() {
            self.phase = Phase::Search { low: self.limit, high: self.top(), is_first: true };
            (self.asked, self.due) = (None, Tick::default());
        }
    }

    pub(crate) fn poll_timeout(&self) -> Tick {
        if self.answers.is_empty() { self.due } else { Tick::default() }
    }

    /// A packet longer than [`Self::quick`] is sent.
    pub(crate) fn note_long(&mut self, now: Tick) {
        match self.phase {
            Phase::Quiet if self.finds => (self.phase, self.due) = (Phase::Asking, now),
            Phase::Idle => (self.phase, self.due) = (Phase::Found, now),
            _ => {}
        }
    }

    /// Takes a frame of `len` octets that says `field`.
    pub(crate) fn receive(&mut self, now: Tick, field: PathField, len: usize) {
        match field {
            PathField::Probe { nonce } => {
                if len >= SMALL && self.answers.len() < ANSWERS_MAX {
                    self.answers.push((nonce, u16::try_from(len).unwrap_or(u16::MAX)));
                }
                if self.phase == Phase::Silent {
                    // It would answer now.
                    self.rest(Phase::Quiet);
                }
            }
            PathField::Answer { nonce, len } => {
                let is_it = |a: &Asked| a.nonce == nonce && a.len == usize::from(len);
                if let Some(asked) = self.asked.filter(is_it) {
                    self.answered(now, asked);
                }
            }
        }
    }

    fn answered(&mut self, now: Tick, asked: Asked) {
        self.asked = None;
        self.due = now;
        if asked.tries == 1 {
            self.patience = (now.since(asked.at) * 3).clamp(PATIENCE_MIN, PATIENCE_MAX);
        }
        match self.phase {
            Phase::Asking => (self.phase, self.limit) = (Phase::Base { again: false }, BASE),
            Phase::Base { .. } => {
                self.phase = Phase::Search { low: self.limit, high: self.top(), is_first: true };
            }
            Phase::Search { high, .. } => {
                self.limit = asked.len;
                self.phase = Phase::Search { low: asked.len, high, is_first: false };
            }
            _ => self.due = now + CONFIRM,
        }
    }

    /// The answer to the last try did not come.
    fn failed(&mut self, now: Tick, asked: Asked) {
        match self.phase {
            Phase::Asking => self.give_up(Phase::Silent, now),
            // More likely than a path that became so narrow is a peer that is gone.
            Phase::Base { again: true } => self.rest(Phase::Quiet),
            Phase::Base { again: false } => self.give_up(Phase::Narrow, now),
            Phase::Search { low, .. } => {
                let high = asked.len.saturating_sub(1).max(low);
                self.phase = Phase::Search { low, high, is_first: false };
            }
            _ => {
                (self.phase, self.limit) = (Phase::Base { again: true }, BASE);
                self.asks_hop = true;
            }
        }
    }

    fn rest(&mut self, phase: Phase) {
        (self.phase, self.limit, self.asked, self.due) = (phase, self.most, None, Tick::NEVER);
        self.asks_hop = false;
    }

    /// Rests for a while.
    fn give_up(&mut self, phase: Phase, now: Tick) {
        self.rest(phase);
        self.raise = now + RAISE;
        self.due = self.raise;
    }

    /// Nothing longer is worth a try.
    fn top(&self) -> usize {
        self.most.min(self.first_hop)
    }

    /// Does what is due: `frames` is how many packets' frames left so far, `put` writes a frame and says
    /// whether it found room.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Tick,
        frames: u64,
        mut put: impl FnMut(&dyn Fn(&mut Vec<u8>)) -> bool,
    ) {
        for (nonce, len) in self.answers.drain(..) {
            put(&|out| PathField::put_answer(out, nonce, len));
        }
        if self.due > now {
            return;
        }
        self.due = Tick::NEVER;
        let next = self.ask_again(now).or_else(|| {
            let len = self.next(now, frames)?;
            Some(Asked { nonce: self.nonce(), len, at: now, tries: 1 })
        });
        if let Some(asked) = next {
            let has_left = put(&|out| PathField::put_probe(out, asked.nonce, asked.len));
            // What did not leave says nothing of the path.
            let tries = if has_left { asked.tries } else { asked.tries - 1 };
            (self.asked, self.due) = (Some(Asked { tries, ..asked }), now + self.patience);
        }
    }

    /// The next try of what was asked and not answered.
    fn ask_again(&mut self, now: Tick) -> Option<Asked> {
        let asked = self.asked.take()?;
        if asked.tries < TRIES {
            return Some(Asked { tries: asked.tries + 1, at: now, ..asked });
        }
        self.failed(now, asked);
        None
    }

    /// The next length to ask about.
    fn next(&mut self, now: Tick, frames: u64) -> Option<usize> {
        match self.phase {
            Phase::Asking => Some(SMALL),
            Phase::Base { .. } => Some(BASE),
            Phase::Search { high, is_first: true, low } if high > low => Some(high),
            Phase::Search { low, high, .. } if high - low >= STEP => {
                Some(low + (high - low).div_ceil(2))
            }
            Phase::Search { .. } => {
                self.phase = Phase::Found;
                (self.due, self.raise, self.frames) = (now + CONFIRM, now + RAISE, frames);
                None
            }
            Phase::Found => {
                if std::mem::replace(&mut self.frames, frames) == frames {
                    self.phase = Phase::Idle;
                    return None;
                }
                if self.raise <= now {
                    (self.raise, self.asks_hop) = (now + RAISE, true);
                }
                Some(self.limit)
            }
            Phase::Silent | Phase::Narrow if self.raise <= now => {
                self.rest(Phase::Quiet);
                None
            }
            Phase::Quiet | Phase::Idle | Phase::Silent | Phase::Narrow => None,
        }
    }

    /// Numbers that a stranger does not guess while the seed is secret (SplitMix64).
    fn nonce(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
