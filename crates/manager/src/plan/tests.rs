use super::*;
use crate::describe::{Form, read};
use crate::expand::{Decisions, expand, split};

fn graph(text: &str) -> Network {
    read(text, Form::Toml).unwrap_or_else(|e| panic!("{e}")).description.graph
}

fn nfd() -> Network {
    graph(crate::presets::find("nfd").unwrap())
}

fn shown(steps: &[Step]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}

fn inserted() -> Network {
    let mut network = nfd();
    split(&mut network, &Ends::consumer("cs", "br"), "sv", Function::new(Kind::SignatureVerifier));
    network
}

#[test]
fn from_nothing_functions_are_started_and_then_linked() {
    let steps = plan(&Network::default(), &nfd(), Strategy::default());
    assert_eq!(
        shown(&steps)[..4],
        [
            "start br (backward-router)",
            "start cs (content-store)",
            "start nr (name-router)",
            "start pd (packet-dispatcher)"
        ]
    );
    assert_eq!(steps.len(), 4 + 4 + 1);
}

#[test]
fn what_is_as_wanted_needs_no_step() {
    for strategy in [Strategy::MakeBeforeBreak, Strategy::BreakAndBuffer, Strategy::BreakAndDrop] {
        assert_eq!(plan(&nfd(), &nfd(), strategy), []);
    }
}

#[test]
fn an_insertion_has_the_three_orders_of_the_paper() {
    let steps = |strategy| shown(&plan(&nfd(), &inserted(), strategy));
    assert_eq!(
        steps(Strategy::MakeBeforeBreak),
        [
            "start sv (signature-verifier)",
            "link sv -> br",
            "link cs -> sv",
            "bring routes up to date",
            "turn cs from br to sv",
            "drain cs -> br",
            "unlink cs -> br"
        ]
    );
    assert_eq!(
        steps(Strategy::BreakAndBuffer),
        [
            "start sv (signature-verifier)",
            "keep what should leave cs",
            "drain cs -> br",
            "unlink cs -> br",
            "link sv -> br",
            "link cs -> sv",
            "bring routes up to date",
            "send what cs kept"
        ]
    );
    assert_eq!(
        steps(Strategy::BreakAndDrop),
        [
            "start sv (signature-verifier)",
            "unlink cs -> br",
            "link sv -> br",
            "link cs -> sv",
            "bring routes up to date"
        ]
    );
}

#[test]
fn a_removal_is_the_same_the_other_way_round() {
    let steps = shown(&plan(&inserted(), &nfd(), Strategy::MakeBeforeBreak));
    assert_eq!(
        steps,
        [
            "link cs -> br",
            "bring routes up to date",
            "turn cs from sv to br",
            "drain cs -> sv",
            "drain sv -> br",
            "unlink cs -> sv",
            "unlink sv -> br",
            "stop sv"
        ]
    );
}

#[test]
fn a_clone_that_goes_hands_its_table_over_before_its_links_go() {
    let text = r#"links = ["cs -> br -> nr"]
        functions.cs.kind = "CS"
        functions.br.kind = "BR"
        functions.br.scalable = true
        functions.nr.kind = "NR""#;
    let description = read(text, Form::Toml).unwrap().description;
    let scaled = |n| {
        expand(
            &description,
            &Decisions { instances: [("br".to_owned(), n)].into(), ..Decisions::default() },
        )
    };
    let steps = shown(&plan(&scaled(3), &scaled(2), Strategy::default()));
    assert_eq!(
        steps,
        [
            "drain br.sf0 -> br.2",
            "drain br.2 -> nr",
            "hand the table of br.2 over to br, br.1",
            "unlink br.sf0 -> br.2",
            "unlink br.2 -> nr",
            "stop br.2",
            "bring routes up to date",
        ]
    );
}

#[test]
fn a_changed_setting_is_set_and_a_changed_listener_needs_a_start() {
    let mut wanted = nfd();
    wanted.functions.get_mut("cs").unwrap().config.insert("capacity".into(), 5.into());
    wanted.functions.get_mut("br").unwrap().quota = Some(0.5);
    assert_eq!(
        shown(&plan(&nfd(), &wanted, Strategy::default())),
        ["limit br to 0.5 cores", "configure cs: capacity = 5"]
    );
    let mut wanted = nfd();
    wanted.functions.get_mut("pd").unwrap().listen.clear();
    assert_eq!(
        shown(&plan(&nfd(), &wanted, Strategy::default())),
        [
            "stop pd",
            "start pd (packet-dispatcher)",
            "link pd -> cs",
            "link pd => nr",
            "bring routes up to date"
        ]
    );
}

#[test]
fn a_dispatcher_is_pointed_elsewhere_and_never_left_without_a_path() {
    let mut wanted = nfd();
    split(&mut wanted, &Ends::consumer("pd", "cs"), "nf", Function::new(Kind::NameFilter));
    assert_eq!(
        shown(&plan(&nfd(), &wanted, Strategy::default())),
        ["start nf (name-filter)", "link nf -> cs", "link pd -> nf", "bring routes up to date"]
    );
}

#[test]
fn a_service_that_is_gone_is_started_and_all_its_links_are_made_again() {
    let mut running = nfd();
    running.remove("br");
    assert_eq!(
        shown(&plan(&running, &nfd(), Strategy::default())),
        ["start br (backward-router)", "link br -> nr", "link cs -> br", "bring routes up to date"]
    );
}
