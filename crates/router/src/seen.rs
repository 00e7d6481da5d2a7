//! The figures of a router, for its node's metrics page.

use crate::meet::Counters as Met;
use onym_crypto::edge::unix_now_ms;
use onym_metrics::{Page, Source, catalogue as m};
use onym_route::Border;
use onym_route::router::Counters;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// What a router had a moment ago.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Neighbours that are heard.
    pub neighbours: u64,
    /// Of them those whose ways are not used, as they do not hear this router.
    pub one_sided: u64,
    /// Neighbours held down.
    pub held: u64,
    /// Routers that are reached.
    pub routers: u64,
    /// Prefixes of others.
    pub prefixes: u64,
    /// Prefixes announced here.
    pub local_prefixes: u64,
    /// What became of hellos by which routers find each other.
    pub met: Met,
    /// When the router's certificate ends, in seconds of the Unix epoch.
    pub certificate_until: Option<i64>,
    /// When the anchor ends.
    pub anchor_until: Option<i64>,
    /// What was counted.
    pub counters: Counters,
}

impl Figures {
    /// Those of all routers of a border together.
    pub(crate) fn of(border: &Border, met: Met) -> Self {
        let mut all = Self { met, ..Self::default() };
        for router in border.routers() {
            let (neighbours, one_sided) = router.neighbour_counts();
            all.neighbours += neighbours;
            all.one_sided += one_sided;
            all.held += router.held().count() as u64;
            all.routers += router.table().routes().count() as u64;
            all.prefixes += router.prefixes().remote().count() as u64;
            all.local_prefixes += router.prefixes().local().count() as u64;
            all.counters += router.counters();
        }
        all
    }
}

/// [`Figures`] that the router's thread renews four times a second.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Figures>);

impl Seen {
    pub(crate) fn set(&self, figures: Figures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    /// The newest.
    #[must_use]
    pub fn get(&self) -> Figures {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Seen {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let (f, c) = (self.get(), self.get().counters);
        let mut neighbours = page.family(&m::ROUTE_NEIGHBOURS)?;
        let states = [
            ("used", f.neighbours - f.one_sided.min(f.neighbours)),
            ("one_sided", f.one_sided),
            ("held", f.held),
        ];
        for (state, count) in states {
            neighbours.sample([state.into()], count)?;
        }
        page.single(&m::ROUTE_ROUTERS, f.routers)?;
        let mut prefixes = page.family(&m::ROUTE_PREFIXES)?;
        prefixes.sample(["here".into()], f.local_prefixes)?;
        prefixes.sample(["others".into()], f.prefixes)?;
        let mut hellos = page.family(&m::ROUTE_HELLOS)?;
        let results = [
            ("taken", c.hellos.saturating_sub(c.malformed + c.replayed + c.flooded + c.refused)),
            ("malformed", c.malformed),
            ("replayed", c.replayed),
            ("flooded", c.flooded),
            ("refused", c.refused),
        ];
        for (result, count) in results {
            hellos.sample([result.into()], count)?;
        }
        page.single(&m::ROUTE_HELLOS_SENT, c.hellos_sent)?;
        let mut met = page.family(&m::ROUTE_MET)?;
        let results = [
            ("taken", f.met.taken),
            ("replayed", f.met.replayed),
            ("refused", f.met.refused),
            ("flooded", f.met.flooded),
            ("elsewhere", f.met.elsewhere),
            ("full", f.met.full),
        ];
        for (result, count) in results {
            met.sample([result.into()], count)?;
        }
        page.single(&m::ROUTE_ADVERTS, c.adverts)?;
        page.single(&m::ROUTE_FETCH_FAILURES, c.fetch_failures)?;
        page.single(&m::ROUTE_CHANGES, c.route_changes)?;
        page.single(&m::ROUTE_COST_CHANGES, c.cost_changes)?;
        page.single(&m::ROUTE_PROBES_LOST, c.probes_lost)?;
        page.single(&m::ROUTE_DOUBTS, c.doubts)?;
        let mut left = page.family(&m::ROUTE_CERTIFICATE)?;
        let now_s = i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX);
        for (of, until) in [("router", f.certificate_until), ("anchor", f.anchor_until)] {
            if let Some(until) = until {
                // Exact for ten million years.
                left.sample([of.into()], until.saturating_sub(now_s) as f64)?;
            }
        }
        let mut commands = page.family(&m::ROUTE_COMMANDS)?;
        commands.sample(["done".into()], c.commands.saturating_sub(c.commands_failed))?;
        commands.sample(["failed".into()], c.commands_failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_metrics::{Program, catalogue::ALL};

    #[test]
    fn every_metric_of_routing_is_on_the_page() {
        let seen = Seen::default();
        seen.set(Figures { certificate_until: Some(0), ..Figures::default() });
        let page = onym_metrics::page(seen).unwrap();
        let ours = ALL.iter().filter(|metric| metric.programs.contains(&Program::Router));
        for metric in ours {
            assert!(page.lines().any(|line| line.starts_with(metric.name)), "{}", metric.name);
        }
    }
}
