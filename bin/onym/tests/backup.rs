//! What is backed up comes back, and nothing else.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use support::Place;

const PARTS: [&str; 6] = ["--config", "etc/onym.toml", "--keys", "keys", "--routing", "routing"];

fn with<'a>(words: &[&'a str], parts: &[&'a str]) -> Vec<&'a str> {
    words.iter().chain(parts).copied().collect()
}

/// A place with a configuration, drop-ins, a key and a routing folder.
fn filled() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("etc/onym.toml.d")).unwrap();
    fs::write(place.path("etc/onym.toml"), "[cs]\npackets_max = 5\n").unwrap();
    fs::write(place.path("etc/onym.toml.d/10.toml"), "shards = 1\n").unwrap();
    fs::create_dir_all(place.path("routing")).unwrap();
    fs::write(place.path("routing/router.key"), "secret").unwrap();
    fs::set_permissions(place.path("routing/router.key"), fs::Permissions::from_mode(0o600))
        .unwrap();
    let mut key = place.command(&["key", "new", "/alice"]);
    key.env("ONYM_KEYSTORE", place.path("keys"));
    assert!(key.output().unwrap().status.success());
    place
}

#[test]
fn what_was_backed_up_is_there_again() {
    let place = filled();
    let made = place.run(&with(&["backup", "b.tar"], &PARTS));
    assert_eq!(made.code, 0, "{}", made.err);
    assert_eq!(fs::metadata(place.path("b.tar")).unwrap().permissions().mode() & 0o777, 0o600);
    let again = place.run(&with(&["backup", "b.tar"], &PARTS));
    assert_eq!(again.code, 1, "a backup is not overwritten");
    // A tar archive, for those who have no onym at hand.
    let listed =
        Command::new("tar").args(["tf", "b.tar"]).current_dir(place.path("")).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.lines().any(|l| l == "config/onym.toml.d/10.toml"), "{listed}");

    // What is there is not overwritten, and one part that is there keeps all others back.
    let there = place.run(&with(&["restore", "b.tar"], &PARTS));
    assert_eq!(there.code, 4, "{}", there.err);
    fs::write(place.path("etc/onym.toml"), "[cs]\npackets_max = 7\n").unwrap();
    let done = place.run(&with(&["restore", "b.tar", "--replace"], &PARTS));
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(fs::read(place.path("etc/onym.toml")).unwrap(), b"[cs]\npackets_max = 5\n");
    let kept = fs::read(place.path("etc/onym.toml.before-restore")).unwrap();
    assert_eq!(kept, b"[cs]\npackets_max = 7\n");
    let mode = fs::metadata(place.path("routing/router.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // On another machine.
    let new = Place::new();
    let file = place.path("b.tar");
    let done = new.run(&with(&["restore", file.to_str().unwrap()], &PARTS));
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(fs::read(new.path("etc/onym.toml.d/10.toml")).unwrap(), b"shards = 1\n");
    let keys =
        new.command(&["key", "list"]).env("ONYM_KEYSTORE", new.path("keys")).output().unwrap();
    assert!(String::from_utf8(keys.stdout).unwrap().contains("/alice/KEY/"));
    let names =
        fs::read_dir(new.path("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|n| !n.contains("restoring")), "nothing half is left");
}

#[test]
fn a_damaged_or_cut_backup_changes_nothing() {
    let place = filled();
    assert_eq!(place.run(&with(&["backup", "b.tar"], &PARTS)).code, 0);
    let whole = fs::read(place.path("b.tar")).unwrap();
    let mut damaged = whole.clone();
    let at = damaged.windows(6).position(|w| w == b"secret").unwrap();
    damaged[at] = b'S';
    for (octets, says) in [(&damaged[..], "is damaged"), (&whole[..whole.len() / 2], "ends early")]
    {
        fs::write(place.path("bad.tar"), octets).unwrap();
        let new = Place::new();
        let file = place.path("bad.tar");
        let done = new.run(&with(&["restore", file.to_str().unwrap()], &PARTS));
        assert_eq!(done.code, 4, "{}", done.err);
        assert!(
            done.err.contains(says) && done.err.contains("nothing was changed"),
            "{}",
            done.err
        );
        assert!(!new.path("etc/onym.toml").exists() && !new.path("routing").exists());
    }
}

#[test]
fn archives_of_others_reach_nothing_outside() {
    let place = Place::new();
    fs::create_dir_all(place.path("in/config")).unwrap();
    fs::write(place.path("in/onym-backup.json"), r#"{"format":1,"version":"9","made_ms":0}"#)
        .unwrap();
    symlink("/etc/passwd", place.path("in/config/onym.toml")).unwrap();
    let tar = |words: &[&str]| {
        let done = Command::new("tar").args(words).current_dir(place.path("in")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    for (more, says) in [
        (&["config/onym.toml"][..], "no regular file"),
        (
            &["--transform=s|config.*|../../out|", "--dereference", "config/onym.toml"],
            "outside of its folder",
        ),
        (&["-P", "/etc/hostname"], "outside of its folder"),
        (&["config"], "no regular file"),
    ] {
        let words = [&["--format=ustar", "-cf", "../evil.tar", "onym-backup.json"], more].concat();
        tar(&words);
        let done = place.run(&with(&["restore", "evil.tar"], &PARTS));
        assert_eq!(done.code, 4, "{more:?}: {}{}", done.out, done.err);
        assert!(done.err.contains(says), "{more:?}: {}", done.err);
        assert!(!place.path("etc").exists() || !place.path("etc/onym.toml").exists());
    }
    fs::write(place.path("in/onym-backup.json"), r#"{"format":2,"version":"9.0.0","made_ms":0}"#)
        .unwrap();
    tar(&["--format=ustar", "-cf", "../later.tar", "onym-backup.json"]);
    let done = place.run(&with(&["restore", "later.tar"], &PARTS));
    assert_eq!(done.code, 4);
    assert!(done.err.contains("was made by onym 9.0.0"), "{}", done.err);
}

#[test]
fn a_folder_that_a_program_has_open_is_not_taken() {
    let place = Place::new();
    let mut manager = place.start(&["manager", "--listen", "127.0.0.1:0", "--state", "state"]);
    manager.wait_for("ready");
    let words = with(&["backup", "b.tar", "--state", "manager=state"], &PARTS);
    let busy = place.run(&words);
    assert_eq!(busy.code, 1, "{}", busy.out);
    assert!(
        busy.err.contains("is in use") && busy.err.contains("stop the program"),
        "{}",
        busy.err
    );
    assert!(!place.path("b.tar").exists());
    drop(manager);
    assert_eq!(place.run(&words).code, 0);
    let done = place.run(&with(&["restore", "b.tar", "--state", "manager=other"], &PARTS));
    assert_eq!(done.code, 0, "{}", done.err);
    let mut manager = place.start(&["manager", "--listen", "127.0.0.1:0", "--state", "other"]);
    manager.wait_for("ready");
}

/// Where others write beside the place, they know the name of what is on its way there.
#[test]
fn a_folder_or_a_link_of_somebody_else_gets_nothing_of_a_backup() {
    let place = filled();
    assert_eq!(place.run(&with(&["backup", "b.tar"], &PARTS)).code, 0);
    fs::create_dir(place.path("theirs")).unwrap();
    for lay in ["mkdir keys2.restoring-$$", "ln -s theirs keys2.restoring-$$"] {
        // The shell becomes the program: the number of the process is known before.
        let script = format!("{lay}; exec \"$0\" restore b.tar --only keys --keys keys2");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_onym")]).current_dir(place.path(""));
        let done = shell.output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{lay}: {said}");
        assert!(said.contains("cannot be written"), "{lay}: {said}");
        assert!(!place.path("keys2").exists(), "{lay}");
        assert!(fs::read_dir(place.path("theirs")).unwrap().next().is_none(), "{lay}");
    }
}
