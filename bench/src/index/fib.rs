//! Longest-prefix match in three ways.

use super::bloom::Bloom;
use super::names::Names;
use anyhow::{Result, ensure};
use onym_tables::fib::{Fib, NextHop};
use onym_tables::hash::{component_count, component_end};
use onym_tables::{FaceId, HashKey, NameHashes};
use std::collections::BTreeMap;

/// Which structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FibKind {
    /// One keyed hash of all prefixes, and the lengths in use: Onym's.
    Hash,
    /// The same behind a Bloom filter of prefixes.
    HashBloom,
    /// A tree with a sorted map of components in each node, as NFD's name tree is read.
    Trie,
}

impl FibKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hash, Self::HashBloom, Self::Trie];

    /// As in cases of rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::HashBloom => "hash+bloom",
            Self::Trie => "trie",
        }
    }
}

#[derive(Debug, Default)]
struct Node {
    children: BTreeMap<Box<[u8]>, Self>,
    face: Option<FaceId>,
}

/// A FIB of one of the kinds.
#[derive(Debug)]
pub struct FibIndex {
    key: HashKey,
    hashes: NameHashes,
    bloom: Option<Bloom>,
    fib: Fib,
    trie: Option<Node>,
}

impl FibIndex {
    /// An empty FIB for at most `routes` prefixes.
    #[must_use]
    pub fn new(kind: FibKind, routes: usize) -> Self {
        Self {
            key: HashKey::new(0x6f6e_796d, 2),
            hashes: NameHashes::default(),
            bloom: (kind == FibKind::HashBloom).then(|| Bloom::new(routes)),
            fib: Fib::new(routes),
            trie: (kind == FibKind::Trie).then(Node::default),
        }
    }

    /// Adds a prefix (a name's value).
    ///
    /// # Errors
    /// When there are too many, or it has more components than a prefix may have.
    pub fn add(&mut self, prefix: &[u8], face: FaceId) -> Result<()> {
        if let Some(trie) = &mut self.trie {
            let (mut node, mut at) = (trie, 0);
            while at < prefix.len() {
                let end = component_end(prefix, at);
                node = node.children.entry(prefix[at..end].into()).or_default();
                at = end;
            }
            node.face = Some(face);
            return Ok(());
        }
        self.hashes.fill(&self.key, prefix, u64::MAX);
        let len = component_count(prefix);
        let Some(found) = self.hashes.prefix(prefix, len) else { anyhow::bail!("too long") };
        if let Some(bloom) = &mut self.bloom {
            bloom.insert(found.hash);
        }
        self.fib.add(&found, NextHop { face, cost: 0 })?;
        Ok(())
    }

    /// The face of the longest prefix of a name (its value).
    pub fn find(&mut self, name: &[u8]) -> Option<FaceId> {
        if let Some(trie) = &self.trie {
            return walk(trie, name);
        }
        self.hashes.fill(&self.key, name, self.fib.lengths());
        if let Some(bloom) = &self.bloom {
            let mut lengths = self.hashes.lengths() & self.fib.lengths();
            let mut may = false;
            while lengths != 0 && !may {
                let len = lengths.trailing_zeros() as usize;
                lengths &= lengths - 1;
                may = self.hashes.prefix(name, len).is_some_and(|p| bloom.may_hold(p.hash));
            }
            if !may {
                return None;
            }
        }
        self.fib.lookup(&self.hashes, name).map(|(_, hops)| hops[0].face)
    }
}

fn walk(trie: &Node, name: &[u8]) -> Option<FaceId> {
    let (mut node, mut at, mut found) = (trie, 0, trie.face);
    while at < name.len() {
        let end = component_end(name, at);
        let Some(child) = node.children.get(&name[at..end]) else { break };
        (node, at) = (child, end);
        found = node.face.or(found);
    }
    found
}

/// A FIB with the first `routes` routes, each of which is found.
///
/// # Errors
/// When a route is not taken or not found.
pub(super) fn filled(kind: FibKind, names: &Names, routes: u32) -> Result<FibIndex> {
    let mut fib = FibIndex::new(kind, routes as usize);
    for n in 0..routes {
        fib.add(Names::route(n).value(), FaceId(n))?;
    }
    for n in (0..routes).step_by(9973) {
        let found = fib.find(names.under_route(n).value());
        ensure!(found == Some(FaceId(n)), "{} lost route {n}", kind.name());
    }
    Ok(fib)
}
