//! Routing: advertisements, hellos, prefix operations, and a border that gets them.

use crate::Feed;
use onym_crypto::Signer;
use onym_crypto::signer::write_parameters;
use onym_endpoint::{Endpoint, Event, Inbound};
use onym_route::codec::{AdvEntry, Advert, Hello, INFINITY, PrefixOps};
use onym_route::prefixes::PrefixLimits;
use onym_route::{Border, Command, Config, Export, Names, Output, Router, Verdict, names, table};
use onym_router::Greeting;
use onym_tables::Tick;
use onym_wire::{Component, Data, DataBuilder, Interest, InterestBuilder, Name};

const UNIX_MS: u64 = 1_795_444_162_000;
const BOOT: u64 = UNIX_MS / 1000;
const DESTINATIONS_MAX: usize = 8;
const PREFIXES_MAX: usize = 16;
const NEIGHBOURS_MAX: usize = 4;
/// Interests of the border that are answered in a round, at most.
const ANSWERS_MAX: usize = 16;
const FACE: u64 = 300;

/// Reads `input` as what a neighbour with a key says, and gives it to a router at a border.
///
/// # Panics
/// When a law does not hold.
pub fn route(input: &[u8]) {
    codec(input);
    greeting(input);
    border(&mut Feed::new(input));
}

/// What is read is read as the same after it was written again.
fn codec(input: &[u8]) {
    let mut wire = Vec::new();
    if let Ok(advert) = Advert::parse(input, 100) {
        advert.write(&mut wire);
        assert_eq!(Advert::parse(&wire, 100), Ok(advert));
    }
    wire.clear();
    if let Ok(hello) = Hello::parse(input) {
        hello.write(&mut wire);
        assert_eq!(Hello::parse(&wire), Ok(hello));
    }
    wire.clear();
    if let Ok(ops) = PrefixOps::parse(input) {
        ops.write(&mut wire);
        assert_eq!(PrefixOps::parse(&wire), Ok(ops));
    }
}

/// A hello by which routers find each other, and what it says, written again.
fn greeting(input: &[u8]) {
    let names = Names::new(name("/net"), name("/net/x")).expect("constant names");
    let to = Greeting::prefix(&names);
    let read = |wire: &[u8]| {
        let mut endpoint = Endpoint::new(1, onym_endpoint::Limits::default());
        endpoint.serve(to.clone()).expect("the first prefix");
        endpoint.receive(Tick(0), &Inbound::bare(wire));
        match endpoint.poll_event() {
            Some(Event::Interest { incoming, .. }) => Greeting::read(&names, &incoming),
            _ => None,
        }
    };
    let of = names::advert_prefix(name("/net/p").as_ref()).with(Component::keyword(b"FIND"));
    let Some((greeting, _)) = read(&said(&to, &of, input)) else { return };
    let wire = greeting.write(&names, &Signer::digest(), [1; 4]).expect("law: it can be written");
    let (again, _) = read(&wire).expect("law: what is written can be read");
    assert_eq!(again, greeting);
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a constant name")
}

fn router(network: &str) -> Router {
    let network = name(network);
    let own = network.clone().with(Component::generic(b"x"));
    let mut config = Config::new(network, own, BOOT, 7);
    config.table = table::Limits { destinations_max: DESTINATIONS_MAX, ..config.table };
    config.prefixes =
        PrefixLimits { local_max: PREFIXES_MAX, router_max: PREFIXES_MAX, total_max: PREFIXES_MAX };
    config.neighbours_max = NEIGHBOURS_MAX;
    Router::new(Tick(0), config, Signer::digest(), UNIX_MS).expect("constant names")
}

fn data(of: &Name, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    let last = of.as_ref().last().filter(|last| last.as_segment().is_some());
    let builder = DataBuilder { final_block_id: last, ..DataBuilder::new(of.as_ref(), content) };
    Signer::digest().sign_data(&builder, &mut wire).expect("a digest");
    wire
}

/// An Interest under `to` with `content` in a Data `of`.
fn said(to: &Name, of: &Name, content: &[u8]) -> Vec<u8> {
    let mut interest = Vec::new();
    let builder = InterestBuilder { nonce: Some([1; 4]), ..InterestBuilder::new(to.as_ref()) };
    write_parameters(&builder, &data(of, content), &mut interest);
    interest
}

/// The neighbour `/net/p`, which has a key.
struct Neighbour {
    names: Names,
}

impl Neighbour {
    fn hello(&self, content: &[u8]) -> Vec<u8> {
        said(&self.names.sync_active, &names::sync_data(self.names.router.as_ref()), content)
    }

    fn vector(&self, content: &[u8]) -> Vec<u8> {
        let mut to = self.names.prefix_sync.clone();
        to.append_version(3);
        said(&to, &to, content)
    }

    /// That it lives, has published once, and is next to itself: its prefixes are followed from then on.
    fn meet(&self, border: &mut Border, now: Tick) {
        let router = self.names.router.clone();
        let mut content = Vec::new();
        let hello = Hello {
            router: router.clone(),
            boot: BOOT,
            seq: 1,
            delta: None,
            heard: Vec::new(),
            goodbye: false,
        };
        hello.write(&mut content);
        give(border, now, &self.hello(&content));
        give(border, now, &self.vector(&content));
        let own = AdvEntry {
            destination: router.clone(),
            next_hop: router.clone(),
            cost: 0,
            other_cost: INFINITY,
            seq: None,
            metric: None,
        };
        content.clear();
        Advert { entries: vec![own], requests: Vec::new() }.write(&mut content);
        let mut of = names::advert(router.as_ref(), BOOT, 1);
        of.append_segment(0);
        let now = now.plus_ms(20);
        border.handle_timeout(now);
        give(border, now, &data(&of, &content));
    }
}

fn give(border: &mut Border, now: Tick, wire: &[u8]) {
    border.receive(now, &Inbound { wire, incoming_face: Some(FACE), ..Inbound::default() });
    obey(border, now);
}

/// `content` as the answer to `asked`; where a version is asked for, what leads to it.
fn answer(asked: &Interest<'_>, content: &[u8]) -> Vec<u8> {
    let name = asked.name;
    if !name.last().is_some_and(|last| last.is_keyword(b"metadata")) {
        return data(&name.to_name(), content);
    }
    let mut version = name.drop_last(1).to_name();
    version.append_version(1);
    let mut inner = Vec::new();
    version.as_ref().write_tlv(&mut inner);
    inner.extend_from_slice(&[0x1a, 3, 0x32, 1, 0]);
    let mut of = name.to_name();
    of.append_version(1).append_segment(0);
    data(&of, &inner)
}

/// Tables stay within their bounds, and what leaves can be read.
fn border(feed: &mut Feed<'_>) {
    let (net, other) = (name("/net"), name("/other"));
    let exports = vec![Export::all(net.clone(), other.clone()), Export::all(other, net.clone())];
    let routers = ["/net", "/other"].map(router).into();
    let mut border = Border::new(Tick(0), routers, exports).expect("constant names");
    let neighbour = Neighbour { names: Names::new(net, name("/net/p")).expect("constant names") };
    let mut now = Tick(0);
    obey(&mut border, now);
    neighbour.meet(&mut border, now);
    let mut asked: Vec<Vec<u8>> = Vec::new();
    for round in 0..6 {
        now = now.plus_ms(u64::from(feed.short()));
        let (kind, len) = (feed.below(4), usize::from(feed.short()) % 1500);
        let octets = if round == 5 { feed.all() } else { feed.octets(len) };
        match kind {
            0 => give(&mut border, now, &neighbour.hello(octets)),
            1 => give(&mut border, now, &neighbour.vector(octets)),
            2 => give(&mut border, now, octets),
            _ => {}
        }
        border.handle_timeout(now);
        obey(&mut border, now);
        for wire in asked.drain(..) {
            let interest = Interest::parse(&wire).expect("law: what leaves can be read");
            give(&mut border, now, &answer(&interest, octets));
        }
        while let Some(transmit) = border.poll_transmit(now) {
            match Interest::parse(&transmit.wire) {
                Ok(_) if asked.len() < ANSWERS_MAX => asked.push(transmit.wire),
                Ok(_) => {}
                Err(_) => assert!(Data::parse(&transmit.wire).is_ok(), "law: it can be read"),
            }
        }
    }
    for router in border.routers() {
        assert!(router.table().len() <= DESTINATIONS_MAX);
        assert!(router.prefixes().remote().count() <= PREFIXES_MAX);
        assert!(router.prefixes().outsides().count() <= PREFIXES_MAX);
        assert!(router.neighbour_counts().0 <= NEIGHBOURS_MAX as u64);
    }
}

fn obey(border: &mut Border, now: Tick) {
    while let Some(output) = border.poll_output() {
        match output {
            Output::Verify { id, .. } => border.verified(now, id, Verdict::Good),
            Output::Command { id, command } => {
                let face = matches!(command, Command::CreateFace { .. }).then_some(FACE);
                border.completed(now, id, Ok(face));
            }
            Output::Notice(_) => {}
        }
    }
}
