//! Changes from one desired network to another as a whole, with rollback when a step fails; and
//! repair when something failed on its own.

use super::orders::{ChangeError, Done, Target};
use super::{Core, Failures};
use crate::driver::DriverError;
use crate::network::Network;
use crate::plan::{Step, plan};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Starts that fail or do not last within [`FORGET`] before pauses begin.
const PATIENCE: u32 = 5;
const FORGET: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Core {
    /// Goes to `target`, or back to where it was.
    pub(super) async fn transact(&mut self, target: Target) -> Result<Done, ChangeError> {
        self.watch().await;
        let begun = Instant::now();
        let old = (self.saved.description.clone(), self.saved.decisions.clone());
        let keep = self.saved.clone();
        self.saved.description = target.description;
        self.saved.decisions = target.decisions;
        let wanted = self.wanted();
        let steps = plan(&self.running(), &wanted, target.strategy);
        let shown: Vec<String> = steps.iter().map(Step::to_string).collect();
        if target.dry_run {
            self.saved = keep;
            return Ok(Done { changed: !shown.is_empty(), steps: shown, ..Done::default() });
        }
        if let Err(error) = self.preflight(&steps, &wanted).await {
            self.saved = keep;
            return Err(error);
        }
        // First what is wanted, then the steps: a manager killed between goes on from here.
        if let Err(error) = self.save().await {
            self.saved = keep;
            return Err(ChangeError::Store(error.to_string()));
        }
        let asked = old != (self.saved.description.clone(), self.saved.decisions.clone());
        let mut done = self.execute(&steps, &wanted).await;
        if done.is_ok() {
            let keyed = self.key_all().await;
            done = keyed.and(done);
        }
        match done {
            Ok(counters) => {
                self.watch().await;
                self.release_unused().await;
                let took_ms = begun.elapsed().as_millis() as u64;
                let changed = asked || !shown.is_empty();
                let done = Done { changed, steps: shown, took_ms, counters: counters.to_json() };
                if changed {
                    let text = format!(
                        "{} steps in {took_ms} ms ({:?})",
                        done.steps.len(),
                        target.strategy
                    );
                    self.note("changed", "network", text, json!(done));
                }
                Ok(done)
            }
            Err(error) => {
                self.note("failed", "network", error.to_string(), Value::Null);
                let also = self.undo(old.0, old.1).await.map(|e| format!(", but for: {e}"));
                Err(ChangeError::Failed { step: error.step, why: error.why, also })
            }
        }
    }

    /// Finds out what would not start before anything is stopped for it.
    async fn preflight(&self, steps: &[Step], wanted: &Network) -> Result<(), ChangeError> {
        let (mut starts, mut freed, mut first) = (Vec::new(), BTreeSet::new(), None);
        for step in steps {
            match step {
                Step::Start { name, .. } => {
                    first = first.or(Some(step));
                    let function = wanted.functions.get_key_value(name);
                    starts.extend(function.map(|(name, function)| (name.as_str(), function)));
                }
                // Those that are stopped before anything is started leave their places.
                Step::Stop { name } if first.is_none() => {
                    let instance = self.saved.instances.get(name);
                    let function = instance.map(|i| &i.order.function);
                    freed.extend(
                        function.into_iter().flat_map(|f| f.listen.values().flatten().cloned()),
                    );
                }
                _ => {}
            }
        }
        let checked = self.driver.check(&starts, &freed).await;
        checked.map_err(|error| {
            let named = |step: &&Step| match (step, &error) {
                (Step::Start { name, .. }, DriverError::Start { name: of, .. }) => name == of,
                _ => false,
            };
            let step = steps.iter().find(named).or(first).map(Step::to_string).unwrap_or_default();
            ChangeError::Impossible { step, why: error.to_string() }
        })
    }

    /// With nothing wanted and nothing running, what services shared goes too.
    pub(super) async fn release_unused(&self) {
        if self.saved.description.is_some() || !self.saved.instances.is_empty() {
            return;
        }
        if let Err(error) = self.driver.release().await {
            self.note("failed", "network", error.to_string(), Value::Null);
        }
    }

    /// Goes back to what was wanted before; what could not be done is told, and the next periods
    /// of watching try it again.
    async fn undo(
        &mut self,
        description: Option<crate::describe::Description>,
        decisions: crate::expand::Decisions,
    ) -> Option<String> {
        (self.saved.description, self.saved.decisions) = (description, decisions);
        self.save_or_tell().await;
        self.watch().await;
        let wanted = self.wanted();
        let steps = plan(&self.running(), &wanted, crate::plan::Strategy::default());
        let undone = self.execute(&steps, &wanted).await.err().map(|e| e.to_string());
        self.watch().await;
        self.release_unused().await;
        undone
    }

    async fn key_all(&mut self) -> Result<(), super::steps::StepError> {
        let names: Vec<String> = self.saved.instances.keys().cloned().collect();
        for name in names {
            self.key(&name).await.map_err(|why| super::steps::StepError {
                step: format!("keys of {name}"),
                why,
                name: None,
            })?;
        }
        Ok(())
    }

    /// Brings back what is wanted: services that are gone, links that lead nowhere, routes, keys.
    pub(super) async fn heal(&mut self) {
        let now = Instant::now();
        let mut wanted = self.wanted();
        self.failures.retain(|_, f| now.duration_since(f.first) < FORGET || f.next > now);
        for (name, failures) in &self.failures {
            if failures.next > now && !self.saved.instances.contains_key(name) {
                wanted.remove(name);
            }
        }
        for (name, label) in self.stale() {
            if let Some(control) = self.control(&name) {
                let _ = control.unlink(&label).await;
            }
        }
        let steps = plan(&self.running(), &wanted, crate::plan::Strategy::default());
        self.settled = steps.is_empty();
        if !steps.is_empty() {
            let begun = Instant::now();
            match self.execute(&steps, &wanted).await {
                Ok(_) => {
                    let took_ms = begun.elapsed().as_millis() as u64;
                    let shown: Vec<String> = steps.iter().map(Step::to_string).collect();
                    let text = format!("the network is as described again after {took_ms} ms");
                    self.note(
                        "healed",
                        "network",
                        text,
                        json!({"steps": shown, "took_ms": took_ms}),
                    );
                }
                Err(error) => {
                    if let Some(name) = &error.name {
                        self.failed(name);
                    }
                    self.note("failed", "network", error.to_string(), Value::Null);
                }
            }
            self.watch().await;
            let wanted = self.wanted();
            self.settled =
                plan(&self.running(), &wanted, crate::plan::Strategy::default()).is_empty();
        }
        self.mend_small_things().await;
    }

    async fn mend_small_things(&mut self) {
        let wanted = self.wanted();
        if let Err(why) = self.routes(&wanted).await {
            self.note("failed", "routes", why, Value::Null);
        }
        if let Err(error) = self.key_all().await {
            self.note("failed", "keys", error.to_string(), Value::Null);
        }
        // A manager was killed, or a step failed, between a link and what is sent by it.
        let running = self.running();
        for ends in wanted.links.keys().filter(|e| running.links.contains_key(*e)) {
            let label = ends.label();
            let face = self.observed.get(&ends.from).and_then(|o| o.state.faces.get(&label));
            if face.is_some_and(|f| f.draining)
                && let Some(control) = self.control(&ends.from)
            {
                let _ = control.turn(&[], &[label]).await;
            }
        }
    }

    /// Notes that a service did not start or did not last.
    pub(super) fn failed(&mut self, name: &str) {
        let now = Instant::now();
        let fresh = Failures { count: 0, first: now, next: now };
        let failures = self.failures.entry(name.to_owned()).or_insert(fresh);
        failures.count += 1;
        if failures.count > PATIENCE {
            let doubled = Duration::from_secs(1 << (failures.count - PATIENCE).min(5));
            failures.next = now + doubled.min(PAUSE_MAX);
        }
    }
}
