//! Keys and signatures that are not what they say.

use super::world::{Form, NOW_MS, Party, certificate, chain, name, signed};
use onym_crypto::verify::Signed;
use onym_crypto::{Certificate, KeyType, PrivateKey, PublicKey, Signer};
use onym_trust::chain::{Context, Limits, Refusal, Validator};
use onym_trust::lvs::{Functions, Mode, Schema, compile};
use onym_wire::Interest;
use onym_wire::data::{Data, DataBuilder};
use onym_wire::signature::{KeyLocator, SignatureInfo};
use std::sync::Arc;

const BASIC: &str = include_str!("../../../../spec/vectors/trust/basic.txt");

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// The octets of a line of `basic.txt`: its last word.
fn recorded(word: &str) -> Vec<u8> {
    let line = BASIC.lines().find(|line| line.split(' ').next() == Some(word)).unwrap();
    unhex(line.split(' ').next_back().unwrap())
}

/// The recorded chain: root, user, Data; valid from 2024 to 2034.
#[test]
fn the_recorded_chain_of_python_ndn_is_believed() {
    let text = "#root: \"a\"/#KEY\n#user: \"a\"/u/#KEY <= #root\n#data: \"a\"/u/_ <= #user\n#KEY: \"KEY\"/_/_/_";
    let schema = Schema::new(compile(text, Mode::Strict).unwrap(), Functions::default()).unwrap();
    let mut validator = Validator::new(Arc::new(schema), Limits::default());
    validator.add_anchor(Certificate::parse(&recorded("CERT")).unwrap()).unwrap();
    let context = Context { now_ms: NOW_MS, ..Context::default() };
    assert_eq!(validator.data(&recorded("DATA"), 1, &context), None);
    let Some(onym_trust::chain::Event::Fetch(fetch)) = validator.poll() else { panic!("a fetch") };
    assert_eq!(fetch.name, name("/a/u/KEY/k2/a/v=1700000000000"));
    validator.certificate(fetch.id, &recorded("CERT2"), &context);
    let Some(onym_trust::chain::Event::Judged { ticket: 1, result }) = validator.poll() else {
        panic!("it is judged")
    };
    assert_eq!(result.unwrap().rule, "#data");
    // The signed Interest of the same key.
    let rules = "rule {\n id c\n for interest\n checker {\n type hierarchical\n sig-type ed25519\n }\n}\n\
                 rule {\n id d\n for data\n checker {\n type hierarchical\n sig-type ed25519\n }\n}";
    let rules =
        onym_trust::conf::Rules::parse(rules, "", &mut onym_trust::conf::no_include).unwrap();
    let mut validator = Validator::new(Arc::new(rules), Limits::default());
    validator.add_anchor(Certificate::parse(&recorded("CERT2")).unwrap()).unwrap();
    let command = recorded("SI-ED");
    assert_eq!(validator.interest(&command, 1, &context).unwrap().unwrap().rule, "c");
    // Negative 35: another parameters digest. And an HMAC proves nothing here.
    let mut wrong = command;
    let at = wrong.windows(2).position(|w| w == [2, 32]).unwrap() + 2;
    wrong[at] ^= 1;
    assert!(matches!(validator.interest(&wrong, 1, &context), Some(Err(Refusal::Malformed(_)))));
    let hmac = validator.interest(&recorded("SI-HMAC"), 1, &context);
    assert_eq!(hmac, Some(Err(Refusal::NoKey(4))));
}

/// Positive (a): what was recorded is what our signer makes of the same keys.
#[test]
fn the_recorded_signatures_are_made_again() {
    let seed = |first: u8| {
        let mut der = unhex("302e020100300506032b657004220420");
        der.extend(first..first + 32);
        PrivateKey::from_pkcs8(&der).unwrap()
    };
    for (word, signer, content) in [
        ("CERT", 0, Some(0)),
        ("CERT2", 0, Some(32)),
        ("DATA", 32, None),
        ("CROSSSCHEMA", 0, None),
        ("DATA-CROSS", 0, None),
        ("NDNDKEY", 0, None),
    ] {
        let wire = recorded(word);
        let data = Data::parse(&wire).unwrap();
        let mut signature = Vec::new();
        seed(signer).sign(&[data.signed_range], &mut signature).unwrap();
        assert_eq!(signature, data.signature_value, "{word}");
        if let Some(content) = content {
            assert_eq!(data.content, seed(content).spki(), "{word}");
        }
    }
    // A right Ed25519 signature is the one that is made, and an HMAC is made to be compared.
    let (ed25519, hmac) = (recorded("SI-ED"), recorded("SI-HMAC"));
    let [ed25519, hmac] = [&ed25519, &hmac].map(|wire| Interest::parse(wire).unwrap());
    let key = seed(32).public_key().unwrap();
    assert!(Signed::interest(&ed25519).unwrap().verify_key(&key).is_ok());
    assert!(Signed::interest(&hmac).unwrap().verify_hmac(&[0; 16]).is_ok());
    // NDNts' P-256 certificate and ndnd's RSA-free key packet.
    let bag = recorded("SAFEBAG");
    let opened = onym_crypto::SafeBag::parse(&bag).unwrap();
    let key = opened.open(b"password").unwrap();
    assert_eq!(key.spki(), unhex(SPKI));
    assert!(opened.open(b"wrong").is_err(), "negative 41: another passphrase");
}

const SPKI: &str = "3059301306072A8648CE3D020106082A8648CE3D0301070342000460FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB67903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299";

#[test]
fn negative_16_17_18_keys_that_are_not_those_of_the_format_are_refused() {
    let mut trailing = unhex(SPKI);
    trailing.push(0);
    let p384 = unhex(
        "3076301006072a8648ce3d020106052b8104002203620004aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab73617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f",
    );
    for (content, what) in [(trailing, "trailing"), (p384, "P-384"), (vec![1, 2, 3], "no DER")] {
        let mut chain = chain();
        let form = Form { content: Some(content), ..Form::default() };
        let wire = certificate("/a/s/KEY/s/r/v=1", &chain.site.key, &chain.root, &form);
        chain.world.publish(wire);
        let refusal = chain.world.judge(&signed("/a/s/h/p/1", &chain.app)).unwrap_err();
        assert!(matches!(refusal, Refusal::BadCertificate { .. }), "{what}: {refusal}");
    }
    // P-256 written with explicit parameters is read or cleanly refused; another curve is refused.
    assert!(PublicKey::from_spki(&explicit(false)).is_ok(), "explicit P-256");
    assert!(PublicKey::from_spki(&explicit(true)).is_err(), "explicit parameters of another curve");
}

/// The SPKI above with explicit curve parameters; `changed` has another coefficient.
fn explicit(changed: bool) -> Vec<u8> {
    let p = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff";
    let a = "ffffffff00000001000000000000000000000000fffffffffffffffffffffffc";
    let b = if changed {
        "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604c"
    } else {
        "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b"
    };
    let g = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
    let n = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let tlv = |tag: u8, value: Vec<u8>| {
        let mut out = vec![tag];
        match value.len() {
            len @ 0..=127 => out.push(u8::try_from(len).unwrap()),
            len @ 128..=255 => out.extend([0x81, u8::try_from(len).unwrap()]),
            len => {
                let [.., high, low] = len.to_be_bytes();
                out.extend([0x82, high, low]);
            }
        }
        out.extend(value);
        out
    };
    let int = |hex: &str| tlv(2, [vec![0], unhex(hex)].concat());
    let field = tlv(0x30, [unhex("06072a8648ce3d0101"), int(p)].concat());
    let curve = tlv(0x30, [tlv(4, unhex(a)), tlv(4, unhex(b))].concat());
    let parameters =
        tlv(0x30, [vec![2, 1, 1], field, curve, tlv(4, unhex(g)), int(n), vec![2, 1, 1]].concat());
    let algorithm = tlv(0x30, [unhex("06072a8648ce3d0201"), parameters].concat());
    let point = unhex(&SPKI[SPKI.len() - 130..]);
    tlv(0x30, [algorithm, tlv(3, [vec![0], point].concat())].concat())
}

/// Makes another value of a signature.
type Change<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// A Data that claims `kind`, by the app of the chain, with this value as signature.
fn with_value(party: &Party, kind: u64, value: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (data, locator) = (name("/a/s/h/p/1"), party.certificate.clone());
    let info = SignatureInfo {
        key_locator: Some(KeyLocator::Name(locator.as_ref())),
        ..SignatureInfo::of_kind(kind)
    };
    let mut wire = Vec::new();
    DataBuilder::new(data.as_ref(), b"x")
        .write(&mut wire, &info, |signed| Ok::<_, std::convert::Infallible>(value(signed)))
        .unwrap();
    wire
}

fn chain_with_app(kind: KeyType) -> (super::world::Chain, Party) {
    let mut chain = chain();
    let key = Arc::new(PrivateKey::generate(kind).unwrap());
    let uri = "/a/s/h/p/KEY/p/h/v=1";
    let wire = certificate(uri, &key, &chain.host, &Form::default());
    chain.world.publish(wire);
    let party = Party { key, certificate: name(uri) };
    (chain, party)
}

#[test]
fn negative_19_22_the_signature_type_must_be_that_of_the_key() {
    let (mut chain, party) = chain_with_app(KeyType::Rsa);
    let sign = |signed: &[u8]| {
        let mut out = Vec::new();
        party.key.sign(&[signed], &mut out).unwrap();
        out
    };
    assert!(chain.world.judge(&with_value(&party, 1, sign)).is_ok());
    for kind in [3, 5] {
        let refusal = chain.world.judge(&with_value(&party, kind, sign)).unwrap_err();
        assert!(matches!(refusal, Refusal::BadSignature { .. }), "{refusal}");
        assert!(refusal.to_string().contains("signature type"), "{refusal}");
    }
    // An HMAC whose secret is the public key.
    let spki = party.key.spki().to_vec();
    let hmac = Signer::hmac(&spki, party.certificate.clone());
    let forged = with_value(&party, 4, |signed| hmac.sign(&[signed]).unwrap().as_ref().to_vec());
    assert_eq!(chain.world.judge(&forged), Err(Refusal::NoKey(4)));
}

#[test]
fn negative_20_an_ecdsa_value_must_be_der_with_r_and_s_in_range_and_may_have_a_high_s() {
    let (mut chain, party) = chain_with_app(KeyType::Ecdsa);
    let sign = |signed: &[u8]| {
        let mut out = Vec::new();
        party.key.sign(&[signed], &mut out).unwrap();
        out
    };
    assert!(chain.world.judge(&with_value(&party, 3, sign)).is_ok());
    let mirrored = with_value(&party, 3, |signed| mirror(&sign(signed)));
    assert!(chain.world.judge(&mirrored).is_ok(), "r, n - s verifies as well");
    let raw = |signed: &[u8]| {
        let [r, s] = integers(&sign(signed));
        [r, s].concat()
    };
    let zero_s = |signed: &[u8]| der(&integers(&sign(signed))[0], &[0]);
    let zero_r = |signed: &[u8]| der(&[0], &integers(&sign(signed))[1]);
    let bad: [Change<'_>; 5] =
        [&raw, &zero_s, &zero_r, &|_| Vec::new(), &|signed| [sign(signed), vec![0]].concat()];
    for value in bad {
        let refusal = chain.world.judge(&with_value(&party, 3, value)).unwrap_err();
        assert!(matches!(refusal, Refusal::BadSignature { .. }), "{refusal}");
    }
}

/// The two integers of a DER signature, without sign octets.
fn integers(der: &[u8]) -> [Vec<u8>; 2] {
    let r_len = usize::from(der[3]);
    let r = &der[4..4 + r_len];
    let s = &der[6 + r_len..];
    [r, s].map(|n| n.iter().copied().skip_while(|octet| *octet == 0).collect())
}

fn der(r: &[u8], s: &[u8]) -> Vec<u8> {
    let int = |n: &[u8]| {
        let sign = usize::from(n.first().is_some_and(|first| *first > 127));
        let len = u8::try_from(n.len() + sign).unwrap();
        [vec![2, len], vec![0; sign], n.to_vec()].concat()
    };
    let body = [int(r), int(s)].concat();
    [vec![0x30, u8::try_from(body.len()).unwrap()], body].concat()
}

/// The same signature with the other s: the order of the curve less s.
fn mirror(signature: &[u8]) -> Vec<u8> {
    let n = unhex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
    let [r, s] = integers(signature);
    let mut padded = vec![0; 32 - s.len()];
    padded.extend(s);
    let mut out = vec![0; 32];
    let mut borrow = 0_i16;
    for at in (0..32).rev() {
        let digit = i16::from(n[at]) - i16::from(padded[at]) - borrow;
        borrow = i16::from(digit < 0);
        out[at] = u8::try_from(digit.rem_euclid(256)).unwrap();
    }
    let trimmed: Vec<u8> = out.into_iter().skip_while(|octet| *octet == 0).collect();
    der(&r, &trimmed)
}

#[test]
fn negative_21_an_ed25519_value_has_64_octets_and_a_small_s() {
    let (mut chain, party) = chain_with_app(KeyType::Ed25519);
    let sign = |signed: &[u8]| {
        let mut out = Vec::new();
        party.key.sign(&[signed], &mut out).unwrap();
        out
    };
    assert!(chain.world.judge(&with_value(&party, 5, sign)).is_ok());
    let short = |signed: &[u8]| sign(signed)[..63].to_vec();
    let long = |signed: &[u8]| [sign(signed), vec![0]].concat();
    // s and s + order are the same point factor: only the smaller counts.
    let large = |signed: &[u8]| {
        let order = unhex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        let mut value = sign(signed);
        let mut carry = 0_u16;
        for (octet, add) in value[32..].iter_mut().zip(order) {
            let sum = u16::from(*octet) + u16::from(add) + carry;
            *octet = u8::try_from(sum % 256).unwrap();
            carry = sum / 256;
        }
        value
    };
    let bad: [Change<'_>; 3] = [&short, &long, &large];
    for value in bad {
        let refusal = chain.world.judge(&with_value(&party, 5, value)).unwrap_err();
        assert!(matches!(refusal, Refusal::BadSignature { .. }), "{refusal}");
    }
}
