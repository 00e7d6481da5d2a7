use super::*;
use crate::svs::Version;
use onym_tables::Rng;
use onym_wire::DataBuilder;

const BOOT: u64 = 1_700_000_000;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn app_data(uri: &str, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    let of = name(uri);
    let data = DataBuilder::new(of.as_ref(), content);
    Signer::digest().sign_data(&data, &mut wire).expect("a digest");
    wire
}

fn participant(node: &str, version: Version, seed: u64) -> PubSub {
    let svs = SvsConfig {
        version,
        check: Check::Nothing,
        ..SvsConfig::new(name("/g"), Some(name(node)), BOOT, Signer::digest())
    };
    let config = PsConfig { svs, signer: Signer::digest(), freshness: Duration::from_secs(1) };
    PubSub::new(Tick(0), BOOT * 1000, config, seed)
}

/// Participants on one medium that loses packets.
struct Net {
    nodes: Vec<PubSub>,
    heard: Vec<Vec<PsEvent>>,
    now: Tick,
    rng: Rng,
    loss_percent: u64,
    air: BTreeMap<(Tick, u64), (usize, Vec<u8>)>,
    copies: u64,
}

impl Net {
    fn new(nodes: Vec<PubSub>, loss_percent: u64, seed: u64) -> Self {
        println!("{} participants, {loss_percent} % loss, seed {seed}", nodes.len());
        Self {
            heard: nodes.iter().map(|_| Vec::new()).collect(),
            nodes,
            now: Tick(0),
            rng: Rng::new(seed),
            loss_percent,
            air: BTreeMap::new(),
            copies: 0,
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        loop {
            for from in 0..self.nodes.len() {
                while let Some(event) = self.nodes[from].poll_event() {
                    self.heard[from].push(event);
                }
                while let Some(transmit) = self.nodes[from].poll_transmit(self.now) {
                    for to in (0..self.nodes.len()).filter(|to| *to != from) {
                        if self.rng.below(100) >= self.loss_percent {
                            self.copies += 1;
                            let at = self.now.plus_ms(1 + self.rng.below(20));
                            self.air.insert((at, self.copies), (to, transmit.to_frame()));
                        }
                    }
                }
            }
            let arrival = self.air.keys().next().map_or(Tick::NEVER, |(at, _)| *at);
            let timer = self.nodes.iter().map(PubSub::poll_timeout).min().expect("some");
            if arrival.min(timer) > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(arrival.min(timer));
            while let Some(entry) = self.air.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, frame) = entry.remove();
                let inbound = Inbound::from_frame(&frame).expect("a frame");
                self.nodes[to].receive(self.now, &inbound);
            }
            self.nodes.iter_mut().for_each(|node| node.handle_timeout(self.now));
        }
    }

    fn names(&self, at: usize) -> Vec<String> {
        let publications = self.heard[at].iter().filter_map(|event| match event {
            PsEvent::Publication { packet, .. } => {
                Some(Data::parse(packet).expect("a Data").name.to_string())
            }
            _ => None,
        });
        let mut names: Vec<String> = publications.collect();
        names.sort();
        names
    }

    fn missed(&self, at: usize) -> Vec<PsEvent> {
        let missed = |event: &&PsEvent| matches!(event, PsEvent::Missed { .. });
        self.heard[at].iter().filter(missed).cloned().collect()
    }
}

#[test]
fn subscribers_get_what_is_under_their_prefix_and_fetch_nothing_else() {
    for version in [Version::V2, Version::V3] {
        for (loss, seed) in [(0, 31), (10, 32), (30, 33)] {
            let nodes = vec![
                participant("/a", version, seed),
                participant("/b", version, seed + 100),
                participant("/c", version, seed + 200),
            ];
            let mut net = Net::new(nodes, loss, seed);
            net.nodes[1].subscribe(name("/app/x"));
            for i in 0..40 {
                let kind = if i % 4 == 0 { "x" } else { "y" };
                let data = app_data(&format!("/app/{kind}/{i}"), b"content");
                let now = net.now;
                assert_eq!(net.nodes[0].publish(now, &data).expect("a digest"), Some(i + 1));
                net.run(if i % 3 == 0 { 300 } else { 1 });
            }
            net.run(60_000);
            let mut expected: Vec<String> =
                (0..40).step_by(4).map(|i| format!("/app/x/{i}")).collect();
            expected.sort();
            assert_eq!(net.names(1), expected);
            assert_eq!((net.names(2), net.missed(1)), (Vec::new(), Vec::new()));
        }
    }
}

#[test]
fn a_name_that_comes_along_with_the_vector_is_not_asked_for() {
    let nodes = vec![participant("/a", Version::V2, 1), participant("/b", Version::V2, 2)];
    let mut net = Net::new(nodes, 0, 34);
    net.nodes[1].subscribe(name("/app"));
    net.run(1_000);
    let now = net.now;
    net.nodes[0].publish(now, &app_data("/app/one", b"1")).expect("a digest");
    net.run(1_000);
    assert_eq!(net.names(1), ["/app/one"]);
    let asked = net.nodes[1].endpoint.counters().interests_sent;
    assert_eq!(asked, 1, "the publication alone");
}

#[test]
fn a_newcomer_looks_back_so_far_and_is_told_what_it_misses() {
    let nodes = vec![participant("/a", Version::V3, 3), participant("/late", Version::V3, 4)];
    let mut net = Net::new(nodes, 100, 35);
    for i in 0..300 {
        let now = net.now;
        net.nodes[0].publish(now, &app_data(&format!("/app/{i}"), b"")).expect("a digest");
    }
    net.nodes[1].subscribe(name("/app"));
    net.loss_percent = 0;
    net.run(90_000);
    assert_eq!(net.names(1).len(), 256);
    let missed = PsEvent::Missed { node: name("/a"), low: 1, high: 44 };
    assert_eq!(net.missed(1), [missed]);
}

#[test]
fn a_publication_that_is_not_what_its_mapping_says_is_missed() {
    let mut a = participant("/a", Version::V2, 5);
    a.publish(Tick(0), &app_data("/app/true", b"")).expect("a digest");
    let wire = app_data("/app/false", b"");
    let outer = a.publication(&name("/a"), 1);
    let data = DataBuilder { content_type: 6, ..DataBuilder::new(outer.as_ref(), &wire) };
    let mut lie = Vec::new();
    Signer::digest().sign_data(&data, &mut lie).expect("a digest");
    a.own.insert(1, (name("/app/true"), lie));
    let mut net = Net::new(vec![a, participant("/b", Version::V2, 6)], 0, 36);
    net.nodes[1].subscribe(name("/app"));
    net.run(40_000);
    assert_eq!(net.names(1), Vec::<String>::new());
    assert_eq!(net.missed(1), [PsEvent::Missed { node: name("/a"), low: 1, high: 1 }]);
    assert_eq!(net.nodes[1].malformed(), 1);
}

#[test]
fn mappings_are_written_newest_first_and_read_within_bounds() {
    let mapping = Mapping { node: name("/a"), entries: vec![(1, name("/x")), (2, name("/y"))] };
    let mut wire = Vec::new();
    mapping.write(&mut wire);
    let read = Mapping::parse(&wire).expect("well formed").expect("a mapping");
    assert_eq!(read.entries, [(2, name("/y")), (1, name("/x"))]);
    // 205 { Name, 206 { 204 seq, Name }* }
    let entry = |seq, letter| [206, 8, 204, 1, seq, 7, 3, 8, 1, letter];
    let expected = [&[205, 25, 7, 3, 8, 1, b'a'][..], &entry(2, b'y'), &entry(1, b'x')].concat();
    assert_eq!(wire, expected);
    for cut in 1..wire.len() {
        let _ = Mapping::parse(&wire[..cut]);
    }
    let many = Mapping { entries: (0..300).map(|i| (i, name("/x"))).collect(), ..mapping };
    let mut wire = Vec::new();
    many.write(&mut wire);
    assert!(Mapping::parse(&wire).is_err());
}
