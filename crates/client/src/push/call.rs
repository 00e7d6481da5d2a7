//! Requests and replies over items (P-76, P-77): a convention between applications.

mod server;
#[cfg(test)]
mod tests;

pub use server::{Request, Server};

use super::{App, Error, Event};
use onym_frame::Buf;
use onym_wire::push::{Id, Kind, Path, Status, Strategy};
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Replies that a client waits for.
pub const OPEN_MAX: usize = 1024;
/// Clients that a server knows.
pub const CLIENTS_MAX: usize = 1024;
/// Replies that wait for the way to a client.
pub const WAITING_MAX: usize = 64;

/// The words of the scopes of requests and of replies.
const WORDS: [&str; 2] = ["~call", "~reply"];
/// Octets before those of a request.
const REQUEST_HEAD: usize = 8;
/// Octets before those of a reply.
const REPLY_HEAD: usize = 9;
/// Codes of replies.
const REPLIED: u8 = 0;
const REFUSED: u8 = 1;

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The exchange with the node failed.
    #[error(transparent)]
    App(#[from] Error),
    /// Nobody serves.
    #[error("{0}: nobody serves requests there")]
    NoServer(String),
    /// The servers ended, or cannot be reached any more; the request may have been served.
    #[error("the server went before it replied")]
    Gone,
    /// The server refused, with a text for people.
    #[error("the server refused: {0}")]
    Refused(String),
    /// Nothing came in time; the request may have been served.
    #[error("no reply in time")]
    Late,
    /// Nothing came in time, and so many publications for this application were lost meanwhile.
    #[error("no reply in time, and {0} publications for this application were lost")]
    Lost(u64),
    /// Too many replies are waited for: take some, or let some go.
    #[error("too many replies are waited for already")]
    Full,
    /// What came is no reply.
    #[error("what came as the reply is none")]
    Malformed,
}

/// A reply, or why there is none.
#[derive(Debug)]
pub struct Reply {
    /// The number of the request.
    pub number: u64,
    /// What came of it.
    pub result: Result<Buf, CallError>,
}

/// The scopes of a service.
#[derive(Debug)]
struct Service {
    path: Path,
    calls: Path,
    replies: Path,
    strategy: Strategy,
}

impl Service {
    /// Publishes the scopes of the service `path`, those above it are there.
    fn publish(app: &mut App, path: &Path, strategy: Strategy) -> Result<Self, Error> {
        let [calls, replies] = WORDS.map(|word| path.beneath(word));
        for scope in [path, &calls, &replies] {
            app.join(Kind::PUBLISH_SCOPE, scope, strategy)?;
        }
        Ok(Self { path: path.clone(), calls, replies, strategy })
    }
}

/// A client of a service. One that is dropped takes back what it asked for.
#[derive(Debug)]
pub struct Client {
    app: App,
    service: Service,
    /// The item of its requests.
    item: Id,
    /// The item of replies to it.
    replies: Id,
    is_started: bool,
    last: u64,
    open: BTreeSet<u64>,
    arrived: VecDeque<Reply>,
    /// Publications lost since nothing was open.
    lost: u64,
}

impl Client {
    /// An application as a client of the service `path`, the scopes above which are there.
    ///
    /// # Errors
    /// As [`App::publish_scope`].
    pub fn new(mut app: App, path: &Path, strategy: Strategy) -> Result<Self, Error> {
        let service = Service::publish(&mut app, path, strategy)?;
        let token = app.token();
        let [item, replies] = [&service.calls, &service.replies].map(|scope| scope.id.child(token));
        app.subscribe_item(&replies, strategy)?;
        app.publish_item(&item, strategy)?;
        Ok(Self {
            app,
            service,
            item,
            replies,
            is_started: false,
            last: 0,
            open: BTreeSet::new(),
            arrived: VecDeque::new(),
            lost: 0,
        })
    }

    /// Sends a request, and waits at most `patience` for a server to be there; its number.
    ///
    /// # Errors
    /// [`CallError::NoServer`]; [`CallError::Full`]; [`CallError::App`].
    pub fn send(&mut self, payload: &[u8], patience: Duration) -> Result<u64, CallError> {
        if self.open.len() + self.arrived.len() >= OPEN_MAX {
            return Err(CallError::Full);
        }
        let until = Instant::now() + patience;
        // What came before may say that the server went.
        while let Some(event) = self.app.event(Some(Duration::ZERO))? {
            self.obey(event);
        }
        while !self.is_started {
            match self.app.event(Some(until.saturating_duration_since(Instant::now())))? {
                Some(event) => self.obey(event),
                None => return Err(CallError::NoServer(self.service.path.to_string())),
            }
        }
        self.last += 1;
        let request = [&self.last.to_be_bytes(), payload].concat();
        self.app.publish(&self.item, self.service.strategy, &request)?;
        self.open.insert(self.last);
        Ok(self.last)
    }

    /// The next reply that came, or `None` after `patience`.
    ///
    /// # Errors
    /// [`CallError::App`]; what became of a request is in the [`Reply`].
    pub fn reply(&mut self, patience: Duration) -> Result<Option<Reply>, CallError> {
        let until = Instant::now() + patience;
        loop {
            if let Some(reply) = self.arrived.pop_front() {
                return Ok(Some(reply));
            }
            match self.app.event(Some(until.saturating_duration_since(Instant::now())))? {
                Some(event) => self.obey(event),
                None => return Ok(None),
            }
        }
    }

    /// Sends a request and waits for its reply, `patience` for both together. Replies to others wait
    /// for [`Client::reply`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&mut self, payload: &[u8], patience: Duration) -> Result<Buf, CallError> {
        let until = Instant::now() + patience;
        let number = self.send(payload, patience)?;
        loop {
            if let Some(at) = self.arrived.iter().position(|reply| reply.number == number) {
                return self.arrived.remove(at).map_or(Err(CallError::Late), |reply| reply.result);
            }
            match self.app.event(Some(until.saturating_duration_since(Instant::now())))? {
                Some(event) => self.obey(event),
                None => return Err(self.give_up(number)),
            }
        }
    }

    /// Waits no longer for the reply with this number; why it did not come.
    pub fn give_up(&mut self, number: u64) -> CallError {
        self.open.remove(&number);
        let lost = self.lost;
        if self.open.is_empty() {
            // Nothing that is asked later was lost.
            self.lost = 0;
        }
        if lost == 0 { CallError::Late } else { CallError::Lost(lost) }
    }

    /// The application, to poll its descriptor.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.app
    }

    fn obey(&mut self, event: Event) {
        match event {
            Event::StartPublish(id) if id == self.item => self.is_started = true,
            Event::StopPublish(id) | Event::Refused { id, status: Status::STOPPED }
                if id == self.item =>
            {
                self.is_started = false;
                self.fail_all();
            }
            Event::Data { id, payload, .. } if id == self.replies => self.arrive(&payload),
            Event::Missed(count) | Event::Lost(count) if !self.open.is_empty() => {
                self.lost = self.lost.saturating_add(count);
            }
            _ => {}
        }
        if self.open.is_empty() {
            self.lost = 0;
        }
    }

    fn fail_all(&mut self) {
        let gone = |number| Reply { number, result: Err(CallError::Gone) };
        self.arrived.extend(std::mem::take(&mut self.open).into_iter().map(gone));
    }

    fn arrive(&mut self, payload: &Buf) {
        // What has no number is nothing that is waited for.
        let Some((number, rest)) = payload.split_first_chunk() else { return };
        let number = u64::from_be_bytes(*number);
        if !self.open.remove(&number) {
            return;
        }
        let result = match rest.split_first() {
            Some((&REPLIED, octets)) => Ok(payload.slice_of(octets)),
            Some((&REFUSED, text)) => {
                Err(CallError::Refused(String::from_utf8_lossy(text).into_owned()))
            }
            _ => Err(CallError::Malformed),
        };
        self.arrived.push_back(Reply { number, result });
    }
}
