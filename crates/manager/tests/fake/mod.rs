//! Services that are nothing but a control interface (`spec/services.md`), and a driver of them:
//! the manager's own behaviour without packets.

// Each test file uses a part of this.
#![allow(dead_code, clippy::unwrap_used)]

use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, body::Bytes, routing::any};
use onym_manager::driver::{
    Answer, Driver, DriverError, Found, Order, Started, Usage, link_listeners,
};
use onym_manager::network::Function;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// What a service keeps.
#[derive(Default, Clone)]
pub(crate) struct Service {
    pub(crate) order: Option<Order>,
    pub(crate) started: Option<Started>,
    pub(crate) alive: bool,
    pub(crate) faces: BTreeMap<String, Value>,
    pub(crate) config: Map<String, Value>,
    pub(crate) routes: Vec<Value>,
    pub(crate) keys: Value,
    pub(crate) trust: Value,
    pub(crate) stats: Value,
    pub(crate) events: Vec<Value>,
    pub(crate) cpu_ns: u64,
}

impl Service {
    /// `PATCH` of one face, or of several; false when one is not there.
    fn change_faces(&mut self, label: &str, body: &Value) -> bool {
        let one = [(label.to_owned(), body.clone())].into_iter().collect();
        let changes = body["faces"].as_object().unwrap_or(&one);
        for (label, change) in changes {
            let Some(face) = self.faces.get_mut(label) else { return false };
            face["draining"] = change["draining"].clone();
        }
        true
    }

    /// `PUT` of keys or of a trust schema.
    fn keep(&mut self, what: &str, body: Value) -> Value {
        match what {
            "keys" => self.keys = body["keys"].clone(),
            _ => self.trust = body,
        }
        json!({"changed": true})
    }

    fn set_routes(&mut self, body: &Value) -> Option<Value> {
        self.routes.retain(|r| r["origin"] != "static");
        for row in body["routes"].as_array().unwrap() {
            let mut row = row.clone();
            self.faces.get(row["face"].as_str().unwrap())?;
            row["origin"] = "static".into();
            self.routes.push(row);
        }
        Some(json!({"changed": true}))
    }
}

/// All services, by instance, and what they were told, in order.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) services: BTreeMap<String, Service>,
    pub(crate) calls: Vec<String>,
    pub(crate) ports: u32,
    /// Names that do not start.
    pub(crate) broken: BTreeSet<String>,
    /// Names of which it is known beforehand that they would not start.
    pub(crate) hopeless: BTreeSet<String>,
    /// Names whose control interface tells nothing.
    pub(crate) deaf: BTreeSet<String>,
    /// Nothing is answered about these links: they do not come up.
    pub(crate) unreachable: BTreeSet<String>,
    /// Packets that a freeze keeps.
    pub(crate) kept: u64,
    /// What services share is there.
    pub(crate) shared: bool,
}

#[derive(Clone, Default)]
pub(crate) struct FakeDriver {
    pub(crate) world: Arc<Mutex<World>>,
}

impl std::fmt::Debug for FakeDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FakeDriver")
    }
}

impl World {
    pub(crate) fn named(&mut self, name: &str) -> &mut Service {
        let found = self
            .services
            .values_mut()
            .find(|s| s.alive && s.order.as_ref().is_some_and(|o| o.name == name));
        found.unwrap_or_else(|| panic!("{name} does not run"))
    }

    pub(crate) fn alive(&self) -> Vec<String> {
        let alive = self.services.values().filter(|s| s.alive);
        let mut names: Vec<String> =
            alive.map(|s| s.order.as_ref().unwrap().name.clone()).collect();
        names.sort();
        names
    }

    pub(crate) fn kill(&mut self, name: &str) {
        self.named(name).alive = false;
    }
}

fn refused(status: u16, message: &str) -> Response {
    let body = json!({"error": {"code": "fake", "message": message}});
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

async fn serve(
    State((world, instance)): State<(Arc<Mutex<World>>, String)>,
    method: Method,
    Path(path): Path<String>,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let mut world = world.lock().unwrap();
    let service = world.services.get(&instance).cloned().unwrap();
    if !service.alive {
        return refused(503, "dead");
    }
    let name = service.order.as_ref().unwrap().name.clone();
    if world.deaf.contains(&name) {
        return refused(503, "deaf");
    }
    if method != Method::GET {
        world.calls.push(format!("{method} {name}/{path}"));
    }
    let unreachable = world.unreachable.clone();
    let kept = world.kept;
    if method == Method::PUT && path.starts_with("faces/") {
        accept(&mut world, &body, &instance, &path);
    }
    let service = world.services.get_mut(&instance).unwrap();
    let (part, rest) = path.split_once('/').unwrap_or((&path, ""));
    let answer = match (method.as_str(), part) {
        ("GET", "service") => json!({
            "faces": service.faces.values().collect::<Vec<_>>(),
            "config": service.config,
            "stats": service.stats,
        }),
        ("GET", "faces") => json!({ "face": service.faces.get(rest) }),
        ("PUT", "faces") => {
            let up = !unreachable.contains(&format!("{name} {rest}"));
            let state = if up { "up" } else { "connecting" };
            let face = json!({
                "label": rest, "uri": body["uri"], "side": body["side"], "created": true,
                "draining": body["draining"],
                "state": state, "local_uri": format!("local:{instance}/{rest}"),
            });
            service.faces.insert(rest.to_owned(), face.clone());
            json!({"changed": true, "face": face})
        }
        ("PATCH", "faces") => {
            if !service.change_faces(rest, &body) {
                return refused(404, "face_unknown");
            }
            json!({"changed": true})
        }
        ("DELETE", "faces") => json!({"changed": service.faces.remove(rest).is_some()}),
        ("PATCH", "config") => {
            service.config.extend(body.as_object().unwrap().clone());
            json!({"changed": []})
        }
        ("GET", "routes") => json!({"routes": service.routes}),
        ("PUT", "routes") => match service.set_routes(&body) {
            Some(answer) => answer,
            None => return refused(422, "face_unknown"),
        },
        ("PUT", what @ ("keys" | "trust")) => service.keep(what, body),
        ("GET", "events") => json!({"events": service.events}),
        ("DELETE", "freeze") => json!({"frozen": false, "sent": kept, "dropped": 0}),
        ("GET", "drain") => json!({"draining": true, "pending": 0, "empty": true}),
        ("GET", "table") => json!({"entries": [1, 2], "last": true, "cursor": "2"}),
        ("POST", "table") => json!({"changed": true, "new": 2}),
        _ => json!({"changed": true}),
    };
    Json(answer).into_response()
}

/// The far end of a face that is made gets a face too.
fn accept(world: &mut World, body: &Value, instance: &str, path: &str) {
    let uri = body["uri"].as_str().unwrap_or_default().to_owned();
    let local = format!("local:{instance}/{}", path.trim_start_matches("faces/"));
    let target = world.services.values_mut().find(|s| {
        s.alive && s.started.as_ref().is_some_and(|st| st.listeners.values().any(|l| *l == uri))
    });
    if let Some(target) = target {
        let label = format!("acc.{}", target.faces.len());
        let face = json!({"label": label, "uri": local, "created": false, "state": "up", "side": "consumer"});
        target.faces.insert(label, face);
    }
}

impl FakeDriver {
    async fn start_now(&self, order: &Order) -> Result<Started, DriverError> {
        if self.world.lock().unwrap().broken.contains(&order.name) {
            return Err(DriverError::Start {
                name: order.name.clone(),
                why: "port 6363 is in use".into(),
            });
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let control = format!("http://{}", listener.local_addr().unwrap());
        let mut world = self.world.lock().unwrap();
        world.shared = true;
        let mut listeners = BTreeMap::new();
        for (label, scheme, _) in link_listeners(order) {
            world.ports += 1;
            listeners.insert(label, format!("{scheme}://fake:{}", world.ports));
        }
        let started = Started { handle: order.instance.clone(), control, listeners };
        let service = Service {
            order: Some(order.clone()),
            started: Some(started.clone()),
            alive: true,
            stats: json!({"boot": world.ports}),
            ..Service::default()
        };
        world.services.insert(order.instance.clone(), service);
        let state = (Arc::clone(&self.world), order.instance.clone());
        let app = Router::new().route("/v1/{*path}", any(serve)).with_state(state);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(started)
    }
}

impl Driver for FakeDriver {
    fn word(&self) -> &'static str {
        "fake"
    }

    fn prepare(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn release(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let mut world = self.world.lock().unwrap();
            assert!(world.alive().is_empty(), "something runs still");
            world.shared = false;
            Ok(())
        })
    }

    fn check<'a>(
        &'a self,
        functions: &'a [(&'a str, &'a Function)],
        _: &'a BTreeSet<String>,
    ) -> Answer<'a, ()> {
        Box::pin(async {
            let world = self.world.lock().unwrap();
            let bad = functions.iter().find(|(name, _)| world.hopeless.contains(*name));
            bad.map_or(Ok(()), |(name, _)| {
                let (name, why) = ((*name).to_owned(), "port 6363 is in use".into());
                Err(DriverError::Start { name, why })
            })
        })
    }

    fn start<'a>(&'a self, order: &'a Order) -> Answer<'a, Started> {
        Box::pin(self.start_now(order))
    }

    fn list(&self) -> Answer<'_, Vec<Found>> {
        Box::pin(async {
            let world = self.world.lock().unwrap();
            let alive = world.services.values().filter(|s| s.alive);
            Ok(alive
                .map(|s| Found {
                    order: s.order.clone().unwrap(),
                    started: s.started.clone(),
                    handle: s.started.as_ref().unwrap().handle.clone(),
                })
                .collect())
        })
    }

    fn alive<'a>(&'a self, handle: &'a str) -> Answer<'a, bool> {
        Box::pin(async move {
            Ok(self.world.lock().unwrap().services.get(handle).is_some_and(|s| s.alive))
        })
    }

    fn usage<'a>(&'a self, handle: &'a str) -> Answer<'a, Usage> {
        Box::pin(async move {
            let world = self.world.lock().unwrap();
            Ok(Usage { cpu_ns: world.services.get(handle).map_or(0, |s| s.cpu_ns), memory: 1 })
        })
    }

    fn limit<'a>(&'a self, _: &'a str, _: Option<f64>) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn stop<'a>(&'a self, handle: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            if let Some(service) = self.world.lock().unwrap().services.get_mut(handle) {
                service.alive = false;
            }
            Ok(())
        })
    }

    fn last_words<'a>(&'a self, _: &'a str) -> Answer<'a, String> {
        Box::pin(async { Ok("killed".to_owned()) })
    }
}
