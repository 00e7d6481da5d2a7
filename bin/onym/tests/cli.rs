//! What is typed and what comes back: help, usage errors, exit codes, places where a node is sought.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

/// Runs `onym` in surroundings where no node is named and none can be found below `home`.
fn onym(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onym"))
        .args(args)
        .env_remove("NDN_CLIENT_TRANSPORT")
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .output()
        .unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn the_version_names_the_commit_and_whether_the_tree_was_changed() {
    let home = tempfile::tempdir().unwrap();
    let said = text(&onym(home.path(), &["--version"]).stdout);
    let said = said.trim_end().strip_prefix(concat!("onym ", env!("CARGO_PKG_VERSION"))).unwrap();
    let git = |words: &[&str]| {
        let out = Command::new("git").args(words).output().ok()?;
        out.status.success().then(|| text(&out.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "HEAD"]) else {
        // Sources without a history have no commit to name.
        assert_eq!(said, "");
        return;
    };
    let commit = said.strip_prefix(" (").and_then(|said| said.strip_suffix(')')).unwrap();
    let commit = commit.strip_suffix("+changes").unwrap_or(commit);
    assert_eq!(commit.len(), 12, "{said}");
    // A commit after the build that changes no source of the program leaves it as it is.
    assert!(
        head.starts_with(commit) || git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_some(),
        "{said} is not in the history of {head}"
    );
}

#[test]
fn help_shows_the_groups_and_every_command_of_them() {
    let home = tempfile::tempdir().unwrap();
    let output = onym(home.path(), &["--help"]);
    assert_eq!(code(&output), 0);
    let help = text(&output.stdout);
    let mut at = 0;
    for word in ["Node:", "status", "face", "route", "Content:", "put", "get", "Trust:", "key"] {
        at += help[at..].find(word).unwrap_or_else(|| panic!("{word} is missing after {at}"));
    }
    assert!(help.contains("Exit codes: 0 done"));
    assert!(!help.contains("completions"), "hidden commands stay hidden");
}

#[test]
fn every_command_explains_itself_with_an_example() {
    let home = tempfile::tempdir().unwrap();
    let mut count = 0;
    for command in &commands(home.path()) {
        let output = onym(home.path(), &[command, "--help"]);
        assert_eq!(code(&output), 0, "{command}");
        assert!(text(&output.stdout).contains(&format!("onym {command}")), "{command}");
        count += 1;
    }
    assert!(count >= 12, "{count} commands");
}

#[test]
fn wrong_command_lines_end_with_2_and_say_what_is_wrong() {
    let home = tempfile::tempdir().unwrap();
    for (args, says) in [
        (&["nonsense"][..], "unrecognized subcommand"),
        (&["get"], "required"),
        (&["get", "/a//b"], "invalid value"),
        (&["route", "add", "/a"], "--via"),
        (&["route", "add", "/a", "--via", "1", "--origin", "x"], "autoreg"),
        (&["cs", "config"], "nothing to configure"),
        (&["face", "create", "192.0.2.1"], "is not a face URI"),
        (&["--node", "nonsense", "status"], "is not a node URI"),
        (&["get", "/a", "--json"], "-o FILE"),
        (&["ping-server", "/a", "--size", "9000"], "8000"),
    ] {
        let output = onym(home.path(), args);
        let error = text(&output.stderr);
        assert_eq!(code(&output), if args[0] == "face" { 3 } else { 2 }, "{args:?}: {error}");
        if args[0] != "face" {
            assert!(error.contains(says), "{args:?}: {error}");
        }
    }
}

#[test]
fn without_a_node_the_places_that_were_tried_are_told_and_the_code_is_3() {
    let home = tempfile::tempdir().unwrap();
    let socket = format!("unix://{}/none.sock", home.path().display());
    let output = onym(home.path(), &["--node", &socket, "status"]);
    let error = text(&output.stderr);
    assert_eq!(code(&output), 3, "{error}");
    assert!(error.contains(&socket) && error.contains("next: start one"), "{error}");
    let in_file = home.path().join(".ndn/client.conf");
    std::fs::create_dir(home.path().join(".ndn")).unwrap();
    std::fs::write(in_file, format!("transport={socket}\n")).unwrap();
    let output = onym(home.path(), &["face", "list"]);
    assert_eq!(code(&output), 3);
    assert!(text(&output.stderr).contains(&socket), "client.conf is looked at");
}

/// The commands of `onym --help`.
fn commands(home: &Path) -> Vec<String> {
    let help = text(&onym(home, &["--help"]).stdout);
    let rows = help.lines().filter_map(|l| l.strip_prefix("  "));
    let rows = rows.filter(|l| l.starts_with(|c: char| c.is_ascii_lowercase()));
    rows.map(|l| l.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn completions_and_manual_pages_have_every_command() {
    let home = tempfile::tempdir().unwrap();
    let commands = commands(home.path());
    assert!(commands.len() >= 14, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&onym(home.path(), &["completions", shell]).stdout);
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    let directory = home.path().join("man");
    let output = onym(home.path(), &["man", directory.to_str().unwrap()]);
    assert_eq!(code(&output), 0);
    let pages = commands.iter().map(|c| format!("onym-{c}.1"));
    for page in pages.chain(["onym.1".into(), "onym-face-create.1".into()]) {
        let text = std::fs::read_to_string(directory.join(&page)).unwrap();
        assert!(text.contains("onym"), "{page}: {text}");
    }
}

#[test]
fn the_reference_of_the_command_line_is_current() {
    let home = tempfile::tempdir().unwrap();
    let output = onym(home.path(), &["man", "--markdown"]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        text(&output.stdout) == there,
        "docs/cli.md is stale; run: cargo run -p onym -- man --markdown > docs/cli.md"
    );
}

#[test]
fn the_doctor_fails_when_the_node_that_was_named_does_not_answer() {
    let home = tempfile::tempdir().unwrap();
    let socket = format!("unix://{}/none.sock", home.path().display());
    let output = onym(home.path(), &["--node", &socket, "doctor", "--json"]);
    assert_eq!(code(&output), 1);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    for check in checks {
        let fields: Vec<_> = check.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["check", "found", "mend", "result"]);
        assert_eq!(check["mend"].is_null(), check["result"] == "ok", "{check}");
    }
    let node = checks.iter().find(|c| c["check"] == "node").unwrap();
    assert_eq!(node["result"], "failed");
    let people = onym(home.path(), &["--node", &socket, "doctor"]);
    assert!(text(&people.stdout).contains("FAILED") && text(&people.stdout).contains("mend: "));
}
