use super::*;
use crate::SystemEntropy;
use std::os::unix::fs::PermissionsExt as _;

const NOW_MS: u64 = 1_700_000_000_000;

fn store() -> (tempfile::TempDir, KeyStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = KeyStore::new(dir.path().join("keys"));
    (dir, store)
}

fn make(store: &KeyStore, name: &str) -> (Name, Certificate) {
    let name: Name = name.parse().unwrap();
    let key = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    let certificate = Certificate::self_signed(name.as_ref(), &key, NOW_MS).unwrap();
    store.add_key(name.as_ref(), &key).unwrap();
    store.add_certificate(&certificate).unwrap();
    (name, certificate)
}

#[test]
fn keys_and_certificates_come_back_and_are_private() {
    let (_dir, store) = store();
    let (name, certificate) = make(&store, "/alice/KEY/1");
    assert_eq!(store.key(name.as_ref()).unwrap().spki(), certificate.public_key().spki());
    assert_eq!(store.certificate(certificate.name()).unwrap(), certificate);
    let signer = store.signer(None).unwrap();
    assert_eq!(signer.locator(), Some(certificate.name()));
    for entry in std::fs::read_dir(store.dir()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let mode = std::fs::metadata(store.dir()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn the_first_key_is_the_default_until_another_is_chosen_or_it_is_deleted() {
    let (_dir, store) = store();
    assert!(matches!(store.resolve(None), Err(Error::NotFound(_))));
    let (first, _) = make(&store, "/alice/KEY/1");
    let (second, _) = make(&store, "/alice/KEY/2");
    let (bob, _) = make(&store, "/bob/KEY/1");
    assert_eq!(store.resolve(None).unwrap(), first);
    let alice: Name = "/alice".parse().unwrap();
    assert_eq!(store.resolve(Some(alice.as_ref())).unwrap(), first);
    store.set_default(second.as_ref()).unwrap();
    assert_eq!(store.resolve(Some(alice.as_ref())).unwrap(), second);
    let marked = |f: fn(&KeyInfo) -> bool| {
        let keys = store.keys().unwrap();
        keys.into_iter().filter(f).map(|k| k.name).collect::<Vec<_>>()
    };
    assert_eq!(marked(|k| k.is_default), std::slice::from_ref(&second));
    assert_eq!(marked(|k| k.is_default_of_identity), [bob.clone(), second.clone()]);
    store.delete_key(second.as_ref()).unwrap();
    assert_eq!(store.resolve(None).unwrap(), first);
    store.delete_key(first.as_ref()).unwrap();
    assert_eq!(store.resolve(None).unwrap(), bob);
    assert_eq!(store.certificates().unwrap().len(), 1);
    store.delete_key(bob.as_ref()).unwrap();
    assert!(store.keys().unwrap().is_empty() && store.default_identity().unwrap().is_none());
    assert!(matches!(store.delete_key(bob.as_ref()), Err(Error::NotFound(_))));
}

#[test]
fn a_name_is_taken_once_and_a_certificate_must_be_about_its_key() {
    let (_dir, store) = store();
    let (name, _) = make(&store, "/alice/KEY/1");
    let other = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    assert!(matches!(store.add_key(name.as_ref(), &other), Err(Error::Exists(_))));
    let forged = Certificate::self_signed(name.as_ref(), &other, NOW_MS + 1).unwrap();
    assert!(matches!(store.add_certificate(&forged), Err(Error::Certificate(_))));
    let not_a_key: Name = "/alice".parse().unwrap();
    assert!(matches!(store.add_key(not_a_key.as_ref(), &other), Err(Error::Certificate(_))));
}

#[test]
fn certificates_by_others_are_preferred_then_newer_ones() {
    let (_dir, store) = store();
    let (name, own) = make(&store, "/net/alice/KEY/1");
    make(&store, "/net/KEY/1");
    let key = store.key(name.as_ref()).unwrap();
    let newer = Certificate::self_signed(name.as_ref(), &key, NOW_MS + 500).unwrap();
    store.add_certificate(&newer).unwrap();
    let root: Name = "/net".parse().unwrap();
    let issue = crate::Issue {
        issuer_id: onym_wire::Component::generic(b"NA"),
        validity: cert::validity_of_days(NOW_MS, 1),
        now_ms: NOW_MS,
    };
    let signer = store.signer(Some(root.as_ref())).unwrap();
    let issued = Certificate::issue(&own, &signer, &issue).unwrap();
    store.add_certificate(&issued).unwrap();
    let names: Vec<Name> =
        store.certificates_of(name.as_ref()).unwrap().iter().map(|c| c.name().to_name()).collect();
    assert_eq!(names, [issued.name(), newer.name(), own.name()].map(|n| n.to_name()));
    // A certificate's name means its key.
    assert_eq!(store.resolve(Some(issued.name())).unwrap(), name);
}

#[test]
fn a_key_moves_between_stores_in_a_safe_bag() {
    let (_dir, from) = store();
    let (_dir2, to) = store();
    let (name, certificate) = make(&from, "/alice/KEY/1");
    let key = from.key(name.as_ref()).unwrap();
    let bag = SafeBag::seal(certificate, &key, b"secret", &mut SystemEntropy).unwrap();
    let bag = SafeBag::parse(bag.wire()).unwrap();
    assert!(matches!(to.import(&bag, b"wrong"), Err(Error::SafeBag(_))));
    assert_eq!(to.import(&bag, b"secret").unwrap(), name);
    assert_eq!(to.key(name.as_ref()).unwrap().spki(), key.spki());
    assert!(matches!(to.import(&bag, b"secret"), Err(Error::Exists(_))));
}

#[test]
fn damaged_files_are_named_in_the_error() {
    let (_dir, store) = store();
    let (name, _) = make(&store, "/alice/KEY/1");
    let path = store.path_of(name.as_ref(), "key");
    for damage in
        ["", "onym-key 1\nname: /bob/KEY/1\n\nAAAA\n", "onym-key 1\nname: /alice/KEY/1\n\nAAAA\n"]
    {
        std::fs::write(&path, damage).unwrap();
        let error = store.key(name.as_ref()).unwrap_err();
        assert!(matches!(&error, Error::Store { path: p, .. } if *p == path), "{error}");
    }
    std::fs::write(store.dir().join("defaults"), "nonsense\n").unwrap();
    assert!(matches!(store.resolve(None), Err(Error::Store { .. })));
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let (_dir, store) = store();
    std::thread::scope(|scope| {
        for i in 0..8 {
            let store = &store;
            scope.spawn(move || make(store, &format!("/alice/KEY/{i}")));
        }
    });
    let keys = store.keys().unwrap();
    assert_eq!(keys.len(), 8);
    assert_eq!(keys.iter().filter(|k| k.is_default).count(), 1);
    assert!(keys.iter().all(|k| k.certificates.len() == 1));
}
