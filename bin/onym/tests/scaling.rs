//! Functions are scaled under the traffic of real clients.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use support::managed::{End, Managed, free_ports, good_consumer};
use support::{noise, wait_until};

/// Data that pass before the next change.
const PASSED: u64 = 400;

#[test]
fn nothing_is_lost_while_a_function_is_scaled_out_and_in_under_traffic() {
    let managed = Managed::new();
    let place = &managed.place;
    let ports = free_ports(2);
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
            let before = managed.net(&["show"])["functions"]["cs"]["stats"]["sent"]["data"].clone();
            let done = managed.net(&["scale", "br", instances]);
            assert_eq!(done["counters"]["lost"], 0, "{instances}: {done}");
            assert_eq!(done["counters"]["unanswered"], 0, "{instances}: {done}");
            wait_until("traffic goes on", || {
                let now = &managed.net(&["show"])["functions"]["cs"]["stats"]["sent"]["data"];
                now.as_u64() > before.as_u64().map(|n| n + PASSED)
            });
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
