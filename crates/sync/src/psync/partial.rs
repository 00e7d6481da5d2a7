//! Partial synchronisation: a producer of many prefixes, and consumers that each want some of them.

use super::bloom::Bloom;
use super::full::{FullUpdate, read_content, write_content};
use super::iblt::{Form, Iblt, name_key};
use super::segments::{Joined, Joining, Segments};
use crate::svs::Check;
use crate::{Judged, Rate};
use onym_crypto::Signer;
use onym_endpoint::{Endpoint, Event, Inbound, Incoming, Packet, Request, RequestId, Transmit};
use onym_tables::{Rng, Tick};
use onym_wire::name::Component;
use onym_wire::{Data, DataBuilder, Malformed, Name, NameRef, types};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Prefixes of a producer, and subscriptions of a consumer, at most.
const PREFIXES_MAX: usize = 4096;
/// Interests that wait for news at a producer, at most; the oldest gives way.
const HELD_MAX: usize = 256;
/// Interests that are looked at: this many at once, and this many in a second after them.
const INTERESTS_BURST: u64 = 1024;
const INTERESTS_PER_SECOND: u64 = 256;
const HELLO: &[u8] = b"hello";
const SYNC: &[u8] = b"sync";
/// What PSync's filter is made for: names, and mistakes of a thousand.
const BLOOM: (u64, u64) = (6, 1);

/// What a producer is told at its start.
#[derive(Debug, Clone)]
pub struct ProducerConfig {
    /// Prefix of its Interests.
    pub sync: Name,
    /// Differences that a table tells; 40 in PSync.
    pub expected: usize,
    /// How tables travel; as they are in PSync.
    pub form: Form,
    /// FreshnessPeriod of answers.
    pub freshness: Duration,
    /// What signs answers.
    pub signer: Signer,
}

impl ProducerConfig {
    /// With what PSync uses when it is told nothing.
    #[must_use]
    pub fn new(sync: Name, signer: Signer) -> Self {
        let freshness = Duration::from_secs(1);
        Self { sync, expected: 40, form: Form::Plain, freshness, signer }
    }
}

#[derive(Debug)]
struct Held {
    incoming: Incoming,
    wanted: Bloom,
    theirs: Iblt,
    expires: Tick,
}

/// Publishes updates of prefixes.
#[derive(Debug)]
pub struct Producer {
    config: ProducerConfig,
    endpoint: Endpoint,
    seqs: BTreeMap<Name, u64>,
    keys: BTreeMap<u32, Name>,
    table: Iblt,
    held: VecDeque<Held>,
    segments: Segments,
    rate: Rate,
    malformed: u64,
    flooded: u64,
}

impl Producer {
    /// A producer without prefixes. `unix_ms` begins the versions of its answers.
    #[must_use]
    pub fn new(unix_ms: u64, config: ProducerConfig, seed: u64) -> Self {
        let mut endpoint = Endpoint::new(seed, onym_endpoint::Limits::default());
        let served = endpoint.serve(config.sync.clone());
        debug_assert!(served.is_ok(), "the first prefix has room");
        Self {
            table: Iblt::new(config.expected),
            config,
            endpoint,
            seqs: BTreeMap::new(),
            keys: BTreeMap::new(),
            held: VecDeque::new(),
            segments: Segments::new(unix_ms),
            rate: Rate::new(Tick(0), INTERESTS_BURST, INTERESTS_PER_SECOND),
            malformed: 0,
            flooded: 0,
        }
    }

    /// Publishes the next update of `prefix`; `None` when there are too many prefixes.
    pub fn publish(&mut self, now: Tick, prefix: &Name) -> Option<u64> {
        let before = self.seqs.get(prefix).copied().unwrap_or(0);
        if before == 0 && self.seqs.len() >= PREFIXES_MAX {
            return None;
        }
        if before > 0 {
            let key = name_key(prefix, before);
            self.table.remove(key);
            self.keys.remove(&key);
        }
        let seq = before + 1;
        let key = name_key(prefix, seq);
        self.table.insert(key);
        self.keys.insert(key, prefix.clone());
        self.seqs.insert(prefix.clone(), seq);
        for held in std::mem::take(&mut self.held) {
            if now < held.expires {
                self.answer_or_hold(held);
            }
        }
        Some(seq)
    }

    /// Takes a packet. Says whether it was for this producer.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        let taken = self.endpoint.receive(now, packet);
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::Interest { incoming, .. } = event
                && self.on_interest(now, &incoming).is_err()
            {
                self.malformed += 1;
            }
        }
        taken
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.endpoint.poll_transmit()
    }

    /// Interests that could not be read.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Interests not looked at because too many came.
    #[must_use]
    pub const fn flooded(&self) -> u64 {
        self.flooded
    }

    fn on_interest(&mut self, now: Tick, incoming: &Incoming) -> Result<(), Malformed> {
        let interest = incoming.interest();
        if let Some(segment) = self.segments.get(interest.name) {
            self.endpoint.reply(incoming, segment);
            return Ok(());
        }
        if !self.rate.allow(now, 1) {
            self.flooded += 1;
            return Ok(());
        }
        let missing = Malformed::Missing(types::GENERIC_COMPONENT);
        let rest = interest.name.strip_prefix(self.config.sync.as_ref()).ok_or(missing)?;
        let word = rest.get(0).filter(|c| c.is_generic()).map(|c| c.value);
        if word == Some(HELLO) && rest.len() == 1 {
            let all: Vec<(Name, u64)> = self.seqs.iter().map(|(p, s)| (p.clone(), *s)).collect();
            self.answer(incoming, &all);
            return Ok(());
        }
        if word != Some(SYNC) || rest.len() != 5 {
            return Err(missing);
        }
        let number = |at| rest.get(at).and_then(Component::as_number).ok_or(missing);
        let value = |at| rest.get(at).map(|c: Component<'_>| c.value).ok_or(missing);
        let wanted = Bloom::read(number(1)?, number(2)?, value(3)?)?;
        let theirs = self.table.decode_alike(value(4)?, self.config.form)?;
        let lifetime = Duration::from_millis(interest.lifetime_or_default());
        let held = Held { incoming: incoming.clone(), wanted, theirs, expires: now + lifetime };
        self.answer_or_hold(held);
        Ok(())
    }

    /// Who is behind in what it wants, or in very much, is answered; others wait for news.
    fn answer_or_hold(&mut self, held: Held) {
        let Some(difference) = self.table.difference(&held.theirs) else {
            return self.refuse(&held.incoming);
        };
        let prefixes = difference.ours.iter().filter_map(|key| self.keys.get(key));
        let wanted: Vec<(Name, u64)> = prefixes
            .filter(|prefix| held.wanted.contains(prefix))
            .filter_map(|prefix| Some((prefix.clone(), *self.seqs.get(prefix)?)))
            .collect();
        let far = difference.ours.len() + difference.theirs.len() >= self.config.expected / 2;
        if far || !wanted.is_empty() {
            return self.answer(&held.incoming, &wanted);
        }
        if self.held.len() >= HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back(held);
    }

    /// Answers with `names` and the newest table.
    fn answer(&mut self, incoming: &Incoming, names: &[(Name, u64)]) {
        let mut base = incoming.interest().name.to_name();
        base.append_generic(self.table.encode(self.config.form));
        let content = write_content(names, Form::Plain);
        let (freshness, signer) = (self.config.freshness, &self.config.signer);
        if let Ok(first) = self.segments.publish(base, &content, freshness, signer) {
            self.endpoint.reply(incoming, first);
        }
    }

    /// The difference cannot be read: an application-level Nack, so that the consumer says hello.
    fn refuse(&mut self, incoming: &Incoming) {
        let mut name = incoming.interest().name.to_name();
        name.append_generic(self.table.encode(self.config.form)).append_segment(0);
        let mut end = Name::new();
        end.append_segment(0);
        let data = DataBuilder {
            content_type: types::CONTENT_NACK,
            freshness_ms: u64::try_from(self.config.freshness.as_millis()).unwrap_or(1000),
            final_block_id: end.as_ref().last(),
            ..DataBuilder::new(name.as_ref(), &[])
        };
        let mut wire = Vec::new();
        if self.config.signer.sign_data(&data, &mut wire).is_ok() {
            self.endpoint.reply(incoming, wire);
        }
    }
}

/// What a consumer is told at its start.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// Prefix of the producer's Interests.
    pub sync: Name,
    /// Lifetime of Interests.
    pub lifetime: Duration,
    /// Who looks at signatures of the producer.
    pub check: Check,
    /// What the filter is made for: names, and mistakes of a thousand.
    pub bloom: (u64, u64),
}

impl ConsumerConfig {
    /// With what PSync uses when it is told nothing.
    #[must_use]
    pub fn new(sync: Name) -> Self {
        Self { sync, lifetime: Duration::from_secs(1), check: Check::Ask, bloom: BLOOM }
    }
}

/// What happened at a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartialEvent {
    /// What the producer has: prefixes with their newest update.
    Offered(Vec<(Name, u64)>),
    /// Updates of prefixes that were subscribed to.
    Updates(Vec<FullUpdate>),
    /// Is this Data signed by somebody who may? Answer with [`Consumer::verified`].
    Verify {
        /// To be given back.
        id: u64,
        /// The Data.
        packet: Vec<u8>,
    },
}

/// Hears of updates of some prefixes.
#[derive(Debug)]
pub struct Consumer {
    config: ConsumerConfig,
    endpoint: Endpoint,
    subscriptions: BTreeMap<Name, u64>,
    /// The producer's newest table, as it came.
    table: Option<Vec<u8>>,
    asked: Option<RequestId>,
    ask_at: Tick,
    joining: Joining,
    verifying: Option<(u64, Packet)>,
    verify_next: u64,
    events: VecDeque<PartialEvent>,
    rng: Rng,
    malformed: u64,
}

impl Consumer {
    /// A consumer that says hello at once.
    #[must_use]
    pub fn new(now: Tick, config: ConsumerConfig, seed: u64) -> Self {
        Self {
            config,
            endpoint: Endpoint::new(!seed, onym_endpoint::Limits::default()),
            subscriptions: BTreeMap::new(),
            table: None,
            asked: None,
            ask_at: now,
            joining: Joining::default(),
            verifying: None,
            verify_next: 0,
            events: VecDeque::new(),
            rng: Rng::new(seed),
            malformed: 0,
        }
    }

    /// Subscribes to `prefix`, whose updates up to `seq` are known; says whether there was room.
    /// What it has beyond them is told after the next hello.
    pub fn subscribe(&mut self, now: Tick, prefix: Name, seq: u64) -> bool {
        if self.subscriptions.len() >= PREFIXES_MAX {
            return false;
        }
        self.subscriptions.insert(prefix, seq);
        self.hello(now);
        true
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, prefix: &Name) {
        self.subscriptions.remove(prefix);
    }

    fn hello(&mut self, now: Tick) {
        self.table = None;
        self.again(now, Duration::ZERO);
    }

    fn again(&mut self, now: Tick, wait: Duration) {
        if let Some(asked) = self.asked.take() {
            self.endpoint.cancel(asked);
        }
        self.ask_at = now + wait;
    }

    fn ask(&mut self, now: Tick) {
        let mut name = self.config.sync.clone();
        match &self.table {
            None => drop(name.append_generic(HELLO)),
            Some(table) => {
                let (count, mistakes) = self.config.bloom;
                let Some(mut wanted) = Bloom::new(count, mistakes) else {
                    self.ask_at = Tick::NEVER;
                    return;
                };
                self.subscriptions.keys().for_each(|prefix| wanted.insert(prefix));
                name.append_generic(SYNC);
                wanted.append_to(&mut name);
                name.append_generic(table);
            }
        }
        let request = Request {
            can_be_prefix: true,
            must_be_fresh: true,
            lifetime: self.config.lifetime,
            ..Request::new(name)
        };
        self.asked = self.endpoint.express(now, &request).ok();
        self.ask_at = if self.asked.is_some() { Tick::NEVER } else { now + self.jitter() };
    }

    fn jitter(&mut self) -> Duration {
        Duration::from_millis(100 + self.rng.below(400))
    }

    /// Takes a packet. Says whether it was for this consumer.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        let taken = self.endpoint.receive(now, packet);
        self.settle(now);
        taken
    }

    fn settle(&mut self, now: Tick) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Data { id, packet, .. } if self.asked == Some(id) => {
                    self.asked = None;
                    if self.config.check == Check::Nothing {
                        self.on_answer(now, &packet.data());
                        continue;
                    }
                    let id = self.verify_next;
                    self.verify_next += 1;
                    let wire = packet.wire().to_vec();
                    self.events.push_back(PartialEvent::Verify { id, packet: wire });
                    self.verifying = Some((id, packet));
                }
                Event::Unanswered { id, .. } if self.asked == Some(id) => {
                    // A pending Interest that ended without news, or nobody is there.
                    let wait = self.jitter();
                    self.again(now, wait);
                }
                _ => {}
            }
        }
    }

    /// The answer to a [`PartialEvent::Verify`].
    pub fn verified(&mut self, now: Tick, id: u64, judged: Judged) {
        let Some((_, packet)) = self.verifying.take_if(|(waits, _)| *waits == id) else { return };
        if judged == Judged::Good {
            return self.on_answer(now, &packet.data());
        }
        let wait = self.jitter();
        self.again(now, wait);
    }

    fn on_answer(&mut self, now: Tick, data: &Data<'_>) {
        if data.content_type == types::CONTENT_NACK {
            return self.hello(now);
        }
        let joined = self.joining.join(data);
        let taken = match joined {
            Ok(Joined::More(name)) => {
                let lifetime = self.config.lifetime;
                let request = Request { tries: 3, lifetime, ..Request::new(name) };
                self.asked = self.endpoint.express(now, &request).ok();
                return;
            }
            Ok(Joined::Whole(name, content)) => self.take(name.as_ref(), &content),
            Err(error) => Err(error),
        };
        if taken.is_err() {
            self.malformed += 1;
        }
        let wait = if taken.is_ok() { Duration::ZERO } else { self.jitter() };
        self.again(now, wait);
    }

    /// Takes the answer called `name`, whose last component is the producer's table.
    fn take(&mut self, name: NameRef<'_>, content: &[u8]) -> Result<(), Malformed> {
        let missing = Malformed::Missing(types::GENERIC_COMPONENT);
        let table = name.last().filter(|c| c.is_generic()).ok_or(missing)?.value;
        let rest = name.strip_prefix(self.config.sync.as_ref()).ok_or(missing)?;
        let is_hello = rest.get(0).is_some_and(|c| c.value == HELLO);
        let names = read_content(content, Form::Plain)?;
        self.table = Some(table.to_vec());
        let mut updates = Vec::new();
        for (prefix, high) in &names {
            if let Some(known) = self.subscriptions.get_mut(prefix).filter(|known| **known < *high)
            {
                updates.push(FullUpdate { prefix: prefix.clone(), low: *known + 1, high: *high });
                *known = *high;
            }
        }
        if is_hello {
            self.events.push_back(PartialEvent::Offered(names));
        }
        if !updates.is_empty() {
            self.events.push_back(PartialEvent::Updates(updates));
        }
        Ok(())
    }

    /// When [`Consumer::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        self.endpoint.poll_timeout().min(self.ask_at)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        self.endpoint.handle_timeout(now);
        self.settle(now);
        if self.ask_at <= now {
            self.ask(now);
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.endpoint.poll_transmit()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<PartialEvent> {
        self.events.pop_front()
    }

    /// Answers that could not be read.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }
}
