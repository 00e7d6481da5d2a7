//! The name router: routes Interests by name and takes the registrations of producers (the FIB).
//!
//! In: Interests from the consumer side; Data, Nacks and registration commands from the producer
//! side; the rest is `wrong_side`.  Out: an Interest to the faces of all routes on the path of its
//! name (or of the longest prefix), Data to the consumer side.  Tables: prefixes with routes,
//! bounded by `routes_max`; a route beyond is refused.  Verdicts: `forwarded` `no_route`
//! `prefix_rejected` `delivered` `wrong_side` `malformed` `no_face`.

mod routes;

use crate::chain::{NextHops, Origin};
use crate::config::{KindConfig, NameRouter as Config};
use crate::control::{Answer, Request};
use crate::cx::Cx;
use crate::element::Element;
use crate::events::{Event, RouteEvent};
use crate::names;
use crate::ports::Side;
use crate::refusal::Refusal;
use crate::registration::{Registrar, is_command, is_local_scope};
use crate::stats::{self, KindStats};
use crate::verdict::Verdict;
use onym_forward::stage::{first_delegation, rules};
use onym_link::{Packet, PacketKind};
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;
use onym_wire::name::Name;
pub(crate) use routes::{Routes, Spec};

/// The element.
#[derive(Debug)]
pub(crate) struct NameRouter {
    config: Config,
    routes: Routes,
    regions: Vec<Name>,
    registrar: Registrar,
    no_route: u64,
    prefix_rejected: u64,
    in_interests: u64,
    out_data: u64,
    /// Faces of one Interest; used again.
    chosen: Vec<FaceId>,
}

impl NameRouter {
    pub(crate) fn new() -> Self {
        Self {
            config: Config::default(),
            routes: Routes::default(),
            regions: Vec::new(),
            registrar: Registrar::default(),
            no_route: 0,
            prefix_rejected: 0,
            in_interests: 0,
            out_data: 0,
            chosen: Vec::new(),
        }
    }

    fn interest(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Verdict {
        self.in_interests += 1;
        match cx.hold(Side::Producer, packet) {
            Ok(packet) => self.route(cx, &packet),
            Err(verdict) => verdict,
        }
    }

    fn route(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Verdict {
        let Ok(interest) = Interest::parse(&packet.bytes) else { return Verdict::Malformed };
        let name = interest.name;
        if let Some(face) = self.handed_to(cx) {
            return self.hand_on(cx, packet, &interest, face);
        }
        self.chosen.clear();
        // Consumers have no business with the router, and names of local scope go no further.
        let is_local = is_local_scope(name);
        if !is_local {
            let matching = self.config.matching;
            self.routes.faces(cx.key, name.value(), matching, &mut self.chosen);
        }
        if self.chosen.is_empty() {
            self.no_route += 1;
            // Nobody will ever serve a name of local scope: whoever asked need not wait for it.
            if self.config.nack || is_local {
                cx.nack(packet, NackReason::NO_ROUTE);
            }
            return Verdict::NoRoute;
        }
        let token = cx.token_onward(packet.face, &packet.lp.pit_token);
        let mut count = 0;
        for face in &self.chosen {
            if cx.ports.get(*face).is_some_and(|p| p.up && !p.draining) {
                cx.pass(*face, packet, token.clone());
                count += 1;
            }
        }
        if count == 0 { Verdict::NoFace } else { Verdict::Forwarded }
    }

    /// The face of the strategy forwarder behind this router.
    fn handed_to(&self, cx: &Cx<'_>) -> Option<FaceId> {
        let label = self.config.strategy_forwarder.as_ref()?;
        cx.ports.find(label).map(|port| port.id)
    }

    /// Hands an Interest on with its next hops, none too: what to do then is for the strategy.
    fn hand_on(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        interest: &Interest<'_>,
        face: FaceId,
    ) -> Verdict {
        let mut lp = packet.lp.clone();
        // An application may have chosen by itself.
        if lp.prefix_announcement.is_none() {
            let hint = &interest.forwarding_hint;
            let by_hint = !hint.is_empty() && rules::hint_key(cx.key, &self.regions, hint) != 0;
            let mut look = |name| {
                let found = self.routes.behind(cx.key, name, face);
                Some(found).filter(|(_, hops)| !hops.is_empty())
            };
            let (components, hops) = if by_hint {
                first_delegation(hint, look).map_or((0, Vec::new()), |(_, hops)| (0, hops))
            } else {
                look(interest.name).unwrap_or_default()
            };
            let components = u8::try_from(components).unwrap_or(0);
            lp.prefix_announcement = Some(NextHops { components, chosen: false, hops }.to_octets());
        }
        let handed = Packet { face: packet.face, bytes: packet.bytes.clone(), lp };
        if cx.ports.get(face).is_none_or(|p| !p.up || p.draining) {
            return Verdict::NoFace;
        }
        let token = cx.token_onward(packet.face, &packet.lp.pit_token);
        cx.pass(face, &handed, token);
        Verdict::Forwarded
    }

    fn data(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Verdict {
        let Ok(data) = Data::parse(&packet.bytes) else { return Verdict::Malformed };
        let (name, octets) = (data.name.value(), packet.bytes.len() as u64);
        let known = self.routes.count_data(
            cx.key,
            name,
            packet.face,
            Origin::of_packet(&packet.lp),
            octets,
        );
        // A strategy forwarder asked by a table of its own, as a node does.
        let is_checked = self.config.check_prefix && self.handed_to(cx) != Some(packet.face);
        if is_checked && !known {
            self.prefix_rejected += 1;
            return Verdict::PrefixRejected;
        }
        match cx.hold(Side::Consumer, packet) {
            Ok(packet) => self.back(cx, &packet, Verdict::Forwarded),
            Err(verdict) => verdict,
        }
    }

    fn back(&mut self, cx: &mut Cx<'_>, packet: &Packet, good: Verdict) -> Verdict {
        let count = cx.send_back(packet, Side::Consumer);
        if good == Verdict::Forwarded {
            self.out_data += count as u64;
        }
        if count == 0 { Verdict::NoFace } else { good }
    }

    fn command(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Verdict {
        let is_ours = Interest::parse(&packet.bytes).map(|i| is_command(i.name));
        match is_ours {
            Err(_) => return Verdict::Malformed,
            Ok(false) => return Verdict::WrongSide,
            Ok(true) => {}
        }
        self.registrar.policy = self.config.registration;
        let Some(done) = self.registrar.judge(cx, packet) else { return Verdict::Delivered };
        let via = Origin::of_packet(&packet.lp).filter(|_| self.handed_to(cx) == Some(packet.face));
        if done.is_removal {
            let gone = self.routes.remove(cx.key, done.prefix.value(), done.face, via);
            self.registrar.counters.removed += u64::from(gone);
        } else {
            let spec = Spec::registered(&done, via, cx.now);
            if let Err(text) =
                self.routes.add(cx.key, done.prefix.value(), spec, self.config.routes_max)
            {
                self.registrar.refuse(cx, packet, 507, &text);
                return Verdict::Delivered;
            }
        }
        // The route is in the table before its answer leaves.
        self.registrar.accept(cx, packet, &done);
        Verdict::Delivered
    }
}

impl Element for NameRouter {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict> {
        let side = cx.side_of(packet.face)?;
        Some(match (side, packet.kind()) {
            (Side::Consumer, PacketKind::Interest) => self.interest(cx, packet),
            (Side::Producer, PacketKind::Data) => self.data(cx, packet),
            (Side::Producer, PacketKind::Nack) => self.back(cx, &packet, Verdict::NackForwarded),
            (Side::Producer, PacketKind::Interest) => self.command(cx, &packet),
            (Side::Consumer, PacketKind::Data | PacketKind::Nack) => Verdict::WrongSide,
        })
    }

    fn resume(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        match packet.kind() {
            PacketKind::Interest => self.route(cx, &packet),
            PacketKind::Data => self.back(cx, &packet, Verdict::Forwarded),
            PacketKind::Nack => self.back(cx, &packet, Verdict::NackForwarded),
        };
    }

    fn face_removed(&mut self, cx: &mut Cx<'_>, face: FaceId, label: &str) {
        let (gone, registered) = self.routes.remove_face(cx.key, face);
        self.registrar.counters.removed += registered;
        if registered > 0 {
            let (label, prefixes) = (label.to_owned(), gone);
            cx.events.push(Event::ProducerDisconnected { face: face.0, label, prefixes });
        }
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        for (prefix, face) in self.routes.expire(cx.key, cx.now) {
            self.registrar.counters.removed += 1;
            let route = RouteEvent::expired(face, cx.ports.label(face), prefix);
            cx.events.push(Event::Unregistered(route));
        }
    }

    fn poll_timeout(&self) -> Option<Tick> {
        self.routes.next_end()
    }

    fn config(&self) -> KindConfig {
        KindConfig::NameRouter(self.config.clone())
    }

    fn configure(&mut self, _: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal> {
        let KindConfig::NameRouter(config) = config else { return Err(Refusal::no_path()) };
        let regions = config.regions.iter().map(|region| names::prefix("regions", region));
        self.regions = regions.collect::<Result<_, Refusal>>()?;
        self.config = config;
        Ok(())
    }

    fn stats(&self, _: &Cx<'_>) -> KindStats {
        KindStats::NameRouter(stats::NameRouter {
            routes: self.routes.len() as u64,
            registrations: self.registrar.counters,
            no_route: self.no_route,
            prefix_rejected: self.prefix_rejected,
            in_interests: self.in_interests,
            out_data: self.out_data,
        })
    }

    fn control(&mut self, cx: &mut Cx<'_>, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Keys(request) => self.registrar.keys.control(request),
            Request::Routes(request) => self.routes.control(cx, request, self.config.routes_max),
            Request::Export(page) => Ok(self.routes.export(cx, page)),
            Request::Import(table) => self.routes.import(cx, table, self.config.routes_max),
            _ => Err(Refusal::no_path()),
        }
    }
}
