//! A key in a token of SoftHSM: made there, it signs, and does not leave.
//! Skipped where SoftHSM is not installed.

#![allow(clippy::unwrap_used)]

use onym_crypto::{Error as CryptoError, KeyType, PublicKey};
use onym_token::{Error, Place, generate, open};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";

/// This test again, as a child whose environment names the folder of its token: the module reads it
/// when it is loaded.
fn in_child(test: &str, then: impl FnOnce(&Path)) {
    if let Some(folder) = std::env::var_os("ONYM_TEST_TOKEN") {
        return then(Path::new(&folder));
    }
    if !Path::new(MODULE).exists() {
        eprintln!("skipped: {MODULE} is not there (Debian: softhsm2)");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens");
    fs::create_dir(&tokens).unwrap();
    let conf = dir.path().join("softhsm2.conf");
    fs::write(&conf, format!("directories.tokendir = {}\n", tokens.display())).unwrap();
    let init = ["--init-token", "--free", "--label", "onym", "--so-pin", "0000", "--pin", "1234"];
    let made = Command::new("softhsm2-util").args(init).env("SOFTHSM2_CONF", &conf).output();
    assert!(made.unwrap().status.success());
    let run = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("SOFTHSM2_CONF", &conf)
        .env("ONYM_TEST_TOKEN", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}{said}", String::from_utf8_lossy(&run.stdout));
}

fn place(token: &str, object: &[u8]) -> Place {
    Place { module: PathBuf::from(MODULE), token: token.into(), object: object.to_vec() }
}

#[test]
fn a_key_is_made_in_a_token_signs_there_and_does_not_leave() {
    in_child("a_key_is_made_in_a_token_signs_there_and_does_not_leave", |_| {
        let one = place("onym", &[1, 2]);
        let spki = generate(&one, "1234").unwrap();
        let public = PublicKey::from_spki(&spki).unwrap();
        let key = open(&one, "1234", &spki).unwrap();
        assert_eq!((key.key_type(), key.is_outside()), (KeyType::Ecdsa, true));
        for round in 0..20_u8 {
            let mut signature = vec![7];
            key.sign(&[b"two ", &[round]], &mut signature).unwrap();
            public.verify(3, &[&[b't', b'w', b'o', b' ', round]], &signature[1..]).unwrap();
        }
        assert!(matches!(key.to_pkcs8(), Err(CryptoError::Stays)));
        assert!(!format!("{key:?}").contains("1234"));
        // Another key under this name is not taken for it.
        let other = generate(&place("onym", &[9]), "1234").unwrap();
        assert!(matches!(open(&one, "1234", &other), Err(Error::Key(_))));
        assert!(matches!(open(&place("onym", &[3]), "1234", &spki), Err(Error::NoKey(_))));
        assert!(matches!(open(&place("other", &[1]), "1234", &spki), Err(Error::NoToken(_))));
    });
}

#[test]
fn a_wrong_pin_and_a_missing_module_are_told() {
    in_child("a_wrong_pin_and_a_missing_module_are_told", |_| {
        let error = generate(&place("onym", &[1]), "4321").unwrap_err();
        assert!(matches!(error, Error::Pin(_)), "{error}");
        let absent = Place { module: "/nowhere.so".into(), ..place("onym", &[1]) };
        let error = generate(&absent, "1234").unwrap_err();
        assert!(error.to_string().contains("/nowhere.so does not load"), "{error}");
    });
}
