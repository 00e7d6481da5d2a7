//! The state of a certificate by its dates.

use onym_crypto::Certificate;

/// By the clock of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Good,
    /// A third of its time or less is left.
    LastThird,
    NotYetValid,
    Expired,
}

impl Condition {
    pub(crate) fn of(certificate: &Certificate, now_s: i64) -> Self {
        let period = certificate.validity();
        let length = period.not_after.0.saturating_sub(period.not_before.0);
        if now_s > period.not_after.0 {
            Self::Expired
        } else if now_s < period.not_before.0 {
            Self::NotYetValid
        } else if period.not_after.0.saturating_sub(now_s) <= length / 3 {
            Self::LastThird
        } else {
            Self::Good
        }
    }

    /// Whether it should be renewed: in its last third, or over.
    pub(crate) fn is_due(self) -> bool {
        matches!(self, Self::LastThird | Self::Expired)
    }
}

/// Whole days until it ends; negative when it has ended.
pub(crate) fn days_left(certificate: &Certificate, now_s: i64) -> i64 {
    (certificate.validity().not_after.0 - now_s).div_euclid(86_400)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::cert::validity_of_days;
    use onym_crypto::{KeyType, PrivateKey};
    use onym_wire::Name;

    #[test]
    fn what_is_said_of_a_certificate_follows_its_dates_and_the_clock() {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let name: Name = "/net/a/32=DV/KEY/1".parse().unwrap();
        let validity = validity_of_days(0, 90);
        let made = Certificate::self_signed_for(name.as_ref(), &key, 0, validity).unwrap();
        let at = |day: i64| (Condition::of(&made, day * 86_400), days_left(&made, day * 86_400));
        assert_eq!(at(1), (Condition::Good, 89));
        assert_eq!(at(61), (Condition::LastThird, 29));
        assert_eq!(at(91), (Condition::Expired, -1));
        // A clock that jumps: forward a year, back a day.
        assert_eq!(at(1 + 365).0, Condition::Expired);
        assert_eq!(at(-1).0, Condition::NotYetValid);
    }
}
