//! Networks as objects of a cluster, played by an API server that keeps objects and nothing else.

#![allow(clippy::unwrap_used)]

mod fake;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Json, Router};
use fake::FakeDriver;
use onym_manager::allow::Allowed;
use onym_manager::driver::Cluster;
use onym_manager::engine::{Manager, Options};
use onym_manager::operator::{API, FINALIZER, Operator};
use onym_manager::store::FileStore;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Objects = Arc<Mutex<BTreeMap<String, Value>>>;

/// Lists and patches as an API server does, with generations, and deletions that finalizers hold up.
async fn answer(
    State(objects): State<Objects>,
    method: Method,
    path: Option<Path<String>>,
    body: Bytes,
) -> Response {
    let mut objects = objects.lock().unwrap();
    let Some(Path(path)) = path else {
        return Json(json!({"items": objects.values().collect::<Vec<_>>()})).into_response();
    };
    assert_eq!(method, Method::PATCH, "{path}");
    let (name, part) = path.split_once('/').unwrap_or((&path, ""));
    let Some(object) = objects.get_mut(name) else { return StatusCode::NOT_FOUND.into_response() };
    let change: Value = serde_json::from_slice(&body).unwrap();
    let of_status = part == "status";
    let keys = if of_status { &["status"][..] } else { &["metadata"] };
    assert_eq!(change.as_object().unwrap().keys().collect::<Vec<_>>(), keys, "{change}");
    if of_status {
        object["status"] = change["status"].clone();
    } else {
        object["metadata"]["finalizers"] = change["metadata"]["finalizers"].clone();
    }
    let is_held = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let answer = Json(object.clone()).into_response();
    if !object["metadata"]["deletionTimestamp"].is_null() && !is_held {
        objects.remove(name);
    }
    answer
}

struct World {
    objects: Objects,
    operator: Operator,
    manager: Manager,
    folder: tempfile::TempDir,
}

async fn started(folder: &std::path::Path) -> Manager {
    let store = FileStore::open(&folder.join("state.redb")).unwrap();
    let driver = Arc::new(FakeDriver::default());
    let (watch, allowed) = (Duration::from_millis(20), Allowed::default());
    Manager::start(Options { driver, store: Box::new(store), watch, allowed }).await.unwrap()
}

fn operator(folder: &std::path::Path) -> Operator {
    let cluster = Cluster::find(Some(&folder.join("kubeconfig")), Duration::from_secs(10)).unwrap();
    Operator::new(cluster, "here".to_owned(), Duration::from_millis(1))
}

impl World {
    async fn new() -> Self {
        let objects = Objects::default();
        let base = format!("/apis/{API}/namespaces/here/networks");
        let app = Router::new()
            .route(&base, any(answer))
            .route(&format!("{base}/{{*path}}"), any(answer))
            .with_state(Arc::clone(&objects));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "current-context: c\ncontexts: [{{name: c, context: {{cluster: l, user: u}}}}]\nclusters: \
             [{{name: l, cluster: {{server: \"http://{at}\"}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
        );
        std::fs::write(folder.path().join("kubeconfig"), config).unwrap();
        let (manager, operator) = (started(folder.path()).await, operator(folder.path()));
        Self { objects, operator, manager, folder }
    }

    async fn turn(&mut self) {
        self.operator.turn(&self.manager).await.unwrap();
    }

    fn put(&self, name: &str, made: &str, spec: &Value) {
        let mut objects = self.objects.lock().unwrap();
        let generation =
            objects.get(name).map_or(0, |o| o["metadata"]["generation"].as_u64().unwrap());
        let finalizers = objects.get(name).map(|o| o["metadata"]["finalizers"].clone());
        let meta = json!({"name": name, "uid": name, "creationTimestamp": made,
            "generation": generation + 1, "finalizers": finalizers});
        objects.insert(name.to_owned(), json!({"metadata": meta, "spec": spec}));
    }

    fn delete(&self, name: &str) {
        let mut objects = self.objects.lock().unwrap();
        objects.get_mut(name).unwrap()["metadata"]["deletionTimestamp"] = json!("now");
    }

    fn of(&self, name: &str) -> Value {
        self.objects.lock().unwrap().get(name).cloned().unwrap_or_default()
    }

    /// The network that the manager keeps.
    fn wanted(&self) -> Option<String> {
        self.manager.shared.saved().description.as_ref().map(|d| d.network.clone())
    }
}

fn minimal(name: &str) -> Value {
    json!({"network": name, "links": ["br -> nr"], "functions": {
        "br": {"kind": "backward-router", "listen": "tcp4://127.0.0.1:6362"},
        "nr": {"kind": "name-router", "listen": {"producer": ["tcp4://127.0.0.1:6363"]}},
    }})
}

#[tokio::test]
async fn an_object_is_a_network_until_it_is_deleted() {
    let mut world = World::new().await;
    world.turn().await;
    assert_eq!(world.wanted(), None);
    world.put("one", "2026-01-01", &minimal("one"));
    world.turn().await;
    assert_eq!(world.wanted().as_deref(), Some("one"));
    let one = world.of("one");
    assert_eq!(
        (&one["status"]["state"], &one["status"]["observedGeneration"]),
        (&json!("Applied"), &json!(1))
    );
    assert_eq!(one["metadata"]["finalizers"], json!([FINALIZER]));
    world.put("one", "2026-01-01", &minimal("other"));
    world.turn().await;
    assert_eq!(world.wanted().as_deref(), Some("other"));
    world.delete("one");
    world.turn().await;
    assert_eq!((world.wanted(), world.of("one")), (None, Value::Null));
}

#[tokio::test]
async fn what_cannot_be_is_refused_and_what_was_before_runs_on() {
    let mut world = World::new().await;
    world.put("one", "2026-01-01", &minimal("one"));
    world.turn().await;
    let mut wrong = minimal("wrong");
    wrong["functions"]["br"]["kind"] = json!("backward-ruter");
    world.put("one", "2026-01-01", &wrong);
    world.turn().await;
    let status = world.of("one")["status"].clone();
    assert_eq!(status["state"], "Refused");
    assert!(status["message"].as_str().unwrap().contains("backward-router"), "{status}");
    assert_eq!(world.wanted().as_deref(), Some("one"));
    // A turn in which nothing changed writes nothing.
    let before = world.of("one");
    world.turn().await;
    assert_eq!(world.of("one"), before);
    // It was the network, whatever it says now.
    world.delete("one");
    world.turn().await;
    assert_eq!((world.wanted(), world.of("one")), (None, Value::Null));
}

#[tokio::test]
async fn the_oldest_object_is_the_network_and_the_next_one_follows_it() {
    let mut world = World::new().await;
    world.put("a", "2026-01-02", &minimal("later"));
    world.put("b", "2026-01-01", &minimal("first"));
    world.turn().await;
    assert_eq!(world.wanted().as_deref(), Some("first"));
    let status = world.of("a")["status"].clone();
    assert!(
        status["state"] == "Refused" && status["message"].as_str().unwrap().contains("\"b\""),
        "{status}"
    );
    world.delete("b");
    world.turn().await;
    assert_eq!((world.wanted().as_deref(), world.of("b")), (Some("later"), Value::Null));
    assert_eq!(world.of("a")["status"]["state"], "Applied");
    // One that cannot be takes no place: what goes ends.
    let mut wrong = minimal("wrong");
    wrong["functions"]["br"]["kind"] = json!("backward-ruter");
    world.put("d", "2026-01-04", &wrong);
    world.delete("a");
    world.turn().await;
    assert_eq!((world.wanted(), world.of("a")), (None, Value::Null));
    assert_eq!(world.of("d")["status"]["state"], "Refused");
    world.delete("d");
    world.put("a", "2026-01-02", &minimal("later"));
    world.turn().await;
    assert_eq!(world.wanted().as_deref(), Some("later"));
    // Deleted before it was ever the network, an object takes nothing along.
    world.put("c", "2026-01-03", &minimal("never"));
    world.turn().await;
    world.delete("c");
    world.turn().await;
    assert_eq!(world.wanted().as_deref(), Some("later"));
}

#[tokio::test]
async fn an_object_that_was_deleted_while_nobody_looked_ends_its_network() {
    let mut world = World::new().await;
    world.put("one", "2026-01-01", &minimal("one"));
    world.turn().await;
    world.delete("one");
    // The operator that comes back remembers nothing.
    world.operator = operator(world.folder.path());
    world.turn().await;
    assert_eq!((world.wanted(), world.of("one")), (None, Value::Null));
}

#[test]
fn the_files_of_the_cluster_say_what_the_operator_asks_for() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes");
    let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
    let (group, version) = API.split_once('/').unwrap();
    let kind = read("base/network-crd.yaml");
    assert!(
        kind.contains(&format!("group: {group}\n"))
            && kind.contains(&format!("- name: {version}\n"))
    );
    assert!(kind.contains(&format!("{{name: networks.{group}}}")));
    assert!(read("base/rights.yaml").contains(&format!("apiGroups: [{group}]")));
    let example = read("network.yaml");
    assert!(example.contains(&format!("apiVersion: {API}\n")));
    let spec = example.split_once("spec:\n").unwrap().1.replace("\n  ", "\n");
    let form = onym_manager::describe::Form::Yaml;
    onym_manager::describe::read(spec.trim_start(), form).unwrap_or_else(|e| panic!("{e}"));
}
