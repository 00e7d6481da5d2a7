//! A node on a Unix socket whose every text is hostile.

use onym_wire::data::DataBuilder;
use onym_wire::interest::Interest;
use onym_wire::lp::LpPacket;
use onym_wire::mgmt::{
    Block as _, ChannelStatus, ControlParameters, ControlResponse, CsInfo, FaceStatus, FibEntry,
    ForwarderStatus, LinkType, NextHopRecord, Persistency, RibEntry, Route, Scope, StrategyChoice,
};
use onym_wire::push::Status;
use onym_wire::push::app::{Message, kind};
use onym_wire::{Name, types};
use serde_json::{Value, json as value};
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A window title, colours, a cleared screen, C1 control, text that reads backwards, a forged line.
pub(crate) const HOSTILE: &str =
    "a\u{1b}]0;owned\u{7}b\u{1b}[2J\u{1b}[31m\u{9b}31m\u{202e}c\u{7f}\r\nforged line\u{2028}";

/// What the node says to commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Grants,
    Refuses,
}

/// JSON with hostile texts at every place that some command prints.
pub(crate) fn json() -> Value {
    let list = value!([HOSTILE]);
    let hop = value!({ "face": 1, "cost": 0, "uri": HOSTILE, "up": false, "barred": HOSTILE });
    let tree = value!({
        "publisher": HOSTILE, "links": [1], "hops": 1, "route": { "form": "flat", "table": 0,
        "ones": 1, "filter": HOSTILE }, "path": [{ "number": 1, "from": HOSTILE, "to": HOSTILE }],
        "beside": 1, "strays": [HOSTILE],
    });
    value!({
        "sentence": HOSTILE, "verdict": HOSTILE, "decides": HOSTILE, "scope": HOSTILE, "shard": 0,
        "cached": false, "pending": null, "fib_prefix": HOSTILE, "next_hops": [hop], "chosen": [],
        "strategy": HOSTILE, "strategy_prefix": HOSTILE, "discovery": { "sentence": HOSTILE },
        "filter": HOSTILE, "lines": [{ "seq": 1, "text": HOSTILE }],
        "dropped": { HOSTILE: 1 }, "unsent": { HOSTILE: 1 }, "verdicts": { HOSTILE: 1 },
        "publications": { HOSTILE: 1 }, "enabled": true, "manager": true, "node": HOSTILE,
        "roles": list, "homes": [{ "roles": list, "node": HOSTILE }],
        "links": [{ "uri": HOSTILE, "neighbour": HOSTILE, "number": 1, "cost": 1, "from": HOSTILE,
                    "to": HOSTILE, "state": HOSTILE, "transport": HOSTILE }],
        "apps": [], "vertices": [{ "scope": true, "ids": list, "strategy": HOSTILE,
            "publishers": list, "subscribers": list }],
        "nodes": [{ "node": HOSTILE, "inside": 1, "roles": list,
            "links": [{ "to": HOSTILE, "number": 1, "cost": 1 }] }],
        "domains": [{ "domain": HOSTILE, "path": list }], "managers": list, "trees_made": 1,
        "matches": [{ "ids": list, "subscribers": list, "trees": [tree] }],
        "rendezvous": HOSTILE, "graph": { "publishers": list, "subscribers": list },
        "network": HOSTILE, "driver": HOSTILE, "settled": false, "steps": list, "changed": true,
        "took_ms": 1, "functions": { HOSTILE: { "kind": HOSTILE, "state": HOSTILE } },
        "registered": { HOSTILE: list }, "text": HOSTILE, "kind": HOSTILE,
        "cs": { "disk": { "folder": HOSTILE, "packets": 1, "packets_max": 1, "bytes": 1,
            "bytes_max": 1, "hits": 1, "misses": 1, "late": 1, "passed": 1, "offered": 1,
            "left_out": 1, "kept": 1, "refused": 1, "gone": 1, "damaged": 1,
            "trouble": HOSTILE } },
    })
}

fn face() -> FaceStatus {
    FaceStatus {
        face_id: 263,
        uri: HOSTILE.into(),
        local_uri: HOSTILE.into(),
        expiration_period_ms: None,
        face_scope: Scope::NonLocal,
        face_persistency: Persistency::Persistent,
        link_type: LinkType::PointToPoint,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold: None,
        mtu: None,
        in_interests: 0,
        in_data: 0,
        in_nacks: 0,
        out_interests: 0,
        out_data: 0,
        out_nacks: 0,
        in_bytes: 0,
        out_bytes: 0,
        flags: 0,
    }
}

fn hostile_name() -> Name {
    let mut name = Name::new();
    name.append_generic(HOSTILE.as_bytes());
    name
}

fn dataset(path: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match path {
        "status/general" => ForwarderStatus {
            nfd_version: format!("onym {HOSTILE}"),
            start_timestamp_ms: 0,
            current_timestamp_ms: 0,
            name_tree_entries: 0,
            fib_entries: 0,
            pit_entries: 0,
            measurements_entries: 0,
            cs_entries: 0,
            in_interests: 0,
            in_data: 0,
            in_nacks: 0,
            out_interests: 0,
            out_data: 0,
            out_nacks: 0,
            satisfied_interests: 0,
            unsatisfied_interests: 0,
        }
        .write_value(&mut out),
        "faces/list" | "faces/query" => face().write(&mut out),
        "faces/channels" => ChannelStatus { local_uri: HOSTILE.into() }.write(&mut out),
        "fib/list" => {
            let next_hops = vec![NextHopRecord { face_id: 263, cost: 0 }];
            FibEntry { name: hostile_name(), next_hops }.write(&mut out);
        }
        "rib/list" => {
            let route =
                Route { face_id: 263, origin: 255, cost: 0, flags: 0, expiration_period_ms: None };
            RibEntry { name: "/a".parse().unwrap(), routes: vec![route.clone()] }.write(&mut out);
            RibEntry { name: hostile_name(), routes: vec![route] }.write(&mut out);
        }
        "strategy-choice/list" => {
            StrategyChoice { name: Name::new(), strategy: hostile_name() }.write(&mut out)
        }
        "cs/info" => {
            CsInfo { capacity: 1, flags: 0, cs_entries: 0, hits: 0, misses: 0 }.write(&mut out)
        }
        _ => return None,
    }
    Some(out)
}

fn response(mood: Mood) -> Vec<u8> {
    let hostile = || Some(HOSTILE.to_owned());
    let mut out = Vec::new();
    let response = match mood {
        Mood::Grants => ControlResponse {
            code: 200,
            text: HOSTILE.into(),
            body: Some(ControlParameters {
                name: Some("/a".parse().unwrap()),
                face_id: Some(263),
                uri: hostile(),
                local_uri: hostile(),
                strategy: Some(hostile_name()),
                origin: Some(255),
                cost: Some(0),
                count: Some(0),
                flags: Some(0),
                ..ControlParameters::default()
            }),
        },
        Mood::Refuses => ControlResponse { code: 409, text: HOSTILE.into(), body: None },
    };
    response.write(&mut out);
    out
}

/// The Data that answers `interest`.
fn answer(interest: &Interest<'_>, mood: Mood) -> Option<Vec<u8>> {
    let word = |i: usize| {
        let c = interest.name.get(i);
        c.map(|c| String::from_utf8_lossy(c.value).into_owned()).unwrap_or_default()
    };
    let mut name = interest.name.to_name();
    let mut is_segmented = true;
    let content = match (word(0).as_str(), word(1).as_str()) {
        ("localhost", "onym") if word(2) == "log" && word(3) == "set" => {
            is_segmented = false;
            response(mood)
        }
        ("localhost", "onym") => json().to_string().into_bytes(),
        ("localhost", "nfd") => match dataset(&format!("{}/{}", word(2), word(3))) {
            Some(dataset) => dataset,
            None => {
                is_segmented = false;
                response(mood)
            }
        },
        _ if interest.name.components().any(|c| c.is_keyword(b"metadata")) => return None,
        _ => HOSTILE.as_bytes().to_vec(),
    };
    let mut last = Name::new();
    last.append_segment(0);
    if is_segmented && interest.can_be_prefix {
        name.append_version(1);
        name.append_segment(0);
    }
    let data = DataBuilder {
        final_block_id: last.as_ref().last().filter(|_| is_segmented),
        ..DataBuilder::new(name.as_ref(), &content)
    };
    let mut out = Vec::new();
    onym_crypto::signer::write_digest_data(&data, &mut out);
    Some(out)
}

/// What a push application hears.
fn push(message: &Message<'_>, mood: Mood) -> Vec<u8> {
    if message.kind == kind::REGISTER {
        return Message { text: HOSTILE.as_bytes(), ..Message::new(kind::REGISTERED, 0) }.octets();
    }
    let status = if mood == Mood::Grants { Status::OK } else { Status::FULL };
    let answer = Message {
        status: Some(status),
        text: HOSTILE.as_bytes(),
        ..Message::new(kind::STATUS, message.tag)
    };
    answer.octets()
}

fn talk(mut stream: UnixStream, mood: Mood) -> Option<()> {
    let mut buffer = Vec::new();
    let mut chunk = [0; 64 << 10];
    loop {
        let n = stream.read(&mut chunk).ok().filter(|n| *n > 0)?;
        buffer.extend_from_slice(&chunk[..n]);
        while let Ok((element, rest)) = onym_wire::tlv::Element::split(&buffer) {
            let used = buffer.len() - rest.len();
            let whole = &buffer[..used];
            let answer = match element.typ {
                types::INTEREST => answer(&Interest::parse(whole).ok()?, mood),
                types::LP_PACKET => {
                    let packet = LpPacket::parse(whole).ok()?;
                    packet
                        .fragment
                        .and_then(|f| Interest::parse(f).ok())
                        .and_then(|i| answer(&i, mood))
                }
                types::PUSH_APP => Message::parse(whole).ok().map(|m| push(&m, mood)),
                _ => None,
            };
            if let Some(answer) = answer {
                stream.write_all(&answer).ok()?;
            }
            buffer.drain(..used);
        }
    }
}

/// The node; it listens until the test ends.
pub(crate) struct Node(Arc<AtomicBool>);

impl Node {
    pub(crate) fn start(path: &Path, mood: Mood) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&over);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                thread::spawn(move || talk(stream, mood));
            }
        });
        Self(over)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
