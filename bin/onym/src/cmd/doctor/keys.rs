//! Certificates of the key store: which have expired, which soon will.

use super::Finding;
use crate::cmd::cert::Condition;
use crate::cmd::daemon::certificates::{Found, look};
use crate::cmd::daemon::routing::usual_folder;
use crate::network_folder::{AUTHORITY_KEY, ROUTER_KEY};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::{KeyStore, loose};
use onym_node::config::Config;
use std::path::PathBuf;

const CHECK: &str = "keys";

pub(super) fn check(checks: &mut Vec<Finding>) {
    let store = match KeyStore::of_user() {
        Ok(store) => store,
        Err(error) => {
            let mend = "set ONYM_KEYSTORE or HOME if this user signs packets";
            checks.push(Finding::warning(CHECK, error.to_string(), mend));
            return;
        }
    };
    let place = store.dir().display().to_string();
    for found in store.loose().unwrap_or_default() {
        let (path, mode, wanted) = (found.path.display(), found.mode, found.wanted);
        let found = format!("others than its owner reach {path} (mode {mode:o})");
        checks.push(Finding::warning(CHECK, found, format!("chmod {wanted:o} {path}")));
    }
    let read = store.keys().and_then(|keys| Ok((keys.len(), store.certificates()?)));
    match read {
        Ok((0, _)) => {
            let found = format!(
                "none in {place}; only needed to sign (`onym key new IDENTITY` creates one)"
            );
            checks.push(Finding::ok(CHECK, found));
        }
        Ok((keys, certificates)) => {
            let now_s = i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX);
            checks.push(judge(keys, &certificates, now_s));
        }
        Err(error) => {
            let mend = "it must be readable by this user and writable by nobody else";
            checks.push(Finding::failed(CHECK, format!("{place}: {error}"), mend));
        }
    }
}

/// The certificates that the router of this configuration stands on.
pub(super) fn check_routing(config: &Config, checks: &mut Vec<Finding>) {
    const CHECK: &str = "routing";
    let routing = &config.routing;
    if routing.network.is_empty() || routing.insecure {
        return;
    }
    let folder = match routing.folder.as_str() {
        "" => usual_folder(),
        folder => PathBuf::from(folder),
    };
    for file in [ROUTER_KEY, AUTHORITY_KEY] {
        if let Some(found) = loose(folder.join(file), 0o600) {
            let (path, mode) = (found.path.display(), found.mode);
            let found = format!("others than its owner reach {path} (mode {mode:o})");
            checks.push(Finding::warning(CHECK, found, format!("chmod 600 {path}")));
        }
    }
    for Found { certificate, days_left, condition } in look(&folder) {
        let found = format!("{certificate} has {days_left} days left");
        checks.push(match condition {
            Condition::Good => Finding::ok(CHECK, found),
            Condition::LastThird => {
                let mend = "the daemon renews it: does the authority answer (`onym cert authority`)? \
                            `onym network renew` says why not";
                Finding::warning(CHECK, found + ": a third of its time", mend)
            }
            Condition::NotYetValid => {
                Finding::failed(CHECK, certificate + " is not valid yet", "is the clock right?")
            }
            Condition::Expired => {
                let mend =
                    "an expired certificate proves nothing: `onym network invite` and `join` again";
                Finding::failed(CHECK, certificate + " has expired", mend)
            }
        });
    }
}

/// Judges each key by its longest-lived certificate: an old one beside a new one does no harm.
fn judge(keys: usize, certificates: &[Certificate], now_s: i64) -> Finding {
    let mut latest: Vec<&Certificate> = Vec::new();
    for certificate in certificates {
        let key = certificate.key_name();
        match latest.iter_mut().find(|c| c.key_name() == key) {
            Some(c) if c.validity().not_after.0 < certificate.validity().not_after.0 => {
                *c = certificate;
            }
            Some(_) => {}
            None => latest.push(certificate),
        }
    }
    let left = |c: &Certificate| c.validity().not_after.0 - now_s;
    let Some(first) = latest.iter().min_by_key(|c| left(c)) else {
        let mend = "`onym cert self-sign IDENTITY` makes one";
        return Finding::warning(CHECK, format!("{keys} keys without a certificate"), mend);
    };
    let key = first.key_name();
    let days = left(first) / 86_400;
    let mend = format!("run `onym cert self-sign {key}`, or have its issuer sign it again");
    if left(first) < 0 {
        let found = format!("the certificate of {key} expired {} days ago", -days);
        return Finding::failed(CHECK, found, mend);
    }
    if first.validity().not_before.0 > now_s {
        let found = format!("the certificate of {key} is not valid yet");
        return Finding::failed(
            CHECK,
            found,
            "check the clock; if it is right, have the certificate signed again",
        );
    }
    let due = latest.iter().filter(|c| Condition::of(c, now_s).is_due()).min_by_key(|c| left(c));
    if let Some(due) = due {
        let (key, days) = (due.key_name(), left(due) / 86_400);
        let found = format!(
            "the certificate of {key} expires in {days} days, less than a third of its validity"
        );
        let mend = "run `onym cert renew AUTHORITY --now`, or keep `onym cert renew AUTHORITY --keep` running";
        return Finding::warning(CHECK, found, mend);
    }
    Finding::ok(CHECK, format!("{keys} keys; the first certificate to end has {days} days left"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::doctor::Grade;
    use onym_crypto::cert::validity_of_days;
    use onym_crypto::{KeyType, PrivateKey};

    #[test]
    fn a_certificate_warns_before_it_ends_and_fails_after() {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let name: onym_wire::Name = "/a/KEY/1".parse().unwrap();
        let validity = validity_of_days(0, 100);
        let made = Certificate::self_signed_for(name.as_ref(), &key, 0, validity).unwrap();
        let grade = |day: i64| judge(1, std::slice::from_ref(&made), day * 86_400).result;
        assert_eq!(grade(1), Grade::Ok);
        assert_eq!(grade(80), Grade::Warning);
        assert_eq!(grade(101), Grade::Failed);
        assert_eq!(grade(-3), Grade::Failed, "not valid yet");
        let longer = validity_of_days(0, 1000);
        let renewed = Certificate::self_signed_for(name.as_ref(), &key, 1, longer).unwrap();
        assert_eq!(judge(1, &[made, renewed], 101 * 86_400).result, Grade::Ok);
    }
}
