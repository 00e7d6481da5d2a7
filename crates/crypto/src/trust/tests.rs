use super::*;
use crate::cert::validity_of_days;
use crate::{Issue, KeyType, PrivateKey, Signer};
use onym_wire::data::DataBuilder;
use onym_wire::name::Component;

const NOW_MS: u64 = 1_700_000_000_000;

/// A key and its certificate, self-signed or issued.
struct Holder {
    key: PrivateKey,
    certificate: Certificate,
}

impl Holder {
    fn root(identity: &str) -> Self {
        let mut name: Name = identity.parse().unwrap();
        name.append_generic("KEY").append_generic("1");
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let certificate = Certificate::self_signed(name.as_ref(), &key, NOW_MS).unwrap();
        Self { key, certificate }
    }

    fn signer(&self) -> Signer {
        let key = PrivateKey::from_pkcs8(&self.key.to_pkcs8().unwrap()).unwrap();
        Signer::key(key, self.certificate.name().to_name())
    }

    fn issued(identity: &str, by: &Self) -> Self {
        let mut holder = Self::root(identity);
        let issue = Issue {
            issuer_id: Component::generic(b"NA"),
            validity: validity_of_days(NOW_MS, 1),
            now_ms: NOW_MS,
        };
        holder.certificate = Certificate::issue(&holder.certificate, &by.signer(), &issue).unwrap();
        holder
    }

    fn data(&self, name: &str) -> Vec<u8> {
        let name: Name = name.parse().unwrap();
        let mut wire = Vec::new();
        let data = DataBuilder::new(name.as_ref(), b"content");
        self.signer().sign_data(&data, &mut wire).unwrap();
        wire
    }
}

/// Runs a check to its end with the certificates of `served`; counts the fetches.
fn run(trust: &mut Trust, packet: &[u8], served: &[&Holder], now_ms: u64) -> (Step, usize) {
    let data = Data::parse(packet).unwrap();
    let mut check = match Check::new(data.name, &Signed::data(&data)) {
        Ok(check) => check,
        Err(refusal) => return (Step::Refused(refusal), 0),
    };
    let mut fetches = 0;
    let mut step = check.start(trust, now_ms);
    while let Step::Fetch(name) = &step {
        fetches += 1;
        let found = served.iter().find(|h| name.as_ref().is_prefix_of(h.certificate.name()));
        let Some(holder) = found else { return (step, fetches) };
        step = check.certificate(holder.certificate.wire(), trust, now_ms);
    }
    (step, fetches)
}

#[test]
fn a_chain_to_an_anchor_is_walked_once_and_remembered() {
    let root = Holder::root("/net");
    let site = Holder::issued("/net/site", &root);
    let user = Holder::issued("/net/site/user", &site);
    let mut trust = Trust::new(vec![root.certificate.clone()]);
    let packet = user.data("/net/site/user/file/v=1/seg=0");
    let served = [&site, &user];
    assert!(matches!(run(&mut trust, &packet, &served, NOW_MS), (Step::Trusted, 2)));
    assert!(matches!(run(&mut trust, &packet, &served, NOW_MS), (Step::Trusted, 0)));
    let by_anchor = root.data("/net/anything");
    assert!(matches!(run(&mut trust, &by_anchor, &[], NOW_MS), (Step::Trusted, 0)));
}

#[test]
fn a_missing_certificate_is_asked_for_by_the_name_in_the_locator() {
    let root = Holder::root("/net");
    let user = Holder::issued("/net/user", &root);
    let mut trust = Trust::new(vec![root.certificate.clone()]);
    let (step, _) = run(&mut trust, &user.data("/net/user/x"), &[], NOW_MS);
    assert!(matches!(step, Step::Fetch(name) if name == user.certificate.name()));
}

#[test]
fn names_outside_the_identity_are_refused() {
    let root = Holder::root("/net");
    let user = Holder::issued("/net/user", &root);
    let mut trust = Trust::new(vec![root.certificate.clone()]);
    for name in ["/net/other/x", "/net", "/else"] {
        let (step, _) = run(&mut trust, &user.data(name), &[&user], NOW_MS);
        assert!(matches!(step, Step::Refused(Refusal::NotUnder { .. })), "{name}: {step:?}");
    }
    // Nor may an identity issue certificates for names outside it.
    let crossed = Holder::issued("/net/other", &user);
    let (step, _) = run(&mut trust, &crossed.data("/net/other/x"), &[&user, &crossed], NOW_MS);
    assert!(matches!(step, Step::Refused(Refusal::NotUnder { .. })), "{step:?}");
}

#[test]
fn strangers_forgers_and_expired_certificates_are_refused() {
    let root = Holder::root("/net");
    let user = Holder::issued("/net/user", &root);
    let stranger = Holder::root("/net");
    let mut trust = Trust::new(vec![root.certificate.clone()]);
    // The same names as the anchor, another key.
    let (step, _) = run(&mut trust, &stranger.data("/net/x"), &[&stranger], NOW_MS);
    assert!(matches!(step, Step::Refused(Refusal::Invalid(Error::BadSignature))), "{step:?}");
    let elsewhere = Holder::root("/elsewhere");
    let (step, _) = run(&mut trust, &elsewhere.data("/elsewhere/x"), &[&elsewhere], NOW_MS);
    assert!(matches!(step, Step::Refused(Refusal::NotAnAnchor(_))), "{step:?}");
    let late = NOW_MS + 3 * 86_400_000;
    let (step, _) = run(&mut trust, &user.data("/net/user/x"), &[&user], late);
    assert!(matches!(step, Step::Refused(Refusal::Invalid(Error::NotValidNow { .. }))), "{step:?}");
    let mut unsigned = Vec::new();
    let name: Name = "/net/x".parse().unwrap();
    Signer::digest().sign_data(&DataBuilder::new(name.as_ref(), b""), &mut unsigned).unwrap();
    let (step, _) = run(&mut trust, &unsigned, &[], NOW_MS);
    assert!(matches!(step, Step::Refused(Refusal::NoSigner)), "{step:?}");
}

#[test]
fn another_certificate_than_the_one_asked_for_is_refused() {
    let root = Holder::root("/net");
    let (user, other) = (Holder::issued("/net/user", &root), Holder::issued("/net/b", &root));
    let mut trust = Trust::new(vec![root.certificate.clone()]);
    let packet = user.data("/net/user/x");
    let data = Data::parse(&packet).unwrap();
    let mut check = Check::new(data.name, &Signed::data(&data)).unwrap();
    assert!(matches!(check.start(&mut trust, NOW_MS), Step::Fetch(_)));
    let step = check.certificate(other.certificate.wire(), &mut trust, NOW_MS);
    assert!(matches!(step, Step::Refused(Refusal::WrongCertificate { .. })), "{step:?}");
}

#[test]
fn a_chain_that_is_too_long_is_cut() {
    let mut chain = vec![Holder::root("/n")];
    for depth in 1..DEPTH_MAX + 3 {
        let identity = format!("/n{}", "/x".repeat(depth));
        let next = Holder::issued(&identity, chain.last().unwrap());
        chain.push(next);
    }
    let packet = chain.last().unwrap().data(&format!("/n{}", "/x".repeat(30)));
    let served: Vec<&Holder> = chain.iter().skip(1).collect();
    let mut trust = Trust::new(vec![chain[0].certificate.clone()]);
    let (step, _) = run(&mut trust, &packet, &served, NOW_MS);
    assert!(matches!(step, Step::Refused(Refusal::TooDeep)), "{step:?}");
}
