//! One shard: an engine that drives a forwarder with its tables, and the push half's part of it.
//!
//! The engine (`onym-engine`) does the I/O of the shard's faces, in rounds: orders, batches of other
//! threads, one turn of each ready face, timers, flush, batches out. Turns are as long as the face's
//! use of the PIT allows, so that a face that never stops sending gets its share and no more.

mod answer;
mod app;
mod apps;
mod choose;
mod credit;
mod disk;
mod drive;
mod fan;
mod hold;
mod local;
mod obey;
mod order;
mod packet;
mod parcel;
mod publish;
mod push;
mod span;
#[cfg(test)]
mod tests;
mod told;
mod wanted;
mod watch;
mod watch_order;

pub(crate) use app::AppSide;
pub(crate) use apps::About;
pub(crate) use choose::Chooser;
pub use disk::DiskCounts;
pub(crate) use disk::{DiskAnswer, DiskJob, DiskSide, KEEPING_MAX, WAITING_MAX};
pub(crate) use hold::{HOLD_AT, Hold};
pub(crate) use order::{
    FaceOrder, FibChange, Opening, Order, Route, ShardPort, TableOrder, ask_all,
};
pub use push::PushDropped;
pub(crate) use push::{Peer, PushParts, PushSide, PushState};
pub(crate) use wanted::Wanted;
pub(crate) use watch_order::{WatchOrder, Watched};

use crate::cross::{FromPeer, ToPeer};
use onym_engine::{Bell, Engine, Policy};
use onym_forward::stage::Held;
use onym_forward::{Event, Forwarder};
use onym_frame::Buf;
use onym_link::Outbox;
use onym_tables::FaceId;
use onym_watch::{SpanSettings, Watch};
use rtrb::Producer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Numbers of the engine of a shard.
pub(crate) const POLICY: Policy = Policy {
    round_frames: 512,
    flush_frames: 128,
    flush_octets: usize::MAX,
    chunks: 1024,
    // By a peer that gives a batch back.
    is_rung_to_receive: true,
};
/// Orders that wait at most; half of them may be frames that did not come by their face's transport.
pub(crate) const ORDERS_MAX: usize = 2048;

/// A shard with its thread's I/O.
pub(crate) type ShardEngine = Engine<Shard>;
/// The I/O of a shard.
pub(crate) type Io = onym_engine::Io<FaceState>;
/// A face of a shard.
pub(crate) type LocalFace = onym_engine::LocalFace<FaceState>;

/// What a shard tells the control thread.
#[derive(Debug)]
pub(crate) enum Report {
    /// A packet for the management face.
    Management {
        /// The Interest or Data.
        bytes: Buf,
        /// The face it came from, when known.
        incoming: Option<FaceId>,
    },
    /// A packet of a face, forwarded by another shard, was malformed.
    Malformed {
        /// The face.
        id: FaceId,
        /// The verdict.
        word: &'static str,
    },
    /// The forwarder has something for the control plane.
    Forwarder(Event),
    /// A Data is to be verified before it is kept; the answer is an order to the shard.
    Verify(Box<Held>),
    /// The transport of a face ended.
    FaceFailed {
        /// The face.
        id: FaceId,
        /// Why, in words.
        reason: String,
        /// Whether it can never be used again.
        fatal: bool,
    },
    /// The transport of a face has become one of another kind.
    FaceChanged {
        /// The face.
        id: FaceId,
        /// What carries its frames now.
        transport: onym_face::Transport,
        /// Its URI for our end.
        local: String,
        /// And for the other.
        remote: String,
    },
    /// A connection that was being made is there.
    FaceConnected {
        /// The face.
        id: FaceId,
    },
}

/// Counters of a shard beside those of its forwarder.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ShardCounters {
    /// Packets dropped because another shard did not keep up.
    pub(crate) crossing_full: u64,
    /// Packets for management, and news of lesser weight, dropped because the control thread did
    /// not keep up.
    pub(crate) management_full: u64,
    /// Packets whose face was gone.
    pub(crate) face_gone: u64,
}

/// What a shard keeps with each of its faces.
#[derive(Debug, Default)]
pub(crate) struct FaceState {
    /// Whether an application of this machine is at its other end.
    pub(crate) is_local: bool,
    /// It is an application of the push half.
    pub(crate) app: Option<Box<AppSide>>,
    /// The lanes that its last message or frames of the push half took, a bit for each.
    pub(crate) targets: u64,
    /// Whether the push half waits for it.
    pub(crate) hold: Hold,
    /// Whether nothing is read from it until it has read.
    pub(crate) pull: Hold,
    /// The bound of its queue, in octets.
    pub(crate) queue_bytes_max: usize,
}

/// Where a packet that was received goes first: one look tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// Into the forwarder.
    Plain,
    /// Into the forwarder; perhaps somebody looks at it afterwards.
    Watched,
    /// The same of a packet that was drawn, at which somebody looks before, too.
    Drawn,
    /// To the disk, which may have the answer.
    Disk,
    /// To the shard that it belongs to.
    Shards,
}

/// What the engine of a shard drives.
pub(crate) struct Shard {
    pub(crate) index: usize,
    pub(crate) fw: Forwarder,
    pub(crate) counters: ShardCounters,
    chooser: Chooser,
    /// By shard; none for this one.
    to: Vec<Option<ToPeer>>,
    from: Vec<Option<FromPeer>>,
    /// What Interests with CanBePrefix wait for in shard 0.
    wanted: Arc<Wanted>,
    reports: Producer<Report>,
    /// Reports that found the ring full and must not be lost: that a face ended or changed,
    /// once per face.
    late: VecDeque<Report>,
    /// Whether the control thread is to be woken at the end of the round.
    reported: bool,
    control: Arc<Bell>,
    out: Outbox,
    /// Applications that are waited for until they read.
    paused: local::Paused,
    /// The push half, when it is enabled.
    push: Option<PushSide>,
    pub(crate) push_dropped: PushDropped,
    /// What viewers are shown, and Interests recorded on their way; none without either.
    watch: Option<Box<Watch>>,
    /// Whether viewers may want packets that are sent, or are of the push half.
    shows_packets: bool,
    /// Whether what is in the outbox was made for packets of this turn of a face.
    is_of_turn: bool,
    /// Packets that were left until the next one that is drawn, when the watch was told last.
    stretch: u64,
    /// Interests that had given way when viewers were shown copies last.
    displaced: u64,
    /// Where packets go first.
    door: Door,
    /// The second level of the content store, where there is one.
    disk: Option<Box<DiskSide>>,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("index", &self.index).finish_non_exhaustive()
    }
}

/// Everything a shard is given at start.
pub(crate) struct Parts {
    pub(crate) index: usize,
    pub(crate) fw: Forwarder,
    pub(crate) chooser: Chooser,
    pub(crate) to: Vec<Option<ToPeer>>,
    pub(crate) from: Vec<Option<FromPeer>>,
    pub(crate) wanted: Arc<Wanted>,
    pub(crate) reports: Producer<Report>,
    pub(crate) control: Arc<Bell>,
    pub(crate) push: Option<PushSide>,
    /// How long an application that reads nothing is not read from; none: not at all.
    pub(crate) hold: Duration,
    /// Which Interests are recorded on their way; none: no one is.
    pub(crate) spans: Option<SpanSettings>,
}

impl Shard {
    /// What an engine is to drive.
    pub(crate) fn new(parts: Parts) -> Self {
        let mut shard = Self {
            index: parts.index,
            fw: parts.fw,
            counters: ShardCounters::default(),
            chooser: parts.chooser,
            to: parts.to,
            from: parts.from,
            wanted: parts.wanted,
            reports: parts.reports,
            late: VecDeque::new(),
            reported: false,
            control: parts.control,
            out: Outbox::default(),
            paused: local::Paused::new(parts.hold),
            push: parts.push,
            push_dropped: PushDropped::default(),
            watch: parts.spans.map(|settings| Box::new(Watch::recording(settings))),
            shows_packets: false,
            is_of_turn: false,
            displaced: 0,
            stretch: u64::MAX,
            door: Door::Shards,
            disk: None,
        };
        if parts.spans.is_some() {
            shard.fw.take_contexts();
        }
        shard.settle_draw();
        shard
    }

    /// Who is asked about each packet changed.
    fn settle_door(&mut self) {
        self.door = match (&self.watch, &self.disk) {
            _ if !self.is_alone() => Door::Shards,
            (_, Some(_)) => Door::Disk,
            (Some(_), None) if self.is_drawn() => Door::Drawn,
            (Some(_), None) => Door::Watched,
            (None, None) => Door::Plain,
        };
    }

    /// Whether there is only this shard.
    fn is_alone(&self) -> bool {
        self.chooser.shards == 1
    }

    /// Tells the control thread. Reports that it must not miss wait for room.
    fn report(&mut self, report: Report) {
        self.reported = true;
        match self.reports.push(report) {
            Ok(()) => {}
            Err(rtrb::PushError::Full(
                report @ (Report::FaceFailed { fatal: true, .. } | Report::FaceChanged { .. }),
            )) => {
                self.late.push_back(report);
            }
            Err(rtrb::PushError::Full(_)) => self.counters.management_full += 1,
        }
    }

    fn report_late(&mut self) {
        while let Some(report) = self.late.pop_front() {
            if let Err(rtrb::PushError::Full(report)) = self.reports.push(report) {
                self.late.push_front(report);
                self.reported = true;
                return;
            }
        }
    }

    /// Whether every send queue is empty and nothing crosses.
    pub(crate) fn is_drained(&self, io: &Io) -> bool {
        let sent = self.to.iter().flatten().all(ToPeer::is_empty);
        let pushed = self.push.as_ref().is_none_or(PushSide::is_drained);
        let read = self.disk.as_ref().is_none_or(|disk| disk.is_idle());
        io.is_drained() && sent && pushed && read && self.from.iter().flatten().all(|p| !p.waits())
    }
}
