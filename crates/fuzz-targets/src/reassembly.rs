//! The link service: fragments, header fields, reliability, between two ends and from strangers.

use crate::feed::Feed;
use onym_frame::{Buf, RxFrame, TxQueue};
use onym_link::{
    Link, LinkConfig, LpOut, Outbox, Outgoing, PacketKind, PathMtu, Payload, Received, Transmit,
};
use onym_tables::pit::Token;
use onym_tables::{FaceId, Tick};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::lp::LpHeader;
use std::collections::VecDeque;

const FACE: FaceId = FaceId::FIRST;
/// Choices that one input makes.
const STEPS_MAX: usize = 200;
/// Octets that may wait in a send queue.
const QUEUE_MAX: usize = 64 << 10;
/// Frames that the path between the ends holds.
const PATH_MAX: usize = 256;
/// Octets that the first hop takes.
const FIRST_HOP: usize = 1472;

/// One end: a link service and its send queue.
#[derive(Debug)]
struct End {
    link: Link,
    queue: TxQueue,
    frames_in: u64,
    /// Packets that came out.
    packets: u64,
}

impl End {
    fn new(config: LinkConfig) -> Self {
        let queue = TxQueue::new(QUEUE_MAX);
        Self { link: Link::new(config), queue, frames_in: 0, packets: 0 }
    }

    fn receive(&mut self, now: Tick, endpoint: u64, frame: &[u8]) -> Option<Buf> {
        self.frames_in += 1;
        let frame = RxFrame { endpoint, bytes: Buf::copy_from(frame) };
        let received = self.link.receive(now, FACE, frame);
        let verdicts: u64 = self.link.counters().verdicts.iter().sum();
        assert_eq!(verdicts, self.frames_in, "law: each frame has one verdict");
        let Received::Packet(packet) = received else { return None };
        self.packets += 1;
        assert!(packet.bytes.len() <= PACKET_LEN_MAX);
        assert!(packet.lp.pit_token.len() <= 32);
        Some(packet.bytes)
    }

    fn send(&mut self, now: Tick, packet: &Buf, token: &[u8], mark: u8) {
        let lp = LpOut {
            pit_token: Token::try_from(token).unwrap_or_default(),
            congestion_mark: mark,
            ..LpOut::default()
        };
        let bytes = Payload::Shared(packet.clone());
        let item = Transmit { face: FACE, what: Outgoing::Pull(PacketKind::Data, lp), bytes };
        // A refusal is counted by the link service.
        let _ = self.link.send(now, &item, &Outbox::default().arena, &mut self.queue);
    }

    /// Takes the frames that wait to be sent.
    fn take(&mut self) -> Vec<Vec<u8>> {
        let mtu = self.link.config().mtu.unwrap_or(PACKET_LEN_MAX);
        let frames: Vec<_> = self.queue.iter().map(|(head, body)| [head, body].concat()).collect();
        assert!(frames.iter().all(|frame| frame.len() <= mtu), "law: no frame is above the MTU");
        self.queue.pop(frames.len());
        frames
    }

    fn timeout(&mut self, now: Tick) {
        self.link.handle_timeout(now, &mut self.queue);
        if self.link.wants_first_hop() {
            self.link.set_first_hop(FIRST_HOP);
        }
        while self.link.next_given_up().is_some() {}
    }
}

fn config(feed: &mut Feed<'_>) -> LinkConfig {
    let bits = feed.octet();
    let mtu = [64, 100, 600, 1500, 8800][feed.below(5)];
    let mut config = LinkConfig {
        fragmentation: bits & 1 == 0,
        reassembly: bits & 2 == 0,
        reliability: bits & 4 != 0,
        local_fields: bits & 8 != 0,
        self_learning: bits & 16 == 0,
        first_sequence: if bits & 32 == 0 { 0 } else { u64::MAX - 1 },
        path: if bits & 32 == 0 { PathMtu::Find } else { PathMtu::Answer },
        ..LinkConfig::datagram(mtu)
    };
    if bits & 64 != 0 {
        config.reassembly_limits.messages_max = 2;
        config.reassembly_limits.octets_max = 4000;
    }
    if bits & 128 != 0 {
        config.reliability_limits.unacked_max = 4;
        config.reliability_limits.acks_max = 4;
        config.reliability_limits.recent_max = 4;
    }
    config
}

/// A packet of one Data element with `len` octets of content that tell where they are.
fn packet(len: usize, seed: u8) -> Buf {
    let content: Vec<u8> = (0..len).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect();
    let mut wire = Vec::new();
    onym_wire::tlv::put_tlv(&mut wire, onym_wire::types::DATA, &content);
    Buf::copy_from(&wire)
}

/// A fragment with numbers chosen by the input.
fn forged(feed: &mut Feed<'_>) -> Vec<u8> {
    let (sequence, index, count) = (feed.octet(), feed.octet(), feed.octet());
    let body = feed.octets(usize::from(sequence) * 4);
    let far = u64::from(index >> 7) * (u64::MAX - 2);
    let header = LpHeader {
        sequence: (count != 255).then(|| far.wrapping_add(u64::from(sequence))),
        fragment: Some((u64::from(index & 63), u64::from(count))),
        tx_sequence: (index & 64 != 0).then_some(u64::from(sequence)),
        acks: &[u64::from(count), u64::from(sequence)][..usize::from(index & 2)],
        ..LpHeader::default()
    };
    let mut frame = Vec::new();
    header.write(&mut frame, body.len());
    frame.extend_from_slice(body);
    frame
}

/// Runs what `input` chooses on two ends with a path between them that loses, repeats and
/// reorders, and with strangers on the same face.
///
/// # Panics
/// When a law of the link service does not hold.
pub fn reassembly(input: &[u8]) {
    let mut feed = Feed::new(input);
    let config = config(&mut feed);
    let mut ends = [End::new(config.clone()), End::new(config)];
    let mut paths = [VecDeque::new(), VecDeque::new()];
    let mut sent: Vec<Buf> = Vec::new();
    let (mut now, mut is_honest) = (Tick::from_ms(1000), true);
    for _ in 0..STEPS_MAX {
        if feed.is_empty() {
            break;
        }
        let op = feed.octet();
        let at = usize::from(op & 1);
        match (op >> 1) % 8 {
            0 => {
                let bytes = packet(usize::from(feed.short()) % 8700, op);
                let token = [op; 8];
                ends[at].send(now, &bytes, &token[..usize::from(op >> 5)], op >> 7);
                sent.push(bytes);
            }
            1 => {
                let from = 1 - at;
                if let Some(frame) = pick(&mut paths[from], feed.octet()) {
                    let came = ends[at].receive(now, 0, &frame);
                    let is_known = came.as_ref().is_none_or(|c| sent.iter().any(|s| **s == **c));
                    assert!(is_known || !is_honest, "law: what arrives is what was sent");
                }
            }
            2 => {
                let copy = paths[at].front().cloned();
                paths[at].extend(copy);
            }
            3 => drop(pick(&mut paths[at], feed.octet())),
            4 => now = now.plus_ms(u64::from(feed.octet()) * 10),
            5 => {
                is_honest = false;
                let frame = forged(&mut feed);
                ends[at].receive(now, u64::from(op >> 6), &frame);
            }
            6 => {
                is_honest = false;
                let len = usize::from(feed.octet());
                let frame = feed.octets(len);
                ends[at].receive(now, 0, frame);
            }
            _ => ends[at].link.set_socket_queue(usize::from(feed.short()) * 4),
        }
        for (end, path) in ends.iter_mut().zip(&mut paths) {
            if end.link.poll_timeout() <= now {
                end.timeout(now);
            }
            path.extend(end.take());
            path.truncate(PATH_MAX);
        }
    }
    settle(&mut ends, now);
}

/// The front of a path, or one behind it when frames overtake each other.
fn pick(path: &mut VecDeque<Vec<u8>>, choice: u8) -> Option<Vec<u8>> {
    if path.is_empty() { None } else { path.remove(usize::from(choice) % path.len().min(4)) }
}

/// Without further frames every timer ends, and nothing is held.
fn settle(ends: &mut [End; 2], mut now: Tick) {
    for end in ends {
        for _ in 0..100_000 {
            let due = end.link.poll_timeout();
            if due == Tick::NEVER {
                break;
            }
            now = now.max(due);
            end.timeout(now);
            end.take();
        }
        assert_eq!(end.link.poll_timeout(), Tick::NEVER, "law: every timer of a link ends");
    }
}
