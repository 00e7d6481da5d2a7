//! The engine over a model of epoll, under the schedules of shuttle.
//!
//! A wait with nothing due has no time limit here, so a lost wake-up is a deadlock, which shuttle
//! reports with the schedule that leads to it.

#![allow(clippy::unwrap_used)]

/// What the sources of the engine find as `crate::sync` here.
pub mod sync {
    pub use crate::model::ModelPoller as Epoll;
    pub use crate::spsc;
    pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, atomic, mpsc};
    pub use shuttle::thread;
    pub use std::sync::PoisonError;
}

#[path = "../src/attempt.rs"]
pub mod attempt;
#[path = "../src/bell.rs"]
pub mod bell;
#[path = "../src/clock.rs"]
pub mod clock;
#[path = "../src/driver.rs"]
pub mod driver;
#[path = "../src/engine.rs"]
pub mod engine;
#[path = "../src/event.rs"]
pub mod event;
#[path = "../src/face.rs"]
pub mod face;
#[path = "../src/io.rs"]
pub mod io;
#[path = "../src/jobs.rs"]
pub mod jobs;
#[path = "../src/mailbox.rs"]
pub mod mailbox;
#[path = "../src/policy.rs"]
pub mod policy;
#[path = "../src/poller.rs"]
pub mod poller;
#[path = "../src/receive.rs"]
pub mod receive;
#[path = "../src/reply.rs"]
pub mod reply;
#[path = "../src/ring.rs"]
pub mod ring;

pub use driver::Driver;
pub use face::LocalFace;

mod full;
pub mod model;
pub mod spsc;

use bell::Bell;
use driver::{FaceEvent, Idle, Policy, Turn};
use engine::Engine;
use face::{Place, Slot};
use io::Io;
use jobs::Jobs;
use mailbox::{Port, Refused, mailbox};
use model::{Hub, ModelPoller, ModelWaker, pipe};
use onym_link::{LinkConfig, Packet};
use onym_tables::{FaceId, Tick};
use reply::Reply;
use std::collections::VecDeque;
use sync::{Arc, Mutex, thread};

const POLICY: Policy = Policy {
    round_frames: 4,
    flush_frames: 2,
    flush_octets: usize::MAX,
    chunks: 1,
    is_rung_to_receive: true,
};
const FACE: FaceId = FaceId(300);

#[derive(Debug)]
enum Order {
    /// How many orders came before this one.
    Count(Reply<usize>),
    Stop,
}

type Ring = Arc<Mutex<VecDeque<Packet>>>;

/// Passes what its face receives to a ring, whose reader sends it by its own face; verifies first
/// when it has threads for that.
struct Passer {
    to: Option<(Ring, Arc<Bell<ModelWaker>>)>,
    from: Ring,
    jobs: Jobs<Packet>,
    finished: Vec<Packet>,
    orders: usize,
    /// It rings no bell: what it passes may be seen by nobody.
    is_silent: bool,
}

impl Passer {
    fn pass(&self, packet: Packet) {
        let Some((ring, bell)) = &self.to else { return };
        ring.lock().unwrap().push_back(packet);
        if !self.is_silent {
            bell.ring();
        }
    }
}

impl Driver<ModelPoller> for Passer {
    type Face = ();
    type Order = Order;

    fn receive(
        &mut self,
        _: &mut Io<(), ModelPoller>,
        _: Slot,
        packet: Packet,
    ) -> Option<&'static str> {
        self.jobs.submit(&mut vec![packet]);
        None
    }

    fn poll_timeout(&self) -> Tick {
        Tick::NEVER
    }

    fn handle_timeout(&mut self, _: &mut Io<(), ModelPoller>) {}

    fn dispatch(&mut self, _: &mut Io<(), ModelPoller>) {}

    fn order(&mut self, io: &mut Io<(), ModelPoller>, order: Order) {
        match order {
            Order::Count(reply) => reply.send(self.orders),
            Order::Stop => io.stop(),
        }
        self.orders += 1;
    }

    fn face_event(&mut self, _: &mut Io<(), ModelPoller>, _: Slot, _: FaceId, event: FaceEvent) {
        panic!("{event:?}");
    }

    fn turn(&mut self, _: &mut Io<(), ModelPoller>, _: Slot) -> Turn {
        Turn { receive: 2, handle: 2 }
    }

    fn begin_round(&mut self, io: &mut Io<(), ModelPoller>) {
        let Some(Place::Here(slot)) = io.faces.place(FACE) else { return };
        let packets = std::mem::take(&mut *self.from.lock().unwrap());
        for packet in packets {
            let face = io.faces.get(slot).unwrap();
            face.queue.push(&packet.bytes, None).unwrap();
            io.queued(slot);
        }
    }

    fn after_turns(&mut self, _: &mut Io<(), ModelPoller>) {
        let mut finished = std::mem::take(&mut self.finished);
        self.jobs.finished(&mut finished);
        finished.drain(..).for_each(|packet| self.pass(packet));
        self.finished = finished;
    }

    fn idle(&mut self, _: &mut Io<(), ModelPoller>) -> Idle {
        let has_work = self.jobs.has_work() || !self.from.lock().unwrap().is_empty();
        if has_work { Idle::Work } else { Idle::Sleep }
    }

    fn may_receive(&mut self) -> bool {
        self.jobs.under_way() < 2
    }
}

struct Node {
    port: Port<Order, ModelWaker>,
    engine: Engine<Passer, ModelPoller>,
    peer: model::Peer,
}

/// One engine with one face, whose other end is `peer`.
fn node(hub: &Arc<Hub>, bell: &Arc<Bell<ModelWaker>>, passer: Passer, orders_max: usize) -> Node {
    let (port, mailbox) = mailbox(bell, orders_max);
    let mut engine = Engine::new(passer, mailbox, clock::Clock::start(), POLICY).unwrap();
    let (face, peer) = pipe(hub);
    let slot = engine.io.add(FACE, ());
    engine.io.open(slot, Box::new(face), LinkConfig::stream(), 1 << 20).unwrap();
    Node { port, engine, peer }
}

fn passer(
    bell: &Arc<Bell<ModelWaker>>,
    threads: usize,
    to: Option<(Ring, Arc<Bell<ModelWaker>>)>,
    from: Ring,
) -> Passer {
    let jobs = Jobs::start(threads, bell, |_: &mut Packet| thread::yield_now()).unwrap();
    Passer { to, from, jobs, finished: Vec::new(), orders: 0, is_silent: false }
}

/// An Interest, as far as a link service looks.
fn interest(number: u8) -> [u8; 5] {
    [5, 3, 8, 1, number]
}

/// What a client sends to one engine comes out at the other, in order where one thread verifies.
fn passes(threads: usize, is_silent: bool) {
    const COUNT: u8 = 5;
    let hub = Hub::new();
    let bells = [(); 2].map(|()| Arc::new(Bell::of(ModelWaker::of(&hub))));
    let ring = Ring::default();
    let to = Some((Arc::clone(&ring), Arc::clone(&bells[1])));
    let mut first = passer(&bells[0], threads, to, Ring::default());
    first.is_silent = is_silent;
    let first = node(&hub, &bells[0], first, 4);
    let second = node(&hub, &bells[1], passer(&bells[1], 1, None, ring), 4);
    let (ports, engines) = ([first.port, second.port], [first.engine, second.engine]);
    let running = engines.map(|engine| thread::spawn(move || engine.run()));
    let sender = thread::spawn(move || {
        for number in 0..COUNT {
            first.peer.send(&interest(number));
        }
    });
    let mut got: Vec<_> = (0..COUNT).map(|_| second.peer.receive()).collect();
    let sent: Vec<_> = (0..COUNT).map(|number| interest(number).to_vec()).collect();
    if threads > 1 {
        got.sort();
    }
    assert_eq!(got, sent);
    sender.join().unwrap();
    for port in ports {
        port.send(Order::Stop).unwrap();
    }
    for engine in running {
        engine.join().unwrap();
    }
}

#[test]
fn what_crosses_between_two_engines_arrives_in_order() {
    shuttle::check_random(|| passes(1, false), 1000);
    shuttle::check_pct(|| passes(1, false), 500, 3);
}

#[test]
fn what_threads_work_at_comes_back() {
    shuttle::check_random(|| passes(3, false), 1000);
    shuttle::check_pct(|| passes(3, false), 500, 3);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_bell_something_stays() {
    shuttle::check_random(|| passes(1, true), 1000);
}

/// Two threads give more orders than the mailbox holds, and one ends the engine meanwhile.
fn orders() {
    let hub = Hub::new();
    let bell = Arc::new(Bell::of(ModelWaker::of(&hub)));
    let one = node(&hub, &bell, passer(&bell, 1, None, Ring::default()), 1);
    let engine = thread::spawn(move || one.engine.run());
    let askers = [(); 2].map(|()| {
        let port = one.port.clone();
        thread::spawn(move || {
            let mut last = None;
            for _ in 0..3 {
                // An order that was refused, or dropped with the engine, has no answer.
                let Ok(answer) = port.ask(Order::Count) else { break };
                let Some(count) = answer.wait() else { break };
                assert!(Some(count) > last, "orders of one thread are carried out in order");
                last = Some(count);
            }
        })
    });
    one.port.send(Order::Stop).unwrap();
    for asker in askers {
        asker.join().unwrap();
    }
    engine.join().unwrap();
    assert!(matches!(one.port.send(Order::Stop), Err(Refused::Closed(Order::Stop))));
}

#[test]
fn orders_are_carried_out_in_order_or_their_sender_hears_that_the_thread_ended() {
    shuttle::check_random(orders, 1000);
    shuttle::check_pct(orders, 500, 3);
}

#[test]
fn a_full_mailbox_gives_an_order_back() {
    shuttle::check_random(
        || {
            let hub = Hub::new();
            let bell = Arc::new(Bell::of(ModelWaker::of(&hub)));
            let (port, mut mailbox) = mailbox::<u8, _>(&bell, 2);
            assert_eq!([1, 2].map(|n| port.try_send(n)), [Ok(()); 2]);
            assert_eq!(port.try_send(3), Err(Refused::Full(3)));
            mailbox.take();
            assert_eq!(port.try_send(4), Ok(()));
            assert_eq!((mailbox.pop(), mailbox.pop(), mailbox.pop()), (Some(1), Some(2), None));
            drop(mailbox);
            assert_eq!(port.try_send(5), Err(Refused::Closed(5)));
        },
        1,
    );
}
