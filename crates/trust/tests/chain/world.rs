//! A world of keys and certificates, and a network that answers for them.

use onym_crypto::{Certificate, KeyType, PrivateKey};
pub(crate) use onym_trust::chain::Limits;
use onym_trust::chain::{Context, Event, Failure, Refusal, Trusted, Validator};
use onym_trust::lvs::{Functions, Mode, Schema, compile};
use onym_wire::Name;
use onym_wire::cert::{CertTime, ValidityPeriod};
use onym_wire::data::DataBuilder;
use onym_wire::signature::{KeyLocator, SignatureInfo};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// 2026-11-23, in milliseconds.
pub(crate) const NOW_MS: u64 = 1_795_400_000_000;
pub(crate) const DAY_MS: u64 = 86_400_000;

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// A key with the full name of its certificate.
#[derive(Clone)]
pub(crate) struct Party {
    pub(crate) key: Arc<PrivateKey>,
    pub(crate) certificate: Name,
}

/// What a certificate says; the defaults are those of a good one.
#[derive(Clone)]
pub(crate) struct Form {
    pub(crate) content_type: u64,
    pub(crate) freshness_ms: u64,
    /// Days from [`NOW_MS`].
    pub(crate) days: (i64, i64),
    pub(crate) content: Option<Vec<u8>>,
    pub(crate) locator: Option<Name>,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            content_type: 2,
            freshness_ms: 3_600_000,
            days: (-30, 30),
            content: None,
            locator: None,
        }
    }
}

fn second(days: i64) -> CertTime {
    CertTime(i64::try_from(NOW_MS / 1000).unwrap() + days * 86_400)
}

pub(crate) fn key() -> Arc<PrivateKey> {
    Arc::new(PrivateKey::generate(KeyType::Ed25519).unwrap())
}

/// The certificate `uri` of `key`, signed by `issuer`.
pub(crate) fn certificate(uri: &str, key: &PrivateKey, issuer: &Party, form: &Form) -> Vec<u8> {
    let name = name(uri);
    let locator = form.locator.clone().unwrap_or_else(|| issuer.certificate.clone());
    let validity =
        ValidityPeriod { not_before: second(form.days.0), not_after: second(form.days.1) };
    let info = SignatureInfo {
        key_locator: Some(KeyLocator::Name(locator.as_ref())),
        validity_period: Some(validity),
        ..SignatureInfo::of_kind(issuer.key.key_type().signature_type())
    };
    let content = form.content.clone().unwrap_or_else(|| key.spki().to_vec());
    let data = DataBuilder {
        content_type: form.content_type,
        freshness_ms: form.freshness_ms,
        ..DataBuilder::new(name.as_ref(), &content)
    };
    let mut wire = Vec::new();
    data.write(&mut wire, &info, |signed| {
        let mut signature = Vec::new();
        issuer.key.sign(&[signed], &mut signature).map(|()| signature)
    })
    .unwrap();
    wire
}

/// A Data signed by `signer`, whose locator is `locator`.
pub(crate) fn signed_at(
    uri: &str,
    signer: &Party,
    locator: &Name,
    time_ms: Option<u64>,
) -> Vec<u8> {
    let name = name(uri);
    let info = SignatureInfo {
        key_locator: Some(KeyLocator::Name(locator.as_ref())),
        time: time_ms,
        ..SignatureInfo::of_kind(signer.key.key_type().signature_type())
    };
    let mut wire = Vec::new();
    DataBuilder::new(name.as_ref(), b"content")
        .write(&mut wire, &info, |signed| {
            let mut signature = Vec::new();
            signer.key.sign(&[signed], &mut signature).map(|()| signature)
        })
        .unwrap();
    wire
}

pub(crate) fn signed(uri: &str, signer: &Party) -> Vec<u8> {
    signed_at(uri, signer, &signer.certificate, None)
}

pub(crate) fn self_signed(uri: &str, form: &Form) -> (Party, Vec<u8>) {
    let party = Party { key: key(), certificate: name(uri) };
    let wire = certificate(uri, &party.key, &party, form);
    (party, wire)
}

pub(crate) fn issued(uri: &str, issuer: &Party, form: &Form) -> (Party, Vec<u8>) {
    let party = Party { key: key(), certificate: name(uri) };
    let wire = certificate(uri, &party.key, issuer, form);
    (party, wire)
}

/// A validator with its network.
pub(crate) struct World {
    pub(crate) validator: Validator,
    /// Answers by the name that is asked for; what is not here times out.
    pub(crate) answers: BTreeMap<Name, Vec<u8>>,
    pub(crate) fetched: Vec<Name>,
    pub(crate) now_ms: u64,
}

/// Each level is signed by the one above: `/a`, `/a/x`, `/a/x/x`, …; data by any of them.
pub(crate) fn hierarchy() -> Arc<Schema> {
    let text = r##"
        #K: "KEY"/_/_/_
        #root: "a"/#K
        #site: "a"/s/#K <= #root
        #host: "a"/s/h/#K <= #site
        #app: "a"/s/h/p/#K <= #host
        #data: "a"/s/h/p/_ <= #app
        #note: "a"/s/_ <= #site | #root
    "##;
    let model = compile(text, Mode::Strict).unwrap();
    Arc::new(Schema::new(model, Functions::default()).unwrap())
}

impl World {
    pub(crate) fn new(policy: Arc<dyn onym_trust::Policy>, limits: Limits) -> Self {
        let validator = Validator::new(policy, limits);
        Self { validator, answers: BTreeMap::new(), fetched: Vec::new(), now_ms: NOW_MS }
    }

    pub(crate) fn anchor(&mut self, wire: &[u8]) {
        self.validator.add_anchor(Certificate::parse(wire).unwrap()).unwrap();
    }

    pub(crate) fn publish(&mut self, wire: Vec<u8>) -> Name {
        let data = onym_wire::data::Data::parse(&wire).unwrap();
        let name = data.name.to_name();
        self.answers.insert(name.clone(), wire);
        name
    }

    pub(crate) fn context(&self) -> Context {
        Context { now_ms: self.now_ms, ..Context::default() }
    }

    /// Answers fetches until nothing waits any more; the judgements in their order.
    pub(crate) fn settle(&mut self) -> Vec<(u64, Result<Trusted, Refusal>)> {
        let mut judged = Vec::new();
        let mut open = VecDeque::new();
        loop {
            while let Some(event) = self.validator.poll() {
                match event {
                    Event::Fetch(fetch) => open.push_back(fetch),
                    Event::Judged { ticket, result } => judged.push((ticket, result)),
                }
            }
            let Some(fetch) = open.pop_front() else { return judged };
            self.fetched.push(fetch.name.clone());
            let found = self.answers.get(&fetch.name).or_else(|| {
                let under = self.answers.range(fetch.name.clone()..).take(1);
                let newest = under.filter(|(n, _)| fetch.name.as_ref().is_prefix_of(n.as_ref()));
                newest.map(|(_, wire)| wire).next().filter(|_| fetch.newest)
            });
            let context = self.context();
            match found {
                Some(wire) => self.validator.certificate(fetch.id, wire, &context),
                None => self.validator.failed(fetch.id, Failure::TimedOut, self.now_ms),
            }
        }
    }

    pub(crate) fn judge_with(
        &mut self,
        wire: &[u8],
        context: &Context,
    ) -> Result<Trusted, Refusal> {
        if let Some(result) = self.validator.data(wire, 1, context) {
            return result;
        }
        let mut judged = self.settle();
        assert_eq!(judged.len(), 1, "each packet is judged exactly once");
        judged.remove(0).1
    }

    pub(crate) fn judge(&mut self, wire: &[u8]) -> Result<Trusted, Refusal> {
        let context = self.context();
        self.judge_with(wire, &context)
    }
}

/// Root, site, host and app of [`hierarchy`], the first an anchor, the others published.
pub(crate) struct Chain {
    pub(crate) world: World,
    pub(crate) root: Party,
    pub(crate) site: Party,
    pub(crate) host: Party,
    pub(crate) app: Party,
}

pub(crate) fn chain_with(limits: Limits, forms: [Form; 4]) -> Chain {
    let mut world = World::new(hierarchy(), limits);
    let (root, wire) = self_signed("/a/KEY/r/self/v=1", &forms[0]);
    world.anchor(&wire);
    let (site, wire) = issued("/a/s/KEY/s/r/v=1", &root, &forms[1]);
    world.publish(wire);
    let (host, wire) = issued("/a/s/h/KEY/h/s/v=1", &site, &forms[2]);
    world.publish(wire);
    let (app, wire) = issued("/a/s/h/p/KEY/p/h/v=1", &host, &forms[3]);
    world.publish(wire);
    Chain { world, root, site, host, app }
}

pub(crate) fn chain() -> Chain {
    chain_with(Limits::default(), std::array::from_fn(|_| Form::default()))
}
