//! The key that a client and an authority share, and what is encrypted with it.
//!
//! ECDH on P-256 gives 32 octets, HKDF-SHA-256 with the salt and the request's identifier a key of
//! AES-128-GCM. The identifier is the associated data of every message.

use crate::Error;
use crate::id::RequestId;
use crate::message::Sealed;
use crate::number::{IV_LEN, POINT_LEN, SALT_LEN};
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, ECDH_P256, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::hkdf::{self, HKDF_SHA256};
use onym_crypto::Entropy;
use std::fmt;
use zeroize::Zeroizing;

const KEY_LEN: usize = 16;
const BLOCK_LEN: usize = 16;
/// Messages of one request in one direction, at most.
const MESSAGES_MAX: usize = 64;

/// One side of a key exchange, for one request.
pub struct KeyExchange {
    key: PrivateKey,
    public: [u8; POINT_LEN],
}

impl fmt::Debug for KeyExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyExchange")
    }
}

impl KeyExchange {
    /// A new one, from the randomness of the cryptographic library.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn generate() -> Result<Self, Error> {
        Self::of(PrivateKey::generate(&ECDH_P256).map_err(|_| Error::Library)?)
    }

    /// The one of this scalar, for vectors.
    ///
    /// # Errors
    /// [`Error::Library`] when it is none of P-256.
    pub fn from_scalar(scalar: &[u8]) -> Result<Self, Error> {
        Self::of(PrivateKey::from_private_key(&ECDH_P256, scalar).map_err(|_| Error::Library)?)
    }

    fn of(key: PrivateKey) -> Result<Self, Error> {
        let public = key.compute_public_key().map_err(|_| Error::Library)?;
        let public = public.as_ref().try_into().map_err(|_| Error::Library)?;
        Ok(Self { key, public })
    }

    /// The public point, uncompressed.
    #[must_use]
    pub fn public(&self) -> &[u8; POINT_LEN] {
        &self.public
    }

    /// The session with the owner of the point `peer`.
    ///
    /// # Errors
    /// [`Error::Point`] when that is no uncompressed point of the curve; [`Error::Library`].
    pub fn session(
        &self,
        peer: &[u8],
        salt: &[u8; SALT_LEN],
        id: RequestId,
        entropy: &mut dyn Entropy,
    ) -> Result<Session, Error> {
        // The library takes compressed points and DER as well; the protocol does not.
        if peer.len() != POINT_LEN || peer.first() != Some(&4) {
            return Err(Error::Point);
        }
        let peer = UnparsedPublicKey::new(&ECDH_P256, peer);
        let mut random = [0; 8];
        entropy.fill(&mut random);
        agreement::agree(&self.key, peer, Error::Point, |shared| {
            let mut key = Zeroizing::new([0; KEY_LEN]);
            hkdf::Salt::new(HKDF_SHA256, salt)
                .extract(shared)
                .expand(&[&id.0], KeyLen)
                .and_then(|okm| okm.fill(key.as_mut()))
                .map_err(|_| Error::Library)?;
            Session::new(&key, id, random)
        })
    }
}

struct KeyLen;

impl hkdf::KeyType for KeyLen {
    fn len(&self) -> usize {
        KEY_LEN
    }
}

/// The shared key of one request, with the initialization vectors of both directions.
pub struct Session {
    key: LessSafeKey,
    id: RequestId,
    random: [u8; 8],
    counter: u32,
    sent: usize,
    seen: Vec<[u8; IV_LEN]>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} received)", self.seen.len())
    }
}

impl Session {
    /// The session of a key; `random` begins every initialization vector of this side.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(key: &[u8; KEY_LEN], id: RequestId, random: [u8; 8]) -> Result<Self, Error> {
        let key = UnboundKey::new(&AES_128_GCM, key).map_err(|_| Error::Library)?;
        let key = LessSafeKey::new(key);
        Ok(Self { key, id, random, counter: 0, sent: 0, seen: Vec::new() })
    }

    /// Encrypts a message.
    ///
    /// # Errors
    /// [`Error::TooMany`] after 64 of them; [`Error::Library`].
    pub fn seal(&mut self, plain: &[u8]) -> Result<Sealed, Error> {
        let blocks = u32::try_from(plain.len().div_ceil(BLOCK_LEN)).map_err(|_| Error::TooMany)?;
        let next = self.counter.checked_add(blocks.max(1)).ok_or(Error::TooMany)?;
        if self.sent >= MESSAGES_MAX {
            return Err(Error::TooMany);
        }
        let mut iv = [0; IV_LEN];
        iv[..8].copy_from_slice(&self.random);
        iv[8..].copy_from_slice(&self.counter.to_be_bytes());
        let mut payload = plain.to_vec();
        let nonce = Nonce::assume_unique_for_key(iv);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(self.id.0), &mut payload)
            .map_err(|_| Error::Library)?;
        let tag = tag.as_ref().try_into().map_err(|_| Error::Library)?;
        (self.counter, self.sent) = (next, self.sent + 1);
        Ok(Sealed { iv, tag, payload })
    }

    /// Decrypts a message. Its vector must be new under this key; how it counts is left to the
    /// other side, as implementations differ.
    ///
    /// # Errors
    /// [`Error::IvDirection`], [`Error::IvReused`], [`Error::TooMany`], [`Error::NotAuthentic`].
    pub fn open(&mut self, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, Error> {
        if sealed.iv[..8] == self.random {
            return Err(Error::IvDirection);
        }
        if self.seen.contains(&sealed.iv) {
            return Err(Error::IvReused);
        }
        if self.seen.len() >= MESSAGES_MAX {
            return Err(Error::TooMany);
        }
        let mut plain = Zeroizing::new(sealed.payload.clone());
        let nonce = Nonce::assume_unique_for_key(sealed.iv);
        self.key
            .open_in_place_separate_tag(nonce, Aad::from(self.id.0), &sealed.tag, &mut plain)
            .map_err(|_| Error::NotAuthentic)?;
        self.seen.push(sealed.iv);
        Ok(plain)
    }
}
