//! What the configuration means for the push half.

use super::trust;
use crate::config::{self, PushDiscover, PushRole, PushScheme, PushStages};
use crate::shard::HOLD_AT;
use onym_crypto::{KeyStore, sha256};
use onym_pubsub::forwarder;
use onym_pubsub::node::Config as NodeConfig;
use onym_pubsub::rendezvous::graph::Limits;
use onym_pubsub::topology::{Keyed, Routing};
use onym_pubsub::{DomainKey, Signing};
use onym_tables::bloom::{Kind, Scheme};
use onym_wire::name::Name;
use onym_wire::push::{Label, Role};
use std::path::Path;
use std::time::Duration;

/// The push half as it was configured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) node: NodeConfig,
    /// Seconds of an epoch of keyed tags; none: tags are not keyed.
    pub(crate) epoch_s: Option<u64>,
    pub(crate) apps_max: usize,
    pub(crate) app_queue_bytes_max: usize,
    /// How long a shard waits for a face.
    pub(crate) hold: Duration,
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
        let is_spare = config.discover == PushDiscover::Standby && !config.roles.is_empty();
        let spare_role = if is_spare { Role::STANDBY } else { Role::default() };
        let roles = config.roles.iter().map(role).fold(spare_role, Role::and);
        let kind = match config.scheme {
            PushScheme::Bits => Kind::Bits,
            PushScheme::K => Kind::Tags { k: config.k, tables: config.tables },
        };
        let scheme = Scheme { kind, seed: config.seed };
        // Another one than in the life before: starts lie further apart than this counts.
        let boot =
            u32::try_from((onym_engine::clock::unix_ms() >> 6) & 0xffff_ffff).unwrap_or(1).max(1);
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
            limits: Limits {
                vertices_max: config.vertices_max,
                octets_max: config.graph_bytes_max,
                ..Limits::default()
            },
            link_state_octets_max: config.link_state_bytes_max,
            lease: Duration::from_millis(config.lease_ms),
            frame_max: config.frame_bytes_max,
            key: key_of(&config.key),
            cache_octets_max: config.cache_bytes_max,
            retained_octets_max: config.retained_bytes_max,
            // With what is left of a mark, less than what holds others back.
            reader_octets_max: (config.app_queue_bytes_max / 2).min(HOLD_AT / 2),
            hold: Duration::from_millis(config.hold_ms),
            backups: config.backups,
            domain: config.domain.parse().ok(),
            federation_key: key_of(&config.domain_key),
            ..NodeConfig::new(label, inside, roles, boot)
        };
        let epoch_s = node.routing.keyed.map(|_| config.epoch_s);
        Self {
            node,
            epoch_s,
            apps_max: config.apps_max,
            app_queue_bytes_max: config.app_queue_bytes_max,
            hold: Duration::from_millis(config.hold_ms),
            publication_bytes_max: config.publication_bytes_max,
        }
    }

    /// Reads the keys of signatures; `base` is the directory that paths of files start at.
    ///
    /// # Errors
    /// A sentence with the key and what is wrong.
    pub(crate) fn read_keys(
        &mut self,
        config: &config::Push,
        rules: Option<&onym_guard::Settings>,
        base: &Path,
    ) -> Result<(), String> {
        if !config.sign_key.is_empty() {
            let wrong = |e: String| format!("push.sign_key: {}: {e}", config.sign_key);
            let name: Name = config.sign_key.parse().map_err(|e| wrong(format!("{e}")))?;
            let store = KeyStore::of_user().map_err(|e| wrong(e.to_string()))?;
            let name = store.resolve(Some(name.as_ref())).map_err(|e| wrong(e.to_string()))?;
            let key = store.key(name.as_ref()).map_err(|e| wrong(e.to_string()))?;
            self.node.signing = Some(Signing::new(key).map_err(|e| wrong(e.to_string()))?);
        }
        if let Some(rules) = rules {
            let wrong = |e: onym_guard::GuardError| format!("push.trust: {e}");
            let guard = onym_guard::Guard::open(rules.clone(), base, onym_engine::clock::unix_ms());
            let publishers = trust::publishers(&config.publishers, base);
            let publishers = publishers.map_err(|e| format!("push.publishers: {e}"))?;
            let trusted = trust::trusted(guard.map_err(wrong)?, publishers);
            self.node.control = config.trust_control.then(|| trusted.clone());
            self.node.trusted = Some(trusted);
        }
        Ok(())
    }

    /// The number of a link: the one that is given, else one drawn from where it leads.
    pub(crate) fn link_number(&self, link: &config::PushLink) -> u32 {
        if link.number > 0 { link.number } else { drawn(self.node.node, &link.face) }
    }
}

/// The key of a secret, where there is one.
fn key_of(secret: &str) -> Option<DomainKey> {
    (!secret.is_empty()).then(|| DomainKey::new(secret.as_bytes()))
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
    let number = onym_engine::clock::unix_ms() / 1000 / epoch_s.max(1);
    number.to_le_bytes()[0]
}

/// A number that is hardly that of another link: drawn from the node and a text.
fn drawn(node: Label, text: &str) -> u32 {
    let digest = sha256(&[&node.0, text.as_bytes()]);
    // Not one of those below 256, which are given out by hand.
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) | 0x100
}
