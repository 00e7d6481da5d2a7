//! The policies at work: statistics of what runs go into the state machines of [`crate::policy`],
//! and what they decide is done as a change.

use super::Core;
use super::orders::Target;
use crate::expand::{self, Verifier};
use crate::kind::Kind;
use crate::network::{Ends, Network, Side, reversed};
use crate::plan::Strategy;
use crate::policy::{Alarm, CacheSample, Decision, Group, Neighbour, PoisonAction, PoisonInput};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Counters at the last decisions.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Processor time and packets received, by instance, at the last scaling period.
    usage: BTreeMap<String, (Instant, u64, u64)>,
    /// Fakes reported, by instance, at the last poisoning period.
    fakes: BTreeMap<String, u64>,
    /// Refusals to scale that were told.
    blocked: BTreeMap<String, String>,
    /// Where the verifiers of each cache stood when they were removed.
    left: BTreeMap<String, Vec<Verifier>>,
}

impl Core {
    /// Asks both policies whose period is over.
    pub(super) async fn decide(&mut self) {
        let Some(description) = &self.saved.description else { return };
        let policies = description.policies.clone();
        let now = Instant::now();
        let every = Duration::from_millis(policies.scaling.period_ms.max(100));
        if policies.scaling.enabled && now.duration_since(self.scaled_at) >= every {
            self.scaled_at = now;
            let groups = self.groups(now);
            for decision in self.scaler.period(&policies.scaling, &groups) {
                self.scale(decision).await;
            }
        }
        let every = Duration::from_millis(policies.poisoning.period_ms.max(100));
        if policies.poisoning.enabled && now.duration_since(self.guarded_at) >= every {
            self.guarded_at = now;
            self.guard().await;
        }
    }

    /// The share of its quota that each instance used since the last period, and its packets a second.
    fn loads(&mut self, now: Instant) -> BTreeMap<String, (f64, f64)> {
        let mut loads = BTreeMap::new();
        let mut marks = BTreeMap::new();
        for (name, observed) in &self.observed {
            let Some(instance) = self.saved.instances.get(name) else { continue };
            let received = packets(&observed.state.stats["received"]);
            let mark = (now, observed.usage.cpu_ns, received);
            if let Some((then, cpu, packets)) = self.marks.usage.get(&observed.instance) {
                let seconds = now.duration_since(*then).as_secs_f64().max(1e-3);
                let cores = observed.usage.cpu_ns.saturating_sub(*cpu) as f64 / 1e9 / seconds;
                let rate = received.saturating_sub(*packets) as f64 / seconds;
                let quota = instance.order.function.quota.unwrap_or(1.0);
                loads.insert(name.clone(), (cores / quota, rate));
            }
            marks.insert(observed.instance.clone(), mark);
        }
        self.marks.usage = marks;
        loads
    }

    fn groups(&mut self, now: Instant) -> Vec<Group> {
        let loads = self.loads(now);
        let Some(description) = &self.saved.description else { return Vec::new() };
        let graph = &description.graph;
        let wanted = self.wanted();
        let most = description.policies.scaling.instances_max;
        let mut groups = Vec::new();
        for (name, function) in graph.functions.iter().filter(|(_, f)| f.scalable) {
            let names = expand::instances_of(&wanted, name);
            let own: Vec<(f64, f64)> =
                names.iter().filter_map(|n| loads.get(*n).copied()).collect();
            if own.len() < names.len() {
                continue; // A clone without a whole period: no decision yet.
            }
            groups.push(Group {
                name: name.clone(),
                instances: names.len() as u32,
                instances_max: function.instances_max.unwrap_or(most),
                loads: own.iter().map(|(load, _)| *load).collect(),
                refused: expand::eligible(graph, name).err(),
                rate: own.iter().map(|(_, rate)| rate).sum(),
                neighbours: neighbours(graph, &wanted, name, &loads, most),
            });
        }
        groups
    }

    async fn scale(&mut self, decision: Decision) {
        let (name, to, text) = match decision {
            Decision::Up { name, to, load, gain } => {
                let gain = gain.map(|g| format!(", expected gain {g:.2}")).unwrap_or_default();
                let text = format!("{name} gets instance {to}: load {:.0}%{gain}", load * 100.0);
                (name, to, text)
            }
            Decision::Down { name, to, load } => {
                let text = format!("{name} goes to {to} instances: load {:.0}%", load * 100.0);
                (name, to, text)
            }
            Decision::Blocked { name, bottleneck, gain } => {
                let told = self.marks.blocked.insert(name.clone(), bottleneck.clone());
                if told.as_ref() != Some(&bottleneck) {
                    let text = format!(
                        "{name} gets no further instance: {bottleneck} could not feed it (gain {gain:.2})"
                    );
                    let detail = json!({"bottleneck": bottleneck, "gain": gain});
                    self.note("scale-blocked", &name, text, detail);
                }
                return;
            }
        };
        self.marks.blocked.remove(&name);
        self.note("scaling", &name, text, json!({ "instances": to }));
        let mut decisions = self.saved.decisions.clone();
        decisions.instances.insert(name.clone(), to);
        decisions.instances.retain(|_, count| *count > 1);
        self.decided(&name, decisions).await;
    }

    /// Makes a decision so; a failure is told and what was before stays.
    async fn decided(&mut self, object: &str, decisions: expand::Decisions) {
        let target = Target {
            description: self.saved.description.clone(),
            decisions,
            strategy: Strategy::MakeBeforeBreak,
            dry_run: false,
            unconfirmed: false,
        };
        if let Err(error) = self.transact(target).await {
            self.note("decision-failed", object, error.to_string(), Value::Null);
        }
    }

    /// One period of the guardians of all caches that consumers ask.
    async fn guard(&mut self) {
        let Some(description) = self.saved.description.clone() else { return };
        let policy = description.policies.poisoning.clone();
        let turned = reversed(&description.graph);
        let caches =
            description.graph.functions.iter().filter(|(name, f)| {
                f.kind == Kind::ContentStore && !turned.contains(name.as_str())
            });
        let names: Vec<String> = caches.map(|(name, _)| name.clone()).collect();
        self.guardians.retain(|name, _| names.contains(name));
        self.marks.left.retain(|name, _| names.contains(name));
        for cache in names {
            let Some(input) = self.poison_input(&description.graph, &cache) else { continue };
            let guardian = self.guardians.entry(cache.clone()).or_default();
            let Some(action) = guardian.period(&policy, &input) else { continue };
            self.defend(&description.graph, &cache, action).await;
        }
    }

    /// Does what the guardian of a cache asks for.
    async fn defend(&mut self, graph: &Network, cache: &str, action: PoisonAction) {
        let fell = |alarm: &Alarm| {
            let (usual, ratio) = (alarm.usual * 100.0, alarm.ratio * 100.0);
            format!("{cache}: the hit ratio fell from {usual:.0}% to {ratio:.0}%")
        };
        match action {
            PoisonAction::Deploy(alarm) => {
                let text = format!("{}; a verifier is placed before it", fell(&alarm));
                self.note("alarm", cache, text, json!(alarm));
                self.place(graph, cache).await;
            }
            PoisonAction::Again(alarm) => {
                let left = self.marks.left.get(cache).cloned().unwrap_or_default();
                let there = |v: &Verifier| graph.links.contains_key(&v.on);
                if left.is_empty() || !left.iter().all(there) {
                    let text = format!("{} again; a verifier is placed before it", fell(&alarm));
                    self.note("alarm", cache, text, json!(alarm));
                    return self.place(graph, cache).await;
                }
                let text = format!("{} again; its verifier is put back where it was", fell(&alarm));
                self.note("alarm", cache, text, json!(alarm));
                self.stand(cache, left).await;
            }
            PoisonAction::Back(alarm) => {
                let text = format!(
                    "{cache}: the hit ratio stays at {:.0}%; its verifier goes back before it",
                    alarm.ratio * 100.0
                );
                self.note("moving", cache, text, json!(alarm));
                self.place(graph, cache).await;
            }
            PoisonAction::Move => self.move_verifier(graph, cache).await,
            PoisonAction::Remove => {
                let text = format!("{cache}: no more fakes; its verifier is removed");
                self.note("all-clear", cache, text, Value::Null);
                self.marks.left.insert(cache.to_owned(), self.verifiers_of(cache));
                self.stand(cache, Vec::new()).await;
            }
        }
    }

    /// Makes these the verifiers of a cache.
    async fn stand(&mut self, cache: &str, verifiers: Vec<Verifier>) {
        let mut decisions = self.saved.decisions.clone();
        decisions.verifiers.retain(|v| v.cache != cache);
        decisions.verifiers.extend(verifiers);
        self.decided(cache, decisions).await;
    }

    fn poison_input(&mut self, graph: &Network, cache: &str) -> Option<PoisonInput> {
        let stats = &self.observed.get(cache)?.state.stats;
        let store = &stats["content_store"];
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let sample = CacheSample {
            boot: count(&stats["boot"]),
            hits: count(&store["hits"]),
            misses: count(&store["misses"]),
        };
        let own: Vec<Verifier> = self.verifiers_of(cache);
        let (mut standing, mut fakes) = (!own.is_empty(), 0);
        for verifier in &own {
            let Some(observed) = self.observed.get(&verifier.name) else {
                standing = false;
                continue;
            };
            let counters = &observed.state.stats["signature_verifier"];
            let now: u64 = ["invalid", "unknown_key", "unsigned", "untrusted"]
                .iter()
                .map(|k| count(&counters[*k]))
                .sum();
            let then = self.marks.fakes.insert(observed.instance.clone(), now).unwrap_or(0);
            fakes += now.saturating_sub(then);
        }
        let narrower = fakes > 0 && own.iter().any(|v| !self.nearer(graph, v).is_empty());
        let now_ms = onym_crypto::edge::unix_now_ms();
        let before = |v: &Verifier| graph.out_of(cache).any(|(on, _)| *on == v.on);
        let away = own.iter().any(|v| !before(v));
        Some(PoisonInput { now_ms, cache: sample, standing, fakes, narrower, away })
    }

    fn verifiers_of(&self, cache: &str) -> Vec<Verifier> {
        let all = self.saved.decisions.verifiers.iter();
        all.filter(|v| v.cache == cache).cloned().collect()
    }

    /// A verifier on each link by which Data reaches the cache.
    async fn place(&mut self, graph: &Network, cache: &str) {
        let on_link = |(number, (on, _)): (usize, (&Ends, _))| {
            let name = format!("{cache}.sv{number}");
            Verifier { name, cache: cache.to_owned(), on: on.clone() }
        };
        let all = graph.out_of(cache).enumerate().map(on_link).collect();
        self.stand(cache, all).await;
    }

    /// Links one step nearer to where the fakes come from, where that leaves less to verify: Data
    /// comes to what is behind the verifier from several sides.
    fn nearer(&self, graph: &Network, verifier: &Verifier) -> Vec<Ends> {
        let behind = match verifier.on.side {
            Side::Consumer => &verifier.on.to,
            Side::Producer => &verifier.on.from,
        };
        let sides = data_into(graph, behind);
        let outside = graph.functions.get(behind).is_some_and(|f| !f.listen.is_empty());
        if sides.len() + usize::from(outside) < 2 {
            return Vec::new();
        }
        // Only a router tells which side a name comes from.
        let inherited = self.inherited.get(behind);
        let known = |ends: &Ends| {
            let neighbour = if ends.side == Side::Producer { &ends.from } else { &ends.to };
            inherited.is_some_and(|h| h.contains_key(neighbour)) || ends.side == Side::Consumer
        };
        sides.into_iter().filter(|e| known(e)).collect()
    }

    async fn move_verifier(&mut self, graph: &Network, cache: &str) {
        let Some(verifier) = self.verifiers_of(cache).into_iter().next() else { return };
        let names = self.fake_names(&verifier.name).await;
        let candidates = self.nearer(graph, &verifier);
        let carries = |ends: &&Ends| {
            let (router, neighbour) = match ends.side {
                Side::Producer => (&ends.to, &ends.from),
                Side::Consumer => (&ends.from, &ends.to),
            };
            let by = self.inherited.get(router).and_then(|h| h.get(neighbour));
            let registered = self.registered.get(neighbour);
            let covers = |set: &std::collections::BTreeSet<String>| {
                names.iter().any(|n| set.iter().any(|p| crate::routes::covers(p, n)))
            };
            by.is_some_and(covers) || registered.is_some_and(covers)
        };
        let Some(to) = candidates.iter().find(carries) else { return };
        let text = format!(
            "{cache}: its verifier moves from {} to {to}, where the fakes come from",
            verifier.on
        );
        self.note("moving", cache, text, json!({"from": verifier.on, "to": to}));
        let number = verifier.name.rsplit("sv").next().and_then(|n| n.parse::<u32>().ok());
        let name = format!("{cache}.sv{}", number.unwrap_or(0) + 1);
        let moved = Verifier { name, cache: cache.to_owned(), on: to.clone() };
        self.stand(cache, vec![moved]).await;
    }

    /// The names that a verifier reported last.
    async fn fake_names(&self, verifier: &str) -> Vec<String> {
        let Some(control) = self.control(verifier) else { return Vec::new() };
        let answer = control.raw("/v1/events").await.unwrap_or_default();
        let events = answer["events"].as_array().into_iter().flatten();
        let reports = events.filter(|e| e["kind"] == "invalid_signature");
        let names = reports.flat_map(|e| e["names"].as_array().into_iter().flatten());
        names.filter_map(|n| n.as_str().map(str::to_owned)).collect()
    }
}

/// Links by which Data comes to a function.
fn data_into(graph: &Network, name: &str) -> Vec<Ends> {
    let all = graph.links.keys().filter(|ends| ends.interests().0 == name);
    all.cloned().collect()
}

fn neighbours(
    graph: &Network,
    wanted: &Network,
    name: &str,
    loads: &BTreeMap<String, (f64, f64)>,
    most: u32,
) -> Vec<Neighbour> {
    let targets = graph.out_of(name).map(|(e, _)| (&e.to, true));
    let sources = graph.into_of(name).map(|(e, _)| (&e.from, false));
    let row = |(neighbour, behind): (&String, bool)| {
        let function = graph.functions.get(neighbour)?;
        let names = expand::instances_of(wanted, neighbour);
        let load = names.iter().filter_map(|n| loads.get(*n)).map(|(l, _)| *l).fold(0.0, f64::max);
        let multicast = function.config.get("return").is_some_and(|v| v == "multicast");
        let free = function.scalable && expand::eligible(graph, neighbour).is_ok();
        let instances = names.len() as u32;
        Some(Neighbour {
            name: neighbour.clone(),
            load,
            copies: behind && multicast,
            scalable: free.then(|| (instances, function.instances_max.unwrap_or(most))),
        })
    };
    targets.chain(sources).filter_map(row).collect()
}

/// Interests, Data and Nacks together.
fn packets(received: &Value) -> u64 {
    ["interests", "data", "nacks"].iter().filter_map(|k| received[*k].as_u64()).sum()
}
