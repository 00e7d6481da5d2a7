//! Connections, and first frames of datagram peers.

use super::{Entry, Worker};
use onym_face::{Incoming, Peer};
use onym_frame::RxFrame;
use onym_tables::FaceId;

/// Arrivals taken from a listener at once.
const BUDGET: usize = 64;

impl Entry {
    pub(super) fn forget(&mut self, id: FaceId) {
        if !self.peers.is_empty() {
            self.peers.retain(|_, face| *face != id);
        }
    }
}

impl Worker {
    /// Takes what arrived at a listener.
    pub(super) fn accept(&mut self, at: usize) {
        let mut arrived = Vec::new();
        let Some(entry) = self.listeners.get_mut(at) else { return };
        if let Err(error) = entry.io.accept(&mut self.pool, BUDGET, &mut arrived) {
            tracing::warn!(listener = entry.label, %error, "accepting failed");
        }
        for incoming in arrived {
            match incoming {
                Incoming::Face(io) => {
                    if !self.may_accept(at) {
                        continue;
                    }
                    let entry = &self.listeners[at];
                    let (label, side) = (entry.label.clone(), entry.side);
                    match self.next_peer() {
                        None => {
                            self.add_accepted(io, &label, side);
                        }
                        Some(peer) => {
                            peer.order(move |worker| {
                                worker.add_accepted(io, &label, side);
                            });
                        }
                    }
                }
                Incoming::Frame { peer, frame } => self.datagram(at, peer, frame),
            }
        }
        self.after();
    }

    /// Whether one more face may be; counted at the listener.
    fn may_accept(&mut self, at: usize) -> bool {
        let room = self.reserve_face();
        let entry = &mut self.listeners[at];
        *(if room { &mut entry.accepted } else { &mut entry.refused }) += 1;
        room
    }

    /// Whose turn it is to take a connection; `None` when it is ours.
    fn next_peer(&mut self) -> Option<super::Remote> {
        if self.peers.is_empty() {
            return None;
        }
        self.turn = (self.turn + 1) % (self.peers.len() + 1);
        self.peers.get(self.turn.wrapping_sub(1)).cloned()
    }

    /// A frame that reached a listener: of a new peer, or of one whose face was just made.
    fn datagram(&mut self, at: usize, peer: Peer, frame: RxFrame) {
        let known = self.listeners[at].peers.get(&peer).copied();
        let id = match known {
            Some(id) => id,
            None => {
                if !self.may_accept(at) {
                    return;
                }
                let entry = &mut self.listeners[at];
                let (label, side) = (entry.label.clone(), entry.side);
                match entry.io.face_for(peer) {
                    Ok(io) => {
                        let id = self.add_accepted(io, &label, side);
                        self.listeners[at].peers.insert(peer, id);
                        id
                    }
                    Err(error) => {
                        tracing::warn!(%error, "no face for a datagram peer");
                        self.shared.faces.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                        return;
                    }
                }
            }
        };
        if let Some(slot) = self.by_id.get(&id).copied() {
            self.frame(slot, frame);
        }
    }
}
