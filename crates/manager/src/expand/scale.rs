//! Clones of a function, arranged so that together they behave like one (paper, section 4.2).
//!
//! A function with one source and one target gets a balancer before it and a collector (a backward
//! router) behind it, unless the next function distinguishes its sources itself. A backward router
//! gets a balancer for each source, and its targets serve all clones. A name router gets both, and
//! all clones have the same routes.

use crate::kind::{Cardinality, Kind};
use crate::network::{Ends, Function, Network, Origin, Side, Transport, reversed};
use crate::policy::Balance;

/// Why a function cannot be cloned, if so.
///
/// # Errors
/// The reason.
pub fn eligible(graph: &Network, name: &str) -> Result<(), String> {
    let Some(function) = graph.functions.get(name) else {
        return Err(format!("there is no function {name:?}"));
    };
    if matches!(function.kind, Kind::PacketDispatcher | Kind::StrategyForwarder | Kind::Forwarder) {
        return Err(format!("a {} is not cloned", function.kind));
    }
    if function.config.get("strategy_forwarder").is_some_and(|label| !label.is_null()) {
        return Err(format!(
            "{name} sends next hops to a strategy-forwarder, by a link of its own"
        ));
    }
    if function.origin != Origin::Declared {
        return Err(format!("{name} was placed by the manager"));
    }
    if !function.listen.is_empty() {
        return Err(format!("{name} stands at the edge: clients are connected to it"));
    }
    let sources = graph.into_of(name).count();
    let targets = graph.out_of(name).count();
    if sources == 0 || targets == 0 {
        return Err(format!("{name} stands at the edge: it has no neighbour on one side"));
    }
    if reversed(graph).contains(name) {
        return Err(format!("{name} stands before the producer side of a name router"));
    }
    let producer = graph.into_of(name).find(|(e, _)| {
        e.side == Side::Producer && graph.kind(&e.from) == Some(Kind::PacketDispatcher)
    });
    if let Some((ends, _)) = producer {
        let from = &ends.from;
        return Err(format!("producers reach {name} through {from}, each by a face of its own"));
    }
    Ok(())
}

/// The function itself and its clones, in order.
pub fn instances_of<'a>(graph: &'a Network, name: &'a str) -> Vec<&'a str> {
    let clones =
        graph.functions.iter().filter(move |(_, f)| f.origin == Origin::Clone(name.into()));
    let own = graph.functions.get_key_value(name).map(|(n, _)| n.as_str());
    own.into_iter().chain(clones.map(|(n, _)| n.as_str())).collect()
}

/// Makes `count` instances of `name`.
pub(super) fn scale(graph: &mut Network, name: &str, count: u32, balance: Balance) {
    let Some(original) = graph.functions.get(name).cloned() else { return };
    let take =
        |side: fn(&Network, &str) -> Vec<(Ends, Transport)>, graph: &Network| side(graph, name);
    let sources = take(|g, n| g.into_of(n).map(|(e, t)| (e.clone(), t)).collect(), graph);
    let targets = take(|g, n| g.out_of(n).map(|(e, t)| (e.clone(), t)).collect(), graph);
    graph.links.retain(|e, _| e.from != name && e.to != name);

    let mut clones = vec![name.to_owned()];
    for number in 1..count {
        let clone = format!("{name}.{number}");
        let function = Function {
            origin: Origin::Clone(name.to_owned()),
            scalable: false,
            ..original.clone()
        };
        graph.functions.insert(clone.clone(), function);
        clones.push(clone);
    }
    let balance = match balance {
        Balance::Auto => chosen(graph, original.kind, sources.len(), &targets),
        other => other,
    };
    balancers(graph, name, &original, &sources, &clones, balance);
    collectors(graph, name, &original, &targets, &clones);
}

/// How clones of a kind share names when nobody says so (docs/decisions/0009).
fn chosen(graph: &Network, kind: Kind, sources: usize, targets: &[(Ends, Transport)]) -> Balance {
    // Who sends back by the hash of the name finds only clones that were chosen by it.
    let hashed = |ends: &Ends| {
        let function = graph.functions.get(&ends.to);
        function.and_then(|f| f.config.get("return")).is_some_and(|v| v == "hash")
    };
    // Balancers of several sources agree only by the hash on where a name is joined.
    let one = kind == Kind::BackwardRouter && sources == 1;
    if one && !targets.iter().any(|(ends, _)| hashed(ends)) {
        return Balance::LeastOutstanding;
    }
    Balance::HashName
}

fn balancers(
    graph: &mut Network,
    name: &str,
    original: &Function,
    sources: &[(Ends, Transport)],
    clones: &[String],
    balance: Balance,
) {
    let one = original.kind.ingress() == Cardinality::One;
    for (number, (source, transport)) in sources.iter().enumerate() {
        if source.side == Side::Producer {
            // Who answers a name router answers all its clones.
            for clone in clones {
                graph.link(Ends::producer(&source.from, clone), *transport);
            }
            if let Some(from) = graph.functions.get_mut(&source.from) {
                from.multicast = true;
            }
            continue;
        }
        // One balancer keeps a side of one as it was; one for each keeps sources apart.
        let number = if one { 0 } else { number };
        let balancer = format!("{name}.sf{number}");
        graph.link(Ends::consumer(&source.from, &balancer), *transport);
        if graph.functions.contains_key(&balancer) {
            continue;
        }
        let origin = Origin::Balancer(name.to_owned());
        let function = Function::automatic(Kind::StrategyForwarder, origin)
            .with("strategy", serde_json::json!(balance));
        graph.functions.insert(balancer.clone(), function);
        for clone in clones {
            graph.link(Ends::consumer(&balancer, clone), *transport);
        }
    }
}

fn collectors(
    graph: &mut Network,
    name: &str,
    original: &Function,
    targets: &[(Ends, Transport)],
    clones: &[String],
) {
    for (number, (target, transport)) in targets.iter().enumerate() {
        let apart = graph.kind(&target.to).is_some_and(|k| k.ingress() == Cardinality::Many);
        let direct =
            original.kind == Kind::BackwardRouter || apart || target.side == Side::Producer;
        let onward = |from: &str| Ends { from: from.to_owned(), ..target.clone() };
        if direct {
            for clone in clones {
                graph.link(onward(clone), *transport);
            }
            continue;
        }
        // A name router tells its targets apart: each gets a collector of its own.
        let collector = format!("{name}.br{number}");
        let origin = Origin::Collector(name.to_owned());
        let function = Function::automatic(Kind::BackwardRouter, origin);
        graph.functions.insert(collector.clone(), function);
        graph.link(onward(&collector), *transport);
        for clone in clones {
            graph.link(Ends::consumer(clone, &collector), *transport);
        }
    }
}
