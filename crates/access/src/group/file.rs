//! A group as text, for a file that its owner only reads.

use super::{Entry, Group, KEYS_MAX, MEMBERS_MAX, Member, Secret};
use crate::envelope::PublicPoint;
use crate::{Error, Form, card, names};
use onym_crypto::{PrivateKey, PublicKey, text};
use onym_wire::Name;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use zeroize::{Zeroize as _, Zeroizing};

const HEADER: &str = "onym-group 1";

/// Base64 in one line.
fn flat(octets: &[u8]) -> String {
    let mut lines = text::encode(octets);
    let flat = lines.replace('\n', "");
    lines.zeroize();
    flat
}

impl Group {
    /// The group as text, with its private keys.
    ///
    /// # Errors
    /// [`Error::Crypto`] when a key cannot be written.
    pub fn write(&self) -> Result<Zeroizing<String>, Error> {
        let mut out = Zeroizing::new(String::new());
        let (name, form, owner) = (&self.name, self.form.word(), &self.owner);
        // Writing to a String does not fail.
        let _ = writeln!(out, "{HEADER}\nname: {name}\nform: {form}\nowner: {owner}");
        for (number, secret) in &self.keys {
            let der = match secret {
                Secret::Point(key) => card::to_pkcs8(key),
                Secret::Rsa(key) => key.to_pkcs8()?,
            };
            let key = Zeroizing::new(flat(&der));
            let _ = writeln!(out, "key: {number} {}", key.as_str());
        }
        for (name, Entry { member, since }) in &self.members {
            let public = match member {
                Member::Point(_, point) => flat(&point.0),
                Member::Rsa(_, key) => flat(key.spki()),
            };
            let _ = writeln!(out, "member: {since} {public} {name}");
        }
        Ok(out)
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Crypto`].
    pub fn read(file: &str) -> Result<Self, Error> {
        let mut lines = file.lines();
        if lines.next() != Some(HEADER) {
            return Err(Error::File("the first line is another one"));
        }
        let mut value = |key: &'static str| {
            let line = lines.next().and_then(|line| line.strip_prefix(key)?.strip_prefix(": "));
            line.ok_or(Error::File(key))
        };
        let name: Name = value("name")?.parse().map_err(|_| Error::File("the name"))?;
        let form = Form::of_word(value("form")?).ok_or(Error::File("the form"))?;
        let owner: Name = value("owner")?.parse().map_err(|_| Error::File("the owner"))?;
        if !names::is_group(name.as_ref()) {
            return Err(Error::File("the name is not of a group"));
        }
        let mut group = Self { name, form, owner, keys: BTreeMap::new(), members: BTreeMap::new() };
        for line in lines {
            group.line(line)?;
        }
        if group.keys.is_empty() {
            return Err(Error::File("there is no key"));
        }
        Ok(group)
    }

    fn line(&mut self, line: &str) -> Result<(), Error> {
        const BAD: Error = Error::File("a line is neither key nor member");
        let (word, rest) = line.split_once(": ").ok_or(BAD)?;
        let (number, rest) = rest.split_once(' ').ok_or(BAD)?;
        let number: u64 = number.parse().map_err(|_| BAD)?;
        match word {
            "key" => {
                let der = Zeroizing::new(text::decode(rest)?);
                let key = match self.form {
                    Form::Authenticated => Secret::Point(card::from_pkcs8(&der)?),
                    Form::Nac => Secret::Rsa(Box::new(PrivateKey::from_pkcs8(&der)?)),
                };
                self.keys.insert(number, key);
            }
            "member" => {
                let (public, name) = rest.split_once(' ').ok_or(BAD)?;
                let name: Name = name.parse().map_err(|_| BAD)?;
                let public = text::decode(public)?;
                let member = match self.form {
                    Form::Authenticated => {
                        let point = public.as_slice().try_into().map_err(|_| BAD)?;
                        Member::Point(name.clone(), PublicPoint(point))
                    }
                    Form::Nac => {
                        Member::Rsa(name.clone(), Box::new(PublicKey::from_spki(&public)?))
                    }
                };
                self.members.insert(name, Entry { member, since: number });
            }
            _ => return Err(BAD),
        }
        if self.keys.len() > KEYS_MAX || self.members.len() > MEMBERS_MAX {
            return Err(Error::File("it has too many keys or members"));
        }
        Ok(())
    }
}
