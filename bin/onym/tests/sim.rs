//! `onym sim` as it is typed.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

const VIDEO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/sim/examples/video.toml");

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onym")).arg("sim").args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = sim(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_same_seed_prints_the_same_octets() {
    for arguments in [&[VIDEO][..], &["--topology", "random:12", "--loss", "1%"]] {
        for form in [&[][..], &["--json"]] {
            let with = |seed: &str| sim(&[arguments, form, &["--seed", seed]].concat());
            let (first, second, other) = (with("5"), with("5"), with("6"));
            assert!(first.status.success(), "{first:?}");
            assert_eq!(first.stdout, second.stdout, "{arguments:?}");
            assert_ne!(first.stdout, other.stdout, "{arguments:?}");
        }
    }
}

#[test]
fn the_table_and_json_tell_what_nodes_links_and_applications_did() {
    let run = json(&[VIDEO]);
    assert_eq!((&run["seed"], &run["done"]), (&7.into(), &true.into()));
    let nodes = run["nodes"].as_array().unwrap();
    let edge = nodes.iter().find(|node| node["name"] == "edge").unwrap();
    assert_eq!(edge["cs_hits"], 500);
    assert_eq!(edge["verdicts"]["interest"]["cs_hit"], 500);
    for node in nodes {
        let of = |kind: &str| -> u64 {
            let words = node["verdicts"][kind].as_object();
            words.into_iter().flatten().map(|(_, count)| count.as_u64().unwrap()).sum()
        };
        assert_eq!(of("interest"), node["in_interests"].as_u64().unwrap());
        assert_eq!(of("data"), node["in_data"].as_u64().unwrap());
    }
    assert!(run["links"].as_array().unwrap().iter().any(|link| link["down"].as_u64() > Some(0)));
    assert_eq!(run["apps"][1]["data"], 500);
    let text = String::from_utf8(sim(&[VIDEO]).stdout).unwrap();
    for word in ["NODE", "edge > core", "consumer at bob", "every consumer is done", "(49%)"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_limit_ends_the_run_and_is_told() {
    let run = json(&["--topology", "line:3", "--duration", "12ms"]);
    assert_eq!((&run["ended"], &run["done"]), (&"time".into(), &false.into()));
    let run = json(&["--topology", "line:3", "--events", "10"]);
    assert_eq!((&run["ended"], &run["events"]), (&"events".into(), &10.into()));
}

#[test]
fn wrong_input_ends_with_its_code_and_says_what_is_allowed() {
    for (arguments, code, word) in [
        (&["--topology", "cube:3"][..], 2, "grid:COLUMNSxROWS"),
        (&["--topology", "line:3", "--strategy", "guess"], 2, "guess"),
        (&["--topology", "line:3", "--delay", "5"], 2, "is not a time"),
        (&["/does/not/exist.toml"], 1, "cannot be read"),
        (&[], 2, "<FILE>"),
        (&[VIDEO, "--count", "3"], 2, "cannot be used with"),
    ] {
        let output = sim(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn lines_of_a_mini_ndn_file_are_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("topology.conf");
    let text =
        "[nodes]\nnode a\n[links]\na:b delay=10ms bw=10\nproducer b /x\nconsumer a /x count=5\n";
    std::fs::write(&path, text).unwrap();
    let run = json(&[path.to_str().unwrap()]);
    assert_eq!((&run["done"], &run["apps"][1]["data"]), (&true.into(), &5.into()));
}
