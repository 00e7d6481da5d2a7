//! `onym key` and `onym cert` as a person types them: results, exit codes, files.

#![allow(clippy::unwrap_used)] // helpers of tests

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `onym ARGS` in `dir` with the key store `dir/STORE`.
fn onym(dir: &Path, store: &str, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onym"))
        .args(args.split(' '))
        .current_dir(dir)
        .env("ONYM_KEYSTORE", dir.join(store))
        .env("ONYM_PASSPHRASE", "a passphrase")
        .output()
        .unwrap()
}

/// The JSON that a command which ends well prints.
fn json(dir: &Path, store: &str, args: &str) -> Value {
    let output = onym(dir, store, &format!("{args} --json"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "onym {args}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn code(dir: &Path, args: &str) -> i32 {
    onym(dir, "store", args).status.code().unwrap()
}

#[test]
fn a_certificate_is_requested_issued_and_installed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    json(dir, "root", "key new /root --id 1");
    json(dir, "store", "key new /root/alice --id 1");
    json(dir, "store", "cert export /root/alice -o request.ndncert");
    let issued = json(dir, "root", "cert issue request.ndncert -o issued.ndncert --days 1");
    assert_eq!(issued["valid_now"], true);
    assert!(issued["issuer"].as_str().unwrap().starts_with("/root/KEY/1/self/"));
    json(dir, "store", "cert install issued.ndncert");
    let shown = json(dir, "store", "cert show /root/alice");
    assert_eq!(shown["name"], issued["name"], "a certificate by another is preferred");
    let text = std::fs::read_to_string(dir.join("issued.ndncert")).unwrap();
    assert!(text.lines().all(|line| line.len() <= 64) && !text.contains('-'));
}

#[test]
fn a_key_leaves_and_enters_encrypted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    json(dir, "store", "key new /alice --id 1");
    json(dir, "store", "key export -o alice.safebag");
    json(dir, "other", "key import alice.safebag");
    let keys = json(dir, "other", "key list");
    assert_eq!(keys[0]["name"], "/alice/KEY/1");
    assert_eq!(keys[0]["default"], true);
    assert_eq!(code(dir, "key export -o alice.safebag"), 1, "files are not overwritten");
}

#[test]
fn failures_have_the_exit_codes_of_the_registry() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(code(dir, "key list"), 0);
    assert_eq!(code(dir, "key default"), 5);
    assert_eq!(code(dir, "key delete /nobody"), 5);
    assert_eq!(code(dir, "key new not//a//name"), 2);
    assert_eq!(code(dir, "cert show missing.ndncert"), 5);
    assert_eq!(code(dir, "key new /alice --id 1"), 0);
    assert_eq!(code(dir, "key new /alice --id 1"), 1);
    std::fs::write(dir.join("junk"), "AAAA").unwrap();
    assert_eq!(code(dir, "cert install junk"), 1);
    assert_eq!(code(dir, "key delete /alice"), 0);
}
