//! When to scale and when to verify: state machines. Statistics go in, decisions come out. They
//! have no clock, so the paper's Fig. 5 and Fig. 7 are replayed in virtual time.

mod cost;
mod poison;
mod scale;

pub use cost::Cost;
pub use poison::{Alarm, CacheSample, Guardian, Phase, PoisonAction, PoisonInput, PoisonPolicy};
pub use scale::{Balance, Decision, Group, Neighbour, Rule, Scaler, ScalingPolicy};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Both policies, as in a description.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policies {
    /// When functions are cloned, and clones removed.
    pub scaling: ScalingPolicy,
    /// When a signature verifier is placed, moved and removed.
    pub poisoning: PoisonPolicy,
}
