//! Fetches through a bottleneck of known capacity, in virtual time: how much of it a flow uses, and
//! how two flows share it.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)]

use onym_client::fetch::PipelineOptions;
use onym_client::serve::{Object, ServeOptions};
use onym_client::window::{AimdOptions, CubicOptions, WindowLaw};
use onym_client::{Endpoint, FetchId, FetchOptions, Progress};
use onym_frame::{Buf, RxFrame, TxQueue};
use onym_link::LinkConfig;
use onym_tables::Tick;
use onym_wire::lp::LpHeader;
use onym_wire::mgmt::Scope;
use onym_wire::name::Name;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

const AIMD: WindowLaw = WindowLaw::Aimd(aimd());
const SEGMENT: usize = 8000;

const fn aimd() -> AimdOptions {
    let window = onym_client::window::WindowOptions {
        initial: 2.0,
        threshold: f64::INFINITY,
        reset_to_initial: false,
    };
    AimdOptions { window, step: 1.0, beta: 0.5 }
}

fn cubic() -> WindowLaw {
    WindowLaw::Cubic(CubicOptions::default())
}

/// The link from the producers to the consumers; Interests have a way without limits back.
#[derive(Debug, Clone, Copy)]
struct Link {
    bits_per_second: f64,
    /// Round trip without queue.
    rtt: Duration,
    /// Frames that wait; one more is dropped.
    queue_max: usize,
    /// A frame is marked every 100 ms while more than this wait; `None`: no marks.
    mark_above: Option<usize>,
    /// Frames lost on the line, of a hundred thousand.
    loss: u64,
}

impl Link {
    /// 100 Mbit/s with a queue of one bandwidth-delay product.
    fn of(rtt_ms: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        let bits_per_second = 1e8;
        let product = bits_per_second * rtt.as_secs_f64() / 8.0 / SEGMENT as f64;
        let queue_max = (product as usize).max(16);
        Self { bits_per_second, rtt, queue_max, mark_above: None, loss: 0 }
    }
}

struct Flow {
    consumer: Endpoint,
    producer: Endpoint,
    start: Tick,
    law: WindowLaw,
    id: Option<FetchId>,
    got: u64,
    ended: Option<(Tick, Progress)>,
}

type Flight = (Tick, u64, usize, bool, Vec<u8>);

struct Net {
    now: Tick,
    link: Link,
    flows: Vec<Flow>,
    air: BinaryHeap<Reverse<Flight>>,
    order: u64,
    /// When the frames that wait have left.
    waiting: VecDeque<Tick>,
    marked_at: Tick,
    seed: u64,
    dropped: u64,
}

fn name(flow: usize) -> Name {
    format!("/flow/{flow}/v=1").parse().unwrap()
}

fn drain(queue: &mut TxQueue) -> Vec<Vec<u8>> {
    let frames: Vec<Vec<u8>> = queue.iter().map(|(a, b)| [a, b].concat()).collect();
    queue.pop(frames.len());
    frames
}

impl Net {
    /// Flows with these laws and starts, each of `octets`.
    fn new(link: Link, flows: &[(WindowLaw, u64)], octets: usize, seed: u64) -> Self {
        println!("seed {seed}");
        let flow = |(i, (law, start_ms)): (usize, &(WindowLaw, u64))| {
            let mut consumer = Endpoint::new(seed + 10 + i as u64, 0);
            let mut producer = Endpoint::new(seed + 20 + i as u64, 0);
            consumer.connected(Tick(0), LinkConfig::stream(), Scope::Local);
            producer.connected(Tick(0), LinkConfig::stream(), Scope::Local);
            let options = ServeOptions { segment_size: SEGMENT, ..ServeOptions::new(1) };
            let prefix = name(i).as_ref().drop_last(1).to_name();
            let object = Object::new(prefix.clone(), vec![7; octets], options).unwrap();
            producer.respond(prefix, Box::new(object)).unwrap();
            let start = Tick::from_ms(*start_ms);
            Flow { consumer, producer, start, law: *law, id: None, got: 0, ended: None }
        };
        Self {
            now: Tick(0),
            link,
            flows: flows.iter().enumerate().map(flow).collect(),
            air: BinaryHeap::new(),
            order: 0,
            waiting: VecDeque::new(),
            marked_at: Tick(0),
            seed: seed | 1,
            dropped: 0,
        }
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }

    fn fly(&mut self, at: Tick, flow: usize, to_consumer: bool, frame: Vec<u8>) {
        self.order += 1;
        self.air.push(Reverse((at, self.order, flow, to_consumer, frame)));
    }

    /// A frame of Data at the entry of the bottleneck.
    fn enqueue(&mut self, flow: usize, mut frame: Vec<u8>) {
        let now = self.now;
        while self.waiting.front().is_some_and(|left| *left <= now) {
            self.waiting.pop_front();
        }
        if self.waiting.len() >= self.link.queue_max || self.random() % 100_000 < self.link.loss {
            self.dropped += 1;
            return;
        }
        let is_long = self.link.mark_above.is_some_and(|above| self.waiting.len() > above);
        if is_long && now.since(self.marked_at) >= Duration::from_millis(100) {
            self.marked_at = now;
            let mut out = Vec::new();
            LpHeader { congestion_mark: 1, ..LpHeader::default() }.write(&mut out, frame.len());
            out.extend_from_slice(&frame);
            frame = out;
        }
        let takes = Duration::from_secs_f64(frame.len() as f64 * 8.0 / self.link.bits_per_second);
        let left = self.waiting.back().copied().unwrap_or(now).max(now) + takes;
        self.waiting.push_back(left);
        self.fly(left + self.link.rtt / 2, flow, true, frame);
    }

    fn turn(&mut self, i: usize) {
        let now = self.now;
        let flow = &mut self.flows[i];
        if flow.id.is_none() && now >= flow.start {
            let pipeline = PipelineOptions { law: flow.law, ..PipelineOptions::default() };
            let options = FetchOptions { pipeline, ..FetchOptions::default() };
            flow.id = Some(flow.consumer.fetch(now, name(i), options).unwrap());
        }
        flow.consumer.advance(now);
        flow.producer.advance(now);
        if let Some(id) = flow.id.filter(|_| flow.ended.is_none()) {
            while let Some(piece) = flow.consumer.fetch_read(id) {
                flow.got += piece.len() as u64;
            }
            if let Some(end) = flow.consumer.fetch_end(id) {
                flow.ended = Some((now, end.unwrap()));
            }
            // What was read made room for more.
            flow.consumer.advance(now);
        }
        let (up, down) = (drain(flow.consumer.tx()), drain(flow.producer.tx()));
        for frame in up {
            self.fly(now + self.link.rtt / 2, i, false, frame);
        }
        for frame in down {
            self.enqueue(i, frame);
        }
    }

    /// Runs until `until`, or until every flow has ended.
    fn run(&mut self, until: Tick) {
        while self.now < until && self.flows.iter().any(|f| f.ended.is_none()) {
            while self.air.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
                let Some(Reverse((_, _, i, to_consumer, frame))) = self.air.pop() else { break };
                let flow = &mut self.flows[i];
                let end = if to_consumer { &mut flow.consumer } else { &mut flow.producer };
                let frame = RxFrame { endpoint: 0, bytes: Buf::copy_from(&frame) };
                end.receive(self.now, frame).unwrap();
            }
            for i in 0..self.flows.len() {
                self.turn(i);
            }
            let air = self.air.peek().map_or(Tick::NEVER, |Reverse((at, ..))| *at);
            let timer = |f: &Flow| match f.id {
                None => f.start,
                Some(_) => f.consumer.next_timeout().min(f.producer.next_timeout()),
            };
            let timers = self.flows.iter().map(timer).min().unwrap_or(Tick::NEVER);
            self.now = self.now.max(air.min(timers)).min(until);
        }
    }
}

/// The part of the capacity that one flow of 40 MB used from its start to its end, and its report.
fn lone(link: Link, law: WindowLaw, seed: u64) -> (f64, Progress) {
    let octets = 40_000_000;
    let mut net = Net::new(link, &[(law, 0)], octets, seed);
    net.run(Tick::from_ms(120_000));
    let (end, progress) = net.flows[0].ended.clone().expect("the fetch ends");
    let used = octets as f64 * 8.0 / end.since(Tick(0)).as_secs_f64() / link.bits_per_second;
    println!(
        "rtt {:?}: {used:.2} of the capacity, {} dropped, {:?}",
        link.rtt, net.dropped, progress.counters
    );
    (used, progress)
}

#[test]
fn a_lone_flow_uses_most_of_the_link_at_any_round_trip_time() {
    let mut poor = Vec::new();
    for law in [AIMD, cubic()] {
        println!("{law:?}");
        for (rtt, least) in [(1, 0.9), (10, 0.9), (40, 0.85), (100, 0.75), (300, 0.4)] {
            let (used, progress) = lone(Link::of(rtt), law, 3);
            assert_eq!(progress.bytes, 40_000_000);
            if used < least {
                poor.push((rtt, used));
            }
        }
    }
    assert!(poor.is_empty(), "{poor:?}");
}

#[test]
fn marks_keep_the_queue_short_without_loss_and_without_idling() {
    for law in [AIMD, cubic()] {
        let link = Link::of(40);
        // The default of the node's faces: 64 KiB, here 8 segments.
        let link = Link { queue_max: 10 * link.queue_max, mark_above: Some(8), ..link };
        let (used, progress) = lone(link, law, 4);
        assert_eq!(progress.counters.retransmitted, 0, "{:?}", progress.counters);
        assert!(progress.counters.marks > 0 && progress.counters.cuts > 0);
        assert!(used >= 0.65, "{used}");
    }
}

#[test]
fn random_loss_is_survived_and_every_segment_comes_once() {
    for (law, least) in [(AIMD, 0.6), (cubic(), 0.6), (WindowLaw::Fixed(64), 0.1)] {
        let link = Link { loss: 100, ..Link::of(20) };
        let (used, progress) = lone(link, law, 5);
        assert!(used >= least, "{used}");
        let c = progress.counters;
        assert_eq!(c.received, progress.segments, "each counted once");
        assert!(c.retransmitted > 0 && c.retransmitted <= c.timeouts + c.nacks);
    }
}

#[test]
fn two_flows_of_one_law_share_the_link_fairly() {
    for law in [AIMD, cubic()] {
        let link = Link::of(20);
        // The second comes when the first has the link to itself.
        let mut net = Net::new(link, &[(law, 0), (law, 2000)], 400_000_000, 6);
        net.run(Tick::from_ms(6000));
        let before: Vec<u64> = net.flows.iter().map(|f| f.got).collect();
        net.run(Tick::from_ms(16_000));
        let rates: Vec<f64> =
            net.flows.iter().zip(&before).map(|(f, b)| (f.got - b) as f64 * 8.0 / 10.0).collect();
        let sum: f64 = rates.iter().sum();
        let jain = sum.powi(2) / (2.0 * rates.iter().map(|r| r * r).sum::<f64>());
        println!("{law:?}: {rates:?}, index {jain:.3}, together {:.2}", sum / link.bits_per_second);
        assert!(jain >= 0.85, "{rates:?}");
        assert!(sum >= 0.85 * link.bits_per_second, "{rates:?}");
    }
}
