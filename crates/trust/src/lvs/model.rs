//! The binary model: a tree of name patterns, as python-ndn, ndnd and NDNts exchange it.
//!
//! ```text
//! Model       = 61{00011000} 25{start} 69{named} Node* TagSymbol*
//! Node        = 63{ 25{id} [57{parent}] 29{rule}* ValueEdge* PatternEdge* 55{signer node}* }
//! ValueEdge   = 51{ 25{dest} 21{component} }
//! PatternEdge = 53{ 25{dest} 23{tag} 43{ 41{ 21{component} | 23{tag} | 31{ 27{fn} 33{..}* } }* }* }
//! TagSymbol   = 67{ 23{tag} 29{name} }
//! ```
//!
//! Types are hexadecimal here; numbers are `NonNegativeInteger`s, a node's id is its position.

use onym_wire::tlv::{put_nested, put_nni_tlv, put_tlv};

/// The only version of the format.
pub const VERSION: u32 = 0x0001_1000;

/// Most nodes of a model.
pub const NODES_MAX: usize = 1 << 17;

/// Longest path from the start, in components: longer names match nothing.
pub const DEPTH_MAX: usize = 64;

/// Longest model, in octets.
pub const OCTETS_MAX: usize = 16 << 20;

/// TLV types of the format.
pub(super) mod typ {
    pub(in crate::lvs) const VALUE: u32 = 0x21;
    pub(in crate::lvs) const TAG: u32 = 0x23;
    pub(in crate::lvs) const NODE_ID: u32 = 0x25;
    pub(in crate::lvs) const FUNCTION: u32 = 0x27;
    pub(in crate::lvs) const IDENTIFIER: u32 = 0x29;
    pub(in crate::lvs) const CALL: u32 = 0x31;
    pub(in crate::lvs) const ARGUMENT: u32 = 0x33;
    pub(in crate::lvs) const OPTION: u32 = 0x41;
    pub(in crate::lvs) const CONSTRAINT: u32 = 0x43;
    pub(in crate::lvs) const VALUE_EDGE: u32 = 0x51;
    pub(in crate::lvs) const PATTERN_EDGE: u32 = 0x53;
    pub(in crate::lvs) const SIGNER: u32 = 0x55;
    pub(in crate::lvs) const PARENT: u32 = 0x57;
    pub(in crate::lvs) const VERSION: u32 = 0x61;
    pub(in crate::lvs) const NODE: u32 = 0x63;
    pub(in crate::lvs) const SYMBOL: u32 = 0x67;
    pub(in crate::lvs) const NAMED: u32 = 0x69;
}

/// A compiled schema. One that [`Model::decode`] gave passed every check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    pub(crate) start: u32,
    pub(crate) named: u32,
    pub(crate) nodes: Vec<Node>,
    pub(crate) symbols: Vec<(u32, String)>,
}

/// A prefix of names; with a rule, the end of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) parent: Option<u32>,
    /// The rules that end here, `#` included.
    pub(crate) rules: Vec<String>,
    pub(crate) values: Vec<ValueEdge>,
    pub(crate) patterns: Vec<PatternEdge>,
    /// Nodes whose names are keys that may sign.
    pub(crate) signers: Vec<u32>,
}

/// An edge for one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueEdge {
    pub(crate) dest: u32,
    /// The whole component element.
    pub(crate) component: Vec<u8>,
}

/// An edge for any component that meets all constraints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternEdge {
    pub(crate) dest: u32,
    pub(crate) tag: u32,
    /// All must hold; of each, one option.
    pub(crate) constraints: Vec<Vec<Choice>>,
}

/// One way to meet a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// To be this component element.
    Value(Vec<u8>),
    /// To be what this variable is bound to.
    Tag(u32),
    /// To be liked by a user function.
    Call(Call),
}

/// A call of a user function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its name, `$` included.
    pub(crate) function: String,
    pub(crate) arguments: Vec<Argument>,
}

/// An argument of a user function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument {
    /// This component element.
    Value(Vec<u8>),
    /// What this variable is bound to.
    Tag(u32),
}

impl Model {
    /// Number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The user functions that it calls, sorted, each once.
    #[must_use]
    pub fn functions(&self) -> Vec<&str> {
        let edges = self.nodes.iter().flat_map(|node| &node.patterns);
        let choices = edges.flat_map(|edge| edge.constraints.iter().flatten());
        let mut found: Vec<&str> = choices
            .filter_map(|choice| match choice {
                Choice::Call(call) => Some(call.function.as_str()),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The rules that keys of trust anchors follow: named as signer by others, without signer.
    #[must_use]
    pub fn roots(&self) -> Vec<&str> {
        let mut found: Vec<&str> = self
            .root_nodes()
            .filter_map(|id| self.node(id))
            .flat_map(|node| node.rules.iter().map(String::as_str))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Nodes that others name as signer and that have none themselves.
    pub(crate) fn root_nodes(&self) -> impl Iterator<Item = u32> {
        let mut ids: Vec<u32> =
            self.nodes.iter().flat_map(|node| node.signers.iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| self.node(*id).is_some_and(|node| node.signers.is_empty()));
        ids.into_iter()
    }

    pub(crate) fn node(&self, id: u32) -> Option<&Node> {
        self.nodes.get(usize::try_from(id).ok()?)
    }

    /// The name of variable `tag`; `_` for one that is not remembered.
    pub(crate) fn variable(&self, tag: u32) -> &str {
        let found = self.symbols.iter().find(|(number, _)| *number == tag);
        found.map_or("_", |(_, name)| name)
    }

    /// The octets, which [`Model::decode`] reads and other implementations load.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_tlv(&mut out, typ::VERSION, &VERSION.to_be_bytes());
        put_nni_tlv(&mut out, typ::NODE_ID, u64::from(self.start));
        put_nni_tlv(&mut out, typ::NAMED, u64::from(self.named));
        for (id, node) in self.nodes.iter().enumerate() {
            put_nested(&mut out, typ::NODE, |out| node.write(id as u64, out));
        }
        for (tag, name) in &self.symbols {
            put_nested(&mut out, typ::SYMBOL, |out| {
                put_nni_tlv(out, typ::TAG, u64::from(*tag));
                put_tlv(out, typ::IDENTIFIER, name.as_bytes());
            });
        }
        out
    }
}

impl Node {
    fn write(&self, id: u64, out: &mut Vec<u8>) {
        put_nni_tlv(out, typ::NODE_ID, id);
        if let Some(parent) = self.parent {
            put_nni_tlv(out, typ::PARENT, u64::from(parent));
        }
        for rule in &self.rules {
            put_tlv(out, typ::IDENTIFIER, rule.as_bytes());
        }
        for edge in &self.values {
            put_nested(out, typ::VALUE_EDGE, |out| {
                put_nni_tlv(out, typ::NODE_ID, u64::from(edge.dest));
                put_tlv(out, typ::VALUE, &edge.component);
            });
        }
        for edge in &self.patterns {
            put_nested(out, typ::PATTERN_EDGE, |out| edge.write(out));
        }
        for signer in &self.signers {
            put_nni_tlv(out, typ::SIGNER, u64::from(*signer));
        }
    }
}

impl PatternEdge {
    fn write(&self, out: &mut Vec<u8>) {
        put_nni_tlv(out, typ::NODE_ID, u64::from(self.dest));
        put_nni_tlv(out, typ::TAG, u64::from(self.tag));
        for choices in &self.constraints {
            put_nested(out, typ::CONSTRAINT, |out| {
                for choice in choices {
                    put_nested(out, typ::OPTION, |out| choice.write(out));
                }
            });
        }
    }
}

impl Choice {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Value(component) => put_tlv(out, typ::VALUE, component),
            Self::Tag(tag) => put_nni_tlv(out, typ::TAG, u64::from(*tag)),
            Self::Call(call) => put_nested(out, typ::CALL, |out| {
                put_tlv(out, typ::FUNCTION, call.function.as_bytes());
                for argument in &call.arguments {
                    put_nested(out, typ::ARGUMENT, |out| match argument {
                        Argument::Value(component) => put_tlv(out, typ::VALUE, component),
                        Argument::Tag(tag) => put_nni_tlv(out, typ::TAG, u64::from(*tag)),
                    });
                }
            }),
        }
    }
}
