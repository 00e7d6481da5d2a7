//! Which validity periods are granted.

use super::refusal::{Refusal, refuse};
use crate::Now;
use crate::error::ErrorCode;
use onym_crypto::Certificate;
use onym_wire::cert::{CertTime, ValidityPeriod};

/// How far the clock of who asks may be off, in seconds.
const SKEW_S: i64 = 120;

fn seconds(ms: u64) -> i64 {
    i64::try_from(ms / 1000).unwrap_or(i64::MAX)
}

/// Refuses what is longer, earlier or later than allowed.
pub(super) fn check(asked: ValidityPeriod, max_s: u64, now: Now) -> Result<(), Refusal> {
    let (now_s, max_s) = (seconds(now.unix_ms), i64::try_from(max_s).unwrap_or(i64::MAX));
    let (from, to) = (asked.not_before.0, asked.not_after.0);
    if to < from {
        return refuse(ErrorCode::VALIDITY, "it ends before it begins");
    }
    if to.saturating_sub(from) > max_s {
        return refuse(ErrorCode::VALIDITY, format!("at most {max_s} seconds are granted"));
    }
    if from < now_s.saturating_sub(SKEW_S)
        || to > now_s.saturating_add(max_s).saturating_add(SKEW_S)
    {
        let why = format!("now is {} here", CertTime(now_s));
        return refuse(ErrorCode::VALIDITY, why);
    }
    if to <= now_s {
        return refuse(ErrorCode::VALIDITY, "it is over already");
    }
    Ok(())
}

/// What is granted: nothing beyond the issuer's own certificate.
pub(super) fn granted(asked: ValidityPeriod, issuer: &Certificate) -> Option<ValidityPeriod> {
    let own = issuer.validity();
    let granted = ValidityPeriod {
        not_before: asked.not_before.max(own.not_before),
        not_after: asked.not_after.min(own.not_after),
    };
    (granted.not_before <= granted.not_after).then_some(granted)
}
