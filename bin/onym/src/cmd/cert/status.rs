//! `onym cert status`: how long certificates are good for, and what depends on them.

use super::condition::{Condition, days_left};
use super::failure;
use crate::output::Context;
use onym_crypto::Certificate;
use onym_crypto::cert::key_of_locator;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use serde::Serialize;

/// What is to be said of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Valid,
    /// A third of its time is left.
    RenewNow,
    Expired,
    NotYetValid,
    /// A newer one of the same key and issuer is valid.
    Replaced,
}

#[derive(Debug, Serialize)]
struct Row {
    certificate: String,
    state: State,
    days_left: i64,
    not_after: String,
    issuer: Option<String>,
    /// Whether the key signs when nothing is named.
    signs_by_default: bool,
    /// Certificates of the store that this one vouches for.
    vouches_for: Vec<String>,
}

pub(super) fn run(store: &KeyStore, cx: &Context) -> anyhow::Result<()> {
    let certificates = store.certificates().map_err(failure)?;
    let keys = store.keys().map_err(failure)?;
    let now_s = i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX);
    let rows: Vec<Row> = certificates
        .iter()
        .map(|certificate| {
            let of_key = |key: &&onym_crypto::store::KeyInfo| key.name == certificate.key_name();
            let signs_by_default =
                keys.iter().find(of_key).is_some_and(|k| k.is_default_of_identity);
            row(certificate, &certificates, signs_by_default, now_s)
        })
        .collect();
    cx.print(&rows, |rows| {
        if rows.is_empty() {
            return "no certificates; `onym cert request` gets one".into();
        }
        let line = |row: &Row| {
            let state = match row.state {
                State::Valid => "valid",
                State::RenewNow => "RENEW NOW",
                State::Expired => "EXPIRED",
                State::NotYetValid => "NOT YET VALID",
                State::Replaced => "replaced",
            };
            let mut uses: Vec<String> = Vec::new();
            uses.extend(row.signs_by_default.then(|| "signs".to_owned()));
            if !row.vouches_for.is_empty() {
                uses.push(format!("vouches for {}", row.vouches_for.join(" ")));
            }
            vec![row.certificate.clone(), row.days_left.to_string(), state.into(), uses.join(", ")]
        };
        let table: Vec<_> = rows.iter().map(line).collect();
        crate::human::table(&["CERTIFICATE", "DAYS LEFT", "STATE", "USED"], &table)
    })
}

fn row(certificate: &Certificate, all: &[Certificate], signs_by_default: bool, now_s: i64) -> Row {
    let vouched = |other: &&Certificate| {
        let locator = other.issuer().and_then(key_of_locator);
        *other != certificate && locator.is_some_and(|key| key == certificate.key_name())
    };
    Row {
        certificate: certificate.name().to_string(),
        state: state(certificate, all, now_s),
        days_left: days_left(certificate, now_s),
        not_after: super::date(certificate.validity().not_after.0),
        issuer: certificate.issuer().map(|name| name.to_string()),
        signs_by_default,
        vouches_for: all.iter().filter(vouched).map(|other| other.name().to_string()).collect(),
    }
}

fn state(certificate: &Certificate, all: &[Certificate], now_s: i64) -> State {
    let period = certificate.validity();
    let newer = |other: &Certificate| {
        let same = other.key_name() == certificate.key_name()
            && other.is_self_signed() == certificate.is_self_signed();
        same && other.validity().contains(now_s) && other.validity().not_after > period.not_after
    };
    if all.iter().any(newer) {
        return State::Replaced;
    }
    match Condition::of(certificate, now_s) {
        Condition::Expired => State::Expired,
        Condition::NotYetValid => State::NotYetValid,
        Condition::LastThird => State::RenewNow,
        Condition::Good => State::Valid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::cert::validity_of_days;
    use onym_crypto::{KeyType, PrivateKey};

    #[test]
    fn a_certificate_is_to_be_renewed_when_a_third_is_left_and_replaced_by_a_longer_one() {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let name: onym_wire::Name = "/a/KEY/1".parse().unwrap();
        let made = |version, days| {
            let validity = validity_of_days(0, days);
            Certificate::self_signed_for(name.as_ref(), &key, version, validity).unwrap()
        };
        let old = made(0, 90);
        let at = |day: i64| state(&old, std::slice::from_ref(&old), day * 86_400);
        assert_eq!([at(-1), at(1), at(59)], [State::NotYetValid, State::Valid, State::Valid]);
        assert_eq!([at(61), at(89), at(91)], [State::RenewNow, State::RenewNow, State::Expired]);
        let both = [old.clone(), made(1, 180)];
        assert_eq!(state(&both[0], &both, 91 * 86_400), State::Replaced);
        assert_eq!(state(&both[1], &both, 91 * 86_400), State::Valid);
    }
}
