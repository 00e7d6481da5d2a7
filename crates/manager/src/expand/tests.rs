use super::*;
use crate::describe::{Form, read};
use crate::network::guards;
use proptest::prelude::*;

fn described(text: &str) -> Description {
    read(text, Form::Toml).unwrap_or_else(|e| panic!("{e}")).description
}

fn links(graph: &Network) -> Vec<String> {
    graph.links.keys().map(ToString::to_string).collect()
}

fn scaled(text: &str, name: &str, count: u32) -> Network {
    let decisions =
        Decisions { instances: [(name.to_owned(), count)].into(), ..Decisions::default() };
    expand(&described(text), &decisions)
}

#[test]
fn two_routers_that_reach_each_other_get_one_guard() {
    let graph =
        expand(&described(crate::presets::find("interlinked").unwrap()), &Decisions::default());
    assert_eq!(
        links(&graph),
        ["br1 -> nr1", "br2 -> nr2", "nr1 -> nr2", "nr2 -> nr2.nr1.br", "nr2.nr1.br -> nr1"]
    );
    assert_eq!(guards(&graph), []);
}

#[test]
fn a_verifier_stands_between_surrounded_by_balancer_and_collector_when_cloned() {
    // The paper's Fig. 3.
    let text = r#"links = ["cs -> sv -> nr"]
        functions.cs.kind = "CS"
        functions.sv.kind = "SV"
        functions.sv.scalable = true
        functions.nr.kind = "NR""#;
    let graph = scaled(text, "sv", 3);
    assert_eq!(
        links(&graph),
        [
            "cs -> sv.sf0",
            "sv -> sv.br0",
            "sv.1 -> sv.br0",
            "sv.2 -> sv.br0",
            "sv.br0 -> nr",
            "sv.sf0 -> sv",
            "sv.sf0 -> sv.1",
            "sv.sf0 -> sv.2",
        ]
    );
}

#[test]
fn a_cloned_backward_router_has_a_balancer_for_each_source_and_its_target_serves_all() {
    // The paper's Fig. 4.
    let text = r#"links = ["cs1 -> br", "cs2 -> br", "br -> nr"]
        functions.cs1.kind = "CS"
        functions.cs2.kind = "CS"
        functions.br.kind = "BR"
        functions.br.scalable = true
        functions.nr.kind = "NR""#;
    let graph = scaled(text, "br", 2);
    assert_eq!(
        links(&graph),
        [
            "br -> nr",
            "br.1 -> nr",
            "br.sf0 -> br",
            "br.sf0 -> br.1",
            "br.sf1 -> br",
            "br.sf1 -> br.1",
            "cs1 -> br.sf0",
            "cs2 -> br.sf1",
        ]
    );
}

#[test]
fn clones_of_a_backward_router_share_by_load_where_one_balancer_knows_all_that_waits() {
    let text = r#"links = ["cs -> br -> nr"]
        functions.cs.kind = "CS"
        functions.br.kind = "BR"
        functions.br.scalable = true
        functions.nr.kind = "NR""#;
    let shared = |text: &str, name: &str| {
        let graph = scaled(text, name, 2);
        graph.functions[&format!("{name}.sf0")].config["strategy"].clone()
    };
    assert_eq!(shared(text, "br"), "least-outstanding");
    let hashed = format!("{text}\nfunctions.nr.config.return = \"hash\"");
    assert_eq!(shared(&hashed, "br"), "hash-name");
    let two =
        format!("{text}\nfunctions.other.kind = \"CS\"").replace("[\"cs", "[\"other -> br\", \"cs");
    assert_eq!(shared(&two, "br"), "hash-name");
    let said = format!("{text}\npolicies.scaling.balance = \"round-robin\"");
    assert_eq!(shared(&said, "br"), "round-robin");
    let caches = r#"links = ["nf -> cs -> br"]
        functions.nf.kind = "NF"
        functions.cs.kind = "CS"
        functions.cs.scalable = true
        functions.br.kind = "BR""#;
    assert_eq!(shared(caches, "cs"), "hash-name", "a Data is kept once");
}

#[test]
fn what_tells_its_sources_apart_needs_no_collector_before_it() {
    let text = r#"links = ["pd -> cs -> br -> nr"]
        functions.pd.kind = "PD"
        functions.cs.kind = "CS"
        functions.cs.scalable = true
        functions.br.kind = "BR"
        functions.nr.kind = "NR""#;
    let graph = scaled(text, "cs", 2);
    assert!(graph.links.contains_key(&Ends::consumer("cs.1", "br")));
    assert!(!graph.functions.contains_key("cs.br0"));
}

#[test]
fn a_cloned_name_router_has_both_and_is_answered_at_every_clone() {
    let text = r#"links = ["br -> nr -> nr2", "cs => nr"]
        functions.br.kind = "BR"
        functions.nr.kind = "NR"
        functions.nr.scalable = true
        functions.nr2.kind = "NR"
        functions.cs.kind = "CS""#;
    let graph = scaled(text, "nr", 2);
    assert_eq!(
        links(&graph),
        [
            "br -> nr.sf0",
            "cs => nr",
            "cs => nr.1",
            "nr -> nr.br0",
            "nr.1 -> nr.br0",
            "nr.br0 -> nr2",
            "nr.sf0 -> nr",
            "nr.sf0 -> nr.1",
        ]
    );
}

#[test]
fn what_is_scaled_to_one_is_as_declared() {
    for (_, _, text) in crate::presets::PRESETS {
        let description = described(text);
        let plain = expand(&description, &Decisions::default());
        for name in description.graph.functions.keys() {
            assert_eq!(scaled(text, name, 1), plain);
        }
    }
}

#[test]
fn a_verifier_is_placed_on_a_link_of_either_side() {
    let description = described(crate::presets::find("poisoning").unwrap());
    let place = |name: &str, on: Ends| Verifier { name: name.into(), cache: "cs1".into(), on };
    let decisions = Decisions {
        verifiers: vec![
            place("cs1.sv0", Ends::consumer("cs1", "nr")),
            place("cs1.sv1", Ends::producer("cs2", "nr")),
        ],
        ..Decisions::default()
    };
    let graph = expand(&description, &decisions);
    assert_eq!(
        links(&graph),
        ["cs1 -> cs1.sv0", "cs1.sv0 -> nr", "cs1.sv1 => nr", "cs2 -> cs1.sv1"]
    );
    assert_eq!(graph.functions["cs1.sv0"].config["drop"], true);
}

#[test]
fn what_stands_at_the_edge_cannot_be_cloned() {
    let description = described(crate::presets::find("scaling").unwrap());
    assert_eq!(eligible(&description.graph, "br"), Ok(()));
    for name in ["cs", "nr", "nobody"] {
        assert!(eligible(&description.graph, name).is_err(), "{name}");
    }
}

#[test]
fn joining_undoes_splitting() {
    let mut graph = described(crate::presets::find("nfd").unwrap()).graph;
    let before = graph.clone();
    let on = Ends::consumer("br", "nr");
    assert!(split(&mut graph, &on, "nf", Function::new(Kind::NameFilter)));
    assert!(!graph.links.contains_key(&on));
    join(&mut graph, "nf").unwrap();
    assert_eq!(graph, before);
    assert!(join(&mut graph, "nf").is_err());
}

fn any_graph() -> impl Strategy<Value = Network> {
    let kinds = prop::collection::vec(0..4usize, 2..8);
    kinds.prop_flat_map(|kinds| {
        let count = kinds.len();
        let links = prop::collection::vec((0..count, 0..count), 0..24);
        (Just(kinds), links).prop_map(|(kinds, links)| {
            let mut graph = Network::default();
            for (number, kind) in kinds.iter().enumerate() {
                let kind =
                    [Kind::NameRouter, Kind::BackwardRouter, Kind::ContentStore, Kind::Forwarder]
                        [*kind];
                let mut function = Function::new(kind);
                function.multicast = true;
                graph.functions.insert(format!("f{number}"), function);
            }
            for (from, to) in links.into_iter().filter(|(a, b)| a != b) {
                graph.link(
                    Ends::consumer(&format!("f{from}"), &format!("f{to}")),
                    Default::default(),
                );
            }
            graph
        })
    })
}

proptest! {
    #[test]
    fn a_guarded_network_has_no_loop_and_every_cycle_named_is_one(graph in any_graph()) {
        for guard in guards(&graph) {
            prop_assert!(guard.cycle.len() >= 2);
            for (at, name) in guard.cycle.iter().enumerate() {
                let next = &guard.cycle[(at + 1) % guard.cycle.len()];
                let edge = Ends::consumer(name, next);
                prop_assert!(graph.links.contains_key(&edge), "{edge} in {:?}", guard);
            }
        }
        let description = Description { graph, ..Description::default() };
        let expanded = expand(&description, &Decisions::default());
        prop_assert_eq!(guards(&expanded), vec![]);
    }
}
