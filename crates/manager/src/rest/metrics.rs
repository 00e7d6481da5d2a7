//! `/metrics` of the manager; each service has its own page.

use crate::engine::View;
use crate::store::Saved;
use onym_metrics::{Page, Source, catalogue as m};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What the manager sees at one moment. Values of labels are the network's own names, bounded.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) view: Arc<View>,
    pub(super) saved: Arc<Saved>,
}

impl Source for Sample {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let Self { view, saved } = self;
        page.single(&m::MANAGER_SETTLED, view.settled)?;
        page.single(&m::MANAGER_STARTS, saved.starts)?;
        page.single(&m::MANAGER_VERIFIERS, saved.decisions.verifiers.len() as u64)?;
        let mut states: BTreeMap<&str, u64> = BTreeMap::new();
        for link in &view.links {
            *states.entry(&link.state).or_default() += 1;
        }
        let mut links = page.family(&m::MANAGER_LINKS)?;
        for (state, count) in states {
            links.sample([state.into()], count)?;
        }
        let mut up = page.family(&m::FUNCTION_UP)?;
        for (name, function) in &view.functions {
            let labels = [name.as_str(), function.kind.word()].map(Into::into);
            up.sample(labels, function.state == "up")?;
        }
        let mut cpu = page.family(&m::FUNCTION_CPU)?;
        for (name, function) in &view.functions {
            cpu.sample([name.as_str().into()], function.sample.cores)?;
        }
        let mut instances = page.family(&m::FUNCTION_INSTANCES)?;
        for (name, count) in &saved.decisions.instances {
            instances.sample([name.as_str().into()], u64::from(*count))?;
        }
        Ok(())
    }
}
