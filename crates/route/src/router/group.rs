//! The group of the prefix tables: each router publishes its own, in order, with a snapshot.

use super::check::Subject;
use super::{Notice, Router, SEQ_BITS, Verdict};
use crate::codec::PrefixOps;
use crate::prefixes::{Candidate, Outside, PREFIX_COST_MAX, Told, ways};
use crate::table::Route;
use onym_endpoint::Packet;
use onym_sync::Judged;
use onym_sync::alo::{Alo, AloConfig, AloEvent, Snapshots, VerifyId};
use onym_sync::svs::Members;
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Publications between two snapshots, as in deployed routers.
const SNAPSHOT_EVERY: u64 = 50;
/// Least time between two publications; what changes meanwhile is in one.
const SPACING_MS: u64 = 10;
/// Wait before the group is asked about a router that is reached and that nothing was heard of; it
/// doubles. A certificate that nobody had is asked for again before.
const ASK_FIRST_MS: u64 = 1500;
/// Beyond this the periodic vectors are enough.
const ASK_LAST_MS: u64 = 24_000;
/// The forwarder's face to this router.
const OWN_FACE: u64 = 0;
/// Octets of operations in one publication.
const PUBLICATION_LEN_MAX: usize = 32 * 1024;

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

/// What is to be said to all routers about prefixes here.
#[derive(Debug)]
pub(super) struct Untold {
    /// The newest about each prefix: an Add, or nothing for a Remove.
    changes: BTreeMap<Name, Told>,
    /// When it may be said.
    at: Tick,
}

impl Untold {
    pub(super) fn new(now: Tick) -> Self {
        Self { changes: BTreeMap::new(), at: now }
    }

    pub(super) fn next_due(&self) -> Tick {
        if self.changes.is_empty() { Tick::NEVER } else { self.at }
    }

    /// Takes as much as fits into one publication.
    fn take(&mut self, now: Tick, exit_router: Name) -> PrefixOps {
        let mut ops = PrefixOps { exit_router, ..PrefixOps::default() };
        let mut octets = 0;
        while octets < PUBLICATION_LEN_MAX {
            let Some((name, told)) = self.changes.pop_first() else { break };
            octets += name.value().len() + 24;
            match told {
                Some(add) => {
                    octets += add.through.iter().map(|n| n.value().len() + 4).sum::<usize>();
                    ops.adds.push(add);
                }
                None => ops.removes.push(name),
            }
        }
        self.at = now.plus_ms(SPACING_MS);
        ops
    }
}

/// When the group is asked about routers that are reached and that nothing was heard of: the vector
/// that said it was lost, or could not be verified before there was a way to its signer.
#[derive(Debug)]
pub(super) struct Asking {
    at: Tick,
    wait_ms: u64,
}

impl Asking {
    pub(super) const fn new() -> Self {
        Self { at: Tick::NEVER, wait_ms: 0 }
    }

    pub(super) const fn next_due(&self) -> Tick {
        self.at
    }

    fn begin(&mut self, now: Tick) {
        self.wait_ms = ASK_FIRST_MS;
        self.at = self.at.min(now.plus_ms(ASK_FIRST_MS));
    }

    fn go_on(&mut self, now: Tick) {
        self.wait_ms *= 2;
        self.at = if self.wait_ms > ASK_LAST_MS { Tick::NEVER } else { now.plus_ms(self.wait_ms) };
    }
}

impl Router {
    /// Everything before this run is forgotten by others.
    pub(super) fn tell_reset(&mut self, now: Tick) {
        let exit_router = self.names.router.clone();
        self.publish_ops(now, &PrefixOps { exit_router, reset: true, ..PrefixOps::default() });
    }

    /// Says what became of prefixes here: at once after a pause, else gathered for some time.
    pub(super) fn tell_due(&mut self, now: Tick) {
        if self.untold.next_due() <= now && !self.stopped {
            let ops = self.untold.take(now, self.names.router.clone());
            self.publish_ops(now, &ops);
        }
    }

    fn publish_ops(&mut self, now: Tick, ops: &PrefixOps) {
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

    /// Whoever has more than the vector sent here answers it.
    pub(super) fn ask_due(&mut self, now: Tick) {
        if now < self.asking.next_due() {
            return;
        }
        self.asking.at = Tick::NEVER;
        if self.followed.iter().any(|router| self.is_unheard(router)) {
            self.group.sync_now(now);
            self.asking.go_on(now);
        }
    }

    /// Whether a router is reached whose run now the group has not told of.
    fn is_unheard(&self, router: &Name) -> bool {
        let boot = |route: &Route| route.seq.map(|seq| seq >> SEQ_BITS);
        let route = self.table.route(router);
        route.is_some_and(|route| !self.group.svs().has(router, boot(route)))
    }

    pub(super) fn group_events(&mut self, now: Tick) {
        while let Some(event) = self.group.poll_event() {
            match event {
                AloEvent::Publication { node, content, .. } => {
                    self.on_operations(node, &content);
                }
                AloEvent::Snapshot { node, content, .. } => {
                    self.on_snapshot(node, &content);
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
    pub(crate) fn on_operations(&mut self, node: Name, content: &[u8]) {
        if let Some(ops) = self.operations(&node, content) {
            self.apply(node, ops);
        }
    }

    /// All prefixes of a router, in place of those known.
    fn on_snapshot(&mut self, node: Name, content: &[u8]) {
        if let Some(ops) = self.operations(&node, content) {
            self.apply(node, PrefixOps { reset: true, ..ops });
        }
    }

    fn operations(&mut self, node: &Name, content: &[u8]) -> Option<PrefixOps> {
        let ops = PrefixOps::parse(content).ok().filter(|ops| ops.exit_router == *node);
        if ops.is_none() {
            self.counters.malformed += 1;
        }
        ops
    }

    fn apply(&mut self, node: Name, mut ops: PrefixOps) {
        // What came through this network leads back into it.
        ops.adds.retain(|add| !add.through.contains(&self.names.network));
        let heard = ops.adds.len();
        let accept = &self.config.accept;
        let is_accepted =
            |name: &Name| accept.iter().any(|a| a.as_ref().is_prefix_of(name.as_ref()));
        ops.adds.retain(|add| accept.is_empty() || is_accepted(&add.name));
        self.counters.not_accepted += (heard - ops.adds.len()) as u64;
        self.counters.prefix_operations += 1;
        let changed = self.prefixes.apply(&Arc::new(node), &ops);
        self.reaches_change(&changed);
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
        if self.is_unheard(router) {
            self.asking.begin(now);
        }
        let prefixes: BTreeSet<_> = self.prefixes.of(router).map(Arc::clone).collect();
        self.reaches_change(&prefixes);
    }

    pub(super) fn install_prefixes(&mut self, prefixes: &BTreeSet<Arc<Name>>) {
        for prefix in prefixes {
            let mut hops = self.prefix_ways(prefix);
            if self.prefixes.outside(prefix).is_some_and(|outside| outside.is_summary) {
                // Names under a summary that nothing longer covers end here, not where they came from.
                hops.push((OWN_FACE, PREFIX_COST_MAX));
            }
            self.fib.set(prefix, hops);
        }
    }

    /// The ways to `prefixes` may be others: for the forwarder, and for other networks of this host.
    fn reaches_change(&mut self, prefixes: &BTreeSet<Arc<Name>>) {
        self.install_prefixes(prefixes);
        if self.is_border {
            self.reaches_changed.extend(prefixes.iter().map(Arc::clone));
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
        ways(candidates, self.prefixes.host_cost(prefix), self.config.table.ways_max)
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

    fn local_changed(&mut self, now: Tick, prefix: &Name, told: Option<Told>) {
        if let Some(told) = told {
            self.note_told(now, prefix, told);
            self.reaches_change(&BTreeSet::from([Arc::new(prefix.clone())]));
        }
        self.progress(now);
    }

    fn note_told(&mut self, now: Tick, prefix: &Name, told: Told) {
        self.untold.at = self.untold.at.max(now);
        self.untold.changes.insert(prefix.clone(), told);
    }

    // --- other networks of this host

    /// What a router of another network on this host reaches of `prefix` is another now; says whether
    /// there was room.
    pub(crate) fn set_outside(
        &mut self,
        now: Tick,
        prefix: &Name,
        outside: Option<Outside>,
    ) -> bool {
        if self.prefixes.outside(prefix) == outside.as_ref() {
            return true;
        }
        let Ok(told) = self.prefixes.set_outside(prefix, outside) else { return false };
        if let Some(told) = told {
            self.note_told(now, prefix, told);
        }
        self.install_prefixes(&BTreeSet::from([Arc::new(prefix.clone())]));
        self.progress(now);
        true
    }

    /// The nearest that this network and programs here have of `prefix`, not by way of the network
    /// `besides`: cost, and the networks it came through.
    pub(crate) fn reach(&self, prefix: &Name, besides: Option<&Name>) -> Option<(u64, &[Name])> {
        let here = self.prefixes.local_cost(prefix).map(|cost| (cost, &[][..]));
        let by = |(exit, cost, through): (&Arc<Name>, u64, _)| {
            let route = self.table.route(exit)?;
            Some((route.metric() + cost, through))
        };
        let exits = self.prefixes.exits_through(prefix).filter_map(by);
        let apart =
            |(_, through): &(u64, &[Name])| besides.is_none_or(|net| !through.contains(net));
        here.into_iter().chain(exits).filter(apart).min_by_key(|(cost, _)| *cost)
    }

    /// There are several networks on this host: changes of what is reached are reported from now on.
    pub(crate) fn become_border(&mut self, networks: Vec<Name>) {
        self.is_border = true;
        self.networks = networks;
    }

    /// Programs of the host are served by another router: this one answers about its network only.
    pub(crate) fn leave_programs(&mut self) {
        self.endpoint.stop_serving(self.served.local);
    }

    /// A prefix whose reach may be another since this was asked; only at a border.
    pub(crate) fn poll_reach_changed(&mut self) -> Option<Arc<Name>> {
        self.reaches_changed.pop_first()
    }
}
