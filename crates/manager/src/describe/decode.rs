//! From the tree to a [`Description`]. Every fault is collected, so that one run shows them all.

use super::tree::{Node, Tree};
use super::{DescribeError, Described, Description, Key, Loops, Trust};
use crate::kind::{KINDS, Kind};
use crate::near::near;
use crate::network::{Ends, Fault, Function, Side, Transport};
use crate::policy::Policies;
use crate::settings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

const TOP: &[&str] = &["network", "loops", "functions", "links", "keys", "trust", "policies"];
const FUNCTION: &[&str] =
    &["kind", "config", "listen", "quota", "scalable", "instances_max", "multicast", "origin"];
const LINK: &[&str] = &["from", "to", "side", "transport"];

/// Decodes; what is wrong with single objects is told here, with the graph by `expand::check`.
pub(super) fn decode(root: &Node) -> Result<Described, DescribeError> {
    let mut decoder = Decoder::default();
    decoder.top(root);
    if decoder.faults.is_empty() {
        return Ok(Described { description: decoder.description, lines: decoder.lines });
    }
    Err(DescribeError::Faults(decoder.faults))
}

#[derive(Default)]
struct Decoder {
    description: Description,
    lines: BTreeMap<String, usize>,
    faults: Vec<Fault>,
}

impl Decoder {
    fn fault(
        &mut self,
        line: usize,
        object: &str,
        what: impl Into<String>,
        next: impl Into<String>,
    ) {
        let mut fault = Fault::new(object, what, next);
        fault.line = Some(line);
        self.faults.push(fault);
    }

    /// The rows of a table whose keys are known; others are faults.
    fn table<'a>(
        &mut self,
        node: &'a Node,
        object: &str,
        known: Option<&[&str]>,
    ) -> &'a [(String, usize, Node)] {
        let Tree::Map(rows) = &node.value else {
            self.fault(node.line, object, "a table is expected here", "write key = value rows");
            return &[];
        };
        for (key, line, _) in rows {
            if let Some(known) = known.filter(|k| !k.contains(&key.as_str())) {
                let what = format!("there is no key {key:?}");
                self.fault(*line, object, what, near(key, known));
            }
        }
        rows
    }

    fn text(&mut self, node: &Node, object: &str, key: &str) -> Option<String> {
        match &node.value {
            Tree::Leaf(Value::String(text)) => Some(text.clone()),
            _ => {
                self.fault(node.line, object, format!("{key} is no text"), "put it in quotes");
                None
            }
        }
    }

    fn leaf<T: DeserializeOwned>(
        &mut self,
        node: &Node,
        object: &str,
        key: &str,
        allowed: &str,
    ) -> Option<T> {
        let value = serde_json::from_value(node.to_json());
        if value.is_err() {
            self.fault(node.line, object, format!("{key} is wrong"), allowed);
        }
        value.ok()
    }

    fn top(&mut self, root: &Node) {
        for (key, line, node) in self.table(root, "network", Some(TOP)) {
            match key.as_str() {
                "network" => {
                    self.lines.insert("network".to_owned(), *line);
                    self.description.network =
                        self.text(node, "network", "network").unwrap_or_default();
                }
                "loops" => {
                    let loops = self.leaf(node, "network", "loops", "guard or deny");
                    self.description.loops = loops.unwrap_or(Loops::Guard);
                }
                "functions" => {
                    for (name, line, node) in self.table(node, "functions", None) {
                        self.function(name, *line, node);
                    }
                }
                "links" => self.links(node),
                "keys" => {
                    for (name, line, node) in self.table(node, "keys", None) {
                        self.key(name, *line, node);
                    }
                }
                "trust" => self.trust(*line, node),
                "policies" => self.policies(node),
                _ => {}
            }
        }
    }

    fn function(&mut self, name: &str, line: usize, node: &Node) {
        let object = format!("function {name}");
        self.lines.insert(object.clone(), line);
        let rows = self.table(node, &object, Some(FUNCTION));
        let Some(kind) = self.kind(line, rows, &object) else { return };
        let mut function = Function::new(kind);
        for (key, _, node) in rows {
            match key.as_str() {
                "config" => self.config(&mut function, node, &object),
                "listen" => self.listen(&mut function, node, &object),
                "quota" => function.quota = self.leaf(node, &object, key, "cores, such as 0.67"),
                "scalable" => {
                    let flag = self.leaf(node, &object, key, "true or false");
                    function.scalable = flag.unwrap_or_default();
                }
                "instances_max" => {
                    function.instances_max = self.leaf(node, &object, key, "a whole number");
                }
                "multicast" => {
                    let flag = self.leaf(node, &object, key, "true or false");
                    function.multicast = flag.unwrap_or_default();
                }
                _ => {}
            }
        }
        if self.description.graph.functions.insert(name.to_owned(), function).is_some() {
            self.fault(line, &object, "it is declared twice", "rename or remove one");
        }
    }

    fn kind(&mut self, line: usize, rows: &[(String, usize, Node)], object: &str) -> Option<Kind> {
        let Some((_, _, node)) = rows.iter().find(|(k, _, _)| k == "kind") else {
            self.fault(line, object, "it has no kind", "add kind = \"…\"");
            return None;
        };
        let word = self.text(node, object, "kind")?;
        let kind = Kind::find(&word);
        if kind.is_none() {
            let words: Vec<String> =
                KINDS.iter().map(|(k, short)| format!("{} ({short})", k.word())).collect();
            let next = format!("one of: {}", words.join(", "));
            self.fault(node.line, object, format!("there is no kind {word:?}"), next);
        }
        kind
    }

    fn config(&mut self, function: &mut Function, node: &Node, object: &str) {
        for (key, line, node) in self.table(node, object, None) {
            let value = node.to_json();
            if let Err((what, next)) = settings::check(function.kind, key, &value) {
                self.fault(*line, object, what, next);
            }
            function.config.insert(key.clone(), value);
        }
    }

    fn listen(&mut self, function: &mut Function, node: &Node, object: &str) {
        let usual = function.kind.ingresses()[0];
        match &node.value {
            Tree::Map(rows) => {
                for (ingress, _, node) in rows {
                    let uris = self.uris(node, object);
                    function.listen.insert(ingress.clone(), uris);
                }
            }
            _ => {
                let uris = self.uris(node, object);
                function.listen.insert(usual.to_owned(), uris);
            }
        }
    }

    fn uris(&mut self, node: &Node, object: &str) -> Vec<String> {
        match &node.value {
            Tree::List(items) => {
                items.iter().filter_map(|n| self.text(n, object, "listen")).collect()
            }
            _ => self.text(node, object, "listen").into_iter().collect(),
        }
    }

    fn links(&mut self, node: &Node) {
        let Tree::List(items) = &node.value else {
            self.fault(node.line, "links", "a list is expected here", "links = [\"a -> b\"]");
            return;
        };
        for item in items {
            match &item.value {
                Tree::Leaf(Value::String(chain)) => self.chain(item.line, chain),
                Tree::Map(_) => self.link(item),
                _ => self.fault(item.line, "links", "this is no link", "write \"a -> b\""),
            }
        }
    }

    fn chain(&mut self, line: usize, chain: &str) {
        let mut words = chain.split_whitespace();
        let mut from = words.next().unwrap_or_default();
        if words.clone().next().is_none() {
            let what = format!("{chain:?} is not a link");
            self.fault(line, "links", what, "write \"a -> b\" or \"a => b\"");
        }
        while let Some(arrow) = words.next() {
            let side = match arrow {
                "->" => Side::Consumer,
                "=>" => Side::Producer,
                _ => {
                    let what = format!("{arrow:?} is not an arrow");
                    return self.fault(line, "links", what, "`->` or `=>`, with spaces around it");
                }
            };
            let Some(to) = words.next() else {
                let what = format!("{chain:?} ends with an arrow");
                return self.fault(line, "links", what, "name the function it goes to");
            };
            let ends = Ends { from: from.to_owned(), to: to.to_owned(), side };
            self.insert(line, ends, Transport::Tcp);
            from = to;
        }
    }

    fn link(&mut self, node: &Node) {
        let (mut from, mut to) = (None, None);
        let (mut side, mut transport) = (Side::Consumer, Transport::Tcp);
        for (key, _, value) in self.table(node, "links", Some(LINK)) {
            match key.as_str() {
                "from" => from = self.text(value, "links", key),
                "to" => to = self.text(value, "links", key),
                "side" => {
                    side = self.leaf(value, "links", key, "consumer or producer").unwrap_or(side);
                }
                "transport" => {
                    transport = self.leaf(value, "links", key, "tcp or udp").unwrap_or(transport);
                }
                _ => {}
            }
        }
        match (from, to) {
            (Some(from), Some(to)) => self.insert(node.line, Ends { from, to, side }, transport),
            _ => self.fault(node.line, "links", "a link has two ends", "give from and to"),
        }
    }

    fn insert(&mut self, line: usize, ends: Ends, transport: Transport) {
        let object = format!("link {ends}");
        if self.description.graph.links.insert(ends, transport).is_some() {
            self.fault(line, &object, "it is declared twice", "remove one");
        }
        self.lines.entry(object).or_insert(line);
    }

    fn key(&mut self, name: &str, line: usize, node: &Node) {
        let object = format!("key {name}");
        self.lines.insert(object.clone(), line);
        match serde_json::from_value::<Key>(node.to_json()) {
            Ok(key) => {
                if let Err(why) = crate::keys::check(name, &key) {
                    let next =
                        "one of spki, pem, certificate; RSA from 2048 bits, ECDSA P-256, Ed25519";
                    self.fault(line, &object, why, next);
                }
                self.description.keys.insert(name.to_owned(), key);
            }
            Err(error) => self.fault(
                line,
                &object,
                error.to_string(),
                "a key has spki, pem or certificate, and prefixes",
            ),
        }
    }

    fn trust(&mut self, line: usize, node: &Node) {
        self.lines.insert("trust".to_owned(), line);
        let next = "one of lightversec and validator, as text; `onym trust lint FILE` checks it";
        match serde_json::from_value::<Trust>(node.to_json()) {
            Ok(trust) => {
                if let Err(why) = trust.check() {
                    self.fault(line, "trust", why, next);
                }
                self.description.trust = Some(trust);
            }
            Err(error) => self.fault(line, "trust", error.to_string(), next),
        }
    }

    fn policies(&mut self, node: &Node) {
        self.lines.insert("policies".to_owned(), node.line);
        for (part, line, node) in self.table(node, "policies", None) {
            let object = format!("policies.{part}");
            // One key at a time, so that the fault names its line.
            for (key, line, value) in self.table(node, &object, None) {
                let one = serde_json::json!({ part: { key: value.to_json() } });
                if let Err(error) = serde_json::from_value::<Policies>(one) {
                    let next = "crates/manager/README.md lists the keys of policies";
                    self.fault(*line, &object, error.to_string(), next);
                }
            }
            self.lines.insert(object, *line);
        }
        if let Ok(policies) = serde_json::from_value(node.to_json()) {
            self.description.policies = policies;
        } else if self.faults.is_empty() {
            self.fault(node.line, "policies", "it cannot be read", "see the keys of policies");
        }
    }
}
