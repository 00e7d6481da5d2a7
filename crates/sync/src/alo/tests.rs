use super::*;
use onym_tables::Rng;
use std::collections::BTreeMap;

const BOOT: u64 = 1_795_444_162;
const UNIX_MS: u64 = BOOT * 1000;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

fn config(node: &str, boot: u64, snapshots: Snapshots) -> AloConfig {
    let mut config = AloConfig::new(name("/g"), name(node), boot, Signer::digest(), snapshots);
    config.svs.check = Check::Nothing;
    config
}

/// Participants on one medium that delays each copy and loses some.
struct Net {
    nodes: Vec<Alo>,
    heard: Vec<Vec<AloEvent>>,
    now: Tick,
    rng: Rng,
    loss_percent: u64,
    air: BTreeMap<(Tick, u64), (usize, Vec<u8>)>,
    copies: u64,
}

impl Net {
    fn new(loss_percent: u64, seed: u64) -> Self {
        println!("{loss_percent} % loss, seed {seed}");
        let (nodes, heard, air) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (now, rng) = (Tick(0), Rng::new(seed));
        Self { nodes, heard, now, rng, loss_percent, air, copies: 0 }
    }

    fn join(&mut self, config: AloConfig) -> usize {
        let unix_ms = UNIX_MS + self.now.0 / 1_000_000;
        let mut alo = Alo::new(self.now, unix_ms, config, self.rng.next_u64());
        alo.subscribe(self.now, Name::new());
        self.nodes.push(alo);
        self.heard.push(Vec::new());
        self.nodes.len() - 1
    }

    fn publish(&mut self, node: usize, content: &[u8]) -> u64 {
        let state = || [b"state of ", content].concat();
        self.nodes[node].publish(self.now, content, state).expect("a digest")
    }

    fn publish_many(&mut self, node: usize, count: usize) {
        for _ in 0..count {
            self.publish(node, b"x");
        }
    }

    fn drain(&mut self) {
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
    }

    fn run(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        loop {
            self.drain();
            let arrival = self.air.keys().next().map_or(Tick::NEVER, |(at, _)| *at);
            let timer = self.nodes.iter().map(Alo::poll_timeout).min().unwrap_or(Tick::NEVER);
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
            for node in &mut self.nodes {
                node.handle_timeout(self.now);
            }
        }
    }

    /// Publications and snapshots of `of` that `at` heard: bootstrap, number, is a snapshot.
    fn got(&self, at: usize, of: &str) -> Vec<(u64, u64, bool)> {
        let of = name(of);
        let heard = self.heard[at].iter();
        heard
            .filter_map(|event| match event {
                AloEvent::Publication { node, boot, seq, .. } if *node == of => {
                    Some((*boot, *seq, false))
                }
                AloEvent::Snapshot { node, boot, seq, .. } if *node == of => {
                    Some((*boot, *seq, true))
                }
                _ => None,
            })
            .collect()
    }
}

fn plain(boot: u64, seqs: std::ops::RangeInclusive<u64>) -> Vec<(u64, u64, bool)> {
    seqs.map(|seq| (boot, seq, false)).collect()
}

const ALL: Snapshots = Snapshots::None { last: u64::MAX };

#[test]
fn publications_are_delivered_in_order_once_at_any_loss_to_30_percent() {
    for (loss, seed) in [(0, 1), (10, 2), (30, 3), (30, 4)] {
        let mut net = Net::new(loss, seed);
        for node in ["/a", "/b", "/c"] {
            net.join(config(node, BOOT, ALL));
        }
        for round in 0..40u8 {
            for node in 0..3 {
                net.publish(node, &[round]);
            }
            net.run(50);
        }
        net.run(300_000);
        for at in 0..3 {
            for of in ["/a", "/b", "/c"].iter().filter(|of| **of != ["/a", "/b", "/c"][at]) {
                assert_eq!(net.got(at, of), plain(BOOT, 1..=40), "{at} of {of}");
            }
        }
    }
}

#[test]
fn a_newcomer_gets_the_latest_snapshot_and_what_is_behind_it() {
    let latest = Snapshots::Latest { threshold: 50 };
    let mut net = Net::new(5, 5);
    let a = net.join(config("/a", BOOT, latest));
    let early = net.join(config("/early", BOOT, latest));
    for n in 0..120u8 {
        net.publish(a, &[n]);
        net.run(100);
    }
    let late = net.join(config("/late", BOOT, latest));
    net.run(60_000);
    assert_eq!(net.got(late, "/a")[0], (BOOT, 101, true), "written at 1, 51, 101");
    assert_eq!(net.got(late, "/a")[1..], plain(BOOT, 102..=120));
    let got = net.got(early, "/a");
    assert_eq!(got[0], (BOOT, 1, true), "the first one has a snapshot");
    assert_eq!(got[1..], plain(BOOT, 2..=120));
    let state = net.heard[late].iter().find_map(|event| match event {
        AloEvent::Snapshot { content, .. } => Some(content.clone()),
        _ => None,
    });
    assert_eq!(state, Some([&b"state of "[..], &[100]].concat()));
}

#[test]
fn only_the_newest_bootstrap_counts_where_snapshots_are_the_latest() {
    let latest = Snapshots::Latest { threshold: 50 };
    let mut net = Net::new(0, 6);
    let old = net.join(config("/a", BOOT - 100, latest));
    let new = net.join(config("/a", BOOT, latest));
    let b = net.join(config("/b", BOOT, latest));
    net.publish(old, b"old");
    net.run(1000);
    net.publish(new, b"new");
    net.run(1000);
    net.publish(old, b"too late");
    net.run(60_000);
    assert_eq!(net.got(b, "/a"), [(BOOT - 100, 1, true), (BOOT, 1, true)]);
}

#[test]
fn a_peer_without_snapshots_is_read_piece_by_piece() {
    let mut net = Net::new(0, 7);
    let a = net.join(config("/a", BOOT, ALL));
    let b = net.join(config("/b", BOOT, Snapshots::Latest { threshold: 50 }));
    net.publish_many(a, 5);
    net.run(60_000);
    assert_eq!(net.got(b, "/a"), plain(BOOT, 1..=5));
}

#[test]
fn history_gives_every_publication_of_every_bootstrap() {
    let history = Snapshots::History { threshold: 10 };
    let mut net = Net::new(0, 8);
    let first = net.join(config("/a", BOOT - 100, history));
    let second = net.join(config("/a", BOOT, history));
    for n in 0..57u8 {
        net.publish(first, &[n]);
        net.run(20);
    }
    net.publish_many(second, 3);
    net.run(1000);
    let late = net.join(config("/late", BOOT, history));
    net.run(60_000);
    let got = net.got(late, "/a");
    let of = |boot| got.iter().copied().filter(|(b, ..)| *b == boot).collect::<Vec<_>>();
    assert_eq!(of(BOOT - 100), plain(BOOT - 100, 1..=57));
    assert_eq!(of(BOOT), plain(BOOT, 1..=3));
    // A little behind, it needs no bundle.
    net.publish(first, b"58");
    net.run(1000);
    assert_eq!(net.got(late, "/a").last(), Some(&(BOOT - 100, 58, false)));
}

#[test]
fn a_newcomer_may_start_shortly_before_the_newest() {
    let mut net = Net::new(0, 9);
    let a = net.join(config("/a", BOOT, ALL));
    net.publish_many(a, 30);
    let late = net.join(config("/late", BOOT, Snapshots::None { last: 5 }));
    net.run(60_000);
    assert_eq!(net.got(late, "/a"), plain(BOOT, 26..=30));
    // An old vector comes first, as multicast forwarders send what is pending to who just came.
    let mut slow = config("/slow", BOOT, Snapshots::None { last: 5 });
    slow.svs.node = None;
    let slow = net.join(slow);
    let now = net.now;
    net.nodes[slow].advance(now, Key { node: name("/a"), boot: BOOT }, 2);
    net.nodes[slow].sync_now(now);
    net.nodes[a].sync_now(now);
    net.run(60_000);
    assert_eq!(net.got(slow, "/a"), plain(BOOT, 26..=30));
}

#[test]
fn long_publications_and_snapshots_travel_in_segments() {
    let mut net = Net::new(10, 10);
    let latest = Snapshots::Latest { threshold: 50 };
    let a = net.join(config("/a", BOOT, latest));
    let b = net.join(config("/b", BOOT, latest));
    let long: Vec<u8> = (0..200_001u32).map(|i| i.to_le_bytes()[0]).collect();
    net.publish(a, &long);
    net.run(60_000);
    net.publish(a, &long);
    net.run(60_000);
    assert_eq!(net.got(b, "/a"), [(BOOT, 1, true), (BOOT, 2, false)]);
    let lens: Vec<usize> = net.heard[b]
        .iter()
        .filter_map(|event| match event {
            AloEvent::Publication { content, .. } => Some(content.len()),
            AloEvent::Snapshot { content, .. } => Some(content.len() - b"state of ".len()),
            _ => None,
        })
        .collect();
    assert_eq!(lens, [long.len(); 2]);
    assert_eq!(net.nodes[b].held, 0);
    let limits = AloLimits { object_octets_max: 100_000, ..AloLimits::default() };
    let late = net.join(AloConfig { limits, ..config("/late", BOOT, latest) });
    net.run(60_000);
    assert_eq!(net.got(late, "/a"), [], "too long for this one");
    assert!(net.nodes[late].held <= 100_000);
}

#[test]
fn a_subscription_goes_on_where_it_ended() {
    let mut net = Net::new(0, 11);
    let a = net.join(config("/a", BOOT, ALL));
    let b = net.join(config("/b", BOOT, ALL));
    net.nodes[b].unsubscribe(&Name::new());
    let now = net.now;
    net.nodes[b].subscribe(now, name("/a"));
    net.publish(a, b"1");
    net.run(1000);
    net.nodes[b].unsubscribe(&name("/a"));
    net.publish(a, b"2");
    net.run(1000);
    assert_eq!(net.got(b, "/a"), plain(BOOT, 1..=1));
    assert!(matches!(net.heard[b].last(), Some(AloEvent::Publisher { seq: 2, .. })));
    let now = net.now;
    net.nodes[b].subscribe(now, name("/a"));
    net.run(1000);
    assert_eq!(net.got(b, "/a"), plain(BOOT, 1..=2));
}

#[test]
fn nothing_is_delivered_that_was_not_verified() {
    let mut net = Net::new(0, 12);
    let a = net.join(config("/a", BOOT, ALL));
    let mut c = config("/b", BOOT, ALL);
    c.svs.check = Check::Ask;
    let b = net.join(c);
    net.publish(a, b"1");
    let mut refused = 0;
    for _ in 0..2000 {
        net.run(5);
        for event in std::mem::take(&mut net.heard[b]) {
            match event {
                AloEvent::Verify { id, .. } => {
                    let is_vector = matches!(id, VerifyId::Vector(_));
                    refused += u32::from(!is_vector);
                    let now = net.now;
                    let is_good = is_vector || refused > 1;
                    net.nodes[b].verified(now, id, Judged::from(is_good));
                }
                other => net.heard[b].push(other),
            }
        }
    }
    assert_eq!(refused, 2, "asked again after the first was refused");
    assert_eq!(net.got(b, "/a"), plain(BOOT, 1..=1));
    assert!(net.heard[b].iter().any(|e| matches!(e, AloEvent::Unreachable { failures: 1, .. })));
}

#[test]
fn a_claim_of_what_does_not_exist_costs_a_bounded_number_of_requests() {
    for snapshots in
        [ALL, Snapshots::Latest { threshold: 50 }, Snapshots::History { threshold: 50 }]
    {
        let mut net = Net::new(0, 13);
        let liar = net.join(config("/liar", BOOT, ALL));
        let b = net.join(config("/b", BOOT, snapshots));
        let mut vector = net.nodes[liar].svs.vector();
        vector.raise(&name("/victim"), BOOT, u64::MAX >> 1);
        let now = net.now;
        net.nodes[liar].svs.restore(now, &vector);
        net.nodes[liar].sync_now(now);
        for _ in 0..100 {
            net.run(6000);
            assert!(net.nodes[b].fetches.len() <= 10);
        }
        let sent = net.nodes[b].endpoint.counters().interests_sent;
        println!("{sent} Interests in 600 s");
        assert!(sent < 1000, "{sent}");
        assert_eq!(net.got(b, "/victim"), []);
        assert_eq!(net.nodes[b].held, 0);
    }
}

#[test]
fn the_store_gives_up_the_oldest_publications_at_its_bound() {
    let limits = AloLimits { store_octets_max: 50_000, ..AloLimits::default() };
    let mut alo = Alo::new(Tick(0), UNIX_MS, AloConfig { limits, ..config("/a", BOOT, ALL) }, 1);
    for _ in 0..100 {
        alo.publish(Tick(0), &[0; 1000], Vec::new).expect("a digest");
    }
    assert!(alo.store.octets() <= 50_000);
    let too_long = alo.publish(Tick(0), &[0; 30_000], Vec::new);
    assert!(matches!(too_long, Err(PublishError::TooLong(30_000))));
    // Bundles go after the publications, the oldest first.
    let history = Snapshots::History { threshold: 10 };
    let mut alo =
        Alo::new(Tick(0), UNIX_MS, AloConfig { limits, ..config("/a", BOOT, history) }, 1);
    for _ in 0..1000 {
        alo.publish(Tick(0), &[0; 1000], Vec::new).expect("a digest");
    }
    assert!(
        alo.store.octets() <= 65_000,
        "one bundle and its index more, until the next publication"
    );
}

#[test]
fn names_and_metadata_are_those_that_ndnd_was_seen_to_use() {
    let mut c = config("/net/c", BOOT, Snapshots::Latest { threshold: 50 });
    c.group = name("/net/32=DV/32=PFS");
    // Name of the recorded Data of an Add, without its segment.
    let recorded =
        hex("072508036e657420024456200350465308036e657408016338046b044dc23a0102360100320100");
    let recorded = onym_wire::NameRef::parse(&recorded).expect("a name").to_name();
    let publication = names::publication(&c, &name("/net/c"), BOOT, 2);
    assert_eq!(publication, recorded.as_ref().drop_last(1).to_name());
    let metadata = hex(
        "072508036e657420024456200350465308036e657408016238046b044dc22004534e41503601011a03320100",
    );
    let base = names::special(&c, &name("/net/b"), BOOT, "SNAP");
    let (versioned, version) = object::read_metadata(&metadata, &base).expect("well formed");
    assert_eq!(version, 1);
    assert_eq!(object::write_metadata(versioned.as_ref(), 0), metadata);
    let other = names::special(&c, &name("/net/c"), BOOT, "SNAP");
    assert!(object::read_metadata(&metadata, &other).is_err(), "of another node");
    let layout = |layout, version| {
        let mut c = AloConfig { layout, ..config("/n", 9, ALL) };
        c.svs.version = version;
        names::publication(&c, &name("/n"), 9, 7)
    };
    use crate::svs::Version;
    assert_eq!(layout(Layout::NodeFirst, Version::V3), name("/n/g/t=9/seq=7"));
    assert_eq!(layout(Layout::Numbered, Version::V2), name("/n/g/%07"));
}

#[test]
fn history_is_read_only_when_its_numbers_rise() {
    let entries = [(1, &b"a"[..]), (3, b""), (9, b"z")];
    let wire = object::write_history(entries.into_iter());
    let read = read_history(&wire).expect("well formed");
    assert_eq!(read.iter().map(|e| (e.seq, e.content.as_slice())).collect::<Vec<_>>(), entries);
    let twisted = object::write_history([(3, &b""[..]), (3, b"")].into_iter());
    assert!(read_history(&twisted).is_err());
    assert_eq!(read_index(&object::write_index([1, 300].into_iter())), Ok(vec![1, 300]));
    for cut in 1..wire.len() {
        let _ = read_history(&wire[..cut]);
        let _ = read_index(&wire[..cut]);
    }
}

#[test]
fn what_is_gone_everywhere_is_given_up_after_a_while() {
    let limits = AloLimits { store_octets_max: 10_000, ..AloLimits::default() };
    let mut net = Net::new(0, 14);
    let a = net.join(AloConfig { limits, ..config("/a", BOOT, ALL) });
    net.publish_many(a, 200);
    let late = net.join(config("/late", BOOT, ALL));
    net.run(3_600_000);
    let got = net.got(late, "/a");
    assert_eq!(got.last(), Some(&(BOOT, 200, false)));
    let (mut next, mut lost) = (1, 0);
    for event in &net.heard[late] {
        match event {
            AloEvent::Lost { low, high, .. } => {
                assert_eq!(*low, next);
                lost += high - low + 1;
                next = high + 1;
            }
            AloEvent::Publication { seq, .. } => {
                assert_eq!(*seq, next);
                next += 1;
            }
            _ => {}
        }
    }
    assert_eq!(lost + got.len() as u64, 200, "each is delivered or told as lost");
}
