//! Nodes of one LAN find each other (`push.discover`; spec/push.md, P-85).
//!
//! A thread beside the node says hello on every interface, and hears others (`voice`). Who is heard
//! gets a face, of which the push half is told as of a neighbour that routing found: whether the link
//! carries anything its own hellos tell. Nobody is obeyed here; the worst that a stranger does is to
//! have faces made, so many at most.

mod voice;

use crate::exit::{Exit, Failure};
use onym_client::blocking::Client;
use onym_client::{ClientOptions, mgmt};
use onym_crypto::edge::random_u64;
use onym_face::{FaceUri, uri};
use onym_node::config::{Config, PushDiscover};
use onym_node::{FoundLinks, NodeHandle};
use onym_pubsub::DomainKey;
use onym_sys::netdev;
use onym_wire::mgmt::ControlParameters;
use onym_wire::push::{Control, Kind, Label};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use voice::Voice;

/// Time between hellos.
const HELLO: Duration = Duration::from_secs(1);
/// Who was not heard for so long is none of the LAN any more.
const GONE: Duration = Duration::from_secs(30);
/// Time between two tries to make a face.
const AGAIN: Duration = Duration::from_secs(10);
/// How often it is looked whether the node ends.
const LOOK: Duration = Duration::from_millis(200);
/// Most neighbours; further ones are not heard.
const NEIGHBOURS_MAX: usize = 64;
/// Most octets of a hello.
const HELLO_MAX: usize = 256;

/// What the configuration means; nothing where nobody is looked for.
pub(super) struct Settings {
    key: Option<DomainKey>,
}

pub(super) fn settings(config: &Config) -> Option<Settings> {
    let push = &config.push;
    let is_on = push.enabled && push.discover != PushDiscover::Off;
    let key = (!push.key.is_empty()).then(|| DomainKey::new(push.key.as_bytes()));
    is_on.then_some(Settings { key })
}

/// The thread; it ends when this is dropped.
pub(super) struct Handle {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Begins to look for others of the LAN.
pub(super) fn start(
    settings: Option<Settings>,
    node: &NodeHandle,
) -> anyhow::Result<Option<Handle>> {
    let Some(settings) = settings else { return Ok(None) };
    let failed = |why: String| {
        Failure::new(Exit::Failed, "nodes of the LAN cannot be looked for")
            .why(why)
            .next("check push.discover and faces.udp.listen")
    };
    let voices = Voice::of(&node.bound().udp).map_err(|e| failed(e.to_string()))?;
    if voices.is_empty() {
        return Err(failed("there is no UDP listener".into()).into());
    }
    let uri = super::routing::way_to(node)?;
    let options = ClientOptions { node: Some(uri), ..ClientOptions::default() };
    let client = Client::open(options).map_err(|e| failed(e.to_string()))?;
    let lan = Lan {
        own: Label::from_u64(random_u64()),
        key: settings.key,
        voices,
        heard: BTreeMap::new(),
        found: node.found_links(),
        client,
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let thread = std::thread::Builder::new().name("onym-lan".into());
    let thread = thread.spawn(move || lan.run(&ends)).map_err(|e| failed(e.to_string()))?;
    Ok(Some(Handle { is_over, thread: Some(thread) }))
}

/// A neighbour.
struct Neighbour {
    heard: Instant,
    /// The face to it, once it is there.
    face: Option<u64>,
    /// When a face may be tried again.
    next_try: Instant,
}

struct Lan {
    /// This life of the node, among those that say hello.
    own: Label,
    key: Option<DomainKey>,
    /// One for each kind of listener that the node has.
    voices: Vec<Voice>,
    heard: BTreeMap<SocketAddr, Neighbour>,
    found: FoundLinks,
    client: Client,
}

impl Lan {
    fn run(mut self, is_over: &AtomicBool) {
        let mut next = Instant::now();
        let mut buffer = [0; HELLO_MAX];
        while !is_over.load(Ordering::Relaxed) {
            if next <= Instant::now() {
                next = Instant::now() + HELLO;
                self.say();
                self.forget();
            }
            voice::wait(&self.voices, LOOK);
            for at in 0..self.voices.len() {
                self.turn(at, &mut buffer);
            }
        }
    }

    /// Takes one datagram of one kind, if there is one.
    fn turn(&mut self, at: usize, buffer: &mut [u8]) {
        let Some(voice) = self.voices.get(at) else { return };
        let Some((len, from)) = voice.hear(buffer) else { return };
        let octets = buffer.get(..len).unwrap_or_default();
        let Some(port) = port_of(octets, self.key.as_ref(), self.own) else { return };
        let place = SocketAddr::new(from.ip(), port);
        let place = match (place, from) {
            (SocketAddr::V6(mut place), SocketAddr::V6(from)) => {
                place.set_scope_id(from.scope_id());
                place.into()
            }
            (place, _) => place,
        };
        if !self.has_room_for(place) {
            return;
        }
        voice.answer(from, &hello(self.own, voice.port(), self.key.as_ref()));
        self.hear(place);
    }

    /// Says hello wherever this node says it.
    fn say(&mut self) {
        let interfaces = netdev::interfaces().unwrap_or_default();
        for voice in &mut self.voices {
            let hello = hello(self.own, voice.port(), self.key.as_ref());
            voice.say(&interfaces, &hello);
        }
    }

    fn has_room_for(&self, at: SocketAddr) -> bool {
        self.heard.contains_key(&at) || self.heard.len() < NEIGHBOURS_MAX
    }

    fn hear(&mut self, at: SocketAddr) {
        let now = Instant::now();
        let fresh = Neighbour { heard: now, face: None, next_try: now };
        let neighbour = self.heard.entry(at).or_insert(fresh);
        neighbour.heard = now;
        if neighbour.face.is_some() || now < neighbour.next_try {
            return;
        }
        neighbour.next_try = now + AGAIN;
        let uri = FaceUri::Udp(uri::endpoint(at)).to_string();
        let wanted = ControlParameters { uri: Some(uri.clone()), ..ControlParameters::default() };
        match mgmt::create_face(&mut self.client, &wanted) {
            Ok(created) => {
                let Some(face) = created.face.face_id else { return };
                tracing::info!(uri, face, "a node of the LAN is there");
                self.found.up(face, 1);
                neighbour.face = Some(face);
            }
            Err(error) => tracing::warn!(uri, %error, "no face to a node of the LAN"),
        }
    }

    /// Forgets who was not heard; faces go when nothing crosses them.
    fn forget(&mut self) {
        let found = &self.found;
        self.heard.retain(|at, neighbour| {
            let is_there = neighbour.heard.elapsed() < GONE;
            if let (false, Some(face)) = (is_there, neighbour.face) {
                tracing::info!(%at, face, "a node of the LAN is not there any more");
                found.down(face);
            }
            is_there
        });
    }
}

/// A hello: the message of that kind, with the port in Item.
fn hello(own: Label, port: u16, key: Option<&DomainKey>) -> Vec<u8> {
    let message = Control { item: Some(port.into()), ..Control::new(Kind::HELLO, own) };
    let mut octets = message.octets();
    key.into_iter().for_each(|key| key.seal(&mut octets));
    octets
}

/// The port in a hello of another node that has the same key.
fn port_of(octets: &[u8], key: Option<&DomainKey>, own: Label) -> Option<u16> {
    if key.is_some_and(|key| !key.fits(octets)) {
        return None;
    }
    let message = Control::parse(octets).ok()?;
    let is_hello = message.kind == Kind::HELLO && message.sender != own;
    message.item.filter(|_| is_hello)?.try_into().ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_of_others_with_the_same_key_are_heard() {
        let [own, other] = [1, 2].map(Label::from_u64);
        let [key, wrong] = [b"key", b"not"].map(|key| DomainKey::new(key));
        let said = hello(other, 6363, Some(&key));
        assert_eq!(port_of(&said, Some(&key), own), Some(6363));
        assert_eq!(port_of(&said, Some(&wrong), own), None);
        assert_eq!(port_of(&said, Some(&key), other), None, "its own");
        let open = hello(other, 6363, None);
        assert_eq!(
            (port_of(&open, None, own), port_of(&open, Some(&key), own)),
            (Some(6363), None)
        );
        assert_eq!(port_of(&hello(other, 0, None), None, own), None);
        for len in 0..said.len() {
            assert_eq!(port_of(&said[..len], Some(&key), own), None, "{len} octets");
            let _ = port_of(&said[..len], None, own);
        }
    }
}
