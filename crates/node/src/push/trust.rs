//! Whose publications are delivered: by the rules of an entry of `trust`. The publishers'
//! certificates are files, because a publication names its key by digest, which cannot be fetched.
//!
//! For rules, the item `/LABEL/LABEL` is Data named `/push/LABEL/LABEL`, each label a component of
//! 8 octets; a control message to a part of a node is Data named `/push-control/PART/LABEL`.

use onym_crypto::Certificate;
use onym_guard::{Guard, GuardError};
use onym_pubsub::{Rules, Trusted};
use onym_trust::Subject;
use onym_trust::chain::{Context, Event, Failure};
use onym_wire::Name;
use onym_wire::push::{Label, reserved};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How long a chain is believed without another look, in milliseconds.
const BELIEVED_MS: u64 = 2000;

/// The publishers, and what says which of them may publish what.
#[derive(Debug)]
struct Publishers {
    /// By the digest of their key, each with its certificates.
    by_key: BTreeMap<[u8; 32], Vec<Certificate>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    guard: Guard,
    /// When the chain of a certificate was looked at, and whether it led to an anchor.
    judged: BTreeMap<Name, (u64, bool)>,
}

/// Delivers what `publishers` may publish by the rules of `guard`. The list also has the
/// certificates between them and the anchors.
pub(super) fn trusted(guard: Guard, publishers: Vec<Certificate>) -> Trusted {
    let keys: Vec<_> = publishers.iter().map(|c| c.public_key().clone()).collect();
    let mut by_key: BTreeMap<[u8; 32], Vec<Certificate>> = BTreeMap::new();
    for certificate in publishers {
        by_key.entry(certificate.public_key().key_digest()).or_default().push(certificate);
    }
    let state = Mutex::new(State { guard, judged: BTreeMap::new() });
    Trusted::new(keys).with_rules(Arc::new(Publishers { by_key, state }))
}

/// The certificates that files and folders hold.
///
/// # Errors
/// [`GuardError`] names the file.
pub(super) fn publishers(
    files: &[String],
    base: &std::path::Path,
) -> Result<Vec<Certificate>, GuardError> {
    let mut all = Vec::new();
    for file in files {
        all.extend(onym_guard::certificates(&base.join(file))?);
    }
    Ok(all)
}

fn name_of(item: &[[u8; 8]]) -> Name {
    let mut name = Name::new();
    let part = item.first().and_then(|root| part_of(Label(*root)));
    match part {
        Some(part) => name.append_generic("push-control").append_generic(part),
        None => name.append_generic("push"),
    };
    for label in item.iter().skip(usize::from(part.is_some())) {
        name.append_generic(label);
    }
    name
}

/// The part of a node that a reserved root stands for (spec/push.md, section 6).
fn part_of(root: Label) -> Option<&'static str> {
    Some(match root {
        reserved::RENDEZVOUS => "rendezvous",
        reserved::TOPOLOGY => "topology",
        reserved::DISPATCHER => "dispatcher",
        reserved::REPAIR => "repair",
        reserved::LINK_STATE => "link-state",
        reserved::HELLO => "hello",
        reserved::DOMAINS => "domains",
        root if reserved::is_reserved(root) => "other",
        _ => return None,
    })
}

impl Rules for Publishers {
    fn may(&self, key: &[u8; 32], item: &[[u8; 8]]) -> bool {
        let now_ms = onym_engine::clock::unix_ms();
        let name = name_of(item);
        let subject = Subject::data(name.as_ref());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for notice in state.guard.look(now_ms) {
            state.judged.clear();
            match notice.is_bad {
                true => tracing::warn!("push.trust: {notice}"),
                false => tracing::info!("push.trust: {notice}"),
            }
        }
        let certificates = self.by_key.get(key).map(Vec::as_slice).unwrap_or_default();
        certificates.iter().any(|certificate| {
            let policy = state.guard.validator().policy();
            policy.check(&subject, certificate.name()).is_allowed()
                && self.believes(&mut state, certificate, now_ms)
        })
    }
}

impl Publishers {
    /// Whether the chain of a certificate leads to an anchor now, over certificates of the list.
    fn believes(&self, state: &mut State, certificate: &Certificate, now_ms: u64) -> bool {
        let name = certificate.name();
        if let Some((at_ms, is_good)) = state.judged.get(name.value())
            && now_ms.abs_diff(*at_ms) < BELIEVED_MS
        {
            return *is_good;
        }
        let context = Context { now_ms, ..Context::default() };
        let validator = state.guard.validator_mut();
        let mut judged = validator.data(certificate.wire(), 0, &context).map(|r| r.is_ok());
        while let Some(event) = validator.poll() {
            match event {
                Event::Fetch(fetch) => {
                    let found = self.by_key.values().flatten();
                    let mut found = found.filter(|c| fetch.name.as_ref().is_prefix_of(c.name()));
                    match found.next() {
                        Some(c) => validator.certificate(fetch.id, c.wire(), &context),
                        None => validator.failed(fetch.id, Failure::TimedOut, now_ms),
                    }
                }
                Event::Judged { result, .. } => judged = Some(result.is_ok()),
            }
        }
        let is_good = judged.unwrap_or(false);
        state.judged.insert(name.to_name(), (now_ms, is_good));
        is_good
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_crypto::cert::{Issue, validity_of_days};
    use onym_crypto::edge::unix_now_ms;
    use onym_crypto::{KeyType, PrivateKey, Signer};
    use onym_guard::Settings;
    use onym_wire::Component;

    fn key(identity: &str, days: u32) -> (Signer, Certificate) {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let name: Name = format!("{identity}/KEY/1").parse().unwrap();
        let now_ms = unix_now_ms();
        let validity = validity_of_days(now_ms, days);
        let made = Certificate::self_signed_for(name.as_ref(), &key, now_ms, validity).unwrap();
        (Signer::key(key, made.name().to_name()), made)
    }

    fn issued(identity: &str, by: &Signer) -> (Signer, Certificate) {
        let (_, request) = key(identity, 1);
        let now_ms = unix_now_ms();
        let validity = validity_of_days(now_ms, 1);
        let issue = Issue { issuer_id: Component::generic(b"i"), now_ms, validity };
        let certificate = Certificate::issue(&request, by, &issue).unwrap();
        (Signer::digest(), certificate)
    }

    #[test]
    fn rules_tell_control_messages_from_publications() {
        let one = Label::from_u64(1).0;
        let uri = |item: &[[u8; 8]]| name_of(item).to_string();
        assert_eq!(uri(&[one, one]), "/push/%00%00%00%00%00%00%00%01/%00%00%00%00%00%00%00%01");
        let node = "%00%00%00%00%00%00%00%01";
        for (root, part) in [
            (reserved::RENDEZVOUS, "rendezvous"),
            (reserved::HELLO, "hello"),
            (Label([0xff; 8]), "rendezvous"),
            (Label([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 7]), "other"),
        ] {
            assert_eq!(uri(&[root.0, one]), format!("/push-control/{part}/{node}"));
        }
    }

    #[test]
    fn a_schema_says_which_publisher_may_publish_under_which_scope() {
        let place = tempfile::tempdir().unwrap();
        let text = "#K: \"KEY\"/_/_/_\n#root: \"net\"/#K\n#user: \"net\"/\"a\"/#K <= #root\n\
                    #one: \"push\"/\"%00%00%00%00%00%00%00%01\"/_item <= #user";
        std::fs::write(place.path().join("push.lvs"), text).unwrap();
        let (root, anchor) = key("/net", 1);
        std::fs::write(place.path().join("root.cert"), anchor.to_text()).unwrap();
        std::fs::write(place.path().join("revoked"), "").unwrap();
        let settings = Settings {
            revoked: "revoked".into(),
            refresh_s: 1,
            ..Settings::of("push.lvs", vec!["root.cert".into()])
        };
        let guard = Guard::open(settings, place.path(), unix_now_ms() - 5000).unwrap();
        let (_, user) = issued("/net/a", &root);
        let (_, stranger) = key("/net/a", 1);
        let list = [user.clone(), stranger.clone()];
        let by_key = list.iter().map(|c| (c.public_key().key_digest(), vec![c.clone()])).collect();
        let publishers =
            Publishers { by_key, state: Mutex::new(State { guard, judged: BTreeMap::new() }) };
        let one = |n: u64| n.to_be_bytes();
        let may =
            |c: &Certificate, item: &[[u8; 8]]| publishers.may(&c.public_key().key_digest(), item);
        assert!(may(&user, &[one(1), one(7)]));
        assert!(!may(&user, &[one(2), one(7)]), "no rule for that scope");
        assert!(!may(&user, &[one(1), one(7), one(8)]));
        assert!(!may(&stranger, &[one(1), one(7)]), "the same name, and no chain");
        assert!(!publishers.may(&[7; 32], &[one(1), one(7)]), "an unknown key");
        // A stolen key.
        let revoked = place.path().join("revoked");
        std::fs::write(revoked, user.key_name().to_string()).unwrap();
        publishers.state.lock().unwrap().guard.look(unix_now_ms() + 10_000);
        publishers.state.lock().unwrap().judged.clear();
        assert!(!may(&user, &[one(1), one(7)]));
    }
}
