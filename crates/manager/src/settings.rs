//! The settings of each kind of service (`spec/services.md`, section 7), so that a mistake in a
//! description is found before anything is started.

use crate::kind::Kind;
use crate::near::near;
use serde_json::Value;

/// What a value must be.
#[derive(Debug, Clone, Copy)]
enum Want {
    /// true or false.
    Switch,
    /// A whole number in a range, both ends included.
    Whole(u64, u64),
    /// A number in a range.
    Number(f64, f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text, or null.
    Text,
    /// A table, or null.
    Table,
    /// A list of names.
    Names,
}

const U32: u64 = u32::MAX as u64;
const STRATEGIES: &[&str] = &[
    "multicast",
    "round-robin",
    "weighted",
    "hash-name",
    "failover",
    "least-outstanding",
    "best-route",
    "random",
];

const UNSOLICITED: &[&str] = &["drop-all", "admit-local", "admit-network", "admit-all"];

const ALL: &[(&str, Want)] = &[
    ("return", Want::Word(&["token", "multicast", "hash"])),
    ("hash_components", Want::Whole(0, 32)),
    ("queue_bytes_max", Want::Whole(1, 1 << 34)),
    ("report_ms", Want::Whole(10, 3_600_000)),
];

fn of(kind: Kind) -> &'static [(&'static str, Want)] {
    match kind {
        Kind::NameRouter => ROUTER,
        Kind::Forwarder => FORWARDER,
        Kind::PacketDispatcher => &[
            ("repoint", Want::Switch),
            ("sessions_max", Want::Whole(1, U32)),
            ("idle_ms", Want::Whole(0, U32)),
            ("threads", Want::Whole(1, 64)),
        ],
        Kind::BackwardRouter => &[
            ("capacity", Want::Whole(1, U32)),
            ("retransmission", Want::Word(&["suppress", "active", "paper", "strategy"])),
            ("window_ms", Want::Whole(1, U32)),
            ("retries", Want::Whole(0, 100)),
            ("lifetime_max_ms", Want::Whole(1, U32)),
            ("nack", Want::Switch),
            ("unsolicited", Want::Word(UNSOLICITED)),
            ("default_hop_limit", Want::Whole(0, 255)),
        ],
        Kind::ContentStore => &[
            ("capacity", Want::Whole(0, U32)),
            ("bytes_max", Want::Whole(0, 1 << 40)),
            ("policy", Want::Word(&["lru", "fifo"])),
            ("mode", Want::Word(&["protocol", "paper"])),
            ("serve_stale", Want::Switch),
            ("admit_unfresh", Want::Switch),
            ("admit", Want::Switch),
            ("serve", Want::Switch),
            ("self_index", Want::Whole(0, 64)),
            ("siblings", Want::Whole(1, 64)),
        ],
        Kind::StrategyForwarder => &[
            ("strategy", Want::Word(STRATEGIES)),
            ("strategies", Want::Table),
            ("route_strategies", Want::Table),
            ("regions", Want::Names),
            ("duplicate_filter_ms", Want::Whole(0, U32)),
            ("hold_down_ms", Want::Whole(0, U32)),
            ("fail_after", Want::Whole(1, 1000)),
            ("probe_ms", Want::Whole(1, U32)),
        ],
        Kind::SignatureVerifier => &[
            ("drop", Want::Switch),
            ("no_key_drop", Want::Switch),
            ("unsigned_drop", Want::Switch),
            ("bind", Want::Switch),
            ("mode", Want::Word(&["full", "statistical"])),
            ("sample_min", Want::Number(0.0, 1.0)),
            ("queue_max", Want::Whole(1, U32)),
            ("threads", Want::Whole(1, 64)),
            ("fetch_keys", Want::Switch),
            ("filter", Want::Table),
        ],
        Kind::NameFilter => &[
            ("drop_interest", Want::Switch),
            ("drop_data", Want::Switch),
            ("rules_max", Want::Whole(0, U32)),
            ("default", Want::Text),
        ],
    }
}

const ROUTER: &[(&str, Want)] = &[
    ("match", Want::Word(&["all-prefixes", "longest"])),
    ("nack", Want::Switch),
    ("check_prefix", Want::Switch),
    ("registration", Want::Word(&["keys", "open", "off"])),
    ("routes_max", Want::Whole(1, U32)),
    ("strategy_forwarder", Want::Text),
    ("regions", Want::Names),
];

const FORWARDER: &[(&str, Want)] = &[
    ("match", Want::Word(&["all-prefixes", "longest"])),
    ("nack", Want::Switch),
    ("check_prefix", Want::Switch),
    ("registration", Want::Word(&["keys", "open", "off"])),
    ("routes_max", Want::Whole(1, U32)),
    ("cs_capacity", Want::Whole(0, U32)),
    ("strategies", Want::Table),
];

/// Settings that the manager itself sets on what it places, and that a description may not.
const OURS: &[&str] = &["consumer_path", "producer_path", "peer"];

/// Settings that are given at the start of a process only.
const START_ONLY: &[&str] = &["threads"];

/// Whether a change of `key` needs another process.
#[must_use]
pub fn is_start_only(key: &str) -> bool {
    START_ONLY.contains(&key)
}

/// Checks one setting of a service of `kind`.
///
/// # Errors
/// What is wrong, and what to do.
pub fn check(kind: Kind, key: &str, value: &Value) -> Result<(), (String, String)> {
    if OURS.contains(&key) {
        return Err((format!("{key} is set by the manager"), "write a link instead".to_owned()));
    }
    let known = || ALL.iter().chain(of(kind));
    let Some((_, want)) = known().find(|(k, _)| *k == key) else {
        let names: Vec<&str> = known().map(|(k, _)| *k).collect();
        return Err((format!("a {kind} has no setting {key:?}"), near(key, &names)));
    };
    let good = match want {
        Want::Switch => value.is_boolean(),
        Want::Whole(low, high) => value.as_u64().is_some_and(|n| (*low..=*high).contains(&n)),
        Want::Number(low, high) => value.as_f64().is_some_and(|n| (*low..=*high).contains(&n)),
        Want::Word(words) => value.as_str().is_some_and(|w| words.contains(&w)),
        Want::Text => value.is_string() || value.is_null(),
        Want::Table => value.is_object() || value.is_null(),
        Want::Names => value.as_array().is_some_and(|a| a.iter().all(Value::is_string)),
    };
    if good { Ok(()) } else { Err((format!("{key} = {value} is wrong"), allowed(want))) }
}

fn allowed(want: &Want) -> String {
    match want {
        Want::Switch => "true or false".to_owned(),
        Want::Whole(low, high) => format!("a whole number from {low} to {high}"),
        Want::Number(low, high) => format!("a number from {low} to {high}"),
        Want::Word(words) => format!("one of: {}", words.join(", ")),
        Want::Text => "a text".to_owned(),
        Want::Table => "a table".to_owned(),
        Want::Names => "a list of names, such as [\"/a\", \"/b\"]".to_owned(),
    }
}
