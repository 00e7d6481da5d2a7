//! The authenticated form: who reads, who does not, and what a change does.

#![allow(clippy::unwrap_used)]

use onym_access::envelope::{ContentKey, Envelope, PublicPoint, ReadingKey, open_with, seal_for};
use onym_access::{Error, Form, Group, Member, Trusted, names};
use onym_crypto::{Entropy, signer::write_digest_data};
use onym_wire::data::DataBuilder;
use onym_wire::{Component, Data, Name, NameRef};

struct Seeded(u64);

impl Entropy for Seeded {
    fn fill(&mut self, out: &mut [u8]) {
        for octet in out {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *octet = u8::try_from(self.0 >> 56).unwrap();
        }
    }
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn packet(name: NameRef<'_>, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    write_digest_data(&DataBuilder::new(name, content), &mut wire);
    wire
}

fn trusted(wire: &[u8]) -> Trusted<'_> {
    Trusted::verified_by_caller(Data::parse(wire).unwrap())
}

/// A member's key of a group, out of the Data that carries it.
fn group_key(data: &(Name, Vec<u8>), member: &ReadingKey) -> Result<ReadingKey, Error> {
    let wire = packet(data.0.as_ref(), &data.1);
    ReadingKey::from_seed(&open_with(member, &trusted(&wire))?)
}

fn group() -> Group {
    Group::new(Form::Authenticated, name("/am/NAC/ds").as_ref(), name("/am"), 5).unwrap()
}

/// The Data that carries the key `number` to a member.
fn kdk(group: &Group, number: u64, member: &Name) -> (Name, Vec<u8>) {
    let mut kid = Name::new();
    kid.append_version(number);
    let kid = kid.as_ref().last().unwrap();
    group.kdk(kid, member.as_ref(), 0, &mut Seeded(number)).unwrap().unwrap()
}

/// A content key for the present key of a group, and the Data that carries it.
fn content_key(group: &Group, ckid: &[u8]) -> (ContentKey, Vec<u8>) {
    let entropy = &mut Seeded(u64::from(ckid[0]));
    let key = ContentKey::new(name("/prod").as_ref(), Component::generic(ckid), entropy).unwrap();
    let (kek_name, kek) = group.kek();
    let kek = packet(kek_name.as_ref(), &kek);
    let (ck_name, ck) = key.for_group(&trusted(&kek), group.name(), entropy).unwrap();
    (key, packet(ck_name.as_ref(), &ck))
}

#[test]
fn members_read_and_who_left_reads_nothing_new() {
    let entropy = &mut Seeded(1);
    let mut group = group();
    let (alice, bob) = (ReadingKey::generate().unwrap(), ReadingKey::generate().unwrap());
    let [of_alice, of_bob] = [name("/alice/KEY/1"), name("/bob/KEY/1")];
    group.grant(Member::Point(of_alice.clone(), alice.public())).unwrap();
    group.grant(Member::Point(of_bob.clone(), bob.public())).unwrap();
    let [for_alice, for_bob] = [kdk(&group, 5, &of_alice), kdk(&group, 5, &of_bob)];
    assert_eq!(for_alice.0.to_string(), "/am/NAC/ds/KDK/v=5/ENCRYPTED-BY/alice/KEY/1");
    assert!(matches!(group_key(&for_alice, &bob), Err(Error::NotReadable)));
    // A key for one member is not taken as that of another.
    let moved = (for_bob.0.clone(), for_alice.1.clone());
    assert!(matches!(group_key(&moved, &alice), Err(Error::NotReadable)));

    let (mut key, ck) = content_key(&group, b"1");
    let sealed = key.seal(name("/prod/1").as_ref(), b"for both", entropy).unwrap();
    let first = packet(name("/prod/1").as_ref(), &sealed);
    for (member, data) in [(&alice, &for_alice), (&bob, &for_bob)] {
        let own = group_key(data, member).unwrap();
        let key = ContentKey::open(&trusted(&ck), group.name(), |_| Some(&own)).unwrap();
        assert_eq!(key.open_content(&trusted(&first)).unwrap().as_slice(), b"for both");
    }
    let bobs_old = group_key(&for_bob, &bob).unwrap();

    group.revoke(of_bob.as_ref(), 0).unwrap();
    let stay = kdk(&group, 6, &of_alice);
    assert_eq!(stay.0.to_string(), "/am/NAC/ds/KDK/v=6/ENCRYPTED-BY/alice/KEY/1");
    assert!(group.members().eq([of_alice.as_ref()]));
    let (mut key, ck) = content_key(&group, b"2");
    let sealed = key.seal(name("/prod/2").as_ref(), b"for alice", entropy).unwrap();
    let second = packet(name("/prod/2").as_ref(), &sealed);
    let refused = ContentKey::open(&trusted(&ck), group.name(), |_| Some(&bobs_old));
    assert!(matches!(refused, Err(Error::NotReadable)), "the key from before");
    assert!(group_key(&stay, &bob).is_err());
    let own = group_key(&stay, &alice).unwrap();
    let key = ContentKey::open(&trusted(&ck), group.name(), |_| Some(&own)).unwrap();
    assert_eq!(key.open_content(&trusted(&second)).unwrap().as_slice(), b"for alice");
    assert!(matches!(group.revoke(of_bob.as_ref(), 0), Err(Error::Member(..))));
}

#[test]
fn content_that_was_changed_or_moved_does_not_open() {
    let entropy = &mut Seeded(1);
    let group = group();
    let (mut key, ck) = content_key(&group, b"1");
    let own = name("/prod/1");
    let sealed = key.seal(own.as_ref(), b"content", entropy).unwrap();
    let wire = packet(own.as_ref(), &sealed);
    assert!(key.open_content(&trusted(&wire)).is_ok());
    let moved = packet(name("/prod/2").as_ref(), &sealed);
    assert!(matches!(key.open_content(&trusted(&moved)), Err(Error::NotReadable)));
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        let wire = packet(own.as_ref(), &changed);
        assert!(key.open_content(&trusted(&wire)).is_err(), "octet {at}");
        let wire = packet(own.as_ref(), &sealed[..at]);
        assert!(key.open_content(&trusted(&wire)).is_err(), "cut at {at}");
    }
    // A key for a group is no content, and content is no key.
    let as_content = packet(own.as_ref(), Data::parse(&ck).unwrap().content);
    assert!(matches!(key.open_content(&trusted(&as_content)), Err(Error::NotReadable)));
    let reading = ReadingKey::generate().unwrap();
    assert!(matches!(open_with(&reading, &trusted(&wire)), Err(Error::NotReadable)));
    // The same content twice is encrypted differently.
    assert_ne!(key.seal(own.as_ref(), b"content", entropy).unwrap(), sealed);
}

#[test]
fn points_that_share_no_secret_are_refused() {
    let entropy = &mut Seeded(1);
    let reader = ReadingKey::generate().unwrap();
    let to = name("/k");
    let mut one = [0; 32];
    one[0] = 1;
    for low in [[0; 32], one] {
        let sealed = seal_for(PublicPoint(low), to.as_ref(), b"x", entropy);
        assert!(matches!(sealed, Err(Error::NotReadable)), "sealed for {low:?}");
        // A sender who chose such a point.
        let mut content = seal_for(reader.public(), to.as_ref(), b"x", entropy).unwrap();
        content[7..39].copy_from_slice(&low);
        assert!(Envelope::read(&content).is_ok(), "the point is where it was changed");
        let wire = packet(to.as_ref(), &content);
        assert!(matches!(open_with(&reader, &trusted(&wire)), Err(Error::NotReadable)));
    }
    assert!(ReadingKey::from_seed(&[1; 31]).is_err());
    assert!(!format!("{reader:?}").contains(&format!("{:?}", reader.seed())));
}

#[test]
fn envelopes_have_the_octets_of_the_registry() {
    let reader = ReadingKey::from_seed(&[7; 32]).unwrap();
    let to = name("/k");
    let content = seal_for(reader.public(), to.as_ref(), b"secret", &mut Seeded(9)).unwrap();
    // 245, form 1, a point of 32, a nonce of 12, six octets with a tag of 16.
    let lens = [content[0], content[2], content[5], content[6], content[39], content[40]];
    assert_eq!(lens, [245, 129, 131, 32, 133, 12]);
    assert_eq!(content[53..55], [135, 22]);
    let read = Envelope::read(&content).unwrap();
    assert_eq!(read.write(), content);
    // Another implementation of the same functions wrote this one.
    let kept = KEPT.as_bytes().chunks(2);
    let kept: Vec<u8> =
        kept.map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap()).collect();
    let wire = packet(to.as_ref(), &kept);
    assert_eq!(open_with(&reader, &trusted(&wire)).unwrap().as_slice(), b"secret");
    assert_eq!(names::ck(to.as_ref(), Component::generic(b"1")), name("/k/CK/1"));
}

/// Written with the Python package `cryptography` for the key 07…07, the name `/k` and the text
/// `secret`; the ephemeral key is 00…1f.
const KEPT: &str = "f54b81010183208f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1ad1ba6f3e2138285f850c404142434445464748494a4b8716fa50766b2a93a80f5c8ea36f5ae7d74ee9fde01827fc";
