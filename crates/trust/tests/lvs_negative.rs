//! Negative test 36: what is no model, or one that would take the machine.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use onym_trust::lvs::{
    Functions, LoadError, Mode, Model, NODES_MAX, STEPS_MAX, Schema, SchemaError, compile, lint,
};
use onym_trust::suggest::{Candidate, Unfit, suggest};
use onym_trust::{Cause, Policy, Subject};
use onym_wire::Name;
use onym_wire::tlv::{put_nested, put_nni_tlv, put_tlv};
use std::time::Instant;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn schema(text: &str) -> Schema {
    Schema::new(compile(text, Mode::Strict).unwrap(), Functions::default()).unwrap()
}

/// A node: id, parent, value edges (destination, component), pattern edges, signers.
#[derive(Default)]
struct Node {
    parent: Option<u64>,
    rule: Option<&'static str>,
    values: Vec<(u64, u8)>,
    patterns: Vec<u64>,
    signers: Vec<u64>,
    extra: Vec<u8>,
}

fn model(start: u64, nodes: &[Node]) -> Vec<u8> {
    let mut out = Vec::new();
    put_tlv(&mut out, 0x61, &0x0001_1000_u32.to_be_bytes());
    put_nni_tlv(&mut out, 0x25, start);
    put_nni_tlv(&mut out, 0x69, 0);
    for (id, node) in (0_u64..).zip(nodes) {
        put_nested(&mut out, 0x63, |out| {
            put_nni_tlv(out, 0x25, id);
            if let Some(parent) = node.parent {
                put_nni_tlv(out, 0x57, parent);
            }
            if let Some(rule) = node.rule {
                put_tlv(out, 0x29, rule.as_bytes());
            }
            for (dest, component) in &node.values {
                put_nested(out, 0x51, |out| {
                    put_nni_tlv(out, 0x25, *dest);
                    put_tlv(out, 0x21, &[8, 1, *component]);
                });
            }
            for dest in &node.patterns {
                put_nested(out, 0x53, |out| {
                    put_nni_tlv(out, 0x25, *dest);
                    put_nni_tlv(out, 0x23, 1);
                    out.extend_from_slice(&node.extra);
                });
            }
            for signer in &node.signers {
                put_nni_tlv(out, 0x55, *signer);
            }
        });
    }
    out
}

fn start(values: Vec<(u64, u8)>, patterns: Vec<u64>) -> Node {
    Node { values, patterns, ..Node::default() }
}

fn child(parent: u64) -> Node {
    Node { parent: Some(parent), rule: Some("#a"), ..Node::default() }
}

const TEXT: &str = "#root: \"a\"/#KEY\n#user: \"a\"/u/#KEY <= #root\n#data: \"a\"/u/_ <= #user\n#KEY: \"KEY\"/_/_/_";

#[test]
fn negative_36_a_truncated_model_is_refused_at_every_length() {
    let octets = compile(TEXT, Mode::Exact).unwrap().encode();
    assert!(Model::decode(&octets).is_ok());
    for len in 0..octets.len() {
        // Cut between two symbols or nodes it may still be a model, never the same.
        match Model::decode(&octets[..len]) {
            Ok(model) => assert_eq!(model.encode(), &octets[..len]),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let nodes_end = octets.len() - 8;
        assert!(len >= nodes_end || Model::decode(&octets[..len]).is_err(), "{len} octets");
    }
    let mut longer = octets;
    longer.push(0x63);
    assert!(matches!(Model::decode(&longer), Err(LoadError::Malformed(_))));
}

#[test]
fn negative_36_another_version_is_refused() {
    let mut octets = compile(TEXT, Mode::Exact).unwrap().encode();
    octets[5] += 1;
    assert_eq!(Model::decode(&octets), Err(LoadError::Version(0x0001_1001)));
}

#[test]
fn negative_36_what_points_nowhere_is_refused() {
    let good = || [start(vec![(1, b'x')], vec![2]), child(0), child(0)];
    assert!(Model::decode(&model(0, &good())).is_ok());
    assert_eq!(Model::decode(&model(7, &good())), Err(LoadError::Start(7)));
    let mut nodes = good();
    nodes[0].patterns = vec![9];
    let error = Model::decode(&model(0, &nodes)).unwrap_err();
    assert_eq!(error, LoadError::Destination { from: 0, dest: 9 });
    let mut nodes = good();
    nodes[0].values = vec![(9, b'x')];
    let error = Model::decode(&model(0, &nodes)).unwrap_err();
    assert_eq!(error, LoadError::Destination { from: 0, dest: 9 });
    let mut nodes = good();
    nodes[1].signers = vec![9];
    let error = Model::decode(&model(0, &nodes)).unwrap_err();
    assert_eq!(error, LoadError::Signer { node: 1, signer: 9 });
}

#[test]
fn negative_36_what_is_no_tree_is_refused() {
    // A wrong parent, of a child of node 0 too.
    let nodes = [start(vec![(1, b'x')], vec![2]), child(2), child(0)];
    let error = Model::decode(&model(0, &nodes)).unwrap_err();
    assert_eq!(error, LoadError::Parent { node: 1, from: 0 });
    // A cycle.
    let mut nodes = [start(vec![(1, b'x')], vec![]), child(0)];
    nodes[1].values = vec![(0, b'y')];
    assert_eq!(Model::decode(&model(0, &nodes)), Err(LoadError::StartReached));
    let mut nodes = [start(vec![], vec![]), child(2), child(1)];
    nodes[1].values = vec![(2, b'y')];
    nodes[2].values = vec![(1, b'y')];
    assert_eq!(Model::decode(&model(0, &nodes)), Err(LoadError::Unreachable(1)));
    let nodes = [start(vec![(1, b'x'), (1, b'y')], vec![]), child(0)];
    assert_eq!(Model::decode(&model(0, &nodes)), Err(LoadError::ReachedTwice(1)));
    let mut nodes = [start(vec![(1, b'x')], vec![]), child(0)];
    nodes[0].parent = Some(1);
    assert_eq!(Model::decode(&model(0, &nodes)), Err(LoadError::StartReached));
}

#[test]
fn negative_36_signing_in_a_circle_is_refused() {
    let mut nodes = [start(vec![(1, b'x')], vec![2]), child(0), child(0)];
    nodes[1].signers = vec![2];
    nodes[2].signers = vec![1];
    assert!(matches!(Model::decode(&model(0, &nodes)), Err(LoadError::SigningCycle(_))));
    nodes[2].signers = vec![];
    assert!(Model::decode(&model(0, &nodes)).is_ok());
}

#[test]
fn negative_36_an_option_says_exactly_one_thing() {
    let with = |option: &[u8]| {
        let mut nodes = [start(vec![], vec![1]), child(0)];
        put_nested(&mut nodes[0].extra, 0x43, |out| put_tlv(out, 0x41, option));
        Model::decode(&model(0, &nodes))
    };
    assert!(with(&[0x21, 3, 8, 1, b'x']).is_ok());
    assert_eq!(with(&[0x21, 3, 8, 1, b'x', 0x23, 1, 1]), Err(LoadError::Option(0)));
    assert_eq!(with(&[]), Err(LoadError::Option(0)));
    assert_eq!(with(&[0x31, 2, 0x27, 0]), Err(LoadError::Function(0)));
    assert!(with(&[0x21, 4, 8, 1, b'x', b'y']).is_err(), "octets behind the component");
    assert_eq!(with(&[0x23, 1, 0]), Err(LoadError::Variable(0)));
}

#[test]
fn negative_36_unknown_critical_elements_are_refused_and_others_skipped() {
    let octets = model(0, &[start(vec![(1, b'x')], vec![]), child(0)]);
    let with = |element: &[u8]| Model::decode(&[octets.as_slice(), element].concat());
    assert!(with(&[0x7c, 1, 0]).is_ok());
    assert!(matches!(with(&[0x7d, 1, 0]), Err(LoadError::Malformed(_))));
}

#[test]
fn negative_36_a_function_without_handler_is_refused_when_loaded() {
    let compiled = compile("#a: x & {x: $f()} <= #k\n#k: \"k\"", Mode::Strict).unwrap();
    let error = Schema::new(compiled.clone(), Functions::default()).unwrap_err();
    assert_eq!(error, SchemaError::UnknownFunction("$f".into()));
    // One that panics says no and takes nobody along.
    let mut functions = Functions::default();
    functions.insert("$f", |_, _| panic!("a user function with a fault"));
    let schema = Schema::new(compiled, functions).unwrap();
    assert!(!schema.check(&Subject::data(name("/x").as_ref()), name("/k").as_ref()).is_allowed());
}

#[test]
fn negative_36_a_hundred_thousand_nodes_load_and_match_in_time() {
    let count = 100_000_u64;
    let edges: Vec<u64> = (1..count).collect();
    let mut nodes = vec![start(vec![], edges)];
    nodes.extend((1..count).map(|_| child(0)));
    let octets = model(0, &nodes);
    let begin = Instant::now();
    let loaded = Model::decode(&octets).unwrap();
    assert_eq!(loaded.node_count(), 100_000);
    let schema = Schema::new(loaded, Functions::default()).unwrap();
    let subject = name("/x");
    let verdict = schema.check(&Subject::data(subject.as_ref()), name("/y").as_ref());
    assert_eq!(verdict.denial().unwrap().cause, Cause::AnchorOnly);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    let mut nodes = vec![start(vec![], vec![])];
    nodes.extend((0..NODES_MAX).map(|_| child(0)));
    assert!(matches!(Model::decode(&model(0, &nodes)), Err(LoadError::TooLarge(_))));
}

#[test]
fn negative_36_ten_thousand_levels_are_refused() {
    let depth = 10_000_u64;
    let mut nodes: Vec<Node> = (0..depth)
        .map(|at| Node {
            parent: at.checked_sub(1),
            values: vec![(at + 1, b'x')],
            ..Node::default()
        })
        .collect();
    nodes.push(child(depth - 1));
    assert!(matches!(Model::decode(&model(0, &nodes)), Err(LoadError::TooDeep(_))));
    let long = format!("#a: {}\"x\"", "\"x\"/".repeat(10_000));
    assert!(compile(&long, Mode::Strict).unwrap_err().to_string().contains("components"));
}

#[test]
fn negative_36_a_schema_in_which_everything_matches_ends_at_its_bound() {
    // Each packet rule matches every packet, and for each all keys are tried.
    let count = 2000_u64;
    let mut nodes = vec![start(vec![], (1..count).collect())];
    for at in 1..count {
        let mut node = child(0);
        if at < count / 2 {
            node.signers = vec![count];
        }
        nodes.push(node);
    }
    // The key that may sign has two components: no key of one is ever found.
    nodes[1].values = vec![(count, b'x')];
    nodes.push(child(1));
    let schema = Schema::new(Model::decode(&model(0, &nodes)).unwrap(), Functions::default());
    let schema = schema.unwrap();
    let begin = Instant::now();
    let verdict = schema.check(&Subject::data(name("/a").as_ref()), name("/b").as_ref());
    let denial = verdict.denial().unwrap();
    assert_eq!(denial.cause, Cause::TooCostly, "{denial}");
    assert!(denial.text.contains(&STEPS_MAX.to_string()));
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    // Texts that expand to too much are refused before they take memory.
    let union = |id: char, inner: &str| format!("#{id}: {inner}\n#{id}: {inner}/_\n");
    let mut text = union('z', "\"z\"");
    for (id, inner) in ('a'..='y').rev().zip(('b'..='z').rev()) {
        text += &union(id, &format!("#{inner}/#{inner}"));
    }
    let error = compile(&text, Mode::Strict).unwrap_err().to_string();
    assert!(error.contains("16384 names") || error.contains("components"), "{error}");
}

#[test]
fn negative_36_the_bound_constraint_case_is_as_peers_have_it_unless_strict() {
    let text = "#data: \"d\"/role/_ <= #key\n#key: \"k\"/role/\"KEY\" & {role: \"admin\"}";
    let (packet, key) = (name("/d/guest/1"), name("/k/guest/KEY"));
    let subject = Subject::data(packet.as_ref());
    assert!(schema(text).check(&subject, key.as_ref()).is_allowed());
    assert!(!schema(text).strict().check(&subject, key.as_ref()).is_allowed());
    let findings = lint(text).unwrap();
    assert!(findings.iter().any(|f| f.line == 2 && f.text.contains("role is bound by #data")));
}

#[test]
fn a_denial_names_the_first_rule_that_fails() {
    let schema = schema(TEXT);
    let why = |packet: &str, key: &str| {
        let packet = name(packet);
        let verdict = schema.check(&Subject::data(packet.as_ref()), name(key).as_ref());
        let denial = verdict.denial().expect("it is denied").clone();
        (denial.cause, denial.to_string())
    };
    let (cause, text) = why("/a/x/1", "/a/y/KEY/k/i/v=1");
    assert_eq!(cause, Cause::Key);
    assert_eq!(
        text,
        "#data: the key /a/y/KEY/k/i/v=1 may not sign it: #user (/a/<u>/KEY/<_>/<_>/<_>) fails, \
         component 2, <u>, is y but must be x; the key follows #user"
    );
    let (_, text) = why("/a/x/1", "/a/x/KEY/k/i");
    assert!(text.contains("it has 5 components, the rule has 6"), "{text}");
    let (_, text) = why("/a/x/1", "/b/x/KEY/k/i/v=1");
    assert!(text.contains("component 1 is b, not a"), "{text}");
    let (cause, text) = why("/a/KEY/k/i/v=1", "/a/KEY/k/i/v=1");
    assert_eq!(cause, Cause::AnchorOnly);
    assert!(text.contains("may only be a trust anchor"), "{text}");
    let (cause, text) = why("/a/x/1/2", "/a/x/KEY/k/i/v=1");
    assert_eq!(cause, Cause::NoRule);
    assert!(text.contains("the closest is #data (/a/<u>/<_>): it has 4 components"), "{text}");
}

#[test]
fn an_explanation_lists_rules_and_signers() {
    let lines = schema(TEXT).explain(&Subject::data(name("/a/x/1").as_ref()));
    assert_eq!(lines, ["follows #data (/a/<u>/<_>)", "  signed by #user (/a/<u>/KEY/<_>/<_>/<_>)"]);
    assert!(schema(TEXT).rules().contains(&"#root /a/KEY/<_>/<_>/<_> signed by nobody".to_owned()));
}

#[test]
fn only_a_root_of_trust_may_be_an_anchor() {
    let schema = schema(TEXT);
    assert_eq!(schema.model().roots(), ["#root"]);
    assert!(schema.anchor(name("/a/KEY/k/self/v=1").as_ref()).is_ok());
    let denial = schema.anchor(name("/a/x/KEY/k/self/v=1").as_ref()).unwrap_err();
    assert!(denial.text.contains("#root"), "{denial}");
}

#[test]
fn the_first_key_whose_own_certificate_passes_is_suggested_an_anchor_too() {
    let schema = schema(
        "#root: \"a\"/#KEY\n#user: \"a\"/u/#KEY <= #root\n#data: \"a\"/u/_ <= #user\n#note: \"a\"/\"note\"/_ <= #root\n#KEY: \"KEY\"/_/_/_",
    );
    let (root, user) = (name("/a/KEY/k/self/v=1"), name("/a/x/KEY/k/i/v=1"));
    let strange = name("/b/KEY/k/self/v=1");
    let of = |certificate, issuer, is_anchor| Candidate {
        certificate,
        issuer: Some(issuer),
        is_anchor,
        is_valid: true,
    };
    let candidates = [
        of(strange.as_ref(), strange.as_ref(), false),
        of(user.as_ref(), strange.as_ref(), false),
        of(user.as_ref(), root.as_ref(), false),
        of(root.as_ref(), root.as_ref(), true),
    ];
    let data = name("/a/x/1");
    assert_eq!(suggest(&schema, &Subject::data(data.as_ref()), &candidates), Ok(2));
    let note = name("/a/note/1");
    assert_eq!(suggest(&schema, &Subject::data(note.as_ref()), &candidates), Ok(3));
    let unfit = suggest(&schema, &Subject::data(data.as_ref()), &candidates[..2]).unwrap_err();
    assert!(matches!(unfit[0], Unfit::Packet(_)) && matches!(unfit[1], Unfit::Certificate(_)));
    let expired = Candidate { is_valid: false, ..candidates[2] };
    let unfit = suggest(&schema, &Subject::data(data.as_ref()), &[expired]).unwrap_err();
    assert_eq!(unfit, [Unfit::NotValid]);
}

#[test]
fn lint_tells_what_peers_read_differently() {
    let has = |text: &str, wanted: &str| {
        let findings = lint(text).unwrap();
        assert!(findings.iter().any(|f| f.text.contains(wanted)), "{text}: {findings:?}");
    };
    has("#V: _v & {_v: \"1\"}\n#d: \"d\"/#V/#V <= #k\n#k: \"k\"", "loses the second constraint");
    has("#a: \"...\" <= #k\n#k: \"k\"", "periods");
    has("#a: x & {x: $eq(\"1\")} <= #k\n#k: \"k\"", "$eq");
    has("#a: \"a\"", "no rule is a root of trust");
    has("#a: \"a\" <= #k | #l\n#k: \"k\"\n#l: \"l\"", "several roots");
    has("#a: \"a\" <= #k\n#k: \"k\"\n#lost: \"x\"", "#lost has no signer");
    assert_eq!(lint(TEXT).unwrap(), []);
}

#[test]
fn objects_are_judged_in_place_of_packets_where_the_schema_is_ndnds() {
    let schema = schema(TEXT).without_segments();
    let key = name("/a/x/KEY/k/i/v=1");
    let certificate = name("/a/x/KEY/k/i/v=1");
    let root = name("/a/KEY/k/self/v=1");
    assert!(schema.check(&Subject::data(certificate.as_ref()), root.as_ref()).is_allowed());
    for packet in ["/a/x/1", "/a/x/1/v=3/seg=0", "/a/x/1/32=metadata/v=3/seg=0"] {
        let packet = name(packet);
        assert!(schema.check(&Subject::data(packet.as_ref()), key.as_ref()).is_allowed());
    }
}
