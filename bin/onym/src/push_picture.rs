//! Graphs of the push half in DOT, the language of Graphviz: the information graph, and the map of a
//! domain with a tree in it.

use crate::push_words::{texts, word};
use anyhow::Context as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// How a graph is written; without it, the answer is text.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Style {
    /// In DOT, for Graphviz.
    #[arg(long)]
    dot: bool,
    /// Call nodes by the names that `onym topology deploy` wrote into this file, `domain.json`.
    #[arg(long, value_name = "FILE", requires = "dot")]
    names: Option<PathBuf>,
}

impl Style {
    /// Names of nodes by their labels.
    fn names(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let Some(path) = &self.names else { return Ok(BTreeMap::new()) };
        let what = || format!("names of nodes from {}", path.display());
        let text = std::fs::read_to_string(path).with_context(what)?;
        let told: Value = serde_json::from_str(&text).with_context(what)?;
        let nodes = told["nodes"].as_array().context("it has no nodes").with_context(what)?;
        let named = nodes.iter().map(|n| (word(n, "label").to_owned(), word(n, "name").to_owned()));
        Ok(named.collect())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Point,
    Ellipse,
    Box,
    Circle,
    DoubleCircle,
}

#[derive(Debug)]
struct Vertex {
    name: String,
    lines: Vec<String>,
    shape: Shape,
}

#[derive(Debug)]
struct Edge {
    from: usize,
    to: usize,
    label: String,
    is_thick: bool,
}

/// Vertices and edges, before any language.
#[derive(Debug)]
pub(crate) struct Picture {
    title: &'static str,
    vertices: Vec<Vertex>,
    edges: Vec<Edge>,
}

impl Picture {
    /// The graph in DOT, if that is asked for.
    pub(crate) fn in_style(mut self, style: &Style) -> anyhow::Result<Option<String>> {
        if !style.dot {
            return Ok(None);
        }
        self.call(&style.names()?);
        Ok(Some(self.dot()))
    }

    /// Calls nodes by their names, where they have one.
    fn call(&mut self, names: &BTreeMap<String, String>) {
        for line in self.vertices.iter_mut().flat_map(|vertex| &mut vertex.lines) {
            let words: Vec<&str> =
                line.split(' ').map(|word| names.get(word).map_or(word, String::as_str)).collect();
            *line = words.join(" ");
        }
    }

    /// The information graph.
    pub(crate) fn graph(told: &Value) -> Self {
        let point = Vertex { name: "/".into(), lines: Vec::new(), shape: Shape::Point };
        let mut picture = Self { title: "information", vertices: vec![point], edges: Vec::new() };
        let told = told["vertices"].as_array().map_or(&[][..], Vec::as_slice);
        // A vertex may have several identifiers: it is drawn once, by its first one.
        let mut of_id = BTreeMap::from([("", 0)]);
        for vertex in told {
            let ids = texts(&vertex["ids"]);
            let Some(first) = ids.first() else { continue };
            let shape = if vertex["scope"] == true { Shape::Ellipse } else { Shape::Box };
            let mut lines: Vec<String> = ids.iter().map(ToString::to_string).collect();
            for (word, who) in [("P", "publishers"), ("S", "subscribers")] {
                let nodes = texts(&vertex[who]);
                if !nodes.is_empty() {
                    lines.push(format!("{word}: {}", nodes.join(" ")));
                }
            }
            of_id.extend(ids.iter().map(|id| (*id, picture.vertices.len())));
            picture.vertices.push(Vertex { name: (*first).to_owned(), lines, shape });
        }
        for id in told.iter().flat_map(|vertex| texts(&vertex["ids"])) {
            let parent = id.rsplit_once('/').map_or("", |(parent, _)| parent);
            // What lies above the part that is shown is left out.
            let from = of_id.get(parent).copied().unwrap_or(0);
            let to = of_id.get(id).copied().unwrap_or(0);
            let (label, is_thick) = (String::new(), false);
            picture.edges.push(Edge { from, to, label, is_thick });
        }
        picture
    }

    /// The map of a domain, with the links of `tree` drawn thick.
    pub(crate) fn map(told: &Value, tree: Option<&Value>) -> Self {
        let thick: Vec<u64> = tree
            .and_then(|t| t["links"].as_array())
            .map(|links| links.iter().filter_map(Value::as_u64).collect())
            .unwrap_or_default();
        let root = tree.map(|t| word(t, "publisher"));
        let told = told["nodes"].as_array().map_or(&[][..], Vec::as_slice);
        let vertices: Vec<Vertex> = told
            .iter()
            .map(|node| {
                let name = word(node, "node").to_owned();
                let is_root = root == Some(&name);
                let shape = if is_root { Shape::DoubleCircle } else { Shape::Circle };
                let roles = texts(&node["roles"]).into_iter().map(ToOwned::to_owned);
                let lines = std::iter::once(name.clone()).chain(roles).collect();
                Vertex { name, lines, shape }
            })
            .collect();
        let at = |name: &str| vertices.iter().position(|v| v.name == name);
        let mut edges = Vec::new();
        for (from, node) in told.iter().enumerate() {
            for link in node["links"].as_array().into_iter().flatten() {
                let number = link["number"].as_u64().unwrap_or(0);
                let Some(to) = at(word(link, "to")) else { continue };
                let (label, is_thick) = (number.to_string(), thick.contains(&number));
                edges.push(Edge { from, to, label, is_thick });
            }
        }
        Self { title: "domain", vertices, edges }
    }

    fn dot(&self) -> String {
        // Each number stands at the start of its link, on the side where the other direction is not,
        // in the colour of the link: in the middle they would cover each other.
        let mut out = format!(
            "digraph {} {{\n  graph [overlap=false, splines=true, sep=\"+16\"];\n  \
             edge [labelfontsize=11, labeldistance=1.9, labelangle=28, len=2.2];\n",
            self.title
        );
        for vertex in &self.vertices {
            let shape = match vertex.shape {
                Shape::Point => "point",
                Shape::Ellipse => "ellipse",
                Shape::Box => "box",
                Shape::Circle => "circle",
                Shape::DoubleCircle => "doublecircle",
            };
            let lines: Vec<String> = vertex.lines.iter().map(|line| quoted(line)).collect();
            let (name, label) = (quoted(&vertex.name), lines.join("\\n"));
            let _ = writeln!(out, "  \"{name}\" [shape={shape}, label=\"{label}\"];");
        }
        for edge in &self.edges {
            let name = |at: usize| quoted(&self.vertices[at].name);
            let (from, to) = (name(edge.from), name(edge.to));
            let (look, ink) = match (edge.is_thick, edge.label.is_empty()) {
                (true, _) => ("penwidth=3, color=red", "red"),
                (false, false) => ("color=gray", "gray40"),
                (false, true) => ("", ""),
            };
            let label = &edge.label;
            let style = match look {
                "" => String::new(),
                look => format!(" [taillabel=\"{label}\", {look}, labelfontcolor=\"{ink}\"]"),
            };
            let _ = writeln!(out, "  \"{from}\" -> \"{to}\"{style};");
        }
        out.push_str("}\n");
        out
    }
}

/// A text between quotation marks.
fn quoted(text: &str) -> String {
    let plain = crate::plain::line(text);
    plain.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn two_names() -> Picture {
        Picture::graph(&json!({ "vertices": [
            { "ids": ["/0001"], "scope": true, "publishers": ["000a"], "subscribers": [] },
            { "ids": ["/0002"], "scope": true, "publishers": ["000a"], "subscribers": [] },
            { "ids": ["/0001/0003", "/0002/0003"], "scope": false, "publishers": ["000a"],
              "subscribers": ["000b"] },
        ]}))
    }

    fn two_nodes() -> Picture {
        let told = json!({ "nodes": [
            { "node": "0001", "roles": ["topology"], "links": [{ "to": "0002", "number": 7 }] },
            { "node": "0002", "roles": [], "links": [{ "to": "0001", "number": 8 }] },
        ]});
        Picture::map(&told, Some(&json!({ "publisher": "0001", "links": [7] })))
    }

    #[test]
    fn a_vertex_with_two_names_is_drawn_once_below_both_parents() {
        let dot = two_names().dot();
        assert_eq!(dot.matches("shape=box").count(), 1, "{dot}");
        assert!(dot.contains("\"/0001\" -> \"/0001/0003\""), "{dot}");
        assert!(dot.contains("\"/0002\" -> \"/0001/0003\""), "{dot}");
        assert!(dot.contains("S: 000b"), "{dot}");
    }

    #[test]
    fn links_of_the_tree_are_thick() {
        let dot = two_nodes().dot();
        assert!(dot.contains("\"0001\" -> \"0002\" [taillabel=\"7\", penwidth=3"), "{dot}");
        assert!(dot.contains("\"0002\" -> \"0001\" [taillabel=\"8\", color=gray"), "{dot}");
        assert!(dot.contains("doublecircle"), "{dot}");
    }

    #[test]
    fn nodes_are_called_by_their_names_which_end_no_quotation() {
        let mut picture = two_nodes();
        let names = [("0001", "rome"), ("0002", "a\"] x\\")];
        picture.call(&names.map(|(l, n)| (l.to_owned(), n.to_owned())).into());
        let dot = picture.dot();
        assert!(dot.contains("label=\"rome\\ntopology\""), "{dot}");
        assert!(dot.contains(r#""0002" [shape=circle, label="a\"] x\\"];"#), "{dot}");
    }

    #[test]
    fn nothing_to_show_is_a_graph_too() {
        assert!(Picture::map(&json!({}), None).dot().contains("digraph"));
        assert!(Picture::graph(&json!({})).dot().contains("digraph"));
    }
}
