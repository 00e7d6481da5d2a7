//! The routes of the forwarder, read each second by a thread of its own.

use crate::Announce;
use onym_client::ClientOptions;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::Name;
use onym_wire::mgmt::{ORIGIN_APP, ORIGIN_CLIENT, ORIGIN_NLSR};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(500);

/// What a look found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Routes to be announced: prefix and face, then cost.
    pub(crate) announced: BTreeMap<(Name, u64), u64>,
    /// Routes of routing: prefix and face.
    pub(crate) routed: Vec<(Name, u64)>,
}

/// Reads the routes until `is_over`; sends what it sees when that changed.
pub(crate) fn start(
    node: String,
    announce: Announce,
    is_over: Arc<AtomicBool>,
    seen: SyncSender<Seen>,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("route-watch".into()).spawn(move || {
        let mut last = None;
        while !is_over.load(Ordering::Relaxed) {
            let options = ClientOptions { node: Some(node.clone()), ..ClientOptions::default() };
            if let Ok(mut client) = Client::open(options) {
                client.stop_when(Arc::clone(&is_over));
                while let Some(look) = look(&mut client, announce) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    // Routes of routing change by ourselves: only the first look tells them.
                    let news = last.as_ref().is_none_or(|l: &Seen| l.announced != look.announced);
                    if news && seen.send(look.clone()).is_err() {
                        return;
                    }
                    last = Some(look);
                    std::thread::sleep(EVERY);
                }
            }
            std::thread::sleep(EVERY);
        }
    })
}

fn look(client: &mut Client, announce: Announce) -> Option<Seen> {
    let mut seen = Seen::default();
    for entry in mgmt::rib(client).ok()? {
        for route in entry.routes {
            let announced = route.origin == ORIGIN_CLIENT
                || (route.origin == ORIGIN_APP && announce == Announce::All);
            if announced && is_public(&entry.name) {
                seen.announced.insert((entry.name.clone(), route.face_id), route.cost);
            }
            // NLSR gives its routes an end; ours and those of ndn-dv have none.
            if route.origin == ORIGIN_NLSR && route.expiration_period_ms.is_none() {
                seen.routed.push((entry.name.clone(), route.face_id));
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
