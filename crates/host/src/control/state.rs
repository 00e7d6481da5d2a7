//! Version, health, statistics, configuration, events, draining.

use super::each::each;
use super::refused::Refused;
use super::{Answer, App, Call, join, method_refused, ok, stopping};
use crate::worker::Order;
use crate::worker::order::Counted;
use axum::http::StatusCode;
use onym_engine::clock::unix_ms;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Longest wait for an event.
const WAIT_MAX_MS: u64 = 30_000;

pub(super) fn version(app: &App) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"), "api": "v1", "kind": app.kind.word(),
        "name": app.name, "pid": std::process::id(), "start_ms": app.start_ms, "boot": app.boot,
    })
}

pub(super) async fn health(app: &App) -> Answer {
    match each(app, Order::Health).await {
        Ok(_) => ok(json!({ "ok": true })),
        Err(_) => Ok((StatusCode::SERVICE_UNAVAILABLE, json!({ "ok": false }))),
    }
}

pub(super) async fn ready(app: &App) -> Answer {
    match each(app, Order::NotReady).await?.into_iter().flatten().next() {
        None => ok(json!({ "ready": true, "because": null })),
        Some(because) => {
            let body = json!({ "ready": false, "because": because });
            Ok((StatusCode::SERVICE_UNAVAILABLE, body))
        }
    }
}

pub(super) async fn listeners(app: &App) -> Answer {
    let first = app.workers.first().ok_or_else(stopping)?;
    let list = first.ask(Order::Listeners).await.ok_or_else(stopping)?;
    ok(json!({ "listeners": list }))
}

pub(super) async fn whole(app: &App) -> Answer {
    let drain = join(each(app, |reply| Order::Drain { change: None, reply }).await?);
    let config = join_config(app, each(app, Order::Config).await?);
    ok(json!({
        "version": version(app), "listeners": listeners(app).await?.1["listeners"],
        "faces": super::faces::all(app).await?, "config": config,
        "stats": stats(app).await?.1, "drain": drain,
    }))
}

/// What all threads have counted together.
pub(super) async fn counted(app: &App) -> Result<Counted, Refused> {
    let threads = each(app, Order::Stats).await?;
    let sum = threads.into_iter().reduce(|sum, thread| sum.add_thread(&thread));
    sum.ok_or_else(stopping)
}

pub(super) async fn stats(app: &App) -> Answer {
    let mut all = counted(app).await?.to_json();
    let busy = app.workers.iter().map(|w| w.load().busy_ns() / 1_000_000);
    all["threads"] = busy.map(|ms| json!({ "busy_ms": ms })).collect();
    all["boot"] = app.boot.into();
    all["at_ms"] = unix_ms().into();
    all["up_ms"] = unix_ms().saturating_sub(app.start_ms).into();
    all["cpu_ms"] = ms(onym_sys::thread::process_cpu_time()).into();
    all["rss_bytes"] = rss_bytes().into();
    ok(all)
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Resident memory of this process; 0 where /proc is not there.
fn rss_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    kib * 1024
}

pub(super) async fn events(app: &App, call: &Call) -> Answer {
    let after = call.number("after").unwrap_or(0);
    let wait = call.number("wait_ms").unwrap_or(0).min(WAIT_MAX_MS);
    ok(app.shared.events.wait(after, Duration::from_millis(wait)).await)
}

/// The configuration is the same in every thread.
fn join_config(app: &App, all: Vec<Value>) -> Value {
    let mut config = all.into_iter().next().unwrap_or_default();
    config["threads"] = app.threads.into();
    config
}

pub(super) async fn config(app: &App, call: &Call) -> Answer {
    if call.method == "GET" {
        let config = join_config(app, each(app, Order::Config).await?);
        return ok(json!({ "config": config }));
    }
    let mut patch: Map<String, Value> = call.object()?;
    for field in ["consumer_path", "producer_path"] {
        if let Some(uri) = patch.get(field).and_then(Value::as_str) {
            app.check_socket(field, uri)?;
        }
    }
    if patch.remove("threads").is_some_and(|n| n != app.threads as u64) {
        return Err(Refused::field("threads", "the number of threads is set at the start only"));
    }
    let done = each(app, |reply| Order::Configure { patch: patch.clone(), reply });
    // What is wrong is wrong in every thread, so none was changed.
    let mut changed = Vec::new();
    for result in done.await? {
        changed = result?;
    }
    let config = join_config(app, each(app, Order::Config).await?);
    ok(json!({ "changed": changed, "config": config }))
}

pub(super) async fn drain(app: &App, call: &Call) -> Answer {
    let change = match call.method.as_str() {
        "GET" => None,
        method @ ("PUT" | "DELETE") => Some(method == "PUT"),
        _ => return Err(method_refused()),
    };
    let mut all = join(each(app, |reply| Order::Drain { change, reply }).await?);
    all["empty"] = (all["pending"] == 0).into();
    ok(all)
}
