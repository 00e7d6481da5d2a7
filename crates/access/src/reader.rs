//! Reading: which keys are needed for content, and in which order they are asked for.
//!
//! ```text
//! content ──open──► needs /…/CK/id ──search──► ask CK, ask KDK for each own key ──► content
//! ```

use crate::content::{ContentKey, Form, group_of, sealed_by};
use crate::envelope::{self, Envelope, ReadingKey, open_with};
pub use crate::names::Ask;
use crate::{Error, Trusted, nac, names};
use onym_crypto::{KeyType, PrivateKey};
use onym_wire::data::Data;
use onym_wire::{Name, NameRef};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Own keys that are tried for a group, at most; further ones are not taken.
pub const OWN_MAX: usize = 64;
/// Content keys and keys of groups that are kept, at most; the first by name gives way.
pub const KEPT_MAX: usize = 1024;

/// A key of this reader, by its name.
#[derive(Debug)]
pub enum Own {
    /// Of X25519.
    Point(Name, ReadingKey),
    /// Of RSA.
    Rsa(Name, Box<PrivateKey>),
}

impl Own {
    fn name(&self) -> NameRef<'_> {
        match self {
            Self::Point(name, _) | Self::Rsa(name, _) => name.as_ref(),
        }
    }

    fn form(&self) -> Form {
        match self {
            Self::Point(..) => Form::Authenticated,
            Self::Rsa(..) => Form::Nac,
        }
    }
}

/// A group's private key that was opened.
#[derive(Debug)]
enum GroupKey {
    Point(ReadingKey),
    Rsa(Box<PrivateKey>),
}

/// What a Data holds.
#[derive(Debug)]
pub enum Opened {
    /// It is not encrypted.
    Plain,
    /// This.
    Content(Zeroizing<Vec<u8>>),
    /// The content key of this name has to be searched first.
    Needs(Name),
}

/// Somebody who reads.
#[derive(Debug, Default)]
pub struct Reader {
    own: Vec<Own>,
    /// The only group whose content is read.
    only: Option<Name>,
    /// By `/<group>/KEK/<kid>`.
    groups: BTreeMap<Name, GroupKey>,
    content: BTreeMap<Name, ContentKey>,
}

/// The search for one content key. It ends with the key in the reader, or with an error.
#[derive(Debug)]
pub struct Search {
    key: Name,
    /// The Data that carries the content key, when it came, and the number of the next own key.
    ck: Option<(Vec<u8>, usize)>,
}

impl Reader {
    /// One with these keys, and without `only` for content of any group.
    #[must_use]
    pub fn new(mut own: Vec<Own>, only: Option<Name>) -> Self {
        own.retain(|own| match own {
            Own::Rsa(_, key) => key.key_type() == KeyType::Rsa,
            Own::Point(..) => true,
        });
        own.truncate(OWN_MAX);
        Self { own, only, ..Self::default() }
    }

    /// What a Data that was verified holds.
    ///
    /// # Errors
    /// [`Error::NotReadable`]; [`Error::Plain`] when only a group's content is wanted and it is not
    /// encrypted.
    pub fn open(&self, data: &Trusted<'_>) -> Result<Opened, Error> {
        let Some((_, name)) = sealed_by(data.content()) else {
            return match &self.only {
                None => Ok(Opened::Plain),
                Some(group) => Err(Error::Plain(group.clone())),
            };
        };
        match self.content.get(&name) {
            Some(key) => Ok(Opened::Content(key.open_content(data)?)),
            None => Ok(Opened::Needs(name)),
        }
    }

    /// Begins to search the content key of this name.
    #[must_use]
    pub fn search(key: Name) -> Search {
        Search { key, ck: None }
    }

    /// What is to be asked for next; nothing when the search has ended.
    ///
    /// # Errors
    /// [`Error::NotMember`] when all own keys were tried; [`Error::Name`].
    pub fn ask(&self, search: &mut Search) -> Result<Option<Ask>, Error> {
        if self.content.contains_key(&search.key) {
            return Ok(None);
        }
        let Some((wire, at)) = &mut search.ck else {
            return Ok(Some(Ask { name: search.key.clone(), can_be_prefix: true }));
        };
        let data = Data::parse(wire)?;
        let (group, form) = (group_of(data.name)?, form_of(data.content));
        let (_, kid) = names::of_ck(data.name, group)?;
        while self.own.get(*at).is_some_and(|own| own.form() != form) {
            *at += 1;
        }
        match self.own.get(*at) {
            Some(own) => {
                let name = names::kdk(group, kid, own.name());
                Ok(Some(Ask { name, can_be_prefix: false }))
            }
            None => Err(Error::NotMember(group.to_name())),
        }
    }

    /// What was asked for, verified; nothing when nobody has it.
    ///
    /// # Errors
    /// [`Error::NotFound`] when nobody has the content key, [`Error::Group`] when it is of another
    /// group than the wanted one; [`Error::NotReadable`].
    pub fn answer(&mut self, search: &mut Search, data: Option<&Trusted<'_>>) -> Result<(), Error> {
        match (&mut search.ck, data) {
            (None, None) => Err(Error::NotFound(search.key.clone())),
            (None, Some(ck)) => {
                let group = group_of(ck.name())?;
                if let Some(only) = &self.only
                    && group != *only
                {
                    let (name, group) = (ck.name().to_name(), only.clone());
                    return Err(Error::Group { name, group });
                }
                let (own_name, kid) = names::of_ck(ck.name(), group)?;
                if own_name != search.key {
                    return Err(Error::Name(ck.name().to_name()));
                }
                let kek = names::kek(group, kid);
                if self.groups.contains_key(&kek) {
                    return self.open_ck(ck);
                }
                search.ck = Some((ck.wire().to_vec(), 0));
                Ok(())
            }
            (Some((_, at)), None) => {
                *at += 1;
                Ok(())
            }
            (Some((wire, at)), Some(kdk)) => {
                let ck = Data::parse(wire)?;
                let group = group_of(ck.name)?;
                let (_, kid) = names::of_ck(ck.name, group)?;
                let Some(own) = self.own.get(*at) else { return Err(Error::NotReadable) };
                names::check_kdk(kdk.name(), group, kid, own.name())?;
                let key = match own {
                    Own::Point(_, key) => {
                        GroupKey::Point(ReadingKey::from_seed(&open_with(key, kdk)?)?)
                    }
                    Own::Rsa(name, key) => GroupKey::Rsa(Box::new(nac::group_key(
                        kdk,
                        group,
                        kid,
                        name.as_ref(),
                        key,
                    )?)),
                };
                bound(&mut self.groups);
                self.groups.insert(names::kek(group, kid), key);
                // It was verified when it came.
                self.open_ck(&Trusted::verified_by_caller(ck))
            }
        }
    }

    fn open_ck(&mut self, ck: &Trusted<'_>) -> Result<(), Error> {
        let group = group_of(ck.name())?;
        let (_, kid) = names::of_ck(ck.name(), group)?;
        let key = match self.groups.get(&names::kek(group, kid)) {
            Some(GroupKey::Point(own)) => {
                let key = envelope::ContentKey::open(ck, group, |_| Some(own))?;
                ContentKey::Authenticated(Box::new(key))
            }
            Some(GroupKey::Rsa(own)) => {
                ContentKey::Nac(nac::ContentKey::open(ck, group, |_| Some(&**own))?)
            }
            None => return Err(Error::NotReadable),
        };
        bound(&mut self.content);
        self.content.insert(key.name().to_name(), key);
        Ok(())
    }
}

fn form_of(ck: &[u8]) -> Form {
    if Envelope::read(ck).is_ok() { Form::Authenticated } else { Form::Nac }
}

fn bound<V>(kept: &mut BTreeMap<Name, V>) {
    if kept.len() >= KEPT_MAX {
        kept.pop_first();
    }
}
