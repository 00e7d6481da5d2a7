//! A program that fetches many files over one face: each is a consumer, begun one after another.

use super::{App, AppStats, Consumer, ConsumerConfig, Frames, Transfer};
use onym_tables::Tick;
use onym_wire::lp::LpPacket;
use onym_wire::name::{Name, NameRef};
use onym_wire::{Data, Interest};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Which files, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct FilesConfig {
    /// As each file is fetched; its prefix is the one of all files, its `start` that of the first.
    pub each: ConsumerConfig,
    /// How many files.
    pub files: usize,
    /// Time between the beginnings of two files.
    pub every: Duration,
}

/// Fetches files `PREFIX/file0`, `PREFIX/file1`, … in segments.
#[derive(Debug)]
pub struct Files {
    prefix: Name,
    consumers: Vec<Consumer>,
    by_component: HashMap<Vec<u8>, usize>,
    due: BTreeSet<(Tick, usize)>,
    planned: Vec<Tick>,
}

impl Files {
    /// The program.
    #[must_use]
    pub fn new(config: FilesConfig) -> Self {
        let prefix = config.each.prefix.clone();
        let mut files = Self {
            consumers: Vec::with_capacity(config.files),
            by_component: HashMap::new(),
            due: BTreeSet::new(),
            planned: vec![Tick::NEVER; config.files],
            prefix,
        };
        for index in 0..config.files {
            let mut name = files.prefix.clone();
            let before = name.as_ref().value().len();
            name.append_generic(format!("file{index}"));
            files.by_component.insert(name.as_ref().value()[before..].to_vec(), index);
            let turns = u32::try_from(index).unwrap_or(u32::MAX);
            files.consumers.push(Consumer::new(ConsumerConfig {
                prefix: name,
                start: config.each.start + config.every.saturating_mul(turns),
                seed: config.each.seed.wrapping_add(index as u64),
                ..config.each.clone()
            }));
            files.plan(index);
        }
        files
    }

    fn plan(&mut self, index: usize) {
        let due = self.consumers[index].poll_timeout();
        self.due.remove(&(self.planned[index], index));
        self.planned[index] = due;
        if due != Tick::NEVER {
            self.due.insert((due, index));
        }
    }

    /// The file that `name` belongs to.
    fn owner(&self, name: NameRef<'_>) -> Option<usize> {
        if !self.prefix.as_ref().is_prefix_of(name) {
            return None;
        }
        let rest = &name.value()[self.prefix.as_ref().value().len()..];
        // Components of files have short lengths: type and length take one octet each.
        let len = usize::from(*rest.get(1)?);
        self.by_component.get(rest.get(..len + 2)?).copied()
    }
}

/// The name that a frame answers.
fn answered(bytes: &[u8], is_nack: bool) -> Option<NameRef<'_>> {
    if is_nack {
        return Interest::parse(bytes).ok().map(|interest| interest.name);
    }
    Data::parse(bytes).ok().map(|data| data.name)
}

impl App for Files {
    fn receive(&mut self, now: Tick, frame: &[u8], out: &mut Frames) {
        let Ok(packet) = LpPacket::parse(frame) else { return };
        let Some(bytes) = packet.fragment else { return };
        let name = answered(bytes, packet.nack.is_some());
        if let Some(index) = name.and_then(|name| self.owner(name)) {
            self.consumers[index].receive(now, frame, out);
            self.plan(index);
        }
    }

    fn handle_timeout(&mut self, now: Tick, out: &mut Frames) {
        while let Some(&(due, index)) = self.due.first().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, index));
            self.consumers[index].handle_timeout(now, out);
            self.plan(index);
        }
    }

    fn poll_timeout(&self) -> Tick {
        self.due.first().map_or(Tick::NEVER, |(due, _)| *due)
    }

    fn is_done(&self) -> bool {
        self.consumers.iter().all(Consumer::is_done)
    }

    fn stats(&self) -> AppStats {
        let prefix = self.prefix.to_string();
        let mut sum = AppStats { kind: "consumer", prefix, ..AppStats::default() };
        let mut latencies: Vec<Duration> = Vec::new();
        for consumer in &self.consumers {
            sum.add(&consumer.stats());
            latencies.extend(consumer.latencies());
        }
        latencies.sort_unstable();
        (sum.latency_p50, sum.latency_p99) = super::percentiles(&latencies);
        if let (Some(began), Some(ended)) = (sum.began, sum.ended) {
            sum.duration = ended.saturating_sub(began);
        }
        sum
    }

    fn transfers(&self) -> Vec<Transfer> {
        self.consumers.iter().flat_map(App::transfers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ended, Network, NodeConfig, Producer, ProducerConfig, Routing};

    #[test]
    fn every_file_arrives_and_begins_in_its_turn() {
        let mut network = Network::new(1);
        let nodes = ["a", "b"].map(|name| network.node_add(name, NodeConfig::default()));
        network.link_add(nodes[0], nodes[1], crate::ChannelConfig::default());
        let prefix: Name = "/p".parse().unwrap();
        let config =
            ProducerConfig { prefix: prefix.clone(), size: 10, freshness_ms: 0, answers: true };
        let producer = network.app_add(nodes[1], Box::new(Producer::new(config)));
        network.route_to(prefix.as_ref(), producer, Routing::Shortest);
        let each = ConsumerConfig { count: 7, window: 2, ..ConsumerConfig::new(prefix) };
        let config = FilesConfig { each, files: 300, every: Duration::from_millis(10) };
        network.app_add(nodes[0], Box::new(Files::new(config)));
        assert_eq!(network.run(Duration::from_secs(100), 1_000_000), Ended::Quiet);
        let files = network.apps().nth(1).unwrap().1;
        assert!(files.is_done());
        assert_eq!((files.stats().data, files.stats().octets), (2100, 21_000));
        let transfers = files.transfers();
        assert_eq!(transfers.len(), 300);
        assert!(transfers.iter().all(|one| one.is_complete && one.octets == 70));
        assert_eq!(transfers[299].began, Some(Duration::from_millis(2990)));
        assert_eq!(transfers[299].name, "/p/file299");
        network.check().unwrap();
    }
}
