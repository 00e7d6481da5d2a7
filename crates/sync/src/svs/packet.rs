//! Sync Interests of both versions.

use super::vector::StateVector;
use super::{EXTRA_OCTETS_MAX, SvsConfig, Version};
use crate::numbers;
use onym_crypto::signer::{Freshness, write_parameters};
use onym_crypto::{Error, verify};
use onym_wire::tlv::{Element, Malformed};
use onym_wire::{
    Data, DataBuilder, Interest, InterestBuilder, Name, NameRef, SignatureInfo, types,
};

/// Lifetime of Sync Interests, in milliseconds. Nobody answers them.
const LIFETIME_MS: u64 = 1000;

/// Name of the Data inside a Sync Interest of version 3. Of others any name is taken: whether its
/// signer may use it is for the trust check to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InnerName {
    /// `/<group>/v=3`: as specified, and all that NDNts takes.
    Group,
    /// This name with `v=3` behind it: a schema then sees which node signs, as in ndnd's SvsALO.
    Own(Name),
}

/// The prefix of Sync Interests.
pub(crate) fn sync_name(group: NameRef<'_>, version: Version) -> Name {
    let mut name = group.to_name();
    name.append_version(version.number());
    name
}

/// A Sync Interest that was received, well formed and with the right digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncPacket {
    /// The vector.
    pub vector: StateVector,
    /// Elements behind the vector, at most [`EXTRA_OCTETS_MAX`] octets.
    pub extra: Vec<u8>,
    /// What is signed: the Data inside (version 3), the Interest (version 2).
    pub signed: Vec<u8>,
}

impl SyncPacket {
    /// Reads an Interest; `None` when it is for another group or version.
    ///
    /// # Errors
    /// [`Malformed`]: no Interest, a wrong digest of its parameters, or no vector in it.
    pub fn parse(
        wire: &[u8],
        group: NameRef<'_>,
        version: Version,
    ) -> Result<Option<Self>, Malformed> {
        let interest = Interest::parse(wire)?;
        let Some(rest) = interest.name.strip_prefix(group) else { return Ok(None) };
        let is_version = |c: onym_wire::Component<'_>| c.as_version() == Some(version.number());
        if rest.len() != 2 || !rest.get(0).is_some_and(is_version) {
            return Ok(None);
        }
        let parameters =
            interest.app_parameters.ok_or(Malformed::Missing(types::APPLICATION_PARAMETERS))?;
        verify::check_parameters_digest(&interest).map_err(|_| Malformed::ParametersDigest)?;
        let (signed, state) = match version {
            Version::V2 => (wire, parameters),
            Version::V3 => {
                let inner = Element::parse_as(parameters, types::DATA)?.wire;
                (inner, Data::parse(inner)?.content)
            }
        };
        let (vector, extra) = read_state(state, version)?;
        Ok(Some(Self { vector, extra, signed: signed.to_vec() }))
    }
}

fn read_state(state: &[u8], version: Version) -> Result<(StateVector, Vec<u8>), Malformed> {
    let (element, extra) = Element::split(state)?;
    let vector = StateVector::read(element, version)?;
    let extra = if extra.len() > EXTRA_OCTETS_MAX { &[] } else { extra };
    Ok((vector, extra.to_vec()))
}

/// Writes a Sync Interest.
pub(crate) fn write(
    config: &SvsConfig,
    vector: &StateVector,
    extra: &[u8],
    nonce: [u8; 4],
    fresh: u64,
    unix_ms: u64,
) -> Result<Vec<u8>, Error> {
    let name = sync_name(config.group.as_ref(), config.version);
    let interest = InterestBuilder {
        nonce: Some(nonce),
        lifetime_ms: Some(LIFETIME_MS),
        ..InterestBuilder::new(name.as_ref())
    };
    let mut state = Vec::with_capacity(1024);
    vector.write(config.version, &mut state);
    state.extend_from_slice(extra);
    let mut out = Vec::with_capacity(state.len() + 300);
    match config.version {
        Version::V2 => {
            let fresh =
                Freshness { nonce: Some(fresh.to_be_bytes()), time_ms: Some(unix_ms), seq: None };
            config.signer.sign_interest(&interest, &state, fresh, &mut out)?;
        }
        Version::V3 => {
            let inner = write_inner(config, &name, &state, unix_ms)?;
            write_parameters(&interest, &inner, &mut out);
        }
    }
    Ok(out)
}

fn write_inner(
    config: &SvsConfig,
    sync_name: &Name,
    state: &[u8],
    unix_ms: u64,
) -> Result<Vec<u8>, Error> {
    let own;
    let name = match &config.inner {
        InnerName::Group => sync_name,
        InnerName::Own(name) => {
            own = self::sync_name(name.as_ref(), config.version);
            &own
        }
    };
    let info = config.signer.info();
    // A digest proves nothing about who made it, so that a time with it would neither.
    let is_key = info.kind != types::SIGNATURE_DIGEST_SHA256 && info.kind != types::SIGNATURE_NULL;
    let info = SignatureInfo { time: is_key.then_some(unix_ms), ..info };
    let mut inner = Vec::with_capacity(state.len() + 200);
    let data = DataBuilder::new(name.as_ref(), state);
    data.write(&mut inner, &info, |signed| config.signer.sign(&[signed]))?;
    Ok(inner)
}

/// The first element type of parameters: tells the versions apart where both are heard.
#[must_use]
pub fn version_of(parameters: &[u8]) -> Option<Version> {
    match Element::split(parameters).ok()?.0.typ {
        numbers::STATE_VECTOR => Some(Version::V2),
        types::DATA => Some(Version::V3),
        _ => None,
    }
}
