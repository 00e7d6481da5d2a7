//! What the page asks, answered by the code of the commands.

use crate::cmd::dump::{self, Dump};
use crate::cmd::{cs, explain, face, route, status, strategy, top};
use crate::exit::{Exit, Failure, told};
use crate::node_shown;
use crate::node_words as words;
use crate::output::Context;
use crate::push_words;
use crate::session;
use crate::stop::Stop;
use anyhow::Result;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_console::{Change, Kind, Node, Nodes, Question, Refused, Tail, Tailed};
use onym_watch::Filter;
use onym_wire::mgmt::{
    CS_ADMIT, CS_SERVE, ControlParameters, ORIGIN_STATIC, Persistency, ROUTE_CHILD_INHERIT,
};
use onym_wire::name::Name;
use onym_wire::push::Path;
use serde::Serialize;
use serde_json::{Value, json};

/// An identifier without trees: asked about it, a topology manager tells the map alone.
const NOBODYS: &str = "/0";

/// The node of the command line.
pub(super) struct Here {
    cx: Context,
    stop: Stop,
    /// What signs questions to other nodes; none: the default key.
    key: Option<Name>,
}

impl Here {
    pub(super) fn new(cx: &Context, stop: &Stop, key: Option<Name>) -> Self {
        Self { cx: cx.clone(), stop: stop.clone(), key }
    }
}

fn refused(error: &anyhow::Error) -> Refused {
    let (exit, message, next) = told(error);
    let kind = match exit {
        Exit::Usage => Kind::Usage,
        Exit::NoNode => Kind::NoNode,
        Exit::Refused => Kind::Refused,
        Exit::NotFound => Kind::NotFound,
        Exit::Done | Exit::Failed | Exit::Stopped => Kind::Failed,
    };
    Refused { kind, message, next }
}

impl Nodes for Here {
    fn open(&self) -> Result<Box<dyn Node>, Refused> {
        let client = session::open(&self.cx).map_err(|e| refused(&e))?;
        let (cx, stop, key) = (self.cx.clone(), self.stop.clone(), self.key.clone());
        Ok(Box::new(Asked { cx, stop, key, client, viewer: None }))
    }

    fn tail(&self, filter: &[(String, String)]) -> Result<Box<dyn Tail>, Refused> {
        let opened = || {
            let mut dump = Dump::open(&self.cx, filter_of(filter)?)?;
            // Whoever is one too many hears it now.
            dump.ask()?;
            anyhow::Ok(dump)
        };
        let dump = opened().map_err(|e| refused(&e))?;
        Ok(Box::new(Watching { dump, stop: self.stop.clone() }))
    }

    fn verdicts(&self) -> Vec<(&'static str, &'static str)> {
        words::meanings().collect()
    }
}

fn filter_of(pairs: &[(String, String)]) -> Result<Filter> {
    let usage = |what: String| Failure::new(Exit::Usage, what);
    let mut filter = Filter::default();
    for (key, value) in pairs {
        let is_known = filter.set(key, value).map_err(|e| usage(e.to_string()))?;
        if !is_known {
            return Err(usage(format!("{key}: a filter has no such key")).into());
        }
    }
    Ok(filter)
}

/// One connection to it.
struct Asked {
    cx: Context,
    stop: Stop,
    key: Option<Name>,
    client: Client,
    /// What asks live figures; a connection of its own.
    viewer: Option<top::Viewer>,
}

impl Node for Asked {
    fn ask(&mut self, question: &Question) -> Result<String, Refused> {
        self.answer(question).map_err(|e| refused(&e))
    }
}

fn text<T: Serialize>(value: &T) -> Result<String> {
    Ok(serde_json::to_string(value)?)
}

fn name(typed: &str) -> Result<Name> {
    let wrong = |e| Failure::new(Exit::Usage, format!("{typed} is not a name")).why(e);
    Ok(typed.parse().map_err(wrong)?)
}

impl Asked {
    fn answer(&mut self, question: &Question) -> Result<String> {
        let client = &mut self.client;
        match question {
            Question::About => text(&about(client, &self.cx)?),
            Question::Status => text(&status::brief(client)?),
            Question::Top => {
                let viewer = match &mut self.viewer {
                    Some(viewer) => viewer,
                    none => none.insert(top::Viewer::open(&self.cx)?),
                };
                viewer.json()
            }
            Question::Faces => {
                let faces = mgmt::faces(client).map_err(session::failure)?;
                text(&faces.iter().map(face::Shown::of).collect::<Vec<_>>())
            }
            Question::Routes => {
                let routes = mgmt::rib(client).map_err(session::failure)?;
                text(&routes.iter().flat_map(route::Shown::of).collect::<Vec<_>>())
            }
            Question::Strategies => {
                let strategies = mgmt::strategies(client).map_err(session::failure)?;
                text(&strategies.iter().map(strategy::Shown::of).collect::<Vec<_>>())
            }
            Question::History { since } => history(client, *since),
            Question::Routing { network } => {
                let network = (!network.is_empty()).then(|| name(network)).transpose()?;
                text(&route::routing::mapped(&self.cx, network.as_ref())?)
            }
            Question::Push { item } => text(&push(&self.cx, item)?),
            Question::Other { name: typed } => {
                let signer = node_shown::signer(self.key.as_ref())?;
                text(&node_shown::ask(client, &name(typed)?, &signer)?)
            }
            Question::Explain { name: typed } => text(&explain::asked_of(client, &name(typed)?)?),
            Question::Trace { name: typed } => {
                let (hops, mut told) = explain::found_across(&name(typed)?, &self.cx, &self.stop)?;
                told["hops"] = hops.into();
                text(&told)
            }
            Question::Change(change) => changed(client, change),
        }
    }
}

fn about(client: &mut Client, cx: &Context) -> Result<Value> {
    let status = mgmt::status(client).map_err(session::failure)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(json!({ "kind": "node", "name": host, "version": status.nfd_version, "node": cx.node }))
}

/// The push half: what this node has of it, what its rendezvous knows, and the map with the trees of
/// an item where it is a topology manager.
fn push(cx: &Context, item: &str) -> Result<Value> {
    let status = push_words::dataset(cx, "status", None)?;
    let graph = push_words::dataset(cx, "graph", None)?;
    let item = if item.is_empty() { NOBODYS } else { item };
    let wrong = |e| Failure::new(Exit::Usage, format!("{item} is not an identifier")).why(e);
    let item: Path = item.parse().map_err(wrong)?;
    let topology = push_words::dataset(cx, "topology", Some(&item.id))?;
    Ok(json!({ "status": status, "graph": graph, "topology": topology }))
}

/// The last hour; only our nodes keep it.
fn history(client: &mut Client, since: u64) -> Result<String> {
    let mut name: Name = "/localhost/onym/history".parse()?;
    name.append_generic(format!("since={since}"));
    let content = mgmt::fetch_dataset(client, name).map_err(|error| {
        Failure::new(Exit::NotFound, "this forwarder keeps no history").why(error)
    })?;
    Ok(String::from_utf8(content)?)
}

fn changed(client: &mut Client, change: &Change) -> Result<String> {
    match change {
        Change::FaceCreate(wanted) => {
            let persistency = wanted.persistency.as_deref().map(|word| {
                let wrong = || Failure::new(Exit::Usage, format!("{word} is no persistency"));
                Persistency::from_word(word).ok_or_else(wrong)
            });
            let wanted = ControlParameters {
                uri: Some(words::canonical_uri(&wanted.uri)?),
                local_uri: wanted.local.clone(),
                face_persistency: persistency.transpose()?,
                ..ControlParameters::default()
            };
            text(&face::create(client, &wanted)?)
        }
        Change::FaceDestroy(wanted) => text(&face::destroy(client, &wanted.face.to_string())?),
        Change::RouteAdd(wanted) => {
            let parameters = ControlParameters {
                name: Some(name(&wanted.prefix)?),
                origin: Some(ORIGIN_STATIC),
                cost: Some(wanted.cost),
                flags: Some(ROUTE_CHILD_INHERIT),
                ..ControlParameters::default()
            };
            text(&route::add(client, &wanted.via, parameters)?)
        }
        Change::RouteRemove(wanted) => {
            let origin = words::parse_origin(&wanted.origin)
                .map_err(|why| Failure::new(Exit::Usage, "the origin").why(why))?;
            let face = wanted.face.to_string();
            text(&route::remove(client, name(&wanted.prefix)?, &face, origin)?)
        }
        Change::StrategySet(wanted) => {
            let strategy = strategy::strategy_name(&wanted.strategy)?;
            text(&strategy::choose(client, name(&wanted.prefix)?, Some(strategy))?)
        }
        Change::StrategyUnset(wanted) => {
            text(&strategy::choose(client, name(&wanted.prefix)?, None)?)
        }
        Change::CacheSettings(wanted) => {
            let on = |said: Option<bool>, bit: u64| said.map(|on| (bit, if on { bit } else { 0 }));
            let said = [on(wanted.admit, CS_ADMIT), on(wanted.serve, CS_SERVE)];
            let bits = said.iter().flatten();
            let (mask, flags) = bits.fold((0, 0), |(m, f), (mask, flag)| (m | mask, f | flag));
            let is_said = mask != 0;
            let parameters = ControlParameters {
                capacity: wanted.capacity,
                mask: is_said.then_some(mask),
                flags: is_said.then_some(flags),
                ..ControlParameters::default()
            };
            text(&cs::configure(client, &parameters)?)
        }
        Change::CacheErase(wanted) => text(&cs::erase(client, &name(&wanted.prefix)?, None)?),
    }
}

/// A viewer of packets.
struct Watching {
    dump: Dump,
    stop: Stop,
}

impl Watching {
    fn seen(&mut self) -> Result<Tailed> {
        let (records, missed) = self.dump.ask()?;
        if records.is_empty() && missed == 0 {
            self.dump.rest(&|| self.stop.is_set())?;
        }
        let packets = records.into_iter().map(|record| text(&dump::shown(record).shown()));
        Ok(Tailed { packets: packets.collect::<Result<_>>()?, missed })
    }
}

impl Tail for Watching {
    fn next(&mut self) -> Result<Tailed, Refused> {
        self.seen().map_err(|e| refused(&e))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.dump.end();
    }
}
