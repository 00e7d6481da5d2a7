//! Name-based access control with RSA keys, as deployed.

use crate::{Error, Trusted, names};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
    PublicEncryptingKey,
};
use onym_crypto::{Certificate, Entropy, KeyType, PrivateKey, PublicKey, SafeBag, digest};
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{Component, Name, NameRef, types};
use std::fmt;
use zeroize::Zeroizing;

/// Type of encrypted content.
pub const ENCRYPTED_CONTENT: u32 = 130;
/// Type of its ciphertext.
pub const PAYLOAD: u32 = 132;
/// Type of its initialization vector.
pub const IV: u32 = 133;
/// Type of the key that its ciphertext is encrypted with, itself encrypted.
pub const PAYLOAD_KEY: u32 = 134;

const IV_LEN: usize = 16;
/// Octets of the content keys made here.
const KEY_LEN: usize = 32;
/// Random octets of a passphrase; it is written in hexadecimal.
const PASSPHRASE_LEN: usize = 16;

/// Encrypted content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encrypted {
    /// Ciphertext.
    pub payload: Vec<u8>,
    /// Initialization vector.
    pub iv: Option<[u8; IV_LEN]>,
    /// The key of the ciphertext, encrypted.
    pub key: Option<Vec<u8>>,
    /// The name of the key of the ciphertext.
    pub key_name: Option<Name>,
}

impl Encrypted {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        let outer = tlv::Element::parse_as(content, ENCRYPTED_CONTENT)?;
        let mut reader = Reader::new(outer.value);
        let payload = reader.expect(PAYLOAD)?.value.to_vec();
        let iv = reader.optional(IV)?.map(|e| e.value.try_into()).transpose();
        let iv = iv.map_err(|_| Malformed::Length(IV))?;
        let key = reader.optional(PAYLOAD_KEY)?.map(|e| e.value.to_vec());
        let key_name = reader.optional(types::NAME)?.map(|e| NameRef::parse(e.wire)).transpose()?;
        let key_name = key_name.map(NameRef::to_name);
        match reader.next() {
            None => Ok(Self { payload, iv, key, key_name }),
            Some(Ok(element)) if !tlv::is_critical(element.typ) => {
                Ok(Self { payload, iv, key, key_name })
            }
            Some(Ok(element)) => Err(Malformed::UnknownCritical(element.typ).into()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::put_nested(&mut out, ENCRYPTED_CONTENT, |out| {
            tlv::put_tlv(out, PAYLOAD, &self.payload);
            if let Some(iv) = &self.iv {
                tlv::put_tlv(out, IV, iv);
            }
            if let Some(key) = &self.key {
                tlv::put_tlv(out, PAYLOAD_KEY, key);
            }
            if let Some(name) = &self.key_name {
                name.as_ref().write_tlv(out);
            }
        });
        out
    }
}

fn decrypting(key: &PrivateKey) -> Result<OaepPrivateDecryptingKey, Error> {
    if key.key_type() != KeyType::Rsa {
        return Err(Error::NotReadable);
    }
    let der = key.to_pkcs8()?;
    let key = PrivateDecryptingKey::from_pkcs8(&der).map_err(|_| Error::NotReadable)?;
    OaepPrivateDecryptingKey::new(key).map_err(|_| Error::Library)
}

/// Decrypts with the private key of a member or group.
fn rsa_open(key: &PrivateKey, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
    let key = decrypting(key)?;
    let mut plain = Zeroizing::new(vec![0; key.min_output_size()]);
    let opened = key.decrypt(&OAEP_SHA1_MGF1SHA1, ciphertext, &mut plain, None);
    let len = opened.map_err(|_| Error::NotReadable)?.len();
    plain.truncate(len);
    Ok(plain)
}

/// Encrypts for the owner of a public key.
fn rsa_seal(spki: &[u8], plain: &[u8]) -> Result<Vec<u8>, Error> {
    let key = PublicEncryptingKey::from_der(spki).map_err(|_| Error::Library)?;
    let key = OaepPublicEncryptingKey::new(key).map_err(|_| Error::Library)?;
    let mut out = vec![0; key.ciphertext_size()];
    let sealed = key.encrypt(&OAEP_SHA1_MGF1SHA1, plain, &mut out, None);
    let len = sealed.map_err(|_| Error::Library)?.len();
    out.truncate(len);
    Ok(out)
}

/// The key that content is encrypted with. It is not printed, and overwritten when dropped.
#[derive(Clone)]
pub struct ContentKey {
    name: Name,
    octets: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentKey({})", self.name)
    }
}

impl ContentKey {
    /// A new one; `ckid` tells it from others under `prefix`.
    #[must_use]
    pub fn new(prefix: NameRef<'_>, ckid: Component<'_>, entropy: &mut dyn Entropy) -> Self {
        let mut octets = Zeroizing::new(vec![0; KEY_LEN]);
        entropy.fill(&mut octets);
        Self { name: names::ck(prefix, ckid), octets }
    }

    /// `/<prefix>/CK/<ckid>`.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    fn cipher(&self) -> Result<UnboundCipherKey, Error> {
        let algorithm: &'static Algorithm = match self.octets.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            _ => return Err(Error::NotReadable),
        };
        UnboundCipherKey::new(algorithm, &self.octets).map_err(|_| Error::Library)
    }

    /// Name and content of the Data that carries this key for a group, whose public key `kek` is.
    ///
    /// # Errors
    /// [`Error::Group`], [`Error::Name`], [`Error::Library`].
    pub fn for_group(
        &self,
        kek: &Trusted<'_>,
        group: NameRef<'_>,
    ) -> Result<(Name, Vec<u8>), Error> {
        names::kid(kek.name(), group)?;
        let payload = rsa_seal(kek.content(), &self.octets)?;
        let name = names::ck_for(self.name(), kek.name());
        Ok((name, Encrypted { payload, ..Encrypted::default() }.write()))
    }

    /// The key that the Data `ck` carries for `group`; `keys` finds the group's private key by its id.
    ///
    /// # Errors
    /// [`Error::Group`] when it is for another group; [`Error::NotReadable`].
    pub fn open<'k>(
        ck: &Trusted<'_>,
        group: NameRef<'_>,
        keys: impl FnOnce(Component<'_>) -> Option<&'k PrivateKey>,
    ) -> Result<Self, Error> {
        let (name, kid) = names::of_ck(ck.name(), group)?;
        let key = keys(kid).ok_or(Error::NotReadable)?;
        let octets = rsa_open(key, &Encrypted::read(ck.content())?.payload)?;
        let key = Self { name: name.to_name(), octets };
        key.cipher().map(|_| key)
    }

    /// Encrypts content. It must be signed: nothing else protects it from change.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn seal(&self, plain: &[u8], entropy: &mut dyn Entropy) -> Result<Vec<u8>, Error> {
        let mut iv = [0; IV_LEN];
        entropy.fill(&mut iv);
        let key =
            PaddedBlockEncryptingKey::cbc_pkcs7(self.cipher()?).map_err(|_| Error::Library)?;
        let mut payload = plain.to_vec();
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        key.less_safe_encrypt(&mut payload, context).map_err(|_| Error::Library)?;
        let key_name = Some(self.name.clone());
        Ok(Encrypted { payload, iv: Some(iv), key: None, key_name }.write())
    }

    /// Decrypts content that was verified.
    ///
    /// # Errors
    /// [`Error::NotReadable`], whatever is wrong.
    pub fn open_content(&self, data: &Trusted<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
        let encrypted = Encrypted::read(data.content())?;
        let (Some(iv), Some(name)) = (encrypted.iv, &encrypted.key_name) else {
            return Err(Error::NotReadable);
        };
        if *name != self.name {
            return Err(Error::NotReadable);
        }
        let key =
            PaddedBlockDecryptingKey::cbc_pkcs7(self.cipher()?).map_err(|_| Error::Library)?;
        let mut plain = Zeroizing::new(encrypted.payload);
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        let opened = key.decrypt(&mut plain, context).map_err(|_| Error::NotReadable)?;
        let len = opened.len();
        plain.truncate(len);
        Ok(plain)
    }
}

/// A member: the name of his key and the key, out of a certificate that was verified.
#[derive(Debug, Clone, Copy)]
pub struct MemberKey<'a> {
    /// `/identity/KEY/key-id`.
    pub key_name: NameRef<'a>,
    /// The public key.
    pub key: &'a PublicKey,
}

impl<'a> From<&'a Certificate> for MemberKey<'a> {
    fn from(certificate: &'a Certificate) -> Self {
        Self { key_name: certificate.key_name(), key: certificate.public_key() }
    }
}

/// Name and content of the Data that carries the private key of a group to a member. Inside the
/// group's key is named `…/KEY/<kid>`.
///
/// # Errors
/// [`Error::Member`] when the member's key is not RSA; [`Error::Library`].
pub fn key_for_member(
    group: NameRef<'_>,
    kid: Component<'_>,
    key: &PrivateKey,
    member: MemberKey<'_>,
    now_ms: u64,
    entropy: &mut dyn Entropy,
) -> Result<(Name, Vec<u8>), Error> {
    if member.key.key_type() != KeyType::Rsa {
        let why = "it is not RSA; only the authenticated format supports other keys";
        return Err(Error::Member(member.key_name.to_name(), why));
    }
    let key_name = onym_wire::cert::key_name(group, kid);
    let certificate = Certificate::self_signed(key_name.as_ref(), key, now_ms)?;
    let mut random = Zeroizing::new([0; PASSPHRASE_LEN]);
    entropy.fill(random.as_mut());
    let passphrase = Zeroizing::new(digest::hex(random.as_ref()));
    let bag = SafeBag::seal(certificate, key, passphrase.as_bytes(), entropy)?;
    let sealed = rsa_seal(member.key.spki(), passphrase.as_bytes())?;
    let encrypted =
        Encrypted { payload: bag.wire().to_vec(), key: Some(sealed), ..Encrypted::default() };
    Ok((names::kdk(group, kid, member.key_name), encrypted.write()))
}

/// The private key of a group that the Data `kdk` carries to the member with this key.
///
/// # Errors
/// [`Error::Name`] when it is not for this member, group and id; [`Error::NotReadable`].
pub fn group_key(
    kdk: &Trusted<'_>,
    group: NameRef<'_>,
    kid: Component<'_>,
    member_key: NameRef<'_>,
    key: &PrivateKey,
) -> Result<PrivateKey, Error> {
    names::check_kdk(kdk.name(), group, kid, member_key)?;
    let encrypted = Encrypted::read(kdk.content())?;
    let sealed = encrypted.key.ok_or(Error::NotReadable)?;
    let passphrase = rsa_open(key, &sealed)?;
    let bag = SafeBag::parse(&encrypted.payload).map_err(|_| Error::NotReadable)?;
    let key = bag.open(&passphrase).map_err(|_| Error::NotReadable)?;
    if key.key_type() == KeyType::Rsa { Ok(key) } else { Err(Error::NotReadable) }
}
