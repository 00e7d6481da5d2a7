//! Content in either form.

use crate::envelope::{self, ENVELOPE, Envelope, KEY_LEN};
use crate::nac::{self, ENCRYPTED_CONTENT, Encrypted};
use crate::{Error, Trusted, names};
use onym_crypto::Entropy;
use onym_wire::tlv::Element;
use onym_wire::{Component, Name, NameRef};
use std::fmt;
use zeroize::Zeroizing;

/// How keys and content are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// X25519 and AES-256-GCM.
    Authenticated,
    /// RSA and AES-CBC, as the C++ library and NDNts have it.
    Nac,
}

impl Form {
    /// The word for it in files and listings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Authenticated => "authenticated",
            Self::Nac => "nac",
        }
    }

    /// The form of that word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Authenticated, Self::Nac].into_iter().find(|form| form.word() == word)
    }

    /// The form of a group whose KEK has this content.
    #[must_use]
    pub fn of_kek(content: &[u8]) -> Self {
        if content.len() == KEY_LEN { Self::Authenticated } else { Self::Nac }
    }
}

/// The content key that encrypted `content`, and the form; nothing when it is not encrypted.
#[must_use]
pub fn sealed_by(content: &[u8]) -> Option<(Form, Name)> {
    // What is encrypted fills the content, and says by which key.
    let typ = Element::parse(content).ok()?.typ;
    match typ {
        ENVELOPE => Some((Form::Authenticated, Envelope::read(content).ok()?.key_name?)),
        ENCRYPTED_CONTENT => Some((Form::Nac, Encrypted::read(content).ok()?.key_name?)),
        _ => None,
    }
}

/// A content key of either form.
pub enum ContentKey {
    /// For the authenticated form.
    Authenticated(Box<envelope::ContentKey>),
    /// For RSA.
    Nac(nac::ContentKey),
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentKey({})", self.name())
    }
}

impl ContentKey {
    /// A new one; `ckid` tells it from others under `prefix`.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(
        form: Form,
        prefix: NameRef<'_>,
        ckid: Component<'_>,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, Error> {
        Ok(match form {
            Form::Authenticated => {
                Self::Authenticated(Box::new(envelope::ContentKey::new(prefix, ckid, entropy)?))
            }
            Form::Nac => Self::Nac(nac::ContentKey::new(prefix, ckid, entropy)),
        })
    }

    /// `/<prefix>/CK/<ckid>`.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        match self {
            Self::Authenticated(key) => key.name(),
            Self::Nac(key) => key.name(),
        }
    }

    /// Name and content of the Data that carries this key for a group, whose public key the Data
    /// `kek` is.
    ///
    /// # Errors
    /// [`Error::Group`], [`Error::Name`], [`Error::NotReadable`], [`Error::Library`].
    pub fn for_group(
        &self,
        kek: &Trusted<'_>,
        group: NameRef<'_>,
        entropy: &mut dyn Entropy,
    ) -> Result<(Name, Vec<u8>), Error> {
        match self {
            Self::Authenticated(key) => key.for_group(kek, group, entropy),
            Self::Nac(key) => key.for_group(kek, group),
        }
    }

    /// The content of the Data `name` that holds `plain`; it is to be signed.
    ///
    /// # Errors
    /// [`Error::UsedUp`], [`Error::Library`].
    pub fn seal(
        &mut self,
        name: NameRef<'_>,
        plain: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<u8>, Error> {
        match self {
            Self::Authenticated(key) => key.seal(name, plain, entropy),
            Self::Nac(key) => key.seal(plain, entropy),
        }
    }

    /// What a Data that was verified holds.
    ///
    /// # Errors
    /// [`Error::NotReadable`], [`Error::Malformed`].
    pub fn open_content(&self, data: &Trusted<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
        match self {
            Self::Authenticated(key) => key.open_content(data),
            Self::Nac(key) => key.open_content(data),
        }
    }
}

/// The group that a content key of this name is encrypted for.
///
/// # Errors
/// [`Error::Name`].
pub fn group_of(ck: NameRef<'_>) -> Result<NameRef<'_>, Error> {
    names::group_of_ck(ck)
}
