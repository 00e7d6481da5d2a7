//! Keys as other implementations read them. They are not encrypted: the file's mode protects them.

use crate::kind::{OID_EC, OID_RSA};
use crate::{Certificate, Error, KeyType, PrivateKey, Signer, text};
use onym_wire::NameRef;
use onym_wire::data::DataBuilder;
use pkcs8::PrivateKeyInfo;
use std::fmt::Write as _;
use zeroize::Zeroizing;

/// The start of a SEC1 key of P-256, up to its number.
const SEC1_START: [u8; 7] = [0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];
/// What follows the number: the curve's name, and the head of the public point.
const SEC1_CURVE: [u8; 17] = [
    0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0xa1, 0x44, 0x03, 0x42,
    0x00,
];
/// Octets of a number of P-256, and of a point.
const NUMBER: usize = 32;
const POINT: usize = 65;

/// The traditional form of a key: PKCS#1 (RSA), SEC1 with the curve's name (P-256); Ed25519 has none
/// and stays PKCS#8.
///
/// # Errors
/// [`Error::Stays`], [`Error::Key`].
pub fn traditional(key: &PrivateKey) -> Result<Zeroizing<Vec<u8>>, Error> {
    let pkcs8 = key.to_pkcs8()?;
    let odd = || Error::Key("the library wrote it in another form".into());
    let info = PrivateKeyInfo::try_from(pkcs8.as_slice()).map_err(|_| odd())?;
    match info.algorithm.oid {
        OID_RSA => Ok(Zeroizing::new(info.private_key.to_vec())),
        OID_EC => {
            // SEQUENCE { INTEGER 1, OCTET STRING number, ... }: short lengths in front of it.
            let number = info.private_key.get(7..7 + NUMBER).ok_or_else(odd)?;
            if info.private_key.get(2..7) != Some(&SEC1_START[2..]) {
                return Err(odd());
            }
            let spki = key.spki();
            let point = spki.get(spki.len().saturating_sub(POINT)..).ok_or_else(odd)?;
            let mut out = Zeroizing::new(Vec::with_capacity(121));
            for part in [&SEC1_START[..], number, &SEC1_CURVE, point] {
                out.extend_from_slice(part);
            }
            Ok(out)
        }
        _ => Ok(pkcs8),
    }
}

/// A key and its certificate as ndnd keeps them in its folder: PEM blocks `NDN KEY` and `NDN CERT`.
///
/// # Errors
/// [`Error::Stays`], [`Error::Key`], [`Error::Library`].
pub fn ndnd(
    name: NameRef<'_>,
    key: &PrivateKey,
    certificate: Option<&Certificate>,
) -> Result<Zeroizing<String>, Error> {
    let content = traditional(key)?;
    let data = DataBuilder {
        content_type: super::CONTENT_SIGNING_KEY,
        ..DataBuilder::new(name, &content)
    };
    let mut wire = Zeroizing::new(Vec::new());
    Signer::key(key.clone(), name.to_name()).sign_data(&data, &mut wire)?;
    let kind = match key.key_type() {
        KeyType::Rsa => "Sha256WithRsa",
        KeyType::Ecdsa => "Sha256WithEcdsa",
        KeyType::Ed25519 => "Ed25519",
    };
    let mut out = Zeroizing::new(String::new());
    let body = Zeroizing::new(text::encode(&wire));
    // Writing to a String does not fail.
    let _ = write!(
        out,
        "-----BEGIN NDN KEY-----\nName: {name}\nSigType: {kind}\n\n{}-----END NDN KEY-----\n",
        body.as_str()
    );
    if let Some(certificate) = certificate {
        let _ = write!(
            out,
            "-----BEGIN NDN CERT-----\nName: {}\n\n{}-----END NDN CERT-----\n",
            certificate.name(),
            certificate.to_text()
        );
    }
    Ok(out)
}

/// A key as the TPM of ndn-cxx has it: the traditional form in base64. [`super::tpm_file`] names the
/// file.
///
/// # Errors
/// As [`traditional`].
pub fn tpm(key: &PrivateKey) -> Result<Zeroizing<String>, Error> {
    Ok(Zeroizing::new(text::encode(&traditional(key)?)))
}
