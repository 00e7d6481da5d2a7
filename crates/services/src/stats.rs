//! Statistics: what a service has counted, a type for each kind, in a file of its own. Their serde
//! form is that of spec/services.md, section 8.

mod backward_router;
mod content_store;
mod durations;
mod forwarder;
mod name_filter;
mod name_router;
mod packet_dispatcher;
mod signature_verifier;
mod strategy_forwarder;

pub use backward_router::{BackwardRouter, PendingPeriod};
pub use content_store::{CachePeriod, ContentStore};
pub use durations::Durations;
pub use forwarder::Forwarder;
pub use name_filter::NameFilter;
pub use name_router::{NameRouter, Registrations};
pub use packet_dispatcher::PacketDispatcher;
pub use signature_verifier::{FailurePeriod, SignatureVerifier};
pub use strategy_forwarder::{StrategyForwarder, Upstream};

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
                sum.add_thread(other);
            }
            (KindStats::SignatureVerifier(sum), KindStats::SignatureVerifier(other)) => {
                sum.add_thread(other);
            }
            // The other kinds have one thread.
            _ => {}
        }
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
