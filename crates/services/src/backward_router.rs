//! The backward router: remembers Interests and takes Data back (the PIT).
//!
//! In: Interests from the consumer side, Data and Nacks from the producer side; the rest is
//! `wrong_side`.  Out: an Interest to every face of the producer side, Data to every downstream.
//! Stages: those of a node's forwarder, with its upstreams as routes and without a cache. Each origin
//! behind a link is a face of its own. A full PIT refuses new Interests; a face over its share loses
//! an overdue one first (`onym_forward::fairness`).
//! Verdicts: those of the stages, and `wrong_side` `draining` `held` `freeze_full`.

mod hand_over;

use crate::chain::{Came, Clients, Origin};
use crate::config::{BackwardRouter as Config, KindConfig, Retransmission};
use crate::control::{Answer, Request};
use crate::cx::Cx;
use crate::element::Element;
use crate::histogram::Histogram;
use crate::ports::Side;
use crate::refusal::Refusal;
use crate::stats::{self, Durations, KindStats, PendingPeriod};
use crate::verdict::Verdict;
use onym_forward::Verdict as Inner;
use onym_forward::stage::{NoCache, Upstreams};
use onym_forward::strategy::{Relay, Repeat, Retx};
use onym_forward::{Config as ForwardConfig, FaceInfo, Forwarder, UnsolicitedPolicy};
use onym_frame::Buf;
use onym_link::{Outgoing, Packet, PacketKind, Transmit};
use onym_tables::fib::NextHop;
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::lp::NackReason;
use onym_wire::name::Name;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// First interval of suppression.
const INTERVAL_MIN_US: u32 = 10_000;

/// The element.
#[derive(Debug)]
pub(crate) struct BackwardRouter {
    config: Config,
    fw: Forwarder<Upstreams, NoCache>,
    clients: Clients,
    /// When clients that have nothing pending are looked for again.
    tidy: Tick,
    rtt: Histogram,
    /// Smoothed round trip, in microseconds.
    srtt_us: u64,
    rto_us: Arc<AtomicU64>,
    /// Interests that the router sent again by itself.
    again: u64,
    period_start: (u64, u64),
    period: (u64, u64),
}

impl BackwardRouter {
    pub(crate) fn new(key: &HashKey, seed: u64) -> Self {
        let config = Config::default();
        let forward = ForwardConfig {
            hash_key: *key,
            seed,
            dead_nonces_max: 1 << 18,
            ..ForwardConfig::default()
        };
        let mut router = Self {
            fw: Forwarder::with(forward, Upstreams::default(), NoCache),
            config: config.clone(),
            clients: Clients::default(),
            tidy: Tick::default(),
            rtt: Histogram::default(),
            srtt_us: 100_000,
            rto_us: Arc::new(AtomicU64::new(200_000)),
            again: 0,
            period_start: (0, 0),
            period: (0, 0),
        };
        router.apply(config);
        router
    }

    fn apply(&mut self, config: Config) {
        let window_us = u32::try_from(config.window_ms.saturating_mul(1000)).unwrap_or(u32::MAX);
        let grows = Retx { max_us: window_us.max(INTERVAL_MIN_US), ..Retx::default() };
        let repeat = match config.retransmission {
            Retransmission::Suppress => Repeat::Suppress(grows),
            Retransmission::Paper => Repeat::Suppress(Retx { initial_us: window_us, ..grows }),
            Retransmission::Active => {
                let rto_us = Arc::clone(&self.rto_us);
                Repeat::Active { retx: grows, tries: config.retries, rto_us }
            }
            Retransmission::Strategy => Repeat::Pass,
        };
        self.fw.set_pit_entries_max(config.capacity);
        self.fw.set_lifetime_max(config.lifetime_max_ms);
        // A name router behind sends to several; a strategy forwarder knows by itself.
        self.fw.set_spreads(config.retransmission != Retransmission::Strategy);
        self.fw.set_default_hop_limit(config.default_hop_limit);
        let relay = Relay { repeat, nacks_loops: config.nack };
        self.fw.strategy_install(Name::new(), Box::new(relay));
        self.config = config;
    }

    /// The face that stands for who sent an Interest.
    fn downstream(&mut self, cx: &Cx<'_>, packet: &Packet) -> FaceId {
        // A neighbour that says no origin still tells its faces apart by the tags of tokens.
        let tag = || Origin::of_tag(&packet.lp.pit_token);
        let Some(origin) = Origin::of_packet(&packet.lp).or_else(tag) else { return packet.face };
        if self.clients.is_full() && self.tidy <= cx.now {
            self.tidy = cx.now.plus_ms(1000);
            let faces = self.fw.faces();
            let idle = |face| faces.get(face).is_none_or(|f| f.load.pending == 0);
            for face in self.clients.forget(|face, _| idle(face)) {
                self.fw.face_remove(cx.now, face);
            }
        }
        self.client(packet.face, origin)
    }

    fn client(&mut self, link: FaceId, origin: Origin) -> FaceId {
        let (face, is_new) = self.clients.face(link, origin);
        if is_new {
            self.fw.face_add(face, origin.info());
        }
        face
    }

    /// Makes the upstreams those that may get new Interests now.
    fn look_at_upstreams(&mut self, cx: &Cx<'_>) {
        let open = |id: &&FaceId| cx.ports.get(**id).is_some_and(|p| !p.draining);
        let now = || cx.ports.side(Side::Producer).iter().filter(open);
        let hops = &mut self.fw.routes_mut().hops;
        if !now().copied().eq(hops.iter().map(|hop| hop.face)) {
            *hops = now().map(|face| NextHop { face: *face, cost: 0 }).collect();
        }
    }

    fn interest(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Verdict {
        if cx.draining {
            cx.nack(&packet, NackReason::CONGESTION);
            return Verdict::Draining;
        }
        match cx.hold(Side::Producer, packet) {
            Ok(packet) => self.take(cx, packet),
            Err(verdict) => verdict,
        }
    }

    fn take(&mut self, cx: &mut Cx<'_>, mut packet: Packet) -> Verdict {
        self.look_at_upstreams(cx);
        packet.face = self.downstream(cx, &packet);
        packet.lp.next_hop_face = None;
        let hops = packet.lp.prefix_announcement.take();
        let from = cx.out.items.len();
        let verdict = self.fw.receive(cx.now, packet, cx.out);
        self.deliver(cx, from, hops.as_ref(), Came::default());
        Verdict::from(verdict)
    }

    fn data(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> Verdict {
        let came = Came::take(&mut packet.lp);
        let origin = came.origin;
        let source = origin.and_then(|origin| self.clients.known(origin));
        self.fw.pending_mut().answered_by(source);
        let from = cx.out.items.len();
        let verdict = self.fw.receive(cx.now, packet.clone(), cx.out);
        self.deliver(cx, from, None, came);
        if verdict == Inner::Unsolicited {
            return self.unsolicited(cx, packet, origin);
        }
        let us = self.fw.pending().waited_ns() / 1000;
        if verdict == Inner::Satisfied && us > 0 {
            self.rtt.add(us);
            self.srtt_us = (self.srtt_us * 7 + us.min(10_000_000)) / 8;
            self.rto_us.store(self.srtt_us * 2, Ordering::Relaxed);
        }
        Verdict::from(verdict)
    }

    /// What nobody asked for goes on to the cache where the policy says so, and no further.
    fn unsolicited(&self, cx: &mut Cx<'_>, packet: &Packet, origin: Option<Origin>) -> Verdict {
        let Some(origin) = origin else { return Verdict::Unsolicited };
        let policy = UnsolicitedPolicy::from(self.config.unsolicited);
        if !policy.admits(origin.info().scope) {
            return Verdict::Unsolicited;
        }
        for at in 0..cx.ports.side(Side::Consumer).len() {
            let face = cx.ports.side(Side::Consumer)[at];
            cx.pass_as(face, packet, Some(origin.unsolicited()));
        }
        Verdict::Stored
    }

    fn nacked(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> Verdict {
        let came = Came::take(&mut packet.lp);
        let from = cx.out.items.len();
        let verdict = match self.config.retransmission {
            Retransmission::Strategy => self.fw.receive_nack_for_one(cx.now, packet, cx.out),
            _ => self.fw.receive(cx.now, packet.clone(), cx.out),
        };
        self.deliver(cx, from, None, came);
        Verdict::from(verdict)
    }

    /// Makes what the stages sent from `from` on what leaves this service: the faces of clients
    /// become their links, and the origin goes with the packet.
    fn deliver(&self, cx: &mut Cx<'_>, from: usize, hops: Option<&Buf>, came: Came) {
        for item in &mut cx.out.items[from..] {
            let Outgoing::Pull(kind, lp) = &mut item.what else { continue };
            if *kind == PacketKind::Interest {
                let asked = lp.incoming_face.map(FaceId::of_told);
                let client = asked.and_then(|face| self.clients.of(face));
                let origin = client.map(|c| c.origin).filter(|origin| !origin.is_tag());
                lp.incoming_face = origin.map(Origin::told);
                lp.prefix_announcement = hops.cloned();
            } else {
                item.face = self.clients.of(item.face).map_or(item.face, |c| c.link);
                came.put(lp);
            }
        }
        cx.count_sent(from);
    }

    fn loops(&self) -> u64 {
        self.count(Inner::DeadNonce) + self.count(Inner::DuplicateNonce)
    }

    fn count(&self, verdict: Inner) -> u64 {
        let counters = self.fw.counters();
        PacketKind::ALL.iter().map(|kind| counters.verdict(*kind, verdict)).sum()
    }
}

impl Element for BackwardRouter {
    fn receive(&mut self, cx: &mut Cx<'_>, mut packet: Packet) -> Option<Verdict> {
        let side = cx.side_of(packet.face)?;
        Some(match (side, packet.kind()) {
            (Side::Consumer, PacketKind::Interest) => self.interest(cx, packet),
            (Side::Producer, PacketKind::Data) => self.data(cx, &mut packet),
            (Side::Producer, PacketKind::Nack) => self.nacked(cx, &mut packet),
            _ => Verdict::WrongSide,
        })
    }

    fn resume(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        self.take(cx, packet);
    }

    fn face_added(&mut self, _: &mut Cx<'_>, face: FaceId) {
        self.fw.face_add(face, FaceInfo::local());
    }

    fn face_removed(&mut self, cx: &mut Cx<'_>, face: FaceId, _: &str) {
        for client in self.clients.forget(|_, client| client.link == face) {
            self.fw.face_remove(cx.now, client);
        }
        self.fw.face_remove(cx.now, face);
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.look_at_upstreams(cx);
        let from = cx.out.items.len();
        self.fw.handle_timeout(cx.now, cx.out);
        let copies = cx.out.items[from..].iter().filter(|i| is_interest(i)).count();
        self.again += (copies / self.fw.routes_mut().hops.len().max(1)) as u64;
        self.deliver(cx, from, None, Came::default());
    }

    fn poll_timeout(&self) -> Option<Tick> {
        self.fw.poll_timeout()
    }

    fn config(&self) -> KindConfig {
        KindConfig::BackwardRouter(self.config.clone())
    }

    fn configure(&mut self, _: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal> {
        let KindConfig::BackwardRouter(config) = config else { return Err(Refusal::no_path()) };
        if config.capacity == 0 {
            return Err(Refusal::field("capacity", "at least 1"));
        }
        if config.window_ms == 0 {
            return Err(Refusal::field("window_ms", "at least 1"));
        }
        self.apply(config);
        Ok(())
    }

    fn stats(&self, cx: &Cx<'_>) -> KindStats {
        let c = self.fw.counters();
        let forwarded = self.count(Inner::Forwarded);
        let entries = self.fw.pit_len() as u64;
        let inserted = c.satisfied_interests + c.unsatisfied_interests + entries;
        let (unsolicited, data) = self.period;
        KindStats::BackwardRouter(stats::BackwardRouter {
            retransmitted: forwarded.saturating_sub(inserted) + self.again,
            unsolicited: self.count(Inner::Unsolicited),
            entries,
            capacity: self.config.capacity as u64,
            inserted,
            aggregated: self.count(Inner::Aggregated),
            suppressed: self.count(Inner::Suppressed),
            satisfied: c.satisfied_interests,
            expired: c.unsatisfied_interests,
            evicted: c.displaced_interests,
            loops: self.loops(),
            rtt_ms: Durations::in_ms(&self.rtt),
            period: PendingPeriod { ms: cx.settings.report_ms, unsolicited, data },
        })
    }

    fn control(&mut self, cx: &mut Cx<'_>, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Export(page) => Ok(self.export(cx, page)),
            Request::Import(table) => self.import(cx, table),
            _ => Err(Refusal::no_path()),
        }
    }

    fn pending(&self) -> usize {
        self.fw.pit_len()
    }

    fn period(&mut self, _: &mut Cx<'_>) {
        let data = self.fw.counters().received[PacketKind::Data as usize];
        let now = (self.count(Inner::Unsolicited), data);
        self.period = (now.0 - self.period_start.0, now.1 - self.period_start.1);
        self.period_start = now;
    }
}

fn is_interest(item: &Transmit) -> bool {
    matches!(item.what, Outgoing::Pull(PacketKind::Interest, _))
}
