//! An application of the push half: publishes and subscribes over its node (spec/push.md,
//! section 8).
//!
//! ```no_run
//! use onym_client::push::{App, Event};
//! use onym_wire::push::Strategy;
//!
//! let mut app = App::open(None, "example")?;
//! app.publish_scope(&"/1".parse()?, Strategy::DOMAIN_LOCAL)?;
//! app.publish_item(&"/1/2".parse()?, Strategy::DOMAIN_LOCAL)?;
//! while let Some(event) = app.event(None)? {
//!     if let Event::StartPublish(id) = event {
//!         app.publish(&id, Strategy::DOMAIN_LOCAL, b"hello")?;
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod call;
mod exchange;
mod inbox;
pub mod live;
mod said;
mod token;

pub use said::{Error, Event, NodeInfo, Publication, Retain, Sent};

use crate::error::Error as ClientError;
use crate::transport::{self, NodeUri, Surroundings};
use inbox::Inbox;
use onym_board::{BoardError, Subscriber, broker};
use onym_face::{CHUNK_LEN, Face};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_sys::epoll::{Epoll, Interest, Ready};
use onym_wire::push::app::{Message, kind};
use onym_wire::push::{Id, Kind, Path, Status, Strategy};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Octets that wait to be sent before a publication waits for the node.
const QUEUE_MAX: usize = 1 << 20;
/// Octets that leave at once; less waits for [`App::event`] or [`App::drain`].
const FLUSH_AT: usize = 64 << 10;
/// Frames taken from the face at once, about.
const RX_BUDGET: usize = 32;
/// How long the node may take to answer a registration.
const REGISTER_PATIENCE: Duration = Duration::from_secs(5);
/// How long a request may take: longer than a dispatcher looks for a rendezvous.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);

/// How often a flag that ends the waiting is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// An application, connected and registered.
#[derive(Debug)]
pub struct App {
    face: Box<dyn Face>,
    epoll: Epoll,
    ready: Vec<Ready>,
    watches_writing: bool,
    pool: BufPool,
    frames: Vec<RxFrame>,
    queue: TxQueue,
    /// Octets in the queue with which it is flushed next: a full socket is not asked again for each
    /// publication.
    flush_at: usize,
    /// A message on its way into the queue.
    scratch: Vec<u8>,
    inbox: Inbox,
    /// Events came, and there was no more behind them.
    is_read_up: bool,
    /// The last look at the face took all there was.
    is_idle: bool,
    info: Option<NodeInfo>,
    last_tag: u32,
    partial: Option<exchange::Partial>,
    /// Where the node brings blackboards together.
    boards: Option<PathBuf>,
    stop: Option<Arc<AtomicBool>>,
}

impl App {
    /// Connects to `node`, or to the first that answers at the usual places, and registers under a
    /// name for people.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(node: Option<&str>, name: &str) -> Result<Self, Error> {
        let places = transport::candidates(node, &Surroundings::of_process());
        let (places, _) = places.map_err(ClientError::from)?;
        let mut tried: Vec<(NodeUri, String)> = Vec::new();
        for uri in places {
            match transport::open(&uri) {
                Ok(face) => {
                    let mut app = Self::over(face, name)?;
                    if let NodeUri::Unix(path) | NodeUri::Shm(path) = &uri {
                        app.boards = Some(broker::path_beside(path));
                    }
                    return Ok(app);
                }
                Err(error) => tried.push((uri, error.to_string())),
            }
        }
        Err(ClientError::NoNode(tried).into())
    }

    /// Registers over a face that is there already.
    ///
    /// # Errors
    /// [`Error`].
    pub fn over(face: Box<dyn Face>, name: &str) -> Result<Self, Error> {
        let gone = |e: std::io::Error| Error::Gone(e.to_string());
        let epoll = Epoll::new().map_err(gone)?;
        epoll.add(face.fd(), 0, Interest::Read).map_err(gone)?;
        let mut app = Self {
            face,
            epoll,
            ready: Vec::new(),
            watches_writing: false,
            pool: BufPool::new(CHUNK_LEN, 512),
            frames: Vec::new(),
            queue: TxQueue::new(usize::MAX),
            flush_at: FLUSH_AT,
            scratch: Vec::new(),
            inbox: Inbox::default(),
            is_read_up: false,
            is_idle: false,
            info: None,
            last_tag: 0,
            partial: None,
            boards: None,
            stop: None,
        };
        let tag = app.tag()?;
        app.send(&Message { text: name.as_bytes(), ..Message::new(kind::REGISTER, tag) })?;
        let until = Instant::now() + REGISTER_PATIENCE;
        while app.info.is_none() {
            if let Some(status) = app.inbox.answer(tag) {
                return Err(Error::Refused { what: "register".into(), status: status.0 });
            }
            if !app.turn(Some(until))? {
                return Err(Error::Silent("register: it may have no push half".into()));
            }
        }
        Ok(app)
    }

    /// Ends what waits once `flag` is set, by a signal handler for one: [`App::event`] with no event,
    /// the others with [`Error::Stopped`].
    pub fn stop_when(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Some(flag);
    }

    /// What the node said of itself.
    ///
    /// # Panics
    /// Never: an application that is registered has heard it.
    #[must_use]
    pub fn info(&self) -> &NodeInfo {
        self.info.as_ref().expect("invariant: over() waits for it")
    }

    /// Descriptor to wait on for reading, where an application waits for several things; then call
    /// [`App::event`] with no patience until there is none.
    #[must_use]
    pub fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.face.fd()
    }

    /// Whether to wait on the descriptor for writing, too.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.watches_writing
    }

    /// An answer that came, with the tag of its request; for who does not [`App::wait_answer`].
    pub fn poll_answer(&mut self) -> Option<(u32, Status)> {
        self.inbox.oldest_answer()
    }

    /// The tag of a new request.
    fn tag(&mut self) -> Result<u32, Error> {
        self.inbox.open()?;
        self.last_tag = self.last_tag.checked_add(1).unwrap_or(1);
        Ok(self.last_tag)
    }

    /// Makes a request and waits for its status. Events that come meanwhile wait for
    /// [`App::event`].
    ///
    /// # Errors
    /// [`Error`]; a status other than ok is none.
    pub fn request(
        &mut self,
        kind: Kind,
        id: &Id,
        prefix: &Id,
        strategy: Strategy,
    ) -> Result<Status, Error> {
        let tag = self.ask(kind, id, prefix, strategy)?;
        let what = || format!("a request about {prefix}{id}");
        Ok(self.wait_answer(tag, what)?.0)
    }

    /// Makes a request without waiting; its tag. It leaves with [`App::event`],
    /// [`App::wait_answer`] or [`App::drain`], together with what else waits for them. Its answer is to
    /// be taken, by [`App::wait_answer`] or [`App::poll_answer`].
    ///
    /// # Errors
    /// [`Error`]; [`Error::NotTaken`] when 65,536 requests were made whose answers nobody took.
    pub fn ask(
        &mut self,
        kind: Kind,
        id: &Id,
        prefix: &Id,
        strategy: Strategy,
    ) -> Result<u32, Error> {
        let tag = self.tag()?;
        let (id, prefix) = (id.octets(), prefix.octets());
        self.put(&Message { id, prefix, strategy, ..Message::new(kind, tag) })?;
        Ok(tag)
    }

    /// Waits for the answer to the request with this tag.
    ///
    /// # Errors
    /// [`Error`].
    pub fn wait_answer(
        &mut self,
        tag: u32,
        what: impl Fn() -> String,
    ) -> Result<(Status, Sent), Error> {
        let until = Instant::now() + REQUEST_PATIENCE;
        loop {
            if let Some(answer) = self.inbox.answer(tag) {
                return Ok(answer);
            }
            if !self.turn(Some(until))? {
                return Err(Error::Silent(what()));
            }
        }
    }

    /// The request `kind` for a path, whose last word, where it has one, the rendezvous knows then:
    /// it refuses another word with the same label ([`Status::WORD`]).
    ///
    /// # Errors
    /// [`Error`]; a status other than ok is none.
    pub fn request_path(
        &mut self,
        kind: Kind,
        path: &Path,
        strategy: Strategy,
    ) -> Result<Status, Error> {
        let tag = self.ask_path(kind, path, strategy)?;
        Ok(self.wait_answer(tag, || format!("a request about {path}"))?.0)
    }

    /// As [`App::request_path`], without waiting: as [`App::ask`].
    ///
    /// # Errors
    /// As [`App::ask`].
    pub fn ask_path(&mut self, kind: Kind, path: &Path, strategy: Strategy) -> Result<u32, Error> {
        let tag = self.tag()?;
        let label = path.id.last().map(Id::root).unwrap_or_default();
        let (id, prefix) = (label.octets(), path.id.parent().as_flattened());
        let text = path.word().unwrap_or_default().as_bytes();
        self.put(&Message { id, prefix, strategy, text, ..Message::new(kind, tag) })?;
        Ok(tag)
    }

    /// The request `kind` for the full identifier `id`: its last label beneath the others.
    fn simple(&mut self, kind: Kind, id: &Id, strategy: Strategy) -> Result<(), Error> {
        let label = id.last().map(Id::root).unwrap_or_default();
        let status = self.request(kind, &label, &Id::from_labels(id.parent()), strategy)?;
        match status {
            Status::OK => Ok(()),
            status => Err(Error::Refused { what: id.to_string(), status }),
        }
    }

    /// Publishes the scope `id`.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Refused`] when the answer is not ok.
    pub fn publish_scope(&mut self, id: &Id, strategy: Strategy) -> Result<(), Error> {
        self.simple(Kind::PUBLISH_SCOPE, id, strategy)
    }

    /// Publishes the item `id`; its data follows after [`Event::StartPublish`].
    ///
    /// # Errors
    /// As [`App::publish_scope`].
    pub fn publish_item(&mut self, id: &Id, strategy: Strategy) -> Result<(), Error> {
        self.simple(Kind::PUBLISH_ITEM, id, strategy)
    }

    /// Has the node retain the last `count` publications of the item `id`, which this application
    /// publishes, for who subscribes later; none: not any more. From then on it may be published
    /// whether somebody subscribed or not.
    ///
    /// # Errors
    /// As [`App::publish_scope`]; [`Status::FULL`] for more than 65,535, or where the node retains as
    /// many items as it may; [`Status::UNKNOWN`] from a node that retains nothing.
    pub fn retain(&mut self, id: &Id, count: u64) -> Result<(), Error> {
        self.retain_as(id, Retain::last(count))
    }

    /// As [`App::retain`], with all that may be chosen, of which a node of an earlier version knows
    /// the count only.
    ///
    /// # Errors
    /// As [`App::retain`]; [`Status::FULL`] also for times of more than an hour, and a priority above 7.
    pub fn retain_as(&mut self, id: &Id, retain: Retain) -> Result<(), Error> {
        let tag = self.ask_retain(id, retain)?;
        match self.wait_answer(tag, || format!("what is to be retained of {id}"))?.0 {
            Status::OK => Ok(()),
            status => Err(Error::Refused { what: id.to_string(), status }),
        }
    }

    /// As [`App::retain_as`], without waiting: as [`App::ask`].
    ///
    /// # Errors
    /// As [`App::ask`].
    pub fn ask_retain(&mut self, id: &Id, retain: Retain) -> Result<u32, Error> {
        let tag = self.tag()?;
        self.put(&retain.message(id, tag))?;
        Ok(tag)
    }

    /// Subscribes to the scope `id`: to its items, and to news of the scopes right beneath it.
    ///
    /// # Errors
    /// As [`App::publish_scope`].
    pub fn subscribe_scope(&mut self, id: &Id, strategy: Strategy) -> Result<(), Error> {
        self.simple(Kind::SUBSCRIBE_SCOPE, id, strategy)
    }

    /// Subscribes to the item `id`.
    ///
    /// # Errors
    /// As [`App::publish_scope`].
    pub fn subscribe_item(&mut self, id: &Id, strategy: Strategy) -> Result<(), Error> {
        self.simple(Kind::SUBSCRIBE_ITEM, id, strategy)
    }

    /// Publishes data and does not wait for an answer; a refusal comes as [`Event::Refused`].
    /// Small publications share a system call: the last ones leave with [`App::event`] or
    /// [`App::drain`]. Waits while the node does not keep up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn publish(&mut self, id: &Id, strategy: Strategy, payload: &[u8]) -> Result<(), Error> {
        self.fits(id, payload)?;
        self.put(&Publication::new(id, strategy, payload).message(0))
    }

    /// As [`App::publish`], with what the strategy needs beside.
    ///
    /// # Errors
    /// [`Error`].
    pub fn publish_as(&mut self, publication: &Publication<'_>) -> Result<(), Error> {
        self.fits(publication.id, publication.payload)?;
        self.put(&publication.message(0))
    }

    /// Publishes data and waits for what became of it.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Refused`] when it was not published.
    pub fn publish_told(&mut self, publication: &Publication<'_>) -> Result<Sent, Error> {
        self.fits(publication.id, publication.payload)?;
        let tag = self.tag()?;
        self.put(&publication.message(tag))?;
        let id = publication.id;
        match self.wait_answer(tag, || format!("a publication of {id}"))? {
            (Status::OK, sent) => Ok(sent),
            (status, _) => Err(Error::Refused { what: id.to_string(), status }),
        }
    }

    /// Refuses what the node would refuse, before it is sent.
    fn fits(&self, id: &Id, payload: &[u8]) -> Result<(), Error> {
        if payload.len() as u64 <= self.info().length_max {
            return Ok(());
        }
        Err(Error::Refused { what: id.to_string(), status: Status::FULL })
    }

    /// The next event, waiting for one for at most `patience`, or as long as it takes. Without
    /// patience the node is not asked again right behind the last event of all that it had sent.
    ///
    /// # Errors
    /// [`Error`].
    pub fn event(&mut self, patience: Option<Duration>) -> Result<Option<Event>, Error> {
        if let Some(event) = self.inbox.event() {
            return Ok(Some(event));
        }
        let is_look = patience.is_some_and(|p| p.is_zero());
        if std::mem::take(&mut self.is_read_up) && is_look {
            self.flush()?;
            return Ok(None);
        }
        let until = patience.map(|p| Instant::now() + p);
        loop {
            let is_over = match self.turn(until) {
                Err(Error::Stopped) => return Ok(None),
                turn => !turn?,
            };
            let event = self.inbox.event();
            if is_over || event.is_some() || is_look && self.is_idle {
                return Ok(event);
            }
        }
    }

    /// Offers a blackboard for the node-local item `id`, which this application publishes:
    /// subscribers that want it come by the offer.
    ///
    /// # Errors
    /// [`BoardError`]; [`BoardError::Refused`] also when the node is not reached over a Unix socket.
    pub fn offer_board(&self, id: &Id) -> Result<broker::Offer, BoardError> {
        broker::Offer::make(self.boards()?, self.info().number, id.octets())
    }

    /// Takes part in the blackboard of the node-local item `id`, to which this application is
    /// subscribed; waits for an offer for `patience` at most.
    ///
    /// # Errors
    /// As [`App::offer_board`]; [`BoardError::Silent`].
    pub fn want_board(&self, id: &Id, patience: Duration) -> Result<Subscriber, BoardError> {
        broker::want(self.boards()?, self.info().number, id.octets(), patience)
    }

    fn boards(&self) -> Result<&std::path::Path, BoardError> {
        let none = || BoardError::Refused("blackboards need the Unix socket of the node".into());
        self.boards.as_deref().ok_or_else(none)
    }

    /// Hands everything that waits to the node.
    ///
    /// # Errors
    /// [`Error`].
    pub fn drain(&mut self) -> Result<(), Error> {
        self.send_down_to(0)
    }

    /// Takes everything back that was published and subscribed, and waits until the node has heard.
    ///
    /// # Errors
    /// [`Error`].
    pub fn leave(mut self) -> Result<(), Error> {
        self.stop = None;
        self.send(&Message::new(kind::LEAVE, 0))?;
        self.drain()
    }
}
