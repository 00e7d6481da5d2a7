//! The bare relay: moves frames from one face to the other with the same system calls as the node
//! and looks at nothing. What it reaches is the ceiling for a forwarder on these faces.

use crate::link::{Ends, accept_one, udp};
use anyhow::Result;
use clap::Args;
use onym_face::{Listener, RingPolicy, UnixListener, tcp};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The bare relay.
#[derive(Debug, Args)]
pub struct RelayArgs {
    /// Unix socket (or tcp4://address) to listen on; the first connection is one end.
    #[arg(long)]
    pub unix: PathBuf,
    /// Our UDP address; the other end is then UDP instead of a second Unix connection.
    #[arg(long, requires = "udp_peer")]
    pub udp_local: Option<SocketAddr>,
    /// The UDP address of the other relay.
    #[arg(long)]
    pub udp_peer: Option<SocketAddr>,
    /// Receive buffer to ask for, in octets.
    #[arg(long, default_value_t = 4 << 20)]
    pub recv_buffer: usize,
    /// Core to run on.
    #[arg(long)]
    pub core: Option<usize>,
}

/// Length of the rings of an end that asks for shared memory, as the node's by default.
const RING_OCTETS: usize = 256 << 10;

/// Where the ends connect.
fn listener(args: &RelayArgs) -> Result<Box<dyn Listener>> {
    if let Some(address) = args.unix.to_string_lossy().strip_prefix("tcp4://") {
        return Ok(Box::new(tcp::TcpListener::bind(address.parse()?)?));
    }
    Ok(Box::new(UnixListener::bind_with(&args.unix, RingPolicy::new(RING_OCTETS, 2))?))
}

/// Relays until an end closes.
///
/// # Errors
/// When a socket cannot be opened.
pub fn run(args: &RelayArgs) -> Result<()> {
    if let Some(core) = args.core {
        onym_sys::thread::pin_to_core(core)?;
    }
    let mut listener = listener(args)?;
    let mut faces = Vec::new();
    if let (Some(local), Some(peer)) = (args.udp_local, args.udp_peer) {
        faces.push(udp(local, peer, args.recv_buffer)?);
    }
    eprintln!("ready");
    while faces.len() < 2 {
        faces.push(accept_one(&mut *listener)?);
    }
    // One end goes first by who came first; a relay carries both ways.
    let mut ends = Ends::new(faces)?;
    let mut frames = Vec::new();
    loop {
        ends.wait(None)?;
        for (from, to) in [(0, 1), (1, 0)] {
            if ends.receive(from, &mut frames).is_err() {
                return Ok(());
            }
            for frame in frames.drain(..) {
                ends.ends[to].push(&[], Some(&frame.bytes));
            }
            ends.flush()?;
        }
    }
}
