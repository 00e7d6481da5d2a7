//! Validity of the router's certificates: logged at the start, and again during the last third of
//! their time. The router's own is renewed when it is due.

use super::supervisor::Ended;
use crate::cmd::cert::{Condition, days_left};
use crate::cmd::network::{is_due, renew_router};
use crate::network_folder::{ANCHOR, ROUTER_CERT, read_certificate};
use crate::session;
use onym_client::ClientOptions;
use onym_client::blocking::Client;
use onym_crypto::Certificate;
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_ndncert::renew;
use std::path::Path;
use std::time::Duration;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(60);
/// Looks between two tellings: six hours.
const TELL_EVERY: u64 = 360;

/// A certificate of the router's folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) certificate: String,
    pub(crate) days_left: i64,
    pub(crate) condition: Condition,
}

/// The router's certificate and the anchor, as far as they are there.
pub(crate) fn look(folder: &Path) -> Vec<Found> {
    let now_s = now_s();
    let read = [ROUTER_CERT, ANCHOR].map(|file| read_certificate(&folder.join(file)).ok());
    let found = |certificate: &Certificate| Found {
        certificate: certificate.name().to_string(),
        days_left: days_left(certificate, now_s),
        condition: Condition::of(certificate, now_s),
    };
    read.iter().flatten().map(found).collect()
}

/// The renewals of one certificate.
#[derive(Debug, Default)]
struct Renewal {
    /// In a row.
    failures: u32,
    /// No try before this moment, in seconds of the Unix epoch.
    after_s: i64,
}

/// What came of a look.
#[derive(Debug)]
enum Came {
    /// It is not due, or a try that failed rests.
    Nothing,
    Renewed(Certificate),
    /// Why not, and after how many seconds it is tried again.
    Failed(String, u64),
}

impl Renewal {
    /// Renews `old` when it is due; `seed` spreads the tries of many nodes.
    fn look(
        &mut self,
        old: &Certificate,
        now_s: i64,
        seed: u64,
        renewed: impl FnOnce() -> anyhow::Result<Certificate>,
    ) -> Came {
        if !is_due(old, now_s) || now_s < self.after_s {
            return Came::Nothing;
        }
        match renewed() {
            Ok(new) => {
                *self = Self::default();
                Came::Renewed(new)
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                let wait = renew::retry_after(old.validity(), self.failures, seed);
                self.after_s = now_s.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX));
                Came::Failed(format!("{error:#}"), wait)
            }
        }
    }
}

/// A renewed certificate, by the authority that this node reaches.
fn renewed(folder: &Path, node: Option<&str>, ended: &Ended) -> anyhow::Result<Certificate> {
    let node = node.map(ToOwned::to_owned);
    let options = ClientOptions { node, ..ClientOptions::default() };
    renew_router(folder, || {
        let mut client = Client::open(options).map_err(session::failure)?;
        client.stop_when(ended.flag());
        Ok(client)
    })
}

/// Tells what is to be told, and renews what is due, until the node ends.
pub(super) fn watch(folder: &Path, node: Option<&str>, ended: &Ended) {
    for found in look(folder).iter().filter(|found| found.condition == Condition::Good) {
        let days_left = found.days_left;
        tracing::info!(certificate = found.certificate, days_left, "certificate of routing");
    }
    let mut renewal = Renewal::default();
    for looks in 0_u64.. {
        if looks % TELL_EVERY == 0 {
            look(folder).into_iter().for_each(tell);
        }
        if let Ok(old) = read_certificate(&folder.join(ROUTER_CERT)) {
            let try_it = || renewed(folder, node, ended);
            let now_s = now_s();
            match renewal.look(&old, now_s, random_u64(), try_it) {
                Came::Nothing => {}
                Came::Renewed(new) => {
                    let (certificate, days_left) = (new.name(), days_left(&new, now_s));
                    tracing::info!(%certificate, days_left, "renewed");
                }
                Came::Failed(why, again_in_s) => {
                    let (certificate, days_left) = (old.name(), days_left(&old, now_s));
                    tracing::warn!(%certificate, days_left, again_in_s, "not renewed: {why}");
                }
            }
        }
        if ended.within(EVERY) {
            return;
        }
    }
}

fn tell(Found { certificate, days_left, condition }: Found) {
    match condition {
        Condition::Good => {}
        Condition::LastThird => {
            tracing::warn!(certificate, days_left, "certificate expires soon: it is being renewed");
        }
        Condition::NotYetValid => {
            tracing::error!(certificate, "certificate is not valid yet: is the clock right?");
        }
        Condition::Expired => tracing::error!(
            certificate,
            days_left,
            "expired: it proves nothing any more; `onym network invite` and `join` again"
        ),
    }
}

fn now_s() -> i64 {
    i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::cert::validity_of_days;
    use onym_crypto::{KeyType, PrivateKey};
    use onym_wire::Name;

    fn made(from_day: i64, days: u32) -> Certificate {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let name: Name = "/net/a/32=DV/KEY/1".parse().unwrap();
        let from_ms = u64::try_from(from_day * 86_400_000).unwrap();
        let validity = validity_of_days(from_ms, days);
        Certificate::self_signed_for(name.as_ref(), &key, from_ms, validity).unwrap()
    }

    #[test]
    fn an_authority_that_is_away_for_a_week_ends_no_certificate() {
        let mut certificate = made(0, 90);
        let (mut renewal, mut tries, mut least) = (Renewal::default(), 0, i64::MAX);
        // It goes when the renewal becomes due.
        let minutes = 60_i64;
        let gone = (0..).find(|minute| is_due(&certificate, minute * minutes)).unwrap();
        let back = gone + 7 * 24 * 60;
        for minute in 0..200 * 24 * 60 {
            let now_s = minute * minutes;
            let old = certificate.clone();
            let seed = u64::try_from(minute).unwrap() * 7919;
            let came = renewal.look(&old, now_s, seed, || {
                tries += 1;
                match (gone..back).contains(&minute) {
                    true => Err(anyhow::anyhow!("the authority does not answer")),
                    false => Ok(made(now_s / 86_400, 90)),
                }
            });
            match came {
                Came::Renewed(new) => {
                    assert!(Condition::of(&old, now_s) != Condition::Expired);
                    certificate = new;
                }
                Came::Failed(why, again_in_s) => {
                    assert!(why.contains("does not answer") && again_in_s <= 5400, "{again_in_s}");
                    least = least.min(days_left(&old, now_s));
                }
                Came::Nothing => {}
            }
            assert!(Condition::of(&certificate, now_s) != Condition::Expired, "minute {minute}");
        }
        // Each hour or hour and a half while it is away, and the operator reads how long is left.
        assert!((100..=200).contains(&tries), "{tries}");
        assert!((14..=23).contains(&least), "{least}");
    }

    #[test]
    fn a_folder_without_certificates_has_nothing_to_tell() {
        let dir = tempfile::tempdir().unwrap();
        assert!(look(dir.path()).is_empty());
        std::fs::write(dir.path().join(ANCHOR), "no certificate").unwrap();
        assert!(look(dir.path()).is_empty());
    }
}
