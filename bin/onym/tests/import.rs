//! `onym import`: what it writes is a configuration that a node takes.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use support::{Place, Running, wait_until};

const NFD: &str = "\
general { user ndn }
tables {
  cs_max_packets 77
  strategy_choice { /slow /localhost/nfd/strategy/multicast }
}
face_system {
  unix { path imported.sock }
}
authorizations { authorize { certfile any
 privileges { faces
 rib } } }
";

#[test]
fn a_node_runs_with_what_was_imported_from_nfd() {
    let place = Place::new();
    fs::write(place.path("nfd.conf"), NFD).unwrap();
    let told = place.run(&["import", "nfd.conf", "-o", "onym.toml"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.out.contains("line 1: general.user is not carried over"), "{}", told.out);
    assert!(told.out.contains("certfile any is not carried over"), "{}", told.out);
    let again = place.run(&["import", "nfd.conf", "-o", "onym.toml"]);
    assert_eq!(again.code, 1, "a file that is there stays: {}", again.out);

    let node = Running::start(&mut place.command(&["daemon", "--config", "onym.toml"]));
    wait_until("it is ready", || node.err.text().contains("ready"));
    let uri = format!("unix://{}", place.path("imported.sock").display());
    let cs = place.json(&["--node", &uri, "cs", "info"]);
    assert_eq!(cs["capacity"], 77, "{cs}");
    let strategies = place.run(&["--node", &uri, "strategy", "list"]);
    assert!(strategies.out.contains("/slow"), "{}", strategies.out);
}

#[test]
fn a_value_that_no_node_takes_is_refused_and_says_what_next() {
    let place = Place::new();
    fs::write(place.path("nfd.conf"), "tables { cs_policy random }\n").unwrap();
    let refused = place.run(&["import", "nfd.conf"]);
    assert_eq!(refused.code, 1, "{}", refused.out);
    assert!(
        refused.err.contains("policy = \"random\"") && refused.err.contains("next:"),
        "{}",
        refused.err
    );
    fs::write(place.path("yanfd.yml"), "- ".repeat(500_000)).unwrap();
    let refused = place.run(&["import", "yanfd.yml"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("nested deeper than 16"), "{}", refused.err);
    assert_eq!(place.run(&["import", "nowhere.conf"]).code, 1);
}
