//! A folder on the network: served, listed, fetched.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use support::{Place, noise};

/// Law: what is in a folder is what is listed and fetched, whatever its size and depth; nothing
/// outside of it is reached, by a link, by `..` or by a name that is no file's.
#[test]
fn a_folder_is_listed_and_fetched_and_nothing_leads_out_of_it() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    fs::create_dir_all(place.path("shelf/deep/empty")).unwrap();
    fs::write(place.path("secret"), "not for you").unwrap();
    let sizes = [("none", 0), ("one", 1), ("whole", 6144), ("long", 100_000)];
    for (name, size) in sizes {
        fs::write(place.path("shelf").join(name), noise(size, 7)).unwrap();
    }
    fs::write(place.path("shelf/deep/two"), noise(7000, 8)).unwrap();
    symlink(place.path("secret"), place.path("shelf/link")).unwrap();
    symlink(place.dir(), place.path("shelf/out")).unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let listed = place.run(&["ls", "/alice/shelf"]);
    assert_eq!(
        (listed.code, &*listed.out),
        (0, "deep/\nlong\nnone\none\nwhole\n"),
        "{}",
        listed.err
    );
    let deep = place.json(&["ls", "/alice/shelf/deep"]);
    let expected = serde_json::json!([
        {"name": "empty", "folder": true},
        {"name": "two", "folder": false},
    ]);
    assert_eq!(deep, expected);
    assert_eq!(place.json(&["ls", "/alice/shelf/deep/empty"]), serde_json::json!([]));
    for (name, size) in sizes {
        let got = place.run(&["get", &format!("/alice/shelf/{name}"), "-o", "out"]);
        assert_eq!(got.code, 0, "{name}: {}", got.err);
        assert!(fs::read(place.path("out")).unwrap() == noise(size, 7), "{name}");
    }
    let got = place.run(&["get", "/alice/shelf/deep/two", "-o", "out"]);
    assert_eq!(got.code, 0, "{}", got.err);
    for name in ["link", "out/secret", "...../secret", "deep%2Ftwo", "missing", "one/more"] {
        let name = format!("/alice/shelf/{name}");
        let got = place.run(&["get", &name, "-o", "got"]);
        assert_ne!(got.code, 0, "{name}");
        assert!(!place.path("got").exists(), "{name}");
        assert_ne!(place.run(&["ls", &name]).code, 0, "{name}");
    }
    assert_eq!(place.run(&["ls", "/alice/shelf/one"]).code, 5, "a file is no folder");
}

/// Law: a version is one state of a file: after a change the old one is refused, the new one whole.
#[test]
fn a_file_that_changed_is_another_version() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    fs::create_dir_all(place.path("shelf")).unwrap();
    fs::write(place.path("shelf/page"), noise(50_000, 1)).unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let get = ["get", "/alice/shelf/page", "-o", "out"];
    let old = place.json(&get)["name"].as_str().unwrap().to_owned();
    // A later time than that of the first writing, on any clock of a file system.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(10);
    fs::write(place.path("shelf/page"), noise(40_000, 2)).unwrap();
    let file = fs::File::options().write(true).open(place.path("shelf/page")).unwrap();
    file.set_modified(later).unwrap();
    let refused = place.run(&["get", &old, "-o", "got"]);
    assert_ne!(refused.code, 0, "{}", refused.err);
    let new = place.json(&get)["name"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    assert!(fs::read(place.path("out")).unwrap() == noise(40_000, 2));
}
