//! Pictures of the push half: the information graph, and the map of a domain with a tree in it, for
//! Graphviz or as SVG.

mod radial;

use crate::push_words::{texts, word};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// How a picture is written; with neither, the answer is text.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Style {
    /// As a picture in the language of Graphviz.
    #[arg(long, conflicts_with = "svg")]
    dot: bool,
    /// As a picture (SVG).
    #[arg(long)]
    svg: bool,
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
    /// The vertex on top, or in the middle.
    root: usize,
    is_map: bool,
}

impl Picture {
    /// The picture in the style that is wanted, if one is.
    pub(crate) fn in_style(&self, style: Style) -> Option<String> {
        match style {
            Style { dot: true, .. } => Some(self.dot()),
            Style { svg: true, .. } => Some(self.svg()),
            _ => None,
        }
    }

    /// The information graph.
    pub(crate) fn graph(told: &Value) -> Self {
        let point = Vertex { name: "/".into(), lines: Vec::new(), shape: Shape::Point };
        let mut picture = Self {
            title: "information",
            vertices: vec![point],
            edges: Vec::new(),
            root: 0,
            is_map: false,
        };
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
            let father = id.rsplit_once('/').map_or("", |(father, _)| father);
            // What lies above the part that is shown is left out.
            let from = of_id.get(father).copied().unwrap_or(0);
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
        let root = root.and_then(at).unwrap_or(0);
        Self { title: "domain", vertices, edges, root, is_map: true }
    }

    fn dot(&self) -> String {
        let mut out = format!("digraph {} {{\n", self.title);
        for vertex in &self.vertices {
            let shape = match vertex.shape {
                Shape::Point => "point",
                Shape::Ellipse => "ellipse",
                Shape::Box => "box",
                Shape::Circle => "circle",
                Shape::DoubleCircle => "doublecircle",
            };
            let (name, label) = (&vertex.name, vertex.lines.join("\\n"));
            let _ = writeln!(out, "  \"{name}\" [shape={shape}, label=\"{label}\"];");
        }
        for edge in &self.edges {
            let name = |at: usize| &self.vertices[at].name;
            let (from, to) = (name(edge.from), name(edge.to));
            let style = match (edge.is_thick, edge.label.is_empty()) {
                (true, _) => format!(" [label=\"{}\", penwidth=3, color=red]", edge.label),
                (false, false) => format!(" [label=\"{}\", color=gray]", edge.label),
                (false, true) => String::new(),
            };
            let _ = writeln!(out, "  \"{from}\" -> \"{to}\"{style};");
        }
        out.push_str("}\n");
        out
    }
}

/// Width of a character of the text, height of a line, and space around, in pixels.
const CHARACTER: f64 = 7.3;
const LINE: f64 = 15.0;
const MARGIN: f64 = 10.0;
/// Space between neighbours and between rows.
const GAP: f64 = 30.0;
const ROW_GAP: f64 = 60.0;
/// Width from which on a row is broken.
const ROW_WIDTH: f64 = 1600.0;

/// Where a vertex is, and half of its size.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    x: f64,
    y: f64,
    half_width: f64,
    half_height: f64,
}

// Texts are short, so that nothing is lost.
#[allow(clippy::cast_precision_loss)]
fn size(count: usize) -> f64 {
    count as f64
}

impl Picture {
    /// Vertices by their distance from the root; those that are not reached in the last row.
    fn rows(&self) -> Vec<Vec<usize>> {
        let mut depth: Vec<Option<usize>> = vec![None; self.vertices.len()];
        let mut queue = VecDeque::new();
        if let Some(first) = depth.get_mut(self.root) {
            *first = Some(0);
            queue.push_back((self.root, 0));
        }
        while let Some((at, far)) = queue.pop_front() {
            for edge in self.edges.iter().filter(|edge| edge.from == at) {
                if depth[edge.to].is_none() {
                    depth[edge.to] = Some(far + 1);
                    queue.push_back((edge.to, far + 1));
                }
            }
        }
        let last = depth.iter().flatten().max().map_or(0, |deepest| deepest + 1);
        let mut rows = vec![Vec::new(); last + 1];
        for (at, depth) in depth.iter().enumerate() {
            rows[depth.unwrap_or(last)].push(at);
        }
        rows.retain(|row| !row.is_empty());
        rows
    }

    /// The vertices without a place.
    fn sizes(&self) -> Vec<Place> {
        let size_of = |vertex: &Vertex| {
            let longest = vertex.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
            let half_width = size(longest) * CHARACTER / 2.0 + MARGIN;
            let half_height = size(vertex.lines.len()) * LINE / 2.0 + MARGIN;
            Place { half_width, half_height, ..Place::default() }
        };
        self.vertices.iter().map(size_of).collect()
    }

    /// Rows from above, each ordered by where the vertices above it lie, and broken where it is too
    /// wide.
    fn in_rows(&self) -> Vec<Place> {
        let mut places = self.sizes();
        let mut lines = Vec::new();
        let mut y = MARGIN;
        for row in self.rows() {
            let above = |at: &usize| {
                let edges = self.edges.iter().filter(|edge| edge.to == *at);
                let xs: Vec<f64> =
                    edges.map(|e| places[e.from]).filter(|p| p.y > 0.0).map(|p| p.x).collect();
                xs.iter().sum::<f64>() / size(xs.len().max(1))
            };
            let mut keyed: Vec<(f64, usize)> = row.iter().map(|at| (above(at), *at)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for line in broken(keyed.into_iter().map(|(_, at)| at), &places) {
                let (mut x, mut height) = (MARGIN, 0.0_f64);
                for at in &line {
                    let place = &mut places[*at];
                    place.x = x + place.half_width;
                    x += 2.0 * place.half_width + GAP;
                    height = height.max(2.0 * place.half_height);
                }
                line.iter().for_each(|at| places[*at].y = y + height / 2.0);
                y += height + GAP;
                lines.push(line);
            }
            y += ROW_GAP - GAP;
        }
        centre(&lines, &mut places);
        places
    }

    /// Where the vertices lie: a map around its root, an information graph beneath its roots.
    fn layout(&self) -> Vec<Place> {
        if self.is_map { radial::layout(self) } else { self.in_rows() }
    }
    fn svg(&self) -> String {
        let places = self.layout();
        let edge_of = |end: fn(&Place) -> f64| places.iter().map(end).fold(0.0, f64::max) + MARGIN;
        let width = edge_of(|p| p.x + p.half_width);
        let height = edge_of(|p| p.y + p.half_height);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             font-family=\"monospace\" font-size=\"12\">\n<title>{}</title>\n<defs><marker \
             id=\"end\" viewBox=\"0 0 10 10\" refX=\"10\" refY=\"5\" markerWidth=\"7\" \
             markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L10 5L0 10z\"/></marker></defs>\n",
            self.title
        );
        for edge in &self.edges {
            edge_svg(&mut out, edge, &places[edge.from], &places[edge.to]);
        }
        for (vertex, place) in self.vertices.iter().zip(&places) {
            vertex_svg(&mut out, vertex, place);
        }
        out.push_str("</svg>\n");
        out
    }
}

/// A row as lines that are not too wide.
fn broken(row: impl Iterator<Item = usize>, places: &[Place]) -> Vec<Vec<usize>> {
    let mut lines: Vec<Vec<usize>> = Vec::new();
    let mut x = f64::MAX;
    for at in row {
        let width = 2.0 * places[at].half_width + GAP;
        if x + width > ROW_WIDTH {
            x = 0.0;
            lines.push(Vec::new());
        }
        x += width;
        lines.last_mut().into_iter().for_each(|line| line.push(at));
    }
    lines
}

/// Moves each line to the middle of the widest one.
fn centre(lines: &[Vec<usize>], places: &mut [Place]) {
    let right = |line: &Vec<usize>, places: &[Place]| {
        line.iter().map(|at| places[*at].x + places[*at].half_width).fold(0.0, f64::max)
    };
    let widest = lines.iter().map(|line| right(line, places)).fold(0.0, f64::max);
    for line in lines {
        let shift = (widest - right(line, places)) / 2.0;
        line.iter().for_each(|at| places[*at].x += shift);
    }
}

/// The point where the line from the middle of `of` towards `to` leaves it.
fn rim(of: &Place, to: &Place) -> (f64, f64) {
    let (dx, dy) = (to.x - of.x, to.y - of.y);
    let far = (dx / of.half_width.max(1.0)).hypot(dy / of.half_height.max(1.0)).max(1.0);
    (of.x + dx / far, of.y + dy / far)
}

fn edge_svg(out: &mut String, edge: &Edge, from: &Place, to: &Place) {
    let ((x1, y1), (x2, y2)) = (rim(from, to), rim(to, from));
    let (colour, thick) = match (edge.is_thick, edge.label.is_empty()) {
        (true, _) => ("red", 3),
        (false, false) => ("gray", 1),
        (false, true) => ("black", 1),
    };
    // A little to the side: the link the other way has its own line.
    let (dx, dy) = (x2 - x1, y2 - y1);
    let aside = if edge.label.is_empty() { 0.0 } else { 4.0 / dx.hypot(dy).max(1.0) };
    let (sx, sy) = (-dy * aside, dx * aside);
    let (x1, y1, x2, y2) = (x1 + sx, y1 + sy, x2 + sx, y2 + sy);
    let _ = writeln!(
        out,
        "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" stroke-width=\"{thick}\" \
         marker-end=\"url(#end)\"/>"
    );
    if !edge.label.is_empty() {
        let (x, y) = (x1 + dx * 0.3 + sx, y1 + dy * 0.3 + sy);
        let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(&edge.label));
    }
}

fn vertex_svg(out: &mut String, vertex: &Vertex, place: &Place) {
    let Place { x, y, half_width: w, half_height: h } = *place;
    let ellipse = |w: f64, h: f64| {
        format!(
            "<ellipse cx=\"{x:.1}\" cy=\"{y:.1}\" rx=\"{w:.1}\" ry=\"{h:.1}\" fill=\"white\" \
             stroke=\"black\"/>\n"
        )
    };
    match vertex.shape {
        Shape::Point => {
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>");
        }
        Shape::Box => {
            let (left, top) = (x - w, y - h);
            let _ = writeln!(
                out,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"white\" stroke=\"black\"/>",
                2.0 * w,
                2.0 * h
            );
        }
        Shape::Ellipse | Shape::Circle => out.push_str(&ellipse(w, h)),
        Shape::DoubleCircle => {
            out.push_str(&ellipse(w, h));
            out.push_str(&ellipse(w - 3.0, h - 3.0));
        }
    }
    let top = y - size(vertex.lines.len().saturating_sub(1)) * LINE / 2.0 + 4.0;
    for (number, line) in vertex.lines.iter().enumerate() {
        let (at, line) = (top + size(number) * LINE, escaped(line));
        let _ =
            writeln!(out, "<text x=\"{x:.1}\" y=\"{at:.1}\" text-anchor=\"middle\">{line}</text>");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
    fn a_vertex_with_two_names_is_drawn_once_and_hangs_under_both_fathers() {
        let dot = two_names().dot();
        assert_eq!(dot.matches("shape=box").count(), 1, "{dot}");
        assert!(dot.contains("\"/0001\" -> \"/0001/0003\""), "{dot}");
        assert!(dot.contains("\"/0002\" -> \"/0001/0003\""), "{dot}");
        assert!(dot.contains("S: 000b"), "{dot}");
        let svg = two_names().svg();
        assert_eq!((svg.matches("<rect").count(), svg.matches("<path").count()), (1, 5), "{svg}");
    }

    #[test]
    fn links_of_the_tree_are_thick() {
        let dot = two_nodes().dot();
        assert!(dot.contains("\"0001\" -> \"0002\" [label=\"7\", penwidth=3"), "{dot}");
        assert!(dot.contains("\"0002\" -> \"0001\" [label=\"8\", color=gray"), "{dot}");
        assert!(dot.contains("doublecircle"), "{dot}");
        let svg = two_nodes().svg();
        assert_eq!(svg.matches("stroke=\"red\"").count(), 1, "{svg}");
    }

    /// A tree of 106 nodes in which most have one link, and the links of a tree within it.
    fn large() -> Picture {
        let up = |n: usize| n * n % 7 * n / 8;
        let node = |n: usize| format!("{n:04x}");
        let links = |n: usize| -> Vec<Value> {
            let downs = (n + 1..106).filter(|m| up(*m) == n).map(|m| (m, 2 * m));
            let ups = (n > 0).then(|| (up(n), 2 * n + 1));
            downs
                .chain(ups)
                .map(|(to, number)| json!({ "to": node(to), "number": number }))
                .collect()
        };
        let nodes: Vec<Value> =
            (0..106).map(|n| json!({ "node": node(n), "roles": [], "links": links(n) })).collect();
        let tree = json!({ "publisher": "0000", "links": [2 * 105, 2 * up(105)] });
        Picture::map(&json!({ "nodes": nodes }), Some(&tree))
    }

    /// A scope with many items.
    fn wide() -> Picture {
        let vertex = |id: String| json!({ "ids": [id], "scope": true });
        let ids = (1..200).map(|n| vertex(format!("/0001/{n:04x}")));
        let vertices: Vec<Value> = std::iter::once(vertex("/0001".into())).chain(ids).collect();
        Picture::graph(&json!({ "vertices": vertices }))
    }

    #[test]
    fn vertices_of_a_picture_do_not_lie_on_each_other_and_it_fits_a_screen() {
        for picture in [two_names(), two_nodes(), large(), wide()] {
            let places = picture.layout();
            for (i, a) in places.iter().enumerate() {
                assert!(a.x < 2500.0 && a.y < 2500.0 && a.x > 0.0 && a.y > 0.0, "{a:?}");
                for b in &places[i + 1..] {
                    let is_beside = (a.x - b.x).abs() >= a.half_width + b.half_width;
                    let is_below = (a.y - b.y).abs() >= a.half_height + b.half_height;
                    assert!(is_beside || is_below, "{a:?} and {b:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_to_show_is_a_picture_too() {
        assert!(Picture::map(&json!({}), None).svg().ends_with("</svg>\n"));
        assert!(Picture::graph(&json!({})).dot().contains("digraph"));
    }
}
