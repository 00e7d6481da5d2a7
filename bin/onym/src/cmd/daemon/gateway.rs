//! The gateway between push and pull, beside the node in the same process.

use super::routing::way_to;
use crate::session;
use anyhow::Context as _;
use onym_client::Schema;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::signer::Signer;
use onym_crypto::{Certificate, Entropy as _, KeyType, PrivateKey, SystemEntropy};
use onym_gateway::{Handle, Limits, Map, Settings};
use onym_guard::Guard;
use onym_node::NodeHandle;
use onym_node::config::{Config, GatewayMap};
use onym_wire::name::Name;
use onym_wire::push::Strategy;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What the configuration means; nothing without a map.
pub(super) fn settings(config: &Config, base: &Path) -> anyhow::Result<Option<Settings>> {
    let gateway = &config.gateway;
    let maps = gateway.map.iter().map(map).collect::<anyhow::Result<Vec<_>>>()?;
    let Some(first) = maps.first() else { return Ok(None) };
    let (signer, certificate) = if gateway.key.is_empty() {
        let (signer, certificate) = own_key(&first.prefix)?;
        (signer, Some(certificate))
    } else {
        (session::signer(Some(&gateway.key.parse()?))?, None)
    };
    let limits = Limits {
        items_max: gateway.items_max,
        interests_max: gateway.interests_max,
        kept_bytes_max: gateway.kept_bytes_max,
        offers_max: gateway.offers_max,
        idle: Duration::from_millis(gateway.idle_ms),
        poll: Duration::from_millis(gateway.poll_ms),
    };
    let routes_every = Duration::from_millis(gateway.routes_ms);
    let node = String::new();
    let trust = config.trust_of("gateway.trust", &gateway.trust)?;
    let open = |settings: &onym_guard::Settings| Guard::open(settings.clone(), base, unix_now_ms());
    let trust = trust.map(open).transpose()?.map(|guard| Arc::new(Schema::from(guard)));
    Ok(Some(Settings { node, maps, limits, routes_every, signer, certificate, trust }))
}

fn map(map: &GatewayMap) -> anyhow::Result<Map> {
    Ok(Map {
        prefix: map.prefix.parse()?,
        scope: map.scope.parse()?,
        strategy: Strategy::named(&map.strategy).context("gateway.map: unknown strategy")?,
        freshness: Duration::from_millis(map.freshness_ms),
        items: map.items.iter().map(|item| item.parse()).collect::<Result<_, _>>()?,
        is_by_routes: map.by_routes,
    })
}

/// A new key under the prefix, with its certificate.
fn own_key(prefix: &Name) -> anyhow::Result<(Signer, Certificate)> {
    let key = PrivateKey::generate(KeyType::Ed25519)?;
    let mut number = [0; 8];
    SystemEntropy.fill(&mut number);
    let mut name = prefix.clone();
    name.append_generic("KEY").append_generic(number);
    let certificate = Certificate::self_signed(name.as_ref(), &key, unix_now_ms())?;
    let signer = Signer::key(key, certificate.name().to_name());
    Ok((signer, certificate))
}

/// Starts the gateway of a node that is ready.
pub(super) fn start(
    settings: Option<Settings>,
    node: &NodeHandle,
) -> anyhow::Result<Option<Handle>> {
    let Some(mut settings) = settings else { return Ok(None) };
    settings.node = way_to(node)?;
    Ok(Some(onym_gateway::start(settings)?))
}
