//! A cache is poisoned with packets of real clients, and the manager defends it.

#![allow(clippy::unwrap_used)]

mod support;

use onym_sys::port::unused;
use serde_json::Value;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::managed::{End, Managed, good_consumer};
use support::{Place, noise, wait_until};

/// Lookups after which a hit ratio says something.
const LOOKUPS: u64 = 400;

/// Time after which who asks for fakes begins again.
const ATTACK_AGAIN: Duration = Duration::from_millis(300);

/// As in the paper's Fig. 6, and a second cache on the producer side, so that the verifier has
/// somewhere nearer to go.
fn network(ports: &[u16], certificate: &str) -> String {
    format!(
        r#"
network = "poisoning"
links = ["cs1 -> nr", "cs2 => nr", "cs3 => nr"]

[functions.cs1]
kind = "content-store"
listen = "tcp4://127.0.0.1:{}"
config = {{ capacity = 150 }}

[functions.nr]
kind = "name-router"
config = {{ registration = "open" }}

[functions.cs2]
kind = "content-store"
listen = "tcp4://127.0.0.1:{}"
config = {{ capacity = 0 }}

[functions.cs3]
kind = "content-store"
listen = "tcp4://127.0.0.1:{}"
config = {{ capacity = 0 }}

[keys."/good/KEY/1"]
certificate = "{certificate}"
prefixes = ["/example"]

[policies.poisoning]
period_ms = 500
lookups_min = 20
samples = 1
clean_periods = 4
"#,
        ports[0], ports[1], ports[2]
    )
}

fn at(port: u16) -> String {
    format!("tcp4://127.0.0.1:{port}")
}

/// The certificate of a new key, as one line.
fn new_key(place: &Place) -> String {
    place.json(&["key", "new", "/good", "--id", "1"]);
    let text = place.run(&["cert", "export", "/good"]).out;
    text.split_whitespace().collect()
}

fn events(managed: &Managed, kind: &str) -> Vec<Value> {
    let said = managed.place.run(&["net", "--manager", &managed.url, "events", "--json"]).out;
    let all = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|e| e["kind"] == kind).collect()
}

fn linked(managed: &Managed, from: &str, to: &str) -> bool {
    let view = managed.net(&["show"]);
    let mut links = view["links"].as_array().into_iter().flatten();
    links.any(|l| l["from"] == from && l["to"] == to && l["state"] == "up")
}

/// Hits and misses of the consumers' cache.
fn lookups(managed: &Managed) -> (u64, u64) {
    let view = managed.net(&["show"]);
    let store = &view["functions"]["cs1"]["stats"]["content_store"];
    (store["hits"].as_u64().unwrap_or(0), store["misses"].as_u64().unwrap_or(0))
}

/// The hit ratio of the next lookups.
fn ratio(managed: &Managed, meanwhile: &mut dyn FnMut()) -> f64 {
    let (hits, misses) = lookups(managed);
    let mut ratio = 0.0;
    wait_until("some lookups", || {
        meanwhile();
        let now = lookups(managed);
        let (hit, all) = (now.0 - hits, now.0 + now.1 - hits - misses);
        #[allow(clippy::cast_precision_loss)]
        {
            ratio = hit as f64 / all.max(1) as f64;
        }
        all >= LOOKUPS
    });
    ratio
}

/// The hit ratio of lookups under attack: the first ones may be before it has begun.
fn ratio_under(managed: &Managed, before: f64, attack: &mut dyn FnMut()) -> f64 {
    let mut during = before;
    wait_until("the attack shows", || {
        during = ratio(managed, attack);
        during < 0.8 * before
    });
    during
}

#[test]
fn fakes_that_evict_a_cache_meet_a_verifier_that_moves_toward_them_and_goes_when_they_end() {
    let managed = Managed::new();
    let place = &managed.place;
    let certificate = new_key(place);
    let ports = unused(3).unwrap();
    managed.apply(&network(&ports, &certificate));
    let (asks, left, right) = (at(ports[0]), at(ports[1]), at(ports[2]));
    let (content, other, fakes) = (noise(100_000, 1), noise(5_000, 2), noise(1_500_000, 3));
    for (name, octets) in [("good", &content), ("other", &other), ("fakes", &fakes)] {
        fs::write(place.path(name), octets).unwrap();
    }
    let put = |name: &str, file: &str, node: &str, more: &[&str]| {
        let mut words = vec![name, file, "--segment-size", "1000", "--node", node];
        words.extend(more);
        place.put(&words)
    };
    let _good = put("/example/good", "good", &left, &["--key", "/good", "--sign-ahead"]);
    let _other = put("/example/other", "other", &right, &["--key", "/good"]);
    let (over, wrong) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| good_consumer(place, &asks, &content, &over, &wrong));
        let end = End(&over);
        let begun = Instant::now();
        let mut before = 0.0;
        wait_until("a cache that answers nearly all", || {
            before = ratio(&managed, &mut || {});
            before > 0.9 && begun.elapsed() > Duration::from_secs(3)
        });
        assert!(events(&managed, "alarm").is_empty(), "nothing is wrong yet");

        // One who answers under the same prefix, and one who asks for it.
        let _bad = put("/example/fake", "fakes", &left, &[]);
        let mut pollutes: Option<(Instant, support::Running)> = None;
        // One that gets no answer asks ever more slowly: another goes on in its place.
        let mut attack = || {
            let tired = |(since, get): &mut (Instant, support::Running)| {
                since.elapsed() > ATTACK_AGAIN || !get.runs()
            };
            if pollutes.as_mut().is_none_or(tired) {
                let words = ["get", "/example/fake", "-o", "fake.out", "--node", &asks, "-q"];
                pollutes = Some((Instant::now(), place.start(&words)));
            }
        };
        let during = ratio_under(&managed, before, &mut attack);
        wait_until("the alarm", || {
            attack();
            !events(&managed, "alarm").is_empty()
        });
        wait_until("the verifier before the cache of who sends fakes", || {
            attack();
            linked(&managed, "cs2", "cs1.sv1") && linked(&managed, "cs1.sv1", "nr")
        });
        assert_eq!(events(&managed, "moving").len(), 1);
        assert!(linked(&managed, "cs1", "nr"), "what it left is joined again");
        let mut after = 0.0;
        wait_until("the hit ratio as before", || {
            after = ratio(&managed, &mut attack);
            after > 0.95 * before
        });
        let view = managed.net(&["show"]);
        let verifier = &view["functions"]["cs1.sv1"]["stats"]["signature_verifier"];
        assert!(verifier["unsigned"].as_u64() > Some(0), "it met fakes: {verifier}");
        println!("hit ratio: {before:.3} before, {during:.3} during, {after:.3} with a verifier");

        // What comes by the other way is not verified, and what is signed passes.
        place.json(&["get", "/example/other", "-o", "other.out", "--node", &asks]);
        drop(pollutes.take());
        wait_until("the verifier gone", || linked(&managed, "cs2", "nr"));
        assert_eq!(events(&managed, "all-clear").len(), 1);
        drop(end);
    });
    assert_eq!(wrong.load(Ordering::Relaxed), 0, "who asks for what is signed always gets it");
    managed.wait_settled();
}
