//! What the node counts, put together for management, metrics and tests.

use crate::mgmt::host::FaceCounters;
use onym_engine::OwnerCounters;
use onym_face::Counters as IoCounters;
use onym_forward::verdict::{Counters, Unsent, Verdict};
use onym_link::{FrameVerdict, LinkCounters, PacketKind};
use onym_tables::FaceId;

/// Counters of the link services and transports, added up over faces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkSums {
    /// Frames by their verdict in the link service, in the order of [`FrameVerdict::ALL`].
    pub frames: [u64; FrameVerdict::COUNT],
    /// Frames lost after they were held.
    pub frag_timeout: u64,
    /// Datagrams that are not one whole TLV of at most 8800 octets.
    pub malformed_in: u64,
    /// Datagrams with octets behind their TLV.
    pub trailing_in: u64,
    /// Datagrams from somebody else than the peer of their socket.
    pub foreign_in: u64,
    /// Datagrams that the kernel dropped because they were not read in time.
    pub overflowed_in: u64,
    /// Packets not sent because the send queue was full.
    pub queue_full: u64,
    /// Packets not sent because they do not fit the face.
    pub over_mtu: u64,
    /// Packets for a face that was down or gone.
    pub face_gone: u64,
    /// Octets received.
    pub in_bytes: u64,
    /// Octets sent.
    pub out_bytes: u64,
    /// Packets marked for congestion.
    pub congestion_marked: u64,
}

impl LinkSums {
    /// Adds the counters of one face.
    pub(crate) fn add(&mut self, c: &OwnerCounters) {
        let (link, io): (&LinkCounters, &IoCounters) = (&c.link, &c.io);
        for (sum, n) in self.frames.iter_mut().zip(link.verdicts) {
            *sum += n;
        }
        self.frag_timeout += link.frag_timeout + link.frag_evicted;
        self.add_refused(io);
        self.queue_full += link.queue_full;
        self.over_mtu += link.over_mtu + io.out_too_long;
        self.face_gone += c.traffic.face_gone + io.out_refused;
        self.in_bytes += c.traffic.in_bytes;
        self.out_bytes += c.traffic.out_bytes;
        self.congestion_marked += link.congestion_marked;
    }

    /// Adds what a socket refused before the link service saw it: that of a face or of a listener.
    pub(crate) fn add_refused(&mut self, io: &IoCounters) {
        self.malformed_in += io.in_malformed;
        self.trailing_in += io.in_trailing;
        self.foreign_in += io.in_foreign;
        self.overflowed_in += io.in_overflowed;
    }
}

/// One shard at one moment.
#[derive(Debug, Clone)]
pub struct ShardState {
    /// Everything its forwarder counted.
    pub counters: Counters,
    /// Pending Interests.
    pub pit_entries: u64,
    /// Octets of pending Interests.
    pub pit_bytes: u64,
    /// Packets cached.
    pub cs_entries: u64,
    /// Octets cached.
    pub cs_bytes: u64,
    /// Prefixes with next hops.
    pub fib_entries: u64,
    /// Packets that were lost on their way to another shard.
    pub crossing_full: u64,
    /// Packets for management that were lost.
    pub management_full: u64,
    /// Packets whose face was gone.
    pub face_gone: u64,
    /// Push frames and messages that came while the push half is off.
    pub push_off: u64,
    /// Data under prefixes that are verified before they are kept.
    pub verify: onym_forward::stage::WatchCounts,
    /// Interests that were recorded on their way.
    pub spans: onym_watch::SpanCounts,
    /// The second level of the content store; none without one.
    pub disk: Option<crate::shard::DiskCounts>,
    /// Time spent not waiting, in nanoseconds.
    pub busy_ns: u64,
}

/// What the push half counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushCounts {
    /// Frames by their verdict, in the order of [`onym_pubsub::Verdict::ALL`].
    pub verdicts: [u64; onym_pubsub::Verdict::COUNT],
    /// Copies sent over links.
    pub copies: u64,
    /// Frames and messages that ended before the forwarder or the dispatcher.
    pub dropped: crate::shard::PushDropped,
    /// Messages of applications that were malformed.
    pub app_malformed: u64,
    /// Messages of applications.
    pub messages: u64,
    /// Publications sent to the network, and copies handed to applications.
    pub publications: [u64; 3],
    /// What the cache holds, and answered.
    pub cache: onym_pubsub::dispatcher::CacheView,
    /// Applications there are.
    pub apps: u64,
    /// Scopes and items of the rendezvous.
    pub vertices: u64,
}

/// What became of spans that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportCounts {
    /// Taken by the collector.
    pub exported: u64,
    /// Refused by it for good.
    pub refused: u64,
    /// Lost, because the collector did not keep up or was not there.
    pub lost: u64,
}

/// The node at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// By shard.
    pub shards: Vec<ShardState>,
    /// Over all faces that are or were.
    pub links: LinkSums,
    /// What each face counted.
    pub faces: Vec<(FaceId, FaceCounters)>,
    /// Of these, permanent ones that are not connected.
    pub faces_down: u64,
    /// Faces refused because of a limit.
    pub faces_refused: u64,
    /// Frames that reached a listener faster than their shard took them.
    pub listener_full: u64,
    /// How full the PIT and the content store are, from 0 to 1: the fullest shard, by the bound that
    /// is nearest.
    pub pit_full: f64,
    /// As above.
    pub cs_full: f64,
    /// Routes in the RIB.
    pub rib_routes: u64,
    /// What the push half counted; none when it is off.
    pub push: Option<PushCounts>,
    /// What became of the Interests that management got.
    pub management: crate::mgmt::Counters,
    /// What each entry of trust judges by, and what it judged.
    pub trust: Vec<(String, onym_guard::Status)>,
    /// Data that were verified to be kept: good and refused.
    pub verified: [u64; 2],
    /// What became of spans.
    pub exported: ExportCounts,
    /// The second level of the content store; none without one.
    pub disk: Option<onym_store::ShelfStats>,
}

/// How full a table is with two bounds, each given with what is used of it.
#[must_use]
pub(crate) fn fullness(used: [(u64, usize); 2]) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let share = |(used, max): (u64, usize)| used as f64 / max.max(1) as f64;
    used.into_iter().filter(|(used, _)| *used > 0).map(share).fold(0.0, f64::max)
}

impl Snapshot {
    /// How many packets of `kind` ended in `verdict`, all shards together.
    #[must_use]
    pub fn verdict(&self, kind: PacketKind, verdict: Verdict) -> u64 {
        self.shards.iter().map(|s| s.counters.verdict(kind, verdict)).sum()
    }

    /// The sum of one value over the shards.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&ShardState) -> u64) -> u64 {
        self.shards.iter().map(of).sum()
    }

    /// What the shards counted of the second level of the content store.
    #[must_use]
    pub fn disk(&self) -> crate::shard::DiskCounts {
        let mut sum = crate::shard::DiskCounts::default();
        for counts in self.shards.iter().filter_map(|shard| shard.disk) {
            sum.hits += counts.hits;
            sum.misses += counts.misses;
            sum.late += counts.late;
            sum.passed += counts.passed;
            sum.offers.offered += counts.offers.offered;
            sum.offers.left_out += counts.offers.left_out;
        }
        sum
    }

    /// Packets dropped, by the word of the registry.
    #[must_use]
    pub fn dropped(&self) -> Vec<(&'static str, u64)> {
        const KINDS: [PacketKind; 3] = [PacketKind::Interest, PacketKind::Data, PacketKind::Nack];
        let drops = Verdict::ALL.iter().filter(|verdict| verdict.is_drop());
        let sum = |verdict: &Verdict| KINDS.iter().map(|kind| self.verdict(*kind, *verdict)).sum();
        drops.map(|verdict| (verdict.label(), sum(verdict))).collect()
    }

    /// Packets not sent, by the word of the registry.
    #[must_use]
    pub fn unsent(&self) -> Vec<(&'static str, u64)> {
        let each = Unsent::ALL.iter().map(|reason| {
            let counted = self.sum(|s| s.counters.unsent[*reason as usize]);
            let beyond = match reason {
                Unsent::QueueFull => self.links.queue_full + self.sum(|s| s.management_full),
                Unsent::FaceGone => self.links.face_gone + self.sum(|s| s.face_gone),
                Unsent::OverMtu => self.links.over_mtu,
                _ => 0,
            };
            (reason.label(), counted + beyond)
        });
        each.chain([("crossing_full", self.sum(|s| s.crossing_full))]).collect()
    }

    /// Frames dropped, by the word of the registry.
    #[must_use]
    pub fn frames_dropped(&self) -> Vec<(&'static str, u64)> {
        let each = FrameVerdict::ALL.iter().zip(self.links.frames);
        let dropped = each.filter(|(v, _)| v.is_drop()).map(|(v, n)| (v.label(), n));
        let others = [
            ("frag_timeout", self.links.frag_timeout),
            ("datagram_malformed", self.links.malformed_in),
            ("datagram_trailing", self.links.trailing_in),
            ("datagram_foreign", self.links.foreign_in),
            ("receive_overflow", self.links.overflowed_in),
            ("listener_full", self.listener_full),
            ("push_off", self.sum(|s| s.push_off)),
        ];
        dropped.chain(others).collect()
    }
}
