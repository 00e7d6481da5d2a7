//! Threads that are full toward each other: two engines whose clients send each other more than
//! fits on the way, over rings of one item.

use super::model::{self, Hub, ModelPoller, ModelWaker, pipe};
use crate::bell::Bell;
use crate::clock::Clock;
use crate::driver::{Driver, FaceEvent, Idle, Turn};
use crate::engine::Engine;
use crate::face::{Place, Slot};
use crate::io::Io;
use crate::mailbox::mailbox;
use crate::ring::{Receiver, Sender, ring};
use crate::sync::{Arc, thread};
use onym_link::{LinkConfig, Packet};
use onym_tables::{FaceId, Tick};

/// What goes round.
type Batch = Vec<Packet>;
/// When a thread takes what its peer sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Always, as shards do.
    Always,
    /// Only while it has room itself.
    WithRoom,
}

/// Passes what its face receives to its peer, and what came from there to its face. It receives
/// nothing while something waits for room.
struct Shard {
    to: Sender<Batch, ModelWaker>,
    from: Receiver<Batch, ModelWaker>,
    current: Batch,
    takes: Takes,
}

impl Shard {
    fn has_room(&self) -> bool {
        self.current.is_empty()
    }

    fn may_take(&self) -> bool {
        self.from.has_next() && (self.takes == Takes::Always || self.has_room())
    }

    fn flush(&mut self) {
        if !self.current.is_empty() {
            self.to.send(&mut self.current);
        }
    }
}

impl Driver<ModelPoller> for Shard {
    type Face = ();
    type Order = ();

    fn receive(
        &mut self,
        _: &mut Io<(), ModelPoller>,
        _: Slot,
        packet: Packet,
    ) -> Option<&'static str> {
        self.current.push(packet);
        self.flush();
        None
    }

    fn poll_timeout(&self) -> Tick {
        Tick::NEVER
    }

    fn handle_timeout(&mut self, _: &mut Io<(), ModelPoller>) {}

    fn dispatch(&mut self, _: &mut Io<(), ModelPoller>) {}

    fn order(&mut self, io: &mut Io<(), ModelPoller>, (): ()) {
        io.stop();
    }

    fn face_event(&mut self, _: &mut Io<(), ModelPoller>, _: Slot, _: FaceId, event: FaceEvent) {
        panic!("{event:?}");
    }

    fn turn(&mut self, _: &mut Io<(), ModelPoller>, _: Slot) -> Turn {
        Turn { receive: 2, handle: 2 }
    }

    fn begin_round(&mut self, io: &mut Io<(), ModelPoller>) {
        if !self.may_take() {
            return;
        }
        let Some(mut batch) = self.from.take() else { return };
        let Some(Place::Here(slot)) = io.faces.place(super::FACE) else { return };
        for packet in batch.drain(..) {
            let face = io.faces.get(slot).unwrap();
            face.queue.push(&packet.bytes, None).unwrap();
            io.queued(slot);
        }
        self.from.give_back(batch);
    }

    fn end_round(&mut self, _: &mut Io<(), ModelPoller>) {
        self.flush();
    }

    fn idle(&mut self, _: &mut Io<(), ModelPoller>) -> Idle {
        let is_due = !self.current.is_empty() && self.to.has_room();
        if is_due || self.may_take() { Idle::Work } else { Idle::Sleep }
    }

    fn may_receive(&mut self) -> bool {
        self.has_room()
    }
}

/// Both clients send before they receive.
fn both_are_full(takes: Takes) {
    const COUNT: u8 = 9;
    let hub = Hub::new();
    let bells = [(); 2].map(|()| Arc::new(Bell::of(ModelWaker::of(&hub))));
    let (there, arrives) = ring(1, &bells[0], &bells[1], Batch::new);
    let (back, returns) = ring(1, &bells[1], &bells[0], Batch::new);
    let ends = [(there, returns), (back, arrives)];
    let mut running = Vec::new();
    for (bell, (to, from)) in bells.iter().zip(ends) {
        let (port, mailbox) = mailbox(bell, 4);
        let shard = Shard { to, from, current: Batch::new(), takes };
        let mut engine = Engine::new(shard, mailbox, Clock::start(), super::POLICY).unwrap();
        let (face, peer) = pipe(&hub);
        let slot = engine.io.add(super::FACE, ());
        engine.io.open(slot, Box::new(face), LinkConfig::stream(), 1 << 20).unwrap();
        running.push((port, peer, thread::spawn(move || engine.run())));
    }
    let send = |peer: &model::Peer| (0..COUNT).for_each(|n| peer.send(&super::interest(n)));
    running.iter().for_each(|(_, peer, _)| send(peer));
    for (_, peer, _) in &running {
        let got: Vec<_> = (0..COUNT).map(|_| peer.receive()).collect();
        let sent: Vec<_> = (0..COUNT).map(|n| super::interest(n).to_vec()).collect();
        assert_eq!(got, sent, "nothing is lost or overtaken");
    }
    for (port, _, engine) in running {
        port.send(()).unwrap();
        engine.join().unwrap();
    }
}

#[test]
fn two_threads_that_are_full_toward_each_other_go_on() {
    shuttle::check_random(|| both_are_full(Takes::Always), 1000);
    shuttle::check_pct(|| both_are_full(Takes::Always), 500, 3);
}

#[test]
#[should_panic(expected = "deadlock")]
fn threads_that_take_only_while_they_have_room_stand_still() {
    shuttle::check_random(|| both_are_full(Takes::WithRoom), 1000);
}
