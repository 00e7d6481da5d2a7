//! What a node is called: in replies to traces, and at collectors of spans.

use crate::config::Config;
use onym_wire::name::Name;

/// What this node is called.
pub(crate) fn self_name(config: &Config) -> Name {
    let host = || rustix::system::uname().nodename().to_bytes().to_vec();
    let stated = [&config.trace.name, &config.routing.router];
    if let Some(name) = stated.into_iter().find(|name| !name.is_empty()) {
        return name.parse().unwrap_or_default();
    }
    let mut name = Name::new();
    match config.routing.network.parse::<Name>() {
        Ok(network) if !config.routing.network.is_empty() => {
            name.append(network.as_ref()).append_generic(host());
        }
        // Several nodes of a host are told apart.
        _ => {
            name.append_generic("localhost").append_generic("node").append_generic(host());
            name.append_generic(std::process::id().to_string());
        }
    }
    name
}
