//! The scripts as data: every one parses, and the index is true.

use onym_testkit::script::parse;
use onym_testkit::{files, index};
use std::path::Path;

fn all() -> Vec<onym_testkit::script::Script> {
    let shown = |errors: Vec<onym_testkit::script::ScriptError>| {
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    files::load_all(&files::conformance().join("pull"))
        .map_err(shown)
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_script_names_known_sections_and_a_law_of_its_own() {
    let text = std::fs::read_to_string(files::conformance().join("sections.txt")).unwrap();
    let sections = index::sections(&text);
    let mut laws = std::collections::HashMap::new();
    for script in all() {
        for number in &script.sections {
            assert!(
                sections.iter().any(|s| s.number == *number),
                "{}: no section {number}",
                script.name
            );
        }
        if let Some(other) = laws.insert(script.law.clone(), script.name.clone()) {
            panic!("{} and {other} show the same law", script.name);
        }
    }
}

#[test]
fn every_section_has_a_script() {
    let text = std::fs::read_to_string(files::conformance().join("sections.txt")).unwrap();
    let scripts = all();
    for section in index::sections(&text) {
        let any = scripts.iter().any(|s| s.sections.contains(&section.number));
        assert!(any, "no script for section {} {}", section.number, section.title);
    }
    assert!(scripts.len() >= 120, "{} scripts", scripts.len());
}

#[test]
fn the_index_of_scripts_is_fresh() {
    let folder = files::conformance();
    let sections = index::sections(&std::fs::read_to_string(folder.join("sections.txt")).unwrap());
    let want = index::index(&all(), &sections);
    let have = std::fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    assert!(
        want == have,
        "stale: cargo run -p onym-testkit -- --index > spec/conformance/README.md"
    );
}

#[test]
fn a_wrong_line_is_named_with_what_is_allowed() {
    let cases = [
        (
            "face a\na> interest x",
            "4: a name begins with '/', got \"x\"; allowed: an NDN URI such as /a/b/seg=1",
        ),
        ("face a\nb> interest /x", "4: unknown face \"b\"; allowed: a"),
        (
            "face a\na> interest /x colour=red",
            "4: unknown field \"colour\"; allowed: prefix fresh hint",
        ),
        (
            "face a\na< nack sometimes /x",
            "4: unknown Nack reason \"sometimes\"; allowed: none congestion",
        ),
        ("face a\na> raw [5 00", "4: '[' without ']'; allowed: hexadecimal octets"),
        (
            "face a\na< interest /x within=5",
            "4: within= in a script for real time; allowed: only with the tag virtual",
        ),
        (
            "face a\na> interest /x hop=*",
            "4: hop: a packet to send needs a value, not a pattern; allowed: a value",
        ),
        ("face a speed=fast", "3: unknown face option \"speed\"; allowed: scope link mtu"),
        ("jump a", "3: unknown statement \"jump\"; allowed: face region config"),
        ("face a\nwait 5\nface b", "5: face after the first step; allowed: setup lines come first"),
    ];
    for (body, want) in cases {
        let text = format!("law: x\nsection: 1.1\n{body}\n");
        let error = parse(Path::new("t.pkt"), &text).expect_err(body).to_string();
        assert!(error.starts_with(&format!("t.pkt:{want}")), "{error}");
    }
}

#[test]
fn a_repetition_is_written_once_for_each_number() {
    let script = parse(
        Path::new("t.pkt"),
        "law: x\nsection: 1.1\nface a\na> data /x/{3..5} content=c{3..5}\n",
    )
    .unwrap();
    let lines: Vec<&str> = script.steps.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(
        lines,
        ["a> data /x/3 content=c3", "a> data /x/4 content=c4", "a> data /x/5 content=c5"]
    );
}

#[test]
fn deviations_name_scripts_that_their_subject_is_asked() {
    let scripts = all();
    for entry in std::fs::read_dir(files::conformance().join("deviations")).unwrap() {
        let path = entry.unwrap().path();
        let list = onym_testkit::deviations::Deviations::read(&path).unwrap();
        // Foreign forwarders are asked some scripts, a chain of our services all.
        let ours = path.ends_with("chain.toml");
        for name in list.names() {
            let known =
                scripts.iter().any(|s| s.name == name && (ours || s.has_tag("any-forwarder")));
            assert!(known, "{}: no such script for it: {name}", path.display());
        }
    }
}
