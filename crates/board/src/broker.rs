//! Connects the publisher and the subscribers of a blackboard through their node
//! (spec/blackboard.md, "Through the node").
//!
//! The node makes a pair of sockets for each subscriber and hands out the ends. It maps no memory.

use crate::{BoardError, Publisher, Subscriber};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
};
use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A publisher has a blackboard for an item.
const OFFER: u8 = 1;
/// A subscriber wants the blackboard of an item.
const WANT: u8 = 2;
/// The offer is taken; or the answer carries the end of a pair of sockets.
const TAKEN: u8 = 3;
/// Not so.
const REFUSED: u8 = 4;
/// Kind, number of the application, identifier of 255 labels.
const MESSAGE_MAX: usize = 1 + 8 + 255 * 8;
/// Connections that a node keeps: offers, subscribers that wait, and those that said nothing yet.
pub const CONNECTIONS_MAX: usize = 4096;
/// How long a connection may say nothing.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// How long a subscriber waits for an offer at most.
const WAIT_MAX: Duration = Duration::from_secs(600);
/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// Whether this application publishes (`true`) or subscribed to the node-local item with these
/// octets.
pub type Authorize = Box<dyn Fn(u64, &[u8], bool) -> bool + Send>;

/// The place of the broker of the node whose Unix socket is at `node`.
#[must_use]
pub fn path_beside(node: &Path) -> PathBuf {
    let mut path = node.as_os_str().to_owned();
    path.push(".boards");
    path.into()
}

fn io(what: &'static str) -> impl Fn(Errno) -> BoardError {
    move |errno| BoardError::io(what, errno)
}

fn socket() -> Result<OwnedFd, BoardError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let made = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    made.map_err(io("making a socket"))
}

/// Sends one octet, with a descriptor or without.
fn send(to: impl AsFd, kind: u8, fd: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(to, &[IoSlice::new(&[kind])], &mut control, flags).map(|_| ())
}

/// Takes an answer; `None` while there is none.
fn hear(from: impl AsFd) -> Result<Option<(u8, Option<OwnedFd>)>, BoardError> {
    let mut octet = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let got = match recvmsg(from, &mut [IoSliceMut::new(&mut octet)], &mut control, flags) {
        Ok(got) => got.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(Errno::CONNRESET) => 0,
        Err(e) => return Err(BoardError::io("hearing from the node", e)),
    };
    if got == 0 {
        return Err(BoardError::Ended);
    }
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(Some((octet[0], fd)))
}

/// Connects to the broker at `path` and says what is wanted.
fn ask(path: &Path, kind: u8, app: u64, id: &[u8]) -> Result<OwnedFd, BoardError> {
    let fd = socket()?;
    let address = SocketAddrUnix::new(path).map_err(io("the path of a node"))?;
    rustix::net::connect(&fd, &address).map_err(io("connecting to the boards of a node"))?;
    let mut message = vec![kind];
    message.extend_from_slice(&app.to_be_bytes());
    message.extend_from_slice(id);
    rustix::net::send(&fd, &message, SendFlags::NOSIGNAL).map_err(io("asking a node"))?;
    Ok(fd)
}

/// Waits for an answer.
fn answer(fd: &OwnedFd, until: Instant) -> Result<Option<OwnedFd>, BoardError> {
    loop {
        match hear(fd)? {
            Some((TAKEN, fd)) => return Ok(fd),
            Some(_) => {
                let why = "the application has no such node-local item, or it has a blackboard";
                return Err(BoardError::Refused(why.to_owned()));
            }
            None => {}
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(BoardError::Silent);
        }
        wait(&mut [PollFd::new(fd, PollFlags::IN)], left)?;
    }
}

fn wait(fds: &mut [PollFd<'_>], time: Duration) -> Result<(), BoardError> {
    let timeout = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(BoardError::io("waiting for descriptors", e)),
    }
}

/// The offer of a publisher: subscribers come by it. Who came stays when it is dropped.
#[derive(Debug)]
pub struct Offer {
    fd: OwnedFd,
}

impl Offer {
    /// Tells the node whose broker is at `path` that application `app` has a blackboard for the
    /// item with these octets.
    ///
    /// # Errors
    /// [`BoardError::Refused`]: it does not publish the item node-locally, or somebody else has a
    /// blackboard for it; [`BoardError::Io`].
    pub fn make(path: &Path, app: u64, id: &[u8]) -> Result<Self, BoardError> {
        let fd = ask(path, OFFER, app, id)?;
        answer(&fd, Instant::now() + SILENCE_MAX)?;
        Ok(Self { fd })
    }

    /// Admits everybody whom the node sent; how many.
    ///
    /// # Errors
    /// [`BoardError::Ended`] when the node is gone: who was admitted stays.
    pub fn admit(&self, publisher: &mut Publisher) -> Result<usize, BoardError> {
        let mut admitted = 0;
        while let Some((_, fd)) = hear(&self.fd)? {
            admitted += usize::from(fd.is_some_and(|fd| publisher.admit(fd).is_ok()));
        }
        Ok(admitted)
    }

    /// Readable when somebody wants to be admitted.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Asks the node whose broker is at `path` for the blackboard of the item with these octets, and
/// waits for `patience` at most until a publisher offers one and admits.
///
/// # Errors
/// [`BoardError::Refused`]: the application is not subscribed; [`BoardError::Silent`]; as
/// [`Subscriber::attach`].
pub fn want(
    path: &Path,
    app: u64,
    id: &[u8],
    patience: Duration,
) -> Result<Subscriber, BoardError> {
    let until = Instant::now() + patience;
    let fd = ask(path, WANT, app, id)?;
    let end = answer(&fd, until)?.ok_or(BoardError::Ended)?;
    Subscriber::attach(end, until.saturating_duration_since(Instant::now()))
}

/// A connection at the broker.
struct Conn {
    fd: OwnedFd,
    until: Instant,
}

/// The broker of a node, on a thread of its own; dropping it stops it and removes its socket.
#[derive(Debug)]
pub struct Broker {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    listener: OwnedFd,
    authorize: Authorize,
    /// Who said nothing yet.
    silent: Vec<Conn>,
    offers: HashMap<Vec<u8>, OwnedFd>,
    wants: Vec<(Vec<u8>, Conn)>,
}

impl Broker {
    /// Starts a broker at `path`. A socket that nobody answers at is replaced.
    ///
    /// # Errors
    /// [`BoardError::Io`].
    pub fn start(path: &Path, authorize: Authorize) -> Result<Self, BoardError> {
        let listener = socket()?;
        let address = SocketAddrUnix::new(path).map_err(io("the path of the boards"))?;
        let bound = match rustix::net::bind(&listener, &address) {
            Err(Errno::ADDRINUSE) if rustix::net::connect(&socket()?, &address).is_err() => {
                std::fs::remove_file(path)
                    .map_err(|e| BoardError::io("removing an old socket", e))?;
                rustix::net::bind(&listener, &address)
            }
            other => other,
        };
        bound.and_then(|()| rustix::net::listen(&listener, 128)).map_err(io("listening"))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let (silent, offers, wants) = Default::default();
        let mut state = State { listener, authorize, silent, offers, wants };
        let run = move || {
            while !over.load(Ordering::Relaxed) && state.turn().is_ok() {}
        };
        let thread = std::thread::Builder::new().name("onym-boards".into()).spawn(run);
        let thread = thread.map_err(|e| BoardError::io("starting a thread", e))?;
        Ok(Self { path: path.to_owned(), is_over, thread: Some(thread) })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

impl State {
    fn turn(&mut self) -> Result<(), BoardError> {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.silent.iter().map(|conn| PollFd::new(&conn.fd, PollFlags::IN)));
        // Of these only the end is of interest.
        fds.extend(self.offers.values().map(|fd| PollFd::new(fd, PollFlags::empty())));
        fds.extend(self.wants.iter().map(|(_, c)| PollFd::new(&c.fd, PollFlags::empty())));
        wait(&mut fds, LOOK)?;
        drop(fds);
        self.accept();
        self.listen();
        let now = Instant::now();
        self.silent.retain(|conn| conn.until > now);
        self.wants.retain(|(_, conn)| conn.until > now && !is_gone(&conn.fd));
        self.offers.retain(|_, fd| !is_gone(fd));
        Ok(())
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(fd) = rustix::net::accept_with(&self.listener, flags) {
            let count = self.silent.len() + self.offers.len() + self.wants.len();
            if count < CONNECTIONS_MAX {
                self.silent.push(Conn { fd, until: Instant::now() + SILENCE_MAX });
            }
        }
    }

    /// Hears those who said nothing yet.
    fn listen(&mut self) {
        for conn in std::mem::take(&mut self.silent) {
            let mut octets = [0; MESSAGE_MAX + 1];
            match rustix::net::recv(&conn.fd, &mut octets[..], RecvFlags::DONTWAIT) {
                Ok((len, _)) => self.obey(conn.fd, octets.get(..len).unwrap_or(&[])),
                Err(Errno::AGAIN | Errno::INTR) => self.silent.push(conn),
                Err(_) => {}
            }
        }
    }

    fn obey(&mut self, fd: OwnedFd, octets: &[u8]) {
        let Some((&[kind, ref app @ ..], id)) = octets.split_first_chunk::<9>() else { return };
        let app = u64::from_be_bytes(*app);
        let is_fit = octets.len() <= MESSAGE_MAX && !id.is_empty() && id.len().is_multiple_of(8);
        let is_known = matches!(kind, OFFER | WANT);
        if !is_fit || !is_known || !(self.authorize)(app, id, kind == OFFER) {
            let _ = send(&fd, REFUSED, None);
            return;
        }
        if kind == WANT {
            self.want(id.to_vec(), Conn { fd, until: Instant::now() + WAIT_MAX });
            return;
        }
        if self.offers.get(id).is_some_and(|fd| !is_gone(fd)) {
            let _ = send(&fd, REFUSED, None);
            return;
        }
        if send(&fd, TAKEN, None).is_ok() {
            self.offers.insert(id.to_vec(), fd);
            let (now, later) =
                std::mem::take(&mut self.wants).into_iter().partition(|(wanted, _)| wanted == id);
            self.wants = later;
            let now: Vec<(Vec<u8>, Conn)> = now;
            now.into_iter().for_each(|(id, conn)| self.want(id, conn));
        }
    }

    /// Joins a subscriber with the publisher, or lets it wait for one.
    fn want(&mut self, id: Vec<u8>, conn: Conn) {
        let Some(offer) = self.offers.get(&id) else {
            self.wants.push((id, conn));
            return;
        };
        let flags = SocketFlags::CLOEXEC;
        let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let Ok((theirs, ours)) = pair else { return };
        match send(offer, TAKEN, Some(theirs.as_fd())) {
            Ok(()) => {
                let _ = send(&conn.fd, TAKEN, Some(ours.as_fd()));
            }
            // A publisher that does not look after who comes.
            Err(Errno::AGAIN) => drop(send(&conn.fd, REFUSED, None)),
            Err(_) => {
                self.offers.remove(&id);
                self.wants.push((id, conn));
            }
        }
    }
}

/// Whether the other end is closed.
fn is_gone(fd: &OwnedFd) -> bool {
    let mut octet = [0];
    let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
    matches!(rustix::net::recv(fd, &mut octet[..], flags), Ok((0, _)) | Err(Errno::CONNRESET))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Reception};

    const ID: &[u8] = &[1; 16];
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Applications 1 publishes, 2 and 3 subscribe.
    fn broker(dir: &Path) -> (Broker, PathBuf) {
        let path = path_beside(&dir.join("nfd.sock"));
        let authorize =
            |app, id: &[u8], is_offer| id == ID && (app == 1 || app == 9) == is_offer && app != 7;
        (Broker::start(&path, Box::new(authorize)).unwrap(), path)
    }

    fn publisher() -> Publisher {
        Publisher::new(&Config { payload_max: 100, depth: 15, subscribers_max: 4 }).unwrap()
    }

    #[test]
    fn the_node_joins_subscribers_with_the_publisher_whoever_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let (broker, path) = broker(dir.path());
        let early = {
            let path = path.clone();
            std::thread::spawn(move || want(&path, 2, ID, PATIENCE).unwrap())
        };
        let mut publisher = publisher();
        let offer = Offer::make(&path, 1, ID).unwrap();
        let late = {
            let path = path.clone();
            std::thread::spawn(move || want(&path, 3, ID, PATIENCE).unwrap())
        };
        let end = Instant::now() + PATIENCE;
        while publisher.subscribers() < 2 {
            assert!(Instant::now() < end);
            wait(&mut [PollFd::new(&offer.fd, PollFlags::IN)], LOOK).unwrap();
            offer.admit(&mut publisher).unwrap();
        }
        let mut subscribers = [early.join().unwrap(), late.join().unwrap()];
        // Without the node everything goes on.
        drop(broker);
        publisher.publish(b"hello").unwrap();
        for subscriber in &mut subscribers {
            match subscriber.receive_within(PATIENCE).unwrap() {
                Some(Reception::Item(item)) => assert_eq!(item.to_vec(), b"hello"),
                other => panic!("{other:?}"),
            }
        }
        assert!(!path.exists(), "the socket is removed");
        assert!(matches!(offer.admit(&mut publisher), Err(BoardError::Ended)));
    }

    #[test]
    fn who_may_not_and_what_is_malformed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (_broker, path) = broker(dir.path());
        let refused = |result: Result<Offer, BoardError>| {
            assert!(matches!(result, Err(BoardError::Refused(_))), "{result:?}");
        };
        refused(Offer::make(&path, 7, ID));
        refused(Offer::make(&path, 1, &[1; 8]));
        refused(Offer::make(&path, 1, &[1; 9]));
        let wanted = want(&path, 1, ID, PATIENCE);
        assert!(matches!(wanted, Err(BoardError::Refused(_))), "{wanted:?}");
        let first = Offer::make(&path, 1, ID).unwrap();
        refused(Offer::make(&path, 9, ID));
        drop(first);
        let end = Instant::now() + PATIENCE;
        while Offer::make(&path, 9, ID).is_err() {
            assert!(Instant::now() < end, "the place is free again");
        }
        for octets in [&[][..], &[1], &[0; 9], &[0xff; 4000]] {
            let fd = socket().unwrap();
            rustix::net::connect(&fd, &SocketAddrUnix::new(&path).unwrap()).unwrap();
            let _ = rustix::net::send(&fd, octets, SendFlags::NOSIGNAL);
        }
        Offer::make(&path, 1, ID).unwrap();
    }

    #[test]
    fn a_socket_that_was_left_behind_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = path_beside(&dir.path().join("nfd.sock"));
        let left = socket().unwrap();
        rustix::net::bind(&left, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        drop(left);
        let (broker, path) = broker(dir.path());
        drop(Offer::make(&path, 1, ID).unwrap());
        drop(broker);
    }
}
