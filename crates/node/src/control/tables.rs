//! Routes, strategies and the content store: what every shard has a copy of.

use super::Control;
use crate::config::{Cs, CsPolicy, Unsolicited};
use crate::mgmt::host::{CsView, NextHop, TableError};
use crate::shard::{Order, TableOrder, ask_all};
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
        let hop = fib::NextHop { face, cost };
        let added =
            ask_all(&self.ports, |reply| TableOrder::FibAdd { name: name.clone(), hop, reply });
        if added.iter().all(|a| *a) {
            return Ok(());
        }
        self.fib_unset(name.as_ref(), face);
        Err(TableError::Full)
    }

    /// Removes a next hop from every shard.
    pub(crate) fn fib_unset(&mut self, name: NameRef<'_>, face: FaceId) {
        let name = name.to_name();
        ask_all(&self.ports, |reply| TableOrder::FibRemove { name: name.clone(), face, reply });
    }

    /// The FIB, by name.
    pub(crate) fn fib_list(&self) -> Vec<(Name, Vec<NextHop>)> {
        let mut all = self.ports[0].ask(|reply| TableOrder::FibList { reply }).unwrap_or_default();
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
        let results = ask_all(&self.ports, |reply| TableOrder::StrategySet {
            name: name.clone(),
            strategy: strategy.clone(),
            reply,
        });
        // All shards hold the same, so they all agree.
        let first = results.into_iter().next();
        first.unwrap_or(Err(ChoiceError::Full(0))).map_err(|e| choice_error(&e))
    }

    /// Removes the strategy of a prefix from every shard.
    pub(crate) fn strategy_clear(&mut self, name: NameRef<'_>) {
        let name = name.to_name();
        ask_all(&self.ports, |reply| TableOrder::StrategyUnset { name: name.clone(), reply });
    }

    /// The strategies, by prefix.
    pub(crate) fn strategy_list(&self) -> Vec<(Name, Name)> {
        let mut all =
            self.ports[0].ask(|reply| TableOrder::StrategyList { reply }).unwrap_or_default();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// The content store, all shards together.
    pub(crate) fn cs_view(&self) -> CsView {
        let each = ask_all(&self.ports, |reply| Order::State { reply });
        let mut view = CsView {
            capacity: self.config.cs.packets_max as u64,
            admit: self.config.cs.admit,
            serve: self.config.cs.serve,
            ..CsView::default()
        };
        for state in each {
            view.entries += state.cs_entries;
            view.hits += state.counters.cs_hits;
            view.misses += state.counters.cs_misses;
        }
        view
    }

    /// Brings the content stores to what the configuration says now.
    pub(crate) fn cs_apply(&mut self) {
        let config = cs_config(&self.config.cs, self.ports.len());
        let unsolicited = unsolicited(self.config.cs.unsolicited);
        // Each call evicts a bounded number, so that packets pass in between.
        loop {
            let more = ask_all(&self.ports, |reply| TableOrder::CsConfigure {
                config,
                unsolicited,
                reply,
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
            let done = port.ask(|reply| TableOrder::CsErase { name, limit, reply });
            let (done, rest) = done.unwrap_or_default();
            erased += done as u64;
            left -= done.min(left);
            more |= rest;
        }
        (erased, more)
    }
}
