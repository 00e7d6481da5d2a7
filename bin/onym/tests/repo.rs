//! A repository beside a running daemon as a person types it: filled by files, by commands of the
//! network and by bulk TCP; killed and started again.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use support::{Place, Running, noise, wait_until};

/// No cache: what comes, comes from the repository.
const NO_CACHE: &[&str] = &["cs.serve=false"];

fn repo(place: &Place, more: &[&str]) -> Running {
    let mut args = vec!["repo", "run", "--store", "data", "--name", "/repo"];
    args.extend(more);
    let mut repo = place.start(&args);
    repo.wait_for("ready: ");
    repo
}

fn fetches(place: &Place, name: &str, content: &[u8]) {
    let ended = place.run(&["get", name, "-o", "out"]);
    assert_eq!(ended.code, 0, "{name}: {}", ended.err);
    assert!(fs::read(place.path("out")).unwrap() == content, "{name}");
}

#[test]
fn files_outlive_who_added_them_and_are_found_by_every_way() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    fs::create_dir_all(place.path("shelf/deep")).unwrap();
    let (one, two) = (noise(100_000, 1), noise(1, 2));
    fs::write(place.path("shelf/one.bin"), &one).unwrap();
    fs::write(place.path("shelf/deep/two"), &two).unwrap();
    let add = ["repo", "add", "shelf", "--store", "data", "--as", "/lib/shelf"];
    let said = place.json(&add);
    assert_eq!((&said["new"], &said["had"]), (&14.into(), &0.into()));
    let mut run = repo(&place, &["--serve", "/other"]);
    fetches(&place, "/lib/shelf/one.bin", &one);
    fetches(&place, "/lib/shelf/deep/two", &two);
    // While it runs, the same commands go by its socket.
    let again = place.json(&add);
    assert_eq!((&again["new"], &again["had"]), (&0.into(), &14.into()));
    let said = place.json(&["repo", "list", "/lib/shelf", "--store", "data"]);
    assert_eq!(said, serde_json::json!(["/lib/shelf/deep", "/lib/shelf/one.bin"]));
    assert_eq!(place.run(&["repo", "verify", "--store", "data"]).code, 0);
    fs::write(place.path("three"), noise(20_000, 3)).unwrap();
    place.json(&["repo", "add", "three", "--store", "data", "--as", "/late/three"]);
    fetches(&place, "/late/three", &noise(20_000, 3));
    run.kill();
    let _run = repo(&place, &[]);
    fetches(&place, "/lib/shelf/one.bin", &one);
    fetches(&place, "/late/three", &noise(20_000, 3));
    let got = place.run(&["repo", "get", "/lib/shelf/one.bin", "--store", "data", "-o", "got"]);
    assert_eq!(got.code, 0, "{}", got.err);
    assert!(fs::read(place.path("got")).unwrap() == one);
    let removed = place.json(&["repo", "remove", "/lib/shelf", "--store", "data"]);
    assert_eq!(removed["packets"], 14);
    assert_eq!(place.run(&["get", "/lib/shelf/deep/two"]).code, 5);
    let freed = place.json(&["repo", "gc", "--store", "data"]);
    assert!(freed["error"].is_null());
    assert_eq!(place.json(&["repo", "stats", "--store", "data"])["packets"], 3);
}

#[test]
fn an_object_that_a_command_brought_outlives_its_producer_and_a_deleted_one_is_gone() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    let content = noise(300_000, 4);
    fs::write(place.path("in"), &content).unwrap();
    let put = place.put(&["/alice/film", "in", "--version", "7"]);
    let mut run = repo(&place, &["--allow-everybody"]);
    let insert =
        ["repo", "insert", "/repo", "/alice/film/v=7", "--start", "0", "--register", "/alice/film"];
    let said = place.json(&insert);
    assert_eq!((&said["status"], &said["inserted"]), (&200.into(), &38.into()));
    drop(put);
    run.kill();
    let _run = repo(&place, &["--allow-everybody"]);
    fetches(&place, "/alice/film", &content);
    let jobs = place.json(&["repo", "jobs", "--store", "data"]);
    assert_eq!(jobs[0]["status"], 200, "{jobs}");
    let delete = ["repo", "delete", "/repo", "/alice/film/v=7", "--start", "5", "--end", "9"];
    assert_eq!(place.json(&delete)["deleted"], 5);
    let all = ["repo", "delete", "/repo", "/alice/film/v=7", "--end", "9223372036854775808"];
    assert_eq!(place.json(&all)["deleted"], 33);
    assert_eq!(place.run(&["get", "/alice/film/v=7"]).code, 5);
}

#[test]
fn commands_need_a_key_that_is_admitted_and_never_touch_names_of_the_repository() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    for identity in ["/alice", "/mallory"] {
        assert_eq!(place.run(&["key", "new", identity]).code, 0);
    }
    assert_eq!(place.run(&["cert", "export", "/alice", "-o", "alice.ndncert"]).code, 0);
    fs::write(place.path("in"), noise(9_000, 5)).unwrap();
    let _put = place.put(&["/alice/page", "in", "--version", "1"]);
    let _run = repo(&place, &["--allow-key", "alice.ndncert"]);
    let insert = |object: &str, more: &[&str]| {
        let mut args = vec!["repo", "insert", "/repo", object, "--start", "0"];
        args.extend(more);
        place.run(&args)
    };
    for (object, key) in [
        ("/alice/page/v=1", &[][..]),
        ("/alice/page/v=1", &["--key", "/mallory"]),
        ("/mallory/page", &["--key", "/alice"]),
        ("/repo/insert", &["--key", "/alice"]),
    ] {
        let refused = insert(object, key);
        assert_eq!(refused.code, 4, "{object} {key:?}: {}", refused.err);
    }
    let done = insert("/alice/page/v=1", &["--key", "/alice"]);
    assert_eq!(done.code, 0, "{}", done.err);
}

#[test]
fn bulk_packets_are_kept_under_served_prefixes_only_and_the_door_is_of_this_machine() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    let outside = ["repo", "run", "--store", "x", "--name", "/r", "--bulk", "0.0.0.0:0"];
    let refused = place.run(&outside);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let mut run = repo(&place, &["--serve", "/bulk", "--bulk", "127.0.0.1:0"]);
    run.wait_for("bulk insertion at ");
    let said = run.out.text();
    let address = said.split("bulk insertion at ").nth(1).unwrap().trim().to_owned();
    let mut stream = TcpStream::connect(address).unwrap();
    for name in ["/bulk/a", "/elsewhere/b"] {
        let name: onym_wire::Name = name.parse().unwrap();
        let mut packet = Vec::new();
        let data = onym_wire::DataBuilder::new(name.as_ref(), b"x");
        onym_crypto::signer::write_digest_data(&data, &mut packet);
        stream.write_all(&packet).unwrap();
    }
    drop(stream);
    wait_until("the packet is kept", || {
        place.json(&["repo", "stats", "--store", "data"])["packets"] == 1
    });
    assert_eq!(place.run(&["peek", "/bulk/a"]).code, 0);
    assert_ne!(place.run(&["peek", "/elsewhere/b"]).code, 0);
}
