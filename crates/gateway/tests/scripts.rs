//! Every script of `spec/conformance/gateway` against the gateway in memory (FORMAT.md, "Gateway
//! scripts").

#![allow(clippy::unwrap_used)]

use onym_client::Incoming;
use onym_crypto::signer::Signer;
use onym_frame::Buf;
use onym_gateway::{Action, Ask, Gateway, Limits, Map};
use onym_tables::Tick;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use onym_wire::push::{Id, Kind, Status, Strategy};
use onym_wire::{Data, NackReason};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

const KINDS: [&str; 8] = [
    "publish-scope",
    "publish-item",
    "unpublish-scope",
    "unpublish-item",
    "subscribe-scope",
    "subscribe-item",
    "unsubscribe-scope",
    "unsubscribe-item",
];

/// One gateway and what the script knows of it.
struct Run {
    gateway: Gateway,
    maps: Vec<Map>,
    now: Tick,
    /// Actions that no line has expected yet.
    actions: VecDeque<Action>,
    /// Requests that have no answer yet, the oldest first.
    asked: VecDeque<(u32, Ask)>,
    tag: u32,
    /// The version in the Data that came last.
    version: u64,
}

fn field<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
}

fn number(words: &[&str], key: &str) -> Option<u64> {
    field(words, key).map(|v| v.parse().unwrap())
}

impl Run {
    fn new(setup: &[Vec<&str>]) -> Self {
        let (mut maps, mut limits) = (Vec::new(), Limits::default());
        for words in setup {
            match words[0] {
                "map" => maps.push(Map {
                    prefix: words[1].parse().unwrap(),
                    scope: words[2].parse().unwrap(),
                    strategy: Strategy::DOMAIN_LOCAL,
                    freshness: Duration::from_millis(number(words, "fresh").unwrap_or(1000)),
                    items: field(words, "item").map(|i| i.parse().unwrap()).into_iter().collect(),
                    is_by_routes: !words.contains(&"no-routes"),
                }),
                _ => {
                    let bound = |key: &str| number(words, key).map(|n| usize::try_from(n).unwrap());
                    limits.items_max = bound("items").unwrap_or(limits.items_max);
                    limits.interests_max = bound("interests").unwrap_or(limits.interests_max);
                    limits.kept_bytes_max = bound("bytes").unwrap_or(limits.kept_bytes_max);
                    limits.offers_max = bound("offers").unwrap_or(limits.offers_max);
                }
            }
        }
        let signer = Signer::digest();
        let gateway = Gateway::new(maps.clone(), limits, signer, 1_000_000);
        let (actions, asked) = (VecDeque::new(), VecDeque::new());
        let mut run = Self { gateway, maps, now: Tick(0), actions, asked, tag: 0, version: 0 };
        run.collect();
        run
    }

    fn collect(&mut self) {
        while let Some(action) = self.gateway.poll_action() {
            if let Action::Request(ask) = &action {
                self.tag += 1;
                self.gateway.asked(self.tag, ask.clone());
                self.asked.push_back((self.tag, ask.clone()));
            }
            self.actions.push_back(action);
        }
    }

    /// `@ID[+SUFFIX]`: the name of an item; anything else is a name. `v=$` is the last version.
    fn name(&self, text: &str) -> Name {
        let text = text.replace("v=$", &format!("v={}", self.version));
        let Some(rest) = text.strip_prefix('@') else { return text.parse().unwrap() };
        let (id, suffix) = rest.split_once('+').unwrap_or((rest, ""));
        let id: Id = id.parse().unwrap();
        let name = self.maps.iter().find_map(|map| map.name_of(&id)).unwrap();
        if suffix.is_empty() { name } else { name.join(suffix.parse::<Name>().unwrap().as_ref()) }
    }

    fn step(&mut self, words: &[&str]) {
        let id = |at: usize| -> Id { words[at].parse().unwrap() };
        match words[0] {
            "interest" => {
                let name = self.name(words[1]);
                let interest = InterestBuilder {
                    can_be_prefix: words.contains(&"prefix"),
                    must_be_fresh: words.contains(&"fresh"),
                    lifetime_ms: number(words, "lifetime"),
                    nonce: Some([1, 2, 3, 4]),
                    ..InterestBuilder::new(name.as_ref())
                };
                let mut wire = Vec::new();
                interest.write(&mut wire);
                let incoming = Incoming::of(Buf::copy_from(&wire)).unwrap();
                self.gateway.interest(self.now, incoming);
            }
            "published" => {
                let payload = payload(words);
                self.gateway.published(self.now, &id(1), payload);
            }
            "status" => {
                let kind = kind(words[1]);
                let at = self.asked.iter().position(|(_, ask)| ask.kind == kind).unwrap();
                let (tag, _) = self.asked.remove(at).unwrap();
                let status = Status(words[2].parse().unwrap());
                self.gateway.answered(self.now, tag, status);
            }
            "routes" => {
                let names: Vec<Name> = words[1..].iter().map(|w| self.name(w)).collect();
                self.gateway.routes(&names);
            }
            "start" => self.gateway.started(self.now, &id(1)),
            "stop" => self.gateway.stopped(&id(1)),
            "found" => {
                let version = self.name(words[2]);
                let wanted = self.gateway.found(self.now, &id(1), &version);
                assert_eq!(wanted, words[3] == "wanted");
            }
            "fetched" => {
                let version = self.name(words[2]);
                let payload = payload(words);
                self.gateway.fetched(self.now, &id(1), version, payload);
            }
            "failed" => self.gateway.fetch_failed(self.now, &id(1)),
            "wait" => {
                let end = self.now + Duration::from_millis(words[1].parse().unwrap());
                while self.gateway.next_timeout() <= end {
                    self.now = self.now.max(self.gateway.next_timeout());
                    self.gateway.handle_timeout(self.now);
                }
                self.now = end;
            }
            "<" => return self.expect(&words[1..]),
            "skip" => self.actions.clear(),
            other => panic!("there is no `{other}`"),
        }
        self.gateway.handle_timeout(self.now);
        self.collect();
    }

    fn expect(&mut self, words: &[&str]) {
        let action = self.actions.pop_front();
        match (words[0], action) {
            ("nothing", None) => {}
            ("request", Some(Action::Request(ask))) => {
                assert_eq!(ask.kind, kind(words[1]));
                assert_eq!(ask.id.to_string(), words[2].parse::<Id>().unwrap().to_string());
            }
            ("data", Some(Action::Reply(_, wire))) => {
                let data = Data::parse(&wire).unwrap();
                let version = data.name.components().find_map(|c| c.as_version()).unwrap();
                if !words[1].contains("v=$") {
                    assert_ne!(version, self.version, "the version is a new one");
                }
                self.version = version;
                let wanted = self.name(&words[1].replace("v=+", "v=$"));
                assert_eq!(data.name.to_string(), wanted.to_string());
                if let Some(fresh) = number(words, "fresh") {
                    assert_eq!(data.freshness_ms, fresh);
                }
                if let Some(text) = field(words, "text") {
                    assert_eq!(data.content, text.as_bytes());
                }
                if let Some(last) = number(words, "final") {
                    assert_eq!(data.final_block_id.unwrap().as_segment(), Some(last));
                }
            }
            ("nack", Some(Action::Refuse(_, reason))) => {
                let wanted = match words[1] {
                    "none" => NackReason::NONE,
                    "congestion" => NackReason::CONGESTION,
                    _ => NackReason::NO_ROUTE,
                };
                assert_eq!(reason, wanted);
            }
            ("fetch", Some(Action::Fetch(id, name))) => {
                assert_eq!(id.to_string(), words[1].parse::<Id>().unwrap().to_string());
                assert_eq!(name, self.name(&format!("@{}", words[1])));
            }
            ("cancel", Some(Action::Cancel(id))) => {
                assert_eq!(id, words[1].parse().unwrap());
            }
            ("publish", Some(Action::Publish(id, _, content))) => {
                assert_eq!(id, words[1].parse().unwrap());
                assert_eq!(content, payload(words));
            }
            (_, action) => panic!("{action:?}"),
        }
    }
}

fn payload(words: &[&str]) -> Vec<u8> {
    match (field(words, "text"), number(words, "size")) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, size) => vec![0x58; usize::try_from(size.unwrap_or(0)).unwrap()],
    }
}

fn kind(word: &str) -> Kind {
    let at = KINDS.iter().position(|k| *k == word).unwrap_or_else(|| panic!("no `{word}`"));
    Kind(u8::try_from(at).unwrap())
}

fn run(text: &str) {
    let lines = text.lines().map(|l| l.split(" #").next().unwrap_or_default());
    let lines = lines.filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    let mut lines: Vec<Vec<&str>> = lines.map(|l| l.split_whitespace().collect()).collect();
    assert!(lines[0][0] == "law:" && lines[1][0] == "section:", "a script begins with its law");
    lines.drain(..2);
    let setup = lines.iter().take_while(|l| matches!(l[0], "map" | "limits")).count();
    let mut run = Run::new(&lines[..setup]);
    for (number, words) in lines[setup..].iter().enumerate() {
        println!("step {}: {}", number + 1, words.join(" "));
        run.step(words);
    }
    assert!(run.actions.is_empty(), "nothing expected {:?}", run.actions);
}

#[test]
fn the_gateway_keeps_every_law_of_its_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/conformance/gateway");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 14, "{} scripts", files.len());
    for file in files {
        println!("{}", file.display());
        run(&std::fs::read_to_string(&file).unwrap());
    }
}
