//! The group of the prefix tables: each router publishes its own, in order, with a snapshot.

use super::check::Subject;
use super::{Notice, Router, Verdict};
use crate::codec::PrefixOps;
use crate::prefixes::{Candidate, ways};
use onym_endpoint::Packet;
use onym_sync::Judged;
use onym_sync::alo::{Alo, AloConfig, AloEvent, Snapshots, VerifyId};
use onym_sync::svs::Members;
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Publications between two snapshots, as in deployed routers.
const SNAPSHOT_EVERY: u64 = 50;

/// The participant of a router.
pub(super) fn group(
    now: Tick,
    unix_ms: u64,
    names: &crate::Names,
    signer: onym_crypto::Signer,
    config: &super::Config,
) -> Alo {
    let snapshots = Snapshots::Latest { threshold: SNAPSHOT_EVERY };
    let (group, node) = (names.prefix_group.clone(), names.router.clone());
    let mut alo = AloConfig::new(group, node, config.boot, signer, snapshots);
    alo.svs.members = Members::Under { prefix: names.network.clone(), components: Some(1) };
    Alo::new(now, unix_ms, alo, config.seed.rotate_left(17))
}

impl Router {
    /// Says something to all routers.
    pub(super) fn tell(&mut self, now: Tick, ops: &PrefixOps) {
        let mut content = Vec::new();
        ops.write(&mut content);
        let prefixes = &self.prefixes;
        let snapshot = || {
            let mut content = Vec::new();
            prefixes.snapshot().write(&mut content);
            content
        };
        if self.group.publish(now, &content, snapshot).is_err() {
            self.counters.unpublished += 1;
        }
    }

    pub(super) fn group_events(&mut self, now: Tick) {
        while let Some(event) = self.group.poll_event() {
            match event {
                AloEvent::Publication { node, content, .. } => {
                    self.on_operations(node, &content, false);
                }
                AloEvent::Snapshot { node, content, .. } => {
                    self.on_operations(node, &content, true);
                }
                AloEvent::Verify { id, packet } => self.verify_group(now, id, &packet),
                _ => {}
            }
        }
    }

    fn verify_group(&mut self, now: Tick, id: VerifyId, wire: &[u8]) {
        let Ok(packet) = Packet::parse(wire) else {
            return self.group.verified(now, id, Judged::Bad);
        };
        let subject = Subject::Group(id);
        if !self.verify(subject, packet, None) {
            self.group.verified(now, id, Judged::Bad);
        }
    }

    pub(super) fn group_verified(&mut self, now: Tick, id: VerifyId, verdict: &Verdict) {
        self.counters.refused += u64::from(*verdict != Verdict::Good);
        if let Verdict::Bad(why) = verdict {
            let router = self.names.prefix_group.clone();
            self.notice(Notice::Refused { router, key: None, why: why.clone() });
        }
        self.group.verified(now, id, (*verdict == Verdict::Good).into());
    }

    /// What the router `node` published. It speaks for itself only.
    pub(super) fn on_operations(&mut self, node: Name, content: &[u8], replaces: bool) {
        let ops = PrefixOps::parse(content).ok().filter(|ops| ops.exit_router == node);
        let Some(mut ops) = ops else {
            self.counters.malformed += 1;
            return;
        };
        ops.reset |= replaces;
        self.counters.prefix_operations += 1;
        let changed = self.prefixes.apply(&Arc::new(node), &ops);
        self.install_prefixes(&changed);
    }

    /// Whether a router is reached decides whether its prefixes are followed and used.
    pub(super) fn follow(&mut self, now: Tick, router: &Arc<Name>) {
        match (self.table.route(router).is_some(), self.followed.contains(router)) {
            (true, false) => {
                self.followed.insert(Arc::clone(router));
                self.group.subscribe(now, (**router).clone());
            }
            (false, true) => {
                self.followed.remove(router);
                self.group.unsubscribe(router);
            }
            _ => {}
        }
        let prefixes: BTreeSet<_> =
            self.prefixes.of(router).map(|(prefix, _)| Arc::clone(prefix)).collect();
        self.install_prefixes(&prefixes);
    }

    pub(super) fn install_prefixes(&mut self, prefixes: &BTreeSet<Arc<Name>>) {
        for prefix in prefixes {
            let hops = self.prefix_ways(prefix);
            self.fib.set(prefix, hops);
        }
    }

    /// Faces and costs by which `prefix` is reached.
    pub(super) fn prefix_ways(&self, prefix: &Name) -> Vec<(u64, u64)> {
        let mut candidates = Vec::new();
        for (exit, cost) in self.prefixes.exits(prefix) {
            let Some(route) = self.table.route(exit) else { continue };
            for hop in &route.hops {
                let link = self.table.link_cost(hop.peer).unwrap_or(1);
                let face = self.neighbours.get(hop.peer).and_then(|n| n.face());
                let Some(face) = face else { continue };
                let total = hop.metric + cost;
                candidates.push(Candidate { face, total, beyond: total - link });
            }
        }
        ways(candidates, self.prefixes.local_cost(prefix), self.config.table.ways_max)
    }

    // --- programs of this host

    /// A program behind `face` announces `prefix`; says whether there was room.
    pub fn announce(&mut self, now: Tick, prefix: &Name, face: u64, cost: u64) -> bool {
        let Ok(told) = self.prefixes.announce(prefix, face, cost) else { return false };
        self.local_changed(now, prefix, told);
        true
    }

    /// A program behind `face` does not announce `prefix` any more.
    pub fn withdraw(&mut self, now: Tick, prefix: &Name, face: u64) {
        let told = self.prefixes.withdraw(prefix, face);
        self.local_changed(now, prefix, told);
    }

    fn local_changed(&mut self, now: Tick, prefix: &Name, told: Option<PrefixOps>) {
        if let Some(ops) = told {
            self.tell(now, &ops);
            self.install_prefixes(&BTreeSet::from([Arc::new(prefix.clone())]));
        }
        self.progress(now);
    }
}
