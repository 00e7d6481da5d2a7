//! The signature verifier.

use super::*;
use crate::control::TrustRule;
use onym_crypto::{Certificate, cert::validity_of_days};

fn take(bed: &mut Bed, data: Buf) -> Verdict {
    bed.take(packet(300, data, &[], None)).0
}

#[test]
fn every_kind_of_signature_is_verified_and_what_fails_is_dropped() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    for (n, kind) in [KeyType::Rsa, KeyType::Ecdsa, KeyType::Ed25519].into_iter().enumerate() {
        let key = format!("/a/KEY/{n}");
        let (good, spki) = signer(kind, &key);
        sv.post("keys", json!({ "add": [{ "name": key, "spki": spki }] }));
        assert_eq!(take(&mut sv, data_by(&good, "/a/1", 1, b"x")), Verdict::Forwarded);
        let mut broken = data_by(&good, "/a/1", 1, b"x").to_vec();
        let last = broken.len() - 1;
        broken[last] ^= 1;
        assert_eq!(take(&mut sv, Buf::copy_from(&broken)), Verdict::BadSignature);
    }
    let secret = [7; 32];
    sv.post(
        "keys",
        json!({ "add": [{ "name": "/h/KEY/1", "hmac": crate::table::encode(&secret) }] }),
    );
    let hmac = Signer::hmac(&secret, name("/h/KEY/1"));
    assert_eq!(take(&mut sv, data_by(&hmac, "/h", 1, b"x")), Verdict::Forwarded);
    let (stranger, _) = signer(KeyType::Ecdsa, "/c/KEY/1");
    assert_eq!(take(&mut sv, data_by(&stranger, "/a/1", 1, b"x")), Verdict::UnknownKey);
    assert_eq!(take(&mut sv, data_of("/a/1", 1)), Verdict::Unsigned);
    assert_eq!(sv.interest(256, "/a", 1).0, Verdict::Forwarded, "Interests are left alone");
    sv.set(json!({ "drop": false, "no_key_drop": false, "unsigned_drop": false }));
    assert_eq!(take(&mut sv, data_by(&stranger, "/a/1", 1, b"x")), Verdict::Forwarded);
    assert_eq!(take(&mut sv, data_of("/a/1", 1)), Verdict::Forwarded);
    let stats = sv.stats()["signature_verifier"].clone();
    assert_eq!((&stats["valid"], &stats["invalid"]), (&json!(5), &json!(3)), "{stats}");
}

/// The manager finds by these names where fakes come from.
#[test]
fn what_is_dropped_without_a_known_key_is_told_by_name_and_what_passes_is_not() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (stranger, _) = signer(KeyType::Ecdsa, "/c/KEY/1");
    take(&mut sv, data_by(&stranger, "/a/stranger", 1, b"x"));
    take(&mut sv, data_of("/a/unsigned", 1));
    sv.set(json!({ "no_key_drop": false, "unsigned_drop": false }));
    take(&mut sv, data_by(&stranger, "/b/stranger", 1, b"x"));
    sv.wait(2000);
    let told = sv.event("invalid_signature");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["names"], json!(["/a/stranger", "/a/unsigned"]));
    assert_eq!(told[0]["count"], 2);
}

#[test]
fn rules_and_bindings_say_which_key_may_sign_what() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (a, spki_a) = signer(KeyType::Ecdsa, "/a/KEY/1");
    let (b, spki_b) = signer(KeyType::Ecdsa, "/b/KEY/1");
    sv.post(
        "keys",
        json!({ "add": [
        { "name": "/a/KEY/1", "spki": spki_a }, { "name": "/b/KEY/1", "spki": spki_b },
    ] }),
    );
    assert_eq!(take(&mut sv, data_by(&b, "/a/1", 1, b"x")), Verdict::Forwarded);
    let rules = vec![TrustRule { data: "^/a/".into(), key: "/a".into() }];
    let set = sv.ask(Request::SetTrust(TrustSource::Rules { rules })).unwrap();
    assert_eq!(set, Answer::TrustSet { changed: true, rules: 1 });
    assert_eq!(take(&mut sv, data_by(&b, "/a/1", 1, b"x")), Verdict::Untrusted);
    assert_eq!(take(&mut sv, data_by(&a, "/a/1", 1, b"x")), Verdict::Forwarded);
    assert_eq!(take(&mut sv, data_by(&a, "/c", 1, b"x")), Verdict::Forwarded, "no rule for it");
    sv.set(json!({ "bind": true }));
    assert_eq!(take(&mut sv, data_by(&a, "/c", 1, b"x")), Verdict::Untrusted);
}

/// A key and its certificate, issued by `by` or self-signed, in base64.
fn certified(identity: &str, by: Option<&Signer>) -> (Signer, String) {
    let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
    let mut key_name = name(identity);
    key_name.append_generic("KEY").append_generic("1");
    let now = UNIX_MS;
    let mut certificate = Certificate::self_signed(key_name.as_ref(), &key, now).unwrap();
    if let Some(by) = by {
        let issuer_id = onym_wire::Component::generic(b"i");
        let validity = validity_of_days(now, 2);
        let issue = onym_crypto::Issue { issuer_id, now_ms: now, validity };
        certificate = Certificate::issue(&certificate, by, &issue).unwrap();
    }
    let signer = Signer::key(key, certificate.name().to_name());
    (signer, crate::table::encode(certificate.wire()))
}

#[test]
fn a_trust_schema_says_which_key_may_sign_what() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (_, root) = certified("/a", None);
    let (user, of_user) = certified("/a/u", None);
    sv.post("keys", json!({ "add": [{ "certificate": root }, { "certificate": of_user }] }));
    let text = "#K: \"KEY\"/_/_/_\n#root: \"a\"/#K\n#user: \"a\"/u/#K <= #root\n\
                #note: \"a\"/u/_ <= #user";
    let schema = TrustSource::LightVerSec { lightversec: text.to_owned() };
    let set = sv.ask(Request::SetTrust(schema.clone())).unwrap();
    assert_eq!(set, Answer::TrustSet { changed: true, rules: 0 });
    assert_eq!(sv.ask(Request::Trust).unwrap(), Answer::Trust(schema));
    assert_eq!(take(&mut sv, data_by(&user, "/a/u/1", 1, b"x")), Verdict::Forwarded);
    for uri in ["/a/v/1", "/a/u/1/2", "/b"] {
        assert_eq!(take(&mut sv, data_by(&user, uri, 1, b"x")), Verdict::Untrusted, "{uri}");
    }
    // A wrong one changes nothing.
    let validator =
        |text: &str| TrustSource::Validator { validator: text.to_owned(), section: String::new() };
    let wrong = TrustSource::LightVerSec { lightversec: "#a: ".to_owned() };
    for wrong in [wrong, validator("rule {")] {
        assert!(sv.ask(Request::SetTrust(wrong)).is_err());
    }
    assert_eq!(take(&mut sv, data_by(&user, "/a/v/1", 1, b"x")), Verdict::Untrusted);
    let conf =
        "rule {\n id all\n for data\n checker {\n type hierarchical\n sig-type ed25519\n }\n}";
    sv.ask(Request::SetTrust(validator(conf))).unwrap();
    assert_eq!(take(&mut sv, data_by(&user, "/a/u/1/2", 1, b"x")), Verdict::Forwarded);
    assert_eq!(take(&mut sv, data_by(&user, "/a/v", 1, b"x")), Verdict::Untrusted);
}

/// Negative 5: what was valid when it was learned is refused when its time is over.
#[test]
fn a_key_counts_while_its_certificate_is_valid() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (root, _) = certified("/a", None);
    let (user, of_user) = certified("/a/u", Some(&root));
    sv.post("keys", json!({ "add": [{ "certificate": of_user }] }));
    assert_eq!(take(&mut sv, data_by(&user, "/a/u/1", 1, b"x")), Verdict::Forwarded);
    sv.wait(3 * 86_400_000);
    assert_eq!(take(&mut sv, data_by(&user, "/a/u/1", 1, b"x")), Verdict::Untrusted);
}

#[test]
fn failures_become_rules_of_a_filter_but_never_against_what_is_good() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (good, spki) = signer(KeyType::Ecdsa, "/a/KEY/1");
    let (bad, _) = signer(KeyType::Ecdsa, "/a/KEY/1");
    sv.post("keys", json!({ "add": [{ "name": "/a/KEY/1", "spki": spki }] }));
    let filter =
        json!({ "url": "http://127.0.0.1:1", "after": 3, "rules_max": 5, "lifetime_ms": 60000 });
    sv.set(json!({ "filter": filter }));
    sv.wait(10);
    take(&mut sv, data_by(&good, "/mixed/good", 1, b"x"));
    for n in 0..4 {
        take(&mut sv, data_by(&bad, &format!("/fake/{n}"), 1, b"x"));
        take(&mut sv, data_by(&bad, &format!("/mixed/{n}"), 1, b"x"));
    }
    take(&mut sv, data_by(&bad, "/mixed/good", 1, b"x"));
    sv.wait(2000);
    let Some(Effect::AddRules(RulesForFilter { rules, .. })) = sv.effects.pop() else {
        panic!("no rules were sent")
    };
    let whole = |rule: &Rule| (rule.prefix.as_str(), rule.how) == ("/fake", Match::Prefix);
    assert!(rules.iter().any(whole), "{rules:?}");
    let good = |rule: &Rule| ["/mixed", "/mixed/good"].contains(&rule.prefix.as_str());
    assert!(!rules.iter().any(good), "{rules:?}");
    assert_eq!(rules.len(), 5, "one prefix and four names, and then the cap");
    let mut nf = Bed::new(Kind::NameFilter, &[256, 300]);
    let add = SetRequest::Change { add: rules, remove: Vec::new() };
    let told = nf.get(Request::Rules(add));
    assert_eq!(told["added"], 5, "a filter takes what a verifier sends");
    assert_eq!(nf.data(300, "/fake/77").0, Verdict::Filtered);
    assert_eq!(nf.data(300, "/mixed/good").0, Verdict::Forwarded);
}

#[test]
fn statistical_verification_skips_some_and_none_where_one_failed() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (good, spki) = signer(KeyType::Ecdsa, "/a/KEY/1");
    let (bad, _) = signer(KeyType::Ecdsa, "/a/KEY/1");
    sv.post("keys", json!({ "add": [{ "name": "/a/KEY/1", "spki": spki }] }));
    sv.set(json!({ "mode": "statistical", "sample_min": 0.05 }));
    assert_eq!(take(&mut sv, data_by(&bad, "/a/1", 1, b"x")), Verdict::BadSignature);
    assert_eq!(sv.stats()["signature_verifier"]["sampling"], 1.0);
    assert_eq!(take(&mut sv, data_by(&good, "/b/1", 1, b"x")), Verdict::Forwarded);
    let stats = sv.stats()["signature_verifier"].clone();
    assert_eq!((&stats["skipped"], &stats["valid"]), (&json!(0), &json!(1)));
}

#[test]
fn a_key_is_fetched_by_name_and_believed_when_a_known_one_signed_it() {
    let mut sv = Bed::new(Kind::SignatureVerifier, &[256, 300]);
    let (root, spki) = signer(KeyType::Ecdsa, "/a/KEY/root");
    sv.post("keys", json!({ "add": [{ "name": "/a/KEY/root", "spki": spki }] }));
    sv.set(json!({ "fetch_keys": true }));
    let private = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    let public = private.public_key().unwrap();
    let own = Signer::key(private, name("/a/site/KEY/1"));
    let (verdict, sent) = sv.take(packet(300, data_by(&own, "/a/site/x", 1, b"x"), &[], None));
    assert_eq!((verdict, sent[0].form), (Verdict::UnknownKey, PacketKind::Interest));
    assert_eq!((sent[0].face, sent[0].name.as_str()), (300, "/a/site/KEY/1"));
    let key = name("/a/site/KEY/1");
    let validity = validity_of_days(UNIX_MS, 10);
    let wire = certificate(&root, &key, public.spki(), validity);
    assert_eq!(take(&mut sv, wire), Verdict::Delivered);
    assert_eq!(take(&mut sv, data_by(&own, "/a/site/x", 1, b"x")), Verdict::Forwarded);
    assert_eq!(sv.stats()["signature_verifier"]["fetched"], 1);
}

/// A certificate of a key, signed by another.
fn certificate(
    by: &Signer,
    key: &Name,
    spki: &[u8],
    validity: onym_wire::cert::ValidityPeriod,
) -> Buf {
    let mut full = key.clone();
    full.append_generic("root").append_version(1);
    let data = DataBuilder {
        content_type: onym_wire::types::CONTENT_KEY,
        freshness_ms: 3_600_000,
        ..DataBuilder::new(full.as_ref(), spki)
    };
    let info = onym_wire::signature::SignatureInfo { validity_period: Some(validity), ..by.info() };
    let mut wire = Vec::new();
    data.write(&mut wire, &info, |part| by.sign(&[part])).unwrap();
    assert!(Certificate::parse(&wire).is_ok());
    Buf::copy_from(&wire)
}
