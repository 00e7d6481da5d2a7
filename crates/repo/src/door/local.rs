//! The local socket: a line of JSON that asks, packets where some belong to it, a line that answers.

use super::Packets;
use crate::answer::newest_object;
use crate::repo::WantedRoot;
use onym_crypto::edge::unix_now_ms;
use onym_store::{AfarStats, Change, Done, Store};
use onym_wire::data::Data;
use onym_wire::name::Name;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Connections at the same time.
const CONNECTIONS_MAX: usize = 16;
/// Octets of a question.
const LINE_MAX: u64 = 64 << 10;
/// Names in one answer.
const NAMES_MAX: usize = 1000;
/// How long an insertion waits for the node to route its root.
const ROUTE_WAIT: Duration = Duration::from_secs(5);
/// Packets that are deleted in one group.
const DELETE_STEP: usize = 1000;

/// What can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Ask {
    /// Keep the packets that follow, and serve them under `root`.
    Insert {
        /// The root.
        root: String,
    },
    /// How much there is.
    Stats,
    /// What there is one component below a name.
    List {
        /// The name.
        prefix: String,
        /// Names behind this one.
        after: Option<String>,
    },
    /// The packets of an object.
    Get {
        /// Its name, with or without a version.
        name: String,
    },
    /// Forget everything under a name.
    Delete {
        /// The name.
        prefix: String,
    },
    /// Read and check everything.
    Verify,
    /// Compact segments that are not alive to this share.
    Collect {
        /// Of 1.
        share: f64,
    },
    /// Jobs and how far they are.
    Jobs,
}

/// What is answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// Why it could not be done.
    pub error: Option<String>,
    /// Packets that are new.
    pub new: u64,
    /// Packets that were there already.
    pub had: u64,
    /// Packets that took the place of others.
    pub replaced: u64,
    /// Packets that were refused, and why the first one was.
    pub refused: u64,
    /// Why the first one was.
    pub why: Option<String>,
    /// Packets, deleted or there.
    pub packets: u64,
    /// Octets, there or freed.
    pub octets: u64,
    /// Octets on the disk.
    pub log_octets: u64,
    /// Files of the log.
    pub segments: u64,
    /// Packets found damaged.
    pub damaged: u64,
    /// What the disk said last, while it fails.
    pub trouble: Option<String>,
    /// Names; those that are objects end with their version.
    pub names: Vec<String>,
    /// Whether there are more names.
    pub more: bool,
    /// Segments that follow, of an object.
    pub follow: Option<u64>,
    /// Jobs, as they are noted.
    pub jobs: Vec<serde_json::Value>,
    /// Octets that the bucket gave and that belong to no record.
    pub wrong_octets: u64,
    /// The bucket, where full segments go to one.
    pub bucket: Option<InBucket>,
}

/// What is said of a bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InBucket {
    /// Files of the log that are there, verified.
    pub segments: u64,
    /// Their octets.
    pub octets: u64,
    /// Files of the log that are there only.
    pub only_there: u64,
    /// Full ones that are not there yet.
    pub waiting: u64,
    /// Octets of the log on this disk.
    pub here_octets: u64,
    /// Octets that were read from there since the start, to be served.
    pub fetched_octets: u64,
    /// Times that it gave what was not put there, since the start.
    pub wrong: u64,
    /// What it did last, in a sentence, while it does not do what it is asked.
    pub trouble: Option<String>,
}

impl From<AfarStats> for InBucket {
    fn from(there: AfarStats) -> Self {
        Self {
            segments: there.segments,
            octets: there.octets,
            only_there: there.far_only,
            waiting: there.waiting,
            here_octets: there.near_octets,
            fetched_octets: there.fetched_octets,
            wrong: there.wrong,
            trouble: there.trouble,
        }
    }
}

impl Said {
    fn failed(error: impl ToString) -> Self {
        Self { error: Some(error.to_string()), ..Self::default() }
    }
}

/// Opens the socket `path`, of mode 0600.
///
/// # Errors
/// Those of the operating system.
pub fn listen(path: &Path, store: &Arc<Store>, roots: Sender<WantedRoot>) -> io::Result<()> {
    // The store is locked: what is there belongs to nobody any more.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    let store = Arc::downgrade(store);
    let open = Arc::new(AtomicUsize::new(0));
    std::thread::Builder::new().name("onym-repo-local".into()).spawn(move || {
        for stream in listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (store, roots) = (Weak::clone(&store), roots.clone());
            let closed = Arc::clone(&open);
            let thread = std::thread::Builder::new().name("onym-repo-local".into());
            let made = thread.spawn(move || {
                if let Some(store) = store.upgrade()
                    && let Err(error) = serve(&stream, &store, Some(&roots))
                {
                    tracing::debug!(%error, "local-closed");
                }
                closed.fetch_sub(1, Ordering::Relaxed);
            });
            if let Err(error) = made {
                // The stream went with the closure: the other side hears an end.
                open.fetch_sub(1, Ordering::Relaxed);
                tracing::warn!(%error, "local-refused");
            }
        }
    })?;
    Ok(())
}

/// A connection to a store that no repository has open: a thread of this process answers.
///
/// # Errors
/// Those of the operating system.
pub fn over(store: Store) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    std::thread::Builder::new().name("onym-repo-local".into()).spawn(move || {
        if let Err(error) = serve(&theirs, &store, None) {
            tracing::debug!(%error, "local-closed");
        }
        // In order, before the other side hears the end.
        drop(store);
        drop(theirs);
    })?;
    Ok(ours)
}

/// Asks over `stream`: `send` writes the packets that belong to it, `take` gets each that follows.
///
/// # Errors
/// Those of the operating system; `InvalidData` for an answer that is none.
pub fn ask(
    stream: &UnixStream,
    ask: &Ask,
    send: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Said> {
    let mut out = io::BufWriter::with_capacity(256 << 10, stream);
    serde_json::to_writer(&mut out, ask)?;
    out.write_all(b"\n")?;
    send(&mut out)?;
    out.flush()?;
    drop(out);
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut from = BufReader::with_capacity(256 << 10, stream);
    let mut line = String::new();
    from.by_ref().take(64 << 20).read_line(&mut line)?;
    let said: Said = serde_json::from_str(&line)?;
    if said.follow.is_some() {
        let mut packets = Packets::new(from);
        loop {
            let group = packets.group()?;
            if group.is_empty() {
                break;
            }
            group.iter().try_for_each(|packet| take(packet))?;
        }
    } else {
        // The other side has closed the store.
        from.read_to_end(&mut Vec::new())?;
    }
    Ok(said)
}

fn serve(stream: &UnixStream, store: &Store, roots: Option<&Sender<WantedRoot>>) -> io::Result<()> {
    let mut from = BufReader::new(stream);
    let mut line = String::new();
    from.by_ref().take(LINE_MAX).read_line(&mut line)?;
    let mut out = io::BufWriter::with_capacity(256 << 10, stream);
    let said = match serde_json::from_str::<Ask>(&line) {
        Err(error) => Said::failed(error),
        Ok(Ask::Insert { root }) => insert(from, store, &root, roots).unwrap_or_else(Said::failed),
        Ok(Ask::Get { name }) => return get(store, &name, &mut out),
        Ok(ask) => answer(store, ask).unwrap_or_else(Said::failed),
    };
    say(&mut out, &said)
}

fn say(out: &mut dyn Write, said: &Said) -> io::Result<()> {
    serde_json::to_writer(&mut *out, said)?;
    out.write_all(b"\n")?;
    out.flush()
}

fn insert(
    from: impl Read,
    store: &Store,
    root: &str,
    roots: Option<&Sender<WantedRoot>>,
) -> io::Result<Said> {
    let root: Name = root.parse().map_err(io::Error::other)?;
    let mut said = Said::default();
    let mut packets = Packets::new(from);
    loop {
        let group = packets.group()?;
        if group.is_empty() {
            break;
        }
        let changes = group.into_iter().map(Change::insert).collect();
        for answer in store.apply(changes).map_err(io::Error::other)? {
            match answer {
                Ok(Done::Had) => said.had += 1,
                Ok(Done::Replaced) => said.replaced += 1,
                Ok(_) => said.new += 1,
                Err(why) => {
                    said.refused += 1;
                    said.why.get_or_insert_with(|| why.to_string());
                }
            }
        }
    }
    match roots {
        Some(roots) => {
            let (tell, told) = channel();
            // Without a node it is served later.
            let _ = roots.send((root, tell));
            let _ = told.recv_timeout(ROUTE_WAIT);
        }
        None => {
            let key = [b"root/".as_slice(), root.value()].concat();
            store
                .apply(vec![Change::Note { key, value: Some(Vec::new()) }])
                .map_err(io::Error::other)?;
        }
    }
    Ok(said)
}

fn answer(store: &Store, ask: Ask) -> Result<Said, onym_store::Error> {
    let bad = |e: onym_wire::name::UriError| onym_store::Error::Index(e.to_string());
    Ok(match ask {
        Ask::Insert { .. } | Ask::Get { .. } => Said::default(),
        Ask::Stats => {
            let stats = store.stats()?;
            Said {
                packets: stats.total.packets,
                octets: stats.total.octets,
                log_octets: stats.log_octets,
                segments: stats.segments,
                damaged: stats.damaged,
                trouble: stats.trouble,
                bucket: stats.afar.map(InBucket::from),
                ..Said::default()
            }
        }
        Ask::List { prefix, after } => list(store, &prefix, after.as_deref())?,
        Ask::Delete { prefix } => delete(store, &prefix.parse().map_err(bad)?)?,
        Ask::Verify => {
            let found = store.scrub()?;
            Said {
                packets: found.records,
                damaged: found.lost,
                octets: found.damaged_octets,
                wrong_octets: found.wrong_octets,
                ..Said::default()
            }
        }
        Ask::Collect { share } => Said { octets: store.collect(share)?, ..Said::default() },
        Ask::Jobs => {
            let jobs = store.notes(b"job/")?;
            let jobs = jobs.iter().filter_map(|(_, job)| serde_json::from_slice(job).ok());
            Said { jobs: jobs.collect(), ..Said::default() }
        }
    })
}

fn list(store: &Store, prefix: &str, after: Option<&str>) -> Result<Said, onym_store::Error> {
    let bad = |e: onym_wire::name::UriError| onym_store::Error::Index(e.to_string());
    let prefix = if prefix == "/" { Name::new() } else { prefix.parse().map_err(bad)? };
    let after: Option<Name> = after.map(str::parse).transpose().map_err(bad)?;
    let mut reader = store.reader();
    let after = after.as_ref().map(Name::as_ref);
    let children = reader.children(prefix.as_ref(), after, NAMES_MAX)?;
    let more = children.len() == NAMES_MAX;
    let names = children.iter().map(Name::to_string).collect();
    Ok(Said { names, more, ..Said::default() })
}

fn delete(store: &Store, prefix: &Name) -> Result<Said, onym_store::Error> {
    let mut reader = store.reader();
    let mut said = Said::default();
    let mut after: Option<Name> = None;
    loop {
        let after_ref = after.as_ref().map(Name::as_ref);
        let names = reader.names(prefix.as_ref(), after_ref, DELETE_STEP)?;
        let Some(last) = names.last() else { return Ok(said) };
        after = Some(last.name.clone());
        let changes = names.into_iter().map(|one| Change::delete(one.name)).collect();
        for answer in store.apply(changes)? {
            match answer {
                Ok(Done::Deleted) => said.packets += 1,
                Ok(_) => {}
                Err(why) => {
                    said.refused += 1;
                    said.why = Some(why.to_string());
                    return Ok(said);
                }
            }
        }
    }
}

/// Sends the packets of an object in order; a missing one ends it.
fn get(store: &Store, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut reader = store.reader();
    let now_ms = unix_now_ms();
    let object = name.parse::<Name>().map_err(|e| e.to_string()).and_then(|name| {
        newest_object(&mut reader, now_ms, name.as_ref()).map_err(|e| e.to_string())
    });
    let object = match object {
        Ok(Some(object)) => object,
        Ok(None) => return say(out, &Said::failed(format!("{name} is not in the repository"))),
        Err(why) => return say(out, &Said::failed(why)),
    };
    let follow = Some(object.last_segment + 1);
    let names = vec![object.name.to_string()];
    say(out, &Said { follow, names, octets: object.size, ..Said::default() })?;
    let mut segment_name = object.name;
    for segment in 0..=object.last_segment {
        segment_name.append_segment(segment);
        let packet = reader.get(now_ms, segment_name.as_ref()).map_err(io::Error::other)?;
        let Some(packet) = packet.filter(|p| Data::parse(p).is_ok()) else { return out.flush() };
        out.write_all(&packet)?;
        segment_name.pop();
    }
    out.flush()
}
