//! A face with its queue and readiness, as the programs of this crate use it.

use anyhow::{Context, Result, anyhow, bail};
use onym_client::{Endpoint, Event as Told, RouteOptions};
use onym_crypto::edge::unix_now_ms;
use onym_face::udp::{UdpFace, UdpOptions};
use onym_face::{CHUNK_LEN, Face, FaceError, Flush, Incoming, Listener, Ready, shm, tcp, unix};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_link::LinkConfig;
use onym_sys::epoll::{Epoll, Interest, Ready as Event};
use onym_tables::Tick;
use onym_wire::mgmt::Scope;
use onym_wire::name::Name;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Frames taken per turn and face.
const BUDGET: usize = 1024;
/// Octets that wait for a face.
const QUEUE_OCTETS: usize = 64 << 20;

/// One face.
#[derive(Debug)]
pub struct End {
    face: Box<dyn Face>,
    /// What is to be sent.
    pub queue: TxQueue,
    is_blocked: bool,
    is_ready: bool,
}

/// Some faces and what is ready.
#[derive(Debug)]
pub struct Ends {
    /// The faces.
    pub ends: Vec<End>,
    epoll: Epoll,
    pool: BufPool,
    events: Vec<Event>,
}

impl Ends {
    /// Watches `faces`.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn new(faces: Vec<Box<dyn Face>>) -> Result<Self> {
        let epoll = Epoll::new()?;
        for (i, face) in faces.iter().enumerate() {
            epoll.add(face.fd(), i as u64, Interest::Read)?;
        }
        let end = |face| End {
            face,
            queue: TxQueue::new(QUEUE_OCTETS),
            is_blocked: false,
            // What came before it was watched may not be told again.
            is_ready: true,
        };
        let ends = faces.into_iter().map(end).collect();
        Ok(Self { ends, epoll, pool: BufPool::new(CHUNK_LEN, 1024), events: Vec::new() })
    }

    /// Waits until a face is ready, unless one still is, at most until `deadline`.
    ///
    /// # Errors
    /// As `epoll_wait`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<()> {
        let timeout = if self.ends.iter().any(|end| end.is_ready) {
            Some(Duration::ZERO)
        } else {
            deadline.map(|d| d.saturating_duration_since(Instant::now()))
        };
        self.events.clear();
        self.epoll.wait(timeout, &mut self.events)?;
        for event in &self.events {
            let Some(end) = usize::try_from(event.token).ok().and_then(|i| self.ends.get_mut(i))
            else {
                continue;
            };
            end.is_ready |= event.readable;
        }
        Ok(())
    }

    /// Takes what has come on face `i`, if it is ready.
    ///
    /// # Errors
    /// When the face ends.
    pub fn receive(&mut self, i: usize, frames: &mut Vec<RxFrame>) -> Result<()> {
        let end = &mut self.ends[i];
        if end.is_ready {
            let ready = end.face.receive(&mut self.pool, BUDGET, frames);
            end.is_ready = tolerate(ready, Ready::Idle)? != Ready::Idle;
        }
        Ok(())
    }

    /// Sends what is queued on every face.
    ///
    /// # Errors
    /// When a face ends.
    pub fn flush(&mut self) -> Result<()> {
        for (i, end) in self.ends.iter_mut().enumerate() {
            if end.queue.is_empty() {
                continue;
            }
            let blocked = tolerate(end.face.flush(&mut end.queue), Flush::Done)? == Flush::Blocked;
            if blocked != end.is_blocked {
                end.is_blocked = blocked;
                let for_room = blocked && end.face.room_is_writable();
                let interest = if for_room { Interest::ReadWrite } else { Interest::Read };
                self.epoll.modify(end.face.fd(), i as u64, interest)?;
            }
        }
        Ok(())
    }
}

/// A datagram face whose peer is not there yet goes on.
fn tolerate<T>(result: Result<T, FaceError>, instead: T) -> Result<T> {
    match result {
        Err(e) if e.is_fatal() => Err(e.into()),
        Err(_) => Ok(instead),
        Ok(value) => Ok(value),
    }
}

impl End {
    /// Queues a frame; a full queue loses it.
    pub fn push(&mut self, head: &[u8], body: Option<&Buf>) {
        let _ = self.queue.push(head, body);
    }
}

/// Connects to the Unix socket at `path`, which may need some time to appear.
///
/// # Errors
/// When nobody answers within ten seconds.
pub fn connect_unix(path: &Path) -> Result<Box<dyn Face>> {
    patiently(&path, || Ok(Box::new(unix::connect(path)?)))
}

/// Connects to a TCP address, which may need some time to be open.
///
/// # Errors
/// When nobody answers within ten seconds.
pub fn connect_tcp(address: SocketAddr) -> Result<Box<dyn Face>> {
    patiently(&address, || Ok(Box::new(tcp::connect(address)?)))
}

/// Opens a face at a Unix socket, at `tcp4://address`, or for the first who connects to
/// `listen:tcp4://address`.
///
/// # Errors
/// When nobody answers within ten seconds, or comes within a minute.
pub fn open(place: &Path) -> Result<Box<dyn Face>> {
    let text = place.to_string_lossy();
    if let Some(address) = text.strip_prefix("tcp4://") {
        return connect_tcp(address.parse()?);
    }
    match text.strip_prefix("listen:tcp4://") {
        Some(address) => accept_one(&mut tcp::TcpListener::bind(address.parse()?)?),
        None => connect_unix(place),
    }
}

/// The first connection to a listener.
///
/// # Errors
/// When nobody comes within a minute.
pub fn accept_one(listener: &mut dyn Listener) -> Result<Box<dyn Face>> {
    let epoll = Epoll::new()?;
    epoll.add(listener.fd(), 0, Interest::Read)?;
    let (mut pool, mut out, mut ready) = (BufPool::new(CHUNK_LEN, 1), Vec::new(), Vec::new());
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        listener.accept(&mut pool, 1, &mut out)?;
        match out.pop() {
            Some(Incoming::Face(face)) => return Ok(face),
            Some(Incoming::Frame { .. }) => bail!("a frame instead of a connection"),
            None => epoll.wait(Some(Duration::from_millis(100)), &mut ready)?,
        };
    }
    bail!("nobody connected to {}", listener.local_uri())
}

/// As [`connect_unix`], and asks for shared memory there.
///
/// # Errors
/// When nobody answers within ten seconds.
pub fn connect_shm(path: &Path) -> Result<Box<dyn Face>> {
    patiently(&path, || Ok(Box::new(shm::connect(path, 0)?)))
}

fn patiently(
    place: &impl Debug,
    connect: impl Fn() -> Result<Box<dyn Face>, FaceError>,
) -> Result<Box<dyn Face>> {
    let start = Instant::now();
    loop {
        match connect() {
            Ok(face) => return Ok(face),
            Err(e) if start.elapsed() > Duration::from_secs(10) => {
                return Err(e).with_context(|| format!("{place:?}"));
            }
            // Another process binds the socket; nothing tells when.
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// A UDP face between two fixed addresses.
///
/// # Errors
/// When the address is taken.
pub fn udp(local: SocketAddr, peer: SocketAddr, recv_buffer: usize) -> Result<Box<dyn Face>> {
    let options = UdpOptions { recv_buffer, ..UdpOptions::default() };
    Ok(Box::new(UdpFace::connect(Some(local), peer, &options)?))
}

/// Registers a prefix over the producer's own face and gives the face back.
///
/// # Errors
/// When the node refuses or does not answer within ten seconds.
pub fn register(mut face: Box<dyn Face>, prefix: &Name) -> Result<Box<dyn Face>> {
    let start = Instant::now();
    let now = || Tick(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let mut endpoint = Endpoint::new(std::process::id().into(), unix_now_ms());
    endpoint.connected(now(), LinkConfig::stream(), Scope::Local);
    endpoint.register(prefix.clone(), RouteOptions::default())?;
    let (mut pool, mut frames) = (BufPool::new(CHUNK_LEN, 4), Vec::new());
    while start.elapsed() < Duration::from_secs(10) {
        endpoint.advance(now());
        face.flush(endpoint.tx())?;
        face.receive(&mut pool, 16, &mut frames)?;
        for frame in frames.drain(..) {
            endpoint.receive(now(), frame).map_err(|v| anyhow!("the node sent {v:?}"))?;
        }
        match endpoint.poll_event() {
            Some(Told::Registered(_)) => return Ok(face),
            Some(Told::NotRegistered(_, why)) => bail!("not registered: {why:?}"),
            _ => {}
        }
    }
    bail!("the node does not answer the registration of {prefix}")
}
