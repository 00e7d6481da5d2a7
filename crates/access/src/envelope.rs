//! The authenticated form: X25519, HKDF-SHA-256 and AES-256-GCM.
//!
//! `Envelope = 245{ 129 form, [131 ephemeral point], 133 nonce, 135 ciphertext and tag, [Name] }`.
//! Form 1 is encrypted for the owner of a point, form 2 with a content key. The name of the Data
//! that carries it is authenticated.

use crate::{Error, Trusted, names};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, UnparsedPublicKey, X25519};
use aws_lc_rs::encoding::{AsBigEndian, Curve25519SeedBin};
use aws_lc_rs::hkdf::{self, HKDF_SHA256};
use onym_crypto::Entropy;
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{Component, Name, NameRef, types};
use std::fmt;
use zeroize::Zeroizing;

/// Type of an envelope.
pub const ENVELOPE: u32 = 245;
const FORM: u32 = 129;
const EPHEMERAL: u32 = 131;
const NONCE: u32 = 133;
const PAYLOAD: u32 = 135;

const FOR_KEY: u64 = 1;
const BY_CONTENT_KEY: u64 = 2;

/// Octets of points, private keys and content keys.
pub const KEY_LEN: usize = 32;
const NONCE_LEN: usize = 12;
/// Contents that one content key seals, at most: its nonces are random.
const SEALED_MAX: u32 = 1 << 28;
/// What the derived key is for.
const PURPOSE: &[u8] = b"onym access 1";

/// A public point of X25519.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicPoint(pub [u8; KEY_LEN]);

/// A private key of X25519, of a group or a member. It is not printed, and overwritten when dropped.
#[derive(Clone)]
pub struct ReadingKey {
    seed: Zeroizing<[u8; KEY_LEN]>,
    public: PublicPoint,
}

impl fmt::Debug for ReadingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadingKey({:?})", self.public)
    }
}

impl ReadingKey {
    /// A new one, from the randomness of the cryptographic library.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn generate() -> Result<Self, Error> {
        let key = agreement::PrivateKey::generate(&X25519).map_err(|_| Error::Library)?;
        let seed: Curve25519SeedBin<'_> = key.as_be_bytes().map_err(|_| Error::Library)?;
        Self::from_seed(seed.as_ref())
    }

    /// The one of these 32 octets.
    ///
    /// # Errors
    /// [`Error::NotReadable`] when they are not 32.
    pub fn from_seed(seed: &[u8]) -> Result<Self, Error> {
        let seed: [u8; KEY_LEN] = seed.try_into().map_err(|_| Error::NotReadable)?;
        let seed = Zeroizing::new(seed);
        let key = Self::key(&seed)?;
        let public = key.compute_public_key().map_err(|_| Error::Library)?;
        let public = public.as_ref().try_into().map_err(|_| Error::Library)?;
        Ok(Self { seed, public: PublicPoint(public) })
    }

    fn key(seed: &[u8; KEY_LEN]) -> Result<agreement::PrivateKey, Error> {
        agreement::PrivateKey::from_private_key(&X25519, seed).map_err(|_| Error::NotReadable)
    }

    /// The 32 octets that it is, to be kept where nobody else reads.
    #[must_use]
    pub fn seed(&self) -> &[u8; KEY_LEN] {
        &self.seed
    }

    /// Its public point.
    #[must_use]
    pub fn public(&self) -> PublicPoint {
        self.public
    }

    /// The key shared with the owner of `peer`, in a message from `ephemeral` to `to`.
    fn shared(
        &self,
        peer: PublicPoint,
        ephemeral: PublicPoint,
        to: PublicPoint,
    ) -> Result<LessSafeKey, Error> {
        let own = Self::key(&self.seed)?;
        let peer = UnparsedPublicKey::new(&X25519, peer.0);
        // A point of low order gives no secret: the library refuses it.
        agreement::agree(&own, peer, Error::NotReadable, |secret| {
            let mut key = Zeroizing::new([0; KEY_LEN]);
            hkdf::Salt::new(HKDF_SHA256, PURPOSE)
                .extract(secret)
                .expand(&[&ephemeral.0, &to.0], KeyLen)
                .and_then(|okm| okm.fill(key.as_mut()))
                .map_err(|_| Error::Library)?;
            aead(&key)
        })
    }
}

struct KeyLen;

impl hkdf::KeyType for KeyLen {
    fn len(&self) -> usize {
        KEY_LEN
    }
}

fn aead(key: &[u8; KEY_LEN]) -> Result<LessSafeKey, Error> {
    let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| Error::Library)?;
    Ok(LessSafeKey::new(key))
}

/// An envelope, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    form: u64,
    ephemeral: Option<PublicPoint>,
    nonce: [u8; NONCE_LEN],
    payload: Vec<u8>,
    /// The content key that opens it.
    pub key_name: Option<Name>,
}

impl Envelope {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        let outer = tlv::Element::parse_as(content, ENVELOPE)?;
        let mut reader = Reader::new(outer.value);
        let form = reader.expect(FORM)?.nni()?;
        let ephemeral = reader.optional(EPHEMERAL)?.map(|e| e.value.try_into()).transpose();
        let ephemeral = ephemeral.map_err(|_| Malformed::Length(EPHEMERAL))?.map(PublicPoint);
        let nonce = reader.expect(NONCE)?.value.try_into();
        let nonce = nonce.map_err(|_| Malformed::Length(NONCE))?;
        let payload = reader.expect(PAYLOAD)?.value.to_vec();
        let key_name = reader.optional(types::NAME)?.map(|e| NameRef::parse(e.wire)).transpose()?;
        let key_name = key_name.map(NameRef::to_name);
        for element in reader {
            let typ = element?.typ;
            if tlv::is_critical(typ) {
                return Err(Malformed::UnknownCritical(typ).into());
            }
        }
        Ok(Self { form, ephemeral, nonce, payload, key_name })
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::put_nested(&mut out, ENVELOPE, |out| {
            tlv::put_nni_tlv(out, FORM, self.form);
            if let Some(point) = &self.ephemeral {
                tlv::put_tlv(out, EPHEMERAL, &point.0);
            }
            tlv::put_tlv(out, NONCE, &self.nonce);
            tlv::put_tlv(out, PAYLOAD, &self.payload);
            if let Some(name) = &self.key_name {
                name.as_ref().write_tlv(out);
            }
        });
        out
    }
}

/// What is authenticated: the name of the Data.
fn bound_to(name: NameRef<'_>) -> Aad<Vec<u8>> {
    let mut octets = Vec::with_capacity(name.wire_len());
    name.write_tlv(&mut octets);
    Aad::from(octets)
}

fn seal(
    key: &LessSafeKey,
    name: NameRef<'_>,
    plain: &[u8],
    entropy: &mut dyn Entropy,
) -> Result<([u8; NONCE_LEN], Vec<u8>), Error> {
    let mut nonce = [0; NONCE_LEN];
    entropy.fill(&mut nonce);
    let mut payload = plain.to_vec();
    let unique = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(unique, bound_to(name), &mut payload)
        .map_err(|_| Error::Library)?;
    Ok((nonce, payload))
}

fn open(
    key: &LessSafeKey,
    name: NameRef<'_>,
    envelope: Envelope,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let mut plain = Zeroizing::new(envelope.payload);
    let nonce = Nonce::assume_unique_for_key(envelope.nonce);
    let opened = key.open_in_place(nonce, bound_to(name), &mut plain);
    let len = opened.map_err(|_| Error::NotReadable)?.len();
    plain.truncate(len);
    Ok(plain)
}

/// The content of the Data `name` that carries `secret` to the owner of `to`.
///
/// # Errors
/// [`Error::Library`]; [`Error::NotReadable`] when `to` is a point that shares no secret.
pub fn seal_for(
    to: PublicPoint,
    name: NameRef<'_>,
    secret: &[u8],
    entropy: &mut dyn Entropy,
) -> Result<Vec<u8>, Error> {
    let ephemeral = ReadingKey::generate()?;
    let key = ephemeral.shared(to, ephemeral.public(), to)?;
    let (nonce, payload) = seal(&key, name, secret, entropy)?;
    let ephemeral = Some(ephemeral.public());
    Ok(Envelope { form: FOR_KEY, ephemeral, nonce, payload, key_name: None }.write())
}

/// What a Data that was verified carries to the owner of `key`.
///
/// # Errors
/// [`Error::NotReadable`], [`Error::Malformed`].
pub fn open_with(key: &ReadingKey, data: &Trusted<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
    let envelope = Envelope::read(data.content())?;
    let (FOR_KEY, Some(ephemeral)) = (envelope.form, envelope.ephemeral) else {
        return Err(Error::NotReadable);
    };
    open(&key.shared(ephemeral, ephemeral, key.public())?, data.name(), envelope)
}

/// The key that content is encrypted with.
pub struct ContentKey {
    name: Name,
    octets: Zeroizing<[u8; KEY_LEN]>,
    key: LessSafeKey,
    sealed: u32,
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentKey({})", self.name)
    }
}

impl ContentKey {
    /// A new one; `ckid` tells it from others under `prefix`.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(
        prefix: NameRef<'_>,
        ckid: Component<'_>,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, Error> {
        let mut octets = Zeroizing::new([0; KEY_LEN]);
        entropy.fill(octets.as_mut());
        Self::of(names::ck(prefix, ckid), octets)
    }

    fn of(name: Name, octets: Zeroizing<[u8; KEY_LEN]>) -> Result<Self, Error> {
        let key = aead(&octets)?;
        Ok(Self { name, octets, key, sealed: 0 })
    }

    /// `/<prefix>/CK/<ckid>`.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    /// Name and content of the Data that carries this key for a group, whose public key the Data `kek`
    /// is.
    ///
    /// # Errors
    /// [`Error::Group`], [`Error::Name`], [`Error::NotReadable`].
    pub fn for_group(
        &self,
        kek: &Trusted<'_>,
        group: NameRef<'_>,
        entropy: &mut dyn Entropy,
    ) -> Result<(Name, Vec<u8>), Error> {
        names::kid(kek.name(), group)?;
        let point = kek.content().try_into().map_err(|_| Error::NotReadable)?;
        let name = names::ck_for(self.name(), kek.name());
        let content = seal_for(PublicPoint(point), name.as_ref(), self.octets.as_ref(), entropy)?;
        Ok((name, content))
    }

    /// The key that the Data `ck` carries for `group`; `keys` finds the group's private key by its id.
    ///
    /// # Errors
    /// [`Error::Group`] when it is for another group; [`Error::NotReadable`].
    pub fn open<'k>(
        ck: &Trusted<'_>,
        group: NameRef<'_>,
        keys: impl FnOnce(Component<'_>) -> Option<&'k ReadingKey>,
    ) -> Result<Self, Error> {
        let (name, kid) = names::of_ck(ck.name(), group)?;
        let key = keys(kid).ok_or(Error::NotReadable)?;
        let octets = open_with(key, ck)?;
        let octets = octets.as_slice().try_into().map_err(|_| Error::NotReadable)?;
        Self::of(name.to_name(), Zeroizing::new(octets))
    }

    /// The content of the Data `name` that holds `plain`.
    ///
    /// # Errors
    /// [`Error::UsedUp`], [`Error::Library`].
    pub fn seal(
        &mut self,
        name: NameRef<'_>,
        plain: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<u8>, Error> {
        if self.sealed >= SEALED_MAX {
            return Err(Error::UsedUp);
        }
        self.sealed += 1;
        let (nonce, payload) = seal(&self.key, name, plain, entropy)?;
        let key_name = Some(self.name.clone());
        let form = BY_CONTENT_KEY;
        Ok(Envelope { form, ephemeral: None, nonce, payload, key_name }.write())
    }

    /// What a Data that was verified holds.
    ///
    /// # Errors
    /// [`Error::NotReadable`], [`Error::Malformed`].
    pub fn open_content(&self, data: &Trusted<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
        let envelope = Envelope::read(data.content())?;
        let is_ours = envelope.key_name.as_ref() == Some(&self.name);
        if envelope.form != BY_CONTENT_KEY || !is_ours {
            return Err(Error::NotReadable);
        }
        open(&self.key, data.name(), envelope)
    }
}
