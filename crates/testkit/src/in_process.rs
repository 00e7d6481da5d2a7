//! A node in this process for each script, behind real sockets.

use crate::daemon::{Reachable, cannot, http_counts, rounds, settings};
use crate::script::{FaceSpec, Script};
use crate::socket::{AtEnd, Conn, Keeper, Reach, SocketSubject};
use crate::subject::{Bench, Count, Subject};
use onym_face::{Face, FaceError, FaceUri, Flush, Ready, Transport};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_node::config::Config;
use onym_node::{Node, NodeHandle};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::LinkType;
use rustix::fd::{AsFd, BorrowedFd};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;

/// Starts a node of `onym-node` for each script.
#[derive(Debug, Clone, Copy)]
pub struct InProcess {
    /// Shards of scripts that do not say how many.
    pub shards: usize,
    /// Also run scripts that wait long.
    pub slow: bool,
    /// Waited before each packet, as on a slow machine, in milliseconds.
    pub pause_ms: u64,
}

impl Bench for InProcess {
    fn name(&self) -> &str {
        "node"
    }

    fn refuses(&self, script: &Script) -> Option<String> {
        cannot(script, Reachable { shards: self.shards, slow: self.slow, links: true })
    }

    fn set_up(&self, script: &Script) -> Result<Box<dyn Subject>, String> {
        let folder = tempfile::tempdir().map_err(|e| format!("a folder for the socket: {e}"))?;
        let mut sets = settings(script, self.shards, &folder.path().join("nfd.sock"))?;
        let listeners =
            ["faces.udp.listen", "faces.tcp.listen", "faces.websocket.listen", "metrics.listen"];
        sets.extend(listeners.map(|key| format!("{key}=[\"127.0.0.1:0\"]")));
        if script.faces.iter().any(|f| f.link == LinkType::AdHoc) {
            sets.push("faces.udp.multicast_ad_hoc=true".into());
        }
        let config = Config::load(None, &sets).map_err(|e| e.to_string())?;
        let node = Node::start(config).map_err(|e| e.to_string())?;
        let bound = node.bound();
        let reach = Reach {
            unix: bound.unix.clone(),
            udp: *bound.udp.first().ok_or("the node has no UDP listener")?,
            tcp: bound.tcp.first().copied(),
            ws: bound.websocket.first().copied(),
        };
        let rounds = rounds(script, self.shards);
        let keeper = Box::new(Running { node, rounds, _folder: folder });
        let mut subject = SocketSubject::new(&reach, script, keeper, 1, AtEnd::Gone)?;
        subject.pause_ms = self.pause_ms;
        Ok(Box::new(subject))
    }
}

#[derive(Debug)]
struct Running {
    node: NodeHandle,
    rounds: usize,
    _folder: tempfile::TempDir,
}

impl Keeper for Running {
    fn verdicts(&mut self) -> Option<Vec<Count>> {
        http_counts(*self.node.bound().metrics.first()?)
    }

    fn digest(&mut self) -> bool {
        (0..self.rounds).all(|_| self.node.snapshot().is_ok())
    }

    fn attach(&mut self, _spec: &FaceSpec) -> Result<(u64, Conn), String> {
        let (ours, theirs) = UnixDatagram::pair().map_err(|e| format!("a pair of sockets: {e}"))?;
        theirs.set_nonblocking(true).map_err(|e| format!("a pair of sockets: {e}"))?;
        let id =
            self.node.face_add(Box::new(Shared { socket: theirs })).map_err(|e| e.to_string())?;
        Ok((id.0.into(), Conn::pair(ours)))
    }
}

/// A link that several neighbours share, as far as the node knows.
#[derive(Debug)]
struct Shared {
    socket: UnixDatagram,
}

impl Face for Shared {
    fn local_uri(&self) -> &FaceUri {
        &FaceUri::Internal
    }

    fn remote_uri(&self) -> &FaceUri {
        &FaceUri::Internal
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let mut frame = vec![0; PACKET_LEN_MAX];
        for _ in 0..budget {
            match self.socket.recv(&mut frame) {
                Ok(0) => return Err(FaceError::Closed),
                Ok(n) => out.push(RxFrame { endpoint: 7, bytes: Buf::copy_from(&frame[..n]) }),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Ready::Idle),
                Err(_) => return Err(FaceError::Closed),
            }
        }
        Ok(Ready::More)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        let taken = queue
            .iter()
            .take_while(|(head, body)| self.socket.send(&[*head, *body].concat()).is_ok())
            .count();
        queue.pop(taken);
        Ok(if queue.is_empty() { Flush::Done } else { Flush::Blocked })
    }

    fn mtu(&self) -> usize {
        PACKET_LEN_MAX
    }

    fn transport(&self) -> Transport {
        Transport::UdpMulticast
    }

    fn link(&self) -> LinkType {
        LinkType::MultiAccess
    }
}
