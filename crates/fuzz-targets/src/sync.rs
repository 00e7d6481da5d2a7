//! Sync: vectors, Sync Interests, participants, PSync's tables and contents.

use crate::Feed;
use onym_crypto::Signer;
use onym_endpoint::Inbound;
use onym_sync::alo::{Alo, AloConfig, Snapshots, read_history, read_index};
use onym_sync::ps::{Mapping, PsConfig, PsEvent, PubSub};
use onym_sync::psync::{
    Bloom, Consumer, ConsumerConfig, Form, Full, FullConfig, Iblt, Producer, ProducerConfig,
};
use onym_sync::svs::{Check, StateVector, Svs, SvsConfig, SyncPacket, Version};
use onym_tables::Tick;
use onym_wire::tlv::Element;
use onym_wire::{Data, DataBuilder, Interest, InterestBuilder, Name};
use std::time::Duration;

const UNIX_MS: u64 = 1_795_444_162_000;

/// Reads `input` as what strangers send to a group, and gives it to participants.
///
/// # Panics
/// When a law does not hold.
pub fn sync(input: &[u8]) {
    for version in [Version::V2, Version::V3] {
        vector(input, version);
    }
    let _ = read_history(input);
    let _ = read_index(input);
    if let Ok(Some(mapping)) = Mapping::parse(input) {
        let mut wire = Vec::new();
        mapping.write(&mut wire);
        let again = Mapping::parse(&wire).expect("law: what is written can be read");
        let entries = again.map(|mapping| mapping.entries).into_iter().flatten();
        assert!(entries.rev().eq(mapping.entries));
    }
    table(input);
    participants(&mut Feed::new(input));
    by_names(&mut Feed::new(input));
    partial(&mut Feed::new(input));
}

/// A vector that is accepted is read as the same after it was written again.
fn vector(input: &[u8], version: Version) {
    let Ok((element, _)) = Element::split(input) else { return };
    let Ok(vector) = StateVector::read(element, version) else { return };
    let mut wire = Vec::new();
    vector.write(version, &mut wire);
    let element = Element::parse(&wire).expect("law: what is written is an element");
    let again = StateVector::read(element, version).expect("law: what is written can be read");
    assert_eq!(again, vector);
}

/// A difference holds no more keys than the table has rows.
fn table(input: &[u8]) {
    let empty = Iblt::new(10);
    for form in [Form::Plain, Form::Zlib] {
        let Ok(theirs) = empty.decode_alike(input, form) else { continue };
        if let Some(difference) = empty.difference(&theirs) {
            assert!(difference.ours.len() + difference.theirs.len() <= 15);
        }
    }
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a constant name")
}

/// The input as the parameters of a Sync Interest, alone and in a Data.
fn packets(input: &[u8]) -> Vec<Vec<u8>> {
    let group = name("/g/v=3");
    let mut inner = Vec::new();
    let data = DataBuilder::new(group.as_ref(), input);
    Signer::digest().sign_data(&data, &mut inner).expect("a digest");
    let mut all = vec![input.to_vec()];
    for parameters in [input, &inner] {
        let mut wire = Vec::new();
        let interest = InterestBuilder::new(group.as_ref());
        onym_crypto::signer::write_parameters(&interest, parameters, &mut wire);
        all.push(wire);
    }
    all
}

/// Nothing that is received makes a vector grow beyond its bound or a packet that cannot be read.
fn participants(feed: &mut Feed<'_>) {
    let mut config = SvsConfig::new(name("/g"), Some(name("/a")), 10, Signer::digest());
    config.check = Check::Nothing;
    config.limits.octets_max = 500;
    let mut svs = Svs::new(Tick(0), UNIX_MS, config, 1);
    let none = Snapshots::None { last: 3 };
    let mut alo = AloConfig::new(name("/h"), name("/a"), 10, Signer::digest(), none);
    alo.svs.check = Check::Nothing;
    alo.svs.group = name("/g");
    let mut alo = Alo::new(Tick(0), UNIX_MS, alo, 2);
    alo.subscribe(Tick(0), Name::new());
    let psync = FullConfig::new(name("/g"), Signer::digest());
    let mut full = Full::new(Tick(0), 1, FullConfig { check: Check::Nothing, ..psync }, 3);
    let mut now = Tick(0);
    for round in 0..4 {
        now = now.plus_ms(u64::from(feed.short()));
        let len = feed.below(2000);
        let octets = if round == 3 { feed.all() } else { feed.octets(len) };
        for packet in packets(octets) {
            svs.receive(now, &packet);
            alo.receive(now, &Inbound::bare(&packet));
            full.receive(now, &Inbound::bare(&packet));
        }
        svs.handle_timeout(now);
        alo.handle_timeout(now);
        full.handle_timeout(now);
        if let Some(wire) = svs.poll_transmit(now) {
            let read = SyncPacket::parse(&wire, name("/g").as_ref(), Version::V3);
            let read = read.expect("law: what leaves can be read");
            assert_eq!(read.map(|packet| packet.vector), Some(svs.vector()));
        }
        while alo.poll_transmit(now).is_some() || full.poll_transmit().is_some() {}
        while svs.poll_event().is_some() || alo.poll_event().is_some() {}
        while full.poll_event().is_some() {}
    }
    let mut wire = Vec::new();
    svs.vector().write(Version::V3, &mut wire);
    assert!(wire.len() <= 500 + 4, "{} octets", wire.len());
}

/// `content` as the answer to the Interest `asked`.
fn answer(asked: &[u8], content: &[u8], more: &[u8]) -> Vec<u8> {
    let mut of = Interest::parse(asked).expect("law: what leaves can be read").name.to_name();
    if !more.is_empty() {
        of.append_generic(more).append_version(1).append_segment(0);
    }
    let mut wire = Vec::new();
    let data = DataBuilder { content_type: 6, ..DataBuilder::new(of.as_ref(), content) };
    Signer::digest().sign_data(&data, &mut wire).expect("a digest");
    wire
}

/// What is delivered is a Data, whatever comes as mapping and publication.
fn by_names(feed: &mut Feed<'_>) {
    let svs = SvsConfig::new(name("/g"), Some(name("/a")), 10, Signer::digest());
    let svs = SvsConfig { check: Check::Nothing, ..svs };
    let signer = Signer::digest();
    let config = PsConfig { svs, signer, freshness: Duration::from_secs(1) };
    let mut member = PubSub::new(Tick(0), UNIX_MS, config, 4);
    member.subscribe(Name::new());
    let mut now = Tick(0);
    for _ in 0..4 {
        now = now.plus_ms(u64::from(feed.short()));
        let len = feed.below(1000);
        let octets = feed.octets(len);
        for packet in packets(octets) {
            member.receive(now, &Inbound::bare(&packet));
        }
        member.handle_timeout(now);
        for _ in 0..8 {
            let Some(transmit) = member.poll_transmit(now) else { break };
            if Interest::parse(&transmit.wire).is_ok() {
                let packet = answer(&transmit.wire, octets, &[]);
                member.receive(now, &Inbound::bare(&packet));
            }
        }
        while let Some(event) = member.poll_event() {
            if let PsEvent::Publication { packet, .. } = event {
                assert!(Data::parse(&packet).is_ok(), "law: a Data is delivered");
            }
        }
    }
}

/// A filter is as it was written; producer and consumer take anything.
fn partial(feed: &mut Feed<'_>) {
    let (count, mistakes) = (u64::from(feed.short()), u64::from(feed.short()));
    let len = feed.below(100);
    let octets = feed.octets(len);
    if let Ok(bloom) = Bloom::read(count, mistakes, octets) {
        let mut of = Name::new();
        bloom.append_to(&mut of);
        assert_eq!(of.as_ref().get(2).map(|bits| bits.value.len()), Some(octets.len()));
    }
    let mut producer = Producer::new(1, ProducerConfig::new(name("/p"), Signer::digest()), 5);
    let config = ConsumerConfig { check: Check::Nothing, ..ConsumerConfig::new(name("/p")) };
    let mut consumer = Consumer::new(Tick(0), config, 6);
    let mut now = Tick(0);
    producer.publish(now, &name("/x"));
    consumer.subscribe(now, name("/x"), 0);
    for _ in 0..4 {
        now = now.plus_ms(u64::from(feed.short()));
        let len = feed.below(500);
        let octets = feed.octets(len).to_vec();
        producer.receive(now, &Inbound::bare(&octets));
        consumer.handle_timeout(now);
        while let Some(transmit) = consumer.poll_transmit() {
            producer.receive(now, &Inbound::bare(&transmit.wire));
            let packet = answer(&transmit.wire, &octets, b"table");
            consumer.receive(now, &Inbound::bare(&packet));
        }
        while let Some(transmit) = producer.poll_transmit() {
            consumer.receive(now, &Inbound::bare(&transmit.wire));
        }
        while consumer.poll_event().is_some() {}
    }
}
