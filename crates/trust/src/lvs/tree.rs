//! The third step of the compiler: chains of components become a tree of nodes.

use super::chain::{Chain, CompileError, Mode, Numbered, Step, fault, is_temporary};
use super::model::{Choice, NODES_MAX, Node, PatternEdge, ValueEdge};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

struct Draft {
    node: Node,
    /// Definitions of the rules that end here.
    rules: Vec<usize>,
}

/// Chains that share a beginning, with the edge that they share next.
struct Branch {
    tag: i64,
    constraints: Vec<Vec<Choice>>,
    chains: Vec<Rc<Chain>>,
}

pub(super) struct Tree {
    mode: Mode,
    nodes: Vec<Draft>,
    /// Where names of each rule end.
    ends: BTreeMap<Rc<str>, Vec<u32>>,
    last_tag: usize,
}

impl Tree {
    pub(super) const fn new(mode: Mode, last_tag: usize) -> Self {
        Self { mode, nodes: Vec::new(), ends: BTreeMap::new(), last_tag }
    }

    pub(super) fn into_nodes(self) -> Vec<Node> {
        self.nodes.into_iter().map(|draft| draft.node).collect()
    }

    /// Makes the node that `chains` share after `depth` components, and all nodes below it.
    pub(super) fn node(
        &mut self,
        chains: &[Rc<Chain>],
        depth: usize,
        parent: Option<u32>,
        bound: &mut BTreeSet<i64>,
    ) -> Result<u32, CompileError> {
        let own = self.nodes.len();
        if own >= NODES_MAX {
            return Err(CompileError::TooLarge("131072 nodes"));
        }
        let id = u32::try_from(own).unwrap_or(u32::MAX);
        let mut draft = Draft { node: Node { parent, ..Node::default() }, rules: Vec::new() };
        let mut going = Vec::new();
        for chain in chains {
            match chain.name.get(depth) {
                Some(step) => going.push((step, chain)),
                None => {
                    draft.node.rules.push(chain.id.to_string());
                    draft.rules.push(chain.rule);
                    self.ends.entry(Rc::clone(&chain.id)).or_default().push(id);
                }
            }
        }
        self.nodes.push(draft);
        let mut literals: BTreeMap<&[u8], Vec<Rc<Chain>>> = BTreeMap::new();
        let mut patterns: BTreeMap<String, Branch> = BTreeMap::new();
        for (step, chain) in going {
            match step {
                Step::Literal(component) => {
                    literals.entry(component).or_default().push(Rc::clone(chain));
                }
                Step::Tag(tag) => {
                    let (order, constraints) = self.pattern(chain, *tag, bound);
                    let new = || Branch { tag: *tag, constraints, chains: Vec::new() };
                    let branch = patterns.entry(order).or_insert_with(new);
                    branch.chains.push(Rc::clone(chain));
                }
                Step::Rule(_) => {}
            }
        }
        for (component, chains) in literals {
            let dest = self.node(&chains, depth + 1, Some(id), bound)?;
            let edge = ValueEdge { dest, component: component.to_vec() };
            self.edges(own, |node| node.values.push(edge));
        }
        for Branch { tag, constraints, chains } in patterns.into_values() {
            let number = match u32::try_from(tag) {
                Ok(named) => named,
                Err(_) => {
                    self.last_tag += 1;
                    u32::try_from(self.last_tag).unwrap_or(u32::MAX)
                }
            };
            let is_new = bound.insert(tag);
            let dest = self.node(&chains, depth + 1, Some(id), bound)?;
            if is_new {
                bound.remove(&tag);
            }
            let edge = PatternEdge { dest, tag: number, constraints };
            self.edges(own, |node| node.patterns.push(edge));
        }
        Ok(id)
    }

    fn edges(&mut self, at: usize, change: impl FnOnce(&mut Node)) {
        if let Some(draft) = self.nodes.get_mut(at) {
            change(&mut draft.node);
        }
    }

    /// The constraints of an edge, and the text that edges are ordered and merged by.
    fn pattern(
        &self,
        chain: &Chain,
        tag: i64,
        bound: &BTreeSet<i64>,
    ) -> (String, Vec<Vec<Choice>>) {
        let mut order = format!("{tag}:");
        let mut constraints = Vec::new();
        // A variable that is bound is compared; a temporary one never is bound at run time.
        let is_free = !bound.contains(&tag) || (tag < 0 && self.mode == Mode::Strict);
        if is_free {
            for constraint in chain.constraints.iter().filter(|c| c.tags.contains(&tag)) {
                order.push_str(&constraint.order);
                constraints.push(constraint.choices.clone());
            }
        }
        (order, constraints)
    }

    pub(super) fn resolve_signers(&mut self, rules: &[Numbered]) -> Result<(), CompileError> {
        for draft in &mut self.nodes {
            for place in &draft.rules {
                let Some(rule) = rules.get(*place) else { continue };
                for signer in &rule.signers {
                    let Some(ends) = self.ends.get(signer.as_str()) else {
                        let what = if is_temporary(signer) {
                            format!("{signer} is temporary and cannot sign")
                        } else {
                            format!("{} is signed by {signer}, which is not defined", rule.id)
                        };
                        return fault(rule.line, what);
                    };
                    draft.node.signers.extend_from_slice(ends);
                }
            }
            draft.node.signers.sort_unstable();
        }
        Ok(())
    }
}
