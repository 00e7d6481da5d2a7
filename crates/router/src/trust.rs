//! Who may sign what in routing, the schema of deployed routers: everything of the router R is signed
//! by a key of `/R/32=DV`, that by a key of the network, the anchor.

use crate::state::Keys;
use onym_crypto::cert::key_of_locator;
use onym_crypto::{Certificate, verify};
use onym_endpoint::Packet;
use onym_route::Verdict;
use onym_wire::{Data, Name, NameRef};
use std::collections::BTreeMap;

/// Certificates kept, at most; then they are fetched again.
const KNOWN_MAX: usize = 1024;

/// What is checked.
#[derive(Debug)]
pub enum Trust {
    /// Damage only.
    Insecure,
    /// Signatures.
    Keys(Box<Known>),
}

/// Anchor and certificates.
#[derive(Debug)]
pub struct Known {
    network: Name,
    anchor: Certificate,
    /// By the name of the key.
    certificates: BTreeMap<Name, Certificate>,
}

/// What a check came to.
pub(crate) enum Step {
    Done(Verdict),
    /// This certificate is needed.
    Fetch(Name),
}

impl Trust {
    /// Trust by `keys` of a network.
    #[must_use]
    pub fn keys(network: Name, keys: &Keys) -> Self {
        let own = keys.certificate.clone();
        let certificates = BTreeMap::from([(own.key_name().to_name(), own)]);
        Self::Keys(Box::new(Known { network, anchor: keys.network.clone(), certificates }))
    }

    pub(crate) fn check(&self, packet: &Packet, now_ms: u64) -> Step {
        match self {
            Self::Insecure => {
                let damaged = |e: onym_crypto::Error| Verdict::Bad(e.to_string());
                let data = packet.data();
                Step::Done(verify::integrity(&data).map_or_else(damaged, |()| Verdict::Good))
            }
            Self::Keys(known) => known.check(&packet.data(), now_ms),
        }
    }

    /// A certificate came; it counts if the anchor signed it.
    pub(crate) fn learn(&mut self, packet: &Packet, now_ms: u64) -> Result<(), String> {
        match self {
            Self::Insecure => Ok(()),
            Self::Keys(known) => known.learn(packet, now_ms),
        }
    }
}

impl Known {
    fn check(&self, data: &Data<'_>, now_ms: u64) -> Step {
        let bad = |why: String| Step::Done(Verdict::Bad(why));
        let Some(expected) = self.identity_for(data.name) else {
            return bad(format!("{} is no name of routing in {}", data.name, self.network));
        };
        let locator = data.signature_info().key_locator.and_then(|locator| locator.name());
        let Some(locator) = locator else {
            return bad(format!("it names no key; expected is one of {expected}"));
        };
        let key = key_of_locator(locator).filter(|key| key.drop_last(2) == expected);
        let Some(key) = key else {
            return bad(format!("signed with {locator}; expected is a key of {expected}"));
        };
        let Some(certificate) = self.certificates.get(key.value()) else {
            return Step::Fetch(locator.to_name());
        };
        let valid = certificate
            .check_valid_at(now_ms)
            .and_then(|()| self.anchor.check_valid_at(now_ms))
            .and_then(|()| verify::data(data, certificate.public_key()));
        match valid {
            Ok(()) => Step::Done(Verdict::Good),
            Err(e) => bad(e.to_string()),
        }
    }

    /// `/R/32=DV` for the names of the router R.
    fn identity_for(&self, name: NameRef<'_>) -> Option<Name> {
        let len = self.network.len();
        let dv = |at: usize| name.get(at).is_some_and(|c| c.is_keyword(b"DV"));
        let local = name.get(0).is_some_and(|c| c.is_generic() && c.value == b"localhop");
        let router = if local && dv(len + 2) {
            name.suffix(1).prefix(len + 1)
        } else if dv(len) && name.get(len + 1).is_some_and(|c| c.is_keyword(b"PFS")) {
            name.suffix(len + 2).prefix(len + 1)
        } else {
            return None;
        };
        let fits = router.len() == len + 1 && self.network.as_ref().is_prefix_of(router);
        let mut identity = router.to_name();
        identity.append_keyword("DV");
        fits.then_some(identity)
    }

    fn learn(&mut self, packet: &Packet, now_ms: u64) -> Result<(), String> {
        let certificate = Certificate::parse(packet.wire()).map_err(|e| e.to_string())?;
        certificate.check_valid_at(now_ms).map_err(|e| e.to_string())?;
        certificate.verify(self.anchor.public_key()).map_err(|e| {
            format!("{} is not signed by {}: {e}", certificate.name(), self.anchor.name())
        })?;
        if self.certificates.len() >= KNOWN_MAX {
            self.certificates.pop_first();
        }
        self.certificates.insert(certificate.key_name().to_name(), certificate);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::Signer;
    use onym_wire::DataBuilder;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn signed(uri: &str, signer: &Signer) -> Packet {
        let mut wire = Vec::new();
        signer.sign_data(&DataBuilder::new(name(uri).as_ref(), b"x"), &mut wire).unwrap();
        Packet::parse(&wire).unwrap()
    }

    const NOW: u64 = 1_795_444_162_000;

    #[test]
    fn a_router_signs_for_itself_only_and_by_the_anchor_of_its_network() {
        let place = tempfile::tempdir().unwrap();
        let (a, b) = (place.path().join("a"), place.path().join("b"));
        let keys = Keys::open(&a, &name("/net"), &name("/net/a"), NOW).unwrap();
        assert!(Keys::open(&b, &name("/other"), &name("/other/a"), NOW).is_ok());
        let stranger = Keys::open(&b, &name("/other"), &name("/other/a"), NOW).unwrap();
        let mut trust = Trust::keys(name("/net"), &keys);
        let good = "/localhop/net/a/32=DV/32=ADV/32=SYNC";
        let verdict = |trust: &Trust, uri: &str, signer: &Signer| match trust
            .check(&signed(uri, signer), NOW)
        {
            Step::Done(Verdict::Good) => "good".to_owned(),
            Step::Done(Verdict::Bad(why)) => why,
            Step::Fetch(name) => format!("fetch {name}"),
        };
        assert_eq!(verdict(&trust, good, &keys.signer), "good");
        let prefix = "/net/32=DV/32=PFS/net/a/t=1/32=svs/v=3";
        assert_eq!(verdict(&trust, prefix, &keys.signer), "good");
        let other = verdict(&trust, "/localhop/net/b/32=DV/32=ADV/32=SYNC", &keys.signer);
        assert!(other.contains("expected is a key of /net/b/32=DV"), "{other}");
        let wrong = verdict(&trust, good, &stranger.signer);
        assert!(wrong.contains("expected is a key of /net/a/32=DV"), "{wrong}");
        let digest = verdict(&trust, good, &Signer::digest());
        assert!(digest.contains("names no key"), "{digest}");
        let cert = Packet::parse(stranger.certificate.wire()).unwrap();
        assert!(trust.learn(&cert, NOW).is_err(), "another network's anchor");
    }

    #[test]
    fn a_second_router_needs_the_authority_once_and_expired_certificates_end() {
        let place = tempfile::tempdir().unwrap();
        let (a, b) = (place.path().join("a"), place.path().join("b"));
        let first = Keys::open(&a, &name("/net"), &name("/net/a"), NOW).unwrap();
        std::fs::create_dir(&b).unwrap();
        std::fs::copy(a.join("network.cert"), b.join("network.cert")).unwrap();
        let refused = Keys::open(&b, &name("/net"), &name("/net/b"), NOW).unwrap_err();
        assert!(refused.to_string().contains("copy it from the first router"), "{refused}");
        std::fs::copy(a.join("network.key"), b.join("network.key")).unwrap();
        let second = Keys::open(&b, &name("/net"), &name("/net/b"), NOW).unwrap();
        let mut trust = Trust::keys(name("/net"), &first);
        let packet = signed("/localhop/net/b/32=DV/32=ADV/32=SYNC", &second.signer);
        assert!(matches!(trust.check(&packet, NOW), Step::Fetch(_)));
        let cert = Packet::parse(second.certificate.wire()).unwrap();
        trust.learn(&cert, NOW).unwrap();
        assert!(matches!(trust.check(&packet, NOW), Step::Done(Verdict::Good)));
        let late = NOW + 366 * 86_400_000;
        assert!(matches!(trust.check(&packet, late), Step::Done(Verdict::Bad(_))));
        let wrong = Keys::open(&b, &name("/net"), &name("/net/c"), NOW).unwrap_err();
        assert!(wrong.to_string().contains("expected /net/c/32=DV"), "{wrong}");
    }

    #[test]
    fn the_bootstrap_time_never_goes_backward() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("boot");
        assert_eq!(crate::next_boot(Some(&file), 1000).unwrap(), 1000);
        assert_eq!(crate::next_boot(Some(&file), 500).unwrap(), 1001);
        assert_eq!(crate::next_boot(Some(&file), 2000).unwrap(), 2000);
    }
}
