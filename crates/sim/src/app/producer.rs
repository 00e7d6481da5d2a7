//! A producer that has Data for every name under its prefix.

use super::{App, AppStats, Frames};
use onym_tables::Tick;
use onym_wire::lp::{LpHeader, LpPacket};
use onym_wire::name::Name;
use onym_wire::{DataBuilder, Interest, SignatureInfo, types};

/// What a producer serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerConfig {
    /// Prefix.
    pub prefix: Name,
    /// Octets of content in each Data.
    pub size: usize,
    /// FreshnessPeriod in milliseconds.
    pub freshness_ms: u64,
    /// Whether it answers; a producer that does not is a route to nothing.
    pub answers: bool,
}

/// Answers every Interest under its prefix with Data of exactly that name. Nothing is signed
/// (signature type Null): a forwarder does not verify, and the simulation need not hash.
#[derive(Debug)]
pub struct Producer {
    config: ProducerConfig,
    content: Vec<u8>,
    stats: AppStats,
}

impl Producer {
    /// A producer.
    #[must_use]
    pub fn new(config: ProducerConfig) -> Self {
        let prefix = config.prefix.to_string();
        let content = vec![0x6f; config.size];
        Self { content, stats: AppStats { kind: "producer", prefix, ..Default::default() }, config }
    }
}

impl App for Producer {
    fn receive(&mut self, _: Tick, frame: &[u8], out: &mut Frames) {
        let Ok(packet) = LpPacket::parse(frame) else { return };
        let Some(Ok(interest)) = packet.fragment.map(Interest::parse) else { return };
        if !self.config.prefix.as_ref().is_prefix_of(interest.name) {
            return;
        }
        self.stats.interests += 1;
        if !self.config.answers {
            return;
        }
        let mut data = Vec::new();
        let builder = DataBuilder {
            freshness_ms: self.config.freshness_ms,
            ..DataBuilder::new(interest.name, &self.content)
        };
        builder
            .write(&mut data, &SignatureInfo::of_kind(types::SIGNATURE_NULL), |_| {
                Ok::<_, std::convert::Infallible>([])
            })
            .unwrap_or_else(|never| match never {});
        let header =
            LpHeader { pit_token: packet.pit_token.unwrap_or_default(), ..LpHeader::default() };
        let mut answer = Vec::with_capacity(data.len() + 64);
        header.write(&mut answer, data.len());
        answer.extend_from_slice(&data);
        self.stats.data += 1;
        self.stats.octets += self.content.len() as u64;
        out.push(answer);
    }

    fn handle_timeout(&mut self, _: Tick, _: &mut Frames) {}

    fn poll_timeout(&self) -> Tick {
        Tick::NEVER
    }

    fn is_done(&self) -> bool {
        true
    }

    fn stats(&self) -> AppStats {
        self.stats.clone()
    }
}
