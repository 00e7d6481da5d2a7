//! What runs, asked from the services themselves.

mod prefixes;

use super::Core;
use crate::control::{Control, Route, State};
use crate::describe::Description;
use crate::driver::{DriverError, Usage};
use crate::expand::expand;
use crate::kind::Kind;
use crate::network::{Ends, Network, Side, Transport};
use crate::store::Instance;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A service that runs and does not answer for so long is replaced.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// Time for an answer while watching: one silent service does not hold up the rest for long.
const LOOK: Duration = Duration::from_millis(1500);

/// Producers register again within five minutes or so; then prefixes of a lost router that nobody
/// registered are withdrawn.
const ORPHANS_KEPT: Duration = Duration::from_secs(360);

/// One service as it was seen last.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) instance: String,
    pub(super) state: State,
    pub(super) routes: Vec<Route>,
    pub(super) usage: Usage,
    pub(super) at: Instant,
    /// Since when it does not answer.
    pub(super) silent: Option<Instant>,
    /// What its neighbours have from it meanwhile.
    heard: Option<Heard>,
    /// The same a period before.
    pub(super) before: Option<(Instant, State, Usage)>,
}

/// Packets that neighbours had from a service that does not answer.
#[derive(Debug, Clone, Copy)]
struct Heard {
    count: u64,
    /// When there were more of them for the last time.
    grew: Option<Instant>,
}

/// What one look at a service brought.
struct Look {
    name: String,
    alive: bool,
    usage: Option<Usage>,
    state: Option<State>,
    routes: Vec<Route>,
}

impl Core {
    /// Takes over what runs with our mark; what never became ready or is of the past is stopped.
    pub(super) async fn adopt(&mut self) -> Result<(), DriverError> {
        let found = self.driver.list().await?;
        let mut adopted = std::collections::BTreeMap::new();
        for found in found {
            let name = found.order.name.clone();
            let known = self.saved.instances.get(&name);
            let ours = known.is_none_or(|i| i.order.instance == found.order.instance);
            // One whose secret is not known cannot be asked anything.
            let ours = ours && (known.is_some() || !found.order.token.is_empty());
            match found.started {
                Some(started) if ours && !adopted.contains_key(&name) => {
                    let text = format!("{name} still runs and was adopted ({})", started.handle);
                    self.note("adopted", &name, text, Value::Null);
                    // What was set since its start is in our notes.
                    let order = known.map_or(found.order, |i| i.order.clone());
                    adopted.insert(name, Instance { order, started });
                }
                _ => {
                    let text =
                        format!("{name} belongs to a start that did not finish; it is stopped");
                    self.note("stopped", &name, text, Value::Null);
                    self.driver.stop(&found.handle).await?;
                }
            }
        }
        self.saved.instances = adopted;
        for verifier in &self.saved.decisions.verifiers {
            self.guardians.entry(verifier.cache.clone()).or_default().adopt();
        }
        self.save_or_tell().await;
        // One that was killed at the very end of taking everything down.
        self.release_unused().await;
        Ok(())
    }

    pub(super) fn control(&self, name: &str) -> Option<Control> {
        let instance = self.saved.instances.get(name)?;
        Control::new(&instance.started.control, &instance.order.token).ok()
    }

    /// Looks at all services at once.
    pub(super) async fn watch(&mut self) {
        self.open_lines();
        let looks = self.saved.instances.iter().map(|(name, instance)| self.look(name, instance));
        let looks = join_all(looks).await;
        let now = Instant::now();
        let mut gone = Vec::new();
        for look in looks {
            if look.alive {
                self.seen(look, now);
            } else {
                gone.push((look.name, "it ended"));
            }
        }
        self.listen_to_neighbours(now);
        for name in self.silent_too_long(now) {
            gone.push((name, "it did not answer and forwarded nothing"));
        }
        for (name, why) in gone {
            self.lost(&name, why).await;
        }
        let instances = &self.saved.instances;
        self.observed
            .retain(|n, o| instances.get(n).is_some_and(|i| i.order.instance == o.instance));
        self.inherit();
    }

    /// Sees that each instance has a connection by which it is observed, and no other one has.
    fn open_lines(&mut self) {
        let instances = &self.saved.instances;
        let runs = |id: &String| instances.values().any(|i| i.order.instance == *id);
        self.lines.retain(|id, _| runs(id));
        for instance in instances.values() {
            let order = &instance.order;
            if !self.lines.contains_key(&order.instance)
                && let Ok(control) = Control::new(&instance.started.control, &order.token)
            {
                let line = control.within(LOOK).keeping();
                self.lines.insert(order.instance.clone(), line);
            }
        }
    }

    async fn look(&self, name: &str, instance: &Instance) -> Look {
        let handle = &instance.started.handle;
        let alive = self.driver.alive(handle).await.unwrap_or(true);
        let control = self.lines.get(&instance.order.instance).filter(|_| alive);
        let (mut state, mut routes) = (None, Vec::new());
        if let Some(control) = control {
            state = control.state().await.ok();
            if instance.order.function.kind.has_routes() && state.is_some() {
                routes = control.routes().await.unwrap_or_default();
            }
        }
        let usage = self.driver.usage(handle).await.ok();
        Look { name: name.to_owned(), alive, usage, state, routes }
    }

    /// Notes a look.
    fn seen(&mut self, look: Look, now: Instant) {
        let Some(instance) = self.saved.instances.get(&look.name) else { return };
        let instance = instance.order.instance.clone();
        let old = self.observed.remove(&look.name).filter(|o| o.instance == instance);
        // A change looks often: what came since the last look says little about a rate.
        let soon = |o: &&Observed| now.duration_since(o.at) < self.watch_every / 2;
        let before = match old.as_ref().filter(soon).and_then(|o| o.before.clone()) {
            Some(before) => Some(before),
            None => old.as_ref().map(|o| (o.at, o.state.clone(), o.usage)),
        };
        let observed = match (look.state, old) {
            (Some(state), _) => Observed {
                instance,
                state,
                routes: look.routes,
                usage: look.usage.unwrap_or_default(),
                at: now,
                silent: None,
                heard: None,
                before,
            },
            (None, Some(old)) => Observed { silent: old.silent.or(Some(now)), ..old },
            (None, None) => Observed {
                instance,
                state: State::default(),
                routes: Vec::new(),
                usage: Usage::default(),
                at: now,
                silent: Some(now),
                heard: None,
                before: None,
            },
        };
        self.observed.insert(look.name, observed);
    }

    /// Notes what neighbours had from each service that does not answer: one that forwards is not
    /// dead because its control interface is.
    fn listen_to_neighbours(&mut self, now: Instant) {
        let silent = self.observed.iter().filter(|(_, o)| o.silent.is_some());
        let counts: Vec<_> =
            silent.map(|(name, o)| (name.clone(), self.heard_from(name, o))).collect();
        for (name, count) in counts {
            let Some(observed) = self.observed.get_mut(&name) else { continue };
            let Some(heard) = &mut observed.heard else {
                observed.heard = Some(Heard { count, grew: None });
                continue;
            };
            if count <= heard.count {
                continue;
            }
            heard.count = count;
            if heard.grew.replace(now).is_none() {
                let text = format!("{name} does not answer but still forwards; it is kept");
                self.note("silent", &name, text, Value::Null);
            }
        }
    }

    /// Packets that came to neighbours from `name`, as these say.
    fn heard_from(&self, name: &str, last: &Observed) -> u64 {
        let ends = last.state.faces.values().filter_map(|face| face.local_uri.as_deref());
        let own: BTreeSet<&str> = ends.collect();
        let started = self.saved.instances.get(name).map(|i| &i.started);
        let listens: BTreeSet<&str> =
            started.into_iter().flat_map(|s| s.listeners.values()).map(String::as_str).collect();
        let neighbours = self.observed.iter().filter(|(n, o)| *n != name && o.silent.is_none());
        let faces = neighbours.flat_map(|(_, o)| o.state.faces.values());
        let of_it = faces.filter(|face| {
            let uri = face.uri.as_str();
            if face.created { listens.contains(uri) } else { own.contains(uri) }
        });
        of_it.map(|face| face.r#in.interests + face.r#in.data + face.r#in.nacks).sum()
    }

    /// Services that run, do not answer and forwarded nothing for too long.
    fn silent_too_long(&self, now: Instant) -> Vec<String> {
        let long = |since: Instant| now.duration_since(since) > SILENT_MAX;
        let forwards = |o: &Observed| o.heard.and_then(|h| h.grew).is_some_and(|grew| !long(grew));
        let dead = |o: &Observed| o.silent.is_some_and(long) && !forwards(o);
        self.observed.iter().filter(|(_, o)| dead(o)).map(|(name, _)| name.clone()).collect()
    }

    async fn lost(&mut self, name: &str, why: &str) {
        let Some(instance) = self.saved.instances.remove(name) else { return };
        let words = self.driver.last_words(&instance.started.handle).await.unwrap_or_default();
        let text = format!("{name} is gone: {why}");
        self.note("gone", name, text, serde_json::json!({ "last_words": words }));
        let _ = self.driver.stop(&instance.started.handle).await;
        self.observed.remove(name);
        if let Some(prefixes) = self.registered.get(name).filter(|p| !p.is_empty()) {
            self.orphans.insert(name.to_owned(), (Instant::now(), prefixes.clone()));
        }
        self.failed(name);
        self.save_or_tell().await;
    }

    /// The network as it runs.
    pub(super) fn running(&self) -> Network {
        let mut network = Network::default();
        for (name, instance) in &self.saved.instances {
            network.functions.insert(name.clone(), instance.order.function.clone());
        }
        for (name, observed) in &self.observed {
            for (ends, transport, fits) in self.links_of(name, observed) {
                if fits {
                    network.link(ends, transport);
                }
            }
        }
        network
    }

    /// The links that a service has, and whether each one leads to who runs now.
    fn links_of(&self, name: &str, observed: &Observed) -> Vec<(Ends, Transport, bool)> {
        let kind = self.saved.instances.get(name).map(|i| i.order.function.kind);
        if kind == Some(Kind::PacketDispatcher) {
            return self.paths_of(name, observed);
        }
        let created = observed.state.faces.values().filter(|f| f.created);
        let ends = created.map(|face| {
            let ends = match face.label.strip_suffix(".P") {
                Some(to) => Ends::producer(name, to),
                None => Ends::consumer(name, &face.label),
            };
            let found = [Transport::Tcp, Transport::Udp]
                .into_iter()
                .find(|t| self.target(&ends, *t).as_deref() == Some(&face.uri));
            (ends, found.unwrap_or_default(), found.is_some())
        });
        ends.collect()
    }

    /// The paths of a dispatcher are settings that name addresses.
    fn paths_of(&self, name: &str, observed: &Observed) -> Vec<(Ends, Transport, bool)> {
        let mut links = Vec::new();
        for (key, side) in [("consumer_path", Side::Consumer), ("producer_path", Side::Producer)] {
            let Some(uri) = observed.state.config.get(key).and_then(Value::as_str) else {
                continue;
            };
            for to in self.saved.instances.keys() {
                let ends = Ends { from: name.to_owned(), to: to.clone(), side };
                for transport in [Transport::Tcp, Transport::Udp] {
                    if self.target(&ends, transport).as_deref() == Some(uri) {
                        links.push((ends.clone(), transport, true));
                    }
                }
            }
        }
        links
    }

    /// Where a link goes: the URI at which its target listens for it.
    pub(super) fn target(&self, ends: &Ends, transport: Transport) -> Option<String> {
        let instance = self.saved.instances.get(&ends.to)?;
        let ingresses = instance.order.function.kind.ingresses();
        let ingress = match ends.side {
            Side::Producer => ingresses.last()?,
            Side::Consumer => ingresses.first()?,
        };
        let scheme = match transport {
            Transport::Tcp => "tcp4",
            Transport::Udp => "udp4",
        };
        instance.started.listeners.get(&format!("{ingress}-{scheme}")).cloned()
    }

    /// Created faces that lead nowhere we know.
    pub(super) fn stale(&self) -> Vec<(String, String)> {
        let mut stale = Vec::new();
        for (name, observed) in &self.observed {
            for (ends, _, fits) in self.links_of(name, observed) {
                if !fits {
                    stale.push((name.clone(), ends.label()));
                }
            }
        }
        stale
    }

    /// The network that must run.
    pub(super) fn wanted(&self) -> Network {
        let none = Description::default();
        expand(self.saved.description.as_ref().unwrap_or(&none), &self.saved.decisions)
    }

    /// The label at `to` of the face that the link `from => to` ends at: its far end is our near
    /// end (`spec/services.md`, section 5).
    pub(super) fn accepted(&self, ends: &Ends) -> Option<String> {
        let local = self.observed.get(&ends.from)?.state.faces.get(&ends.label())?;
        let local = local.local_uri.as_deref()?;
        let faces = self.observed.get(&ends.to)?.state.faces.values();
        faces.filter(|f| !f.created && f.uri == local).map(|f| f.label.clone()).next()
    }
}
