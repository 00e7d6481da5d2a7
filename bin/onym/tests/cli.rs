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
    let help = text(&onym(home.path(), &["--help"]).stdout);
    let commands = help
        .lines()
        .filter_map(|l| l.strip_prefix("  "))
        .filter(|l| l.starts_with(|c: char| c.is_ascii_lowercase()));
    let mut count = 0;
    for command in commands.map(|l| l.split_whitespace().next().unwrap()) {
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
        (&["face", "create", "192.0.2.1"], "no face URI"),
        (&["--node", "nonsense", "status"], "no node URI"),
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

#[test]
fn completions_and_manual_pages_come_from_the_tree() {
    let home = tempfile::tempdir().unwrap();
    let output = onym(home.path(), &["completions", "bash"]);
    assert!(text(&output.stdout).contains("ping-server"));
    let directory = home.path().join("man");
    let output = onym(home.path(), &["man", directory.to_str().unwrap()]);
    assert_eq!(code(&output), 0);
    for page in ["onym.1", "onym-get.1", "onym-face-create.1"] {
        let page = std::fs::read_to_string(directory.join(page)).unwrap();
        assert!(page.contains("onym"), "{page}");
    }
}
