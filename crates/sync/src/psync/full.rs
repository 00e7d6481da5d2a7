//! Full synchronisation: every member hears of every update.

use super::iblt::{self, Form, Iblt, name_key, update_name};
use super::segments::{CONTENT_OCTETS_MAX, Joined, Joining, Segments};
use crate::numbers;
use crate::svs::Check;
use crate::{Judged, Rate};
use onym_crypto::Signer;
use onym_endpoint::{Endpoint, Event, Inbound, Incoming, Packet, Request, RequestId, Transmit};
use onym_tables::{Rng, Tick};
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{Interest, Name, NameRef, types};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Members of the group, at most; further ones are not taken.
const PREFIXES_MAX: usize = 4096;
/// Interests of others that wait, at most; the oldest gives way.
const HELD_MAX: usize = 256;
/// Interests of others that are looked at: this many at once, and this many in a second after them.
const INTERESTS_BURST: u64 = 1024;
const INTERESTS_PER_SECOND: u64 = 256;
/// An Interest whose sender is ahead is looked at again so often.
const LOOKS: u32 = 2;
/// An answer with everything is soon out of date.
const ALL_FRESHNESS: Duration = Duration::from_millis(10);
/// Verifications that were asked for and not answered, at most; the oldest is dropped.
const VERIFYING_MAX: usize = 64;

/// What a member is told at its start. All members agree on `sync`, `expected` and `form`.
#[derive(Debug, Clone)]
pub struct FullConfig {
    /// Prefix of Sync Interests.
    pub sync: Name,
    /// Differences that a table tells; 80 in PSync.
    pub expected: usize,
    /// Whether tables and answers are packed by zlib, as PSync does by default.
    pub form: Form,
    /// Lifetime of Sync Interests.
    pub lifetime: Duration,
    /// FreshnessPeriod of answers.
    pub freshness: Duration,
    /// What signs answers.
    pub signer: Signer,
    /// Who looks at signatures of others.
    pub check: Check,
}

impl FullConfig {
    /// With what PSync uses when it is told nothing.
    #[must_use]
    pub fn new(sync: Name, signer: Signer) -> Self {
        Self {
            sync,
            expected: 80,
            form: Form::Zlib,
            lifetime: Duration::from_secs(1),
            freshness: Duration::from_secs(1),
            signer,
            check: Check::Ask,
        }
    }
}

/// Updates that were not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullUpdate {
    /// Of whom.
    pub prefix: Name,
    /// The first one.
    pub low: u64,
    /// The last one.
    pub high: u64,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullEvent {
    /// Others published.
    Updates(Vec<FullUpdate>),
    /// Is this Data signed by somebody who may? Answer with [`Full::verified`].
    Verify {
        /// To be given back.
        id: u64,
        /// The Data.
        packet: Vec<u8>,
    },
}

/// What a member counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FullCounters {
    /// Sync Interests sent.
    pub sent: u64,
    /// Answers given.
    pub answered: u64,
    /// Interests and answers that cannot be read.
    pub malformed: u64,
    /// Answers that were not verified.
    pub refused: u64,
    /// Interests not looked at because too many came.
    pub flooded: u64,
    /// Updates of prefixes beyond the bound.
    pub full: u64,
}

#[derive(Debug)]
struct Held {
    incoming: Incoming,
    theirs: Iblt,
    count: u64,
    expires: Tick,
    look_at: Tick,
    looks: u32,
}

/// A member of a group; see the [crate]. Verbs as [`crate::Svs`]'s.
#[derive(Debug)]
pub struct Full {
    config: FullConfig,
    endpoint: Endpoint,
    seqs: BTreeMap<Name, u64>,
    /// Which update a key of our table stands for.
    keys: BTreeMap<u32, (Name, u64)>,
    table: Iblt,
    /// Sum of all sequence numbers.
    count: u64,
    held: VecDeque<Held>,
    asked: Option<RequestId>,
    joining: Joining,
    /// The next segment of an answer.
    segment: Option<RequestId>,
    verifying: VecDeque<(u64, Packet)>,
    verify_next: u64,
    ask_at: Tick,
    segments: Segments,
    rate: Rate,
    events: VecDeque<FullEvent>,
    rng: Rng,
    counters: FullCounters,
}

impl Full {
    /// A member that knows nothing yet. `unix_ms` begins the versions of its answers.
    #[must_use]
    pub fn new(now: Tick, unix_ms: u64, config: FullConfig, seed: u64) -> Self {
        let mut endpoint = Endpoint::new(!seed, onym_endpoint::Limits::default());
        let served = endpoint.serve(config.sync.clone());
        debug_assert!(served.is_ok(), "the first prefix has room");
        Self {
            table: Iblt::new(config.expected),
            config,
            endpoint,
            seqs: BTreeMap::new(),
            keys: BTreeMap::new(),
            count: 0,
            held: VecDeque::new(),
            asked: None,
            joining: Joining::default(),
            segment: None,
            verifying: VecDeque::new(),
            verify_next: 0,
            ask_at: now,
            segments: Segments::new(unix_ms),
            rate: Rate::new(now, INTERESTS_BURST, INTERESTS_PER_SECOND),
            events: VecDeque::new(),
            rng: Rng::new(seed),
            counters: FullCounters::default(),
        }
    }

    /// The newest update of `prefix`, 0 when there is none.
    #[must_use]
    pub fn seq(&self, prefix: &Name) -> u64 {
        self.seqs.get(prefix).copied().unwrap_or(0)
    }

    /// Everything that is known.
    pub fn known(&self) -> impl Iterator<Item = (&Name, u64)> {
        self.seqs.iter().map(|(prefix, seq)| (prefix, *seq))
    }

    /// Publishes the next update of our `prefix`; who waits hears of it at once.
    pub fn publish(&mut self, now: Tick, prefix: &Name) -> u64 {
        let seq = self.seq(prefix) + 1;
        self.set(prefix, seq);
        self.look_at_held(now, true);
        seq
    }

    fn set(&mut self, prefix: &Name, seq: u64) {
        let before = self.seq(prefix);
        if before > 0 {
            let key = name_key(prefix, before);
            self.table.remove(key);
            self.keys.remove(&key);
        }
        let key = name_key(prefix, seq);
        self.table.insert(key);
        self.keys.insert(key, (prefix.clone(), seq));
        self.seqs.insert(prefix.clone(), seq);
        self.count = self.count.wrapping_add(seq - before);
    }

    // --- packets and time

    /// Takes a packet. Says whether it was for this group.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        let taken = self.endpoint.receive(now, packet);
        self.settle(now);
        taken
    }

    /// The answer to a [`FullEvent::Verify`].
    pub fn verified(&mut self, now: Tick, id: u64, judged: Judged) {
        let Some(at) = self.verifying.iter().position(|(other, _)| *other == id) else { return };
        let Some((_, packet)) = self.verifying.remove(at) else { return };
        if judged == Judged::Good {
            self.on_answer(now, &packet);
        } else {
            self.counters.refused += 1;
        }
    }

    /// When [`Full::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        let held = self.held.iter().map(|h| h.look_at.min(h.expires)).min();
        self.endpoint.poll_timeout().min(self.ask_at).min(held.unwrap_or(Tick::NEVER))
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        self.endpoint.handle_timeout(now);
        self.settle(now);
        self.look_at_held(now, false);
        if now >= self.ask_at {
            self.ask(now);
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.endpoint.poll_transmit()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<FullEvent> {
        self.events.pop_front()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> FullCounters {
        self.counters
    }

    fn jitter(&mut self) -> Duration {
        Duration::from_millis(100 + self.rng.below(400))
    }

    fn ask(&mut self, now: Tick) {
        if let Some(before) = self.asked.take() {
            self.endpoint.cancel(before);
        }
        let mut name = self.config.sync.clone();
        name.append_generic(self.table.encode(self.config.form));
        name.append_number(types::GENERIC_COMPONENT, self.count);
        let request = Request {
            can_be_prefix: true,
            must_be_fresh: true,
            lifetime: self.config.lifetime,
            ..Request::new(name)
        };
        self.asked = self.endpoint.express(now, &request).ok();
        self.counters.sent += u64::from(self.asked.is_some());
        self.ask_at = now + self.config.lifetime / 2 + self.jitter();
    }

    fn settle(&mut self, now: Tick) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Data { id, packet, .. }
                    if self.asked == Some(id) || self.segment == Some(id) =>
                {
                    self.asked = self.asked.filter(|asked| *asked != id);
                    self.segment = self.segment.filter(|asked| *asked != id);
                    self.verify(now, packet);
                }
                Event::Unanswered { id, .. } => {
                    self.asked = self.asked.filter(|asked| *asked != id);
                    self.segment = self.segment.filter(|asked| *asked != id);
                }
                Event::Interest { incoming, .. } => self.on_interest(now, incoming),
                _ => {}
            }
        }
    }

    fn verify(&mut self, now: Tick, packet: Packet) {
        if self.config.check == Check::Nothing {
            return self.on_answer(now, &packet);
        }
        if self.verifying.len() >= VERIFYING_MAX {
            self.verifying.pop_front();
        }
        let id = self.verify_next;
        self.verify_next += 1;
        self.events.push_back(FullEvent::Verify { id, packet: packet.wire().to_vec() });
        self.verifying.push_back((id, packet));
    }

    // --- answers of others

    fn on_answer(&mut self, now: Tick, packet: &Packet) {
        if self.joined(now, packet).is_err() {
            self.counters.malformed += 1;
        }
    }

    /// Puts segments together and takes the whole.
    fn joined(&mut self, now: Tick, packet: &Packet) -> Result<(), Malformed> {
        match self.joining.join(&packet.data())? {
            Joined::Whole(_, content) => self.take(now, &content),
            Joined::More(name) => {
                let lifetime = self.config.lifetime;
                let request = Request { tries: 3, lifetime, ..Request::new(name) };
                self.segment = self.endpoint.express(now, &request).ok();
                Ok(())
            }
        }
    }

    fn take(&mut self, now: Tick, content: &[u8]) -> Result<(), Malformed> {
        let names = read_content(content, self.config.form)?;
        let mut updates = Vec::new();
        for (prefix, high) in names {
            let known = self.seq(&prefix);
            if high <= known {
                continue;
            }
            if known == 0 && self.seqs.len() >= PREFIXES_MAX {
                self.counters.full += 1;
                continue;
            }
            self.set(&prefix, high);
            updates.push(FullUpdate { prefix, low: known + 1, high });
        }
        if !updates.is_empty() {
            self.events.push_back(FullEvent::Updates(updates));
            self.look_at_held(now, true);
        }
        self.ask_at = now + self.jitter();
        Ok(())
    }

    // --- Interests of others

    fn on_interest(&mut self, now: Tick, incoming: Incoming) {
        let name = incoming.interest().name.to_name();
        if let Some(segment) = self.segments.get(name.as_ref()) {
            return self.endpoint.reply(&incoming, segment);
        }
        if !self.rate.allow(now, 1) {
            self.counters.flooded += 1;
            return;
        }
        let Ok((theirs, count)) = self.read_interest(&incoming.interest()) else {
            self.counters.malformed += 1;
            return;
        };
        if self.held.len() >= HELD_MAX {
            self.held.pop_front();
        }
        let lifetime = Duration::from_millis(incoming.interest().lifetime_or_default());
        let (expires, looks) = (now + lifetime, LOOKS);
        self.held.push_back(Held { incoming, theirs, count, expires, look_at: now, looks });
        self.look_at_held(now, false);
    }

    fn read_interest(&self, interest: &Interest<'_>) -> Result<(Iblt, u64), Malformed> {
        let missing = Malformed::Missing(types::GENERIC_COMPONENT);
        let rest = interest.name.strip_prefix(self.config.sync.as_ref()).ok_or(missing)?;
        let (2, Some(table), Some(count)) = (rest.len(), rest.get(0), rest.get(1)) else {
            return Err(missing);
        };
        let theirs = self.table.decode_alike(table.value, self.config.form)?;
        Ok((theirs, count.as_number().ok_or(missing)?))
    }

    /// Answers what can be answered: all of it when there is `news`, else what is due.
    fn look_at_held(&mut self, now: Tick, news: bool) {
        for mut held in std::mem::take(&mut self.held) {
            if held.expires <= now {
                continue;
            }
            if !news && held.look_at > now {
                self.held.push_back(held);
                continue;
            }
            let names = match self.table.difference(&held.theirs) {
                Some(difference) => self.extra(&difference.ours),
                // Too much: the one who knows less is told everything, after the others had a chance.
                None if held.count > self.count && held.looks > 0 => Vec::new(),
                None => self.seqs.iter().map(|(p, seq)| (p.clone(), *seq)).collect(),
            };
            if !names.is_empty() {
                let is_all = names.len() == self.seqs.len();
                self.answer(&held.incoming, &names, is_all);
                continue;
            }
            held.looks = held.looks.saturating_sub(u32::from(!news));
            held.look_at = if held.looks > 0 { now + self.jitter() } else { held.expires };
            self.held.push_back(held);
        }
    }

    fn extra(&self, keys: &[u32]) -> Vec<(Name, u64)> {
        keys.iter().filter_map(|key| self.keys.get(key).cloned()).collect()
    }

    fn answer(&mut self, incoming: &Incoming, names: &[(Name, u64)], is_all: bool) {
        let freshness = if is_all { ALL_FRESHNESS } else { self.config.freshness };
        let base = incoming.interest().name.to_name();
        let content = write_content(names, self.config.form);
        let first = self.segments.publish(base, &content, freshness, &self.config.signer);
        if let Ok(first) = first {
            self.counters.answered += 1;
            self.endpoint.reply(incoming, first);
        }
    }
}

/// Content of an answer.
pub(crate) fn write_content(names: &[(Name, u64)], form: Form) -> Vec<u8> {
    let mut content = Vec::new();
    tlv::put_nested(&mut content, numbers::PSYNC_CONTENT, |out| {
        names.iter().for_each(|(prefix, seq)| update_name(prefix, *seq).as_ref().write_tlv(out));
    });
    iblt::pack(content, form)
}

/// Reads the content of an answer: prefixes with their newest update.
///
/// # Errors
/// [`Malformed`], also for what is longer than a megabyte unpacked.
pub(crate) fn read_content(content: &[u8], form: Form) -> Result<Vec<(Name, u64)>, Malformed> {
    let content = iblt::unpack(content, form, CONTENT_OCTETS_MAX)?;
    let mut names = Vec::new();
    for element in Reader::new(Reader::new(&content).expect(numbers::PSYNC_CONTENT)?.value) {
        let element = element?;
        if element.typ != types::NAME {
            return Err(Malformed::Unexpected(element.typ));
        }
        let name = NameRef::parse_value(element.value)?;
        let seq = name.last().and_then(|c| c.as_number());
        let seq = seq.filter(|seq| *seq <= u64::MAX >> 1).ok_or(Malformed::Value(types::NAME))?;
        names.push((name.drop_last(1).to_name(), seq));
    }
    Ok(names)
}

#[cfg(test)]
impl Full {
    pub(crate) fn held_len(&self) -> usize {
        self.held.len()
    }
}
