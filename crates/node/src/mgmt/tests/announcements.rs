//! Announcements of prefixes: whose are taken, for how long, and what is refused.

use super::access::{Holder, fetch, localhop_by, stranger, unsigned};
use super::*;
use onym_crypto::cert::validity_of_days;
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::data::DataBuilder;
use onym_wire::types;

/// An announcement of `prefix`, and the Interest that carries it.
fn announce(prefix: &str, expiration_ms: u64, signer: &Signer) -> Vec<u8> {
    let prefix = name(prefix);
    let announcement = PrefixAnnouncement {
        prefix: prefix.as_ref(),
        version: 1,
        expiration_ms,
        validity_period: Some(validity_of_days(NOW_MS, 1)),
        cost: None,
    };
    let mut content = Vec::new();
    announcement.write_content(&mut content);
    let of = announcement.name();
    let mut data = Vec::new();
    let builder = DataBuilder {
        content_type: types::CONTENT_PREFIX_ANNOUNCEMENT,
        ..DataBuilder::new(of.as_ref(), &content)
    };
    signer.sign_data(&builder, &mut data).unwrap();
    let mut wire = Vec::new();
    let uri = name("/localhost/nfd/rib/announce");
    let interest = InterestBuilder::new(uri.as_ref());
    onym_crypto::signer::write_parameters(&interest, &data, &mut wire);
    wire
}

#[test]
fn an_announcement_becomes_a_route_until_it_ends() {
    let mut world = World::default();
    let wire = announce("/demo", 600_000, &Signer::digest());
    let done = response(&world.send(&wire, APP)).unwrap();
    assert_eq!(done.code, 200, "{}", done.text);
    let expected = ControlParameters {
        face_id: Some(300),
        origin: Some(129),
        cost: Some(2048),
        flags: Some(1),
        expiration_period_ms: Some(600_000),
        ..named("/demo")
    };
    assert_eq!(done.body, Some(expected));
    let wire = announce("/demo", 10 * 86_400_000, &Signer::digest());
    let done = response(&world.send(&wire, APP)).unwrap().body.unwrap();
    assert_eq!(done.expiration_period_ms, Some(86_401_000), "its validity ends first");
    world.host.unix_ms += 2 * 86_400_000;
    let refused = response(&world.send(&wire, APP)).unwrap();
    assert_eq!(refused.code, 403);
    assert!(refused.text.starts_with("Prefix announcement rejected: 2"), "{}", refused.text);
}

#[test]
fn announcements_without_or_with_damaged_parameters_are_refused() {
    let mut world = World::default();
    let uri = name("/localhost/nfd/rib/announce");
    assert_eq!(response(&world.send(&unsigned(&uri), APP)).unwrap().code, 400);
    let mut wire = announce("/demo", 1000, &Signer::digest());
    let last = wire.len() - 1;
    wire[last] ^= 1;
    assert!(matches!(response(&world.send(&wire, APP)).unwrap().code, 400 | 403));
    assert!(world.host.routes.is_empty());
}

#[test]
fn announcements_of_neighbours_need_a_chain_to_an_anchor() {
    let root = Holder::root("/net");
    let user = Holder::issued("/net/user", &root);
    let mut world = localhop_by(&[&root]);
    let rename = |wire: Vec<u8>| {
        let interest = Interest::parse(&wire).unwrap();
        let uri = name("/localhop/nfd/rib/announce");
        let mut out = Vec::new();
        let parameters = interest.app_parameters.unwrap();
        let builder = InterestBuilder::new(uri.as_ref());
        onym_crypto::signer::write_parameters(&builder, parameters, &mut out);
        out
    };
    let wire = rename(announce("/net/user/app", 1000, &user.signer()));
    fetch(&world.send(&wire, PEER));
    assert_eq!(response(&world.give(&user.certificate)).unwrap().code, 200);
    let wire = rename(announce("/net/user/app", 1000, &Signer::digest()));
    let refused = response(&world.send(&wire, PEER)).unwrap();
    assert_eq!(refused.code, 403);
    assert!(refused.text.starts_with("Prefix announcement rejected: 1"), "{}", refused.text);
}

#[test]
fn an_announcement_takes_no_more_than_a_registration() {
    let mut world = stranger(Some(1000));
    for (prefix, code) in [("/alice", 200), ("/", 403), ("/localhop/a", 403)] {
        let sent = world.send(&announce(prefix, 600_000, &Signer::digest()), APP);
        assert_eq!(response(&sent).unwrap().code, code, "{prefix}");
    }
}
