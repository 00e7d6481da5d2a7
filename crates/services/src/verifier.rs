//! The signature verifier: passes Data with a valid signature.
//!
//! In: both kinds of packets on both sides.  Out: to the other side; Interests untouched. A
//! signature is verified by the shell's threads between [`Element::receive`] and
//! [`Element::verified`]; at `queue_max` under way the shell reads nothing more.
//! Tables: keys, trust rules; names of failures of this period, bounded by [`NAMES_MAX`].
//! Verdicts: `forwarded` `bad_signature` `unknown_key` `unsigned` `untrusted` `delivered` (a
//! certificate that was asked for) `no_face` `malformed`.

mod certificates;
mod firewall;
mod sampling;
mod trust;

use crate::config::{KindConfig, SignatureVerifier as Config, VerifierMode as Mode};
use crate::control::{Answer, Entries, Request};
use crate::cx::Cx;
use crate::element::Element;
use crate::events::Event;
use crate::histogram::Histogram;
use crate::keys::KeySet;
use crate::refusal::Refusal;
use crate::stats::{self, Durations, FailurePeriod, KindStats};
use crate::table;
use crate::transparent;
use crate::verdict::Verdict;
use crate::verify::Job;
use certificates::Certificates;
use firewall::Firewall;
use onym_crypto::verify::Signed;
use onym_link::{Packet, PacketKind};
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;
use onym_wire::types;
use sampling::Sampling;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trust::Trust;

/// Names of failures that are kept within a period.
const NAMES_MAX: usize = 4096;
/// Names in one event.
const NAMES_TOLD: usize = 100;
/// Number of a key that is none.
const NO_KEY: u64 = 0;

#[derive(Debug, Default, Clone, Copy)]
struct Counters {
    valid: u64,
    invalid: u64,
    unknown_key: u64,
    unsigned: u64,
    untrusted: u64,
    skipped: u64,
}

/// The element.
#[derive(Debug)]
pub(crate) struct SignatureVerifier {
    config: Config,
    keys: KeySet,
    trust: Trust,
    sampling: Sampling,
    certificates: Certificates,
    firewall: Firewall,
    counters: Counters,
    took: Histogram,
    took_ns: u64,
    under_way: usize,
    /// Names of Data that were dropped for their signature in this period, by the face that they came from.
    wrong: BTreeMap<FaceId, (BTreeSet<Vec<u8>>, u64)>,
    invalid_at_start: u64,
    invalid_in_period: u64,
}

/// What is to be done with a Data before its signature is looked at.
enum Before {
    Verify(Option<Arc<crate::verify::Secret>>, u64),
    Pass,
    Drop(Verdict),
}

impl SignatureVerifier {
    pub(crate) fn new() -> Self {
        Self {
            config: Config::default(),
            keys: KeySet::default(),
            trust: Trust::default(),
            sampling: Sampling::default(),
            certificates: Certificates::default(),
            firewall: Firewall::default(),
            counters: Counters::default(),
            took: Histogram::default(),
            took_ns: 0,
            under_way: 0,
            wrong: BTreeMap::new(),
            invalid_at_start: 0,
            invalid_in_period: 0,
        }
    }

    fn before(&mut self, cx: &mut Cx<'_>, packet: &Packet, data: &Data<'_>) -> Before {
        let signed = Signed::data(data);
        let by_key = match signed.signature_type {
            types::SIGNATURE_DIGEST_SHA256 => None,
            types::SIGNATURE_NULL => {
                self.counters.unsigned += 1;
                return self.without_key(
                    packet,
                    data,
                    self.config.unsigned_drop,
                    Verdict::Unsigned,
                );
            }
            _ => Some(signed.signer()),
        };
        let Some(locator) = by_key else {
            self.counters.unsigned += 1;
            if self.config.unsigned_drop {
                return self.without_key(packet, data, true, Verdict::Unsigned);
            }
            return self.sampled(cx, data, None, NO_KEY);
        };
        let Some(key) = locator.and_then(|name| self.keys.of_locator(name)) else {
            self.counters.unknown_key += 1;
            if let Some(name) = locator.filter(|_| self.config.fetch_keys) {
                self.certificates.ask(cx, packet.face, name);
            }
            return self.without_key(packet, data, self.config.no_key_drop, Verdict::UnknownKey);
        };
        let (secret, number) = (Arc::clone(&key.secret), key.number());
        let binds = self.config.bind && !self.trust.is_schema();
        let may = key.is_valid_at(cx.unix_ms)
            && self.trust.allows(data.name, signed.signature_type, key)
            && (!binds || key.may_sign(data.name));
        if !may {
            self.counters.untrusted += 1;
            self.note_wrong(packet.face, data);
            return Before::Drop(Verdict::Untrusted);
        }
        self.sampled(cx, data, Some(secret), number)
    }

    fn sampled(
        &mut self,
        cx: &Cx<'_>,
        data: &Data<'_>,
        secret: Option<Arc<crate::verify::Secret>>,
        number: u64,
    ) -> Before {
        let statistical = self.config.mode == Mode::Statistical;
        if statistical && !self.sampling.picks(cx.key, data.name) {
            self.counters.skipped += 1;
            return Before::Pass;
        }
        Before::Verify(secret, number)
    }

    /// Data that no known key signed. Those that are dropped are told of like fakes, but make no
    /// rules: anybody can send them under any name.
    fn without_key(
        &mut self,
        packet: &Packet,
        data: &Data<'_>,
        drop: bool,
        verdict: Verdict,
    ) -> Before {
        if !drop {
            return Before::Pass;
        }
        self.note_name(packet.face, data);
        Before::Drop(verdict)
    }

    fn note_wrong(&mut self, face: FaceId, data: &Data<'_>) {
        self.note_name(face, data);
        self.sampling.failed(data.name);
        self.firewall.failed(data.name);
    }

    fn note_name(&mut self, face: FaceId, data: &Data<'_>) {
        let kept: usize = self.wrong.values().map(|(names, _)| names.len()).sum();
        let (names, count) = self.wrong.entry(face).or_default();
        *count += 1;
        if kept < NAMES_MAX {
            names.insert(data.name.value().to_vec());
        }
    }

    /// Tells of the failures of this period, by the face that they came from.
    fn report(&mut self, cx: &mut Cx<'_>) {
        for (face, (names, count)) in std::mem::take(&mut self.wrong) {
            let names: Vec<String> = names.iter().map(|n| crate::names::uri(n)).collect();
            let parts = names.chunks(NAMES_TOLD);
            let label = cx.ports.label(face).to_owned();
            for (at, part) in parts.enumerate() {
                let count = if at == 0 { count } else { 0 };
                let (names, face) = (part.to_vec(), label.clone());
                cx.events.push(Event::InvalidSignature { names, count, face });
            }
        }
    }
}

impl Element for SignatureVerifier {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict> {
        if packet.kind() != PacketKind::Data {
            return Some(transparent::cross(cx, packet));
        }
        let Ok(data) = Data::parse(&packet.bytes) else { return Some(Verdict::Malformed) };
        if self.config.fetch_keys && self.certificates.take(cx, &data, &mut self.keys, &self.trust)
        {
            return Some(Verdict::Delivered);
        }
        match self.before(cx, &packet, &data) {
            Before::Drop(verdict) => Some(verdict),
            Before::Pass => Some(transparent::cross(cx, packet)),
            Before::Verify(key, number) => {
                self.under_way += 1;
                cx.jobs.push(Job { packet, key, number, valid: None, took_ns: 0 });
                None
            }
        }
    }

    fn resume(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        transparent::cross(cx, packet);
    }

    fn verified(&mut self, cx: &mut Cx<'_>, job: Job) -> Option<Verdict> {
        self.under_way = self.under_way.saturating_sub(1);
        self.took.add(job.took_ns / 1000);
        self.took_ns += job.took_ns;
        let valid = job.valid == Some(true);
        match job.number {
            NO_KEY => {}
            number if valid => self.keys.count_verified(number),
            number => self.keys.count_failed(number),
        }
        if valid {
            self.counters.valid += 1;
            if self.config.filter.is_some()
                && let Ok(data) = Data::parse(&job.packet.bytes)
            {
                self.firewall.valid(data.name);
            }
            return Some(transparent::cross(cx, job.packet));
        }
        self.counters.invalid += 1;
        if let Ok(data) = Data::parse(&job.packet.bytes) {
            self.note_wrong(job.packet.face, &data);
        }
        if self.config.drop {
            return Some(Verdict::BadSignature);
        }
        Some(transparent::cross(cx, job.packet))
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.config.mode == Mode::Statistical {
            let c = &self.config;
            self.sampling.adapt(cx.now, self.under_way, c.queue_max, c.sample_min);
        }
        self.certificates.expire(cx.now);
    }

    fn poll_timeout(&self) -> Option<Tick> {
        let own = (self.config.mode == Mode::Statistical).then(|| self.sampling.due());
        own.into_iter().chain(self.certificates.next_end()).min()
    }

    fn config(&self) -> KindConfig {
        KindConfig::SignatureVerifier(self.config.clone())
    }

    fn configure(&mut self, _: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal> {
        let KindConfig::SignatureVerifier(config) = config else { return Err(Refusal::no_path()) };
        if !(0.0..=1.0).contains(&config.sample_min) {
            return Err(Refusal::field("sample_min", "a probability, from 0 to 1"));
        }
        if config.queue_max == 0 {
            return Err(Refusal::field("queue_max", "at least 1"));
        }
        self.config = config;
        Ok(())
    }

    fn stats(&self, cx: &Cx<'_>) -> KindStats {
        let c = &self.counters;
        let sampling = match self.config.mode {
            Mode::Full => 1.0,
            Mode::Statistical => self.sampling.probability(),
        };
        KindStats::SignatureVerifier(stats::SignatureVerifier {
            invalid: c.invalid,
            valid: c.valid,
            unknown_key: c.unknown_key,
            unsigned: c.unsigned,
            untrusted: c.untrusted,
            skipped: c.skipped,
            sampling,
            queue: self.under_way as u64,
            keys: self.keys.len() as u64,
            fetched: self.certificates.fetched(),
            rules_sent: self.firewall.sent(),
            verify_us: Durations::in_us(&self.took),
            verify_ns: self.took_ns,
            period: FailurePeriod { ms: cx.settings.report_ms, invalid: self.invalid_in_period },
        })
    }

    fn control(&mut self, _: &mut Cx<'_>, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Keys(request) => self.keys.control(request),
            Request::Trust => Ok(Answer::Trust(self.trust.source())),
            Request::SetTrust(source) => self.trust.set(source),
            Request::Export(page) => {
                Ok(table::export(page, &self.keys.specs(), Clone::clone, Entries::Keys))
            }
            Request::Import(table) => match table.entries {
                Entries::Keys(keys) => self.keys.import(&keys),
                _ => Err(Refusal::no_path()),
            },
            _ => Err(Refusal::no_path()),
        }
    }

    fn pending(&self) -> usize {
        self.under_way
    }

    fn jobs_max(&self) -> usize {
        self.config.queue_max
    }

    fn period(&mut self, cx: &mut Cx<'_>) {
        let all = self.counters.invalid + self.counters.untrusted;
        self.invalid_in_period = all - self.invalid_at_start;
        self.invalid_at_start = all;
        self.report(cx);
        self.sampling.period();
        let target = self.config.filter.clone();
        self.firewall.period(cx, target.as_ref());
    }
}
