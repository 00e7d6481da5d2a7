//! What a run comes to.

use crate::app::AppStats;
use crate::channel::ChannelCounters;
use crate::network::Network;
use onym_forward::{Counters, Verdict};
use onym_link::PacketKind;
use std::time::Duration;

/// What one node did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// Name.
    pub name: String,
    /// Everything it counted.
    pub counters: Counters,
    /// Interests that are pending now.
    pub pit_entries: usize,
    /// Packets in its content store.
    pub cs_entries: usize,
}

impl NodeReport {
    /// How packets ended: kind, verdict, how many; those that are not 0.
    pub fn verdicts(&self) -> impl Iterator<Item = (PacketKind, Verdict, u64)> {
        PacketKind::ALL.into_iter().flat_map(move |kind| {
            let count =
                move |verdict: &Verdict| (kind, *verdict, self.counters.verdict(kind, *verdict));
            Verdict::ALL.iter().map(count).filter(|(_, _, count)| *count > 0)
        })
    }

    /// Those of them that are drops.
    pub fn drops(&self) -> impl Iterator<Item = (PacketKind, Verdict, u64)> {
        self.verdicts().filter(|(_, verdict, _)| verdict.is_drop())
    }
}

/// What one direction of a link did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkReport {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Bits per second that it takes; `None` is unlimited.
    pub rate_bps: Option<u64>,
    /// Frames.
    pub counters: ChannelCounters,
}

/// What one application achieved.
#[derive(Debug, Clone, PartialEq)]
pub struct AppReport {
    /// Its node.
    pub node: String,
    /// What it counted.
    pub stats: AppStats,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Virtual time that passed.
    pub elapsed: Duration,
    /// Virtual time until a node last received a frame: what rates are counted over.
    pub active: Duration,
    /// Events that happened.
    pub events: u64,
    /// Whether every application has done its part.
    pub is_done: bool,
    /// Nodes.
    pub nodes: Vec<NodeReport>,
    /// Links, each direction.
    pub links: Vec<LinkReport>,
    /// Applications.
    pub apps: Vec<AppReport>,
}

impl Report {
    /// The present state of a network.
    #[must_use]
    pub fn of(network: &Network) -> Self {
        let name = |number: usize| network.nodes()[number].name.clone();
        Self {
            elapsed: network.elapsed(),
            active: network.active(),
            events: network.happened(),
            is_done: network.is_done(),
            nodes: network
                .nodes()
                .iter()
                .map(|node| NodeReport {
                    name: node.name.clone(),
                    counters: node.forwarder().counters().clone(),
                    pit_entries: node.forwarder().pit_len(),
                    cs_entries: node.forwarder().cs().len(),
                })
                .collect(),
            links: network
                .channels()
                .map(|(from, to, channel)| LinkReport {
                    from: name(from),
                    to: name(to),
                    rate_bps: channel.config().rate_bps,
                    counters: channel.counters(),
                })
                .collect(),
            apps: network
                .apps()
                .map(|(node, app)| AppReport { node: name(node), stats: app.stats() })
                .collect(),
        }
    }
}
