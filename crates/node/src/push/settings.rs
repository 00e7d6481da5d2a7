//! What the configuration means for the push half.

use crate::config::{self, PushRole, PushScheme, PushStages};
use onym_crypto::sha256;
use onym_pubsub::DomainKey;
use onym_pubsub::forwarder;
use onym_pubsub::node::Config as NodeConfig;
use onym_pubsub::rendezvous::graph::Limits;
use onym_pubsub::topology::{Keyed, Routing};
use onym_tables::bloom::{Kind, Scheme};
use onym_wire::push::{Label, Role};
use std::time::Duration;

/// The push half as it was configured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) node: NodeConfig,
    /// Seconds of an epoch of keyed tags; none: tags are not keyed.
    pub(crate) epoch_s: Option<u64>,
    pub(crate) apps_max: usize,
    pub(crate) app_queue_bytes_max: usize,
    pub(crate) publication_bytes_max: usize,
}

impl Settings {
    /// The settings, with an identifier from `spare` where none is given.
    pub(crate) fn of(config: &config::Push, spare: u64) -> Self {
        let label = config.node.parse().unwrap_or(Label::from_u64(spare | 1));
        let inside = if config.inside > 0 { config.inside } else { drawn(label, "") };
        let role = |r: &PushRole| match r {
            PushRole::Rendezvous => Role::RENDEZVOUS,
            PushRole::Topology => Role::TOPOLOGY,
        };
        let roles = config.roles.iter().map(role).fold(Role::default(), Role::and);
        let kind = match config.scheme {
            PushScheme::Bits => Kind::Bits,
            PushScheme::K => Kind::Tags { k: config.k, tables: config.tables },
        };
        let scheme = Scheme { kind, seed: config.seed };
        // Another one than in the life before: starts lie further apart than this counts.
        let boot = u32::try_from((crate::clock::unix_ms() >> 6) & 0xffff_ffff).unwrap_or(1).max(1);
        let node = NodeConfig {
            forwarder: forwarder::Config {
                scheme,
                fill_max: config.fill_max,
                ..forwarder::Config::default()
            },
            routing: Routing {
                scheme,
                fill_max: config.fill_max,
                may_stage: config.stages != PushStages::Never,
                only_stages: config.stages == PushStages::Always,
                keyed: keyed(config),
            },
            limits: Limits { vertices_max: config.vertices_max, ..Limits::default() },
            lease: Duration::from_millis(config.lease_ms),
            frame_max: config.frame_bytes_max,
            key: (!config.key.is_empty()).then(|| DomainKey::new(config.key.as_bytes())),
            ..NodeConfig::new(label, inside, roles, boot)
        };
        let epoch_s = node.routing.keyed.map(|_| config.epoch_s);
        Self {
            node,
            epoch_s,
            apps_max: config.apps_max,
            app_queue_bytes_max: config.app_queue_bytes_max,
            publication_bytes_max: config.publication_bytes_max,
        }
    }

    /// The number of a link: the one that is given, else one drawn from where it leads.
    pub(crate) fn link_number(&self, link: &config::PushLink) -> u32 {
        if link.number > 0 { link.number } else { drawn(self.node.node, &link.face) }
    }
}

/// What keyed tags are made with, where they are.
fn keyed(config: &config::Push) -> Option<Keyed> {
    if config.keyed_secret.is_empty() {
        return None;
    }
    let digest = sha256(&[config.keyed_secret.as_bytes()]);
    let half = |at: usize| {
        digest[at..at + 8].iter().fold(0, |number, octet| (number << 8) | u64::from(*octet))
    };
    let k = config.k.min(8);
    Some(Keyed { master: [half(0), half(8)], epoch: epoch_at(config.epoch_s), k })
}

/// Number of the present epoch: the same in all nodes whose clocks agree.
pub(super) fn epoch_at(epoch_s: u64) -> u8 {
    let number = crate::clock::unix_ms() / 1000 / epoch_s.max(1);
    number.to_le_bytes()[0]
}

/// A number that is hardly that of another link: drawn from the node and a text.
fn drawn(node: Label, text: &str) -> u32 {
    let digest = sha256(&[&node.0, text.as_bytes()]);
    // Not one of those below 256, which are given out by hand.
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) | 0x100
}
