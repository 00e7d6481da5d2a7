//! What crosses between a shard and the push thread.
//!
//! Up, in one lane: requests of applications, and what push FIBs pass. Down, in two lanes: what the
//! thread tells a shard, which the shard reads before anything else and in every state; and
//! publications, which may have to wait for room at their receivers.

use crate::cross::{FromPeer, Load, ToPeer};
use onym_frame::Buf;
use onym_pubsub::{AppId, Delta, Event, Faces, Forwarder, Handout, Keep, Pass, Request};
use onym_tables::FaceId;
use onym_wire::push::app::Message;
use onym_wire::push::{Id, Label, RouteBuf, Status, Strategy};

/// What a shard has for the push thread.
#[derive(Debug)]
pub(crate) enum Up {
    /// An application registered at a face of this shard.
    Came { app: AppId, face: FaceId, text: String },
    /// It asks for something.
    Request { app: AppId, tag: u32, request: Request, word: Option<Box<str>> },
    /// It has the last publications of an item of its own retained.
    Retain { app: AppId, tag: u32, id: Id, keep: Keep },
    /// It has taken everything that it was told before its mark.
    Took(AppId),
    /// It left, or its face ended; behind everything else of it (P-57).
    Gone(AppId),
    /// It published what the push FIB passes.
    Publish(Box<Passed>),
    /// It published what the push FIB does not know: the reason is asked for.
    WhyNot { app: AppId, tag: u32, id: Id },
    /// An item says how far it is.
    Reached(Pass),
    /// A frame that the push FIB passed, as the thing with this number.
    Frame { face: FaceId, number: u64, bytes: Buf },
    /// A frame on its way to others, which the cache may keep.
    PassBy { face: FaceId, bytes: Buf },
    /// Frames that found no room, the last of them with this number.
    Dropped(u64),
    /// The shard has delivered or passed everything that the application published before its
    /// `retain` changed.
    Settled(AppId),
}

/// A publication that a push FIB passed.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) app: AppId,
    pub(crate) about: Publishing,
    pub(crate) payload: Buf,
    pub(crate) pass: Pass,
    /// Applications of this node that got it already.
    pub(crate) local: usize,
}

/// What a publication needs beside its payload.
#[derive(Debug, Clone)]
pub(crate) struct Publishing {
    pub(crate) tag: u32,
    pub(crate) id: Id,
    pub(crate) strategy: Strategy,
    pub(crate) about: Option<Id>,
    pub(crate) route: Option<RouteBuf>,
    pub(crate) node: Option<Label>,
    pub(crate) lifetime_ms: u64,
}

impl Publishing {
    pub(crate) fn of(message: &Message<'_>) -> Self {
        Self {
            tag: message.tag,
            id: message.id(),
            strategy: message.strategy,
            about: message.about(),
            route: message.route(),
            node: message.node,
            lifetime_ms: message.lifetime_ms,
        }
    }
}

/// What the push thread has for a shard.
#[derive(Debug)]
pub(crate) enum Down {
    /// Its push FIB changes.
    Delta(Delta),
    /// An application hears something.
    Tell(AppId, Event),
    /// A control message for faces here.
    Frame(Faces, Buf),
    /// The forwarder is another one now.
    Forwarder(Box<Forwarder>),
    /// A frame of a publication that this shard passed, for faces anywhere.
    Leaves(Faces, Buf),
    /// A publication that this shard hands out; who published it is told then, where it asked.
    Handout(Box<Handout>, Option<Answer>),
    /// What became of a publication.
    Answer(Answer),
    /// So much of what the shard passed is done.
    Done(u64),
    /// All shards have settled what the application published before its `retain` changed.
    Release(AppId),
}

/// What became of a publication.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) app: AppId,
    pub(crate) tag: u32,
    pub(crate) id: Id,
    pub(crate) status: Status,
    /// Applications of this node that got it.
    pub(crate) local: usize,
    /// Frames for the network.
    pub(crate) frames: usize,
}

/// Things that cross at once, in order.
#[derive(Debug)]
pub(crate) struct Things<T> {
    things: Vec<T>,
    octets: usize,
}

impl<T> Default for Things<T> {
    fn default() -> Self {
        Self { things: Vec::new(), octets: 0 }
    }
}

impl<T> Load for Things<T> {
    fn load(&self) -> (usize, usize) {
        (self.things.len(), self.octets)
    }

    fn clear(&mut self) {
        self.things.clear();
        self.octets = 0;
    }
}

impl<T> Things<T> {
    /// Adds a thing of so many octets.
    pub(crate) fn push(&mut self, thing: T, octets: usize) {
        self.things.push(thing);
        self.octets += octets;
    }

    /// The thing that was added last.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.things.last_mut()
    }

    /// Takes them, in order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.octets = 0;
        self.things.drain(..)
    }
}

/// A shard's ends of its lanes to and from the push thread.
#[derive(Debug)]
pub(crate) struct ShardLanes {
    pub(crate) up: ToPeer<Things<Up>>,
    pub(crate) told: FromPeer<Things<Down>>,
    pub(crate) data: FromPeer<Things<Down>>,
}

/// The push thread's ends of those to and from one shard.
#[derive(Debug)]
pub(crate) struct PushLanes {
    pub(crate) up: FromPeer<Things<Up>>,
    pub(crate) told: ToPeer<Things<Down>>,
    pub(crate) data: ToPeer<Things<Down>>,
}

/// Both ends of the lanes between a shard and the push thread.
pub(crate) fn lanes(
    shard: &std::sync::Arc<onym_engine::Bell>,
    push: &std::sync::Arc<onym_engine::Bell>,
) -> (ShardLanes, PushLanes) {
    let (up, up_end) = crate::cross::direction(shard, push);
    let (told_end, told) = crate::cross::direction(push, shard);
    let (data_end, data) = crate::cross::direction(push, shard);
    (ShardLanes { up, told, data }, PushLanes { up: up_end, told: told_end, data: data_end })
}
