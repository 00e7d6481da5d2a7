//! `onym topology deploy`: from one description of a network to the configuration of each node.

mod secret;
mod shape;

use crate::exit::{Exit, Failure};
use crate::output::Context;
use anyhow::Context as _;
use onym_node::config::{Config, PushLink, PushRole, PushScheme};
use onym_pubsub::topology::{Map, NodeState, Routing};
use onym_tables::bloom::{Kind, Scheme};
use onym_wire::push::{Label, Link, Role, RouteBuf};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Compute the configuration of every node of a domain from one description.
///
/// The description is TOML: nodes, links and roles, or a shape that is generated. Into the folder
/// go one configuration for `onym daemon --config` for each node, `domain.json` with all numbers
/// and the filters from every node to its rendezvous and topology manager, and `domain.dot`. The key
/// that nodes of the domain authenticate control messages with is made the first time, in `domain.key`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym topology deploy chain.toml -o chain/
  onym daemon --config chain/n1.toml
A description:
  [domain]
  key = \"a secret\"                 of control messages; else one is made, \"\": none
  base = \"127.0.0.1:17000\"         nodes without an address: this machine, ports counted up,
                                   sockets NAME.sock in the folder
  [[node]]
  name = \"n1\"
  address = \"192.0.2.1:6363\"
  roles = [\"rendezvous\", \"topology\"]
  [[link]]
  a = \"n1\"
  b = \"n2\"
or, in place of nodes and links:
  [shape]
  kind = \"random\"                  chain, star or random
  nodes = 106
  edge = 73                        random: nodes with one link
Without roles the node with the shortest ways to all others is rendezvous and topology manager.")]
pub(crate) struct Args {
    /// The description.
    file: PathBuf,
    /// Output folder.
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
}

/// A network, as it is described.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(default)]
    domain: Domain,
    shape: Option<shape::Shape>,
    #[serde(default)]
    node: Vec<NodeSpec>,
    #[serde(default)]
    link: Vec<LinkSpec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Domain {
    key: Option<String>,
    seed: u64,
    /// Without it: `bits` as long as the numbers are below 256.
    scheme: Option<PushScheme>,
    base: Option<SocketAddr>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NodeSpec {
    pub(super) name: String,
    address: Option<SocketAddr>,
    roles: Vec<PushRole>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkSpec {
    pub(super) a: String,
    pub(super) b: String,
    #[serde(default = "one")]
    cost: u16,
}

fn one() -> u16 {
    1
}

impl NodeSpec {
    fn named(name: String) -> Self {
        Self { name, ..Self::default() }
    }
}

impl LinkSpec {
    fn between(a: &str, b: &str) -> Self {
        Self { a: a.to_owned(), b: b.to_owned(), cost: 1 }
    }
}

/// A node with everything that was computed for it.
#[derive(Debug)]
struct Planned {
    name: String,
    label: Label,
    address: SocketAddr,
    roles: Vec<PushRole>,
    inside: u32,
    /// To whom, number, cost.
    links: Vec<(usize, u32, u16)>,
    /// Its address was counted from the domain's base: others run on the same machine.
    is_shared: bool,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<()> {
    let file = args.file.display();
    let text = std::fs::read_to_string(&args.file).with_context(|| format!("{file}"))?;
    let wrong = |why: String| {
        Failure::new(Exit::Usage, format!("{file} is not a description of a network")).why(why)
    };
    let description: Description = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let (nodes, scheme) = plan(&description).map_err(wrong)?;
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("{} cannot be made", args.output.display()))?;
    let folder = args.output.canonicalize().unwrap_or_else(|_| args.output.clone());
    let key = secret::key(description.domain.key.as_deref(), &folder)?;
    for node in &nodes {
        let mut config = config_of(node, &nodes, &key, scheme);
        if node.is_shared {
            // Several nodes on one machine: each has a socket of its own, and no port twice.
            let socket = folder.join(format!("{}.sock", node.name));
            config.faces.unix.path.0 = socket.display().to_string();
            config.faces.tcp.listen.0.clear();
            config.faces.websocket.listen.0.clear();
        }
        let name = format!("{}.toml", node.name);
        write(&args.output, &name, &config.to_toml())?;
        if !key.is_empty() {
            secret::protect(&folder.join(name))?;
        }
    }
    let told = domain_json(&nodes, scheme);
    write(&args.output, "domain.json", &serde_json::to_string_pretty(&told)?)?;
    write(&args.output, "domain.dot", &dot(&nodes))?;
    cx.print(&told, |told| {
        format!(
            "{} nodes, {} numbers, scheme {}: {}\n",
            nodes.len(),
            told["numbers"],
            told["scheme"].as_str().unwrap_or("-"),
            args.output.display()
        )
    })
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    crate::target::write(&folder.join(name), text.as_bytes())
}

/// Identifiers, numbers and addresses of all nodes.
fn plan(description: &Description) -> Result<(Vec<Planned>, Scheme), String> {
    let (specs, links) = match &description.shape {
        Some(_) if !description.node.is_empty() || !description.link.is_empty() => {
            return Err("`shape` and `nodes` exclude each other".into());
        }
        Some(shape) => shape.network()?,
        None => (description.node.clone(), description.link.clone()),
    };
    let mut nodes = Vec::new();
    for (i, spec) in specs.iter().enumerate() {
        nodes.push(planned(i, spec, &description.domain)?);
    }
    let at: BTreeMap<String, usize> =
        nodes.iter().enumerate().map(|(i, n)| (n.name.clone(), i)).collect();
    if at.len() != nodes.len() {
        return Err("two nodes have the same name".into());
    }
    // Insides first, then links in the order of the description: the same text, the same numbers.
    let mut number = u32::try_from(nodes.len()).map_err(|e| e.to_string())?;
    for link in &links {
        let find = |name: &String| at.get(name).copied().ok_or(format!("there is no node {name}"));
        let (a, b) = (find(&link.a)?, find(&link.b)?);
        let is_double = nodes[a].links.iter().any(|l| l.0 == b);
        if a == b || is_double {
            return Err(format!(
                "{} and {} are linked already, or are the same node",
                link.a, link.b
            ));
        }
        for (from, to) in [(a, b), (b, a)] {
            number += 1;
            nodes[from].links.push((to, number, link.cost.max(1)));
        }
    }
    if nodes.iter().all(|n| n.roles.is_empty()) {
        let center = center(&nodes).ok_or("there are no nodes, or some cannot be reached")?;
        nodes[center].roles = vec![PushRole::Rendezvous, PushRole::Topology];
    }
    let is_small = number < 256;
    let scheme = description.domain.scheme;
    let scheme = scheme.unwrap_or(if is_small { PushScheme::Bits } else { PushScheme::K });
    let kind = match scheme {
        PushScheme::Bits => Kind::Bits,
        PushScheme::K => Kind::Tags { k: 5, tables: 8 },
    };
    Ok((nodes, Scheme { kind, seed: description.domain.seed }))
}

fn planned(i: usize, spec: &NodeSpec, domain: &Domain) -> Result<Planned, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if spec.name.is_empty() || !spec.name.chars().all(is_plain) {
        return Err(format!("{:?} is not a node name: use letters, digits, - and _", spec.name));
    }
    let number = u32::try_from(i + 1).map_err(|e| e.to_string())?;
    let counted = |base: SocketAddr| {
        let port = u16::try_from(i).ok().and_then(|i| base.port().checked_add(i));
        port.map(|port| SocketAddr::new(base.ip(), port))
    };
    let address = spec.address.or_else(|| domain.base.and_then(counted));
    let address = address.ok_or(format!(
        "{} has no address: give it one, or the domain a base such as 127.0.0.1:17000",
        spec.name
    ))?;
    Ok(Planned {
        name: spec.name.clone(),
        label: Label::from_u64(u64::from(number)),
        address,
        roles: spec.roles.clone(),
        inside: number,
        links: Vec::new(),
        is_shared: spec.address.is_none(),
    })
}

/// The node with the least sum of distances to all others; `None` when one cannot be reached.
fn center(nodes: &[Planned]) -> Option<usize> {
    let sum_from = |start: usize| {
        let mut distance: Vec<Option<u64>> = vec![None; nodes.len()];
        let mut open = BTreeSet::from([(0, start)]);
        while let Some((far, at)) = open.pop_first() {
            if distance[at].is_some() {
                continue;
            }
            distance[at] = Some(far);
            open.extend(nodes[at].links.iter().map(|(to, _, cost)| (far + u64::from(*cost), *to)));
        }
        distance.into_iter().sum::<Option<u64>>()
    };
    let sums = (0..nodes.len()).map(|i| sum_from(i).map(|sum| (sum, i)));
    sums.collect::<Option<Vec<_>>>()?.into_iter().min().map(|(_, i)| i)
}

/// What `onym daemon` is given.
fn config_of(node: &Planned, nodes: &[Planned], key: &str, scheme: Scheme) -> Config {
    let mut config = Config::default();
    config.faces.udp.listen.0 = vec![node.address.to_string()];
    config.push.enabled = true;
    config.push.node = node.label.to_string();
    config.push.inside = node.inside;
    config.push.roles.clone_from(&node.roles);
    key.clone_into(&mut config.push.key);
    config.push.seed = scheme.seed;
    config.push.scheme = if scheme.kind == Kind::Bits { PushScheme::Bits } else { PushScheme::K };
    config.push.link = node
        .links
        .iter()
        .map(|(to, number, cost)| {
            let address = nodes[*to].address;
            let family = if address.is_ipv4() { "udp4" } else { "udp6" };
            PushLink {
                face: format!("{family}://{address}"),
                number: *number,
                cost: *cost,
                capacity_mbit: 0,
                domain: String::new(),
            }
        })
        .collect();
    config
}

fn role_of(node: &Planned) -> Role {
    let bits = node.roles.iter().map(|role| match role {
        PushRole::Rendezvous => Role::RENDEZVOUS,
        PushRole::Topology => Role::TOPOLOGY,
    });
    bits.fold(Role::default(), Role::and)
}

/// Everything that was computed, with the filters by which each node reaches the nearest
/// rendezvous and topology manager.
fn domain_json(nodes: &[Planned], scheme: Scheme) -> Value {
    let mut map = Map::default();
    for node in nodes {
        let link = |(to, number, cost): &(usize, u32, u16)| Link {
            neighbour: nodes[*to].label,
            number: *number,
            cost: *cost,
        };
        let links = node.links.iter().map(link).collect();
        let (inside, role, exits) = (node.inside, role_of(node), Vec::new());
        map.set(node.label, Some(NodeState { inside, role, links, exits }));
    }
    let routing = Routing { scheme, ..Routing::default() };
    let mut filter_to = |from: &Planned, role: Role| -> Option<String> {
        let homes = nodes.iter().filter(|n| role_of(n).has(role));
        let mut near: Vec<(u64, Label)> =
            homes.filter_map(|n| Some((map.distance(from.label, n.label)?, n.label))).collect();
        near.sort_unstable();
        let (_, home) = *near.first().filter(|(_, label)| *label != from.label)?;
        let tree = map.tree(from.label, &[home])?;
        routing.route(&map, from.label, &tree).map(|route| hex(&route))
    };
    let mut numbers = 0;
    let each: Vec<Value> = nodes
        .iter()
        .map(|node| {
            numbers += 1 + node.links.len();
            json!({
                "name": node.name,
                "label": node.label.to_string(),
                "address": node.address,
                "inside": node.inside,
                "roles": node.roles,
                "links": node.links.iter().map(|(to, number, cost)| json!({
                    "to": nodes[*to].name, "number": number, "cost": cost,
                })).collect::<Vec<_>>(),
                "to_rendezvous": filter_to(node, Role::RENDEZVOUS),
                "to_topology": filter_to(node, Role::TOPOLOGY),
            })
        })
        .collect();
    let name = if scheme.kind == Kind::Bits { "bits" } else { "k" };
    json!({ "scheme": name, "seed": scheme.seed, "numbers": numbers, "nodes": each })
}

/// Form octet and forwarding part as hexadecimal digits.
fn hex(route: &RouteBuf) -> String {
    route.octets().iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

fn dot(nodes: &[Planned]) -> String {
    let mut out = String::from("graph domain {\n");
    for (i, node) in nodes.iter().enumerate() {
        let shape = if node.roles.is_empty() { "circle" } else { "doublecircle" };
        let _ = writeln!(out, "  \"{}\" [shape={shape}];", node.name);
        for (to, ..) in node.links.iter().filter(|(to, ..)| *to > i) {
            let _ = writeln!(out, "  \"{}\" -- \"{}\";", node.name, nodes[*to].name);
        }
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(text: &str) -> (Vec<Planned>, Scheme) {
        plan(&toml::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn the_three_shapes_have_unique_numbers_and_good_configurations() {
        for (text, links, kind) in [
            ("kind = \"chain\"\nnodes = 15", 14, PushScheme::Bits),
            ("kind = \"star\"\nnodes = 15", 14, PushScheme::Bits),
            ("kind = \"random\"\nnodes = 106\nedge = 73", 105, PushScheme::K),
        ] {
            let text = format!("[domain]\nbase = \"127.0.0.1:17000\"\n[shape]\n{text}");
            let (nodes, scheme) = planned(&text);
            let all: Vec<u32> =
                nodes.iter().flat_map(|n| n.links.iter().map(|l| l.1).chain([n.inside])).collect();
            let unique: BTreeSet<u32> = all.iter().copied().collect();
            assert_eq!((all.len(), unique.len()), (nodes.len() + 2 * links, all.len()));
            for node in &nodes {
                let config = config_of(node, &nodes, "ours", scheme);
                assert_eq!((config.push.scheme, config.push.key.as_str()), (kind, "ours"));
                let read = Config::parse(&config.to_toml(), "test").unwrap();
                assert_eq!(read, config);
            }
            let told = domain_json(&nodes, scheme);
            let away = |n: &&Value| n["to_rendezvous"].is_string();
            assert_eq!(
                told["nodes"].as_array().unwrap().iter().filter(away).count(),
                nodes.len() - 1
            );
        }
    }

    #[test]
    fn the_random_graph_has_as_many_edge_nodes_as_were_asked_for() {
        let text = "[domain]\nbase = \"127.0.0.1:17000\"\n[shape]\nkind = \"random\"\nnodes = 106\nedge = 73";
        for seed in 1..20 {
            let (nodes, _) = planned(&format!("{text}\nseed = {seed}"));
            assert_eq!(nodes.iter().filter(|n| n.links.len() == 1).count(), 73, "seed {seed}");
            assert!(center(&nodes).is_some(), "seed {seed}: every node can be reached");
        }
    }

    #[test]
    fn what_is_no_network_is_refused_with_a_reason() {
        for (text, why) in [
            ("[[node]]\nname = \"a\"", "no address"),
            ("[[node]]\nname = \"a/b\"", "is not a node name"),
            ("[shape]\nkind = \"random\"\nnodes = 5\nedge = 5", "edge"),
            (
                "[domain]\nbase=\"127.0.0.1:1\"\n[[node]]\nname=\"a\"\n[[link]]\na=\"a\"\nb=\"c\"",
                "no node c",
            ),
            (
                "[domain]\nbase=\"127.0.0.1:1\"\n[[node]]\nname=\"a\"\n[[node]]\nname=\"b\"",
                "reached",
            ),
        ] {
            let error = plan(&toml::from_str(text).unwrap()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
