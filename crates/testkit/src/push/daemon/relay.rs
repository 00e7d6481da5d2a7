//! A link between two daemons: what each sends to the other passes here, is counted, and can be
//! lost, held up for good, or joined by forged frames.

use onym_sim::push::{is_control, is_hello};
use onym_wire::lp::PathField;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How often the end of the link is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Two sockets: the first is where one node sends to, the second where the other does.
pub(super) struct Relay {
    shared: Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

struct Shared {
    /// By side; the nodes' own addresses.
    sockets: [UdpSocket; 2],
    nodes: [SocketAddr; 2],
    is_up: AtomicBool,
    is_over: AtomicBool,
    /// Frames of applications that came from each side.
    crossed: [AtomicU64; 2],
    /// Of a million frames that are not spared.
    loss: u64,
}

impl Relay {
    /// A link between nodes that listen at these addresses.
    pub(super) fn new(nodes: [SocketAddr; 2], loss: u64) -> Result<Self, String> {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
            socket.set_read_timeout(Some(LOOK)).map_err(|e| e.to_string())?;
            Ok::<_, String>(socket)
        };
        let shared = Arc::new(Shared {
            sockets: [socket()?, socket()?],
            nodes,
            is_up: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            crossed: Default::default(),
            loss,
        });
        let threads = [0, 1].map(|side| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.carry(side))
        });
        Ok(Self { shared, threads: threads.into() })
    }

    /// Where the node of this side sends to.
    pub(super) fn address(&self, side: usize) -> Result<SocketAddr, String> {
        self.shared.sockets[side].local_addr().map_err(|e| e.to_string())
    }

    pub(super) fn set_up(&self, is_up: bool) {
        self.shared.is_up.store(is_up, Ordering::SeqCst);
    }

    pub(super) fn is_up(&self) -> bool {
        self.shared.is_up.load(Ordering::SeqCst)
    }

    /// Frames of applications that came from the node of this side.
    pub(super) fn crossed(&self, side: usize) -> u64 {
        self.shared.crossed[side].load(Ordering::SeqCst)
    }

    /// A frame as if the node of this side had sent it.
    pub(super) fn inject(&self, side: usize, frame: &[u8]) -> Result<(), String> {
        self.shared.crossed[side].fetch_add(u64::from(is_of_application(frame)), Ordering::SeqCst);
        let sent = self.shared.sockets[1 - side].send_to(frame, self.shared.nodes[1 - side]);
        sent.map(drop).map_err(|e| e.to_string())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Carries what comes from the node of `side` to the other one.
    fn carry(&self, side: usize) {
        let (mut frame, mut seed) = ([0; 65_536], 88_172_645_463_325_252_u64);
        while !self.is_over.load(Ordering::SeqCst) {
            let Ok((len, _)) = self.sockets[side].recv_from(&mut frame) else { continue };
            if !self.is_up.load(Ordering::SeqCst) {
                continue;
            }
            let frame = &frame[..len];
            self.crossed[side].fetch_add(u64::from(is_of_application(frame)), Ordering::SeqCst);
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            if seed % 1_000_000 >= self.loss || is_spared(frame) {
                let _ = self.sockets[1 - side].send_to(frame, self.nodes[1 - side]);
            }
        }
    }
}

/// Whether a lossy link carries it all the same: hellos, so that its nodes stay neighbours, and what link
/// services ask for the path's MTU, so that one frame is one datagram as it is in memory.
fn is_spared(frame: &[u8]) -> bool {
    PathField::parse(frame).is_some() || is_hello(frame)
}

/// Whether it is no message between parts of nodes or of link services, which ask for the path's MTU once
/// a frame was long, and not only how far an item is.
fn is_of_application(frame: &[u8]) -> bool {
    PathField::parse(frame).is_none() && !is_control(frame)
}
