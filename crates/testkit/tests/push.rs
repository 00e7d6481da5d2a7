//! Every push script against nodes in memory, and proof that a wrong one fails.

use onym_testkit::run::Outcome;
use onym_testkit::{files, push};
use std::path::Path;

fn all() -> Vec<push::PushScript> {
    push::load_all(&files::conformance().join("push")).unwrap_or_else(|e| panic!("{e:#?}"))
}

#[test]
fn nodes_in_memory_keep_every_law_of_push() {
    let scripts = all();
    let failures: Vec<String> = scripts
        .iter()
        .filter_map(|script| match push::run(script) {
            Outcome::Passed => None,
            Outcome::Failed(text) => Some(text),
            other => Some(format!("{}: {other:?}", script.name)),
        })
        .collect();
    let (failed, all) = (failures.len(), scripts.len());
    assert!(failures.is_empty(), "{failed} of {all}\n{}", failures.join("\n"));
}

#[test]
fn every_push_script_has_a_law_and_a_known_section() {
    let text = std::fs::read_to_string(files::conformance().join("push/sections.txt")).unwrap();
    let known: Vec<&str> = text
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    let mut laws = std::collections::HashMap::new();
    let scripts = all();
    assert!(scripts.len() >= 80, "{} scripts", scripts.len());
    for script in &scripts {
        for section in &script.sections {
            assert!(known.contains(&section.as_str()), "{}: no section {section}", script.name);
        }
        if let Some(other) = laws.insert(&script.law, &script.name) {
            panic!("{} and {other} show the same law", script.name);
        }
    }
    for section in known {
        let any = scripts.iter().any(|s| s.sections.iter().any(|n| n == section));
        assert!(any, "no script for {section}");
    }
}

fn outcome(body: &str) -> String {
    let text = format!("law: x\nsection: P-1\nnode n1 rv tm\napp a b @n1\n{body}\n");
    let script = push::parse(Path::new("t.pkt"), &text).unwrap_or_else(|e| panic!("{e}"));
    match push::run(&script) {
        Outcome::Failed(text) => text,
        other => panic!("{other:?} of\n{body}"),
    }
}

#[test]
fn a_wrong_expectation_fails_with_the_line_and_the_reason() {
    let start = "a! publish-scope 1 /\na! publish-item 2 /1\nb! subscribe-item 2 /1";
    for (body, want) in [
        (
            "a! publish-scope 1 / status=4",
            "t.pkt:5: a! publish-scope 1 / status=4\n    got status 0",
        ),
        (&format!("{start}\na< stop /1/2"), "got start /1/2"),
        (&format!("{start}\na< nothing"), "got start /1/2"),
        (start, "at the end a got start /0001/0002"),
        (&format!("{start}\na< start /1/2\na! data /1/2 text=x\nb< data /1/2 text=y"), "text=x"),
        (&format!("{start}\na< start /1/2\nb< data /1/2 text=y"), "nothing came"),
        (&format!("{start}\ngraph /1/2 publishers= subscribers=n1"), "publishers are"),
        (&format!("{start}\ngraph /1/2 absent"), "it is there"),
        ("count n1 push_delivered=7", "push_delivered is 0"),
        ("count n1 colour=7", "nothing is counted as n1.colour"),
        ("a! data /1/2 text=x", "NotPublisher"),
    ] {
        let text = outcome(body);
        assert!(
            text.contains(&want.replace("/1/2", "/0001/0002")) || text.contains(want),
            "{body}\n  wanted {want}\n  got {text}"
        );
    }
}

/// Ways in which links lose frames, of each script with links that lose a fifth at most.
const DRAWN: u64 = 30;

#[test]
fn laws_hold_whichever_frames_lossy_links_lose() {
    let is_lossy = |script: &&push::PushScript| {
        let mut losses = script.lines.iter().filter_map(|line| line.options.get("loss")).peekable();
        losses.peek().is_some() && losses.all(|percent| percent.parse().is_ok_and(|p: u8| p <= 20))
    };
    let mut failures = Vec::new();
    for script in all().iter().filter(is_lossy) {
        for seed in 1..=DRAWN {
            match push::run_drawn(script, seed) {
                Outcome::Passed => {}
                other => failures.push(format!("seed {seed}: {other:?}")),
            }
        }
    }
    assert!(failures.is_empty(), "{}\n{}", failures.len(), failures.join("\n"));
}
