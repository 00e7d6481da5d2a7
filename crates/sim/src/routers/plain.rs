//! A router as deployed ones are: ndn-dv's algorithm and timers, without any field of ours, and without
//! prefixes. What networks of both kinds are made of in laws.

use onym_crypto::Signer;
use onym_crypto::signer::write_parameters;
use onym_endpoint::{
    Endpoint, Event, Inbound, Limits, Packet, PrefixId, Request, RequestId, Transmit,
};
use onym_route::codec::{AdvEntry, Advert, Hello, INFINITY};
use onym_route::names::{advert, link_prefix, sync_data};
use onym_route::router::CommandError;
use onym_route::{Command, Config, Names, Output};
use onym_tables::Tick;
use onym_wire::name::Component;
use onym_wire::{DataBuilder, InterestBuilder, Name};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Between a hello with news and the fetch of the advertisement.
const FETCH_AFTER_MS: u64 = 10;
/// A fetch that failed begins again after this.
const AGAIN_MS: u64 = 1000;
/// Advertisements that are served.
const KEPT: usize = 16;
const ENTRIES_MAX: usize = 100_000;

#[derive(Debug)]
struct Neighbour {
    face: u64,
    boot: u64,
    seq: u64,
    heard: Tick,
    fetch_at: Tick,
    fetching: Option<RequestId>,
}

/// Best and second-best way: cost and neighbour.
type Ways = [Option<(u64, Name)>; 2];

/// A deployed router.
#[derive(Debug)]
pub struct Plain {
    config: Config,
    names: Names,
    endpoint: Endpoint,
    advert: PrefixId,
    neighbours: BTreeMap<Name, Neighbour>,
    /// Destination, then neighbour, then cost.
    rib: BTreeMap<Name, BTreeMap<Name, u64>>,
    ways: BTreeMap<Name, Ways>,
    seq: u64,
    kept: VecDeque<(u64, Vec<u8>)>,
    outputs: VecDeque<Output>,
    links: BTreeMap<u64, u64>,
    commands: u64,
    heartbeat: Tick,
    check: Tick,
    signed_ms: u64,
}

impl Plain {
    /// A router that begins at `now`.
    ///
    /// # Panics
    /// When the names in `config` make no router.
    #[must_use]
    pub fn new(now: Tick, config: Config) -> Self {
        let names = Names::new(config.network.clone(), config.router.clone()).expect("a router");
        let mut endpoint = Endpoint::new(config.seed, Limits::default());
        let mut serve =
            |name: &Name| endpoint.serve(name.clone()).expect("invariant: three prefixes");
        serve(&names.sync_active);
        serve(&names.sync_passive);
        let advert = serve(&names.advert);
        let mut router = Self {
            endpoint,
            advert,
            neighbours: BTreeMap::new(),
            rib: BTreeMap::new(),
            ways: BTreeMap::new(),
            seq: 0,
            kept: VecDeque::new(),
            outputs: VecDeque::new(),
            links: BTreeMap::new(),
            commands: 0,
            heartbeat: now,
            check: now + config.dead_interval,
            signed_ms: config.boot * 1000,
            names,
            config,
        };
        for index in 0..router.config.links.len() {
            let uri = router.config.links[index].uri.clone();
            let id = router.command(Command::CreateFace { uri, mtu: None });
            router.links.insert(id, 0);
        }
        router.publish(now);
        router
    }

    fn command(&mut self, command: Command) -> u64 {
        self.commands += 1;
        self.outputs.push_back(Output::Command { id: self.commands, command });
        self.commands
    }

    fn register(&mut self, prefix: Name, face: u64, cost: Option<u64>) {
        self.command(match cost {
            Some(cost) => Command::Register { prefix, face, cost },
            None => Command::Unregister { prefix, face },
        });
    }

    /// The answer to a command.
    pub fn completed(&mut self, _: Tick, id: u64, answer: Result<Option<u64>, CommandError>) {
        if let (Some(_), Ok(Some(face))) = (self.links.remove(&id), answer) {
            self.register(self.names.sync_active.clone(), face, Some(1));
        }
    }

    /// Takes a packet.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) {
        self.endpoint.receive(now, packet);
        self.events(now);
    }

    fn events(&mut self, now: Tick) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Interest { prefix, incoming } if prefix == self.advert => {
                    let rest = incoming.interest().name.suffix(self.names.advert.len());
                    let asked = rest.get(1).and_then(Component::as_version);
                    let kept = self.kept.iter().find(|(seq, _)| Some(*seq) == asked);
                    let segment = rest.get(2).and_then(Component::as_segment).unwrap_or(0);
                    if let Some(data) = kept.and_then(|(_, c)| self.segment(asked?, c, segment)) {
                        self.endpoint.reply(&incoming, data);
                    }
                }
                Event::Interest { incoming, .. } => {
                    let packet = incoming.interest().app_parameters.map(Packet::parse);
                    if let (Some(Ok(packet)), Some(face)) = (packet, incoming.face) {
                        self.on_hello(now, face, &packet);
                    }
                }
                Event::Data { id, packet, .. } => self.on_advert(now, id, &packet),
                Event::Unanswered { id, .. } => {
                    let found = self.neighbours.values_mut().find(|n| n.fetching == Some(id));
                    if let Some(neighbour) = found {
                        (neighbour.fetching, neighbour.fetch_at) = (None, now.plus_ms(AGAIN_MS));
                    }
                }
                _ => {}
            }
        }
    }

    /// One segment is enough for the networks of laws.
    fn segment(&self, seq: u64, content: &[u8], segment: u64) -> Option<Vec<u8>> {
        let mut name = advert(self.names.router.as_ref(), self.config.boot, seq);
        name.append_segment(segment);
        let mut last = Name::new();
        last.append_segment(content.len().div_ceil(8000).max(1) as u64 - 1);
        let at = usize::try_from(segment).ok()? * 8000;
        let piece = content.get(at..content.len().min(at + 8000))?;
        let builder = DataBuilder {
            freshness_ms: 10_000,
            final_block_id: last.as_ref().last(),
            ..DataBuilder::new(name.as_ref(), piece)
        };
        sign(&builder)
    }

    fn on_hello(&mut self, now: Tick, face: u64, packet: &Packet) {
        let Ok(hello) = Hello::parse(packet.data().content) else { return };
        if hello.router == self.names.router {
            return;
        }
        let moved = self.neighbours.get(&hello.router).is_none_or(|n| n.face != face);
        let neighbour = self.neighbours.entry(hello.router.clone()).or_insert_with(|| Neighbour {
            face,
            boot: 0,
            seq: 0,
            heard: now,
            fetch_at: Tick::NEVER,
            fetching: None,
        });
        (neighbour.heard, neighbour.face) = (now, face);
        // As deployed: the two numbers are compared apart.
        if neighbour.boot < hello.boot || neighbour.seq < hello.seq {
            (neighbour.boot, neighbour.seq) = (hello.boot, hello.seq);
            neighbour.fetch_at = now.plus_ms(FETCH_AFTER_MS);
        }
        if moved {
            self.register(link_prefix(hello.router.as_ref()), face, Some(0));
            self.register(self.names.sync_passive.clone(), face, Some(0));
            self.register(self.names.prefix_sync.clone(), face, Some(0));
            self.choose(now);
        }
    }

    fn fetch(&mut self, now: Tick) {
        let due: Vec<Name> = self
            .neighbours
            .iter()
            .filter(|(_, n)| n.fetch_at <= now)
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            let Some(neighbour) = self.neighbours.get_mut(&name) else { continue };
            neighbour.fetch_at = Tick::NEVER;
            let mut of = advert(name.as_ref(), neighbour.boot, neighbour.seq);
            of.append_segment(0);
            let request = Request {
                lifetime: Duration::from_secs(1),
                tries: 3,
                next_hop_face: Some(neighbour.face),
                ..Request::new(of)
            };
            neighbour.fetching = self.endpoint.express(now, &request).ok();
        }
    }

    fn on_advert(&mut self, now: Tick, id: RequestId, packet: &Packet) {
        let found = self.neighbours.iter_mut().find(|(_, n)| n.fetching == Some(id));
        let Some((name, neighbour)) = found else { return };
        neighbour.fetching = None;
        let name = name.clone();
        let Ok(advert) = Advert::parse(packet.data().content, ENTRIES_MAX) else { return };
        self.rib.values_mut().for_each(|by| by.retain(|of, _| *of != name));
        for entry in advert.entries {
            let cost = if entry.next_hop == self.names.router {
                entry.other_cost.saturating_add(1)
            } else {
                entry.cost + 1
            };
            if cost < INFINITY && entry.destination != self.names.router {
                self.rib.entry(entry.destination).or_default().insert(name.clone(), cost);
            }
        }
        self.choose(now);
    }

    /// Best and second best of each destination; news are published at once.
    fn choose(&mut self, now: Tick) {
        self.rib.retain(|_, by| !by.is_empty());
        let mut ways: BTreeMap<Name, Ways> = BTreeMap::new();
        for (destination, by) in &self.rib {
            let mut all: Vec<(u64, Name)> = by.iter().map(|(n, c)| (*c, n.clone())).collect();
            all.sort_by_key(|(cost, name)| (*cost, onym_crypto::sha256(&[name.value()])));
            let mut all = all.into_iter();
            ways.insert(destination.clone(), [all.next(), all.next()]);
        }
        if ways == self.ways {
            return;
        }
        let before = std::mem::replace(&mut self.ways, ways);
        let mut prefixes: Vec<Name> = before.keys().chain(self.ways.keys()).cloned().collect();
        prefixes.sort();
        prefixes.dedup();
        for destination in prefixes {
            let (old, new) = (before.get(&destination), self.ways.get(&destination));
            if old != new {
                self.install(&destination, old.cloned(), new.cloned());
            }
        }
        self.publish(now);
    }

    fn install(&mut self, destination: &Name, old: Option<Ways>, new: Option<Ways>) {
        let prefix = self.names.prefixes_of(destination.as_ref());
        let faces = |ways: Option<Ways>, router: &Self| {
            let hops = ways.into_iter().flatten().flatten();
            let face = |(cost, by): (u64, Name)| Some((router.neighbours.get(&by)?.face, cost));
            hops.filter_map(face).collect::<BTreeMap<u64, u64>>()
        };
        let (old, new) = (faces(old, self), faces(new, self));
        for face in old.keys().filter(|face| !new.contains_key(face)) {
            self.register(prefix.clone(), *face, None);
        }
        for (face, cost) in new {
            self.register(prefix.clone(), face, Some(cost));
        }
    }

    fn publish(&mut self, now: Tick) {
        self.seq += 1;
        let own = AdvEntry {
            destination: self.names.router.clone(),
            next_hop: self.names.router.clone(),
            cost: 0,
            other_cost: INFINITY,
            seq: None,
            metric: None,
        };
        let entry = |(destination, ways): (&Name, &Ways)| {
            let (cost, next_hop) = ways[0].clone()?;
            let other_cost = ways[1].as_ref().map_or(INFINITY, |(cost, _)| *cost);
            let destination = destination.clone();
            Some(AdvEntry { destination, next_hop, cost, other_cost, seq: None, metric: None })
        };
        let entries = std::iter::once(own).chain(self.ways.iter().filter_map(entry)).collect();
        let mut content = Vec::new();
        Advert { entries, requests: Vec::new() }.write(&mut content);
        self.kept.push_back((self.seq, content));
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
        self.say(now);
    }

    fn say(&mut self, now: Tick) {
        self.heartbeat = now + self.config.advertise_interval;
        let hello = Hello {
            router: self.names.router.clone(),
            boot: self.config.boot,
            seq: self.seq,
            delta: None,
            heard: Vec::new(),
            goodbye: false,
        };
        let mut content = Vec::new();
        hello.write(&mut content);
        let name = sync_data(self.names.router.as_ref());
        let Some(data) = sign(&DataBuilder::new(name.as_ref(), &content)) else { return };
        for prefix in [self.names.sync_active.clone(), self.names.sync_passive.clone()] {
            self.signed_ms += 1;
            let nonce = ((self.signed_ms ^ self.config.seed) as u32).to_be_bytes();
            let builder = InterestBuilder {
                nonce: Some(nonce),
                lifetime_ms: Some(1000),
                hop_limit: Some(2),
                ..InterestBuilder::new(prefix.as_ref())
            };
            let mut interest = Vec::new();
            write_parameters(&builder, &data, &mut interest);
            self.endpoint.notify(interest, None);
        }
    }

    /// When [`Plain::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        let fetches = self.neighbours.values().map(|n| n.fetch_at).min().unwrap_or(Tick::NEVER);
        self.endpoint.poll_timeout().min(fetches).min(self.heartbeat).min(self.check)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        self.endpoint.handle_timeout(now);
        self.events(now);
        self.fetch(now);
        if self.heartbeat <= now {
            self.say(now);
        }
        if self.check <= now {
            // As deployed: one look in each dead interval.
            self.check = now + self.config.dead_interval;
            self.bury(now);
        }
    }

    fn bury(&mut self, now: Tick) {
        let dead_interval = self.config.dead_interval;
        let dead: Vec<Name> = self
            .neighbours
            .iter()
            .filter(|(_, n)| now >= n.heard + dead_interval)
            .map(|(name, _)| name.clone())
            .collect();
        for name in dead {
            self.rib.values_mut().for_each(|by| by.retain(|of, _| *of != name));
            self.choose(now);
            let Some(neighbour) = self.neighbours.remove(&name) else { continue };
            for prefix in [
                link_prefix(name.as_ref()),
                self.names.sync_passive.clone(),
                self.names.prefix_sync.clone(),
            ] {
                self.register(prefix, neighbour.face, None);
            }
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.endpoint.poll_transmit()
    }

    /// The next command for the forwarder.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

fn sign(data: &DataBuilder<'_>) -> Option<Vec<u8>> {
    let signer = Signer::digest();
    let mut out = Vec::with_capacity(data.content.len() + 300);
    data.write(&mut out, &signer.info(), |signed| signer.sign(&[signed])).ok()?;
    Some(out)
}
