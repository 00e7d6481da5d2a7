//! A model of epoll, eventfd and a stream, on shuttle's locks.

use crate::bell::Wake;
use crate::poller::Poller;
use crate::sync::{Arc, Condvar, Mutex};
use onym_face::{Face, FaceError, FaceUri, Flush, Ready as More, Transport};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_sys::epoll::{Interest, Ready, Waker};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

thread_local! {
    /// The hub of the execution; shuttle runs all threads of one in one thread of the system.
    static HUB: RefCell<Option<Arc<Hub>>> = const { RefCell::new(None) };
}

/// Everything that may be ready.
#[derive(Debug, Default)]
pub struct Hub {
    /// Keys of descriptors that are readable.
    readable: Mutex<BTreeSet<RawFd>>,
    changed: Condvar,
}

impl Hub {
    /// The hub of a new execution.
    pub fn new() -> Arc<Self> {
        let hub = Arc::new(Self::default());
        HUB.with(|place| place.replace(Some(Arc::clone(&hub))));
        hub
    }

    fn set(&self, key: RawFd, is_readable: bool) {
        let mut readable = self.readable.lock().unwrap();
        if is_readable {
            readable.insert(key);
            self.changed.notify_all();
        } else {
            readable.remove(&key);
        }
    }
}

/// An eventfd.
#[derive(Debug)]
pub struct ModelWaker {
    hub: Arc<Hub>,
    /// A real one, for a key that nobody else has.
    fd: Waker,
}

impl ModelWaker {
    /// One that is not woken, of the hub of this execution.
    pub fn new() -> io::Result<Self> {
        let hub = HUB.with(|hub| hub.borrow().clone()).unwrap();
        Ok(Self::of(&hub))
    }

    /// One that is not woken.
    pub fn of(hub: &Arc<Hub>) -> Self {
        Self { hub: Arc::clone(hub), fd: Waker::new().unwrap() }
    }

    fn key(&self) -> RawFd {
        self.fd.as_fd().as_raw_fd()
    }
}

impl Wake for ModelWaker {
    fn wake(&self) {
        self.hub.set(self.key(), true);
    }

    fn clear(&self) {
        self.hub.set(self.key(), false);
    }
}

/// Epoll.
#[derive(Debug)]
pub struct ModelPoller {
    hub: Arc<Hub>,
    watched: RefCell<BTreeMap<RawFd, (u64, Interest)>>,
}

impl ModelPoller {
    fn watch(&self, key: RawFd, token: u64, interest: Interest) {
        self.watched.borrow_mut().insert(key, (token, interest));
    }
}

impl Poller for ModelPoller {
    type Waker = ModelWaker;

    fn new() -> io::Result<Self> {
        let hub = HUB.with(|hub| hub.borrow().clone()).unwrap();
        Ok(Self { hub, watched: RefCell::default() })
    }

    fn add_waker(&self, waker: &ModelWaker, token: u64) -> io::Result<()> {
        self.watch(waker.key(), token, Interest::Read);
        Ok(())
    }

    fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.watch(fd.as_raw_fd(), token, interest);
        Ok(())
    }

    fn modify(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.watch(fd.as_raw_fd(), token, interest);
        Ok(())
    }

    fn delete(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.watched.borrow_mut().remove(&fd.as_raw_fd());
        Ok(())
    }

    fn wait(&self, timeout: Option<Duration>, out: &mut Vec<Ready>) -> io::Result<()> {
        let mut readable = self.hub.readable.lock().unwrap();
        loop {
            for (key, (token, interest)) in &*self.watched.borrow() {
                let reads = matches!(interest, Interest::Read | Interest::ReadWrite);
                if reads && readable.contains(key) {
                    out.push(Ready { token: *token, readable: true, writable: false });
                }
            }
            // No time passes: a wait that only a timer would end is one for ever.
            if !out.is_empty() || timeout == Some(Duration::ZERO) {
                return Ok(());
            }
            readable = self.hub.changed.wait(readable).unwrap();
        }
    }
}

/// Frames in one direction.
type Lane = Arc<Mutex<VecDeque<Buf>>>;

/// A face whose frames a [`Peer`] sends and receives.
#[derive(Debug)]
pub struct PipeFace {
    waker: Arc<ModelWaker>,
    theirs: Arc<ModelWaker>,
    uri: FaceUri,
    incoming: Lane,
    outgoing: Lane,
}

/// The other end.
#[derive(Debug)]
pub struct Peer {
    waker: Arc<ModelWaker>,
    ours: Arc<ModelWaker>,
    incoming: Lane,
    outgoing: Lane,
}

/// Both ends of a stream.
pub fn pipe(hub: &Arc<Hub>) -> (PipeFace, Peer) {
    let [waker, theirs] = [(); 2].map(|()| Arc::new(ModelWaker::of(hub)));
    let [incoming, outgoing] = [(); 2].map(|()| Lane::default());
    let peer = Peer {
        waker: Arc::clone(&waker),
        ours: Arc::clone(&theirs),
        incoming: Arc::clone(&outgoing),
        outgoing: Arc::clone(&incoming),
    };
    (PipeFace { waker, theirs, uri: "internal://".parse().unwrap(), incoming, outgoing }, peer)
}

impl Peer {
    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) {
        self.outgoing.lock().unwrap().push_back(Buf::copy_from(frame));
        self.waker.wake();
    }

    /// The next frame, as soon as there is one.
    pub fn receive(&self) -> Vec<u8> {
        loop {
            let mut readable = self.ours.hub.readable.lock().unwrap();
            while !readable.contains(&self.ours.key()) {
                readable = self.ours.hub.changed.wait(readable).unwrap();
            }
            drop(readable);
            let mut incoming = self.incoming.lock().unwrap();
            let frame = incoming.pop_front();
            if incoming.is_empty() {
                self.ours.clear();
            }
            if let Some(frame) = frame {
                return frame.to_vec();
            }
        }
    }
}

impl Face for PipeFace {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.waker.fd.as_fd()
    }

    fn receive(
        &mut self,
        _: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<More, FaceError> {
        let mut incoming = self.incoming.lock().unwrap();
        let count = budget.min(incoming.len());
        out.extend(incoming.drain(..count).map(|bytes| RxFrame { endpoint: 0, bytes }));
        if incoming.is_empty() {
            self.waker.clear();
            return Ok(More::Idle);
        }
        Ok(More::More)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        let frames: Vec<Vec<u8>> = queue.iter().map(|(head, body)| [head, body].concat()).collect();
        queue.pop(frames.len());
        let mut outgoing = self.outgoing.lock().unwrap();
        outgoing.extend(frames.iter().map(|frame| Buf::copy_from(frame)));
        self.theirs.wake();
        Ok(Flush::Done)
    }

    fn mtu(&self) -> usize {
        8800
    }

    fn transport(&self) -> Transport {
        Transport::Mem
    }
}
