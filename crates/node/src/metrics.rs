//! `/metrics` over HTTP: Prometheus text, on a thread of its own.

use crate::config::OneOrMany;
use crate::control::request::Request;
use crate::control::status::Snapshot;
use crate::node::{NodeError, Remote};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use onym_forward::verdict::Verdict;
use onym_http::access::check_loopback;
use onym_link::PacketKind;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// The HTTP server of a node; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves at `listen`, which was checked.
pub(crate) fn serve(listen: &OneOrMany, node: Remote) -> Result<Server, NodeError> {
    let system = |doing| move |source| NodeError::System { doing, source };
    let mut sockets = Vec::new();
    for address in &listen.0 {
        let bound = std::net::TcpListener::bind(address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let text = |e| NodeError::Setup(format!("metrics.listen: {address}: {e}"));
        sockets.push(bound.map_err(text)?);
    }
    let addresses = sockets.iter().filter_map(|s| s.local_addr().ok()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("starting the HTTP server"))?;
    let (stop, stopped) = oneshot::channel::<()>();
    let run = move || {
        runtime.block_on(async move {
            for socket in sockets {
                let local = socket.local_addr().is_ok_and(|at| at.ip().is_loopback());
                let state = (node.clone(), local);
                let app = Router::new().route("/metrics", get(metrics)).with_state(state);
                if let Ok(listener) = tokio::net::TcpListener::from_std(socket) {
                    tokio::spawn(onym_http::server::serve(listener, app));
                }
            }
            let _ = stopped.await;
        });
    };
    let thread = std::thread::Builder::new().name("onym-http".into()).spawn(run);
    let thread = Some(thread.map_err(system("starting a thread"))?);
    Ok(Server { addresses, stop: Some(stop), thread })
}

type Answer = (StatusCode, [(&'static str, &'static str); 1], String);

/// How long the page waits for the push thread, which may be at a long publication for seconds
/// where its processor is small; its counters are those of the page before then.
const PUSH_WAIT_MAX: Duration = Duration::from_millis(50);

async fn metrics(State((node, local)): State<(Remote, bool)>, headers: HeaderMap) -> Answer {
    // On loopback no page of elsewhere reads them, by whatever name it asks.
    let foreign = if local { check_loopback(&headers).err() } else { None };
    if let Some(foreign) = foreign {
        let kind = [("content-type", "text/plain; charset=utf-8")];
        return (StatusCode::FORBIDDEN, kind, format!("{foreign}\n"));
    }
    // The control thread answers within milliseconds; the wait must not hold the server.
    let asked = tokio::task::spawn_blocking(move || {
        node.ask(|reply| Request::Snapshot { patience: PUSH_WAIT_MAX, reply })
    })
    .await;
    let kind = [("content-type", "text/plain; version=0.0.4; charset=utf-8")];
    match asked {
        Ok(Ok(snapshot)) => (StatusCode::OK, kind, text(&snapshot)),
        _ => (StatusCode::SERVICE_UNAVAILABLE, kind, "the node is stopping\n".to_owned()),
    }
}

/// One metric family.
fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn plain(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    family(out, name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}

fn words(out: &mut String, name: &str, help: &str, list: &[(&str, u64)]) {
    family(out, name, "counter", help);
    for (word, value) in list {
        let _ = writeln!(out, "{name}{{reason=\"{word}\"}} {value}");
    }
}

/// Prometheus text of a snapshot; names are those of spec/registry.md.
fn text(s: &Snapshot) -> String {
    let mut out = String::with_capacity(16 * 1024);
    let name = "onym_packets_total";
    family(&mut out, name, "counter", "Packets received, by kind and what became of them.");
    for kind in PacketKind::ALL {
        for verdict in Verdict::ALL {
            let (value, kind) = (s.verdict(kind, *verdict), kind.label());
            let word = verdict.label();
            let _ = writeln!(out, "{name}{{verdict=\"{word}\",kind=\"{kind}\"}} {value}");
        }
    }
    let help = "Frames dropped before they were packets.";
    words(&mut out, "onym_frames_dropped_total", help, &s.frames_dropped());
    words(&mut out, "onym_unsent_total", "Packets not sent.", &s.unsent());
    faces(&mut out, s);
    tables(&mut out, s);
    management(&mut out, s);
    push(&mut out, s);
    let name = "onym_shard_busy_seconds_total";
    family(&mut out, name, "counter", "Time that a shard spent not waiting.");
    for (i, shard) in s.shards.iter().enumerate() {
        let (seconds, nanos) = (shard.busy_ns / 1_000_000_000, shard.busy_ns % 1_000_000_000);
        let _ = writeln!(out, "{name}{{shard=\"{i}\"}} {seconds}.{nanos:09}");
    }
    family(&mut out, "onym_build_info", "gauge", "The program.");
    let _ = writeln!(out, "onym_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    out
}

fn faces(out: &mut String, s: &Snapshot) {
    type Of = fn(&crate::mgmt::host::FaceCounters) -> u64;
    let all: [(&str, Of); 8] = [
        ("in_interests", |c| c.in_interests),
        ("in_data", |c| c.in_data),
        ("in_nacks", |c| c.in_nacks),
        ("out_interests", |c| c.out_interests),
        ("out_data", |c| c.out_data),
        ("out_nacks", |c| c.out_nacks),
        ("in_bytes", |c| c.in_bytes),
        ("out_bytes", |c| c.out_bytes),
    ];
    for (what, of) in all {
        let name = format!("onym_face_{what}_total");
        family(out, &name, "counter", "Per face.");
        for face in &s.faces {
            let _ = writeln!(out, "{name}{{face=\"{}\"}} {}", face.id.0, of(&face.counters));
        }
    }
    plain(out, "onym_faces", "gauge", "Faces there are.", s.faces.len() as u64);
    let (name, help) = ("onym_faces_refused_total", "Faces refused because of a limit.");
    plain(out, name, "counter", help, s.faces_refused);
}

fn push(out: &mut String, s: &Snapshot) {
    let Some(push) = &s.push else { return };
    let name = "onym_push_frames_total";
    family(out, name, "counter", "Push frames, by what became of them.");
    for (verdict, value) in onym_pubsub::Verdict::ALL.iter().zip(push.verdicts) {
        let _ = writeln!(out, "{name}{{verdict=\"{}\"}} {value}", verdict.label());
    }
    let dropped = [
        ("push_not_local", push.dropped.not_local),
        ("push_backlog", push.dropped.backlog),
        ("push_app_malformed", push.app_malformed),
    ];
    let help = "Push frames and messages that ended before the forwarder or the dispatcher.";
    words(out, "onym_push_dropped_total", help, &dropped);
    for (name, kind, help, value) in [
        ("onym_push_copies_total", "counter", "Push frames sent over links.", push.copies),
        (
            "onym_push_missed_total",
            "counter",
            "Publications that slow applications missed.",
            push.dropped.missed,
        ),
        ("onym_push_messages_total", "counter", "Messages of applications.", push.messages),
        (
            "onym_push_sent_total",
            "counter",
            "Publications sent to other nodes.",
            push.publications[0],
        ),
        (
            "onym_push_delivered_total",
            "counter",
            "Publications handed to applications.",
            push.publications[1],
        ),
        (
            "onym_push_missing_total",
            "counter",
            "Publications that never came to their subscribers here, as their numbers tell.",
            push.publications[2],
        ),
        ("onym_push_apps", "gauge", "Applications.", push.apps),
        ("onym_push_vertices", "gauge", "Scopes and items of the rendezvous.", push.vertices),
    ] {
        plain(out, name, kind, help, value);
    }
}

fn management(out: &mut String, s: &Snapshot) {
    let name = "onym_management_requests_total";
    family(out, name, "counter", "Interests for management, by what became of them.");
    let m = &s.management;
    let all = [
        ("command_done", m.commands_done),
        ("command_refused", m.commands_refused),
        ("dataset", m.datasets),
        ("ignored", m.ignored),
    ];
    for (result, value) in all {
        let _ = writeln!(out, "{name}{{result=\"{result}\"}} {value}");
    }
}

fn tables(out: &mut String, s: &Snapshot) {
    let gauge = "gauge";
    plain(out, "onym_pit_entries", gauge, "Pending Interests.", s.sum(|s| s.pit_entries));
    plain(out, "onym_pit_bytes", gauge, "Octets of pending Interests.", s.sum(|s| s.pit_bytes));
    plain(out, "onym_cs_entries", gauge, "Packets cached.", s.sum(|s| s.cs_entries));
    plain(out, "onym_cs_bytes", gauge, "Octets cached.", s.sum(|s| s.cs_bytes));
    let fib = s.shards.first().map_or(0, |s| s.fib_entries);
    plain(out, "onym_fib_entries", gauge, "Prefixes with next hops.", fib);
    plain(out, "onym_rib_routes", gauge, "Routes registered.", s.rib_routes);
    type Of = fn(&onym_forward::Counters) -> u64;
    let all: [(&str, &str, Of); 5] = [
        ("onym_cs_hits_total", "Lookups that found Data.", |c| c.cs_hits),
        ("onym_cs_misses_total", "Lookups that did not.", |c| c.cs_misses),
        ("onym_satisfied_interests_total", "Interests answered.", |c| c.satisfied_interests),
        ("onym_unsatisfied_interests_total", "Interests that ended without.", |c| {
            c.unsatisfied_interests
        }),
        ("onym_displaced_interests_total", "Overdue ones that gave way in a contended PIT.", |c| {
            c.displaced_interests
        }),
    ];
    for (name, help, of) in all {
        plain(out, name, "counter", help, s.sum(|s| of(&s.counters)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::node::Node;
    use std::sync::mpsc;

    #[test]
    fn what_is_counted_is_told_while_the_push_thread_is_at_something_long() {
        let sets = ["unix.path", "udp.listen", "tcp.listen", "websocket.listen"];
        let mut sets: Vec<String> = sets.iter().map(|key| format!("faces.{key}=")).collect();
        sets.push("push.enabled=true".into());
        let node = Node::start(Config::load(None, &sets).unwrap()).unwrap();
        let (end, until) = mpsc::channel::<()>();
        node.remote().tell(Request::OccupyPush(until)).unwrap();
        let patience = Duration::from_millis(1);
        let asked = node.ask(|reply| Request::Snapshot { patience, reply });
        assert!(asked.unwrap().push.is_some(), "the counters of the last time");
        drop(end);
        assert!(node.snapshot().unwrap().push.is_some());
    }
}
