//! Who may sign what in routing: the rules of deployed routers, or a schema of the operator.
//!
//! By the rules everything of the router R is signed by a key of `/R/32=DV`, that by a key of the
//! network, the anchor. Anchor and list of revocations are files that are looked at again.

use crate::state::Keys;
use onym_crypto::cert::key_of_locator;
use onym_crypto::{Certificate, verify};
use onym_endpoint::Packet;
use onym_guard::{Guard, GuardError, Settings};
use onym_route::Verdict;
use onym_trust::chain::{Context, Event, Failure, Refusal};
use onym_trust::{Cause, Denial, KeyForm, Policy, Subject, Verdict as Ruling};
use onym_wire::{Name, NameRef};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The list of revocations in the folder of keys.
const REVOKED: &str = "revoked";
/// Seconds between two looks at anchor and list.
const REFRESH_S: u64 = 5;
/// A certificate that nobody had is asked for again after this time: its owner's words may come before
/// the way to it.
const ASK_AGAIN_MS: u64 = 1_000;

/// What is checked.
#[derive(Debug)]
pub enum Trust {
    /// Damage only.
    Insecure,
    /// Signatures.
    Rules(Box<Rules>),
}

/// A certificate that is wanted, and the face that its owner is at.
pub(crate) type Wanted = (Option<u64>, Name);

/// Rules, anchors and certificates.
#[derive(Debug)]
pub struct Rules {
    guard: Guard,
    /// Needs no network.
    own: Certificate,
    /// Fetches under way.
    fetches: BTreeMap<Wanted, u64>,
}

/// What a check came to.
#[derive(Debug)]
pub(crate) enum Step {
    Done(Verdict),
    /// This certificate is needed.
    Fetch(Wanted),
}

impl Trust {
    /// Trust by the anchor in `folder`, which `keys` were read from, for routers of `network`. A
    /// list of revocations is made there when there is none.
    ///
    /// # Errors
    /// [`GuardError`] when a file cannot be read.
    pub fn keys(
        network: Name,
        folder: &Path,
        keys: &Keys,
        now_ms: u64,
    ) -> Result<Self, GuardError> {
        let list = folder.join(REVOKED);
        if !list.exists() {
            let text = "# Keys and certificates that are believed no longer: a name, or \
                        sha256:HEX of a public key, on each line.\n";
            crate::state::write_whole(&list, text.as_bytes(), 0o644)
                .map_err(|e| GuardError::List { path: list.clone(), why: e.to_string() })?;
        }
        let settings = Settings {
            name: "routing".into(),
            revoked: REVOKED.into(),
            refresh_s: REFRESH_S,
            ..Settings::of("", vec!["network.cert".into()])
        };
        let guard = Guard::open_with(Arc::new(Routing { network }), settings, folder, now_ms)?;
        Ok(Self::by(guard, keys))
    }

    /// Trust by a schema of the operator; relative paths of `settings` start at `base`.
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn schema(
        settings: Settings,
        base: &Path,
        keys: &Keys,
        now_ms: u64,
    ) -> Result<Self, GuardError> {
        Ok(Self::by(Guard::open(settings, base, now_ms)?, keys))
    }

    fn by(mut guard: Guard, keys: &Keys) -> Self {
        guard.validator_mut().ask_again_after(ASK_AGAIN_MS);
        let own = keys.certificate.clone();
        Self::Rules(Box::new(Rules { guard, own, fetches: BTreeMap::new() }))
    }

    /// Goes on with a renewed certificate of its own; the anchor's file is looked at anyway.
    pub fn renew(&mut self, keys: &Keys) {
        if let Self::Rules(rules) = self {
            rules.own = keys.certificate.clone();
        }
    }

    /// The anchor; none when only damage is checked.
    #[must_use]
    pub fn anchor(&self) -> Option<&Certificate> {
        match self {
            Self::Insecure => None,
            Self::Rules(rules) => rules.guard.validator().anchors().iter().next(),
        }
    }

    pub(crate) fn check(&mut self, packet: &Packet, face: Option<u64>, now_ms: u64) -> Step {
        match self {
            Self::Insecure => {
                let damaged = |e: onym_crypto::Error| Verdict::Bad(e.to_string());
                Step::Done(
                    verify::integrity(&packet.data()).map_or_else(damaged, |()| Verdict::Good),
                )
            }
            Self::Rules(rules) => rules.check(packet, face, now_ms),
        }
    }

    /// The certificate that was wanted came, or nobody has it: what needed it is checked again.
    pub(crate) fn answered(&mut self, wanted: &Wanted, packet: Option<&Packet>, now_ms: u64) {
        if let Self::Rules(rules) = self {
            rules.answered(wanted, packet, now_ms);
        }
    }
}

impl Rules {
    fn check(&mut self, packet: &Packet, face: Option<u64>, now_ms: u64) -> Step {
        for notice in self.guard.look(now_ms) {
            match notice.is_bad {
                true => tracing::warn!("routing trust: {notice}"),
                false => tracing::info!("routing trust: {notice}"),
            }
        }
        let context = Context { now_ms, via: face, ..Context::default() };
        let data = packet.data();
        let locator = data.signature_info().key_locator.and_then(|locator| locator.name());
        // Twice: the own certificate is at hand.
        for _ in 0..2 {
            match self.guard.validator_mut().data(packet.wire(), 0, &context) {
                Some(Ok(_)) => return Step::Done(Verdict::Good),
                Some(Err(refusal)) => return Step::Done(Verdict::Bad(words(&refusal))),
                None => self.drain(&context),
            }
            let waits = locator.and_then(|l| self.guard.validator().waits_for(face, l));
            if let Some(name) = waits {
                return Step::Fetch((face, name.clone()));
            }
        }
        Step::Done(Verdict::Bad("its certificate cannot be had".into()))
    }

    fn drain(&mut self, context: &Context) {
        while let Some(event) = self.guard.validator_mut().poll() {
            // What was judged meanwhile is checked again by who holds the packet.
            let Event::Fetch(fetch) = event else { continue };
            if fetch.name.as_ref().is_prefix_of(self.own.name()) {
                let wire = self.own.wire().to_vec();
                self.guard.validator_mut().certificate(fetch.id, &wire, context);
            } else {
                self.fetches.insert((fetch.via, fetch.name), fetch.id);
            }
        }
    }

    fn answered(&mut self, wanted: &Wanted, packet: Option<&Packet>, now_ms: u64) {
        let Some(id) = self.fetches.remove(wanted) else { return };
        let context = Context { now_ms, via: wanted.0, ..Context::default() };
        let validator = self.guard.validator_mut();
        match packet {
            Some(packet) => validator.certificate(id, packet.wire(), &context),
            None => validator.failed(id, Failure::TimedOut, now_ms),
        }
        self.drain(&context);
    }
}

/// The reason for the log of routing.
fn words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Denied(denial) => denial.text.clone(),
        Refusal::NoLocator | Refusal::NoKey(_) => {
            format!("{refusal}; expected is a signature by the router's key")
        }
        other => other.to_string(),
    }
}

/// The rules of deployed routers in one network.
#[derive(Debug)]
struct Routing {
    network: Name,
}

impl Routing {
    /// Whose key signs this name: `/R/32=DV` for what the router R says, the network for a router's
    /// certificate.
    fn signer_of(&self, name: NameRef<'_>) -> Option<Name> {
        let len = self.network.len();
        let dv = |at: usize| name.get(at).is_some_and(|c| c.is_keyword(b"DV"));
        if key_of_locator(name).is_some_and(|key| key.len() == len + 4 && dv(len + 1)) {
            return self.network.as_ref().is_prefix_of(name).then(|| self.network.clone());
        }
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
}

impl Policy for Routing {
    fn check(&self, subject: &Subject<'_>, key: NameRef<'_>) -> Ruling {
        let Some(expected) = self.signer_of(subject.name) else {
            let text = format!("{} is no name of routing in {}", subject.name, self.network);
            return Ruling::Denied(Denial { cause: Cause::NoRule, rule: None, text });
        };
        if key_of_locator(key).is_some_and(|key| key.drop_last(2) == expected) {
            return Ruling::Allowed { rule: "routing".to_owned() };
        }
        let text = format!("signed with {key}; expected is a key of {expected}");
        Ruling::Denied(Denial { cause: Cause::Key, rule: Some("routing".to_owned()), text })
    }

    fn key_form(&self) -> KeyForm {
        KeyForm::Locator
    }

    fn anchor(&self, certificate: NameRef<'_>) -> Result<(), Denial> {
        let key = key_of_locator(certificate);
        if key.is_some_and(|key| key.drop_last(2) == self.network) {
            return Ok(());
        }
        let text = format!("it is not of the network {}", self.network);
        Err(Denial { cause: Cause::Key, rule: Some("routing".to_owned()), text })
    }

    fn allows_digest(&self, _: &Subject<'_>) -> bool {
        false
    }

    fn explain(&self, subject: &Subject<'_>) -> Vec<String> {
        vec![match self.signer_of(subject.name) {
            Some(expected) => format!("signed by a key of {expected}"),
            None => format!("{} is no name of routing in {}", subject.name, self.network),
        }]
    }
}

/// Rules of the operator in place of those of deployed routers.
#[derive(Debug, Clone)]
pub struct Schema {
    /// The files.
    pub settings: Settings,
    /// Where relative paths of them start.
    pub base: PathBuf,
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
        let mut trust = Trust::keys(name("/net"), &a, &keys, NOW).unwrap();
        let good = "/localhop/net/a/32=DV/32=ADV/32=SYNC";
        let verdict = |trust: &mut Trust, uri: &str, signer: &Signer| match trust.check(
            &signed(uri, signer),
            Some(1),
            NOW,
        ) {
            Step::Done(Verdict::Good) => "good".to_owned(),
            Step::Done(Verdict::Bad(why)) => why,
            Step::Fetch((_, name)) => format!("fetch {name}"),
        };
        assert_eq!(verdict(&mut trust, good, &keys.signer), "good");
        let prefix = "/net/32=DV/32=PFS/net/a/t=1/32=svs/v=3";
        assert_eq!(verdict(&mut trust, prefix, &keys.signer), "good");
        let other = verdict(&mut trust, "/localhop/net/b/32=DV/32=ADV/32=SYNC", &keys.signer);
        assert!(other.contains("expected is a key of /net/b/32=DV"), "{other}");
        let wrong = verdict(&mut trust, good, &stranger.signer);
        assert!(wrong.contains("expected is a key of /net/a/32=DV"), "{wrong}");
        let digest = verdict(&mut trust, good, &Signer::digest());
        assert!(digest.contains("expected is a signature by the router's key"), "{digest}");
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
        let mut trust = Trust::keys(name("/net"), &a, &first, NOW).unwrap();
        let packet = signed("/localhop/net/b/32=DV/32=ADV/32=SYNC", &second.signer);
        let Step::Fetch(wanted) = trust.check(&packet, Some(7), NOW) else { panic!("unknown") };
        assert_eq!(wanted.0, Some(7), "it is asked where the packet came from");
        let cert = Packet::parse(second.certificate.wire()).unwrap();
        trust.answered(&wanted, Some(&cert), NOW);
        assert!(matches!(trust.check(&packet, Some(7), NOW), Step::Done(Verdict::Good)));
        assert!(matches!(trust.check(&packet, Some(8), NOW), Step::Done(Verdict::Good)));
        let late = NOW + 366 * 86_400_000;
        let Step::Done(Verdict::Bad(why)) = trust.check(&packet, Some(7), late) else {
            panic!("expired")
        };
        assert!(why.contains("expired: it was valid until"), "{why}");
        let wrong = Keys::open(&b, &name("/net"), &name("/net/c"), NOW).unwrap_err();
        assert!(wrong.to_string().contains("expected /net/c/32=DV"), "{wrong}");
    }

    /// Two routers of a network, the first one's trust, and a packet of the second.
    fn two(place: &Path) -> (Keys, Keys, Trust, Packet) {
        let (a, b) = (place.join("a"), place.join("b"));
        let first = Keys::open(&a, &name("/net"), &name("/net/a"), NOW).unwrap();
        std::fs::create_dir(&b).unwrap();
        for file in ["network.cert", "network.key"] {
            std::fs::copy(a.join(file), b.join(file)).unwrap();
        }
        let second = Keys::open(&b, &name("/net"), &name("/net/b"), NOW).unwrap();
        let trust = Trust::keys(name("/net"), &a, &first, NOW).unwrap();
        let packet = signed("/localhop/net/b/32=DV/32=ADV/32=SYNC", &second.signer);
        (first, second, trust, packet)
    }

    fn judged(trust: &mut Trust, packet: &Packet, of: &Keys, now_ms: u64) -> Result<(), String> {
        loop {
            match trust.check(packet, Some(7), now_ms) {
                Step::Done(Verdict::Good) => return Ok(()),
                Step::Done(Verdict::Bad(why)) => return Err(why),
                Step::Fetch(wanted) => {
                    let cert = Packet::parse(of.certificate.wire()).unwrap();
                    trust.answered(&wanted, Some(&cert), now_ms);
                }
            }
        }
    }

    #[test]
    fn a_stolen_routers_key_is_refused_when_it_is_listed_and_its_new_key_is_not() {
        let place = tempfile::tempdir().unwrap();
        let (first, second, mut trust, packet) = two(place.path());
        assert_eq!(judged(&mut trust, &packet, &second, NOW), Ok(()));
        let key = second.certificate.key_name();
        std::fs::write(place.path().join("a/revoked"), format!("{key} # stolen\n")).unwrap();
        let later = NOW + 6000;
        let why = judged(&mut trust, &packet, &second, later).unwrap_err();
        assert!(why.ends_with("is revoked"), "{why}");
        // The router gets another key; the first one never lost its own.
        for file in ["router.key", "router.cert"] {
            std::fs::remove_file(place.path().join("b").join(file)).unwrap();
        }
        let renewed =
            Keys::open(&place.path().join("b"), &name("/net"), &name("/net/b"), NOW).unwrap();
        let packet = signed("/localhop/net/b/32=DV/32=ADV/32=SYNC", &renewed.signer);
        assert_eq!(judged(&mut trust, &packet, &renewed, later), Ok(()));
        let own = signed("/localhop/net/a/32=DV/32=ADV/32=SYNC", &first.signer);
        assert_eq!(judged(&mut trust, &own, &first, later), Ok(()));
    }

    #[test]
    fn an_anchor_that_is_changed_under_a_router_counts_within_seconds() {
        let place = tempfile::tempdir().unwrap();
        let (_, second, mut trust, packet) = two(place.path());
        assert_eq!(judged(&mut trust, &packet, &second, NOW), Ok(()));
        let other = place.path().join("c");
        let renewed = Keys::open(&other, &name("/net"), &name("/net/b"), NOW).unwrap();
        let anchor = place.path().join("a/network.cert");
        std::fs::copy(other.join("network.cert"), anchor).unwrap();
        assert_eq!(judged(&mut trust, &packet, &second, NOW), Ok(()), "nobody looked yet");
        let why = judged(&mut trust, &packet, &second, NOW + 6000).unwrap_err();
        assert!(why.contains("/net/b/32=DV"), "{why}");
        let packet = signed("/localhop/net/b/32=DV/32=ADV/32=SYNC", &renewed.signer);
        assert_eq!(judged(&mut trust, &packet, &renewed, NOW + 8000), Ok(()));
    }

    #[test]
    fn a_schema_of_the_operator_takes_the_place_of_the_rules() {
        let place = tempfile::tempdir().unwrap();
        let (first, second, _, packet) = two(place.path());
        let text = r##"
            #K: "KEY"/_/_/_
            #net: "net"/#K
            #router: "net"/r/"32=DV"/#K & {r: "a" | "b"} <= #net
            #sync: "localhop"/"net"/r/"32=DV"/"32=ADV"/"32=SYNC" <= #router
        "##;
        let schema = |text: &str| {
            std::fs::write(place.path().join("dv.lvs"), text).unwrap();
            let settings = Settings::of("dv.lvs", vec!["a/network.cert".into()]);
            Trust::schema(settings, place.path(), &first, NOW).unwrap()
        };
        assert_eq!(judged(&mut schema(text), &packet, &second, NOW), Ok(()));
        let narrow = text.replace(" | \"b\"", "");
        let why = judged(&mut schema(&narrow), &packet, &second, NOW).unwrap_err();
        assert!(why.contains("/net/b"), "{why}");
    }

    #[test]
    fn a_certificate_that_nobody_had_is_asked_for_again_after_a_second() {
        let place = tempfile::tempdir().unwrap();
        let (_, second, mut trust, packet) = two(place.path());
        let Step::Fetch(wanted) = trust.check(&packet, Some(7), NOW) else { panic!("unknown") };
        trust.answered(&wanted, None, NOW);
        let soon = trust.check(&packet, Some(7), NOW + ASK_AGAIN_MS - 1);
        assert!(matches!(soon, Step::Done(Verdict::Bad(_))), "not for each packet");
        assert_eq!(judged(&mut trust, &packet, &second, NOW + ASK_AGAIN_MS), Ok(()));
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
