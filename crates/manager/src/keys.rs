//! The key engine: public keys by name, each bound to the prefixes it may sign for.
//!
//! The manager hands the same set to every name router (which checks registrations) and every
//! signature verifier; a key that is removed here is removed there.

use crate::describe::Key;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use onym_crypto::{Certificate, PublicKey};
use onym_wire::Name;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most keys of one network.
pub const KEYS_MAX: usize = 4096;

/// Checks a key and its name.
///
/// # Errors
/// What is wrong.
pub fn check(name: &str, key: &Key) -> Result<(), String> {
    name.parse::<Name>().map_err(|e| format!("the name is no NDN name: {e}"))?;
    for prefix in &key.prefixes {
        prefix.parse::<Name>().map_err(|e| format!("prefix {prefix:?} is no NDN name: {e}"))?;
    }
    public(key).map(|_| ())
}

/// The public key itself, whatever it is written as.
fn public(key: &Key) -> Result<PublicKey, String> {
    let given = [&key.spki, &key.pem, &key.certificate];
    if given.iter().filter(|g| g.is_some()).count() != 1 {
        return Err("it needs exactly one of spki, pem, certificate".to_owned());
    }
    let base64 = |text: &str| {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        STANDARD.decode(text).map_err(|e| format!("it is no base64: {e}"))
    };
    if let Some(text) = &key.certificate {
        let certificate = Certificate::parse(&base64(text)?).map_err(|e| e.to_string())?;
        return Ok(certificate.public_key().clone());
    }
    let der = match (&key.spki, &key.pem) {
        (Some(text), _) => base64(text)?,
        (None, Some(pem)) => {
            let body = pem
                .split_once("-----BEGIN PUBLIC KEY-----")
                .and_then(|(_, rest)| rest.split_once("-----END PUBLIC KEY-----"))
                .ok_or("it is no PEM with BEGIN PUBLIC KEY")?;
            base64(body.0)?
        }
        (None, None) => Vec::new(),
    };
    PublicKey::from_spki(&der).map_err(|e| e.to_string())
}

/// The whole set as the control interface of a service takes it (`PUT /v1/keys`).
#[must_use]
pub fn body(keys: &BTreeMap<String, Key>) -> Value {
    let row = |(name, key): (&String, &Key)| {
        let mut row = json!({ "name": name, "prefixes": key.prefixes });
        for (form, text) in
            [("spki", &key.spki), ("pem", &key.pem), ("certificate", &key.certificate)]
        {
            if let Some(text) = text {
                row[form] = text.clone().into();
            }
        }
        row
    };
    json!({ "keys": keys.iter().map(row).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::{KeyType, PrivateKey};

    fn spki() -> String {
        STANDARD.encode(PrivateKey::generate(KeyType::Ecdsa).unwrap().spki())
    }

    #[test]
    fn a_key_is_taken_as_der_and_as_pem_and_nothing_else_is() {
        let text = spki();
        let good = Key { spki: Some(text.clone()), ..Key::default() };
        assert_eq!(check("/a/KEY/1", &good), Ok(()));
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
        let pem = Key { pem: Some(pem), prefixes: vec!["/a".into()], ..Key::default() };
        assert_eq!(check("/a/KEY/1", &pem), Ok(()));
        assert!(check("/a/KEY/1", &Key::default()).is_err());
        assert!(check("/a/%zz", &good).is_err());
        let both = Key { pem: good.spki.clone(), ..good.clone() };
        assert!(check("/a/KEY/1", &both).is_err());
        let bad = Key { spki: Some("AAAA".into()), ..Key::default() };
        assert!(check("/a/KEY/1", &bad).is_err());
    }

    #[test]
    fn the_body_names_each_key_with_what_it_may_sign_for() {
        let key = Key { spki: Some(spki()), prefixes: vec!["/a".into()], ..Key::default() };
        let body = body(&BTreeMap::from([("/a/KEY/1".to_owned(), key.clone())]));
        assert_eq!(body["keys"][0]["name"], "/a/KEY/1");
        assert_eq!(body["keys"][0]["spki"], key.spki.unwrap());
        assert_eq!(body["keys"][0]["prefixes"][0], "/a");
    }
}
