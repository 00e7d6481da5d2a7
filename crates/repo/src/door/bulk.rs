//! Bulk TCP: Data packets one after another, without answers; the connection ends with the last packet.

use super::Packets;
use crate::admission::{Act, Admission};
use onym_crypto::edge::unix_now_ms;
use onym_store::{Change, OwnerId, Refused, Store};
use onym_wire::data::Data;
use onym_wire::name::Name;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Connections at the same time.
const CONNECTIONS_MAX: usize = 16;
/// A connection that says nothing is closed.
const SILENCE: Duration = Duration::from_secs(300);

/// What bulk packets must be.
pub struct BulkRule {
    /// Every packet is under one of these.
    pub prefixes: Vec<Name>,
    /// Who signed it may; `None` lets everybody of this machine.
    pub admission: Option<Arc<dyn Admission>>,
}

impl fmt::Debug for BulkRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BulkRule({} prefixes)", self.prefixes.len())
    }
}

/// The door.
#[derive(Debug)]
pub struct Bulk {
    address: SocketAddr,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    kept: AtomicU64,
    refused: AtomicU64,
    open: AtomicUsize,
}

impl Bulk {
    /// Opens it at `listen`; with no rule about keys, on loopback only.
    ///
    /// # Errors
    /// Those of the operating system; `PermissionDenied` for an open door beyond loopback.
    pub fn open(listen: SocketAddr, store: &Arc<Store>, rule: BulkRule) -> io::Result<Self> {
        if rule.admission.is_none() && !listen.ip().is_loopback() {
            let why = "bulk insertion beyond loopback requires an admitted key";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        let counters = Arc::<Counters>::default();
        let (shared, store) = (Arc::clone(&counters), Arc::downgrade(store));
        let rule = Arc::new(rule);
        std::thread::Builder::new().name("onym-bulk".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                // Beyond the bound it is closed at once.
                if shared.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                    shared.open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (store, rule, counters) =
                    (Weak::clone(&store), Arc::clone(&rule), Arc::clone(&shared));
                let thread = std::thread::Builder::new().name("onym-bulk".into());
                let made = thread.spawn(move || {
                    if let Err(error) = take(&stream, &store, &rule, &counters) {
                        tracing::info!(%error, "bulk-closed");
                    }
                    counters.open.fetch_sub(1, Ordering::Relaxed);
                });
                if let Err(error) = made {
                    // The stream went with the closure: the other side hears an end.
                    shared.open.fetch_sub(1, Ordering::Relaxed);
                    tracing::warn!(%error, "bulk-refused");
                }
            }
        })?;
        Ok(Self { address, counters })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Packets kept and refused so far.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.counters.kept), read(&self.counters.refused))
    }
}

/// Takes one connection. What the store cannot take yet is not read: the sender waits.
fn take(
    stream: &TcpStream,
    store: &Weak<Store>,
    rule: &BulkRule,
    counters: &Counters,
) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut packets = Packets::new(stream);
    let mut owners: HashMap<Name, OwnerId> = HashMap::new();
    loop {
        let group = packets.group()?;
        if group.is_empty() {
            return Ok(());
        }
        let Some(store) = store.upgrade() else { return Ok(()) };
        let mut changes = Vec::with_capacity(group.len());
        for packet in group {
            match owner_of(&packet, &store, rule, &mut owners) {
                Ok(owner) => {
                    changes.push(Change::Insert { packet, owner, expires_ms: 0, arrived_ms: 0 })
                }
                Err(why) => {
                    counters.refused.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!(%why, "bulk-refused");
                }
            }
        }
        for answer in store.apply(changes).map_err(io::Error::other)? {
            match answer {
                Ok(_) => counters.kept.fetch_add(1, Ordering::Relaxed),
                // The rest would fare the same.
                Err(refused @ (Refused::Full(_) | Refused::DiskFull(_) | Refused::ReadOnly)) => {
                    return Err(io::Error::other(refused));
                }
                Err(_) => counters.refused.fetch_add(1, Ordering::Relaxed),
            };
        }
    }
}

fn owner_of(
    packet: &[u8],
    store: &Store,
    rule: &BulkRule,
    owners: &mut HashMap<Name, OwnerId>,
) -> Result<OwnerId, String> {
    let data = Data::parse(packet).map_err(|e| e.to_string())?;
    if !rule.prefixes.iter().any(|prefix| prefix.as_ref().is_prefix_of(data.name)) {
        return Err(format!("{} is under none of the repository's prefixes", data.name));
    }
    let Some(admission) = &rule.admission else { return Ok(OwnerId::LOCAL) };
    let admitted = admission.admit(Act::Insert, &[data.name], &data, unix_now_ms());
    let owner = admitted.map_err(|why| why.to_string())?;
    if let Some(id) = owners.get(&owner) {
        return Ok(*id);
    }
    let id = store.owner(owner.as_ref()).map_err(|e| e.to_string())?;
    owners.insert(owner, id);
    Ok(id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_crypto::signer::write_digest_data;
    use onym_store::{Folder, Options};
    use onym_wire::data::DataBuilder;
    use std::io::Write as _;
    use std::sync::mpsc;
    use std::time::Instant;

    /// Packets of 8000 octets of content: more than sockets hold.
    const PACKETS: u64 = 8000;

    /// Law: while the store takes nothing, nothing is read: who sends waits, and everything is kept
    /// when the store goes on.
    #[test]
    fn a_sender_waits_while_the_store_takes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let disk = Folder::open(place.path()).unwrap();
        let store = Arc::new(Store::open(disk, Options::default()).unwrap());
        let (release, released) = mpsc::channel::<()>();
        store.try_apply(Vec::new(), move |_| _ = released.recv()).unwrap();
        let prefixes = vec!["/bulk".parse().unwrap()];
        let rule = BulkRule { prefixes, admission: None };
        let bulk = Bulk::open("127.0.0.1:0".parse().unwrap(), &store, rule).unwrap();

        let name: Name = "/bulk/a".parse().unwrap();
        let mut packet = Vec::new();
        write_digest_data(&DataBuilder::new(name.as_ref(), &[7; 8000]), &mut packet);
        let all = packet.repeat(usize::try_from(PACKETS).unwrap());
        let mut stream = TcpStream::connect(bulk.address()).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut sent = 0;
        while let Ok(some) = stream.write(&all[sent..])
            && some > 0
        {
            sent += some;
        }
        assert!(sent < all.len(), "the sender never had to wait");
        assert_eq!(bulk.counts(), (0, 0));

        release.send(()).unwrap();
        stream.set_write_timeout(None).unwrap();
        stream.write_all(&all[sent..]).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while bulk.counts() != (PACKETS, 0) && Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(bulk.counts(), (PACKETS, 0));
    }
}
