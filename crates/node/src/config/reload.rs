//! What a new configuration changes, and whether a running node can take it over.

use super::Config;

/// Keys that differ between two configurations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Keys that take effect in the running node.
    pub live: Vec<String>,
    /// Keys that take effect at the next start.
    pub restart: Vec<String>,
}

/// Keys that a running node takes over; every other key waits for the next start.
/// An entry covers the keys below it.
const LIVE: &[&str] = &[
    "authorize",
    "cs.admit",
    "cs.bytes_max",
    "cs.packets_max",
    "cs.serve",
    "cs.unsolicited",
    "daemon.drain_ms",
    "face",
    "faces.congestion",
    "faces.connect_timeout_ms",
    "faces.count_max",
    "faces.idle_timeout_s",
    "faces.queue_bytes_max",
    "faces.reconnect_max_ms",
    "faces.reconnect_min_ms",
    "faces.udp.mtu",
    "forward.network_regions",
    "log.filter",
    "rib",
    "route",
    "strategy",
    "tables.rib_routes_max",
];

/// The keys in which `new` differs from `old`.
#[must_use]
pub fn changes(old: &Config, new: &Config) -> Changes {
    let mut found = Changes::default();
    let as_value = |c: &Config| toml::Value::try_from(c).unwrap_or(toml::Value::Boolean(false));
    compare("", &as_value(old), &as_value(new), &mut found);
    found
}

fn compare(key: &str, old: &toml::Value, new: &toml::Value, found: &mut Changes) {
    if old == new {
        return;
    }
    // The table of strategies is a value: its keys are names.
    if let (toml::Value::Table(a), toml::Value::Table(b), true) = (old, new, key != "strategy") {
        let absent = toml::Value::Boolean(false);
        for name in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
            let below = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            compare(&below, a.get(name).unwrap_or(&absent), b.get(name).unwrap_or(&absent), found);
        }
        return;
    }
    let covers = |k: &str| key == k || key.strip_prefix(k).is_some_and(|r| r.starts_with('.'));
    if LIVE.iter().any(|k| covers(k)) {
        found.live.push(key.to_owned());
    } else {
        found.restart.push(key.to_owned());
    }
}
