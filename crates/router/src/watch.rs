//! The routes of the forwarder, read twice a second by a thread of its own.

use crate::Announce;
use crate::meet::lan::{self, Lan};
use onym_client::ClientOptions;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::Name;
use onym_wire::mgmt::{ORIGIN_APP, ORIGIN_CLIENT, ORIGIN_NLSR, ORIGIN_PREFIX_ANNOUNCEMENT};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// Every so many looks the links are looked at, too.
const LANS_EVERY: u32 = 4;

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
    let mut count = 0;
    while let Some(mut look) = look(client, watch.announce) {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        if !watch.learned {
            look.learned.clear();
        }
        if watch.lans && count % LANS_EVERY == 0 {
            look.lans = lans(client);
        } else {
            look.lans = last.as_mut().and_then(|last| last.lans.take());
        }
        count += 1;
        // Routes of routing change by ourselves: only the first look tells them.
        let news = last.as_ref().is_none_or(|last| {
            last.announced != look.announced
                || last.learned != look.learned
                || (look.lans.is_some() && last.lans != look.lans)
        });
        if news && seen.send(look.clone()).is_err() {
            return;
        }
        last = Some(look);
        std::thread::sleep(EVERY);
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
