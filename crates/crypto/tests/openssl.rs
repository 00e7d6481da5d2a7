//! The same keys, signatures and sealed keys as OpenSSL has them. Skipped where there is no
//! `openssl` program.

#![allow(clippy::unwrap_used)] // helpers of tests

use onym_crypto::{KeyType, PrivateKey, PublicKey, SystemEntropy, seal};
use std::path::Path;
use std::process::Command;

/// Runs `openssl`; `None` when it is not installed.
fn openssl(dir: &Path, args: &str) -> Option<Vec<u8>> {
    let output = match Command::new("openssl").args(args.split(' ')).current_dir(dir).output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: there is no openssl program");
            return None;
        }
        other => other.unwrap(),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {args}: {said}");
    Some(output.stdout)
}

#[test]
fn openssl_opens_what_was_sealed_here() {
    let dir = tempfile::tempdir().unwrap();
    for kind in [KeyType::Ecdsa, KeyType::Ed25519, KeyType::Rsa] {
        let key = PrivateKey::generate(kind).unwrap();
        let sealed =
            seal::encrypt(&key.to_pkcs8().unwrap(), b"secret", &mut SystemEntropy).unwrap();
        std::fs::write(dir.path().join("sealed.der"), &sealed).unwrap();
        let args = "pkey -inform DER -in sealed.der -passin pass:secret -pubout -outform DER";
        let Some(spki) = openssl(dir.path(), args) else { return };
        assert_eq!(spki, key.spki(), "{kind:?}");
    }
}

#[test]
fn what_openssl_sealed_opens_here() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, generate) in [
        (KeyType::Ecdsa, "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem"),
        (KeyType::Ed25519, "genpkey -algorithm ED25519 -out key.pem"),
        (KeyType::Rsa, "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem"),
    ] {
        if openssl(dir.path(), generate).is_none() {
            return;
        }
        let args = "pkcs8 -topk8 -in key.pem -outform DER -passout pass:secret -v2 aes-256-cbc";
        let sealed = openssl(dir.path(), args).unwrap();
        let key = PrivateKey::from_pkcs8(&seal::decrypt(&sealed, b"secret").unwrap()).unwrap();
        assert_eq!(key.key_type(), kind);
        let spki = openssl(dir.path(), "pkey -in key.pem -pubout -outform DER").unwrap();
        assert_eq!(key.spki(), spki);
        // As OpenSSL 1 wrote it: PBKDF2 without a PRF means HMAC-SHA-1, and a cipher of its time.
        for old in ["aes-256-cbc -v2prf hmacWithSHA1", "des3 -v2prf hmacWithSHA1 -iter 1000"] {
            let args = "pkcs8 -topk8 -in key.pem -outform DER -passout pass:secret -v2 ";
            let sealed = openssl(dir.path(), &format!("{args}{old}")).unwrap();
            let read = PrivateKey::from_pkcs8(&seal::decrypt(&sealed, b"secret").unwrap()).unwrap();
            assert_eq!(read.spki(), spki, "{old}");
            assert!(seal::decrypt(&sealed, b"other").is_err(), "negative 41: {old}");
        }
    }
}

#[test]
fn signatures_verify_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let message = b"the signed portion";
    std::fs::write(dir.path().join("message"), message).unwrap();
    for kind in [KeyType::Ecdsa, KeyType::Rsa, KeyType::Ed25519] {
        let key = PrivateKey::generate(kind).unwrap();
        let mut signature = Vec::new();
        key.sign(&[b"the signed ", b"portion"], &mut signature).unwrap();
        std::fs::write(dir.path().join("private.der"), key.to_pkcs8().unwrap()).unwrap();
        std::fs::write(dir.path().join("signature"), &signature).unwrap();
        // Ed25519 signs the message itself, the others its digest.
        let (raw, digest) =
            if kind == KeyType::Ed25519 { (" -rawin", "") } else { (" -rawin", " -digest sha256") };
        let verify = format!(
            "pkeyutl -verify{raw}{digest} -inkey private.der -keyform DER -in message -sigfile signature"
        );
        if openssl(dir.path(), &verify).is_none() {
            return;
        }
        let sign =
            format!("pkeyutl -sign{raw}{digest} -inkey private.der -keyform DER -in message");
        let theirs = openssl(dir.path(), &sign).unwrap();
        let public = PublicKey::from_spki(key.spki()).unwrap();
        public.verify(kind.signature_type(), &[message], &theirs).unwrap();
        assert!(public.verify(kind.signature_type(), &[b"other"], &theirs).is_err());
    }
}

#[test]
fn a_key_with_written_out_curve_parameters_is_read() {
    // Certificates made long ago hold the parameters of P-256 instead of its name.
    let dir = tempfile::tempdir().unwrap();
    let args = "ecparam -name prime256v1 -genkey -noout -param_enc explicit -out key.pem";
    if openssl(dir.path(), args).is_none() {
        return;
    }
    let spki = openssl(dir.path(), "pkey -in key.pem -pubout -outform DER").unwrap();
    assert!(spki.len() > 200, "the parameters are written out");
    let public = PublicKey::from_spki(&spki).unwrap();
    std::fs::write(dir.path().join("message"), b"m").unwrap();
    let sign = "pkeyutl -sign -rawin -digest sha256 -inkey key.pem -in message";
    let signature = openssl(dir.path(), sign).unwrap();
    public.verify(3, &[b"m"], &signature).unwrap();
}
