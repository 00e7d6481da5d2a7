//! What the console asks a node by.

use crate::change::Change;
use crate::refused::Refused;

/// What a page wants to know or to have done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Name and version.
    About,
    /// `onym status --json`.
    Status,
    /// What goes on: `onym top --once --json` and what slows the node down.
    Top,
    /// `onym face list --json`.
    Faces,
    /// `onym route list --json`.
    Routes,
    /// `onym strategy list --json`.
    Strategies,
    /// What the router of the node sees of its network: routers, links, prefixes and who announces
    /// them.
    Routing {
        /// One of several networks of the node; empty: the one that has its programs.
        network: String,
    },
    /// The push half: links, map, information graph, and the trees of an item.
    Push {
        /// The item as it was typed; empty: no trees.
        item: String,
    },
    /// The state of another node, which is asked over the network.
    Other {
        /// Its name as it was typed.
        name: String,
    },
    /// The last hour, after a moment in milliseconds of Unix time.
    History {
        /// Rows of this moment and before are known.
        since: u64,
    },
    /// What an Interest for a name would meet.
    Explain {
        /// The name as it was typed.
        name: String,
    },
    /// The way of a name over nodes.
    Trace {
        /// The name as it was typed.
        name: String,
    },
    /// A change.
    Change(Change),
}

/// A connection to a node. Its calls wait.
pub trait Node: Send {
    /// The answer, as JSON.
    ///
    /// # Errors
    /// What the node, or the way to it, says.
    fn ask(&mut self, question: &Question) -> Result<String, Refused>;
}

/// What a tail has seen since it was asked last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tailed {
    /// A packet each, as JSON on one line.
    pub packets: Vec<String>,
    /// Those for which the node had no room.
    pub missed: u64,
}

/// A capture of a node's packets. It ends when it is dropped.
pub trait Tail: Send {
    /// What came since the last call; waits for a moment when that is nothing.
    ///
    /// # Errors
    /// The node is gone.
    fn next(&mut self) -> Result<Tailed, Refused>;
}

/// Opens connections to one node.
pub trait Nodes: Send + Sync {
    /// A new connection.
    ///
    /// # Errors
    /// No node answers.
    fn open(&self) -> Result<Box<dyn Node>, Refused>;

    /// A capture of packets that match `filter`, keys and values of `onym dump`.
    ///
    /// # Errors
    /// The filter is none, or there are too many captures.
    fn tail(&self, filter: &[(String, String)]) -> Result<Box<dyn Tail>, Refused>;

    /// Words of verdicts with what they mean.
    fn verdicts(&self) -> Vec<(&'static str, &'static str)>;
}
