//! From what runs to what must run, as ordered steps; a dry run shows the same steps.

use crate::kind::Kind;
use crate::network::{Ends, Function, Network, Origin, Settings, Transport, reversed};
use crate::settings::is_start_only;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// In which order a chain is changed (paper, section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// New links first, then the old ones are drained and removed: nothing is lost.
    #[default]
    MakeBeforeBreak,
    /// What should leave is kept while links change: nothing is lost within the buffer.
    BreakAndBuffer,
    /// Old links go first, and what comes meanwhile is lost.
    BreakAndDrop,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum Step {
    /// Start a service.
    Start {
        /// Its name.
        name: String,
        /// What it does.
        kind: Kind,
    },
    /// Change settings.
    Configure {
        /// Of whom.
        name: String,
        /// The new values.
        settings: Settings,
    },
    /// Bound the processor time.
    Limit {
        /// Of whom.
        name: String,
        /// Cores; none takes the bound away.
        cores: Option<f64>,
    },
    /// Make a link, and wait until it is up.
    Link {
        /// Its ends.
        #[serde(flatten)]
        ends: Ends,
        /// What carries it.
        transport: Transport,
        /// Nothing is sent by it until [`Step::Turn`].
        #[serde(default, skip_serializing_if = "is_false")]
        idle: bool,
    },
    /// Send by new links what was sent by old ones: no packet by both, none by none of them.
    Turn {
        /// Who sends.
        name: String,
        /// The targets of the old links.
        from: Vec<Ends>,
        /// The targets of the new ones, which are up and idle.
        to: Vec<Ends>,
    },
    /// Bring the routes of all routers up to date.
    Routes,
    /// Keep what should leave `name` on a side.
    Freeze {
        /// Who keeps.
        name: String,
        /// `producer`, or `consumer` before the producer side of a router.
        side: String,
    },
    /// Send what was kept.
    Thaw {
        /// Who kept.
        name: String,
        /// The same side.
        side: String,
    },
    /// Let nothing new leave by a link, and wait for what was asked by it.
    Drain {
        /// Its ends.
        #[serde(flatten)]
        ends: Ends,
    },
    /// Remove a link.
    Unlink {
        /// Its ends.
        #[serde(flatten)]
        ends: Ends,
    },
    /// Give the table of a clone that goes to those that stay.
    HandOver {
        /// Who goes.
        name: String,
        /// Who stays.
        to: Vec<String>,
    },
    /// Stop a service.
    Stop {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { name, kind } => write!(f, "start {name} ({kind})"),
            Self::Configure { name, settings } => {
                let rows = settings.iter().map(|(k, v)| format!("{k} = {v}"));
                write!(f, "configure {name}: {}", rows.collect::<Vec<_>>().join(", "))
            }
            Self::Limit { name, cores: Some(cores) } => write!(f, "limit {name} to {cores} cores"),
            Self::Limit { name, cores: None } => write!(f, "limit {name} no more"),
            Self::Link { ends, .. } => write!(f, "link {ends}"),
            Self::Turn { name, from, to } => {
                let targets = |ends: &[Ends]| -> String {
                    ends.iter().map(|e| e.to.as_str()).collect::<Vec<_>>().join(", ")
                };
                write!(f, "turn {name} from {} to {}", targets(from), targets(to))
            }
            Self::Routes => f.write_str("bring routes up to date"),
            Self::Freeze { name, .. } => write!(f, "keep what should leave {name}"),
            Self::Thaw { name, .. } => write!(f, "send what {name} kept"),
            Self::Drain { ends } => write!(f, "drain {ends}"),
            Self::Unlink { ends } => write!(f, "unlink {ends}"),
            Self::HandOver { name, to } => {
                write!(f, "hand the table of {name} over to {}", to.join(", "))
            }
            Self::Stop { name } => write!(f, "stop {name}"),
        }
    }
}

/// Steps from `running` to `wanted`. Nothing to do is no step.
#[must_use]
pub fn plan(running: &Network, wanted: &Network, strategy: Strategy) -> Vec<Step> {
    let change = Change::of(running, wanted);
    let mut steps = Vec::new();
    change.restart(&mut steps);
    change.start(&mut steps);
    let old = change.old_links();
    let new = change.new_links();
    // Only who loses a link to someone and gets another one in its place is interrupted.
    let interrupted = change.turns(&old, &new);
    let frozen: Vec<(String, String)> = match strategy {
        Strategy::BreakAndBuffer => change.frozen(&interrupted),
        _ => Vec::new(),
    };
    let turns = match strategy {
        Strategy::MakeBeforeBreak => interrupted,
        _ => BTreeMap::new(),
    };
    for (name, side) in &frozen {
        steps.push(Step::Freeze { name: name.clone(), side: side.clone() });
    }
    let links = |steps: &mut Vec<Step>| {
        let rows = new.iter().map(|(e, t)| Step::Link {
            ends: (*e).clone(),
            transport: *t,
            idle: turns.contains_key(e.from.as_str()),
        });
        steps.extend(rows);
        if !new.is_empty() || !change.started.is_empty() {
            steps.push(Step::Routes);
        }
    };
    let drain = |steps: &mut Vec<Step>| {
        steps.extend(old.iter().map(|e| Step::Drain { ends: (*e).clone() }));
    };
    let unlink = |steps: &mut Vec<Step>| {
        steps.extend(old.iter().map(|e| Step::Unlink { ends: (*e).clone() }));
    };
    match strategy {
        Strategy::MakeBeforeBreak => {
            links(&mut steps);
            for (name, (from, to)) in &turns {
                let (name, from, to) = ((*name).to_owned(), from.clone(), to.clone());
                steps.push(Step::Turn { name, from, to });
            }
            drain(&mut steps);
            change.hand_over(&mut steps);
            unlink(&mut steps);
        }
        Strategy::BreakAndBuffer => {
            drain(&mut steps);
            change.hand_over(&mut steps);
            unlink(&mut steps);
            links(&mut steps);
            for (name, side) in frozen {
                steps.push(Step::Thaw { name, side });
            }
        }
        Strategy::BreakAndDrop => {
            unlink(&mut steps);
            links(&mut steps);
        }
    }
    change.stop(&mut steps);
    if !old.is_empty() && new.is_empty() {
        steps.push(Step::Routes);
    }
    steps
}

struct Change<'a> {
    running: &'a Network,
    wanted: &'a Network,
    /// To be started, those that are started anew included.
    started: BTreeSet<&'a str>,
    /// To be stopped for good.
    gone: BTreeSet<&'a str>,
    /// To be stopped and started: what cannot change while it runs changed.
    again: BTreeSet<&'a str>,
}

impl<'a> Change<'a> {
    fn of(running: &'a Network, wanted: &'a Network) -> Self {
        let (was, is) = (reversed(running), reversed(wanted));
        let again: BTreeSet<&str> = wanted
            .functions
            .iter()
            .filter_map(|(name, function)| {
                let old = running.functions.get(name)?;
                // One without neighbours yet does not know which way it stands.
                let linked = running.into_of(name).chain(running.out_of(name)).next().is_some();
                let turned = linked && was.contains(name.as_str()) != is.contains(name.as_str());
                (turned || needs_start(old, function)).then_some(name.as_str())
            })
            .collect();
        let missing = |name: &&String| !running.functions.contains_key(name.as_str());
        let new = wanted.functions.keys().filter(missing).map(String::as_str);
        let gone = running.functions.keys().filter(|n| !wanted.functions.contains_key(*n));
        Self {
            running,
            wanted,
            started: new.chain(again.iter().copied()).collect(),
            gone: gone.map(String::as_str).collect(),
            again,
        }
    }

    fn restart(&self, steps: &mut Vec<Step>) {
        // Its listeners are taken until it is gone.
        let first = self.again.iter().copied().chain(self.in_the_way());
        steps.extend(first.map(|name| Step::Stop { name: name.to_owned() }));
    }

    /// Those that go for good and listen where one that is started will.
    fn in_the_way(&self) -> impl Iterator<Item = &'a str> {
        let places = |network: &'a Network, name: &str| -> BTreeSet<&'a String> {
            let function = network.functions.get(name).into_iter();
            function.flat_map(|f| f.listen.values().flatten()).collect()
        };
        let needed: BTreeSet<_> =
            self.started.iter().flat_map(|name| places(self.wanted, name)).collect();
        let clash = move |name: &&str| !places(self.running, name).is_disjoint(&needed);
        self.gone.iter().copied().filter(clash)
    }

    fn start(&self, steps: &mut Vec<Step>) {
        for (name, function) in &self.wanted.functions {
            if self.started.contains(name.as_str()) {
                steps.push(Step::Start { name: name.clone(), kind: function.kind });
                continue;
            }
            let old = &self.running.functions[name];
            let changed = changes(&old.config, &function.config);
            if !changed.is_empty() {
                steps.push(Step::Configure { name: name.clone(), settings: changed });
            }
            if old.quota != function.quota {
                steps.push(Step::Limit { name: name.clone(), cores: function.quota });
            }
        }
    }

    /// Links that must be made: those of new functions first, so that a chain is whole before
    /// anything is sent into it.
    fn new_links(&self) -> Vec<(&'a Ends, Transport)> {
        let kept = |ends: &Ends, transport: Transport| {
            self.running.links.get(ends) == Some(&transport)
                && !self.again.contains(ends.from.as_str())
                && !self.again.contains(ends.to.as_str())
        };
        let links = self.wanted.links.iter().map(|(e, t)| (e, *t));
        let mut new: Vec<_> = links.filter(|(e, t)| !kept(e, *t)).collect();
        new.sort_by_key(|(e, _)| !self.started.contains(e.from.as_str()));
        new
    }

    /// Links that must go: those of functions that stay first, so that nothing new is sent into
    /// what goes.
    fn old_links(&self) -> Vec<&'a Ends> {
        let lost = |e: &&Ends| {
            !self.wanted.links.contains_key(*e)
                && !self.again.contains(e.from.as_str())
                && !self.again.contains(e.to.as_str())
                // The one path of a dispatcher is pointed elsewhere, not removed.
                && !self.repointed(e)
        };
        let mut old: Vec<_> = self.running.links.keys().filter(lost).collect();
        old.sort_by_key(|e| self.gone.contains(e.from.as_str()));
        old
    }

    fn repointed(&self, ends: &Ends) -> bool {
        self.running.kind(&ends.from) == Some(Kind::PacketDispatcher)
            && self.wanted.out_of(&ends.from).any(|(e, _)| e.side == ends.side)
    }

    /// Who stays, loses links and gets others: the old ones and the new ones.
    fn turns(
        &self,
        old: &[&Ends],
        new: &[(&Ends, Transport)],
    ) -> BTreeMap<&'a str, (Vec<Ends>, Vec<Ends>)> {
        let mut all = BTreeMap::new();
        for (name, function) in &self.running.functions {
            let of = |ends: &&Ends| ends.from == *name;
            let from: Vec<Ends> = old.iter().copied().filter(of).cloned().collect();
            let to: Vec<Ends> = new.iter().map(|(e, _)| *e).filter(of).cloned().collect();
            let stays = !self.gone.contains(name.as_str()) && !self.again.contains(name.as_str());
            // A dispatcher has one path, which is pointed elsewhere at once.
            let turns = stays && function.kind != Kind::PacketDispatcher;
            if turns && !from.is_empty() && !to.is_empty() {
                all.insert(name.as_str(), (from, to));
            }
        }
        all
    }

    fn frozen(&self, turns: &BTreeMap<&str, (Vec<Ends>, Vec<Ends>)>) -> Vec<(String, String)> {
        let turned = reversed(self.running);
        let side = |name: &str| if turned.contains(name) { "consumer" } else { "producer" };
        turns.keys().map(|name| ((*name).to_owned(), side(name).to_owned())).collect()
    }

    fn hand_over(&self, steps: &mut Vec<Step>) {
        for name in &self.gone {
            let function = &self.running.functions[*name];
            let (Origin::Clone(of), Kind::BackwardRouter | Kind::ContentStore) =
                (&function.origin, function.kind)
            else {
                continue;
            };
            let to = crate::expand::instances_of(self.wanted, of);
            let to: Vec<String> = to.into_iter().map(str::to_owned).collect();
            if !to.is_empty() {
                steps.push(Step::HandOver { name: (*name).to_owned(), to });
            }
        }
    }

    fn stop(&self, steps: &mut Vec<Step>) {
        let early: BTreeSet<&str> = self.in_the_way().collect();
        let late = self.gone.iter().filter(|name| !early.contains(*name));
        steps.extend(late.map(|name| Step::Stop { name: (*name).to_owned() }));
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Whether a function cannot become another one while it runs.
fn needs_start(old: &Function, new: &Function) -> bool {
    let start_only = |f: &Function| -> Settings {
        f.config
            .iter()
            .filter(|(k, _)| is_start_only(k))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    let removed = old.config.keys().any(|k| !new.config.contains_key(k));
    old.kind != new.kind
        || old.listen != new.listen
        || start_only(old) != start_only(new)
        // Back to a default that only the service knows.
        || removed
}

fn changes(old: &Settings, new: &Settings) -> Settings {
    let changed = new.iter().filter(|(k, v)| !is_start_only(k) && old.get(*k) != Some(v));
    changed.map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests;
