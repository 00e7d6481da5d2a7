//! Applications: their messages in, statuses and events out (spec/push.md, section 8).

use super::PushThread;
use super::in_place::Rest;
use crate::shard::Order;
use onym_frame::{Buf, COPY_LEN_MAX};
use onym_link::{AppMessage, Outgoing, Payload, Transmit};
use onym_pubsub::{AppId, Data, Event, Refusal, Request, Sent, To, is_of_item};
use onym_tables::{FaceId, KeyedMap, Tick};
use onym_wire::push::app::{Message, PIECE_MAX, kind};
use onym_wire::push::{Id, Label, RouteBuf, Status, Strategy};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The same refusal is told again after this.
const REFUSAL_AGAIN: Duration = Duration::from_secs(1);

/// The applications of the node.
#[derive(Debug, Default)]
pub(super) struct Apps {
    by_face: BTreeMap<FaceId, App>,
    by_number: KeyedMap<AppId, FaceId>,
    last: u64,
    /// The data event made last, for the others who get the same.
    made: Option<(Id, Arc<[u8]>, Buf)>,
    /// The applications that got the last publication together, and their faces by shard.
    fan: Option<(Arc<[AppId]>, Vec<Places>)>,
    /// The message under way.
    scratch: Vec<u8>,
    /// Messages that were malformed.
    pub(super) malformed: u64,
    /// Messages taken.
    pub(super) messages: u64,
}

/// One application.
#[derive(Debug)]
pub(super) struct App {
    pub(super) number: AppId,
    pub(super) text: String,
    /// A publication of which pieces are still to come.
    partial: Option<Partial>,
    /// The refusal told last without a tag.
    refused: Option<(Id, Status, Tick)>,
}

/// What a publication needs beside its payload.
#[derive(Debug, Clone)]
struct Publishing {
    tag: u32,
    id: Id,
    strategy: Strategy,
    about: Option<Id>,
    route: Option<RouteBuf>,
    node: Option<Label>,
    lifetime_ms: u64,
}

impl Publishing {
    fn of(message: &Message<'_>) -> Self {
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

#[derive(Debug)]
struct Partial {
    publishing: Publishing,
    length: usize,
    payload: Vec<u8>,
    /// Longer than the bound: its pieces are let go.
    is_too_large: bool,
}

impl Partial {
    /// Takes a piece. What grows has room for eight times as much, so that little is written twice,
    /// and never for more than is to come: a length that is only claimed costs nothing.
    fn take(&mut self, piece: &[u8]) {
        let came = self.payload.len() + piece.len();
        if came > self.payload.capacity() {
            let room = came.saturating_mul(8).min(self.length).max(came);
            self.payload.reserve_exact(room - self.payload.len());
        }
        self.payload.extend_from_slice(piece);
    }
}

/// Faces of one shard.
type Places = (usize, Arc<[FaceId]>);

impl Apps {
    /// The applications with their faces.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&FaceId, &App)> {
        self.by_face.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.by_face.len()
    }
}

/// The status that a refused publication is answered with.
const fn status_of(refusal: Refusal) -> Status {
    match refusal {
        Refusal::NotPublisher => Status::NOT_THERE,
        Refusal::Stopped => Status::STOPPED,
        Refusal::Id => Status::RESERVED,
        Refusal::TooLong => Status::TOO_LONG,
        Refusal::TooLarge => Status::FULL,
        _ => Status::UNFIT,
    }
}

fn to_app(face: FaceId, message: AppMessage, bytes: Payload) -> Transmit {
    Transmit { face, what: Outgoing::App(message), bytes }
}

/// What an application hears of a publication.
pub(super) fn data_message<'a>(id: &'a Id, payload: &'a [u8]) -> Message<'a> {
    Message { id: id.octets(), payload, ..Message::new(kind::DATA, 0) }
}

impl PushThread {
    /// A message of the application at `face`.
    pub(super) fn message(&mut self, face: FaceId, octets: &[u8]) {
        self.apps.messages += 1;
        let result = match Message::parse(octets) {
            Ok(message) => self.obey(face, &message),
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = result {
            self.apps.malformed += 1;
            let reason = format!("a malformed message of the push half: {reason}");
            self.fail(face, reason);
        }
    }

    fn fail(&mut self, face: FaceId, reason: String) {
        let Some(shard) = self.shard_of(face) else { return };
        self.app_gone(face);
        self.ports[shard].tell(Order::PushFail { id: face, reason });
    }

    fn obey(&mut self, face: FaceId, message: &Message<'_>) -> Result<(), String> {
        let Some(app) = self.apps.by_face.get_mut(&face) else {
            if message.kind == kind::REGISTER {
                self.register(face, message);
            } else if message.kind != kind::LEAVE {
                self.answer(face, message.tag, Status::NOT_REGISTERED);
            }
            return Ok(());
        };
        let number = app.number;
        if app.partial.is_some() && message.kind != kind::PUBLISH {
            return Err("a piece of a publication was to come".into());
        }
        match message.kind {
            kind::PUBLISH => self.publish_message(face, message)?,
            kind::REGISTER => self.answer(face, message.tag, Status::EXISTS),
            kind::LEAVE => self.app_gone(face),
            kind if kind.is_request() => {
                let request = Request {
                    kind,
                    id: message.id(),
                    prefix: message.prefix(),
                    strategy: message.strategy,
                };
                let tag = u64::from(message.tag);
                self.node.request(self.now, number, tag, &request, &mut self.output);
            }
            _ => self.answer(face, message.tag, Status::UNKNOWN),
        }
        Ok(())
    }

    fn register(&mut self, face: FaceId, message: &Message<'_>) {
        if self.apps.len() >= self.settings.apps_max {
            return self.answer(face, message.tag, Status::FULL);
        }
        self.apps.last += 1;
        let number = AppId(self.apps.last);
        let text = message.text().chars().take(100).collect();
        let app = App { number, text, partial: None, refused: None };
        self.apps.by_face.insert(face, app);
        self.apps.by_number.insert(number, face);
        let answer = Message {
            node: Some(self.node.label()),
            role: self.settings.node.role,
            number: number.0,
            length: Some(self.settings.publication_bytes_max as u64),
            epoch: u64::from(self.settings.node.boot),
            text: concat!("onym ", env!("CARGO_PKG_VERSION")).as_bytes(),
            ..Message::new(kind::REGISTERED, message.tag)
        };
        self.say(face, &answer);
    }

    /// An application is gone, if one was at this face: what it held is taken back.
    pub(super) fn app_gone(&mut self, face: FaceId) {
        if let Some(app) = self.apps.by_face.remove(&face) {
            self.apps.by_number.remove(&app.number);
            self.node.disconnect(self.now, app.number, &mut self.output);
        }
    }

    /// A publication, or a piece of one.
    fn publish_message(&mut self, face: FaceId, message: &Message<'_>) -> Result<(), String> {
        let piece = message.piece().map_err(|e| e.to_string())?;
        let most = self.settings.publication_bytes_max;
        let Some(app) = self.apps.by_face.get_mut(&face) else { return Ok(()) };
        let Some(piece) = piece else {
            if app.partial.is_some() {
                return Err("a piece of a publication was to come".into());
            }
            self.publish(face, &Publishing::of(message), message.payload);
            return Ok(());
        };
        let length = usize::try_from(piece.length).map_err(|e| e.to_string())?;
        if piece.offset == 0 && app.partial.is_none() {
            let publishing = Publishing::of(message);
            let is_too_large = length > most;
            app.partial = Some(Partial {
                publishing: publishing.clone(),
                length,
                payload: Vec::new(),
                is_too_large,
            });
            if is_too_large {
                // Told at once, so that the rest need not be sent.
                self.published(face, &publishing, Err(Refusal::TooLarge));
            }
        }
        let Some(app) = self.apps.by_face.get_mut(&face) else { return Ok(()) };
        let Some(partial) = &mut app.partial else {
            return Err("a piece without a first one".into());
        };
        let at = partial.payload.len() as u64;
        let is_next = partial.is_too_large || piece.offset == at;
        if !is_next || length != partial.length {
            return Err("a piece that does not follow the one before".into());
        }
        if !partial.is_too_large {
            partial.take(message.payload);
        }
        if piece.offset + message.payload.len() as u64 == piece.length
            && let Some(whole) = app.partial.take()
            && !whole.is_too_large
        {
            self.publish(face, &whole.publishing, &whole.payload);
        }
        Ok(())
    }

    /// A publication of an item that is whole. `None`: it was none. Where a long payload may leave for
    /// faces of `shard` without a copy, its frame's head goes to `apart`.
    pub(super) fn publish_in_place(
        &mut self,
        shard: usize,
        (face, packet): (FaceId, &Buf),
        apart: Option<&mut Vec<u8>>,
    ) -> Option<Rest> {
        let message = Message::parse(packet).ok()?;
        let app = self.apps.by_face.get(&face)?;
        let is_whole = app.partial.is_none() && message.length.is_none();
        // What is not of an item may need what only the thread has.
        if message.kind != kind::PUBLISH || !is_whole || !is_of_item(message.strategy) {
            return None;
        }
        let (number, publishing) = (app.number, Publishing::of(&message));
        let data = Data::new(message.id(), message.strategy, message.payload);
        let (now, output) = (self.now, &mut self.output);
        let apart = apart.filter(|_| data.payload.len() > COPY_LEN_MAX);
        let (result, rest) = if let Some(head) = apart {
            match self.node.publish_apart(now, number, &data, head, output) {
                Ok((sent, faces)) => {
                    let payload = packet.slice_of(message.payload);
                    (Ok(sent), self.leave_apart(shard, faces, (head, payload)))
                }
                Err(refusal) => (Err(refusal), Rest::Nothing),
            }
        } else {
            (self.node.publish(now, number, &data, output), Rest::Nothing)
        };
        self.apps.messages += 1;
        self.published(face, &publishing, result);
        Some(rest)
    }

    fn publish(&mut self, face: FaceId, publishing: &Publishing, payload: &[u8]) {
        let Some(number) = self.apps.by_face.get(&face).map(|app| app.number) else { return };
        let link = publishing.node.and_then(|node| {
            let mut links = self.links.iter();
            links.find(|l| self.node.link_state.neighbour(l.face) == Some(node))
        });
        let data = Data {
            id: publishing.id.clone(),
            strategy: publishing.strategy,
            payload,
            route: publishing.route.clone(),
            face: link.map(|link| link.face),
            about: publishing.about.clone(),
            lifetime_ms: publishing.lifetime_ms,
        };
        let result = self.node.publish(self.now, number, &data, &mut self.output);
        self.published(face, publishing, result);
    }

    /// Answers a publication where an answer is wanted.
    fn published(&mut self, face: FaceId, publishing: &Publishing, result: Result<Sent, Refusal>) {
        let (status, sent) = match result {
            Ok(sent) => (Status::OK, sent),
            Err(refusal) => (status_of(refusal), Sent::default()),
        };
        let (now, tag) = (self.now, publishing.tag);
        if tag == 0 && status == Status::OK {
            return;
        }
        if tag == 0 {
            let Some(app) = self.apps.by_face.get_mut(&face) else { return };
            let was_told = |(id, told, at): &(Id, Status, Tick)| {
                *id == publishing.id && *told == status && now.since(*at) < REFUSAL_AGAIN
            };
            if app.refused.as_ref().is_some_and(was_told) {
                return;
            }
            app.refused = Some((publishing.id.clone(), status, now));
        }
        let message = Message {
            status: Some(status),
            id: if tag == 0 { publishing.id.octets() } else { &[] },
            local: sent.local as u64,
            frames: sent.frames as u64,
            ..Message::new(kind::STATUS, tag)
        };
        self.say(face, &message);
    }

    fn answer(&mut self, face: FaceId, tag: u32, status: Status) {
        let message = Message { status: Some(status), ..Message::new(kind::STATUS, tag) };
        self.say(face, &message);
    }

    /// Hands events to their applications.
    pub(super) fn tell_apps(&mut self) {
        let mut events = std::mem::take(&mut self.output.events);
        for (to, event) in events.drain(..) {
            match (&to, &event) {
                (To::All(apps), Event::Data { id, payload }) if payload.len() <= PIECE_MAX => {
                    self.tell_all(apps, id, payload);
                }
                _ => to.apps().iter().for_each(|app| self.tell(*app, &event)),
            }
        }
        self.apps.made = None;
        self.output.events = events;
    }

    /// The faces of these applications, if `shard` has them all.
    pub(super) fn all_at(&mut self, shard: usize, apps: &Arc<[AppId]>) -> Option<Arc<[FaceId]>> {
        self.place(apps);
        match &self.apps.fan.as_ref()?.1[..] {
            [(at, faces)] if *at == shard => Some(Arc::clone(faces)),
            _ => None,
        }
    }

    /// A publication of one message for many, which crosses to each shard once.
    pub(super) fn tell_all(&mut self, apps: &Arc<[AppId]>, id: &Id, payload: &[u8]) {
        self.place(apps);
        let Some((apps, places)) = self.apps.fan.take() else { return };
        let message = data_message(id, payload);
        for (shard, faces) in &places {
            self.fan(*shard, faces, &message);
        }
        self.apps.fan = Some((apps, places));
    }

    /// Puts these applications and their faces by shard where the last publication had its own,
    /// unless they are the same.
    fn place(&mut self, apps: &Arc<[AppId]>) {
        let known = self.apps.fan.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, apps));
        if !known {
            self.apps.fan = Some((Arc::clone(apps), self.places(apps)));
        }
    }

    /// The faces of these applications, by shard.
    fn places(&self, apps: &[AppId]) -> Vec<Places> {
        let mut places: BTreeMap<usize, Vec<FaceId>> = BTreeMap::new();
        for face in apps.iter().filter_map(|app| self.apps.by_number.get(app)) {
            if let Some(shard) = self.shard_of(*face) {
                places.entry(shard).or_default().push(*face);
            }
        }
        places.into_iter().map(|(shard, faces)| (shard, faces.into())).collect()
    }

    fn tell(&mut self, app: AppId, event: &Event) {
        let Some(face) = self.apps.by_number.get(&app).copied() else { return };
        match event {
            Event::Status { tag, status } => {
                self.answer(face, u32::try_from(*tag).unwrap_or(0), *status);
            }
            Event::StartPublish(id) => {
                if let Some(app) = self.apps.by_face.get_mut(&face) {
                    app.refused = None;
                }
                self.notify(face, onym_wire::push::Kind::START, id);
            }
            Event::StopPublish(id) => self.notify(face, onym_wire::push::Kind::STOP, id),
            Event::ScopePublished(id) => {
                self.notify(face, onym_wire::push::Kind::SCOPE_PUBLISHED, id);
            }
            Event::ScopeUnpublished(id) => {
                self.notify(face, onym_wire::push::Kind::SCOPE_UNPUBLISHED, id);
            }
            Event::Missed(number) => {
                // Lost on its way here, which is not the application's doing.
                let status = Some(Status::UNREACHED);
                let message = Message { number: *number, status, ..Message::new(kind::MISSED, 0) };
                self.say(face, &message);
            }
            Event::Data { id, payload } => {
                let bytes = Payload::Shared(self.shared_message(id, payload));
                self.transmit(&[], to_app(face, AppMessage::Data, bytes));
            }
        }
    }

    /// The message of a publication, made once for all who get it.
    fn shared_message(&mut self, id: &Id, payload: &Arc<[u8]>) -> Buf {
        if let Some((made_id, made_payload, message)) = &self.apps.made
            && Arc::ptr_eq(made_payload, payload)
            && made_id == id
        {
            return message.clone();
        }
        let message = Buf::copy_from(&data_message(id, payload).octets());
        self.apps.made = Some((id.clone(), Arc::clone(payload), message.clone()));
        message
    }

    fn notify(&mut self, face: FaceId, kind: onym_wire::push::Kind, id: &Id) {
        let message = Message { id: id.octets(), ..Message::new(kind, 0) };
        self.say(face, &message);
    }

    /// A message other than data.
    fn say(&mut self, face: FaceId, message: &Message<'_>) {
        let mut octets = std::mem::take(&mut self.apps.scratch);
        octets.clear();
        message.write(&mut octets);
        let end = u32::try_from(octets.len()).expect("invariant: messages are short");
        self.transmit(&octets, to_app(face, AppMessage::Control, Payload::Arena(0..end)));
        self.apps.scratch = octets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_is_only_claimed_gets_no_memory() {
        let message = Message::new(kind::PUBLISH, 0);
        let (publishing, length) = (Publishing::of(&message), 64 << 20);
        let mut partial = Partial { publishing, length, payload: Vec::new(), is_too_large: false };
        partial.take(&[7; 1000]);
        assert_eq!((partial.payload.len(), partial.payload.capacity()), (1000, 8000));
        // Near its end it takes what is missing and no more.
        partial.length = 8100;
        partial.take(&[7; 7050]);
        assert_eq!((partial.payload.len(), partial.payload.capacity()), (8050, 8100));
        assert!(partial.payload.iter().all(|octet| *octet == 7));
    }
}
