//! Handshakes that have begun and not ended.
//!
//! Their places are shared by the address of the peer. When all are taken, the peer that has most
//! of them loses its oldest one: who floods pushes itself out, and a flood by all addresses at once
//! leaves each newcomer the time that as many others take to come.

use super::HANDSHAKES_MAX;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// A peer by address; of IPv6 its network of 64 bits, which one host can fill.
fn block(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64))),
        v4 => v4,
    }
}

/// Unfinished handshakes, the oldest first, each with how to end it.
#[derive(Debug)]
struct Unfinished<T> {
    places: Vec<(u64, IpAddr, T)>,
    max: usize,
    next: u64,
}

impl<T> Unfinished<T> {
    fn new(max: usize) -> Self {
        Self { places: Vec::with_capacity(max), max, next: 0 }
    }

    /// A number for a handshake that is about to begin.
    fn ticket(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives the handshake `ticket` of `peer` a place; who has to give way for it.
    fn enter(&mut self, ticket: u64, peer: SocketAddr, end: T) -> Option<T> {
        self.places.push((ticket, block(peer), end));
        if self.places.len() <= self.max {
            return None;
        }
        let of = |block: IpAddr| self.places.iter().filter(|p| p.1 == block).count();
        let most = self.places.iter().map(|p| of(p.1)).max()?;
        let oldest = self.places.iter().position(|p| of(p.1) == most)?;
        Some(self.places.remove(oldest).2)
    }

    /// How many there are.
    #[cfg(feature = "quic")]
    fn len(&self) -> usize {
        self.places.len()
    }

    /// The handshake ended; false when it had given way before.
    fn leave(&mut self, ticket: u64) -> bool {
        let at = self.places.iter().position(|p| p.0 == ticket);
        at.map(|at| self.places.remove(at)).is_some()
    }
}

/// The unfinished handshakes of one listener, each a task of its control thread.
#[derive(Debug, Clone)]
pub(crate) struct Handshakes(Arc<Mutex<Unfinished<AbortHandle>>>);

impl Handshakes {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Unfinished::new(HANDSHAKES_MAX))))
    }

    fn table(&self) -> MutexGuard<'_, Unfinished<AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `task` make the handshake of `peer`; it gets its place. To be called on the control thread.
    pub(crate) fn begin<F>(&self, peer: SocketAddr, task: impl FnOnce(Place) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let ticket = self.table().ticket();
        let task = tokio::spawn(task(Place { handshakes: self.clone(), ticket }));
        // The task runs on this thread, so it has not ended yet.
        if let Some(gives_way) = self.table().enter(ticket, peer, task.abort_handle()) {
            gives_way.abort();
        }
    }

    /// Whether half of the places are taken.
    #[cfg(feature = "quic")]
    pub(crate) fn are_many(&self) -> bool {
        2 * self.table().len() >= HANDSHAKES_MAX
    }
}

/// A handshake's place among those in progress, until it is done or fails.
#[derive(Debug)]
pub(crate) struct Place {
    handshakes: Handshakes,
    ticket: u64,
}

impl Place {
    /// Whether it was still this one's.
    pub(crate) fn leave(&self) -> bool {
        self.handshakes.table().leave(self.ticket)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(table: &mut Unfinished<u64>, peer: &str) -> (u64, Option<u64>) {
        let ticket = table.ticket();
        (ticket, table.enter(ticket, peer.parse().unwrap(), ticket))
    }

    #[test]
    fn who_floods_pushes_its_own_oldest_out() {
        let mut table = Unfinished::new(4);
        let (honest, _) = enter(&mut table, "192.0.2.1:1");
        let flood: Vec<u64> = (0..3).map(|_| enter(&mut table, "192.0.2.9:1").0).collect();
        let (_, out) = enter(&mut table, "192.0.2.9:2");
        assert_eq!(out, Some(flood[0]));
        let (_, out) = enter(&mut table, "192.0.2.2:1");
        assert_eq!(out, Some(flood[1]));
        assert!(table.leave(honest));
        assert!(!table.leave(flood[0]), "it had given way");
    }

    #[test]
    fn hosts_of_one_network_of_64_bits_are_one_peer() {
        let mut table = Unfinished::new(3);
        let (first, _) = enter(&mut table, "[2001:db8::1]:1");
        enter(&mut table, "[2001:db8:0:1::1]:1");
        enter(&mut table, "192.0.2.1:1");
        let (_, out) = enter(&mut table, "[2001:db8::ffff]:1");
        assert_eq!(out, Some(first));
    }

    #[test]
    fn among_equals_the_oldest_gives_way() {
        let mut table = Unfinished::new(3);
        let (first, _) = enter(&mut table, "192.0.2.1:1");
        enter(&mut table, "192.0.2.2:1");
        enter(&mut table, "192.0.2.3:1");
        assert_eq!(enter(&mut table, "192.0.2.4:1").1, Some(first));
    }
}
