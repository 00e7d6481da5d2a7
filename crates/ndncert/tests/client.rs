//! What a client of an authority takes, and what it refuses (negative test 37 of the digest).

#![allow(clippy::unwrap_used)]

mod support;

use onym_crypto::{Certificate, Signer, verify};
use onym_ndncert::client::Redirects;
use onym_ndncert::{Error, ErrorCode};
use onym_wire::data::DataBuilder;
use onym_wire::{Data, Interest};
use support::{NOW_MS, Seeded, World, anchor_like, copy, day, key, name, now};

#[test]
fn a_client_believes_the_authority_only() {
    let mut world = World::new();
    let mut enrolment = world.enrol("/ca/alice", &key(), day());
    let new = enrolment.begin(NOW_MS, &mut world.entropy).unwrap();
    let asked = Interest::parse(&new).unwrap().name.to_name();
    let forged = |content: &[u8], name: &onym_wire::Name, signer: &Signer| {
        let mut wire = Vec::new();
        signer.sign_data(&DataBuilder::new(name.as_ref(), content), &mut wire).unwrap();
        wire
    };
    let error = onym_ndncert::message::write_error(ErrorCode::NAME, "no\u{7}");
    let unsigned = forged(&error, &asked, &Signer::digest());
    assert!(matches!(enrolment.began(&unsigned, &mut Seeded(1)), Err(Error::Crypto(_))));
    let mallory = Signer::key(key(), world.certificate.name().to_name());
    let by_other = forged(&error, &asked, &mallory);
    assert!(matches!(enrolment.began(&by_other, &mut Seeded(1)), Err(Error::Crypto(_))));
    let ca = Signer::key(copy(&world.key), world.certificate.name().to_name());
    let elsewhere = forged(&error, &name("/ca/CA/NEW"), &ca);
    assert!(matches!(enrolment.began(&elsewhere, &mut Seeded(1)), Err(Error::WrongAnswer)));
    // After all that the true answer still counts, once.
    let reply = world.data(now(0), &new);
    enrolment.began(&reply, &mut Seeded(1)).unwrap();
    assert!(enrolment.began(&reply, &mut Seeded(1)).is_err());
    let real = forged(&error, &asked, &ca);
    let told = Error::Refused { code: ErrorCode::NAME, info: "no\u{7}".into() }.to_string();
    assert!(!told.contains('\u{7}'), "{told}");
    assert!(verify::data(&Data::parse(&real).unwrap(), world.certificate.public_key()).is_ok());
}

#[test]
fn only_the_certificate_that_was_asked_for_is_accepted() {
    let mut world = World::new();
    let alice = key();
    let good = world.by_pin(now(0), "/ca/alice", &alice);
    let enrolment = world.enrol("/ca/alice", &alice, day());
    let accept = |certificate: &Certificate, at: u64| {
        enrolment.accept(certificate.name(), certificate.wire(), now(at).unix_ms)
    };
    assert!(accept(&good, 0).is_ok());
    assert!(accept(&good, 90_000).is_err(), "expired");
    assert!(accept(&anchor_like(&alice, "/ca/alice"), 0).is_err(), "self-signed");
    let bob = world.by_pin(now(1), "/ca/bob", &key());
    assert!(accept(&bob, 1).is_err(), "somebody else's");
    let other_key = world.by_pin(now(2), "/ca/alice", &key());
    assert!(accept(&other_key, 2).is_err(), "another key");
    let mut full = good.name().to_name();
    full.append_implicit_digest(&[0; 32]);
    assert!(enrolment.accept(full.as_ref(), good.wire(), NOW_MS).is_err(), "another digest");
}

#[test]
fn redirects_have_a_digest_and_an_end() {
    let mut redirects = Redirects::default();
    let to = |n: u8| {
        let mut name = name("/b/KEY/k/i/v=1");
        name.append_implicit_digest(&[n; 32]);
        name
    };
    assert!(redirects.follow(&name("/b/KEY/k/i/v=1")).is_err(), "no digest");
    redirects.follow(&to(1)).unwrap();
    assert!(redirects.follow(&to(1)).is_err(), "a circle");
    for n in 2..=4 {
        redirects.follow(&to(n)).unwrap();
    }
    assert!(redirects.follow(&to(5)).is_err(), "the fifth");
}
