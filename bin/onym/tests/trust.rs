//! `onym trust`, and what is published and fetched by a schema.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use support::{Place, Running};

/// Objects under `/a/USER` are signed by the user's key, which `/a` vouches for.
const SCHEMA: &str = "\
#root: \"a\"/#KEY
#user: \"a\"/u/#KEY <= #root
#data: \"a\"/u/_ <= #user
#KEY: \"KEY\"/_/_/_
";

/// The model of [`SCHEMA`] as python-ndn writes it.
const MODEL: &str = include_str!("../../../spec/vectors/trust/lvs-cases.json");

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("site.lvs"), SCHEMA).unwrap();
    place
}

#[test]
fn a_schema_compiles_to_the_model_that_others_load() {
    let place = place();
    let report = place.json(&["trust", "compile", "site.lvs", "-o", "site.tlv"]);
    assert_eq!(report["nodes"], 16);
    assert_eq!(report["roots"], serde_json::json!(["#root"]));
    let hex: String =
        fs::read(place.path("site.tlv")).unwrap().iter().map(|o| format!("{o:02x}")).collect();
    assert!(MODEL.contains(&format!("\"{hex}\"")), "{hex}");
    // The model is a schema like its text.
    let told = place.run(&["trust", "explain", "--schema", "site.tlv", "/a/x/1"]);
    assert_eq!(
        told.out,
        "follows #data (/a/<u>/<_>)\n  signed by #user (/a/<u>/KEY/<_>/<_>/<_>)\n"
    );
    fs::write(place.path("bad.lvs"), "#a: \"a\" <= #b\n").unwrap();
    let refused = place.run(&["trust", "compile", "bad.lvs"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("line 1: #a is signed by #b, which is not defined"),
        "{}",
        refused.err
    );
}

#[test]
fn a_check_says_for_each_key_the_first_rule_that_fails() {
    let place = place();
    let check = |keys: &[&str]| {
        place.run(&[&["trust", "check", "--schema", "site.lvs", "/a/x/1"], keys].concat())
    };
    let (good, bad) = ("/a/x/KEY/k/i/v=1", "/a/y/KEY/k/i/v=1");
    assert_eq!(check(&[good]).out, format!("yes  {good}  by #data\n"));
    let both = check(&[good, bad]);
    assert_eq!(both.code, 0);
    assert!(both.out.contains("component 2, <u>, is y but must be x"), "{}", both.out);
    let none = check(&[bad, "/a/KEY/k/self/v=1"]);
    assert_eq!(none.code, 4, "{}", none.err);
    assert!(none.out.contains("the key follows #root"), "{}", none.out);
    let empty = check(&[]);
    assert_eq!(empty.code, 5, "{}", empty.err);
    assert_eq!(place.run(&["key", "new", "/a/x"]).code, 0);
    let own = check(&[]);
    assert_eq!(own.code, 0, "the keys of the store: {}", own.err);
}

#[test]
fn a_configuration_of_ndn_cxx_is_a_schema_too() {
    let place = place();
    let conf = "rib {\n localhop_security {\n rule {\n id all\n for interest\n filter {\n type name\n \
                regex ^<localhop><nfd><rib><register><>$\n }\n checker {\n type hierarchical\n \
                sig-type ecdsa-sha256\n }\n }\n trust-anchor {\n type any\n }\n }\n}\n";
    fs::write(place.path("nfd.conf"), conf).unwrap();
    let section = "rib.localhop_security";
    let base = ["trust", "check", "--schema", "nfd.conf", "--section", section, "--interest"];
    let told = place.run(&[&base[..], &["/localhop/nfd/rib/register/x", "/r/KEY/k"]].concat());
    assert_eq!(told.code, 4);
    assert!(told.out.contains("is not a prefix of"), "{}", told.out);
    let linted = place.run(&["trust", "lint", "nfd.conf", "--section", section]);
    assert!(linted.code == 1 && linted.out.contains("disables all rules"), "{}", linted.out);
    assert_eq!(place.run(&["trust", "lint", "site.lvs"]).out, "nothing to tell\n");
    let missing = place.run(&["trust", "lint", "nfd.conf", "--section", "rib.other"]);
    assert!(missing.err.contains("there is no section"), "{}", missing.err);
}

#[test]
fn what_is_published_and_fetched_follows_the_schema() {
    let place = place();
    let _daemon = place.daemon(&[]);
    for identity in ["/a", "/a/x", "/mallory"] {
        assert_eq!(place.run(&["key", "new", identity]).code, 0);
    }
    let export = |name: &str, file: &str| {
        assert_eq!(place.run(&["cert", "export", name, "-o", file]).code, 0);
    };
    export("/a", "root.ndncert");
    export("/a/x", "x.req");
    export("/mallory", "mallory.ndncert");
    let issue = ["cert", "issue", "x.req", "--signer", "/a", "-o", "x.ndncert"];
    assert_eq!(place.run(&issue).code, 0);
    assert_eq!(place.run(&["cert", "install", "x.ndncert"]).code, 0);
    fs::write(place.path("in"), vec![7; 30_000]).unwrap();
    let schema = ["--trust", "site.lvs", "--objects", "--anchor", "root.ndncert"];
    let put = |args: &[&str]| place.put(args);
    let _film = put(&[&["/a/x/film", "in"], &schema[..]].concat());
    let _theirs = put(&["/a/y/film", "in", "--key", "/a/x"]);
    let _plain = put(&["/a/x/plain", "in"]);
    let mut serve = Running::start(&mut place.command(&["cert", "serve"]));
    serve.wait_for("ready: ");
    let get = |name: &str, how: &[&str]| place.run(&[&["get", name, "-o", "out"], how].concat());

    let done = get("/a/x/film", &schema);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(fs::read(place.path("out")).unwrap() == vec![7; 30_000]);
    fs::remove_file(place.path("out")).unwrap();
    for (name, why) in [
        ("/a/y/film", "component 2, <u>, is x but must be y"),
        ("/a/x/plain", "signature type 0 names no key"),
    ] {
        let refused = get(name, &schema);
        assert!(refused.code == 1 && refused.err.contains(why), "{name}: {}", refused.err);
        assert!(!place.path("out").exists(), "nothing unverified is left behind");
    }
    // A key that is listed is believed no longer, a list that cannot be read is told.
    fs::write(place.path("revoked"), "/a/x/KEY\n").unwrap();
    let list = [&schema[..], &["--revoked", "revoked"]].concat();
    let unread = get("/a/x/film", &list);
    assert!(unread.err.contains("line 1") && unread.code == 1, "{}", unread.err);
    let keys = place.json(&["cert", "list"]);
    let of_x = keys.as_array().unwrap().iter().filter_map(|row| row["name"].as_str());
    let of_x = of_x.filter(|name| name.starts_with("/a/x/KEY/")).collect::<Vec<_>>().join("\n");
    fs::write(place.path("revoked"), of_x).unwrap();
    let stolen = get("/a/x/film", &list);
    assert!(stolen.code == 1 && stolen.err.contains("is revoked"), "{}", stolen.err);
    let wrong = get("/a/x/film", &["--trust", "site.lvs", "--anchor", "mallory.ndncert"]);
    assert!(wrong.err.contains("roots of trust: #root"), "{}", wrong.err);
    assert_eq!(get("/a/x/film", &["--trust", "site.lvs"]).code, 2, "no anchor");
    // The schema lets no key of the store sign there, and says why of each.
    let refused = place.run(&[&["put", "/b/film", "in"], &schema[..]].concat());
    assert_eq!(refused.code, 4);
    assert!(refused.err.contains("no rule is about /b/film"), "{}", refused.err);
}

#[test]
fn a_certificate_that_was_revoked_is_believed_no_longer_by_who_looks_records_up() {
    let place = place();
    let _daemon = place.daemon(&[]);
    let done = |args: &[&str]| {
        let ended = place.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
        ended.out
    };
    done(&["key", "new", "/a"]);
    done(&["cert", "export", "/a", "-o", "root.ndncert"]);
    fs::write(place.path("in"), vec![7; 100]).unwrap();
    let mut puts = Vec::new();
    for user in ["x", "y"] {
        let (identity, request, issued) =
            (format!("/a/{user}"), format!("{user}.req"), format!("{user}.ndncert"));
        done(&["key", "new", &identity]);
        done(&["cert", "export", &identity, "-o", &request]);
        done(&["cert", "issue", &request, "--signer", "/a", "-o", &issued]);
        done(&["cert", "install", &issued]);
        puts.push(place.put(&[&format!("{identity}/film"), "in", "--key", &identity]));
    }
    let serve = |more: &[&str], ready: &str| {
        let mut serve = Running::start(&mut place.command(&[&["cert", "serve"], more].concat()));
        serve.wait_for(ready);
        serve
    };
    let served = serve(&[], "ready: ");
    let base = ["--trust", "site.lvs", "--objects", "--anchor", "root.ndncert"];
    let get = |name: &str, how: &[&str]| {
        place.run(&[&["get", name, "-o", "out"], &base[..], how].concat())
    };
    let (x, y) = (["--records", "/a/x"], ["--records", "/a", "--records-needed"]);
    let before = get("/a/x/film", &x);
    assert_eq!(before.code, 0, "there is no record: {}", before.err);
    let silent = get("/a/y/film", &y);
    assert!(silent.code == 1 && silent.err.contains("nobody says whether"), "{}", silent.err);

    // By the issuer: whoever looks records up learns of it, from the server that runs already.
    let words = ["cert", "revoke", "x.ndncert", "--reason", "key-compromise", "--list", "revoked"];
    assert!(done(&words).contains("record by its issuer  /a/x/REVOKE/"));
    let why = "is revoked by a record of its issuer: the key is in wrong hands";
    support::wait_until("the record is served", || {
        let refused = get("/a/x/film", &x);
        refused.code == 1 && refused.err.contains(why)
    });
    assert_eq!(get("/a/x/film", &[]).code, 0, "who asks for no records");
    let listed = get("/a/x/film", &["--revoked", "revoked"]);
    assert!(listed.code == 1 && listed.err.contains("is revoked"), "{}", listed.err);
    done(&words);
    assert_eq!(fs::read_to_string(place.path("revoked")).unwrap().lines().count(), 1, "once");
    drop(served);

    // With the issuer's word that there is none.
    let served = serve(&["--vouch", "/a"], "1 records under");
    let vouched = get("/a/y/film", &y);
    assert_eq!(vouched.code, 0, "{}", vouched.err);
    let revoked = get("/a/x/film", &x);
    assert!(revoked.err.contains(why), "{}", revoked.err);
    // By the key itself.
    let own = done(&["cert", "revoke", "y.ndncert", "--signer", "/a/y"]);
    assert!(own.contains("record by its owner") && own.contains("/self"), "{own}");
    support::wait_until("the record of the owner is served", || {
        let refused = get("/a/y/film", &y);
        refused.code == 1 && refused.err.contains("is revoked by a record of its owner")
    });
    drop(served);

    let anchor = place.run(&["cert", "revoke", "root.ndncert"]);
    assert!(anchor.code == 1 && anchor.err.contains("self-signed"), "{}", anchor.err);
    done(&["key", "new", "/mallory"]);
    let stranger = place.run(&["cert", "revoke", "x.ndncert", "--signer", "/mallory"]);
    assert!(stranger.code == 5 && stranger.err.contains("no key here can"), "{}", stranger.err);
}

#[test]
fn a_key_file_of_ndnd_is_imported_and_left_as_it_is() {
    let place = place();
    let recorded = include_str!("../../../spec/vectors/trust/basic.txt");
    fs::write(place.path("alice.key"), recorded).unwrap();
    let done = place.run(&["key", "import", "alice.key"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("imported /ca/alice/KEY/"), "{}", done.out);
    assert_eq!(fs::read_to_string(place.path("alice.key")).unwrap(), recorded);
    let list = place.run(&["cert", "list"]);
    assert!(list.out.contains("/CAX/v=1795444859508"), "{}", list.out);
}

/// Law: a certificate is found by its full name, and by the name of its key, with or without the
/// issuer, as ndnd, NDNts and ndn-cxx ask: then the newest that counts comes, and it is fresh.
#[test]
fn a_certificate_is_served_at_every_name_that_others_ask_by() {
    let place = place();
    let _daemon = place.daemon(&[]);
    assert_eq!(place.run(&["key", "new", "/a/x"]).code, 0);
    assert_eq!(place.run(&["cert", "self-sign", "/a/x"]).code, 0);
    let rows = place.json(&["cert", "status"]);
    let of = |row: &serde_json::Value| row["certificate"].as_str().unwrap().to_owned();
    let mut names: Vec<onym_wire::Name> =
        rows.as_array().unwrap().iter().map(|row| of(row).parse().unwrap()).collect();
    names.sort();
    let [old, new] = names.try_into().unwrap();
    let mut serve = Running::start(&mut place.command(&["cert", "serve"]));
    serve.wait_for("ready: ");
    let peek = |name: &str, more: &[&str]| {
        place.json(&[&["peek", name, "--fresh"], more].concat())["name"].clone()
    };
    for dropped in 1..=2 {
        let prefix = new.as_ref().drop_last(dropped).to_string();
        assert_eq!(peek(&prefix, &["--prefix"]), new.to_string(), "{prefix}");
    }
    // Last, because the node keeps both from here on.
    for name in [&old, &new] {
        assert_eq!(peek(&name.to_string(), &[]), name.to_string(), "by its full name");
    }
}
