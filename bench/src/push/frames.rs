//! Relays of frames: they move them over the same faces and with the same system calls as our
//! nodes, make the same copies, and look at nothing but where a frame ends. What they reach is the
//! ceiling of a forwarder on these faces, for whichever link joins them.

use super::{PartResult, PushPartArgs, SILENCE, Seen};
use crate::link::{self, Ends, accept_one, connect_tcp, connect_unix};
use crate::part::say;
use anyhow::{Context, Result};
use onym_face::{CHUNK_LEN, Face, Flush, RingPolicy, UnixListener, tcp};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_sys::epoll::{Epoll, Interest, Ready};
use onym_wire::{tlv, types};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};

/// Frames that one system call may bring.
const BUDGET: usize = 512;
/// Octets waiting for one on a stream with which nothing more is taken from before.
const HELD_AT: usize = 256 << 10;
/// Octets that may wait; datagrams beyond are lost.
const QUEUE_OCTETS: usize = 8 << 20;
/// Octets that a publisher hands over at once.
const BATCH: usize = 64 << 10;
/// Buffers that are kept.
const CHUNKS: usize = 64;
/// Receive buffer that is asked for, as our nodes do.
const RECEIVE_OCTETS: usize = 4 << 20;
/// Token of the face toward the publisher; the others have their number and one.
const BEFORE: u64 = 0;

/// One who gets everything.
#[derive(Debug)]
struct Out {
    face: Box<dyn Face>,
    queue: TxQueue,
    is_blocked: bool,
}

impl Out {
    /// Whether what comes waits for it.
    fn is_held(&self) -> bool {
        self.face.transport().is_reliable() && self.queue.bytes() > HELD_AT
    }

    /// Sends what it can; whether the face lasts.
    fn flush(&mut self) -> Option<Flush> {
        match self.face.flush(&mut self.queue) {
            Ok(flush) => Some(flush),
            // Datagrams whose receiver is not there yet.
            Err(error) => (!error.is_fatal()).then_some(Flush::Done),
        }
    }
}

#[derive(Debug)]
struct Relay {
    epoll: Epoll,
    events: Vec<Ready>,
    pool: BufPool,
    frames: Vec<RxFrame>,
    before: Box<dyn Face>,
    is_held: bool,
    /// By number; those that left are none.
    outs: Vec<Option<Out>>,
}

impl Relay {
    fn new(before: Box<dyn Face>) -> Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(before.fd(), BEFORE, Interest::Read)?;
        let pool = BufPool::new(CHUNK_LEN, CHUNKS);
        let (events, frames) = (Vec::new(), Vec::new());
        Ok(Self { epoll, events, pool, frames, before, is_held: false, outs: Vec::new() })
    }

    fn add(&mut self, face: Box<dyn Face>) -> Result<()> {
        self.epoll.add(face.fd(), self.outs.len() as u64 + 1, Interest::Nothing)?;
        let queue = TxQueue::new(QUEUE_OCTETS);
        self.outs.push(Some(Out { face, queue, is_blocked: false }));
        Ok(())
    }

    /// One round; false when the one before is gone.
    fn round(&mut self, joined: &Receiver<Box<dyn Face>>) -> Result<bool> {
        let is_held = self.outs.iter().flatten().any(Out::is_held);
        if is_held != self.is_held {
            self.is_held = is_held;
            let interest = if is_held { Interest::Nothing } else { Interest::Read };
            self.epoll.modify(self.before.fd(), BEFORE, interest)?;
        }
        self.events.clear();
        self.epoll.wait(None, &mut self.events)?;
        for face in joined.try_iter() {
            self.add(face)?;
        }
        if self.events.iter().any(|event| event.token == BEFORE && event.readable) {
            match self.before.receive(&mut self.pool, BUDGET, &mut self.frames) {
                Err(error) if error.is_fatal() => return Ok(false),
                _ => {}
            }
        }
        for frame in self.frames.drain(..) {
            for out in self.outs.iter_mut().flatten() {
                let _ = out.queue.push(&[], Some(&frame.bytes));
            }
        }
        self.flush()?;
        Ok(true)
    }

    fn flush(&mut self) -> Result<()> {
        for (at, place) in self.outs.iter_mut().enumerate() {
            let Some(out) = place.as_mut().filter(|out| !out.queue.is_empty()) else { continue };
            let Some(flush) = out.flush() else {
                // It has its last publication.
                self.epoll.delete(out.face.fd())?;
                *place = None;
                continue;
            };
            let is_blocked = flush == Flush::Blocked;
            if is_blocked != out.is_blocked {
                out.is_blocked = is_blocked;
                let interest = if is_blocked { Interest::Write } else { Interest::Nothing };
                self.epoll.modify(out.face.fd(), at as u64 + 1, interest)?;
            }
        }
        Ok(())
    }
}

/// Relays until it is ended. `at` is its Unix socket. Publications come over that at the first one,
/// and over TCP or, where the one before has an address, UDP at the others.
pub(super) fn node(args: &PushPartArgs) -> Result<()> {
    let rings = RingPolicy::new(CHUNK_LEN, 1);
    let mut applications = UnixListener::bind_with(Path::new(&args.at), rings)?;
    let udp = |own, peer| link::udp(own, peer, RECEIVE_OCTETS);
    let next = match (args.own, args.next) {
        (Some(own), Some(next)) => Some(udp(own, next)?),
        (None, Some(next)) => Some(connect_tcp(next)?),
        _ => None,
    };
    let before = match (args.listen, args.before) {
        (Some(own), Some(before)) => {
            let face = udp(own, before)?;
            say("ready")?;
            face
        }
        (Some(own), None) => {
            let mut listener = tcp::TcpListener::bind(own)?;
            say("ready")?;
            accept_one(&mut listener)?
        }
        _ => {
            say("ready")?;
            accept_one(&mut applications)?
        }
    };
    let mut relay = Relay::new(before)?;
    next.map(|face| relay.add(face)).transpose()?;
    let (tx, joined) = mpsc::channel();
    // Ends when nobody joined for long.
    std::thread::spawn(move || {
        while let Ok(face) = accept_one(&mut applications) {
            if tx.send(face).is_err() {
                return;
            }
        }
    });
    while relay.round(&joined)? {}
    Ok(())
}

pub(super) fn publish(args: &PushPartArgs) -> Result<PartResult> {
    let mut to = Ends::new(vec![connect_unix(Path::new(&args.at))?])?;
    // It says nothing.
    to.receive(0, &mut Vec::new())?;
    let send = |to: &mut Ends, most: usize| -> Result<()> {
        loop {
            to.flush()?;
            if to.ends[0].queue.bytes() <= most {
                return Ok(());
            }
            to.wait(None)?;
            to.receive(0, &mut Vec::new())?;
        }
    };
    let mut frame = Vec::new();
    let put = |to: &mut Ends, octets: &[u8]| -> Result<()> {
        frame.clear();
        tlv::put_tlv(&mut frame, types::PUSH_FRAME, octets);
        to.ends[0].push(&frame, None);
        if to.ends[0].queue.bytes() >= BATCH { send(to, BATCH / 2) } else { Ok(()) }
    };
    let pause = |to: &mut Ends, patience| {
        send(to, 0)?;
        std::thread::sleep(patience);
        Ok(())
    };
    super::side::publish(&args.side, &mut to, put, pause)
}

pub(super) fn subscribe(args: &PushPartArgs) -> Result<PartResult> {
    let mut from = Ends::new(vec![connect_unix(Path::new(&args.at))?])?;
    let (mut seen, mut frames) = (Seen::new(&args.side), Vec::new());
    loop {
        from.wait(Some(std::time::Instant::now() + SILENCE))?;
        from.receive(0, &mut frames)?;
        for frame in frames.drain(..) {
            let start =
                frame.bytes.len().checked_sub(args.side.payload).context("a short frame")?;
            if seen.take(&frame.bytes[start..], args.side.payload)? {
                return Ok(seen.result());
            }
        }
    }
}
