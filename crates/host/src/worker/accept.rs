//! Connections, and first frames of datagram peers.

use super::order::FaceOrder;
use super::{Arrival, Entry, Io, Remote, Worker};
use onym_engine::ListenerId;
use onym_face::{Face, Incoming, Peer};
use onym_frame::RxFrame;
use onym_services::FarEnd;
use onym_sys::peer;
use onym_wire::mgmt::Scope;

impl Worker {
    /// Takes what arrived at a listener.
    pub(super) fn arrived(&mut self, io: &mut Io, at: ListenerId, incoming: Incoming) {
        let transport = match incoming {
            Incoming::Face(transport) => transport,
            Incoming::Frame { peer, frame } => return self.datagram(io, at, peer, frame),
        };
        let Some(mut from) = self.may_accept(at) else { return };
        if from.far_end == FarEnd::Service && is_of_others(&*transport) {
            let (label, peer) = (&from.label, transport.remote_uri());
            tracing::warn!(%label, %peer, "another user connected to a listener with peer=service; what it says of origins and next hops is ignored");
            from.far_end = FarEnd::Any;
        }
        let Some(peer) = self.next_peer() else {
            self.add_accepted(io, transport, &from);
            return;
        };
        // A thread that takes no more orders, or has ended, costs the connection, not this thread.
        if !peer.tell(FaceOrder::Accepted { io: transport, from }) {
            self.release_face();
            self.listeners[at.0].accepted -= 1;
            self.listeners[at.0].refused += 1;
        }
    }

    /// What is said of one more face of a listener, if there may be one; counted there.
    fn may_accept(&mut self, at: ListenerId) -> Option<Arrival> {
        let has_room = self.reserve_face();
        let Entry { label, side, far_end, accepted, refused, .. } = self.listeners.get_mut(at.0)?;
        *(if has_room { accepted } else { refused }) += 1;
        has_room.then(|| Arrival { label: label.clone(), side: *side, far_end: *far_end })
    }

    /// Whose turn it is to take a connection; `None` when it is ours.
    fn next_peer(&mut self) -> Option<Remote> {
        if self.peers.is_empty() {
            return None;
        }
        self.turn = (self.turn + 1) % (self.peers.len() + 1);
        self.peers.get(self.turn.wrapping_sub(1)).cloned()
    }

    /// A frame that reached a listener: of a new peer, or of one whose face was just made.
    fn datagram(&mut self, io: &mut Io, at: ListenerId, peer: Peer, frame: RxFrame) {
        let known = self.listeners[at.0].peers.get(&peer).copied();
        let id = match known {
            Some(id) => id,
            None => {
                let Some(from) = self.may_accept(at) else { return };
                match io.listener(at).map(|listener| listener.face_for(peer)) {
                    Some(Ok(transport)) => {
                        let id = self.add_accepted(io, transport, &from);
                        self.listeners[at.0].peers.insert(peer, id);
                        id
                    }
                    Some(Err(error)) => {
                        tracing::warn!(%error, "no face for a datagram peer");
                        return self.release_face();
                    }
                    None => return self.release_face(),
                }
            }
        };
        if let Some((slot, _)) = io.faces.by_id(id) {
            io.frame(self, slot, frame);
        }
    }
}

/// Whether a program of this machine connected that runs for another user than this service and
/// root: it is no service of the chain. The kernel says who has the other end; of connections from
/// elsewhere it cannot.
fn is_of_others(face: &dyn Face) -> bool {
    let user = match face.credentials() {
        Some(credentials) => Some(credentials.uid),
        None => peer::tcp_user(face.fd()),
    };
    match user {
        Some(uid) => uid != 0 && uid != peer::own_uid(),
        None => face.scope() == Scope::Local,
    }
}
