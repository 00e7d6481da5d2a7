//! From the declared network and the manager's decisions to the network that must run: guards in
//! loops, verifiers, clones with their balancers and collectors.
//!
//! It is a pure function: the same description and decisions give the same network, whatever ran
//! before. A change, a killed service and a restart of the manager are therefore handled alike:
//! expand, compare with what runs, apply the difference.

mod scale;

pub use scale::{eligible, instances_of};

use crate::describe::{Description, Loops};
use crate::kind::Kind;
use crate::network::{self, Ends, Fault, Function, Network, Origin, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the manager decided on top of the description.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Decisions {
    /// Instances of functions, where more than one.
    pub instances: BTreeMap<String, u32>,
    /// Verifiers that stand on links.
    pub verifiers: Vec<Verifier>,
}

/// A verifier placed on a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verifier {
    /// Its name.
    pub name: String,
    /// The cache that it defends.
    pub cache: String,
    /// The link on which it stands.
    pub on: Ends,
}

/// Everything that is wrong with a description.
#[must_use]
pub fn check(description: &Description) -> Vec<Fault> {
    let faults = network::check(&description.graph);
    if !faults.is_empty() {
        return faults;
    }
    let mut faults = Vec::new();
    for guard in network::guards(&description.graph) {
        let object = format!("link {}", guard.on);
        let loop_of = format!("it closes a loop: {}", guard.cycle.join(" -> "));
        if description.loops == Loops::Deny {
            let next = "put a backward-router on it, or set loops = \"guard\"";
            faults.push(Fault::new(object, loop_of, next));
        } else if guard.on.side == Side::Producer {
            let next = "a backward-router cannot stand before a producer side: link otherwise";
            faults.push(Fault::new(object, loop_of, next));
        }
    }
    for (name, function) in &description.graph.functions {
        if function.scalable
            && let Err(why) = eligible(&description.graph, name)
        {
            let object = format!("function {name}");
            faults.push(Fault::new(object, why, "remove scalable = true"));
        }
    }
    faults
}

/// The network that must run.
#[must_use]
pub fn expand(description: &Description, decisions: &Decisions) -> Network {
    let mut graph = description.graph.clone();
    for verifier in &decisions.verifiers {
        place_verifier(&mut graph, verifier);
    }
    for guard in network::guards(&graph) {
        let name = guard_name(&guard.on);
        let origin = Origin::Guard(guard.on.to_string());
        split(&mut graph, &guard.on, &name, Function::automatic(Kind::BackwardRouter, origin));
    }
    let balance = description.policies.scaling.balance;
    for (name, count) in &decisions.instances {
        if *count > 1 && graph.functions.contains_key(name) {
            scale::scale(&mut graph, name, *count, balance);
        }
    }
    graph
}

/// The name of the guard on a link.
#[must_use]
pub fn guard_name(on: &Ends) -> String {
    format!("{}.{}.br", on.from, on.to)
}

/// Puts `function` on a link: `from -> name`, and `name` to where the link went.
/// False when there is no such link.
pub fn split(graph: &mut Network, on: &Ends, name: &str, function: Function) -> bool {
    let Some(transport) = graph.links.remove(on) else { return false };
    graph.link(Ends::consumer(&on.from, name), transport);
    let onward = Ends { from: name.to_owned(), to: on.to.clone(), side: on.side };
    graph.link(onward, transport);
    graph.functions.insert(name.to_owned(), function);
    true
}

fn place_verifier(graph: &mut Network, verifier: &Verifier) {
    let origin = Origin::Verifier(verifier.cache.clone());
    let function = Function::automatic(Kind::SignatureVerifier, origin)
        .with("drop", true)
        .with("no_key_drop", true)
        .with("unsigned_drop", true);
    split(graph, &verifier.on, &verifier.name, function);
}

/// Takes a function with one way in and one way out away, and joins its neighbours.
///
/// # Errors
/// Why it cannot be taken away.
pub fn join(graph: &mut Network, name: &str) -> Result<(), String> {
    if !graph.functions.contains_key(name) {
        return Err(format!("there is no function {name:?}"));
    }
    let sources: Vec<_> = graph.into_of(name).map(|(e, t)| (e.clone(), t)).collect();
    let targets: Vec<_> = graph.out_of(name).map(|(e, _)| e.clone()).collect();
    if sources.is_empty() && targets.is_empty() {
        graph.remove(name);
        return Ok(());
    }
    let [target] = targets.as_slice() else {
        return Err(format!("{name} has {} ways out; unlink all but one first", targets.len()));
    };
    for (source, transport) in sources {
        if source.from == target.to {
            return Err(format!("{} would be linked to itself", target.to));
        }
        let ends = Ends { from: source.from, to: target.to.clone(), side: target.side };
        graph.link(ends, transport);
    }
    graph.remove(name);
    Ok(())
}

#[cfg(test)]
mod tests;
