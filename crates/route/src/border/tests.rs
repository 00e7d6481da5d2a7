use super::*;
use crate::Config;
use crate::codec::PrefixOps;
use onym_crypto::Signer;
use onym_wire::name::Component;
use onym_wire::{Data, InterestBuilder};

const UNIX_MS: u64 = 1_700_000_000_000;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn router(network: &str) -> Router {
    let own = name(&format!("{network}/x"));
    let config = Config::new(name(network), own, UNIX_MS / 1000, 7);
    Router::new(Tick(0), config, Signer::digest(), UNIX_MS).unwrap()
}

fn export(from: &str, to: &str, summaries: &[(&str, bool)]) -> Export {
    let summary = |(prefix, always): &(&str, bool)| Summary {
        prefix: name(prefix),
        cost: 3,
        always: *always,
    };
    let summaries = summaries.iter().map(summary).collect();
    Export { summaries, ..Export::all(name(from), name(to)) }
}

fn border(exports: Vec<Export>) -> Border {
    let routers = ["/in", "/out"].map(router).into();
    Border::new(Tick(0), routers, exports).unwrap()
}

/// What the router of `/out` announces: prefix, cost, and the networks that it came through.
fn told(border: &Border) -> Vec<(String, u64, Vec<String>)> {
    let adds = border.routers()[1].prefixes().snapshot().adds;
    let one = |add: PrefixAdd| {
        let through = add.through.iter().map(Name::to_string).collect();
        (add.name.to_string(), add.cost, through)
    };
    adds.into_iter().map(one).collect()
}

fn one(prefix: &str, cost: u64) -> (String, u64, Vec<String>) {
    (prefix.to_owned(), cost, vec!["/in".to_owned()])
}

fn announce(border: &mut Border, prefix: &str, cost: u64) {
    let done = border.with(Tick(1), 0, |r| r.announce(Tick(1), &name(prefix), 300, cost));
    assert_eq!(done, Some(true));
}

fn withdraw(border: &mut Border, prefix: &str) {
    border.with(Tick(1), 0, |r| r.withdraw(Tick(1), &name(prefix), 300));
}

#[test]
fn routers_of_one_network_and_exports_to_nowhere_make_no_border() {
    let new = |networks: &[&str], exports| {
        let routers = networks.iter().map(|network| router(network)).collect();
        Border::new(Tick(0), routers, exports).err()
    };
    assert_eq!(new(&[], vec![]), Some(BorderError::Empty));
    assert_eq!(new(&["/in", "/in"], vec![]), Some(BorderError::Twice));
    for (from, to) in [("/in", "/else"), ("/else", "/in"), ("/in", "/in")] {
        let exports = vec![export(from, to, &[])];
        assert_eq!(new(&["/in", "/out"], exports), Some(BorderError::Unknown));
    }
    let twice = vec![export("/in", "/out", &[]), export("/in", "/out", &[])];
    assert_eq!(new(&["/in", "/out"], twice), Some(BorderError::Unknown));
}

#[test]
fn a_summary_comes_with_the_first_and_goes_with_the_last_of_what_is_under_it() {
    let mut border = border(vec![export("/in", "/out", &[("/site", false)])]);
    assert_eq!(told(&border), []);
    announce(&mut border, "/site/a", 1);
    announce(&mut border, "/site/b", 9);
    announce(&mut border, "/other", 2);
    assert_eq!(told(&border), [one("/site", 3), one("/other", 2)]);
    withdraw(&mut border, "/site/a");
    assert_eq!(told(&border), [one("/site", 3), one("/other", 2)]);
    withdraw(&mut border, "/site/b");
    assert_eq!(told(&border), [one("/other", 2)]);
    // The summary itself may be announced inside; outside it has its fixed cost.
    announce(&mut border, "/site", 0);
    assert_eq!(told(&border), [one("/site", 3), one("/other", 2)]);
}

#[test]
fn a_summary_that_always_stands_hides_all_that_is_under_it() {
    let mut border = border(vec![export("/in", "/out", &[("/site", true)])]);
    assert_eq!(told(&border), [one("/site", 3)]);
    announce(&mut border, "/site/a", 1);
    assert_eq!(told(&border), [one("/site", 3)]);
    // Names that nobody has end here.
    let mut ends = false;
    while let Some(output) = border.poll_output() {
        let Output::Command { command, .. } = output else { continue };
        ends |=
            matches!(command, Command::Register { prefix, face: 0, .. } if prefix == name("/site"));
    }
    assert!(ends);
}

#[test]
fn nothing_is_announced_where_no_export_says_so() {
    let mut border = border(vec![export("/out", "/in", &[])]);
    announce(&mut border, "/app", 1);
    assert_eq!(told(&border), []);
    let only = Export { others: false, ..export("/in", "/out", &[("/site", false)]) };
    let mut border = self::border(vec![only]);
    announce(&mut border, "/app", 1);
    announce(&mut border, "/site/a", 1);
    assert_eq!(told(&border), [one("/site", 3)]);
}

#[test]
fn a_network_that_is_full_refuses_what_the_others_have_and_counts_it() {
    let mut config = Config::new(name("/out"), name("/out/x"), UNIX_MS / 1000, 7);
    config.prefixes.local_max = 2;
    let small = Router::new(Tick(0), config, Signer::digest(), UNIX_MS).unwrap();
    let all = vec![export("/in", "/out", &[])];
    let mut border = Border::new(Tick(0), vec![router("/in"), small], all).unwrap();
    for i in 0..5 {
        announce(&mut border, &format!("/app/{i}"), 1);
    }
    assert_eq!((told(&border).len(), border.refused()), (2, 3));
}

/// What is answered to a program of the host that asks for a dataset.
fn asked(border: &mut Border, name: &Name) -> Option<serde_json::Value> {
    let builder = InterestBuilder { nonce: Some([1; 4]), ..InterestBuilder::new(name.as_ref()) };
    let mut wire = Vec::new();
    builder.write(&mut wire);
    while border.poll_transmit(Tick(2)).is_some() {}
    border.receive(Tick(2), &Inbound::bare(&wire));
    let answer = border.poll_transmit(Tick(2))?;
    serde_json::from_slice(Data::parse(&answer.wire).unwrap().content).ok()
}

fn nested(name: &Name) -> Component<'static> {
    let mut wire = Vec::new();
    name.as_ref().write_tlv(&mut wire);
    Component::generic(wire.leak())
}

#[test]
fn each_network_answers_about_itself_and_the_first_one_for_the_host() {
    let mut border = border(vec![export("/in", "/out", &[])]);
    announce(&mut border, "/app", 4);
    let local = name("/localhost/nlsr");
    let of = |network: &str| name("/localhost/nlsr/area").with(nested(&name(network)));
    let word =
        |name: &Name, word: &'static str| name.clone().with(Component::generic(word.as_bytes()));
    let seen = asked(&mut border, &word(&local, "view")).unwrap();
    assert_eq!((&seen["router"], &seen["networks"][1]), (&"/in/x".into(), &"/out".into()));
    for (network, router) in [("/in", "/in/x"), ("/out", "/out/x")] {
        let seen = asked(&mut border, &word(&of(network), "view")).unwrap();
        assert_eq!(seen["router"], router);
    }
    assert_eq!(asked(&mut border, &word(&of("/else"), "view")), None);
    // What comes from another network is told as that.
    let app = nested(&name("/app"));
    let explained = asked(&mut border, &word(&of("/out"), "explain").with(app)).unwrap();
    let outside = &explained["outside"];
    assert_eq!((&outside["announced"], &outside["through"][0]), (&4.into(), &"/in".into()));
    let at_home = asked(&mut border, &word(&local, "explain").with(app)).unwrap();
    assert_eq!((&at_home["local"], &at_home["outside"]), (&4.into(), &serde_json::Value::Null));
    // Programs announce in the first network only.
    let verb = word(&word(&of("/out"), "rib"), "register").with(Component::generic(b""));
    assert_eq!(asked(&mut border, &verb), None);
    assert_eq!(border.routers()[1].prefixes().local().count(), 0);
}

#[test]
fn what_a_router_says_beyond_its_networks_names_is_neither_used_nor_told() {
    let mut config = Config::new(name("/in"), name("/in/x"), UNIX_MS / 1000, 7);
    config.accept = vec![name("/in"), name("/shared")];
    let bounded = Router::new(Tick(0), config, Signer::digest(), UNIX_MS).unwrap();
    let all = vec![export("/in", "/out", &[("/in", false)])];
    let mut border = Border::new(Tick(0), vec![bounded, router("/out")], all).unwrap();
    let add = |uri: &str| PrefixAdd { name: name(uri), cost: 0, through: Vec::new() };
    let lies = ["/", "/out", "/out/app", "/inn", "/in/app", "/shared"].map(add);
    let evil = name("/in/evil");
    let ops = PrefixOps { exit_router: evil.clone(), adds: lies.into(), ..PrefixOps::default() };
    let mut content = Vec::new();
    ops.write(&mut content);
    for at in 0..2 {
        border.with(Tick(1), at, |r| r.on_operations(evil.clone(), &content));
    }
    let known = |at: usize| border.routers()[at].prefixes().remote().map(|n| n.to_string());
    assert_eq!(known(0).collect::<Vec<_>>(), ["/in/app", "/shared"]);
    assert_eq!(border.routers()[0].view(Tick(1)).counters.not_accepted, 4);
    assert_eq!(known(1).count(), 6, "without a list anything is accepted");
}
