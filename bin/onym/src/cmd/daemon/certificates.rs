//! How long the certificates are good for that the router stands on: told at the start, and again
//! while a third of their time or less is left.

use super::supervisor::Ended;
use crate::cmd::cert::is_in_last_third;
use crate::network_folder::{ANCHOR, ROUTER_CERT, read_certificate};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use std::path::Path;
use std::time::Duration;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(6 * 3600);

/// What is to be said of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Good,
    LastThird,
    NotYetValid,
    Expired,
}

/// A certificate of the router's folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) certificate: String,
    pub(crate) days_left: i64,
    pub(crate) condition: Condition,
}

fn judge(certificate: &Certificate, now_s: i64) -> Found {
    let period = certificate.validity();
    let condition = if now_s > period.not_after.0 {
        Condition::Expired
    } else if now_s < period.not_before.0 {
        Condition::NotYetValid
    } else if is_in_last_third(certificate, now_s) {
        Condition::LastThird
    } else {
        Condition::Good
    };
    let days_left = (period.not_after.0 - now_s).div_euclid(86_400);
    Found { certificate: certificate.name().to_string(), days_left, condition }
}

/// The router's certificate and the anchor, as far as they are there.
pub(crate) fn look(folder: &Path) -> Vec<Found> {
    let now_s = i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX);
    let read = [ROUTER_CERT, ANCHOR].map(|file| read_certificate(&folder.join(file)).ok());
    read.iter().flatten().map(|certificate| judge(certificate, now_s)).collect()
}

/// Tells what is to be told until the node ends.
pub(super) fn watch(folder: &Path, ended: &Ended) {
    for found in look(folder).iter().filter(|found| found.condition == Condition::Good) {
        let days_left = found.days_left;
        tracing::info!(certificate = found.certificate, days_left, "certificate of routing");
    }
    loop {
        for Found { certificate, days_left, condition } in look(folder) {
            match condition {
                Condition::Good => {}
                Condition::LastThird => {
                    tracing::warn!(certificate, days_left, "to be renewed: `onym network renew`");
                }
                Condition::NotYetValid => {
                    tracing::error!(certificate, "not valid yet: is the clock right?");
                }
                Condition::Expired => tracing::error!(certificate, days_left, "expired"),
            }
        }
        if ended.within(EVERY) {
            return;
        }
    }
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
        let at = |day: i64| judge(&made, day * 86_400);
        assert_eq!((at(1).condition, at(1).days_left), (Condition::Good, 89));
        assert_eq!((at(61).condition, at(61).days_left), (Condition::LastThird, 29));
        assert_eq!((at(91).condition, at(91).days_left), (Condition::Expired, -1));
        // A clock that jumps: forward a year, back a day.
        assert_eq!(at(1 + 365).condition, Condition::Expired);
        assert_eq!(at(-1).condition, Condition::NotYetValid);
    }

    #[test]
    fn a_folder_without_certificates_has_nothing_to_tell() {
        let dir = tempfile::tempdir().unwrap();
        assert!(look(dir.path()).is_empty());
        std::fs::write(dir.path().join(ANCHOR), "no certificate").unwrap();
        assert!(look(dir.path()).is_empty());
    }
}
