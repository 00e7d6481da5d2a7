//! When a certificate is to be renewed.

use onym_wire::cert::ValidityPeriod;

/// Octets of the two shares in which renewals spread: after two thirds of the validity, over a
/// tenth of it.
const SPREAD: u64 = 10;
/// First and longest wait after a renewal that failed, in seconds.
const RETRY_MIN_S: u64 = 60;
const RETRY_MAX_S: u64 = 3_600;

/// Unix seconds at which a certificate is to be renewed: when a third of its validity is left, later
/// by up to a tenth of the validity. `seed` says by how much: it should differ from node to node, so
/// that certificates that were issued together are not renewed together.
#[must_use]
pub fn due(validity: ValidityPeriod, seed: u64) -> i64 {
    let length = length(validity);
    let spread = share(seed, length / SPREAD);
    let after = length.saturating_mul(2) / 3 + spread;
    validity.not_before.0.saturating_add(i64::try_from(after).unwrap_or(i64::MAX))
}

/// Seconds to wait after `failures` renewals in a row that failed: from a minute, doubling, to an
/// hour, and to a thirtieth of the validity at most; then up to half as long again, by `seed`.
#[must_use]
pub fn retry_after(validity: ValidityPeriod, failures: u32, seed: u64) -> u64 {
    let longest = (length(validity) / 30).clamp(1, RETRY_MAX_S);
    let wait = RETRY_MIN_S.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(longest);
    wait + share(seed, wait / 2)
}

fn length(validity: ValidityPeriod) -> u64 {
    let seconds = validity.not_after.0.saturating_sub(validity.not_before.0);
    u64::try_from(seconds).unwrap_or(0)
}

/// A number below `below` by `seed`; 0 when that is 0.
fn share(seed: u64, below: u64) -> u64 {
    seed.checked_rem(below).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::cert::CertTime;

    const DAY: i64 = 86_400;

    fn period(days: i64) -> ValidityPeriod {
        ValidityPeriod { not_before: CertTime(0), not_after: CertTime(days * DAY) }
    }

    #[test]
    fn ten_thousand_certificates_of_one_moment_are_renewed_over_a_tenth_of_their_validity() {
        let mut hours = [0_u32; 90 * 24];
        for node in 0..10_000_u64 {
            let seed = node.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let at = due(period(90), seed);
            assert!((60 * DAY..69 * DAY).contains(&at), "{at}");
            hours[usize::try_from(at / 3600).unwrap()] += 1;
        }
        // Even would be 46 in each of 216 hours.
        assert!(hours.iter().all(|n| *n < 120), "{:?}", hours.iter().max());
    }

    #[test]
    fn an_authority_that_is_away_for_a_week_is_asked_each_hour_and_a_half_at_least() {
        let validity = period(90);
        let left = period(90).not_after.0 - due(validity, u64::MAX);
        assert!(left > 7 * DAY, "a week fits in what is left: {left}");
        let (mut waited, mut tries) = (0, 0);
        while waited < 7 * 86_400 {
            tries += 1;
            waited += retry_after(validity, tries, u64::from(tries) * 7919);
        }
        assert!((100..200).contains(&tries), "{tries}");
        assert!(retry_after(period(0), 9, 5) <= 2);
    }
}
