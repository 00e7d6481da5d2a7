//! What an authority gives, and what it refuses (negative test 37 of the digest).

#![allow(clippy::unwrap_used)]

mod support;

use onym_crypto::{Certificate, Signer, sha256};
use onym_ndncert::authority::{Limits, Silence};
use onym_ndncert::client::{profile, proof};
use onym_ndncert::message::{NewReply, NewRequest, Parameter, Sealed};
use onym_ndncert::{
    Authority, Error, ErrorCode, Invitation, KeyExchange, Order, Progress, Reply, RequestId, names,
};
use onym_wire::interest::InterestBuilder;
use onym_wire::{Data, Interest, tlv};
use support::{NOW_MS, Seeded, World, anchor, anchor_like, code, copy, day, key, name, now, pair};

#[test]
fn a_pin_brings_a_certificate_and_possession_of_it_the_next() {
    let mut world = World::new();
    let alice = key();
    let first = world.by_pin(now(0), "/ca/alice", &alice);
    assert_eq!(first.identity(), name("/ca/alice"));
    assert!(first.verify(world.certificate.public_key()).is_ok());
    assert_eq!(first.issuer(), Some(world.certificate.name()), "the full name is the locator");
    let mut enrolment = world.begun(now(10), "/ca/alice", &key());
    let shown = pair("issued-cert", first.wire());
    let asked = world.step(now(10), &mut enrolment, "possession", shown).unwrap();
    let Progress::Asked(asked) = asked else { panic!("{asked:?}") };
    assert_eq!(asked.challenge_status.as_deref(), Some("need-proof"));
    let proof = proof(&asked, &alice).unwrap();
    let done = world.step(now(11), &mut enrolment, "possession", proof).unwrap();
    let second = world.fetch(now(11), &enrolment, &done);
    assert_ne!(second.public_key().spki(), first.public_key().spki());
    assert_eq!(world.authority.open_requests(), 0);
}

#[test]
fn the_profile_is_signed_and_found_by_its_metadata() {
    let mut world = World::new();
    let ask = |world: &mut World, uri: &str, prefix: bool| {
        let name = name(uri);
        let mut wire = Vec::new();
        InterestBuilder { can_be_prefix: prefix, ..InterestBuilder::new(name.as_ref()) }
            .write(&mut wire);
        world.ask(now(5), &wire)
    };
    let Reply::Data(metadata) = ask(&mut world, "/ca/CA/INFO/32=metadata", true) else { panic!() };
    let metadata = Data::parse(&metadata).unwrap();
    let versioned = onym_wire::NameRef::parse(metadata.content).unwrap().to_string();
    let Reply::Data(info) = ask(&mut world, &format!("{versioned}/seg=0"), false) else { panic!() };
    let read = profile(&info, &world.certificate).unwrap();
    assert_eq!((read.info.as_str(), read.max_validity_s), ("test CA", 86_400));
    let stranger = anchor("/ca", &key());
    assert!(profile(&info, &stranger).is_err(), "another key under the same name");
    assert_eq!(ask(&mut world, "/ca/CA/REVOKE", false), Reply::Nothing(Silence::NotForUs));
}

#[test]
fn the_third_wrong_code_ends_a_request_and_time_does() {
    let mut world = World::new();
    let alice = key();
    let mut enrolment = world.begun(now(0), "/ca/alice", &alice);
    world.step(now(0), &mut enrolment, "pin", vec![]).unwrap();
    let right = world.codes.pop().unwrap();
    assert!(right.len() == 8 && right.bytes().all(|c| c.is_ascii_digit()), "eight digits");
    for left in [2, 1] {
        let wrong = world.step(now(1), &mut enrolment, "pin", pair("code", b"0000000")).unwrap();
        let Progress::Asked(wrong) = wrong else { panic!("{wrong:?}") };
        assert_eq!(wrong.tries, Some(left));
    }
    let third = world.step(now(1), &mut enrolment, "pin", pair("code", b""));
    assert_eq!(code(third), ErrorCode::TRIES);
    let fourth = world.step(now(1), &mut enrolment, "pin", pair("code", right.as_bytes()));
    assert_eq!(code(fourth), ErrorCode::INVALID, "the request is gone");
    let mut late = world.begun(now(10), "/ca/alice", &alice);
    world.step(now(10), &mut late, "pin", vec![]).unwrap();
    let right = world.codes.pop().unwrap();
    let late = world.step(now(10 + 3601), &mut late, "pin", pair("code", right.as_bytes()));
    assert_eq!(code(late), ErrorCode::TIME);
}

#[test]
fn the_same_interest_gets_the_same_reply_and_counts_once() {
    let mut world = World::new();
    let mut enrolment = world.enrol("/ca/alice", &key(), day());
    let new = enrolment.begin(NOW_MS, &mut world.entropy).unwrap();
    let first = world.data(now(0), &new);
    assert_eq!(world.data(now(3), &new), first, "a repeated NEW");
    assert_eq!(world.authority.open_requests(), 1);
    enrolment.began(&first, &mut Seeded(1)).unwrap();
    let step = enrolment.challenge("pin", vec![], NOW_MS, &mut world.entropy).unwrap();
    let asked = world.data(now(4), &step);
    assert_eq!(world.data(now(5), &step), asked);
    assert_eq!(world.codes.len(), 1, "one code");
    enrolment.challenged(&asked).unwrap();
    let wrong = enrolment.challenge("pin", pair("code", b"x"), NOW_MS, &mut world.entropy).unwrap();
    let told = world.data(now(6), &wrong);
    for _ in 0..5 {
        assert_eq!(world.data(now(7), &wrong), told, "one try, however often it comes");
    }
    enrolment.challenged(&told).unwrap();
    let right = world.codes[0].clone();
    let last =
        enrolment.challenge("pin", pair("code", right.as_bytes()), NOW_MS, &mut world.entropy);
    let last = last.unwrap();
    let done = world.data(now(8), &last);
    assert_eq!(world.data(now(9), &last), done, "after the request is over");
    assert_eq!(world.authority.counters().issued, 1);
    // Another NEW of the same key begins again, in place of the first.
    let mut again = world.enrol("/ca/alice", &key(), day());
    world.begin(now(20), &mut again).unwrap();
    let interest = again.begin(NOW_MS + 1, &mut world.entropy).unwrap();
    assert_ne!(world.data(now(21), &interest), first);
    assert_eq!(world.authority.open_requests(), 1);
}

#[test]
fn names_and_periods_that_are_not_due_are_refused() {
    let mut world = World::new();
    let mut refused = |identity: &str| {
        let mut enrolment = world.enrol(identity, &key(), day());
        code(world.begin(now(0), &mut enrolment))
    };
    for identity in [
        "/ca",
        "/other/alice",
        "/c",
        "/ca/1/2/3/4/5",
        "/ca/CA",
        "/ca/CA/x",
        "/ca/KEY/x",
        "/ca/a/KEY",
    ] {
        assert_eq!(refused(identity), ErrorCode::NAME, "{identity}");
    }
    let mut period = |from: i64, to: i64| {
        let mut validity = day();
        let start = validity.not_before.0;
        (validity.not_before.0, validity.not_after.0) = (start + from, start + to);
        let mut enrolment = world.enrol("/ca/alice", &key(), validity);
        world.begin(now(0), &mut enrolment).map_err(|e| code::<()>(Err(e)))
    };
    assert!(period(0, 86_400).is_ok());
    assert!(period(-119, 86_281).is_ok() && period(119, 86_519).is_ok(), "clocks that are off");
    for (from, to) in
        [(0, 86_401), (-125, 100), (200, 86_600), (100, 50), (-100, -10), (86_400, 86_500 + 120)]
    {
        assert_eq!(period(from, to), Err(ErrorCode::VALIDITY), "{from} to {to}");
    }
}

#[test]
fn points_that_are_none_of_the_curve_are_refused_by_both_sides() {
    let mut world = World::new();
    let exchange = KeyExchange::generate().unwrap();
    let good = exchange.public().to_vec();
    let mut off = good.clone();
    off[64] ^= 1;
    let mut compressed = good[..33].to_vec();
    compressed[0] = 2 + (good[64] & 1);
    let mut hybrid = good.clone();
    hybrid[0] = 6 + (good[64] & 1);
    let mut zero = vec![0; 65];
    zero[0] = 4;
    let points = [off, vec![0], compressed, hybrid, zero, good[1..].to_vec(), Vec::new()];
    let id = RequestId([1; 8]);
    for point in points {
        let session = exchange.session(&point, &[0; 32], id, &mut Seeded(1));
        assert!(matches!(session, Err(Error::Point)), "{point:02x?}");
        let alice = key();
        let request = anchor_like(&alice, "/ca/alice");
        let parameters = NewRequest { point, certificate: request }.write();
        let signer = Signer::key(copy(&alice), name("/ca/alice/KEY/k"));
        let interest = signed("/ca/CA/NEW", &parameters, &signer);
        let reply = world.data(now(0), &interest);
        assert_eq!(error_of(&reply), Some(4));
    }
    // A salt of 31 octets and an identifier of 7 are no reply.
    let reply = NewReply { point: good, salt: [1; 32], id, challenges: vec![] };
    let mut short = Vec::new();
    tlv::put_tlv(&mut short, 145, &reply.point);
    tlv::put_tlv(&mut short, 149, &[1; 31]);
    tlv::put_tlv(&mut short, 151, &[1; 8]);
    assert!(NewReply::read(&short).is_err() && NewReply::read(&reply.write()).is_ok());
    let mut short = Vec::new();
    tlv::put_tlv(&mut short, 145, &reply.point);
    tlv::put_tlv(&mut short, 149, &[1; 32]);
    tlv::put_tlv(&mut short, 151, &[1; 7]);
    assert!(NewReply::read(&short).is_err());
}

fn signed(uri: &str, parameters: &[u8], signer: &Signer) -> Vec<u8> {
    let name = name(uri);
    let mut wire = Vec::new();
    let builder = InterestBuilder::new(name.as_ref());
    signer.sign_interest(&builder, parameters, Default::default(), &mut wire).unwrap();
    wire
}

fn error_of(data: &[u8]) -> Option<u64> {
    let data = Data::parse(data).unwrap();
    let mut reader = tlv::Reader::new(data.content);
    reader.optional(171).unwrap().map(|e| e.nni().unwrap())
}

#[test]
fn requests_that_another_key_signed_are_refused() {
    let mut world = World::new();
    let (alice, mallory) = (key(), key());
    let request = anchor_like(&alice, "/ca/alice");
    let point = KeyExchange::generate().unwrap().public().to_vec();
    let parameters = NewRequest { point: point.clone(), certificate: request.clone() }.write();
    let by_mallory = Signer::key(copy(&mallory), name("/ca/alice/KEY/k"));
    let reply = world.data(now(0), &signed("/ca/CA/NEW", &parameters, &by_mallory));
    assert_eq!(error_of(&reply), Some(3), "the Interest is signed by another key");
    // The request inside is signed by another key.
    let issue = onym_crypto::Issue {
        issuer_id: onym_wire::Component::generic(b"x"),
        validity: day(),
        now_ms: NOW_MS,
    };
    let foreign = Certificate::issue(&request, &by_mallory, &issue).unwrap();
    let parameters = NewRequest { point, certificate: foreign }.write();
    let by_alice = Signer::key(copy(&alice), name("/ca/alice/KEY/k"));
    let reply = world.data(now(0), &signed("/ca/CA/NEW", &parameters, &by_alice));
    assert_eq!(error_of(&reply), Some(3));
    let unsigned = InterestBuilder::new(name("/ca/CA/NEW").as_ref()).name.to_name();
    let mut wire = Vec::new();
    onym_crypto::signer::write_parameters(
        &InterestBuilder::new(unsigned.as_ref()),
        &parameters,
        &mut wire,
    );
    assert_eq!(error_of(&world.data(now(0), &wire)), Some(3), "not signed at all");
    // A step of somebody else's request changes nothing about it.
    let mut enrolment = world.begun(now(1), "/ca/alice", &alice);
    let step = enrolment.challenge("pin", vec![], NOW_MS, &mut world.entropy).unwrap();
    let parsed = Interest::parse(&step).unwrap();
    let uri = parsed.name.drop_last(1).to_string();
    let stolen = signed(&uri, parsed.app_parameters.unwrap(), &by_mallory);
    assert_eq!(error_of(&world.data(now(1), &stolen)), Some(3));
    let asked = world.data(now(1), &step);
    assert!(enrolment.challenged(&asked).is_ok());
}

/// An Interest of the request whose encrypted message `change` changed.
fn tampered(world: &mut World, change: impl Fn(&mut Sealed)) -> Option<u64> {
    let alice = key();
    let mut enrolment = world.begun(now(0), "/ca/alice", &alice);
    let step = enrolment.challenge("pin", vec![], NOW_MS, &mut world.entropy).unwrap();
    let parsed = Interest::parse(&step).unwrap();
    let mut sealed = Sealed::read(parsed.app_parameters.unwrap()).unwrap();
    change(&mut sealed);
    let signer = Signer::key(alice, name("/ca/alice/KEY/k"));
    let uri = parsed.name.drop_last(1).to_string();
    let reply = world.data(now(0), &signed(&uri, &sealed.write(), &signer));
    error_of(&reply)
}

#[test]
fn what_was_changed_on_its_way_ends_the_request() {
    let mut world = World::new();
    assert_eq!(tampered(&mut world, |_| ()), None, "unchanged");
    assert_eq!(tampered(&mut world, |s| s.tag[0] ^= 1), Some(4));
    assert_eq!(tampered(&mut world, |s| s.payload[0] ^= 1), Some(4));
    assert_eq!(tampered(&mut world, |s| s.iv[11] ^= 1), Some(4));
    assert_eq!(tampered(&mut world, |s| s.payload.clear()), Some(4));
}

#[test]
fn vectors_are_used_once_and_in_one_direction() {
    let (ours, theirs) = (KeyExchange::generate().unwrap(), KeyExchange::generate().unwrap());
    let id = RequestId([9; 8]);
    let make = |own: &KeyExchange, peer: &KeyExchange, seed: u64, id| {
        own.session(peer.public(), &[5; 32], id, &mut Seeded(seed)).unwrap()
    };
    let (mut a, mut b) = (make(&ours, &theirs, 1, id), make(&theirs, &ours, 2, id));
    let first = a.seal(b"one").unwrap();
    assert_eq!(b.open(&first).unwrap().as_slice(), b"one");
    assert!(matches!(b.open(&first), Err(Error::IvReused)));
    assert!(matches!(a.open(&first), Err(Error::IvDirection)), "its own message sent back");
    // The identifier is authenticated with every message.
    let mut other = make(&theirs, &ours, 3, RequestId([8; 8]));
    let second = a.seal(b"two").unwrap();
    assert!(matches!(other.open(&second), Err(Error::NotAuthentic)));
    // ndnd counts in little-endian: only that a vector is new matters.
    for _ in 0..62 {
        b.open(&a.seal(b"more").unwrap()).unwrap();
    }
    assert!(matches!(a.seal(b"too many"), Err(Error::TooMany)));
}

#[test]
fn a_step_without_a_challenge_or_with_another_one_is_refused() {
    let mut world = World::new();
    let alice = key();
    let mut enrolment = world.begun(now(0), "/ca/alice", &alice);
    let other = world.step(now(0), &mut enrolment, "sms", vec![]);
    assert_eq!(code(other), ErrorCode::INVALID);
    let mut enrolment = world.begun(now(1), "/ca/alice", &alice);
    world.step(now(1), &mut enrolment, "pin", vec![]).unwrap();
    let other = world.step(now(1), &mut enrolment, "email", pair("email", b"a@b.net"));
    assert_eq!(code(other), ErrorCode::INVALID, "it chose another one before");
    // Without 161 (the client of the C++ code in its second step): an error, and the node goes on.
    let mut plain = Vec::new();
    tlv::put_tlv(&mut plain, 133, b"code");
    assert!(onym_ndncert::message::ChallengeRequest::read(&plain).is_err());
    tlv::put_tlv(&mut plain, 161, b"pin");
    tlv::put_tlv(&mut plain, 135, b"1");
    assert!(onym_ndncert::message::ChallengeRequest::read(&plain).is_ok());
}

/// Law: a step without a selected challenge, as the client of the C++ code sends its second one, gets
/// error 2, and the authority goes on with others.
#[test]
fn a_step_without_a_selected_challenge_gets_an_error_and_ends_its_request() {
    let mut world = World::new();
    let alice = key();
    let exchange = KeyExchange::generate().unwrap();
    let request = anchor_like(&alice, "/ca/alice");
    let new = NewRequest { point: exchange.public().to_vec(), certificate: request }.write();
    let signer = Signer::key(copy(&alice), name("/ca/alice/KEY/k"));
    let reply = world.data(now(0), &signed("/ca/CA/NEW", &new, &signer));
    let began = NewReply::read(Data::parse(&reply).unwrap().content).unwrap();
    let mut session =
        exchange.session(&began.point, &began.salt, began.id, &mut Seeded(5)).unwrap();
    let mut uri = name("/ca/CA/CHALLENGE");
    uri.append_generic(began.id.0);
    let mut step = |world: &mut World, plain: &[u8]| {
        let sealed = session.seal(plain).unwrap().write();
        world.data(now(1), &signed(&uri.to_string(), &sealed, &signer))
    };
    let mut pin = Vec::new();
    tlv::put_tlv(&mut pin, 161, b"pin");
    assert_eq!(error_of(&step(&mut world, &pin)), None, "the code is asked for");
    let mut plain = Vec::new();
    tlv::put_tlv(&mut plain, 133, b"code");
    tlv::put_tlv(&mut plain, 135, world.codes[0].as_bytes());
    assert_eq!(error_of(&step(&mut world, &plain)), Some(2));
    assert_eq!(error_of(&step(&mut world, &pin)), Some(4), "that request is over");
    assert_eq!(world.authority.counters().issued, 0);
    world.by_pin(now(2), "/ca/bob", &key());
}

#[test]
fn possession_proves_its_own_identity_only_and_only_while_it_is_valid() {
    let mut world = World::new();
    let alice = key();
    let certificate = world.by_pin(now(0), "/ca/alice", &alice);
    let mut try_with = |at: u64, identity: &str, shown: &[u8], signs: &onym_crypto::PrivateKey| {
        let mut validity = day();
        validity.not_before.0 += i64::try_from(at).unwrap();
        validity.not_after.0 += i64::try_from(at).unwrap();
        let mut enrolment = world.enrol(identity, &key(), validity);
        world.begin(now(at), &mut enrolment).unwrap();
        let asked =
            world.step(now(at), &mut enrolment, "possession", pair("issued-cert", shown))?;
        let Progress::Asked(asked) = asked else { panic!("{asked:?}") };
        let proof = proof(&asked, signs).unwrap();
        world.step(now(at), &mut enrolment, "possession", proof)
    };
    let wire = certificate.wire();
    assert!(try_with(1, "/ca/alice", wire, &alice).is_ok());
    assert_eq!(code(try_with(2, "/ca/bob", wire, &alice)), ErrorCode::NAME);
    assert_eq!(code(try_with(3, "/ca/alice/x", wire, &alice)), ErrorCode::NAME);
    assert_eq!(code(try_with(4, "/ca/alice", wire, &key())), ErrorCode::TRIES, "another key");
    assert_eq!(code(try_with(86_402, "/ca/alice", wire, &alice)), ErrorCode::INVALID, "expired");
    let foreign = anchor("/mallory", &key());
    assert_eq!(code(try_with(5, "/ca/mallory", foreign.wire(), &alice)), ErrorCode::INVALID);
    let forged = anchor("/ca/alice", &alice);
    assert_eq!(code(try_with(6, "/ca/alice", forged.wire(), &alice)), ErrorCode::INVALID);
    assert_eq!(code(try_with(7, "/ca/alice", b"\x06\x00", &alice)), ErrorCode::INVALID);
}

#[test]
fn a_certificate_of_another_anchor_is_proof_for_its_name_behind_the_prefix() {
    let mut world = World::new();
    let carol = key();
    let request = anchor_like(&carol, "/other/carol");
    let signer = Signer::key(copy(&world.other), name("/other/KEY/1"));
    let issue = onym_crypto::Issue {
        issuer_id: onym_wire::Component::generic(b"o"),
        validity: day(),
        now_ms: NOW_MS,
    };
    let shown = Certificate::issue(&request, &signer, &issue).unwrap();
    for (identity, expected) in [("/ca/other/carol", true), ("/ca/carol", false)] {
        let mut enrolment = world.begun(now(0), identity, &key());
        let asked = pair("issued-cert", shown.wire());
        let asked = world.step(now(0), &mut enrolment, "possession", asked);
        assert_eq!(asked.is_ok(), expected, "{identity}");
    }
}

#[test]
fn mail_and_records_give_a_right_to_their_own_names() {
    let mut world = World::new();
    let mut mail = |identity: &str, address: &str| {
        let mut enrolment = world.begun(now(0), identity, &key());
        let asked = world.step(now(0), &mut enrolment, "email", pair("email", address.as_bytes()));
        asked.map(|_| (enrolment, world.codes.pop().unwrap()))
    };
    mail("/ca/a@x.org", "a@x.org").unwrap();
    mail("/ca/org/x/a/laptop", "a@x.org").unwrap();
    assert_eq!(code(mail("/ca/bob", "a@x.org")), ErrorCode::NAME);
    assert_eq!(code(mail("/ca/org/x", "a@x.org")), ErrorCode::NAME);
    for wrong in [
        "",
        "a",
        "@x.org",
        "a@",
        "a@b",
        "-a@x.org",
        "a@x.org\nBcc: b@x.org",
        "$(id)@x.org",
        "a b@x.org",
    ] {
        assert_eq!(code(mail("/ca/a@x.org", wrong)), ErrorCode::INVALID, "{wrong:?}");
    }
    let (mut enrolment, secret) = mail("/ca/a@x.org", "a@x.org").unwrap();
    let done = world.step(now(1), &mut enrolment, "email", pair("code", secret.as_bytes()));
    assert!(matches!(done, Ok(Progress::Issued { .. })));

    let mut records = World::new();
    let mut enrolment = records.begun(now(0), "/ca/x.org/web", &key());
    let asked = records.step(now(0), &mut enrolment, "dns", pair("domain", b"X.org")).unwrap();
    let Progress::Asked(asked) = asked else { panic!("{asked:?}") };
    assert_eq!(asked.get("record-name"), Some(b"_ndncert-challenge.x.org".as_slice()));
    let value = String::from_utf8(asked.get("expected-value").unwrap().to_vec()).unwrap();
    let mut confirm = |records: &mut World, at: u64, texts: &[String]| {
        let ready = pair("confirmation", b"ready");
        let step = enrolment.challenge("dns", ready, NOW_MS, &mut records.entropy).unwrap();
        let Reply::Later(id) = records.ask(now(at), &step) else { panic!("no lookup") };
        assert_eq!(records.ask(now(at), &step), Reply::Later(id), "a repeated step");
        let lookups = records.orders.drain(..).filter(|o| matches!(o, Order::Lookup { .. }));
        assert_eq!(lookups.count(), 1);
        let data = records.authority.records(now(at), id, texts).unwrap();
        assert_eq!(records.ask(now(at), &step), Reply::Data(data.clone()));
        enrolment.challenged(&data)
    };
    let wrong = confirm(&mut records, 1, &["else".into()]).unwrap();
    let Progress::Asked(wrong) = wrong else { panic!("{wrong:?}") };
    assert_eq!((wrong.challenge_status.as_deref(), wrong.tries), (Some("wrong-record"), Some(4)));
    let done = confirm(&mut records, 2, &["else".into(), value]).unwrap();
    assert!(matches!(done, Progress::Issued { .. }));
    let mut enrolment = records.begun(now(3), "/ca/y.org", &key());
    let other = records.step(now(3), &mut enrolment, "dns", pair("domain", b"x.org"));
    assert_eq!(code(other), ErrorCode::NAME);
}

#[test]
fn an_invitation_is_good_once_and_for_its_identity() {
    let mut world = World::new();
    let token = b"0123456789abcdef0123456789abcdef";
    let invitation = Invitation {
        identity: name("/ca/r1/32=DV"),
        digest: sha256(&[token]),
        until_s: NOW_MS / 1000 + 100,
    };
    world.authority.set_invitations(vec![invitation.clone()]);
    let mut with = |at: u64, identity: &str, given: &[u8]| {
        let mut enrolment = world.begun(now(at), identity, &key());
        world.step(now(at), &mut enrolment, "pin", vec![]).unwrap();
        let done = world.step(now(at), &mut enrolment, "pin", pair("code", given));
        (done, world.orders.drain(..).any(|o| matches!(o, Order::Spent(_))))
    };
    let wrong = with(0, "/ca/r1/32=DV", b"guess");
    assert!(matches!(wrong, (Ok(Progress::Asked(_)), false)));
    let other = with(1, "/ca/r2/32=DV", token);
    assert!(matches!(other, (Ok(Progress::Asked(_)), false)), "another identity");
    let done = with(2, "/ca/r1/32=DV", token);
    assert!(matches!(done, (Ok(Progress::Issued { .. }), true)), "{done:?}");
    let again = with(3, "/ca/r1/32=DV", token);
    assert!(matches!(again, (Ok(Progress::Asked(_)), false)), "it was used");
    world.authority.set_invitations(vec![invitation]);
    let mut enrolment = world.begun(now(99), "/ca/r1/32=DV", &key());
    world.codes.clear();
    world.step(now(101), &mut enrolment, "pin", vec![]).unwrap();
    assert_eq!(world.codes.len(), 1, "it is over: the operator decides");
}

#[test]
fn two_requests_with_one_token_get_one_certificate() {
    let mut world = World::new();
    let digest = sha256(&[b"token"]);
    let identity = name("/ca/r1");
    let until_s = NOW_MS / 1000 + 100;
    world.authority.set_invitations(vec![Invitation { identity, digest, until_s }]);
    let mut both: Vec<_> = (0..2).map(|_| world.begun(now(0), "/ca/r1", &key())).collect();
    for enrolment in &mut both {
        world.step(now(0), enrolment, "pin", vec![]).unwrap();
    }
    let won: Vec<_> = both
        .iter_mut()
        .map(|enrolment| world.step(now(1), enrolment, "pin", pair("code", b"token")).unwrap())
        .map(|progress| matches!(progress, Progress::Issued { .. }))
        .collect();
    assert_eq!(won, [true, false]);
}

#[test]
fn strangers_cost_a_bound() {
    let limits = Limits {
        requests_max: 8,
        replies_max: 16,
        replies_per_s: 40,
        wrong_codes_per_hour: 4,
        ..Limits::default()
    };
    let mut world = World::with(limits);
    let mut honest = world.begun(now(0), "/ca/honest", &key());
    world.step(now(0), &mut honest, "pin", vec![]).unwrap();
    let right = world.codes.pop().unwrap();
    for _ in 0..30 {
        world.begun(now(1), "/ca/flood", &key());
    }
    assert_eq!(world.authority.open_requests(), 8);
    assert_eq!(world.authority.counters().displaced, 23);
    // Who runs a challenge stays while others have none.
    let done = world.step(now(2), &mut honest, "pin", pair("code", right.as_bytes())).unwrap();
    assert!(matches!(done, Progress::Issued { .. }));
    let silent = (0..100).filter(|i| {
        let junk = signed(&format!("/ca/CA/PROBE/{i}"), &[1], &Signer::digest());
        let probe = signed("/ca/CA/PROBE", &[b'0' + i % 10, *i], &Signer::digest());
        world.ask(now(3), &junk);
        matches!(world.ask(now(3), &probe), Reply::Nothing(Silence::Throttled))
    });
    assert_eq!(silent.count(), 60, "40 are answered in a second");
    // Guessing is over after four wrong codes, for an hour.
    for guess in 0..2 {
        let mut enrolment = world.begun(now(10 + guess), "/ca/guess", &key());
        world.step(now(10 + guess), &mut enrolment, "pin", vec![]).unwrap();
        for _ in 0..2 {
            world.step(now(10 + guess), &mut enrolment, "pin", pair("code", b"1")).unwrap();
        }
    }
    let mut enrolment = world.begun(now(20), "/ca/guess", &key());
    assert_eq!(code(world.step(now(20), &mut enrolment, "pin", vec![])), ErrorCode::TRIES);
    let mut later = day();
    (later.not_before.0, later.not_after.0) = (later.not_before.0 + 4000, later.not_after.0 + 4000);
    let mut enrolment = world.enrol("/ca/guess", &key(), later);
    world.begin(now(4000), &mut enrolment).unwrap();
    assert!(world.step(now(4000), &mut enrolment, "pin", vec![]).is_ok());
}

#[test]
fn a_probe_names_who_asks_or_sends_on() {
    let ca = key();
    let certificate = anchor("/ca", &ca);
    let elsewhere = {
        let mut name = name("/b/KEY/k/i/v=1");
        name.append_implicit_digest(&[7; 32]);
        name
    };
    let settings = onym_ndncert::Settings {
        probe_keys: vec!["email".into()],
        redirects: vec![onym_ndncert::authority::Redirect {
            authority: elsewhere.clone(),
            key: "email".into(),
            value: "x.org".into(),
        }],
        ..Default::default()
    };
    let signer = Signer::key(copy(&ca), certificate.name().to_name());
    let mut authority = Authority::new(certificate.clone(), signer, settings, now(0)).unwrap();
    let mut ask = |parameters: &[Parameter]| {
        let interest = onym_ndncert::client::probe(&certificate, parameters);
        let asked = Interest::parse(&interest).unwrap().name.to_name();
        let Reply::Data(data) = authority.receive(now(0), &interest, &mut Seeded(1)) else {
            panic!("no reply")
        };
        onym_ndncert::client::probed(asked.as_ref(), &data, &certificate)
    };
    let reply = ask(&pair("email", b"a@y.org")).unwrap();
    assert_eq!(reply.names, [(name("/ca/a@y.org"), Some(3))]);
    let reply = ask(&pair("email", b"a@X.ORG")).unwrap();
    assert_eq!((reply.names.len(), reply.redirects), (0, vec![elsewhere]));
    assert_eq!(code(ask(&[])), ErrorCode::INVALID);
    assert_eq!(code(ask(&pair("email", &[0xff]))), ErrorCode::INVALID);
}

#[test]
fn secrets_are_not_printed() {
    let mut world = World::new();
    let mut enrolment = world.begun(now(0), "/ca/alice", &key());
    world.step(now(0), &mut enrolment, "pin", vec![]).unwrap();
    let secret = world.codes[0].clone();
    let shown = format!("{:?} {:?} {:?}", world.orders, world.authority, enrolment);
    assert!(!shown.contains(&secret), "a code in what Debug prints");
    assert!(!format!("{:?}", Parameter::new("code", secret.as_bytes())).contains(&secret));
    assert_eq!(names::base(name("/a").as_ref()), name("/a/CA"));
}
