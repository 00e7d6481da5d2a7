//! The forwarding core in memory and virtual time: one [`Link`] for each face and one [`Forwarder`].

use crate::script::{CsSpec, FaceSpec, Script, StepKind};
use crate::subject::{Bench, Count, Received, Subject};
use crate::virtual_time::{self, InVirtualTime};
use crate::wire::name::{Component, encode};
use onym_forward::{Config, FaceInfo, Forwarder, UnsolicitedPolicy, Verdict};
use onym_frame::{Buf, RxFrame, TxQueue};
use onym_link::{FrameVerdict, Link, LinkConfig, Outbox, PacketKind, Received as FromLink};
use onym_tables::cs::Policy;
use onym_tables::fib::NextHop;
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::Scope;
use onym_wire::name::{Name, NameRef};
use std::collections::VecDeque;
use std::time::Duration;

/// Needs of scripts that the core cannot meet.
const WANTING: &[&str] = &["mgmt", "multishard", "ethernet", "stream", "sockets", "ws"];
/// Virtual time begins here; far from zero, so that moments before it exist.
const START_MS: u64 = 1_000_000;
/// Unix time at the start of virtual time.
const UNIX_MS: u64 = 1_700_000_000_000;
const QUEUE_BYTES_MAX: usize = 16 << 20;

/// Runs scripts on the core.
#[derive(Debug, Clone, Copy)]
pub struct Core {
    /// The forwarder puts tokens of its own on Interests.
    pub tokens: bool,
    /// The far ends of faces return them.
    pub returned: bool,
}

impl Default for Core {
    fn default() -> Self {
        Self { tokens: true, returned: false }
    }
}

impl Bench for Core {
    fn name(&self) -> &str {
        "core"
    }

    fn refuses(&self, script: &Script) -> Option<String> {
        let lacks = |n: &str| WANTING.contains(&n) || (n == "tokens" && !self.tokens);
        let need = script.needs.iter().find(|n| lacks(n));
        need.map(|n| format!("needs {n}"))
    }

    fn set_up(&self, script: &Script) -> Result<Box<dyn Subject>, String> {
        CoreSubject::new(script, *self).map(|s| Box::new(s) as Box<dyn Subject>)
    }

    fn far_ends_return_tokens(&self) -> bool {
        self.returned
    }
}

#[derive(Debug)]
struct Face {
    id: FaceId,
    link: Link,
    queue: TxQueue,
    /// Frames that the far end has not taken.
    out: VecDeque<Vec<u8>>,
    open: bool,
}

#[derive(Debug)]
struct CoreSubject {
    now: Tick,
    forwarder: Forwarder,
    faces: Vec<Face>,
    outbox: Outbox,
}

impl CoreSubject {
    fn new(script: &Script, core: Core) -> Result<Self, String> {
        let mut forwarder =
            Forwarder::new(Config { originate_tokens: core.tokens, ..config(script)? });
        let regions = script.regions.iter().map(|parts| {
            let name = crate::env::Env::default().name(parts)?;
            to_name(&name)
        });
        forwarder.set_regions(regions.collect::<Result<_, String>>()?);
        let mut faces = Vec::new();
        for (i, spec) in script.faces.iter().enumerate() {
            let id = FaceId(FaceId::FIRST.0 + i as u32);
            forwarder.face_add(id, info(spec));
            faces.push(Face {
                id,
                link: Link::new(link_config(spec)),
                queue: TxQueue::new(QUEUE_BYTES_MAX),
                out: VecDeque::new(),
                open: true,
            });
        }
        Ok(Self { now: Tick::from_ms(START_MS), forwarder, faces, outbox: Outbox::default() })
    }

    /// Sends what the forwarder asked for.
    fn flush(&mut self) {
        for item in &self.outbox.items {
            if let Some(face) = self.faces.iter_mut().find(|f| f.id == item.face && f.open) {
                // A refusal is counted by the link, and shows as a packet that did not come.
                let _ = face.link.send(self.now, item, &self.outbox.arena, &mut face.queue);
            }
        }
        self.outbox.clear();
        for face in &mut self.faces {
            face.take_frames();
        }
    }

    fn next_timeout(&self) -> Option<Tick> {
        let links = self.faces.iter().filter(|f| f.open).map(|f| f.link.poll_timeout());
        let next = links.chain(self.forwarder.poll_timeout()).min();
        next.filter(|t| *t != Tick::NEVER)
    }
}

impl Face {
    fn take_frames(&mut self) {
        for (head, body) in self.queue.iter() {
            self.out.push_back([head, body].concat());
        }
        let count = self.queue.len();
        self.queue.pop(count);
    }
}

impl InVirtualTime for CoreSubject {
    fn now(&self) -> Tick {
        self.now
    }

    fn advance(&mut self, end: Tick) -> bool {
        match self.next_timeout() {
            Some(due) if due <= end => {
                self.now = self.now.max(due);
                self.forwarder.handle_timeout(self.now, &mut self.outbox);
                for face in self.faces.iter_mut().filter(|f| f.open) {
                    face.link.handle_timeout(self.now, &mut face.queue);
                }
                self.flush();
                true
            }
            _ => {
                self.now = self.now.max(end);
                false
            }
        }
    }

    fn take(&mut self, face: usize) -> Option<Vec<u8>> {
        self.faces[face].out.pop_front()
    }

    fn is_open(&self, face: usize) -> bool {
        self.faces[face].open
    }
}

impl Subject for CoreSubject {
    fn face_id(&self, face: usize) -> u64 {
        self.faces[face].id.0.into()
    }

    fn send(&mut self, face: usize, frame: &[u8]) -> Result<(), String> {
        let (now, face) = (self.now, &mut self.faces[face]);
        let frame = RxFrame { endpoint: 0, bytes: Buf::copy_from(frame) };
        if let FromLink::Packet(packet) = face.link.receive(now, face.id, frame) {
            self.forwarder.receive(now, packet, &mut self.outbox);
        }
        self.flush();
        Ok(())
    }

    fn receive(&mut self, face: usize, patience: Duration) -> Result<Received, String> {
        Ok(virtual_time::receive(self, face, patience))
    }

    fn wait(&mut self, time: Duration) {
        virtual_time::wait(self, time);
    }

    fn route(
        &mut self,
        prefix: &[Component],
        face: usize,
        cost: Option<u64>,
    ) -> Result<(), String> {
        let name = to_name(prefix)?;
        let id = self.faces[face].id;
        match cost {
            Some(cost) => {
                let hop = NextHop { face: id, cost };
                let added = self.forwarder.fib_add(self.now, name.as_ref(), hop, &mut self.outbox);
                added.map_err(|e| e.to_string())?;
                self.flush();
            }
            None => {
                self.forwarder.fib_remove(name.as_ref(), id);
            }
        }
        Ok(())
    }

    fn strategy(&mut self, prefix: &[Component], strategy: &str) -> Result<(), String> {
        let instance: Name = format!("/localhost/nfd/strategy/{strategy}")
            .parse()
            .map_err(|e| format!("{strategy}: {e}"))?;
        let done = self.forwarder.strategy_set(to_name(prefix)?.as_ref(), instance.as_ref());
        done.map(|_| ()).map_err(|e| e.to_string())
    }

    fn cs(&mut self, spec: &CsSpec) -> Result<(), String> {
        let mut config = *self.forwarder.cs().config();
        if let Some(n) = spec.capacity {
            config.packets_max = usize::try_from(n).map_err(|e| e.to_string())?;
        }
        config.admit = spec.admit.unwrap_or(config.admit);
        config.serve = spec.serve.unwrap_or(config.serve);
        while self.forwarder.cs_configure(self.now, config) {}
        if let Some(policy) = &spec.unsolicited {
            self.forwarder.set_unsolicited(unsolicited(policy));
        }
        Ok(())
    }

    fn close(&mut self, face: usize) -> Result<(), String> {
        self.faces[face].open = false;
        self.forwarder.face_remove(self.now, self.faces[face].id);
        Ok(())
    }

    fn verdicts(&mut self) -> Option<Vec<Count>> {
        let mut out = Vec::new();
        let counters = self.forwarder.counters();
        for kind in PacketKind::ALL {
            for &verdict in Verdict::ALL {
                let count = counters.verdict(kind, verdict);
                out.push(Count { kind: kind.label().into(), word: verdict.label().into(), count });
            }
        }
        for &verdict in FrameVerdict::ALL {
            let count = self.faces.iter().map(|f| f.link.counters().of(verdict)).sum();
            out.push(Count { kind: "frame".into(), word: verdict.label().into(), count });
        }
        Some(out)
    }

    fn finish(&mut self) -> Result<(), String> {
        let counters = self.forwarder.counters();
        if !counters.receptions_balance() {
            return Err("packets received are not the sum of the verdicts".into());
        }
        if !counters.copies_balance() {
            return Err("copies asked for are not the copies sent and not sent".into());
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        UNIX_MS + self.now.0 / 1_000_000
    }
}

pub(crate) fn to_name(name: &[Component]) -> Result<Name, String> {
    let value = encode(name);
    NameRef::parse_value(&value).map(NameRef::to_name).map_err(|e| e.to_string())
}

fn info(spec: &FaceSpec) -> FaceInfo {
    FaceInfo {
        scope: if spec.local { Scope::Local } else { Scope::NonLocal },
        link: spec.link,
        local_fields: spec.local_fields,
    }
}

pub(crate) fn link_config(spec: &FaceSpec) -> LinkConfig {
    LinkConfig {
        mtu: (!spec.local).then_some(spec.mtu),
        fragmentation: spec.fragment,
        reassembly: spec.fragment,
        reliability: spec.reliability,
        local_fields: spec.local_fields,
        ..LinkConfig::stream()
    }
}

fn unsolicited(word: &str) -> UnsolicitedPolicy {
    match word {
        "admit-local" => UnsolicitedPolicy::AdmitLocal,
        "admit-network" => UnsolicitedPolicy::AdmitNetwork,
        "admit-all" => UnsolicitedPolicy::AdmitAll,
        _ => UnsolicitedPolicy::DropAll,
    }
}

fn config(script: &Script) -> Result<Config, String> {
    let mut config = Config::default();
    for (key, value) in &script.config {
        let number = || value.parse().map_err(|_| format!("config {key}: {value:?} is no number"));
        match key.as_str() {
            "shards" if value == "1" => {}
            "pit.entries_max" => config.pit_entries_max = number()?,
            "pit.bytes_max" => config.pit_octets_max = number()?,
            "forward.default_hop_limit" => {
                config.default_hop_limit =
                    value.parse().map_err(|_| format!("config {key}: {value:?}"))?;
            }
            _ => return Err(format!("config {key}: the core has no such key")),
        }
    }
    // The policy is chosen when a store is made, wherever the script says it.
    let policies = script.steps.iter().filter_map(|s| match &s.kind {
        StepKind::Cs(spec) => spec.policy.as_deref(),
        _ => None,
    });
    for policy in policies {
        config.cs.policy = if policy == "lru" { Policy::Lru } else { Policy::PriorityFifo };
    }
    Ok(config)
}
