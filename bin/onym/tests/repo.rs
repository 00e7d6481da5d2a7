//! A repository beside a running daemon as a person types it: filled by files, by commands of the
//! network and by bulk TCP; killed and started again.

#![allow(clippy::unwrap_used)]

mod support;

use onym_client::blocking::Client;
use onym_client::{Answer, ClientOptions, Incoming, Request, RouteOptions};
use onym_crypto::store::KeyStore;
use onym_repo::command::{Notify, ObjectParam, write_objects};
use onym_wire::{DataBuilder, Name};
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
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

/// Law: a disk that is full or read-only is told in a sentence to who inserts, and what is there is
/// served all the while; when there is room again, it is taken.
#[test]
fn a_full_and_a_read_only_disk_are_told_and_what_is_there_is_served() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: nothing can be mounted here");
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    let data = place.path("data");
    fs::create_dir_all(&data).unwrap();
    let disk = |program: &str, words: &[&str]| {
        assert!(Command::new(program).args(words).arg(&data).status().unwrap().success());
    };
    // A store wants 64 MiB free.
    disk("mount", &["-t", "tmpfs", "-o", "size=72m", "none"]);
    let _mounted = Mounted(data.clone());
    fs::write(place.path("one"), noise(100_000, 1)).unwrap();
    fs::write(place.path("two"), noise(100_000, 2)).unwrap();
    let add = |file: &str| {
        let name = format!("/lib/{file}");
        place.run(&["repo", "add", file, "--store", "data", "--as", &name])
    };
    let mut run = repo(&place, &[]);
    assert_eq!(add("one").code, 0);
    let ballast = data.join("ballast");
    fs::write(&ballast, vec![1; 8 << 20]).unwrap();
    // How much is free is asked at the start, and then once in a while.
    run.kill();
    let mut run = repo(&place, &[]);
    let refused = add("two");
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("the disk is full"), "{}", refused.err);
    fetches(&place, "/lib/one", &noise(100_000, 1));
    fs::remove_file(&ballast).unwrap();
    assert_eq!(add("two").code, 0, "there is room again");
    run.kill();
    disk("mount", &["-o", "remount,ro"]);
    let mut run = repo(&place, &[]);
    run.wait_for("the disk is read-only");
    fetches(&place, "/lib/one", &noise(100_000, 1));
    fetches(&place, "/lib/two", &noise(100_000, 2));
    assert_ne!(add("one").code, 0);
    let checked = place.run(&["repo", "verify", "--store", "data"]);
    assert_eq!(checked.code, 0, "{}", checked.err);
}

/// Takes a mount away.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Law: the store is in step with a watched folder: what comes, changes and goes there does here,
/// also what did so while no repository ran; earlier versions are gone.
#[test]
fn a_watched_folder_is_kept_in_step() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    fs::create_dir_all(place.path("shelf/deep")).unwrap();
    fs::write(place.path("shelf/one"), noise(20_000, 1)).unwrap();
    fs::write(place.path("shelf/deep/two"), noise(9000, 2)).unwrap();
    let watch = ["--watch", "shelf=/lib/shelf", "--watch-every", "10"];
    let packets = || place.json(&["repo", "stats", "--store", "data"])["packets"].as_u64().unwrap();
    let settles = |count: u64| wait_until("the store", || packets() == count);
    let mut run = repo(&place, &watch);
    settles(5);
    fetches(&place, "/lib/shelf/one", &noise(20_000, 1));
    fs::write(place.path("shelf/one"), noise(50_000, 3)).unwrap();
    fs::remove_file(place.path("shelf/deep/two")).unwrap();
    fs::write(place.path("shelf/three"), noise(1, 4)).unwrap();
    // Seven of the new file, one of another: no state between has as many.
    settles(8);
    fetches(&place, "/lib/shelf/one", &noise(50_000, 3));
    assert_eq!(place.run(&["get", "/lib/shelf/deep/two"]).code, 5);
    run.kill();
    fs::remove_file(place.path("shelf/one")).unwrap();
    fs::write(place.path("shelf/four"), noise(9000, 5)).unwrap();
    let _run = repo(&place, &watch);
    settles(3);
    fetches(&place, "/lib/shelf/four", &noise(9000, 5));
    fetches(&place, "/lib/shelf/three", &noise(1, 4));
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

/// Law: two repositories that are told to have from each other what neither has ask each other, find
/// nothing, and say so; both go on.
#[test]
fn repositories_that_are_to_fetch_from_each_other_end() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    let both: Vec<Running> = ["a", "b"]
        .into_iter()
        .map(|one| {
            let name = format!("/repo/{one}");
            let args = ["repo", "run", "--store", one, "--name", &name, "--serve", "/loop"];
            let mut run = place.start(&[&args[..], &["--allow-everybody"]].concat());
            run.wait_for("ready: ");
            run
        })
        .collect();
    let insert = |repo: &str, more: &[&str]| {
        place.start(&[&["repo", "insert", repo, "/loop/film/v=1"], more].concat())
    };
    let asked = [
        insert("/repo/a", &["--start", "0"]),
        insert("/repo/b", &["--start", "0", "--end", "9223372036854775808"]),
        insert("/repo/a", &["--start", "0", "--hint", "/repo/b", "--register", "/loop/film"]),
        insert("/repo/b", &["--hint", "/loop"]),
    ];
    for mut command in asked {
        assert_ne!(command.end(), Some(0));
    }
    for one in ["a", "b"] {
        assert_eq!(place.json(&["repo", "stats", "--store", one])["packets"], 0);
        fs::write(place.path("in"), noise(9_000, 5)).unwrap();
        let name = format!("/kept/{one}");
        place.json(&["repo", "add", "in", "--store", one, "--as", &name]);
        fetches(&place, &name, &noise(9_000, 5));
    }
    drop(both);
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
fn a_trust_schema_says_who_may_insert_what() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    let ok = |args: &[&str]| {
        let done = place.run(args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.err);
    };
    for identity in ["/a", "/a/x", "/mallory"] {
        ok(&["key", "new", identity]);
    }
    ok(&["cert", "export", "/a", "-o", "root.ndncert"]);
    ok(&["cert", "export", "/a/x", "-o", "x.req"]);
    ok(&["cert", "issue", "x.req", "--signer", "/a", "-o", "x.ndncert"]);
    ok(&["cert", "install", "x.ndncert"]);
    let schema = "#KEY: \"KEY\"/_/_/_\n#root: \"a\"/#KEY\n#user: \"a\"/u/#KEY <= #root\n\
                  #page: \"a\"/u/_ <= #user\n";
    fs::write(place.path("site.lvs"), schema).unwrap();
    fs::write(place.path("in"), noise(9_000, 5)).unwrap();
    let _put = place.put(&["/a/x/page", "in", "--version", "1"]);
    let mut serve = Running::start(&mut place.command(&["cert", "serve"]));
    serve.wait_for("ready: ");
    let _run = repo(&place, &["--trust", "site.lvs", "--anchor", "root.ndncert"]);
    let insert = |object: &str, more: &[&str]| {
        let args = ["repo", "insert", "/repo", object, "--start", "0"];
        place.run(&[&args[..], more].concat())
    };
    for (object, key) in [
        ("/a/x/page/v=1", &[][..]),
        ("/a/x/page/v=1", &["--key", "/mallory"]),
        ("/a/y/page/v=1", &["--key", "/a/x"]),
        ("/a/x/page/v=1", &["--key", "/a"]),
    ] {
        let refused = insert(object, key);
        assert_eq!(refused.code, 4, "{object} {key:?}: {}", refused.err);
    }
    let done = insert("/a/x/page/v=1", &["--key", "/a/x"]);
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
        let name: Name = name.parse().unwrap();
        let mut packet = Vec::new();
        let data = DataBuilder::new(name.as_ref(), b"x");
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

/// A client of this place's node, in the test's own process.
fn client(place: &Place) -> Client {
    let node = Some(place.node());
    Client::open(ClientOptions { node, ..ClientOptions::default() }).unwrap()
}

/// Law: what is given to a repository is kept and served when the one who published it has ended.
#[test]
fn what_is_put_into_a_repository_is_served_when_its_publisher_has_ended() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    let content = noise(100_000, 8);
    fs::write(place.path("in"), &content).unwrap();
    let put = ["put", "/alice/film", "in", "--repo", "/repo"];
    let nobody = place.run(&put);
    assert_eq!(nobody.code, 5, "{}", nobody.err);
    let refusing = repo(&place, &[]);
    let refused = place.run(&put);
    assert_eq!(refused.code, 4, "{}", refused.err);
    drop(refusing);
    let _run = repo(&place, &["--allow-everybody"]);
    let kept = place.run(&put);
    assert_eq!(kept.code, 0, "{}", kept.err);
    assert!(kept.out.contains("kept by /repo: 13 packets"), "{}", kept.out);
    fetches(&place, "/alice/film", &content);
}

fn named(uri: &str) -> ObjectParam {
    ObjectParam { name: uri.parse().unwrap(), ..ObjectParam::default() }
}

/// Law: a signed command acts once, whoever sends it again and however often the repository was
/// started since; what it is sent for stays as it is.
#[test]
fn a_signed_command_that_is_sent_again_does_nothing_also_after_a_restart() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    assert_eq!(place.run(&["key", "new", "/alice"]).code, 0);
    assert_eq!(place.run(&["cert", "export", "/alice", "-o", "alice.ndncert"]).code, 0);
    fs::write(place.path("in"), noise(9_000, 6)).unwrap();
    let run = |place: &Place| repo(place, &["--allow-key", "alice.ndncert"]);
    let _page = place.put(&["/alice/page", "in", "--version", "1"]);
    let _other = place.put(&["/alice/other", "in", "--version", "1"]);
    let keys = KeyStore::new(place.path("keys"));
    let alice: Name = "/alice".parse().unwrap();
    let signer = keys.signer(Some(alice.as_ref())).unwrap();
    let publisher: Name = "/alice/desk".parse().unwrap();
    // The same octets each time, as somebody has them who heard them once.
    let command = |nonce: &[u8], object: &str| {
        let notify =
            Notify { publisher: publisher.clone(), nonce: nonce.to_vec(), hint: Vec::new() };
        let topic: Name = "/repo/delete".parse().unwrap();
        let name = notify.message_name(topic.as_ref());
        let object = ObjectParam { start: Some(0), ..named(object) };
        let content = write_objects(&[object]);
        let mut packet = Vec::new();
        signer.sign_data(&DataBuilder::new(name.as_ref(), &content), &mut packet).unwrap();
        (notify, packet)
    };
    let insert = |name: &str| {
        place.json(&["repo", "insert", "/repo", name, "--start", "0", "--key", "/alice"])
    };
    let is_there = |name: &str| {
        let listed = place.json(&["repo", "list", name, "--store", "data"]);
        listed.as_array().is_some_and(|names| !names.is_empty())
    };
    let heard = command(b"once", "/alice/page/v=1");
    let later = command(b"later", "/alice/other/v=1");
    let mut client = client(&place);
    let packets = [heard.1.clone(), later.1.clone()];
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        let Some(packet) = packets.iter().find(|p| incoming.is_answered_by(p)) else {
            return Answer::Nothing;
        };
        out.extend_from_slice(packet);
        Answer::Written
    };
    client.respond(publisher.clone(), Box::new(respond)).unwrap();
    client.register(publisher.clone(), RouteOptions::default()).unwrap();
    let mut send = |notify: &Notify| {
        let name = "/repo/delete/notify".parse().unwrap();
        let request =
            Request { parameters: Some(notify.write()), retries: 5, ..Request::new(name) };
        client.request(&request).unwrap();
    };
    let mut repo = run(&place);
    insert("/alice/page/v=1");
    assert!(is_there("/alice/page/v=1"));
    send(&heard.0);
    wait_until("the command acts", || !is_there("/alice/page/v=1"));
    insert("/alice/page/v=1");
    repo.kill();
    let _repo = run(&place);
    insert("/alice/other/v=1");
    send(&heard.0);
    // Commands act in the order in which they come.
    send(&later.0);
    wait_until("a later command acts", || !is_there("/alice/other/v=1"));
    assert!(is_there("/alice/page/v=1"), "a command that was sent again has acted again");
}

/// Segments that are given out before the producer falls silent, and in all.
const BEFORE_SILENCE: u64 = 60;
const SEGMENTS: u64 = 200;

/// Law: `kill -9` in the middle of an insertion loses nothing that was acknowledged, and the job
/// goes on where it was when the repository starts again.
#[test]
fn an_insertion_that_was_killed_in_the_middle_goes_on_where_it_was() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    let (is_silent, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new(Vec::new())));
    let (silent, heard) = (Arc::clone(&is_silent), Arc::clone(&asked));
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        let interest = incoming.interest();
        let Some(segment) = interest.name.last().and_then(|c| c.as_segment()) else {
            return Answer::Nothing;
        };
        heard.lock().unwrap().push(segment);
        if segment >= SEGMENTS || (segment >= BEFORE_SILENCE && silent.load(Ordering::SeqCst)) {
            return Answer::Nothing;
        }
        let mut end = Name::new();
        end.append_segment(SEGMENTS - 1);
        let final_block_id = end.as_ref().last();
        let data = DataBuilder { final_block_id, ..DataBuilder::new(interest.name, b"octets") };
        onym_crypto::signer::write_digest_data(&data, out);
        Answer::Written
    };
    let mut client = client(&place);
    let prefix: Name = "/alice/film".parse().unwrap();
    client.respond(prefix.clone(), Box::new(respond)).unwrap();
    client.register(prefix, RouteOptions::default()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let producer = std::thread::spawn(move || {
        let mut stop = || stopped.load(Ordering::SeqCst);
        client.run(Duration::from_millis(20), &mut stop, &mut |_| {}).unwrap();
    });
    let mut run = repo(&place, &["--allow-everybody"]);
    let insert = ["repo", "insert", "/repo", "/alice/film/v=7", "--start", "0"];
    let insertion = place.start(&insert);
    let job = || place.json(&["repo", "jobs", "--store", "data"])[0].clone();
    wait_until("what came is noted", || job()["objects"][0]["next"] == BEFORE_SILENCE);
    run.kill();
    drop(insertion);
    let stats = place.json(&["repo", "stats", "--store", "data"]);
    assert_eq!(stats["packets"], BEFORE_SILENCE, "{stats}");
    assert_eq!(job()["status"], 300, "{}", job());
    asked.lock().unwrap().clear();
    is_silent.store(false, Ordering::SeqCst);
    let _run = repo(&place, &["--allow-everybody"]);
    wait_until("the job ends", || job()["status"] != 300);
    let ended = job();
    assert_eq!(
        (&ended["status"], &ended["objects"][0]["inserted"]),
        (&200.into(), &SEGMENTS.into())
    );
    let first = asked.lock().unwrap().iter().min().copied();
    assert_eq!(first, Some(BEFORE_SILENCE), "what was kept is not asked for again");
    assert_eq!(place.json(&["repo", "stats", "--store", "data"])["packets"], SEGMENTS);
    stop.store(true, Ordering::SeqCst);
    producer.join().unwrap();
}

/// Law: what a key signed is kept as it came, for whom the repository admits by that key.
#[test]
fn what_a_key_signed_is_kept_with_its_signature() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    let content = noise(20_000, 9);
    fs::write(place.path("in"), &content).unwrap();
    assert_eq!(place.run(&["key", "new", "/alice"]).code, 0);
    assert_eq!(place.run(&["cert", "export", "/alice", "-o", "alice.ndncert"]).code, 0);
    let _run = repo(&place, &["--allow-key", "alice.ndncert"]);
    let kept = place.run(&["put", "/alice/film", "in", "--key", "/alice", "--repo", "/repo"]);
    assert_eq!(kept.code, 0, "{}", kept.err);
    // By its version: what the newest is, the repository says, and signs that itself.
    let name = kept.out.lines().next().unwrap();
    let got = place.run(&["get", name, "--verify", "/alice", "-o", "out"]);
    assert_eq!(got.code, 0, "{}", got.err);
    assert!(fs::read(place.path("out")).unwrap() == content);
}

/// Law: who has what one owner may have is refused, in a sentence, and nobody else is.
#[test]
fn an_owner_that_has_its_share_is_refused_alone() {
    let place = Place::new();
    let _daemon = place.daemon(NO_CACHE);
    for who in ["alice", "bob"] {
        let (key, file) = (format!("/{who}"), format!("{who}.ndncert"));
        assert_eq!(place.run(&["key", "new", &key]).code, 0);
        assert_eq!(place.run(&["cert", "export", &key, "-o", &file]).code, 0);
    }
    let keys = ["--allow-key", "alice.ndncert", "--allow-key", "bob.ndncert"];
    let _run = repo(&place, &[&keys[..], &["--owner-octets-max", "100k"]].concat());
    let put = |who: &str, size| {
        fs::write(place.path("in"), noise(size, 3)).unwrap();
        let name = format!("{who}/film/{size}");
        place.run(&["put", &name, "in", "--key", who, "--repo", "/repo"])
    };
    assert_eq!(put("/alice", 50_000).code, 0);
    let refused = put("/alice", 90_000);
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert!(refused.err.contains("its owner has what one may have"), "{}", refused.err);
    let other = put("/bob", 50_000);
    assert_eq!(other.code, 0, "{}", other.err);
    fetches(&place, "/alice/film/50000", &noise(50_000, 3));
}
