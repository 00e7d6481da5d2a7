//! Laws that hold on every network: random graphs, every strategy, faults on the links.
//!
//! A failure prints the seed and the network that it made; `make(seed, …)` makes it again.
//! `ONYM_SIM_ROUNDS=50 cargo test --release -p onym-sim` tries fifty times as many seeds.

#![allow(clippy::unwrap_used)]

use onym_sim::{
    ChannelConfig, Consumer, ConsumerConfig, Crossing, Ended, Network, NodeConfig, Producer,
    ProducerConfig, Routing,
};
use onym_tables::Rng;
use onym_wire::Interest;
use onym_wire::lp::LpPacket;
use onym_wire::name::Name;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

const STRATEGIES: [&str; 6] =
    ["best-route", "multicast", "asf", "access", "random", "self-learning"];
/// More than any of these runs needs: a run that reaches it does not end by itself.
const EVENTS_MAX: u64 = 3_000_000;
/// The variable that multiplies the seeds of each law, for a longer run.
const ROUNDS: &str = "ONYM_SIM_ROUNDS";
const HOUR: Duration = Duration::from_secs(3600);

#[expect(clippy::disallowed_methods, reason = "how long to run is said by who runs the tests")]
fn rounds() -> u64 {
    std::env::var(ROUNDS).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// `count` seeds from `first` on, more by [`ROUNDS`].
fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    first..first + count * rounds()
}

/// A bound on crossings: the tight one that holds for the usual seeds, or one for thousands of
/// seeds, of which a few have a longer story. An Interest that runs in a circle passes both.
fn bound(usual: u32, for_many: u32) -> u32 {
    if rounds() == 1 { usual } else { for_many }
}

/// What the links do to frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Faults {
    /// Nothing but delay.
    None,
    /// Loss and short queues.
    Loss,
    /// Frames overtake each other, and some arrive twice.
    Disorder,
    /// Links go down for a while.
    Down,
    /// All of it.
    All,
}

impl Faults {
    fn has(self, one: Self) -> bool {
        self == one || self == Self::All
    }
}

/// Times that an Interest (its name and Nonce) was put on a link, by node and port.
type Crossings = Rc<RefCell<HashMap<(usize, usize, Vec<u8>), u32>>>;

/// What one seed makes.
struct Made {
    network: Network,
    what: String,
    consumers: usize,
    crossings: Crossings,
}

impl Made {
    /// Most times that one Interest went over one link in one direction.
    fn crossings_max(&self) -> u32 {
        self.crossings.borrow().values().copied().max().unwrap_or_default()
    }
}

fn channel(rng: &mut Rng, faults: Faults) -> ChannelConfig {
    let calm = ChannelConfig {
        delay: Duration::from_millis(rng.below(30)),
        rate_bps: [None, Some(10_000_000), Some(100_000_000)][rng.below(3) as usize],
        queue_max: 1 << 20,
        mtu: [None, Some(600)][rng.below(2) as usize],
        ..ChannelConfig::default()
    };
    let lossy = if faults.has(Faults::Loss) {
        let (loss, queue_max) = (rng.below(100) as f64 / 1000.0, 3 + rng.below(20) as usize);
        ChannelConfig { loss, queue_max, ..calm }
    } else {
        calm
    };
    if faults.has(Faults::Disorder) {
        let jitter = Duration::from_millis(rng.below(60));
        return ChannelConfig { jitter, duplicate: rng.below(80) as f64 / 1000.0, ..lossy };
    }
    lossy
}

/// A connected graph with some circles.
fn graph(rng: &mut Rng, nodes: usize) -> Vec<(usize, usize)> {
    let mut links = Vec::new();
    for number in 1..nodes {
        links.push((number, rng.below(number as u64) as usize));
    }
    for _ in 0..rng.below(nodes as u64 + 1) {
        let (a, b) = (rng.below(nodes as u64) as usize, rng.below(nodes as u64) as usize);
        if a != b {
            links.push((a, b));
        }
    }
    links
}

/// A network of 2 to 10 nodes, one producer and up to three consumers.
fn make(seed: u64, strategy: &str, faults: Faults, routings: &[Routing]) -> Made {
    let mut rng = Rng::new(seed);
    let mut network = Network::new(seed);
    let nodes = 2 + rng.below(9) as usize;
    for number in 0..nodes {
        let cs_packets_max = [0, 5, 1000][rng.below(3) as usize];
        let config = NodeConfig { cs_packets_max, ..NodeConfig::default() };
        network.node_add(&format!("n{number}"), config);
    }
    let links = graph(&mut rng, nodes);
    for (a, b) in &links {
        let link = network.link_add(*a, *b, channel(&mut rng, faults));
        if faults.has(Faults::Down) && rng.below(3) == 0 {
            let from = Duration::from_millis(rng.below(1000));
            network.link_down(link, from, from + Duration::from_millis(rng.below(3000)));
        }
    }
    let routing = routings[rng.below(routings.len() as u64) as usize];
    network.strategy_set(Name::new().as_ref(), strategy).unwrap();
    let prefix: Name = "/data".parse().unwrap();
    let size = [100, 4000][rng.below(2) as usize];
    let freshness_ms = [0, 1000][rng.below(2) as usize];
    let producer = ProducerConfig { prefix: prefix.clone(), size, freshness_ms, answers: true };
    let at = rng.below(nodes as u64) as usize;
    let producer = network.app_add(at, Box::new(Producer::new(producer)));
    network.route_to(prefix.as_ref(), producer, routing);
    let consumers = 1 + rng.below(3) as usize;
    let is_calm = faults == Faults::None && routing != Routing::Local;
    for _ in 0..consumers {
        let config = ConsumerConfig {
            count: 30,
            window: 1 + rng.below(20) as usize,
            // Without faults, long enough for the longest way there and back.
            lifetime_ms: [200, 1000, 4000]
                [if faults == Faults::None { 2 } else { rng.below(3) as usize }],
            retries_max: if is_calm { 1000 } else { 5 },
            seed: rng.next_u64(),
            ..ConsumerConfig::new(prefix.clone())
        };
        network.app_add(rng.below(nodes as u64) as usize, Box::new(Consumer::new(config)));
    }
    let crossings = Crossings::default();
    network.tap({
        let crossings = Rc::clone(&crossings);
        move |crossing| note(&mut crossings.borrow_mut(), crossing)
    });
    let what =
        format!("seed {seed}: {nodes} nodes, links {links:?}, {strategy}, {routing:?}, {faults:?}");
    Made { network, what, consumers, crossings }
}

fn note(crossings: &mut HashMap<(usize, usize, Vec<u8>), u32>, crossing: &Crossing<'_>) {
    let Ok(packet) = LpPacket::parse(crossing.frame) else { return };
    let Some(Ok(interest)) = packet.fragment.map(Interest::parse) else { return };
    if packet.nack.is_none() {
        let mut key = interest.name.value().to_vec();
        key.extend_from_slice(&interest.nonce.unwrap_or_default());
        *crossings.entry((crossing.node, crossing.port, key)).or_default() += 1;
    }
}

/// Runs to the end, looking at the laws of conservation on the way and at the end. Every Interest
/// has ended then: nothing is pending at any node or application.
fn run(made: &mut Made) {
    for _ in 0..5 {
        made.network.run(HOUR, 50);
        made.network.check().unwrap_or_else(|law| panic!("{}: {law}", made.what));
    }
    let ended = made.network.run(HOUR, EVENTS_MAX);
    assert_eq!(ended, Ended::Quiet, "{}", made.what);
    made.network.check().unwrap_or_else(|law| panic!("{}: {law}", made.what));
    for node in made.network.nodes() {
        let pending = node.forwarder().pit_len();
        assert_eq!(pending, 0, "{}: {} still has pending Interests", made.what, node.name);
    }
    assert!(made.network.is_done(), "{}", made.what);
}

#[test]
fn a_fetch_on_a_connected_graph_without_faults_completes_with_every_strategy() {
    for strategy in STRATEGIES {
        for seed in seeds(0, 30) {
            let routings = [Routing::Shortest, Routing::Downhill];
            let mut made = make(seed, strategy, Faults::None, &routings);
            run(&mut made);
            let fetched: u64 = made.network.apps().skip(1).map(|(_, app)| app.stats().data).sum();
            assert_eq!(fetched, 30 * made.consumers as u64, "{}", made.what);
        }
    }
}

#[test]
fn no_packet_is_lost_sight_of_and_every_interest_ends_whatever_the_links_do() {
    let routings = [Routing::Shortest, Routing::Downhill, Routing::Flood, Routing::Local];
    for (row, faults) in
        [Faults::Loss, Faults::Disorder, Faults::Down, Faults::All].into_iter().enumerate()
    {
        for strategy in STRATEGIES {
            for seed in seeds(1_000_000 * (row as u64 + 1), 12) {
                run(&mut make(seed, strategy, faults, &routings));
            }
        }
    }
}

/// Routes that lead in circles, for every strategy that needs routes.
fn circles(strategy: &str) -> &'static [Routing] {
    if strategy == "self-learning" { &[Routing::Flood, Routing::Local] } else { &[Routing::Flood] }
}

/// Stores are off or small at many nodes, so that nothing may answer an Interest that comes around
/// again. It ends at the latest where it was sent to several upstreams; on the way there it may
/// cross a link a second time.
#[test]
fn an_interest_does_not_run_in_circles_where_every_frame_arrives_once() {
    for strategy in STRATEGIES {
        for seed in seeds(6000, 40) {
            let mut made = make(seed, strategy, Faults::None, circles(strategy));
            run(&mut made);
            assert!(made.crossings_max() <= bound(2, 8), "{}: {}", made.what, made.crossings_max());
        }
    }
}

/// A second copy on the way counts as a retransmission, which goes on when the suppression
/// interval is over; the intervals grow, so that copies do not multiply.
#[test]
fn an_interest_crosses_each_link_a_bounded_number_of_times_whatever_the_links_do() {
    for strategy in STRATEGIES {
        for seed in seeds(7000, 20) {
            let mut made = make(seed, strategy, Faults::All, circles(strategy));
            run(&mut made);
            assert!(
                made.crossings_max() <= bound(5, 32),
                "{}: {}",
                made.what,
                made.crossings_max()
            );
        }
    }
}

#[test]
fn a_name_that_nobody_has_ends_in_silence_or_nacks_everywhere() {
    for strategy in STRATEGIES {
        let mut network = Network::new(5);
        for number in 0..4 {
            network.node_add(&format!("n{number}"), NodeConfig::default());
        }
        let config = ChannelConfig { delay: Duration::from_millis(3), ..ChannelConfig::default() };
        for (a, b) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)] {
            network.link_add(a, b, config);
        }
        network.strategy_set(Name::new().as_ref(), strategy).unwrap();
        // Routes in a circle: everyone believes that a neighbour knows more.
        let prefix: Name = "/nowhere".parse().unwrap();
        for node in 0..4 {
            for port in 0..2 {
                network.route_add(prefix.as_ref(), node, port, 1);
            }
        }
        let config = ConsumerConfig {
            count: 20,
            retries_max: 3,
            lifetime_ms: 500,
            ..ConsumerConfig::new(prefix)
        };
        network.app_add(0, Box::new(Consumer::new(config)));
        assert_eq!(network.run(HOUR, EVENTS_MAX), Ended::Quiet, "{strategy}");
        network.check().unwrap();
        let (_, app) = network.apps().next().unwrap();
        assert_eq!((app.stats().failed, app.stats().data), (20, 0), "{strategy}");
        assert!(network.nodes().iter().all(|n| n.forwarder().pit_len() == 0), "{strategy}");
    }
}

#[test]
fn a_second_consumer_is_served_from_the_nearest_cache() {
    let text = "
        a:b delay=5ms
        b:c delay=20ms
        producer c /data
        consumer a /data count=50
        consumer a /data count=50 start=10s
    ";
    let mut network = text.parse::<onym_sim::Topology>().unwrap().build(1).unwrap();
    assert_eq!(network.run(HOUR, EVENTS_MAX), Ended::Quiet);
    assert_eq!(network.nodes()[0].forwarder().counters().cs_hits, 50);
    let second = network.apps().nth(2).unwrap().1.stats();
    assert!(second.latency_p99 < Duration::from_millis(1), "{second:?}");
}

#[test]
fn a_fetch_takes_the_time_that_rate_and_delay_give() {
    // 100 Data of 8000 octets over 80 Mbit/s: 0.8 s and a bit of header, one round trip of 20 ms.
    let text = "
        a:b delay=10ms rate=80mbit queue=1000
        producer b /data size=8000
        consumer a /data count=100 window=100
    ";
    let mut network = text.parse::<onym_sim::Topology>().unwrap().build(1).unwrap();
    network.run(HOUR, EVENTS_MAX);
    let stats = network.apps().nth(1).unwrap().1.stats();
    assert_eq!((stats.data, stats.retransmissions), (100, 0));
    let (least, most) = (Duration::from_millis(100), Duration::from_millis(107));
    assert!((least..most).contains(&stats.duration), "{:?}", stats.duration);
}
