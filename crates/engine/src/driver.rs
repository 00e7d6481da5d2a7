//! The trait of what an engine drives, with the decisions of an instance.

use crate::attempt::AttemptId;
pub use crate::event::FaceEvent;
use crate::face::Slot;
use crate::io::{Io, ListenerId};
pub use crate::policy::Policy;
use crate::poller::Poller;
use crate::sync::Epoll;
use onym_face::{Face, Incoming};
use onym_frame::{Buf, RxFrame};
use onym_link::Packet;
use onym_tables::{FaceId, Tick};
use std::time::Duration;

/// Frames that a driver looks at before it takes them.
pub const BATCH: usize = 32;

/// The turn of a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Frames that the transport is asked for.
    pub receive: usize,
    /// Frames that are handled; what one system call brought beyond waits for the next turn.
    pub handle: usize,
}

/// What an engine with nothing to do itself does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Another round at once.
    Work,
    /// Sleep, but not longer: something waits for room of which nobody tells.
    Retry(Duration),
    /// Sleep until a timer is due or somebody wakes the thread.
    Sleep,
}

/// A state machine over packets, without descriptors and clocks of its own; `io.now` is the moment
/// of the round.
pub trait Driver<P: Poller = Epoll>: Sized {
    /// What it keeps with each face.
    type Face: std::fmt::Debug;
    /// What other threads ask of it.
    type Order;

    /// Takes a packet of a face; a reason to end the face if it is a stream.
    fn receive(
        &mut self,
        io: &mut Io<Self::Face, P>,
        slot: Slot,
        packet: Packet,
    ) -> Option<&'static str>;

    /// When [`Driver::handle_timeout`] wants to be called; [`Tick::NEVER`] when it does not.
    fn poll_timeout(&self) -> Tick;

    /// Does what is due.
    fn handle_timeout(&mut self, io: &mut Io<Self::Face, P>);

    /// Puts what was produced into the send queues of faces. Called after each burst.
    fn dispatch(&mut self, io: &mut Io<Self::Face, P>);

    /// Carries out an order.
    fn order(&mut self, io: &mut Io<Self::Face, P>, order: Self::Order);

    /// Hears what happened to a face, whose number is `id`.
    fn face_event(&mut self, io: &mut Io<Self::Face, P>, slot: Slot, id: FaceId, event: FaceEvent);

    /// The turn of a face that has frames.
    fn turn(&mut self, io: &mut Io<Self::Face, P>, slot: Slot) -> Turn;

    /// The first step of a round, after the orders.
    fn begin_round(&mut self, io: &mut Io<Self::Face, P>) {
        let _ = io;
    }

    /// Called when each ready face had its turn.
    fn after_turns(&mut self, io: &mut Io<Self::Face, P>) {
        let _ = io;
    }

    /// The last step of a round.
    fn end_round(&mut self, io: &mut Io<Self::Face, P>) {
        let _ = io;
    }

    /// Whether there is something to do. Called when sleep was announced: who puts something into a
    /// queue of the driver later wakes the thread.
    fn idle(&mut self, io: &mut Io<Self::Face, P>) -> Idle {
        let _ = io;
        Idle::Sleep
    }

    /// Whether faces may have turns. While they may not, what peers send waits in their sockets.
    fn may_receive(&mut self) -> bool {
        true
    }

    /// Takes frames at the front of `frames` together, before the link service; how many.
    fn receive_row(&mut self, io: &mut Io<Self::Face, P>, slot: Slot, frames: &[RxFrame]) -> usize {
        let _ = (io, slot, frames);
        0
    }

    /// Looks at frames of a face that are taken next, at most [`BATCH`].
    fn foresee(&mut self, frames: &[RxFrame]) {
        let _ = frames;
    }

    /// How many of `frames` may be taken now; the others wait, in their order.
    fn admit(&mut self, io: &mut Io<Self::Face, P>, slot: Slot, frames: &[RxFrame]) -> usize {
        let _ = (io, slot);
        frames.len()
    }

    /// Some frames were not admitted: whether the face is put aside until [`Io::take_up`], rather
    /// than having another turn in the next round.
    fn held(&mut self, io: &mut Io<Self::Face, P>, slot: Slot) -> bool {
        let _ = (io, slot);
        false
    }

    /// The link service of a face gave up an Interest that the neighbour did not acknowledge.
    fn given_up(&mut self, io: &mut Io<Self::Face, P>, id: FaceId, interest: &Buf) {
        let _ = (io, id, interest);
    }

    /// Takes what arrived at a listener.
    fn accepted(&mut self, io: &mut Io<Self::Face, P>, at: ListenerId, incoming: Incoming) {
        let _ = (io, at, incoming);
    }

    /// Hears how an attempt of [`Io::connect`] ended: with the transport, or the reason why there is
    /// none.
    fn connected(
        &mut self,
        io: &mut Io<Self::Face, P>,
        id: AttemptId,
        result: Result<Box<dyn Face>, String>,
    ) {
        let _ = (io, id, result);
    }
}
