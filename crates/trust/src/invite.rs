//! Signed invitations (CrossSchema) and certificate lists, extensions of ndnd: how a schema's owner
//! lets in guests whom its rules do not know.
//!
//! An invitation is a Data inside another one, in an element of type 600 behind the signature, so
//! that anybody may attach or strip it: it proves nothing but by its own signature.

use onym_wire::cert::{CertName, ValidityPeriod};
use onym_wire::data::Data;
use onym_wire::name::Component;
use onym_wire::tlv::{Element, Malformed, Reader, is_critical};
use onym_wire::{Name, NameRef, types};

/// The element that holds an invitation.
pub const CROSS_SCHEMA: u32 = 600;
const SIMPLE: u32 = 620;
const PREFIX: u32 = 622;
const COMPONENT: u32 = 624;
const DATA_INDEX: u32 = 625;
const KEY_INDEX: u32 = 626;

/// Most rules of one invitation, and names of one certificate list.
const RULES_MAX: usize = 256;

/// Why an invitation or list does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InviteError {
    /// Not the TLV of one.
    #[error("the invitation is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// The name is not `/<owner>/32=INVITE/<guest>/v=…/seg=0`.
    #[error("{0} is not the name of an invitation: /OWNER/32=INVITE/GUEST/v=NUMBER/seg=0")]
    Name(Name),
    /// It does not say when it is valid.
    #[error("the invitation {0} has no validity period")]
    NoPeriod(Name),
    /// Its time is over, or has not come.
    #[error("the invitation {name} is valid from {from} to {to}")]
    NotValidNow {
        /// Its name.
        name: Name,
        /// First second.
        from: String,
        /// Last second.
        to: String,
    },
    /// It holds an invitation itself.
    #[error("the invitation {0} carries an invitation itself")]
    Nested(Name),
    /// A rule is about names that are not its owner's.
    #[error("the invitation {name} has a rule about {rule}, which is not under its owner's name")]
    Foreign {
        /// Name of the invitation.
        name: Name,
        /// Name of the rule.
        rule: Name,
    },
    /// More rules or names than are read.
    #[error("it has more than {RULES_MAX} entries")]
    TooMany,
    /// A list that is not under the key that it is about, or empty.
    #[error("{0} is not a list of certificates of that key")]
    List(Name),
}

/// A rule of an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    /// The key's certificate is under this name.
    Simple { name: Name, key: Name },
    /// Behind the prefix, the packet's name goes on with the identity of the key.
    Prefix { name: Name },
    /// A component of the packet's name is one of the certificate's, both counted from 0.
    Component { name: Name, key: Name, packet_at: usize, key_at: usize },
}

/// Whom an owner lets in, and to what. Whether the owner signed it is a question of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    name: Name,
    validity: ValidityPeriod,
    rules: Vec<Rule>,
}

/// The invitation that is attached to a Data: the octets of a Data.
#[must_use]
pub fn attached<'a>(data: &Data<'a>) -> Option<&'a [u8]> {
    let outer = Element::parse_as(data.wire, types::DATA).ok()?;
    let mut is_behind = false;
    for element in Reader::new(outer.value) {
        let element = element.ok()?;
        match element.typ {
            types::SIGNATURE_VALUE => is_behind = true,
            CROSS_SCHEMA if is_behind => return Some(element.value),
            _ => {}
        }
    }
    None
}

impl Invitation {
    /// Reads an invitation. Its signature is not verified.
    ///
    /// # Errors
    /// [`InviteError`]: name, period, nesting, rules about what is not the owner's.
    pub fn parse(data: &Data<'_>) -> Result<Self, InviteError> {
        let name = data.name.to_name();
        let bad_name = || InviteError::Name(name.clone());
        let mut components = data.name.components();
        let owner_len = components.position(|c| c.is_keyword(b"INVITE")).filter(|len| *len > 0);
        let owner_len = owner_len.ok_or_else(bad_name)?;
        // Behind the keyword: the guest, one component at least, version and segment.
        let tail: Vec<Component<'_>> = data.name.suffix(owner_len + 1).components().collect();
        match tail.as_slice() {
            [_, .., version, segment]
                if version.as_version().is_some()
                    && segment.as_segment() == Some(0)
                    && tail.len() >= 3 => {}
            _ => return Err(bad_name()),
        }
        if attached(data).is_some() {
            return Err(InviteError::Nested(name));
        }
        let validity = data.signature_info().validity_period;
        let validity = validity.ok_or_else(|| InviteError::NoPeriod(name.clone()))?;
        let rules = rules(data.content)?;
        let owner = data.name.prefix(owner_len);
        // A wildcard in the owner's own part would let guests into what is not the owner's.
        if let Some(foreign) = rules.iter().find(|rule| !owner.is_prefix_of(rule.name().as_ref())) {
            return Err(InviteError::Foreign { name, rule: foreign.name().clone() });
        }
        Ok(Self { name, validity, rules })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    /// Checks that it is valid at this moment, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`InviteError::NotValidNow`].
    pub fn check_valid_at(&self, now_ms: u64) -> Result<(), InviteError> {
        if self.validity.contains(i64::try_from(now_ms / 1000).unwrap_or(i64::MAX)) {
            return Ok(());
        }
        Err(InviteError::NotValidNow {
            name: self.name.clone(),
            from: self.validity.not_before.to_string(),
            to: self.validity.not_after.to_string(),
        })
    }

    /// Whether it lets the key of `certificate`, a full name, sign `packet`.
    #[must_use]
    pub fn allows(&self, packet: NameRef<'_>, certificate: NameRef<'_>) -> bool {
        let Some(parts) = CertName::parse(certificate) else { return false };
        self.rules.iter().any(|rule| rule.allows(packet, &parts))
    }
}

impl Rule {
    const fn name(&self) -> &Name {
        match self {
            Self::Simple { name, .. } | Self::Prefix { name } | Self::Component { name, .. } => {
                name
            }
        }
    }

    fn allows(&self, packet: NameRef<'_>, certificate: &CertName<'_>) -> bool {
        match self {
            Self::Simple { name, key } => begins(packet, name) && begins(certificate.name, key),
            Self::Prefix { name } => {
                let behind = packet.suffix(name.len());
                // The empty identity would be a prefix of everything.
                begins(packet, name)
                    && !certificate.identity.is_empty()
                    && certificate.identity.is_prefix_of(behind)
            }
            Self::Component { name, key, packet_at, key_at } => {
                let same =
                    packet.get(*packet_at).filter(|c| certificate.name.get(*key_at) == Some(*c));
                begins(packet, name) && begins(certificate.name, key) && same.is_some()
            }
        }
    }
}

/// Whether `name` begins with `prefix`, whose components `_` stand for any.
fn begins(name: NameRef<'_>, prefix: &Name) -> bool {
    let is_wild = |component: &Component<'_>| {
        component.value == b"_" && (component.is_generic() || component.is_keyword(b"_"))
    };
    name.len() >= prefix.len()
        && prefix
            .components()
            .zip(name.components())
            .all(|(own, other)| is_wild(&own) || own == other)
}

fn rules(content: &[u8]) -> Result<Vec<Rule>, InviteError> {
    let mut found = Vec::new();
    let mut last = 0;
    for element in Reader::new(content) {
        let element = element?;
        let rule = match element.typ {
            SIMPLE | PREFIX | COMPONENT if element.typ < last => {
                return Err(Malformed::OutOfOrder(element.typ).into());
            }
            SIMPLE => {
                let mut reader = Reader::new(element.value);
                Rule::Simple { name: name(&mut reader)?, key: locator(&mut reader)? }
            }
            PREFIX => Rule::Prefix { name: name(&mut Reader::new(element.value))? },
            COMPONENT => {
                let mut reader = Reader::new(element.value);
                let (name, key) = (name(&mut reader)?, locator(&mut reader)?);
                let packet_at = index(reader.expect(DATA_INDEX)?)?;
                let key_at = index(reader.expect(KEY_INDEX)?)?;
                Rule::Component { name, key, packet_at, key_at }
            }
            typ if is_critical(typ) => return Err(Malformed::UnknownCritical(typ).into()),
            _ => continue,
        };
        last = element.typ;
        if found.len() >= RULES_MAX {
            return Err(InviteError::TooMany);
        }
        found.push(rule);
    }
    Ok(found)
}

fn index(element: Element<'_>) -> Result<usize, Malformed> {
    usize::try_from(element.nni()?).map_err(|_| Malformed::Value(element.typ))
}

fn name(reader: &mut Reader<'_>) -> Result<Name, Malformed> {
    Ok(NameRef::parse_value(reader.expect(types::NAME)?.value)?.to_name())
}

fn locator(reader: &mut Reader<'_>) -> Result<Name, Malformed> {
    name(&mut Reader::new(reader.expect(types::KEY_LOCATOR)?.value))
}

/// The certificates that a list names: Data `KEY/32=auth[/v=…]`, by which an unknown self-signed
/// certificate of `key` points at others of the same key that a chain leads from. The list counts
/// only when it is signed by that key, and a certificate of it only with the same public key.
///
/// # Errors
/// [`InviteError::List`] when it is not about `key`, names nothing or what is not under `key`.
pub fn certificate_list(data: &Data<'_>, key: NameRef<'_>) -> Result<Vec<Name>, InviteError> {
    let bad = || InviteError::List(data.name.to_name());
    let tail = data.name.strip_prefix(key).ok_or_else(bad)?;
    let mut tail = tail.components();
    let is_list = tail.next().is_some_and(|c| c.is_keyword(b"auth"))
        && tail.next().is_none_or(|c| c.as_version().is_some())
        && tail.next().is_none();
    if !is_list {
        return Err(bad());
    }
    let mut found = Vec::new();
    for element in Reader::new(data.content) {
        let element = element?;
        if element.typ != types::NAME {
            return Err(Malformed::Unexpected(element.typ).into());
        }
        let name = NameRef::parse_value(element.value)?;
        if CertName::parse(name).is_none_or(|parts| parts.key_name != key) {
            return Err(bad());
        }
        if found.len() >= RULES_MAX {
            return Err(InviteError::TooMany);
        }
        found.push(name.to_name());
    }
    if found.is_empty() { Err(bad()) } else { Ok(found) }
}
