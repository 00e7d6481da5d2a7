//! What a new configuration changes, and whether a running node can take it over.

use super::Config;
use std::collections::HashMap;
use std::hash::Hash;

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
    "faces.connect_timeout_ms",
    "faces.count_max",
    "faces.idle_timeout_s",
    "faces.reconnect_max_ms",
    "faces.reconnect_min_ms",
    "forward.default_hop_limit",
    "forward.fairness",
    "forward.network_regions",
    "log.filter",
    "management.open",
    "push.link",
    "rib.announcement_anchors",
    "rib.localhop",
    "rib.localhop_anchors",
    "rib.routable_prefixes",
    "route",
    "strategy",
    "tables.rib_routes_max",
    "tables.rib_routes_per_face_max",
    "trace",
    "trust",
];

/// Keys that a running node takes over for the faces that it makes from then on.
const NEW_FACES: &[&str] = &[
    "faces.congestion",
    "faces.queue_bytes_max",
    "faces.quic.peers",
    "faces.tcp.local",
    "faces.udp.find_mtu",
    "faces.udp.mtu",
    "management.group",
    "reassembly",
];

/// What a reload does with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It takes effect.
    Live,
    /// It takes effect for faces made afterwards.
    NewFaces,
    /// It waits for the next start.
    Restart,
}

impl Taken {
    pub(super) fn of(key: &str) -> Self {
        let covers =
            |k: &&str| key == *k || key.strip_prefix(*k).is_some_and(|r| r.starts_with('.'));
        if LIVE.iter().any(&covers) {
            Self::Live
        } else if NEW_FACES.iter().any(covers) {
            Self::NewFaces
        } else {
            Self::Restart
        }
    }

    /// The word of docs/config.md.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Live => "yes",
            Self::NewFaces => "new faces",
            Self::Restart => "restart",
        }
    }
}

/// The keys in which `new` differs from `old`.
#[must_use]
pub fn changes(old: &Config, new: &Config) -> Changes {
    let mut found = Changes::default();
    let as_value = |c: &Config| toml::Value::try_from(c).unwrap_or(toml::Value::Boolean(false));
    compare("", &as_value(old), &as_value(new), &mut found);
    found
}

/// Entries of `old` that `new` does not have. Compared are those alone that have the same `key`: there
/// may be a hundred thousand.
pub(crate) fn gone<'a, T: PartialEq, K: Eq + Hash>(
    old: &'a [T],
    new: &'a [T],
    key: impl Fn(&'a T) -> K,
) -> impl Iterator<Item = &'a T> {
    let mut kept: HashMap<K, Vec<&T>> = HashMap::new();
    for entry in new {
        kept.entry(key(entry)).or_default().push(entry);
    }
    old.iter().filter(move |entry| !kept.get(&key(entry)).is_some_and(|same| same.contains(entry)))
}

impl Config {
    /// This configuration with the values that `running` has for `keys`.
    pub(crate) fn keeping(self, running: &Self, keys: &[String]) -> Self {
        let (Ok(mut new), Ok(old)) = (toml::Value::try_from(&self), toml::Value::try_from(running))
        else {
            return self;
        };
        for key in keys {
            copy(&mut new, &old, key);
        }
        new.try_into().unwrap_or(self)
    }
}

/// Gives `new` the value, or the absence, that `old` has for the dotted `key`.
fn copy(new: &mut toml::Value, old: &toml::Value, key: &str) {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let Some(table) = new.as_table_mut() else { return };
    match (old.get(first), rest) {
        (Some(value), "") => {
            table.insert(first.to_owned(), value.clone());
        }
        (None, "") => {
            table.remove(first);
        }
        (Some(value), rest) => {
            if let Some(below) = table.get_mut(first) {
                copy(below, value, rest);
            }
        }
        (None, _) => {}
    }
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
    match Taken::of(key) {
        Taken::Live | Taken::NewFaces => found.live.push(key.to_owned()),
        Taken::Restart => found.restart.push(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::gone;
    use std::cell::Cell;

    /// An entry, and how often it was compared.
    #[derive(Debug)]
    struct Entry<'a>(usize, &'a Cell<usize>);

    impl PartialEq for Entry<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    /// Law: what is gone is found by a comparison for each entry that there was, however many there are.
    #[test]
    fn each_entry_is_compared_with_those_of_its_key() {
        for count in [10, 1000] {
            let compared = Cell::new(0);
            let entries = |from| (from..from + count).map(|n| Entry(n, &compared)).collect();
            let (old, new): (Vec<_>, Vec<_>) = (entries(0), entries(3));
            let gone: Vec<_> = gone(&old, &new, |entry| entry.0).map(|entry| entry.0).collect();
            assert_eq!(gone, [0, 1, 2]);
            assert_eq!(compared.get(), count - 3);
        }
    }

    #[test]
    fn an_entry_that_changed_is_gone_beside_others_of_its_key() {
        let (old, new) = ([("a", 1), ("a", 2), ("b", 1)], [("a", 2), ("a", 3), ("b", 1)]);
        let gone: Vec<_> = gone(&old, &new, |entry| entry.0).collect();
        assert_eq!(gone, [&("a", 1)]);
    }
}
