//! `/healthz`: do the node's threads answer. `/readyz`: is it also open for newcomers.

use super::{Answer, Door, PUSH_WAIT_MAX, text};
use crate::control::request::Request;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the threads may take to answer before the node counts as stuck.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Questions that wait for an answer; beyond them the node counts as stuck at once, so that
/// whoever asks a stuck node again and again holds no more threads.
const ASKING_MAX: usize = 4;

/// 200 while control and shards answer, else 503: a supervisor starts the node anew.
pub(super) async fn alive(State(door): State<Door>, headers: HeaderMap) -> Answer {
    match door.refuses(&headers) {
        Some(answer) => answer,
        None => answers(door).await,
    }
}

/// As [`alive`], and 503 from the moment that the node stops: a balancer sends nobody here any more.
/// Before its faces are open there is no server.
pub(super) async fn ready(State(door): State<Door>, headers: HeaderMap) -> Answer {
    match door.refuses(&headers) {
        Some(answer) => answer,
        None if door.is_draining.load(Ordering::Relaxed) => {
            text(StatusCode::SERVICE_UNAVAILABLE, "the node is stopping")
        }
        None => answers(door).await,
    }
}

async fn answers(door: Door) -> Answer {
    if door.asking.fetch_add(1, Ordering::Relaxed) >= ASKING_MAX {
        door.asking.fetch_sub(1, Ordering::Relaxed);
        return text(StatusCode::SERVICE_UNAVAILABLE, "the node does not answer");
    }
    let ask = move || {
        let asked = door.node.ask(|reply| Request::Snapshot { patience: PUSH_WAIT_MAX, reply });
        door.asking.fetch_sub(1, Ordering::Relaxed);
        asked.is_ok()
    };
    match tokio::time::timeout(WAIT_MAX, tokio::task::spawn_blocking(ask)).await {
        Ok(Ok(true)) => text(StatusCode::OK, "ok"),
        Ok(_) => text(StatusCode::SERVICE_UNAVAILABLE, "the node has stopped"),
        Err(_) => text(StatusCode::SERVICE_UNAVAILABLE, "the node does not answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::node::Node;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    fn door(node: &crate::node::NodeHandle) -> Door {
        Door {
            node: node.remote(),
            is_local: false,
            is_draining: Arc::new(AtomicBool::new(false)),
            asking: Arc::new(AtomicUsize::new(0)),
            beside: Arc::default(),
        }
    }

    fn asked(door: &Door) -> [StatusCode; 2] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let state = || State(door.clone());
            [alive(state(), HeaderMap::new()).await.0, ready(state(), HeaderMap::new()).await.0]
        })
    }

    #[test]
    fn a_node_that_stops_is_not_ready_and_one_that_stopped_is_not_alive() {
        const NO: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        let sets = ["unix.path", "udp.listen", "tcp.listen", "websocket.listen"];
        let sets: Vec<String> = sets.iter().map(|key| format!("faces.{key}=")).collect();
        let node = Node::start(Config::load(None, &sets).unwrap()).unwrap();
        let door = door(&node);
        assert_eq!(asked(&door), [StatusCode::OK; 2]);
        door.is_draining.store(true, Ordering::Relaxed);
        assert_eq!(asked(&door), [StatusCode::OK, NO]);
        door.is_draining.store(false, Ordering::Relaxed);
        door.asking.store(ASKING_MAX, Ordering::Relaxed);
        assert_eq!(asked(&door), [NO; 2], "others wait for an answer already");
        assert_eq!(door.asking.swap(0, Ordering::Relaxed), ASKING_MAX, "and are as many as before");
        node.stop();
        assert_eq!(asked(&door), [NO; 2]);
    }
}
