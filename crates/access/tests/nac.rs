//! What NDNts encrypted is read, and what is written is read again (negative test 40 of the digest).

#![allow(clippy::unwrap_used)]

use onym_access::nac::{self, ContentKey, Encrypted};
use onym_access::{Error, Trusted, names};
use onym_crypto::{
    Certificate, Entropy, Issue, KeyType, PrivateKey, Signer, signer::write_digest_data, verify,
};
use onym_wire::cert::{CertTime, ValidityPeriod};
use onym_wire::data::DataBuilder;
use onym_wire::{Component, Data, Name};

const VECTORS: &str = include_str!("../../../spec/vectors/trust/nac.txt");

struct Seeded(u64);

impl Entropy for Seeded {
    fn fill(&mut self, out: &mut [u8]) {
        for octet in out {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *octet = u8::try_from(self.0 >> 56).unwrap();
        }
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn lines(word: &str) -> Vec<&'static str> {
    let of = |line: &'static str| line.strip_prefix(word)?.strip_prefix(' ');
    VECTORS.lines().filter_map(of).map(str::trim_end).collect()
}

fn packets() -> Vec<Vec<u8>> {
    lines("PKT").into_iter().map(|line| unhex(line.rsplit(' ').next().unwrap())).collect()
}

fn rsa(index: usize) -> PrivateKey {
    PrivateKey::from_pkcs8(&unhex(lines("RSA-PKCS8")[index])).unwrap()
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// The packets of the vectors are signed with a digest only; their caller answers for them.
fn believed(wire: &[u8]) -> Trusted<'_> {
    let data = Data::parse(wire).unwrap();
    verify::integrity(&data).unwrap();
    Trusted::verified_by_caller(data)
}

fn packet(name: &Name, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    write_digest_data(&DataBuilder::new(name.as_ref(), content), &mut wire);
    wire
}

#[test]
fn what_ndnts_encrypted_is_read_from_the_members_key_to_the_content() {
    let all = packets();
    let [kek, own_kdk, kdk, ck] = all.as_slice() else { panic!("{}", all.len()) };
    let group = names::group(name("/am").as_ref(), name("/ds").as_ref());
    let (kek, ck) = (believed(kek), believed(ck));
    let kid = names::kid(kek.name(), group.as_ref()).unwrap();
    let pair = rsa(2);
    assert_eq!(kek.content(), pair.spki());
    let members = [(own_kdk, 1, "/am/kdk/KEY/t=1795445028882000"), (kdk, 0, "/member/KEY/m1")];
    for (kdk, number, member) in members {
        let member = name(member);
        let kdk = believed(kdk);
        let key = rsa(number);
        let found = nac::group_key(&kdk, group.as_ref(), kid, member.as_ref(), &key).unwrap();
        assert_eq!(found.spki(), pair.spki());
        let wrong = nac::group_key(&kdk, group.as_ref(), kid, member.as_ref(), &rsa(2));
        assert!(matches!(wrong, Err(Error::NotReadable)), "another member's key");
        let other = name("/member/KEY/m2");
        let wrong = nac::group_key(&kdk, group.as_ref(), kid, other.as_ref(), &key);
        assert!(matches!(wrong, Err(Error::Name(_))), "the name of another member");
    }
    let key = ContentKey::open(&ck, group.as_ref(), |id| (id == kid).then_some(&pair)).unwrap();
    // What was encrypted can be written octet for octet.
    for wire in &all[1..] {
        let content = Data::parse(wire).unwrap().content;
        assert_eq!(Encrypted::read(content).unwrap().write(), content);
    }
    let content = unhex(lines("APPDATA-CONTENT")[0]);
    assert_eq!(Encrypted::read(&content).unwrap().write(), content);
    let wire = packet(&name("/prod/data"), &content);
    let plain = key.open_content(&believed(&wire)).unwrap();
    assert_eq!(plain.as_slice(), lines("DECRYPTED")[0].as_bytes());
    assert_eq!(key.name(), name("/prod/CK/t=1795445029341000"));
    assert!(!format!("{key:?}").to_uppercase().contains(lines("CK-RAW")[0]));
}

/// A group with one key pair, and a member's certificate.
struct World {
    group: Name,
    kek: Vec<u8>,
    pair: PrivateKey,
    member: PrivateKey,
    certificate: Certificate,
}

fn world() -> World {
    let group = names::group(name("/am").as_ref(), name("/ds").as_ref());
    let (pair, member) = (rsa(2), rsa(0));
    let kek_name = names::kek(group.as_ref(), Component::generic(b"k1"));
    let kek = packet(&kek_name, pair.spki());
    let key_name = name("/member/KEY/m1");
    let certificate = Certificate::self_signed(key_name.as_ref(), &member, 1).unwrap();
    World { group, kek, pair, member, certificate }
}

#[test]
fn what_is_encrypted_here_is_read_again() {
    let World { group, kek, pair, member, certificate } = world();
    let (kid, entropy) = (Component::generic(b"k1"), &mut Seeded(7));
    let (kdk_name, kdk) =
        nac::key_for_member(group.as_ref(), kid, &pair, (&certificate).into(), 1, entropy).unwrap();
    assert_eq!(kdk_name.to_string(), "/am/NAC/ds/KDK/k1/ENCRYPTED-BY/member/KEY/m1");
    let made = ContentKey::new(name("/prod").as_ref(), Component::generic(b"c1"), entropy);
    let (ck_name, ck) = made.for_group(&believed(&kek), group.as_ref()).unwrap();
    assert_eq!(ck_name.to_string(), "/prod/CK/c1/ENCRYPTED-BY/am/NAC/ds/KEK/k1");
    let content = packet(&name("/prod/1"), &made.seal(b"hello", entropy).unwrap());

    let kdk = packet(&kdk_name, &kdk);
    let member_name = certificate.key_name();
    let found = nac::group_key(&believed(&kdk), group.as_ref(), kid, member_name, &member).unwrap();
    let ck = packet(&ck_name, &ck);
    let key = ContentKey::open(&believed(&ck), group.as_ref(), |_| Some(&found)).unwrap();
    assert_eq!(key.open_content(&believed(&content)).unwrap().as_slice(), b"hello");
    // Members with other keys are told so.
    let other = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    let other = Certificate::self_signed(name("/e/KEY/1").as_ref(), &other, 1).unwrap();
    let refused = nac::key_for_member(group.as_ref(), kid, &pair, (&other).into(), 1, entropy);
    assert!(matches!(refused, Err(Error::Member(..))));
}

#[test]
fn a_key_that_nobody_signed_is_not_trusted() {
    let World { kek, .. } = world();
    let signer = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    let public = signer.public_key().unwrap();
    let data = Data::parse(&kek).unwrap();
    assert!(Trusted::signed_by(data, &public).is_err(), "a digest is no signature");
    let mut signed = Vec::new();
    let signer = Signer::key(signer, name("/am/KEY/1"));
    signer.sign_data(&DataBuilder::new(data.name, data.content), &mut signed).unwrap();
    assert!(Trusted::signed_by(Data::parse(&signed).unwrap(), &public).is_ok());
}

#[test]
fn a_content_key_counts_for_its_own_group_only() {
    let World { group, kek, pair, .. } = world();
    let entropy = &mut Seeded(7);
    let made = ContentKey::new(name("/prod").as_ref(), Component::generic(b"c1"), entropy);
    let other = names::group(name("/am").as_ref(), name("/other").as_ref());
    let refused = made.for_group(&believed(&kek), other.as_ref());
    assert!(matches!(refused, Err(Error::Group { .. })), "{refused:?}");
    let (ck_name, ck) = made.for_group(&believed(&kek), group.as_ref()).unwrap();
    let wire = packet(&ck_name, &ck);
    let refused = ContentKey::open(&believed(&wire), other.as_ref(), |_| Some(&pair));
    assert!(matches!(refused, Err(Error::Group { .. })), "{refused:?}");
    let odd = packet(&name("/prod/CK/c1"), &ck);
    let refused = ContentKey::open(&believed(&odd), group.as_ref(), |_| Some(&pair));
    assert!(matches!(refused, Err(Error::Name(_))));
    let gone = ContentKey::open(&believed(&wire), group.as_ref(), |_| None);
    assert!(matches!(gone, Err(Error::NotReadable)), "the member has no key of this id");
}

#[test]
fn whatever_is_wrong_with_a_ciphertext_the_error_is_one() {
    let entropy = &mut Seeded(7);
    let key = ContentKey::new(name("/prod").as_ref(), Component::generic(b"c1"), entropy);
    let sealed = key.seal(&[7; 40], entropy).unwrap();
    let good = Encrypted::read(&sealed).unwrap();
    let errors = |change: &dyn Fn(&mut Encrypted)| {
        let mut changed = good.clone();
        change(&mut changed);
        let wire = packet(&name("/prod/1"), &changed.write());
        key.open_content(&believed(&wire)).map(|plain| plain.len()).map_err(|e| e.to_string())
    };
    let uniform = Err(Error::NotReadable.to_string());
    assert_eq!(errors(&|_| ()), Ok(40));
    assert_eq!(errors(&|e| e.payload.truncate(47)), uniform, "no whole block");
    assert_eq!(errors(&|e| e.payload.clear()), uniform);
    assert_eq!(errors(&|e| e.iv = None), uniform);
    assert_eq!(errors(&|e| e.key_name = Some(name("/prod/CK/c2"))), uniform);
    assert_eq!(errors(&|e| e.key_name = None), uniform);
    // The octet before the last block turns the padding into another number.
    for number in 9..=255_u8 {
        let changed = errors(&|e| e.payload[31] ^= 8 ^ number);
        assert!(changed.is_err() || changed == Ok(40 - 1 + 8), "{number}: {changed:?}");
    }
    let short = rsa(0);
    let wire = packet(&name("/prod/CK/c1/ENCRYPTED-BY/am/NAC/ds/KEK/k1"), &good.write());
    let group = names::group(name("/am").as_ref(), name("/ds").as_ref());
    let opened = ContentKey::open(&believed(&wire), group.as_ref(), |_| Some(&short));
    assert!(matches!(opened, Err(Error::NotReadable)));
}

#[test]
fn a_certificate_says_whose_key_the_group_is_encrypted_for() {
    // An issued certificate counts as a self-signed one does: by its key.
    let World { group, pair, member, certificate, .. } = world();
    let issuer = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    let signer = Signer::key(issuer, name("/vouch/KEY/1"));
    let validity = ValidityPeriod { not_before: CertTime(0), not_after: CertTime(10_000) };
    let issue = Issue { issuer_id: Component::generic(b"r"), validity, now_ms: 2 };
    let issued = Certificate::issue(&certificate, &signer, &issue).unwrap();
    let kid = Component::generic(b"k1");
    let made = nac::key_for_member(group.as_ref(), kid, &pair, (&issued).into(), 1, &mut Seeded(3));
    let (kdk_name, content) = made.unwrap();
    let wire = packet(&kdk_name, &content);
    let found =
        nac::group_key(&believed(&wire), group.as_ref(), kid, issued.key_name(), &member).unwrap();
    assert_eq!(found.spki(), pair.spki());
}
