//! Functions are scaled under the traffic of real clients.

#![allow(clippy::unwrap_used)]

mod support;

use onym_sys::port::unused;
use serde_json::Value;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use support::managed::{End, Managed, good_consumer};
use support::{noise, wait_until};

/// Data that pass before the next change.
const PASSED: u64 = 400;

/// Drained links that one Interest crosses at most.
const LINKS: u64 = 3;

/// Interests of one name that came more than once to routers with a pending table: of all of them
/// one Data returns. A machine that stands still for a while makes clients ask again, and between
/// the new link and the end of the old one an Interest takes both.
fn repeated(view: &Value) -> u64 {
    let of = |stats: &Value| -> u64 {
        let counted = ["aggregated", "suppressed", "retransmitted", "loops"];
        counted.iter().filter_map(|word| stats["backward_router"][word].as_u64()).sum()
    };
    let functions = view["functions"].as_object().into_iter().flatten();
    functions.map(|(_, function)| of(&function["stats"])).sum()
}

/// Changes the network while `edge` passes Data: nothing is lost by it, and traffic goes on.
fn change(managed: &Managed, edge: &str, words: &[&str]) {
    let passed =
        |view: &Value| view["functions"][edge]["stats"]["sent"]["data"].as_u64().unwrap_or(0);
    let before = managed.net(&["show"]);
    let done = managed.net(words);
    assert_eq!(done["counters"]["lost"], 0, "{words:?}: {done}");
    let unanswered = done["counters"]["unanswered"].as_u64().unwrap();
    let asked_again = repeated(&before).max(repeated(&managed.net(&["show"])));
    assert!(unanswered <= LINKS * asked_again, "{words:?}: asked again {asked_again}: {done}");
    let begun = passed(&before);
    wait_until("traffic goes on", || passed(&managed.net(&["show"])) > begun + PASSED);
}

#[test]
fn nothing_is_lost_while_a_function_is_scaled_out_and_in_under_traffic() {
    let managed = Managed::new();
    let place = &managed.place;
    let ports = unused(2).unwrap();
    let preset = place.run(&["net", "preset", "scaling", "--print"]).out;
    let text = preset
        .replace(":6362\"", &format!(":{}\"", ports[0]))
        .replace(":6363\"", &format!(":{}\"", ports[1]))
        .replace("quota = 0.67\n", "");
    managed.apply(&format!("{text}\n[policies.scaling]\nenabled = false\n"));
    let content = noise(100_000, 4);
    fs::write(place.path("good"), &content).unwrap();
    let (asks, answers) =
        (format!("tcp4://127.0.0.1:{}", ports[0]), format!("tcp4://127.0.0.1:{}", ports[1]));
    let _put = place.put(&["/example/good", "good", "--node", &answers]);
    let (over, wrong) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| good_consumer(place, &asks, &content, &over, &wrong));
        let end = End(&over);
        for instances in ["2", "3", "1"] {
            change(&managed, "cs", &["scale", "br", instances]);
        }
        // The same holds while a function is put into the chain and taken away.
        for strategy in ["make-before-break", "break-and-buffer"] {
            let insert = ["insert", "br", "nr", "nf", "name-filter", "--strategy", strategy];
            change(&managed, "cs", &insert);
            change(&managed, "cs", &["remove", "nf", "--strategy", strategy]);
        }
        drop(end);
    });
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
    // At the router that was there all along, what was asked was answered.
    let view = managed.net(&["show"]);
    let router = &view["functions"]["br"]["stats"]["backward_router"];
    assert_eq!(router["expired"], 0, "{router}");
    assert_eq!(router["evicted"], 0, "{router}");
}

/// Each kind that can be cloned, in one chain between a filter and a router that others reach.
fn long_chain(asks: &str, answers: &str) -> String {
    format!(
        r#"
network = "long"
links = ["nf -> cs -> sv -> br -> nr -> br2 -> edge"]

[functions.nf]
kind = "name-filter"
listen = "{asks}"

[functions.cs]
kind = "content-store"
scalable = true
config = {{ capacity = 60 }}

[functions.sv]
kind = "signature-verifier"
scalable = true
config = {{ no_key_drop = false, unsigned_drop = false }}

[functions.br]
kind = "backward-router"

[functions.nr]
kind = "name-router"
scalable = true

[functions.br2]
kind = "backward-router"

[functions.edge]
kind = "name-router"
listen = {{ producer = ["{answers}"] }}
config = {{ registration = "open" }}

[policies.scaling]
enabled = false
[policies.poisoning]
enabled = false
"#
    )
}

#[test]
fn a_cache_a_verifier_and_a_router_are_scaled_under_traffic_and_nothing_is_lost() {
    let managed = Managed::new();
    let place = &managed.place;
    let ports = unused(2).unwrap();
    let (asks, answers) =
        (format!("tcp4://127.0.0.1:{}", ports[0]), format!("tcp4://127.0.0.1:{}", ports[1]));
    managed.apply(&long_chain(&asks, &answers));
    // More packets than the cache keeps, so that all functions are crossed.
    let content = noise(100_000, 6);
    fs::write(place.path("good"), &content).unwrap();
    let words = ["/example/good", "good", "--segment-size", "1000", "--node", &answers];
    let _put = place.put(&words);
    let (over, wrong) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| good_consumer(place, &asks, &content, &over, &wrong));
        let end = End(&over);
        for instances in ["2", "1"] {
            for name in ["cs", "sv", "nr"] {
                change(&managed, "nf", &["scale", name, instances]);
            }
            let view = managed.net(&["show"]);
            let clones = ["cs.1", "sv.1", "nr.1"].map(|n| !view["functions"][n].is_null());
            assert_eq!(clones, [instances == "2"; 3], "{instances}");
        }
        drop(end);
    });
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
}
