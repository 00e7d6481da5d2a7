//! Scaling out and in (paper, section 5.3), with hysteresis and the headroom rule.
//!
//! The paper scales out above 80% of a function's processor share and in below 20%, measured every
//! 20 s; so it adds a third backward router that the name router behind it cannot feed. The
//! headroom rule first checks what the neighbours can still take.

use super::Cost;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Thresholds, hysteresis, and what the neighbours have left.
    #[default]
    Headroom,
    /// Thresholds alone.
    Paper,
}

/// How clones share the names: a strategy of the strategy forwarder before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// Backward routers with one source by what they have left to answer, all others by the hash
    /// of the name.
    #[default]
    Auto,
    /// To the clone that the hash of the name says.
    HashName,
    /// To the clone with least to answer; a name that is asked for already, to where it waits.
    LeastOutstanding,
    /// In turns.
    RoundRobin,
    /// In turns, by the weights of the faces.
    Weighted,
    /// By chance.
    Random,
    /// To the one with the shortest round trip.
    BestRoute,
    /// To the first one that answers.
    Failover,
    /// To all.
    Multicast,
}

/// When functions are cloned, and clones removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScalingPolicy {
    /// Whether the manager scales by itself.
    pub enabled: bool,
    /// Which rule decides.
    pub rule: Rule,
    /// Time between two decisions, in milliseconds.
    pub period_ms: u64,
    /// Share of its quota above which a function is cloned.
    pub up: f64,
    /// Share of its quota below which a clone goes.
    pub down: f64,
    /// Consecutive periods beyond a threshold (headroom rule).
    pub samples: u32,
    /// Periods without a decision after one (headroom rule).
    pub cooldown: u32,
    /// Least estimated gain for which a clone is added (headroom rule).
    pub gain_min: f64,
    /// Share of its quota that a neighbour may reach (headroom rule).
    pub ceiling: f64,
    /// Predicted share of the rest after a clone went must stay below (headroom rule).
    pub after_down_max: f64,
    /// Most instances of a function that says nothing itself.
    pub instances_max: u32,
    /// How clones share the names.
    pub balance: Balance,
}

impl Default for ScalingPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            rule: Rule::Headroom,
            period_ms: 20_000,
            up: 0.80,
            down: 0.20,
            samples: 2,
            cooldown: 2,
            gain_min: 1.10,
            ceiling: 0.95,
            after_down_max: 0.60,
            instances_max: 4,
            balance: Balance::Auto,
        }
    }
}

/// A function with its clones, over one period.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The function.
    pub name: String,
    /// Instances, itself counted.
    pub instances: u32,
    /// Most instances.
    pub instances_max: u32,
    /// Processor time used over the period, of what the quota allows, for each instance.
    pub loads: Vec<f64>,
    /// Why it may not be scaled: at the edge, not scalable.
    pub refused: Option<String>,
    /// Packets a second through all instances.
    pub rate: f64,
    /// The functions it is linked with that take what it hands on.
    pub neighbours: Vec<Neighbour>,
}

/// A function beside a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// Its name.
    pub name: String,
    /// Processor time used over the period, of what its quota allows.
    pub load: f64,
    /// Whether it sends what returns to every clone, and so pays for each.
    pub copies: bool,
    /// Whether it may be scaled itself, with its number of instances and the most.
    pub scalable: Option<(u32, u32)>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Another clone.
    Up {
        /// The function.
        name: String,
        /// Instances then.
        to: u32,
        /// The share that asked for it.
        load: f64,
        /// By what factor more is expected to go through; none under the paper's rule.
        gain: Option<f64>,
    },
    /// One clone less.
    Down {
        /// The function.
        name: String,
        /// Instances then.
        to: u32,
        /// The share that allowed it.
        load: f64,
    },
    /// A clone was refused: it could not be fed.
    Blocked {
        /// The function.
        name: String,
        /// Who has no room left.
        bottleneck: String,
        /// The gain it would have brought.
        gain: f64,
    },
}

#[derive(Debug, Clone, Default)]
struct State {
    hot: u32,
    cold: u32,
    cooldown: u32,
}

/// The machine that decides, once a period.
#[derive(Debug, Clone, Default)]
pub struct Scaler {
    states: BTreeMap<String, State>,
    costs: BTreeMap<String, Cost>,
}

impl Scaler {
    /// Decides from one period's samples; at most one decision for each function.
    pub fn period(&mut self, policy: &ScalingPolicy, groups: &[Group]) -> Vec<Decision> {
        self.states.retain(|name, _| groups.iter().any(|g| g.name == *name));
        let mut decisions: Vec<Decision> = Vec::new();
        for group in groups {
            for neighbour in group.neighbours.iter().filter(|n| n.copies) {
                let cost = self.costs.entry(neighbour.name.clone()).or_default();
                cost.note(group.instances, group.rate, neighbour.load);
            }
            let Some(decision) = self.decide(policy, group) else { continue };
            let target = decision.target();
            if !decisions.iter().any(|d| d.target() == target) {
                if let Some(state) = self.states.get_mut(target) {
                    *state = State { cooldown: policy.cooldown, ..State::default() };
                }
                decisions.push(decision);
            }
        }
        decisions
    }

    fn decide(&mut self, policy: &ScalingPolicy, group: &Group) -> Option<Decision> {
        let load = group.loads.iter().sum::<f64>() / group.loads.len().max(1) as f64;
        let state = self.states.entry(group.name.clone()).or_default();
        state.hot = if load > policy.up { state.hot + 1 } else { 0 };
        state.cold = if load < policy.down { state.cold + 1 } else { 0 };
        let paper = policy.rule == Rule::Paper;
        if !paper && state.cooldown > 0 {
            state.cooldown -= 1;
            return None;
        }
        let samples = if paper { 1 } else { policy.samples.max(1) };
        if state.hot >= samples {
            return self.up(policy, group, load);
        }
        if state.cold >= samples && group.instances > 1 {
            let then = load * f64::from(group.instances) / f64::from(group.instances - 1);
            if paper || then < policy.after_down_max {
                let to = group.instances - 1;
                return Some(Decision::Down { name: group.name.clone(), to, load });
            }
        }
        None
    }

    fn up(&self, policy: &ScalingPolicy, group: &Group, load: f64) -> Option<Decision> {
        if group.refused.is_some() || group.instances >= group.instances_max {
            return None;
        }
        let to = group.instances + 1;
        let up = |gain| Some(Decision::Up { name: group.name.clone(), to, load, gain });
        if policy.rule == Rule::Paper {
            return up(None);
        }
        let (gain, blocking) = self.gain(policy, group);
        let Some(blocking) = blocking.filter(|_| gain < policy.gain_min) else {
            return up(Some(gain));
        };
        if let Some((instances, most)) = blocking.scalable.filter(|(n, most)| n < most) {
            debug_assert!(instances < most);
            return Some(Decision::Up {
                name: blocking.name.clone(),
                to: instances + 1,
                load: blocking.load,
                gain: None,
            });
        }
        Some(Decision::Blocked {
            name: group.name.clone(),
            bottleneck: blocking.name.clone(),
            gain,
        })
    }

    /// The estimated gain of one more clone, and the neighbour that bounds it.
    fn gain<'a>(&self, policy: &ScalingPolicy, group: &'a Group) -> (f64, Option<&'a Neighbour>) {
        let n = f64::from(group.instances);
        let mut gain = (n + 1.0) / n;
        let mut blocking = None;
        for neighbour in &group.neighbours {
            let tax = if neighbour.copies {
                self.costs.get(&neighbour.name).map_or(1.0, |c| c.tax(group.instances))
            } else {
                1.0
            };
            let room = policy.ceiling / (neighbour.load * tax).max(1e-6);
            if room < gain {
                gain = room;
                blocking = Some(neighbour);
            }
        }
        (gain, blocking)
    }
}

impl Decision {
    /// The function concerned.
    #[must_use]
    pub fn target(&self) -> &str {
        match self {
            Self::Up { name, .. } | Self::Down { name, .. } | Self::Blocked { name, .. } => name,
        }
    }
}

#[cfg(test)]
mod tests;
