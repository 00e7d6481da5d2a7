//! The connections of one listener: a bounded number, shared among peers.
//!
//! When all are in use, a new connection still gets in: the peer with most connections loses one,
//! unproved before proved, idle before busy, the oldest first.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::task::AbortHandle;

/// Among whom places are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// A user of this machine.
    User(u32),
    /// An address, of IPv6 its network of 64 bits.
    Address(IpAddr),
    /// Somebody.
    Unknown,
}

impl Share {
    pub(crate) fn of_address(ip: IpAddr) -> Self {
        Self::Address(match ip.to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from(u128::from(ip) & (u128::MAX << 64))),
            v4 => v4,
        })
    }
}

/// What is known of a connection while it lasts.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Requests that are being answered.
    busy: AtomicU32,
    /// A request on it was allowed: by a token, or by who has the connection.
    proved: AtomicBool,
    /// When it last became idle, in the order of the door's events.
    since: AtomicU64,
}

impl Standing {
    pub(crate) fn prove(&self) {
        self.proved.store(true, Ordering::Relaxed);
    }

    /// Who goes first goes with the least of these.
    fn rank(&self) -> (bool, bool, u64) {
        let busy = self.busy.load(Ordering::Relaxed) > 0;
        (self.proved.load(Ordering::Relaxed), busy, self.since.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
struct Entry {
    share: Share,
    standing: Arc<Standing>,
    task: Option<AbortHandle>,
}

/// The places of one door.
#[derive(Debug)]
pub(crate) struct Places {
    entries: Mutex<Vec<(u64, Entry)>>,
    events: AtomicU64,
    max: usize,
}

/// One of them; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    id: u64,
    places: Arc<Places>,
    pub(crate) standing: Arc<Standing>,
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy {
    places: Arc<Places>,
    standing: Arc<Standing>,
}

impl Places {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { entries: Mutex::default(), events: AtomicU64::new(0), max })
    }

    fn entries(&self) -> MutexGuard<'_, Vec<(u64, Entry)>> {
        self.entries.lock().expect("invariant: no panic under this lock")
    }

    fn now(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    /// A place for a newcomer; none when its own requests have them all.
    pub(crate) fn take(self: &Arc<Self>, share: Share) -> Option<Place> {
        let id = self.now();
        let mut entries = self.entries();
        if entries.len() >= self.max {
            let at = victim(&entries, share)?;
            if let Some(task) = entries.swap_remove(at).1.task {
                task.abort();
            }
        }
        let standing = Arc::new(Standing::default());
        standing.since.store(id, Ordering::Relaxed);
        entries.push((id, Entry { share, standing: Arc::clone(&standing), task: None }));
        Some(Place { id, places: Arc::clone(self), standing })
    }

    /// Says what ends when the place is given to somebody else.
    pub(crate) fn hold(&self, id: u64, task: AbortHandle) {
        match self.entries().iter_mut().find(|(at, _)| *at == id) {
            Some((_, entry)) => entry.task = Some(task),
            // It was given away meanwhile, or has ended.
            None => task.abort(),
        }
    }
}

/// Who gives way to a newcomer of `share`: one of the peer that has most, the newcomer counted.
fn victim(entries: &[(u64, Entry)], share: Share) -> Option<usize> {
    let count = |of: Share| {
        let own = usize::from(of == share);
        entries.iter().filter(|(_, e)| e.share == of).count() + own
    };
    let most = entries.iter().map(|(_, e)| count(e.share)).max()?;
    let of_most = entries.iter().enumerate().filter(|(_, (_, e))| count(e.share) == most);
    let (at, (_, entry)) = of_most.min_by_key(|(_, (_, e))| e.standing.rank())?;
    let (proved, busy, _) = entry.standing.rank();
    // Requests of its own that are allowed do not end for one more of the same peer.
    (count(share) < most || !(proved && busy)).then_some(at)
}

impl Place {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// While this lasts a request is being answered.
    pub(crate) fn busy(&self) -> Busy {
        self.standing.busy.fetch_add(1, Ordering::Relaxed);
        Busy { places: Arc::clone(&self.places), standing: Arc::clone(&self.standing) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.entries().retain(|(id, _)| *id != self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.standing.since.store(self.places.now(), Ordering::Relaxed);
        self.standing.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(uid: u32) -> Share {
        Share::User(uid)
    }

    /// Users of those who have a place.
    fn present(places: &Places) -> Vec<u64> {
        let mut ids: Vec<u64> = places.entries().iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn the_oldest_silent_connection_of_who_has_most_gives_way() {
        let places = Places::new(4);
        let own: Vec<_> = (0..4).map(|_| places.take(user(1)).unwrap()).collect();
        let other = places.take(user(2)).unwrap();
        assert_eq!(present(&places), [own[1].id, own[2].id, own[3].id, other.id]);
        // One more of the first peer costs its own, not the other's.
        let busy = own[1].busy();
        let more = places.take(user(1)).unwrap();
        assert_eq!(present(&places), [own[1].id, own[3].id, other.id, more.id]);
        drop(busy);
        // What was answered last is younger than what never asked.
        let again = places.take(user(1)).unwrap();
        assert_eq!(present(&places), [own[1].id, other.id, more.id, again.id]);
    }

    #[test]
    fn a_proved_connection_goes_last_and_an_allowed_request_of_the_same_peer_never() {
        let places = Places::new(3);
        let first = places.take(user(1)).unwrap();
        first.standing.prove();
        let others: Vec<_> = (0..20).map(|_| places.take(user(1)).unwrap()).collect();
        assert!(present(&places).contains(&first.id));
        let held: Vec<_> = others[18..].iter().map(|p| (p.standing.prove(), p.busy())).collect();
        let asks = first.busy();
        assert!(places.take(user(1)).is_none(), "all are its own requests");
        let other = places.take(user(2)).unwrap();
        assert!(present(&places).contains(&other.id), "another peer has its share all the same");
        drop((held, asks));
    }

    #[test]
    fn many_addresses_with_one_connection_each_give_way_by_age() {
        let places = Places::new(2);
        let from = |last: u8| Share::of_address(IpAddr::from([192, 0, 2, last]));
        let first = places.take(from(1)).unwrap();
        let second = places.take(from(2)).unwrap();
        let third = places.take(from(3)).unwrap();
        assert_eq!(present(&places), [second.id, third.id]);
        drop((first, second, third));
        assert!(present(&places).is_empty());
    }

    #[test]
    fn addresses_of_one_network_share() {
        let share = |text: &str| Share::of_address(text.parse().unwrap());
        assert_eq!(share("2001:db8::1"), share("2001:db8::ffff:1"));
        assert_ne!(share("2001:db8::1"), share("2001:db8:0:1::1"));
        assert_eq!(share("::ffff:192.0.2.1"), share("192.0.2.1"));
    }
}
