//! A group: who may read, and a new key whenever somebody leaves.

use crate::envelope::{PublicPoint, ReadingKey, seal_for};
use crate::{Error, names};
use onym_crypto::Entropy;
use onym_wire::{Component, Name, NameRef};
use std::collections::BTreeMap;

/// Members of a group, at most.
pub const MEMBERS_MAX: usize = 10_000;

/// Name and content of a Data to be signed and published.
pub type Unsigned = (Name, Vec<u8>);

/// A group in the authenticated form.
#[derive(Debug)]
pub struct Group {
    name: Name,
    /// The number of the present key; it only grows.
    number: u64,
    key: ReadingKey,
    /// By the names of their keys.
    members: BTreeMap<Name, PublicPoint>,
}

impl Group {
    /// A group without members, `/<prefix>/NAC/<dataset>`. `number` is the version of its first key;
    /// the time in milliseconds will do.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub fn new(prefix: NameRef<'_>, dataset: NameRef<'_>, number: u64) -> Result<Self, Error> {
        let name = names::group(prefix, dataset);
        Ok(Self { name, number, key: ReadingKey::generate()?, members: BTreeMap::new() })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    /// Those who may read.
    pub fn members(&self) -> impl Iterator<Item = NameRef<'_>> {
        self.members.keys().map(Name::as_ref)
    }

    fn with_kid<T>(&self, then: impl FnOnce(Component<'_>) -> T) -> T {
        let mut holder = Name::new();
        holder.append_version(self.number);
        then(holder.as_ref().last().unwrap_or(Component::generic(b"")))
    }

    /// The public key for producers: name and content.
    #[must_use]
    pub fn kek(&self) -> Unsigned {
        let name = self.with_kid(|kid| names::kek(self.name(), kid));
        (name, self.key.public().0.to_vec())
    }

    /// Lets the owner of `point` read from now on, by the key that is named so: the Data that carries
    /// the group's key to him.
    ///
    /// # Errors
    /// [`Error::Member`] when the group is full; [`Error::NotReadable`] when the point is none.
    pub fn grant(
        &mut self,
        member_key: NameRef<'_>,
        point: PublicPoint,
        entropy: &mut dyn Entropy,
    ) -> Result<Unsigned, Error> {
        if self.members.len() >= MEMBERS_MAX && !self.members.contains_key(member_key.value()) {
            return Err(Error::Member(member_key.to_name(), "the group is full"));
        }
        let data = self.kdk(member_key, point, entropy)?;
        self.members.insert(member_key.to_name(), point);
        Ok(data)
    }

    fn kdk(
        &self,
        member_key: NameRef<'_>,
        point: PublicPoint,
        entropy: &mut dyn Entropy,
    ) -> Result<Unsigned, Error> {
        let name = self.with_kid(|kid| names::kdk(self.name(), kid, member_key));
        let content = seal_for(point, name.as_ref(), self.key.seed(), entropy)?;
        Ok((name, content))
    }

    /// Lets a member read nothing new: the group has another key from now on, of a later number than
    /// before and at least `number`. The Data that carry it to those who stay; producers take the new
    /// [`kek`](Self::kek), and what is served of the old one for the member is to be served no more.
    ///
    /// # Errors
    /// [`Error::Member`] when there is no such member; then nothing changed.
    pub fn revoke(
        &mut self,
        member_key: NameRef<'_>,
        number: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<Unsigned>, Error> {
        if !self.members.contains_key(member_key.value()) {
            return Err(Error::Member(member_key.to_name(), "it is no member's"));
        }
        self.key = ReadingKey::generate()?;
        self.number = number.max(self.number + 1);
        self.members.remove(member_key.value());
        let each = |(name, point): (&Name, &PublicPoint)| self.kdk(name.as_ref(), *point, entropy);
        self.members.iter().map(each).collect()
    }
}
