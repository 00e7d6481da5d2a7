//! Orders of other threads to a shard: a typed protocol, executed between two rounds.

use super::{DiskAnswer, PushState, WatchOrder};
use crate::counts::ShardState;
use onym_engine::mailbox::PATIENCE;
use onym_engine::{Answer, OwnerCounters, Port, Reply};
use onym_face::Face;
use onym_forward::stage::Held;
use onym_forward::{ChoiceError, Explanation, FaceCounters, FaceInfo, UnsolicitedPolicy};
use onym_frame::{Buf, RxFrame};
use onym_link::{LinkConfig, Packet};
use onym_tables::FaceId;
use onym_tables::cs::CsConfig;
use onym_tables::fib::NextHop;
use onym_wire::name::Name;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A face whose I/O a shard takes over.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) id: FaceId,
    pub(crate) io: Box<dyn Face>,
    pub(crate) link: LinkConfig,
    pub(crate) queue_bytes_max: usize,
    /// Frames that came before the face had a descriptor of its own.
    pub(crate) first: Vec<RxFrame>,
    /// Whether an application of this machine is at its other end.
    pub(crate) is_local: bool,
}

/// Counts a frame while it is under way to a shard.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    /// A place for one more frame, if there is any.
    fn reserve(frames: &Arc<AtomicUsize>) -> Option<Self> {
        let before = frames.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(frames));
        (before < FRAMES_MAX).then_some(place)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An order about a face.
#[derive(Debug)]
pub(crate) enum FaceOrder {
    /// A face takes part in forwarding; `owner` does its I/O.
    Add { id: FaceId, info: FaceInfo, owner: usize, reply: Reply<()> },
    /// The shard takes over the I/O of a face, or a face that was down has a new transport.
    Open { opening: Box<Opening>, reply: Reply<std::io::Result<()>> },
    /// A face and its link service work in another way.
    Change { id: FaceId, info: FaceInfo, link: LinkConfig, reply: Reply<()> },
    /// The I/O of a face ends; its last counters.
    Close { id: FaceId, reply: Reply<Option<OwnerCounters>> },
    /// A face takes no part in forwarding any more.
    Forget { id: FaceId, reply: Reply<()> },
    /// A frame of a face that came another way than by its transport.
    Frame { id: FaceId, frame: RxFrame, under_way: UnderWay },
    /// What was counted of the faces whose I/O the shard does.
    OwnerCounters { reply: Reply<Vec<(FaceId, OwnerCounters)>> },
    /// What was counted of packets, by face.
    PacketCounters { reply: Reply<Vec<(FaceId, FaceCounters)>> },
}

/// A prefix with its next hops and their costs.
pub(crate) type Route = (Name, Vec<NextHop>);

/// A change of the FIB.
#[derive(Debug, Clone)]
pub(crate) enum FibChange {
    /// A next hop, or another cost of it.
    Set { name: Name, hop: NextHop },
    /// A next hop goes.
    Unset { name: Name, face: FaceId },
    /// The prefix announcement of a name; none: it has none any more.
    Announcement { name: Name, data: Option<Buf> },
}

/// An order about a table.
#[derive(Debug)]
pub(crate) enum TableOrder {
    /// Changes of the FIB, in order; the numbers of those that it refused.
    FibChange { changes: Arc<[FibChange]>, reply: Reply<Vec<usize>> },
    /// The FIB, in no order.
    FibList { reply: Reply<Vec<Route>> },
    /// The strategy of a prefix; its full name.
    StrategySet { name: Name, strategy: Name, reply: Reply<Result<Name, ChoiceError>> },
    /// A prefix has no strategy of its own any more.
    StrategyUnset { name: Name, reply: Reply<()> },
    /// The strategies, in no order.
    StrategyList { reply: Reply<Vec<(Name, Name)>> },
    /// How the content store works; whether it has more to evict.
    CsConfigure { config: CsConfig, unsolicited: UnsolicitedPolicy, reply: Reply<bool> },
    /// Data that were to be verified, and whether they are good.
    Verified(Vec<(Box<Held>, bool)>),
    /// Erases packets under a name; how many, and whether more remain.
    CsErase { name: Name, limit: usize, reply: Reply<(usize, bool)> },
}

/// An order to a shard. Those with a reply are answered when they are done.
#[derive(Debug)]
pub(crate) enum Order {
    /// About a face.
    Face(FaceOrder),
    /// About a table.
    Table(TableOrder),
    /// Packets of management.
    Inject(Vec<Packet>),
    /// The regions of the network.
    Regions { regions: Vec<Name>, reply: Reply<()> },
    /// How Interests are forwarded.
    Forwarding { default_hop_limit: u8, is_fair: bool, is_traced: bool, reply: Reply<()> },
    /// What would be done with an Interest from the face `ingress`.
    Explain { name: Name, can_be_prefix: bool, ingress: FaceId, reply: Reply<Option<Explanation>> },
    /// The shard of exact Interests for a name.
    Home { name: Name, reply: Reply<usize> },
    /// What the shard counted.
    State { reply: Reply<ShardState> },
    /// What the shard counted of the push half.
    PushState { reply: Reply<PushState> },
    /// About what viewers are shown.
    Watch(WatchOrder),
    /// What the disk has for Interests that wait for it.
    Disk(Vec<DiskAnswer>),
    /// Whether every send queue is empty and nothing crosses.
    IsDrained { reply: Reply<bool> },
    /// The shard ends after this round.
    Stop,
}

impl From<WatchOrder> for Order {
    fn from(order: WatchOrder) -> Self {
        Self::Watch(order)
    }
}

impl From<FaceOrder> for Order {
    fn from(order: FaceOrder) -> Self {
        Self::Face(order)
    }
}

impl From<TableOrder> for Order {
    fn from(order: TableOrder) -> Self {
        Self::Table(order)
    }
}

/// A shard as other threads see it.
#[derive(Debug, Clone)]
pub(crate) struct ShardPort {
    pub(crate) port: Port<Order>,
    /// Frames under way to the shard by [`ShardPort::frame`].
    frames: Arc<AtomicUsize>,
}

/// Most frames under way to a shard that did not come by the face's own transport.
const FRAMES_MAX: usize = 1024;

impl ShardPort {
    pub(crate) fn new(port: Port<Order>) -> Self {
        Self { port, frames: Arc::default() }
    }

    /// Has an order carried out, without waiting for it.
    pub(crate) fn tell(&self, order: Order) {
        // A shard that ended takes no orders; nothing depends on it any more.
        let _ = self.port.send(order);
    }

    /// Hands over a frame of `id` that came another way than by its transport; whether it was
    /// taken. It is refused when the shard does not keep up.
    pub(crate) fn frame(&self, id: FaceId, frame: RxFrame) -> bool {
        let Some(under_way) = UnderWay::reserve(&self.frames) else { return false };
        self.port.try_send(FaceOrder::Frame { id, frame, under_way }.into()).is_ok()
    }

    fn begin<R, O: Into<Order>>(&self, order: impl FnOnce(Reply<R>) -> O) -> Option<Answer<R>> {
        self.port.ask(|reply| order(reply).into()).ok()
    }

    /// Has an order carried out and returns the answer; `None` when the shard ended.
    pub(crate) fn ask<R, O: Into<Order>>(&self, order: impl FnOnce(Reply<R>) -> O) -> Option<R> {
        self.begin(order)?.wait_for(PATIENCE)
    }
}

/// Has an order carried out by all shards, at the same time, and returns the answers in order.
/// Shards that ended are missing.
pub(crate) fn ask_all<R, O: Into<Order>>(
    ports: &[ShardPort],
    order: impl Fn(Reply<R>) -> O,
) -> Vec<R> {
    let asked: Vec<_> = ports.iter().map(|port| port.begin(&order)).collect();
    asked.into_iter().flatten().filter_map(|answer| answer.wait_for(PATIENCE)).collect()
}
