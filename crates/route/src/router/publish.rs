//! When this router sends: hellos, advertisements, repetitions.

use super::Router;
use crate::codec::{Delta, Heard, Hello};
use crate::names;
use crate::table::Table;
use onym_crypto::signer::write_parameters;
use onym_tables::Tick;
use onym_wire::signature::SignatureInfo;
use onym_wire::{DataBuilder, InterestBuilder};
use std::collections::VecDeque;

/// Whether a hello is the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parting {
    Stays,
    Goodbye,
}

/// Least time between two advertisements.
const SPACING_MS: u64 = 10;
/// After this many without a pause, the time between two becomes [`DAMPED_MS`].
const BURST: u32 = 12;
const DAMPED_MS: u64 = 100;
/// A pause of this length ends a burst.
const PAUSE_MS: u64 = 1_000;
/// An advertisement that was taken is acknowledged after this time, if nothing else is said before.
const ACK_MS: u64 = 100;
/// An advertisement that a neighbour of ours does not acknowledge is said again, this many times, the
/// wait doubling.
const RESEND_MS: u64 = 300;
const RESENDS: u32 = 4;
/// A neighbour that is new hears of this router after this time.
const GREET_MS: u64 = 5;
/// Octets of a difference that travels in a hello; a longer one is fetched.
const DELTA_LEN_MAX: usize = 4000;
/// Octets of the list of neighbours in a hello.
const HEARD_LEN_MAX: usize = 2000;
/// Advertisements kept for peers that fetch each of them.
const KEPT: usize = 16;
const LIFETIME_MS: u64 = 1000;
const HOP_LIMIT: u8 = 2;

/// The own side of the sync.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) boot: u64,
    pub(super) seq: u64,
    published: Tick,
    burst: u32,
    heartbeat: Tick,
    ack_at: Tick,
    greet_at: Tick,
    resend_at: Tick,
    resends: u32,
    /// What the newest advertisement changed.
    delta: Option<Delta>,
    kept: VecDeque<(u64, Vec<u8>)>,
}

impl Publisher {
    pub(super) fn new(now: Tick, boot: u64) -> Self {
        Self {
            boot,
            seq: 0,
            published: Tick(0),
            burst: 0,
            heartbeat: now,
            ack_at: Tick::NEVER,
            greet_at: Tick::NEVER,
            resend_at: Tick::NEVER,
            resends: 0,
            delta: None,
            kept: VecDeque::new(),
        }
    }

    /// When another advertisement may go out.
    fn allowed_at(&self) -> Tick {
        if self.seq == 0 {
            return Tick(0);
        }
        let spacing = if self.burst >= BURST { DAMPED_MS } else { SPACING_MS };
        self.published.plus_ms(spacing)
    }

    fn note(&mut self, now: Tick) {
        let paused = now >= self.published.plus_ms(PAUSE_MS);
        self.burst = if paused { 1 } else { self.burst.saturating_add(1) };
        self.published = now;
        self.seq += 1;
    }

    pub(super) fn acknowledge(&mut self, now: Tick) {
        self.ack_at = self.ack_at.min(now.plus_ms(ACK_MS));
    }

    pub(super) fn greet(&mut self, now: Tick) {
        self.greet_at = self.greet_at.min(now.plus_ms(GREET_MS));
    }

    pub(super) fn next_due(&self) -> Tick {
        self.heartbeat.min(self.ack_at).min(self.greet_at).min(self.resend_at)
    }

    /// The content of advertisement `seq`.
    pub(super) fn content(&self, seq: u64, table: &Table) -> Option<Vec<u8>> {
        if let Some((_, content)) = self.kept.iter().find(|(kept, _)| *kept == seq) {
            return Some(content.clone());
        }
        (seq == self.seq && seq > 0).then(|| encode(table))
    }
}

fn encode(table: &Table) -> Vec<u8> {
    let mut content = Vec::new();
    table.advert().write(&mut content);
    content
}

impl Router {
    /// When the next advertisement has to go out.
    pub(super) fn next_publish(&self) -> Tick {
        let asked = self.table.next_ask();
        if self.table.has_news(Tick(0)) || self.publisher.seq == 0 {
            return self.publisher.allowed_at();
        }
        asked.max(self.publisher.allowed_at())
    }

    pub(super) fn publish_if_due(&mut self, now: Tick) {
        let first = self.publisher.seq == 0;
        if (!first && !self.table.has_news(now)) || now < self.publisher.allowed_at() {
            return;
        }
        let delta = self.table.publish(now, self.publisher.seq);
        self.publisher.note(now);
        self.counters.adverts += 1;
        // Peers that fetch each advertisement by its number come after the next one is out.
        if self.neighbours.iter().any(|n| !n.ours) {
            let content = encode(&self.table);
            self.publisher.kept.push_back((self.publisher.seq, content));
            if self.publisher.kept.len() > KEPT {
                self.publisher.kept.pop_front();
            }
        }
        // What was advertised bounds what is feasible.
        self.settle(now);
        self.publisher.delta = (!first).then_some(delta);
        self.publisher.resends = 0;
        self.publisher.resend_at = now.plus_ms(RESEND_MS);
        self.say(now);
    }

    /// Signs of life, acknowledgements and repetitions that are due.
    pub(super) fn send_due(&mut self, now: Tick) {
        if self.stopped || self.publisher.next_due() > now {
            return;
        }
        if self.publisher.resend_at <= now {
            let seq = self.publisher.seq;
            let behind = self.neighbours.iter().any(|n| n.ours && n.usable && n.acked < seq);
            self.publisher.resends += 1;
            if !behind || self.publisher.resends > RESENDS {
                self.publisher.resend_at = Tick::NEVER;
                if self.publisher.next_due() > now {
                    return;
                }
            } else {
                self.publisher.resend_at = now.plus_ms(RESEND_MS << self.publisher.resends);
            }
        }
        self.say(now);
    }

    fn say(&mut self, now: Tick) {
        let delta = self.publisher.delta.clone();
        self.send_hello(now, delta, Parting::Stays);
    }

    /// A goodbye to whoever is at the other end of `face`.
    pub(super) fn send_goodbye(&mut self, now: Tick, face: u64) {
        self.counters.hellos_sent += 1;
        let hello = Hello {
            router: (*self.own).clone(),
            boot: self.publisher.boot,
            seq: self.publisher.seq,
            delta: None,
            heard: Vec::new(),
            goodbye: true,
        };
        let mut content = Vec::new();
        hello.write(&mut content);
        let prefix = self.names.sync_active.clone();
        self.send_sync(now, &prefix, &content, Some(face));
    }

    /// One hello, by both kinds of links.
    pub(super) fn send_hello(&mut self, now: Tick, delta: Option<Delta>, parting: Parting) {
        // No two routers in step: a tenth of the interval, by the router's own chance.
        let interval = u64::try_from(self.config.advertise_interval.as_millis()).unwrap_or(5000);
        let jitter = (self.config.seed ^ self.counters.hellos_sent.wrapping_mul(0x9E37_79B9)) % 10;
        self.publisher.heartbeat = now.plus_ms(interval - interval * jitter / 100);
        self.publisher.ack_at = Tick::NEVER;
        self.publisher.greet_at = Tick::NEVER;
        self.counters.hellos_sent += 1;
        let hello = Hello {
            router: (*self.own).clone(),
            boot: self.publisher.boot,
            seq: self.publisher.seq,
            delta: delta.filter(fits),
            heard: self.heard(),
            goodbye: parting == Parting::Goodbye,
        };
        let mut content = Vec::new();
        hello.write(&mut content);
        let actives = !self.links.faces().is_empty();
        let passives = self
            .neighbours
            .iter()
            .any(|n| n.faces.iter().any(|f| !self.links.faces().contains(&f.face)));
        for (wanted, prefix) in [
            (actives || !passives, self.names.sync_active.clone()),
            (passives, self.names.sync_passive.clone()),
        ] {
            if wanted {
                self.send_sync(now, &prefix, &content, None);
            }
        }
    }

    fn send_sync(
        &mut self,
        now: Tick,
        prefix: &onym_wire::Name,
        content: &[u8],
        face: Option<u64>,
    ) {
        let name = names::sync_data(self.own.as_ref().as_ref());
        let Some(data) = self.sign(now, &DataBuilder::new(name.as_ref(), content)) else { return };
        let builder = InterestBuilder {
            nonce: Some([0; 4]),
            lifetime_ms: Some(LIFETIME_MS),
            hop_limit: Some(HOP_LIMIT),
            ..InterestBuilder::new(prefix.as_ref())
        };
        let mut interest = Vec::with_capacity(data.len() + 200);
        write_parameters(&builder, &data, &mut interest);
        self.nonce(&mut interest);
        self.endpoint.notify(interest, face);
    }

    /// Gives the Interest a Nonce of its own.
    fn nonce(&self, interest: &mut [u8]) {
        let mut mixed = self.config.seed ^ self.counters.hellos_sent.rotate_left(32);
        mixed = (mixed ^ self.signed_ms).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let nonce = ((mixed >> 32) as u32).to_be_bytes();
        let parsed = onym_wire::Interest::parse(interest).ok();
        let Some(at) = parsed.and_then(|interest| interest.nonce_offset()) else { return };
        if let Some(place) = interest.get_mut(at..at + 4) {
            place.copy_from_slice(&nonce);
        }
    }

    fn heard(&self) -> Vec<Heard> {
        let mut octets = 0;
        let all = self.neighbours.iter().map(|neighbour| {
            let seq = neighbour.taken.map_or(0, |said| said.seq);
            Heard { router: (*neighbour.name).clone(), seq }
        });
        all.take_while(|heard| {
            octets += heard.router.value().len() + 20;
            octets <= HEARD_LEN_MAX
        })
        .collect()
    }

    /// Signs a Data with a time that never repeats.
    pub(super) fn sign(&mut self, now: Tick, data: &DataBuilder<'_>) -> Option<Vec<u8>> {
        self.signed_ms = self.unix_ms(now).max(self.signed_ms + 1);
        let info = SignatureInfo { time: Some(self.signed_ms), ..self.signer.info() };
        let mut out = Vec::with_capacity(data.content.len() + 300);
        data.write(&mut out, &info, |signed| self.signer.sign(&[signed])).ok()?;
        Some(out)
    }
}

fn fits(delta: &Delta) -> bool {
    let entry =
        |e: &crate::codec::AdvEntry| e.destination.value().len() + e.next_hop.value().len() + 40;
    let removed: usize = delta.removed.iter().map(|name| name.value().len() + 10).sum();
    let requests: usize = delta.requests.iter().map(|r| r.destination.value().len() + 40).sum();
    delta.entries.iter().map(entry).sum::<usize>() + removed + requests <= DELTA_LEN_MAX
}
