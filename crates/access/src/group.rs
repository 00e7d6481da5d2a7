//! A group: its members, and a new key whenever one leaves.

mod file;

use crate::envelope::{PublicPoint, ReadingKey, seal_for};
use crate::names::{Ask, Asked};
use crate::{Card, Error, Form, nac, names};
use onym_crypto::{Certificate, Entropy, KeyType, PrivateKey, PublicKey};
use onym_wire::{Component, Name, NameRef};
use std::collections::BTreeMap;

/// Members of a group, at most.
pub const MEMBERS_MAX: usize = 10_000;
/// Keys of a group that are kept, at most: content from before is read by them. The oldest gives way.
pub const KEYS_MAX: usize = 64;

/// Name and content of a Data to be signed and published.
pub type Unsigned = (Name, Vec<u8>);

/// Who may be let in: the name of his key, and the key.
#[derive(Debug, Clone)]
pub enum Member {
    /// A key of X25519.
    Point(Name, PublicPoint),
    /// A key of RSA.
    Rsa(Name, Box<PublicKey>),
}

impl From<&Card> for Member {
    fn from(card: &Card) -> Self {
        Self::Point(card.key_name().to_name(), card.point())
    }
}

impl TryFrom<&Certificate> for Member {
    type Error = Error;

    fn try_from(certificate: &Certificate) -> Result<Self, Error> {
        let key_name = certificate.key_name().to_name();
        if certificate.public_key().key_type() != KeyType::Rsa {
            return Err(Error::Member(key_name, "only RSA keys and reader's cards can read"));
        }
        Ok(Self::Rsa(key_name, Box::new(certificate.public_key().clone())))
    }
}

impl Member {
    /// The name of the key.
    #[must_use]
    pub fn key_name(&self) -> NameRef<'_> {
        match self {
            Self::Point(name, _) | Self::Rsa(name, _) => name.as_ref(),
        }
    }

    /// The form of groups that it can be in.
    #[must_use]
    pub fn form(&self) -> Form {
        match self {
            Self::Point(..) => Form::Authenticated,
            Self::Rsa(..) => Form::Nac,
        }
    }
}

/// One who was let in.
#[derive(Debug)]
struct Entry {
    member: Member,
    /// The number of the group's key at that time: older ones are not for him.
    since: u64,
}

/// A private key of a group.
#[derive(Debug)]
enum Secret {
    Point(ReadingKey),
    Rsa(Box<PrivateKey>),
}

impl Secret {
    fn generate(form: Form) -> Result<Self, Error> {
        Ok(match form {
            Form::Authenticated => Self::Point(ReadingKey::generate()?),
            Form::Nac => Self::Rsa(Box::new(PrivateKey::generate(KeyType::Rsa)?)),
        })
    }
}

/// A group and its keys.
#[derive(Debug)]
pub struct Group {
    name: Name,
    form: Form,
    owner: Name,
    /// By number; the last one is the present key. Numbers only grow.
    keys: BTreeMap<u64, Secret>,
    /// By the names of their keys.
    members: BTreeMap<Name, Entry>,
}

impl Group {
    /// A group without members, `/<prefix>/NAC/<dataset>`. `owner` names the identity or key that
    /// signs its keys, `number` is the version of its first key; the time in milliseconds will do.
    ///
    /// # Errors
    /// [`Error::Name`] when `name` has not that form; [`Error::Library`].
    pub fn new(form: Form, name: NameRef<'_>, owner: Name, number: u64) -> Result<Self, Error> {
        if !names::is_group(name) {
            return Err(Error::Name(name.to_name()));
        }
        let keys = BTreeMap::from([(number, Secret::generate(form)?)]);
        Ok(Self { name: name.to_name(), form, owner, keys, members: BTreeMap::new() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    /// How it encrypts.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Who signs its keys.
    #[must_use]
    pub fn owner(&self) -> NameRef<'_> {
        self.owner.as_ref()
    }

    /// Names of the keys of those who may read.
    pub fn members(&self) -> impl Iterator<Item = NameRef<'_>> {
        self.members.keys().map(Name::as_ref)
    }

    /// The number of the present key.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.keys.keys().next_back().copied().unwrap_or(0)
    }

    /// The public key for producers: name and content.
    #[must_use]
    pub fn kek(&self) -> Unsigned {
        let name = with_kid(self.number(), |kid| names::kek(self.name(), kid));
        let content = match self.keys.values().next_back() {
            Some(Secret::Point(key)) => key.public().0.to_vec(),
            Some(Secret::Rsa(key)) => key.spki().to_vec(),
            None => Vec::new(),
        };
        (name, content)
    }

    /// The Data that carries the key `kid` to a member; nothing when he may not have it, or there is
    /// no such key or member.
    ///
    /// # Errors
    /// [`Error::Library`]; [`Error::NotReadable`] when the member's key shares no secret.
    pub fn kdk(
        &self,
        kid: Component<'_>,
        member_key: NameRef<'_>,
        now_ms: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<Option<Unsigned>, Error> {
        let found = self.members.get(member_key.value());
        let Some((number, entry)) = kid.as_version().zip(found) else { return Ok(None) };
        if number < entry.since {
            return Ok(None);
        }
        let made = match (self.keys.get(&number), &entry.member) {
            (Some(Secret::Point(key)), Member::Point(_, point)) => {
                let name = names::kdk(self.name(), kid, member_key);
                let content = seal_for(*point, name.as_ref(), key.seed(), entropy)?;
                (name, content)
            }
            (Some(Secret::Rsa(key)), Member::Rsa(_, public)) => {
                let member = nac::MemberKey { key_name: member_key, key: public };
                nac::key_for_member(self.name(), kid, key, member, now_ms, entropy)?
            }
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    /// What answers an Interest, if the group has it.
    ///
    /// # Errors
    /// As [`kdk`](Self::kdk).
    pub fn answer(
        &self,
        ask: &Ask,
        now_ms: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<Option<Unsigned>, Error> {
        match names::asked(ask, self.name()) {
            Some(Asked::Newest) => Ok(Some(self.kek())),
            Some(Asked::Kek(kid)) => {
                Ok((kid.as_version() == Some(self.number())).then(|| self.kek()))
            }
            Some(Asked::Kdk(kid, member)) => self.kdk(kid, member, now_ms, entropy),
            None => Ok(None),
        }
    }

    /// Lets a member read what is encrypted with the present key and those after it.
    ///
    /// # Errors
    /// [`Error::Member`] when the group is full, of the other form, or the key is another one than
    /// before: an attacker's must not take its place.
    pub fn grant(&mut self, member: Member) -> Result<(), Error> {
        let name = member.key_name().to_name();
        if member.form() != self.form {
            let why = match self.form {
                Form::Nac => "the group takes RSA keys",
                Form::Authenticated => "the group takes reader's cards (`onym access key`)",
            };
            return Err(Error::Member(name, why));
        }
        match self.members.get(&name) {
            Some(entry) if same_key(&entry.member, &member) => return Ok(()),
            Some(_) => return Err(Error::Member(name, "it is a member's with another key")),
            None => {}
        }
        if self.members.len() >= MEMBERS_MAX {
            return Err(Error::Member(name, "the group is full"));
        }
        self.members.insert(name, Entry { member, since: self.number() });
        Ok(())
    }

    /// Lets a member read nothing new: the group has another key from now on, of a later number than
    /// before and at least `number`. Producers take the new [`kek`](Self::kek), and nothing is served
    /// for the member any more.
    ///
    /// # Errors
    /// [`Error::Member`] when there is no such member, [`Error::Library`]; then nothing changed.
    pub fn revoke(&mut self, member_key: NameRef<'_>, number: u64) -> Result<(), Error> {
        if !self.members.contains_key(member_key.value()) {
            return Err(Error::Member(member_key.to_name(), "it is no member's"));
        }
        let key = Secret::generate(self.form)?;
        self.members.remove(member_key.value());
        self.keys.insert(number.max(self.number() + 1), key);
        while self.keys.len() > KEYS_MAX {
            self.keys.pop_first();
        }
        Ok(())
    }
}

fn same_key(a: &Member, b: &Member) -> bool {
    match (a, b) {
        (Member::Point(_, a), Member::Point(_, b)) => a == b,
        (Member::Rsa(_, a), Member::Rsa(_, b)) => a.spki() == b.spki(),
        _ => false,
    }
}

fn with_kid<T>(number: u64, then: impl FnOnce(Component<'_>) -> T) -> T {
    let mut holder = Name::new();
    holder.append_version(number);
    then(holder.as_ref().last().unwrap_or(Component::generic(b"")))
}
