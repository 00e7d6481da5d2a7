//! Files that change under a guard: each change counts, or is told and leaves what was.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use onym_crypto::cert::{Issue, validity_of_days};
use onym_crypto::{Certificate, KeyType, PrivateKey, Signer};
use onym_guard::{Guard, GuardError, Settings};
use onym_trust::chain::{Context, Event, Failure, Refusal};
use onym_wire::{Component, DataBuilder, Name};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const NOW_MS: u64 = 1_795_400_000_000;
const MINUTE_MS: u64 = 60_000;

const SCHEMA: &str = r##"
    #K: "KEY"/_/_/_
    #root: net/#K
    #user: net/u/#K <= #root
    #note: net/u/"note"/_ <= #user
"##;

/// Keys made so far: each has a name of its own.
static KEYS: AtomicU32 = AtomicU32::new(1);

struct Holder {
    key: Arc<PrivateKey>,
    certificate: Certificate,
}

impl Holder {
    fn of(identity: &str) -> Self {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let mut name: Name = identity.parse().unwrap();
        let number = KEYS.fetch_add(1, Ordering::Relaxed).to_string();
        name.append_generic("KEY").append_generic(number);
        let certificate = Certificate::self_signed(name.as_ref(), &key, NOW_MS).unwrap();
        Self { key: Arc::new(key), certificate }
    }

    fn issued(identity: &str, by: &Self) -> Self {
        let mut holder = Self::of(identity);
        let issue = Issue {
            issuer_id: Component::generic(b"net"),
            now_ms: NOW_MS,
            validity: validity_of_days(NOW_MS, 10),
        };
        holder.certificate = Certificate::issue(&holder.certificate, &by.signer(), &issue).unwrap();
        holder
    }

    fn signer(&self) -> Signer {
        let key = PrivateKey::from_pkcs8(&self.key.to_pkcs8().unwrap()).unwrap();
        Signer::key(key, self.certificate.name().to_name())
    }

    fn write(&self, path: &Path) {
        fs::write(path, self.certificate.to_text()).unwrap();
    }

    fn says(&self, uri: &str) -> Vec<u8> {
        let name: Name = uri.parse().unwrap();
        let mut wire = Vec::new();
        self.signer().sign_data(&DataBuilder::new(name.as_ref(), b"x"), &mut wire).unwrap();
        wire
    }
}

fn judge(
    guard: &mut Guard,
    packet: &[u8],
    answers: &[&Holder],
    now_ms: u64,
) -> Result<(), Refusal> {
    let context = Context { now_ms, ..Context::default() };
    if let Some(result) = guard.validator_mut().data(packet, 1, &context) {
        return result.map(|_| ());
    }
    while let Some(event) = guard.validator_mut().poll() {
        match event {
            Event::Fetch(fetch) => {
                let answer = answers.iter().find(|h| h.certificate.name() == fetch.name);
                let validator = guard.validator_mut();
                match answer {
                    Some(h) => validator.certificate(fetch.id, h.certificate.wire(), &context),
                    None => validator.failed(fetch.id, Failure::TimedOut, now_ms),
                }
            }
            Event::Judged { result, .. } => return result.map(|_| ()),
        }
    }
    panic!("it was not judged")
}

struct World {
    dir: tempfile::TempDir,
    root: Holder,
    user: Holder,
    guard: Guard,
    now_ms: u64,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (root, path) = (Holder::of("/net"), dir.path());
        let user = Holder::issued("/net/u", &root);
        fs::write(path.join("site.lvs"), SCHEMA).unwrap();
        fs::create_dir(path.join("anchors")).unwrap();
        root.write(&path.join("anchors/root.cert"));
        fs::write(path.join("revoked"), "").unwrap();
        let settings = Settings {
            name: "site".into(),
            revoked: "revoked".into(),
            ..Settings::of("site.lvs", vec!["anchors".into()])
        };
        let guard = Guard::open(settings, path, NOW_MS).unwrap();
        Self { dir, root, user, guard, now_ms: NOW_MS }
    }

    fn path(&self, file: &str) -> std::path::PathBuf {
        self.dir.path().join(file)
    }

    fn judge(&mut self) -> Result<(), Refusal> {
        let packet = self.user.says("/net/u/note/1");
        judge(&mut self.guard, &packet, &[&self.user], self.now_ms)
    }

    /// A minute later: what the guard tells.
    fn look(&mut self) -> Vec<String> {
        self.now_ms += MINUTE_MS;
        self.guard.look(self.now_ms).into_iter().map(|notice| notice.text).collect()
    }
}

#[test]
fn an_anchor_that_is_changed_while_it_runs_counts_at_the_next_look() {
    let mut world = World::new();
    assert!(world.judge().is_ok());
    // Another anchor under the same file name: what the old one vouched for is believed no longer.
    let next = Holder::of("/net");
    next.write(&world.path("anchors/root.cert"));
    assert!(world.judge().is_ok(), "nobody looked yet");
    let said = world.look();
    assert!(said[0].ends_with("trust anchors added 1, removed 1, not taken 0"), "{said:?}");
    assert!(world.judge().is_err());
    let user = Holder::issued("/net/u", &next);
    let packet = user.says("/net/u/note/1");
    assert!(judge(&mut world.guard, &packet, &[&user], world.now_ms).is_ok());
    // Both side by side during a change of anchors.
    world.root.write(&world.path("anchors/old.cert"));
    assert_eq!(world.look().len(), 1);
    assert!(world.judge().is_ok());
    // Gone, all of them.
    fs::remove_file(world.path("anchors/root.cert")).unwrap();
    fs::remove_file(world.path("anchors/old.cert")).unwrap();
    let said = world.look().join("\n");
    assert!(said.contains("the last trust anchor: everything is refused now"), "{said}");
    assert!(world.judge().is_err());
}

#[test]
fn a_wrong_schema_is_told_and_the_rules_before_stay() {
    let mut world = World::new();
    fs::write(world.path("site.lvs"), "#root: ").unwrap();
    let said = world.look().join("\n");
    assert!(said.contains("site.lvs is not a usable trust schema"), "{said}");
    assert!(said.ends_with("the rules before stay"), "{said}");
    assert!(world.look().is_empty(), "told once");
    assert!(world.judge().is_ok());
    // One that knows no root for the anchors.
    fs::write(world.path("site.lvs"), SCHEMA.replace("net/#K", "\"other\"/#K")).unwrap();
    let said = world.look().join("\n");
    assert!(said.contains("it cannot be a trust anchor"), "{said}");
    assert!(world.judge().is_ok());
    // A right one counts.
    fs::write(world.path("site.lvs"), SCHEMA.replace("note", "letter")).unwrap();
    let said = world.look().join("\n");
    assert!(said.ends_with("packets are judged by its new rules"), "{said}");
    assert!(matches!(world.judge(), Err(Refusal::Denied(_))));
    // At the start a wrong one is an error.
    fs::write(world.path("site.lvs"), "#root: ").unwrap();
    let settings = world.guard.settings().clone();
    let error = Guard::open(settings, world.dir.path(), NOW_MS).unwrap_err();
    assert!(matches!(error, GuardError::Schema(_)), "{error}");
}

#[test]
fn a_stolen_key_is_refused_as_soon_as_it_is_listed() {
    let mut world = World::new();
    assert!(world.judge().is_ok());
    let key = world.user.certificate.key_name().to_string();
    fs::write(world.path("revoked"), format!("{key}  # stolen\n")).unwrap();
    let said = world.look().join("\n");
    assert!(said.ends_with("1 keys and certificates are revoked"), "{said}");
    assert!(matches!(world.judge(), Err(Refusal::Revoked(_))));
    // A list in the middle of being written takes nothing back.
    fs::write(world.path("revoked"), "/net/u/KE").unwrap();
    let said = world.look().join("\n");
    assert!(said.contains("line 1") && said.ends_with("the 1 entries before stay"), "{said}");
    assert!(matches!(world.judge(), Err(Refusal::Revoked(_))));
}

#[test]
fn a_clock_that_goes_back_does_not_keep_a_guard_from_looking() {
    let mut world = World::new();
    world.now_ms = NOW_MS - 86_400_000;
    fs::write(world.path("site.lvs"), SCHEMA.replace("note", "letter")).unwrap();
    assert_eq!(world.look().len(), 1);
}

#[test]
fn what_cannot_be_started_with_is_named() {
    let world = World::new();
    let open = |settings| Guard::open(settings, world.dir.path(), NOW_MS).unwrap_err().to_string();
    let anchors = || vec!["anchors".to_owned()];
    assert!(open(Settings::of("none.lvs", anchors())).contains("none.lvs"));
    assert!(open(Settings::of("site.lvs", vec!["site.lvs".into()])).contains("no trust anchor"));
    assert!(open(Settings::of("site.lvs", Vec::new())).starts_with("there is no trust anchor"));
    let list = Settings { revoked: "none".into(), ..Settings::of("", anchors()) };
    assert!(open(list).contains("none"));
    Holder::of("/a/b").write(&world.path("anchors/stranger.cert"));
    assert!(open(Settings::of("site.lvs", anchors())).contains("the rules do not take /a/b/KEY"));
    assert!(Guard::open(Settings::of("", anchors()), world.dir.path(), NOW_MS).is_ok());
}
