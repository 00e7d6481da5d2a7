//! Signed packets: vectors of the field, every kind of signer, damage.

#![allow(clippy::unwrap_used)] // helpers of tests

use onym_crypto::signer::{Freshness, write_parameters};
use onym_crypto::verify::{self, Signed};
use onym_crypto::{Error, KeyType, PrivateKey, Signer, digest, sha256};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::name::Component;
use onym_wire::signature::SignatureInfo;
use onym_wire::{Name, types};
use proptest::prelude::*;
use std::sync::LazyLock;

const C1: &str = "0596074d08096c6f63616c686f737408036e6664080372696208087265676973746572080a68080706080464656d6f022088a701e1939a2384859450304ebfd2294a195a2cd28f42629de3d4abc82948920a04010203040c0203e824002c171b01002608111213141516171828080000018bcfe568002e201021761b7435b28b46c92e47532b6fdd2936dadb3948b6ce1501b615763e077d";
const C2: &str = "0599075008096c6f63616c686f737408036e6664080372696208087265676973746572080d680b0706080464656d6f6c01010220e5eca2c8da3184ba39a9960e5022ddd250cfca0fe5a8e71126ad2afee30333b60a04010203040c02271024002c171b01002608111213141516171828080000018bcfe568002e208f7a7c6be6adfca3834297f76c0bdba26a99b07443527ab1beac29a1048b8355";
const C3: &str = "0576076a08096c6f63616c686f737408036e6664080372696208087265676973746572080a68080706080464656d6f08080000018bcfe5680008082122232425262728080516031b0100082217206d0744402e78ade776b16203a1164db8be9c88c1c92e33448fe53f684a0c4aac0a04010203040c0203e8";
const D1: &str = "0647070c0801410801423601013201001409190203e81a03320100150568656c6c6f16031b010017208e1beb74bdcb5907091d6797f659bb7cc3598e68ff8e49a37869c21dd4e516a4";
const D1_DIGEST: &str = "ca17f6e51dbacfaa26b6fda0759713fbfa3c6ac9cccb1cf56e9a8c01a8580ae6";
const TIME_MS: u64 = 0x018b_cfe5_6800;

fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// `/localhost/nfd/rib/register/<ControlParameters>`.
fn register(parameters: &[u8]) -> Name {
    let mut name: Name = "/localhost/nfd/rib/register".parse().unwrap();
    name.append_generic(parameters);
    name
}

const NAME_ONLY: &[u8] = b"\x68\x08\x07\x06\x08\x04demo";
const NAME_AND_FLAGS: &[u8] = b"\x68\x0b\x07\x06\x08\x04demo\x6c\x01\x01";

#[test]
fn signed_interests_of_v03_have_the_bytes_of_the_vectors() {
    let freshness = Freshness {
        nonce: Some([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]),
        time_ms: Some(TIME_MS),
        seq: None,
    };
    for (parameters, lifetime, vector) in [(NAME_ONLY, 1000, C1), (NAME_AND_FLAGS, 10_000, C2)] {
        let name = register(parameters);
        let interest = InterestBuilder {
            nonce: Some([1, 2, 3, 4]),
            lifetime_ms: Some(lifetime),
            ..InterestBuilder::new(name.as_ref())
        };
        let mut wire = Vec::new();
        Signer::digest().sign_interest(&interest, &[], freshness, &mut wire).unwrap();
        assert_eq!(digest::hex(&wire), vector);
        let parsed = Interest::parse(&wire).unwrap();
        let signed = Signed::interest(&parsed).unwrap();
        signed.verify_digest().unwrap();
        assert_eq!(signed.name, name);
        assert_eq!(signed.replay.time_ms, Some(TIME_MS));
    }
}

#[test]
fn signed_interests_of_v02_have_the_bytes_of_the_vectors() {
    let nonce = [0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28];
    let signed_name =
        Signer::digest().sign_name(register(NAME_ONLY).as_ref(), TIME_MS, nonce).unwrap();
    let interest = InterestBuilder {
        nonce: Some([1, 2, 3, 4]),
        lifetime_ms: Some(1000),
        ..InterestBuilder::new(signed_name.as_ref())
    };
    let mut wire = Vec::new();
    interest.write(&mut wire);
    assert_eq!(digest::hex(&wire), C3);
    let parsed = Interest::parse(&wire).unwrap();
    let signed = Signed::interest(&parsed).unwrap();
    signed.verify_digest().unwrap();
    assert_eq!(signed.name, register(NAME_ONLY));
    assert_eq!(signed.replay.nonce, Some(&nonce[..]));
}

#[test]
fn data_and_its_implicit_digest_have_the_bytes_of_the_vectors() {
    let name: Name = "/A/B/v=1/seg=0".parse().unwrap();
    let data = DataBuilder {
        freshness_ms: 1000,
        final_block_id: Some(Component { typ: 50, value: &[0] }),
        ..DataBuilder::new(name.as_ref(), b"hello")
    };
    let mut wire = Vec::new();
    Signer::digest().sign_data(&data, &mut wire).unwrap();
    assert_eq!(digest::hex(&wire), D1);
    assert_eq!(digest::hex(&digest::implicit_digest(&wire)), D1_DIGEST);
    verify::integrity(&Data::parse(&wire).unwrap()).unwrap();
    assert_eq!(unhex(D1), wire);
}

/// Keys take time to make: one of each kind for all tests.
static KEYS: LazyLock<Vec<PrivateKey>> = LazyLock::new(|| {
    let kinds = [KeyType::Ecdsa, KeyType::Ed25519, KeyType::Rsa];
    kinds.map(|kind| PrivateKey::generate(kind).unwrap()).into()
});

fn signers() -> Vec<Signer> {
    let locator: Name = "/alice/KEY/1".parse().unwrap();
    let copy = |key: &PrivateKey| PrivateKey::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap();
    let keyed = KEYS.iter().map(|key| Signer::key(copy(key), locator.clone()));
    let mut all: Vec<Signer> = keyed.collect();
    all.push(Signer::digest());
    all.push(Signer::hmac(b"a shared secret", locator));
    all
}

/// Verifies with whatever belongs to the signature type.
fn check(signed: &Signed<'_>) -> Result<(), Error> {
    match signed.signature_type {
        types::SIGNATURE_DIGEST_SHA256 => signed.verify_digest(),
        types::SIGNATURE_HMAC_SHA256 => signed.verify_hmac(b"a shared secret"),
        kind => {
            let mut keys = KEYS.iter().filter(|k| k.key_type().signature_type() == kind);
            match keys.next() {
                Some(key) => signed.verify_key(&key.public_key().unwrap()),
                None => Err(Error::UnknownSignatureType(kind)),
            }
        }
    }
}

fn any_name() -> impl Strategy<Value = Name> {
    proptest::collection::vec((prop_oneof![Just(8_u16), Just(54)], any::<[u8; 2]>()), 1..6)
        .prop_map(|parts| parts.iter().map(|(typ, value)| Component { typ: *typ, value }).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_any_signer_signs_verifies_and_damage_shows(
        name in any_name(),
        content in proptest::collection::vec(any::<u8>(), 0..300),
        which in 0..5_usize,
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let signer = &signers()[which];
        let mut wire = Vec::new();
        signer.sign_data(&DataBuilder::new(name.as_ref(), &content), &mut wire).unwrap();
        let data = Data::parse(&wire).unwrap();
        let signed = Signed::data(&data);
        prop_assert!(check(&signed).is_ok());
        prop_assert_eq!(signed.signer(), signer.locator());

        let mut damaged = wire.clone();
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        if let Ok(data) = Data::parse(&damaged) {
            prop_assert!(check(&Signed::data(&data)).is_err(), "octet {} of {:?}", at, name);
        }
    }

    #[test]
    fn signed_interests_of_both_formats_verify_and_damage_shows(
        name in any_name(),
        parameters in proptest::collection::vec(any::<u8>(), 0..40),
        which in 0..5_usize,
        old_format: bool,
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let signer = &signers()[which];
        let mut wire = Vec::new();
        if old_format {
            let signed = signer.sign_name(name.as_ref(), TIME_MS, [7; 8]).unwrap();
            InterestBuilder::new(signed.as_ref()).write(&mut wire);
        } else {
            let freshness =
                Freshness { nonce: Some([7; 8]), time_ms: Some(TIME_MS), seq: Some(3) };
            let interest = InterestBuilder::new(name.as_ref());
            signer.sign_interest(&interest, &parameters, freshness, &mut wire).unwrap();
        }
        let interest = Interest::parse(&wire).unwrap();
        let signed = Signed::interest(&interest).unwrap();
        prop_assert!(check(&signed).is_ok());
        prop_assert_eq!(signed.name, name.as_ref());
        prop_assert_eq!(signed.replay.time_ms, Some(TIME_MS));

        let mut damaged = wire.clone();
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        if let Ok(interest) = Interest::parse(&damaged) {
            let checked = Signed::interest(&interest).and_then(|signed| check(&signed));
            prop_assert!(checked.is_err(), "octet {}", at);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = onym_crypto::Certificate::parse(&bytes);
        let _ = onym_crypto::SafeBag::parse(&bytes);
        let _ = onym_crypto::PublicKey::from_spki(&bytes);
        let _ = PrivateKey::from_pkcs8(&bytes);
        let _ = onym_crypto::seal::decrypt(&bytes, b"x");
        let _ = onym_crypto::text::decode(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_wrong_parameters_digest_is_refused_with_and_without_signature() {
    let name: Name = "/A".parse().unwrap();
    let mut wire = Vec::new();
    write_parameters(&InterestBuilder::new(name.as_ref()), b"params", &mut wire);
    let good = Interest::parse(&wire).unwrap();
    verify::check_parameters_digest(&good).unwrap();
    assert!(matches!(Signed::interest(&good), Err(Error::Unsigned)));
    let last = wire.len() - 1;
    wire[last] ^= 1;
    let bad = Interest::parse(&wire).unwrap();
    assert!(matches!(verify::check_parameters_digest(&bad), Err(Error::ParametersDigest)));
    assert!(matches!(Signed::interest(&bad), Err(Error::ParametersDigest)));
}

#[test]
fn a_key_does_not_verify_another_signature_type() {
    let name: Name = "/A".parse().unwrap();
    let builder = DataBuilder::new(name.as_ref(), b"x");
    let mut wire = Vec::new();
    // A digest under the number of ECDSA must not pass for a signature.
    builder
        .write(&mut wire, &SignatureInfo::of_kind(3), |signed| Ok::<_, Error>(sha256(&[signed])))
        .unwrap();
    let data = Data::parse(&wire).unwrap();
    let key = KEYS[0].public_key().unwrap();
    assert!(matches!(verify::data(&data, &key), Err(Error::BadSignature)));
    let other = KEYS[1].public_key().unwrap();
    assert!(matches!(
        verify::data(&data, &other),
        Err(Error::WrongSignatureType { got: 3, key: 5 })
    ));
    assert!(matches!(verify::integrity(&data), Err(Error::WrongSignatureType { got: 3, key: 0 })));
}

#[test]
fn the_null_signature_is_empty_and_verifies_nowhere() {
    let name: Name = "/A".parse().unwrap();
    let mut wire = Vec::new();
    Signer::null().sign_data(&DataBuilder::new(name.as_ref(), b"x"), &mut wire).unwrap();
    let data = Data::parse(&wire).unwrap();
    assert_eq!(data.signature_info().kind, types::SIGNATURE_NULL);
    assert!(data.signature_value.is_empty());
    assert!(verify::integrity(&data).is_err());
    assert!(verify::data(&data, &KEYS[0].public_key().unwrap()).is_err());
}
