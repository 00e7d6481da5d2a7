//! A manager over processes, and what a test asks of it.

use super::{Place, Running, wait_until};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A manager on a port of its own; what it started ends with the test.
pub(crate) struct Managed {
    pub(crate) place: Place,
    pub(crate) manager: Option<Running>,
    pub(crate) url: String,
}

impl Managed {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// A manager with more words on its command line.
    pub(crate) fn with(more: &[&str]) -> Self {
        let mut managed = Self { place: Place::new(), manager: None, url: String::new() };
        managed.start_with(more);
        managed
    }

    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    pub(crate) fn start_with(&mut self, more: &[&str]) {
        let mut manager = self.place.start(&Self::words(more));
        self.url = Self::url_of(&mut manager);
        self.manager = Some(manager);
    }

    /// What a manager of this place is started with.
    pub(crate) fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
        let own = ["manager", "--listen", "127.0.0.1:0", "--state", "state", "--watch-ms", "100"];
        own.into_iter().chain(more.iter().copied()).collect()
    }

    /// Where a manager is, once it is ready.
    pub(crate) fn url_of(manager: &mut Running) -> String {
        manager.wait_for("ready {");
        let said = manager.err.text();
        let line = said.lines().find_map(|l| l.strip_prefix("ready ")).unwrap();
        let ready: Value = serde_json::from_str(line).unwrap();
        ready["url"].as_str().unwrap().to_owned()
    }

    pub(crate) fn net(&self, args: &[&str]) -> Value {
        let mut all = vec!["net", "--manager", &self.url];
        all.extend(args);
        self.place.json(&all)
    }

    pub(crate) fn apply(&self, text: &str) {
        fs::write(self.place.path("network.toml"), text).unwrap();
        self.net(&["apply", "network.toml", "--yes"]);
    }

    /// The chain of the first preset with clients at this place's socket.
    pub(crate) fn apply_chain(&self) {
        let preset = self.place.run(&["net", "preset", "nfd", "--print"]).out;
        let ours = format!("listen = \"{}\"", self.place.node());
        let text: Vec<&str> = preset
            .lines()
            .map(|l| if l.starts_with("listen = ") { ours.as_str() } else { l })
            .collect();
        self.apply(&text.join("\n"));
    }

    pub(crate) fn pid(&self, function: &str) -> String {
        let view = self.net(&["show"]);
        let handle = view["functions"][function]["handle"].as_str().unwrap_or_default().to_owned();
        handle.split(':').next().unwrap().to_owned()
    }

    pub(crate) fn wait_settled(&self) {
        wait_until("the network as wanted", || {
            let view = self.net(&["show"]);
            let links = view["links"].as_array().unwrap();
            view["settled"] == true && links.iter().all(|l| l["state"] == "up")
        });
    }

    /// The processes of services that any manager of this place started and that still run.
    pub(crate) fn alive(&self) -> Vec<String> {
        let mut alive = Vec::new();
        for entry in fs::read_dir(self.place.path("state/run")).into_iter().flatten().flatten() {
            let log = fs::read_to_string(entry.path().join("log")).unwrap_or_default();
            let line = log.lines().find_map(|l| l.strip_prefix("ready "));
            let ready = line.and_then(|l| serde_json::from_str::<Value>(l).ok());
            let Some(pid) = ready.and_then(|r| r["pid"].as_u64()) else { continue };
            // Only what still is the service that wrote this.
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let token = format!("run/{}/token", entry.file_name().to_string_lossy());
            if String::from_utf8_lossy(&line).contains(&token) {
                alive.push(pid.to_string());
            }
        }
        alive.sort();
        alive
    }

    pub(crate) fn fetches(&self, name: &str, content: &[u8]) {
        let _ = fs::remove_file(self.place.path("out"));
        self.place.json(&["get", name, "-o", "out"]);
        assert!(fs::read(self.place.path("out")).unwrap() == content, "{name} is not what was put");
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        drop(self.manager.take());
        for pid in self.alive() {
            let _ = Command::new("kill").args(["-9", &pid]).status();
        }
    }
}

/// Asks for a file over and over, and counts in `bad` how often what came was not what was put.
pub(crate) fn good_consumer(
    place: &Place,
    node: &str,
    content: &[u8],
    over: &AtomicBool,
    bad: &AtomicU32,
) {
    while !over.load(Ordering::Relaxed) {
        let ended = place.run(&["get", "/example/good", "-o", "good.out", "--node", node, "-q"]);
        let same = fs::read(place.path("good.out")).is_ok_and(|got| got == content);
        if ended.code != 0 || !same {
            bad.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Ends the consumer, also when the test fails.
pub(crate) struct End<'a>(pub(crate) &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
