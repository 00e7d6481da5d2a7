//! The text form of topologies.

use super::values::{
    CATALOGUE_MAX, Fault, SIZE_DEFAULT, SIZE_MAX, at_least, at_most, duration, finite,
    milliseconds, name, number, rate, share,
};
use super::{AppSpec, LinkSpec, Topology, TopologyError};
use crate::app::{ConsumerConfig, Names, ProducerConfig};
use crate::channel::ChannelConfig;
use crate::network::NodeConfig;

pub(super) fn parse(text: &str) -> Result<Topology, TopologyError> {
    let mut topology = Topology::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        // Headings such as [links] stand in the files of other programs.
        if line.is_empty() || (line.starts_with('[') && line.ends_with(']')) {
            continue;
        }
        let number = index + 1;
        parse_line(&mut topology, number, line)
            .map_err(|what| TopologyError { line: number, what })?;
    }
    Ok(topology)
}

fn parse_line(topology: &mut Topology, number: usize, line: &str) -> Result<(), Fault> {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    match first {
        "node" => parse_node(topology, &rest),
        "producer" => parse_producer(topology, &rest),
        "consumer" => parse_consumer(topology, &rest),
        "strategy" => {
            let [prefix, strategy] = rest[..] else {
                return Err("expected: strategy PREFIX NAME, such as strategy / multicast".into());
            };
            topology.strategies.push((number, name(prefix)?, strategy.to_owned()));
            Ok(())
        }
        "routes" => {
            topology.routing = rest.join(" ").parse()?;
            Ok(())
        }
        _ => match first.split_once(':') {
            // A node of Mini-NDN: `a: _`, with places that only its own routing reads.
            Some((a, "")) if !a.is_empty() => parse_node_of_mini_ndn(topology, a, &rest),
            Some((a, b)) => parse_link(topology, a, b, &rest),
            None => Err(format!(
                "{first:?} is not a line of a topology: expected a:b, node, producer, consumer, strategy or routes"
            )),
        },
    }
}

fn parse_node_of_mini_ndn(topology: &mut Topology, name: &str, rest: &[&str]) -> Result<(), Fault> {
    let rest = rest.strip_prefix(&["_"]).unwrap_or(rest);
    for (key, _) in pairs(rest)? {
        if !matches!(key, "network" | "router" | "radius" | "angle") {
            return Err(unknown(key, "network, router, radius, angle; limits go to a line `node`"));
        }
    }
    node(topology, name).map(drop)
}

fn parse_link(topology: &mut Topology, a: &str, b: &str, rest: &[&str]) -> Result<(), Fault> {
    let ends = (node(topology, a)?, node(topology, b)?);
    if ends.0 == ends.1 {
        return Err(format!("{a:?} cannot be linked to itself"));
    }
    let mut config = ChannelConfig::default();
    for (key, value) in pairs(rest)? {
        match key {
            "delay" => config.delay = duration(value)?,
            "rate" | "bw" => config.rate_bps = Some(rate(value)?),
            "loss" => config.loss = share(value)?,
            "jitter" => config.jitter = duration(value)?,
            "duplicate" => config.duplicate = share(value)?,
            "queue" => config.queue_max = number(value)?,
            "mtu" => config.mtu = Some(at_least(64, number(value)?)?),
            _ => return Err(unknown(key, "delay, rate, loss, jitter, duplicate, queue, mtu")),
        }
    }
    topology.links.push(LinkSpec { ends, config, downs: Vec::new() });
    Ok(())
}

fn parse_node(topology: &mut Topology, rest: &[&str]) -> Result<(), Fault> {
    let (name, rest) = rest.split_first().ok_or("expected: node NAME [cs=N] [pit=N]")?;
    let number_of = node(topology, name)?;
    let mut config = NodeConfig::default();
    for (key, value) in pairs(rest)? {
        match key {
            "cs" => config.cs_packets_max = number(value)?,
            "pit" => config.pit_entries_max = at_least(1, number(value)?)?,
            _ => return Err(unknown(key, "cs, pit")),
        }
    }
    topology.nodes[number_of].1 = config;
    Ok(())
}

fn parse_producer(topology: &mut Topology, rest: &[&str]) -> Result<(), Fault> {
    let [at, prefix, rest @ ..] = rest else {
        return Err("expected: producer NODE PREFIX [size=N] [fresh=TIME]".into());
    };
    let at = node(topology, at)?;
    let prefix = name(prefix)?;
    let mut config = ProducerConfig { prefix, size: SIZE_DEFAULT, freshness_ms: 0, answers: true };
    for (key, value) in pairs(rest)? {
        match key {
            "size" => config.size = at_most(SIZE_MAX, number(value)?)?,
            "fresh" => config.freshness_ms = milliseconds(value)?,
            _ => return Err(unknown(key, "size, fresh")),
        }
    }
    topology.apps.push((at, AppSpec::Producer(config)));
    Ok(())
}

fn parse_consumer(topology: &mut Topology, rest: &[&str]) -> Result<(), Fault> {
    let [at, prefix, rest @ ..] = rest else {
        return Err("expected: consumer NODE PREFIX [count=N] [window=N] [start=TIME] …".into());
    };
    let at = node(topology, at)?;
    let mut config = ConsumerConfig::new(name(prefix)?);
    let (mut catalogue, mut exponent) = (None, 1.0);
    for (key, value) in pairs(rest)? {
        match key {
            "count" => config.count = number(value)?,
            "window" => config.window = at_least(1, number(value)?)?,
            "start" => config.start = duration(value)?,
            "lifetime" => config.lifetime_ms = at_least(1, milliseconds(value)?)?,
            "retries" => config.retries_max = number(value)?,
            "zipf" => exponent = finite(value)?,
            "catalogue" => catalogue = Some(at_most(CATALOGUE_MAX, at_least(1, number(value)?)?)?),
            _ => {
                return Err(unknown(
                    key,
                    "count, window, start, lifetime, retries, catalogue, zipf",
                ));
            }
        }
    }
    if let Some(catalogue) = catalogue {
        config.names = Names::Zipf { catalogue, exponent };
    }
    topology.apps.push((at, AppSpec::Consumer(config)));
    Ok(())
}

/// The number of the node `name`, which is new when it was not named before.
pub(super) fn node(topology: &mut Topology, name: &str) -> Result<usize, Fault> {
    let is_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(format!("{name:?} is not a node name: letters, digits and - _ . are allowed"));
    }
    if let Some(at) = topology.nodes.iter().position(|(n, _)| n == name) {
        return Ok(at);
    }
    topology.nodes.push((name.to_owned(), NodeConfig::default()));
    Ok(topology.nodes.len() - 1)
}

fn pairs<'a>(words: &[&'a str]) -> Result<Vec<(&'a str, &'a str)>, Fault> {
    words
        .iter()
        .map(|word| word.split_once('=').ok_or_else(|| format!("{word:?}: expected key=value")))
        .collect()
}

fn unknown(key: &str, allowed: &str) -> Fault {
    format!("unknown key {key:?}: {allowed} are allowed")
}
