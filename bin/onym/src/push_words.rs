//! What the commands of the push half share: finding the node, its datasets, failures, pictures.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::session;
use onym_client::mgmt;
use onym_client::push::{App, Error};
use onym_wire::name::Name;
use onym_wire::push::{Id, Kind, Status, Strategy};
use serde_json::Value;
use std::fmt::Write as _;

/// Registers at the node of the command line.
pub(crate) fn open(cx: &Context, name: &str) -> anyhow::Result<App> {
    App::open(cx.node.as_deref(), name).map_err(failure)
}

/// The strategy of this name, for clap.
pub(crate) fn strategy(text: &str) -> Result<Strategy, String> {
    Strategy::named(text).ok_or_else(|| {
        let names: Vec<&str> = Strategy::ALL.iter().map(|(_, name)| *name).collect();
        format!("there is no such strategy; there are {}", names.join(", "))
    })
}

/// The client's error as three sentences and an exit code.
pub(crate) fn failure(error: Error) -> anyhow::Error {
    let what = error.to_string();
    let (exit, next) = match &error {
        Error::Node(_) => {
            let Error::Node(error) = error else { return error.into() };
            return session::failure(error);
        }
        Error::Gone(_) => (Exit::NoNode, "look at the node's log; start it again"),
        Error::Silent(_) => (
            Exit::NoNode,
            "is it an onym node with `push.enabled = true`? see `onym rendezvous status`",
        ),
        Error::Refused { status, .. } => (Exit::Refused, advice(*status)),
        _ => (Exit::Failed, "do node and program have the same version?"),
    };
    Failure::new(exit, what).next(next).into()
}

/// What to do about a status.
fn advice(status: Status) -> &'static str {
    match status {
        Status::NO_FATHER => "publish the scope above it first: `onym scope publish ID`",
        Status::STRATEGY => "name the strategy of the scope with --strategy: see `onym scope list`",
        Status::UNREACHED => {
            "no rendezvous node is known: see `onym rendezvous status` and the roles of the nodes"
        }
        Status::IS_SCOPE | Status::NO_ITEM => "it is a scope: say --scope",
        Status::IS_ITEM | Status::NO_SCOPE => "it is an item: leave --scope out",
        Status::FULL => "a bound of the configuration is reached: see docs/config.md, `push`",
        Status::OFF => "set push.enabled in the node's configuration",
        _ => "spec/push.md says what each status means",
    }
}

/// Publishes every scope above `id`, the highest first; those that are there are joined.
pub(crate) fn scopes_above(app: &mut App, id: &Id, strategy: Strategy) -> anyhow::Result<()> {
    for depth in 1..id.len() {
        let scope = Id::from_labels(&id.labels()[..depth]);
        let label = scope.last().map(Id::root).unwrap_or_default();
        let father = Id::from_labels(scope.father());
        let status = app.request(Kind::PUBLISH_SCOPE, &label, &father, strategy);
        match status.map_err(failure)? {
            Status::OK | Status::EXISTS => {}
            status => return Err(failure(Error::Refused { what: scope.to_string(), status })),
        }
    }
    Ok(())
}

/// The dataset `what` of the node's push half.
pub(crate) fn dataset(cx: &Context, what: &str, id: Option<&Id>) -> anyhow::Result<Value> {
    let mut client = session::open(cx)?;
    let mut name = Name::new();
    name.append_generic("localhost").append_generic("onym");
    name.append_generic("push").append_generic(what);
    if let Some(id) = id {
        name.append_generic(id.octets());
    }
    let content = mgmt::fetch_dataset(&mut client, name).map_err(|error| {
        Failure::new(Exit::NotFound, "the node tells nothing of a push half")
            .why(error)
            .next("ask an onym node with `push.enabled = true` over its Unix socket")
    })?;
    Ok(serde_json::from_slice(&content)?)
}

/// Fails with a sentence when the push half is off.
pub(crate) fn enabled(status: Value) -> anyhow::Result<Value> {
    if status["enabled"] == false {
        return Err(Failure::new(Exit::Refused, "the push half of the node is off")
            .next("start the node with --set push.enabled=true")
            .into());
    }
    Ok(status)
}

/// The texts of a list of JSON.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The text of a member, or a dash.
pub(crate) fn word<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or("-")
}

/// The information graph in the language of Graphviz.
pub(crate) fn graph_dot(told: &Value) -> String {
    let mut out = String::from("digraph information {\n  rankdir=TB;\n  \"/\" [shape=point];\n");
    let vertices = told["vertices"].as_array().map_or(&[][..], Vec::as_slice);
    // A vertex may have several identifiers: it is drawn once, by its first one.
    let first_of = |id: &str| {
        let holds = |v: &&Value| texts(&v["ids"]).contains(&id);
        vertices.iter().find(holds).and_then(|v| texts(&v["ids"]).first().copied())
    };
    for vertex in vertices {
        let ids = texts(&vertex["ids"]);
        let Some(first) = ids.first() else { continue };
        let shape = if vertex["scope"] == true { "ellipse" } else { "box" };
        let mut label = ids.join("\\n");
        for (word, who) in [("P", "publishers"), ("S", "subscribers")] {
            let nodes = texts(&vertex[who]);
            if !nodes.is_empty() {
                let _ = write!(label, "\\n{word}: {}", nodes.join(" "));
            }
        }
        let _ = writeln!(out, "  \"{first}\" [shape={shape}, label=\"{label}\"];");
        for id in &ids {
            let father = match id.rsplit_once('/') {
                Some(("", _)) | None => "/",
                Some((father, _)) => first_of(father).unwrap_or(father),
            };
            let _ = writeln!(out, "  \"{father}\" -> \"{first}\";");
        }
    }
    out.push_str("}\n");
    out
}

/// The map of a domain in the language of Graphviz, with the links of `tree` drawn thick.
pub(crate) fn map_dot(told: &Value, tree: Option<&Value>) -> String {
    let mut out = String::from("digraph domain {\n");
    let links: Vec<u64> = tree
        .and_then(|t| t["links"].as_array())
        .map(|links| links.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let root = tree.map(|t| word(t, "publisher"));
    let nodes = told["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    for node in nodes {
        let name = word(node, "node");
        let roles = texts(&node["roles"]).join("\\n");
        let shape = if root == Some(name) { "doublecircle" } else { "circle" };
        let _ = writeln!(out, "  \"{name}\" [shape={shape}, label=\"{name}\\n{roles}\"];");
        for link in node["links"].as_array().into_iter().flatten() {
            let number = link["number"].as_u64().unwrap_or(0);
            let style =
                if links.contains(&number) { "penwidth=3, color=red" } else { "color=gray" };
            let to = word(link, "to");
            let _ = writeln!(out, "  \"{name}\" -> \"{to}\" [label=\"{number}\", {style}];");
        }
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_vertex_with_two_names_is_drawn_once_and_hangs_under_both_fathers() {
        let told = json!({ "vertices": [
            { "ids": ["/0001"], "scope": true, "publishers": ["000a"], "subscribers": [] },
            { "ids": ["/0002"], "scope": true, "publishers": ["000a"], "subscribers": [] },
            { "ids": ["/0001/0003", "/0002/0003"], "scope": false, "publishers": ["000a"],
              "subscribers": ["000b"] },
        ]});
        let dot = graph_dot(&told);
        assert_eq!(dot.matches("shape=box").count(), 1, "{dot}");
        assert!(dot.contains("\"/0001\" -> \"/0001/0003\""), "{dot}");
        assert!(dot.contains("\"/0002\" -> \"/0001/0003\""), "{dot}");
        assert!(dot.contains("S: 000b"), "{dot}");
    }

    #[test]
    fn links_of_the_tree_are_thick() {
        let told = json!({ "nodes": [
            { "node": "0001", "roles": ["topology"], "links": [{ "to": "0002", "number": 7 }] },
            { "node": "0002", "roles": [], "links": [{ "to": "0001", "number": 8 }] },
        ]});
        let dot = map_dot(&told, Some(&json!({ "publisher": "0001", "links": [7] })));
        assert!(dot.contains("\"0001\" -> \"0002\" [label=\"7\", penwidth=3"), "{dot}");
        assert!(dot.contains("\"0002\" -> \"0001\" [label=\"8\", color=gray"), "{dot}");
        assert!(dot.contains("doublecircle"), "{dot}");
    }
}
