//! The serving side.

use super::{CLIENTS_MAX, REFUSED, REPLIED, REPLY_HEAD, REQUEST_HEAD, Service, WAITING_MAX};
use crate::push::{App, Error, Event};
use onym_frame::Buf;
use onym_wire::push::{Id, Kind, Label, Path, Status, Strategy};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// What is known of a client.
#[derive(Debug, Default)]
struct Asker {
    /// The node wants replies to it.
    is_started: bool,
    waiting: VecDeque<Vec<u8>>,
    /// When it asked, by the number of requests before.
    asked: u64,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    client: Label,
    number: u64,
    /// What is asked for.
    pub payload: Buf,
}

impl Request {
    /// The token of the client.
    #[must_use]
    pub fn client(&self) -> Label {
        self.client
    }
}

/// A server of a service. One that is dropped takes back what it served.
#[derive(Debug)]
pub struct Server {
    app: App,
    service: Service,
    askers: BTreeMap<Label, Asker>,
    asked: u64,
    unsent: u64,
    lost: u64,
}

impl Server {
    /// An application as a server of the service `path`, the scopes above which are there.
    ///
    /// # Errors
    /// As [`App::publish_scope`].
    pub fn new(mut app: App, path: &Path, strategy: Strategy) -> Result<Self, Error> {
        let service = Service::publish(&mut app, path, strategy)?;
        app.subscribe_scope(&service.calls.id, strategy)?;
        let askers = BTreeMap::new();
        Ok(Self { app, service, askers, asked: 0, unsent: 0, lost: 0 })
    }

    /// The next request, waiting for `patience` at most, or as long as it takes.
    ///
    /// # Errors
    /// [`Error`].
    pub fn request(&mut self, patience: Option<Duration>) -> Result<Option<Request>, Error> {
        let until = patience.map(|patience| Instant::now() + patience);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let Some(event) = self.app.event(left)? else { return Ok(None) };
            if let Some(request) = self.obey(event)? {
                return Ok(Some(request));
            }
        }
    }

    /// Replies to a request; once.
    ///
    /// # Errors
    /// [`Error`].
    pub fn reply(&mut self, request: Request, payload: &[u8]) -> Result<(), Error> {
        self.answer(request, REPLIED, payload)
    }

    /// Refuses a request, with a text for people.
    ///
    /// # Errors
    /// [`Error`].
    pub fn refuse(&mut self, request: Request, why: &str) -> Result<(), Error> {
        self.answer(request, REFUSED, why.as_bytes())
    }

    /// Replies for which there was no room, or no client any more.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Publications, requests for one, that were lost on their way here.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Clients that are known.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.askers.len()
    }

    /// The application, to poll its descriptor.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Ends: waits at most `patience` for the way to clients that replies wait for, then takes
    /// everything back. Who asks meanwhile is told that the server went.
    ///
    /// # Errors
    /// [`Error`].
    pub fn leave(mut self, patience: Duration) -> Result<(), Error> {
        let until = Instant::now() + patience;
        while self.askers.values().any(|asker| !asker.waiting.is_empty()) {
            let left = until.saturating_duration_since(Instant::now());
            let Some(event) = self.app.event(Some(left))? else { break };
            self.obey(event)?;
        }
        self.app.leave()
    }

    fn answer(&mut self, request: Request, code: u8, octets: &[u8]) -> Result<(), Error> {
        let Request { client, number, .. } = request;
        let Some(asker) = self.askers.get_mut(&client) else {
            self.unsent += 1;
            return Ok(());
        };
        let mut payload = Vec::with_capacity(REPLY_HEAD + octets.len());
        payload.extend_from_slice(&number.to_be_bytes());
        payload.push(code);
        payload.extend_from_slice(octets);
        if asker.is_started {
            let item = self.service.replies.id.child(client);
            return self.app.publish(&item, self.service.strategy, &payload);
        }
        if asker.waiting.len() >= WAITING_MAX {
            asker.waiting.pop_front();
            self.unsent += 1;
        }
        asker.waiting.push_back(payload);
        Ok(())
    }

    /// Which client an item of requests or replies is of.
    fn client_of(scope: &Path, id: &Id) -> Option<Label> {
        id.last().filter(|_| id.parent() == scope.id.labels())
    }

    fn obey(&mut self, event: Event) -> Result<Option<Request>, Error> {
        match event {
            Event::Data { id, payload, .. } => {
                let Some(client) = Self::client_of(&self.service.calls, &id) else {
                    return Ok(None);
                };
                return self.asked(client, &payload);
            }
            Event::StartPublish(id) => {
                let client = Self::client_of(&self.service.replies, &id);
                let Some(asker) = client.and_then(|client| self.askers.get_mut(&client)) else {
                    return Ok(None);
                };
                asker.is_started = true;
                for payload in asker.waiting.drain(..) {
                    self.app.publish(&id, self.service.strategy, &payload)?;
                }
            }
            Event::StopPublish(id) => {
                if let Some(client) = Self::client_of(&self.service.replies, &id) {
                    self.forget(client)?;
                }
            }
            Event::Missed(count) | Event::Lost(count) => self.lost += count,
            Event::Refused { .. } => self.unsent += 1,
            _ => {}
        }
        Ok(None)
    }

    fn asked(&mut self, client: Label, payload: &Buf) -> Result<Option<Request>, Error> {
        let Some((number, octets)) = payload.split_first_chunk::<REQUEST_HEAD>() else {
            return Ok(None);
        };
        self.asked += 1;
        if !self.askers.contains_key(&client) {
            if self.askers.len() >= CLIENTS_MAX {
                let oldest = self.askers.iter().min_by_key(|(_, asker)| asker.asked);
                let oldest = oldest.map_or(client, |(client, _)| *client);
                self.forget(oldest)?;
            }
            let item = self.service.replies.id.child(client);
            match self.item(Kind::PUBLISH_ITEM, &item)? {
                Status::OK | Status::EXISTS => {}
                // It left meanwhile, or a bound of the node is reached: nobody can be told.
                _ => {
                    self.unsent += 1;
                    return Ok(None);
                }
            }
            self.askers.insert(client, Asker::default());
        }
        if let Some(asker) = self.askers.get_mut(&client) {
            asker.asked = self.asked;
        }
        let number = u64::from_be_bytes(*number);
        Ok(Some(Request { client, number, payload: payload.slice_of(octets) }))
    }

    fn item(&mut self, kind: Kind, item: &Id) -> Result<Status, Error> {
        self.app.request_path(kind, &Path::from(item.clone()), self.service.strategy)
    }

    fn forget(&mut self, client: Label) -> Result<(), Error> {
        if let Some(asker) = self.askers.remove(&client) {
            self.unsent += asker.waiting.len() as u64;
            let item = self.service.replies.id.child(client);
            self.item(Kind::UNPUBLISH_ITEM, &item)?;
        }
        Ok(())
    }
}
