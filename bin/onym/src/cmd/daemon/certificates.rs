//! Validity of the router's certificates: logged at the start, and again during the last third of
//! their time.

use super::supervisor::Ended;
use crate::cmd::cert::{Condition, days_left};
use crate::network_folder::{ANCHOR, ROUTER_CERT, read_certificate};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use std::path::Path;
use std::time::Duration;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(6 * 3600);

/// A certificate of the router's folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) certificate: String,
    pub(crate) days_left: i64,
    pub(crate) condition: Condition,
}

/// The router's certificate and the anchor, as far as they are there.
pub(crate) fn look(folder: &Path) -> Vec<Found> {
    let now_s = i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX);
    let read = [ROUTER_CERT, ANCHOR].map(|file| read_certificate(&folder.join(file)).ok());
    let found = |certificate: &Certificate| Found {
        certificate: certificate.name().to_string(),
        days_left: days_left(certificate, now_s),
        condition: Condition::of(certificate, now_s),
    };
    read.iter().flatten().map(found).collect()
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
                    tracing::warn!(
                        certificate,
                        days_left,
                        "certificate expires soon: renew it with `onym network renew`"
                    );
                }
                Condition::NotYetValid => {
                    tracing::error!(
                        certificate,
                        "certificate is not valid yet: is the clock right?"
                    );
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

    #[test]
    fn a_folder_without_certificates_has_nothing_to_tell() {
        let dir = tempfile::tempdir().unwrap();
        assert!(look(dir.path()).is_empty());
        std::fs::write(dir.path().join(ANCHOR), "no certificate").unwrap();
        assert!(look(dir.path()).is_empty());
    }
}
