//! Messages to applications other than publications.

use super::parcel::{Called, Whose};
use super::{Io, Shard};
use crate::push::{Answer, Up, status_of};
use onym_engine::Slot;
use onym_frame::{Buf, FrameRow};
use onym_link::{AppMessage, Payload};
use onym_pubsub::{AppId, Event, Refusal, Sent};
use onym_tables::Tick;
use onym_wire::push::app::{Message, kind};
use onym_wire::push::{Id, Kind, Status};
use std::time::Duration;

/// The same refusal is told again after this.
const REFUSAL_AGAIN: Duration = Duration::from_secs(1);

impl Shard {
    /// A publication is refused; why, the push thread knows where the push FIB does not.
    pub(super) fn refuse(
        &mut self,
        io: &mut Io,
        slot: Slot,
        app: AppId,
        tag: u32,
        id: Id,
        refusal: Refusal,
    ) {
        if refusal != Refusal::NotPublisher {
            return self.tell_refused(io, slot, tag, id, status_of(refusal));
        }
        let (now, Some(push), Some(face)) = (io.now, &mut self.push, io.faces.get(slot)) else {
            return;
        };
        let was_told = face.state.app.as_ref().and_then(|app| app.refused.as_ref());
        let is_same =
            |(told, _, at): &(Id, Status, Tick)| *told == id && now.since(*at) < REFUSAL_AGAIN;
        if tag == 0 && was_told.is_some_and(is_same) {
            return;
        }
        face.state.targets |= push.up_bit();
        push.send_up(Up::WhyNot { app, tag, id }, 0);
    }

    /// Tells an application that a publication was refused; without a tag the same once a while.
    fn tell_refused(&mut self, io: &mut Io, slot: Slot, tag: u32, id: Id, status: Status) {
        let (now, Some(face)) = (io.now, io.faces.get(slot)) else { return };
        if tag == 0 {
            let Some(app) = &mut face.state.app else { return };
            let is_same = |(told, of, at): &(Id, Status, Tick)| {
                *told == id && *of == status && now.since(*at) < REFUSAL_AGAIN
            };
            if app.refused.as_ref().is_some_and(is_same) {
                return;
            }
            app.refused = Some((id.clone(), status, now));
        }
        let named = if tag == 0 { id.octets() } else { &[] };
        let message =
            Message { status: Some(status), id: named, ..Message::new(kind::STATUS, tag) };
        self.say(io, slot, &message);
    }

    pub(super) fn tell_sent(&mut self, io: &mut Io, slot: Slot, tag: u32, sent: Sent) {
        let message = Message {
            status: Some(Status::OK),
            local: sent.local as u64,
            frames: sent.frames as u64,
            ..Message::new(kind::STATUS, tag)
        };
        self.say(io, slot, &message);
    }

    /// What became of a publication that was passed.
    pub(super) fn tell_answer(&mut self, io: &mut Io, answer: Answer) {
        let Answer { app, tag, id, status, local, frames } = answer;
        let face = self.push.as_ref().and_then(|push| push.apps.face(app));
        let Some((slot, _)) = face.and_then(|face| io.faces.by_id(face)) else { return };
        if status != Status::OK {
            self.tell_refused(io, slot, tag, id, status);
        } else if tag != 0 {
            self.tell_sent(io, slot, tag, Sent { local, frames });
        }
    }

    pub(super) fn answer(&mut self, io: &mut Io, slot: Slot, tag: u32, status: Status) {
        let message = Message { status: Some(status), ..Message::new(kind::STATUS, tag) };
        self.say(io, slot, &message);
    }

    /// Tells an application of this shard what happened.
    pub(super) fn tell_app(&mut self, io: &mut Io, app: AppId, event: Event) {
        let Some(push) = &mut self.push else { return };
        let Some((slot, face)) = push.apps.face(app).and_then(|face| io.faces.by_id(face)) else {
            return;
        };
        let (kind, id) = match event {
            Event::Status { tag, status } => {
                return self.answer(io, slot, u32::try_from(tag).unwrap_or(0), status);
            }
            Event::Data { id, payload, came_by } => {
                let row = FrameRow::one(Buf::copy_from(&payload));
                let to = Whose::App(app);
                return push.own.put(to, Called { id: &id, came_by }, &row, 0, &mut None);
            }
            // Behind what it was told before.
            Event::Missed(count) => return push.own.missed(Whose::App(app), count),
            Event::NoRoom(count) => return push.own.no_room(app, count),
            Event::Mark => return push.own.mark(app),
            Event::Wait(true) => return push.pause(io, app),
            Event::Wait(false) => return push.resume(io, app),
            Event::StartPublish(id) => {
                if let Some(app) = &mut face.state.app {
                    app.refused = None;
                }
                (Kind::START, id)
            }
            Event::StopPublish(id) => (Kind::STOP, id),
            Event::ScopePublished(id) => (Kind::SCOPE_PUBLISHED, id),
            Event::ScopeUnpublished(id) => (Kind::SCOPE_UNPUBLISHED, id),
            Event::Overdue { id, within } => {
                let deadline_ms = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
                let overdue = Message::new(kind::OVERDUE, 0);
                return self.say(io, slot, &Message { id: id.octets(), deadline_ms, ..overdue });
            }
        };
        self.say(io, slot, &Message { id: id.octets(), ..Message::new(kind, 0) });
    }

    /// Tells an application that publications were lost on their way here, which is not its doing.
    pub(super) fn tell_lost(&mut self, io: &mut Io, slot: Slot, number: u64) {
        let status = Some(Status::UNREACHED);
        self.say(io, slot, &Message { number, status, ..Message::new(kind::MISSED, 0) });
    }

    /// A message other than data.
    pub(super) fn say(&mut self, io: &mut Io, slot: Slot, message: &Message<'_>) {
        let Some(push) = &mut self.push else { return };
        let mut octets = std::mem::take(&mut push.apps.scratch);
        octets.clear();
        message.write(&mut octets);
        let end = u32::try_from(octets.len()).expect("invariant: messages are short");
        self.transmit_app(io, slot, AppMessage::Control, &octets, &Payload::Arena(0..end));
        if let Some(push) = &mut self.push {
            push.apps.scratch = octets;
        }
    }
}
