//! What each operation does.

use super::bodies::{
    InsertOrder, Instances, KeysOrder, LinkOrder, PageAddress, Session, SessionOrder,
};
use super::{App, Input, Operation, Refusal, metrics, stream};
use crate::describe::{self, DescribeError, Description, Form};
use crate::engine::{Change, ChangeError, Manager, Shared, Standing};
use crate::network::{Ends, Fault, Side};
use crate::plan::Strategy;
use crate::policy::Policies;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use onym_http::entries::CODE_LIFE;
use onym_metrics::CONTENT_TYPE;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// Parts of a service's state that are handed on.
const PARTS: [&str; 8] =
    ["faces", "routes", "config", "stats", "rules", "sessions", "keys", "events"];
/// Longest wait for events.
const WAIT_MAX_MS: u64 = 30_000;

fn reply(value: &impl Serialize) -> Result<Response, Refusal> {
    Ok(axum::Json(json!(value)).into_response())
}

fn text(kind: &'static str, text: String) -> Result<Response, Refusal> {
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

fn unknown(what: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "unknown", what)
}

/// Answers one request.
pub(super) async fn run(
    app: &App,
    operation: Operation,
    input: &Input,
) -> Result<Response, Refusal> {
    let manager = &app.manager;
    let shared = &manager.shared;
    match operation {
        Operation::Health => reply(&health(shared)),
        Operation::Network => reply(&*shared.view()),
        Operation::Description => shown(manager, input),
        Operation::Presets => reply(&crate::presets::list()),
        Operation::Function => {
            let name = input.param("name");
            let view = shared.view();
            let function = view.functions.get(name);
            reply(function.ok_or_else(|| unknown(format!("there is no function {name:?}")))?)
        }
        Operation::Samples => reply(&shared.history(input.param("name"))),
        Operation::ServiceState => service_state(manager, input).await,
        Operation::Keys => {
            let saved = shared.saved();
            reply(&saved.description.as_ref().map(|d| d.keys.clone()).unwrap_or_default())
        }
        Operation::Policies => {
            let saved = shared.saved();
            reply(&saved.description.as_ref().map(|d| d.policies.clone()).unwrap_or_default())
        }
        Operation::Decisions => reply(&shared.saved().decisions),
        Operation::Events => events(manager, input).await,
        Operation::EventStream => stream::open(app, after(input)?),
        Operation::Trace => trace(manager, input),
        Operation::Metrics => {
            let sample = metrics::Sample { view: shared.view(), saved: shared.saved() };
            let failed =
                |e| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "metrics", format!("{e}"));
            text(CONTENT_TYPE, onym_metrics::page(sample).map_err(failed)?)
        }
        Operation::OpenApi => reply(&super::document()),
        Operation::Page => {
            let none = || unknown("this manager has no page: it listens at a Unix socket only");
            let url = app.pages.address().ok_or_else(none)?;
            reply(&PageAddress { url, expires_s: CODE_LIFE.as_secs() })
        }
        Operation::Session => {
            let order: SessionOrder = input.json()?;
            let old = "the code is used, too old or none; `onym net page` prints a new address";
            let refused = || Refusal::new(StatusCode::FORBIDDEN, "code", old);
            let token = app.pages.token_for(&order.code).ok_or_else(refused)?;
            reply(&Session { token })
        }
        changing => reply(&manager.change(change(changing, input)?).await?),
    }
}

/// That it runs; where several stand by for each other, whether it leads, and who does.
fn health(shared: &Shared) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    match shared.standing() {
        Standing::Leads => json!({"ok": true, "version": version, "leads": true}),
        Standing::StandsBy(leader) => {
            json!({"ok": true, "version": version, "leads": false, "leader": leader})
        }
    }
}

fn change(operation: Operation, input: &Input) -> Result<Change, Refusal> {
    let name = || input.param("name").to_owned();
    Ok(match operation {
        Operation::Apply => Change::Apply {
            description: Box::new(described(input)?),
            strategy: input.strategy()?,
            dry_run: input.flag("dry_run")?,
            confirmed: input.flag("confirm")?,
        },
        Operation::ApplyPreset => {
            let name = name();
            let preset = crate::presets::find(&name);
            let preset = preset.ok_or_else(|| unknown(format!("there is no preset {name:?}")))?;
            let described = describe::read(preset, Form::Toml).map_err(refused)?;
            Change::Apply {
                description: Box::new(described.description),
                strategy: input.strategy()?,
                dry_run: input.flag("dry_run")?,
                confirmed: input.flag("confirm")?,
            }
        }
        Operation::Down => Change::Down { confirmed: input.flag("confirm")? },
        Operation::Deploy => Change::Deploy { name: name(), function: Box::new(input.json()?) },
        Operation::Delete => {
            Change::Remove { name: name(), strategy: input.strategy()?, join: input.flag("join")? }
        }
        Operation::Scale => {
            Change::Scale { name: name(), instances: input.json::<Instances>()?.instances }
        }
        Operation::Link => {
            let order: LinkOrder = input.json()?;
            let ends = Ends { from: order.from, to: order.to, side: order.side };
            Change::Link { ends, transport: order.transport }
        }
        Operation::Unlink => {
            let word = |key: &str| input.query.get(key).cloned().unwrap_or_default();
            let side = match word("side").as_str() {
                "" | "consumer" => Side::Consumer,
                "producer" => Side::Producer,
                other => return Err(Refusal::field(format!("side: {other:?} is not a side"))),
            };
            Change::Unlink { ends: Ends { from: word("from"), to: word("to"), side } }
        }
        Operation::Insert => {
            let order: InsertOrder = input.json()?;
            Change::Insert {
                on: order.on,
                name: order.name,
                function: Box::new(order.function),
                strategy: order.strategy,
            }
        }
        Operation::ChangeKeys => {
            let order: KeysOrder = input.json()?;
            Change::Keys { add: order.add, remove: order.remove }
        }
        Operation::SetPolicies => Change::Policies(Box::new(input.json::<Policies>()?)),
        _ => return Err(unknown("there is no such operation")),
    })
}

impl Input {
    fn param(&self, key: &str) -> &str {
        self.path.get(key).map_or("", String::as_str)
    }

    fn value(&self) -> Result<Value, Refusal> {
        serde_json::from_slice(&self.body).map_err(|e| {
            Refusal::new(StatusCode::BAD_REQUEST, "json", format!("the body is no JSON: {e}"))
        })
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let value = self.value()?;
        // Said as of a file: the object, and where in it.
        serde_path_to_error::deserialize(&value).map_err(|error| {
            let path = error.path().to_string();
            let place = if path == "." { String::new() } else { format!("{path}: ") };
            let object = self.path.get("name").map(|name| format!("function {name}"));
            let object = object.unwrap_or_else(|| "the body".to_owned());
            let what = format!("{place}{}", error.inner());
            let next = "/openapi.json describes the body";
            ChangeError::Faults(vec![Fault::new(object, what, next)]).into()
        })
    }

    fn flag(&self, key: &str) -> Result<bool, Refusal> {
        match self.query.get(key).map(String::as_str) {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(other) => {
                Err(Refusal::field(format!("{key}: {other:?} is neither true nor false")))
            }
        }
    }

    fn strategy(&self) -> Result<Strategy, Refusal> {
        let Some(word) = self.query.get("strategy") else { return Ok(Strategy::default()) };
        serde_json::from_value(Value::from(word.as_str())).map_err(|_| {
            let words = "make-before-break, break-and-buffer or break-and-drop";
            Refusal::field(format!("strategy: {word:?} is none of {words}"))
        })
    }
}

fn refused(error: DescribeError) -> Refusal {
    let mut refusal = Refusal::field(error.to_string());
    if let DescribeError::Faults(faults) = error {
        refusal.faults = faults;
    }
    refusal
}

/// The form that a request names, by query or by media type.
fn form(input: &Input) -> Result<Option<Form>, Refusal> {
    let word = match input.query.get("form").map(String::as_str) {
        Some(word) => word,
        None if input.kind.contains("toml") => "toml",
        None if input.kind.contains("yaml") => "yaml",
        None => "json",
    };
    match word {
        "toml" => Ok(Some(Form::Toml)),
        "yaml" => Ok(Some(Form::Yaml)),
        "tosca" => Ok(Some(Form::Tosca)),
        "json" => Ok(None),
        other => Err(Refusal::field(format!("form: {other:?} is none of toml, yaml, tosca, json"))),
    }
}

fn described(input: &Input) -> Result<Description, Refusal> {
    let text = std::str::from_utf8(&input.body)
        .map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "text", "the body is no UTF-8"))?;
    let form = match form(input)? {
        Some(form) => form,
        None => {
            input.value()?;
            // JSON is YAML, whose reader tells lines.
            Form::Yaml
        }
    };
    Ok(describe::read(text, form).map_err(refused)?.description)
}

fn shown(manager: &Manager, input: &Input) -> Result<Response, Refusal> {
    let saved = manager.shared.saved();
    let none = || unknown("nothing was described yet; apply a description first");
    let description = saved.description.as_ref().ok_or_else(none)?;
    match form(input)? {
        None => reply(description),
        Some(Form::Toml) => text("application/toml", describe::to_toml(description)),
        Some(Form::Yaml) => text("application/yaml", describe::to_yaml(description)),
        Some(Form::Tosca) => text("application/yaml", crate::tosca::export(description)),
    }
}

async fn service_state(manager: &Manager, input: &Input) -> Result<Response, Refusal> {
    let (name, part) = (input.param("name"), input.param("part"));
    if !PARTS.contains(&part) {
        return Err(unknown(format!("there is no part {part:?}; one of: {}", PARTS.join(", "))));
    }
    let saved = manager.shared.saved();
    let instance = saved.instances.get(name);
    let instance = instance.ok_or_else(|| unknown(format!("{name:?} does not run")))?;
    let token = &instance.order.token;
    let bad = |e: onym_http::client::HttpError| {
        Refusal::new(StatusCode::BAD_GATEWAY, "service", e.to_string())
    };
    let control = crate::control::Control::new(&instance.started.control, token).map_err(bad)?;
    reply(&control.raw(&format!("/v1/{part}")).await.map_err(bad)?)
}

fn number(key: &str, text: Option<&String>) -> Result<u64, Refusal> {
    let Some(text) = text else { return Ok(0) };
    text.parse().map_err(|_| Refusal::field(format!("{key}: {text:?} is not a whole number")))
}

/// The event that a reader had last: what a browser says when it comes again, else the query.
fn after(input: &Input) -> Result<u64, Refusal> {
    match &input.last_event {
        Some(text) => number("Last-Event-ID", Some(text)),
        None => number("after", input.query.get("after")),
    }
}

async fn events(manager: &Manager, input: &Input) -> Result<Response, Refusal> {
    let after = number("after", input.query.get("after"))?;
    let wait = number("wait_ms", input.query.get("wait_ms"))?.min(WAIT_MAX_MS);
    let journal = &manager.shared.journal;
    let mut watch = journal.watch();
    if wait > 0 {
        let newer = watch.wait_for(|last| *last > after);
        let _ = tokio::time::timeout(Duration::from_millis(wait), newer).await;
    }
    let events = journal.after(after);
    let last = *watch.borrow();
    let first = events.first().map_or(last + 1, |e| e.seq);
    let lost = first.saturating_sub(after + 1);
    reply(&json!({"events": events, "last": last, "lost": lost}))
}

fn trace(manager: &Manager, input: &Input) -> Result<Response, Refusal> {
    let word = |key: &str| {
        let value = input.query.get(key).filter(|v| !v.is_empty());
        value.ok_or_else(|| Refusal::field(format!("{key} is missing")))
    };
    let (start, name) = (word("start")?, word("name")?);
    let saved = manager.shared.saved();
    let none = Description::default();
    let description = saved.description.as_ref().unwrap_or(&none);
    let network = crate::expand::expand(description, &saved.decisions);
    if !network.functions.contains_key(start) {
        return Err(unknown(format!("there is no function {start:?}")));
    }
    let registered = &manager.shared.view().registered;
    let edges = crate::routes::trace(&network, registered, start, name);
    let rows = edges.into_iter().map(|(from, to)| json!({"from": from, "to": to}));
    reply(&rows.collect::<Vec<_>>())
}
