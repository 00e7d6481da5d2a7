//! Doing the steps of a plan.

use super::{Core, random_hex};
use crate::control::{Face, First};
use crate::driver::Order;
use crate::kind::Kind;
use crate::network::{Ends, Network, Settings, Side, Transport, reversed};
use crate::plan::Step;
use crate::settings::is_start_only;
use crate::store::Instance;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Time for a link to come up.
const LINK_UP: Duration = Duration::from_secs(5);
/// What was asked by a link returns within this time (the usual lifetime of an Interest), …
const DRAIN_MAX: Duration = Duration::from_secs(4);
/// … or nothing more returns once it has been quiet for so long.
const QUIET: Duration = Duration::from_millis(1000);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A step that was not done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{step}: {why}")]
pub(super) struct StepError {
    /// The step.
    pub(super) step: String,
    /// Why not.
    pub(super) why: String,
    /// The function that did not start, if it is that.
    pub(super) name: Option<String>,
}

/// What doing the steps brought, by counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Packets that were kept and sent later.
    pub(super) kept: u64,
    /// Packets lost because what kept them was full.
    pub(super) lost: u64,
    /// Interests that had not been answered when their link was removed.
    pub(super) unanswered: u64,
    /// Table entries that were handed over.
    pub(super) handed_over: u64,
}

impl Counters {
    pub(super) fn to_json(self) -> Value {
        json!({
            "kept": self.kept,
            "lost": self.lost,
            "unanswered": self.unanswered,
            "handed_over": self.handed_over,
        })
    }
}

impl Core {
    /// Does all steps in order, or stops at the first that fails.
    pub(super) async fn execute(
        &mut self,
        steps: &[Step],
        wanted: &Network,
    ) -> Result<Counters, StepError> {
        let mut counters = Counters::default();
        for step in steps {
            let done = self.step(step, wanted, &mut counters).await;
            done.map_err(|why| {
                let name = match step {
                    Step::Start { name, .. } => Some(name.clone()),
                    _ => None,
                };
                StepError { step: step.to_string(), why, name }
            })?;
        }
        Ok(counters)
    }

    async fn step(
        &mut self,
        step: &Step,
        wanted: &Network,
        counters: &mut Counters,
    ) -> Result<(), String> {
        match step {
            Step::Start { name, .. } => self.start(name, wanted).await,
            Step::Stop { name } => self.stop(name).await,
            Step::Configure { name, settings } => self.configure(name, settings).await,
            Step::Limit { name, cores } => self.limit(name, *cores).await,
            Step::Link { ends, transport, idle } => {
                self.link(ends, *transport, *idle, wanted).await
            }
            Step::Turn { name, from, to } => {
                let labels = |ends: &[Ends]| ends.iter().map(Ends::label).collect::<Vec<_>>();
                let control = self.control(name).ok_or("it does not run")?;
                let turned = control.turn(&labels(from), &labels(to)).await;
                turned.map(|_| ()).map_err(|e| e.to_string())
            }
            Step::Unlink { ends } => self.unlink(ends).await,
            Step::Routes => {
                self.watch().await;
                self.routes(wanted).await
            }
            Step::Freeze { name, side } => {
                let control = self.control(name).ok_or("it does not run")?;
                control.freeze(side).await.map(|_| ()).map_err(|e| e.to_string())
            }
            Step::Thaw { name, side } => {
                let control = self.control(name).ok_or("it does not run")?;
                let answer = control.thaw(side).await.map_err(|e| e.to_string())?;
                counters.kept += answer["sent"].as_u64().unwrap_or(0);
                counters.lost += answer["dropped"].as_u64().unwrap_or(0);
                Ok(())
            }
            Step::Drain { ends } => {
                counters.unanswered += self.drain(ends).await;
                Ok(())
            }
            Step::HandOver { name, to } => {
                counters.handed_over += self.hand_over(name, to, wanted).await;
                Ok(())
            }
        }
    }

    async fn start(&mut self, name: &str, wanted: &Network) -> Result<(), String> {
        let function = wanted.functions.get(name).ok_or("it is not wanted")?.clone();
        // What was wanted under another configuration is not allowed by this one.
        if let Some(fault) = self.allowed.faults_of(name, &function).first() {
            return Err(fault.to_string());
        }
        self.saved.starts += 1;
        let order = Order {
            name: name.to_owned(),
            instance: format!("{name}-{}", self.saved.starts),
            reversed: reversed(wanted).contains(name),
            token: random_hex(16),
            function,
        };
        // The number must never be used again, whatever happens from here on.
        self.save().await.map_err(|e| e.to_string())?;
        let started = self.driver.start(&order).await.map_err(|e| e.to_string())?;
        let text = format!("{name} runs: a {} ({})", order.function.kind, started.handle);
        let config = order.function.config.clone();
        let detail = json!({ "instance": order.instance, "control": started.control });
        self.saved.instances.insert(name.to_owned(), Instance { order, started });
        self.save().await.map_err(|e| e.to_string())?;
        let settings: Settings =
            config.into_iter().filter(|(key, _)| !is_start_only(key)).collect();
        let mut made = self.apply_settings(name, &settings).await;
        if made.is_ok() {
            made = self.key(name).await;
        }
        if let Err(why) = made {
            let _ = self.stop(name).await;
            return Err(why);
        }
        self.note("started", name, text, detail);
        Ok(())
    }

    pub(super) async fn stop(&mut self, name: &str) -> Result<(), String> {
        let Some(instance) = self.saved.instances.remove(name) else { return Ok(()) };
        self.observed.remove(name);
        let stopped = self.driver.stop(&instance.started.handle).await;
        if let Err(error) = stopped {
            self.saved.instances.insert(name.to_owned(), instance);
            return Err(error.to_string());
        }
        self.save().await.map_err(|e| e.to_string())?;
        self.note("stopped", name, format!("{name} is stopped"), Value::Null);
        Ok(())
    }

    async fn apply_settings(&self, name: &str, settings: &Settings) -> Result<(), String> {
        if settings.is_empty() {
            return Ok(());
        }
        let control = self.control(name).ok_or("it does not run")?;
        control.configure(settings).await.map(|_| ()).map_err(|e| e.to_string())
    }

    async fn configure(&mut self, name: &str, settings: &Settings) -> Result<(), String> {
        self.apply_settings(name, settings).await?;
        if let Some(instance) = self.saved.instances.get_mut(name) {
            instance.order.function.config.extend(settings.clone());
        }
        self.save().await.map_err(|e| e.to_string())
    }

    async fn limit(&mut self, name: &str, cores: Option<f64>) -> Result<(), String> {
        let Some(instance) = self.saved.instances.get_mut(name) else {
            return Err("it does not run".to_owned());
        };
        self.driver.limit(&instance.started.handle, cores).await.map_err(|e| e.to_string())?;
        instance.order.function.quota = cores;
        self.save().await.map_err(|e| e.to_string())
    }

    async fn link(
        &mut self,
        ends: &Ends,
        transport: Transport,
        idle: bool,
        wanted: &Network,
    ) -> Result<(), String> {
        let uri = self
            .target(ends, transport)
            .ok_or_else(|| format!("{} has no place to connect to", ends.to))?;
        let control = self.control(&ends.from).ok_or("its source does not run")?;
        if wanted.kind(&ends.from) == Some(Kind::PacketDispatcher) {
            let settings = Settings::from_iter([
                (path_key(ends.side).to_owned(), uri.into()),
                ("peer".to_owned(), peer_of(&ends.from, wanted).into()),
            ]);
            control.configure(&settings).await.map_err(|e| e.to_string())?;
        } else {
            // What lies beyond the face of one that stands before a producer side asks.
            let asks = ends.side == Side::Producer || reversed(wanted).contains(ends.from.as_str());
            let side = if asks { Side::Consumer } else { Side::Producer };
            let label = ends.label();
            let first = if idle { First::Idle } else { First::Carries };
            let state = control
                .link(&label, &uri, side, transport, first, LINK_UP)
                .await
                .map_err(|e| e.to_string())?;
            if let Some(state) = state {
                let _ = control.unlink(&label).await;
                return Err(format!("it is {state} after {} s", LINK_UP.as_secs()));
            }
        }
        let object = ends.to_string();
        self.note("linked", &object, format!("{object} is up"), Value::Null);
        Ok(())
    }

    async fn unlink(&mut self, ends: &Ends) -> Result<(), String> {
        let Some(control) = self.control(&ends.from) else { return Ok(()) };
        let kind = self.saved.instances.get(&ends.from).map(|i| i.order.function.kind);
        let done = if kind == Some(Kind::PacketDispatcher) {
            let key = path_key(ends.side).to_owned();
            control.configure(&Settings::from_iter([(key, Value::Null)])).await
        } else {
            control.unlink(&ends.label()).await
        };
        let object = ends.to_string();
        done.map_err(|e| e.to_string())?;
        self.note("unlinked", &object, format!("{object} is removed"), Value::Null);
        Ok(())
    }

    /// Waits until what was asked by a link has returned; the number that did not.
    /// A service that does not answer has nothing to wait for.
    async fn drain(&self, ends: &Ends) -> u64 {
        let (Some(control), label) = (self.control(&ends.from), ends.label()) else { return 0 };
        if control.drain_face(&label).await.is_err() {
            return 0;
        }
        let begun = Instant::now();
        let (mut last, mut quiet_since) = (None, Instant::now());
        loop {
            let Ok(face) = control.face(&label).await else { return 0 };
            let (open, returned) = outstanding(&face);
            if last != Some(returned) {
                (last, quiet_since) = (Some(returned), Instant::now());
            }
            let waited = begun.elapsed() > DRAIN_MAX || quiet_since.elapsed() > QUIET;
            if open == 0 || waited || face.state != "up" {
                return open;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits for what is pending at a clone that goes, then gives the rest to those that stay.
    /// It is a courtesy: a clone that does not answer goes all the same, and that is told.
    async fn hand_over(&self, name: &str, to: &[String], wanted: &Network) -> u64 {
        let Some(source) = self.control(name) else { return 0 };
        let deadline = Instant::now() + DRAIN_MAX;
        if self.saved.instances[name].order.function.kind == Kind::BackwardRouter {
            let _ = source.drain().await;
            while source.pending().await.is_ok_and(|n| n > 0) && Instant::now() < deadline {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        let mut moved = 0;
        for target in to.iter().filter(|t| wanted.functions.contains_key(*t)) {
            let Some(control) = self.control(target) else { continue };
            match source.hand_over(&control, &self.same_neighbours(name, target)).await {
                Ok(count) => moved += count,
                Err(error) => {
                    let text = format!("the table of {name} was not handed to {target}: {error}");
                    self.note("hand-over-failed", name, text, Value::Null);
                }
            }
        }
        moved
    }

    /// Labels at one clone to labels at another, of faces by which the same neighbour came.
    fn same_neighbours(&self, from: &str, to: &str) -> BTreeMap<String, String> {
        let running = self.running();
        let mut pairs = BTreeMap::new();
        for (ends, _) in running.into_of(from) {
            let twin = Ends { to: to.to_owned(), ..ends.clone() };
            if let (Some(here), Some(there)) = (self.accepted(ends), self.accepted(&twin)) {
                pairs.insert(here, there);
            }
        }
        pairs
    }

    /// Brings the static routes of all routers up to date.
    pub(super) async fn routes(&mut self, wanted: &Network) -> Result<(), String> {
        let routers: Vec<String> = self.observed.keys().cloned().collect();
        for router in routers {
            let has = self.saved.instances.get(&router).map(|i| i.order.function.kind);
            if !has.is_some_and(Kind::has_routes) {
                continue;
            }
            let observed = &self.observed[&router];
            let mut have = crate::routes::Routes::new();
            for route in observed.routes.iter().filter(|r| r.origin == "static") {
                have.entry(route.face.clone()).or_default().insert(route.prefix.clone());
            }
            let mut want = self.routes_of(&router, wanted);
            want.retain(|label, _| observed.state.faces.contains_key(label));
            let change = crate::routes::difference(&have, &want);
            if change == crate::routes::Change::default() {
                continue;
            }
            let control = self.control(&router).ok_or("it does not run")?;
            control.set_routes(&want).await.map_err(|e| format!("routes of {router}: {e}"))?;
            let (added, removed) = (change.add.len(), change.remove.len());
            let text = format!("routes of {router}: {added} added, {removed} removed");
            self.note("routes", &router, text, json!({"add": change.add, "remove": change.remove}));
        }
        Ok(())
    }

    /// Gives a service the keys, when it has use for them and does not have them yet.
    pub(super) async fn key(&mut self, name: &str) -> Result<(), String> {
        let Some(instance) = self.saved.instances.get(name) else { return Ok(()) };
        let kind = instance.order.function.kind;
        if !matches!(kind, Kind::NameRouter | Kind::Forwarder | Kind::SignatureVerifier) {
            return Ok(());
        }
        let none = BTreeMap::new();
        let keys = self.saved.description.as_ref().map_or(&none, |d| &d.keys);
        let body = crate::keys::body(keys);
        let trust = self.saved.description.as_ref().and_then(|d| d.trust.as_ref());
        let trust = trust.filter(|_| kind == Kind::SignatureVerifier);
        // Without a schema the rules stay as somebody set them at the service.
        let trust = trust.map(|trust| serde_json::json!(trust));
        let mut hasher = std::hash::DefaultHasher::new();
        (body.to_string(), trust.as_ref().map(Value::to_string)).hash(&mut hasher);
        let now = hasher.finish();
        let id = instance.order.instance.clone();
        if self.keyed.get(&id) == Some(&now) {
            return Ok(());
        }
        if keys.is_empty()
            && trust.is_none()
            && !self.keyed.contains_key(&id)
            && self.observed.is_empty()
        {
            self.keyed.insert(id, now);
            return Ok(());
        }
        let control = self.control(name).ok_or("it does not run")?;
        // First the rules, so that no key counts by none.
        if let Some(trust) = trust {
            control.set_trust(trust).await.map_err(|e| format!("trust of {name}: {e}"))?;
        }
        control.set_keys(body).await.map_err(|e| format!("keys of {name}: {e}"))?;
        self.keyed.insert(id, now);
        Ok(())
    }
}

/// What a dispatcher says of the far ends of its paths, which it has one word for.
fn peer_of(name: &str, wanted: &Network) -> &'static str {
    let mut transports = wanted.out_of(name).map(|(_, transport)| transport);
    let udp = transports.any(|transport| transport == Transport::Udp);
    if udp { Transport::Udp.peer() } else { Transport::Tcp.peer() }
}

fn path_key(side: Side) -> &'static str {
    match side {
        Side::Consumer => "consumer_path",
        Side::Producer => "producer_path",
    }
}

/// Interests that left by a face and are not answered, and what returned so far.
fn outstanding(face: &Face) -> (u64, u64) {
    if face.side == "consumer" {
        return (0, 0); // What leaves there is Data: nothing returns.
    }
    let returned = face.r#in.data + face.r#in.nacks;
    (face.out.interests.saturating_sub(returned), returned)
}
