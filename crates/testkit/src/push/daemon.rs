//! Running a push script against daemons: each node a whole node of `onym-node`, links over UDP,
//! each application a connection to its node's Unix socket, in real time.
//!
//! A relay between each two neighbours counts, loses and forges frames. A node that crashes is
//! stopped with all its links cut, so that nobody hears it go; it starts anew in the same places.
//! What cannot be had so is passed over with its reason: virtual time, epochs at a moment, bounds
//! without a key of the configuration.

mod app;
mod look;
mod member;
mod relay;

use super::run::an_id;
use super::script::{Line, PushScript};
use super::step::{KINDS, STRANGER, control_frame, hex, keep, payload, push_frame, strategy};
use crate::run::Outcome;
use app::App;
use look::place;
use member::Member;
use onym_node::config::PushLink;
use onym_pubsub::Keep;
use onym_tables::bloom::{Kind as SchemeKind, Scheme};
use onym_wire::push::app::{Message, kind};
use onym_wire::push::{Filter, Id, Label, RouteBuf, Status, Strategy};
use relay::Relay;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long anything may take before a script fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// Silence after which nothing more is thought to come.
const QUIET: Duration = Duration::from_millis(300);
/// Longest that a script may wait in all.
const WAIT_MAX_MS: u64 = 12_000;
/// Most frames that a link may lose, in per cent: of more a request is given up now and then.
const LOSS_MAX: f64 = 20.0;
/// How long nodes of different keys have to show that they do not find each other.
const STRANGERS: Duration = Duration::from_secs(2);
/// How long control messages may take to have their effect before a script goes on without.
const SETTLING: Duration = Duration::from_secs(10);
/// How long a frame may take to have its effect before a counter is looked at first.
const EFFECT: Duration = Duration::from_millis(100);

struct Runner {
    nodes: BTreeMap<String, Member>,
    /// Number of the link from one node to another.
    links: BTreeMap<(String, String), u32>,
    relays: Vec<([String; 2], Relay)>,
    has_timers: bool,
    /// Settings of all nodes.
    sets: Vec<String>,
    keys: BTreeSet<Option<String>>,
    apps: BTreeMap<String, App>,
    scheme: Scheme,
    /// The number given to an inside or a link last: a number of 0 is drawn by the node.
    numbers: u32,
    has_begun: bool,
    tags: u32,
    marked: BTreeMap<String, u64>,
}

/// Runs a script.
#[must_use]
pub fn run(script: &PushScript) -> Outcome {
    if let Some(reason) = cannot(script) {
        return Outcome::Skipped(reason);
    }
    let mut runner = Runner {
        nodes: BTreeMap::new(),
        links: BTreeMap::new(),
        relays: Vec::new(),
        has_timers: true,
        sets: Vec::new(),
        keys: BTreeSet::new(),
        apps: BTreeMap::new(),
        scheme: Scheme::default(),
        numbers: 0,
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

/// Why the script cannot be run against daemons.
fn cannot(script: &PushScript) -> Option<String> {
    for line in &script.lines {
        let word = line.words[0].as_str();
        let has = |key: &str| line.options.contains_key(key);
        let loss = |line: &Line| line.option::<f64>("loss").ok().flatten().unwrap_or(0.0);
        let reason = match word {
            "up" if line.words.iter().any(|w| w == "told") => "needs links that come and say so",
            "epoch" => "needs epochs that begin when the script says",
            "link" if has("delay") => "needs links that delay",
            "link" if loss(line) > LOSS_MAX => {
                "loses so much that requests are given up by chance, which nobody can draw again"
            }
            "node" if has("ids-max") => "needs a bound that is no key of the configuration",
            "node" if line.option::<usize>("frame").ok().flatten().is_some_and(|n| n < 512) => {
                "needs frames shorter than the configuration allows"
            }
            "count" if line.options.keys().any(|key| place(key).is_none()) => {
                "counts what a daemon does not tell"
            }
            "inject" if has("cut") => "sends what the face itself refuses",
            // Hellos are delivered too, all the time.
            "count" if has("push_delivered") => "counts deliveries of messages too",
            _ => "",
        };
        if !reason.is_empty() {
            return Some(reason.into());
        }
    }
    (script.waits_ms() > WAIT_MAX_MS).then(|| "needs virtual time".into())
}

impl Runner {
    fn line(&mut self, line: &Line) -> Result<(), String> {
        match line.words[0].as_str() {
            "node" => self.add_nodes(line),
            "link" => self.add_link(line),
            "app" => self.add_apps(line),
            "forwarders" => {
                self.has_timers = false;
                Ok(())
            }
            "scheme" => {
                if let Some(k) = line.option("k")? {
                    let tables = line.option("tables")?.unwrap_or(8);
                    self.scheme = Scheme { kind: SchemeKind::Tags { k, tables }, seed: 7 };
                }
                if line.words.iter().any(|w| w == "stages") {
                    self.sets.push("push.stages=always".into());
                }
                if line.words.iter().any(|w| w == "keyed") {
                    self.sets.push("push.keyed_secret=\"of the domain\"".into());
                }
                Ok(())
            }
            _ => {
                if !std::mem::replace(&mut self.has_begun, true) && self.has_timers {
                    self.wait_for_topology()?;
                }
                self.step(line)
            }
        }
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    fn add_nodes(&mut self, line: &Line) -> Result<(), String> {
        self.keys.insert(line.options.get("key").cloned());
        let is_role = |word: &str| matches!(word, "rv" | "tm" | "standby");
        let names = line.words[1..].iter().filter(|word| !is_role(word));
        for name in names {
            let label = Label::from_u64(self.nodes.len() as u64 + 1);
            let inside = self.number();
            let member = Member::start(line, label, inside, self.scheme, &self.sets)?;
            self.nodes.insert(name.clone(), member);
        }
        Ok(())
    }

    fn add_link(&mut self, line: &Line) -> Result<(), String> {
        let (a, b) = (line.word(1, "a node")?, line.word(2, "a node")?);
        let cost = line.option("cost")?.unwrap_or(1);
        let capacity: u32 = line.option("capacity")?.unwrap_or(0);
        let percent: f64 = line.option("loss")?.unwrap_or(0.0);
        let relay =
            Relay::new([self.node(a)?.udp(), self.node(b)?.udp()], (percent * 10_000.0) as u64)?;
        for (side, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
            let number = self.number();
            let udp = relay.address(side)?;
            let (own, other) = (&self.node(from)?.domain, &self.node(to)?.domain);
            let domain = if own == other { String::new() } else { other.clone() };
            let link = PushLink {
                face: format!("udp4://{udp}"),
                number,
                cost,
                capacity_mbit: capacity.div_ceil(1000),
                domain,
            };
            self.node_mut(from)?.link_add(link)?;
            self.links.insert((from.to_owned(), to.to_owned()), number);
        }
        self.relays.push(([a.to_owned(), b.to_owned()], relay));
        Ok(())
    }

    fn add_apps(&mut self, line: &Line) -> Result<(), String> {
        let (node, names) = line.words[1..].split_last().ok_or("app a b @node")?;
        let node = node.strip_prefix('@').ok_or("app a b @node")?;
        let socket = self.node(node)?.socket().to_owned();
        for name in names {
            self.apps.insert(name.clone(), App::open(&socket, node, PATIENCE)?);
        }
        Ok(())
    }

    fn node(&self, name: &str) -> Result<&Member, String> {
        self.nodes.get(name).ok_or_else(|| format!("no node {name:?}"))
    }

    fn node_mut(&mut self, name: &str) -> Result<&mut Member, String> {
        self.nodes.get_mut(name).ok_or_else(|| format!("no node {name:?}"))
    }

    fn app(&mut self, name: &str) -> Result<&mut App, String> {
        self.apps.get_mut(name).ok_or_else(|| format!("no application {name:?}"))
    }

    /// Every link has a neighbour, and every node knows every rendezvous and topology manager.
    fn wait_for_topology(&self) -> Result<(), String> {
        if self.keys.len() > 1 {
            // They never will, and that is what the script shows.
            std::thread::sleep(STRANGERS);
            return Ok(());
        }
        let domains: BTreeSet<&str> = self.nodes.values().map(|n| n.domain.as_str()).collect();
        let homes = |domain: &str| {
            let all = || self.nodes.values().filter(|n| n.is_home && n.domain == domain);
            // Of those on standby one serves, for want of others.
            let on_duty = all().filter(|n| !n.is_standby).count();
            if on_duty == 0 { all().count().min(1) } else { on_duty }
        };
        // A domain without topology manager has none to be known.
        let is_ready = |member: &Member| {
            let homes = homes(&member.domain);
            homes == 0 || member.is_ready(homes, domains.len() - 1) == Some(true)
        };
        let until = Instant::now() + PATIENCE;
        while !self.nodes.values().all(is_ready) {
            if Instant::now() > until {
                return Err("the nodes did not find each other".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn step(&mut self, line: &Line) -> Result<(), String> {
        let head = line.words[0].clone();
        if let Some(app) = head.strip_suffix('!') {
            return self.act(app, line);
        }
        if let Some(app) = head.strip_suffix('<') {
            return self.hear(app, line);
        }
        match head.as_str() {
            "wait" => {
                let ms = line.word(1, "milliseconds")?.parse().map_err(|_| "no number")?;
                std::thread::sleep(Duration::from_millis(ms));
                Ok(())
            }
            "mark" => {
                self.marked = self.counters();
                Ok(())
            }
            "count" => self.count(line),
            "down" | "up" => {
                let (a, b) = (line.word(1, "a node")?, line.word(2, "a node")?);
                let (relay, _) = self.relay(a, b)?;
                relay.set_up(head == "up");
                if line.words.iter().any(|w| w == "told") { self.tell_down(a, b) } else { Ok(()) }
            }
            "crash" => self.crash(line.word(1, "a node")?),
            "restart" => self.restart(line.word(1, "a node")?),
            "inject" => self.inject(line),
            "crossed" => self.crossed(line),
            "graph" => self.graph(line),
            "drain" => {
                let app = self.app(line.word(1, "an application")?)?;
                while app.next(QUIET)?.is_some() {}
                Ok(())
            }
            _ => Err("no such step".into()),
        }
    }

    /// Both ends know that their link is none any more.
    fn tell_down(&mut self, a: &str, b: &str) -> Result<(), String> {
        for (from, to) in [(a, b), (b, a)] {
            let link = self.links.get(&(from.to_owned(), to.to_owned()));
            let number = *link.ok_or_else(|| format!("no link {from}-{to}"))?;
            self.node_mut(from)?.link_remove(number)?;
        }
        Ok(())
    }

    /// The links of a node carry something, or nothing.
    fn set_links(&self, name: &str, is_up: bool) {
        let theirs = self.relays.iter().filter(|(ends, _)| ends.iter().any(|end| end == name));
        theirs.for_each(|(_, relay)| relay.set_up(is_up));
    }

    /// A node dies with its applications: its links carry nothing from then on, so that nobody
    /// hears it go.
    fn crash(&mut self, name: &str) -> Result<(), String> {
        self.set_links(name, false);
        self.apps.retain(|_, app| app.node() != name);
        self.node_mut(name)?.crash();
        Ok(())
    }

    fn restart(&mut self, name: &str) -> Result<(), String> {
        self.node_mut(name)?.restart()?;
        self.set_links(name, true);
        Ok(())
    }

    fn act(&mut self, name: &str, line: &Line) -> Result<(), String> {
        let word = line.word(1, "what to do")?;
        self.settle();
        if word == "leave" {
            return self.app(name)?.leave();
        }
        self.tags += 1;
        let tag = self.tags;
        if word == "data" {
            return self.publish(name, tag, line);
        }
        if word == "retain" {
            let id = an_id(line.word(2, "an id")?)?;
            let Keep { count: number, lifetime_ms, deadline_ms, priority, waits } = keep(line)?;
            let (id, retain) = (id.octets(), Message::new(kind::RETAIN, tag));
            let terms = Message { lifetime_ms, deadline_ms, priority, waits, ..retain };
            let request = Message { id, number, ..terms };
            return self.ask(name, tag, &request, line);
        }
        let kind = KINDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| format!("no request {word}"))?;
        let id = an_id(&format!("/{}", line.word(2, "an id")?.trim_start_matches('/')))?;
        let prefix = an_id(line.words.get(3).map_or("/", String::as_str))?;
        let request = Message {
            id: id.octets(),
            prefix: prefix.octets(),
            strategy: strategy(line, Strategy::DOMAIN_LOCAL)?,
            ..Message::new(kind, tag)
        };
        self.ask(name, tag, &request, line)
    }

    /// Makes a request, which is answered as the line says.
    fn ask(
        &mut self,
        name: &str,
        tag: u32,
        request: &Message<'_>,
        line: &Line,
    ) -> Result<(), String> {
        let app = self.app(name)?;
        app.send(request)?;
        let wanted = line.options.get("status").map_or("0", String::as_str);
        if wanted == "-" {
            return Ok(());
        }
        let heard = app.next(PATIENCE)?.ok_or("no status came")?;
        if heard.is_status(tag, wanted) { Ok(()) } else { Err(format!("got {}", heard.show())) }
    }

    fn publish(&mut self, name: &str, tag: u32, line: &Line) -> Result<(), String> {
        let (id, payload) = (an_id(line.word(2, "an id")?)?, payload(line)?);
        let about = line.options.get("about").map(|t| an_id(t)).transpose()?;
        let route = match line.list("route") {
            Some(_) => Some(RouteBuf::flat(0, &self.filter(line, "route")?)),
            None => None,
        };
        let node = line.options.get("via").map(|to| self.node(to).map(|n| n.label)).transpose()?;
        let message = Message {
            id: id.octets(),
            strategy: strategy(line, Strategy::DOMAIN_LOCAL)?,
            about: about.as_ref().map_or(&[], Id::octets),
            lifetime_ms: line.option("lifetime")?.unwrap_or(0),
            route: route.as_ref().map(RouteBuf::octets),
            node,
            payload: &payload,
            ..Message::new(kind::PUBLISH, tag)
        };
        let app = self.app(name)?;
        app.send(&message)?;
        let wanted = line.options.get("refused").map_or("0", |word| status_of(word));
        let heard = app.answer(tag, PATIENCE)?;
        if !heard.is_status(tag, wanted) {
            return Err(format!("got {}", heard.show()));
        }
        for (key, got) in [("local", heard.local), ("frames", heard.frames)] {
            if line.option::<u64>(key)?.is_some_and(|want| want != got) {
                return Err(format!("{key} is {got}"));
            }
        }
        Ok(())
    }

    fn hear(&mut self, name: &str, line: &Line) -> Result<(), String> {
        let what = line.word(1, "an event")?;
        if what == "nothing" {
            let ms = line.option("for")?.map_or(QUIET, Duration::from_millis);
            let heard = self.app(name)?.next(ms)?;
            return heard.map_or(Ok(()), |h| Err(format!("got {}", h.show())));
        }
        let heard = self.app(name)?.next(PATIENCE)?.ok_or("nothing came")?;
        let is_it = match what {
            "status" => heard.is(kind::STATUS) && heard.status_is(line.word(2, "a number")?),
            "missed" => heard.is(kind::MISSED) && heard.number_is(line.word(2, "a number")?),
            "data" => {
                heard.is(kind::DATA)
                    && heard.id == an_id(line.word(2, "an id")?)?
                    && heard.payload == payload(line)?
            }
            event => heard.is_event(event) && heard.id == an_id(line.word(2, "an id")?)?,
        };
        if is_it { Ok(()) } else { Err(format!("got {}", heard.show())) }
    }

    /// Links and insides of a filter, as in memory.
    fn filter(&self, line: &Line, key: &str) -> Result<Filter, String> {
        let mut filter = Filter::EMPTY;
        for part in line.list(key).unwrap_or_default() {
            if part == "all" {
                return Ok(Filter::ALL);
            }
            if let Some(count) = part.strip_prefix("ones:") {
                let count: u8 = count.parse().map_err(|_| "ones:N")?;
                (0..count).for_each(|i| filter.set(255 - i));
                continue;
            }
            let number = match part.split_once('-') {
                Some((a, b)) => {
                    let link = self.links.get(&(a.to_owned(), b.to_owned()));
                    *link.ok_or_else(|| format!("no link {part}"))?
                }
                None => self.node(part)?.inside,
            };
            filter.add(&self.scheme.tag(number, 0));
        }
        Ok(filter)
    }

    /// The link between two nodes, and the side that the first one is on.
    fn relay(&self, a: &str, b: &str) -> Result<(&Relay, usize), String> {
        let side = |ends: &[String; 2]| {
            [[a, b], [b, a]].iter().position(|pair| ends[0] == pair[0] && ends[1] == pair[1])
        };
        let mut relays = self.relays.iter();
        let found = relays.find_map(|(ends, relay)| Some((relay, side(ends)?)));
        found.ok_or_else(|| format!("no link {a}-{b}"))
    }

    fn ends<'a>(&self, line: &'a Line) -> Result<(&'a str, &'a str), String> {
        let text = line.word(1, "a->b")?;
        text.split_once("->").ok_or_else(|| format!("{text:?} is no a->b"))
    }

    /// A frame as if the first node had sent it.
    fn inject(&self, line: &Line) -> Result<(), String> {
        let (a, b) = self.ends(line)?;
        let octets = match line.word(2, "push, control or raw")? {
            "raw" => hex(line.words.get(3).map_or("", String::as_str))?,
            "control" => {
                let sender = match line.options.get("sender") {
                    Some(name) => self.node(name)?.label,
                    None => line.option("domain")?.unwrap_or(STRANGER),
                };
                let to = self.node(b)?;
                control_frame(line, sender, to.label, &self.scheme.tag(to.inside, 0))?
            }
            _ => push_frame(line, &self.filter(line, "flat")?)?,
        };
        let (relay, side) = self.relay(a, b)?;
        for _ in 0..line.option("times")?.unwrap_or(1) {
            relay.inject(side, &octets)?;
        }
        std::thread::sleep(EFFECT);
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let until = Instant::now() + QUIET;
        for (name, app) in &mut self.apps {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(heard) = app.next(left)? {
                return Err(format!("{name} got {}", heard.show()));
            }
        }
        Ok(())
    }
}

/// The status that a refused publication is answered with.
fn status_of(word: &str) -> &'static str {
    let status = match word {
        "not-publisher" => Status::NOT_THERE,
        "stopped" => Status::STOPPED,
        "id" => Status::RESERVED,
        "unfit" => Status::UNFIT,
        "too-long" => Status::TOO_LONG,
        "too-large" => Status::FULL,
        _ => Status::UNKNOWN,
    };
    match status.0 {
        9 => "9",
        12 => "12",
        13 => "13",
        15 => "15",
        16 => "16",
        17 => "17",
        _ => "10",
    }
}
