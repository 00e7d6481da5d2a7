//! Shared by the commands of the push half: finding the node, its datasets, failures.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::session;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use onym_client::mgmt;
use onym_client::push::{App, Error};
use onym_wire::name::Name;
use onym_wire::push::{Id, Kind, Path, Status, Strategy};
use serde_json::Value;

/// Registers at the node of the command line.
pub(crate) fn open(cx: &Context, name: &str) -> anyhow::Result<App> {
    App::open(cx.node.as_deref(), name).map_err(failure)
}

/// Every strategy of the node by its name, for clap: help, errors and parser have one list.
pub(crate) fn strategies() -> impl TypedValueParser<Value = Strategy> {
    PossibleValuesParser::new(Strategy::ALL.iter().map(|(_, name)| *name)).try_map(known)
}

/// Those that a scope can have: it is known to a rendezvous.
pub(crate) fn strategies_of_scopes() -> impl TypedValueParser<Value = Strategy> {
    let with = Strategy::ALL.iter().filter(|(strategy, _)| strategy.has_rendezvous());
    PossibleValuesParser::new(with.map(|(_, name)| *name)).try_map(known)
}

fn known(name: String) -> Result<Strategy, String> {
    Strategy::named(&name).ok_or(name)
}

/// The client's error as three sentences and an exit code.
pub(crate) fn failure(error: Error) -> anyhow::Error {
    let what = error.to_string();
    let (exit, next) = match &error {
        Error::Node(_) => {
            let Error::Node(error) = error else { return error.into() };
            return session::failure(error);
        }
        Error::Stopped => (Exit::Stopped, "what was asked for is taken back"),
        Error::Gone(_) => (Exit::NoNode, "look at the node's log; start it again"),
        Error::Silent(_) => (
            Exit::NoNode,
            "is it an onym node with `push.enabled = true`? see `onym rendezvous status`",
        ),
        Error::Refused { status, .. } => (Exit::Refused, advice(*status)),
        _ => (Exit::Failed, "do node and program have the same version?"),
    };
    Failure::new(exit, what).next(next).into()
}

/// What to do about a status.
fn advice(status: Status) -> &'static str {
    match status {
        Status::NO_PARENT => "publish the scope above it first: `onym scope publish ID`",
        Status::STRATEGY => "name the strategy of the scope with --strategy: see `onym scope list`",
        Status::UNREACHED => {
            "no rendezvous node is known: see `onym rendezvous status` and the roles of the nodes"
        }
        Status::IS_SCOPE | Status::NO_ITEM => "it is a scope: say --scope",
        Status::IS_ITEM | Status::NO_SCOPE => "it is an item: leave --scope out",
        Status::FULL => "a bound of the configuration is reached: see docs/config.md, `push`",
        Status::WORD => "two words have the same label: choose another word",
        Status::OFF => "set push.enabled in the node's configuration",
        _ => "spec/push.md says what each status means",
    }
}

/// Makes a request about a path.
///
/// # Errors
/// Also for a status other than ok.
pub(crate) fn ask(
    app: &mut App,
    kind: Kind,
    path: &Path,
    strategy: Strategy,
) -> anyhow::Result<()> {
    match app.request_path(kind, path, strategy).map_err(failure)? {
        Status::OK => Ok(()),
        status => Err(failure(Error::Refused { what: path.to_string(), status })),
    }
}

/// Publishes every scope above `path`, the highest first; those that are there are joined.
pub(crate) fn scopes_above(app: &mut App, path: &Path, strategy: Strategy) -> anyhow::Result<()> {
    for scope in path.above() {
        match app.request_path(Kind::PUBLISH_SCOPE, &scope, strategy).map_err(failure)? {
            Status::OK | Status::EXISTS => {}
            status => return Err(failure(Error::Refused { what: scope.to_string(), status })),
        }
    }
    Ok(())
}

/// The identifier `id` with the words of `path`, as far as it is that or beneath it; none: it has
/// none.
pub(crate) fn with_words(path: &Path, id: &Id) -> Option<String> {
    let is_of = id.starts_with(&path.id) && path.words.iter().any(Option::is_some);
    let mut words = path.words.clone();
    words.resize(id.len(), None);
    is_of.then(|| Path { id: id.clone(), words }.to_string())
}

/// An identifier for people, with its words where `path` has them.
pub(crate) fn both(path: &Path, id: &Id) -> String {
    let words = with_words(path, id);
    words.map_or_else(|| id.to_string(), |words| format!("{words} ({id})"))
}

/// Identifiers of JSON, each with its words where these are known.
pub(crate) fn with_paths(told: &Value) -> String {
    let ids = texts(&told["ids"]);
    let both = |(at, id): (usize, &str)| match told["paths"][at].as_str() {
        Some(path) => format!("{path} ({id})"),
        None => id.to_owned(),
    };
    ids.into_iter().enumerate().map(both).collect::<Vec<_>>().join(" = ")
}

/// The dataset `what` of the node's push half.
pub(crate) fn dataset(cx: &Context, what: &str, id: Option<&Id>) -> anyhow::Result<Value> {
    let mut client = session::open(cx)?;
    let mut name = Name::new();
    name.append_generic("localhost").append_generic("onym");
    name.append_generic("push").append_generic(what);
    if let Some(id) = id {
        name.append_generic(id.octets());
    }
    let content = mgmt::fetch_dataset(&mut client, name).map_err(|error| {
        Failure::new(Exit::NotFound, "the node does not report on publish/subscribe")
            .why(error)
            .next("ask an onym node with `push.enabled = true` over its Unix socket")
    })?;
    enabled(serde_json::from_slice(&content)?)
}

/// Fails with a sentence when the push half is off.
fn enabled(status: Value) -> anyhow::Result<Value> {
    if status["enabled"] == false {
        return Err(Failure::new(Exit::Refused, "publish/subscribe is off on this node")
            .next("start the node with --set push.enabled=true")
            .into());
    }
    Ok(status)
}

/// The texts of a list of JSON.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The text of a member, or a dash.
pub(crate) fn word<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or("-")
}
