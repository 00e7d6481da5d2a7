//! Routes learned from prefix announcements.

#![allow(clippy::unwrap_used)]

mod support;

use onym_crypto::cert::validity_of_days;
use onym_crypto::{Certificate, KeyType, PrivateKey, Signer};
use onym_node::NodeHandle;
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::data::DataBuilder;
use onym_wire::lp::LpHeader;
use onym_wire::mgmt::Scope;
use onym_wire::types;
use std::io::Write as _;
use support::{App, data, name, start, unix_ms, until, with};

/// A key whose announcements are believed, and the file of its certificate.
fn announcer() -> (Signer, tempfile::NamedTempFile) {
    let key = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    let certificate = Certificate::self_signed(name("/a/KEY/1").as_ref(), &key, unix_ms()).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(certificate.to_text().as_bytes()).unwrap();
    (Signer::key(key, certificate.name().to_name()), file)
}

fn announcement(prefix: &str, signer: &Signer) -> Vec<u8> {
    let prefix = name(prefix);
    let announcement = PrefixAnnouncement {
        prefix: prefix.as_ref(),
        version: 1,
        expiration_ms: 86_400_000,
        validity_period: Some(validity_of_days(unix_ms(), 1)),
        cost: None,
    };
    let mut content = Vec::new();
    announcement.write_content(&mut content);
    let of = announcement.name();
    let mut wire = Vec::new();
    let content_type = types::CONTENT_PREFIX_ANNOUNCEMENT;
    let builder = DataBuilder { content_type, ..DataBuilder::new(of.as_ref(), &content) };
    signer.sign_data(&builder, &mut wire).unwrap();
    wire
}

fn node(file: &tempfile::NamedTempFile, shards: u16) -> NodeHandle {
    let anchors = format!("rib.announcement_anchors=[\"{}\"]", file.path().display());
    start(with(shards, &["strategy.\"/\"=self-learning", &anchors]))
}

fn neighbour(node: &NodeHandle) -> (u32, App) {
    let (id, io) = node.attach(Scope::NonLocal).unwrap();
    (id.0, App::new(io))
}

#[test]
fn an_announcement_that_is_believed_becomes_a_route_of_ten_minutes_in_every_shard() {
    for shards in [1, 2, 4] {
        let (signer, file) = announcer();
        let node = node(&file, shards);
        let (_, io) = node.attach(Scope::Local).unwrap();
        let mut consumer = App::new(io);
        let ((id, mut near), (_, mut other)) = (neighbour(&node), neighbour(&node));
        consumer.interest("/a/1");
        // A discovery goes to all neighbours.
        near.take_interest();
        other.take_interest();
        let said = announcement("/a", &signer);
        let header = LpHeader { prefix_announcement: Some(&said), ..LpHeader::default() };
        near.send_lp(&header, &data("/a/1", b"x"));
        consumer.take_data();
        until("the route is learned", || node.snapshot().unwrap().rib_routes == 1);
        let told = node.explain("/a/2").unwrap();
        assert_eq!((&told["fib_prefix"], &told["chosen"][0]), (&"/a".into(), &id.into()));
        assert_eq!(told["next_hops"][0]["cost"], 2048);
        for n in 2..20 {
            consumer.interest(&format!("/a/{n}"));
            assert_eq!(near.take_interest().0.to_string(), format!("/a/{n}"));
            near.data(&format!("/a/{n}"), b"x");
            consumer.take_data();
        }
        let listed = node.routes().unwrap();
        assert_eq!((listed[0].origin, listed[0].cost), (129, 2048));
        assert!(listed[0].expiration_ms.unwrap() <= 600_000);
        // Nobody else was asked any more.
        other.interest("/nowhere");
        assert_eq!(node.explain("/a/2").unwrap()["next_hops"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn an_announcement_by_a_stranger_is_no_route() {
    let (_, file) = announcer();
    let (stranger, _other_file) = announcer();
    let node = node(&file, 2);
    let (_, io) = node.attach(Scope::Local).unwrap();
    let mut consumer = App::new(io);
    let (_, mut near) = neighbour(&node);
    for (who, signer) in [&stranger, &Signer::digest()].into_iter().enumerate() {
        for n in 0..2 {
            let text = format!("/a/{who}/{n}");
            consumer.interest(&text);
            let (asked, _) = near.take_interest();
            let said = announcement("/a", signer);
            let header = LpHeader { prefix_announcement: Some(&said), ..LpHeader::default() };
            near.send_lp(&header, &data(&asked.to_string(), b"x"));
            consumer.take_data();
        }
    }
    assert_eq!(node.snapshot().unwrap().rib_routes, 0);
}
