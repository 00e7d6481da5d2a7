//! The loop.

use crate::bell::Bell;
use crate::clock::Clock;
use crate::driver::{BATCH, Driver, FaceEvent, Idle, Policy};
use crate::face::Slot;
use crate::io::{BELL, Io, Turns};
use crate::mailbox::Mailbox;
use crate::poller::Poller;
use crate::sync::{Arc, Epoll};
use onym_face::{FaceError, Flush, Ready as More};
use onym_sys::epoll::Ready;
use onym_tables::Tick;
use std::time::Duration;

/// A thread that drives `D`.
#[derive(Debug)]
pub struct Engine<D: Driver<P>, P: Poller = Epoll> {
    /// What is driven.
    pub driver: D,
    /// Its I/O.
    pub io: Io<D::Face, P>,
    mailbox: Mailbox<D::Order, P::Waker>,
    bell: Arc<Bell<P::Waker>>,
    events: Vec<Ready>,
}

impl<D: Driver<P>, P: Poller> Engine<D, P> {
    /// An engine that is ready to run.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new(
        driver: D,
        mailbox: Mailbox<D::Order, P::Waker>,
        clock: Clock,
        policy: Policy,
    ) -> std::io::Result<Self> {
        let poller = P::new()?;
        let bell = Arc::clone(mailbox.bell());
        poller.add_waker(bell.waker(), BELL)?;
        let io = Io::new(poller, clock, policy, Arc::clone(mailbox.load()));
        Ok(Self { driver, io, mailbox, bell, events: Vec::with_capacity(256) })
    }

    /// Runs until [`Io::stop`] is called.
    pub fn run(mut self) {
        while self.io.is_running {
            self.step();
        }
    }

    /// Waits until there is something to do, and makes a round.
    pub fn step(&mut self) {
        self.wait();
        let begin = self.io.clock.now();
        self.io.now = begin;
        self.round();
        self.io.load.add_round(self.io.clock.now().since(begin));
    }

    /// Waits until something is to be done and notes which faces are ready.
    fn wait(&mut self) {
        let bell = &*self.bell;
        let mut thread = (&mut self.driver, &mut self.io, &self.mailbox, &mut self.events);
        bell.rest(
            &mut thread,
            |(driver, io, mailbox, _)| {
                let patience = match mailbox.has_orders() {
                    true => Some(Duration::ZERO),
                    false => patience::<D, P>(driver, io),
                };
                (patience, io.policy.is_rung_to_receive && !driver.may_receive())
            },
            |(_, io, _, events), (patience, is_held_back)| {
                events.clear();
                if let Err(error) = io.poller.wait(patience, events) {
                    tracing::error!(%error, "waiting for descriptors failed");
                }
                let turns = if is_held_back { Turns::HeldBack } else { Turns::Taken };
                let mut is_woken = false;
                for event in events.iter() {
                    if event.token == BELL {
                        is_woken = true;
                    } else {
                        io.note_ready(event, turns);
                    }
                }
                is_woken
            },
        );
    }

    /// Whether the next round would not wait.
    pub fn has_work(&mut self) -> bool {
        self.mailbox.has_orders()
            || patience(&mut self.driver, &mut self.io) == Some(Duration::ZERO)
    }

    /// One round.
    pub fn round(&mut self) {
        self.mailbox.take();
        while let Some(order) = self.mailbox.pop() {
            self.driver.order(&mut self.io, order);
            self.driver.dispatch(&mut self.io);
            self.tell_events();
        }
        self.driver.begin_round(&mut self.io);
        self.tell_events();
        self.accept();
        self.end_attempts();
        self.turns();
        self.driver.after_turns(&mut self.io);
        if self.driver.poll_timeout() <= self.io.now {
            self.driver.handle_timeout(&mut self.io);
        }
        self.io.timers(&mut self.driver);
        self.driver.dispatch(&mut self.io);
        self.tell_events();
        self.flush();
        self.driver.end_round(&mut self.io);
    }

    fn accept(&mut self) {
        while let Some((at, arrived)) = self.io.arrivals() {
            for incoming in arrived {
                self.driver.accepted(&mut self.io, at, incoming);
            }
            self.driver.dispatch(&mut self.io);
            self.tell_events();
        }
    }

    fn end_attempts(&mut self) {
        while let Some((id, result)) = self.io.ended_attempt() {
            self.driver.connected(&mut self.io, id, result);
            self.driver.dispatch(&mut self.io);
            self.tell_events();
        }
    }

    /// One flush of each face with something to send; what the driver sends when it hears of one
    /// leaves, too.
    fn flush(&mut self) {
        while self.io.is_dirty() {
            self.io.flush_dirty();
            self.tell_events();
        }
    }

    /// Tells the driver what happened to faces.
    fn tell_events(&mut self) {
        while let Some((slot, id, event)) = self.io.events.pop_front() {
            if self.io.faces.peek(slot).is_some_and(|face| face.id == id) {
                self.driver.face_event(&mut self.io, slot, id, event);
                self.driver.dispatch(&mut self.io);
            }
        }
    }

    /// One turn of each face that is ready now, as far as the round goes.
    fn turns(&mut self) {
        let mut left = self.io.policy.round_frames;
        for _ in 0..self.io.ready.len() {
            if left == 0 || !self.driver.may_receive() {
                return;
            }
            let Some(slot) = self.io.ready.pop_front() else { return };
            left = left.saturating_sub(self.turn(slot));
        }
    }

    /// A turn of the face in `slot`; how many frames it had.
    ///
    /// One system call may bring more frames than a turn has: the rest waits for the next turn, so
    /// that a face whose turns are small cannot take large ones by filling its socket.
    fn turn(&mut self, slot: Slot) -> usize {
        let Some(face) = self.io.faces.get(slot) else { return 0 };
        face.is_listed = false;
        let ends = face.is_stream && face.ends_on_malformed;
        self.io.unmute(slot);
        let budget = self.driver.turn(&mut self.io, slot);
        let Some((mut frames, result)) = self.io.take_frames(slot, budget.receive) else {
            return 0;
        };
        // Nothing more comes after a fatal error, so what came before it is not left waiting.
        let is_over = result.as_ref().is_err_and(FaceError::is_fatal);
        let turn = if is_over { frames.len() } else { budget.handle.min(frames.len()) };
        let taken = self.driver.admit(&mut self.io, slot, &frames[..turn]);
        let (mut count, mut seen, mut broken) = (0, 0, None);
        let mut rest = frames.drain(..taken);
        while broken.is_none() {
            if count >= seen {
                let batch = rest.as_slice();
                self.driver.foresee(batch.get(..BATCH).unwrap_or(batch));
                seen = count + BATCH;
            }
            let row = self.driver.receive_row(&mut self.io, slot, rest.as_slice());
            if row > 0 {
                count += row;
                rest.by_ref().take(row).for_each(drop);
                continue;
            }
            let Some(frame) = rest.next() else { break };
            count += 1;
            broken = self.io.frame(&mut self.driver, slot, frame).filter(|_| ends);
        }
        drop(rest);
        let waits = !frames.is_empty() || matches!(result, Ok(More::More | More::Changed));
        if waits && self.io.list(slot) {
            if taken < turn && self.driver.held(&mut self.io, slot) {
                self.io.put_aside(slot);
            } else {
                self.io.ready.push_back(slot);
            }
        }
        self.io.keep_frames(slot, frames);
        self.driver.dispatch(&mut self.io);
        self.io.note_timer(slot);
        if let Some(reason) = broken {
            let reason = format!("the peer sent a malformed packet: {reason}");
            self.io.end(slot, reason);
        } else if let Err(error) = &result {
            // What waits is taken first; then the transport says again that it ended.
            if taken == turn {
                self.io.face_error(slot, error);
            }
        } else if let Ok(More::Changed) = result {
            self.changed(slot);
        }
        self.tell_events();
        count
    }

    /// The transport of a face has become one of another kind.
    fn changed(&mut self, slot: Slot) {
        // How it waits for room is another now.
        self.io.watch(slot, Flush::Done);
        if let Some(face) = self.io.faces.get(slot) {
            let id = face.id;
            self.io.events.push_back((slot, id, FaceEvent::Changed));
        }
    }
}

/// How long a thread without orders may sleep; none: until it is woken.
fn patience<D: Driver<P>, P: Poller>(driver: &mut D, io: &mut Io<D::Face, P>) -> Option<Duration> {
    let has_turns = !io.ready.is_empty() && driver.may_receive();
    if !io.is_running || has_turns || io.is_dirty() {
        return Some(Duration::ZERO);
    }
    let longest = match driver.idle(io) {
        Idle::Work => return Some(Duration::ZERO),
        Idle::Retry(after) => Some(after),
        Idle::Sleep => None,
    };
    let next = driver.poll_timeout().min(io.poll_timeout());
    if next == Tick::NEVER {
        return longest;
    }
    let next = next.since(io.clock.now());
    Some(longest.map_or(next, |longest| longest.min(next)))
}
