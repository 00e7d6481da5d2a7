//! An authority, clients, and entropy that repeats.

#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod renewals;

use onym_crypto::cert::validity_of_days;
use onym_crypto::{Certificate, Entropy, KeyType, PrivateKey, Signer};
use onym_ndncert::authority::{Kind, Limits};
use onym_ndncert::message::Parameter;
use onym_ndncert::{Authority, Enrolment, Error, ErrorCode, Now, Order, Progress, Reply, Settings};
use onym_wire::Name;
use onym_wire::cert::ValidityPeriod;

pub(crate) const NOW_MS: u64 = 1_795_444_860_000;

/// Numbers by a seed.
pub(crate) struct Seeded(pub(crate) u64);

impl Entropy for Seeded {
    fn fill(&mut self, out: &mut [u8]) {
        for octet in out {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *octet = u8::try_from(self.0 >> 56).unwrap();
        }
    }
}

pub(crate) fn now(seconds: u64) -> Now {
    Now { unix_ms: NOW_MS + seconds * 1000, tick_ms: 1_000_000 + seconds * 1000 }
}

pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

pub(crate) fn key() -> PrivateKey {
    PrivateKey::generate(KeyType::Ecdsa).unwrap()
}

pub(crate) fn copy(key: &PrivateKey) -> PrivateKey {
    PrivateKey::from_pkcs8(&key.to_pkcs8().unwrap()).unwrap()
}

pub(crate) fn anchor(identity: &str, key: &PrivateKey) -> Certificate {
    let name = name(&format!("{identity}/KEY/1"));
    Certificate::self_signed(name.as_ref(), key, NOW_MS - 1_000_000).unwrap()
}

/// A certificate that signs itself, and is valid for a day.
pub(crate) fn anchor_like(key: &PrivateKey, identity: &str) -> Certificate {
    let name = name(&format!("{identity}/KEY/k"));
    Certificate::self_signed_for(name.as_ref(), key, NOW_MS, day()).unwrap()
}

/// An authority for `/ca` with everything on, and its entropy.
pub(crate) struct World {
    pub(crate) authority: Authority,
    pub(crate) certificate: Certificate,
    pub(crate) key: PrivateKey,
    pub(crate) other: PrivateKey,
    pub(crate) entropy: Seeded,
    pub(crate) codes: Vec<String>,
    pub(crate) orders: Vec<Order>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let (key, other) = (key(), key());
        let certificate = anchor("/ca", &key);
        let signer = Signer::key(copy(&key), certificate.name().to_name());
        let settings = Settings {
            info: "test CA".into(),
            max_validity_s: 86_400,
            challenges: vec![Kind::Pin, Kind::Possession, Kind::Email, Kind::Dns],
            anchors: vec![anchor("/other", &other)],
            limits,
            ..Settings::default()
        };
        let authority = Authority::new(certificate.clone(), signer, settings, now(0)).unwrap();
        Self {
            authority,
            certificate,
            key,
            other,
            entropy: Seeded(7),
            codes: Vec::new(),
            orders: Vec::new(),
        }
    }

    /// The reply to an Interest, after its orders were seen to.
    pub(crate) fn ask(&mut self, now: Now, interest: &[u8]) -> Reply {
        let reply = self.authority.receive(now, interest, &mut self.entropy);
        while let Some(order) = self.authority.poll_order() {
            if let Order::Show { code, .. } | Order::Mail { code, .. } = &order {
                self.codes.push(code.reveal().to_owned());
            }
            self.orders.push(order);
        }
        reply
    }

    pub(crate) fn data(&mut self, now: Now, interest: &[u8]) -> Vec<u8> {
        match self.ask(now, interest) {
            Reply::Data(data) => data,
            other => panic!("no Data: {other:?}"),
        }
    }

    /// A request of `identity` by `key` that asks for `validity`.
    pub(crate) fn enrol(
        &self,
        identity: &str,
        key: &PrivateKey,
        validity: ValidityPeriod,
    ) -> Enrolment {
        let name = name(&format!("{identity}/KEY/k"));
        let key = copy(key);
        Enrolment::new(self.certificate.clone(), key, name.as_ref(), validity, NOW_MS).unwrap()
    }

    pub(crate) fn begin(
        &mut self,
        now: Now,
        enrolment: &mut Enrolment,
    ) -> Result<Vec<String>, Error> {
        let interest = enrolment.begin(now.unix_ms, &mut self.entropy).unwrap();
        let data = self.data(now, &interest);
        enrolment.began(&data, &mut Seeded(NOW_MS))
    }

    /// A request of `identity` that was begun.
    pub(crate) fn begun(&mut self, now: Now, identity: &str, key: &PrivateKey) -> Enrolment {
        let mut enrolment = self.enrol(identity, key, day());
        self.begin(now, &mut enrolment).unwrap();
        enrolment
    }

    pub(crate) fn step(
        &mut self,
        now: Now,
        enrolment: &mut Enrolment,
        challenge: &str,
        parameters: Vec<Parameter>,
    ) -> Result<Progress, Error> {
        let interest =
            enrolment.challenge(challenge, parameters, now.unix_ms, &mut self.entropy).unwrap();
        let data = self.data(now, &interest);
        enrolment.challenged(&data)
    }

    /// A certificate of `identity` by the code that the operator sees.
    pub(crate) fn by_pin(&mut self, now: Now, identity: &str, key: &PrivateKey) -> Certificate {
        let mut enrolment = self.begun(now, identity, key);
        self.step(now, &mut enrolment, "pin", vec![]).unwrap();
        let code = self.codes.pop().unwrap();
        let done = self.step(now, &mut enrolment, "pin", pair("code", code.as_bytes())).unwrap();
        self.fetch(now, &enrolment, &done)
    }

    pub(crate) fn fetch(
        &mut self,
        now: Now,
        enrolment: &Enrolment,
        progress: &Progress,
    ) -> Certificate {
        let Progress::Issued { name, hints } = progress else { panic!("{progress:?}") };
        assert_eq!(hints[0].to_string(), "/ca/CA");
        let mut interest = Vec::new();
        onym_wire::InterestBuilder::new(name.as_ref()).write(&mut interest);
        let data = self.data(now, &interest);
        enrolment.accept(name.as_ref(), &data, now.unix_ms).unwrap()
    }
}

pub(crate) fn day() -> ValidityPeriod {
    let mut validity = validity_of_days(NOW_MS, 1);
    validity.not_before.0 += 1;
    validity
}

pub(crate) fn pair(key: &str, value: &[u8]) -> Vec<Parameter> {
    vec![Parameter::new(key, value)]
}

/// The code of the error that it is.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorCode {
    match result {
        Err(Error::Refused { code, .. }) => code,
        other => panic!("not refused: {other:?}"),
    }
}
