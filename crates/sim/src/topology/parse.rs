//! The text form of topologies.

use super::{AppSpec, LinkSpec, Topology, TopologyError};
use crate::app::{ConsumerConfig, Names, ProducerConfig};
use crate::channel::ChannelConfig;
use crate::network::NodeConfig;
use crate::routing::Routing;
use onym_wire::name::Name;
use std::str::FromStr;
use std::time::Duration;

/// Octets of content in each Data unless the line says otherwise.
const SIZE_DEFAULT: usize = 1000;
/// Largest content that fits a packet with a long name.
const SIZE_MAX: usize = 8192;
/// Most names of a catalogue; each takes 8 octets.
const CATALOGUE_MAX: u64 = 10_000_000;

type Fault = String;

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
            topology.routing = match rest[..] {
                ["shortest"] => Routing::Shortest,
                ["downhill"] => Routing::Downhill,
                ["flood"] => Routing::Flood,
                ["local"] => Routing::Local,
                _ => return Err("expected: routes shortest, downhill, flood or local".into()),
            };
            Ok(())
        }
        _ => match first.split_once(':') {
            Some((a, b)) => parse_link(topology, a, b, &rest),
            None => Err(format!(
                "{first:?} is no line of a topology: expected a:b, node, producer, consumer, strategy or routes"
            )),
        },
    }
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
            "loss" => config.loss = percent(value)?,
            "jitter" => config.jitter = duration(value)?,
            "duplicate" => config.duplicate = percent(value)?,
            "queue" => config.queue_max = number(value)?,
            "mtu" => config.mtu = Some(at_least(64, number(value)?)?),
            _ => return Err(unknown(key, "delay, rate, loss, jitter, duplicate, queue, mtu")),
        }
    }
    topology.links.push(LinkSpec { ends, config });
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
    let mut config = ProducerConfig { prefix: name(prefix)?, size: SIZE_DEFAULT, freshness_ms: 0 };
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
fn node(topology: &mut Topology, name: &str) -> Result<usize, Fault> {
    let is_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(format!("{name:?} is no node name: letters, digits and - _ . are allowed"));
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

fn name(text: &str) -> Result<Name, Fault> {
    text.parse().map_err(|error| format!("{error}"))
}

fn number<T: FromStr>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| format!("{text:?} is no number that fits here"))
}

fn finite(text: &str) -> Result<f64, Fault> {
    let value: f64 = number(text)?;
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(format!("{text:?} is no positive number"))
    }
}

fn at_least<T: PartialOrd + std::fmt::Display>(least: T, value: T) -> Result<T, Fault> {
    if value >= least { Ok(value) } else { Err(format!("{value} is less than {least}")) }
}

fn at_most<T: PartialOrd + std::fmt::Display>(most: T, value: T) -> Result<T, Fault> {
    if value <= most { Ok(value) } else { Err(format!("{value} is more than {most}")) }
}

/// A number and the unit behind it.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (unit, factor) = units.iter().find(|(unit, _)| {
        let digits = text.strip_suffix(unit);
        digits.is_some_and(|d| d.ends_with(|c: char| c.is_ascii_digit() || c == '.'))
    })?;
    let value = finite(text.strip_suffix(unit)?).ok()?;
    Some(value * factor)
}

fn duration(text: &str) -> Result<Duration, Fault> {
    // The longest time is a day: sums stay far from the end of the clock.
    const SECONDS_MAX: f64 = 86_400.0;
    let units = [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0)];
    match scaled(text, &units) {
        Some(seconds) if seconds <= SECONDS_MAX => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("{text:?} is no time: 10ms, 5us or 1.5s, at most 86400s")),
    }
}

fn milliseconds(text: &str) -> Result<u64, Fault> {
    let ms = duration(text)?.as_millis();
    u64::try_from(ms).map_err(|_| format!("{text:?} is too long"))
}

fn rate(text: &str) -> Result<u64, Fault> {
    let lower = text.to_ascii_lowercase();
    let text = lower.trim_end_matches("/s").trim_end_matches("ps");
    // Bare numbers are megabits, as Mini-NDN has them.
    let units = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0), ("", 1e6)];
    match scaled(text, &units) {
        // The cast saturates; the bound keeps it exact.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some(bits) if (1.0..=1e15).contains(&bits) => Ok(bits as u64),
        _ => Err(format!("{text:?} is no rate: 50mbit, 10gbit or 64kbit")),
    }
}

/// Percent, as Mini-NDN has it, as a share from 0 to 1.
fn percent(text: &str) -> Result<f64, Fault> {
    match scaled(text, &[("%", 0.01), ("", 0.01)]) {
        Some(share) if share <= 1.0 => Ok(share),
        _ => Err(format!("{text:?} is no loss: percent from 0 to 100 are expected, such as 0.1")),
    }
}
