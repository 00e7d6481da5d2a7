//! Values with units, as both forms of topologies write them.

use onym_wire::name::Name;
use std::str::FromStr;
use std::time::Duration;

/// What is wrong and what is allowed.
pub(super) type Fault = String;

/// Octets of content in each Data unless something else is said.
pub(super) const SIZE_DEFAULT: usize = 1000;
/// Largest content that fits a packet with a long name.
pub(super) const SIZE_MAX: usize = 8192;
/// Most names of a catalogue; each takes 8 octets.
pub(super) const CATALOGUE_MAX: u64 = 10_000_000;

pub(super) fn name(text: &str) -> Result<Name, Fault> {
    text.parse().map_err(|error| format!("{error}"))
}

pub(super) fn number<T: FromStr>(text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| format!("{text:?} is no number that fits here"))
}

pub(super) fn finite(text: &str) -> Result<f64, Fault> {
    let value: f64 = number(text)?;
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(format!("{text:?} is not a positive number"))
    }
}

pub(super) fn at_least<T: PartialOrd + std::fmt::Display>(least: T, value: T) -> Result<T, Fault> {
    if value >= least { Ok(value) } else { Err(format!("{value} is less than {least}")) }
}

pub(super) fn at_most<T: PartialOrd + std::fmt::Display>(most: T, value: T) -> Result<T, Fault> {
    if value <= most { Ok(value) } else { Err(format!("{value} is more than {most}")) }
}

/// A number and the unit behind it.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (unit, factor) = units.iter().find(|(unit, _)| {
        let digits = text.strip_suffix(unit);
        digits.is_some_and(|d| d.ends_with(|c: char| c.is_ascii_digit() || c == '.'))
    })?;
    let value = finite(text.strip_suffix(unit)?).ok()?;
    Some(value * factor)
}

/// A time with its unit, such as `10ms`; at most a day.
///
/// # Errors
/// What is wrong and what is allowed.
pub fn duration(text: &str) -> Result<Duration, Fault> {
    // The longest time is a day: sums stay far from the end of the clock.
    const SECONDS_MAX: f64 = 86_400.0;
    let units = [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0)];
    match scaled(text, &units) {
        Some(seconds) if seconds <= SECONDS_MAX => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("{text:?} is not a time: use 10ms, 5us or 1.5s, at most 86400s")),
    }
}

pub(super) fn milliseconds(text: &str) -> Result<u64, Fault> {
    let ms = duration(text)?.as_millis();
    u64::try_from(ms).map_err(|_| format!("{text:?} is too long"))
}

/// A rate in bits per second, such as `50mbit`.
///
/// # Errors
/// What is wrong and what is allowed.
pub fn rate(text: &str) -> Result<u64, Fault> {
    let lower = text.to_ascii_lowercase();
    let text = lower.trim_end_matches("/s").trim_end_matches("ps");
    // Bare numbers are megabits, as Mini-NDN has them.
    let units = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0), ("", 1e6)];
    match scaled(text, &units) {
        // The cast saturates; the bound keeps it exact.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some(bits) if (1.0..=1e15).contains(&bits) => Ok(bits as u64),
        _ => Err(format!("{text:?} is not a rate: use 50mbit, 10gbit or 64kbit")),
    }
}

/// Percent, as Mini-NDN has it, as a share from 0 to 1.
///
/// # Errors
/// What is wrong and what is allowed.
pub fn share(text: &str) -> Result<f64, Fault> {
    match scaled(text, &[("%", 0.01), ("", 0.01)]) {
        Some(share) if share <= 1.0 => Ok(share),
        _ => Err(format!("{text:?} is not a loss: use a percentage from 0 to 100, such as 0.1")),
    }
}
