//! Statistics: what a service has counted, a type for each kind. Their serde form is that of
//! spec/services.md, section 8.

use crate::histogram::Histogram;
use crate::kind::Kind;
use crate::ports::Counts;
use crate::verdict::{Unsent, Verdict, Verdicts};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// Statistics of one service, or of one of its threads.
#[derive(Debug, Clone)]
pub struct Stats {
    /// What it does.
    pub kind: Kind,
    /// Packets received, each with its verdict.
    pub verdicts: Verdicts,
    /// Packets sent.
    pub sent: Counts,
    /// Packets that were not sent, in the order of [`Unsent::ALL`].
    pub unsent: [u64; Unsent::COUNT],
    /// What only this kind counts.
    pub own: KindStats,
}

/// What one kind of service counts.
#[derive(Debug, Clone)]
pub enum KindStats {
    /// Of a name router.
    NameRouter(NameRouter),
    /// Of a backward router.
    BackwardRouter(BackwardRouter),
    /// Of a packet dispatcher.
    PacketDispatcher(PacketDispatcher),
    /// Of a content store.
    ContentStore(ContentStore),
    /// Of a strategy forwarder.
    StrategyForwarder(StrategyForwarder),
    /// Of a signature verifier.
    SignatureVerifier(SignatureVerifier),
    /// Of a name filter.
    NameFilter(NameFilter),
    /// Of a merged forwarder.
    Forwarder(Forwarder),
}

/// A name router.
#[derive(Debug, Clone, Serialize)]
pub struct NameRouter {
    /// Routes in the FIB.
    pub routes: u64,
    /// Registrations by producers.
    pub registrations: Registrations,
    /// Interests without a route.
    pub no_route: u64,
    /// Data outside of the prefixes of their producer.
    pub prefix_rejected: u64,
    /// Interests from consumers.
    pub in_interests: u64,
    /// Data to consumers.
    pub out_data: u64,
}

/// A backward router.
#[derive(Debug, Clone, Serialize)]
pub struct BackwardRouter {
    /// Retransmissions that were forwarded.
    pub retransmitted: u64,
    /// Data without a pending Interest.
    pub unsolicited: u64,
    /// PIT entries.
    pub entries: u64,
    /// Most PIT entries.
    pub capacity: u64,
    /// PIT entries made.
    pub inserted: u64,
    /// Interests that found the same one pending.
    pub aggregated: u64,
    /// Retransmissions that came too soon.
    pub suppressed: u64,
    /// Pending Interests that Data answered.
    pub satisfied: u64,
    /// Pending Interests that ended without Data.
    pub expired: u64,
    /// Overdue pending Interests that gave way to new ones.
    pub evicted: u64,
    /// Interests that looped.
    pub loops: u64,
    /// Round-trip times.
    pub rtt_ms: Durations,
    /// The last whole period.
    pub period: PendingPeriod,
}

/// A period of a backward router.
#[derive(Debug, Clone, Serialize)]
pub struct PendingPeriod {
    /// Its length, in milliseconds.
    pub ms: u64,
    /// Data without a pending Interest.
    pub unsolicited: u64,
    /// All Data.
    pub data: u64,
}

/// A packet dispatcher.
#[derive(Debug, Clone, Serialize)]
pub struct PacketDispatcher {
    /// Clients.
    pub sessions: u64,
    /// Sessions opened.
    pub opened: u64,
    /// Sessions closed.
    pub closed: u64,
    /// Clients refused because of `sessions_max`.
    pub refused: u64,
}

/// A content store.
#[derive(Debug, Clone, Serialize)]
pub struct ContentStore {
    /// Lookups that found Data.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Data cached.
    pub entries: u64,
    /// Their octets.
    pub bytes: u64,
    /// Data that were cached.
    pub inserted: u64,
    /// Data evicted.
    pub evicted: u64,
    /// Data that the configuration keeps out.
    pub not_admitted: u64,
    /// The last whole period.
    pub period: CachePeriod,
}

/// A period of a content store.
#[derive(Debug, Clone, Serialize)]
pub struct CachePeriod {
    /// Its length, in milliseconds.
    pub ms: u64,
    /// Lookups that found Data.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Share of hits; none without lookups.
    pub ratio: Option<f64>,
}

/// A strategy forwarder.
#[derive(Debug, Clone, Serialize)]
pub struct StrategyForwarder {
    /// Its faces to producers.
    pub faces: Vec<Upstream>,
    /// How often a dead face was left.
    pub failovers: u64,
    /// Interests dropped by the duplicate filter.
    pub duplicates: u64,
}

/// A face of a strategy forwarder.
#[derive(Debug, Clone, Serialize)]
pub struct Upstream {
    /// Its label.
    pub label: String,
    /// Interests sent.
    pub interests: u64,
    /// Data received.
    pub data: u64,
    /// Interests that wait for an answer.
    pub outstanding: u64,
    /// Smoothed round-trip time.
    pub rtt_ms: Option<u64>,
    /// Whether it answers.
    pub alive: bool,
}

/// A signature verifier.
#[derive(Debug, Clone, Serialize)]
pub struct SignatureVerifier {
    /// Signatures that are wrong.
    pub invalid: u64,
    /// Signatures that are right.
    pub valid: u64,
    /// Data whose key is not known.
    pub unknown_key: u64,
    /// Data without a signature of a key.
    pub unsigned: u64,
    /// Data whose key may not sign their name.
    pub untrusted: u64,
    /// Data that were not sampled.
    pub skipped: u64,
    /// Probability that a signature is verified.
    pub sampling: f64,
    /// Verifications under way.
    pub queue: u64,
    /// Keys known.
    pub keys: u64,
    /// Certificates fetched.
    pub fetched: u64,
    /// Rules sent to a name filter.
    pub rules_sent: u64,
    /// Time of a verification.
    pub verify_us: Durations,
    /// Time of all verifications together, in nanoseconds.
    pub verify_ns: u64,
    /// The last whole period.
    pub period: FailurePeriod,
}

/// A period of a signature verifier.
#[derive(Debug, Clone, Serialize)]
pub struct FailurePeriod {
    /// Its length, in milliseconds.
    pub ms: u64,
    /// Signatures that are wrong.
    pub invalid: u64,
}

/// A name filter.
#[derive(Debug, Clone, Serialize)]
pub struct NameFilter {
    /// Interests dropped.
    pub dropped_interests: u64,
    /// Data dropped.
    pub dropped_data: u64,
    /// Its rules.
    pub rules: u64,
}

/// A merged forwarder.
#[derive(Debug, Clone, Serialize)]
pub struct Forwarder {
    /// Routes in the FIB.
    pub routes: u64,
    /// Registrations by producers.
    pub registrations: Registrations,
    /// PIT entries.
    pub pit_entries: u64,
    /// Data cached.
    pub cs_entries: u64,
    /// Lookups in the cache that found Data.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Pending Interests that Data answered.
    pub satisfied: u64,
    /// Pending Interests that ended without Data.
    pub unsatisfied: u64,
    /// Data outside of the prefixes of their producer.
    pub prefix_rejected: u64,
}

/// Durations, shown as percentiles: `{"p50", "p99", "count"}`.
#[derive(Debug, Clone)]
pub struct Durations {
    classes: Histogram,
    unit_us: f64,
}

impl Durations {
    pub(crate) fn in_us(classes: &Histogram) -> Self {
        Self { classes: classes.clone(), unit_us: 1.0 }
    }

    pub(crate) fn in_ms(classes: &Histogram) -> Self {
        Self { classes: classes.clone(), unit_us: 1000.0 }
    }
}

impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[allow(clippy::cast_precision_loss)]
        let part = |p| self.classes.percentile(p).map(|us| us as f64 / self.unit_us);
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("p50", &part(50))?;
        map.serialize_entry("p99", &part(99))?;
        map.serialize_entry("count", &self.classes.count())?;
        map.end()
    }
}

impl Stats {
    /// Packets received.
    #[must_use]
    pub fn received(&self) -> Counts {
        use onym_link::PacketKind;
        Counts {
            interests: self.verdicts.received(PacketKind::Interest),
            data: self.verdicts.received(PacketKind::Data),
            nacks: self.verdicts.received(PacketKind::Nack),
        }
    }

    /// Adds the statistics of another thread of the same service.
    pub fn add_thread(&mut self, other: &Self) {
        self.verdicts.add_all(&other.verdicts);
        self.sent.add(&other.sent);
        for (sum, n) in self.unsent.iter_mut().zip(other.unsent) {
            *sum += n;
        }
        match (&mut self.own, &other.own) {
            (KindStats::PacketDispatcher(sum), KindStats::PacketDispatcher(other)) => {
                sum.sessions += other.sessions;
                sum.opened += other.opened;
                sum.closed += other.closed;
                sum.refused += other.refused;
            }
            (KindStats::SignatureVerifier(sum), KindStats::SignatureVerifier(other)) => {
                sum.add_thread(other);
            }
            // The other kinds have one thread.
            _ => {}
        }
    }
}

impl SignatureVerifier {
    fn add_thread(&mut self, other: &Self) {
        // What was verified is verified with the least of the threads' probabilities or more.
        self.sampling = self.sampling.min(other.sampling);
        for (sum, n) in [
            (&mut self.invalid, other.invalid),
            (&mut self.valid, other.valid),
            (&mut self.unknown_key, other.unknown_key),
            (&mut self.unsigned, other.unsigned),
            (&mut self.untrusted, other.untrusted),
            (&mut self.skipped, other.skipped),
            (&mut self.queue, other.queue),
            (&mut self.fetched, other.fetched),
            (&mut self.rules_sent, other.rules_sent),
            (&mut self.verify_ns, other.verify_ns),
            (&mut self.period.invalid, other.period.invalid),
        ] {
            *sum += n;
        }
        // Every thread has every key.
        self.keys = self.keys.max(other.keys);
        self.verify_us.classes.add_all(&other.verify_us.classes);
    }
}

impl Serialize for Stats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = |verdict: &Verdict| (verdict.label(), self.verdicts.sum(*verdict));
        let drops = Verdict::ALL.iter().filter(|verdict| verdict.is_drop());
        let unsent = Unsent::ALL.iter().zip(self.unsent);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("received", &self.received())?;
        map.serialize_entry("sent", &self.sent)?;
        map.serialize_entry("verdicts", &Words(Verdict::ALL.iter().map(count)))?;
        map.serialize_entry("dropped", &Words(drops.map(count)))?;
        map.serialize_entry("unsent", &Words(unsent.map(|(r, n)| (r.label(), n))))?;
        match &self.own {
            KindStats::NameRouter(own) => map.serialize_entry("name_router", own)?,
            KindStats::BackwardRouter(own) => map.serialize_entry("backward_router", own)?,
            KindStats::PacketDispatcher(own) => map.serialize_entry("packet_dispatcher", own)?,
            KindStats::ContentStore(own) => map.serialize_entry("content_store", own)?,
            KindStats::StrategyForwarder(own) => map.serialize_entry("strategy_forwarder", own)?,
            KindStats::SignatureVerifier(own) => map.serialize_entry("signature_verifier", own)?,
            KindStats::NameFilter(own) => map.serialize_entry("name_filter", own)?,
            KindStats::Forwarder(own) => map.serialize_entry("forwarder", own)?,
        }
        map.end()
    }
}

/// Counts by word, as an object.
struct Words<I>(I);

impl<I: Iterator<Item = (&'static str, u64)> + Clone> Serialize for Words<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone())
    }
}

/// What is counted of registrations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Registrations {
    /// Commands carried out.
    pub accepted: u64,
    /// Commands refused.
    pub refused: u64,
    /// Routes taken back: by command, by expiry or with their face.
    pub removed: u64,
}
