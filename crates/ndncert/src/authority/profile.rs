//! What an authority tells everybody: its profile, and which names there are.

use super::Authority;
use super::refusal::{Refusal, refuse};
use super::settings::{Reply, Settings, Silence};
use crate::error::ErrorCode;
use crate::message::{Parameter, ProbeReply, Profile, read_probe};
use crate::names;
use crate::{Error, Now};
use onym_crypto::{Certificate, Signer, digest};
use onym_wire::data::DataBuilder;
use onym_wire::interest::Interest;
use onym_wire::{Data, Name, data};

/// FreshnessPeriod of the profile, in milliseconds.
const FRESHNESS_MS: u64 = 3_600_000;
/// How long one metadata serves, in milliseconds.
const METADATA_MS: u64 = 1000;

/// The profile as packets.
#[derive(Debug)]
pub(super) struct Published {
    /// `/<prefix>/CA/INFO/v=<version>`.
    name: Name,
    info: Vec<u8>,
    metadata: Vec<u8>,
    metadata_tick_ms: u64,
}

impl Published {
    pub(super) fn new(
        prefix: &Name,
        certificate: &Certificate,
        signer: &Signer,
        settings: &Settings,
        now: Now,
    ) -> Result<Self, Error> {
        let mut name = names::step_name(prefix.as_ref(), "INFO");
        name.append_version(now.unix_ms);
        let profile = Profile {
            prefix: prefix.clone(),
            info: settings.info.clone(),
            probe_keys: settings.probe_keys.clone(),
            max_validity_s: settings.max_validity_s,
            certificate: certificate.clone(),
        };
        let info = segment(signer, name.clone(), &profile.write(), FRESHNESS_MS)?;
        let mut published =
            Self { name, info, metadata: Vec::new(), metadata_tick_ms: now.tick_ms };
        published.renew_metadata(prefix, signer, now)?;
        Ok(published)
    }

    fn renew_metadata(&mut self, prefix: &Name, signer: &Signer, now: Now) -> Result<(), Error> {
        let mut name = names::step_name(prefix.as_ref(), "INFO");
        name.append_keyword("metadata").append_version(now.unix_ms);
        let mut content = Vec::new();
        self.name.as_ref().write_tlv(&mut content);
        self.metadata = segment(signer, name, &content, 1)?;
        self.metadata_tick_ms = now.tick_ms;
        Ok(())
    }
}

/// The one segment of an object.
fn segment(
    signer: &Signer,
    mut name: Name,
    content: &[u8],
    freshness_ms: u64,
) -> Result<Vec<u8>, Error> {
    name.append_segment(0);
    let builder = DataBuilder {
        freshness_ms,
        final_block_id: name.as_ref().last(),
        ..DataBuilder::new(name.as_ref(), content)
    };
    let mut wire = Vec::new();
    signer.sign_data(&builder, &mut wire)?;
    Ok(wire)
}

impl Authority {
    pub(super) fn profile(&mut self, now: Now, interest: &Interest<'_>) -> Reply {
        if now.tick_ms.saturating_sub(self.published.metadata_tick_ms) > METADATA_MS
            && self.published.renew_metadata(&self.prefix, &self.signer, now).is_err()
        {
            return Reply::Nothing(Silence::Failed);
        }
        let answers = |wire: &&Vec<u8>| {
            let digest = || digest::implicit_digest(wire);
            Data::parse(wire).is_ok_and(|data| data::matches(interest, &data, digest))
        };
        let found = [&self.published.metadata, &self.published.info].into_iter().find(answers);
        found.map_or(Reply::Nothing(Silence::NotForUs), |wire| Reply::Data(wire.clone()))
    }

    /// The names for who sends these parameters.
    pub(super) fn probe(&mut self, interest: &Interest<'_>) -> Result<Vec<u8>, Refusal> {
        let parameters = read_probe(interest.app_parameters.unwrap_or_default())
            .map_err(|e| (ErrorCode::BAD_FORMAT, e.to_string()))?;
        let mut name = self.prefix.clone();
        let mut redirects = Vec::new();
        for key in &self.settings.probe_keys {
            let value = parameters.iter().find(|p| p.key == *key).map(text).transpose()?;
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                return refuse(ErrorCode::INVALID, format!("the parameter {key} is missing"));
            };
            let decides = value.rsplit_once('@').map_or(value.as_str(), |(_, domain)| domain);
            let here = self.settings.redirects.iter().filter(|redirect| {
                redirect.key == *key && redirect.value.eq_ignore_ascii_case(decides)
            });
            redirects.extend(here.map(|redirect| redirect.authority.clone()));
            name.append_generic(&value);
        }
        let suffix = self.settings.max_suffix.saturating_sub(name.len() - self.prefix.len());
        let names = if !redirects.is_empty() {
            Vec::new()
        } else if name.len() == self.prefix.len() {
            return refuse(ErrorCode::NO_NAME, "ask for a name of your own under the prefix");
        } else {
            vec![(name, Some(u64::try_from(suffix).unwrap_or(u64::MAX)))]
        };
        Ok(ProbeReply { names, redirects }.write())
    }
}

fn text(parameter: &Parameter) -> Result<String, Refusal> {
    String::from_utf8(parameter.value.to_vec())
        .map_err(|_| (ErrorCode::INVALID, format!("{} is no text", parameter.key)))
}
