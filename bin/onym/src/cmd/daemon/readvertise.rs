//! What routing programs beside the node are told of its routes.

use super::routing;
use crate::exit::{Exit, Failure};
use onym_crypto::Signer;
use onym_crypto::store::KeyStore;
use onym_node::NodeHandle;
use onym_node::config::Config;
use onym_router::readvertise::{Readvertise, Telling, tell};
use onym_wire::Name;

/// What the configuration means; nothing when nobody is told.
pub(super) fn settings(config: &Config) -> anyhow::Result<Option<Readvertise>> {
    let rib = &config.rib;
    if !rib.tell_nlsr && !rib.tell_hub {
        return Ok(None);
    }
    let hub = if rib.tell_hub { identities()? } else { Vec::new() };
    if rib.tell_hub && hub.is_empty() {
        return Err(Failure::new(Exit::Failed, "rib.tell_hub: there is no identity to tell for")
            .why("prefixes are told to a hub under an identity, and signed by it")
            .next("`onym key new NAME` makes one; the hub has to know its certificate")
            .into());
    }
    Ok(Some(Readvertise { node: String::new(), nlsr: rib.tell_nlsr, hub }))
}

/// Identities of this user's key store and what signs for each.
fn identities() -> anyhow::Result<Vec<(Name, Signer)>> {
    let failed = |error: onym_crypto::Error| {
        Failure::new(Exit::Failed, "rib.tell_hub: the key store cannot be read")
            .why(error)
            .next("see `onym key list`")
    };
    let store = KeyStore::of_user().map_err(failed)?;
    let keys = store.keys().map_err(failed)?;
    let defaults = keys.iter().filter(|key| key.is_default_of_identity);
    let identity = |key: &onym_crypto::store::KeyInfo| -> anyhow::Result<(Name, Signer)> {
        let signer = store.signer(Some(key.name.as_ref())).map_err(failed)?;
        Ok((key.name.as_ref().drop_last(2).to_name(), signer))
    };
    defaults.map(identity).collect()
}

/// Starts telling, once the node is ready.
pub(super) fn start(
    settings: Option<Readvertise>,
    node: &NodeHandle,
) -> anyhow::Result<Option<Telling>> {
    let Some(mut settings) = settings else { return Ok(None) };
    settings.node = routing::way_to(node)?;
    let telling = tell(settings).map_err(|error| {
        Failure::new(Exit::Failed, "nobody tells of the node's routes").why(error)
    })?;
    Ok(Some(telling))
}
