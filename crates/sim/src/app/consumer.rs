//! A consumer that keeps a window of Interests in flight.

use super::{App, AppStats, Frames, Transfer, percentiles};
use crate::channel::unit;
use onym_tables::rtt::RttEstimator;
use onym_tables::{Rng, Tick};
use onym_wire::lp::LpPacket;
use onym_wire::name::Name;
use onym_wire::{Data, Interest, InterestBuilder};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Which names a consumer asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Names {
    /// `seg=0`, `seg=1`, … each once.
    Segments,
    /// One of so many, chosen anew each time, rank r with a probability like 1/r^exponent.
    Zipf {
        /// How many names there are.
        catalogue: u64,
        /// Exponent.
        exponent: f64,
    },
}

/// What a consumer asks for and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerConfig {
    /// Prefix.
    pub prefix: Name,
    /// How many requests in all.
    pub count: u64,
    /// How many at once.
    pub window: usize,
    /// When it begins.
    pub start: Duration,
    /// Names.
    pub names: Names,
    /// InterestLifetime in milliseconds; also how long it waits at least after a Nack times out.
    pub lifetime_ms: u64,
    /// How often a name is asked for again before it is given up.
    pub retries_max: u32,
    /// Seed of nonces and of the choice of names.
    pub seed: u64,
    /// Ask again after exactly this time, whatever the round trips; `None`: as they are measured.
    pub refresh: Option<Duration>,
    /// Begin so many new names at once, and so many more each time this much has passed; `None`:
    /// as fast as the window allows.
    pub batch: Option<(u64, Duration)>,
    /// Nobody waits for it: it counts as done from the beginning.
    pub is_background: bool,
}

impl ConsumerConfig {
    /// 100 segments under `prefix`, 16 at once.
    #[must_use]
    pub fn new(prefix: Name) -> Self {
        Self {
            prefix,
            count: 100,
            window: 16,
            start: Duration::ZERO,
            names: Names::Segments,
            lifetime_ms: 4000,
            retries_max: 1000,
            seed: 1,
            refresh: None,
            batch: None,
            is_background: false,
        }
    }
}

/// A name in flight.
#[derive(Debug)]
struct Pending {
    name: Name,
    first_sent: Tick,
    last_sent: Tick,
    due: Tick,
    retries: u32,
    nonce: [u8; 4],
    /// The Interest sent last was answered by a Nack.
    is_nacked: bool,
}

/// How long after a Nack the same name is asked for again.
const NACK_PAUSE_MS: u64 = 50;
/// Latencies kept for the percentiles; after that every second, fourth, … is.
const LATENCIES_MAX: usize = 65_536;

/// A consumer.
#[derive(Debug)]
pub struct Consumer {
    config: ConsumerConfig,
    rng: Rng,
    /// Sums of the Zipf weights.
    cumulative: Vec<f64>,
    next: u64,
    /// In flight, by a number of their own; several can have the same name (Zipf).
    pending: HashMap<u64, Pending>,
    by_name: HashMap<Name, Vec<u64>>,
    due: BTreeSet<(Tick, u64)>,
    rtt: RttEstimator,
    latencies: Vec<Duration>,
    latency_stride: u64,
    first_sent: Option<Tick>,
    last_data: Tick,
    stats: AppStats,
}

impl Consumer {
    /// A consumer.
    #[must_use]
    pub fn new(config: ConsumerConfig) -> Self {
        let cumulative = match config.names {
            Names::Segments => Vec::new(),
            Names::Zipf { catalogue, exponent } => zipf(catalogue, exponent),
        };
        let prefix = config.prefix.to_string();
        Self {
            rng: Rng::new(config.seed),
            cumulative,
            next: 0,
            pending: HashMap::new(),
            by_name: HashMap::new(),
            due: BTreeSet::new(),
            rtt: RttEstimator::default(),
            latencies: Vec::new(),
            latency_stride: 1,
            first_sent: None,
            last_data: Tick::default(),
            stats: AppStats { kind: "consumer", prefix, ..AppStats::default() },
            config,
        }
    }

    /// Latencies kept, in no order.
    pub(super) fn latencies(&self) -> &[Duration] {
        &self.latencies
    }

    fn next_name(&mut self) -> Name {
        let mut name = self.config.prefix.clone();
        if self.cumulative.is_empty() {
            name.append_segment(self.next);
        } else {
            let total = self.cumulative.last().copied().unwrap_or_default();
            let at = unit(&mut self.rng) * total;
            let rank = self.cumulative.partition_point(|sum| *sum <= at);
            name.append_generic(rank.to_string());
        }
        name
    }

    /// How many names may have been begun by now.
    fn released(&self, now: Tick) -> u64 {
        let Some((batch, every)) = self.config.batch else { return self.config.count };
        let since = now.since(Tick::default() + self.config.start);
        let turns = since.as_nanos() / every.as_nanos().max(1);
        let turns = u64::try_from(turns).unwrap_or(u64::MAX).saturating_add(1);
        batch.saturating_mul(turns).min(self.config.count)
    }

    /// When new names may be begun next; the window not counted.
    fn release_next(&self) -> Tick {
        let begin = Tick::default() + self.config.start;
        match self.config.batch {
            Some((batch, every)) if self.next > 0 => {
                let turns = u32::try_from(self.next / batch.max(1)).unwrap_or(u32::MAX);
                begin + every.saturating_mul(turns)
            }
            _ => begin,
        }
    }

    /// Fills the window.
    fn fill(&mut self, now: Tick, out: &mut Frames) {
        let released = self.released(now);
        while self.next < released && self.pending.len() < self.config.window {
            let name = self.next_name();
            let id = self.next;
            self.next += 1;
            self.first_sent.get_or_insert(now);
            self.by_name.entry(name.clone()).or_default().push(id);
            let entry = Pending {
                name,
                first_sent: now,
                last_sent: now,
                due: now,
                retries: 0,
                nonce: [0; 4],
                is_nacked: false,
            };
            self.pending.insert(id, entry);
            self.express(now, id, out);
        }
    }

    /// Sends the Interest of `id`, the first time or again.
    fn express(&mut self, now: Tick, id: u64, out: &mut Frames) {
        let nonce = self.rng.next_u32().to_be_bytes();
        let Some(entry) = self.pending.get_mut(&id) else { return };
        let lifetime = Duration::from_millis(self.config.lifetime_ms);
        let backed_off = self.rtt.rto().saturating_mul(1 << entry.retries.min(6)).min(lifetime);
        let mut wire = Vec::new();
        InterestBuilder {
            nonce: Some(nonce),
            lifetime_ms: Some(self.config.lifetime_ms),
            ..InterestBuilder::new(entry.name.as_ref())
        }
        .write(&mut wire);
        out.push(wire);
        self.stats.interests += 1;
        (entry.nonce, entry.is_nacked) = (nonce, false);
        entry.last_sent = now;
        self.due.remove(&(entry.due, id));
        entry.due = now + self.config.refresh.unwrap_or(backed_off);
        self.due.insert((entry.due, id));
    }

    fn take_data(&mut self, now: Tick, data: &Data<'_>) {
        let Some(ids) = self.by_name.remove(data.name.value()) else { return };
        for id in ids {
            let Some(entry) = self.pending.remove(&id) else { continue };
            self.due.remove(&(entry.due, id));
            if entry.retries == 0 {
                self.rtt.sample(now.since(entry.last_sent));
            }
            self.stats.data += 1;
            self.stats.nacks -= u64::from(entry.is_nacked);
            self.stats.octets += data.content.len() as u64;
            self.note_latency(now.since(entry.first_sent));
            self.last_data = now;
        }
    }

    fn note_latency(&mut self, latency: Duration) {
        if self.stats.data.is_multiple_of(self.latency_stride) {
            self.latencies.push(latency);
        }
        if self.latencies.len() == LATENCIES_MAX {
            let mut index = 0;
            self.latencies.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.latency_stride *= 2;
        }
    }

    /// A Nack: the name is asked for again after a pause, not at once.
    fn take_nack(&mut self, now: Tick, interest: &Interest<'_>) {
        let ids = self.by_name.get(interest.name.value()).cloned().unwrap_or_default();
        for id in ids {
            let Some(entry) = self.pending.get_mut(&id) else { continue };
            if entry.is_nacked || interest.nonce != Some(entry.nonce) {
                continue;
            }
            entry.is_nacked = true;
            self.stats.nacks += 1;
            self.due.remove(&(entry.due, id));
            entry.due = now.plus_ms(NACK_PAUSE_MS << entry.retries.min(6));
            self.due.insert((entry.due, id));
        }
    }

    /// Asks again, or gives up.
    fn retry(&mut self, now: Tick, id: u64, out: &mut Frames) {
        let Some(entry) = self.pending.get_mut(&id) else { return };
        self.stats.timeouts += u64::from(!entry.is_nacked);
        if entry.retries < self.config.retries_max {
            entry.retries += 1;
            self.stats.retransmissions += 1;
            self.express(now, id, out);
            return;
        }
        self.stats.failed += 1;
        if let Some(entry) = self.pending.remove(&id)
            && let Some(ids) = self.by_name.get_mut(&entry.name)
        {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_name.remove(&entry.name);
            }
        }
    }
}

impl App for Consumer {
    fn receive(&mut self, now: Tick, frame: &[u8], out: &mut Frames) {
        let Ok(packet) = LpPacket::parse(frame) else { return };
        let Some(bytes) = packet.fragment else { return };
        if packet.nack.is_some() {
            if let Ok(interest) = Interest::parse(bytes) {
                self.take_nack(now, &interest);
            }
        } else if let Ok(data) = Data::parse(bytes) {
            self.stats.marks += u64::from(packet.congestion_mark > 0);
            self.take_data(now, &data);
        }
        self.fill(now, out);
    }

    fn handle_timeout(&mut self, now: Tick, out: &mut Frames) {
        if now < Tick::default() + self.config.start {
            return;
        }
        while let Some(&(due, id)) = self.due.first().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, id));
            self.retry(now, id, out);
        }
        self.fill(now, out);
    }

    fn poll_timeout(&self) -> Tick {
        let due = self.due.first().map_or(Tick::NEVER, |(due, _)| *due);
        let may_begin = self.due.is_empty()
            || (self.config.batch.is_some() && self.pending.len() < self.config.window);
        if self.next < self.config.count && may_begin {
            return due.min(self.release_next());
        }
        due
    }

    fn is_done(&self) -> bool {
        self.config.is_background || (self.next >= self.config.count && self.pending.is_empty())
    }

    fn stats(&self) -> AppStats {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let (latency_p50, latency_p99) = percentiles(&sorted);
        AppStats {
            duration: self.last_data.since(self.first_sent.unwrap_or_default()),
            began: self.first_sent.map(|at| at.since(Tick::default())),
            ended: (self.stats.data > 0).then(|| self.last_data.since(Tick::default())),
            in_flight: self.pending.values().filter(|entry| !entry.is_nacked).count() as u64,
            latency_p50,
            latency_p99,
            ..self.stats.clone()
        }
    }

    fn transfers(&self) -> Vec<Transfer> {
        let stats = self.stats();
        vec![Transfer {
            name: stats.prefix,
            began: stats.began,
            ended: stats.ended,
            octets: stats.octets,
            retransmissions: stats.retransmissions,
            is_complete: stats.data == self.config.count,
        }]
    }
}

/// Sums of 1/r^exponent for the ranks r from 1 on.
fn zipf(catalogue: u64, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    (1..=catalogue)
        .map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_ranks_of_a_zipf_distribution_are_asked_for_most() {
        let names = Names::Zipf { catalogue: 100, exponent: 1.0 };
        let prefix: Name = "/p".parse().unwrap();
        let mut consumer = Consumer::new(ConsumerConfig { names, ..ConsumerConfig::new(prefix) });
        let mut counts = HashMap::new();
        for _ in 0..5187 {
            *counts.entry(consumer.next_name().to_string()).or_insert(0u32) += 1;
        }
        // The harmonic number of 100 is 5.187: about 1000 for the first, 500 for the second.
        assert!((900..1100).contains(&counts["/p/0"]), "{}", counts["/p/0"]);
        assert!((430..570).contains(&counts["/p/1"]), "{}", counts["/p/1"]);
    }

    #[test]
    fn names_begin_in_batches_and_are_refreshed_on_time() {
        let second = Duration::from_secs(1);
        let config = ConsumerConfig {
            count: 10,
            window: 100,
            refresh: Some(4 * second),
            batch: Some((4, 6 * second)),
            ..ConsumerConfig::new("/p".parse().unwrap())
        };
        let mut consumer = Consumer::new(config);
        let mut at = Vec::new();
        while consumer.poll_timeout() <= Tick::default() + 12 * second {
            let (now, mut out) = (consumer.poll_timeout(), Frames::new());
            consumer.handle_timeout(now, &mut out);
            at.push((now.since(Tick::default()).as_secs(), out.len()));
        }
        // Four at 0, refreshed at 4, 8 and 12; four at 6, refreshed at 10; the last two at 12.
        assert_eq!(at, [(0, 4), (4, 4), (6, 4), (8, 4), (10, 4), (12, 6)]);
    }

    #[test]
    fn a_name_without_answer_is_given_up_after_its_retries() {
        let prefix: Name = "/p".parse().unwrap();
        let config = ConsumerConfig { count: 1, retries_max: 3, ..ConsumerConfig::new(prefix) };
        let mut consumer = Consumer::new(config);
        let mut out = Frames::new();
        while consumer.poll_timeout() != Tick::NEVER {
            consumer.handle_timeout(consumer.poll_timeout(), &mut out);
        }
        assert!(consumer.is_done());
        assert_eq!((out.len(), consumer.stats().failed), (4, 1));
    }
}
