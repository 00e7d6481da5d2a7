//! The forwarding threads as the control thread orders them: faces, and what every shard has a copy
//! of, which is FIB, strategies and the content store's share.

use super::faces::Faces;
use crate::config::{Cs, CsPolicy, Unsolicited};
use crate::counts::ShardState;
use crate::mgmt::host::{CsView, FaceCounters, TableError};
use crate::rib::{NameValue, RibUpdate};
use crate::shard::{
    FaceOrder, FibChange, Opening, Order, PushState, Route, ShardPort, TableOrder, ask_all,
};
use onym_engine::{FaceMap, OwnerCounters, Reply};
use onym_forward::faces::FaceInfo;
use onym_forward::strategy::StrategyError;
use onym_forward::{ChoiceError, UnsolicitedPolicy};
use onym_frame::RxFrame;
use onym_link::LinkConfig;
use onym_tables::FaceId;
use onym_tables::cs::{CsConfig, Policy};
use onym_tables::fib::NextHop;
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::name::{Name, NameRef};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Changes of the FIB that a shard carries out between two rounds.
const CHANGES_MAX: usize = 256;
/// Turns of a shard that one command to erase takes while none is found.
const ERASE_TURNS: u32 = 64;

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

/// The forwarding threads. What is changed in all of them is changed when a method returns; one that
/// ended is left out.
#[derive(Debug)]
pub(super) struct Shards {
    ports: Vec<ShardPort>,
}

/// How many packets were erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Erased {
    pub(super) count: u64,
    /// Whether there are more.
    pub(super) more: bool,
}

/// Names in the RIB came from checked ones.
pub(super) fn name_of(value: &NameValue) -> NameRef<'_> {
    NameRef::parse_value(value).unwrap_or_default()
}

/// A next hop for the FIB.
fn set(faces: &Faces, name: NameRef<'_>, hop: NextHop) -> Result<FibChange, TableError> {
    if name.len() > NAME_COMPONENTS_MAX {
        return Err(TableError::NameTooLong);
    }
    if !faces.is_next_hop(hop.face) && hop.face != FaceId::INTERNAL {
        return Err(TableError::FaceNotFound);
    }
    Ok(FibChange::Set { name: name.to_name(), hop })
}

/// What a change of the RIB is to the FIB.
fn change_of(faces: &Faces, update: RibUpdate) -> Result<FibChange, TableError> {
    Ok(match update {
        RibUpdate::AddNextHop { name, face, cost } => {
            set(faces, name_of(&name), NextHop { face, cost })?
        }
        RibUpdate::RemoveNextHop { name, face } => {
            FibChange::Unset { name: name_of(&name).to_name(), face }
        }
        RibUpdate::Announcement { name, data } => {
            FibChange::Announcement { name: name_of(&name).to_name(), data }
        }
    })
}

impl Shards {
    pub(super) fn new(ports: Vec<ShardPort>) -> Self {
        Self { ports }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ports.len()
    }

    /// Has an order carried out by all and returns the answers in order.
    pub(super) fn ask_all<R, O: Into<Order>>(&self, order: impl Fn(Reply<R>) -> O) -> Vec<R> {
        ask_all(&self.ports, order)
    }

    /// Has an order carried out by one shard; none when it ended.
    pub(super) fn ask<R, O: Into<Order>>(
        &self,
        shard: usize,
        order: impl FnOnce(Reply<R>) -> O,
    ) -> Option<R> {
        self.ports.get(shard)?.ask(order)
    }

    /// Has all carry an order out, without waiting for it.
    pub(super) fn tell_all<O: Into<Order>>(&self, order: impl Fn() -> O) {
        self.ports.iter().for_each(|port| port.tell(order().into()));
    }

    /// Has shard 0 carry an order out, without waiting for it.
    pub(super) fn tell_first(&self, order: Order) {
        self.ports[0].tell(order);
    }

    /// An order to one shard.
    pub(super) fn tell(&self, shard: usize, order: Order) {
        if let Some(port) = self.ports.get(shard) {
            port.tell(order);
        }
    }

    // ----- what they count

    pub(super) fn states(&self) -> Vec<ShardState> {
        self.ask_all(|reply| Order::State { reply })
    }

    pub(super) fn push_states(&self) -> Vec<PushState> {
        self.ask_all(|reply| Order::PushState { reply })
    }

    /// Counters of every face by the shard that does its I/O.
    pub(super) fn owner_counters(&self) -> FaceMap<OwnerCounters> {
        let each = self.ask_all(|reply| FaceOrder::OwnerCounters { reply });
        each.into_iter().flatten().collect()
    }

    /// Packets of every face, all shards together.
    pub(super) fn packet_counters(&self) -> FaceMap<FaceCounters> {
        let mut packets = FaceMap::<FaceCounters>::default();
        let each = self.ask_all(|reply| FaceOrder::PacketCounters { reply });
        for (id, c) in each.into_iter().flatten() {
            let sum = packets.entry(id).or_default();
            sum.in_interests += c.in_interests;
            sum.in_data += c.in_data;
            sum.in_nacks += c.in_nacks;
            sum.out_interests += c.out_interests;
            sum.out_data += c.out_data;
            sum.out_nacks += c.out_nacks;
        }
        packets
    }

    /// Packets and octets of every face.
    pub(super) fn face_counters(&self) -> FaceMap<FaceCounters> {
        let mut counters = self.packet_counters();
        for (id, owner) in self.owner_counters() {
            let sum = counters.entry(id).or_default();
            (sum.in_bytes, sum.out_bytes) = (owner.traffic.in_bytes, owner.traffic.out_bytes);
            sum.path_mtu = Some(owner.link.path_mtu as u64).filter(|mtu| *mtu > 0);
        }
        counters
    }

    // ----- faces

    /// A face takes part in forwarding; `owner` does its I/O.
    pub(super) fn face_add(&self, id: FaceId, info: FaceInfo, owner: usize) {
        self.ask_all(|reply| FaceOrder::Add { id, info, owner, reply });
    }

    /// A face works in another way.
    pub(super) fn face_change(&self, id: FaceId, info: FaceInfo, link: &LinkConfig) {
        self.ask_all(|reply| FaceOrder::Change { id, info, link: link.clone(), reply });
    }

    /// Hands the transport of a face to the shard that does its I/O.
    ///
    /// # Errors
    /// A sentence: its descriptor cannot be watched.
    pub(super) fn open(&self, owner: usize, opening: Opening) -> Result<(), String> {
        let opening = Box::new(opening);
        match self.ask(owner, |reply| FaceOrder::Open { opening, reply }) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(format!("watching its descriptor: {error}")),
            None => Err("the node is stopping".into()),
        }
    }

    /// A face closes and takes no part in forwarding any more; its last counters.
    pub(super) fn face_close(&self, owner: usize, id: FaceId) -> Option<OwnerCounters> {
        let counters = self.ask(owner, |reply| FaceOrder::Close { id, reply }).flatten();
        self.ask_all(|reply| FaceOrder::Forget { id, reply });
        counters
    }

    /// Hands over a frame that came another way than by the face's transport; whether it was taken.
    pub(super) fn frame(&self, owner: usize, id: FaceId, frame: RxFrame) -> bool {
        self.ports[owner].frame(id, frame)
    }

    // ----- tables

    /// Applies changes of the RIB; the first one that was refused.
    ///
    /// # Errors
    /// [`TableError`].
    pub(super) fn rib_updates(
        &self,
        faces: &Faces,
        updates: Vec<RibUpdate>,
    ) -> Result<(), TableError> {
        self.rib_changes(faces, updates).into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Applies changes of the RIB in order, [`CHANGES_MAX`] at a time. The numbers of those that were
    /// refused, in order, which no shard has.
    pub(super) fn rib_changes(
        &self,
        faces: &Faces,
        updates: Vec<RibUpdate>,
    ) -> Vec<(usize, TableError)> {
        let (mut refused, mut changes) = (Vec::new(), Vec::new());
        for (at, update) in updates.into_iter().enumerate() {
            match change_of(faces, update) {
                Ok(change) => changes.push((at, change)),
                Err(error) => refused.push((at, error)),
            }
        }
        for some in changes.chunks(CHANGES_MAX) {
            let full = self.fib_change(some.iter().map(|(_, change)| change.clone()).collect());
            refused.extend(full.into_iter().map(|at| (some[at].0, TableError::Full)));
        }
        refused.sort_by_key(|(at, _)| *at);
        refused
    }

    /// Changes the FIB of every shard. The numbers of the changes that one refused, which are undone
    /// in the others.
    fn fib_change(&self, changes: Arc<[FibChange]>) -> Vec<usize> {
        #[cfg(test)]
        super::work::FIB_ASKED.set(super::work::FIB_ASKED.get() + 1);
        let order = |reply| TableOrder::FibChange { changes: Arc::clone(&changes), reply };
        let refused: BTreeSet<usize> = self.ask_all(order).into_iter().flatten().collect();
        let undo = refused.iter().filter_map(|at| match &changes[*at] {
            FibChange::Set { name, hop } => {
                Some(FibChange::Unset { name: name.clone(), face: hop.face })
            }
            _ => None,
        });
        let undo: Arc<[FibChange]> = undo.collect();
        if !undo.is_empty() {
            self.ask_all(|reply| TableOrder::FibChange { changes: Arc::clone(&undo), reply });
        }
        refused.into_iter().collect()
    }

    /// Adds or changes a next hop in every shard.
    ///
    /// # Errors
    /// [`TableError`]; then no shard has it.
    pub(super) fn fib_set(
        &self,
        faces: &Faces,
        name: NameRef<'_>,
        hop: NextHop,
    ) -> Result<(), TableError> {
        let change = set(faces, name, hop)?;
        if self.fib_change([change].into()).is_empty() { Ok(()) } else { Err(TableError::Full) }
    }

    /// Removes a next hop from every shard.
    pub(super) fn fib_unset(&self, name: NameRef<'_>, face: FaceId) {
        self.fib_change([FibChange::Unset { name: name.to_name(), face }].into());
    }

    /// The FIB, by name.
    pub(super) fn fib_list(&self) -> Vec<Route> {
        let mut all = self.ask(0, |reply| TableOrder::FibList { reply }).unwrap_or_default();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Sets the strategy of a prefix in every shard; its full name.
    ///
    /// # Errors
    /// [`TableError`]; then no shard has changed.
    pub(super) fn strategy_set(
        &self,
        name: NameRef<'_>,
        strategy: NameRef<'_>,
    ) -> Result<Name, TableError> {
        let (name, strategy) = (name.to_name(), strategy.to_name());
        let results = self.ask_all(|reply| TableOrder::StrategySet {
            name: name.clone(),
            strategy: strategy.clone(),
            reply,
        });
        // All shards hold the same, so they all agree.
        let first = results.into_iter().next();
        first.unwrap_or(Err(ChoiceError::Full(0))).map_err(|e| choice_error(&e))
    }

    /// Removes the strategy of a prefix from every shard.
    pub(super) fn strategy_unset(&self, name: NameRef<'_>) {
        let name = name.to_name();
        self.ask_all(|reply| TableOrder::StrategyUnset { name: name.clone(), reply });
    }

    /// The strategies, by prefix.
    pub(super) fn strategy_list(&self) -> Vec<(Name, Name)> {
        let mut all = self.ask(0, |reply| TableOrder::StrategyList { reply }).unwrap_or_default();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// The content store, all shards together.
    pub(super) fn cs_view(&self, config: &Cs) -> CsView {
        let mut view = CsView {
            capacity: config.packets_max as u64,
            admit: config.admit,
            serve: config.serve,
            ..CsView::default()
        };
        for state in self.states() {
            view.entries += state.cs_entries;
            view.hits += state.counters.cs_hits;
            view.misses += state.counters.cs_misses;
        }
        view
    }

    /// Brings the content stores to what `cs` says.
    pub(super) fn cs_apply(&self, cs: &Cs) {
        let config = cs_config(cs, self.len());
        let unsolicited = unsolicited(cs.unsolicited);
        // Each call evicts a bounded number, so that packets pass in between.
        loop {
            let more = self.ask_all(|reply| TableOrder::CsConfigure { config, unsolicited, reply });
            if !more.contains(&true) {
                return;
            }
        }
    }

    /// Erases at most `count` packets under `name`.
    pub(super) fn cs_erase(&self, name: NameRef<'_>, count: u64) -> Erased {
        let mut left = usize::try_from(count).unwrap_or(usize::MAX);
        let mut erased = Erased::default();
        for port in &self.ports {
            let (mut done, mut rest) = (0, true);
            // A turn that erases nothing has looked at packets that were never looked at, and packets
            // pass between turns. One beyond the limit is only looked for, so that "more" is true.
            for _ in 0..ERASE_TURNS {
                let (name, limit) = (name.to_name(), left);
                let asked = port.ask(|reply| TableOrder::CsErase { name, limit, reply });
                (done, rest) = asked.unwrap_or_default();
                if done > 0 || !rest || left == 0 {
                    break;
                }
            }
            erased.count += done as u64;
            left -= done.min(left);
            erased.more |= rest;
        }
        erased
    }
}
