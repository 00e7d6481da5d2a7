//! Why a key may not sign: the first place where a name leaves the path of a rule.

use super::matcher::{TooCostly, elements};
use super::model::{Argument, Choice, Model, Node, PatternEdge};
use super::schema::{Schema, too_costly};
use crate::policy::{Cause, Denial};
use onym_wire::NameRef;
use onym_wire::name::Component;
use std::fmt::Write as _;

/// Most paths that are tried for the closest rule.
const PATHS_MAX: usize = 4096;

/// Where a name leaves a path.
struct Gap {
    /// Components that agree.
    matched: usize,
    what: String,
}

/// One step of a path: the edge that leads to a node.
enum Edge<'m> {
    Value(&'m [u8]),
    Pattern(&'m PatternEdge),
}

/// The edges from the start to `node`.
fn path(model: &Model, node: u32) -> Vec<Edge<'_>> {
    let mut edges = Vec::new();
    let mut at = node;
    while let Some(parent) = model.node(at).and_then(|node| node.parent) {
        let Some(above) = model.node(parent) else { break };
        let value = above.values.iter().find(|edge| edge.dest == at);
        let pattern = above.patterns.iter().find(|edge| edge.dest == at);
        match (value, pattern) {
            (Some(edge), _) => edges.push(Edge::Value(&edge.component)),
            (None, Some(edge)) => edges.push(Edge::Pattern(edge)),
            (None, None) => break,
        }
        at = parent;
    }
    edges.reverse();
    edges
}

fn component(element: &[u8]) -> String {
    match Component::split(element) {
        Ok((component, _)) => component.to_string(),
        Err(_) => "?".to_owned(),
    }
}

/// A path in the words of the schema: literals as they are, variables in angle brackets.
fn pattern_text(model: &Model, node: u32) -> String {
    let mut text = String::new();
    for edge in path(model, node) {
        text.push('/');
        match edge {
            Edge::Value(element) => text.push_str(&component(element)),
            Edge::Pattern(edge) => {
                let _ = write!(text, "<{}>", model.variable(edge.tag));
            }
        }
    }
    if text.is_empty() { "/".to_owned() } else { text }
}

fn choices_text(model: &Model, choices: &[Choice]) -> String {
    let shown: Vec<String> = choices
        .iter()
        .map(|choice| match choice {
            Choice::Value(element) => component(element),
            Choice::Tag(tag) => format!("<{}>", model.variable(*tag)),
            Choice::Call(call) => {
                let arguments: Vec<String> = call
                    .arguments
                    .iter()
                    .map(|argument| match argument {
                        Argument::Value(element) => component(element),
                        Argument::Tag(tag) => format!("<{}>", model.variable(*tag)),
                    })
                    .collect();
                format!("{}({})", call.function, arguments.join(", "))
            }
        })
        .collect();
    shown.join(" or ")
}

/// Where `name` leaves the path to `node`, with the variables that `packet` binds on its own path.
fn gap(
    schema: &Schema,
    name: NameRef<'_>,
    node: u32,
    packet: Option<(NameRef<'_>, u32)>,
) -> Option<Gap> {
    let name = elements(name);
    let packet = packet.map(|(packet, at)| (elements(packet), at));
    let model = &schema.model;
    let mut walk = schema.walk();
    if let Some((elements, at)) = &packet {
        for (edge, element) in path(model, *at).iter().zip(elements) {
            if let Edge::Pattern(edge) = edge {
                walk.bind(edge.tag, Some(element));
            }
        }
    }
    let edges = path(model, node);
    for (at, (edge, element)) in edges.iter().zip(&name).enumerate() {
        let number = at + 1;
        let have = component(element);
        match edge {
            Edge::Value(wanted) if *wanted == *element => {}
            Edge::Value(wanted) => {
                let wanted = component(wanted);
                let what = format!("component {number} is {have}, not {wanted}");
                return Some(Gap { matched: at, what });
            }
            Edge::Pattern(edge) => {
                let variable = model.variable(edge.tag);
                if walk.accepts(edge, element).unwrap_or(false) {
                    walk.bind(edge.tag, Some(element));
                    continue;
                }
                let wanted = match walk.value(edge.tag) {
                    Some(bound) if bound != *element => component(bound),
                    _ => {
                        let mut failing = edge.constraints.iter();
                        let failing = failing.find(|c| !walk.any(c, element).unwrap_or(false));
                        failing.map_or_else(String::new, |c| choices_text(model, c))
                    }
                };
                let what =
                    format!("component {number}, <{variable}>, is {have} but must be {wanted}");
                return Some(Gap { matched: at, what });
            }
        }
    }
    if edges.len() == name.len() {
        return None;
    }
    let what = format!("it has {} components, the rule has {}", name.len(), edges.len());
    Some(Gap { matched: edges.len().min(name.len()), what })
}

/// The node among `nodes` that `name` comes closest to.
fn closest(
    schema: &Schema,
    name: NameRef<'_>,
    nodes: impl Iterator<Item = u32>,
    packet: Option<(NameRef<'_>, u32)>,
) -> Option<(u32, Gap)> {
    let gaps = nodes.take(PATHS_MAX).filter_map(|node| {
        let gap = gap(schema, name, node, packet)?;
        Some((node, gap))
    });
    gaps.reduce(|best, next| if next.1.matched > best.1.matched { next } else { best })
}

fn ends(model: &Model) -> impl Iterator<Item = (u32, &Node)> {
    (0_u32..).zip(&model.nodes).filter(|(_, node)| !node.rules.is_empty())
}

/// The denial of a pair that was found not to go together.
pub(super) fn denial(schema: &Schema, packet: NameRef<'_>, key: NameRef<'_>) -> Denial {
    let Ok(matched) = schema.matches(packet) else { return too_costly() };
    if matched.is_empty() {
        return no_rule(schema, packet);
    }
    let model = &schema.model;
    let signed = |at: &u32| model.node(*at).is_some_and(|node| !node.signers.is_empty());
    let Some(at) = matched.iter().copied().find(signed) else {
        let rules: Vec<String> = matched.iter().map(|at| schema.rules_of(*at)).collect();
        let text = format!("{packet} may only be a trust anchor: no rule says who signs it");
        return Denial { cause: Cause::AnchorOnly, rule: Some(rules.join(", ")), text };
    };
    let signers = model.node(at).map(|node| node.signers.as_slice()).unwrap_or_default();
    let mut text = format!("the key {key} may not sign it: ");
    match closest(schema, key, signers.iter().copied(), Some((packet, at))) {
        Some((node, gap)) => {
            let (rule, pattern) = (schema.rules_of(node), pattern_text(model, node));
            let _ = write!(text, "{rule} ({pattern}) fails, {}", gap.what);
        }
        None => text.push_str("its signers cannot be reached with these variables"),
    }
    if let Ok(own) = schema.matches(key)
        && let Some(own) = own.first()
    {
        let _ = write!(text, "; the key follows {}", schema.rules_of(*own));
    }
    Denial { cause: Cause::Key, rule: Some(schema.rules_of(at)), text }
}

fn no_rule(schema: &Schema, packet: NameRef<'_>) -> Denial {
    let nodes = ends(&schema.model).map(|(at, _)| at);
    let mut text = format!("no rule is about {packet}");
    if let Some((node, gap)) = closest(schema, packet, nodes, None) {
        let (rule, pattern) = (schema.rules_of(node), pattern_text(&schema.model, node));
        let _ = write!(text, "; the closest is {rule} ({pattern}): {}", gap.what);
    }
    Denial { cause: Cause::NoRule, rule: None, text }
}

/// What the schema says about `name`, in lines.
pub(super) fn explain(schema: &Schema, name: NameRef<'_>) -> Vec<String> {
    let model = &schema.model;
    let matched = match schema.matches(name) {
        Ok(matched) => matched,
        Err(TooCostly) => return vec![too_costly().text],
    };
    if matched.is_empty() {
        return vec![no_rule(schema, name).text];
    }
    let mut lines = Vec::new();
    for at in matched {
        let Some(node) = model.node(at) else { continue };
        lines.push(format!("follows {} ({})", schema.rules_of(at), pattern_text(model, at)));
        if node.signers.is_empty() {
            lines.push("  nobody signs it: only a trust anchor may have this name".to_owned());
        }
        for signer in &node.signers {
            let (rule, pattern) = (schema.rules_of(*signer), pattern_text(model, *signer));
            lines.push(format!("  signed by {rule} ({pattern})"));
        }
    }
    lines
}

impl Schema {
    /// All rules, one a line: pattern, and the rules whose keys sign it.
    #[must_use]
    pub fn rules(&self) -> Vec<String> {
        ends(&self.model)
            .map(|(at, node)| {
                let mut signers: Vec<String> =
                    node.signers.iter().map(|signer| self.rules_of(*signer)).collect();
                signers.dedup();
                let by = if signers.is_empty() { "nobody".into() } else { signers.join(" or ") };
                let pattern = pattern_text(&self.model, at);
                format!("{} {pattern} signed by {by}", self.rules_of(at))
            })
            .collect()
    }
}
