//! Keys that ndnd, NDNts and python-ndn wrote, from `spec/vectors/trust/basic.txt`.

#![allow(clippy::unwrap_used)]

use onym_crypto::PrivateKey;
use onym_crypto::foreign::{Item, ndnd, private_key, tpm, tpm_file};
use onym_wire::Name;

const BASIC: &str = include_str!("../../../spec/vectors/trust/basic.txt");

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn word_after(word: &str) -> Vec<u8> {
    let mut words = BASIC.split_whitespace().skip_while(|w| *w != word);
    unhex(words.nth(1).unwrap())
}

#[test]
fn ndnds_keys_and_certificates_are_read_from_text_and_from_octets() {
    let items = ndnd(BASIC.as_bytes()).unwrap();
    let shown: Vec<String> = items
        .iter()
        .map(|item| match item {
            Item::Key(name, key) => format!("{name} {}", key.key_type().word()),
            Item::Certificate(certificate) => certificate.name().to_string(),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "/a/KEY/k1 ed25519",
            "/ca/alice/KEY/%B55%05%C0%D5%C8s%99 ecdsa",
            "/ca/alice/KEY/%B55%05%C0%D5%C8s%99/CAX/v=1795444859508"
        ]
    );
    // The certificate is that of the key.
    let (Item::Key(_, key), Item::Certificate(certificate)) = (&items[1], &items[2]) else {
        panic!("a key and its certificate")
    };
    assert_eq!(key.spki(), certificate.public_key().spki());
    let raw = word_after("NDNDKEY");
    assert!(
        matches!(&ndnd(&raw).unwrap()[0], Item::Key(name, _) if name.to_string() == "/a/KEY/k1")
    );
    // Negative 41: what was changed, is foreign or cut off is refused.
    let mut changed = raw.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert!(ndnd(&changed).is_err());
    assert!(ndnd(&raw[..raw.len() - 1]).is_err());
    assert!(ndnd(b"a foreign file").is_err());
    assert!(ndnd(b"-----BEGIN NDN KEY-----\nBqYH").is_err());
}

#[test]
fn private_keys_of_every_form_are_read() {
    let (pkcs8, sec1, spki) = (word_after("PKCS8"), word_after("SEC1"), word_after("SPKI"));
    for der in [&pkcs8, &sec1] {
        assert_eq!(private_key(der).unwrap().spki(), spki);
    }
    let rsa = PrivateKey::generate(onym_crypto::KeyType::Rsa).unwrap();
    let wrapped = rsa.to_pkcs8().unwrap();
    // Of a key of 2048 bits, PKCS#1 stands behind 26 octets of PKCS#8.
    assert_eq!(private_key(&wrapped[26..]).unwrap().spki(), rsa.spki(), "PKCS#1");
    assert!(private_key(&[0x30, 0]).is_err());
}

#[test]
fn a_file_of_the_tpm_is_found_by_the_name_of_its_key() {
    let key: Name = "/a/KEY/k1".parse().unwrap();
    let recorded = "1a897c14dfc75ea853bc43b1e1678f642dbb2ee2fa50968e0a8f3cec0d5a465e.privkey";
    assert_eq!(tpm_file(key.as_ref()), recorded);
    let text = onym_crypto::text::encode(&word_after("SEC1")).replace('\n', "\r\n");
    assert_eq!(tpm(&text).unwrap().spki(), word_after("SPKI"));
    assert!(tpm("not base64!").is_err());
}

#[test]
fn a_pib_is_read_from_its_octets_and_damage_anywhere_is_an_error() {
    use onym_crypto::foreign::pib::parse_pib;
    let octets = include_bytes!("../../../spec/vectors/trust/pib.db");
    let pib = parse_pib(octets).unwrap();
    assert_eq!(pib.tpm_locator, "tpm-file:");
    let key = &pib.keys[0];
    assert_eq!((key.name.to_string().as_str(), key.is_default), ("/a/KEY/k1", true));
    assert_eq!(key.certificates[0].name().to_string(), "/a/KEY/k1/self/v=1700000000000");
    // Cut off or changed anywhere: an error or another content, and never a panic.
    for at in 0..octets.len() {
        let mut changed = octets.to_vec();
        changed[at] ^= 0xFF;
        let _ = parse_pib(&changed);
        if at % 64 == 0 {
            let _ = parse_pib(&octets[..at]);
        }
    }
    assert!(parse_pib(&octets[..512]).is_err());
}

#[test]
fn what_is_written_for_ndnd_and_ndn_cxx_is_read_again() {
    use onym_crypto::foreign::write;
    use onym_crypto::{Certificate, KeyType};
    for kind in [KeyType::Ecdsa, KeyType::Ed25519, KeyType::Rsa] {
        let key = PrivateKey::generate(kind).unwrap();
        let name: Name = "/a/KEY/k1".parse().unwrap();
        let certificate = Certificate::self_signed(name.as_ref(), &key, 1).unwrap();
        let text = write::ndnd(name.as_ref(), &key, Some(&certificate)).unwrap();
        let items = ndnd(text.as_bytes()).unwrap();
        assert_eq!(items.len(), 2);
        assert!(matches!(&items[0], Item::Key(n, k) if *n == name && k.spki() == key.spki()));
        assert!(matches!(&items[1], Item::Certificate(c) if **c == certificate));
        assert_eq!(tpm(&write::tpm(&key).unwrap()).unwrap().spki(), key.spki());
    }
    // P-256 with its curve's name and its point, as ndnd and OpenSSL want it.
    let written = write::traditional(&private_key(&word_after("SEC1")).unwrap()).unwrap();
    assert_eq!((written.len(), &written[..7]), (121, &[0x30, 0x77, 2, 1, 1, 4, 0x20][..]));
    assert_eq!(private_key(&written).unwrap().spki(), word_after("SPKI"));
}
