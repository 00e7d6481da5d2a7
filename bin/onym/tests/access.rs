//! Who may read: groups between commands, over a real node.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Command;
use support::{Ended, Place, noise};

/// `onym` with the key store of somebody.
fn of(place: &Place, who: &str, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("ONYM_KEYSTORE", place.path(who));
    command
}

fn run(place: &Place, who: &str, args: &[&str]) -> Ended {
    Ended::of(of(place, who, args).output().unwrap())
}

/// A command that ends well; what it said.
fn done(place: &Place, who: &str, args: &[&str]) -> String {
    let ended = run(place, who, args);
    assert_eq!(ended.code, 0, "{who}: {args:?}: {}", ended.err);
    ended.out
}

const GROUP: &str = "/film/NAC/friends";

/// An owner with a group, and readers with cards.
fn world(readers: &[&str]) -> Place {
    let place = Place::new();
    done(&place, "film", &["key", "new", "/film"]);
    done(&place, "film", &["cert", "export", "/film", "-o", "film.ndncert"]);
    for reader in readers {
        let (identity, card) = (format!("/{reader}"), format!("{reader}.card"));
        done(&place, reader, &["key", "new", &identity]);
        done(&place, reader, &["access", "key", &identity, "-o", &card]);
        done(&place, reader, &["cert", "export", &identity, "-o", &format!("{reader}.ndncert")]);
    }
    place
}

fn grant(place: &Place, reader: &str) {
    let (card, by) = (format!("{reader}.card"), format!("{reader}.ndncert"));
    done(place, "film", &["access", "grant", GROUP, &card, "--by", &by]);
}

/// `onym get` by somebody who trusts the film's owner.
fn get(place: &Place, who: &str, name: &str, more: &[&str]) -> Ended {
    let args = ["get", name, "-o", "got", "--anchor", "film.ndncert", "--quiet"];
    run(place, who, &[&args[..], more].concat())
}

#[test]
fn who_was_let_in_reads_and_who_was_not_or_left_does_not() {
    let place = world(&["alice", "bob", "carol"]);
    let _daemon = place.daemon(&[]);
    grant(&place, "alice");
    grant(&place, "bob");
    let content = noise(50_000, 7);
    fs::write(place.path("one"), &content).unwrap();
    let mut serve = support::Running::start(&mut of(&place, "film", &["access", "serve"]));
    serve.wait_for("ready: ");
    let put = ["put", "/film/one", "one", "--key", "/film", "--for", GROUP];
    let mut put = support::Running::start(&mut of(&place, "film", &put));
    put.wait_for("ready: ");

    for reader in ["alice", "bob"] {
        let ended = get(&place, reader, "/film/one", &["--for", GROUP]);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert_eq!(fs::read(place.path("got")).unwrap(), content, "{reader}");
        fs::remove_file(place.path("got")).unwrap();
    }
    // Nothing of the content is on the wire.
    let raw = get(&place, "carol", "/film/one", &["--encrypted"]);
    assert_eq!(raw.code, 0, "{}", raw.err);
    let raw = fs::read(place.path("got")).unwrap();
    assert!(raw.len() > content.len() && !raw.windows(16).any(|w| w == &content[..16]));
    fs::remove_file(place.path("got")).unwrap();
    let stranger = get(&place, "carol", "/film/one", &[]);
    assert_eq!(stranger.code, 4, "{}", stranger.err);
    assert!(stranger.err.contains("no key of this reader is a member's"), "{}", stranger.err);
    assert!(!place.path("got").exists());
    // Nothing is decrypted that nobody checked.
    let unchecked = run(&place, "alice", &["get", "/film/one", "-o", "got", "--quiet"]);
    assert_eq!(unchecked.code, 4, "{}", unchecked.err);
    assert!(unchecked.err.contains("nobody checked who signed it"), "{}", unchecked.err);
    let other = get(&place, "alice", "/film/one", &["--for", "/film/NAC/others"]);
    assert_eq!(other.code, 4, "{}", other.err);
    assert!(other.err.contains("another group than"), "{}", other.err);

    // Bob leaves: what is published from now on is not for him.
    let told = done(&place, "film", &["access", "revoke", GROUP, "/bob"]);
    assert!(told.contains("reads nothing new"), "{told}");
    let again = run(&place, "film", &["access", "revoke", GROUP, "/bob"]);
    assert_eq!(again.code, 5, "{}", again.err);
    let two = ["put", "/film/two", "one", "--key", "/film", "--for", GROUP];
    let mut two = support::Running::start(&mut of(&place, "film", &two));
    two.wait_for("ready: ");
    let left = get(&place, "bob", "/film/two", &[]);
    assert_eq!(left.code, 4, "{}", left.err);
    let stayed = get(&place, "alice", "/film/two", &[]);
    assert_eq!(stayed.code, 0, "{}", stayed.err);
    assert_eq!(fs::read(place.path("got")).unwrap(), content);

    let list = run(&place, "film", &["access", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!(list["groups"][0]["group"], GROUP);
    assert_eq!(list["groups"][0]["members"].as_array().unwrap().len(), 1);
    assert!(done(&place, "alice", &["access", "list"]).contains("reads as /alice/KEY/"));
}

const PUT: [&str; 7] = ["put", "/dave/one", "one", "--key", "/dave", "--for", GROUP];

/// A world with a producer who is not the group's owner.
fn with_producer(readers: &[&str]) -> Place {
    let place = world(readers);
    fs::write(place.path("one"), b"for friends").unwrap();
    done(&place, "dave", &["key", "new", "/dave"]);
    done(&place, "dave", &["cert", "export", "/dave", "-o", "dave.ndncert"]);
    place
}

#[test]
fn a_producer_encrypts_for_a_group_whose_owner_he_trusts() {
    let place = with_producer(&["alice"]);
    let _daemon = place.daemon(&[]);
    grant(&place, "alice");
    let alone = run(&place, "dave", &PUT);
    assert_eq!(alone.code, 2, "{}", alone.err);
    assert!(alone.err.contains("nobody says whom to trust"), "{}", alone.err);
    let unsigned = run(&place, "dave", &["put", "/dave/one", "one", "--for", GROUP]);
    assert_eq!(unsigned.code, 2, "{}", unsigned.err);
    let mut serve = support::Running::start(&mut of(&place, "film", &["access", "serve"]));
    serve.wait_for("ready: ");
    let by_anchor = [&PUT[..], &["--anchor", "film.ndncert"]].concat();
    let mut put = support::Running::start(&mut of(&place, "dave", &by_anchor));
    put.wait_for("ready: ");
    let anchors = ["--anchor", "dave.ndncert", "--anchor", "film.ndncert"];
    let args = [&["get", "/dave/one", "--quiet"][..], &anchors].concat();
    assert_eq!(done(&place, "alice", &args), "for friends");
}

#[test]
fn a_producer_does_not_take_the_key_of_a_false_owner() {
    // Negative 40: a group's key that somebody else signed.
    let place = with_producer(&["mallory"]);
    let _daemon = place.daemon(&[]);
    done(&place, "mallory", &["access", "grant", GROUP, "mallory.card", "--key", "/mallory"]);
    let serve = ["access", "serve", GROUP];
    let mut false_owner = support::Running::start(&mut of(&place, "mallory", &serve));
    false_owner.wait_for("ready: ");
    let deceived = run(&place, "dave", &[&PUT[..], &["--anchor", "film.ndncert"]].concat());
    assert_ne!(deceived.code, 0);
    assert!(deceived.err.contains("/mallory"), "{}", deceived.err);
}

#[test]
fn cards_that_do_not_count_are_refused_and_rsa_groups_take_certificates() {
    let place = world(&["alice", "bob"]);
    // Whose certificate is not known.
    let unknown = run(&place, "film", &["access", "grant", GROUP, "alice.card"]);
    assert_eq!(unknown.code, 4, "{}", unknown.err);
    assert!(unknown.err.contains("whose certificate is not here"), "{}", unknown.err);
    let by_other = ["access", "grant", GROUP, "alice.card", "--by", "bob.ndncert"];
    let by_other = run(&place, "film", &by_other);
    assert_eq!(by_other.code, 4, "{}", by_other.err);
    assert!(by_other.err.contains("/bob does not sign cards of /alice"), "{}", by_other.err);
    let no_group = ["access", "grant", "/film/friends", "alice.card", "--by", "alice.ndncert"];
    let no_group = run(&place, "film", &no_group);
    assert_eq!(no_group.code, 2, "{}", no_group.err);
    // A certificate of another kind of key reads in neither.
    let ecdsa = run(&place, "film", &["access", "grant", GROUP, "alice.ndncert", "--nac"]);
    assert_eq!(ecdsa.code, 4, "{}", ecdsa.err);

    let _daemon = place.daemon(&[]);
    done(&place, "rita", &["key", "new", "/rita", "--type", "rsa"]);
    done(&place, "rita", &["cert", "export", "/rita", "-o", "rita.ndncert"]);
    let old = "/film/NAC/old";
    done(&place, "film", &["access", "grant", old, "rita.ndncert", "--nac"]);
    let mixed = ["access", "grant", old, "alice.card", "--by", "alice.ndncert"];
    assert_eq!(run(&place, "film", &mixed).code, 4);
    let mut serve = support::Running::start(&mut of(&place, "film", &["access", "serve", old]));
    serve.wait_for("ready: ");
    fs::write(place.path("one"), b"in the old form").unwrap();
    let put = ["put", "/film/one", "one", "--key", "/film", "--for", old];
    let mut put = support::Running::start(&mut of(&place, "film", &put));
    put.wait_for("ready: ");
    let ended = get(&place, "rita", "/film/one", &["--for", old]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(fs::read(place.path("got")).unwrap(), b"in the old form");
}

#[test]
fn secrets_of_groups_and_readers_are_their_owners_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = world(&["alice"]);
    grant(&place, "alice");
    for (who, extension) in [("film", "group"), ("alice", "reading")] {
        let files = fs::read_dir(place.path(who)).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> =
            files.filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
        assert_eq!(files.len(), 1, "{extension}");
        assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
