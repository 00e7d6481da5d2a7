//! Certificates that change while the router runs: those that it serves, and the folder that is
//! looked at for a renewed one.

use crate::state::{Keys, KeysError};
use onym_crypto::Certificate;
use onym_tables::Tick;
use onym_wire::{Interest, Name};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Time between two looks at the folder, in milliseconds.
const LOOK_MS: u64 = 2_000;
/// Own certificates that are served, at most: the oldest give way.
const SERVED_MAX: usize = 4;

/// The files by which a change is noticed.
const FILES: [&str; 3] = ["router.cert", "router.key", "network.cert"];

/// What tells one content of a file from another: a renewed certificate is a new file.
type Mark = [Option<(u64, i64, i64)>; FILES.len()];

fn mark(folder: &Path) -> Mark {
    FILES.map(|file| {
        let found = fs::metadata(folder.join(file)).ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec()))
    })
}

/// The folder of the keys.
#[derive(Debug)]
pub(crate) struct Watched {
    folder: PathBuf,
    network: Name,
    router: Name,
    seen: Mark,
    look_at: Tick,
}

impl Watched {
    pub(crate) fn new(folder: PathBuf, network: Name, router: Name) -> Self {
        let seen = mark(&folder);
        Self { folder, network, router, seen, look_at: Tick(0) }
    }

    /// The keys when they changed since the last look; an error is told once for each change.
    pub(crate) fn look(&mut self, now: Tick, now_ms: u64) -> Option<Result<Keys, KeysError>> {
        if now < self.look_at {
            return None;
        }
        self.look_at = now.plus_ms(LOOK_MS);
        let mark = mark(&self.folder);
        if mark == self.seen {
            return None;
        }
        self.seen = mark;
        Some(Keys::again(&self.folder, &self.network, &self.router, now_ms))
    }
}

/// Own certificates, the newest first: the one before a renewal is served as long as it is valid,
/// for those who ask by its name.
#[derive(Debug, Default)]
pub(crate) struct Served(Vec<Certificate>);

impl Served {
    /// Takes a new one.
    pub(crate) fn renew(&mut self, certificate: Certificate, now_ms: u64) {
        self.0.retain(|old| *old != certificate && old.check_valid_at(now_ms).is_ok());
        self.0.insert(0, certificate);
        self.0.truncate(SERVED_MAX);
    }

    /// What answers an Interest: any of a key will do, or the one that is named.
    pub(crate) fn answer(&self, interest: &Interest<'_>) -> Option<&Certificate> {
        self.0.iter().find(|c| interest.name.is_prefix_of(c.name()))
    }

    /// The newest.
    pub(crate) fn newest(&self) -> Option<&Certificate> {
        self.0.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::cert::{Issue, validity_of_days};
    use onym_crypto::{KeyType, PrivateKey, Signer};
    use onym_endpoint::Packet;
    use onym_wire::{Component, DataBuilder, InterestBuilder};

    const NOW: u64 = 1_795_444_162_000;
    const DAY: u64 = 86_400_000;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    /// A folder of `/net/a`, and its authority's key.
    fn folder() -> (tempfile::TempDir, Keys, PrivateKey) {
        let place = tempfile::tempdir().unwrap();
        let keys = Keys::open(place.path(), &name("/net"), &name("/net/a"), NOW).unwrap();
        let der = fs::read(place.path().join("network.key")).unwrap();
        (place, keys, PrivateKey::from_pkcs8(&der).unwrap())
    }

    /// Another certificate of the router's key, by `authority`.
    fn issued(keys: &Keys, place: &Path, authority: PrivateKey, at: u64, days: u32) -> Certificate {
        let der = fs::read(place.join("router.key")).unwrap();
        let own = PrivateKey::from_pkcs8(&der).unwrap();
        let request = Certificate::self_signed(keys.certificate.key_name(), &own, at).unwrap();
        let issuer_id = Component::generic(b"NDNCERT");
        let issue = Issue { issuer_id, now_ms: at, validity: validity_of_days(at, days) };
        let signer = Signer::key(authority, keys.network.name().to_name());
        Certificate::issue(&request, &signer, &issue).unwrap()
    }

    fn put(place: &Path, certificate: &Certificate) {
        crate::state::write_whole(
            &place.join("router.cert"),
            certificate.to_text().as_bytes(),
            0o644,
        )
        .unwrap();
    }

    #[test]
    fn a_renewed_certificate_is_taken_while_the_router_runs_and_a_wrong_one_is_not() {
        let (place, keys, authority) = folder();
        let mut watched = Watched::new(place.path().into(), name("/net"), name("/net/a"));
        let mut tick = Tick(0);
        let mut look = |now_ms| {
            tick = tick.plus_ms(LOOK_MS);
            watched.look(tick, now_ms).map(|taken| taken.map_err(|e| e.to_string()))
        };
        assert!(look(NOW).is_none(), "nothing changed");
        let stranger = PrivateKey::generate(KeyType::Ecdsa).unwrap();
        put(place.path(), &issued(&keys, place.path(), stranger, NOW + DAY, 90));
        let refused = look(NOW + DAY).unwrap().unwrap_err();
        assert!(refused.contains("/net/a/32=DV/KEY/"), "it is named: {refused}");
        assert!(look(NOW + DAY).is_none(), "told once");
        let expired = issued(&keys, place.path(), authority, NOW, 1);
        put(place.path(), &expired);
        let refused = look(NOW + 2 * DAY).unwrap().unwrap_err();
        assert!(refused.contains(&expired.name().to_string()), "it is named: {refused}");
        let der = fs::read(place.path().join("network.key")).unwrap();
        let authority = PrivateKey::from_pkcs8(&der).unwrap();
        let new = issued(&keys, place.path(), authority, NOW + 2 * DAY, 90);
        put(place.path(), &new);
        let taken = look(NOW + 2 * DAY).unwrap().unwrap();
        assert_eq!(taken.certificate, new);
        assert_eq!(taken.signer.locator(), Some(new.name()), "what it signs names the new one");
        let mut wire = Vec::new();
        let said = name("/localhop/net/a/32=DV/32=ADV/32=SYNC");
        taken.signer.sign_data(&DataBuilder::new(said.as_ref(), b"x"), &mut wire).unwrap();
        let packet = Packet::parse(&wire).unwrap();
        let mut trust = crate::Trust::keys(name("/net"), place.path(), &keys, NOW).unwrap();
        trust.renew(&taken);
        let step = trust.check(&packet, None, NOW + 3 * DAY);
        assert!(matches!(step, crate::trust::Step::Done(onym_route::Verdict::Good)));
    }

    #[test]
    fn the_old_certificate_is_served_beside_the_new_one_until_it_ends() {
        let (place, keys, authority) = folder();
        let new = issued(&keys, place.path(), authority, NOW + DAY, 90);
        let old = keys.certificate.clone();
        let mut served = Served::default();
        served.renew(old.clone(), NOW);
        served.renew(new.clone(), NOW + DAY);
        let ask = |served: &Served, name: onym_wire::NameRef<'_>| {
            let mut wire = Vec::new();
            InterestBuilder { can_be_prefix: true, ..InterestBuilder::new(name) }.write(&mut wire);
            served.answer(&Interest::parse(&wire).unwrap()).cloned()
        };
        assert_eq!(ask(&served, old.key_name()), Some(new.clone()), "any of the key");
        for one in [&old, &new] {
            assert_eq!(ask(&served, one.name()).as_ref(), Some(one), "by its name");
            assert_eq!(ask(&served, one.name().drop_last(1)).as_ref(), Some(one), "by its issuer");
        }
        let late = NOW + 400 * DAY;
        served.renew(new.clone(), late);
        assert_eq!(ask(&served, old.name()), None, "it has ended");
        assert_eq!(served.newest(), Some(&new));
    }
}
