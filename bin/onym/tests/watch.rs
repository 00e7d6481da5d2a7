//! `onym dump` and `onym top` as a person uses them: in a terminal, in a pipe, into a file.

#![allow(clippy::unwrap_used)]

mod support;

use onym_wire::{InterestBuilder, Name};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use support::{Place, Running, wait_until};

/// Asks for a name that nobody has, until the other side has seen enough.
fn ask_until(place: &Place, name: &str, mut enough: impl FnMut() -> bool) {
    wait_until(name, || {
        let ended = place.run(&["peek", name, "--lifetime", "50"]);
        assert_ne!(ended.code, 0, "nobody has it");
        enough()
    });
}

/// The lines of a program that has ended, of which there are at least `count`.
fn lines(running: &Running, count: usize) -> Vec<Value> {
    wait_until("its lines", || running.out.text().lines().count() >= count);
    running.out.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn packets_are_shown_with_their_verdict_and_nothing_of_management() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let mut dump = place.start(&["dump", "--json", "--count", "2"]);
    dump.wait_for("watching");
    let mut ended = false;
    ask_until(&place, "/nobody/has/this", || {
        ended |= !dump.runs();
        ended
    });
    assert_eq!(dump.end(), Some(0), "{}", dump.err.text());
    let shown = lines(&dump, 2);
    assert_eq!(shown.len(), 2);
    let [came, went] = [&shown[0], &shown[1]];
    assert_eq!((&came["kind"], &came["direction"]), (&"interest".into(), &"in".into()), "{came}");
    assert_eq!(came["comment"], "no_route", "the verdict: {came}");
    assert_eq!((&went["kind"], &went["direction"]), (&"nack".into(), &"out".into()), "{went}");
    assert_eq!((&went["comment"], &went["nack_reason"]), (&"sent".into(), &"NoRoute".into()));
    assert_eq!(came["name"], "/nobody/has/this");
    wait_until("what it says at its end", || dump.err.text().contains("2 packets"));
}

#[test]
fn a_filter_of_the_node_lets_through_what_it_says() {
    let place = Place::new();
    let _daemon = place.daemon(&["shards=2"]);
    let filter = ["dump", "--json", "--prefix", "/wanted", "--kind", "interest", "-c", "1"];
    let mut dump = place.start(&filter);
    dump.wait_for("watching");
    for _ in 0..3 {
        place.run(&["peek", "/other/name", "--lifetime", "50"]);
    }
    ask_until(&place, "/wanted/name", || !dump.runs());
    let shown = lines(&dump, 1);
    assert_eq!((shown.len(), &shown[0]["name"]), (1, &"/wanted/name".into()), "{shown:?}");
    let refused = place.run(&["dump", "--sample", "0"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
}

#[test]
fn a_capture_is_read_by_dissect_and_can_be_anonymous() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let write = ["dump", "-w", "seen.pcapng", "--count", "2", "--anonymous"];
    let mut dump = place.start(&write);
    dump.wait_for("watching");
    ask_until(&place, "/private/person", || !dump.runs());
    let ended = place.run(&["dissect", "seen.pcapng", "--json"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let shown: Vec<Value> =
        ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown.len(), 2, "{}", ended.out);
    assert_eq!(shown[0]["comment"], "no_route");
    let name = shown[0]["name"].as_str().unwrap();
    assert!(!name.contains("private") && name.matches('/').count() == 2, "{name}");
    let octets = std::fs::read(place.path("seen.pcapng")).unwrap();
    assert!(!octets.windows(7).any(|w| w == b"private"));
}

/// The size of the terminal.
const ROWS: usize = 40;
const COLUMNS: usize = 120;

/// A terminal with a program in it, which ends with the test.
struct Screen {
    child: Child,
    keys: File,
    shown: Arc<Mutex<String>>,
}

impl Screen {
    /// Starts `onym` in a new terminal.
    fn start(place: &Place, args: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: u16::try_from(ROWS).unwrap(),
            ws_col: u16::try_from(COLUMNS).unwrap(),
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let slave = rustix::fs::open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let mut command = place.command(args);
        command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().unwrap();
        drop(slave);
        let keys = File::from(master);
        let mut from = keys.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&shown);
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(len @ 1..) = from.read(&mut piece) {
                to.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..len]));
            }
        });
        Self { child, keys, shown }
    }

    /// Waits until all of `texts` are on the screen.
    fn wait_for(&self, texts: &[&str]) {
        wait_until(&format!("{texts:?}"), || {
            let shown = shown_after(&self.shown.lock().unwrap());
            texts.iter().all(|text| shown.contains(text))
        });
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a terminal shows after `text`: text goes where the cursor is, and a command moves the cursor
/// or clears the screen; other commands (colours, modes) change nothing that is read here.
fn shown_after(text: &str) -> String {
    let mut screen = vec![[' '; COLUMNS]; ROWS];
    let (mut row, mut column) = (0, 0);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\x1b' {
            if let Some(cell) = screen.get_mut(row).and_then(|line| line.get_mut(column)) {
                *cell = c;
            }
            column += 1;
            continue;
        }
        if rest.next() != Some('[') {
            continue;
        }
        let mut numbers = String::new();
        let command = rest.by_ref().find(|c| {
            let is_command = c.is_ascii_alphabetic();
            if !is_command {
                numbers.push(*c);
            }
            is_command
        });
        match command {
            Some('H') => {
                let mut at = numbers.split(';').map(|n| n.parse::<usize>().unwrap_or(1) - 1);
                (row, column) = (at.next().unwrap_or(0), at.next().unwrap_or(0));
            }
            Some('J') => screen.iter_mut().for_each(|line| line.fill(' ')),
            _ => {}
        }
    }
    let lines = screen.into_iter().map(|line| line.into_iter().collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_screen_follows_the_keys() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let mut screen = Screen::start(&place, &["top", "--every", "200"]);
    screen.wait_for(&["faces by packets", "shards busy", "q end"]);
    screen.press("3");
    screen.wait_for(&["tables and drops", "content store", "Dropped packets"]);
    screen.press("4");
    screen.wait_for(&["The push half is off here"]);
    screen.press("?");
    screen.wait_for(&["packets marked for congestion"]);
    screen.press("w");
    screen.wait_for(&["what slows this node down"]);
    screen.press("1s");
    screen.wait_for(&["faces by in"]);
    screen.press("\r");
    screen.wait_for(&["remote", "round trip"]);
    screen.press("p");
    screen.wait_for(&["PAUSED"]);
    screen.press("q");
    let mut ended = None;
    wait_until("the end of top", || {
        ended = screen.child.try_wait().unwrap();
        ended.is_some()
    });
    assert!(ended.unwrap().success());
}

#[test]
fn one_second_of_traffic_is_told_with_prefixes_and_round_trips() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    std::fs::write(place.path("file"), vec![7; 4_000_000]).unwrap();
    let _put = place.put(&["/videos/one", "file"]);
    let told = thread::scope(|scope| {
        let top = scope.spawn(|| {
            let mut told = Value::Null;
            wait_until("a second with traffic", || {
                told = place.json(&["top", "--once", "--every", "1000"]);
                told["prefixes"].as_array().is_some_and(|rows| !rows.is_empty())
                    && told["faces"].as_array().unwrap().iter().any(|f| !f["rtt_us"].is_null())
            });
            told
        });
        while !top.is_finished() {
            let got = place.run(&["get", "/videos/one", "-o", "copy"]);
            assert_eq!(got.code, 0, "{}", got.err);
        }
        top.join().unwrap()
    });
    let row = &told["prefixes"][0];
    assert_eq!(row["prefix"], "/videos/one", "{row}");
    assert!(row["interests"].as_f64().unwrap() > 0.0, "{row}");
    let faces = told["faces"].as_array().unwrap();
    assert!(faces.iter().any(|face| face["in_packets"].as_f64().unwrap() > 0.0));
    assert!(told["node"]["pit"]["entries_max"].as_u64().unwrap() > 0);
    assert!(told["interval_ms"].as_u64().unwrap() >= 900);
}

/// A producer that does not answer is named, and a terminal is asked for where there is none.
#[test]
fn what_slows_a_node_down_is_said_in_sentences() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let quiet = place.run(&["top", "--why"]);
    assert!(quiet.out.starts_with("Nothing: "), "{}{}", quiet.out, quiet.err);
    let live = place.run(&["doctor", "--live"]);
    assert_eq!((live.code, live.out), (0, quiet.out), "another entrance to the same");
    assert_eq!(place.json(&["doctor", "--live"]), serde_json::json!([]));
    let no_terminal = place.run(&["top"]);
    assert_eq!(no_terminal.code, 2, "{}", no_terminal.err);
    assert!(no_terminal.err.contains("--once"), "{}", no_terminal.err);
}

/// An application of the node of `place` that speaks for itself.
fn application(place: &Place) -> UnixStream {
    let stream = UnixStream::connect(place.path("nfd.sock")).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// An Interest that lasts for so long.
fn interest(name: &str, lifetime_ms: u64) -> Vec<u8> {
    let (name, mut wire) = (name.parse::<Name>().unwrap(), Vec::new());
    let (nonce, lifetime_ms) = (Some([7; 4]), Some(lifetime_ms));
    InterestBuilder { nonce, lifetime_ms, ..InterestBuilder::new(name.as_ref()) }.write(&mut wire);
    wire
}

/// Writes what the node takes.
fn push(mut stream: &UnixStream, wire: &[u8]) {
    let mut left = wire;
    // Half a packet would end the face.
    while !left.is_empty() {
        match stream.write(left) {
            Ok(written) => left = &left[written..],
            Err(_) if left.len() == wire.len() => return,
            Err(_) => thread::yield_now(),
        }
    }
}

/// Reads what there is.
fn discard(mut stream: &UnixStream) {
    let mut octets = [0; 1 << 16];
    while stream.read(&mut octets).is_ok_and(|n| n > 0) {}
}

/// Ends what waits for it, also where a test fails.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Law: what slows a node down is named, each thing by its rule, when it happens: more datagrams
/// than are read, a shard without a pause, a producer that is silent, a table and a queue that are
/// full, a cache that keeps nothing long enough, a face whose other end is away, packets that are not sent.
// One node with everything wrong at the same time.
#[allow(clippy::too_many_lines)]
#[test]
fn each_reason_is_named_when_it_happens() {
    let place = Place::new();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = own.local_addr().unwrap().port();
    drop(own);
    let silent_uri = format!("udp4://{}", silent.local_addr().unwrap());
    let narrow = UdpSocket::bind("127.0.0.1:0").unwrap();
    let narrow_uri = format!("udp4://{}", narrow.local_addr().unwrap());
    // Nobody listens there.
    let away_uri = format!("tcp4://127.0.0.1:{port}");
    let faces = format!(
        "face=[{{uri=\"{away_uri}\",persistency=\"permanent\"}},{{uri=\"{silent_uri}\"}},\
         {{uri=\"{narrow_uri}\",mtu=64}}]"
    );
    let listen = format!("faces.udp.listen=127.0.0.1:{port}");
    let _daemon = place.daemon(&[
        &listen,
        "faces.udp.multicast=[]",
        "faces.udp.receive_buffer_bytes=4096",
        "faces.queue_bytes_max=100000",
        "faces.hold_ms=60000",
        "pit.entries_max=64",
        "cs.packets_max=20",
        "tables.rib_routes_max=4",
        &faces,
    ]);
    std::fs::write(place.path("file"), vec![7; 1_000_000]).unwrap();
    let _put = place.put(&["/film/v=1", "file"]);
    assert_eq!(place.run(&["route", "add", "/gone", "--via", &silent_uri]).code, 0);
    assert_eq!(place.run(&["route", "add", "/third", "--via", &silent_uri]).code, 0);
    assert_eq!(place.run(&["route", "add", "/long", "--via", &narrow_uri]).code, 0);

    let over = AtomicBool::new(false);
    let goes_on = || !over.load(Ordering::Relaxed);
    let idle = application(&place);
    thread::scope(|scope| {
        let _over = SetAtEnd(&over);
        // More datagrams than there is room for.
        scope.spawn(|| {
            let from = UdpSocket::bind("127.0.0.1:0").unwrap();
            let wire = interest("/nobody", 10);
            while goes_on() {
                let _ = from.send_to(&wire, ("127.0.0.1", port));
            }
        });
        // More Interests than a shard forwards.
        scope.spawn(|| {
            let app = application(&place);
            let wire = interest("/nobody", 10).repeat(1000);
            while goes_on() {
                push(&app, &wire);
                discard(&app);
            }
        });
        // Interests that are longer than all fragments that a packet may have on their face.
        scope.spawn(|| {
            let app = application(&place);
            for number in (0..).take_while(|_| goes_on()) {
                push(&app, &interest(&format!("/long/{number}/{}", "x".repeat(8000)), 20));
                thread::sleep(Duration::from_millis(2));
            }
        });
        // Interests that nobody answers: some that fill the table, some that end soon.
        scope.spawn(|| {
            let (long, short) = (application(&place), application(&place));
            for number in (0..).take_while(|_| goes_on()) {
                push(&long, &interest(&format!("/gone/{number}"), 60_000));
                push(&short, &interest(&format!("/third/{number}"), 20));
                thread::sleep(Duration::from_millis(2));
            }
        });
        // Who asks for much, and reads nothing.
        for segment in 0..100 {
            push(&idle, &interest(&format!("/film/v=1/seg={segment}"), 60_000));
        }
        // More content than fits the store, and some of it twice.
        scope.spawn(|| {
            let app = application(&place);
            for segment in (0..120).cycle().take_while(|_| goes_on()) {
                let wire = interest(&format!("/film/v=1/seg={segment}"), 100);
                push(&app, &wire);
                thread::sleep(Duration::from_millis(2));
                discard(&app);
                if segment % 30 == 0 {
                    push(&app, &wire);
                }
            }
        });
        // With what each names.
        let wanted = [
            ("cache", ""),
            ("face_down", &away_uri[..]),
            ("losses", &narrow_uri),
            ("pit", ""),
            ("queue", "application"),
            ("receive", ""),
            ("routes", ""),
            ("shard", ""),
            ("silent", &silent_uri),
        ];
        let (mut missing, mut turn) = (wanted.to_vec(), 0);
        let end = Instant::now() + support::PATIENCE;
        while !missing.is_empty() && Instant::now() < end {
            // Where the table is full the question may be refused, too.
            // Both commands are told the same.
            let asked = [&["top", "--why", "--json"][..], &["doctor", "--live", "--json"]];
            turn += 1;
            let told = place.run(asked[turn % 2]);
            let told = serde_json::from_str::<Value>(&told.out).unwrap_or_default();
            let is_told = |rule: &str, of: &str| {
                let mut reasons = told.as_array().into_iter().flatten();
                reasons.any(|r| r["rule"] == rule && r["sentence"].as_str().unwrap().contains(of))
            };
            missing.retain(|(rule, of)| !is_told(rule, of));
        }
        assert!(missing.is_empty(), "{missing:?}");
    });
}

/// Law: a node whose PIT is full says so to whoever orders something, and not that a right is missing.
/// Questions say the same after seven tries: a test of `session`.
#[test]
fn a_full_table_of_pending_interests_is_told_as_that() {
    let place = Place::new();
    // Kept, so that what was sent to it stays unanswered and is not refused.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent_uri = format!("udp4://{}", silent.local_addr().unwrap());
    let _daemon = place.daemon(&["pit.entries_max=64", "faces.udp.listen=127.0.0.1:0"]);
    assert_eq!(place.run(&["route", "add", "/gone", "--via", &silent_uri]).code, 0);
    // One each, so that nobody has more than its share.
    let fill = |number| {
        let app = application(&place);
        push(&app, &interest(&format!("/gone/{number}"), 600_000));
        app
    };
    let _apps: Vec<_> = (0..80).map(fill).collect();
    let mut told = String::new();
    wait_until("the table is full", || {
        told = place.run(&["route", "add", "/more", "--via", &silent_uri]).err;
        !told.is_empty()
    });
    assert!(told.contains("Nack, reason Congestion"), "{told}");
    assert!(told.contains("`pit_full`") && told.contains("pit.entries_max"), "{told}");
    assert!(!told.contains("own machine") && !told.contains("authorize"), "{told}");
}

/// Law: what a filter of `onym top` shows is looked for among all faces, not among those that are told
/// without it; how many there are is said.
#[test]
fn a_filter_finds_a_face_that_is_not_among_the_first() {
    let place = Place::new();
    let uri = |port| format!("udp4://127.0.0.1:{port}");
    let faces: Vec<_> = (1..=20).map(|port| format!("{{uri=\"{}\"}}", uri(port))).collect();
    let faces = format!("face=[{}]", faces.join(","));
    let _daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0", &faces]);
    let first = ["top", "--once", "--every", "200", "--faces", "1", "--order", "face"];
    let of = |filter: &[&str]| place.json(&[&first[..], filter].concat());
    let all = of(&[]);
    assert_eq!(all["faces"].as_array().unwrap().len(), 1);
    assert_ne!(all["faces"][0]["uri"], uri(13), "another one is the first");
    assert_eq!(all["faces_found"], all["faces_count"]);
    let found = of(&["--filter", &uri(13)]);
    assert_eq!(found["faces"][0]["uri"], uri(13));
    assert_eq!(found["faces_found"], Value::Null, "no other one has it");
    assert_eq!(found["faces_count"], all["faces_count"], "of {all}");
    let none = of(&["--filter", "a&b=%26"]);
    assert_eq!(none["faces"], serde_json::json!([]), "no key of the question");

    // The fourth viewer: no more are answered at a time.
    let count = &all["faces_count"];
    let mut screen = Screen::start(&place, &["top", "--every", "200", "--faces", "1"]);
    screen.wait_for(&[&format!("the first 1 of {count}")]);
    screen.press("/127.0.0.1:13");
    screen.wait_for(&[&uri(13), &format!("1 with 127.0.0.1:13, of {count}")]);
}

/// Law: what slows a node down is looked for at all of its faces, in the terminal and on the page: one
/// that is down behind more faces than are ever listed is named, and of many the others are counted.
#[test]
fn a_reason_is_found_at_a_face_that_is_not_among_the_first() {
    let place = Place::new();
    let well = (1..=520).map(|port| format!("{{uri=\"udp4://127.0.0.1:{port}\"}}"));
    // Ports at which nobody listens.
    let down = (1..=25)
        .map(|port| format!("{{uri=\"tcp4://127.0.0.1:{port}\",persistency=\"permanent\"}}"));
    let faces = format!("face=[{}]", well.chain(down).collect::<Vec<_>>().join(","));
    let _daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0", &faces]);
    for command in [&["top", "--why"][..], &["doctor", "--live"]] {
        let told = place.run(command);
        assert!(told.out.contains("(tcp4://127.0.0.1:1) is down"), "{}{}", told.out, told.err);
        assert_eq!(told.out.matches("is down").count(), 20, "{}", told.out);
        assert!(told.out.ends_with("The same holds for 5 further faces.\n"), "{}", told.out);
    }
    let mut screen = Screen::start(&place, &["top", "--every", "200", "--faces", "1"]);
    screen.wait_for(&["the first 1 of "]);
    screen.press("w");
    screen.wait_for(&["(tcp4://127.0.0.1:1) is down"]);
}
