//! Makes the view that readers see.

use super::observe::Observed;
use super::{Core, FunctionView, LinkView, Sample, View};
use crate::control::{Face, State};
use crate::expand;
use crate::network::{Ends, Network, Transport};
use serde_json::Value;
use std::sync::Arc;

impl Core {
    /// Shows readers what is there now.
    pub(super) fn publish(&self) {
        let wanted = self.wanted();
        let running = self.running();
        let at_ms = onym_crypto::edge::unix_now_ms();
        let mut view = View {
            network: self.saved.description.as_ref().map(|d| d.network.clone()).unwrap_or_default(),
            driver: self.driver.word().to_owned(),
            at_ms,
            settled: self.settled && self.saved.description.is_some(),
            registered: self.registered.clone(),
            ..View::default()
        };
        for (name, function) in wanted.functions.iter().chain(&running.functions) {
            if !view.functions.contains_key(name) {
                let seen = self.function_view(name, function, at_ms);
                view.functions.insert(name.clone(), seen);
            }
        }
        let links = wanted
            .links
            .iter()
            .chain(running.links.iter().filter(|(e, _)| !wanted.links.contains_key(*e)));
        view.links =
            links.map(|(ends, transport)| self.link_view(ends, *transport, &running)).collect();
        let shared = &self.shared;
        {
            let mut history = shared.history.write().expect("invariant: no panic under this lock");
            history.keep(&|name| view.functions.contains_key(name));
            for (name, function) in view.functions.iter().filter(|(_, f)| f.state == "up") {
                history.note(name, function.sample);
            }
        }
        *shared.saved.write().expect("invariant: no panic under this lock") =
            Arc::new(self.saved.clone());
        *shared.view.write().expect("invariant: no panic under this lock") = Arc::new(view);
    }

    fn function_view(
        &self,
        name: &str,
        function: &crate::network::Function,
        at_ms: u64,
    ) -> FunctionView {
        let instance = self.saved.instances.get(name);
        let observed = self.observed.get(name);
        let state = match (instance, observed) {
            (None, _) => "missing",
            (Some(_), Some(o)) if o.silent.is_none() => "up",
            (Some(_), _) => "silent",
        };
        let graph = self.saved.description.as_ref().map(|d| &d.graph);
        let scalable = match graph {
            Some(graph) => expand::eligible(graph, name),
            None => Err("there is no network".to_owned()),
        };
        let started = instance.map(|i| i.started.clone());
        FunctionView {
            kind: function.kind,
            origin: function.origin.clone(),
            state: state.to_owned(),
            instance: instance.map(|i| i.order.instance.clone()).unwrap_or_default(),
            handle: started.as_ref().map(|s| s.handle.clone()).unwrap_or_default(),
            control: started.as_ref().map(|s| s.control.clone()).unwrap_or_default(),
            listeners: started.map(|s| s.listeners).unwrap_or_default(),
            quota: function.quota,
            scalable,
            sample: observed.map(|o| sample(o, function.quota, at_ms)).unwrap_or_default(),
            stats: observed.map(|o| o.state.stats.clone()).unwrap_or_default(),
        }
    }

    fn link_view(&self, ends: &Ends, transport: Transport, running: &Network) -> LinkView {
        let observed = self.observed.get(&ends.from);
        let label = ends.label();
        let face = observed.and_then(|o| o.state.faces.get(&label));
        let there = running.links.contains_key(ends);
        let state = match face {
            _ if !there => "missing",
            Some(face) if face.draining => "draining",
            Some(face) => &face.state,
            None => "up", // The path of a dispatcher has faces of its sessions only.
        };
        let mut view = LinkView {
            ends: ends.clone(),
            transport,
            state: state.to_owned(),
            interests: 0.0,
            data: 0.0,
            bytes: 0.0,
        };
        let before = observed.and_then(|o| o.before.as_ref().map(|b| (o, b)));
        if let (Some(face), Some((now, (then, old, _)))) = (face, before) {
            let seconds = seconds(now, *then, old);
            rates(&mut view, face, old.faces.get(&label), seconds);
        } else if let Some((now, (then, old, _))) = before.filter(|_| there) {
            // Rates of a dispatcher's paths: what it handed on.
            let seconds = seconds(now, *then, old);
            view.interests = rate(&now.state, old, "sent", "interests", seconds);
            view.data = rate(&now.state, old, "sent", "data", seconds);
        }
        view
    }
}

fn rates(view: &mut LinkView, face: &Face, old: Option<&Face>, seconds: f64) {
    let none = Face::default();
    let old = old.unwrap_or(&none);
    let per = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds.max(1e-3);
    let (ahead, back) = if face.side == "consumer" {
        ((face.r#in, old.r#in), (face.out, old.out))
    } else {
        ((face.out, old.out), (face.r#in, old.r#in))
    };
    view.interests = per(ahead.0.interests, ahead.1.interests);
    view.data = per(back.0.data, back.1.data);
    view.bytes = per(ahead.0.bytes, ahead.1.bytes) + per(back.0.bytes, back.1.bytes);
}

/// The time between two looks by the service's own clock, which it reads with its counters: ours
/// is read when all services have answered, and one that is short of processor time answers late.
fn seconds(now: &Observed, then: std::time::Instant, old: &State) -> f64 {
    let up = |state: &State| state.stats["up_ms"].as_f64();
    match (up(&now.state), up(old)) {
        (Some(late), Some(early)) if late > early => (late - early) / 1e3,
        _ => now.at.duration_since(then).as_secs_f64(),
    }
}

fn rate(now: &State, old: &State, way: &str, what: &str, seconds: f64) -> f64 {
    let count = |state: &State| state.stats[way][what].as_u64().unwrap_or(0);
    count(now).saturating_sub(count(old)) as f64 / seconds.max(1e-3)
}

fn sample(observed: &Observed, quota: Option<f64>, at_ms: u64) -> Sample {
    let mut sample = Sample { at_ms, memory: observed.usage.memory, ..Sample::default() };
    let Some((then, old, usage)) = &observed.before else { return sample };
    let seconds = seconds(observed, *then, old).max(1e-3);
    let used = observed.usage.cpu_ns.saturating_sub(usage.cpu_ns);
    sample.cores = used as f64 / 1e9 / seconds;
    sample.load = sample.cores / quota.unwrap_or(1.0);
    let now = &observed.state;
    sample.interests = rate(now, old, "received", "interests", seconds);
    sample.data = rate(now, old, "received", "data", seconds);
    sample.bytes = rate(now, old, "received", "bytes", seconds);
    let store = |state: &State, key: &str| state.stats["content_store"][key].as_u64();
    let delta = |key: &str| Some(store(now, key)?.saturating_sub(store(old, key)?));
    if let (Some(hits), Some(misses)) = (delta("hits"), delta("misses")) {
        let lookups = hits + misses;
        sample.hit_ratio = (lookups > 0).then(|| hits as f64 / lookups as f64);
    }
    debug_assert!(matches!(observed.state.stats, Value::Object(_) | Value::Null));
    sample
}
