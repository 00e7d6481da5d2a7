//! A folder that an encoder writes, watched by many.

#![allow(clippy::unwrap_used)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};
use support::http::{Gateway, ask};
use support::{Place, Running, noise, wait_until};

/// A playlist on its way: under another name until it is whole, as ffmpeg writes it.
fn write(place: &Place, name: &str, content: impl AsRef<[u8]>) {
    let (whole, begun) = (place.path(name), place.path(&format!("{name}.tmp")));
    fs::write(&begun, content).unwrap();
    fs::rename(begun, whole).unwrap();
}

/// Interests that the node sent on so far; its datasets would be a second old.
fn sent_on(metrics: &str) -> u64 {
    let page = ask(metrics, "GET", "/metrics", &[]);
    let page = String::from_utf8(page.body).unwrap();
    let is_it = |line: &&str| {
        line.starts_with("onym_packets_total{")
            && line.contains("\"forwarded\"")
            && line.contains("\"interest\"")
    };
    page.lines().find(is_it).unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

fn signal(process: &Running, signal: Signal) {
    kill_process(Pid::from_raw(process.pid().cast_signed()).unwrap(), signal).unwrap();
}

/// Law: viewers share. A segment leaves its producer once, whoever asks for it and how often; once
/// files have stood for a while, further viewers cost it nothing at all. A playlist that changes is
/// seen changed all the same.
#[test]
fn viewers_of_one_stream_share_interests() {
    let place = Place::new();
    let [port] = onym_sys::port::unused(1).unwrap()[..] else { unreachable!() };
    let metrics = format!("127.0.0.1:{port}");
    let _daemon = place.daemon(&[&format!("metrics.listen={metrics}")]);
    fs::create_dir_all(place.path("live")).unwrap();
    let files = ["chunk-1.m4s", "chunk-2.m4s", "chunk-3.m4s"];
    for (file, seed) in files.iter().zip(1..) {
        write(&place, &format!("live/{file}"), noise(30_000, seed));
    }
    let playlist = |last: usize| files[..last].join("\n");
    write(&place, "live/live.m3u8", playlist(2));
    let mut video = place.start(&["video", "live", "/alice/live"]);
    video.wait_for("ready: ");
    // Each has a gateway of its own, so that what is shared is shared in the node.
    let viewers = [(); 3].map(|()| Gateway::start(&place, &[]));
    let look = |file: &str| -> Vec<Vec<u8>> {
        let path = format!("/ndn/alice/live/{file}");
        let answers = viewers.iter().map(|viewer| viewer.get(&path, &[]));
        answers.inspect(|a| assert_eq!(a.status, 200, "{file}")).map(|a| a.body).collect()
    };
    let watch = || {
        for (file, seed) in files.iter().zip(1..) {
            assert!(look(file).iter().all(|body| *body == noise(30_000, seed)), "{file}");
        }
    };
    watch();
    let mut rounds = 1;
    wait_until("a round of all viewers costs the producer no Interest", || {
        let before = sent_on(&metrics);
        watch();
        rounds += 1;
        sent_on(&metrics) == before
    });
    assert!(look("live.m3u8").iter().all(|body| body == playlist(2).as_bytes()));
    write(&place, "live/live.m3u8", playlist(3));
    let (changed, expected) = (Instant::now(), playlist(3));
    wait_until("all see the playlist changed", || {
        look("live.m3u8").iter().all(|body| body == expected.as_bytes())
    });
    // A second at most, and what a busy machine takes for three requests.
    assert!(changed.elapsed() < Duration::from_secs(10), "{:?}", changed.elapsed());
    signal(&video, Signal::TERM);
    assert_eq!(video.end(), Some(0), "{}", video.err.text());
    let said = video.out.text();
    // Five segments of 6144 octets in each of three files, and one in each of two playlists.
    assert!(said.contains("stopped: 17 segments"), "after {rounds} rounds of 3 viewers: {said}");
}

/// Law: the push half announces a stream: who subscribed hears each state of the playlist without
/// asking, who comes later hears the newest, and through the gateway between the halves it is a name
/// that players read, whose node asks nobody.
#[test]
fn a_playlist_is_told_to_who_subscribed_and_is_a_name_for_who_did_not() {
    // The label has eight octets that read as a file: now.m3u8.
    let (item, name) = ("/1/6e6f772e6d337538", "/tv/now.m3u8");
    let place = Place::new();
    let _daemon =
        place.daemon(&["push.enabled=true", "gateway.map=[{prefix=\"/tv\", scope=\"/1\"}]"]);
    fs::create_dir_all(place.path("live")).unwrap();
    // Another user of the folder may have put these here.
    fs::write(place.path("secret"), "not for you").unwrap();
    symlink(place.path("secret"), place.path("live/soft")).unwrap();
    fs::hard_link(place.path("secret"), place.path("live/hard")).unwrap();
    write(&place, "live/now.m3u8", "state 1\n");
    let publish = ["soft=/1/2", "hard=/1/3", &format!("now.m3u8={item}")].map(str::to_owned);
    let publish = publish.iter().flat_map(|one| ["--publish", one]);
    let words: Vec<&str> = ["video", "live", "/alice/live"].into_iter().chain(publish).collect();
    let mut video = place.start(&words);
    video.wait_for("ready: ");
    let early = place.start(&["subscribe", item]);
    wait_until("the first state is heard", || early.out.text().contains("state 1"));
    let gateway = Gateway::start(&place, &[]);
    for state in ["state 2\n", "state 3\n"] {
        write(&place, "live/now.m3u8", state);
        wait_until("each state is heard", || early.out.text().contains(state.trim()));
        wait_until("the name has the newest", || {
            let answer = gateway.get(&format!("/ndn{name}"), &[]);
            let kind = "application/vnd.apple.mpegurl";
            answer.body == state.as_bytes() && answer.header("content-type") == kind
        });
    }
    let late = place.run(&["subscribe", item, "--count", "1", "--timeout", "60"]);
    assert!(late.out.contains("state 3"), "{}{}", late.out, late.err);
    for lent in ["/1/2", "/1/3"] {
        let nothing = place.run(&["subscribe", lent, "--count", "1", "--timeout", "0"]);
        assert_eq!((nothing.code, &*nothing.out), (5, ""), "{}", nothing.err);
    }
    let wrong = place.run(&["video", "live", "/alice/live", "--publish", "../x=/1/2"]);
    assert_eq!((wrong.code, wrong.err.contains("without ..")), (2, true), "{}", wrong.err);
    signal(&video, Signal::TERM);
    assert_eq!(video.end(), Some(0), "{}", video.err.text());
    let said = video.out.text();
    assert!(said.contains("stopped: 0 segments and 0 metadata sent"), "nobody asked: {said}");
}

/// Law: one command starts the encoder and serves what it writes, during and after; an encoder that
/// fails is told and fails the command, and none stays behind.
#[test]
fn the_encoder_is_started_watched_and_ended() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let script = "echo 1 >one; while [ ! -e go ]; do sleep 0.01; done; echo 2 >two; echo told";
    let words = ["video", "new/live", "/alice/live", "--", "sh", "-c", script];
    let mut video = place.start(&words);
    video.wait_for("ready: ");
    let get = |file: &str| place.run(&["get", &format!("/alice/live/{file}")]).out;
    wait_until("what is there is served while it runs", || get("one") == "1\n");
    fs::write(place.path("new/live/go"), "").unwrap();
    video.wait_for("sh has ended; its files are served until stopped");
    assert_eq!(get("two"), "2\n");
    assert!(video.err.text().contains("told") && !video.out.text().contains("told"));
    drop(video);

    let failed = place.run(&["video", "live", "/alice/live", "--", "sh", "-c", "exit 7"]);
    assert_eq!(failed.code, 1, "{}", failed.err);
    assert!(failed.err.contains("sh failed: exit status: 7"), "{}", failed.err);
    let missing = place.run(&["video", "live", "/alice/live", "--", "no-such-encoder"]);
    assert_eq!(missing.code, 1, "{}", missing.err);
    assert!(missing.err.contains("cannot start no-such-encoder"), "{}", missing.err);

    let script = "echo $$ >pid.tmp; mv pid.tmp pid; exec sleep 1000";
    let mut video = place.start(&["video", "live", "/alice/live", "--", "sh", "-c", script]);
    wait_until("the encoder runs", || place.path("live/pid").exists());
    let pid = fs::read_to_string(place.path("live/pid")).unwrap();
    signal(&video, Signal::INT);
    assert_eq!(video.end(), Some(0), "{}", video.err.text());
    assert!(!place.path(&format!("/proc/{}", pid.trim())).exists(), "it was ended");
}
