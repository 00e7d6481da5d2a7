//! Running a push script against nodes in memory.

use super::script::{Line, PushScript};
use crate::run::Outcome;
use onym_pubsub::topology::Keyed;
use onym_pubsub::{AppId, DomainKey, Event};
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_tables::bloom::{Kind, Scheme};
use onym_wire::push::{Id, Label, Role};
use std::collections::BTreeMap;
use std::time::Duration;

/// Virtual time until a network without traffic has found its topology.
const START: Duration = Duration::from_secs(2);
/// Virtual time that an expected event may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A script under way.
pub(super) struct Runner {
    pub(super) net: PushNetwork,
    pub(super) nodes: BTreeMap<String, usize>,
    /// Node and number of each application.
    pub(super) apps: BTreeMap<String, (usize, AppId)>,
    scheme: Scheme,
    only_stages: bool,
    is_keyed: bool,
    has_begun: bool,
    pub(super) tags: u64,
    /// Counters at the last `mark`.
    pub(super) marked: BTreeMap<String, u64>,
}

/// Runs a script; deterministic.
#[must_use]
pub fn run(script: &PushScript) -> Outcome {
    run_drawn(script, 1)
}

/// Runs a script where `seed` draws what lossy links lose.
#[must_use]
pub fn run_drawn(script: &PushScript, seed: u64) -> Outcome {
    let mut runner = Runner {
        net: PushNetwork::new(seed),
        nodes: BTreeMap::new(),
        apps: BTreeMap::new(),
        scheme: Scheme::default(),
        only_stages: false,
        is_keyed: false,
        has_begun: false,
        tags: 0,
        marked: BTreeMap::new(),
    };
    for line in &script.lines {
        if let Err(what) = runner.line(line) {
            let at = format!("{}:{}", script.path.display(), line.number);
            return Outcome::Failed(format!("{at}: {}\n    {what}", line.text));
        }
    }
    match runner.end() {
        Ok(()) => Outcome::Passed,
        Err(what) => Outcome::Failed(format!("{}: at the end {what}", script.path.display())),
    }
}

impl Runner {
    fn line(&mut self, line: &Line) -> Result<(), String> {
        match line.words[0].as_str() {
            "node" => self.add_nodes(line),
            "link" => self.add_link(line),
            "app" => self.add_apps(line),
            "scheme" => self.set_scheme(line),
            "forwarders" => {
                self.net.has_timers = false;
                Ok(())
            }
            _ => {
                if !std::mem::replace(&mut self.has_begun, true) && self.net.has_timers {
                    self.net.run_for(START);
                }
                self.step(line)
            }
        }
    }

    fn add_nodes(&mut self, line: &Line) -> Result<(), String> {
        let (mut names, mut role) = (Vec::new(), Role::default());
        for word in &line.words[1..] {
            match word.as_str() {
                "rv" => role = role.and(Role::RENDEZVOUS),
                "tm" => role = role.and(Role::TOPOLOGY),
                "standby" => role = role.and(Role::STANDBY),
                name => names.push(name.to_owned()),
            }
        }
        let lease: Option<u64> = line.option("lease")?;
        let hold: Option<u64> = line.option("hold")?;
        let frame: Option<usize> = line.option("frame")?;
        let ids: Option<usize> = line.option("ids-max")?;
        let fill: Option<u32> = line.option("fill")?;
        let key = line.options.get("key").map(|k| DomainKey::new(k.as_bytes()));
        let domain: Option<Label> = line.option("domain")?;
        let between = line.options.get("between").map(|k| DomainKey::new(k.as_bytes()));
        let (scheme, only_stages) = (self.scheme, self.only_stages);
        let keyed = self.is_keyed.then_some(Keyed { master: [3, 4], epoch: 1, k: 5 });
        for name in names {
            let label = self.nodes.len() as u64 + 1;
            let node = self.net.add_node(label, role, |config| {
                config.forwarder.scheme = scheme;
                config.routing.only_stages = only_stages;
                config.routing.keyed = keyed;
                config.key.clone_from(&key);
                config.domain = domain;
                config.backups = line.options.contains_key("backups");
                config.federation_key.clone_from(&between);
                config.lease = lease.map_or(config.lease, Duration::from_millis);
                config.hold = hold.map_or(config.hold, Duration::from_millis);
                config.frame_max = frame.unwrap_or(config.frame_max);
                config.limits.ids_max = ids.unwrap_or(config.limits.ids_max);
                config.forwarder.fill_max = fill.unwrap_or(config.forwarder.fill_max);
            });
            self.nodes.insert(name, node);
        }
        Ok(())
    }

    fn add_link(&mut self, line: &Line) -> Result<(), String> {
        let (a, b) = (self.node(line.word(1, "a node")?)?, self.node(line.word(2, "a node")?)?);
        let percent: f64 = line.option("loss")?.unwrap_or(0.0);
        let delay: u64 = line.option("delay")?.unwrap_or(1);
        let config = LinkConfig {
            delay: Duration::from_millis(delay),
            loss_ppm: (percent * 10_000.0) as u32,
            spares_hellos: true,
            cost: line.option("cost")?.unwrap_or(1),
            capacity: line.option("capacity")?.unwrap_or(0),
        };
        self.net.link(a, b, config);
        Ok(())
    }

    fn add_apps(&mut self, line: &Line) -> Result<(), String> {
        let (node, names) = line.words[1..].split_last().ok_or("app a b @node")?;
        let node = node.strip_prefix('@').ok_or("app a b @node")?;
        let node = self.node(node)?;
        for name in names {
            let app = AppId(self.apps.len() as u64 + 1);
            self.apps.insert(name.clone(), (node, app));
        }
        Ok(())
    }

    fn set_scheme(&mut self, line: &Line) -> Result<(), String> {
        self.only_stages = line.words.iter().any(|w| w == "stages");
        self.is_keyed = line.words.iter().any(|w| w == "keyed");
        if let Some(k) = line.option("k")? {
            let tables = line.option("tables")?.unwrap_or(8);
            self.scheme = Scheme { kind: Kind::Tags { k, tables }, seed: 7 };
        }
        Ok(())
    }

    pub(super) fn node(&self, name: &str) -> Result<usize, String> {
        self.nodes.get(name).copied().ok_or_else(|| format!("no node {name:?}"))
    }

    pub(super) fn app(&self, name: &str) -> Result<(usize, AppId), String> {
        self.apps.get(name).copied().ok_or_else(|| format!("no application {name:?}"))
    }

    pub(super) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Number of the inside of a node.
    pub(super) fn inside(&self, node: usize) -> u32 {
        self.net.inside(node)
    }

    /// `a->b` as two nodes.
    pub(super) fn ends(&self, text: &str) -> Result<(usize, usize), String> {
        let (a, b) = text.split_once("->").ok_or_else(|| format!("{text:?} is no a->b"))?;
        Ok((self.node(a)?, self.node(b)?))
    }

    /// The next event of an application, in whatever time it comes.
    pub(super) fn next_event(&mut self, node: usize, app: AppId, time: Duration) -> Option<Event> {
        let mut event = None;
        self.net.run_until(time, |net| {
            event = net.event(node, app);
            event.is_some()
        });
        event
    }

    fn end(&mut self) -> Result<(), String> {
        if self.net.has_timers {
            self.net.run_for(Duration::from_millis(300));
        }
        for (name, (node, app)) in self.apps.clone() {
            if let Some(event) = self.net.event(node, app) {
                return Err(format!("{name} got {}", show(&event)));
            }
        }
        for (name, node) in &self.nodes {
            let node = self.net.node(*node);
            if node.is_some_and(|n| !n.forwarder.counters().balance()) {
                return Err(format!("the verdicts of {name} do not add up to what it received"));
            }
        }
        Ok(())
    }
}

/// An event in the words of scripts.
pub(super) fn show(event: &Event) -> String {
    match event {
        Event::Status { status, .. } => format!("status {status}"),
        Event::StartPublish(id) => format!("start {id}"),
        Event::StopPublish(id) => format!("stop {id}"),
        Event::ScopePublished(id) => format!("scope {id}"),
        Event::ScopeUnpublished(id) => format!("unscope {id}"),
        Event::Missed(count) | Event::NoRoom(count) => format!("missed {count}"),
        Event::Overdue { id, .. } => format!("overdue {id}"),
        Event::Mark => "mark".into(),
        Event::Wait(is_paused) => format!("wait {is_paused}"),
        Event::Data { id, payload, came_by } => {
            let by = came_by.map_or_else(String::new, |by| format!(" by={by}"));
            let text = std::str::from_utf8(payload).ok().filter(|t| t.len() <= 40);
            match text.filter(|t| t.bytes().all(|b| b.is_ascii_graphic())) {
                Some(text) => format!("data {id} text={text}{by}"),
                None => format!("data {id} size={}{by}", payload.len()),
            }
        }
    }
}

/// An identifier of a script.
pub(super) fn an_id(text: &str) -> Result<Id, String> {
    text.parse().map_err(|e: onym_wire::push::IdError| e.to_string())
}
