//! Keys as other implementations keep them, read and never changed: ndnd's key files, and the files
//! of ndn-cxx's and python-ndn's TPM.

pub mod pib;
mod sqlite;
pub mod write;

use crate::cert::identity_of_key;
use crate::kind::{OID_EC, OID_RSA};
use crate::{Certificate, Error, PrivateKey, sha256, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use onym_wire::data::Data;
use onym_wire::{Name, NameRef};
use pkcs8::der::Encode as _;
use pkcs8::der::asn1::AnyRef;
use pkcs8::der::oid::ObjectIdentifier;
use pkcs8::spki::AlgorithmIdentifierRef;
use pkcs8::{PrivateKeyInfo, SecretDocument};
use std::fmt::Write as _;

/// ContentType of a Data that carries a private key (ndnd).
const CONTENT_SIGNING_KEY: u64 = 9;
/// Most blocks of one file.
const BLOCKS_MAX: usize = 256;
/// The curve P-256.
const OID_P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");

/// What a file of keys holds.
#[derive(Debug)]
pub enum Item {
    /// A private key, by its name.
    Key(Name, Box<PrivateKey>),
    /// A certificate.
    Certificate(Box<Certificate>),
}

/// Reads a file of ndnd's key folder: one packet as it is, or PEM blocks `NDN KEY` and `NDN CERT`.
///
/// # Errors
/// [`Error::Text`], [`Error::Key`], [`Error::Certificate`].
pub fn ndnd(octets: &[u8]) -> Result<Vec<Item>, Error> {
    const BEGIN: &str = "-----BEGIN ";
    if octets.first() == Some(&6) {
        return Ok(vec![item(octets)?]);
    }
    let text = std::str::from_utf8(octets).map_err(|_| Error::Text("it is no text".into()))?;
    let mut items = Vec::new();
    for (at, _) in text.match_indices(BEGIN) {
        if items.len() >= BLOCKS_MAX {
            return Err(Error::Text(format!("it has more than {BLOCKS_MAX} blocks")));
        }
        let block = text.get(at..).unwrap_or_default();
        let end =
            block.find("-----END ").ok_or_else(|| Error::Text("a block has no end".into()))?;
        items.push(item(&text::decode(block.get(..end).unwrap_or_default())?)?);
    }
    if items.is_empty() {
        return Err(Error::Text("it has no block of a key or certificate".into()));
    }
    Ok(items)
}

fn item(wire: &[u8]) -> Result<Item, Error> {
    let data = Data::parse(wire).map_err(|e| Error::Key(e.to_string()))?;
    if data.content_type != CONTENT_SIGNING_KEY {
        return Ok(Item::Certificate(Box::new(Certificate::from_data(&data)?)));
    }
    identity_of_key(data.name)?;
    let key = private_key(data.content)?;
    // The key signed the packet that carries it: what does not verify was changed.
    crate::verify::data(&data, &key.public_key()?)?;
    Ok(Item::Key(data.name.to_name(), Box::new(key)))
}

/// Reads an unencrypted private key in DER, whatever its form: PKCS#8, PKCS#1 (RSA) or SEC1 (P-256).
///
/// # Errors
/// [`Error::Key`].
pub fn private_key(der: &[u8]) -> Result<PrivateKey, Error> {
    if PrivateKeyInfo::try_from(der).is_ok() {
        return PrivateKey::from_pkcs8(der);
    }
    let rsa = AlgorithmIdentifierRef { oid: OID_RSA, parameters: Some(AnyRef::NULL) };
    let ec = AlgorithmIdentifierRef { oid: OID_EC, parameters: Some(AnyRef::from(&OID_P256)) };
    for algorithm in [ec, rsa] {
        let info = PrivateKeyInfo::new(algorithm, der);
        let Ok(document) = info.to_der().map(|der| SecretDocument::try_from(der.as_slice())) else {
            continue;
        };
        if let Ok(document) = document
            && let Ok(key) = PrivateKey::from_pkcs8(document.as_bytes())
        {
            return Ok(key);
        }
    }
    Err(Error::Key("it is no PKCS#8, PKCS#1 or SEC1 key of P-256, Ed25519 or RSA".into()))
}

/// Reads a file of ndn-cxx's TPM: base64 of a private key, with any line breaks.
///
/// # Errors
/// [`Error::Text`], [`Error::Key`].
pub fn tpm(text: &str) -> Result<PrivateKey, Error> {
    let body: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let der = STANDARD.decode(body).map_err(|e| Error::Text(format!("not base64: {e}")))?;
    private_key(&der)
}

/// The name of a key's file in ndn-cxx's TPM.
#[must_use]
pub fn tpm_file(key_name: NameRef<'_>) -> String {
    let mut wire = Vec::new();
    key_name.write_tlv(&mut wire);
    let mut name = String::with_capacity(72);
    for octet in sha256(&[&wire]) {
        let _ = write!(name, "{octet:02x}");
    }
    name + ".privkey"
}
