//! A sync group over a client: what its members publish, in order, and publishing to it.

use super::{ASKS_MAX, Client, Interests, gone};
use crate::error::Error;
use crate::producer::Incoming;
use crate::registration::{RegistrationId, RouteOptions};
use onym_crypto::edge;
use onym_crypto::verify::Signed;
use onym_endpoint::{Inbound, Transmit};
use onym_frame::Buf;
use onym_sync::alo::{Alo, AloConfig, AloEvent, PublishError};
use onym_tables::Tick;
use onym_wire::mgmt::ControlParameters;
use onym_wire::{Data, Interest, Name, types};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// Events that wait for the application, at most; then the group stands still.
const EVENTS_MAX: usize = 1024;
/// The strategy that sync needs: every member hears every vector.
const MULTICAST: &str = "/localhost/nfd/strategy/multicast";

/// Whose vectors and publications a member believes.
pub enum Believe {
    /// Everybody's: only damage is noticed, where the signature is a digest.
    Anybody,
    /// Those of who knows this secret (HMAC).
    Secret(Vec<u8>),
    /// Those that this function accepts. It is called on a task of the runtime and should be quick.
    Those(Box<dyn FnMut(&Data<'_>) -> bool + Send>),
}

impl std::fmt::Debug for Believe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Anybody => "Anybody",
            Self::Secret(_) => "Secret",
            Self::Those(_) => "Those",
        })
    }
}

impl Believe {
    fn accepts(&mut self, packet: &[u8]) -> bool {
        let Ok(data) = Data::parse(packet) else { return false };
        let signed = Signed::data(&data);
        match self {
            Self::Anybody => {
                signed.signature_type != types::SIGNATURE_DIGEST_SHA256
                    || signed.verify_digest().is_ok()
            }
            Self::Secret(secret) => signed.verify_hmac(secret).is_ok(),
            Self::Those(accepts) => accepts(&data),
        }
    }
}

enum Ask {
    Publish { content: Vec<u8>, state: Vec<u8>, done: oneshot::Sender<Result<u64, PublishError>> },
    Subscribe(Name),
    Unsubscribe(Name),
}

/// A member of a sync group. It leaves when it is dropped.
///
/// ```no_run
/// use onym_client::aio::{Believe, Client};
/// use onym_crypto::Signer;
/// use onym_sync::alo::{AloConfig, AloEvent, Snapshots};
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::open(Default::default())?;
/// let (group, node) = ("/example/chat".parse()?, "/alice".parse()?);
/// let boot = 1_795_444_162; // seconds since 1970, more than the last time
/// let config =
///     AloConfig::new(group, node, boot, Signer::digest(), Snapshots::None { last: 10 });
/// let mut chat = client.join(config, Believe::Anybody).await?;
/// chat.subscribe("/".parse()?).await?;
/// chat.publish(b"hello".to_vec(), Vec::new()).await?;
/// while let Some(event) = chat.next().await {
///     if let AloEvent::Publication { node, content, .. } = event {
///         println!("{node}: {}", String::from_utf8_lossy(&content));
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Group {
    asks: mpsc::Sender<Ask>,
    events: mpsc::Receiver<AloEvent>,
}

impl Group {
    /// Publishes `content`. `state` is what a snapshot says, should one be due: the whole state of
    /// this member with this publication. Its sequence number.
    ///
    /// # Errors
    /// [`Error::Publish`]; [`Error::Disconnected`] when the client has ended.
    pub async fn publish(&self, content: Vec<u8>, state: Vec<u8>) -> Result<u64, Error> {
        let (done, end) = oneshot::channel();
        self.ask(Ask::Publish { content, state, done }).await?;
        Ok(end.await.map_err(|_| gone())??)
    }

    /// Fetches what members under `prefix` publish; the empty name is for all.
    ///
    /// # Errors
    /// [`Error::Disconnected`] when the client has ended.
    pub async fn subscribe(&self, prefix: Name) -> Result<(), Error> {
        self.ask(Ask::Subscribe(prefix)).await
    }

    /// Ends a subscription; a later one goes on where it ended.
    ///
    /// # Errors
    /// [`Error::Disconnected`] when the client has ended.
    pub async fn unsubscribe(&self, prefix: Name) -> Result<(), Error> {
        self.ask(Ask::Unsubscribe(prefix)).await
    }

    /// The next thing that happened; verification is answered already. `None` when the client has
    /// ended. May be dropped while it waits without losing anything.
    pub async fn next(&mut self) -> Option<AloEvent> {
        self.events.recv().await
    }

    async fn ask(&self, ask: Ask) -> Result<(), Error> {
        self.asks.send(ask).await.map_err(|_| gone())
    }
}

impl Client {
    /// Joins a group: registers its prefix and that of our publications, asks the node for the
    /// multicast strategy (which it may refuse: then an operator chooses it), and starts. Only
    /// version 3 of the protocol.
    ///
    /// # Errors
    /// [`Error::NotRegistered`], [`Error::TooMany`].
    pub async fn join(&self, config: AloConfig, believe: Believe) -> Result<Group, Error> {
        let origin = Instant::now();
        let alo = Alo::new(Tick(0), edge::unix_now_ms(), config, edge::random_u64());
        let mut registered = Vec::new();
        // Without the version: a longer route would hide those of peers that register the group.
        let sync = alo.svs().config().group.clone();
        let vectors = self.interests(sync.clone()).await?;
        let data = match alo.data_prefix() {
            Some(prefix) => Some((self.interests(prefix.clone()).await?, prefix)),
            None => None,
        };
        registered.push(self.register(sync.clone(), RouteOptions::default()).await?);
        let parameters = ControlParameters {
            name: Some(sync),
            strategy: MULTICAST.parse().ok(),
            ..ControlParameters::default()
        };
        if let Err(error) = self.command(["strategy-choice", "set"], parameters).await {
            tracing::debug!(%error, "multicast-not-chosen");
        }
        let data = match data {
            Some((interests, prefix)) => {
                registered.push(self.register(prefix, RouteOptions::default()).await?);
                Some(interests)
            }
            None => None,
        };
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let (answers, answered) = mpsc::channel(ASKS_MAX);
        let task = Task {
            client: self.clone(),
            alo,
            believe,
            origin,
            asked,
            events: sender,
            held: None,
            vectors,
            data,
            answers,
            answered,
        };
        tokio::spawn(task.run(registered));
        Ok(Group { asks, events })
    }
}

struct Task {
    client: Client,
    alo: Alo,
    believe: Believe,
    origin: Instant,
    asked: mpsc::Receiver<Ask>,
    events: mpsc::Sender<AloEvent>,
    /// Found no room: until it does nothing but asks and timers is looked at.
    held: Option<AloEvent>,
    vectors: Interests,
    data: Option<Interests>,
    /// Data that our Interests brought.
    answers: mpsc::Sender<Buf>,
    answered: mpsc::Receiver<Buf>,
}

enum Woken {
    Ask(Option<Ask>),
    Interest(Option<Incoming>),
    Data(Option<Buf>),
    Up,
    Timer,
}

impl Task {
    fn now(&self) -> Tick {
        Tick(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    async fn run(mut self, registered: Vec<RegistrationId>) {
        let mut up = self.client.connection();
        let room = self.events.clone();
        while self.settle(None).await.is_ok() {
            let (deadline, is_stalled) = (self.alo.poll_timeout(), self.held.is_some());
            let woken = tokio::select! {
                ask = self.asked.recv() => Woken::Ask(ask),
                incoming = self.vectors.next(), if !is_stalled => Woken::Interest(incoming),
                incoming = next_of(&mut self.data), if !is_stalled => Woken::Interest(incoming),
                data = self.answered.recv(), if !is_stalled => Woken::Data(data),
                room = room.reserve(), if is_stalled => if room.is_ok() { Woken::Timer } else { break },
                changed = up.changed() => if changed.is_ok() { Woken::Up } else { break },
                () = sleep_until(self.origin, deadline) => Woken::Timer,
            };
            let now = self.now();
            match woken {
                Woken::Ask(Some(ask)) => self.obey(now, ask),
                Woken::Interest(Some(incoming)) => {
                    self.alo.receive(now, &Inbound::bare(incoming.interest().wire));
                    if self.settle(Some(incoming)).await.is_err() {
                        break;
                    }
                }
                Woken::Data(Some(data)) => drop(self.alo.receive(now, &Inbound::bare(&data))),
                Woken::Up if *up.borrow_and_update() => self.alo.connected(now),
                Woken::Up | Woken::Timer => {}
                Woken::Ask(None) | Woken::Interest(None) | Woken::Data(None) => break,
            }
            self.alo.handle_timeout(self.now());
        }
        for id in registered {
            let _ = self.client.unregister(id).await;
        }
    }

    fn obey(&mut self, now: Tick, ask: Ask) {
        match ask {
            Ask::Publish { content, state, done } => {
                let _ = done.send(self.alo.publish(now, &content, || state));
            }
            Ask::Subscribe(prefix) => self.alo.subscribe(now, prefix),
            Ask::Unsubscribe(prefix) => self.alo.unsubscribe(&prefix),
        }
    }

    /// Sends what is to be sent, and tells what happened. A Data answers `incoming`.
    async fn settle(&mut self, mut incoming: Option<Incoming>) -> Result<(), Error> {
        loop {
            self.tell()?;
            let Some(transmit) = self.alo.poll_transmit(self.now()) else { return Ok(()) };
            let is_data = transmit.wire.first().copied().map(u32::from) == Some(types::DATA);
            match (is_data, incoming.take()) {
                (true, Some(asked)) => {
                    self.client.reply(asked, Buf::copy_from(&transmit.wire)).await?;
                }
                (true, None) => {}
                (false, kept) => {
                    incoming = kept;
                    self.send(transmit).await?;
                }
            }
        }
    }

    /// Tells what happened, as far as the application takes it.
    fn tell(&mut self) -> Result<(), Error> {
        while let Some(event) = self.held.take().or_else(|| self.alo.poll_event()) {
            if let AloEvent::Verify { id, packet } = event {
                let judged = self.believe.accepts(&packet).into();
                self.alo.verified(self.now(), id, judged);
                continue;
            }
            match self.events.try_send(event) {
                Ok(()) => {}
                Err(TrySendError::Full(event)) => {
                    self.held = Some(event);
                    return Ok(());
                }
                Err(TrySendError::Closed(_)) => return Err(gone()),
            }
        }
        Ok(())
    }

    /// Sends an Interest. Its answer comes by `answered`; repeating it is the group's matter.
    async fn send(&mut self, transmit: Transmit) -> Result<(), Error> {
        let is_vector = Interest::parse(&transmit.wire).is_ok_and(|i| i.app_parameters.is_some());
        let answer = self.client.request_encoded(transmit.wire).await?;
        if is_vector {
            return Ok(());
        }
        let answers = self.answers.clone();
        tokio::spawn(async move {
            if let Ok(Ok(Ok(packet))) = answer.await {
                let _ = answers.send(packet.bytes().clone()).await;
            }
        });
        Ok(())
    }
}

async fn next_of(interests: &mut Option<Interests>) -> Option<Incoming> {
    match interests {
        Some(interests) => interests.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(origin: Instant, deadline: Tick) {
    if deadline == Tick::NEVER {
        return std::future::pending().await;
    }
    tokio::time::sleep_until((origin + Duration::from_nanos(deadline.0)).into()).await;
}
