//! What a node is called: in replies to traces, at collectors of spans, and where it shows its state.

use crate::config::Config;
use onym_wire::name::Name;

/// What this node is called; under `/localhost` where the configuration gives it no name of its own.
#[must_use]
pub fn self_name(config: &Config) -> Name {
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
