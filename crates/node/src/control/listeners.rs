//! Which listener is which: the engine has their descriptors.

use super::Io;
use super::open::Entry;
use onym_engine::ListenerId;
use std::net::SocketAddr;

/// The listeners that faces are made from, beside what arrives there.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    udp: Vec<(SocketAddr, ListenerId)>,
    /// By interface.
    ether: Vec<(String, ListenerId)>,
    /// Frames that reached a listener faster than their shard took them.
    pub(super) late_frames: u64,
}

impl Listeners {
    /// Takes what arrives at `entries` from now on.
    ///
    /// # Errors
    /// A sentence: out of descriptors.
    pub(super) fn watch(&mut self, io: &mut Io, entries: Vec<Entry>) -> Result<(), String> {
        for Entry { listener, udp, ether } in entries {
            let id = io.listen(listener).map_err(|e| format!("watching a listener: {e}"))?;
            self.udp.extend(udp.map(|address| (address, id)));
            self.ether.extend(ether.map(|interface| (interface, id)));
        }
        Ok(())
    }

    /// The first UDP listener whose address is as wanted.
    pub(super) fn udp(&self, is_wanted: impl Fn(SocketAddr) -> bool) -> Option<ListenerId> {
        self.udp.iter().find(|(address, _)| is_wanted(*address)).map(|(_, id)| *id)
    }

    /// The address of a UDP listener.
    pub(super) fn address(&self, id: ListenerId) -> Option<SocketAddr> {
        self.udp.iter().find(|(_, listener)| *listener == id).map(|(address, _)| *address)
    }

    /// The listener of an interface.
    pub(super) fn ether(&self, interface: &str) -> Option<ListenerId> {
        self.ether.iter().find(|(name, _)| name == interface).map(|(_, id)| *id)
    }
}

/// Where the node listens, as management lists it.
pub(super) fn uris(io: &Io) -> Vec<String> {
    io.listeners().map(|listener| listener.local_uri().to_string()).collect()
}
