//! Where the figures come from: our node tells rates; of others the datasets of NFD are compared.

use super::model::{Ailing, Face, Node, Snapshot, Tables};
use super::question::Question;
use crate::output::Context;
use crate::session;
use anyhow::Context as _;
use onym_client::blocking::Client;
use onym_client::{Error, FetchError, mgmt};
use onym_crypto::{Entropy as _, SystemEntropy};
use onym_wire::Name;
use onym_wire::mgmt::{FaceStatus, Scope};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Most faces that a node tells.
const FACES_MAX: u16 = 500;

/// The node, and what it is asked by.
pub(super) struct Source {
    client: Client,
    viewer: u32,
    asked: u64,
    kind: Kind,
}

enum Kind {
    /// Not known yet, or it was away.
    Unknown,
    Onym,
    /// Another forwarder, with what was counted the last time.
    Other {
        at: Instant,
        faces: HashMap<u64, FaceStatus>,
    },
}

impl Source {
    pub(super) fn open(cx: &Context) -> anyhow::Result<Self> {
        let mut viewer = [0; 4];
        SystemEntropy.fill(&mut viewer);
        let client = session::open(cx)?;
        Ok(Self { client, viewer: u32::from_le_bytes(viewer), asked: 0, kind: Kind::Unknown })
    }

    /// What goes on since the last question.
    pub(super) fn ask(&mut self, question: &Question) -> anyhow::Result<Snapshot> {
        if matches!(self.kind, Kind::Unknown) {
            let status = mgmt::status(&mut self.client).map_err(session::failure)?;
            self.kind = match status.nfd_version.starts_with("onym") {
                true => Kind::Onym,
                false => Kind::Other { at: Instant::now(), faces: HashMap::new() },
            };
        }
        let answer = match self.kind {
            Kind::Other { .. } => self.other(question),
            _ => self.onym(question),
        };
        if answer.is_err() {
            // Perhaps another one is there when it comes back.
            self.kind = Kind::Unknown;
        }
        answer
    }

    fn onym(&mut self, question: &Question) -> anyhow::Result<Snapshot> {
        match self.json(question) {
            // A node says so of a key that it does not know.
            Err(Error::Fetch(FetchError::ProducerNack { .. })) if question.is_why => {
                self.older(question)
            }
            json => snapshot(&json.map_err(session::failure)?, question),
        }
    }

    /// Our node of a version that does not look for what is wrong with its faces: of those that it tells
    /// it is decided here.
    fn older(&mut self, question: &Question) -> anyhow::Result<Snapshot> {
        let list = Question { faces: FACES_MAX, is_why: false, ..question.clone() };
        let json = self.json(&list).map_err(session::failure)?;
        let mut told = snapshot(&json, &list)?;
        told.ailing = Some(Ailing::of(&told.faces));
        told.faces_unseen = told.faces_count.saturating_sub(told.faces.len());
        told.faces.truncate(question.faces.into());
        Ok(told)
    }

    /// What the node tells.
    fn json(&mut self, question: &Question) -> Result<Vec<u8>, Error> {
        self.asked += 1;
        let mut text = format!(
            "viewer={}&n={}&faces={}&order={}&depth={}",
            self.viewer,
            self.asked,
            question.faces,
            question.order.word(),
            question.depth
        );
        if let Some(face) = question.face {
            text += &format!("&face={face}");
        }
        if question.is_why {
            text += "&ailing=1";
        }
        if !question.text.is_empty() {
            text += &format!("&text={}", question.text.replace('%', "%25").replace('&', "%26"));
        }
        let mut name = Name::new();
        name.append_generic("localhost").append_generic("onym").append_generic("top");
        name.append_generic(&text);
        mgmt::fetch_dataset(&mut self.client, name)
    }

    /// NFD, ndnd: rates are differences of what they counted.
    fn other(&mut self, question: &Question) -> anyhow::Result<Snapshot> {
        let client = &mut self.client;
        let status = mgmt::status(client).map_err(session::failure)?;
        let cs = mgmt::cs_info(client).map_err(session::failure)?;
        let list = mgmt::faces(client).map_err(session::failure)?;
        let Kind::Other { at, faces } = &mut self.kind else {
            anyhow::bail!("invariant: asked of another forwarder")
        };
        let now = Instant::now();
        let interval = if faces.is_empty() { Duration::ZERO } else { now - *at };
        let mut rows: Vec<Face> = list
            .iter()
            .map(|face| face_of(face, faces.get(&face.face_id).unwrap_or(face), interval))
            .collect();
        let ailing = question.is_why.then(|| Ailing::of(&rows));
        rows.retain(|row| question.face.is_none_or(|id| id == row.face) && row.has(&question.text));
        let faces_found = Some(rows.len());
        let faces_count = list.len();
        *at = now;
        *faces = list.into_iter().map(|face| (face.face_id, face)).collect();
        Face::sort(&mut rows, question.order);
        rows.truncate(question.faces.into());
        Ok(Snapshot {
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or_default(),
            node: Node {
                version: status.nfd_version,
                start_ms: status.start_timestamp_ms,
                now_ms: status.current_timestamp_ms,
                pit: Tables { entries: status.pit_entries, ..Tables::default() },
                cs: Tables {
                    entries: status.cs_entries,
                    packets_max: cs.capacity,
                    hits: cs.hits,
                    misses: cs.misses,
                    ..Tables::default()
                },
                fib: Tables { entries: status.fib_entries, ..Tables::default() },
                satisfied_interests: status.satisfied_interests,
                unsatisfied_interests: status.unsatisfied_interests,
                ..Node::default()
            },
            faces_count,
            faces_found,
            faces: rows,
            ailing,
            text: question.text.clone(),
            prefixes_hidden: Some("this forwarder does not tell them".to_owned()),
            ..Snapshot::default()
        })
    }

    /// Keeps the connection until `until`.
    pub(super) fn wait(&mut self, until: Instant) -> anyhow::Result<()> {
        self.wait_while(until, &|| true)
    }

    /// As [`Source::wait`], while `goes_on`.
    pub(super) fn wait_while(
        &mut self,
        until: Instant,
        goes_on: &dyn Fn() -> bool,
    ) -> anyhow::Result<()> {
        const STEP: Duration = Duration::from_millis(100);
        let mut over = || !goes_on() || Instant::now() >= until;
        while !over() {
            let left = until.saturating_duration_since(Instant::now());
            self.client.run(left.min(STEP), &mut over, &mut |_| {}).map_err(session::failure)?;
        }
        Ok(())
    }
}

/// What is told in an answer to `question`.
fn snapshot(json: &[u8], question: &Question) -> anyhow::Result<Snapshot> {
    let told = serde_json::from_slice(json).context("the node's answer is not understood")?;
    Ok(Snapshot { text: question.text.clone(), ..told })
}

#[allow(clippy::cast_precision_loss)]
fn face_of(now: &FaceStatus, before: &FaceStatus, interval: Duration) -> Face {
    let rate = |of: fn(&FaceStatus) -> u64| match interval.as_secs_f64() {
        0.0 => 0.0,
        seconds => of(now).saturating_sub(of(before)) as f64 / seconds,
    };
    Face {
        face: u32::try_from(now.face_id).unwrap_or(u32::MAX),
        uri: now.uri.clone(),
        local_uri: now.local_uri.clone(),
        is_local: now.face_scope == Scope::Local,
        up: true,
        in_packets: rate(|f| f.in_interests + f.in_data + f.in_nacks),
        out_packets: rate(|f| f.out_interests + f.out_data + f.out_nacks),
        in_bytes: rate(|f| f.in_bytes),
        out_bytes: rate(|f| f.out_bytes),
        in_interests: rate(|f| f.in_interests),
        in_data: rate(|f| f.in_data),
        in_nacks: rate(|f| f.in_nacks),
        out_interests: rate(|f| f.out_interests),
        out_data: rate(|f| f.out_data),
        out_nacks: rate(|f| f.out_nacks),
        total_in_bytes: now.in_bytes,
        total_out_bytes: now.out_bytes,
        ..Face::default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::why;
    use super::*;
    use onym_client::{Answer, Incoming};
    use onym_crypto::Signer;
    use onym_face::mem;
    use onym_wire::data::DataBuilder;
    use onym_wire::types;
    use std::sync::mpsc::{TryRecvError, channel};

    /// Answers as a node of before the key `ailing`: it refuses it, and tells of one of its two faces,
    /// which is down.
    fn as_an_older_node(incoming: &Incoming, out: &mut Vec<u8>) -> Answer {
        let mut name = incoming.interest().name.to_name();
        let question = incoming.interest().name.get(3).unwrap().value;
        let question = String::from_utf8(question.to_vec()).unwrap();
        let told =
            r#"{"interval_ms":0,"node":{},"faces_count":2,"faces":[{"face":300,"up":false}]}"#;
        let data = match question.contains("ailing") {
            true => DataBuilder {
                content_type: types::CONTENT_NACK,
                ..DataBuilder::new(name.as_ref(), b"ailing: there is no such key")
            },
            false => {
                assert!(question.contains("faces=500"), "{question}");
                name.append_version(1).append_segment(0);
                let last = name.as_ref().last();
                DataBuilder {
                    final_block_id: last,
                    ..DataBuilder::new(name.as_ref(), told.as_bytes())
                }
            }
        };
        Signer::digest().sign_data(&data, out).unwrap();
        Answer::Written
    }

    /// Law: what slows an older node down is found among the faces that it tells, and how many were not
    /// looked at is said.
    #[test]
    fn an_older_node_is_asked_in_its_own_words() {
        let (ours, theirs) = mem::pair(Scope::Local).unwrap();
        let (stop, stopped) = channel::<()>();
        let node = std::thread::spawn(move || {
            let mut node = Client::over(Box::new(theirs));
            node.respond(Name::new(), Box::new(as_an_older_node)).unwrap();
            let is_over = || stopped.try_recv() != Err(TryRecvError::Empty);
            let _ = node.run(Duration::from_millis(1), &mut { is_over }, &mut |_| {});
        });
        let client = Client::over(Box::new(ours));
        let mut source = Source { client, viewer: 1, asked: 0, kind: Kind::Onym };
        let told = source.ask(&Question::why()).unwrap();
        let found = why::since(&told, None).into_iter().map(|reason| reason.rule);
        assert_eq!(found.collect::<Vec<_>>(), ["face_down", "faces_unseen"]);
        assert!(told.faces.is_empty(), "none was asked for");
        drop(stop);
        node.join().unwrap();
    }
}
