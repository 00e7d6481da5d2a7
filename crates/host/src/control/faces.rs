//! Faces and freezes.

use super::each::each;
use super::refused::Refused;
use super::{Answer, App, Call, method_refused, ok, refusal, stopping};
use crate::body::read;
use crate::uri;
use crate::worker::order::{FaceOrder, FreezeChange, Wanted, Which};
use crate::worker::{FaceChange, Order};
use axum::http::StatusCode;
use onym_services::freeze::Limits;
use onym_services::{FarEnd, Kind, Side};
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
    peer: FarEnd,
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

fn check(change: &FaceChange) -> Result<(), Refused> {
    if change.weight.is_some_and(|w| !(1..=1000).contains(&w)) {
        return Err(Refused::field("weight", "from 1 to 1000"));
    }
    if change.rank.is_some_and(|r| r > 1000) {
        return Err(Refused::field("rank", "from 0 to 1000"));
    }
    Ok(())
}

/// All faces of all threads.
pub(super) async fn all(app: &App) -> Result<Value, Refused> {
    let all = each(app, FaceOrder::List).await?;
    Ok(Value::Array(all.into_iter().flatten().collect()))
}

pub(super) async fn list(app: &App) -> Answer {
    ok(json!({ "faces": all(app).await? }))
}

fn unknown(label: &str) -> Refused {
    let text = format!("there is no face {label:?}; GET /v1/faces lists them");
    refusal(404, "face_unknown", &text)
}

/// The face with this label, in whatever thread.
async fn find(app: &App, label: &str) -> Result<Value, Refused> {
    let which = Which::Label(label.to_owned());
    let all = each(app, |reply| FaceOrder::Show { which: which.clone(), reply });
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
    let change: FaceChange = read(Value::Object(call.object()?))?;
    check(&change)?;
    let done = each(app, |reply| {
        let (label, change) = (label.to_owned(), change.clone());
        FaceOrder::Change { label, change, reply }
    });
    let done = done.await?.into_iter().flatten().next();
    let (is_changed, face) = done.ok_or_else(|| unknown(label))?;
    ok(json!({ "changed": is_changed, "face": face }))
}

/// Changes several faces between two packets, so that what leaves goes from one to the other.
pub(super) async fn change_many(app: &App, call: &Call) -> Answer {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Many {
        faces: BTreeMap<String, FaceChange>,
    }
    let Many { faces } = read(Value::Object(call.object()?))?;
    for (label, change) in &faces {
        check(change)?;
        find(app, label).await?;
    }
    let done = each(app, |reply| FaceOrder::ChangeMany { changes: faces.clone(), reply });
    let changed: u64 = done.await?.into_iter().sum();
    ok(json!({ "changed": changed > 0 }))
}

async fn remove(app: &App, label: &str) -> Answer {
    let done = each(app, |reply| FaceOrder::Remove { label: label.to_owned(), reply });
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
        return Err(Refused::field("label", text));
    }
    let spec: Create = read(Value::Object(call.object()?))?;
    let (weight, rank, draining) = (spec.weight, spec.rank, spec.draining);
    let change = FaceChange { weight, rank, draining };
    check(&change)?;
    let text = spec.uri.clone();
    // Host names are looked up away from every thread that matters.
    let resolved = tokio::task::spawn_blocking(move || uri::resolve(&text));
    let uri = resolved.await.map_err(|_| stopping())?.map_err(|e| Refused::field("uri", e))?;
    app.check_socket("uri", &uri)?;
    let wanted =
        Wanted { label: label.to_owned(), uri, side: spec.side, far_end: spec.peer, change };
    let worker = app.workers.first().ok_or_else(stopping)?;
    let made = worker.ask(|reply| FaceOrder::Make { wanted, reply });
    let found = made.await.ok_or_else(stopping)??;
    let face = wait_until_up(app, found.id, spec.wait_ms.min(WAIT_MAX_MS)).await?;
    let status = if found.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, json!({ "changed": found.is_changed, "face": face })))
}

/// The face, once it is up or the time is over.
async fn wait_until_up(app: &App, id: FaceId, wait_ms: u64) -> Result<Value, Refused> {
    let end = tokio::time::Instant::now() + Duration::from_millis(wait_ms);
    let worker = app.workers.first().ok_or_else(stopping)?;
    loop {
        let face = worker.ask(|reply| FaceOrder::Show { which: Which::Number(id), reply });
        let face = face.await.ok_or_else(stopping)?;
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
    let change = match call.method.as_str() {
        "PUT" => Some(FreezeChange::Start(limits)),
        "DELETE" => Some(FreezeChange::End),
        _ => None,
    };
    let done = each(app, |reply| Order::Freeze { side, change, reply });
    ok(super::join(done.await?))
}
