//! Secrets beside keys: texts that only their owner reads, one file each, by their names.

use super::{KeyStore, files};
use crate::Error;
use onym_wire::NameRef;
use zeroize::Zeroizing;

/// Kinds of secrets that a store keeps beside its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// A key that content is encrypted for.
    Reading,
    /// A group of readers with its keys.
    Group,
}

impl Kept {
    fn extension(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Group => "group",
        }
    }

    /// Longest text, in octets: a group may have ten thousand members.
    fn len_max(self) -> u64 {
        match self {
            Self::Reading => 64 << 10,
            Self::Group => 16 << 20,
        }
    }
}

impl KeyStore {
    /// The secret of that kind and name, when there is one.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn kept(&self, what: Kept, name: NameRef<'_>) -> Result<Option<Zeroizing<String>>, Error> {
        let path = self.path_of(name, what.extension());
        Ok(files::read_up_to(&path, what.len_max())?.map(Zeroizing::new))
    }

    /// All secrets of a kind.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn all_kept(&self, what: Kept) -> Result<Vec<Zeroizing<String>>, Error> {
        let mut found = Vec::new();
        for path in files::list(self.dir(), what.extension())? {
            found.extend(files::read_up_to(&path, what.len_max())?.map(Zeroizing::new));
        }
        Ok(found)
    }

    /// Changes a secret, or makes it, while nobody else does. What `change` refuses stays as it is.
    ///
    /// # Errors
    /// [`Error::Store`], and those of `change`.
    pub fn change_kept<E: From<Error>>(
        &self,
        what: Kept,
        name: NameRef<'_>,
        change: impl FnOnce(Option<Zeroizing<String>>) -> Result<Zeroizing<String>, E>,
    ) -> Result<(), E> {
        let _lock = self.change()?;
        let text = change(self.kept(what, name)?)?;
        if text.len() as u64 > what.len_max() {
            let path = self.path_of(name, what.extension());
            return Err(Error::Store { path, what: "it is longer than it may be".into() }.into());
        }
        Ok(files::replace(&self.path_of(name, what.extension()), text.as_bytes())?)
    }
}
