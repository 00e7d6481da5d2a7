//! Faces and freezes.

use super::state::each;
use super::{Answer, App, Call, method_refused, ok, refusal, stopping};
use crate::uri;
use crate::worker::{Made, Worker};
use axum::http::StatusCode;
use onym_services::element::read;
use onym_services::freeze::Limits;
use onym_services::{Kind, Refusal, Side};
use onym_tables::FaceId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest wait for a face to come up.
const WAIT_MAX_MS: u64 = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    uri: String,
    #[serde(default = "producer")]
    side: Side,
    #[serde(default)]
    weight: Option<u32>,
    #[serde(default)]
    rank: Option<u32>,
    #[serde(default)]
    draining: Option<bool>,
    #[serde(default)]
    wait_ms: u64,
}

fn producer() -> Side {
    Side::Producer
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Change {
    weight: Option<u32>,
    rank: Option<u32>,
    draining: Option<bool>,
}

impl Change {
    fn check(&self) -> Result<(), Refusal> {
        if self.weight.is_some_and(|w| !(1..=1000).contains(&w)) {
            return Err(Refusal::field("weight", "from 1 to 1000"));
        }
        if self.rank.is_some_and(|r| r > 1000) {
            return Err(Refusal::field("rank", "from 0 to 1000"));
        }
        Ok(())
    }

    /// Carries it out; whether that made a difference.
    fn apply(&self, worker: &mut Worker, id: FaceId) -> bool {
        let mut changed = false;
        worker.function.change_face(id, |port| {
            let before = (port.weight, port.rank, port.draining);
            port.weight = self.weight.unwrap_or(port.weight);
            port.rank = self.rank.unwrap_or(port.rank);
            port.draining = self.draining.unwrap_or(port.draining);
            changed = before != (port.weight, port.rank, port.draining);
        });
        changed
    }
}

fn every(worker: &mut Worker) -> Vec<Value> {
    let ids: Vec<FaceId> = worker.function.ports().iter().map(|p| p.id).collect();
    ids.into_iter().filter_map(|id| worker.face_json(id)).collect()
}

/// All faces of all threads.
pub(super) async fn all(app: &App) -> Result<Value, Refusal> {
    let all = each(app, every).await?;
    Ok(Value::Array(all.into_iter().flatten().collect()))
}

pub(super) async fn list(app: &App) -> Answer {
    ok(json!({ "faces": all(app).await? }))
}

fn unknown(label: &str) -> Refusal {
    let text = format!("there is no face {label:?}; GET /v1/faces lists them");
    refusal(404, "face_unknown", &text)
}

/// The face with this label, in whatever thread.
async fn find(app: &App, label: &str) -> Result<Value, Refusal> {
    let wanted = label.to_owned();
    let all = each(app, move |worker| {
        let id = worker.function.ports().find(&wanted)?.id;
        worker.face_json(id)
    });
    all.await?.into_iter().flatten().next().ok_or_else(|| unknown(label))
}

pub(super) async fn one(app: &App, call: &Call, label: &str) -> Answer {
    match call.method.as_str() {
        "GET" => ok(json!({ "face": find(app, label).await? })),
        "PUT" => create(app, call, label).await,
        "PATCH" => change(app, call, label).await,
        "DELETE" => remove(app, label).await,
        _ => Err(method_refused()),
    }
}

async fn change(app: &App, call: &Call, label: &str) -> Answer {
    let change: Change = read(Value::Object(call.object()?))?;
    change.check()?;
    let wanted = label.to_owned();
    let done = each(app, move |worker| {
        let id = worker.function.ports().find(&wanted)?.id;
        let changed = change.apply(worker, id);
        worker.face_json(id).map(|face| json!({ "changed": changed, "face": face }))
    });
    ok(done.await?.into_iter().flatten().next().ok_or_else(|| unknown(label))?)
}

/// Changes several faces between two packets, so that what leaves goes from one to the other.
pub(super) async fn change_many(app: &App, call: &Call) -> Answer {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Many {
        faces: BTreeMap<String, Change>,
    }
    let Many { faces } = read(Value::Object(call.object()?))?;
    for (label, change) in &faces {
        change.check()?;
        find(app, label).await?;
    }
    let done = each(app, move |worker| {
        let mut changed = 0_u64;
        for (label, change) in &faces {
            let id = worker.function.ports().find(label).map(|port| port.id);
            changed += u64::from(id.is_some_and(|id| change.apply(worker, id)));
        }
        changed
    });
    let changed: u64 = done.await?.into_iter().sum();
    ok(json!({ "changed": changed > 0 }))
}

async fn remove(app: &App, label: &str) -> Answer {
    let wanted = label.to_owned();
    let done = each(app, move |worker| {
        let id = worker.function.ports().find(&wanted)?.id;
        worker.remove(id)
    });
    match done.await?.into_iter().flatten().next() {
        Some(unsent) => ok(json!({ "changed": true, "unsent_frames": unsent })),
        None => ok(json!({ "changed": false, "unsent_frames": 0 })),
    }
}

async fn create(app: &App, call: &Call, label: &str) -> Answer {
    if app.kind == Kind::PacketDispatcher {
        let text = "a dispatcher makes its faces itself: set consumer_path and producer_path";
        return Err(refusal(409, "faces_are_its_own", text));
    }
    if !uri::is_label(label) {
        let text = "a label has 1 to 64 letters, digits, dots, dashes and underscores";
        return Err(Refusal::field("label", text));
    }
    let spec: Create = read(Value::Object(call.object()?))?;
    let change = Change { weight: spec.weight, rank: spec.rank, draining: spec.draining };
    change.check()?;
    let text = spec.uri.clone();
    // Host names are looked up away from every thread that matters.
    let resolved = tokio::task::spawn_blocking(move || uri::resolve(&text));
    let uri = resolved.await.map_err(|_| stopping())?.map_err(|e| Refusal::field("uri", e))?;
    app.check_socket("uri", &uri)?;
    let (wanted, side) = (label.to_owned(), spec.side);
    let worker = app.workers.first().ok_or_else(stopping)?;
    let made = worker.ask(move |worker| make(worker, &wanted, &uri, side, &change));
    let (is_new, changed, id) = made.await.ok_or_else(stopping)??;
    let face = wait_until_up(app, id, spec.wait_ms.min(WAIT_MAX_MS)).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, json!({ "changed": changed, "face": face })))
}

/// Makes the face, or finds it: whether it is new, whether anything changed, its number.
fn make(
    worker: &mut Worker,
    label: &str,
    uri: &str,
    side: Side,
    change: &Change,
) -> Result<(bool, bool, FaceId), Refusal> {
    let known = worker.function.ports().iter().find(|p| p.label == label);
    let known = known.map(|port| (port.id, port.side == side));
    if let Some((id, same_side)) = known {
        let same = worker.made(id).is_some_and(|(u, made)| u == uri && made == Made::Created);
        if !same || !same_side {
            let text = format!("face {label} is another one; delete it first or choose a label");
            return Err(refusal(409, "face_differs", &text));
        }
        return Ok((false, change.apply(worker, id), id));
    }
    if !worker.reserve_face() {
        return Err(refusal(409, "full", "the service has as many faces as it may have"));
    }
    let id = worker.create(Made::Created, label, uri, side);
    change.apply(worker, id);
    Ok((true, true, id))
}

/// The face, once it is up or the time is over.
async fn wait_until_up(app: &App, id: FaceId, wait_ms: u64) -> Result<Value, Refusal> {
    let end = tokio::time::Instant::now() + Duration::from_millis(wait_ms);
    let worker = app.workers.first().ok_or_else(stopping)?;
    loop {
        let face = worker.ask(move |w| w.face_json(id)).await.ok_or_else(stopping)?;
        let face = face.ok_or_else(|| unknown(&id.to_string()))?;
        if face["state"] == "up" || tokio::time::Instant::now() >= end {
            return Ok(face);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) async fn freeze(app: &App, call: &Call, side: &str) -> Answer {
    let side: Side = read(Value::String(side.to_owned()))?;
    let limits: Limits = read(Value::Object(call.object()?))?;
    let method = call.method.clone();
    let done = each(app, move |worker| {
        let changed = match method.as_str() {
            "PUT" => worker.with(|f, now, _| f.start_freeze(now, side, limits)),
            "DELETE" => worker.with(|f, now, out| f.unfreeze(now, side, out)),
            _ => false,
        };
        let mut state =
            serde_json::to_value(worker.function.freeze_state(side)).unwrap_or_default();
        state["changed"] = changed.into();
        state
    });
    ok(super::join(done.await?))
}
