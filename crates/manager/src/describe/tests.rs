use super::*;
use crate::presets::PRESETS;

const CHAIN: &str = r#"network = "t"
links = ["pd -> cs -> br -> nr", "pd => nr"]
[functions.pd]
kind = "PD"
listen = "tcp4://127.0.0.1:6363"
[functions.cs]
kind = "content-store"
config = { capacity = 1000, mode = "paper" }
[functions.br]
kind = "BR"
quota = 0.5
scalable = true
[functions.nr]
kind = "NR"
[policies.scaling]
rule = "paper"
period_ms = 5000
"#;

fn faults(text: &str, form: Form) -> Vec<Fault> {
    match read(text, form) {
        Err(DescribeError::Faults(faults)) => faults,
        Err(DescribeError::Syntax { line, message }) => {
            let mut fault = Fault::new("syntax", message, "");
            fault.line = Some(line);
            vec![fault]
        }
        Ok(_) => panic!("taken: {text}"),
    }
}

#[test]
fn the_same_network_is_read_from_toml_yaml_and_tosca_and_written_back() {
    let description = read(CHAIN, Form::Toml).unwrap().description;
    assert_eq!(description.graph.links.len(), 4);
    let yaml = to_yaml(&description);
    assert_eq!(read(&yaml, Form::Yaml).unwrap().description, description, "{yaml}");
    let toml = to_toml(&description);
    assert_eq!(read(&toml, Form::Toml).unwrap().description, description, "{toml}");
    let tosca = crate::tosca::export(&description);
    assert_eq!(read(&tosca, Form::Tosca).unwrap().description, description, "{tosca}");
}

#[test]
fn every_preset_is_a_good_network_in_every_form() {
    for (name, _, text) in PRESETS {
        let description =
            read(text, Form::Toml).unwrap_or_else(|e| panic!("{name}: {e}")).description;
        assert_eq!(description.network, name);
        for (text, form) in [
            (to_toml(&description), Form::Toml),
            (to_yaml(&description), Form::Yaml),
            (crate::tosca::export(&description), Form::Tosca),
        ] {
            assert_eq!(read(&text, form).unwrap().description, description, "{text}");
        }
    }
}

/// A description, and the line, a word of the object and a word of the advice that are expected.
const BAD: &[(&str, usize, &str, &str)] = &[
    ("links = [", 1, "syntax", ""),
    ("functions.a.kind = \"switch\"", 1, "function a", "content-store"),
    ("functions.a.kond = \"CS\"", 1, "function a", "kind"),
    (
        "functions.cs.kind = \"CS\"\n[functions.cs.config]\ncapasity = 1",
        3,
        "function cs",
        "capacity",
    ),
    (
        "functions.cs.kind = \"CS\"\n[functions.cs.config]\ncapacity = -1",
        3,
        "function cs",
        "whole number",
    ),
    (
        "functions.pd.kind = \"PD\"\nfunctions.pd.config.consumer_path = \"x\"",
        2,
        "function pd",
        "link",
    ),
    ("links = [\n  \"a -> b\",\n]\n[functions.a]\nkind = \"CS\"", 2, "link a -> b", "declare"),
    ("links = [\"a > b\"]", 1, "links", "->"),
    ("links = [\"a ->\"]", 1, "links", "name the function"),
    ("links = [\"a -> a\"]\nfunctions.a.kind = \"CS\"", 1, "link a -> a", "another end"),
    ("functions.CS1.kind = \"CS\"", 1, "function CS1", "a-z"),
    ("functions.a.kind = \"CS\"\nfunctions.a.quota = 0", 1, "function a", "cores"),
    ("functions.a.kind = \"CS\"\nfunctions.a.listen = \"6363\"", 1, "function a", "tcp4://"),
    (
        "functions.a.kind = \"CS\"\nfunctions.a.listen.producer = \"tcp4://127.0.0.1:1\"",
        1,
        "function a",
        "in",
    ),
    (
        "links = [\"a => b\"]\nfunctions.a.kind = \"CS\"\nfunctions.b.kind = \"CS\"",
        1,
        "link a => b",
        "name-router",
    ),
    ("[policies.scaling]\nup = 0.8\nrules = 1", 3, "policies.scaling", ""),
    ("[policies.scaling]\nbalance = \"turns\"", 2, "policies.scaling", "keys of policies"),
    ("[keys.\"/a/KEY/1\"]\nspki = \"AAAA\"", 1, "key /a/KEY/1", "ECDSA"),
    ("[trust]\nlightversec = \"#a: \"", 1, "trust", "lightversec"),
    ("[trust]\nsection = \"x\"", 1, "trust", "validator"),
    ("loops = \"perhaps\"", 1, "network", "guard"),
    // Cardinalities and orientation.
    (
        "links = [\"a -> c\", \"b -> c\"]\nfunctions.a.kind = \"CS\"\nfunctions.b.kind = \"CS\"\nfunctions.c.kind = \"CS\"",
        4,
        "function c",
        "backward-router",
    ),
    (
        "links = [\"a -> b\", \"a -> c\"]\nfunctions.a.kind = \"CS\"\nfunctions.b.kind = \"CS\"\nfunctions.c.kind = \"CS\"",
        2,
        "function a",
        "strategy-forwarder",
    ),
    (
        "links = [\"br => nr\"]\nfunctions.br.kind = \"BR\"\nfunctions.nr.kind = \"NR\"",
        2,
        "function br",
        "producer side",
    ),
    (
        "loops = \"deny\"\nlinks = [\"a -> b -> a\"]\nfunctions.a.kind = \"CS\"\nfunctions.b.kind = \"CS\"",
        2,
        "link b -> a",
        "backward-router",
    ),
    ("[functions.br]\nkind = \"BR\"\nscalable = true", 1, "function br", "scalable"),
];

#[test]
fn a_bad_description_is_refused_with_its_line_its_object_and_what_to_do() {
    for (text, line, object, next) in BAD {
        let faults = faults(text, Form::Toml);
        let found = faults
            .iter()
            .any(|f| f.line == Some(*line) && f.object.contains(object) && f.next.contains(next));
        assert!(found, "{text}\n{faults:#?}");
    }
}

#[test]
fn faults_of_yaml_have_their_lines_too() {
    let text = "network: t\nfunctions:\n  a:\n    kind: switch\n  cs:\n    kind: CS\n    config:\n      capacity: many\n";
    let lines: Vec<_> = faults(text, Form::Yaml).iter().map(|f| f.line).collect();
    assert_eq!(lines, [Some(4), Some(8)]);
    assert_eq!(faults("a: [", Form::Yaml)[0].object, "syntax");
    let deep = "[".repeat(40) + &"]".repeat(40);
    assert_eq!(faults(&deep, Form::Yaml)[0].object, "syntax");
}

#[test]
fn all_faults_are_told_at_once() {
    let text = "functions.a.kind = \"x\"\nfunctions.b.kind = \"y\"\nlinks = [\"a\"]";
    assert_eq!(faults(text, Form::Toml).len(), 3);
}
