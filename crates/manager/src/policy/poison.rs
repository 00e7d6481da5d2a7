//! Content poisoning (paper, section 5.4). When the hit ratio of a cache falls, a verifier is
//! placed before it, moved toward the source of the fakes, and removed after ten clean periods.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a verifier is placed, moved and removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PoisonPolicy {
    /// Whether the manager places verifiers by itself.
    pub enabled: bool,
    /// Time between two looks, in milliseconds.
    pub period_ms: u64,
    /// A hit ratio below this part of the usual one is suspicious.
    pub ratio: f64,
    /// … when it fell by at least this much as well.
    pub drop_min: f64,
    /// Periods with fewer lookups say nothing.
    pub lookups_min: u64,
    /// Consecutive suspicious periods that raise the alarm; 1 is the paper, 2 lets a cache fill
    /// with other contents.
    pub samples: u32,
    /// Periods without a fake after which a verifier goes.
    pub clean_periods: u32,
    /// Time after a removal in which no alarm is raised, in milliseconds.
    pub cooldown_ms: u64,
    /// Time after a removal in which an alarm is a relapse, in milliseconds: one suspicious period
    /// raises it, the verifier goes back to where it stood, and it stays twice as long.
    pub memory_ms: u64,
    /// Whether a verifier is moved toward the fakes when that narrows what it must verify.
    pub r#move: bool,
}

impl Default for PoisonPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            period_ms: 2000,
            ratio: 0.8,
            drop_min: 0.10,
            lookups_min: 50,
            samples: 2,
            clean_periods: 10,
            cooldown_ms: 2000,
            memory_ms: 600_000,
            r#move: true,
        }
    }
}

/// The counters of a cache, cumulative since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheSample {
    /// Tells one start from another.
    pub boot: u64,
    /// Lookups that were answered.
    pub hits: u64,
    /// Lookups that were not.
    pub misses: u64,
}

/// What a period brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoisonInput {
    /// The time, in milliseconds of any origin.
    pub now_ms: u64,
    /// The cache.
    pub cache: CacheSample,
    /// Verifiers that stand for this cache.
    pub standing: bool,
    /// Fakes that they reported in this period.
    pub fakes: u64,
    /// Whether a place nearer to the fakes exists that has less to verify.
    pub narrower: bool,
    /// Whether a verifier stands elsewhere than before its cache.
    pub away: bool,
}

/// Where the defence of one cache stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Nothing is suspicious.
    Idle,
    /// A verifier was ordered.
    Deploying,
    /// It verifies; so many clean periods.
    Active(u32),
    /// Its removal was ordered.
    Draining,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PoisonAction {
    /// Place a verifier before the cache.
    Deploy(Alarm),
    /// Place it where it stood the last time.
    Again(Alarm),
    /// Move it one step toward the fakes.
    Move,
    /// Put it back before the cache: what comes by other ways goes on evicting.
    Back(Alarm),
    /// Remove all verifiers of this cache.
    Remove,
}

/// What raised an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alarm {
    /// The hit ratio of the period.
    pub ratio: f64,
    /// The usual one.
    pub usual: f64,
}

/// The machine that guards one cache, asked once a period.
#[derive(Debug, Clone)]
pub struct Guardian {
    phase: Phase,
    last: Option<CacheSample>,
    usual: Option<f64>,
    low: u32,
    fakes_in_a_row: u32,
    quiet_until_ms: u64,
    /// Until then the last attack is remembered, and how often it has come back.
    remembered_until_ms: u64,
    relapses: u32,
    /// The last ratio while a verifier stood, and periods in which it was low and did not rise.
    before: f64,
    stuck: u32,
    /// It was put back before the cache, and stays there.
    settled: bool,
}

/// Most doublings of the clean periods by relapses: 16 times as long.
const RELAPSES_MAX: u32 = 4;
/// A ratio that rises by this much in a period is recovering.
const RISING: f64 = 0.02;
/// Periods in which a verifier away from its cache does not help, until it is put back.
const STUCK_PERIODS: u32 = 3;

impl Default for Guardian {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            last: None,
            usual: None,
            low: 0,
            fakes_in_a_row: 0,
            quiet_until_ms: 0,
            remembered_until_ms: 0,
            relapses: 0,
            before: 0.0,
            stuck: 0,
            settled: false,
        }
    }
}

/// Weight of the newest period in the usual ratio: about the last five periods count.
const NEWEST: f64 = 1.0 / 3.0;

impl Guardian {
    /// Where it stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The usual hit ratio, once known.
    #[must_use]
    pub fn usual(&self) -> Option<f64> {
        self.usual
    }

    /// A manager that was started again finds a verifier that stands.
    pub fn adopt(&mut self) {
        self.phase = Phase::Active(0);
    }

    /// Looks at one period.
    pub fn period(&mut self, policy: &PoisonPolicy, input: &PoisonInput) -> Option<PoisonAction> {
        let ratio = self.ratio(policy, input.cache);
        match self.phase {
            Phase::Idle => self.idle(policy, input, ratio),
            Phase::Deploying => {
                if input.standing {
                    self.phase = Phase::Active(0);
                }
                None
            }
            Phase::Active(clean) => self.active(policy, input, ratio, clean),
            Phase::Draining => {
                if !input.standing {
                    self.phase = Phase::Idle;
                    self.low = 0;
                    self.quiet_until_ms = input.now_ms.saturating_add(policy.cooldown_ms);
                    self.remembered_until_ms = input.now_ms.saturating_add(policy.memory_ms);
                }
                None
            }
        }
    }

    /// The ratio of the period; none when it says nothing (too few lookups, a restart).
    fn ratio(&mut self, policy: &PoisonPolicy, sample: CacheSample) -> Option<f64> {
        let last = self.last.replace(sample)?;
        if last.boot != sample.boot {
            self.usual = None; // An empty cache has another usual ratio.
            return None;
        }
        let hits = sample.hits.saturating_sub(last.hits);
        let lookups = hits + sample.misses.saturating_sub(last.misses);
        (lookups >= policy.lookups_min.max(1)).then(|| hits as f64 / lookups as f64)
    }

    fn idle(
        &mut self,
        policy: &PoisonPolicy,
        input: &PoisonInput,
        ratio: Option<f64>,
    ) -> Option<PoisonAction> {
        let ratio = ratio?;
        let usual = *self.usual.get_or_insert(ratio);
        if !suspicious(policy, ratio, usual) {
            self.low = 0;
            self.usual = Some(usual + NEWEST * (ratio - usual));
            return None;
        }
        self.low += 1;
        let remembered = input.now_ms < self.remembered_until_ms;
        let samples = if remembered { 1 } else { policy.samples.max(1) };
        if self.low < samples || input.now_ms < self.quiet_until_ms {
            return None;
        }
        self.relapses = if remembered { (self.relapses + 1).min(RELAPSES_MAX) } else { 0 };
        (self.low, self.stuck, self.before) = (0, 0, ratio);
        self.settled = false;
        self.phase = Phase::Deploying;
        let alarm = Alarm { ratio, usual };
        Some(if remembered { PoisonAction::Again(alarm) } else { PoisonAction::Deploy(alarm) })
    }

    /// A verifier away from its cache, past which fakes come by another way.
    fn in_vain(
        &mut self,
        policy: &PoisonPolicy,
        input: &PoisonInput,
        ratio: Option<f64>,
    ) -> Option<Alarm> {
        let (ratio, usual) = (ratio?, self.usual?);
        let rising = ratio > std::mem::replace(&mut self.before, ratio) + RISING;
        if !input.away || rising || !suspicious(policy, ratio, usual) {
            self.stuck = 0;
            return None;
        }
        self.stuck += 1;
        (self.stuck >= STUCK_PERIODS).then_some(Alarm { ratio, usual })
    }

    fn active(
        &mut self,
        policy: &PoisonPolicy,
        input: &PoisonInput,
        ratio: Option<f64>,
        clean: u32,
    ) -> Option<PoisonAction> {
        if !input.standing {
            return None; // It was killed and is being replaced: no report is no clean period.
        }
        if let Some(alarm) = self.in_vain(policy, input, ratio) {
            (self.stuck, self.settled) = (0, true);
            self.phase = Phase::Active(0);
            return Some(PoisonAction::Back(alarm));
        }
        if input.fakes > 0 {
            self.phase = Phase::Active(0);
            self.fakes_in_a_row += 1;
            if policy.r#move && !self.settled && input.narrower && self.fakes_in_a_row >= 2 {
                self.fakes_in_a_row = 0;
                return Some(PoisonAction::Move);
            }
            return None;
        }
        self.fakes_in_a_row = 0;
        let clean = clean + 1;
        if clean < policy.clean_periods.max(1) << self.relapses {
            self.phase = Phase::Active(clean);
            return None;
        }
        self.phase = Phase::Draining;
        Some(PoisonAction::Remove)
    }
}

fn suspicious(policy: &PoisonPolicy, ratio: f64, usual: f64) -> bool {
    ratio < policy.ratio * usual && usual - ratio >= policy.drop_min
}

#[cfg(test)]
mod tests;
