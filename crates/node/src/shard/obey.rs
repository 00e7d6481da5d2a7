//! Execution of the orders to a shard.

use super::local::set_free;
use super::{FaceOrder, FaceState, FibChange, Hold, Io, Opening, Order, Shard, TableOrder};
use crate::counts::ShardState;
use onym_engine::OwnerCounters;
use onym_forward::Question;
use onym_forward::verdict::Counters;
use onym_frame::RxFrame;
use onym_link::Packet;
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_wire::name::{Name, NameRef};

/// From so many octets of pending Interests on that ended with their face, memory is handed back.
const HANDED_BACK: usize = 1 << 20;

impl Shard {
    pub(super) fn obey(&mut self, io: &mut Io, order: Order) {
        match order {
            Order::Face(order) => self.obey_face(io, order),
            Order::Table(order) => self.obey_table(io, order),
            Order::Inject(packets) => self.inject(io, packets),
            Order::Regions { regions, reply } => {
                self.fw.set_regions(regions);
                reply.send(());
            }
            Order::Forwarding { default_hop_limit, is_fair, is_traced, reply } => {
                self.fw.set_default_hop_limit(default_hop_limit);
                self.fw.set_fairness(is_fair);
                self.fw.set_traces(is_traced);
                reply.send(());
            }
            Order::Explain { name, can_be_prefix, ingress, reply } => {
                let question = Question { can_be_prefix, ingress, ..Question::new(name.as_ref()) };
                reply.send(self.fw.explain(io.now, &question));
            }
            Order::Home { name, reply } => reply.send(self.chooser.by_name(name.value())),
            Order::State { reply } => reply.send(self.state(io)),
            Order::PushState { reply } => reply.send(self.push_state()),
            Order::Watch(order) => self.obey_watch(io.now, order),
            Order::Disk(answers) => self.disk_answered(io, answers),
            Order::IsDrained { reply } => reply.send(self.is_drained(io)),
            Order::Stop => io.stop(),
        }
    }

    fn obey_face(&mut self, io: &mut Io, order: FaceOrder) {
        match order {
            FaceOrder::Add { id, info, owner, reply } => {
                self.fw.face_add(id, info);
                if owner != self.index {
                    let owner = u8::try_from(owner).expect("invariant: at most 64 shards");
                    io.faces.note_elsewhere(id, owner);
                }
                reply.send(());
            }
            FaceOrder::Open { opening, reply } => reply.send(self.open(io, *opening)),
            FaceOrder::Change { id, info, link, reply } => {
                self.fw.face_add(id, info);
                if let Some((slot, face)) = io.faces.by_id(id) {
                    face.link.configure(link);
                    io.note_timer(slot);
                }
                reply.send(());
            }
            FaceOrder::Close { id, reply } => reply.send(self.close(io, id)),
            FaceOrder::Forget { id, reply } => {
                let before = self.fw.pit_octets();
                self.fw.face_remove(io.now, id);
                if before - self.fw.pit_octets() >= HANDED_BACK {
                    onym_sys::memory::hand_back();
                }
                io.faces.forget(id);
                reply.send(());
            }
            FaceOrder::Frame { id, frame, under_way } => {
                drop(under_way);
                self.frames(io, id, vec![frame]);
            }
            FaceOrder::OwnerCounters { reply } => {
                reply.send(io.faces.iter().map(|f| (f.id, f.counters())).collect());
            }
            FaceOrder::PacketCounters { reply } => {
                reply.send(self.fw.faces().iter().map(|f| (f.id, f.counters)).collect());
            }
        }
    }

    fn obey_table(&mut self, io: &mut Io, order: TableOrder) {
        match order {
            TableOrder::FibChange { changes, reply } => {
                let each = changes.iter().enumerate();
                let refused = each.filter(|(_, change)| !self.fib_change(io, change));
                reply.send(refused.map(|(at, _)| at).collect());
            }
            TableOrder::FibList { reply } => {
                let routes = self.fw.fib().iter().filter_map(|(name, hops)| {
                    let name = NameRef::parse_value(name).ok()?.to_name();
                    Some((name, hops.to_vec()))
                });
                reply.send(routes.collect());
            }
            TableOrder::StrategySet { name, strategy, reply } => {
                reply.send(self.fw.strategy_set(name.as_ref(), strategy.as_ref()));
            }
            TableOrder::StrategyUnset { name, reply } => {
                self.fw.strategy_unset(name.as_ref());
                reply.send(());
            }
            TableOrder::StrategyList { reply } => {
                let choices = self.fw.strategies().iter().filter_map(|(name, choice)| {
                    Some((NameRef::parse_value(name).ok()?.to_name(), choice.instance.clone()))
                });
                reply.send(choices.collect());
            }
            TableOrder::CsConfigure { config, unsolicited, reply } => {
                self.fw.set_unsolicited(unsolicited);
                reply.send(self.fw.cs_configure(io.now, config));
            }
            TableOrder::Verified(judged) => {
                for (held, is_good) in judged {
                    match is_good {
                        true => self.fw.cache_mut().verified(io.now, &held),
                        false => self.fw.cache_mut().rejected(),
                    }
                }
            }
            TableOrder::CsErase { name, limit, reply } => {
                let done = self.fw.cs_erase(name.as_ref(), limit);
                reply.send((done, self.fw.cs().may_have_under(name.as_ref().value())));
            }
        }
    }

    /// Hands packets to the forwarder as ones that arrived at this shard from outside.
    fn inject(&mut self, io: &mut Io, packets: Vec<Packet>) {
        for packet in packets {
            self.accept(io.now, packet.kind(), packet);
        }
        self.send_out(io);
    }

    /// Takes over the I/O of a face, or gives one that was down a new transport.
    ///
    /// # Errors
    /// The descriptor cannot be watched.
    pub(super) fn open(&mut self, io: &mut Io, opening: Opening) -> std::io::Result<()> {
        let Opening { id, io: transport, link, queue_bytes_max, first, is_local } = opening;
        let slot = match io.faces.by_id(id) {
            Some((slot, _)) => slot,
            None => io.add(id, FaceState::default()),
        };
        if let Some(face) = io.faces.get(slot) {
            (face.state.is_local, face.state.hold) = (is_local, Hold::Free);
            // A program of this machine that writes one packet wrongly keeps its face and routes.
            face.ends_on_malformed = !is_local;
            face.state.queue_bytes_max = queue_bytes_max;
        }
        io.open(slot, transport, link, queue_bytes_max)?;
        self.forget_paused(slot);
        io.faces.get(slot).into_iter().for_each(set_free);
        for frame in first {
            io.frame(self, slot, frame);
        }
        self.send_out(io);
        Ok(())
    }

    /// Frames of a face that came another way than over its transport.
    fn frames(&mut self, io: &mut Io, id: FaceId, frames: Vec<RxFrame>) {
        let Some((slot, _)) = io.faces.by_id(id) else { return };
        for frame in frames {
            io.frame(self, slot, frame);
        }
        self.send_out(io);
    }

    /// Ends the I/O of a face; its last counters.
    fn close(&mut self, io: &mut Io, id: FaceId) -> Option<OwnerCounters> {
        let (slot, _) = io.faces.by_id(id)?;
        self.push_leave(io, slot);
        self.forget_held(io.now, slot);
        self.forget_paused(slot);
        io.close(slot).map(|face| face.counters())
    }

    /// Carries out a change of the FIB; whether it took it.
    fn fib_change(&mut self, io: &mut Io, change: &FibChange) -> bool {
        match change {
            FibChange::Set { name, hop } => return self.fib_add(io, name, *hop),
            FibChange::Unset { name, face } => {
                self.fw.fib_remove(name.as_ref(), *face);
            }
            FibChange::Announcement { name, data } => {
                self.fw.announcement_set(name.as_ref(), data.clone());
            }
        }
        true
    }

    /// Adds a next hop; whether the FIB took it.
    pub(super) fn fib_add(&mut self, io: &mut Io, name: &Name, hop: NextHop) -> bool {
        let added = self.fw.fib_add(io.now, name.as_ref(), hop, &mut self.out).is_ok();
        self.send_out(io);
        added
    }

    /// Lookups that found nothing, without those of questions to management: these are never cached
    /// and say nothing about the store. Told apart here, off the packet path.
    fn cs_misses(&self) -> u64 {
        let management = self.fw.faces().iter().find(|face| face.id == FaceId::INTERNAL);
        let asked = management.map_or(0, |face| face.counters.out_interests);
        self.fw.counters().cs_misses.saturating_sub(asked)
    }

    fn state(&self, io: &Io) -> ShardState {
        ShardState {
            counters: Counters { cs_misses: self.cs_misses(), ..self.fw.counters().clone() },
            pit_entries: self.fw.pit_len() as u64,
            pit_bytes: self.fw.pit_octets() as u64,
            cs_entries: self.fw.cs().len() as u64,
            cs_bytes: self.fw.cs().octets() as u64,
            fib_entries: self.fw.fib().len() as u64,
            crossing_full: self.counters.crossing_full,
            management_full: self.counters.management_full,
            face_gone: self.counters.face_gone,
            push_off: self.push_dropped.off,
            verify: self.fw.watched(),
            spans: self
                .watch
                .as_ref()
                .and_then(|watch| watch.spans())
                .map(|spans| spans.counts())
                .unwrap_or_default(),
            disk: self.disk_counts(),
            busy_ns: io.load.busy_ns(),
        }
    }
}
