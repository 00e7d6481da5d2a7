//! Messages of NDNCERT 0.3, read strictly and written as deployed implementations do.

use crate::Error;
use crate::error::ErrorCode;
use crate::id::RequestId;
use crate::number::{self as n, IV_LEN, POINT_LEN, SALT_LEN, TAG_LEN};
use onym_crypto::Certificate;
use onym_wire::tlv::{self, Element, Reader};
use onym_wire::{Malformed, Name, NameRef, types};
use std::fmt;
use zeroize::Zeroizing;

/// Longest text of a field, in octets.
pub const TEXT_MAX: usize = 1024;
/// Most fields of one kind in a message.
pub const FIELDS_MAX: usize = 32;

/// Goes through the elements of a message: those that are unknown and critical refuse it.
fn each<'a>(
    octets: &'a [u8],
    known: &[u32],
    mut take: impl FnMut(Element<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    for element in Reader::new(octets) {
        let element = element?;
        if known.contains(&element.typ) {
            take(element)?;
        } else if tlv::is_critical(element.typ) {
            return Err(Malformed::UnknownCritical(element.typ).into());
        }
    }
    Ok(())
}

fn once<T>(slot: &mut Option<T>, value: T, typ: u32) -> Result<(), Error> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Malformed::OutOfOrder(typ).into()),
    }
}

fn needed<T>(slot: Option<T>, typ: u32) -> Result<T, Error> {
    slot.ok_or_else(|| Malformed::Missing(typ).into())
}

fn add<T>(list: &mut Vec<T>, value: T) -> Result<(), Error> {
    if list.len() >= FIELDS_MAX {
        return Err(Malformed::TooLong.into());
    }
    list.push(value);
    Ok(())
}

fn text(element: Element<'_>) -> Result<String, Error> {
    if element.value.len() > TEXT_MAX {
        return Err(Error::Text);
    }
    String::from_utf8(element.value.to_vec()).map_err(|_| Error::Text)
}

fn array<const N: usize>(element: Element<'_>) -> Result<[u8; N], Error> {
    element.value.try_into().map_err(|_| Malformed::Length(element.typ).into())
}

/// The one Name that an element holds.
fn name(element: Element<'_>) -> Result<Name, Error> {
    Ok(NameRef::parse(element.value)?.to_name())
}

fn put_name(out: &mut Vec<u8>, typ: u32, name: NameRef<'_>) {
    tlv::put_nested(out, typ, |out| name.write_tlv(out));
}

/// A parameter of a probe or a challenge. Its value may be a secret: `Debug` does not show it, and
/// it is overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Parameter {
    /// What it is.
    pub key: String,
    /// Its value.
    pub value: Zeroizing<Vec<u8>>,
}

impl Parameter {
    /// A parameter.
    #[must_use]
    pub fn new(key: &str, value: impl Into<Vec<u8>>) -> Self {
        Self { key: key.to_owned(), value: Zeroizing::new(value.into()) }
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} octets", self.key, self.value.len())
    }
}

fn put_parameters(out: &mut Vec<u8>, parameters: &[Parameter]) {
    for Parameter { key, value } in parameters {
        tlv::put_tlv(out, n::PARAMETER_KEY, key.as_bytes());
        tlv::put_tlv(out, n::PARAMETER_VALUE, value);
    }
}

/// Pairs of key and value, as they come.
#[derive(Default)]
struct Pairs {
    done: Vec<Parameter>,
    key: Option<String>,
}

impl Pairs {
    fn take(&mut self, element: Element<'_>) -> Result<(), Error> {
        if element.typ == n::PARAMETER_KEY {
            return once(&mut self.key, text(element)?, n::PARAMETER_KEY);
        }
        let key = needed(self.key.take(), n::PARAMETER_KEY)?;
        add(&mut self.done, Parameter { key, value: Zeroizing::new(element.value.to_vec()) })
    }

    fn end(self) -> Result<Vec<Parameter>, Error> {
        match self.key {
            None => Ok(self.done),
            Some(_) => Err(Malformed::Missing(n::PARAMETER_VALUE).into()),
        }
    }
}

/// What an authority says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its prefix.
    pub prefix: Name,
    /// Its words.
    pub info: String,
    /// Keys of the parameters that a probe needs.
    pub probe_keys: Vec<String>,
    /// Longest validity that it grants, in seconds.
    pub max_validity_s: u64,
    /// Its certificate.
    pub certificate: Certificate,
}

impl Profile {
    /// Reads the content of the profile.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Text`], [`Error::Crypto`].
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        const KNOWN: &[u32] =
            &[n::CA_PREFIX, n::CA_INFO, n::PARAMETER_KEY, n::MAX_VALIDITY, n::CA_CERTIFICATE];
        let (mut prefix, mut info, mut max, mut certificate) = (None, None, None, None);
        let mut probe_keys = Vec::new();
        each(content, KNOWN, |e| match e.typ {
            n::CA_PREFIX => once(&mut prefix, name(e)?, e.typ),
            n::CA_INFO => once(&mut info, text(e)?, e.typ),
            n::PARAMETER_KEY => add(&mut probe_keys, text(e)?),
            n::MAX_VALIDITY => once(&mut max, e.nni()?, e.typ),
            _ => once(&mut certificate, Certificate::parse(e.value)?, e.typ),
        })?;
        Ok(Self {
            prefix: needed(prefix, n::CA_PREFIX)?,
            info: info.unwrap_or_default(),
            probe_keys,
            max_validity_s: needed(max, n::MAX_VALIDITY)?,
            certificate: needed(certificate, n::CA_CERTIFICATE)?,
        })
    }

    /// The content of the profile. The validity has at least four octets, as NDNts writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_name(&mut out, n::CA_PREFIX, self.prefix.as_ref());
        tlv::put_tlv(&mut out, n::CA_INFO, self.info.as_bytes());
        for key in &self.probe_keys {
            tlv::put_tlv(&mut out, n::PARAMETER_KEY, key.as_bytes());
        }
        tlv::put_nni_tlv(&mut out, n::MAX_VALIDITY, self.max_validity_s);
        tlv::put_tlv(&mut out, n::CA_CERTIFICATE, self.certificate.wire());
        out
    }
}

/// The parameters of a probe.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Text`].
pub fn read_probe(parameters: &[u8]) -> Result<Vec<Parameter>, Error> {
    let mut pairs = Pairs::default();
    each(parameters, &[n::PARAMETER_KEY, n::PARAMETER_VALUE], |e| pairs.take(e))?;
    pairs.end()
}

/// Writes the parameters of a probe.
#[must_use]
pub fn write_probe(parameters: &[Parameter]) -> Vec<u8> {
    let mut out = Vec::new();
    put_parameters(&mut out, parameters);
    out
}

/// What a probe is answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeReply {
    /// Names to ask for, each with how many components may follow.
    pub names: Vec<(Name, Option<u64>)>,
    /// Other authorities: full names of their certificates, with digest.
    pub redirects: Vec<Name>,
}

impl ProbeReply {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        let mut reply = Self::default();
        each(content, &[n::PROBE_RESPONSE, n::PROBE_REDIRECT], |e| {
            if e.typ == n::PROBE_REDIRECT {
                return add(&mut reply.redirects, name(e)?);
            }
            let (mut prefix, mut suffix) = (None, None);
            each(e.value, &[types::NAME, n::MAX_SUFFIX], |e| match e.typ {
                types::NAME => once(&mut prefix, NameRef::parse(e.wire)?.to_name(), e.typ),
                _ => once(&mut suffix, e.nni()?, e.typ),
            })?;
            add(&mut reply.names, (needed(prefix, types::NAME)?, suffix))
        })?;
        Ok(reply)
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, suffix) in &self.names {
            tlv::put_nested(&mut out, n::PROBE_RESPONSE, |out| {
                name.as_ref().write_tlv(out);
                if let Some(suffix) = suffix {
                    tlv::put_nni_tlv(out, n::MAX_SUFFIX, *suffix);
                }
            });
        }
        for redirect in &self.redirects {
            put_name(&mut out, n::PROBE_REDIRECT, redirect.as_ref());
        }
        out
    }
}

/// What asks for a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// The client's public point, not checked yet.
    pub point: Vec<u8>,
    /// The request: a certificate signed with its own key, not checked yet.
    pub certificate: Certificate,
}

impl NewRequest {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Crypto`].
    pub fn read(parameters: &[u8]) -> Result<Self, Error> {
        let (mut point, mut certificate) = (None, None);
        each(parameters, &[n::ECDH_PUB, n::CERT_REQUEST], |e| match e.typ {
            n::ECDH_PUB => once(&mut point, e.value.to_vec(), e.typ),
            _ => once(&mut certificate, Certificate::parse(e.value)?, e.typ),
        })?;
        Ok(Self {
            point: needed(point, n::ECDH_PUB)?,
            certificate: needed(certificate, n::CERT_REQUEST)?,
        })
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::put_tlv(&mut out, n::ECDH_PUB, &self.point);
        tlv::put_tlv(&mut out, n::CERT_REQUEST, self.certificate.wire());
        out
    }
}

/// What a request for a certificate is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReply {
    /// The authority's public point, not checked yet.
    pub point: Vec<u8>,
    /// Salt of the key.
    pub salt: [u8; SALT_LEN],
    /// The request from now on.
    pub id: RequestId,
    /// Challenges to choose from.
    pub challenges: Vec<String>,
}

impl NewReply {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Text`].
    pub fn read(content: &[u8]) -> Result<Self, Error> {
        let (mut point, mut salt, mut id) = (None, None, None);
        let mut challenges = Vec::new();
        each(content, &[n::ECDH_PUB, n::SALT, n::REQUEST_ID, n::CHALLENGE], |e| match e.typ {
            n::ECDH_PUB => once(&mut point, array::<POINT_LEN>(e)?.to_vec(), e.typ),
            n::SALT => once(&mut salt, array(e)?, e.typ),
            n::REQUEST_ID => once(&mut id, RequestId(array(e)?), e.typ),
            _ => add(&mut challenges, text(e)?),
        })?;
        Ok(Self {
            point: needed(point, n::ECDH_PUB)?,
            salt: needed(salt, n::SALT)?,
            id: needed(id, n::REQUEST_ID)?,
            challenges,
        })
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::put_tlv(&mut out, n::ECDH_PUB, &self.point);
        tlv::put_tlv(&mut out, n::SALT, &self.salt);
        tlv::put_tlv(&mut out, n::REQUEST_ID, &self.id.0);
        for challenge in &self.challenges {
            tlv::put_tlv(&mut out, n::CHALLENGE, challenge.as_bytes());
        }
        out
    }
}

/// An encrypted message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Initialization vector.
    pub iv: [u8; IV_LEN],
    /// Authentication tag.
    pub tag: [u8; TAG_LEN],
    /// Ciphertext.
    pub payload: Vec<u8>,
}

impl Sealed {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn read(octets: &[u8]) -> Result<Self, Error> {
        let (mut iv, mut tag, mut payload) = (None, None, None);
        each(octets, &[n::IV, n::TAG, n::PAYLOAD], |e| match e.typ {
            n::IV => once(&mut iv, array(e)?, e.typ),
            n::TAG => once(&mut tag, array(e)?, e.typ),
            _ => once(&mut payload, e.value.to_vec(), e.typ),
        })?;
        Ok(Self {
            iv: needed(iv, n::IV)?,
            tag: needed(tag, n::TAG)?,
            payload: needed(payload, n::PAYLOAD)?,
        })
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::put_tlv(&mut out, n::IV, &self.iv);
        tlv::put_tlv(&mut out, n::TAG, &self.tag);
        tlv::put_tlv(&mut out, n::PAYLOAD, &self.payload);
        out
    }
}

/// A step of a challenge, before it is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengeRequest {
    /// The challenge.
    pub selected: String,
    /// What it is given.
    pub parameters: Vec<Parameter>,
}

impl ChallengeRequest {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Text`].
    pub fn read(plain: &[u8]) -> Result<Self, Error> {
        let mut selected = None;
        let mut pairs = Pairs::default();
        let known = [n::SELECTED_CHALLENGE, n::PARAMETER_KEY, n::PARAMETER_VALUE];
        each(plain, &known, |e| match e.typ {
            n::SELECTED_CHALLENGE => once(&mut selected, text(e)?, e.typ),
            _ => pairs.take(e),
        })?;
        let selected = needed(selected, n::SELECTED_CHALLENGE)?;
        Ok(Self { selected, parameters: pairs.end()? })
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(4096));
        tlv::put_tlv(&mut out, n::SELECTED_CHALLENGE, self.selected.as_bytes());
        put_parameters(&mut out, &self.parameters);
        out
    }

    /// The value of a parameter.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.parameters.iter().find(|p| p.key == key).map(|p| p.value.as_slice())
    }
}

/// What a step of a challenge is answered, before it is encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChallengeReply {
    /// Status of the request.
    pub status: u64,
    /// Status of the challenge.
    pub challenge_status: Option<String>,
    /// Tries left.
    pub tries: Option<u64>,
    /// Time left, in seconds.
    pub time_s: Option<u64>,
    /// What the challenge tells.
    pub parameters: Vec<Parameter>,
    /// Name of the certificate that was issued.
    pub issued: Option<Name>,
    /// Where to send Interests for it.
    pub hints: Vec<Name>,
}

impl ChallengeReply {
    /// Reads it.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Text`].
    pub fn read(plain: &[u8]) -> Result<Self, Error> {
        const KNOWN: &[u32] = &[
            n::STATUS,
            n::CHALLENGE_STATUS,
            n::REMAINING_TRIES,
            n::REMAINING_TIME,
            n::PARAMETER_KEY,
            n::PARAMETER_VALUE,
            n::ISSUED_NAME,
            types::FORWARDING_HINT,
        ];
        let (mut reply, mut status) = (Self::default(), None);
        let mut pairs = Pairs::default();
        each(plain, KNOWN, |e| match e.typ {
            n::STATUS => once(&mut status, e.nni()?, e.typ),
            n::CHALLENGE_STATUS => once(&mut reply.challenge_status, text(e)?, e.typ),
            n::REMAINING_TRIES => once(&mut reply.tries, e.nni()?, e.typ),
            n::REMAINING_TIME => once(&mut reply.time_s, e.nni()?, e.typ),
            n::ISSUED_NAME => once(&mut reply.issued, name(e)?, e.typ),
            types::FORWARDING_HINT => Reader::new(e.value).try_for_each(|inner| {
                add(&mut reply.hints, NameRef::parse(inner?.wire)?.to_name())
            }),
            _ => pairs.take(e),
        })?;
        reply.status = needed(status, n::STATUS)?;
        reply.parameters = pairs.end()?;
        Ok(reply)
    }

    /// Writes it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::put_nni_tlv(&mut out, n::STATUS, self.status);
        if let Some(status) = &self.challenge_status {
            tlv::put_tlv(&mut out, n::CHALLENGE_STATUS, status.as_bytes());
        }
        for (typ, number) in [(n::REMAINING_TRIES, self.tries), (n::REMAINING_TIME, self.time_s)] {
            if let Some(number) = number {
                tlv::put_nni_tlv(&mut out, typ, number);
            }
        }
        put_parameters(&mut out, &self.parameters);
        if let Some(issued) = &self.issued {
            put_name(&mut out, n::ISSUED_NAME, issued.as_ref());
        }
        if !self.hints.is_empty() {
            tlv::put_nested(&mut out, types::FORWARDING_HINT, |out| {
                self.hints.iter().for_each(|hint| hint.as_ref().write_tlv(out));
            });
        }
        out
    }

    /// The value of a parameter.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.parameters.iter().find(|p| p.key == key).map(|p| p.value.as_slice())
    }
}

/// Writes an error reply.
#[must_use]
pub fn write_error(code: ErrorCode, info: &str) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::put_nni_tlv(&mut out, n::ERROR_CODE, code.0);
    tlv::put_tlv(&mut out, n::ERROR_INFO, info.as_bytes());
    out
}

/// The error that a reply is, if it is one.
///
/// # Errors
/// [`Error::Refused`]; [`Error::Malformed`] or [`Error::Text`] when it begins as an error.
pub fn check_error(content: &[u8]) -> Result<(), Error> {
    if Reader::new(content).optional(n::ERROR_CODE)?.is_none() {
        return Ok(());
    }
    let (mut code, mut info) = (None, None);
    each(content, &[n::ERROR_CODE, n::ERROR_INFO], |e| match e.typ {
        n::ERROR_CODE => once(&mut code, ErrorCode(e.nni()?), e.typ),
        _ => once(&mut info, text(e)?, e.typ),
    })?;
    let code = needed(code, n::ERROR_CODE)?;
    Err(Error::Refused { code, info: info.unwrap_or_default() })
}
