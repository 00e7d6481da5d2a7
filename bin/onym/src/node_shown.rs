//! The state of a node for others: what it says of itself, and how it is asked (spec/registry.md,
//! `/NODE/32=status`).

use crate::exit::{Exit, Failure};
use crate::session;
use anyhow::Context as _;
use onym_client::blocking::Client;
use onym_client::{Event, Unanswered, mgmt};
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_crypto::{Freshness, KeyStore, Signer};
use onym_wire::mgmt::{FaceStatus, Scope};
use onym_wire::name::{Component, Name};
use onym_wire::{InterestBuilder, NackReason};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Most links, and most neighbours.
const LISTED_MAX: usize = 32;
/// Most words of verdicts.
const WORDS_MAX: usize = 16;
/// Most octets of what is told: one packet.
const TOLD_MAX: usize = 7000;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(4);

/// A node's state as others see it. What an answer has beyond it is left out, what it lacks is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Shown {
    node: String,
    version: String,
    start_ms: u64,
    now_ms: u64,
    faces: u64,
    faces_max: u64,
    routes: u64,
    pit: Table,
    cs: Table,
    satisfied_interests: u64,
    unsatisfied_interests: u64,
    in_bytes: u64,
    out_bytes: u64,
    dropped: BTreeMap<String, u64>,
    links: Vec<Link>,
    links_left_out: u64,
    neighbours: Vec<Neighbour>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Table {
    entries: u64,
    entries_max: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    hits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    misses: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Link {
    face: u64,
    remote: String,
    in_packets: u64,
    out_packets: u64,
    in_bytes: u64,
    out_bytes: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Neighbour {
    router: String,
    cost: u64,
    usable: bool,
}

/// Where the node called `node` answers.
pub(crate) fn place(node: &Name) -> Name {
    node.clone().with(Component::keyword(b"status"))
}

impl Shown {
    /// The state of the node behind `client`, which is called `node`; `view` is what its router sees,
    /// null where it has none.
    pub(crate) fn of(client: &mut Client, node: &Name, view: &Value) -> anyhow::Result<Self> {
        let status = session::node_status(client)?;
        let faces = mgmt::faces(client).map_err(session::failure)?;
        Ok(Self::made(node, &status, &faces, view))
    }

    fn made(node: &Name, status: &Value, faces: &[FaceStatus], view: &Value) -> Self {
        let mut links: Vec<Link> =
            faces.iter().filter(|face| face.face_scope == Scope::NonLocal).map(Link::of).collect();
        links.sort_by_key(|link| std::cmp::Reverse(link.in_bytes.saturating_add(link.out_bytes)));
        let all = links.len();
        links.truncate(LISTED_MAX);
        let mut dropped: Vec<(&String, u64)> = ["dropped", "unsent", "frames_dropped"]
            .iter()
            .filter_map(|member| status[*member].as_object())
            .flat_map(|words| words.iter().map(|(word, count)| (word, number(count))))
            .collect();
        dropped.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let neighbours = view["neighbours"].as_array().into_iter().flatten().map(|n| Neighbour {
            router: n["router"].as_str().unwrap_or_default().to_owned(),
            cost: number(&n["cost"]),
            usable: n["usable"] == true,
        });
        let table = |of: &Value, max: &str| Table {
            entries: number(&of["entries"]),
            entries_max: number(&of[max]),
            bytes: number(&of["bytes"]),
            hits: of["hits"].as_u64(),
            misses: of["misses"].as_u64(),
        };
        Self {
            node: node.to_string(),
            version: status["version"].as_str().unwrap_or_default().to_owned(),
            start_ms: number(&status["start_ms"]),
            now_ms: number(&status["now_ms"]),
            faces: number(&status["faces"]),
            faces_max: number(&status["faces_max"]),
            routes: number(&status["rib"]["routes"]),
            pit: table(&status["pit"], "entries_max"),
            cs: table(&status["cs"], "packets_max"),
            satisfied_interests: number(&status["satisfied_interests"]),
            unsatisfied_interests: number(&status["unsatisfied_interests"]),
            in_bytes: number(&status["in_bytes"]),
            out_bytes: number(&status["out_bytes"]),
            dropped: dropped
                .into_iter()
                .take(WORDS_MAX)
                .map(|(word, count)| (word.clone(), count))
                .collect(),
            links_left_out: (all - links.len()) as u64,
            links,
            neighbours: neighbours.take(LISTED_MAX).collect(),
        }
    }

    /// What another node told.
    fn parse(content: &[u8]) -> serde_json::Result<Self> {
        // A structure may be written as a list, too; here it is one by the names of its members.
        let members: serde_json::Map<String, Value> = serde_json::from_slice(content)?;
        serde_json::from_value(members.into())
    }

    /// It as it goes into a packet: of long names and addresses there are as many as have room.
    pub(crate) fn into_content(mut self) -> Vec<u8> {
        loop {
            let content = serde_json::to_vec(&self).unwrap_or_default();
            if content.len() <= TOLD_MAX {
                return content;
            }
            if self.links.pop().is_some() {
                self.links_left_out += 1;
            } else if self.neighbours.pop().is_none() {
                return Vec::new();
            }
        }
    }

    /// It in a few lines.
    pub(crate) fn text(&self) -> String {
        use std::fmt::Write as _;
        let Self { node, version, faces, faces_max, routes, pit, cs, .. } = self;
        let mut out = format!(
            "{node} onym {version}, up {} s\n\
             {faces} of {faces_max} faces, {routes} routes, {} pending of {}, {} cached of {}\n\
             {} Interests answered, {} not\n",
            self.now_ms.saturating_sub(self.start_ms) / 1000,
            pit.entries,
            pit.entries_max,
            cs.entries,
            cs.entries_max,
            self.satisfied_interests,
            self.unsatisfied_interests,
        );
        for (word, count) in &self.dropped {
            let _ = writeln!(out, "dropped {word} {count}");
        }
        for link in &self.links {
            let (inward, outward) = (link.in_packets, link.out_packets);
            let _ = writeln!(out, "face {} {} in {inward} out {outward}", link.face, link.remote);
        }
        if self.links_left_out > 0 {
            let _ = writeln!(out, "and {} more faces", self.links_left_out);
        }
        for n in &self.neighbours {
            let state = if n.usable { "" } else { ", does not hear it" };
            let _ = writeln!(out, "neighbour {} cost {}{state}", n.router, n.cost);
        }
        out
    }
}

fn number(of: &Value) -> u64 {
    of.as_u64().unwrap_or(0)
}

impl Link {
    fn of(face: &FaceStatus) -> Self {
        Self {
            face: face.face_id,
            remote: face.uri.clone(),
            in_packets: face.in_interests + face.in_data + face.in_nacks,
            out_packets: face.out_interests + face.out_data + face.out_nacks,
            in_bytes: face.in_bytes,
            out_bytes: face.out_bytes,
        }
    }
}

/// What the node's router sees; null when there is none.
pub(crate) fn router_view(client: &mut Client) -> Value {
    let mut name = Name::new();
    name.append_generic("localhost").append_generic("nlsr").append_generic("view");
    let content = mgmt::fetch_dataset(client, name);
    content.ok().and_then(|content| serde_json::from_slice(&content).ok()).unwrap_or_default()
}

// --- asking

/// What signs questions: the key that is named, or the default one of the key store.
pub(crate) fn signer(key: Option<&Name>) -> anyhow::Result<Signer> {
    if key.is_some() {
        return session::signer(key);
    }
    let store = KeyStore::of_user().context("cannot open the key store")?;
    store.signer(None).map_err(|error| {
        Failure::new(Exit::Failed, "there is no key to sign the question with")
            .why(error)
            .next("make one with `onym key new IDENTITY`, and have its certificate in `management.shown_to` of the node")
            .into()
    })
}

/// The state of the node called `node`, asked for over the network; the question is signed by
/// `signer`. Nothing proves who answered.
pub(crate) fn ask(client: &mut Client, node: &Name, signer: &Signer) -> anyhow::Result<Shown> {
    let name = place(node);
    let question = InterestBuilder {
        must_be_fresh: true,
        nonce: Some([0; 4]),
        lifetime_ms: Some(u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX)),
        ..InterestBuilder::new(name.as_ref())
    };
    let freshness = Freshness {
        nonce: Some(random_u64().to_be_bytes()),
        time_ms: Some(unix_now_ms()),
        seq: None,
    };
    let mut wire = Vec::new();
    signer.sign_interest(&question, &[], freshness, &mut wire).context("cannot sign")?;
    let now = client.now();
    let id = client.endpoint().request_encoded(now, wire)?;
    let answer = loop {
        let step = client.step(Instant::now() + PATIENCE).map_err(session::failure)?;
        if let Some(Event::Answered(answered, answer)) = step
            && answered == id
        {
            break answer;
        }
    };
    let packet = answer.map_err(|why| unanswered(node, why))?;
    Shown::parse(packet.data().content).map_err(|error| {
        Failure::new(Exit::Failed, format!("what came from {node} is no state of a node"))
            .why(error)
            .into()
    })
}

fn unanswered(node: &Name, why: Unanswered) -> anyhow::Error {
    let failure = |exit, what: String, next: &str| -> anyhow::Error {
        Failure::new(exit, what).next(next).into()
    };
    match why {
        Unanswered::Nack(NackReason::NO_ROUTE) => failure(
            Exit::NotFound,
            format!("there is no way to {node}, or it shows its state to nobody"),
            "`management.shown_to` there says to whom; its router announces the name",
        ),
        Unanswered::Nack(_) => failure(
            Exit::Refused,
            format!("{node} does not show its state to this key"),
            "the certificate of the key belongs into `management.shown_to` there; clocks may differ by two minutes",
        ),
        Unanswered::Disconnected => failure(
            Exit::NoNode,
            format!("{node}: {why}"),
            "look at the node's log; start it again",
        ),
        _ => failure(
            Exit::NotFound,
            format!("{node} does not answer"),
            "see `onym trace` for where the way to it ends",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn face(id: u64, remote: &str, scope: Scope) -> FaceStatus {
        let uri = remote.to_owned();
        FaceStatus { face_id: id, uri, face_scope: scope, in_bytes: id, ..FaceStatus::default() }
    }

    #[test]
    fn what_is_told_fits_a_packet_whatever_the_node_has() {
        let long = "x".repeat(400);
        let mut faces: Vec<FaceStatus> =
            (0..1000).map(|i| face(i, &format!("udp4://{long}:{i}"), Scope::NonLocal)).collect();
        faces.push(face(5000, "fd://20", Scope::Local));
        let neighbours: Vec<Value> = (0..1000)
            .map(|i| json!({ "router": format!("/net/{long}{i}"), "cost": i, "usable": true }))
            .collect();
        let dropped: Value = (0..100).map(|i| (format!("word_{i}"), Value::from(i))).collect();
        let status = json!({ "version": "1", "faces": 1001, "dropped": dropped });
        let node: Name = "/net/a".parse().unwrap();
        let view = json!({ "neighbours": neighbours });
        let shown = Shown::made(&node, &status, &faces, &view);
        assert_eq!((shown.links.len(), shown.links_left_out), (LISTED_MAX, 1000 - 32));
        assert_eq!(shown.links[0].face, 999, "the busiest first, and no application");
        assert_eq!((shown.dropped.len(), shown.dropped["word_99"]), (WORDS_MAX, 99));
        let content = shown.into_content();
        assert!(!content.is_empty() && content.len() <= TOLD_MAX, "{}", content.len());
        let told = Shown::parse(&content).unwrap();
        assert_eq!(told.links.len() as u64 + told.links_left_out, 1000);
    }

    #[test]
    fn an_answer_with_more_or_less_is_taken_and_one_of_other_kinds_is_not() {
        let told = Shown::parse(br#"{"node":"/a","news":[[1]]}"#).unwrap();
        assert_eq!(told, Shown { node: "/a".into(), ..Shown::default() });
        for wrong in [r#"{"node":7}"#, r#"{"links":{"a":1}}"#, "[]", "<b>", r#"{"faces":-1}"#] {
            assert!(Shown::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
