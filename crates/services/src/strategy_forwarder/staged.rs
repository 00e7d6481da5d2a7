//! Interests that come with their next hops, from a name router: the strategies of a node decide.
//!
//! The forwarder's own PIT stage knows what is pending; the next hops stand in for the FIB. A
//! client that is both downstream and next hop is one face here, so that nothing goes back where it
//! came from. The hop is counted by the backward router.

use crate::chain::{Came, Clients, NextHops, Origin};
use crate::cx::Cx;
use crate::names;
use crate::ports::Side;
use crate::refusal::Refusal;
use crate::verdict::Verdict;
use onym_forward::stage::{Handed, Hops, NoCache};
use onym_forward::{Config, FaceInfo, Forwarder, Verdict as Inner};
use onym_link::{Outgoing, Packet, PacketKind, Transmit};
use onym_tables::fib::NextHop;
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::name::Name;
use std::collections::BTreeMap;

/// The stages, and who is who.
#[derive(Debug)]
pub(super) struct Staged {
    fw: Forwarder<Handed, NoCache>,
    clients: Clients,
    /// Faces of the producer side by who stands behind them.
    producers: BTreeMap<Origin, FaceId>,
    /// The link by which a producer's own Interests come.
    links: BTreeMap<FaceId, FaceId>,
    chosen: BTreeMap<String, String>,
    /// Whether an Interest ever came with next hops.
    used: bool,
}

impl Staged {
    pub(super) fn new(key: &HashKey, seed: u64) -> Self {
        let config = Config { hash_key: *key, seed, hop: 0, ..Config::default() };
        Self {
            fw: Forwarder::with(config, Handed::default(), NoCache),
            clients: Clients::default(),
            producers: BTreeMap::new(),
            links: BTreeMap::new(),
            chosen: BTreeMap::new(),
            used: false,
        }
    }

    pub(super) fn is_used(&self) -> bool {
        self.used
    }

    pub(super) fn face_added(&mut self, cx: &Cx<'_>, face: FaceId) {
        let Some(port) = cx.ports.get(face) else { return };
        let info = match (port.side, port.origin) {
            (Side::Consumer, _) => FaceInfo::local(),
            (Side::Producer, Some(origin)) => {
                self.producers.insert(origin, face);
                origin.info()
            }
            (Side::Producer, None) => FaceInfo::point_to_point(),
        };
        self.fw.face_add(face, info);
    }

    /// A packet came from the producer side: it says who stands there. Who says nothing is told
    /// to others as the face by which they came in here. What comes by way of others is theirs.
    pub(super) fn learn(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let Some(origin) = cx.origin(packet) else { return };
        let Some(port) = cx.ports.get_mut(packet.face) else { return };
        if port.origin.is_some() && packet.kind() != PacketKind::Interest {
            return;
        }
        if port.origin != Some(origin) {
            if let Some(before) = port.origin.replace(origin) {
                self.producers.remove(&before);
            }
            self.face_added(cx, packet.face);
        }
    }

    pub(super) fn face_removed(&mut self, now: Tick, face: FaceId) {
        self.producers.retain(|_, known| *known != face);
        self.links.retain(|known, link| *known != face && *link != face);
        for client in self.clients.forget(|_, client| client.link == face) {
            self.fw.face_remove(now, client);
        }
        self.fw.face_remove(now, face);
    }

    /// The face that stands for who sent an Interest.
    fn downstream(&mut self, packet: &Packet) -> FaceId {
        let link = packet.face;
        let Some(origin) = Origin::of_packet(&packet.lp) else { return link };
        if let Some(face) = self.producers.get(&origin) {
            self.links.insert(*face, link);
            return *face;
        }
        if self.clients.is_full() {
            let faces = self.fw.faces();
            let idle = |face| faces.get(face).is_none_or(|f| f.load.pending == 0);
            // Half of them at least, or the next one would look again.
            for face in self.clients.forget(|face, _| idle(face)) {
                self.fw.face_remove(Tick::default(), face);
            }
        }
        let (face, is_new) = self.clients.face(link, origin);
        if is_new {
            self.fw.face_add(face, origin.info());
        }
        face
    }

    pub(super) fn interest(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        next: &NextHops,
    ) -> Verdict {
        self.used = true;
        let open = |face: FaceId| cx.ports.get(face).is_some_and(|p| p.up && !p.draining);
        let hop = |(origin, cost): &(Origin, u64)| {
            let face = self.producers.get(origin).copied().filter(|face| open(*face))?;
            Some(NextHop { face, cost: *cost })
        };
        let list = next.hops.iter().filter_map(hop).collect::<Vec<_>>();
        let mut packet = packet.clone();
        packet.lp.prefix_announcement = None;
        packet.face = self.downstream(&packet);
        packet.lp.next_hop_face = match (next.chosen, list.first()) {
            (false, _) => None,
            (true, Some(hop)) => hop.face.told(),
            (true, None) => Some(std::num::NonZeroU64::MAX),
        };
        let hops = Hops { components: next.components.into(), list: list.into() };
        self.fw.routes_mut().coming = hops;
        let from = cx.out.items.len();
        let verdict = self.fw.receive(cx.now, packet, cx.out);
        self.deliver(cx, from, Came::default());
        Verdict::from(verdict)
    }

    /// A Data or Nack of a producer. `None`: it is for nobody here.
    pub(super) fn answer(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Option<Verdict> {
        if !self.used {
            return None;
        }
        // Who says nothing of its origin entered the chain here.
        let origin = cx.origin(packet);
        let mut packet = packet.clone();
        let came = Came { origin, ..Came::take(&mut packet.lp) };
        let from = cx.out.items.len();
        let verdict = self.fw.receive(cx.now, packet, cx.out);
        self.deliver(cx, from, came);
        (verdict != Inner::Unsolicited).then(|| Verdict::from(verdict))
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        let from = cx.out.items.len();
        self.fw.handle_timeout(cx.now, cx.out);
        self.deliver(cx, from, Came::default());
        // Routes that strategies learn are for who has a RIB.
        self.fw.take_events();
    }

    pub(super) fn poll_timeout(&self) -> Option<Tick> {
        self.fw.poll_timeout()
    }

    /// Strategies by prefix, as a node's management names them.
    pub(super) fn configure(
        &mut self,
        strategies: &BTreeMap<String, String>,
        regions: &[String],
    ) -> Result<(), Refusal> {
        let mut set = Vec::new();
        for (prefix, strategy) in strategies {
            let text = format!("/localhost/nfd/strategy/{strategy}");
            let prefix = names::prefix("route_strategies", prefix)?;
            set.push((prefix, names::name("route_strategies", &text)?));
        }
        let regions = regions.iter().map(|region| names::prefix("regions", region));
        let regions = regions.collect::<Result<Vec<Name>, Refusal>>()?;
        for (prefix, strategy) in &set {
            self.fw
                .strategy_set(prefix.as_ref(), strategy.as_ref())
                .map_err(|e| Refusal::field("route_strategies", e.to_string()))?;
        }
        for prefix in self.chosen.keys().filter(|prefix| !strategies.contains_key(*prefix)) {
            if let Ok(prefix) = names::prefix("route_strategies", prefix) {
                self.fw.strategy_unset(prefix.as_ref());
            }
        }
        self.chosen.clone_from(strategies);
        self.fw.set_regions(regions);
        Ok(())
    }

    fn origin_of(&self, cx: &Cx<'_>, face: FaceId) -> Option<Origin> {
        let client = self.clients.of(face).map(|client| client.origin);
        client.or_else(|| cx.ports.get(face)?.origin)
    }

    /// Makes what the stages sent from `from` on what leaves this service: what answers goes to
    /// the link of who asked, once for each token, for there one table waits for all of them.
    fn deliver(&self, cx: &mut Cx<'_>, from: usize, came: Came) {
        let mut all = cx.out.items.split_off(from);
        for item in &mut all {
            let Outgoing::Pull(kind, lp) = &mut item.what else { continue };
            if *kind == PacketKind::Interest {
                let asked = lp.incoming_face.map(FaceId::of_told);
                let origin = asked.and_then(|face| self.origin_of(cx, face));
                lp.incoming_face = origin.map(Origin::told);
            } else {
                let link = self.clients.of(item.face).map(|client| client.link);
                item.face =
                    link.or_else(|| self.links.get(&item.face).copied()).unwrap_or(item.face);
                came.put(lp);
            }
        }
        for item in all {
            let is_copy = cx.out.items[from..].iter().any(|sent| is_same_data(sent, &item));
            if !is_copy {
                cx.out.items.push(item);
            }
        }
        cx.count_sent(from);
    }
}

/// Whether both bring Data to the same face with the same token.
fn is_same_data(a: &Transmit, b: &Transmit) -> bool {
    match (&a.what, &b.what) {
        (Outgoing::Pull(PacketKind::Data, x), Outgoing::Pull(PacketKind::Data, y)) => {
            (a.face, &x.pit_token) == (b.face, &y.pit_token)
        }
        _ => false,
    }
}
