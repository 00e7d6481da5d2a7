//! The manager with real services as processes, and clients that know nothing of it.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use support::{Place, Running, noise, wait_until};

/// A manager on a port of its own; what it started ends with the test.
struct Managed {
    place: Place,
    manager: Option<Running>,
    url: String,
}

impl Managed {
    fn new() -> Self {
        let mut managed = Self { place: Place::new(), manager: None, url: String::new() };
        managed.start();
        managed
    }

    fn start(&mut self) {
        let mut manager = self.place.start(&[
            "manager",
            "--listen",
            "127.0.0.1:0",
            "--state",
            "state",
            "--watch-ms",
            "100",
        ]);
        manager.wait_for("ready {");
        let said = manager.err.text();
        let line = said.lines().find_map(|l| l.strip_prefix("ready ")).unwrap();
        let ready: Value = serde_json::from_str(line).unwrap();
        self.url = ready["url"].as_str().unwrap().to_owned();
        self.manager = Some(manager);
    }

    fn net(&self, args: &[&str]) -> Value {
        let mut all = vec!["net", "--manager", &self.url];
        all.extend(args);
        self.place.json(&all)
    }

    fn apply(&self, text: &str) {
        fs::write(self.place.path("network.toml"), text).unwrap();
        self.net(&["apply", "network.toml"]);
    }

    /// The chain of the first preset with clients at this place's socket.
    fn apply_chain(&self) {
        let preset = self.place.run(&["net", "preset", "nfd", "--print"]).out;
        let ours = format!("listen = \"{}\"", self.place.node());
        let text: Vec<&str> = preset
            .lines()
            .map(|l| if l.starts_with("listen = ") { ours.as_str() } else { l })
            .collect();
        self.apply(&text.join("\n"));
    }

    fn pid(&self, function: &str) -> String {
        let view = self.net(&["show"]);
        let handle = view["functions"][function]["handle"].as_str().unwrap_or_default().to_owned();
        handle.split(':').next().unwrap().to_owned()
    }

    fn wait_settled(&self) {
        wait_until("the network as wanted", || {
            let view = self.net(&["show"]);
            let links = view["links"].as_array().unwrap();
            view["settled"] == true && links.iter().all(|l| l["state"] == "up")
        });
    }

    fn fetches(&self, name: &str, content: &[u8]) {
        let _ = fs::remove_file(self.place.path("out"));
        self.place.json(&["get", name, "-o", "out"]);
        assert!(fs::read(self.place.path("out")).unwrap() == content, "{name} is not what was put");
    }
}

fn kill(pid: &str) {
    assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success(), "kill {pid}");
}

impl Drop for Managed {
    fn drop(&mut self) {
        drop(self.manager.take());
        for entry in fs::read_dir(self.place.path("state/run")).into_iter().flatten().flatten() {
            let log = fs::read_to_string(entry.path().join("log")).unwrap_or_default();
            let line = log.lines().find_map(|l| l.strip_prefix("ready "));
            let ready = line.and_then(|l| serde_json::from_str::<Value>(l).ok());
            let Some(pid) = ready.and_then(|r| r["pid"].as_u64()) else { continue };
            // Only what still is the service that wrote this.
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let token = format!("run/{}/token", entry.file_name().to_string_lossy());
            if String::from_utf8_lossy(&line).contains(&token) {
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
        }
    }
}

#[test]
fn a_described_chain_carries_a_file_and_goes_on_while_functions_come_and_go() {
    let managed = Managed::new();
    managed.apply_chain();
    let content = noise(1_000_000, 3);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    managed.fetches("/example/file", &content);
    for (strategy, name) in
        [("make-before-break", "nf0"), ("break-and-buffer", "nf1"), ("break-and-drop", "nf2")]
    {
        let done =
            managed.net(&["insert", "br", "nr", "name-filter", name, "--strategy", strategy]);
        assert_eq!(done["counters"]["lost"], 0, "{strategy}: {done}");
        managed.fetches("/example/file", &content);
        managed.net(&["remove", name, "--strategy", strategy]);
        managed.fetches("/example/file", &content);
    }
    let again = managed.net(&["apply", "network.toml"]);
    assert_eq!(again["steps"].as_array().unwrap().len(), 0, "{again}");
    managed.net(&["down"]);
    assert!(managed.net(&["show"])["functions"].as_object().unwrap().is_empty());
}

#[test]
fn services_forward_on_without_their_manager_and_are_adopted_when_it_comes_back() {
    let mut managed = Managed::new();
    managed.apply_chain();
    let content = noise(300_000, 5);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    let names = ["pd", "cs", "br", "nr"];
    let before: Vec<String> = names.iter().map(|n| managed.pid(n)).collect();
    managed.manager.take().unwrap().kill();
    managed.fetches("/example/file", &content);
    managed.start();
    managed.wait_settled();
    let after: Vec<String> = names.iter().map(|n| managed.pid(n)).collect();
    assert_eq!(after, before, "nothing was started again");
    managed.fetches("/example/file", &content);
}

#[test]
fn a_transfer_completes_whichever_service_is_killed_in_its_midst() {
    let managed = Managed::new();
    managed.apply_chain();
    let content = noise(2_000_000, 9);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    for victim in ["cs", "br", "nr"] {
        let _ = fs::remove_file(managed.place.path("out"));
        let mut get = managed.place.start(&["get", "/example/file", "-o", "out"]);
        let old = managed.pid(victim);
        kill(&old);
        wait_until("its replacement", || {
            let new = managed.pid(victim);
            !new.is_empty() && new != old
        });
        managed.wait_settled();
        assert_eq!(get.end(), Some(0), "{victim}: {}", get.err.text());
        assert!(fs::read(managed.place.path("out")).unwrap() == content, "{victim}");
    }
}

#[test]
fn what_cannot_be_done_says_why_and_leaves_nothing_behind() {
    let managed = Managed::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = format!(
        "links = [\"br -> nr\"]\nfunctions.nr.kind = \"NR\"\nfunctions.br.kind = \"BR\"\nfunctions.br.listen = \"tcp4://127.0.0.1:{port}\"\n"
    );
    fs::write(managed.place.path("taken.toml"), text).unwrap();
    let ended = managed.place.run(&["net", "--manager", &managed.url, "apply", "taken.toml"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(
        ended.err.contains("start br") && ended.err.contains(&port.to_string()),
        "{}",
        ended.err
    );
    let view = managed.net(&["show"]);
    assert!(view["functions"].as_object().unwrap().is_empty(), "{view}");
    fs::write(managed.place.path("bad.toml"), "links = [\"a -> b\"]\nfunctions.a.kind = \"CS\"")
        .unwrap();
    let ended = managed.place.run(&["net", "--manager", &managed.url, "apply", "bad.toml"]);
    assert_eq!(ended.code, 4);
    assert!(ended.err.contains("line 1: link a -> b"), "{}", ended.err);
    let ended = managed.place.run(&["net", "--manager", "http://127.0.0.1:1", "show"]);
    assert_eq!(ended.code, 3);
    let ended = managed.place.run(&["manager", "--listen", "0.0.0.0:0"]);
    assert_eq!(ended.code, 2, "nothing listens beyond loopback without a token");
}

/// Ports for presets that name them.
fn free_ports(count: usize) -> Vec<String> {
    let sockets: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    sockets.iter().map(|s| s.local_addr().unwrap().port().to_string()).collect()
}

#[test]
fn an_unmodified_client_fetches_a_file_through_each_preset() {
    let managed = Managed::new();
    let content = noise(200_000, 11);
    fs::write(managed.place.path("in"), &content).unwrap();
    for preset in ["nfd", "minimal", "interlinked", "scaling", "poisoning"] {
        let mut text = managed.place.run(&["net", "preset", preset, "--print"]).out;
        let ports = free_ports(4);
        for (was, is) in ["6362", "6363", "6372", "6373"].iter().zip(&ports) {
            text = text.replace(&format!(":{was}\""), &format!(":{is}\""));
        }
        managed.apply(&text);
        // The consumer of one router and the producer of the other, where there are two.
        let consumer = if preset == "nfd" { &ports[1] } else { &ports[0] };
        let producer = if preset == "interlinked" { &ports[3] } else { &ports[1] };
        let (asks, answers) =
            (format!("tcp4://127.0.0.1:{consumer}"), format!("tcp4://127.0.0.1:{producer}"));
        let name = format!("/example/{preset}");
        let _put = managed.place.put(&[&name, "in", "--node", &answers]);
        let _ = fs::remove_file(managed.place.path("out"));
        wait_until(&format!("{preset}: the file"), || {
            managed.place.run(&["get", &name, "-o", "out", "--node", &asks]).code == 0
        });
        assert!(fs::read(managed.place.path("out")).unwrap() == content, "{preset}");
        managed.net(&["down"]);
    }
}
