//! Routes, strategies and the content store: what every shard has a copy of.

use super::Control;
use crate::config::{Cs, CsPolicy, Unsolicited};
use crate::mgmt::host::{CsView, NextHop, TableError};
use crate::shard::{Shard, ask_all};
use onym_forward::strategy::StrategyError;
use onym_forward::{ChoiceError, UnsolicitedPolicy};
use onym_tables::FaceId;
use onym_tables::cs::{CsConfig, Policy};
use onym_tables::fib;
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::name::{Name, NameRef};

/// What the configuration means for one of `shards` shards.
pub(crate) fn cs_config(cs: &Cs, shards: usize) -> CsConfig {
    CsConfig {
        packets_max: cs.packets_max.div_ceil(shards),
        bytes_max: cs.bytes_max.div_ceil(shards),
        policy: match cs.policy {
            CsPolicy::Lru => Policy::Lru,
            CsPolicy::PriorityFifo => Policy::PriorityFifo,
        },
        admit: cs.admit,
        serve: cs.serve,
    }
}

/// The policy of the configuration as the data path has it.
pub(crate) fn unsolicited(policy: Unsolicited) -> UnsolicitedPolicy {
    match policy {
        Unsolicited::DropAll => UnsolicitedPolicy::DropAll,
        Unsolicited::AdmitLocal => UnsolicitedPolicy::AdmitLocal,
        Unsolicited::AdmitNetwork => UnsolicitedPolicy::AdmitNetwork,
        Unsolicited::AdmitAll => UnsolicitedPolicy::AdmitAll,
    }
}

fn choice_error(error: &ChoiceError) -> TableError {
    match error {
        ChoiceError::TooLong(_) => TableError::NameTooLong,
        ChoiceError::Full(_) => TableError::Full,
        ChoiceError::Strategy(StrategyError::Unknown(_)) => TableError::UnknownStrategy,
        other => TableError::StrategyRefused(other.to_string()),
    }
}

impl Control {
    /// Adds or changes a next hop in every shard.
    ///
    /// # Errors
    /// [`TableError`]; then no shard has it.
    pub(crate) fn fib_set(&mut self, name: NameRef<'_>, hop: NextHop) -> Result<(), TableError> {
        if name.len() > NAME_COMPONENTS_MAX {
            return Err(TableError::NameTooLong);
        }
        let (face, cost) = hop;
        if !self.faces.contains_key(&face) && face != FaceId::INTERNAL && face != FaceId::NULL {
            return Err(TableError::FaceNotFound);
        }
        let name = name.to_name();
        let copy = name.clone();
        let added = ask_all(&self.ports, move |shard| {
            let hop = fib::NextHop { face, cost };
            shard.fib_add(copy.as_ref(), hop)
        });
        if added.iter().all(|a| *a) {
            return Ok(());
        }
        self.fib_unset(name.as_ref(), face);
        Err(TableError::Full)
    }

    /// Removes a next hop from every shard.
    pub(crate) fn fib_unset(&mut self, name: NameRef<'_>, face: FaceId) {
        let name = name.to_name();
        ask_all(&self.ports, move |shard| shard.fw.fib_remove(name.as_ref(), face));
    }

    /// The FIB, by name.
    pub(crate) fn fib_list(&self) -> Vec<(Name, Vec<NextHop>)> {
        let list = |shard: &mut Shard| {
            let routes = shard.fw.fib().iter().filter_map(|(name, hops)| {
                let name = NameRef::parse_value(name).ok()?.to_name();
                Some((name, hops.iter().map(|h| (h.face, h.cost)).collect()))
            });
            routes.collect::<Vec<(Name, Vec<NextHop>)>>()
        };
        let mut all = self.ports[0].ask(list).unwrap_or_default();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Sets the strategy of a prefix in every shard; its full name.
    ///
    /// # Errors
    /// [`TableError`]; then no shard has changed.
    pub(crate) fn strategy_change(
        &mut self,
        name: NameRef<'_>,
        strategy: NameRef<'_>,
    ) -> Result<Name, TableError> {
        let (name, strategy) = (name.to_name(), strategy.to_name());
        let set = move |shard: &mut Shard| shard.fw.strategy_set(name.as_ref(), strategy.as_ref());
        let results = ask_all(&self.ports, set);
        // All shards hold the same, so they all agree.
        let first = results.into_iter().next();
        first.unwrap_or(Err(ChoiceError::Full(0))).map_err(|e| choice_error(&e))
    }

    /// Removes the strategy of a prefix from every shard.
    pub(crate) fn strategy_clear(&mut self, name: NameRef<'_>) {
        let name = name.to_name();
        ask_all(&self.ports, move |shard| shard.fw.strategy_unset(name.as_ref()));
    }

    /// The strategies, by prefix.
    pub(crate) fn strategy_list(&self) -> Vec<(Name, Name)> {
        let list = |shard: &mut Shard| {
            let choices = shard.fw.strategies().iter().filter_map(|(name, choice)| {
                Some((NameRef::parse_value(name).ok()?.to_name(), choice.instance.clone()))
            });
            choices.collect::<Vec<_>>()
        };
        let mut all = self.ports[0].ask(list).unwrap_or_default();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// The content store, all shards together.
    pub(crate) fn cs_view(&self) -> CsView {
        let each = ask_all(&self.ports, |shard| {
            let counters = shard.fw.counters();
            (shard.fw.cs().len() as u64, counters.cs_hits, super::status::cs_misses(shard))
        });
        let mut view = CsView {
            capacity: self.config.cs.packets_max as u64,
            admit: self.config.cs.admit,
            serve: self.config.cs.serve,
            ..CsView::default()
        };
        for (entries, hits, misses) in each {
            view.entries += entries;
            view.hits += hits;
            view.misses += misses;
        }
        view
    }

    /// Brings the content stores to what the configuration says now.
    pub(crate) fn cs_apply(&mut self) {
        let config = cs_config(&self.config.cs, self.ports.len());
        let policy = unsolicited(self.config.cs.unsolicited);
        // Each call evicts a bounded number, so that packets pass in between.
        loop {
            let more = ask_all(&self.ports, move |shard| {
                shard.fw.set_unsolicited(policy);
                shard.fw.cs_configure(shard.clock.now(), config)
            });
            if !more.contains(&true) {
                return;
            }
        }
    }

    /// Erases at most `count` packets under `name`; how many, and whether more remain.
    pub(crate) fn cs_remove(&mut self, name: NameRef<'_>, count: u64) -> (u64, bool) {
        let mut left = usize::try_from(count).unwrap_or(usize::MAX);
        let mut erased = 0;
        let mut more = false;
        for port in &self.ports {
            let name = name.to_name();
            let limit = left;
            // One beyond the limit is only looked for, so that "more" is true.
            let done = port.ask(move |shard| {
                let done = shard.fw.cs_erase(name.as_ref(), limit);
                (done, shard.fw.cs().has_under(name.as_ref().value()))
            });
            let (done, rest) = done.unwrap_or_default();
            erased += done as u64;
            left -= done.min(left);
            more |= rest;
        }
        (erased, more)
    }
}
