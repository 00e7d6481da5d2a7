//! Client of a service's control interface (`spec/services.md`).

use crate::network::{Settings, Side, Transport};
use onym_http::client::{Body, Client, HttpError, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for an answer of a service.
pub const ANSWER: Duration = Duration::from_secs(5);
/// Most chunks of one hand-over of a table (each at most 1000 entries).
const CHUNKS_MAX: usize = 1000;

/// A face, as a service tells it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Face {
    /// Its label.
    pub label: String,
    /// The far end.
    pub uri: String,
    /// This end.
    pub local_uri: Option<String>,
    /// `consumer` or `producer`.
    pub side: String,
    /// `connecting`, `up`, `down`.
    pub state: String,
    /// Whether it was made by the control interface.
    pub created: bool,
    /// Whether no new Interests leave by it.
    pub draining: bool,
    /// Packets that came.
    pub r#in: Traffic,
    /// Packets that left.
    pub out: Traffic,
    /// What could not be sent, by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// Packets one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Interests.
    pub interests: u64,
    /// Data.
    pub data: u64,
    /// Nacks.
    pub nacks: u64,
    /// Octets.
    pub bytes: u64,
}

/// Where a service listens.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Listener {
    /// Its label.
    pub label: String,
    /// The real address.
    pub uri: String,
}

/// All of a service's state at a glance (`GET /v1/service`).
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Faces by label.
    pub faces: BTreeMap<String, Face>,
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// Its settings.
    pub config: Settings,
    /// Its statistics as they came.
    pub stats: Value,
}

/// A route as a router tells it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Route {
    /// The prefix.
    pub prefix: String,
    /// Label of the face.
    pub face: String,
    /// `static` or `registered`.
    pub origin: String,
}

/// What a face does when it is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// It carries packets.
    Carries,
    /// It takes no new Interests until it is told to.
    Idle,
}

/// A service that is asked.
#[derive(Debug, Clone)]
pub struct Control {
    client: Client,
}

impl Control {
    /// The service whose control interface is at `url`.
    ///
    /// # Errors
    /// The URL is no `http://host:port`.
    pub fn new(url: &str, token: &str) -> Result<Self, HttpError> {
        let token = (!token.is_empty()).then(|| token.to_owned());
        Ok(Self { client: Client::of_url(url, token, ANSWER)? })
    }

    /// The same over a connection of its own that is kept: once it is there, nobody else's
    /// connections stand in its way.
    #[must_use]
    pub fn keeping(&self) -> Self {
        Self { client: self.client.clone().keeping() }
    }

    /// The same with another time to wait.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { client: self.client.clone().within(timeout) }
    }

    async fn get(&self, path: &str) -> Result<Value, HttpError> {
        self.client.ask(Method::GET, path, Body::None).await
    }

    async fn put(&self, path: &str, body: Value) -> Result<Value, HttpError> {
        self.client.ask(Method::PUT, path, Body::Json(body)).await
    }

    /// Everything at a glance.
    ///
    /// # Errors
    /// No good answer.
    pub async fn state(&self) -> Result<State, HttpError> {
        Ok(state(&self.get("/v1/service").await?))
    }

    /// Makes a face, and waits until it is up or the time is over; `Ok(None)` when it is up, else
    /// its state.
    ///
    /// # Errors
    /// No good answer.
    pub async fn link(
        &self,
        label: &str,
        uri: &str,
        side: Side,
        transport: Transport,
        first: First,
        wait: Duration,
    ) -> Result<Option<String>, HttpError> {
        let side = if side == Side::Consumer { "consumer" } else { "producer" };
        let path = format!("/v1/faces/{label}");
        let wait_ms = wait.as_millis().min(10_000) as u64;
        let body = json!({
            "uri": uri, "side": side, "peer": transport.peer(), "draining": first == First::Idle,
            "wait_ms": wait_ms,
        });
        let patient = self.within(wait + ANSWER);
        let answer = match patient.put(&path, body.clone()).await {
            // The label is taken by a face to elsewhere: that one is of the past.
            Err(HttpError::Refused { status: 409, .. }) => {
                self.unlink(label).await?;
                patient.put(&path, body).await?
            }
            other => other?,
        };
        let state = answer["face"]["state"].as_str().unwrap_or("unknown");
        Ok((state != "up").then(|| state.to_owned()))
    }

    /// Removes a face; one that is not there is no error.
    ///
    /// # Errors
    /// No good answer.
    pub async fn unlink(&self, label: &str) -> Result<Value, HttpError> {
        self.client.ask(Method::DELETE, &format!("/v1/faces/{label}"), Body::None).await
    }

    /// Lets Interests leave by the faces `to` and no longer by the faces `from`, between two packets.
    ///
    /// # Errors
    /// No good answer, or one of the faces is not there; then nothing is changed.
    pub async fn turn(&self, from: &[String], to: &[String]) -> Result<Value, HttpError> {
        let row = |label: &String, draining: bool| (label.clone(), json!({"draining": draining}));
        let to = to.iter().map(|label| row(label, false));
        let faces: Map<String, Value> =
            to.chain(from.iter().map(|label| row(label, true))).collect();
        let body = Body::Json(json!({ "faces": faces }));
        self.client.ask(Method::PATCH, "/v1/faces", body).await
    }

    /// Lets no new Interests leave by a face.
    ///
    /// # Errors
    /// No good answer.
    pub async fn drain_face(&self, label: &str) -> Result<Value, HttpError> {
        let body = Body::Json(json!({"draining": true}));
        self.client.ask(Method::PATCH, &format!("/v1/faces/{label}"), body).await
    }

    /// One face.
    ///
    /// # Errors
    /// No good answer.
    pub async fn face(&self, label: &str) -> Result<Face, HttpError> {
        let answer = self.get(&format!("/v1/faces/{label}")).await?;
        Ok(serde_json::from_value(answer["face"].clone()).unwrap_or_default())
    }

    /// Keeps what should leave on a side.
    ///
    /// # Errors
    /// No good answer.
    pub async fn freeze(&self, side: &str) -> Result<Value, HttpError> {
        let body = json!({"packets_max": 10_000, "bytes_max": 64 << 20, "ms_max": 10_000});
        self.put(&format!("/v1/freeze/{side}"), body).await
    }

    /// Sends what was kept.
    ///
    /// # Errors
    /// No good answer.
    pub async fn thaw(&self, side: &str) -> Result<Value, HttpError> {
        self.client.ask(Method::DELETE, &format!("/v1/freeze/{side}"), Body::None).await
    }

    /// Changes settings.
    ///
    /// # Errors
    /// No good answer.
    pub async fn configure(&self, settings: &Settings) -> Result<Value, HttpError> {
        let body = Body::Json(Value::Object(settings.clone()));
        self.client.ask(Method::PATCH, "/v1/config", body).await
    }

    /// The routes of a router.
    ///
    /// # Errors
    /// No good answer.
    pub async fn routes(&self) -> Result<Vec<Route>, HttpError> {
        let answer = self.get("/v1/routes").await?;
        Ok(serde_json::from_value(answer["routes"].clone()).unwrap_or_default())
    }

    /// Makes the static routes exactly these.
    ///
    /// # Errors
    /// No good answer.
    pub async fn set_routes(&self, routes: &crate::routes::Routes) -> Result<Value, HttpError> {
        let rows = routes.iter().flat_map(|(face, set)| {
            set.iter().map(move |prefix| json!({"prefix": prefix, "face": face, "cost": 0}))
        });
        self.put("/v1/routes", json!({"routes": rows.collect::<Vec<_>>()})).await
    }

    /// Makes the keys exactly these ([`crate::keys::body`]).
    ///
    /// # Errors
    /// No good answer.
    pub async fn set_keys(&self, body: Value) -> Result<Value, HttpError> {
        self.put("/v1/keys", body).await
    }

    /// Makes the rules of a signature verifier these.
    ///
    /// # Errors
    /// No good answer.
    pub async fn set_trust(&self, body: Value) -> Result<Value, HttpError> {
        self.put("/v1/trust", body).await
    }

    /// Stops readiness and refuses what is new.
    ///
    /// # Errors
    /// No good answer.
    pub async fn drain(&self) -> Result<Value, HttpError> {
        self.put("/v1/drain", json!({})).await
    }

    /// How many entries are pending while it drains.
    ///
    /// # Errors
    /// No good answer.
    pub async fn pending(&self) -> Result<u64, HttpError> {
        Ok(self.get("/v1/drain").await?["pending"].as_u64().unwrap_or(0))
    }

    /// Hands the table to another service, chunk by chunk; how many entries were new there.
    /// Labels are handed as they are: both have faces with the same labels.
    ///
    /// # Errors
    /// No good answer of either.
    pub async fn hand_over(
        &self,
        to: &Self,
        faces: &BTreeMap<String, String>,
    ) -> Result<u64, HttpError> {
        let (mut path, mut new) = ("/v1/table?limit=1000".to_owned(), 0);
        for _ in 0..CHUNKS_MAX {
            let mut chunk = self.get(&path).await?;
            let last = chunk["last"].as_bool().unwrap_or(true);
            let cursor = chunk["cursor"].as_str().unwrap_or_default().to_owned();
            chunk["faces"] = json!(faces);
            let answer = to.client.ask(Method::POST, "/v1/table", Body::Json(chunk)).await?;
            new += answer["new"].as_u64().unwrap_or(0);
            if last {
                break;
            }
            path = format!("/v1/table?limit=1000&after={cursor}");
        }
        Ok(new)
    }

    /// Any read-only path, as it comes.
    ///
    /// # Errors
    /// No good answer.
    pub async fn raw(&self, path: &str) -> Result<Value, HttpError> {
        self.get(path).await
    }
}

fn state(value: &Value) -> State {
    let list = |value: &Value, key: &str| match &value[key] {
        // The body of `/v1/faces` is `{"faces": […]}`; at a glance it may be the list itself.
        Value::Object(map) => map.get(key).cloned().unwrap_or(Value::Null),
        other => other.clone(),
    };
    let faces: Vec<Face> = serde_json::from_value(list(value, "faces")).unwrap_or_default();
    let config = &value["config"];
    let config = if config["config"].is_object() { &config["config"] } else { config };
    State {
        faces: faces.into_iter().map(|f| (f.label.clone(), f)).collect(),
        listeners: serde_json::from_value(list(value, "listeners")).unwrap_or_default(),
        config: config.as_object().cloned().unwrap_or_default(),
        stats: value["stats"].clone(),
    }
}
