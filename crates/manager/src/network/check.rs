//! The invariants of a network: what would be dropped, multiplied or looped is refused before
//! anything is started.

use super::{Ends, FUNCTIONS_MAX, LINKS_MAX, Network, Origin, Side, Transport};
use crate::kind::{Cardinality, KINDS, Kind};
use crate::near::near;
use crate::settings;
use std::collections::BTreeSet;
use std::fmt;

/// One thing that is wrong with a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is concerned, such as `function cs1` or `link cs1 -> br1`.
    pub object: String,
    /// Line of the description, from 1, when it came from one.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub next: String,
}

impl Fault {
    pub(crate) fn new(
        object: impl Into<String>,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { object: object.into(), line: None, what: what.into(), next: next.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}: {}; {}", self.object, self.what, self.next)
    }
}

/// Everything that is wrong with `network`; nothing means that it may be started.
#[must_use]
pub fn check(network: &Network) -> Vec<Fault> {
    let mut faults = Vec::new();
    sizes(network, &mut faults);
    for (name, function) in &network.functions {
        names(name, &mut faults);
        values(name, function, &mut faults);
    }
    for ends in network.links.keys() {
        link(network, ends, &mut faults);
    }
    if !faults.is_empty() {
        return faults; // What follows reads the graph, and it must be one.
    }
    for name in network.functions.keys() {
        direction(network, name, &mut faults);
        cardinality(network, name, &mut faults);
        dispatcher(network, name, &mut faults);
        hands_on(network, name, &mut faults);
    }
    faults
}

fn sizes(network: &Network, faults: &mut Vec<Fault>) {
    let functions = network.functions.len();
    if functions > FUNCTIONS_MAX {
        let what = format!("{functions} functions are too many");
        faults.push(Fault::new("network", what, format!("a network has at most {FUNCTIONS_MAX}")));
    }
    let links = network.links.len();
    if links > LINKS_MAX {
        let what = format!("{links} links are too many");
        faults.push(Fault::new("network", what, format!("a network has at most {LINKS_MAX}")));
    }
}

fn names(name: &str, faults: &mut Vec<Fault>) {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends_well = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let good = name.len() <= 24
        && name.chars().all(fits)
        && ends_well(name.chars().next())
        && ends_well(name.chars().last());
    if !good {
        let next = "1 to 24 of a-z, 0-9, '-' and '.', a letter or digit at both ends";
        faults.push(Fault::new(format!("function {name}"), "the name does not fit", next));
    }
    if KINDS.iter().any(|(kind, _)| kind.word() == name) {
        let next = "choose another one; names come before kinds: onym net insert FROM TO NAME KIND";
        faults.push(Fault::new(format!("function {name}"), "the name is the word of a kind", next));
    }
}

fn values(name: &str, function: &super::Function, faults: &mut Vec<Fault>) {
    let object = || format!("function {name}");
    for (key, value) in &function.config {
        if let Err((what, next)) = settings::check(function.kind, key, value) {
            faults.push(Fault::new(object(), format!("config.{key}: {what}"), next));
        }
    }
    if function.quota.is_some_and(|q| !(0.01..=256.0).contains(&q)) {
        faults.push(Fault::new(object(), "the quota is wrong", "cores, from 0.01 to 256"));
    }
    if function.instances_max.is_some_and(|n| !(1..=64).contains(&n)) {
        faults.push(Fault::new(object(), "instances_max is wrong", "a number from 1 to 64"));
    }
    if function.scalable && function.kind == Kind::PacketDispatcher {
        let what = "a packet-dispatcher stands at the edge and cannot be scaled";
        faults.push(Fault::new(object(), what, "give it threads instead: config.threads"));
    }
    for (ingress, uris) in &function.listen {
        if !function.kind.ingresses().contains(&ingress.as_str()) {
            let what = format!("a {} has no ingress {ingress:?}", function.kind);
            let next = format!("one of: {}", function.kind.ingresses().join(", "));
            faults.push(Fault::new(object(), what, next));
        }
        for uri in uris {
            let scheme = uri.split_once("://").map_or("", |(s, _)| s);
            if !LISTENERS.contains(&scheme) {
                let what = format!("listen: {uri:?} is not a listener URI");
                let next = "such as tcp4://127.0.0.1:6363, udp4://, tcp6://, udp6://, unix:///path or ether://eth0";
                faults.push(Fault::new(object(), what, next));
            }
        }
    }
}

/// Schemes of listeners (`spec/services.md`, section 1).
const LISTENERS: [&str; 6] = ["tcp4", "tcp6", "udp4", "udp6", "unix", "ether"];

fn link(network: &Network, ends: &Ends, faults: &mut Vec<Fault>) {
    let object = || format!("link {ends}");
    for end in [&ends.from, &ends.to] {
        if !network.functions.contains_key(end) {
            let what = format!("there is no function {end:?}");
            let names: Vec<&str> = network.functions.keys().map(String::as_str).collect();
            let next = near(end, &names);
            faults.push(Fault::new(object(), what, next));
        }
    }
    if ends.from == ends.to {
        faults.push(Fault::new(object(), "it links a function to itself", "name another end"));
    }
    if ends.side == Side::Producer && !network.kind(&ends.to).is_none_or(Kind::has_producer_side) {
        let what = format!("{} has no producer side", ends.to);
        let next = "`=>` ends at a name-router, a strategy-forwarder or a forwarder";
        faults.push(Fault::new(object(), what, next));
    }
    if network.kind(&ends.to) == Some(Kind::PacketDispatcher) {
        let what = "a packet-dispatcher belongs at the edge, where clients connect";
        faults.push(Fault::new(object(), what, "link from it, not to it"));
    }
}

/// Functions through which Interests go from egress to ingress: those before the producer side of
/// a name router.
#[must_use]
pub fn reversed(network: &Network) -> BTreeSet<&str> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let turns = |name: &str| {
        !matches!(network.kind(name), None | Some(Kind::PacketDispatcher | Kind::Forwarder))
    };
    let producer = network.links.keys().filter(|e| e.side == Side::Producer);
    let mut wave: Vec<&str> = producer.map(|e| e.from.as_str()).filter(|n| turns(n)).collect();
    while let Some(name) = wave.pop() {
        if found.insert(name) {
            wave.extend(network.into_of(name).map(|(e, _)| e.from.as_str()).filter(|n| turns(n)));
        }
    }
    found
}

/// Oriented functions stand with their faces the right way round.
fn direction(network: &Network, name: &str, faults: &mut Vec<Fault>) {
    let reversed = reversed(network);
    if !reversed.contains(name) {
        return;
    }
    let Some(kind) = network.kind(name) else { return };
    if kind.is_oriented() {
        let what = format!(
            "a {kind} takes Interests on its ingress only, and here they come from its egress"
        );
        let next = "take it off the producer side, or use a forwarder";
        faults.push(Fault::new(format!("function {name}"), what, next));
    }
    for (ends, _) in network.out_of(name) {
        let forward = ends.side == Side::Consumer && !reversed.contains(ends.to.as_str());
        if forward {
            let what = format!("{name} serves a producer side and a consumer side at once");
            faults.push(Fault::new(format!("link {ends}"), what, "use two functions"));
        }
    }
}

/// Sides that cannot tell neighbours apart have one neighbour, unless multicast is meant.
fn cardinality(network: &Network, name: &str, faults: &mut Vec<Fault>) {
    let Some(function) = network.functions.get(name) else { return };
    if function.multicast || function.origin != Origin::Declared {
        return;
    }
    let object = || format!("function {name}");
    let sources: Vec<&Ends> =
        network.into_of(name).map(|(e, _)| e).filter(|e| e.side == Side::Consumer).collect();
    // A source that drops what it did not ask for may share a side that multicasts.
    let tell = |e: &&Ends| network.kind(&e.from).is_some_and(Kind::breaks_loops);
    if function.kind.ingress() == Cardinality::One && sources.len() > 1 && !sources.iter().all(tell)
    {
        let names: Vec<&str> = sources.iter().map(|e| e.from.as_str()).collect();
        let what = format!(
            "a {} cannot tell its sources apart, and has {}: {}",
            function.kind,
            names.len(),
            names.join(", ")
        );
        let next = "put a backward-router before it, or set multicast = true";
        faults.push(Fault::new(object(), what, next));
    }
    let targets: Vec<&str> = network.out_of(name).map(|(e, _)| e.to.as_str()).collect();
    if function.kind.egress() == Cardinality::One && targets.len() > 1 {
        let what = format!(
            "a {} cannot choose between targets, and has {}: {}",
            function.kind,
            targets.len(),
            targets.join(", ")
        );
        let next = "put a strategy-forwarder after it, or set multicast = true";
        faults.push(Fault::new(object(), what, next));
    }
}

/// A dispatcher has one path for each kind of traffic.
fn dispatcher(network: &Network, name: &str, faults: &mut Vec<Fault>) {
    if network.kind(name) != Some(Kind::PacketDispatcher) {
        return;
    }
    for (side, word) in [(Side::Consumer, "consumer"), (Side::Producer, "producer")] {
        let count = network.out_of(name).filter(|(e, _)| e.side == side).count();
        if count > 1 {
            let what = format!("a packet-dispatcher has one {word} path, and here are {count}");
            let next = "put a strategy-forwarder after it";
            faults.push(Fault::new(format!("function {name}"), what, next));
        }
    }
}

/// The strategy forwarder of a name router is linked to it, by a transport that carries next hops.
fn hands_on(network: &Network, name: &str, faults: &mut Vec<Fault>) {
    let setting = network.functions[name].config.get("strategy_forwarder");
    let Some(target) = setting.and_then(serde_json::Value::as_str) else { return };
    let ends = Ends::consumer(name, target);
    let fault = match (network.kind(target), network.links.get(&ends)) {
        (Some(Kind::StrategyForwarder), Some(Transport::Tcp)) => return,
        (Some(Kind::StrategyForwarder), Some(Transport::Udp)) => {
            ("the link carries no next hops", "use tcp for it".to_owned())
        }
        (Some(Kind::StrategyForwarder), None) => ("no link leads there", format!("add {ends}")),
        _ => ("there is no such strategy-forwarder", format!("name one that {name} is linked to")),
    };
    let what = format!("config.strategy_forwarder = {target:?}: {}", fault.0);
    faults.push(Fault::new(format!("function {name}"), what, fault.1));
}
