//! An application that asks faster than it reads.

use super::*;
use crate::shard::LocalFace;
use onym_crypto::Signer;
use onym_face::unix;
use onym_frame::RxFrame;
use onym_link::CongestionConfig;
use onym_wire::data::DataBuilder;
use onym_wire::lp::LpPacket;
use onym_wire::{Data, Interest, PACKET_LEN_MAX};
use std::os::unix::net::UnixStream;

/// Long enough for any round of a test.
const LONG: Duration = Duration::from_secs(600);
const QUEUE: usize = 1 << 20;
const LEN: usize = 8000;

/// An application on a Unix stream, with a queue of [`QUEUE`] octets.
fn connect(b: &mut Bench) -> (FaceId, Box<dyn onym_face::Face>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let id = FaceId(b.next);
    b.next += 1;
    b.engine.driver.fw.face_add(id, FaceInfo::local());
    let io = Box::new(unix::from_stream(theirs).unwrap());
    let congestion = CongestionConfig { base_interval: LONG, threshold: 65_536 };
    let link = LinkConfig { congestion_marking: Some(congestion), ..LinkConfig::stream() };
    let opening =
        Opening { id, io, link, queue_bytes_max: QUEUE, first: Vec::new(), is_local: true };
    b.open(opening);
    (id, Box::new(unix::from_stream(ours).unwrap()))
}

fn face(b: &mut Bench, id: FaceId) -> &mut LocalFace {
    b.engine.io.faces.by_id(id).unwrap().1
}

/// A program at the other end of a face, with what it has not written yet.
struct End {
    io: Box<dyn onym_face::Face>,
    queue: TxQueue,
    pool: BufPool,
}

impl End {
    fn new(io: Box<dyn onym_face::Face>) -> Self {
        let pool = BufPool::new(onym_face::CHUNK_LEN, 4);
        Self { io, queue: TxQueue::new(1 << 30), pool }
    }

    fn ask(&mut self, first: u32, count: u32) {
        self.ask_under("/a", first, count);
    }

    fn ask_under(&mut self, prefix: &str, first: u32, count: u32) {
        for n in first..first + count {
            let name: Name = format!("{prefix}/{n}").parse().unwrap();
            let mut wire = Vec::new();
            InterestBuilder { nonce: Some(n.to_be_bytes()), ..InterestBuilder::new(name.as_ref()) }
                .write(&mut wire);
            self.queue.push(&wire, None).unwrap();
        }
    }

    fn write(&mut self) {
        let _ = self.io.flush(&mut self.queue).unwrap();
    }

    fn read(&mut self) -> Vec<RxFrame> {
        let mut frames = Vec::new();
        let _ = self.io.receive(&mut self.pool, 64, &mut frames).unwrap();
        frames
    }

    /// Answers what it is asked for; how much that was.
    fn answer(&mut self) -> usize {
        let asked = self.read();
        for frame in &asked {
            let lp = LpPacket::parse(&frame.bytes).unwrap();
            let interest = Interest::parse(lp.fragment.unwrap()).unwrap();
            let mut wire = Vec::new();
            let data = DataBuilder::new(interest.name, &[7; LEN]);
            Signer::digest().sign_data(&data, &mut wire).unwrap();
            self.queue.push(&wire, None).unwrap();
        }
        self.write();
        asked.len()
    }
}

/// Whether a frame is marked; it holds a Data, or a Nack of a node that is busy.
fn is_marked(frame: &RxFrame) -> bool {
    let lp = LpPacket::parse(&frame.bytes).unwrap();
    assert!(lp.nack.is_some() || Data::parse(lp.fragment.unwrap()).is_ok());
    lp.congestion_mark > 0
}

/// A node with an application and a producer under `/a`.
fn scene(hold: Duration) -> (Bench, FaceId, End, End) {
    let mut b = bench_that_waits(1, hold);
    let (id, io) = connect(&mut b);
    let (producer, io_of_producer) = b.face();
    b.route("/a", producer);
    (b, id, End::new(io), End::new(Box::new(io_of_producer)))
}

impl Bench {
    /// Rounds until `done`, in each of which the producer answers.
    fn rounds_until(&mut self, server: &mut End, mut done: impl FnMut(&mut Self) -> bool) {
        self.rounds(|b| {
            server.answer();
            done(b)
        });
    }

    /// Rounds until `done`.
    fn rounds(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while !done(self) {
            self.ordered_round();
            assert!(std::time::Instant::now() < end, "not before the deadline");
        }
    }

    fn queue_full(&mut self, id: FaceId) -> u64 {
        face(self, id).link.counters().queue_full
    }
}

/// Law: an application that asks for much more than its queue holds, and reads late, loses nothing;
/// what is held for it is little more than half of its queue.
#[test]
fn an_application_that_reads_late_loses_nothing() {
    let (mut b, id, mut app, mut server) = scene(LONG);
    let mut left = 1000;
    b.rounds_until(&mut server, |_| {
        // What it does not get rid of waits with it.
        if app.queue.is_empty() {
            app.ask(0, 3000);
        }
        app.write();
        left -= 1;
        left == 0
    });
    assert!(matches!(face(&mut b, id).state.pull, Hold::Since(..)));
    let held = face(&mut b, id).queue.bytes();
    assert!(held > QUEUE / 2 && held < QUEUE, "{held}");
    assert!(!b.engine.has_work(), "it sleeps until the application reads");
    let (mut got, mut marked) = (0, 0);
    b.rounds_until(&mut server, |_| {
        let frames = app.read();
        got += frames.len();
        marked += frames.iter().filter(|frame| is_marked(frame)).count();
        app.write();
        got >= 3000
    });
    assert_eq!(b.queue_full(id), 0);
    assert!(marked < 300, "{marked}: it waits before it is marked");
    b.rounds(|b| face(b, id).state.pull == Hold::Free);
}

/// Law: what was under way when the queue became half full is not lost either, up to four times the
/// queue; it is marked from three quarters of one on.
#[test]
fn what_was_asked_for_before_is_marked_and_held() {
    let (mut b, id, mut app, mut server) = scene(LONG);
    let count = u32::try_from(3 * QUEUE / LEN).unwrap();
    app.ask(0, count);
    b.rounds(|b| {
        app.write();
        b.frames_of(id) == u64::from(count)
    });
    let mut answered = 0;
    b.rounds_until(&mut server, |b| {
        answered = face(b, id).link.counters().frames_out;
        answered == u64::from(count)
    });
    let mut got = Vec::new();
    b.rounds_until(&mut server, |_| {
        got.extend(app.read().iter().map(is_marked));
        got.len() == count as usize
    });
    assert_eq!(b.queue_full(id), 0);
    let first = got.iter().position(|marked| *marked).expect("some are marked");
    let octets = first * LEN;
    assert!(octets > QUEUE / 2 && octets < QUEUE + (512 << 10), "the first mark at {octets}");
    assert!(got[first..].iter().all(|marked| *marked), "and each one from there on");
}

/// Law: one that reads nothing is waited for so long and no longer: then it is read again, its Data
/// is marked, and at last dropped and counted; others are served meanwhile. One that has read since
/// is as any other.
#[test]
fn an_application_that_reads_nothing_is_not_waited_for_without_end() {
    let (mut b, id, mut app, mut server) = scene(Duration::from_millis(20));
    let (other, io) = connect(&mut b);
    let mut other_app = End::new(io);
    app.ask(0, 3000);
    b.rounds_until(&mut server, |b| {
        app.write();
        matches!(face(b, id).state.pull, Hold::Since(..))
    });
    other_app.ask(100_000, 10);
    other_app.write();
    let mut served = 0;
    b.rounds_until(&mut server, |_| {
        served += other_app.read().len();
        served == 10
    });
    b.rounds_until(&mut server, |b| {
        app.write();
        b.frames_of(id) == 3000 && face(b, id).link.counters().queue_full > 0
    });
    assert_eq!(face(&mut b, id).state.pull, Hold::Slow);
    assert!(face(&mut b, id).queue.bytes() <= QUEUE + LEN);
    assert_eq!(b.queue_full(other), 0);
    let mut got = Vec::new();
    b.rounds_until(&mut server, |b| {
        got.extend(app.read().iter().map(is_marked));
        got.len() as u64 + b.queue_full(id) == 3000
    });
    assert!(got.iter().filter(|marked| **marked).count() > QUEUE / 4 / LEN, "marked from half on");
    app.ask(200_000, 1);
    app.write();
    b.rounds_until(&mut server, |b| {
        app.read();
        face(b, id).state.pull == Hold::Free
    });
}

/// Law: a turn brings as many Interests as have room for their answers; Data, which asks for nothing, is
/// not counted, however much of it stands between them.
#[test]
fn what_asks_for_nothing_is_read_beyond_the_room_for_answers() {
    let room = u64::try_from(QUEUE / 2 / PACKET_LEN_MAX).unwrap();
    let (mut b, id, mut app, _server) = scene(LONG);
    let data = |app: &mut End, count| {
        let name: Name = "/b".parse().unwrap();
        let mut wire = Vec::new();
        Signer::digest().sign_data(&DataBuilder::new(name.as_ref(), b""), &mut wire).unwrap();
        (0..count).for_each(|_| app.queue.push(&wire, None).unwrap());
    };
    data(&mut app, 300);
    app.ask(0, u32::try_from(room).unwrap());
    data(&mut app, 50);
    app.ask(1000, 10);
    app.write();
    b.ordered_round();
    assert_eq!(b.frames_of(id), 300 + room + 50, "the next asks for one too many");
}

/// Law: Interests of others, however many wait for an application, keep nobody from reading what it
/// answers.
#[test]
fn a_producer_that_is_flooded_is_still_read() {
    let mut b = bench_that_waits(1, LONG);
    let (id, io) = connect(&mut b);
    b.route("/a", id);
    let mut producer = End::new(io);
    let (_, io) = b.face();
    let mut flood = End::new(Box::new(io));
    // Long ones, of which a queue is full soon.
    flood.ask_under(&format!("/a/{}", "x".repeat(1000)), 0, 2000);
    b.rounds(|b| {
        flood.write();
        face(b, id).queue.bytes() > QUEUE / 4 * 3
    });
    let before = b.frames_of(id);
    for n in 0..500_u32 {
        let name: Name = format!("/own/{n}").parse().unwrap();
        let mut wire = Vec::new();
        let data = DataBuilder::new(name.as_ref(), &[7; 100]);
        Signer::digest().sign_data(&data, &mut wire).unwrap();
        producer.queue.push(&wire, None).unwrap();
    }
    b.rounds(|b| {
        producer.write();
        b.frames_of(id) == before + 500
    });
    assert_eq!(face(&mut b, id).state.pull, Hold::Free);
}
