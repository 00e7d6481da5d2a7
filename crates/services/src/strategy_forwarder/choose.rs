//! The choice among the faces of the producer side for packets without next hops: load balancing
//! among clones, or paths that lead to the same. It keeps no pending Interests; the README says why
//! this is no strategy of `onym-forward`.

use super::watch::Watch;
use crate::config::{Strategy, StrategyForwarder as Config};
use crate::cx::Cx;
use crate::events::Event;
use crate::ports::Side;
use crate::rendezvous;
use onym_tables::FaceId;

/// What the strategies remember.
#[derive(Debug, Default)]
pub(super) struct Chooser {
    turn: usize,
    /// The face of failover that is used now.
    active: Option<FaceId>,
    failovers: u64,
}

/// The name of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) value: &'a [u8],
    /// Its hash, where the strategy is watched.
    pub(super) hash: u64,
}

impl Chooser {
    pub(super) fn failovers(&self) -> u64 {
        self.failovers
    }

    /// Pushes the faces for a packet of this name.
    pub(super) fn choose(
        &mut self,
        cx: &mut Cx<'_>,
        strategy: Strategy,
        name: Named<'_>,
        watch: &mut Watch,
        config: &Config,
        out: &mut Vec<FaceId>,
    ) {
        if strategy == Strategy::HashName {
            let cut = rendezvous::cut(name.value, cx.settings.hash_components);
            out.extend(cx.ports.choose(Side::Producer, rendezvous::stable_hash(cut)));
            return;
        }
        let is_open = |id: &&FaceId| cx.ports.get(**id).is_some_and(|p| !p.draining);
        out.extend(cx.ports.side(Side::Producer).iter().filter(is_open));
        if out.len() < 2 && strategy != Strategy::Failover {
            return;
        }
        match strategy {
            Strategy::Multicast | Strategy::HashName => {}
            Strategy::RoundRobin => {
                self.turn = self.turn.wrapping_add(1);
                keep(out, self.turn % out.len());
            }
            Strategy::Random => {
                let at = cx.rng.below(out.len() as u64);
                keep(out, usize::try_from(at).unwrap_or(0));
            }
            Strategy::Weighted => weighted(cx, watch, out),
            Strategy::LeastOutstanding => self.least(watch, name.hash, out),
            Strategy::BestRoute => best(cx, watch, config, out),
            Strategy::Failover => self.failover(cx, watch, config, out),
        }
    }

    /// The face that was asked for this name already and has not answered: it may be a backward
    /// router that holds the Interest, which only there is joined or sent again. Else the one
    /// with least to answer; equal ones take turns.
    fn least(&mut self, watch: &Watch, hash: u64, out: &mut Vec<FaceId>) {
        if let Some(at) = out.iter().position(|face| watch.waits(hash, *face)) {
            return keep(out, at);
        }
        self.turn = self.turn.wrapping_add(1);
        let (turn, count) = (self.turn, out.len());
        let key = |at: &usize| (watch.state(out[*at]).outstanding, (at + turn) % count);
        if let Some(at) = (0..count).min_by_key(key) {
            keep(out, at);
        }
    }

    fn failover(
        &mut self,
        cx: &mut Cx<'_>,
        watch: &mut Watch,
        config: &Config,
        out: &mut Vec<FaceId>,
    ) {
        // By rank, equal ones by age: removing one leaves the order of the others as it is.
        out.sort_by_key(|id| (cx.ports.get(*id).map_or(0, |p| p.rank), *id));
        let alive = out.iter().position(|id| !watch.state(*id).is_dead());
        let Some(best) = alive.or(if out.is_empty() { None } else { Some(0) }) else { return };
        let chosen = out[best];
        let probe = out[..best]
            .iter()
            .copied()
            .find(|id| watch.state(*id).may_probe(cx.now, config.probe_ms));
        out.clear();
        out.push(chosen);
        if let Some(id) = probe {
            watch.state_mut(id).probed = cx.now;
            out.push(id);
        }
        if self.active != Some(chosen)
            && let Some(before) = self.active.replace(chosen)
        {
            self.failovers += 1;
            let (from, to) = (cx.ports.label(before).to_owned(), cx.ports.label(chosen).to_owned());
            cx.events.push(Event::Failover { from, to });
        }
    }
}

fn keep(out: &mut Vec<FaceId>, at: usize) {
    let chosen = out[at];
    out.clear();
    out.push(chosen);
}

/// Smooth weighted round robin: each gains its weight, the highest pays the sum.
fn weighted(cx: &Cx<'_>, watch: &mut Watch, out: &mut Vec<FaceId>) {
    let (mut sum, mut best) = (0, (i64::MIN, 0));
    for (at, id) in out.iter().enumerate() {
        let weight = i64::from(cx.ports.get(*id).map_or(1, |p| p.weight));
        let state = watch.state_mut(*id);
        state.current += weight;
        sum += weight;
        if state.current > best.0 {
            best = (state.current, at);
        }
    }
    watch.state_mut(out[best.1]).current -= sum;
    keep(out, best.1);
}

/// The living face with the shortest round trip; those not measured yet first. Now and then
/// another one is asked as well.
fn best(cx: &mut Cx<'_>, watch: &mut Watch, config: &Config, out: &mut Vec<FaceId>) {
    let key = |id: &FaceId| {
        let state = watch.state(*id);
        (state.is_dead(), state.smoothed_rtt().unwrap_or_default(), state.outstanding)
    };
    let Some(chosen) = out.iter().copied().min_by_key(key) else { return };
    let due = |id: &FaceId| watch.state(*id).probed.plus_ms(config.probe_ms) <= cx.now;
    let others: Vec<FaceId> = out.iter().copied().filter(|id| *id != chosen && due(id)).collect();
    out.clear();
    out.push(chosen);
    let at = cx.rng.below(others.len() as u64);
    if let Some(other) = others.get(usize::try_from(at).unwrap_or(0)) {
        watch.state_mut(*other).probed = cx.now;
        out.push(*other);
    }
}
