//! Puts together what the shards recorded for `onym dump` and `onym top`.

use super::status::Survey;
use super::viewers::{Counted, PREFIXES_MAX, PrefixShown, Rates};
use super::{Io, Plane, remember};
use crate::mgmt::host::FaceCounters;
use crate::mgmt::look::{DumpQuestion, FaceOrder, Sight, TopQuestion};
use crate::shard::{WatchOrder, Watched};
use onym_engine::clock::unix_ms;
use onym_tables::FaceId;
use onym_watch::{Condition, record};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;

/// A face as a viewer is told. Rates are a second's.
#[derive(Debug, Serialize)]
struct FaceRow {
    face: u32,
    uri: String,
    local_uri: String,
    is_local: bool,
    up: bool,
    in_packets: f64,
    out_packets: f64,
    in_bytes: f64,
    out_bytes: f64,
    in_interests: f64,
    in_data: f64,
    in_nacks: f64,
    out_interests: f64,
    out_data: f64,
    out_nacks: f64,
    /// Not sent: the queue was full, the face was down, the packet did not fit.
    losses: f64,
    /// Marked for congestion.
    marked: f64,
    /// Sent again by the link's reliability.
    repeated: f64,
    queue_bytes: usize,
    queue_bytes_max: usize,
    rtt_us: Option<u64>,
    total_in_bytes: u64,
    total_out_bytes: u64,
    total_losses: u64,
}

/// Faces for which a rule holds, the worst ones as rows.
#[derive(Debug, Serialize)]
struct AilingShown {
    rule: &'static str,
    faces: usize,
    worst: Vec<FaceRow>,
}

#[derive(Debug, Serialize)]
struct PushShown {
    sent: u64,
    delivered: u64,
    lost: u64,
    missed: u64,
    backlog: u64,
    applications: u64,
    vertices: u64,
}

#[derive(Debug, Serialize)]
struct Top {
    /// Since the viewer asked last; 0 at its first question, then there are no rates.
    interval_ms: u64,
    /// `/localhost/onym/status/node`.
    node: Value,
    faces_count: usize,
    /// Faces that the question is about, where these are more than are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    faces_found: Option<usize>,
    faces: Vec<FaceRow>,
    /// Those of all faces with which something is wrong, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    ailing: Option<Vec<AilingShown>>,
    /// The same of prefixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefixes_found: Option<usize>,
    prefixes: Vec<PrefixShown>,
    /// Why there are no prefixes.
    prefixes_hidden: Option<String>,
    push: Option<PushShown>,
}

/// The control plane looked at by viewers.
pub(super) struct Onlooker<'a> {
    pub(super) plane: &'a mut Plane,
    pub(super) io: &'a mut Io,
}

impl Onlooker<'_> {
    /// `/localhost/onym/dump`.
    ///
    /// # Errors
    /// A sentence: there are too many viewers.
    pub(super) fn dump(&mut self, question: &DumpQuestion) -> Result<Vec<u8>, String> {
        let (now, viewer) = (self.io.now, question.viewer);
        let Plane { shards, watches, .. } = &mut *self.plane;
        watches.asked(now);
        let unix_offset = *watches
            .unix_offset
            .get_or_insert_with(|| (unix_ms() * 1_000_000).saturating_sub(now.0));
        let filter = &question.filter;
        let each = shards.ask_all(|reply| {
            let filter = filter.clone();
            WatchOrder::Take { viewer, filter, unix_offset, reply }
        });
        let is_refused = each.iter().any(Option::is_none);
        if question.is_last || is_refused {
            shards.tell_all(|| WatchOrder::End { viewer });
        }
        if is_refused {
            let max = onym_watch::CAPTURES_MAX;
            return Err(format!("{max} others watch already; wait until one of them ends"));
        }
        let missed = each.iter().flatten().map(|taken| taken.missed).sum();
        let records = each.into_iter().flatten().map(|taken| taken.records);
        let mut batch = record::merge(records.collect());
        record::write_missed(&mut batch, missed);
        Ok(batch)
    }

    /// `/localhost/onym/top`.
    ///
    /// # Errors
    /// A sentence: there are too many viewers.
    pub(super) fn top(&mut self, question: &TopQuestion, sight: Sight) -> Result<String, String> {
        let now = self.io.now;
        self.plane.watches.asked(now);
        let (seed, depth) = (self.plane.watches.seed, question.depth);
        // Whoever may not see names has no packet looked at either: that costs every face.
        let watched = match sight {
            Sight::Names => {
                self.plane.shards.ask_all(|reply| WatchOrder::Traffic { seed, depth, reply })
            }
            Sight::Counts { .. } => Vec::new(),
        };
        let counted = self.counted();
        let viewer = self.plane.watches.viewer(now, question.viewer, &sight)?;
        let interval = now.since(viewer.asked);
        viewer.asked = now;
        let before = std::mem::replace(&mut viewer.faces, counted);
        let rates = Rates { seconds: interval.as_secs_f64() };
        let (mut prefixes, prefixes_hidden) = match sight {
            Sight::Names => (viewer.prefixes(rates, &watched), None),
            Sight::Counts { why } => (Vec::new(), Some(why)),
        };
        if !question.text.is_empty() {
            prefixes.retain(|row| row.prefix.contains(&question.text));
        }
        let prefixes_found = Some(prefixes.len()).filter(|found| *found > PREFIXES_MAX);
        prefixes.truncate(PREFIXES_MAX);
        let mut after: Vec<(FaceId, Counted)> =
            viewer.faces.iter().map(|(id, c)| (*id, *c)).collect();
        let faces_count = after.len();
        if question.is_why {
            // Of faces that are equally bad the oldest are told.
            after.sort_unstable_by_key(|(id, _)| *id);
        }
        let trips = round_trips(&watched);
        let rows = Rows { onlooker: self, rates, before: &before, trips: &trips };
        let ailing = question.is_why.then(|| rows.ailing(&after));
        if question.face.is_some() || !question.text.is_empty() {
            after.retain(|(id, _)| self.is_asked(question, *id));
        }
        let faces_found = Some(after.len()).filter(|found| *found > question.faces);
        let faces = rows.first(question, after);
        let mut survey = Survey { plane: self.plane, io: self.io };
        let node = survey.value();
        let push = survey.snapshot(crate::push::ANSWER_MAX).push.map(|push| PushShown {
            sent: push.publications[0],
            delivered: push.publications[1],
            lost: push.publications[2],
            missed: push.dropped.missed,
            backlog: push.dropped.backlog,
            applications: push.apps,
            vertices: push.vertices,
        });
        let interval_ms = u64::try_from(interval.as_millis()).unwrap_or_default();
        let top = Top {
            interval_ms,
            node,
            faces_count,
            faces_found,
            faces,
            ailing,
            prefixes_found,
            prefixes,
            prefixes_hidden,
            push,
        };
        serde_json::to_string(&top).map_err(|e| e.to_string())
    }

    fn counted(&self) -> HashMap<FaceId, Counted> {
        let faces = self.plane.faces.iter().map(|record| record.id);
        remember::counted(&self.plane.shards, faces)
    }

    /// Whether the question is about a face.
    fn is_asked(&self, question: &TopQuestion, id: FaceId) -> bool {
        let text = &question.text;
        let has_text = || {
            let record = self.plane.faces.get(id);
            record.is_some_and(|r| r.remote.contains(text) || r.local.contains(text))
                || id.0.to_string() == *text
        };
        question.face.is_none_or(|face| face == id) && (text.is_empty() || has_text())
    }
}

/// How faces become rows.
struct Rows<'a> {
    onlooker: &'a Onlooker<'a>,
    rates: Rates,
    before: &'a HashMap<FaceId, Counted>,
    trips: &'a HashMap<FaceId, Duration>,
}

impl Rows<'_> {
    /// What a face had counted; one that came since began with nothing.
    fn past(&self, id: FaceId) -> Counted {
        self.before.get(&id).copied().unwrap_or_default()
    }

    /// What is wrong with which of all faces.
    fn ailing(&self, after: &[(FaceId, Counted)]) -> Vec<AilingShown> {
        let conditions = after.iter().filter_map(|face| {
            let (past, now) = (self.past(face.0), &face.1);
            let rate = |of: fn(&Counted) -> u64| self.rates.of(of(&past), of(now));
            let record = self.onlooker.plane.faces.get(face.0)?;
            let condition = Condition {
                is_up: record.up,
                queue_bytes: now.owner.queued as u64,
                queue_bytes_max: record.queue_bytes_max as u64,
                losses: rate(Counted::losses),
                asked: rate(|c| c.packets.out_interests),
                answered: rate(|c| c.packets.in_data + c.packets.in_nacks),
            };
            Some((face, condition))
        });
        let found = onym_watch::ailing(conditions).into_iter().map(|found| AilingShown {
            rule: found.ailment.word(),
            faces: found.faces,
            worst: found.worst.iter().filter_map(|face| self.row(face.0, face.1)).collect(),
        });
        found.collect()
    }

    /// Those of the first ones of the faces that the question is about.
    fn first(&self, question: &TopQuestion, mut after: Vec<(FaceId, Counted)>) -> Vec<FaceRow> {
        let weight = |(id, now): &(FaceId, Counted)| {
            let past = self.past(*id);
            let gone = |of: fn(&Counted) -> u64| of(now).saturating_sub(of(&past));
            match question.order {
                FaceOrder::Packets => gone(|c| sum(&c.packets)),
                FaceOrder::In => gone(|c| c.owner.traffic.in_bytes),
                FaceOrder::Out => gone(|c| c.owner.traffic.out_bytes),
                FaceOrder::Losses => gone(Counted::losses),
                FaceOrder::Queue => now.owner.queued as u64,
                FaceOrder::RoundTrip => self
                    .trips
                    .get(id)
                    .map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
                FaceOrder::Number => u64::MAX - u64::from(id.0),
            }
        };
        after.sort_by_cached_key(|face| (std::cmp::Reverse(weight(face)), face.0));
        after.truncate(question.faces);
        after.into_iter().filter_map(|(id, now)| self.row(id, now)).collect()
    }

    fn row(&self, id: FaceId, now: Counted) -> Option<FaceRow> {
        let Onlooker { plane, io } = self.onlooker;
        let record = plane.faces.get(id)?;
        let view = record.view(now.packets, &plane.settings, io.now);
        let past = self.past(id);
        let rate = |of: fn(&Counted) -> u64| self.rates.of(of(&past), of(&now));
        Some(FaceRow {
            face: id.0,
            uri: view.remote_uri,
            local_uri: view.local_uri,
            is_local: view.scope == onym_wire::mgmt::Scope::Local,
            up: view.up,
            in_packets: rate(|c| c.packets.in_interests + c.packets.in_data + c.packets.in_nacks),
            out_packets: rate(|c| {
                c.packets.out_interests + c.packets.out_data + c.packets.out_nacks
            }),
            in_bytes: rate(|c| c.owner.traffic.in_bytes),
            out_bytes: rate(|c| c.owner.traffic.out_bytes),
            in_interests: rate(|c| c.packets.in_interests),
            in_data: rate(|c| c.packets.in_data),
            in_nacks: rate(|c| c.packets.in_nacks),
            out_interests: rate(|c| c.packets.out_interests),
            out_data: rate(|c| c.packets.out_data),
            out_nacks: rate(|c| c.packets.out_nacks),
            losses: rate(Counted::losses),
            marked: rate(|c| c.owner.link.congestion_marked),
            repeated: rate(|c| c.owner.link.reliability.retransmitted),
            queue_bytes: now.owner.queued,
            queue_bytes_max: record.queue_bytes_max,
            rtt_us: self.trips.get(&id).and_then(|d| u64::try_from(d.as_micros()).ok()),
            total_in_bytes: now.owner.traffic.in_bytes,
            total_out_bytes: now.owner.traffic.out_bytes,
            total_losses: now.losses(),
        })
    }
}

/// The round trip of each face: that of the shard with most samples.
fn round_trips(watched: &[Watched]) -> HashMap<FaceId, Duration> {
    let mut best = HashMap::new();
    for trip in watched.iter().flat_map(|w| &w.round_trips) {
        let known = best.entry(trip.face).or_insert((trip.samples, trip.smoothed));
        if trip.samples > known.0 {
            *known = (trip.samples, trip.smoothed);
        }
    }
    best.into_iter().map(|(face, (_, smoothed))| (face, smoothed)).collect()
}

fn sum(c: &FaceCounters) -> u64 {
    c.in_interests + c.in_data + c.in_nacks + c.out_interests + c.out_data + c.out_nacks
}
