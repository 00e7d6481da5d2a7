//! Measures what trust costs: `cargo run --release -p onym-trust --example measure`.
//!
//! Ratios are taken in one run; every figure is a mean over the loop that is printed with it.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use onym_crypto::verify::Signed;
use onym_crypto::{Certificate, KeyType, PrivateKey, PublicKey, Signer};
use onym_trust::chain::{Context, Event, Limits, Validator};
use onym_trust::lvs::{Functions, Mode, Schema, compile};
use onym_trust::{Policy, Subject};
use onym_wire::Name;
use onym_wire::cert::{CertTime, ValidityPeriod};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::signature::SignatureInfo;
use std::sync::Arc;
use std::time::Instant;

const KEYS: usize = 10_000;
const NOW_MS: u64 = 1_795_400_000_000;

const SCHEMA: &str = r##"
    #K: "KEY"/_/_/_
    #root: "a"/#K
    #site: "a"/s/#K <= #root
    #user: "a"/s/u/#K & {u: $eq_type("x")} <= #site
    #data: "a"/s/u/d/_ <= #user
    #note: "a"/"note"/_ <= #root
    #log: "a"/s/"log"/day/hour/_ <= #site
    #state: "a"/s/"state"/_ <= #site | #user
"##;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn schema() -> Schema {
    Schema::new(compile(SCHEMA, Mode::Strict).unwrap(), Functions::default()).unwrap()
}

fn mean_us(times: usize, mut what: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..times).for_each(&mut what);
    start.elapsed().as_secs_f64() * 1e6 / f64::from(u32::try_from(times).unwrap())
}

fn matching() {
    let schema = schema();
    let (packet, key) = (name("/a/s/u/d/1"), name("/a/s/u/KEY/k/i/v=1"));
    let foreign = name("/a/s/x/KEY/k/i/v=1");
    let subject = Subject::data(packet.as_ref());
    let allowed = mean_us(200_000, |_| assert!(schema.check(&subject, key.as_ref()).is_allowed()));
    let denied =
        mean_us(20_000, |_| assert!(!schema.check(&subject, foreign.as_ref()).is_allowed()));
    let nodes = schema.model().node_count();
    println!(
        "match of a model with {nodes} nodes: {allowed:.2} us allowed (200000), {denied:.2} us denied with its reason (20000)"
    );
}

struct Party {
    signer: Signer,
    certificate: Vec<u8>,
}

fn party(uri: &str, kind: KeyType, issuer: Option<&Signer>) -> Party {
    let (name, key) = (name(uri), PrivateKey::generate(kind).unwrap());
    let spki = key.spki().to_vec();
    let signer = Signer::key(key, name.clone());
    let now_s = i64::try_from(NOW_MS / 1000).unwrap();
    let validity = ValidityPeriod {
        not_before: CertTime(now_s - 86_400),
        not_after: CertTime(now_s + 86_400),
    };
    let by = issuer.unwrap_or(&signer);
    let info = SignatureInfo { validity_period: Some(validity), ..by.info() };
    let builder = DataBuilder {
        content_type: 2,
        freshness_ms: 3_600_000,
        ..DataBuilder::new(name.as_ref(), &spki)
    };
    let mut certificate = Vec::new();
    builder.write(&mut certificate, &info, |signed| by.sign(&[signed])).unwrap();
    Party { signer, certificate }
}

fn verifying(kind: KeyType) {
    let root = party("/a/KEY/r/self/v=1", kind, None);
    let site = party("/a/s/KEY/s/r/v=1", kind, Some(&root.signer));
    let limits =
        Limits { packets: 2 * KEYS, fetches: 2 * KEYS, octets: 1 << 30, ..Limits::default() };
    let mut validator = Validator::new(Arc::new(schema()), limits);
    validator.add_anchor(Certificate::parse(&root.certificate).unwrap()).unwrap();
    let context = Context { now_ms: NOW_MS, ..Context::default() };
    let (mut packets, mut keys, mut users) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..KEYS {
        let user = party(&format!("/a/s/{number}/KEY/k/s/v=1"), kind, Some(&site.signer));
        let data = name(&format!("/a/s/{number}/d/1"));
        let mut packet = Vec::new();
        user.signer.sign_data(&DataBuilder::new(data.as_ref(), b"content"), &mut packet).unwrap();
        let parsed = Certificate::parse(&user.certificate).unwrap();
        keys.push(PublicKey::from_spki(parsed.public_key().spki()).unwrap());
        users.push((parsed.name().to_name(), user.certificate));
        assert!(validator.data(&packet, 0, &context).is_none());
        packets.push(packet);
    }
    let (mut fetches, mut judged) = (0, 0);
    let start = Instant::now();
    while let Some(event) = validator.poll() {
        match event {
            Event::Fetch(fetch) => {
                fetches += 1;
                let user = users.iter().find(|(name, _)| *name == fetch.name).map(|(_, wire)| wire);
                validator.certificate(fetch.id, user.unwrap_or(&site.certificate), &context);
            }
            Event::Judged { result, .. } => {
                judged += 1;
                result.unwrap();
            }
        }
    }
    let cold = start.elapsed().as_secs_f64();
    println!(
        "{}: {fetches} fetches for {judged} packets of {KEYS} keys, {cold:.2} s cold",
        kind.word()
    );
    let times = 3 * KEYS;
    // Twice in turn, so that a machine that slows down slows both.
    let (mut raw, mut whole) = (0.0, 0.0);
    for _ in 0..2 {
        raw += mean_us(times, |at| {
            let data = Data::parse(&packets[at % KEYS]).unwrap();
            Signed::data(&data).verify_key(&keys[at % KEYS]).unwrap();
        }) / 2.0;
        whole += mean_us(times, |at| {
            assert!(validator.data(&packets[at % KEYS], 0, &context).unwrap().is_ok());
        }) / 2.0;
    }
    println!(
        "{}: raw verification {raw:.1} us, with rules and cached chain {whole:.1} us: {:.1} % of the raw rate ({times} packets, twice)",
        kind.word(),
        100.0 * raw / whole
    );
}

fn main() {
    matching();
    verifying(KeyType::Ed25519);
    verifying(KeyType::Ecdsa);
}
