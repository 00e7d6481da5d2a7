//! Certificates: Data with a public key as content (certificate format v2).

use crate::verify::Signed;
use crate::{Error, PrivateKey, PublicKey, Signer, text};
use onym_wire::cert::{CertName, CertTime, ISSUER_SELF, ValidityPeriod, cert_name};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::name::Component;
use onym_wire::signature::{KeyLocator, SignatureInfo};
use onym_wire::{Name, NameRef, cert, types};

/// FreshnessPeriod of the certificates made here, in milliseconds: the value that the format
/// recommends.
const FRESHNESS_MS: u64 = 3_600_000;

const DAY_S: i64 = 86_400;

/// Seconds since the Unix epoch of a time in milliseconds.
fn seconds(now_ms: u64) -> i64 {
    i64::try_from(now_ms / 1000).unwrap_or(i64::MAX)
}

/// From one second before `now_ms`, so that a slightly late clock accepts it, for `days`.
#[must_use]
pub fn validity_of_days(now_ms: u64, days: u32) -> ValidityPeriod {
    let now = seconds(now_ms);
    let not_after = now.saturating_add(i64::from(days) * DAY_S);
    ValidityPeriod { not_before: CertTime(now - 1), not_after: CertTime(not_after) }
}

/// What an issuer decides about a certificate.
#[derive(Debug, Clone, Copy)]
pub struct Issue<'a> {
    /// The issuer's word for itself, a component of the certificate's name.
    pub issuer_id: Component<'a>,
    /// When the certificate is valid.
    pub validity: ValidityPeriod,
    /// Now, in milliseconds since the Unix epoch: the version of the certificate.
    pub now_ms: u64,
}

/// A certificate that was checked whole. Whether its signature counts and whether it is valid now
/// are questions of their own.
#[derive(Debug, Clone)]
pub struct Certificate {
    wire: Vec<u8>,
    name: Name,
    public_key: PublicKey,
    validity: ValidityPeriod,
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.wire == other.wire
    }
}

impl Eq for Certificate {}

impl Certificate {
    /// Reads a certificate.
    ///
    /// # Errors
    /// [`Error::Certificate`] when it is not Data, when name, content type, freshness or validity
    /// period are not those of a certificate; [`Error::Key`] when the key is not usable.
    pub fn parse(wire: &[u8]) -> Result<Self, Error> {
        let data = Data::parse(wire).map_err(|e| Error::Certificate(e.to_string()))?;
        Self::from_data(&data)
    }

    /// Reads the certificate that `data` is.
    ///
    /// # Errors
    /// As [`Certificate::parse`].
    pub fn from_data(data: &Data<'_>) -> Result<Self, Error> {
        let bad = |what: &str| Err(Error::Certificate(format!("{}: {what}", data.name)));
        if CertName::parse(data.name).is_none() {
            return bad("the name has not the form /identity/KEY/key-id/issuer/version");
        }
        if data.content_type != types::CONTENT_KEY {
            return bad("the content type is not KEY (2)");
        }
        if data.freshness_ms == 0 {
            return bad("there is no freshness period");
        }
        let Some(validity) = data.signature_info().validity_period else {
            return bad("there is no validity period");
        };
        let public_key = PublicKey::from_spki(data.content)?;
        Ok(Self { wire: data.wire.to_vec(), name: data.name.to_name(), public_key, validity })
    }

    /// Reads base64 text, plain or armoured.
    ///
    /// # Errors
    /// [`Error::Text`], and as [`Certificate::parse`].
    pub fn from_text(text: &str) -> Result<Self, Error> {
        Self::parse(&text::decode(text)?)
    }

    /// Base64 in lines of 64 characters.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::encode(&self.wire)
    }

    /// Makes a self-signed certificate of `key`, which is named `key_name`, valid for 20 years.
    ///
    /// # Errors
    /// [`Error::Certificate`] when `key_name` is not the name of a key; [`Error::Library`].
    pub fn self_signed(
        key_name: NameRef<'_>,
        key: &PrivateKey,
        now_ms: u64,
    ) -> Result<Self, Error> {
        Self::self_signed_for(key_name, key, now_ms, validity_of_days(now_ms, 20 * 365))
    }

    /// [`Certificate::self_signed`] with another validity.
    ///
    /// # Errors
    /// As [`Certificate::self_signed`].
    pub fn self_signed_for(
        key_name: NameRef<'_>,
        key: &PrivateKey,
        now_ms: u64,
        validity: ValidityPeriod,
    ) -> Result<Self, Error> {
        identity_of_key(key_name)?;
        let name = cert_name(key_name, ISSUER_SELF, now_ms);
        let info = SignatureInfo {
            key_locator: Some(KeyLocator::Name(key_name)),
            validity_period: Some(validity),
            ..SignatureInfo::of_kind(key.key_type().signature_type())
        };
        build(name.as_ref(), key.spki(), &info, |parts| {
            let mut signature = Vec::new();
            key.sign(&[parts], &mut signature).map(|()| signature)
        })
    }

    /// Makes a certificate for the key in `request`, signed by `signer`. The request is itself a
    /// certificate, signed with the key that it holds: that shows that its sender has the key.
    ///
    /// # Errors
    /// [`Error::Certificate`] when the request is not signed with its own key, or the signer has
    /// no key; [`Error::Library`].
    pub fn issue(request: &Self, signer: &Signer, issue: &Issue<'_>) -> Result<Self, Error> {
        if request.verify(&request.public_key).is_err() {
            let what = format!("{} is not signed with its own key", request.name);
            return Err(Error::Certificate(what));
        }
        if matches!(signer.signature_type(), 0 | 4 | 200) {
            return Err(Error::Certificate("it must be signed with a private key".into()));
        }
        let name = cert_name(request.key_name(), issue.issuer_id, issue.now_ms);
        let info = SignatureInfo { validity_period: Some(issue.validity), ..signer.info() };
        let sign = |signed: &[u8]| signer.sign(&[signed]);
        build(name.as_ref(), request.public_key.spki(), &info, sign)
    }

    /// The Data.
    #[must_use]
    pub fn wire(&self) -> &[u8] {
        &self.wire
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

    /// The identity whose key it is.
    #[must_use]
    pub fn identity(&self) -> NameRef<'_> {
        self.name().drop_last(4)
    }

    /// The public key.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// When it is valid.
    #[must_use]
    pub fn validity(&self) -> ValidityPeriod {
        self.validity
    }

    fn data(&self) -> Data<'_> {
        Data::parse(&self.wire).expect("invariant: it was parsed when it was made")
    }

    /// The number of its signature type.
    #[must_use]
    pub fn signature_type(&self) -> u64 {
        self.data().signature_info().kind
    }

    /// The name in its key locator: certificate or key of the issuer.
    #[must_use]
    pub fn issuer(&self) -> Option<NameRef<'_>> {
        Signed::data(&self.data()).signer()
    }

    /// Whether its key locator names its own key. Says nothing about the signature.
    #[must_use]
    pub fn is_self_signed(&self) -> bool {
        self.issuer().is_some_and(|issuer| self.key_name().is_prefix_of(issuer))
    }

    /// Checks its signature with the issuer's key.
    ///
    /// # Errors
    /// As [`PublicKey::verify`].
    pub fn verify(&self, issuer: &PublicKey) -> Result<(), Error> {
        Signed::data(&self.data()).verify_key(issuer)
    }

    /// Checks that `now_ms`, milliseconds since the Unix epoch, is within its validity period.
    ///
    /// # Errors
    /// [`Error::NotValidNow`].
    pub fn check_valid_at(&self, now_ms: u64) -> Result<(), Error> {
        if self.validity.contains(seconds(now_ms)) {
            return Ok(());
        }
        Err(Error::NotValidNow {
            name: self.name.to_string(),
            not_before: self.validity.not_before.to_string(),
            not_after: self.validity.not_after.to_string(),
        })
    }
}

fn build<S: AsRef<[u8]>>(
    name: NameRef<'_>,
    spki: &[u8],
    info: &SignatureInfo<'_>,
    sign: impl FnOnce(&[u8]) -> Result<S, Error>,
) -> Result<Certificate, Error> {
    let data = DataBuilder {
        content_type: types::CONTENT_KEY,
        freshness_ms: FRESHNESS_MS,
        ..DataBuilder::new(name, spki)
    };
    let mut wire = Vec::new();
    data.write(&mut wire, info, sign)?;
    Certificate::parse(&wire)
}

/// The identity in the name of a key.
///
/// # Errors
/// [`Error::Certificate`] when `name` has not the form `/identity/KEY/key-id`.
pub fn identity_of_key(name: NameRef<'_>) -> Result<NameRef<'_>, Error> {
    cert::identity_of_key(name).ok_or_else(|| {
        Error::Certificate(format!("{name} is not the name of a key: /identity/KEY/key-id"))
    })
}

/// The name of the key that `name` means when it is the name of a key or of a certificate, with or
/// without version, as key locators are.
#[must_use]
pub fn key_of_locator(name: NameRef<'_>) -> Option<NameRef<'_>> {
    // The last KEY counts: an identity may hold such a component itself.
    (0..3_usize).rev().find_map(|behind| {
        let key = name.drop_last(behind);
        (key.len() + behind == name.len() && cert::identity_of_key(key).is_some()).then_some(key)
    })
}
