//! The routes of the forwarder, read by a thread of its own: when the forwarder says that they
//! changed, else twice a second where it has no such events.

use crate::Announce;
use crate::meet::lan::{self, Lan};
use onym_client::blocking::Client;
use onym_client::{ClientOptions, Error, Request, Unanswered, mgmt};
use onym_wire::mgmt::{ORIGIN_APP, ORIGIN_CLIENT, ORIGIN_NLSR, ORIGIN_PREFIX_ANNOUNCEMENT};
use onym_wire::{Component, Name};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two looks at a forwarder that does not say when its routes change; so long an
/// event is waited for.
const EVERY: Duration = Duration::from_millis(500);
/// Time between two looks at one that does: a look that nothing asked for finds only what its
/// events do not tell.
const ANYHOW: Duration = Duration::from_secs(30);
/// Time between two looks at the links.
const LANS_EVERY: Duration = Duration::from_secs(2);
/// The share of the time that looks may take: one in so many.
const SHARE: u32 = 10;

/// What is looked for.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) node: String,
    pub(crate) announce: Announce,
    /// Routes of prefix announcements, too.
    pub(crate) learned: bool,
    /// Links with several peers, too.
    pub(crate) lans: bool,
}

/// What a look found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Routes to be announced: prefix and face, then cost.
    pub(crate) announced: BTreeMap<(Name, u64), u64>,
    /// Routes learned from prefix announcements.
    pub(crate) learned: BTreeMap<(Name, u64), u64>,
    /// Routes of routing: prefix and face.
    pub(crate) routed: Vec<(Name, u64)>,
    /// Links with several peers; none when they were not looked at.
    pub(crate) lans: Option<Vec<Lan>>,
}

/// Reads the routes until `is_over`; sends what it sees when that changed.
pub(crate) fn start(
    watch: Watch,
    is_over: Arc<AtomicBool>,
    seen: SyncSender<Seen>,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("route-watch".into()).spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let node = Some(watch.node.clone());
            let options = ClientOptions { node, ..ClientOptions::default() };
            if let Ok(mut client) = Client::open(options) {
                client.stop_when(Arc::clone(&is_over));
                follow(&watch, &mut client, &is_over, &seen);
            }
            std::thread::sleep(EVERY);
        }
    })
}

/// Looks until the forwarder does not answer, or nobody wants to know.
fn follow(watch: &Watch, client: &mut Client, is_over: &AtomicBool, seen: &SyncSender<Seen>) {
    let mut last: Option<Seen> = None;
    let mut lans_at = Instant::now();
    let mut changes = Changes::default();
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let Some(mut look) = look(client, watch.announce) else { return };
        if !watch.learned {
            look.learned.clear();
        }
        // A forwarder with many routes that change all the time is not asked all the time.
        let rested = begun + begun.elapsed() * SHARE;
        let until = begun + ANYHOW;
        // Routes of routing change by ourselves: only the first look tells them.
        let mut news = last
            .as_ref()
            .is_none_or(|last| last.announced != look.announced || last.learned != look.learned);
        look.lans = last.and_then(|last| last.lans);
        loop {
            if watch.lans && Instant::now() >= lans_at {
                lans_at = Instant::now() + LANS_EVERY;
                let found = lans(client);
                news |= found.is_some() && found != look.lans;
                look.lans = found.or(look.lans);
            }
            if news && seen.send(look.clone()).is_err() {
                return;
            }
            news = false;
            match changes.wait(client) {
                Waited::Changed => break,
                Waited::Nothing if is_over.load(Ordering::Relaxed) => return,
                Waited::Nothing if Instant::now() < until => {}
                Waited::Nothing | Waited::Unknown => break,
            }
        }
        last = Some(look);
        std::thread::sleep(rested.saturating_duration_since(Instant::now()));
    }
}

/// What waiting for an event came to.
enum Waited {
    /// Routes changed.
    Changed,
    /// They did not.
    Nothing,
    /// This forwarder does not tell; [`EVERY`] has passed.
    Unknown,
}

/// The forwarder's events about its routes, `/localhost/onym/rib/events/seq=N`.
#[derive(Debug, Default)]
struct Changes {
    /// The event that is waited for; none before the first, and when it did not come: it may be of
    /// a stream that is no more.
    next: Option<Name>,
    /// Whether this forwarder has told one: silence means that nothing changed.
    tells: bool,
}

fn unknown(begun: Instant) -> Waited {
    std::thread::sleep(EVERY.saturating_sub(begun.elapsed()));
    Waited::Unknown
}

impl Changes {
    /// Waits for an event, [`EVERY`] at most.
    fn wait(&mut self, client: &mut Client) -> Waited {
        let newest = self.next.is_none();
        let all = || "/localhost/onym/rib/events".parse().unwrap_or_default();
        let request = Request {
            can_be_prefix: newest,
            must_be_fresh: newest,
            lifetime: EVERY,
            retries: 0,
            ..Request::new(self.next.take().unwrap_or_else(all))
        };
        let begun = Instant::now();
        let answer = client.request(&request);
        match answer {
            Ok(packet) => {
                let name = packet.data().name;
                let number = name.last().and_then(Component::as_sequence_num);
                let Some(number) = number else { return unknown(begun) };
                let mut next = name.drop_last(1).to_name();
                next.append_sequence_num(number + 1);
                self.next = Some(next);
                self.tells = true;
                Waited::Changed
            }
            Err(Error::Unanswered { why: Unanswered::Timeout, .. }) if self.tells => {
                Waited::Nothing
            }
            Err(_) => unknown(begun),
        }
    }
}

fn lans(client: &mut Client) -> Option<Vec<Lan>> {
    let faces = mgmt::faces(client).ok()?;
    let channels = mgmt::channels(client).ok()?;
    Some(lan::lans(&faces, &channels, &onym_sys::netdev::interfaces().ok()?))
}

fn look(client: &mut Client, announce: Announce) -> Option<Seen> {
    let mut seen = Seen::default();
    for entry in mgmt::rib(client).ok()? {
        for route in entry.routes {
            let announced = route.origin == ORIGIN_CLIENT
                || (route.origin == ORIGIN_APP && announce == Announce::All);
            let key = || (entry.name.clone(), route.face_id);
            if announced && is_public(&entry.name) {
                seen.announced.insert(key(), route.cost);
            }
            if route.origin == ORIGIN_PREFIX_ANNOUNCEMENT && is_public(&entry.name) {
                seen.learned.insert(key(), route.cost);
            }
            // NLSR gives its routes an end; ours and those of ndn-dv have none.
            if route.origin == ORIGIN_NLSR && route.expiration_period_ms.is_none() {
                seen.routed.push(key());
            }
        }
    }
    Some(seen)
}

/// Whether others may hear of a name: not of this host or link, and none of routing itself.
fn is_public(name: &Name) -> bool {
    let first = name.as_ref().get(0).filter(|c| c.is_generic()).map(|c| c.value);
    let private = matches!(first, None | Some(b"localhost" | b"localhop"));
    !private && !name.components().any(|c| c.is_keyword(b"DV"))
}
