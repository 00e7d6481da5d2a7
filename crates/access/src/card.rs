//! Reader's cards: certificates of X25519 keys, which cannot sign for themselves.
//!
//! A card is a certificate in the format of version 2 whose content is the SubjectPublicKeyInfo of an
//! X25519 point (RFC 8410). A signing key of the same identity signs it.

use crate::Error;
use crate::envelope::{KEY_LEN, PublicPoint, ReadingKey};
use onym_crypto::cert::key_of_locator;
use onym_crypto::verify::Signed;
use onym_crypto::{PublicKey, Signer, text};
use onym_wire::cert::{CertName, ValidityPeriod, cert_name, identity_of_key};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::signature::SignatureInfo;
use onym_wire::{Component, Name, NameRef, types};
use zeroize::Zeroizing;

/// What stands in front of the point in a SubjectPublicKeyInfo.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00];
/// What stands in front of the seed in a PrivateKeyInfo.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x04, 0x22, 0x04, 0x20,
];
/// Issuer id of cards.
const ISSUER: Component<'static> = Component::generic(b"reader");
const FRESHNESS_MS: u64 = 3_600_000;

/// The private key `key` as PKCS#8, as OpenSSL writes it.
#[must_use]
pub fn to_pkcs8(key: &ReadingKey) -> Zeroizing<Vec<u8>> {
    let mut der = Zeroizing::new(Vec::with_capacity(PKCS8.len() + KEY_LEN));
    der.extend_from_slice(&PKCS8);
    der.extend_from_slice(key.seed());
    der
}

/// Reads a private key of X25519 from PKCS#8.
///
/// # Errors
/// [`Error::NotReadable`].
pub fn from_pkcs8(der: &[u8]) -> Result<ReadingKey, Error> {
    ReadingKey::from_seed(der.strip_prefix(&PKCS8).ok_or(Error::NotReadable)?)
}

/// Whose X25519 key it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    wire: Vec<u8>,
    name: Name,
    point: PublicPoint,
    validity: ValidityPeriod,
}

impl Card {
    /// Makes the card of the key `key_name`, signed by another key of its identity.
    ///
    /// # Errors
    /// [`Error::Card`] when `key_name` is not the name of a key, or the signer has no key;
    /// [`Error::Crypto`].
    pub fn issue(
        key_name: NameRef<'_>,
        point: PublicPoint,
        signer: &Signer,
        validity: ValidityPeriod,
        now_ms: u64,
    ) -> Result<Self, Error> {
        let identity = identity_of_key(key_name).ok_or_else(|| Error::Name(key_name.to_name()))?;
        let own = signer.locator().and_then(key_of_locator).and_then(identity_of_key);
        if own != Some(identity) {
            let why = "a key of the same identity has to sign it";
            return Err(Error::Card(key_name.to_name(), why));
        }
        let name = cert_name(key_name, ISSUER, now_ms);
        let content = [&SPKI[..], &point.0].concat();
        let info = SignatureInfo { validity_period: Some(validity), ..signer.info() };
        let data = DataBuilder {
            content_type: types::CONTENT_KEY,
            freshness_ms: FRESHNESS_MS,
            ..DataBuilder::new(name.as_ref(), &content)
        };
        let mut wire = Vec::new();
        data.write(&mut wire, &info, |signed| signer.sign(&[signed]))?;
        Self::parse(&wire)
    }

    /// Reads one. Who signed it is a question of its own.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Card`].
    pub fn parse(wire: &[u8]) -> Result<Self, Error> {
        let data = Data::parse(wire)?;
        let bad = |why| Error::Card(data.name.to_name(), why);
        if CertName::parse(data.name).is_none() || data.content_type != types::CONTENT_KEY {
            return Err(bad("it has not the form of a certificate"));
        }
        let point = data.content.strip_prefix(&SPKI).and_then(|point| point.try_into().ok());
        let point = PublicPoint(point.ok_or_else(|| bad("it holds no key of X25519"))?);
        let info = data.signature_info();
        let validity = info.validity_period.ok_or_else(|| bad("it has no validity period"))?;
        let card = Self { wire: data.wire.to_vec(), name: data.name.to_name(), point, validity };
        if card.signer_key().and_then(identity_of_key) != Some(card.identity()) {
            return Err(bad("another identity signed it"));
        }
        Ok(card)
    }

    /// Reads base64 text.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and [`Error::Crypto`] when it is no base64.
    pub fn from_text(card: &str) -> Result<Self, Error> {
        Self::parse(&text::decode(card)?)
    }

    /// Base64 in lines of 64 characters.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::encode(&self.wire)
    }

    fn data(&self) -> Data<'_> {
        Data::parse(&self.wire).expect("invariant: it was parsed when it was made")
    }

    fn signer_key(&self) -> Option<NameRef<'_>> {
        self.issuer().and_then(key_of_locator)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    /// The name of the key that it is about.
    #[must_use]
    pub fn key_name(&self) -> NameRef<'_> {
        self.name().drop_last(2)
    }

    /// Whose key it is.
    #[must_use]
    pub fn identity(&self) -> NameRef<'_> {
        self.name().drop_last(4)
    }

    /// The public point.
    #[must_use]
    pub fn point(&self) -> PublicPoint {
        self.point
    }

    /// When it is valid.
    #[must_use]
    pub fn validity(&self) -> ValidityPeriod {
        self.validity
    }

    /// The name in its key locator: certificate or key of the one who signed it.
    #[must_use]
    pub fn issuer(&self) -> Option<NameRef<'_>> {
        Signed::data(&self.data()).signer()
    }

    /// Checks its signature and that it is valid at `now_ms`.
    ///
    /// # Errors
    /// [`Error::Crypto`], [`Error::Card`] when it has expired or is not valid yet.
    pub fn verify(&self, key: &PublicKey, now_ms: u64) -> Result<(), Error> {
        Signed::data(&self.data()).verify_key(key)?;
        let now_s = i64::try_from(now_ms / 1000).unwrap_or(i64::MAX);
        if self.validity.contains(now_s) {
            return Ok(());
        }
        let expired = now_s > self.validity.not_after.0;
        let why = if expired { "it has expired" } else { "it is not valid yet" };
        Err(Error::Card(self.name.clone(), why))
    }
}
