//! A folder on the network: served, listed, fetched.

#![allow(clippy::unwrap_used)]

mod support;

use onym_client::blocking::Client;
use onym_client::{ClientOptions, Incoming, RouteOptions};
use onym_crypto::Signer;
use onym_repo::file::{FOLDER, FileMetadata};
use onym_repo::reply::{self, Made};
use onym_wire::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use support::{Place, Running, noise, wait_until};

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
    let later = std::time::SystemTime::now() + Duration::from_secs(10);
    fs::write(place.path("shelf/page"), noise(40_000, 2)).unwrap();
    let file = fs::File::options().write(true).open(place.path("shelf/page")).unwrap();
    file.set_modified(later).unwrap();
    let refused = place.run(&["get", &old, "-o", "got"]);
    assert_ne!(refused.code, 0, "{}", refused.err);
    let new = place.json(&get)["name"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    assert!(fs::read(place.path("out")).unwrap() == noise(40_000, 2));
}

/// What is at and below a folder: names, and the digests of files.
fn tree(at: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![at.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let content = if path.is_dir() { None } else { Some(fs::read(&path).unwrap()) };
            if content.is_none() {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(at).unwrap().to_owned(), content);
        }
    }
    found
}

/// Law: a copied folder is the folder, its times included; a second sync fetches what changed and
/// nothing else, and removes what has gone when it is told to, and only then.
#[test]
fn a_folder_is_copied_and_kept_in_step() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    fs::create_dir_all(place.path("shelf/deep/empty")).unwrap();
    for (name, size) in [("none", 0), ("one", 1), ("long", 100_000), ("deep/two", 7000)] {
        fs::write(place.path("shelf").join(name), noise(size, 7)).unwrap();
    }
    let script = fs::File::create(place.path("shelf/run.sh")).unwrap();
    script.set_permissions(Permissions::from_mode(0o755)).unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let same = || assert!(tree(&place.path("shelf")) == tree(&place.path("here")), "differs");

    assert_eq!(place.run(&["cp", "/alice/shelf", "here"]).code, 2, "a folder needs --recursive");
    let copied = place.json(&["cp", "--recursive", "/alice/shelf", "here"]);
    assert_eq!((copied["files"].as_u64(), copied["bytes"].as_u64()), (Some(5), Some(107_001)));
    same();
    let modified = |path: &str| fs::metadata(place.path(path)).unwrap().modified().unwrap();
    assert_eq!(modified("here/long"), modified("shelf/long"));
    let mode = fs::metadata(place.path("here/run.sh")).unwrap().permissions().mode();
    assert_ne!(mode & 0o100, 0, "what can be executed there can be executed here");

    let again = place.json(&["sync", "/alice/shelf", "here"]);
    assert_eq!((again["files"].as_u64(), again["same"].as_u64()), (Some(0), Some(5)));
    fs::write(place.path("shelf/one"), "changed").unwrap();
    fs::remove_file(place.path("shelf/deep/two")).unwrap();
    fs::remove_dir(place.path("shelf/deep/empty")).unwrap();
    let dry = place.run(&["sync", "/alice/shelf", "here", "--delete", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.err);
    for line in ["fetched here/one", "removed here/deep/two", "removed here/deep/empty"] {
        assert!(dry.err.contains(line), "{line}: {}", dry.err);
    }
    let kept = place.json(&["sync", "/alice/shelf", "here"]);
    assert_eq!((kept["files"].as_u64(), kept["removed"].as_u64()), (Some(1), Some(0)));
    assert!(place.path("here/deep/two").exists(), "nothing is removed unasked");
    symlink(place.path("shelf"), place.path("here/deep/link")).unwrap();
    let gone = place.json(&["sync", "/alice/shelf", "here", "--delete"]);
    assert_eq!((gone["files"].as_u64(), gone["removed"].as_u64()), (Some(0), Some(3)));
    same();

    // One file into a folder gets its own name.
    fs::create_dir(place.path("into")).unwrap();
    assert_eq!(place.run(&["cp", "/alice/shelf/one", "into"]).code, 0);
    assert_eq!(fs::read(place.path("into/one")).unwrap(), b"changed");
    assert_eq!(place.run(&["cp", "/alice/shelf/missing", "into"]).code, 5);
    assert_eq!(tree(&place.path("into")).len(), 1, "no part is left");
}

/// Law: a copy that was killed goes on with the segments that it had, and is whole; a file has its
/// name only when it is; a copy of another version begins anew.
#[test]
fn an_interrupted_copy_goes_on_where_it_ended() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    fs::create_dir_all(place.path("shelf")).unwrap();
    fs::create_dir_all(place.path("here")).unwrap();
    let content = noise(24_000_000, 3);
    fs::write(place.path("shelf/film"), &content).unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let parts = || {
        let parts = fs::read_dir(place.path("here")).unwrap().map(|entry| entry.unwrap());
        let parts = parts.filter(|e| e.file_name().to_string_lossy().ends_with(".onym-part"));
        parts.map(|part| part.metadata().unwrap().len()).collect::<Vec<_>>()
    };
    let interrupt = || {
        let mut copy = place.start(&["cp", "/alice/shelf/film", "here"]);
        wait_until("a part of the file", || parts().iter().any(|len| *len > 100_000));
        copy.kill();
        assert!(!place.path("here/film").exists(), "a half file has no name");
        parts()[0]
    };
    let had = interrupt();
    assert!(had < content.len() as u64, "it was interrupted too late");
    let done = place.json(&["cp", "/alice/shelf/film", "here"]);
    assert_eq!(
        done["resumed"].as_u64(),
        Some(had - had % 6144),
        "what had come is not fetched again"
    );
    assert!(fs::read(place.path("here/film")).unwrap() == content);
    assert!(parts().is_empty());

    fs::remove_file(place.path("here/film")).unwrap();
    interrupt();
    let other = noise(1_000_000, 4);
    fs::write(place.path("shelf/film"), &other).unwrap();
    let done = place.json(&["cp", "/alice/shelf/film", "here"]);
    assert_eq!(done["resumed"].as_u64(), Some(0));
    assert!(fs::read(place.path("here/film")).unwrap() == other);
    assert!(parts().is_empty(), "the part of the other version is gone");
}

/// Law: a range is those octets of the file, of what `onym serve` and what `onym put` serves.
#[test]
fn a_range_is_those_octets() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::create_dir_all(place.path("shelf")).unwrap();
    let content = noise(100_000, 5);
    fs::write(place.path("shelf/film"), &content).unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let _put = place.put(&["/alice/put", "shelf/film"]);
    for name in ["/alice/shelf/film", "/alice/put"] {
        for (range, expected) in [
            ("0-0", 0..1),
            ("6143-6144", 6143..6145),
            ("50000-", 50_000..100_000),
            ("-10", 99_990..100_000),
            ("99999-200000", 99_999..100_000),
        ] {
            let got = place.run(&["get", name, "-o", "out", "--range", range]);
            assert_eq!(got.code, 0, "{name} {range}: {}", got.err);
            assert!(fs::read(place.path("out")).unwrap() == content[expected], "{name} {range}");
        }
        let got = place.run(&["get", name, "-o", "beyond", "--range", "100000-"]);
        assert_eq!((got.code, place.path("beyond").exists()), (5, false), "{}", got.err);
    }
}

/// Law: the last octets of a file of 10 GB are there at once, for a range and for who mounted it.
#[test]
fn a_file_of_ten_gigabytes_is_read_at_its_end() {
    const SIZE: u64 = 10_000_000_000;
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::create_dir_all(place.path("shelf")).unwrap();
    // It has holes in place of content.
    let file = fs::File::create(place.path("shelf/film")).unwrap();
    file.set_len(SIZE).unwrap();
    let end = noise(1000, 4);
    file.write_all_at(&end, SIZE - 1000).unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let got = place.run(&["get", "/alice/shelf/film", "-o", "out", "--range", "-1000"]);
    assert_eq!(got.code, 0, "{}", got.err);
    assert!(fs::read(place.path("out")).unwrap() == end);
    let Some(mount) = Mount::at(&place, "/alice/shelf", &["--size-max", "none"]) else { return };
    let file = fs::File::open(mount.path("film")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), SIZE);
    let mut octets = vec![1; 2000];
    file.read_exact_at(&mut octets, SIZE - 2000).unwrap();
    assert!(octets[..1000].iter().all(|octet| *octet == 0) && octets[1000..] == end);
}

/// What is mounted; it is gone when this is.
struct Mount {
    folder: PathBuf,
    process: Running,
}

impl Mount {
    /// None where nothing can be mounted.
    fn at(place: &Place, name: &str, more: &[&str]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            println!("skipped: nothing can be mounted here");
            return None;
        }
        let folder = place.path("mounted");
        fs::create_dir_all(&folder).unwrap();
        let mut process = place.start(&[&["mount", name, "mounted"], more].concat());
        process.wait_for("ready: ");
        Some(Self { folder, process })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // What a failed test leaves.
        if self.process.runs() {
            let _ = Command::new("umount").args(["-l"]).arg(&self.folder).status();
        }
    }
}

/// Law: a mounted folder is the folder, names, content and who may execute; it changes when that does,
/// but not under who has a file open; nothing is written, nothing leads out, and it ends when told.
#[test]
fn a_mounted_folder_is_the_folder_to_be_read() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    fs::create_dir_all(place.path("shelf/deep/empty")).unwrap();
    fs::write(place.path("shelf/none"), "").unwrap();
    fs::write(place.path("shelf/long"), noise(1_000_000, 7)).unwrap();
    fs::write(place.path("shelf/deep/run"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(place.path("shelf/deep/run"), Permissions::from_mode(0o6755)).unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let Some(mut mount) = Mount::at(&place, "/alice/shelf", &[]) else { return };
    assert!(tree(&mount.folder) == tree(&place.path("shelf")));
    let about = |path: &Path| {
        let known = fs::metadata(path).unwrap();
        (known.permissions().mode() & 0o7777, known.modified().unwrap())
    };
    let changed = |path: &str| about(&place.path(path)).1;
    assert_eq!(about(&mount.path("deep/run")), (0o555, changed("shelf/deep/run")));
    assert_eq!(about(&mount.path("long")), (0o444, changed("shelf/long")));
    let ran = Command::new(mount.path("deep/run")).output().unwrap();
    assert_eq!(ran.stdout, b"ran\n");
    let kind = |done: std::io::Result<()>| done.unwrap_err().kind();
    assert_eq!(kind(fs::read(mount.path("other")).map(drop)), ErrorKind::NotFound);
    assert_eq!(kind(fs::read(mount.path("long/more")).map(drop)), ErrorKind::NotADirectory);
    assert_eq!(kind(fs::write(mount.path("new"), "")), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(kind(fs::remove_file(mount.path("long"))), ErrorKind::ReadOnlyFilesystem);
    // Another content under the same name.
    let open = fs::File::open(mount.path("long")).unwrap();
    let mut octets = vec![0; 1_000_000];
    open.read_exact_at(&mut octets, 0).unwrap();
    fs::rename(place.path("shelf/none"), place.path("shelf/long")).unwrap();
    wait_until("the change is seen", || {
        fs::read(mount.path("long")).is_ok_and(|all| all.is_empty())
    });
    wait_until("what has gone is gone", || !mount.path("none").exists());
    open.read_exact_at(&mut octets, 0).unwrap();
    assert!(octets == noise(1_000_000, 7), "what is open has its version");
    drop(open);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(mount.process.pid().cast_signed()).unwrap(),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert_eq!(mount.process.end(), Some(0));
    assert_eq!(fs::read_dir(&mount.folder).unwrap().count(), 0, "it is mounted no more");
}

/// A producer of whatever is asked for under `/mallory`, until it is dropped.
struct Mallory {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mallory {
    /// Everything is a folder but `huge`, of more octets than a file can have, and `short`, which has
    /// fewer octets than it says. Listings name what is outside, and `more`.
    fn start(place: &Place, more: &[u8]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (stop, node) = (Arc::clone(&over), place.node());
        let listing = [&b"../\0..\0x/\0.a.0123456789abcdef.onym-part\0"[..], more].concat();
        let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
            let name = incoming.interest().name;
            let signer = Signer::digest();
            if let Some(segment) = name.last().and_then(|last| last.as_segment()) {
                return reply::segment_of(name, segment, &listing, &signer, out);
            }
            let about = name.drop_last(1);
            let mut versioned = about.to_name();
            let size = match about.last().map(|last| last.value) {
                Some(b"huge") => Some(u64::MAX),
                Some(b"short") => Some(100_000),
                _ => None,
            };
            let mut metadata = FileMetadata { mode: FOLDER, ..FileMetadata::default() };
            if size.is_some() {
                versioned.append_version(1);
                metadata = FileMetadata { mode: 0o106_777, size, ..metadata };
                metadata.segment_size = Some(6144);
            } else {
                versioned.append_keyword("ls").append_version(1);
            }
            metadata.name = versioned;
            reply::metadata(&signer, name, Made::at(1), &metadata, out)
        };
        let thread = std::thread::spawn(move || {
            let options = ClientOptions { node: Some(node), ..ClientOptions::default() };
            let mut client = Client::open(options).unwrap();
            let prefix: Name = "/mallory".parse().unwrap();
            client.respond(prefix.clone(), Box::new(respond)).unwrap();
            client.register(prefix, RouteOptions::default()).unwrap();
            let mut is_over = || stop.load(Ordering::SeqCst);
            client.run(Duration::from_millis(5), &mut is_over, &mut |_| {}).unwrap();
        });
        wait_until("a route", || place.run(&["route", "list"]).out.contains("/mallory"));
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Mallory {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Law: a producer whose folders have no end, and whose listings name what is outside, ends a copy
/// with a reason, and nothing is written outside.
#[test]
fn folders_without_end_end_a_copy() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    let mallory = Mallory::start(&place, b"");
    fs::create_dir(place.path("in")).unwrap();
    let copied = place.run(&["cp", "-r", "/mallory/folder", "in/here"]);
    drop(mallory);
    assert_eq!(copied.code, 4, "{}", copied.err);
    assert!(copied.err.contains("64 folders deep"), "{}", copied.err);
    let names: BTreeSet<String> = tree(&place.path("in"))
        .keys()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ["here", "x"].map(str::to_owned).into(), "nothing else was made");
}

/// Law: what a producer says of names, sizes and modes can do no more to a mounted folder than to show
/// what is not there: nothing leads out, no bit gives a right, and reading ends with an error.
#[test]
fn a_mounted_folder_of_a_hostile_producer_leads_nowhere() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    let _mallory = Mallory::start(&place, &[b'n'; 300]);
    let Some(mount) = Mount::at(&place, "/mallory/folder", &[]) else { return };
    let names = |path: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let shown = [".a.0123456789abcdef.onym-part", "x"].map(str::to_owned).into();
    assert_eq!(names(&mount.folder), shown, "`..` and 300 octets are no names");
    assert_eq!(names(&mount.path("x/x/x/x")), shown, "folders without end, one at a time");
    let huge = fs::metadata(mount.path("huge")).unwrap();
    assert_eq!((huge.len(), huge.permissions().mode() & 0o7777), (u64::MAX >> 1, 0o555));
    let refused = fs::File::open(mount.path("huge")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::FileTooLarge, "beyond --size-max");
    let cut = fs::read(mount.path("short")).unwrap_err();
    assert_eq!(cut.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    assert_eq!(names(&mount.folder), shown, "it is read all the same");
}

/// Law: a mounted folder is for who mounted it, and for others when they are let.
#[test]
fn a_mounted_folder_is_for_who_mounted_it() {
    const NOBODY: u32 = 65534;
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::set_permissions(place.dir(), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(place.path("shelf")).unwrap();
    fs::write(place.path("shelf/letter"), "dear Alice").unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let read = |path: PathBuf| {
        let done = Command::new("cat").arg(path).uid(NOBODY).gid(NOBODY).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let Some(mount) = Mount::at(&place, "/alice/shelf", &[]) else { return };
    assert_eq!(read(place.path("shelf/letter")), "dear Alice");
    assert_eq!(fs::read(mount.path("letter")).unwrap(), b"dear Alice");
    assert_eq!(read(mount.path("letter")), "");
    drop(mount);
    let mount = Mount::at(&place, "/alice/shelf", &["--for-others"]).unwrap();
    assert_eq!(read(mount.path("letter")), "dear Alice");
}
