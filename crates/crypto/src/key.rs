//! Private keys: generation, reading, writing, signing.

use crate::digest::digest_of;
pub use crate::kind::KeyType;
use crate::kind::{OID_EC, OID_ED25519, OID_RSA};
use crate::{Error, PublicKey};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use pkcs8::PrivateKeyInfo;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A private key. It is not printed by `Debug`, leaves only through [`PrivateKey::to_pkcs8`], and is
/// overwritten when the last copy is dropped.
#[derive(Clone)]
pub struct PrivateKey {
    pair: Arc<Pair>,
    spki: Arc<[u8]>,
}

/// A private key that is elsewhere, in a token for one: it signs there and never comes here.
pub trait Outside: fmt::Debug + Send + Sync {
    /// Which kind of key it is.
    fn key_type(&self) -> KeyType;

    /// Its public half as DER SubjectPublicKeyInfo.
    fn spki(&self) -> &[u8];

    /// The signature over the concatenation of `parts`, as packets carry it.
    ///
    /// # Errors
    /// [`Error::Outside`].
    fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, Error>;
}

enum Pair {
    Outside(Box<dyn Outside>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.key_type().word())
    }
}

impl PrivateKey {
    /// Makes a new key from the machine's randomness.
    ///
    /// # Errors
    /// [`Error::Library`] when the machine has no randomness to give.
    pub fn generate(kind: KeyType) -> Result<Self, Error> {
        const REFUSED: Error = Error::Library("make a key");
        let pair = match kind {
            KeyType::Ecdsa => Pair::Ecdsa(
                EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).map_err(|_| REFUSED)?,
            ),
            KeyType::Ed25519 => Pair::Ed25519(Ed25519KeyPair::generate().map_err(|_| REFUSED)?),
            KeyType::Rsa => Pair::Rsa(Box::new(
                RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).map_err(|_| REFUSED)?,
            )),
        };
        Self::with_pair(pair)
    }

    /// Reads an unencrypted PKCS#8 PrivateKeyInfo (DER).
    ///
    /// # Errors
    /// [`Error::Key`] when it is not a key of a kind in [`KeyType`].
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, Error> {
        let info = PrivateKeyInfo::try_from(der)
            .map_err(|e| Error::Key(format!("not a PKCS#8 private key: {e}")))?;
        let refused = |e: aws_lc_rs::error::KeyRejected| Error::Key(e.to_string());
        let pair = match info.algorithm.oid {
            OID_EC => Pair::Ecdsa(
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der).map_err(refused)?,
            ),
            OID_ED25519 => Pair::Ed25519(Ed25519KeyPair::from_pkcs8(der).map_err(refused)?),
            OID_RSA => Pair::Rsa(Box::new(RsaKeyPair::from_pkcs8(der).map_err(refused)?)),
            other => return Err(Error::Key(format!("algorithm {other} is not supported"))),
        };
        Self::with_pair(pair)
    }

    fn with_pair(pair: Pair) -> Result<Self, Error> {
        let der = match &pair {
            Pair::Outside(key) => {
                let spki = key.spki().into();
                return Ok(Self { pair: Arc::new(pair), spki });
            }
            Pair::Ecdsa(pair) => pair.public_key().as_der(),
            Pair::Ed25519(pair) => pair.public_key().as_der(),
            Pair::Rsa(pair) => pair.public_key().as_der(),
        };
        let spki = der.map_err(|_| Error::Library("write the public key"))?.as_ref().into();
        Ok(Self { pair: Arc::new(pair), spki })
    }

    /// A key that is elsewhere.
    ///
    /// # Errors
    /// [`Error::Key`] when its public half is unusable or of another kind than it says.
    pub fn outside(key: Box<dyn Outside>) -> Result<Self, Error> {
        let public = PublicKey::from_spki(key.spki())?;
        if public.key_type() != key.key_type() {
            return Err(Error::Key("its public half is of another kind".into()));
        }
        Self::with_pair(Pair::Outside(key))
    }

    /// Whether the key is elsewhere and does not leave.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        matches!(*self.pair, Pair::Outside(_))
    }

    /// The unencrypted PKCS#8 PrivateKeyInfo (DER), version 1, which every tool reads.
    ///
    /// # Errors
    /// [`Error::Stays`] when it is elsewhere, [`Error::Library`] when it cannot be written.
    pub fn to_pkcs8(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        const REFUSED: Error = Error::Library("write the private key");
        // Buffers of the library are overwritten by it.
        let der = match &*self.pair {
            Pair::Outside(_) => return Err(Error::Stays),
            Pair::Ecdsa(pair) => pair.to_pkcs8v1().map(|d| d.as_ref().to_vec()),
            Pair::Ed25519(pair) => pair.to_pkcs8v1().map(|d| d.as_ref().to_vec()),
            Pair::Rsa(pair) => AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(pair.as_ref())
                .map(|d| d.as_ref().to_vec()),
        };
        der.map(Zeroizing::new).map_err(|_| REFUSED)
    }

    /// Which kind of key this is.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        match &*self.pair {
            Pair::Outside(key) => key.key_type(),
            Pair::Ecdsa(_) => KeyType::Ecdsa,
            Pair::Ed25519(_) => KeyType::Ed25519,
            Pair::Rsa(_) => KeyType::Rsa,
        }
    }

    /// The public half as DER SubjectPublicKeyInfo.
    #[must_use]
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// The public half, ready to verify.
    ///
    /// # Errors
    /// [`Error::Key`] never happens for a key that was made or read by this crate.
    pub fn public_key(&self) -> Result<PublicKey, Error> {
        PublicKey::from_spki(&self.spki)
    }

    /// Longest signature that this key makes, in octets.
    #[must_use]
    pub fn signature_len_max(&self) -> usize {
        match &*self.pair {
            Pair::Outside(_) => 1024,
            Pair::Ecdsa(_) => 72,
            Pair::Ed25519(_) => 64,
            Pair::Rsa(pair) => pair.public_modulus_len(),
        }
    }

    /// Signs the concatenation of `parts` and appends the signature to `out`.
    ///
    /// # Errors
    /// [`Error::Library`] when the library refuses, which leaves `out` as it was.
    pub fn sign(&self, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), Error> {
        const REFUSED: Error = Error::Library("sign");
        match &*self.pair {
            Pair::Outside(key) => out.extend(key.sign(parts)?),
            Pair::Ecdsa(pair) => {
                let signature = pair.sign_digest(&digest_of(parts)).map_err(|_| REFUSED)?;
                out.extend_from_slice(signature.as_ref());
            }
            Pair::Ed25519(pair) => {
                // Ed25519 signs the message itself and needs it in one piece.
                let signature = match parts {
                    [one] => pair.try_sign(one),
                    _ => pair.try_sign(&parts.concat()),
                };
                out.extend_from_slice(signature.map_err(|_| REFUSED)?.as_ref());
            }
            Pair::Rsa(pair) => {
                let start = out.len();
                out.resize(start + pair.public_modulus_len(), 0);
                let done = match parts {
                    [one] => {
                        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), one, &mut out[start..])
                    }
                    _ => pair.sign_digest(&RSA_PKCS1_SHA256, &digest_of(parts), &mut out[start..]),
                };
                if done.is_err() {
                    out.truncate(start);
                    return Err(REFUSED);
                }
            }
        }
        Ok(())
    }
}
