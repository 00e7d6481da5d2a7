//! Arrivals at the listeners: connections, and first frames of unknown peers.

use super::Control;
use super::record::NewFace;
use super::room::Block;
use onym_face::uri::endpoint;
use onym_face::{Incoming, Peer};
use onym_frame::RxFrame;
use onym_tables::{FaceId, Tick};
use onym_wire::faceuri::FaceUri;
use onym_wire::mgmt::Persistency;
use std::time::Duration;

/// Arrivals taken from a listener at once.
const ACCEPT: usize = 64;
/// How long a listener rests after it failed, for want of descriptors most of the time.
const PAUSE: Duration = Duration::from_secs(1);

impl Control {
    pub(super) fn listener_of(&self, token: u64) -> Option<usize> {
        self.listeners.iter().position(|l| l.token == token)
    }

    pub(super) fn accept(&mut self, index: usize) {
        let mut arrived = Vec::new();
        let result = self.listeners[index].listener.accept(&mut self.pool, ACCEPT, &mut arrived);
        if let Err(error) = result {
            let uri = self.listeners[index].listener.local_uri().to_string();
            tracing::warn!(listener = uri, %error, rest_ms = PAUSE.as_millis(), "accepting failed");
            self.pause(index);
        }
        for incoming in arrived {
            match incoming {
                Incoming::Face(io) => {
                    let new = NewFace::of(Some(io), Persistency::OnDemand);
                    if let Err(reason) = self.face_add(new) {
                        self.log_refused("a connection", &reason);
                    }
                }
                Incoming::Frame { peer, frame } => self.first_frame(index, peer, frame),
            }
        }
    }

    /// Looks away from a listener for a while: its descriptor would stay ready.
    fn pause(&mut self, index: usize) {
        let now = self.clock.now();
        let entry = &mut self.listeners[index];
        if self.epoll.delete(entry.listener.fd()).is_ok() {
            entry.paused = now + PAUSE;
        }
    }

    /// Looks at listeners again whose rest is over.
    pub(super) fn listener_timers(&mut self, now: Tick) {
        let read = onym_sys::epoll::Interest::Read;
        for entry in self.listeners.iter_mut().filter(|l| l.paused <= now) {
            let watched = self.epoll.add(entry.listener.fd(), entry.token, read);
            entry.paused = if watched.is_ok() { Tick::NEVER } else { now + PAUSE };
        }
    }

    /// A frame of a peer that has no socket of its own yet, or just got it.
    fn first_frame(&mut self, index: usize, peer: Peer, frame: RxFrame) {
        if let Some(id) = self.peer_face(index, peer) {
            if let Some(record) = self.faces.get(&id)
                && !self.ports[record.owner].frame(id, frame)
            {
                self.late_frames += 1;
            }
            return;
        }
        // Asked before a socket is made: at the limit each stranger must cost little.
        if let Err(reason) = self.room_for_face(Some(Block::of_peer(peer))) {
            self.log_refused("a new peer", &reason);
            return;
        }
        let io = match self.listeners[index].listener.face_for(peer) {
            Ok(io) => io,
            Err(error) => {
                self.log_refused("a new peer", &error.to_string());
                return;
            }
        };
        let new = NewFace {
            peer: Some((index, peer)),
            first: vec![frame],
            ..NewFace::of(Some(io), Persistency::OnDemand)
        };
        match self.face_add(new) {
            Ok(id) => {
                self.peers.insert((index, peer), id);
            }
            Err(reason) => self.log_refused("a new peer", &reason),
        }
    }

    /// The face that a peer has: its own, or one that was asked for by us.
    fn peer_face(&self, index: usize, peer: Peer) -> Option<FaceId> {
        if let Some(id) = self.peers.get(&(index, peer)) {
            return Some(*id);
        }
        match peer {
            Peer::Udp(address) => self.face_by_remote(&FaceUri::Udp(endpoint(address)).to_string()),
            Peer::Ether(_) => None,
        }
    }
}
