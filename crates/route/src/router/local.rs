//! What programs on the same host ask for: `/localhost/nlsr/…`.

use super::Router;
use crate::codec::Status;
use onym_endpoint::Incoming;
use onym_tables::Tick;
use onym_wire::mgmt::{
    Block as _, ControlParameters, ControlResponse, ORIGIN_CLIENT, parameters_of,
};
use onym_wire::name::Component;
use onym_wire::{DataBuilder, Name, NameRef};

/// Octets of a segment of an answer.
const SEGMENT_LEN: usize = 7000;
/// Answers of several segments that are kept for who reads them.
const KEPT: usize = 8;

/// Components of [`prefix`].
const LOCAL_LEN: usize = 2;
/// Components of [`area_prefix`].
pub(super) const AREA_LEN: usize = 4;

/// `/localhost/nlsr`.
pub(super) fn prefix() -> Name {
    Name::new().with(Component::generic(b"localhost")).with(Component::generic(b"nlsr"))
}

/// `/localhost/nlsr/area/<network>`, the name in one component: datasets of this network, which is one of
/// several of a host.
pub(super) fn area_prefix(network: NameRef<'_>) -> Name {
    let mut wire = Vec::new();
    network.write_tlv(&mut wire);
    prefix().with(Component::generic(b"area")).with(Component::generic(&wire))
}

impl Router {
    pub(super) fn serve_local(&mut self, now: Tick, incoming: &Incoming) {
        let interest = incoming.interest();
        let rest = interest.name.suffix(LOCAL_LEN);
        let word = |index| rest.get(index).filter(|c| c.is_generic()).map(|c| c.value);
        match (word(0), word(1)) {
            (Some(b"rib"), Some(verb @ (b"register" | b"unregister"))) => {
                self.serve_command(now, incoming, verb == b"register");
            }
            _ => self.serve_dataset(now, incoming, LOCAL_LEN),
        }
    }

    /// `/localhost/nlsr/rib/register/<ControlParameters>/<params digest>`, as forwarders send it. It
    /// comes from programs of this host only: the name says so, and forwarders hold to it.
    fn serve_command(&mut self, now: Tick, incoming: &Incoming, announce: bool) {
        let name = incoming.interest().name;
        let parameters = name.get(4).map(parameters_of);
        let response = match parameters {
            _ if !self.config.readvertise => {
                ControlResponse::new(403, "this router reads the routes of its forwarder itself")
            }
            Some(Ok(parameters)) if name.len() == 6 => self.obey(now, parameters, announce),
            _ => ControlResponse::new(400, "ControlParameters expected in the fifth component"),
        };
        let mut content = Vec::new();
        response.write(&mut content);
        let builder = DataBuilder { freshness_ms: 1, ..DataBuilder::new(name, &content) };
        if let Some(data) = self.sign(now, &builder) {
            self.endpoint.reply(incoming, data);
        }
    }

    fn obey(&mut self, now: Tick, given: ControlParameters, announce: bool) -> ControlResponse {
        let Some(prefix) = given.name.filter(|prefix| !is_private(prefix.as_ref())) else {
            return ControlResponse::new(400, "a name that routers may carry is expected");
        };
        let (face, cost) = (given.face_id.unwrap_or(0), given.cost.unwrap_or(0));
        if !announce {
            self.withdraw(now, &prefix, face);
        } else if !self.announce(now, &prefix, face, cost) {
            return ControlResponse::new(503, "too many prefixes are announced here");
        }
        // All of this, or one peer or the other calls it an invalid response.
        ControlResponse::ok(ControlParameters {
            name: Some(prefix),
            face_id: Some(face.max(1)),
            origin: Some(given.origin.unwrap_or(ORIGIN_CLIENT)),
            cost: Some(cost),
            flags: Some(given.flags.unwrap_or(1)),
            ..ControlParameters::default()
        })
    }

    /// The dataset whose word is component `at` of the name.
    pub(super) fn serve_dataset(&mut self, now: Tick, incoming: &Incoming, at: usize) {
        let name = incoming.interest().name;
        let versioned = name.components().position(|c| c.as_version().is_some());
        if let Some(end) = versioned {
            let (version, segment) = (name.prefix(end + 1), name.get(end + 1));
            let kept = self.answers.iter().find(|(kept, _)| kept.as_ref() == version).cloned();
            let segment = segment.and_then(Component::as_segment);
            if let (Some((version, content)), Some(segment)) = (kept, segment) {
                self.answer(now, incoming, &version, &content, segment);
            }
            return;
        }
        let Some(content) = self.dataset(now, name.suffix(at)) else { return };
        let mut version = name.to_name();
        version.append_version(self.unix_ms(now));
        self.answer(now, incoming, &version, &content, 0);
        self.answers.push_back((version, content));
        if self.answers.len() > KEPT {
            self.answers.pop_front();
        }
    }

    /// The content of a dataset, by its word and what is asked about; JSON for those of ours.
    fn dataset(&mut self, now: Tick, asked: NameRef<'_>) -> Option<Vec<u8>> {
        let word = asked.get(0).filter(|c| c.is_generic())?;
        let argument = || NameRef::parse(asked.get(1)?.value).ok().map(|name| name.to_name());
        match word.value {
            b"status" => {
                let mut content = Vec::new();
                self.status().write(&mut content);
                Some(content)
            }
            b"view" => serde_json::to_vec(&self.view(now)).ok(),
            b"explain" => serde_json::to_vec(&self.explain(&argument()?)).ok(),
            _ => None,
        }
    }

    fn answer(
        &mut self,
        now: Tick,
        incoming: &Incoming,
        version: &Name,
        content: &[u8],
        segment: u64,
    ) {
        let Ok(index) = usize::try_from(segment) else { return };
        let Some(at) = index.checked_mul(SEGMENT_LEN).filter(|at| *at <= content.len()) else {
            return;
        };
        let piece = content.get(at..content.len().min(at + SEGMENT_LEN)).unwrap_or_default();
        let chunks = content.len().div_ceil(SEGMENT_LEN).max(1);
        let mut last = Name::new();
        last.append_segment(chunks as u64 - 1);
        let mut name = version.clone();
        name.append_segment(segment);
        let builder = DataBuilder {
            freshness_ms: 100,
            final_block_id: last.as_ref().last(),
            ..DataBuilder::new(name.as_ref(), piece)
        };
        if let Some(data) = self.sign(now, &builder) {
            self.endpoint.reply(incoming, data);
        }
    }

    /// The status dataset of deployed routers.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            network: self.names.network.clone(),
            router: self.names.router.clone(),
            rib_entries: self.table.routes().count() as u64 + 1,
            neighbours: self.neighbours.len() as u64,
            fib_entries: self.fib.len() as u64,
        }
    }
}

/// Names that never leave a host or a link.
pub(super) fn is_private(name: NameRef<'_>) -> bool {
    let first = name.get(0).filter(|c| c.is_generic()).map(|c| c.value);
    matches!(first, None | Some(b"localhost" | b"localhop"))
}
