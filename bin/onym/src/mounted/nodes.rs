//! The numbers by which the kernel knows files and folders, and the folders that it has open.

use super::wire::ROOT;
use onym_repo::file::{FileMetadata, Listed};
use onym_wire::Name;
use std::collections::HashMap;
use std::sync::Arc;

/// Files and folders that the kernel may know at once.
const NODES_MAX: usize = 1 << 18;
/// Folders that are open at once.
const OPEN_MAX: usize = 1 << 12;

/// What the kernel was told of. Each version of a file is one of its own, which never changes; a folder
/// is the same one whatever it has.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) name: Name,
    /// As it was when it was last looked up.
    pub(super) metadata: Arc<FileMetadata>,
}

/// A name, and of a file the name of its version.
type Key = (Name, Option<Name>);

impl Node {
    fn key(&self) -> Key {
        let version = (!self.metadata.is_folder()).then(|| self.metadata.name.clone());
        (self.name.clone(), version)
    }
}

/// All that the kernel knows.
#[derive(Debug)]
pub(super) struct Nodes {
    /// Each with how often the kernel was told of it and has not forgotten.
    nodes: HashMap<u64, (Node, u64)>,
    numbers: HashMap<Key, u64>,
    next: u64,
}

impl Nodes {
    pub(super) fn new(root: Node) -> Self {
        let nodes = HashMap::from([(ROOT, (root, 1))]);
        Self { nodes, numbers: HashMap::new(), next: ROOT + 1 }
    }

    pub(super) fn get(&self, number: u64) -> Option<Node> {
        self.nodes.get(&number).map(|(node, _)| node.clone())
    }

    /// The number of what the kernel is told of; `None` when it knows too much.
    pub(super) fn look_up(&mut self, node: Node) -> Option<u64> {
        let key = node.key();
        if let Some(number) = self.numbers.get(&key)
            && let Some((known, look_ups)) = self.nodes.get_mut(number)
        {
            known.metadata = node.metadata;
            *look_ups += 1;
            return Some(*number);
        }
        if self.nodes.len() >= NODES_MAX {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.numbers.insert(key, number);
        self.nodes.insert(number, (node, 1));
        Some(number)
    }

    pub(super) fn forget(&mut self, number: u64, count: u64) {
        if number == ROOT {
            return;
        }
        if let Some((node, look_ups)) = self.nodes.get_mut(&number) {
            *look_ups = look_ups.saturating_sub(count);
            if *look_ups == 0 {
                self.numbers.remove(&node.key());
                self.nodes.remove(&number);
            }
        }
    }
}

/// The folders that are open, each with what it had when it was opened.
#[derive(Debug, Default)]
pub(super) struct Handles {
    open: HashMap<u64, Arc<Vec<Listed>>>,
    next: u64,
}

impl Handles {
    /// The number of one more; `None` when too many are open.
    pub(super) fn open(&mut self, listed: Vec<Listed>) -> Option<u64> {
        if self.open.len() >= OPEN_MAX {
            return None;
        }
        self.next += 1;
        self.open.insert(self.next, Arc::new(listed));
        Some(self.next)
    }

    pub(super) fn get(&self, number: u64) -> Option<Arc<Vec<Listed>>> {
        self.open.get(&number).cloned()
    }

    pub(super) fn close(&mut self, number: u64) {
        self.open.remove(&number);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_repo::file::{FILE, FOLDER};

    fn node(name: &str, version: u64, mode: u64) -> Node {
        let name: Name = name.parse().unwrap();
        let mut versioned = name.clone();
        versioned.append_version(version);
        Node {
            name,
            metadata: Arc::new(FileMetadata { name: versioned, mode, ..FileMetadata::default() }),
        }
    }

    /// Law: each version of a file has one number while the kernel knows it, a folder has the same
    /// whatever it has; what the kernel says of numbers that there are not changes nothing.
    #[test]
    fn a_version_has_one_number_until_it_is_forgotten() {
        let mut nodes = Nodes::new(node("/root", 1, FOLDER));
        let mut look_up = |version, mode| nodes.look_up(node("/root/a", version, mode)).unwrap();
        let (first, second) = (look_up(1, FILE), look_up(2, FILE));
        assert_ne!(first, second);
        assert_eq!(look_up(1, FILE), first);
        let folder = look_up(1, FOLDER);
        assert_eq!(look_up(2, FOLDER), folder);
        nodes.forget(first, 1);
        assert!(nodes.get(first).is_some());
        nodes.forget(first, u64::MAX);
        for (number, count) in [(first, 1), (77, 1), (ROOT, u64::MAX)] {
            nodes.forget(number, count);
        }
        assert!(nodes.get(first).is_none() && nodes.get(ROOT).is_some());
        assert_ne!(nodes.look_up(node("/root/a", 1, FILE)), Some(first), "another number");
    }

    /// Law: what the kernel knows and has open is bounded.
    #[test]
    fn both_tables_have_an_end() {
        let mut nodes = Nodes::new(node("/", 1, FOLDER));
        let more = |nodes: &mut Nodes, version: u64| nodes.look_up(node("/a", version, FILE));
        let count = (0..).take_while(|n| more(&mut nodes, *n).is_some()).count();
        assert_eq!(count, NODES_MAX - 1);
        nodes.forget(2, 1);
        assert!(more(&mut nodes, u64::MAX).is_some());
        let mut handles = Handles::default();
        let count = (0..).take_while(|_: &u64| handles.open(Vec::new()).is_some()).count();
        assert_eq!(count, OPEN_MAX);
        handles.close(1);
        let number = handles.open(Vec::new()).unwrap();
        assert!(handles.get(number).is_some() && handles.get(1).is_none());
    }
}
