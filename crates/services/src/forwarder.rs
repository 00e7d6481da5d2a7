//! The merged forwarder: name router, backward router, content store and dispatcher in one.
//!
//! In: both kinds of packets on any face.  Out: as the data path of `onym-forward` decides;
//! registrations are judged as by the name router.  Tables: those of `onym-forward`, routes bounded
//! by `routes_max`.  Verdicts: those of `onym-forward`, and `prefix_rejected` `delivered` `draining`.

use crate::config::{Forwarder as Config, KindConfig};
use crate::control::{Answer, Request, SetRequest};
use crate::cx::Cx;
use crate::element::Element;
use crate::events::Event;
use crate::name_router::{Routes, Spec};
use crate::names;
use crate::refusal::Refusal;
use crate::registration::{Registrar, is_command};
use crate::stats::{self, KindStats};
use crate::verdict::Verdict;
use onym_forward::{Config as ForwardConfig, FaceInfo, Forwarder};
use onym_link::{Packet, PacketKind};
use onym_tables::fib::NextHop;
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;
use onym_wire::name::Name;
use std::collections::BTreeMap;

/// The element.
#[derive(Debug)]
pub(crate) struct MergedForwarder {
    config: Config,
    fw: Forwarder,
    routes: Routes,
    registrar: Registrar,
    prefix_rejected: u64,
}

impl MergedForwarder {
    pub(crate) fn new(key: &HashKey, seed: u64) -> Self {
        let config = Config::default();
        let forward = ForwardConfig { hash_key: *key, seed, ..ForwardConfig::default() };
        Self {
            config,
            fw: Forwarder::new(forward),
            routes: Routes::default(),
            registrar: Registrar::default(),
            prefix_rejected: 0,
        }
    }

    fn command(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Verdict {
        self.registrar.policy = self.config.registration;
        let Some(done) = self.registrar.judge(cx, packet) else { return Verdict::Delivered };
        let prefix = done.prefix.value();
        if done.is_removal {
            if self.routes.remove(cx.key, prefix, done.face, None) {
                self.registrar.counters.removed += 1;
                self.uninstall(cx.key, &done.prefix, done.face);
            }
        } else {
            let spec = Spec::registered(&done, None, cx.now);
            if let Err(text) = self.routes.add(cx.key, prefix, spec, self.config.routes_max) {
                self.registrar.refuse(cx, packet, 507, &text);
                return Verdict::Delivered;
            }
            self.install(cx, &done.prefix, done.face, done.cost);
        }
        self.registrar.accept(cx, packet, &done);
        Verdict::Delivered
    }

    fn install(&mut self, cx: &mut Cx<'_>, prefix: &Name, face: FaceId, cost: u64) {
        let hop = NextHop { face, cost };
        // The routes were checked against every bound that the FIB has.
        let _ = self.fw.fib_add(cx.now, prefix.as_ref(), hop, cx.out);
    }

    /// Takes the next hop away unless another route of the same face leads there.
    fn uninstall(&mut self, _: &HashKey, prefix: &Name, face: FaceId) {
        let still = self.routes.iter().any(|(p, s)| p == prefix.value() && s.face == face);
        if !still {
            self.fw.fib_remove(prefix.as_ref(), face);
        }
    }

    /// Makes the FIB what the routes say.
    fn sync(&mut self, cx: &mut Cx<'_>) {
        let mut wanted: BTreeMap<(Vec<u8>, FaceId), u64> = BTreeMap::new();
        for (prefix, spec) in self.routes.iter() {
            let cost = wanted.entry((prefix.to_vec(), spec.face)).or_insert(spec.cost);
            *cost = spec.cost.min(*cost);
        }
        let installed = self.fw.fib().iter().flat_map(|(prefix, hops)| {
            hops.iter().map(move |h| ((prefix.to_vec(), h.face), h.cost))
        });
        let installed: BTreeMap<(Vec<u8>, FaceId), u64> = installed.collect();
        let name = |value: &[u8]| onym_wire::name::NameRef::parse_value(value).map(|n| n.to_name());
        for (prefix, face) in installed.keys().filter(|at| !wanted.contains_key(*at)) {
            if let Ok(name) = name(prefix) {
                self.fw.fib_remove(name.as_ref(), *face);
            }
        }
        for (at, cost) in wanted.iter().filter(|(at, cost)| installed.get(*at) != Some(cost)) {
            if let Ok(name) = name(&at.0) {
                self.install(cx, &name, at.1, *cost);
            }
        }
    }

    /// Whether `face` may answer this name.
    fn may_answer(&mut self, cx: &Cx<'_>, packet: &Packet, data: &Data<'_>) -> bool {
        let octets = packet.bytes.len() as u64;
        self.routes.count_data(cx.key, data.name.value(), packet.face, None, octets)
            || !self.config.check_prefix
    }
}

impl Element for MergedForwarder {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict> {
        match packet.kind() {
            PacketKind::Interest => {
                let Ok(interest) = Interest::parse(&packet.bytes) else {
                    return Some(Verdict::Malformed);
                };
                if is_command(interest.name) {
                    return Some(self.command(cx, &packet));
                }
                if cx.draining {
                    cx.nack(&packet, NackReason::CONGESTION);
                    return Some(Verdict::Draining);
                }
            }
            PacketKind::Data => {
                let Ok(data) = Data::parse(&packet.bytes) else { return Some(Verdict::Malformed) };
                if !self.may_answer(cx, &packet, &data) {
                    self.prefix_rejected += 1;
                    return Some(Verdict::PrefixRejected);
                }
            }
            PacketKind::Nack => {}
        }
        let from = cx.out.items.len();
        let inner = self.fw.receive(cx.now, packet, cx.out);
        cx.count_sent(from);
        Some(Verdict::from(inner))
    }

    fn face_added(&mut self, cx: &mut Cx<'_>, face: FaceId) {
        let local = cx.ports.get(face).is_some_and(|p| p.local);
        let info = if local { FaceInfo::local() } else { FaceInfo::point_to_point() };
        self.fw.face_add(face, info);
    }

    fn face_removed(&mut self, cx: &mut Cx<'_>, face: FaceId, label: &str) {
        self.fw.face_remove(cx.now, face);
        let (prefixes, registered) = self.routes.remove_face(cx.key, face);
        self.registrar.counters.removed += registered;
        if registered > 0 {
            let (label, prefixes) = (label.to_owned(), prefixes);
            cx.events.push(Event::ProducerDisconnected { face: face.0, label, prefixes });
        }
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        let from = cx.out.items.len();
        self.fw.handle_timeout(cx.now, cx.out);
        cx.count_sent(from);
        let over = self.routes.expire(cx.key, cx.now);
        if !over.is_empty() {
            self.registrar.counters.removed += over.len() as u64;
            self.sync(cx);
        }
    }

    fn poll_timeout(&self) -> Option<Tick> {
        self.fw.poll_timeout().into_iter().chain(self.routes.next_end()).min()
    }

    fn config(&self) -> KindConfig {
        KindConfig::Forwarder(self.config.clone())
    }

    fn configure(&mut self, cx: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal> {
        let KindConfig::Forwarder(config) = config else { return Err(Refusal::no_path()) };
        let mut chosen = Vec::new();
        for (prefix, strategy) in &config.strategies {
            let text = format!("/localhost/nfd/strategy/{strategy}");
            chosen.push((names::prefix("strategies", prefix)?, names::name("strategies", &text)?));
        }
        for (prefix, strategy) in &chosen {
            self.fw
                .strategy_set(prefix.as_ref(), strategy.as_ref())
                .map_err(|e| Refusal::field("strategies", e.to_string()))?;
        }
        let mut cs = *self.fw.cs().config();
        cs.packets_max = config.cs_capacity;
        while self.fw.cs_configure(cx.now, cs) {}
        self.config = config;
        Ok(())
    }

    fn stats(&self, _: &Cx<'_>) -> KindStats {
        let c = self.fw.counters();
        KindStats::Forwarder(stats::Forwarder {
            routes: self.routes.len() as u64,
            registrations: self.registrar.counters,
            pit_entries: self.fw.pit_len() as u64,
            cs_entries: self.fw.cs().len() as u64,
            hits: c.cs_hits,
            misses: c.cs_misses,
            satisfied: c.satisfied_interests,
            unsatisfied: c.unsatisfied_interests,
            prefix_rejected: self.prefix_rejected,
        })
    }

    fn control(&mut self, cx: &mut Cx<'_>, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Keys(request) => self.registrar.keys.control(request),
            Request::Routes(request) => {
                let is_change = request != SetRequest::List;
                let done = self.routes.control(cx, request, self.config.routes_max)?;
                if is_change {
                    self.sync(cx);
                }
                Ok(done)
            }
            _ => Err(Refusal::no_path()),
        }
    }

    fn pending(&self) -> usize {
        self.fw.pit_len()
    }
}
