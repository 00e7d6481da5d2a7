//! Networks of services as objects of a Kubernetes cluster.
//!
//! A custom resource `Network` (packaging/kubernetes) says what the manager runs: its `spec` is a
//! description as in YAML. The objects of the namespace are looked at in turns; a turn changes nothing
//! when nothing changed. A manager runs one network, that of the oldest object; others are told so in
//! their status. An object has a finalizer while its network runs, so that a manager that was away when
//! it was deleted ends the network when it is back.

use crate::describe::{self, Form};
use crate::driver::Cluster;
use crate::engine::{Change, ChangeError, Manager, Standing};
use crate::plan::Strategy;
use onym_http::client::{Body, HttpError, Method};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Group and version of the resource.
pub const API: &str = "net.onym/v1alpha1";
/// Holds an object until its network has ended.
pub const FINALIZER: &str = "net.onym/network";
/// Longest message in a status, in characters.
const MESSAGE_MAX: usize = 4096;
/// What the engine did not do is tried again after this.
const RETRY: Duration = Duration::from_secs(30);

/// Keeps the manager's network as the objects of a namespace say.
#[derive(Debug)]
pub struct Operator {
    cluster: Cluster,
    namespace: String,
    every: Duration,
    made: Option<Made>,
    /// The last error, told once.
    told: Option<String>,
}

/// What was made last.
#[derive(Debug)]
struct Made {
    uid: String,
    generation: u64,
    state: State,
    /// Why it is in that state.
    why: String,
    at: Instant,
}

impl Made {
    fn is_of(&self, object: &Value) -> bool {
        let meta = &object["metadata"];
        meta["uid"] == *self.uid && meta["generation"].as_u64().unwrap_or(0) == self.generation
    }

    fn is_to_be_tried_again(&self) -> bool {
        self.state == State::Failed && self.at.elapsed() >= RETRY
    }
}

/// What becomes of an object in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its network is that of the manager.
    Applied,
    /// It cannot be; what was before runs on.
    Refused,
    /// The engine did not do it; it is tried again.
    Failed,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Applied => "Applied",
            Self::Refused => "Refused",
            Self::Failed => "Failed",
        }
    }
}

impl Operator {
    /// An operator that looks once in each `every`.
    #[must_use]
    pub fn new(cluster: Cluster, namespace: String, every: Duration) -> Self {
        Self { cluster, namespace, every, made: None, told: None }
    }

    /// Looks and acts until the task ends.
    pub async fn run(mut self, manager: &Manager) {
        loop {
            if manager.shared.standing() == Standing::Leads {
                let error = self.turn(manager).await.err().map(|e| e.to_string());
                if let Some(error) = error.as_ref().filter(|_| error != self.told) {
                    tracing::warn!("networks of the cluster: {error}");
                }
                self.told = error;
            }
            tokio::time::sleep(self.every).await;
        }
    }

    /// One look at all objects.
    ///
    /// # Errors
    /// The API server refuses, or is not there; the next turn finds what is left.
    pub async fn turn(&mut self, manager: &Manager) -> Result<(), HttpError> {
        let list = self.ask(Method::GET, &self.path(None, ""), Body::None).await?;
        let mut objects = list["items"].as_array().cloned().unwrap_or_default();
        objects.sort_by_cached_key(|object| {
            let meta = &object["metadata"];
            (text(&meta["creationTimestamp"]), text(&meta["uid"]))
        });
        let (gone, there): (Vec<_>, Vec<_>) =
            objects.iter().partition(|o| !o["metadata"]["deletionTimestamp"].is_null());
        // Where another object waits, its network takes the place of one that goes in one change.
        let mut is_replaced = false;
        if let Some((first, others)) = there.split_first() {
            is_replaced = self.keep(manager, first).await? == State::Applied;
            let name = text(&first["metadata"]["name"]);
            let why =
                format!("the manager of this namespace runs {name:?}, and one network at a time");
            for object in others {
                self.tell(object, State::Refused, &why, manager).await?;
            }
        }
        for object in gone {
            self.end(manager, object, is_replaced).await?;
        }
        Ok(())
    }

    /// Makes the network of an object, if that was not done.
    async fn keep(&mut self, manager: &Manager, object: &Value) -> Result<State, HttpError> {
        let before = self.made.take();
        let made = match before.filter(|m| m.is_of(object) && !m.is_to_be_tried_again()) {
            Some(made) => made,
            None => self.make(manager, object).await?,
        };
        let state = made.state;
        let told = self.tell(object, state, &made.why, manager).await;
        self.made = Some(made);
        told.map(|()| state)
    }

    async fn make(&self, manager: &Manager, object: &Value) -> Result<Made, HttpError> {
        let meta = &object["metadata"];
        if !has_finalizer(object) {
            let mut all = meta["finalizers"].as_array().cloned().unwrap_or_default();
            all.push(json!(FINALIZER));
            self.finalizers(object, &all).await?;
        }
        let (state, why) = apply(manager, &object["spec"]).await;
        let generation = meta["generation"].as_u64().unwrap_or(0);
        Ok(Made { uid: text(&meta["uid"]), generation, state, why, at: Instant::now() })
    }

    /// Ends the network of an object that is being deleted, unless another one took its place, and lets
    /// the object go.
    async fn end(
        &mut self,
        manager: &Manager,
        object: &Value,
        is_replaced: bool,
    ) -> Result<(), HttpError> {
        if !has_finalizer(object) {
            return Ok(());
        }
        if !is_replaced && let Err(error) = manager.change(Change::Down { confirmed: true }).await {
            return self.tell(object, State::Failed, &error.to_string(), manager).await;
        }
        let all = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let left: Vec<_> = all.into_iter().filter(|name| name != FINALIZER).collect();
        self.finalizers(object, &left).await
    }

    async fn finalizers(&self, object: &Value, all: &[Value]) -> Result<(), HttpError> {
        let meta =
            json!({"finalizers": all, "resourceVersion": object["metadata"]["resourceVersion"]});
        let path = self.path(object["metadata"]["name"].as_str(), "");
        let change = json!({ "metadata": meta }).to_string();
        let body = Body::Octets("application/merge-patch+json", change.into());
        self.ask(Method::PATCH, &path, body).await.map(drop)
    }

    /// Writes the status of an object, if it is another one than before.
    async fn tell(
        &self,
        object: &Value,
        state: State,
        why: &str,
        manager: &Manager,
    ) -> Result<(), HttpError> {
        let view = manager.shared.view();
        let up = view.functions.values().filter(|function| function.state == "up").count();
        let functions = match state {
            State::Applied => json!(format!("{up}/{}", view.functions.len())),
            State::Refused | State::Failed => Value::Null,
        };
        let status = json!({
            "state": state.word(),
            "message": why.chars().take(MESSAGE_MAX).collect::<String>(),
            "functions": functions,
            "observedGeneration": object["metadata"]["generation"],
        });
        let is_same = ["state", "message", "functions", "observedGeneration"]
            .iter()
            .all(|key| object["status"][key] == status[key]);
        if is_same {
            return Ok(());
        }
        self.patch_status(object, &json!({ "status": status })).await
    }

    async fn patch_status(&self, object: &Value, change: &Value) -> Result<(), HttpError> {
        let path = self.path(object["metadata"]["name"].as_str(), "/status");
        let body = Body::Octets("application/merge-patch+json", change.to_string().into());
        match self.ask(Method::PATCH, &path, body).await {
            // It went: the next turn sees.
            Err(HttpError::Refused { status: 404, .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Body) -> Result<Value, HttpError> {
        self.cluster.client.ask(method, path, body).await
    }

    fn path(&self, name: Option<&str>, part: &str) -> String {
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        format!("/apis/{API}/namespaces/{}/networks{name}{part}", self.namespace)
    }
}

/// Applies the `spec` of an object; what became of it, and why.
async fn apply(manager: &Manager, spec: &Value) -> (State, String) {
    // JSON is YAML.
    let described = match describe::read(&spec.to_string(), Form::Yaml) {
        Ok(described) => described.description,
        Err(error) => return (State::Refused, error.to_string()),
    };
    let change = Change::Apply {
        description: Box::new(described),
        strategy: Strategy::default(),
        dry_run: false,
        // Who may write the object means it.
        confirmed: true,
    };
    match manager.change(change).await {
        Ok(_) => (State::Applied, String::new()),
        Err(
            error @ (ChangeError::Faults(_) | ChangeError::Conflict(_) | ChangeError::Unknown(_)),
        ) => (State::Refused, error.to_string()),
        Err(error) => (State::Failed, error.to_string()),
    }
}

fn has_finalizer(object: &Value) -> bool {
    let all = object["metadata"]["finalizers"].as_array();
    all.is_some_and(|all| all.iter().any(|name| name == FINALIZER))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
