//! When a certificate is valid.

use crate::tlv::{self, Malformed, Reader};
use crate::types;
use std::fmt;

/// A moment in seconds since the Unix epoch, as a certificate writes it: `YYYYMMDDThhmmss`, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertTime(pub i64);

/// Octets of the text of a [`CertTime`].
const TIME_LEN: usize = 15;
/// The last second of the year 9999, the largest that can be written.
pub(crate) const TIME_MAX: i64 = 253_402_300_799;
/// The first second of the year 0.
pub(crate) const TIME_MIN: i64 = -62_167_219_200;

impl CertTime {
    /// Reads `YYYYMMDDThhmmss`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: &[u8; TIME_LEN] = text.try_into().ok()?;
        let [y1, y2, y3, y4, m1, m2, d1, d2, b'T', h1, h2, n1, n2, s1, s2] = *text else {
            return None;
        };
        let number = |digits: &[u8]| {
            digits
                .iter()
                .try_fold(0i64, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
        };
        let (year, month, day) =
            (number(&[y1, y2, y3, y4])?, number(&[m1, m2])?, number(&[d1, d2])?);
        let (hour, minute, second) = (number(&[h1, h2])?, number(&[n1, n2])?, number(&[s1, s2])?);
        let month_is_valid =
            (1..=12).contains(&month) && (1..=month_days(year, month)).contains(&day);
        // A leap second is written as 60 by some clocks.
        if !month_is_valid || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let days = days_from_civil(year, month, day);
        Some(Self(((days * 24 + hour) * 60 + minute) * 60 + second))
    }
}

impl fmt::Display for CertTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.clamp(TIME_MIN, TIME_MAX);
        let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
        let second = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}")
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a day of the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + leap_days + day_of_year - 719_468
}

/// The day of the Gregorian calendar, the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    let days = days + 719_468;
    let era = days.div_euclid(ERA_DAYS);
    let day_of_era = days.rem_euclid(ERA_DAYS);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / (ERA_DAYS - 1);
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// From when until when a certificate is valid, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidityPeriod {
    /// First valid second.
    pub not_before: CertTime,
    /// Last valid second.
    pub not_after: CertTime,
}

impl ValidityPeriod {
    /// Reads the VALUE of a ValidityPeriod element.
    ///
    /// # Errors
    /// [`Malformed`] when it is not a NotBefore and a NotAfter, each of 15 characters.
    pub fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let mut time =
            |typ| CertTime::parse(reader.expect(typ)?.value).ok_or(Malformed::Value(typ));
        Ok(Self { not_before: time(types::NOT_BEFORE)?, not_after: time(types::NOT_AFTER)? })
    }

    /// Appends the ValidityPeriod element.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, types::VALIDITY_PERIOD, |out| {
            for (typ, time) in
                [(types::NOT_BEFORE, self.not_before), (types::NOT_AFTER, self.not_after)]
            {
                tlv::put_tlv(out, typ, time.to_string().as_bytes());
            }
        });
    }

    /// Whether `unix_s`, in seconds since the Unix epoch, lies within.
    #[must_use]
    pub fn contains(&self, unix_s: i64) -> bool {
        (self.not_before.0..=self.not_after.0).contains(&unix_s)
    }
}
