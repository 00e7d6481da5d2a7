//! Suppression of retransmissions with an interval that grows: `retx-suppression-initial`,
//! `-max` (milliseconds) and `-multiplier`.

use super::{Entry, Info, Parameters, StrategyError};
use onym_tables::{FaceId, Tick};
use std::time::Duration;

/// Parameters of the suppression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retx {
    /// First interval, in microseconds.
    pub initial_us: u32,
    /// Longest interval, in microseconds.
    pub max_us: u32,
    /// Growth.
    pub multiplier: f32,
}

impl Default for Retx {
    fn default() -> Self {
        Self { initial_us: 10_000, max_us: 250_000, multiplier: 2.0 }
    }
}

/// State kept with an entry: the current interval, in microseconds (0: none yet).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetxInfo {
    /// The interval.
    pub interval_us: u32,
    /// Times that the Interest was sent again by itself since it was asked for last (relay).
    pub tries: u32,
}

/// What the suppression says of an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suppression {
    /// The first: no upstream is pending.
    New,
    /// A retransmission after long enough.
    Forward,
    /// A retransmission too soon.
    Suppress,
}

impl Retx {
    /// Takes the suppression's parameters out of `parameters`; `other` gets each one that is not.
    ///
    /// # Errors
    /// [`StrategyError::Parameter`] for values out of range, or when `other` refuses.
    pub fn parse(
        parameters: Parameters<'_>,
        mut other: impl FnMut(&str, &str) -> Result<(), StrategyError>,
    ) -> Result<Self, StrategyError> {
        let mut retx = Self::default();
        for &(name, value) in parameters {
            match name {
                "retx-suppression-initial" => retx.initial_us = ms(name, value)?,
                "retx-suppression-max" => retx.max_us = ms(name, value)?,
                "retx-suppression-multiplier" => {
                    retx.multiplier = value
                        .parse()
                        .ok()
                        .filter(|m: &f32| m.is_finite() && *m >= 1.0)
                        .ok_or_else(|| bad(name, value, "a number of at least 1"))?;
                }
                _ => other(name, value)?,
            }
        }
        if retx.initial_us == 0 || retx.max_us < retx.initial_us {
            return Err(bad(
                "retx-suppression-max",
                &(retx.max_us / 1000).to_string(),
                "at least retx-suppression-initial, which is at least 1",
            ));
        }
        Ok(retx)
    }

    /// Decides for the whole entry, and lengthens the interval when it forwards.
    pub fn decide(&self, now: Tick, entry: &mut Entry) -> Suppression {
        if !entry.is_pending(now) {
            return Suppression::New;
        }
        let sent = entry.outs.iter().map(|r| r.sent).max().unwrap_or(now);
        let interval_us = match &entry.info {
            Info::Retx(info) if info.interval_us != 0 => info.interval_us,
            _ => self.initial_us,
        };
        if now.since(sent) < Duration::from_micros(u64::from(interval_us)) {
            return Suppression::Suppress;
        }
        entry.info = Info::Retx(RetxInfo { interval_us: self.longer(interval_us), tries: 0 });
        Suppression::Forward
    }

    /// Whether the Interest that downstream `ingress` has just sent joins those that wait: it is that
    /// downstream's first, which says nothing of a loss; what is under way was sent within the longest
    /// interval, and lasts at least half as long as this one.
    #[must_use]
    pub fn joins(&self, now: Tick, entry: &Entry, ingress: FaceId) -> bool {
        let latest = entry.outs.iter().filter(|r| r.is_pending(now)).max_by_key(|r| r.sent);
        let (Some(out), Some(asks)) = (latest, entry.in_record(ingress)) else { return false };
        !asks.repeats
            && now.since(out.sent) < Duration::from_micros(u64::from(self.max_us))
            && out.expiry.since(now) * 2 >= asks.expiry.since(now)
    }

    /// Decides for one upstream, and lengthens its interval when it forwards.
    pub fn decide_upstream(&self, now: Tick, entry: &mut Entry, face: FaceId) -> Suppression {
        let Some(out) = entry.out_record_mut(face).filter(|r| r.expiry > now) else {
            return Suppression::New;
        };
        let interval_us = if out.interval_us == 0 { self.initial_us } else { out.interval_us };
        if now.since(out.sent) < Duration::from_micros(u64::from(interval_us)) {
            return Suppression::Suppress;
        }
        out.interval_us = self.longer(interval_us);
        Suppression::Forward
    }

    fn longer(&self, interval_us: u32) -> u32 {
        // A float to integer conversion saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let longer = (f64::from(interval_us) * f64::from(self.multiplier)) as u32;
        longer.min(self.max_us)
    }
}

fn ms(name: &str, value: &str) -> Result<u32, StrategyError> {
    value
        .parse::<u32>()
        .ok()
        .and_then(|ms| ms.checked_mul(1000))
        .ok_or_else(|| bad(name, value, "a number of milliseconds up to 4294967"))
}

/// The error for `name~value`, of which `allowed` says what it may be.
pub(crate) fn bad(name: &str, value: &str, allowed: &str) -> StrategyError {
    StrategyError::Parameter {
        parameter: format!("{name}~{value}"),
        reason: format!("allowed is {allowed}"),
    }
}

/// The error for a parameter that the strategy does not have.
pub(crate) fn unknown(name: &str, value: &str) -> StrategyError {
    StrategyError::Parameter {
        parameter: format!("{name}~{value}"),
        reason: "the strategy has no such parameter".to_owned(),
    }
}
