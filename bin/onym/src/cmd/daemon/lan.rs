//! Nodes of one LAN find each other (`push.discover`; spec/push.md, P-85).
//!
//! A thread beside the node says hello to a group on every interface, and hears others. Who is heard
//! gets a face, of which the push half is told as of a neighbour that routing found: whether the link
//! carries anything its own hellos tell. Nobody is obeyed here; the worst that a stranger does is to
//! have faces made, so many at most.

use crate::exit::{Exit, Failure};
use onym_client::blocking::Client;
use onym_client::{ClientOptions, mgmt};
use onym_crypto::edge::random_u64;
use onym_node::config::{Config, PushDiscover};
use onym_node::{FoundLinks, NodeHandle};
use onym_pubsub::DomainKey;
use onym_sys::netdev;
use onym_wire::mgmt::ControlParameters;
use onym_wire::push::{Control, Kind, Label};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where hellos go.
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 80, 84), 56_384);
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
    let listener = node.bound().udp.iter().find(|address| address.is_ipv4());
    let port = listener.ok_or_else(|| failed("there is no UDP listener of IPv4".into()))?.port();
    let uri = super::routing::way_to(node)?;
    let options = ClientOptions { node: Some(uri), ..ClientOptions::default() };
    let client = Client::open(options).map_err(|e| failed(e.to_string()))?;
    let lan = Lan {
        own: Label::from_u64(random_u64()),
        port,
        key: settings.key,
        hears: listen().map_err(|e| failed(e.to_string()))?,
        says: BTreeMap::new(),
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

/// A socket for hellos; other nodes of the host may have one too. It is bound to the group, so that what
/// somebody beyond the LAN sends to this machine alone does not come.
fn listen() -> std::io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &GROUP)?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
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
    port: u16,
    key: Option<DomainKey>,
    hears: UdpSocket,
    /// By the address of the interface.
    says: BTreeMap<Ipv4Addr, UdpSocket>,
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
            let Ok((len, from)) = self.hears.recv_from(&mut buffer) else { continue };
            let octets = buffer.get(..len).unwrap_or_default();
            if let Some(port) = port_of(octets, self.key.as_ref(), self.own) {
                self.hear(SocketAddr::new(from.ip(), port));
            }
        }
    }

    /// Says hello on every interface; those come and go.
    fn say(&mut self) {
        let interfaces = netdev::interfaces().unwrap_or_default();
        let useful = interfaces.iter().filter(|i| i.is_up && i.is_multicast && !i.is_loopback);
        let addresses = useful.flat_map(|interface| &interface.addresses);
        let own: Vec<Ipv4Addr> = addresses
            .filter_map(|ip| if let IpAddr::V4(ip) = ip { Some(*ip) } else { None })
            .collect();
        self.says.retain(|address, _| own.contains(address));
        for address in own {
            if !self.says.contains_key(&address) {
                // What is bound to the address of an interface goes to groups by that interface.
                let socket = UdpSocket::bind((address, 0)).and_then(|socket| {
                    let _ = self.hears.join_multicast_v4(GROUP.ip(), &address);
                    socket.set_multicast_loop_v4(true).map(|()| socket)
                });
                match socket {
                    Ok(socket) => _ = self.says.insert(address, socket),
                    Err(error) => tracing::debug!(%address, %error, "no hello from here"),
                }
            }
        }
        let hello = hello(self.own, self.port, self.key.as_ref());
        for socket in self.says.values() {
            let _ = socket.send_to(&hello, GROUP);
        }
    }

    fn hear(&mut self, at: SocketAddr) {
        let now = Instant::now();
        if !self.heard.contains_key(&at) && self.heard.len() >= NEIGHBOURS_MAX {
            return;
        }
        let fresh = Neighbour { heard: now, face: None, next_try: now };
        let neighbour = self.heard.entry(at).or_insert(fresh);
        neighbour.heard = now;
        if neighbour.face.is_some() || now < neighbour.next_try {
            return;
        }
        neighbour.next_try = now + AGAIN;
        let uri = format!("udp4://{at}");
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
