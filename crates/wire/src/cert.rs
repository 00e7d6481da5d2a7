//! Names and validity of certificates. No cryptography.

use crate::data::Data;
use crate::name::{Component, Name, NameRef};
use crate::tlv::{self, Malformed, Reader};
use crate::types;
pub use crate::validity::{CertTime, ValidityPeriod};

/// The component between an identity and its key ids.
pub const KEY: Component<'static> = Component::generic(b"KEY");
/// Issuer id of a self-signed certificate.
pub const ISSUER_SELF: Component<'static> = Component::generic(b"self");

/// The parts of a certificate name `/<identity>/KEY/<key-id>/<issuer-id>/<version>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertName<'a> {
    /// The whole name.
    pub name: NameRef<'a>,
    /// Whose key it is; may be empty.
    pub identity: NameRef<'a>,
    /// `/<identity>/KEY/<key-id>`.
    pub key_name: NameRef<'a>,
    /// Which of the identity's keys.
    pub key_id: Component<'a>,
    /// Who issued the certificate, in the issuer's words.
    pub issuer_id: Component<'a>,
    /// Version, typed or marked, not necessarily a number.
    pub version: Component<'a>,
}

impl<'a> CertName<'a> {
    /// The parts of `name`, when it is a certificate name.
    #[must_use]
    pub fn parse(name: NameRef<'a>) -> Option<Self> {
        let identity_len = name.len().checked_sub(4)?;
        let mut tail = name.suffix(identity_len).components();
        let (key, key_id) = (tail.next()?, tail.next()?);
        let (issuer_id, version) = (tail.next()?, tail.next()?);
        (key == KEY).then(|| Self {
            name,
            identity: name.prefix(identity_len),
            key_name: name.prefix(identity_len + 2),
            key_id,
            issuer_id,
            version,
        })
    }
}

/// The name of `identity`'s key `key_id`.
#[must_use]
pub fn key_name(identity: NameRef<'_>, key_id: Component<'_>) -> Name {
    identity.to_name().with(KEY).with(key_id)
}

/// The identity that a key name belongs to: `/<identity>/KEY/<key-id>`.
#[must_use]
pub fn identity_of_key(key_name: NameRef<'_>) -> Option<NameRef<'_>> {
    let identity_len = key_name.len().checked_sub(2)?;
    (key_name.get(identity_len)? == KEY).then(|| key_name.prefix(identity_len))
}

/// The name of a certificate for `key_name`; `version` in milliseconds since the Unix epoch.
#[must_use]
pub fn cert_name(key_name: NameRef<'_>, issuer_id: Component<'_>, version: u64) -> Name {
    let mut name = key_name.to_name().with(issuer_id);
    name.append_version(version);
    name
}

/// The parts of a prefix announcement: a Data `/<prefix>/32=PA/v=<version>/seg=0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixAnnouncement<'a> {
    /// The announced prefix.
    pub prefix: NameRef<'a>,
    /// Version of the announcement.
    pub version: u64,
    /// How long it counts from its arrival, in milliseconds.
    pub expiration_ms: u64,
    /// When it counts at all.
    pub validity_period: Option<ValidityPeriod>,
    /// Cost that the producer asks for (an extension of NDNts).
    pub cost: Option<u64>,
}

/// The keyword of prefix announcements.
pub const ANNOUNCEMENT_KEYWORD: &[u8] = b"PA";

impl<'a> PrefixAnnouncement<'a> {
    /// Reads the announcement that `data` is. Its signature is not verified.
    ///
    /// # Errors
    /// [`Malformed`] when name, content type or content are not those of an announcement.
    pub fn parse(data: &Data<'a>) -> Result<Self, Malformed> {
        if data.content_type != types::CONTENT_PREFIX_ANNOUNCEMENT {
            return Err(Malformed::Value(types::CONTENT_TYPE));
        }
        let name = data.name;
        let bad_name = Malformed::Value(types::NAME);
        let prefix_len = name.len().checked_sub(3).ok_or(bad_name)?;
        let mut tail = name.suffix(prefix_len).components();
        let keyword = tail.next().filter(|c| c.is_keyword(ANNOUNCEMENT_KEYWORD));
        let version = tail.next().and_then(Component::as_version);
        let segment = tail.next().and_then(Component::as_segment);
        let (Some(_), Some(version), Some(0)) = (keyword, version, segment) else {
            return Err(bad_name);
        };
        let mut expiration = None;
        let mut announcement = Self {
            prefix: name.prefix(prefix_len),
            version,
            expiration_ms: 0,
            validity_period: None,
            cost: None,
        };
        for element in Reader::new(data.content) {
            let element = element?;
            match element.typ {
                types::EXPIRATION_PERIOD => expiration = Some(element.nni()?),
                types::VALIDITY_PERIOD => {
                    announcement.validity_period = Some(ValidityPeriod::parse(element.value)?);
                }
                types::COST => announcement.cost = Some(element.nni()?),
                typ if tlv::is_critical(typ) => return Err(Malformed::UnknownCritical(typ)),
                _ => {}
            }
        }
        let missing = Malformed::Missing(types::EXPIRATION_PERIOD);
        announcement.expiration_ms = expiration.ok_or(missing)?;
        Ok(announcement)
    }

    /// The name of this announcement.
    #[must_use]
    pub fn name(&self) -> Name {
        let mut name = self.prefix.to_name();
        name.append_keyword(ANNOUNCEMENT_KEYWORD).append_version(self.version).append_segment(0);
        name
    }

    /// Appends the content of this announcement; the Data around it has content type 5.
    pub fn write_content(&self, out: &mut Vec<u8>) {
        tlv::put_nni_tlv(out, types::EXPIRATION_PERIOD, self.expiration_ms);
        if let Some(validity) = self.validity_period {
            validity.write(out);
        }
        if let Some(cost) = self.cost {
            tlv::put_nni_tlv(out, types::COST, cost);
        }
    }
}

#[cfg(test)]
mod tests;
