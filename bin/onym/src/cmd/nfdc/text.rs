//! What `nfdc` prints: one line for each thing, `key=value` between single spaces.

use crate::node_words as words;
use crate::plain;
use onym_wire::mgmt::{
    CS_ADMIT, CS_SERVE, CsInfo, FACE_CONGESTION_MARKING, FACE_LOCAL_FIELDS, FACE_RELIABILITY,
    FaceStatus, FibEntry, ForwarderStatus, ROUTE_CAPTURE, ROUTE_CHILD_INHERIT, RibEntry, Route,
    StrategyChoice,
};

pub(crate) fn on(flags: u64, bit: u64) -> &'static str {
    if flags & bit != 0 { "on" } else { "off" }
}

/// A line of `face list`.
pub(crate) fn face(face: &FaceStatus) -> String {
    parts(face).join(" ")
}

/// `face show`: a line for each part, the keys aligned at their right.
pub(crate) fn face_lines(face: &FaceStatus) -> String {
    aligned("", 10, &parts(face))
}

fn parts(f: &FaceStatus) -> Vec<String> {
    let mut parts = vec![
        format!("faceid={}", f.face_id),
        format!("remote={}", plain::line(&f.uri)),
        format!("local={}", plain::line(&f.local_uri)),
    ];
    if let Some(ms) = f.expiration_period_ms {
        parts.push(format!("expires={}s", ms / 1000));
    }
    let mut congestion = Vec::new();
    if let Some(ns) = f.base_congestion_marking_interval_ns {
        congestion.push(format!("base-marking-interval={}ms", ns / 1_000_000));
    }
    if let Some(octets) = f.default_congestion_threshold {
        congestion.push(format!("default-threshold={octets}B"));
    }
    if !congestion.is_empty() {
        parts.push(format!("congestion={{{}}}", congestion.join(" ")));
    }
    if let Some(mtu) = f.mtu {
        parts.push(format!("mtu={mtu}"));
    }
    parts.push(format!(
        "counters={{in={{{}i {}d {}n {}B}} out={{{}i {}d {}n {}B}}}}",
        f.in_interests,
        f.in_data,
        f.in_nacks,
        f.in_bytes,
        f.out_interests,
        f.out_data,
        f.out_nacks,
        f.out_bytes
    ));
    let mut flags = vec![f.face_scope.word(), f.face_persistency.word(), f.link_type.word()];
    let named = [
        (FACE_LOCAL_FIELDS, "local-fields"),
        (FACE_RELIABILITY, "lp-reliability"),
        (FACE_CONGESTION_MARKING, "congestion-marking"),
    ];
    flags.extend(named.iter().filter(|(bit, _)| f.flags & bit != 0).map(|(_, word)| *word));
    parts.push(format!("flags={{{}}}", flags.join(" ")));
    parts
}

fn aligned(indent: &str, width: usize, parts: &[String]) -> String {
    let line = |part: &String| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        format!("{indent}{key:>width$}={value}\n")
    };
    parts.iter().map(line).collect()
}

/// `flags=` and `expires=` of a route.
fn flags(flags: u64) -> String {
    let named = [(ROUTE_CHILD_INHERIT, "child-inherit"), (ROUTE_CAPTURE, "capture")];
    let words: Vec<_> = named.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, w)| *w).collect();
    if words.is_empty() { "none".to_owned() } else { words.join("|") }
}

pub(crate) fn expires(ms: Option<u64>) -> String {
    ms.map_or_else(|| "never".to_owned(), |ms| format!("{}s", ms / 1000))
}

fn of_route(r: &Route) -> String {
    format!(
        "nexthop={} origin={} cost={} flags={} expires={}",
        r.face_id,
        words::origin(r.origin),
        r.cost,
        flags(r.flags),
        expires(r.expiration_period_ms)
    )
}

/// A line of `route list`.
pub(crate) fn route(prefix: &impl std::fmt::Display, route: &Route) -> String {
    format!("prefix={prefix} {}", of_route(route))
}

/// What `route add` answers with.
pub(crate) fn route_added(done: &onym_wire::mgmt::ControlParameters) -> String {
    let route = Route {
        face_id: done.face_id.unwrap_or(0),
        origin: done.origin.unwrap_or(255),
        cost: done.cost.unwrap_or(0),
        flags: done.flags.unwrap_or(0),
        expiration_period_ms: done.expiration_period_ms,
    };
    let prefix = done.name.clone().unwrap_or_default();
    format!("route-add-accepted {}", self::route(&prefix, &route))
}

fn fib(entry: &FibEntry) -> String {
    let hops = entry.next_hops.iter().map(|h| format!("faceid={} (cost={})", h.face_id, h.cost));
    format!("{} nexthops={{{}}}", entry.name, hops.collect::<Vec<_>>().join(", "))
}

fn rib(entry: &RibEntry) -> String {
    let routes = entry.routes.iter().map(of_route);
    format!("{} routes={{{}}}", entry.name, routes.collect::<Vec<_>>().join(", "))
}

pub(crate) fn strategy(choice: &StrategyChoice) -> String {
    format!("prefix={} strategy={}", choice.name, choice.strategy)
}

/// A section of `status report`: its heading, and its lines further in.
pub(crate) fn section(heading: &str, lines: impl IntoIterator<Item = String>) -> String {
    let lines: String = lines.into_iter().map(|line| format!("  {line}\n")).collect();
    format!("{heading}:\n{lines}")
}

pub(crate) fn general(s: &ForwarderStatus) -> String {
    let up = s.current_timestamp_ms.saturating_sub(s.start_timestamp_ms) / 1000;
    let mut parts = vec![
        format!("version={}", plain::line(&s.nfd_version)),
        format!("startTime={}", time(s.start_timestamp_ms)),
        format!("currentTime={}", time(s.current_timestamp_ms)),
        format!("uptime={up} seconds"),
    ];
    parts.extend(counts(s).iter().map(|(key, n)| format!("{key}={n}")));
    format!("General NFD status:\n{}", aligned("  ", 21, &parts))
}

/// The counters of the general status, as text and XML call them.
pub(super) fn counts(s: &ForwarderStatus) -> [(&'static str, u64); 13] {
    [
        ("nNameTreeEntries", s.name_tree_entries),
        ("nFibEntries", s.fib_entries),
        ("nPitEntries", s.pit_entries),
        ("nMeasurementsEntries", s.measurements_entries),
        ("nCsEntries", s.cs_entries),
        ("nInInterests", s.in_interests),
        ("nOutInterests", s.out_interests),
        ("nInData", s.in_data),
        ("nOutData", s.out_data),
        ("nInNacks", s.in_nacks),
        ("nOutNacks", s.out_nacks),
        ("nSatisfiedInterests", s.satisfied_interests),
        ("nUnsatisfiedInterests", s.unsatisfied_interests),
    ]
}

pub(crate) fn cs(info: &CsInfo) -> String {
    let parts = [
        format!("capacity={}", info.capacity),
        format!("admit={}", on(info.flags, CS_ADMIT)),
        format!("serve={}", on(info.flags, CS_SERVE)),
        format!("nEntries={}", info.cs_entries),
        format!("nHits={}", info.hits),
        format!("nMisses={}", info.misses),
    ];
    format!("CS information:\n{}", aligned("  ", 8, &parts))
}

/// `YYYYMMDDThhmmss.ffffff`, in UTC.
fn time(ms: u64) -> String {
    moment(ms).strftime("%Y%m%dT%H%M%S.%6f").to_string()
}

pub(super) fn moment(ms: u64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX)).unwrap_or_default()
}

/// All datasets of a node.
pub(crate) struct Report {
    pub(super) general: ForwarderStatus,
    pub(super) channels: Vec<String>,
    pub(super) faces: Vec<FaceStatus>,
    pub(super) fib: Vec<FibEntry>,
    pub(super) rib: Vec<RibEntry>,
    pub(super) cs: CsInfo,
    pub(super) strategies: Vec<StrategyChoice>,
}

pub(super) fn report(r: &Report) -> String {
    [
        general(&r.general),
        section("Channels", r.channels.iter().map(|uri| plain::line(uri).into_owned())),
        section("Faces", r.faces.iter().map(face)),
        section("FIB", r.fib.iter().map(fib)),
        section("RIB", r.rib.iter().map(rib)),
        cs(&r.cs),
        section("Strategy choices", r.strategies.iter().map(strategy)),
    ]
    .concat()
}

pub(super) fn fib_list(entries: &[FibEntry]) -> String {
    section("FIB", entries.iter().map(fib))
}
