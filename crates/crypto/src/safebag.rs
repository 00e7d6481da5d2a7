//! Safe bags: a certificate and its private key under a passphrase, one packet to carry them.

use crate::{Certificate, Entropy, Error, PrivateKey, seal};
use onym_wire::tlv::{self, Element, Reader};
use onym_wire::types;

/// A safe bag that was read or made; its private key is still encrypted.
#[derive(Debug, Clone)]
pub struct SafeBag {
    wire: Vec<u8>,
    certificate: Certificate,
    sealed: Vec<u8>,
}

impl SafeBag {
    /// Encrypts `key` under `passphrase` and puts it beside its `certificate`.
    ///
    /// # Errors
    /// [`Error::SafeBag`] when the certificate is about another key.
    pub fn seal(
        certificate: Certificate,
        key: &PrivateKey,
        passphrase: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<Self, Error> {
        check_pair(&certificate, key)?;
        let sealed = seal::encrypt(&key.to_pkcs8()?, passphrase, entropy)?;
        let mut wire = Vec::new();
        tlv::put_nested(&mut wire, types::SAFE_BAG, |out| {
            out.extend_from_slice(certificate.wire());
            tlv::put_tlv(out, types::ENCRYPTED_KEY, &sealed);
        });
        Ok(Self { wire, certificate, sealed })
    }

    /// Reads a SafeBag element.
    ///
    /// # Errors
    /// [`Error::SafeBag`], [`Error::Certificate`], [`Error::Key`].
    pub fn parse(wire: &[u8]) -> Result<Self, Error> {
        let malformed = |e: tlv::Malformed| Error::SafeBag(e.to_string());
        let outer = Element::parse_as(wire, types::SAFE_BAG).map_err(malformed)?;
        let mut reader = Reader::new(outer.value);
        let data = reader.expect(types::DATA).map_err(malformed)?;
        let sealed = reader.expect(types::ENCRYPTED_KEY).map_err(malformed)?;
        let certificate = Certificate::parse(data.wire)?;
        Ok(Self { wire: wire.to_vec(), certificate, sealed: sealed.value.to_vec() })
    }

    /// The element.
    #[must_use]
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// The certificate.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Decrypts the private key.
    ///
    /// # Errors
    /// [`Error::SafeBag`] when the passphrase is wrong or the key is not that of the certificate.
    pub fn open(&self, passphrase: &[u8]) -> Result<PrivateKey, Error> {
        let key = PrivateKey::from_pkcs8(&seal::decrypt(&self.sealed, passphrase)?)?;
        check_pair(&self.certificate, &key)?;
        Ok(key)
    }
}

/// Compares what the keys are, not how they are written: an SPKI can be encoded in several ways.
fn check_pair(certificate: &Certificate, key: &PrivateKey) -> Result<(), Error> {
    const PROBE: &[u8] = b"the same key";
    let mut signature = Vec::new();
    key.sign(&[PROBE], &mut signature)?;
    let kind = key.key_type().signature_type();
    certificate.public_key().verify(kind, &[PROBE], &signature).map_err(|_| {
        Error::SafeBag(format!("the certificate {} is about another key", certificate.name()))
    })
}
