//! The exchange with the node: messages out, messages and events in.

use super::{App, Error, Event, FLUSH_AT, LOOK, NodeInfo, QUEUE_MAX, RX_BUDGET, Sent};
use onym_face::{FaceError, Flush, Ready as More};
use onym_frame::Buf;
use onym_sys::epoll::Interest;
use onym_wire::push::app::{Message, PIECE_MAX, kind};
use onym_wire::push::{Id, Kind, Status, Strategy};
use onym_wire::types::PacketType;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn gone(error: FaceError) -> Error {
    Error::Gone(error.to_string())
}

/// A publication of which pieces are still to come.
#[derive(Debug)]
pub(super) struct Partial {
    id: Id,
    came_by: Option<Strategy>,
    length: usize,
    payload: Vec<u8>,
}

impl App {
    pub(super) fn put(&mut self, message: &Message<'_>) -> Result<(), Error> {
        let (queue, scratch) = (&mut self.queue, &mut self.scratch);
        if message.payload.len() <= PIECE_MAX {
            scratch.clear();
            message.write(scratch);
            let _ = queue.push(scratch, None);
        } else {
            message.write_pieces(PIECE_MAX, |octets| {
                let _ = queue.push(octets, None);
            });
        }
        if self.queue.bytes() >= self.flush_at {
            self.flush()?;
        }
        if self.queue.bytes() > QUEUE_MAX { self.send_down_to(QUEUE_MAX / 2) } else { Ok(()) }
    }

    /// Sends until at most `most` octets wait; waits only while the node takes no more.
    pub(super) fn send_down_to(&mut self, most: usize) -> Result<(), Error> {
        self.flush()?;
        while self.queue.bytes() > most {
            self.take_or_wait(None)?;
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn send(&mut self, message: &Message<'_>) -> Result<(), Error> {
        let _ = self.queue.push(&message.octets(), None);
        self.flush()
    }

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        if self.queue.is_empty() && !self.face.is_connecting() {
            return Ok(());
        }
        let flush = self.face.flush(&mut self.queue).map_err(gone)?;
        self.flush_at = self.queue.bytes() + FLUSH_AT;
        let blocked = flush == Flush::Blocked && self.face.room_is_writable();
        if blocked != self.watches_writing {
            self.watches_writing = blocked;
            let interest = if blocked { Interest::ReadWrite } else { Interest::Read };
            let changed = self.epoll.modify(self.face.fd(), 0, interest);
            changed.map_err(|e| Error::Gone(e.to_string()))?;
        }
        Ok(())
    }

    /// Sends what waits, waits for the node when nothing is there, and takes what came; whether
    /// there was time left.
    pub(super) fn turn(&mut self, until: Option<Instant>) -> Result<bool, Error> {
        self.flush()?;
        self.take_or_wait(until)
    }

    /// Takes what came, or waits for the node when nothing is there; whether there was time left.
    fn take_or_wait(&mut self, until: Option<Instant>) -> Result<bool, Error> {
        if self.receive()? {
            return Ok(true);
        }
        let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
        if wait.is_some_and(|w| w.is_zero()) {
            return Ok(false);
        }
        if self.stop.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Error::Stopped);
        }
        // The signal may come right before the wait.
        let wait =
            if self.stop.is_some() { Some(wait.map_or(LOOK, |w| w.min(LOOK))) } else { wait };
        self.ready.clear();
        let waited = self.epoll.wait(wait, &mut self.ready);
        waited.map_err(|e| Error::Gone(e.to_string()))?;
        self.flush()?;
        self.receive()?;
        Ok(until.is_none_or(|until| Instant::now() < until) || self.inbox.has_events())
    }

    /// Takes what came; whether there was something.
    fn receive(&mut self) -> Result<bool, Error> {
        let mut any = false;
        self.is_idle = false;
        loop {
            let result = self.face.receive(&mut self.pool, RX_BUDGET, &mut self.frames);
            let mut frames = std::mem::take(&mut self.frames);
            any |= !frames.is_empty();
            for frame in frames.drain(..) {
                self.message(&frame.bytes)?;
            }
            self.frames = frames;
            match result {
                Ok(More::Idle) => {
                    self.is_idle = true;
                    self.is_read_up = self.inbox.has_events();
                    return Ok(any);
                }
                // Enough for once: who asked looks at it first.
                Ok(_) if any => return Ok(true),
                Ok(_) => {}
                Err(error) => return Err(gone(error)),
            }
        }
    }

    pub(super) fn message(&mut self, octets: &Buf) -> Result<(), Error> {
        if PacketType::of(octets) != Some(PacketType::PushApp) {
            // The pull half of the node has something for us: nothing was asked of it.
            return Ok(());
        }
        let message = Message::parse(octets).map_err(|e| Error::Malformed(e.to_string()))?;
        let id = message.id();
        let event = match message.kind {
            kind::REGISTERED => {
                self.info = Some(NodeInfo {
                    node: message.node.unwrap_or_default(),
                    role: message.role,
                    number: message.number,
                    length_max: message.length.unwrap_or(u64::MAX),
                    epoch: message.epoch,
                    text: message.text().into_owned(),
                });
                return Ok(());
            }
            kind::STATUS => {
                let status = message.status.unwrap_or(Status::UNKNOWN);
                if message.tag != 0 {
                    let sent = Sent { local: message.local, frames: message.frames };
                    self.inbox.answered(message.tag, status, sent);
                    return Ok(());
                }
                Event::Refused { id, status }
            }
            kind::DATA => match self.data(octets, &message)? {
                Some(event) => event,
                None => return Ok(()),
            },
            kind::MISSED if message.status == Some(Status::UNREACHED) => {
                Event::Lost(message.number)
            }
            kind::MISSED => Event::Missed(message.number),
            kind::OVERDUE => {
                let within = Duration::from_millis(message.deadline_ms.into());
                Event::Overdue { id, within }
            }
            Kind::START => Event::StartPublish(id),
            Kind::STOP => Event::StopPublish(id),
            Kind::SCOPE_PUBLISHED => Event::ScopePublished(id),
            Kind::SCOPE_UNPUBLISHED => Event::ScopeUnpublished(id),
            // Of a later version.
            _ => return Ok(()),
        };
        self.inbox.add(event)
    }

    /// A publication, or a piece of one.
    fn data(&mut self, octets: &Buf, message: &Message<'_>) -> Result<Option<Event>, Error> {
        let malformed = |what: &str| Error::Malformed(what.to_owned());
        let piece = message.piece().map_err(|e| Error::Malformed(e.to_string()))?;
        let Some(piece) = piece else {
            let payload = octets.slice_of(message.payload);
            let (id, came_by) = (message.id(), message.came_by);
            return Ok(Some(Event::Data { id, payload, came_by }));
        };
        if piece.offset == 0 {
            let length = usize::try_from(piece.length).map_err(|_| malformed("too long"))?;
            self.partial = Some(Partial {
                id: message.id(),
                came_by: message.came_by,
                length,
                payload: Vec::new(),
            });
        }
        let Some(Partial { length, payload, .. }) = &mut self.partial else {
            return Err(malformed("a piece without a first one"));
        };
        if payload.len() as u64 != piece.offset || *length as u64 != piece.length {
            return Err(malformed("a piece that does not follow the one before"));
        }
        payload.extend_from_slice(message.payload);
        if payload.len() < *length {
            return Ok(None);
        }
        let whole = |partial: Partial| Event::Data {
            id: partial.id,
            payload: Buf::copy_from(&partial.payload),
            came_by: partial.came_by,
        };
        Ok(self.partial.take().map(whole))
    }
}
