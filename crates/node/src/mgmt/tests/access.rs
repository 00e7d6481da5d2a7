//! Who may do what: signatures, rules, replay, `/localhop`.

use super::super::authorize::LOCALHOP;
use super::super::guards::by_hierarchy;
use super::*;
use onym_crypto::cert::validity_of_days;
use onym_crypto::{Certificate, Issue, KeyType, PrivateKey};
use onym_wire::name::Component;

pub(super) struct Holder {
    key: PrivateKey,
    pub(super) certificate: Certificate,
}

impl Holder {
    pub(super) fn root(identity: &str) -> Self {
        let mut key_name = name(identity);
        key_name.append_generic("KEY").append_generic("1");
        let key = PrivateKey::generate(KeyType::Ecdsa).unwrap();
        let certificate = Certificate::self_signed(key_name.as_ref(), &key, NOW_MS).unwrap();
        Self { key, certificate }
    }

    pub(super) fn issued(identity: &str, by: &Self) -> Self {
        let mut holder = Self::root(identity);
        let issue = Issue {
            issuer_id: Component::generic(b"NA"),
            validity: validity_of_days(NOW_MS, 1),
            now_ms: NOW_MS,
        };
        let request = &holder.certificate;
        holder.certificate = Certificate::issue(request, &by.signer(), &issue).unwrap();
        holder
    }

    pub(super) fn signer(&self) -> Signer {
        let key = PrivateKey::from_pkcs8(&self.key.to_pkcs8().unwrap()).unwrap();
        Signer::key(key, self.certificate.name().to_name())
    }
}

pub(super) fn unsigned(name: &Name) -> Vec<u8> {
    let mut wire = Vec::new();
    InterestBuilder::new(name.as_ref()).write(&mut wire);
    wire
}

fn rule(who: Who, may: &[Privilege]) -> Policy {
    let rule = Rule { who, may: may.to_vec(), prefixes: Vec::new() };
    Policy { rules: vec![rule], ..Policy::default() }
}

fn localhop(localhop: Localhop) -> World {
    World::policy(Policy { localhop: Some(localhop), ..Policy::default() })
}

/// Registration by whoever these vouch for, under its identity.
pub(super) fn localhop_by(anchors: &[&Holder]) -> World {
    let anchors = anchors.iter().map(|holder| holder.certificate.clone()).collect();
    let guards = [(LOCALHOP.to_owned(), by_hierarchy(anchors))].into();
    let policy = Policy { localhop: Some(Localhop::Anchors), ..Policy::default() };
    World::with(Options { policy, trust: Guards(guards), ..Options::default() })
}

#[test]
fn commands_of_both_formats_and_of_unknown_keys_work_on_local_faces() {
    let mut world = World::default();
    let register = name_of("rib/register", &named("/demo"));
    let wire = world.signed(&register, &Signer::digest());
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 200);
    let old = Signer::digest().sign_name(register.as_ref(), NOW_MS, [7; 8]).unwrap();
    assert_eq!(response(&world.send(&unsigned(&old), APP)).unwrap().code, 200);
    let stranger = Holder::root("/stranger").signer();
    let wire = world.signed(&register, &stranger);
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 200);
}

#[test]
fn the_answer_is_named_as_the_interest() {
    let mut world = World::default();
    let wire = world.signed(&name_of("rib/register", &named("/demo")), &Signer::digest());
    let sent = world.send(&wire, APP);
    let [Output::Data { wire: data, no_cache: true }] = sent.as_slice() else { panic!() };
    assert_eq!(Data::parse(data).unwrap().name, Interest::parse(&wire).unwrap().name);
}

#[test]
fn only_answers_over_a_network_are_cached() {
    let mut world = localhop(Localhop::Any);
    let register = name_under("/localhop/nfd", "rib/register", &named("/demo"));
    for (from, is_kept) in [(PEER, true), (APP, false)] {
        let sent = world.signed(&register, &Signer::digest());
        let sent = world.send(&sent, from);
        let [Output::Data { no_cache, .. }] = sent.as_slice() else { panic!("{sent:?}") };
        assert_eq!(*no_cache, !is_kept);
    }
}

#[test]
fn digest_commands_on_local_faces_come_in_any_order_and_twice() {
    let mut world = World::default();
    let register = name_of("rib/register", &named("/demo"));
    for (time_ms, nonce) in [(NOW_MS + 5, 1), (NOW_MS, 2), (NOW_MS, 2), (NOW_MS - 600_000, 3)] {
        let signed = Signer::digest().sign_name(register.as_ref(), time_ms, [nonce; 8]).unwrap();
        assert_eq!(response(&world.send(&unsigned(&signed), APP)).unwrap().code, 200);
    }
}

#[test]
fn rib_commands_must_be_signed_and_undamaged() {
    let mut world = World::default();
    let register = name_of("rib/register", &named("/demo"));
    let refused = response(&world.send(&unsigned(&register), APP)).unwrap();
    assert_eq!(refused.code, 403);
    assert!(refused.text.starts_with("authorization rejected"), "{}", refused.text);
    let mut wire = world.signed(&register, &Signer::digest());
    let last = wire.len() - 1;
    wire[last] ^= 1;
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 403);
    let old = Signer::digest().sign_name(register.as_ref(), NOW_MS, [7; 8]).unwrap();
    let mut wire = unsigned(&old);
    let last = wire.len() - 1;
    wire[last] ^= 1;
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 403);
    assert!(world.host.routes.is_empty());
    // Other modules are granted to local applications even unsigned, as the field does.
    let config = name_of("cs/config", &ControlParameters::default());
    assert_eq!(response(&world.send(&unsigned(&config), APP)).unwrap().code, 200);
}

#[test]
fn parameters_that_cannot_be_read_are_400() {
    let mut world = World::default();
    for parts in [&["rib", "register", "junk"][..], &["faces", "create"]] {
        let mut uri = name("/localhost/nfd");
        parts.iter().for_each(|part| {
            uri.append_generic(part);
        });
        let wire = world.signed(&uri, &Signer::digest());
        let refused = response(&world.send(&wire, APP)).unwrap();
        assert_eq!(refused.code, 400);
    }
}

#[test]
fn neighbours_get_no_answer_when_localhop_is_off() {
    let mut world = World::default();
    for prefix in ["/localhost/nfd", "/localhop/nfd"] {
        let register = name_under(prefix, "rib/register", &named("/demo"));
        let wire = world.signed(&register, &Signer::digest());
        let sent = world.send(&wire, PEER);
        let told = matches!(sent.as_slice(), [Output::NoRoute { interest }] if *interest == wire);
        assert_eq!(told, prefix == "/localhop/nfd", "{sent:?}");
        assert!(told || sent.is_empty(), "{sent:?}");
    }
    // A local face may use either name.
    let register = name_under("/localhop/nfd", "rib/register", &named("/demo"));
    let wire = world.signed(&register, &Signer::digest());
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 200);
}

#[test]
fn rules_grant_by_module_prefix_and_own_face() {
    let mut world = World::policy(rule(Who::Local, &[Privilege::Register]));
    assert_eq!(world.command("rib/register", &named("/a")).code, 200);
    let other = ControlParameters { face_id: Some(301), ..named("/a") };
    assert_eq!(world.command("rib/register", &other).code, 403);
    let own = ControlParameters { face_id: Some(300), ..named("/a") };
    assert_eq!(world.command("rib/unregister", &own).code, 200);
    assert_eq!(world.command("fib/add-nexthop", &named("/a")).code, 403);
    assert_eq!(world.command("cs/config", &ControlParameters::default()).code, 403);

    let mut policy = rule(Who::Local, &[Privilege::Rib, Privilege::Cs]);
    policy.rules[0].prefixes = vec![name("/site")];
    let mut world = World::policy(policy);
    assert_eq!(world.command("rib/register", &named("/site/app")).code, 200);
    assert_eq!(world.command("rib/register", &named("/elsewhere")).code, 403);
    assert_eq!(world.command("cs/config", &ControlParameters::default()).code, 200);
    assert_eq!(world.command("cs/erase", &named("/elsewhere")).code, 403);

    let mut world = World::policy(Policy { rules: Vec::new(), ..Policy::default() });
    assert_eq!(world.command("rib/register", &named("/a")).code, 403);
}

#[test]
fn a_certificate_grants_to_whoever_has_its_key_and_once() {
    let operator = Holder::root("/operator");
    let who = Who::Certificate(Box::new(operator.certificate.clone()));
    let mut world = World::policy(rule(who, &[Privilege::Fib]));
    let add = name_of("fib/add-nexthop", &named("/a"));
    let signer = operator.signer();
    let wire = world.signed(&add, &signer);
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 200);
    let again = response(&world.send(&wire, APP)).unwrap();
    assert_eq!(again.code, 403, "replayed: {}", again.text);
    assert!(again.text.contains("not later"), "{}", again.text);
    let late = signer.sign_name(add.as_ref(), NOW_MS - 200_000, [1; 8]).unwrap();
    assert_eq!(response(&world.send(&unsigned(&late), APP)).unwrap().code, 403);
    let wire = world.signed(&add, &Signer::digest());
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 403);
    // The same names, another key.
    let forger = Holder::root("/operator").signer();
    let wire = world.signed(&add, &forger);
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 403);
    let mut world = World::policy(rule(
        Who::Certificate(Box::new(operator.certificate.clone())),
        &[Privilege::Fib],
    ));
    world.host.unix_ms += 30 * 365 * 86_400_000;
    let wire = world.signed(&add, &operator.signer());
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 403, "expired");
}

#[test]
fn localhop_any_takes_signed_commands_for_the_own_face_once() {
    let mut world = localhop(Localhop::Any);
    let register = name_under("/localhop/nfd", "rib/register", &named("/demo"));
    let wire = world.signed(&register, &Signer::digest());
    let done = response(&world.send(&wire, PEER)).unwrap();
    assert_eq!((done.code, done.body.unwrap().face_id), (200, Some(301)));
    assert_eq!(response(&world.send(&wire, PEER)).unwrap().code, 403, "replayed");
    assert_eq!(response(&world.send(&unsigned(&register), PEER)).unwrap().code, 403);
    let other = ControlParameters { face_id: Some(300), ..named("/demo") };
    let other = name_under("/localhop/nfd", "rib/register", &other);
    let wire = world.signed(&other, &Signer::digest());
    assert_eq!(response(&world.send(&wire, PEER)).unwrap().code, 403);
    let p = ControlParameters { uri: Some("udp4://192.0.2.9:1".into()), ..Default::default() };
    let create = name_under("/localhop/nfd", "faces/create", &p);
    let wire = world.signed(&create, &Signer::digest());
    assert_eq!(response(&world.send(&wire, PEER)).unwrap().code, 403);
    assert_eq!(world.host.routes.len(), 1);
}

/// The Interest for a certificate that was sent, and where.
pub(super) fn fetch(sent: &[Output]) -> (Name, FaceId) {
    let [Output::Interest { wire, next_hop }] = sent else { panic!("{sent:?}") };
    let interest = Interest::parse(wire).unwrap();
    assert!(interest.can_be_prefix && interest.nonce.is_some());
    (interest.name.to_name(), *next_hop)
}

impl World {
    pub(super) fn give(&mut self, certificate: &Certificate) -> Vec<Output> {
        self.management.data(certificate.wire(), PEER, self.now, &mut self.host);
        std::iter::from_fn(|| self.management.poll_output()).collect()
    }
}

#[test]
fn localhop_with_anchors_fetches_the_chain_from_the_requester() {
    let root = Holder::root("/net");
    let site = Holder::issued("/net/site", &root);
    let user = Holder::issued("/net/site/user", &site);
    let mut world = localhop_by(&[&root]);
    let register = name_under("/localhop/nfd", "rib/register", &named("/net/site/user/app"));
    let signer = user.signer();
    let wire = world.signed(&register, &signer);
    let sent = world.send(&wire, PEER);
    assert_eq!(fetch(&sent), (user.certificate.name().to_name(), PEER));
    let sent = world.give(&user.certificate);
    assert_eq!(fetch(&sent), (site.certificate.name().to_name(), PEER));
    assert_eq!(response(&world.give(&site.certificate)).unwrap().code, 200);
    assert_eq!(world.host.routes[0].face, PEER);
    assert_eq!(response(&world.send(&wire, PEER)).unwrap().code, 403, "replayed");
    // Known now: nothing is fetched again. A name outside the identity is refused.
    let wire = world.signed(&register, &signer);
    assert_eq!(response(&world.send(&wire, PEER)).unwrap().code, 200);
    let outside = name_under("/localhop/nfd", "rib/register", &named("/net/other"));
    let wire = world.signed(&outside, &signer);
    let refused = response(&world.send(&wire, PEER)).unwrap();
    assert_eq!(refused.code, 403);
    assert!(refused.text.contains("may not sign"), "{}", refused.text);
}

const SITE: &str = r##"
    #K: "KEY"/_/_/_
    #root: "net"/#K
    #user: "net"/u/#K & {u: "a" | "b"} <= #root
    #operator: "net"/"op"/#K <= #root
    #register: "localhop"/"nfd"/"rib"/_v/"net"/u/_app & {_v: "register" | "unregister"} <= #user
    #faces: "localhost"/"nfd"/"faces"/_ <= #operator
    #announcement: "net"/u/_app/"32=PA"/_/_ <= #user
"##;

/// A configuration whose one entry of `trust` is [`SITE`], read as the daemon reads it.
fn site(keys: &str, root: &Holder, schema: &str) -> (World, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("site.lvs"), schema).unwrap();
    std::fs::create_dir(dir.path().join("anchors")).unwrap();
    let anchor = dir.path().join("anchors/root.ndncert");
    std::fs::write(anchor, root.certificate.to_text()).unwrap();
    let trust = "\n[[trust]]\nname = \"site\"\nschema = \"site.lvs\"\nanchors = [\"anchors\"]\n";
    let config = crate::config::Config::parse(&format!("{keys}{trust}"), "test").unwrap();
    (World::with(Options::from_config(&config, "test", dir.path()).unwrap()), dir)
}

#[test]
fn localhop_registration_follows_a_schema_that_sees_the_registered_name() {
    let root = Holder::root("/net");
    let user = Holder::issued("/net/a", &root);
    let keys = "rib.localhop = true\nrib.localhop_trust = \"site\"";
    let (mut world, _dir) = site(keys, &root, SITE);
    let register = |prefix| name_under("/localhop/nfd", "rib/register", &named(prefix));
    let wire = world.signed(&register("/net/a/mail"), &user.signer());
    assert_eq!(fetch(&world.send(&wire, PEER)), (user.certificate.name().to_name(), PEER));
    assert_eq!(response(&world.give(&user.certificate)).unwrap().code, 200);
    assert_eq!(response(&world.send(&wire, PEER)).unwrap().code, 403, "replayed");
    // Another's name, a longer one that no rule is about, another's key.
    for (prefix, rule) in [("/net/b/mail", "#register"), ("/net/a/mail/x", "no rule")] {
        let wire = world.signed(&register(prefix), &user.signer());
        let refused = response(&world.send(&wire, PEER)).unwrap();
        assert_eq!(refused.code, 403);
        assert!(refused.text.contains(rule), "{}", refused.text);
    }
    // Its certificate is not one that the rules know.
    let other = Holder::issued("/net/c", &root);
    let wire = world.signed(&register("/net/c/mail"), &other.signer());
    fetch(&world.send(&wire, PEER));
    assert_eq!(response(&world.give(&other.certificate)).unwrap().code, 403);
    assert_eq!(world.host.routes.len(), 1);
}

#[test]
fn localhop_registration_follows_the_rules_of_nfd() {
    let root = Holder::root("/net");
    let user = Holder::issued("/net/a", &root);
    let keys = "rib.localhop = true\nrib.localhop_trust = \"site\"";
    let (mut world, _dir) = site(keys, &root, onym_trust::conf::PRESET_LOCALHOP);
    let register = name_under("/localhop/nfd", "rib/register", &named("/elsewhere"));
    let wire = world.signed(&register, &user.signer());
    fetch(&world.send(&wire, PEER));
    // As in NFD: these rules do not look at the registered name.
    assert_eq!(response(&world.give(&user.certificate)).unwrap().code, 200);
    let wire = world.signed(&register, &Holder::root("/net/a").signer());
    fetch(&world.send(&wire, PEER));
    let wire = world.signed(&register, &Signer::digest());
    assert_eq!(response(&world.send(&wire, PEER)).unwrap().code, 403);
}

#[test]
fn management_commands_follow_a_schema() {
    let root = Holder::root("/net");
    let operator = Holder::issued("/net/op", &root);
    let user = Holder::issued("/net/a", &root);
    let keys = "[[authorize]]\nwho = \"trust:site\"\nmay = [\"faces\", \"cs\"]\n";
    let (mut world, _dir) = site(keys, &root, SITE);
    let destroy = ControlParameters { face_id: Some(301), ..ControlParameters::default() };
    let destroy = name_of("faces/destroy", &destroy);
    let wire = world.signed(&destroy, &operator.signer());
    assert_eq!(fetch(&world.send(&wire, APP)), (operator.certificate.name().to_name(), APP));
    world.management.data(operator.certificate.wire(), APP, world.now, &mut world.host);
    let sent: Vec<Output> = std::iter::from_fn(|| world.management.poll_output()).collect();
    assert_eq!(response(&sent).unwrap().code, 200);
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 403, "replayed");
    // A key that the schema does not let, a command that no rule is about, no signature, a digest.
    let config = name_of("cs/config", &ControlParameters::default());
    for (name, signer) in
        [(&destroy, user.signer()), (&config, operator.signer()), (&destroy, Signer::digest())]
    {
        let wire = world.signed(name, &signer);
        assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 403, "{name}");
    }
    assert_eq!(response(&world.send(&unsigned(&destroy), APP)).unwrap().code, 403);
}

/// What another neighbour answers, or does not, keeps nobody from registering.
#[test]
fn a_neighbour_that_names_the_key_of_another_keeps_it_from_nothing() {
    const THIEF: FaceId = FaceId(302);
    let root = Holder::root("/net");
    let user = Holder::issued("/net/user", &root);
    let mut world = localhop_by(&[&root]);
    let mut thief = world.host.faces[&PEER.0].clone();
    thief.id = THIEF;
    world.host.faces.insert(THIEF.0, thief);
    let register = name_under("/localhop/nfd", "rib/register", &named("/net/user"));
    let signer = user.signer();
    let wire = world.signed(&register, &signer);
    assert_eq!(fetch(&world.send(&wire, THIEF)).1, THIEF);
    let junk = Holder::root("/net/user").certificate;
    world.management.data(junk.wire(), THIEF, world.now, &mut world.host);
    let wire = world.signed(&register, &signer);
    assert_eq!(fetch(&world.send(&wire, PEER)).1, PEER, "it is asked itself");
    assert_eq!(response(&world.give(&user.certificate)).unwrap().code, 200);
}

/// A wrong schema is told with its key at the start and by a reload; a reload changes nothing then.
#[test]
fn a_trust_that_cannot_be_opened_is_named_with_its_key() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("site.lvs"), "#root: ").unwrap();
    let read = |text: &str| {
        let config = crate::config::Config::parse(text, "node.toml").map_err(|e| e.to_string())?;
        Options::from_config(&config, "node.toml", dir.path()).map_err(|e| e.to_string())
    };
    let entry = "[[trust]]\nname = \"site\"\nschema = \"site.lvs\"\n";
    let said = read(entry).unwrap_err();
    assert!(said.contains("trust[0]") && said.contains("not a usable trust schema"), "{said}");
    let said = read(&format!("{entry}{entry}")).unwrap_err();
    assert!(said.contains("another entry has this name"), "{said}");
    let said = read("rib.localhop = true\nrib.localhop_trust = \"other\"").unwrap_err();
    assert!(said.contains("rib.localhop_trust") && said.contains("there is none"), "{said}");
    let said = read("[[authorize]]\nwho = \"trust:x\"\nmay = []").unwrap_err();
    assert!(said.contains("authorize.who"), "{said}");
}

#[test]
fn a_certificate_that_does_not_come_is_asked_for_twice_and_given_up() {
    let root = Holder::root("/net");
    let user = Holder::issued("/net/user", &root);
    let mut world = localhop_by(&[&root]);
    let register = name_under("/localhop/nfd", "rib/register", &named("/net/user"));
    let wire = world.signed(&register, &user.signer());
    fetch(&world.send(&wire, PEER));
    let due = world.management.poll_timeout().unwrap();
    assert_eq!(due, world.now.plus_ms(1500));
    world.pass_ms(1500);
    let sent: Vec<Output> = std::iter::from_fn(|| world.management.poll_output()).collect();
    fetch(&sent);
    world.pass_ms(1500);
    let sent: Vec<Output> = std::iter::from_fn(|| world.management.poll_output()).collect();
    let refused = response(&sent).unwrap();
    assert_eq!(refused.code, 403);
    assert!(refused.text.contains("could not be fetched"), "{}", refused.text);
    assert_eq!(world.management.poll_timeout(), None);
    assert!(world.give(&user.certificate).is_empty(), "too late");
}

#[test]
fn commands_that_wait_for_certificates_are_bounded() {
    let root = Holder::root("/net");
    let user = Holder::issued("/net/user", &root);
    let mut world = localhop_by(&[&root]);
    let signer = user.signer();
    let register = name_under("/localhop/nfd", "rib/register", &named("/net/user"));
    for n in 0..64 {
        let wire = world.signed(&register, &signer);
        let sent = world.send(&wire, PEER);
        match n {
            0 => assert_eq!(fetch(&sent).0, user.certificate.name().to_name()),
            _ => assert!(sent.is_empty(), "it is asked for already"),
        }
    }
    let wire = world.signed(&register, &signer);
    let refused = response(&world.send(&wire, PEER)).unwrap();
    assert!(refused.text.contains("too many commands wait"), "{}", refused.text);
    let answers = world.give(&user.certificate);
    assert_eq!(answers.len(), 64, "all of them end");
}

#[test]
fn rules_are_read_from_the_configuration_or_the_wrong_entry_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let operator = Holder::root("/operator");
    std::fs::write(dir.path().join("op.ndncert"), operator.certificate.to_text()).unwrap();
    let text = r#"
        authorize = [
            { who = "local", may = ["register"] },
            { who = "op.ndncert", may = ["faces", "strategy-choice"], prefixes = ["/site"] },
        ]
        [rib]
        localhop = true
        localhop_anchors = ["op.ndncert"]
        routable_prefixes = ["/site"]
    "#;
    let config = crate::config::Config::parse(text, "test").unwrap();
    let options = Options::from_config(&config, "test", dir.path()).unwrap();
    assert_eq!(options.policy.rules.len(), 2);
    assert_eq!(options.policy.rules[1].prefixes, [name("/site")]);
    assert_eq!(options.policy.localhop, Some(Localhop::Anchors));
    let anchors = options.trust.0[LOCALHOP].validator().anchors();
    assert!(anchors.iter().eq([&operator.certificate]));
    assert_eq!(options.routable_prefixes, [name("/site")]);
    let bad = text.replace("\"op.ndncert\", may", "\"missing.ndncert\", may");
    let config = crate::config::Config::parse(&bad, "test").unwrap();
    let error = Options::from_config(&config, "test", dir.path()).unwrap_err().to_string();
    assert!(error.contains("authorize[1]") && error.contains("missing.ndncert"), "{error}");
    let empty = crate::config::Config::default();
    let options = Options::from_config(&empty, "defaults", dir.path()).unwrap();
    assert_eq!(options, Options::default());
}

#[test]
fn nobody_takes_the_routes_of_management_away() {
    let mut world = World::default();
    for own in ["/localhost/nfd", "/localhost/nfd/rib", "/localhost/onym/status"] {
        for verb in ["rib/register", "fib/add-nexthop", "fib/remove-nexthop"] {
            assert_eq!(world.command(verb, &named(own)).code, 403, "{verb} {own}");
        }
    }
    for other in ["/localhost", "/localhost/app", "/localhop/nfd", "/nfd"] {
        assert_eq!(world.command("rib/register", &named(other)).code, 200, "{other}");
    }
}

pub(super) fn stranger(uid: Option<u32>) -> World {
    let mut world = World::default();
    world.host.users.insert(APP.0, User { uid, is_operator: false });
    world
}

#[test]
fn who_is_no_operator_registers_for_itself_what_is_nobody_elses() {
    for uid in [Some(1000), None] {
        let mut world = stranger(uid);
        world.host.routes.push(RouteSpec {
            name: name("/bob/app"),
            face: PEER,
            origin: 0,
            cost: 0,
            flags: 1,
            expiration_ms: None,
        });
        assert_eq!(world.command("rib/register", &named("/alice")).code, 200);
        assert_eq!(world.command("rib/register", &named("/alice")).code, 200, "again");
        assert_eq!(world.command("rib/register", &named("/bob/app/below")).code, 200);
        for uri in ["/", "/localhost", "/localhost/a", "/localhop/a", "/bob", "/bob/app"] {
            let refused = world.command("rib/register", &named(uri));
            assert_eq!(refused.code, 403, "{uri}");
            assert!(refused.text.contains("the group onym"), "{}", refused.text);
        }
        assert_eq!(world.command("rib/unregister", &named("/alice")).code, 200);
        let other = ControlParameters { face_id: Some(301), ..named("/bob/app") };
        assert_eq!(world.command("rib/unregister", &other).code, 403);
    }
}

#[test]
fn a_key_that_a_rule_trusts_counts_for_who_is_no_operator() {
    let operator = Holder::root("/operator");
    let who = Who::Certificate(Box::new(operator.certificate.clone()));
    let mut policy = rule(who, &[Privilege::Rib, Privilege::Cs]);
    policy.rules.extend(Policy::default().rules);
    let mut world = World::policy(policy);
    world.host.users.insert(APP.0, User::UNKNOWN);
    let take_all = name_of("rib/register", &named("/"));
    let wire = world.signed(&take_all, &operator.signer());
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 200);
    let wire = world.signed(&take_all, &Signer::digest());
    assert_eq!(response(&world.send(&wire, APP)).unwrap().code, 403);
}
