//! The async shell: one tokio task does the I/O; handles send it requests.

mod group;
mod task;
mod trust;

pub use group::{Believe, Group};

use crate::driver::{ClientOptions, Driver};
use crate::error::Error;
use crate::fetch::{FetchError, FetchOptions, Progress};
use crate::producer::{Answer, Incoming, Respond, ResponderId};
use crate::registration::{RegistrationId, RouteOptions};
use crate::request::{Packet, Request, Unanswered};
use onym_face::Face;
use onym_frame::Buf;
use onym_wire::mgmt::{Block as _, ControlParameters, ControlResponse};
use onym_wire::name::Name;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use task::{Ask, Task};
use tokio::sync::{mpsc, oneshot, watch};

/// Asks that wait for the task, at most; further ones wait for their turn.
const ASKS_MAX: usize = 256;
/// Pieces of a fetch that wait for their reader, at most; then the fetch stands still.
const PIECES_MAX: usize = 64;
/// Interests that wait for their reader, at most; further ones are dropped.
const INTERESTS_MAX: usize = 1024;

/// A client whose calls are awaited. Clones share one connection, which ends with the last one.
///
/// ```no_run
/// use onym_client::{FetchOptions, aio::Client};
/// # async fn example() -> Result<(), onym_client::Error> {
/// let client = Client::open(Default::default())?;
/// let mut fetch = client.fetch("/example/film".parse().unwrap(), FetchOptions::default()).await?;
/// while let Some(piece) = fetch.next().await {
///     println!("{} octets", piece.len());
/// }
/// println!("{:?}", fetch.end().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    asks: mpsc::Sender<Ask>,
    up: watch::Receiver<bool>,
}

/// A fetch in progress.
#[derive(Debug)]
pub struct Fetch {
    pieces: mpsc::Receiver<Buf>,
    end: oneshot::Receiver<Result<Progress, FetchError>>,
}

impl Fetch {
    /// The next piece of content, in order; `None` at the end, whose kind [`Fetch::end`] tells.
    pub async fn next(&mut self) -> Option<Buf> {
        self.pieces.recv().await
    }

    /// As [`Fetch::next`], for what is polled: a piece, `None` at a good end, or why there is none.
    /// After `None` or an error it is not polled any more.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Buf, Error>>> {
        if let Some(piece) = ready!(self.pieces.poll_recv(cx)) {
            return Poll::Ready(Some(Ok(piece)));
        }
        Poll::Ready(match ready!(Pin::new(&mut self.end).poll(cx)) {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(Err(Error::Fetch(error))),
            Err(_) => Some(Err(gone())),
        })
    }

    /// How the fetch ended. Pieces that were not read are dropped.
    ///
    /// # Errors
    /// [`Error::Fetch`].
    pub async fn end(mut self) -> Result<Progress, Error> {
        while self.pieces.recv().await.is_some() {}
        self.end.await.map_err(|_| gone())?.map_err(Error::Fetch)
    }
}

/// Interests under a prefix, for an application that answers in its own time.
#[derive(Debug)]
pub struct Interests {
    incoming: mpsc::Receiver<Incoming>,
}

impl Interests {
    /// The next Interest; `None` when the client is gone. Answer it with [`Client::reply`].
    pub async fn next(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }
}

fn gone() -> Error {
    Error::Disconnected("the client has ended".into())
}

impl Client {
    /// Connects to the node that `options` name, or the first that answers at the usual places.
    /// Resolving a host name and opening the socket happen in this call.
    ///
    /// # Errors
    /// [`Error::Search`] and [`Error::NoNode`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(options: ClientOptions) -> Result<Self, Error> {
        Ok(Self::start(Driver::open(options)?))
    }

    /// A client over an open face. It does not connect again.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn over(face: Box<dyn Face>) -> Self {
        Self::start(Driver::over(face, None, ClientOptions::default()))
    }

    fn start(driver: Driver) -> Self {
        let (asks, receiver) = mpsc::channel(ASKS_MAX);
        let (state, up) = watch::channel(true);
        tokio::spawn(Task::new(driver, receiver, state).run());
        Self { asks, up }
    }

    async fn ask(&self, ask: Ask) -> Result<(), Error> {
        self.asks.send(ask).await.map_err(|_| gone())
    }

    /// Whether the connection is up, and when that changes.
    #[must_use]
    pub fn connection(&self) -> watch::Receiver<bool> {
        self.up.clone()
    }

    /// Sends `request` and waits for its end.
    ///
    /// # Errors
    /// [`Error::Unanswered`].
    pub async fn request(&self, request: Request) -> Result<Packet, Error> {
        let name = request.name.clone();
        let (done, end) = oneshot::channel();
        self.ask(Ask::Request(request, done)).await?;
        end.await.map_err(|_| gone())??.map_err(|why| Error::Unanswered { name, why })
    }

    /// Sends an Interest that is encoded already, with another Nonce; its end comes later.
    async fn request_encoded(
        &self,
        interest: Vec<u8>,
    ) -> Result<oneshot::Receiver<Result<Result<Packet, Unanswered>, Error>>, Error> {
        let (done, end) = oneshot::channel();
        self.ask(Ask::Encoded(interest, done)).await?;
        Ok(end)
    }

    /// Sends the command `[module, verb]` and waits for its answer.
    ///
    /// # Errors
    /// [`Error::Refused`] for a code of 400 or more, [`Error::NoAnswer`], [`Error::Answer`].
    pub async fn command(
        &self,
        verb: [&'static str; 2],
        parameters: ControlParameters,
    ) -> Result<ControlParameters, Error> {
        let command = || verb.join("/");
        let (done, end) = oneshot::channel();
        self.ask(Ask::Command(verb, Box::new(parameters), done)).await?;
        let packet = end
            .await
            .map_err(|_| gone())??
            .map_err(|why: Unanswered| Error::NoAnswer { command: command(), why })?;
        let response = ControlResponse::parse(packet.data().content)
            .map_err(|source| Error::Answer { command: command(), source })?;
        if response.is_success() {
            return Ok(response.body.unwrap_or_default());
        }
        Err(Error::Refused { command: command(), code: response.code, text: response.text })
    }

    /// Starts to fetch the segmented object `name`.
    ///
    /// # Errors
    /// [`Error::TooMany`] fetches.
    pub async fn fetch(&self, name: Name, options: FetchOptions) -> Result<Fetch, Error> {
        let (pieces, receiver) = mpsc::channel(PIECES_MAX);
        let (done, end) = oneshot::channel();
        let (started, start) = oneshot::channel();
        let options = Box::new(options);
        self.ask(Ask::Fetch { name, options, pieces, done, started }).await?;
        start.await.map_err(|_| gone())??;
        Ok(Fetch { pieces: receiver, end })
    }

    /// Answers Interests under `prefix` with `respond`, on the client's task.
    ///
    /// # Errors
    /// [`Error::TooMany`] responders.
    pub async fn respond(
        &self,
        prefix: Name,
        respond: impl Respond + 'static,
    ) -> Result<ResponderId, Error> {
        let (done, end) = oneshot::channel();
        self.ask(Ask::Respond(prefix, Box::new(respond), done)).await?;
        end.await.map_err(|_| gone())?
    }

    /// Hands the Interests under `prefix` to the application.
    ///
    /// # Errors
    /// [`Error::TooMany`] responders.
    pub async fn interests(&self, prefix: Name) -> Result<Interests, Error> {
        let (sender, incoming) = mpsc::channel(INTERESTS_MAX);
        let respond = move |interest: &Incoming, _: &mut Vec<u8>| {
            // Full: the application is too slow, and the consumer asks again.
            let _ = sender.try_send(interest.clone());
            Answer::Nothing
        };
        self.respond(prefix, respond).await?;
        Ok(Interests { incoming })
    }

    /// Answers an Interest with a Data element.
    ///
    /// # Errors
    /// [`Error::Disconnected`] when the client has ended.
    pub async fn reply(&self, incoming: Incoming, data: Buf) -> Result<(), Error> {
        self.ask(Ask::Reply(incoming, data)).await
    }

    /// Registers `prefix` and waits until the node accepted it. It stays registered, also after the
    /// node was gone, until [`Client::unregister`].
    ///
    /// # Errors
    /// [`Error::NotRegistered`] with the node's first refusal.
    pub async fn register(
        &self,
        prefix: Name,
        options: RouteOptions,
    ) -> Result<RegistrationId, Error> {
        let (done, end) = oneshot::channel();
        self.ask(Ask::Register(prefix, options, done)).await?;
        end.await.map_err(|_| gone())?
    }

    /// Ends a registration and tells the node.
    ///
    /// # Errors
    /// [`Error::Disconnected`] when the client has ended.
    pub async fn unregister(&self, id: RegistrationId) -> Result<(), Error> {
        self.ask(Ask::Unregister(id)).await
    }
}
