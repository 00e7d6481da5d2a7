//! Two managers that stand by for each other by a real etcd.

#![allow(clippy::unwrap_used)]

mod support;

use onym_etcd::testing::Local;
use serde_json::Value;
use std::fs;
use support::managed::Managed;
use support::{Running, noise, wait_until};

fn second(managed: &Managed, etcd: &str) -> (Running, String) {
    let mut manager = managed.place.start(&Managed::words(&["--etcd", etcd, "--lease-s", "2"]));
    let url = Managed::url_of(&mut manager);
    (manager, url)
}

fn health(url: &str) -> Value {
    let client = onym_http::client::Client::of_url(url, None, std::time::Duration::from_secs(10));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (method, body) = (onym_http::client::Method::GET, onym_http::client::Body::None);
    runtime.block_on(client.unwrap().ask(method, "/v1/health", body)).unwrap()
}

#[test]
fn a_stand_by_takes_over_from_a_killed_manager_while_a_transfer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some(local) = Local::start(folder.path()) else { return };
    let mut managed = Managed::with(&["--etcd", &local.url(), "--lease-s", "2"]);
    wait_until("the first one leads", || health(&managed.url)["leads"] == true);
    let (other, other_url) = second(&managed, &local.url());
    wait_until("the second one knows", || health(&other_url)["leader"] == *managed.url);

    managed.apply_chain();
    let content = noise(4_000_000, 21);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    managed.fetches("/example/file", &content);
    let names = ["pd", "cs", "br", "nr"];
    let before: Vec<String> = names.iter().map(|n| managed.pid(n)).collect();

    // Asked for a change, the one that stands by names the other; the client follows.
    let first_url = std::mem::replace(&mut managed.url, other_url);
    assert_eq!(managed.net(&["show"])["functions"].as_object().unwrap().len(), 4);

    let _ = fs::remove_file(managed.place.path("out"));
    let mut get = managed.place.start(&["get", "/example/file", "-o", "out"]);
    let mut leader = managed.manager.replace(other).unwrap();
    leader.kill();
    wait_until("the second one leads", || health(&managed.url)["leads"] == true);
    assert_eq!(get.end(), Some(0), "{}", get.err.text());
    assert!(fs::read(managed.place.path("out")).unwrap() == content);
    managed.wait_settled();
    let after: Vec<String> = names.iter().map(|n| managed.pid(n)).collect();
    assert_eq!(after, before, "what ran is adopted, nothing is started again");

    // It acts: what is killed comes back, and what is asked for is done.
    let victim = managed.pid("cs");
    assert!(std::process::Command::new("kill").args(["-9", &victim]).status().unwrap().success());
    wait_until("its replacement", || {
        let new = managed.pid("cs");
        !new.is_empty() && new != victim
    });
    managed.wait_settled();
    managed.fetches("/example/file", &content);

    // One that comes back stands by, and finds the leader named.
    let (_again, again_url) = second(&managed, &local.url());
    assert_ne!(again_url, first_url);
    wait_until("it stands by", || health(&again_url)["leader"] == *managed.url);
    managed.net(&["down"]);
}

#[test]
fn an_etcd_that_is_away_is_said_and_services_forward_on_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut local) = Local::start(folder.path()) else { return };
    let managed = Managed::with(&["--etcd", &local.url(), "--lease-s", "2"]);
    wait_until("it leads", || health(&managed.url)["leads"] == true);
    managed.apply_chain();
    let content = noise(100_000, 22);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    managed.fetches("/example/file", &content);
    local.kill();
    wait_until("it does not lead", || health(&managed.url)["leads"] == false);
    let refused = managed.place.run(&["net", "--manager", &managed.url, "down"]);
    assert!(refused.code != 0 && refused.err.contains("no manager leads"), "{}", refused.err);
    managed.fetches("/example/file", &content);
    assert!(local.up());
    wait_until("it leads again", || health(&managed.url)["leads"] == true);
    managed.fetches("/example/file", &content);
    managed.net(&["down"]);
    let nobody = ["manager", "--listen", "127.0.0.1:0", "--etcd", "http://127.0.0.1:1"];
    let ended = managed.place.run(&nobody);
    assert!(ended.code == 1 && ended.err.contains("etcd"), "{}", ended.err);
}
