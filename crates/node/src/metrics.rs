//! `/metrics`, `/healthz` and `/readyz` over HTTP, on a thread of their own.

mod health;
mod page;

use crate::config::OneOrMany;
use crate::control::request::Request;
use crate::remote::{NodeError, Remote};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use onym_http::access::check_loopback;
use onym_metrics::{CONTENT_TYPE, Source};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// What a program in the same process adds to the page.
type Beside = Arc<OnceLock<Arc<dyn Source>>>;

/// The HTTP server of a node; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    addresses: Vec<SocketAddr>,
    beside: Beside,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    is_draining: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// The page has the metrics of `source`, too; of the first that is given.
    pub(crate) fn add(&self, source: Arc<dyn Source>) {
        let _ = self.beside.set(source);
    }

    /// From now on the node is not ready.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
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
    let beside = Beside::default();
    let given = Arc::clone(&beside);
    let (stop, stopped) = oneshot::channel::<()>();
    let is_draining = Arc::new(AtomicBool::new(false));
    let draining = Arc::clone(&is_draining);
    let run = move || {
        runtime.block_on(async move {
            for socket in sockets {
                let door = Door {
                    node: node.clone(),
                    is_local: socket.local_addr().is_ok_and(|at| at.ip().is_loopback()),
                    is_draining: Arc::clone(&draining),
                    asking: Arc::default(),
                    beside: Arc::clone(&given),
                };
                let app = Router::new()
                    .route("/metrics", get(metrics))
                    .route("/healthz", get(health::alive))
                    .route("/readyz", get(health::ready))
                    .with_state(door);
                if let Ok(listener) = tokio::net::TcpListener::from_std(socket) {
                    tokio::spawn(onym_http::server::serve(listener, app));
                }
            }
            let _ = stopped.await;
        });
    };
    let thread = std::thread::Builder::new().name("onym-http".into()).spawn(run);
    let thread = Some(thread.map_err(system("starting a thread"))?);
    Ok(Server { addresses, beside, stop: Some(stop), thread, is_draining })
}

type Answer = (StatusCode, [(&'static str, &'static str); 1], String);

fn text(status: StatusCode, sentence: impl std::fmt::Display) -> Answer {
    (status, [("content-type", "text/plain; charset=utf-8")], format!("{sentence}\n"))
}

/// One address of the server.
#[derive(Debug, Clone)]
struct Door {
    node: Remote,
    is_local: bool,
    is_draining: Arc<AtomicBool>,
    /// Questions about health that wait for an answer.
    asking: Arc<AtomicUsize>,
    beside: Beside,
}

impl Door {
    /// On loopback a web page of another site must not read anything, whatever name it asks for.
    fn refuses(&self, headers: &HeaderMap) -> Option<Answer> {
        let foreign = if self.is_local { check_loopback(headers).err() } else { None };
        foreign.map(|foreign| text(StatusCode::FORBIDDEN, foreign))
    }
}

/// How long a page waits for the push thread, which a long publication may occupy for seconds;
/// then the page has the push counters of the page before.
const PUSH_WAIT_MAX: Duration = Duration::from_millis(50);

async fn metrics(State(door): State<Door>, headers: HeaderMap) -> Answer {
    if let Some(answer) = door.refuses(&headers) {
        return answer;
    }
    let beside = Arc::clone(&door.beside);
    // The control thread answers within milliseconds; the wait must not hold the server.
    let asked = tokio::task::spawn_blocking(move || {
        door.node.ask(|reply| Request::Snapshot { patience: PUSH_WAIT_MAX, reply })
    })
    .await;
    let sample = |snapshot| page::Sample { snapshot, beside: beside.get().cloned() };
    let page = asked.ok().and_then(Result::ok).and_then(|s| onym_metrics::page(sample(s)).ok());
    match page {
        Some(page) => (StatusCode::OK, [("content-type", CONTENT_TYPE)], page),
        None => text(StatusCode::SERVICE_UNAVAILABLE, "the node is stopping"),
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
