//! `status report xml`: the document of NFD's nfd-status.xsd.

use super::text::{Report, moment};
use onym_wire::mgmt::{
    CS_ADMIT, CS_SERVE, FACE_CONGESTION_MARKING, FACE_LOCAL_FIELDS, FACE_RELIABILITY, FaceStatus,
    ROUTE_CAPTURE, ROUTE_CHILD_INHERIT, Route,
};
use std::fmt::Display;

/// An element with what is in it.
fn element(name: &str, inner: &str) -> String {
    format!("<{name}>{inner}</{name}>")
}

/// An element with text, which may come from anybody.
fn leaf(name: &str, text: impl Display) -> String {
    let mut safe = String::new();
    for c in text.to_string().chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&apos;"),
            // XML 1.0 has no way to write other control characters.
            c if c.is_control() && !matches!(c, '\t' | '\n' | '\r') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    element(name, &safe)
}

/// An element without content, when the bit is set.
fn flag(name: &str, flags: u64, bit: u64) -> String {
    if flags & bit != 0 { format!("<{name}/>") } else { String::new() }
}

/// `xs:duration`, to the millisecond where there are any.
fn period(ms: u64) -> String {
    match ms % 1000 {
        0 => format!("PT{}S", ms / 1000),
        rest => format!("PT{}.{rest:03}S", ms / 1000),
    }
}

fn list<T>(name: &str, items: &[T], each: impl Fn(&T) -> String) -> String {
    element(name, &items.iter().map(each).collect::<String>())
}

pub(super) fn report(r: &Report) -> String {
    let choice = |name: &dyn Display, strategy: &dyn Display| {
        let inner = leaf("namespace", name) + &element("strategy", &leaf("name", strategy));
        element("strategyChoice", &inner)
    };
    let fib = |e: &onym_wire::mgmt::FibEntry| {
        let hop = |h: &onym_wire::mgmt::NextHopRecord| {
            element("nextHop", &(leaf("faceId", h.face_id) + &leaf("cost", h.cost)))
        };
        element("fibEntry", &(leaf("prefix", &e.name) + &list("nextHops", &e.next_hops, hop)))
    };
    let rib = |e: &onym_wire::mgmt::RibEntry| {
        element("ribEntry", &(leaf("prefix", &e.name) + &list("routes", &e.routes, route)))
    };
    let inner = [
        general(r),
        list("channels", &r.channels, |uri| element("channel", &leaf("localUri", uri))),
        list("faces", &r.faces, face),
        list("fib", &r.fib, fib),
        list("rib", &r.rib, rib),
        cs(r),
        list("strategyChoices", &r.strategies, |s| choice(&s.name, &s.strategy)),
    ];
    format!(
        "<?xml version=\"1.0\"?>\n<nfdStatus xmlns=\"ndn:/localhost/nfd/status/1\">{}</nfdStatus>\n",
        inner.concat()
    )
}

fn general(r: &Report) -> String {
    let s = &r.general;
    let up = s.current_timestamp_ms.saturating_sub(s.start_timestamp_ms);
    let time = |ms| moment(ms).strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string();
    let mut inner = leaf("version", &s.nfd_version)
        + &leaf("startTime", time(s.start_timestamp_ms))
        + &leaf("currentTime", time(s.current_timestamp_ms))
        + &leaf("uptime", period(up / 1000 * 1000));
    let of_packets = |key: &str| key.starts_with("nIn") || key.starts_with("nOut");
    let (tables, ended): (Vec<_>, Vec<_>) = super::text::counts(s)
        .into_iter()
        .filter(|(key, _)| !of_packets(key))
        .partition(|(key, _)| key.ends_with("Entries"));
    inner.extend(tables.iter().map(|(key, n)| leaf(key, n)));
    inner += &packets(
        [s.in_interests, s.in_data, s.in_nacks],
        [s.out_interests, s.out_data, s.out_nacks],
    );
    inner.extend(ended.iter().map(|(key, n)| leaf(key, n)));
    element("generalStatus", &inner)
}

fn packets(came: [u64; 3], went: [u64; 3]) -> String {
    let three = |[interests, data, nacks]: [u64; 3]| {
        leaf("nInterests", interests) + &leaf("nData", data) + &leaf("nNacks", nacks)
    };
    let inner =
        element("incomingPackets", &three(came)) + &element("outgoingPackets", &three(went));
    element("packetCounters", &inner)
}

fn face(f: &FaceStatus) -> String {
    let expires = f.expiration_period_ms.map(|ms| leaf("expirationPeriod", period(ms)));
    let marking = f.base_congestion_marking_interval_ns;
    let marking = marking.map(|ns| leaf("baseMarkingInterval", period(ns / 1_000_000)));
    let threshold = f.default_congestion_threshold.map(|n| leaf("defaultThreshold", n));
    let congestion = marking.unwrap_or_default() + &threshold.unwrap_or_default();
    let flags = flag("localFieldsEnabled", f.flags, FACE_LOCAL_FIELDS)
        + &flag("lpReliabilityEnabled", f.flags, FACE_RELIABILITY)
        + &flag("congestionMarkingEnabled", f.flags, FACE_CONGESTION_MARKING);
    let bytes = leaf("incomingBytes", f.in_bytes) + &leaf("outgoingBytes", f.out_bytes);
    let inner = [
        leaf("faceId", f.face_id),
        leaf("remoteUri", &f.uri),
        leaf("localUri", &f.local_uri),
        expires.unwrap_or_default(),
        leaf("faceScope", f.face_scope.word()),
        leaf("facePersistency", f.face_persistency.word()),
        leaf("linkType", f.link_type.word()),
        if congestion.is_empty() {
            "<congestion/>".into()
        } else {
            element("congestion", &congestion)
        },
        f.mtu.map(|mtu| leaf("mtu", mtu)).unwrap_or_default(),
        if flags.is_empty() { "<flags/>".into() } else { element("flags", &flags) },
        packets(
            [f.in_interests, f.in_data, f.in_nacks],
            [f.out_interests, f.out_data, f.out_nacks],
        ),
        element("byteCounters", &bytes),
    ];
    element("face", &inner.concat())
}

fn route(r: &Route) -> String {
    let flags = flag("childInherit", r.flags, ROUTE_CHILD_INHERIT)
        + &flag("ribCapture", r.flags, ROUTE_CAPTURE);
    let inner = [
        leaf("faceId", r.face_id),
        leaf("origin", crate::node_words::origin(r.origin)),
        leaf("cost", r.cost),
        if flags.is_empty() { "<flags/>".into() } else { element("flags", &flags) },
        r.expiration_period_ms.map(|ms| leaf("expirationPeriod", period(ms))).unwrap_or_default(),
    ];
    element("route", &inner.concat())
}

fn cs(r: &Report) -> String {
    let inner = [
        leaf("capacity", r.cs.capacity),
        flag("admitEnabled", r.cs.flags, CS_ADMIT),
        flag("serveEnabled", r.cs.flags, CS_SERVE),
        leaf("nEntries", r.cs.cs_entries),
        leaf("nHits", r.cs.hits),
        leaf("nMisses", r.cs.misses),
    ];
    element("cs", &inner.concat())
}
