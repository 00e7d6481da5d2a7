//! Messages of applications (spec/push.md, section 8). Publications are handled here; requests
//! cross to the push thread.

use super::apps::{Partial, Took, take_piece};
use super::push::PushSide;
use super::{Io, Shard};
use crate::push::{Passed, Publishing, Up};
use onym_engine::Slot;
use onym_frame::{Buf, FrameRow, RxFrame};
use onym_pubsub::forwarder::{START, has_short_head};
use onym_pubsub::{AppId, Data, Keep, Refusal, Request, Source};
use onym_wire::push::app::{Message, kind};
use onym_wire::push::{Id, Status, Strategy};
use onym_wire::types::PacketType;

impl PushSide {
    /// Hands something to the push thread, which came from `slot`: whose next message waits while
    /// there is no room for more.
    pub(super) fn send_up(&mut self, thing: Up, octets: usize) {
        self.lanes.up.has_place();
        self.lanes.up.batch().push(thing, octets);
    }

    /// An application is gone: the push thread hears it behind what that sent (P-57).
    pub(super) fn app_gone(&mut self, app: AppId) {
        self.apps.remove(app);
        self.send_up(Up::Gone(app), 0);
    }
}

impl Shard {
    /// How many messages of an application are at the front of `frames`, which are taken together;
    /// they are counted.
    pub(super) fn begin_messages(&mut self, io: &mut Io, slot: Slot, frames: &[RxFrame]) -> usize {
        let is_message =
            |frame: &&RxFrame| PacketType::of(&frame.bytes) == Some(PacketType::PushApp);
        let frames = frames.iter().take_while(is_message);
        let now = io.now;
        let Some(face) = io.faces.get(slot).filter(|face| face.state.is_local) else { return 0 };
        let count = frames.clone().count();
        if self.push.is_none() || !face.link.receive_push(count) {
            return 0;
        }
        face.traffic.in_bytes += frames.map(|frame| frame.bytes.len() as u64).sum::<u64>();
        face.traffic.in_frames += count as u64;
        face.heard = now;
        count
    }

    /// The application that publishes the whole of something by this message.
    pub(super) fn publisher(
        &mut self,
        io: &mut Io,
        slot: Slot,
        message: &Message<'_>,
    ) -> Option<AppId> {
        let app = io.faces.get(slot)?.state.app.as_ref()?;
        let is_whole = message.kind == kind::PUBLISH && message.length.is_none();
        let number = app.number.filter(|_| is_whole && app.partial.is_none())?;
        self.push.as_mut()?.apps.messages += 1;
        Some(number)
    }

    /// A message of the application at the face in `slot`.
    pub(super) fn app_message(&mut self, io: &mut Io, slot: Slot, packet: &Buf) {
        let Some(push) = &mut self.push else { return };
        push.apps.messages += 1;
        let result = match Message::parse(packet) {
            Ok(message) => self.obey_message(io, slot, &message, packet),
            Err(error) => Err(error.to_string()),
        };
        let Err(reason) = result else { return };
        if let Some(push) = &mut self.push {
            push.apps.malformed += 1;
        }
        self.push_leave(io, slot);
        io.end(slot, format!("a malformed message of the push half: {reason}"));
    }

    fn obey_message(
        &mut self,
        io: &mut Io,
        slot: Slot,
        message: &Message<'_>,
        packet: &Buf,
    ) -> Result<(), String> {
        let (Some(push), Some(face)) = (&mut self.push, io.faces.get(slot)) else { return Ok(()) };
        let app = face.state.app.get_or_insert_default();
        let Some(number) = app.number else {
            match message.kind {
                kind::REGISTER => self.register(io, slot, message),
                kind::LEAVE => {}
                _ => self.answer(io, slot, message.tag, Status::NOT_REGISTERED),
            }
            return Ok(());
        };
        if app.partial.is_some() && message.kind != kind::PUBLISH {
            return Err("a piece of a publication was to come".into());
        }
        match message.kind {
            kind::PUBLISH if app.partial.is_none() && message.length.is_none() => {
                self.publish(io, slot, number, message.into(), &FrameRow::one(packet.clone()));
            }
            kind::PUBLISH => self.publish_piece(io, slot, number, message)?,
            kind::REGISTER => self.answer(io, slot, message.tag, Status::EXISTS),
            kind::LEAVE => {
                app.number = None;
                push.app_gone(number);
            }
            kind if kind.is_request() => {
                let request = Request {
                    kind,
                    id: message.id(),
                    prefix: message.prefix(),
                    strategy: message.strategy,
                };
                face.state.targets |= push.up_bit();
                let word = message.word().map(Box::from);
                push.send_up(Up::Request { app: number, tag: message.tag, request, word }, 0);
            }
            kind::RETAIN => {
                let (tag, id) = (message.tag, message.id());
                let keep = Keep {
                    count: message.number,
                    lifetime_ms: message.lifetime_ms,
                    deadline_ms: message.deadline_ms,
                    priority: message.priority,
                    waits: message.waits,
                };
                face.state.targets |= push.up_bit();
                push.send_up(Up::Retain { app: number, tag, id, keep }, 0);
            }
            _ => self.answer(io, slot, message.tag, Status::UNKNOWN),
        }
        Ok(())
    }

    fn register(&mut self, io: &mut Io, slot: Slot, message: &Message<'_>) {
        let (Some(push), Some(face)) = (&mut self.push, io.faces.get(slot)) else { return };
        let Some(number) = push.apps.register(face.id, push.shards) else {
            return self.answer(io, slot, message.tag, Status::FULL);
        };
        face.state.app.get_or_insert_default().number = Some(number);
        let text = message.text().chars().take(100).collect();
        push.send_up(Up::Came { app: number, face: face.id, text }, 0);
        let about = &push.apps.about;
        let answer = Message {
            node: Some(about.node),
            role: about.role,
            number: number.0,
            length: Some(about.publication_bytes_max as u64),
            epoch: u64::from(about.boot),
            text: concat!("onym ", env!("CARGO_PKG_VERSION")).as_bytes(),
            ..Message::new(kind::REGISTERED, message.tag)
        };
        self.say(io, slot, &answer);
    }

    /// A publication that is whole: its payload is the end of the one frame of `row`.
    pub(super) fn publish(
        &mut self,
        io: &mut Io,
        slot: Slot,
        app: AppId,
        about: Published<'_>,
        row: &FrameRow,
    ) {
        let (now, Some(push)) = (io.now, &mut self.push) else { return };
        let from = match &about {
            Published::Short(message) => row.frame_len() - message.payload.len(),
            Published::Whole(_) => 0,
        };
        let payload = row.first().get(from..).unwrap_or_default();
        let lifetime_ms = about.lifetime_ms();
        let data = Data { lifetime_ms, ..Data::new(about.id(), about.strategy(), payload) };
        let sent = match push.fib.publish(now, app, &data, &mut push.effects) {
            Ok(sent) => sent,
            Err(refusal) => return self.refuse(io, slot, app, about.tag(), data.id, refusal),
        };
        let mut targets = push.effects.shards;
        if let Some(pass) = push.effects.pass.take() {
            targets |= push.up_bit();
            let (about, payload) = (about.owned(), row.first().slice(from..row.frame_len()));
            let (local, octets) = (sent.local, payload.len());
            let passed = Box::new(Passed { app, about, payload, pass, local });
            push.send_up(Up::Publish(passed), octets);
        } else if about.tag() != 0 {
            self.tell_sent(io, slot, about.tag(), sent);
        }
        let Some(push) = &mut self.push else { return };
        push.hand(row, from);
        if !push.effects.head.is_empty() {
            targets |= self.leave(io, row, from);
        }
        if let Some(face) = io.faces.get(slot) {
            face.state.targets = targets;
        }
    }

    /// The frame of a publication leaves, behind its head in the effects, where its filter says; the
    /// shards of these links.
    pub(super) fn leave(&mut self, io: &mut Io, row: &FrameRow, from: usize) -> u64 {
        let Some(push) = &mut self.push else { return 0 };
        let (mut head, mut copies) =
            (std::mem::take(&mut push.effects.head), std::mem::take(&mut push.copies));
        let mut targets = 0;
        if has_short_head(&head) {
            let len = head.len() + row.frame_len() - from;
            push.forwarder.receive_start(Source::Own, &mut head[..START], len, &mut copies);
            for face in &copies.faces {
                targets |= self.send_on(io, *face, &head, row, from);
            }
        } else {
            head.extend_from_slice(row.first().get(from..).unwrap_or_default());
            push.forwarder.receive(Source::Own, &mut head, &mut copies);
            let nothing = push.nothing.clone();
            for face in &copies.faces {
                targets |= self.send_on(io, *face, &head, &nothing, 0);
            }
        }
        if let Some(push) = &mut self.push {
            (push.effects.head, push.copies) = (head, copies);
        }
        targets
    }

    /// A piece of a publication.
    fn publish_piece(
        &mut self,
        io: &mut Io,
        slot: Slot,
        number: AppId,
        message: &Message<'_>,
    ) -> Result<(), String> {
        let piece = message.piece().map_err(|e| e.to_string())?;
        let piece = piece.ok_or("a piece of a publication was to come")?;
        let length = usize::try_from(piece.length).map_err(|e| e.to_string())?;
        let most = self.push.as_ref().map_or(0, |push| push.apps.about.publication_bytes_max);
        let app_of = |io: &mut Io| io.faces.get(slot)?.state.app.take();
        let Some(mut app) = app_of(io) else { return Ok(()) };
        let taken = take_piece(&mut app.partial, message, piece.offset, length, most);
        if let Some(face) = io.faces.get(slot) {
            face.state.app = Some(app);
        }
        match taken? {
            Took::Piece => {}
            // Told at once, so that the rest need not be sent.
            Took::TooLarge => {
                let (tag, id) = (message.tag, message.id());
                self.refuse(io, slot, number, tag, id, Refusal::TooLarge);
            }
            Took::All(Partial { publishing, payload, .. }) => {
                let row = FrameRow::one(Buf::copy_from(&payload));
                self.publish(io, slot, number, Published::Whole(publishing), &row);
            }
        }
        Ok(())
    }
}

/// What a publication is, beside its payload.
pub(super) enum Published<'a> {
    /// It came in one message.
    Short(&'a Message<'a>),
    /// It was put together.
    Whole(Publishing),
}

impl<'a> From<&'a Message<'a>> for Published<'a> {
    fn from(message: &'a Message<'a>) -> Self {
        Self::Short(message)
    }
}

impl Published<'_> {
    fn id(&self) -> Id {
        match self {
            Self::Short(message) => message.id(),
            Self::Whole(publishing) => publishing.id.clone(),
        }
    }

    fn strategy(&self) -> Strategy {
        match self {
            Self::Short(message) => message.strategy,
            Self::Whole(publishing) => publishing.strategy,
        }
    }

    fn lifetime_ms(&self) -> u64 {
        match self {
            Self::Short(message) => message.lifetime_ms,
            Self::Whole(publishing) => publishing.lifetime_ms,
        }
    }

    fn tag(&self) -> u32 {
        match self {
            Self::Short(message) => message.tag,
            Self::Whole(publishing) => publishing.tag,
        }
    }

    fn owned(self) -> Publishing {
        match self {
            Self::Short(message) => Publishing::of(message),
            Self::Whole(publishing) => publishing,
        }
    }
}
