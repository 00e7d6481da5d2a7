//! Changes that someone asks for.

use super::Core;
use crate::describe::{Description, Key};
use crate::expand::{self, Decisions};
use crate::kind::Kind;
use crate::network::{Ends, Fault, Function, Transport};
use crate::plan::Strategy;
use crate::policy::Policies;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use thiserror::Error;

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Make the network as described.
    Apply {
        /// The description.
        description: Box<Description>,
        /// In which order chains are changed.
        strategy: Strategy,
        /// Only say what would be done.
        dry_run: bool,
        /// It may take more than half of the functions away.
        confirmed: bool,
    },
    /// Add a function without links.
    Deploy {
        /// Its name.
        name: String,
        /// What it is.
        function: Box<Function>,
    },
    /// Put a function on a link.
    Insert {
        /// The link.
        on: Ends,
        /// Its name.
        name: String,
        /// What it is.
        function: Box<Function>,
        /// In which order.
        strategy: Strategy,
    },
    /// Take a function away; its neighbours are joined when it stands between two.
    Remove {
        /// Its name.
        name: String,
        /// In which order.
        strategy: Strategy,
        /// Join its neighbours.
        join: bool,
    },
    /// Add a link.
    Link {
        /// Its ends.
        ends: Ends,
        /// What carries it.
        transport: Transport,
    },
    /// Remove a link.
    Unlink {
        /// Its ends.
        ends: Ends,
    },
    /// Have so many instances of a function.
    Scale {
        /// Its name.
        name: String,
        /// Instances, itself counted.
        instances: u32,
    },
    /// Add and remove keys.
    Keys {
        /// New ones and changed ones.
        add: BTreeMap<String, Key>,
        /// Names of old ones.
        remove: Vec<String>,
    },
    /// Change the policies.
    Policies(Box<Policies>),
    /// Stop everything and forget the description.
    Down {
        /// As of [`Change::Apply`]: this always takes more than half away.
        confirmed: bool,
    },
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// Whether anything was done.
    pub changed: bool,
    /// The steps, in order.
    pub steps: Vec<String>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Packets kept, lost and unanswered, and table entries handed over.
    pub counters: Value,
}

/// Why a change was not made. What was before is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// It asks for what cannot be.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Fault>),
    /// There is no such object.
    #[error("there is no {0}")]
    Unknown(String),
    /// It does not go with what is there.
    #[error("{0}")]
    Conflict(String),
    /// It takes more than half of the functions away, and nobody said that this is meant.
    #[error(
        "this removes {removed} of {of} functions ({}); say that it is meant: confirm=true, \
         or onym net … --yes", .names.join(", ")
    )]
    Unconfirmed {
        /// How many it removes.
        removed: usize,
        /// Of how many that are described.
        of: usize,
        /// The first of their names.
        names: Vec<String>,
    },
    /// A step would fail: nothing was done.
    #[error("{step}: {why}; nothing was changed")]
    Impossible {
        /// The step.
        step: String,
        /// Why.
        why: String,
    },
    /// A step failed, and what had been done was undone.
    #[error("{step}: {why}; what was done before it is undone{}", .also.as_deref().unwrap_or(""))]
    Failed {
        /// The step.
        step: String,
        /// Why.
        why: String,
        /// What could not be undone.
        also: Option<String>,
    },
    /// Too many changes wait.
    #[error("too many changes are queued, or the manager is stopping; try again later")]
    Busy,
    /// The state cannot be kept.
    #[error("{0}")]
    Store(String),
}

/// The new description and decisions, and the order in which to get there.
pub(super) struct Target {
    pub(super) description: Option<Description>,
    pub(super) decisions: Decisions,
    pub(super) strategy: Strategy,
    pub(super) dry_run: bool,
    /// A change of the whole, which nobody confirmed.
    pub(super) unconfirmed: bool,
}

/// Names of functions that a refusal tells.
const NAMES_TOLD: usize = 10;

fn unknown(what: impl Into<String>) -> ChangeError {
    ChangeError::Unknown(what.into())
}

impl Core {
    /// Makes a change, or leaves all as it was.
    pub(super) async fn make(&mut self, change: Change) -> Result<Done, ChangeError> {
        if let Change::Apply { description, .. } = &change {
            let faults = description.lacks();
            if !faults.is_empty() {
                return Err(ChangeError::Faults(faults));
            }
        }
        let target = self.target_of(change)?;
        if let Some(description) = &target.description {
            let mut faults = expand::check(description);
            faults.extend(self.allowed.faults(description));
            if !faults.is_empty() {
                return Err(ChangeError::Faults(faults));
            }
        }
        if target.unconfirmed && !target.dry_run {
            self.check_loss(target.description.as_ref())?;
        }
        self.transact(target).await
    }

    /// Refuses a description that has less than half of the functions that the present one has.
    fn check_loss(&self, new: Option<&Description>) -> Result<(), ChangeError> {
        let Some(old) = &self.saved.description else { return Ok(()) };
        let stays = |name: &String| new.is_some_and(|d| d.graph.functions.contains_key(name));
        let old = old.graph.functions.keys();
        let of = old.len();
        let names: Vec<String> = old.filter(|name| !stays(name)).cloned().collect();
        let removed = names.len();
        if removed * 2 <= of {
            return Ok(());
        }
        let names = names.into_iter().take(NAMES_TOLD).collect();
        Err(ChangeError::Unconfirmed { removed, of, names })
    }

    fn target_of(&self, change: Change) -> Result<Target, ChangeError> {
        let mut target = Target {
            description: self.saved.description.clone(),
            decisions: self.saved.decisions.clone(),
            strategy: Strategy::default(),
            dry_run: false,
            unconfirmed: false,
        };
        match change {
            Change::Apply { description, strategy, dry_run, confirmed } => {
                (target.strategy, target.dry_run) = (strategy, dry_run);
                target.unconfirmed = !confirmed;
                target.description = Some(*description);
            }
            Change::Down { confirmed } => {
                target.unconfirmed = !confirmed;
                target.description = None;
                target.decisions = Decisions::default();
            }
            Change::Scale { name, instances } => scale(&mut target, &name, instances)?,
            other => {
                let mut description = target.description.take().unwrap_or_default();
                if description.network.is_empty() {
                    description.network = "onym".to_owned();
                }
                target.strategy = edit(&mut description, other)?;
                target.description = Some(description);
            }
        }
        prune(&mut target);
        Ok(target)
    }
}

/// Changes a description as someone asks.
fn edit(description: &mut Description, change: Change) -> Result<Strategy, ChangeError> {
    let graph = &mut description.graph;
    let taken = |name: &str, graph: &crate::network::Network| {
        let there = graph.functions.contains_key(name);
        if there { Err(ChangeError::Conflict(format!("{name} is there already"))) } else { Ok(()) }
    };
    match change {
        Change::Deploy { name, function } => {
            if graph.functions.get(&name) != Some(&function) {
                taken(&name, graph)?;
                graph.functions.insert(name, *function);
            }
        }
        Change::Insert { on, name, function, strategy } => {
            taken(&name, graph)?;
            if !expand::split(graph, &on, &name, *function) {
                return Err(unknown(format!("link {on}")));
            }
            return Ok(strategy);
        }
        Change::Remove { name, strategy, join } => {
            if !graph.functions.contains_key(&name) {
                return Err(unknown(format!("function {name:?}")));
            }
            if join {
                expand::join(graph, &name).map_err(ChangeError::Conflict)?;
            } else {
                graph.remove(&name);
            }
            return Ok(strategy);
        }
        Change::Link { ends, transport } => graph.link(ends, transport),
        Change::Unlink { ends } => {
            if graph.links.remove(&ends).is_none() {
                return Err(unknown(format!("link {ends}")));
            }
        }
        Change::Keys { add, remove } => {
            for (name, key) in &add {
                crate::keys::check(name, key).map_err(|e| {
                    ChangeError::Faults(vec![Fault::new(
                        format!("key {name}"),
                        e,
                        "see the form of keys",
                    )])
                })?;
            }
            description.keys.extend(add);
            description.keys.retain(|name, _| !remove.contains(name));
            if description.keys.len() > crate::keys::KEYS_MAX {
                return Err(ChangeError::Conflict(format!(
                    "at most {} keys",
                    crate::keys::KEYS_MAX
                )));
            }
        }
        Change::Policies(policies) => description.policies = *policies,
        Change::Apply { .. } | Change::Scale { .. } | Change::Down { .. } => {}
    }
    Ok(Strategy::default())
}

fn scale(target: &mut Target, name: &str, instances: u32) -> Result<(), ChangeError> {
    let graph = target.description.as_ref().map(|d| &d.graph);
    let function = graph.and_then(|g| g.functions.get(name));
    let Some((graph, function)) = graph.zip(function) else {
        return Err(unknown(format!("function {name:?}")));
    };
    expand::eligible(graph, name).map_err(ChangeError::Conflict)?;
    let most = function.instances_max.unwrap_or(64).min(64);
    if !(1..=most).contains(&instances) {
        return Err(ChangeError::Conflict(format!("{name} has from 1 to {most} instances")));
    }
    target.decisions.instances.insert(name.to_owned(), instances);
    Ok(())
}

/// Decisions about what is not there any more are forgotten.
fn prune(target: &mut Target) {
    let graph = target.description.as_ref().map(|d| &d.graph);
    let stays = |name: &str| graph.is_some_and(|g| expand::eligible(g, name).is_ok());
    target.decisions.instances.retain(|name, count| *count > 1 && stays(name));
    target.decisions.verifiers.retain(|v| {
        graph.is_some_and(|g| {
            g.links.contains_key(&v.on) && g.kind(&v.cache) == Some(Kind::ContentStore)
        })
    });
}
