//! The task that owns the driver: takes requests, returns answers, waits for the face.

use crate::driver::{Driver, Notice};
use crate::endpoint::Event;
use crate::error::Error;
use crate::fetch::{FetchError, FetchId, FetchOptions, Progress};
use crate::producer::{Incoming, Respond, ResponderId};
use crate::registration::{RegistrationId, RouteOptions};
use crate::request::{Packet, Request, RequestId, Unanswered};
use onym_frame::Buf;
use onym_wire::mgmt::ControlParameters;
use onym_wire::name::Name;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

type Done<T> = oneshot::Sender<Result<T, Error>>;
type Answered = Done<Result<Packet, Unanswered>>;

/// What a handle asks.
pub(super) enum Ask {
    Request(Request, Answered),
    /// An Interest element.
    Encoded(Vec<u8>, Answered),
    Command([&'static str; 2], Box<ControlParameters>, Answered),
    Fetch {
        name: Name,
        options: Box<FetchOptions>,
        pieces: mpsc::Sender<Buf>,
        done: oneshot::Sender<Result<Progress, FetchError>>,
        started: Done<()>,
    },
    Respond(Name, Box<dyn Respond>, Done<ResponderId>),
    Reply(Incoming, Buf),
    Register(Name, RouteOptions, Done<RegistrationId>),
    Unregister(RegistrationId),
}

struct Reader {
    id: FetchId,
    pieces: mpsc::Sender<Buf>,
    done: oneshot::Sender<Result<Progress, FetchError>>,
    /// Read from the endpoint, but its channel was full.
    held: Option<Buf>,
}

pub(super) struct Task {
    driver: Driver,
    asks: mpsc::Receiver<Ask>,
    up: watch::Sender<bool>,
    requests: HashMap<RequestId, Answered>,
    registering: HashMap<RegistrationId, (Name, Done<RegistrationId>)>,
    readers: Vec<Reader>,
    /// The face's descriptor, and which face it is of.
    fd: Option<(u64, AsyncFd<OwnedFd>)>,
}

/// What ended the wait.
enum Woken {
    Ask(Box<Ask>),
    /// All handles are gone.
    Unasked,
    Other,
}

impl Task {
    pub(super) fn new(driver: Driver, asks: mpsc::Receiver<Ask>, up: watch::Sender<bool>) -> Self {
        Self {
            driver,
            asks,
            up,
            requests: HashMap::new(),
            registering: HashMap::new(),
            readers: Vec::new(),
            fd: None,
        }
    }

    /// Runs until all handles are gone, or the connection is gone for good.
    pub(super) async fn run(mut self) {
        loop {
            self.driver.turn();
            self.events();
            self.readers();
            self.notices();
            if self.driver.is_closed() && self.requests.is_empty() && self.readers.is_empty() {
                return;
            }
            if let Err(error) = self.watch_face() {
                tracing::warn!(%error, "cannot-wait-for-face");
                return;
            }
            match self.wait().await {
                Woken::Ask(ask) => self.ask(*ask),
                Woken::Unasked => return,
                Woken::Other => {}
            }
            // What else was asked meanwhile, so that a burst of asks costs one turn.
            while let Ok(ask) = self.asks.try_recv() {
                self.ask(ask);
            }
        }
    }

    fn ask(&mut self, ask: Ask) {
        let now = self.driver.now();
        let endpoint = &mut self.driver.endpoint;
        match ask {
            Ask::Request(request, done) => match endpoint.request(now, &request) {
                Ok(id) => drop(self.requests.insert(id, done)),
                Err(error) => drop(done.send(Err(error.into()))),
            },
            Ask::Encoded(interest, done) => match endpoint.request_encoded(now, interest) {
                Ok(id) => drop(self.requests.insert(id, done)),
                Err(error) => drop(done.send(Err(error.into()))),
            },
            Ask::Command(verb, parameters, done) => {
                match endpoint.command(now, verb, &parameters) {
                    Ok(id) => drop(self.requests.insert(id, done)),
                    Err(error) => drop(done.send(Err(error.into()))),
                }
            }
            Ask::Fetch { name, options, pieces, done, started } => {
                let fetch = endpoint.fetch(now, name, *options).map_err(Error::from);
                let _ = started.send(fetch.map(|id| {
                    self.readers.push(Reader { id, pieces, done, held: None });
                }));
            }
            Ask::Respond(prefix, respond, done) => {
                let _ = done.send(endpoint.respond(prefix, respond).map_err(Error::from));
            }
            Ask::Reply(incoming, data) => endpoint.reply(now, &incoming, data),
            Ask::Register(prefix, options, done) => {
                match endpoint.register(prefix.clone(), options) {
                    Ok(id) => drop(self.registering.insert(id, (prefix, done))),
                    Err(error) => drop(done.send(Err(error.into()))),
                }
            }
            Ask::Unregister(id) => drop(endpoint.unregister(now, id)),
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.driver.endpoint.poll_event() {
            match event {
                Event::Answered(id, answer) => {
                    if let Some(done) = self.requests.remove(&id) {
                        let _ = done.send(Ok(answer));
                    }
                }
                Event::Registered(id) => {
                    if let Some((_, done)) = self.registering.remove(&id) {
                        let _ = done.send(Ok(id));
                    }
                }
                Event::NotRegistered(id, why) => match self.registering.remove(&id) {
                    Some((prefix, done)) => {
                        let now = self.driver.now();
                        self.driver.endpoint.unregister(now, id);
                        let _ = done.send(Err(Error::NotRegistered { prefix, why }));
                    }
                    None => tracing::warn!(%why, "not-registered"),
                },
            }
        }
    }

    /// Hands out what fetches have, as far as their readers take it.
    fn readers(&mut self) {
        let endpoint = &mut self.driver.endpoint;
        let mut at = 0;
        while let Some(reader) = self.readers.get_mut(at) {
            while let Some(piece) = reader.held.take().or_else(|| endpoint.fetch_read(reader.id)) {
                match reader.pieces.try_send(piece) {
                    Ok(()) => {}
                    Err(TrySendError::Full(piece)) => {
                        reader.held = Some(piece);
                        break;
                    }
                    Err(TrySendError::Closed(_)) => {
                        endpoint.fetch_cancel(reader.id);
                        break;
                    }
                }
            }
            if reader.held.is_some() {
                at += 1;
                continue;
            }
            if let Some(end) = endpoint.fetch_end(reader.id) {
                let _ = self.readers.swap_remove(at).done.send(end);
            } else if reader.pieces.is_closed() {
                endpoint.fetch_cancel(reader.id);
                self.readers.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn notices(&mut self) {
        while let Some(notice) = self.driver.poll_notice() {
            match &notice {
                Notice::Lost(why) => tracing::warn!(%why, "connection-lost"),
                Notice::Back => tracing::info!("connection-back"),
                Notice::GivenUp(why) => tracing::warn!(%why, "connection-given-up"),
            }
            self.up.send_replace(notice == Notice::Back);
        }
    }

    /// Registers the descriptor of a face that is new.
    fn watch_face(&mut self) -> io::Result<()> {
        let generation = self.driver.generation();
        match self.driver.face() {
            None => self.fd = None,
            Some(_) if self.fd.as_ref().is_some_and(|(of, _)| *of == generation) => {}
            Some(face) => {
                // The old one first: it may have had the same number.
                self.fd = None;
                // A duplicate: the face may be closed while this is still registered.
                let duplicate = face.fd().try_clone_to_owned()?;
                // Deprecated for types that could lie about their descriptor; an OwnedFd cannot,
                // and the replacement is unsafe.
                #[allow(deprecated)]
                let fd = AsyncFd::new(duplicate)?;
                self.fd = Some((generation, fd));
            }
        }
        Ok(())
    }

    async fn wait(&mut self) -> Woken {
        let deadline = self.driver.deadline();
        if deadline.is_some_and(|at| at <= Instant::now()) {
            // More is there already; let other tasks run in between.
            tokio::task::yield_now().await;
            return Woken::Other;
        }
        let wants_write = self.driver.wants_write();
        let stalled = self.readers.iter().find(|r| r.held.is_some()).map(|r| r.pieces.clone());
        tokio::select! {
            ask = self.asks.recv() => ask.map_or(Woken::Unasked, |ask| Woken::Ask(Box::new(ask))),
            () = ready(self.fd.as_ref().map(|(_, fd)| fd), wants_write) => Woken::Other,
            () = sleep_until(deadline) => Woken::Other,
            () = room(stalled) => Woken::Other,
        }
    }
}

/// Waits until the face can be read, or written when that is wanted.
async fn ready(fd: Option<&AsyncFd<OwnedFd>>, wants_write: bool) {
    let Some(fd) = fd else { return std::future::pending().await };
    // Cleared before the turn that follows, which takes everything there is: what comes after
    // that is a new edge.
    let writable = async {
        if !wants_write {
            return std::future::pending().await;
        }
        if let Ok(mut guard) = fd.writable().await {
            guard.clear_ready();
        }
    };
    let readable = async {
        if let Ok(mut guard) = fd.readable().await {
            guard.clear_ready();
        }
    };
    tokio::select! {
        () = readable => {}
        () = writable => {}
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Waits until the reader of a stalled fetch takes a piece, or goes away.
async fn room(stalled: Option<mpsc::Sender<Buf>>) {
    match stalled {
        Some(pieces) => drop(pieces.reserve().await),
        None => std::future::pending().await,
    }
}
