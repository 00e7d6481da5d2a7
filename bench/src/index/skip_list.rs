//! A skip list of packets in the order of their names, as ccnd's content store had.

use onym_frame::Buf;
use onym_tables::Rng;
use onym_wire::Data;
use std::cmp::Ordering;

/// Most levels: enough for 4^12 packets.
const LEVELS: usize = 12;
const NIL: u32 = u32::MAX;

/// What a node keeps to be compared with.
pub trait Keep {
    /// Made from a packet whose name's value is `name`.
    fn keep(packet: Buf, name: &[u8]) -> Self;
    /// Compares with the name's value `name`.
    fn order(&self, name: &[u8]) -> Ordering;
    /// Octets that it holds beside the packet.
    fn octets(&self) -> usize;
}

/// The packet as it came; its name is decoded at every comparison (ccnd as profiled).
#[derive(Debug)]
pub(super) struct Encoded(Buf);

impl Keep for Encoded {
    fn keep(packet: Buf, _: &[u8]) -> Self {
        Self(packet)
    }

    fn order(&self, name: &[u8]) -> Ordering {
        // Only whole packets are put in.
        Data::parse(&self.0).map_or(Ordering::Less, |data| data.name.value().cmp(name))
    }

    fn octets(&self) -> usize {
        0
    }
}

/// The packet and its decoded name beside it (the paper's change).
#[derive(Debug)]
pub(super) struct Decoded {
    name: Box<[u8]>,
    _packet: Buf,
}

impl Keep for Decoded {
    fn keep(packet: Buf, name: &[u8]) -> Self {
        Self { name: name.into(), _packet: packet }
    }

    fn order(&self, name: &[u8]) -> Ordering {
        (*self.name).cmp(name)
    }

    fn octets(&self) -> usize {
        self.name.len()
    }
}

#[derive(Debug)]
struct Node<K> {
    kept: K,
    next: [u32; LEVELS],
}

/// Packets in canonical order of their names.
#[derive(Debug)]
pub struct SkipList<K> {
    head: [u32; LEVELS],
    nodes: Vec<Node<K>>,
    rng: Rng,
}

impl<K: Keep> SkipList<K> {
    /// An empty list; `seed` decides the heights.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { head: [NIL; LEVELS], nodes: Vec::new(), rng: Rng::new(seed) }
    }

    /// How many packets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn next(&self, node: u32, level: usize) -> u32 {
        if node == NIL { self.head[level] } else { self.nodes[node as usize].next[level] }
    }

    /// The last node before `name` on each level, and the node that is `name`.
    fn before(&self, name: &[u8]) -> ([u32; LEVELS], Option<u32>) {
        let (mut at, mut path, mut found) = (NIL, [NIL; LEVELS], None);
        for level in (0..LEVELS).rev() {
            loop {
                let next = self.next(at, level);
                if next == NIL {
                    break;
                }
                match self.nodes[next as usize].kept.order(name) {
                    Ordering::Less => at = next,
                    Ordering::Equal => {
                        found = Some(next);
                        break;
                    }
                    Ordering::Greater => break,
                }
            }
            path[level] = at;
        }
        (path, found)
    }

    /// Whether a packet of this name is there.
    #[must_use]
    pub fn holds(&self, name: &[u8]) -> bool {
        self.before(name).1.is_some()
    }

    /// Puts a packet in; one of the same name stays instead.
    pub fn insert(&mut self, packet: Buf, name: &[u8]) {
        let (path, found) = self.before(name);
        if found.is_some() {
            return;
        }
        let slot = u32::try_from(self.nodes.len()).expect("invariant: fewer than 2^32 packets");
        // A quarter of the nodes of a level is on the next.
        let height = 1 + (self.rng.next_u64().trailing_zeros() as usize / 2).min(LEVELS - 1);
        let mut next = [NIL; LEVELS];
        for level in 0..height {
            next[level] = self.next(path[level], level);
        }
        self.nodes.push(Node { kept: K::keep(packet, name), next });
        for (level, &at) in path.iter().enumerate().take(height) {
            match at {
                NIL => self.head[level] = slot,
                at => self.nodes[at as usize].next[level] = slot,
            }
        }
    }

    /// Octets beside the packets.
    #[must_use]
    pub fn octets(&self) -> usize {
        let kept: usize = self.nodes.iter().map(|node| node.kept.octets()).sum();
        kept + self.nodes.len() * size_of::<[u32; LEVELS]>()
    }
}
