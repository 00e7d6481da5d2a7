//! Two endpoints over a link with delay, loss and marks, in virtual time.

mod bounds;

use super::*;
use crate::fetch::Segments;
use crate::fetch::{FetchError, FetchOptions, PipelineOptions, Progress};
use crate::producer::{Answer, Incoming, Respond};
use crate::registration::RouteOptions;
use crate::request::Request;
use crate::serve::{Object, ServeOptions};
use crate::window::{AimdOptions, CubicOptions, WindowLaw};
use onym_frame::{Buf, RxFrame};
use onym_wire::data::DataBuilder;
use onym_wire::name::Name;
use onym_wire::{NackReason, types};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What the link does with a frame on its way to the consumer or the producer.
#[derive(Debug, Clone, Copy)]
struct Path {
    delay_ms: u64,
    jitter_ms: u64,
    /// Frames lost, of a thousand.
    loss: u64,
    /// Data marked, of a thousand.
    marks: u64,
}

const CLEAN: Path = Path { delay_ms: 5, jitter_ms: 0, loss: 0, marks: 0 };

/// When, order, whether to the consumer, the frame.
type Flight = (Tick, u64, bool, Vec<u8>);

struct Net {
    now: Tick,
    path: Path,
    rng: Rng,
    consumer: Endpoint,
    producer: Endpoint,
    /// Frames under way.
    air: BinaryHeap<Reverse<Flight>>,
    order: u64,
    lost: u64,
}

impl Net {
    fn new(path: Path, seed: u64) -> Self {
        println!("seed {seed}");
        let mut net = Self {
            now: Tick(0),
            path,
            rng: Rng::new(seed),
            consumer: Endpoint::new(seed + 1, 1_700_000_000_000),
            producer: Endpoint::new(seed + 2, 1_700_000_000_000),
            air: BinaryHeap::new(),
            order: 0,
            lost: 0,
        };
        net.consumer.connected(Tick(0), LinkConfig::stream(), Scope::Local);
        net.producer.connected(Tick(0), LinkConfig::stream(), Scope::Local);
        net
    }

    fn serve(&mut self, name: &str, content: Vec<u8>, size: usize) {
        let options = ServeOptions { segment_size: size, ..ServeOptions::new(7) };
        let name: Name = name.parse().unwrap();
        let object = Object::new(name.clone(), content, options).unwrap();
        self.producer.respond(name, Box::new(object)).unwrap();
    }

    fn chance(&mut self, of_thousand: u64) -> bool {
        self.rng.next_u64() % 1000 < of_thousand
    }

    fn carry(&mut self) {
        for to_consumer in [false, true] {
            let from = if to_consumer { &mut self.producer } else { &mut self.consumer };
            let frames: Vec<Vec<u8>> = from.tx().iter().map(|(a, b)| [a, b].concat()).collect();
            from.tx().pop(frames.len());
            for mut frame in frames {
                if self.chance(self.path.loss) {
                    self.lost += 1;
                    continue;
                }
                if to_consumer && frame[0] == 6 && self.chance(self.path.marks) {
                    frame = marked(&frame);
                }
                let jitter = self.rng.next_u64() % (self.path.jitter_ms + 1);
                let at = self.now.plus_ms(self.path.delay_ms + jitter);
                self.order += 1;
                self.air.push(Reverse((at, self.order, to_consumer, frame)));
            }
        }
    }

    /// One moment: everything due is done, then time moves on. False when nothing is to come.
    fn step(&mut self) -> bool {
        while self.air.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
            let Some(Reverse((_, _, to_consumer, frame))) = self.air.pop() else { break };
            let end = if to_consumer { &mut self.consumer } else { &mut self.producer };
            let frame = RxFrame { endpoint: 0, bytes: Buf::copy_from(&frame) };
            end.receive(self.now, frame).unwrap();
        }
        self.consumer.advance(self.now);
        self.producer.advance(self.now);
        self.carry();
        let air = self.air.peek().map_or(Tick::NEVER, |Reverse((at, ..))| *at);
        let timers = self.consumer.next_timeout().min(self.producer.next_timeout());
        let next = air.min(timers);
        if next == Tick::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        true
    }

    /// Fetches `name` to its end; the content and the report.
    fn fetch(
        &mut self,
        name: &str,
        options: FetchOptions,
    ) -> Result<(Vec<u8>, Progress), FetchError> {
        let id = self.consumer.fetch(self.now, name.parse().unwrap(), options).unwrap();
        let (mut content, mut idle) = (Vec::new(), 0);
        for _ in 0..1_000_000 {
            while let Some(piece) = self.consumer.fetch_read(id) {
                content.extend_from_slice(&piece);
            }
            if let Some(end) = self.consumer.fetch_end(id) {
                return end.map(|progress| (content, progress));
            }
            // The last step may have brought the end.
            idle = if self.step() { 0 } else { idle + 1 };
            assert!(idle < 2, "the fetch waits for nothing");
        }
        panic!("the fetch does not end");
    }

    fn ask(&mut self, request: &Request) -> Result<Packet, Unanswered> {
        let id = self.consumer.request(self.now, request).unwrap();
        let mut idle = 0;
        loop {
            while let Some(event) = self.consumer.poll_event() {
                if let Event::Answered(answered, answer) = event {
                    assert_eq!(answered, id);
                    return answer;
                }
            }
            idle = if self.step() { 0 } else { idle + 1 };
            assert!(idle < 2, "the request waits for nothing");
        }
    }
}

/// The Data in a link packet with a congestion mark.
fn marked(data: &[u8]) -> Vec<u8> {
    let header = onym_wire::lp::LpHeader { congestion_mark: 1, ..Default::default() };
    let mut out = Vec::new();
    header.write(&mut out, data.len());
    out.extend_from_slice(data);
    out
}

fn content(len: usize) -> Vec<u8> {
    let mut rng = Rng::new(len as u64);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

fn laws() -> [WindowLaw; 3] {
    [
        WindowLaw::Fixed(16),
        WindowLaw::Aimd(AimdOptions::default()),
        WindowLaw::Cubic(CubicOptions::default()),
    ]
}

fn with_law(law: WindowLaw) -> FetchOptions {
    let pipeline = PipelineOptions { law, ..PipelineOptions::default() };
    FetchOptions { pipeline, ..FetchOptions::default() }
}

#[test]
fn every_law_fetches_a_file_whole_through_loss_and_reordering() {
    let file = content(400_123);
    for law in laws() {
        for seed in 1..4 {
            let path = Path { delay_ms: 10, jitter_ms: 8, loss: 30, marks: 0 };
            let mut net = Net::new(path, seed);
            net.serve("/f", file.clone(), 1000);
            let (got, progress) = net.fetch("/f", with_law(law)).unwrap();
            assert!(got == file, "{law:?}");
            assert_eq!(progress.segments_total, Some(401));
            assert_eq!(progress.counters.received, 401);
            assert!(progress.counters.retransmitted >= 1 && net.lost >= 1);
            assert_eq!(progress.name.unwrap().to_string(), "/f/v=7");
        }
    }
}

#[test]
fn marks_slow_an_adaptive_fetch_without_retransmission() {
    let file = content(2_000_000);
    let run = |marks| {
        let mut net = Net::new(Path { marks, ..CLEAN }, 9);
        net.serve("/f", file.clone(), 1000);
        let options = with_law(WindowLaw::Aimd(AimdOptions::default()));
        let (got, progress) = net.fetch("/f", options).unwrap();
        assert!(got == file);
        (net.now, progress.counters)
    };
    let (fast, clean) = run(0);
    let (slow, counters) = run(20);
    assert_eq!((clean.marks, clean.cuts), (0, 0));
    assert!(counters.marks > 10 && counters.cuts > 2 && counters.cuts <= counters.marks);
    assert_eq!(counters.retransmitted, 0);
    assert!(slow.0 > 2 * fast.0, "{slow:?} after {fast:?}");
}

#[test]
fn objects_of_every_length_around_a_segment_arrive_whole() {
    for len in [0, 1, 999, 1000, 1001, 2000] {
        let mut net = Net::new(CLEAN, 1);
        net.serve("/f", content(len), 1000);
        let (got, progress) = net.fetch("/f", FetchOptions::default()).unwrap();
        assert_eq!(got, content(len));
        assert_eq!(progress.segments, len.div_ceil(1000).max(1) as u64);
        assert_eq!(progress.unverified, 0);
    }
}

/// Law: a fetch of some segments asks for those and no others, also when the first of them is what
/// discovery finds, and counts them as if they were an object.
#[test]
fn some_segments_are_fetched_and_no_others() {
    let file = content(10_500);
    for law in laws() {
        for (first, last, octets) in [
            (0, None, 0..10_500),
            (0, Some(0), 0..1000),
            (3, Some(7), 3000..8000),
            (3, None, 3000..10_500),
            (10, Some(10), 10_000..10_500),
            (9, Some(12), 9000..10_500),
        ] {
            let mut net = Net::new(CLEAN, 1);
            net.serve("/f", file.clone(), 1000);
            let segments = Segments { first, last, size: Some(1000) };
            let (got, progress) =
                net.fetch("/f", FetchOptions { segments, ..with_law(law) }).unwrap();
            assert!(got == file[octets.clone()], "{law:?} {segments:?}");
            let count = (octets.len() as u64).div_ceil(1000);
            assert_eq!((progress.segments, progress.segments_total), (count, Some(count)));
            assert!(progress.counters.received <= count, "{segments:?}");
        }
    }
    let mut net = Net::new(CLEAN, 1);
    net.serve("/f", file, 1000);
    let segments = Segments { first: 2, last: None, size: Some(999) };
    let error = net.fetch("/f", FetchOptions { segments, ..FetchOptions::default() }).unwrap_err();
    assert!(matches!(error, FetchError::Uneven { octets: 1000, size: 999, .. }), "{error}");
}

#[test]
fn a_version_in_the_name_is_fetched_without_discovery() {
    let mut net = Net::new(CLEAN, 1);
    net.serve("/f", content(10), 1000);
    assert_eq!(net.fetch("/f/v=7", FetchOptions::default()).unwrap().0, content(10));
    let refused = net.fetch("/f/v=8", FetchOptions::default()).unwrap_err();
    assert!(matches!(refused, FetchError::Refused { segment: 0, .. }), "{refused}");
}

#[test]
fn a_name_that_the_producer_does_not_know_is_not_found_at_once() {
    let mut net = Net::new(CLEAN, 1);
    let nack = |_: &Incoming, _: &mut Vec<u8>| Answer::Nack(NackReason::NO_ROUTE);
    net.producer.respond(Name::new(), Box::new(nack)).unwrap();
    let error = net.fetch("/nothing", FetchOptions::default()).unwrap_err();
    assert!(matches!(error, FetchError::NotFound { .. }), "{error}");
    assert!(net.now < Tick::from_ms(100), "{:?}", net.now);
}

/// A producer without metadata: segments at `<prefix>/seg=n`, or one Data if `segments` is 0.
fn bare_producer(prefix: &'static str, segments: u64) -> impl Respond {
    move |incoming: &Incoming, out: &mut Vec<u8>| {
        let interest = incoming.interest();
        let mut name: Name = prefix.parse().unwrap();
        if interest.name.components().any(|c| c.is_keyword(b"metadata")) {
            return Answer::Nothing;
        }
        let asked = interest.name.last().and_then(|c| c.as_segment()).unwrap_or(0);
        let text = format!("[{asked}]");
        let mut last = Name::new();
        if segments > 0 {
            name.append_segment(asked);
            last.append_segment(segments - 1);
        }
        let data = DataBuilder {
            // Only the last segment says that it is.
            final_block_id: last.as_ref().last().filter(|_| asked + 1 == segments),
            ..DataBuilder::new(name.as_ref(), text.as_bytes())
        };
        onym_crypto::signer::write_digest_data(&data, out);
        Answer::Written
    }
}

#[test]
fn producers_without_metadata_are_discovered_by_a_segment() {
    for (prefix, segments, expected) in
        [("/f/v=3", 4, "[0][1][2][3]"), ("/f", 2, "[0][1]"), ("/f/only", 0, "[0]")]
    {
        let mut net = Net::new(CLEAN, 1);
        net.producer
            .respond("/f".parse().unwrap(), Box::new(bare_producer(prefix, segments)))
            .unwrap();
        let (got, _) = net.fetch("/f", FetchOptions::default()).unwrap();
        assert_eq!(String::from_utf8(got).unwrap(), expected);
    }
}

#[test]
fn damaged_data_ends_the_fetch_with_its_name() {
    let mut net = Net::new(CLEAN, 1);
    let damaged = |incoming: &Incoming, out: &mut Vec<u8>| {
        let data = DataBuilder::new(incoming.interest().name, b"x");
        onym_crypto::signer::write_digest_data(&data, out);
        *out.last_mut().unwrap() ^= 1;
        Answer::Written
    };
    net.producer.respond(Name::new(), Box::new(damaged)).unwrap();
    let error = net.fetch("/f/v=1", FetchOptions::default()).unwrap_err();
    assert!(error.to_string().contains("/f/v=1/seg=0 does not verify"), "{error}");
}

#[test]
fn a_fetch_survives_the_loss_of_its_face_and_goes_on_where_it_was() {
    let mut net = Net::new(CLEAN, 3);
    net.serve("/f", content(500_000), 1000);
    let id = net.consumer.fetch(net.now, "/f".parse().unwrap(), FetchOptions::default()).unwrap();
    while net.consumer.fetch_progress(id).unwrap().counters.received < 100 {
        assert!(net.step());
    }
    net.consumer.disconnected();
    net.air.clear();
    net.now = net.now.plus_ms(60_000);
    net.consumer.connected(net.now, LinkConfig::stream(), Scope::Local);
    let mut got = Vec::new();
    let report = loop {
        while let Some(piece) = net.consumer.fetch_read(id) {
            got.extend_from_slice(&piece);
        }
        match net.consumer.fetch_end(id) {
            Some(end) => break end.unwrap(),
            None => assert!(net.step()),
        }
    };
    assert!(got == content(500_000));
    assert_eq!(report.counters.timeouts, 0, "the outage is no loss of the path");
}

#[test]
fn requests_are_answered_repeated_refused_and_time_out() {
    let mut net = Net::new(CLEAN, 1);
    net.serve("/f", content(10), 1000);
    let name = |text: &str| text.parse::<Name>().unwrap();
    let packet = net.ask(&Request::new(name("/f/v=7/seg=0"))).unwrap();
    assert_eq!(&*packet.content(), &content(10)[..]);
    let refused = net.ask(&Request::new(name("/f/v=7/seg=1")));
    assert_eq!(refused.unwrap_err(), Unanswered::Nack(NackReason::NONE));
    let start = net.now;
    let lifetime = Duration::from_millis(100);
    let silent = Request { lifetime, retries: 2, ..Request::new(name("/silence")) };
    assert_eq!(net.ask(&silent).unwrap_err(), Unanswered::Timeout);
    assert_eq!(net.now.since(start), Duration::from_millis(300), "sent three times");
}

#[test]
fn a_congestion_nack_is_tried_again_and_the_implicit_digest_is_matched() {
    let mut net = Net::new(CLEAN, 1);
    let mut asked = 0;
    let busy = move |incoming: &Incoming, out: &mut Vec<u8>| {
        asked += 1;
        if asked < 3 {
            return Answer::Nack(NackReason::CONGESTION);
        }
        let name = incoming.interest().name.prefix(1);
        onym_crypto::signer::write_digest_data(&DataBuilder::new(name, b"x"), out);
        Answer::Written
    };
    net.producer.respond(Name::new(), Box::new(busy)).unwrap();
    let mut data = Vec::new();
    let plain: Name = "/d".parse().unwrap();
    let builder = DataBuilder::new(plain.as_ref(), b"x");
    onym_crypto::signer::write_digest_data(&builder, &mut data);
    let mut name = plain.clone();
    name.append_implicit_digest(&onym_crypto::digest::implicit_digest(&data));
    let answer = net.ask(&Request { retries: 5, ..Request::new(name) }).unwrap();
    assert_eq!(answer.data().name, plain);
}

/// A node that answers registrations with `codes`, one after the other.
fn node(codes: Vec<u64>) -> impl Respond {
    let mut codes = codes.into_iter();
    move |incoming: &Incoming, out: &mut Vec<u8>| {
        let interest = incoming.interest();
        assert!(interest.is_signed());
        let Some(code) = codes.next() else { return Answer::Nothing };
        let mut response = Vec::new();
        onym_wire::tlv::put_nested(&mut response, types::CONTROL_RESPONSE, |out| {
            onym_wire::tlv::put_nni_tlv(out, types::STATUS_CODE, code);
            onym_wire::tlv::put_tlv(out, types::STATUS_TEXT, b"so");
        });
        let data = DataBuilder::new(interest.name, &response);
        onym_crypto::signer::write_digest_data(&data, out);
        Answer::Written
    }
}

#[test]
fn a_registration_is_repeated_until_it_succeeds_and_again_when_the_node_is_back() {
    let mut net = Net::new(CLEAN, 1);
    // The other endpoint plays the node here.
    net.producer
        .respond("/localhost".parse().unwrap(), Box::new(node(vec![403, 200, 200])))
        .unwrap();
    net.consumer.register("/app".parse().unwrap(), RouteOptions::default()).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        assert!(net.step());
        while let Some(event) = net.consumer.poll_event() {
            match event {
                Event::NotRegistered(_, why) => seen.push(why.to_string()),
                Event::Registered(_) => {
                    seen.push("registered".into());
                    net.consumer.disconnected();
                    net.consumer.connected(net.now, LinkConfig::stream(), Scope::Local);
                }
                Event::Answered(..) => unreachable!(),
            }
        }
    }
    assert_eq!(seen, ["the node refused: 403 so", "registered", "registered"]);
}

#[test]
fn pit_tokens_come_back_unchanged() {
    let mut net = Net::new(CLEAN, 1);
    net.serve("/f", content(10), 1000);
    let mut interest = Vec::new();
    let name: Name = "/f/v=7/seg=0".parse().unwrap();
    let builder = onym_wire::interest::InterestBuilder {
        nonce: Some([1; 4]),
        ..onym_wire::interest::InterestBuilder::new(name.as_ref())
    };
    builder.write(&mut interest);
    let header = onym_wire::lp::LpHeader { pit_token: b"abc", ..Default::default() };
    let mut frame = Vec::new();
    header.write(&mut frame, interest.len());
    frame.extend_from_slice(&interest);
    let frame = RxFrame { endpoint: 0, bytes: Buf::copy_from(&frame) };
    net.producer.receive(net.now, frame).unwrap();
    let answer: Vec<u8> = net.producer.tx().iter().next().map(|(a, b)| [a, b].concat()).unwrap();
    let packet = onym_wire::lp::LpPacket::parse(&answer).unwrap();
    assert_eq!(packet.pit_token, Some(&b"abc"[..]));
}

#[test]
fn what_waits_is_bounded() {
    let mut net = Net::new(CLEAN, 1);
    let request = Request::new("/x".parse().unwrap());
    for _ in 0..PENDING_MAX {
        net.consumer.request(Tick(0), &request).unwrap();
    }
    assert_eq!(net.consumer.request(Tick(0), &request), Err(TooMany("pending Interests")));
    for _ in 0..FETCHES_MAX {
        net.consumer.fetch(Tick(0), "/f".parse().unwrap(), FetchOptions::default()).unwrap();
    }
    assert!(net.consumer.fetch(Tick(0), Name::new(), FetchOptions::default()).is_err());
}
