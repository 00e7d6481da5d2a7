//! Areas: routers of several networks on one host, and what one network learns of another.
//!
//! An area is a network of its own, with its own routers, advertisements and prefix group, so
//! deployed routers can be part of it. A border host has a router in each of its networks. Prefixes
//! that one of them reaches are announced by the others as their own, one by one or as a summary.
//!
//! **No loops once converged.** Costs add up across borders, so every router is nearer to a prefix
//! than all that send it packets for it; a border selects among the ways of all its networks by
//! this rule. A prefix lists the networks that it came through and enters none of them again, so
//! none sustains itself around a ring of networks. A summary covers prefixes of its own network
//! alone, or follows the configuration; names under it that the border does not know end at the
//! border.

#[cfg(test)]
mod tests;

use crate::codec::{PrefixAdd, THROUGH_MAX};
use crate::prefixes::Outside;
use crate::router::{Command, CommandError, Output, Router, Verdict};
use onym_endpoint::{Inbound, Transmit};
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One prefix in place of many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What is announced.
    pub prefix: Name,
    /// At what cost; the same whatever is under it, so that changes there are not heard outside.
    pub cost: u64,
    /// Whether it is announced at all times, not only while something under it is reached. Then it
    /// stands for everything under it, of further networks too: a default route.
    pub always: bool,
}

/// What is announced of one network in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The network that reaches it.
    pub from: Name,
    /// The network that hears of it.
    pub to: Name,
    /// What is summarised.
    pub summaries: Vec<Summary>,
    /// Whether prefixes under no summary are announced one by one.
    pub others: bool,
}

impl Export {
    /// All prefixes of `from` one by one.
    #[must_use]
    pub fn all(from: Name, to: Name) -> Self {
        Self { from, to, summaries: Vec::new(), others: true }
    }

    /// Whether `prefix` is announced itself, having come `through` networks behind `from`.
    fn tells(&self, prefix: &Name, through: &[Name]) -> bool {
        let hidden = |summary: &Summary| {
            let covers = summary.prefix.as_ref().is_prefix_of(prefix.as_ref());
            covers && (summary.always || through.is_empty())
        };
        self.others && through.len() < THROUGH_MAX && !self.summaries.iter().any(hidden)
    }
}

/// Why routers make no border.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BorderError {
    /// A border without routers.
    #[error("a border has one router at least")]
    Empty,
    /// Two routers of one network.
    #[error("a border has one router in each of its networks")]
    Twice,
    /// An export between networks that are not here.
    #[error("an export is from one network of the border to another")]
    Unknown,
}

/// An export, and which prefixes each summary stands for.
#[derive(Debug)]
struct Pair {
    from: usize,
    to: usize,
    export: Export,
    under: Vec<BTreeSet<Arc<Name>>>,
}

/// Routers of one host, each of another network. Used as a [`Router`] is; with one router it is that
/// router.
#[derive(Debug)]
pub struct Border {
    routers: Vec<Router>,
    pairs: Vec<Pair>,
    /// Routers that want names under a prefix to end here.
    ends: BTreeMap<Name, BTreeSet<usize>>,
    /// Prefixes that a router had no room for.
    refused: u64,
}

impl Border {
    /// A border of `routers`. The first one serves the programs of this host; each answers about its
    /// own network.
    ///
    /// # Errors
    /// [`BorderError`].
    pub fn new(
        now: Tick,
        mut routers: Vec<Router>,
        exports: Vec<Export>,
    ) -> Result<Self, BorderError> {
        let networks: Vec<Name> = routers.iter().map(|r| r.names().network.clone()).collect();
        if networks.is_empty() {
            return Err(BorderError::Empty);
        }
        if networks.iter().collect::<BTreeSet<_>>().len() != networks.len() {
            return Err(BorderError::Twice);
        }
        let at = |name: &Name| networks.iter().position(|network| network == name);
        let mut pairs = Vec::new();
        for export in exports {
            let (from, to) = at(&export.from).zip(at(&export.to)).ok_or(BorderError::Unknown)?;
            if from == to || pairs.iter().any(|pair: &Pair| (pair.from, pair.to) == (from, to)) {
                return Err(BorderError::Unknown);
            }
            let under = export.summaries.iter().map(|_| BTreeSet::new()).collect();
            pairs.push(Pair { from, to, export, under });
        }
        if routers.len() > 1 {
            routers.iter_mut().for_each(|router| router.become_border(networks.clone()));
            routers.iter_mut().skip(1).for_each(Router::leave_programs);
        }
        let mut border = Self { routers, pairs, ends: BTreeMap::new(), refused: 0 };
        let always = border.pairs.iter().flat_map(|pair| {
            let standing = pair.export.summaries.iter().filter(|summary| summary.always);
            standing.map(|summary| (pair.to, summary.prefix.clone()))
        });
        for (to, prefix) in always.collect::<Vec<_>>() {
            border.tell(now, to, &prefix);
        }
        border.exchange(now);
        Ok(border)
    }

    // --- between the networks

    /// Announces in each network what changed in another.
    fn exchange(&mut self, now: Tick) {
        if self.routers.len() < 2 {
            return;
        }
        // What is told to another network changes nothing that it reaches itself: this ends.
        let mut from = 0;
        while from < self.routers.len() {
            match self.routers.get_mut(from).and_then(Router::poll_reach_changed) {
                Some(prefix) => {
                    self.changed(now, from, &prefix);
                    from = 0;
                }
                None => from += 1,
            }
        }
    }

    fn changed(&mut self, now: Tick, from: usize, prefix: &Arc<Name>) {
        for to in (0..self.routers.len()).filter(|to| *to != from) {
            let summaries = self.recount(from, to, prefix);
            summaries.iter().for_each(|summary| self.tell(now, to, summary));
            self.tell(now, to, prefix);
        }
    }

    /// Counts `prefix` where a summary stands for it; the summaries that come or go by that.
    fn recount(&mut self, from: usize, to: usize, prefix: &Arc<Name>) -> Vec<Name> {
        let network = self.routers.get(to).map(|router| router.names().network.clone());
        let reach = self.routers.get(from).and_then(|r| r.reach(prefix, network.as_ref()));
        let is_here = reach.is_some_and(|(_, through)| through.is_empty());
        let pair = self.pairs.iter_mut().find(|pair| (pair.from, pair.to) == (from, to));
        let mut turned = Vec::new();
        for (summary, under) in
            pair.into_iter().flat_map(|pair| pair.export.summaries.iter().zip(&mut pair.under))
        {
            if summary.always || !summary.prefix.as_ref().is_prefix_of(prefix.as_ref().as_ref()) {
                continue;
            }
            let was = under.is_empty();
            if is_here {
                under.insert(Arc::clone(prefix));
            } else {
                under.remove(prefix);
            }
            if was != under.is_empty() {
                turned.push(summary.prefix.clone());
            }
        }
        turned
    }

    /// Gives the router `to` what the others have of `prefix`.
    fn tell(&mut self, now: Tick, to: usize, prefix: &Name) {
        let outside = self.outside(to, prefix);
        if let Some(router) = self.routers.get_mut(to) {
            self.refused += u64::from(!router.set_outside(now, prefix, outside));
        }
    }

    fn outside(&self, to: usize, prefix: &Name) -> Option<Outside> {
        let network = &self.routers.get(to)?.names().network;
        let (mut cost, mut told, mut is_summary) = (None, None::<PrefixAdd>, false);
        for (from, router) in self.routers.iter().enumerate().filter(|(from, _)| *from != to) {
            cost = cost.into_iter().chain(router.reach(prefix, None).map(|(cost, _)| cost)).min();
            let Some(pair) = self.pairs.iter().find(|pair| (pair.from, pair.to) == (from, to))
            else {
                continue;
            };
            let summary = pair.standing(prefix);
            is_summary |= summary.is_some();
            let single = || {
                let (cost, through) = router.reach(prefix, Some(network))?;
                pair.export.tells(prefix, through).then(|| (cost, through.to_vec()))
            };
            let next = summary.map(|summary| (summary.cost, Vec::new())).or_else(single);
            let Some((cost, mut through)) = next else { continue };
            through.push(pair.export.from.clone());
            if told.as_ref().is_none_or(|told| cost < told.cost) {
                told = Some(PrefixAdd { name: prefix.clone(), cost, through });
            }
        }
        let cost = cost.into_iter().chain(told.as_ref().map(|told| told.cost)).min()?;
        Some(Outside { cost, told, is_summary })
    }

    // --- as a router

    /// Gives the router of the network at `index` to `act`.
    pub fn with<T>(
        &mut self,
        now: Tick,
        index: usize,
        act: impl FnOnce(&mut Router) -> T,
    ) -> Option<T> {
        let done = self.routers.get_mut(index).map(act);
        self.exchange(now);
        done
    }

    /// Gives every router to `act`.
    pub fn each(&mut self, now: Tick, act: impl FnMut(&mut Router)) {
        self.routers.iter_mut().for_each(act);
        self.exchange(now);
    }

    /// Takes a packet; says whether it was for one of the routers.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        // The first router serves names above those of the others.
        let taken = self.routers.iter_mut().rev().any(|router| router.receive(now, packet));
        self.exchange(now);
        taken
    }

    /// The answer to a command.
    pub fn completed(&mut self, now: Tick, id: u64, answer: Result<Option<u64>, CommandError>) {
        let (index, id) = self.split(id);
        self.with(now, index, |router| router.completed(now, id, answer));
    }

    /// The answer to a question about a signature.
    pub fn verified(&mut self, now: Tick, id: u64, verdict: Verdict) {
        let (index, id) = self.split(id);
        self.with(now, index, |router| router.verified(now, id, verdict));
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        let due = self.routers.iter_mut().filter(|router| router.poll_timeout() <= now);
        due.for_each(|router| router.handle_timeout(now));
        self.exchange(now);
    }

    /// When [`Border::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        self.routers.iter().map(Router::poll_timeout).min().unwrap_or(Tick::NEVER)
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Tick) -> Option<Transmit> {
        self.routers.iter_mut().find_map(|router| router.poll_transmit(now))
    }

    /// The next thing that the shell shall do.
    pub fn poll_output(&mut self) -> Option<Output> {
        let mut routers = self.routers.iter_mut().enumerate();
        let (index, output) = routers.find_map(|(at, router)| Some((at, router.poll_output()?)))?;
        Some(match output {
            Output::Command { id, command } => {
                let command = self.ending(index, command);
                Output::Command { id: self.join(index, id), command }
            }
            Output::Verify { id, packet, face } => {
                Output::Verify { id: self.join(index, id), packet, face }
            }
            Output::Notice(notice) => Output::Notice(notice),
        })
    }

    /// Names under a summary end here as long as one router wants it.
    fn ending(&mut self, index: usize, command: Command) -> Command {
        match command {
            Command::Register { prefix, face: 0, cost } => {
                self.ends.entry(prefix.clone()).or_default().insert(index);
                Command::Register { prefix, face: 0, cost }
            }
            Command::Unregister { prefix, face: 0 } => {
                let Some(wanted) = self.ends.get_mut(&prefix) else {
                    return Command::Unregister { prefix, face: 0 };
                };
                wanted.remove(&index);
                if wanted.is_empty() {
                    self.ends.remove(&prefix);
                    return Command::Unregister { prefix, face: 0 };
                }
                Command::Register { prefix, face: 0, cost: crate::prefixes::PREFIX_COST_MAX }
            }
            command => command,
        }
    }

    fn join(&self, index: usize, id: u64) -> u64 {
        id * self.routers.len() as u64 + index as u64
    }

    fn split(&self, id: u64) -> (usize, u64) {
        let count = self.routers.len() as u64;
        (usize::try_from(id % count).unwrap_or_default(), id / count)
    }

    /// The position among [`Border::routers`] of the router that asked with this number.
    #[must_use]
    pub fn asker(&self, id: u64) -> usize {
        self.split(id).0
    }

    /// The routers, in the order in which they were given.
    #[must_use]
    pub fn routers(&self) -> &[Router] {
        &self.routers
    }

    /// Prefixes of one network that had no room in another.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl Pair {
    /// The summary that is announced as `prefix` now.
    fn standing(&self, prefix: &Name) -> Option<&Summary> {
        let mut all = self.export.summaries.iter().zip(&self.under);
        let found = all.find(|(summary, under)| {
            summary.prefix == *prefix && (summary.always || !under.is_empty())
        });
        found.map(|(summary, _)| summary)
    }
}
