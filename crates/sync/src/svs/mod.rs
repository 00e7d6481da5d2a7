//! State Vector Sync: one participant of one group.

mod known;
mod packet;
mod vector;
mod version;

#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod tests;

pub use known::{Forgetting, KnownCounters, Limits, Members};
pub use packet::{InnerName, SyncPacket, version_of};
pub(crate) use vector::skip;
pub use vector::{StateVector, Update};
pub use version::Version;

use crate::{Judged, Rate};
use known::Known;
use onym_crypto::Signer;
use onym_tables::{Rng, Tick};
use onym_wire::{Interest, Name};
use std::collections::VecDeque;
use std::time::Duration;

/// Vectors whose verification was asked for and not answered yet, at most.
pub const VERIFYING_MAX: usize = 64;
/// Vectors of others that are looked at: this many at once, and this many in a second after them. A
/// group of a thousand members that all publish in the same second stays below for the most.
const VECTORS_BURST: u64 = 1024;
const VECTORS_PER_SECOND: u64 = 256;
/// Octets of what goes along with a vector, at most.
pub const EXTRA_OCTETS_MAX: usize = 1024;
/// A vector with a bootstrap time further in the future is ignored whole.
const FUTURE_MAX_S: u64 = 86_400;
/// Wait between a face that opened and the vector for it: others may open with it.
const CONNECTED_WAIT: Duration = Duration::from_millis(100);

/// Who looks at signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The owner: each vector becomes an [`SvsEvent::Verify`] and counts once it is answered.
    Ask,
    /// Nobody: whoever reaches the group changes it. For laboratories.
    Nothing,
}

/// What a participant is told at its start.
#[derive(Debug, Clone)]
pub struct SvsConfig {
    /// Prefix of Sync Interests, without the version.
    pub group: Name,
    /// Protocol version.
    pub version: Version,
    /// The node that publishes here; `None` listens and repeats what it heard.
    pub node: Option<Name>,
    /// Bootstrap time of the node, seconds since the Unix epoch: `max(now, the last one + 1)`, so
    /// that it never goes backward. Version 2 has none.
    pub boot: u64,
    /// Name of the signed Data in Sync Interests of version 3.
    pub inner: InnerName,
    /// What signs vectors.
    pub signer: Signer,
    /// Who looks at signatures of others.
    pub check: Check,
    /// Time between vectors while nothing happens, 10 % more or less.
    pub periodic: Duration,
    /// Longest wait before an outdated peer is told; also the time during which news may still be
    /// on its way, so that a peer without it is left alone.
    pub suppression: Duration,
    /// Which nodes may be in the group.
    pub members: Members,
    /// Bounds of the vector.
    pub limits: Limits,
    /// When entries are forgotten.
    pub forgetting: Forgetting,
}

impl SvsConfig {
    /// Version 3 with the times and bounds that the field uses.
    #[must_use]
    pub fn new(group: Name, node: Option<Name>, boot: u64, signer: Signer) -> Self {
        Self {
            group,
            version: Version::V3,
            node,
            boot,
            inner: InnerName::Group,
            signer,
            check: Check::Ask,
            periodic: Duration::from_secs(30),
            suppression: Duration::from_millis(200),
            members: Members::Any,
            limits: Limits::default(),
            forgetting: Forgetting::default(),
        }
    }
}

/// Identifies a verification that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VerifyId(u64);

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SvsEvent {
    /// Others published, newest bootstrap first within a node.
    Updates(Vec<Update>),
    /// Is this signed by somebody who may? Answer with [`Svs::verified`].
    Verify {
        /// To be given back.
        id: VerifyId,
        /// Version 3: the Data inside. Version 2: the Sync Interest.
        packet: Vec<u8>,
    },
    /// What came along with a vector that was accepted: mapping data of SVS-PS.
    Extra(Vec<u8>),
    /// Somebody told of a greater sequence number of our node at our bootstrap time than was
    /// published: the number was taken, the next publication comes behind it. Another node may be
    /// using our name.
    OwnAhead {
        /// What was heard.
        seq: u64,
    },
}

/// What a participant counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SvsCounters {
    /// Sync Interests sent.
    pub sent: u64,
    /// Sync Interests received that are well formed.
    pub received: u64,
    /// Interests of this group that are no Sync Interests of this version.
    pub malformed: u64,
    /// Vectors with a bootstrap time in the future: our clock or theirs is wrong.
    pub future: u64,
    /// Vectors that were not verified.
    pub refused: u64,
    /// Vectors not looked at because too many came.
    pub flooded: u64,
    /// Vectors dropped because [`VERIFYING_MAX`] others waited for their verification.
    pub verifying_dropped: u64,
    /// Outdated vectors that were not answered, because others did or the news is on its way.
    pub suppressed: u64,
    /// Vectors that could not be signed.
    pub unsigned: u64,
}

#[derive(Debug)]
enum State {
    Steady,
    /// Somebody is outdated; the maximum of what was heard since.
    Suppressing(StateVector),
}

/// A participant; see the [crate].
#[derive(Debug)]
pub struct Svs {
    config: SvsConfig,
    known: Known,
    state: State,
    deadline: Tick,
    /// When a vector leaves for faces that opened, whatever is heard on others meanwhile.
    greeting: Tick,
    /// A vector should leave.
    is_due: bool,
    /// What goes along with the next one.
    extra: Vec<u8>,
    verifying: VecDeque<(VerifyId, SyncPacket)>,
    verify_next: u64,
    rate: Rate,
    events: VecDeque<SvsEvent>,
    rng: Rng,
    now: Tick,
    /// Wall clock at [`Tick`] zero, milliseconds since the Unix epoch.
    unix_ms_at_zero: u64,
    counters: SvsCounters,
}

impl Svs {
    /// Signs by another certificate from now on.
    pub fn renew(&mut self, signer: Signer) {
        self.config.signer = signer;
    }

    /// A participant that knows nothing yet. Its first vector is due at once.
    ///
    /// `unix_ms` is the wall clock at `now`; `seed` should differ from node to node.
    #[must_use]
    pub fn new(now: Tick, unix_ms: u64, config: SvsConfig, seed: u64) -> Self {
        let known = Known::new(config.members.clone(), config.limits, config.forgetting);
        let mut svs = Self {
            config,
            known,
            state: State::Steady,
            deadline: Tick::NEVER,
            greeting: Tick::NEVER,
            is_due: true,
            extra: Vec::new(),
            verifying: VecDeque::new(),
            verify_next: 0,
            rate: Rate::new(now, VECTORS_BURST, VECTORS_PER_SECOND),
            events: VecDeque::new(),
            rng: Rng::new(seed),
            now,
            unix_ms_at_zero: 0,
            counters: SvsCounters::default(),
        };
        svs.set_clock(now, unix_ms);
        svs.steady(now);
        svs
    }

    /// Tells the wall clock again, after it was set. No timer depends on it.
    pub fn set_clock(&mut self, now: Tick, unix_ms: u64) {
        self.unix_ms_at_zero = unix_ms.saturating_sub(now.0 / 1_000_000);
    }

    fn unix_ms(&self) -> u64 {
        self.unix_ms_at_zero.saturating_add(self.now.0 / 1_000_000)
    }

    /// What this participant was told at its start.
    #[must_use]
    pub const fn config(&self) -> &SvsConfig {
        &self.config
    }

    /// Prefix of Sync Interests with their version: to be routed to the group by multicast. Peers
    /// register the group without the version, and some routes do not inherit: who registers this
    /// longer prefix takes care of theirs.
    #[must_use]
    pub fn prefix(&self) -> Name {
        packet::sync_name(self.config.group.as_ref(), self.config.version)
    }

    /// What is known, to be shown or kept. [`Svs::restore`] takes it back.
    #[must_use]
    pub fn vector(&self) -> StateVector {
        self.known.vector()
    }

    /// Whether anything was heard of `node`, at `boot` or, without one, at any bootstrap time.
    #[must_use]
    pub fn has(&self, node: &Name, boot: Option<u64>) -> bool {
        self.known.has(node, boot)
    }

    /// Takes a vector that was kept over a restart, without events.
    pub fn restore(&mut self, now: Tick, vector: &StateVector) {
        self.known.merge(now, vector);
    }

    /// How far the node of this participant is.
    #[must_use]
    pub fn seq(&self) -> u64 {
        let boot = self.own_boot();
        self.config.node.as_ref().map_or(0, |node| self.known.seq(node, boot))
    }

    const fn own_boot(&self) -> u64 {
        match self.config.version {
            Version::V2 => 0,
            Version::V3 => self.config.boot,
        }
    }

    // --- publishing

    /// Takes the next sequence number of our node; the group hears of it at once. The Data should
    /// be ready to be fetched before the vector leaves. `None` without a node of our own.
    pub fn publish(&mut self, now: Tick) -> Option<u64> {
        self.now = self.now.max(now);
        let node = self.config.node.clone()?;
        let seq = self.seq() + 1;
        self.known.set(now, &node, self.own_boot(), seq);
        self.is_due = true;
        Some(seq)
    }

    /// Sends elements along with the next vector, such as mapping data. What does not fit
    /// [`EXTRA_OCTETS_MAX`] is left out: peers then ask for it.
    pub fn attach(&mut self, elements: &[u8]) {
        if self.extra.len() + elements.len() <= EXTRA_OCTETS_MAX {
            self.extra.extend_from_slice(elements);
        }
    }

    /// Sends a vector now: a neighbour came up, for example.
    pub fn sync_now(&mut self, now: Tick) {
        self.now = self.now.max(now);
        self.is_due = true;
    }

    /// Sync Interests leave by a further face from now on: a vector follows in 100 ms at most. Who is
    /// behind that face may lack what everybody else has.
    pub fn connected(&mut self, now: Tick) {
        self.greeting = self.greeting.min(now + CONNECTED_WAIT);
    }

    // --- packets and time

    /// Takes an Interest. Says whether it was for this group.
    pub fn receive(&mut self, now: Tick, interest: &[u8]) -> bool {
        self.now = self.now.max(now);
        let group = self.config.group.as_ref();
        let is_of_group = Interest::parse(interest).is_ok_and(|i| group.is_prefix_of(i.name));
        if is_of_group && !self.rate.allow(now, 1) {
            self.counters.flooded += 1;
            return true;
        }
        let packet = match SyncPacket::parse(interest, group, self.config.version) {
            Ok(Some(packet)) => packet,
            Ok(None) => return false,
            Err(_) => {
                self.counters.malformed += 1;
                return true;
            }
        };
        self.counters.received += 1;
        if packet.vector.newest_boot() > self.unix_ms() / 1000 + FUTURE_MAX_S {
            self.counters.future += 1;
            return true;
        }
        match self.config.check {
            Check::Nothing => self.accept(now, packet),
            Check::Ask => self.ask(packet),
        }
        true
    }

    fn ask(&mut self, packet: SyncPacket) {
        if self.verifying.len() >= VERIFYING_MAX {
            self.verifying.pop_front();
            self.counters.verifying_dropped += 1;
        }
        let id = VerifyId(self.verify_next);
        self.verify_next += 1;
        let signed = packet.signed.clone();
        self.verifying.push_back((id, packet));
        self.events.push_back(SvsEvent::Verify { id, packet: signed });
    }

    /// The answer to an [`SvsEvent::Verify`].
    pub fn verified(&mut self, now: Tick, id: VerifyId, judged: Judged) {
        self.now = self.now.max(now);
        let Some(at) = self.verifying.iter().position(|(other, _)| *other == id) else { return };
        let Some((_, packet)) = self.verifying.remove(at) else { return };
        if judged == Judged::Good {
            self.accept(now, packet);
        } else {
            self.counters.refused += 1;
        }
    }

    fn accept(&mut self, now: Tick, packet: SyncPacket) {
        let heard = packet.vector;
        self.hear_of_ourselves(now, &heard);
        let updates = self.known.merge(now, &heard);
        if !updates.is_empty() {
            self.events.push_back(SvsEvent::Updates(updates));
        }
        if !packet.extra.is_empty() {
            self.events.push_back(SvsEvent::Extra(packet.extra));
        }
        let lacking = self.known.lacking(now, &heard, self.config.suppression);
        if let (State::Suppressing(collected), true) = (&mut self.state, lacking.is_outdated) {
            collected.merge(&heard);
            return;
        }
        if !lacking.is_outdated {
            self.steady(now);
        } else if lacking.is_only_recent {
            self.counters.suppressed += 1;
        } else {
            self.state = State::Suppressing(heard);
            self.deadline = now + self.suppression_wait();
        }
    }

    fn hear_of_ourselves(&mut self, now: Tick, heard: &StateVector) {
        let (Some(node), boot) = (self.config.node.clone(), self.own_boot()) else { return };
        let seq = heard.seq(&node, boot);
        if seq > self.seq() {
            self.known.set(now, &node, boot, seq);
            self.events.push_back(SvsEvent::OwnAhead { seq });
        }
    }

    fn steady(&mut self, now: Tick) {
        self.state = State::Steady;
        let tenth = u64::try_from(self.config.periodic.as_nanos() / 10).unwrap_or(u64::MAX);
        let jitter = self.rng.below(tenth.saturating_mul(2));
        self.deadline = now + self.config.periodic * 9 / 10 + Duration::from_nanos(jitter);
    }

    /// `c (1 - e^((v - c) / (c / 10)))` with `v` uniform below `c`: most waits are near `c`, few
    /// are short, so that few answer.
    fn suppression_wait(&mut self) -> Duration {
        #[allow(clippy::cast_precision_loss)]
        let v = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.config.suppression.mul_f64((1.0 - (10.0 * (v - 1.0)).exp()).clamp(0.0, 1.0))
    }

    /// When [`Svs::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        self.deadline.min(self.greeting)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        self.now = self.now.max(now);
        if now >= self.greeting {
            self.is_due = true;
            // Until the vector is taken away.
            self.greeting = Tick::NEVER;
        }
        if now < self.deadline {
            return;
        }
        self.known.forget(now, self.config.node.as_ref());
        let told = match &self.state {
            State::Steady => false,
            State::Suppressing(collected) => {
                !self.known.lacking(now, collected, Duration::ZERO).is_outdated
            }
        };
        if told {
            self.counters.suppressed += 1;
            self.steady(now);
        } else {
            self.is_due = true;
            // Until the vector is taken away.
            self.deadline = Tick::NEVER;
        }
    }

    /// The next Sync Interest to send, and to nobody waits for an answer. Vectors that became due
    /// together leave as one.
    pub fn poll_transmit(&mut self, now: Tick) -> Option<Vec<u8>> {
        self.now = self.now.max(now);
        if !std::mem::take(&mut self.is_due) {
            return None;
        }
        self.steady(now);
        self.greeting = Tick::NEVER;
        let (nonce, fresh) = (self.rng.next_u32().to_be_bytes(), self.rng.next_u64());
        let vector = self.known.vector();
        let extra = std::mem::take(&mut self.extra);
        let written = packet::write(&self.config, &vector, &extra, nonce, fresh, self.unix_ms());
        if written.is_err() {
            self.counters.unsigned += 1;
        }
        self.counters.sent += u64::from(written.is_ok());
        written.ok()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<SvsEvent> {
        self.events.pop_front()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> SvsCounters {
        self.counters
    }

    /// What happened to entries.
    #[must_use]
    pub const fn known_counters(&self) -> KnownCounters {
        self.known.counters()
    }
}
