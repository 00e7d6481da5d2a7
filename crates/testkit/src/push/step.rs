//! The steps of a push script.

use super::run::{PATIENCE, Runner, an_id, show};
use super::script::Line;
use onym_pubsub::dispatcher::{Data, Refusal, Request, Sent};
use onym_pubsub::{AppId, Event, Keep, Verdict};
use onym_tables::FaceId;
use onym_wire::push::{
    Control, Filter, FrameBuilder, Id, Kind, Label, Route, RouteBuf, Strategy, reserved,
};
use std::time::Duration;

/// How often something is looked at that is to become so.
const GLANCE: Duration = Duration::from_millis(10);

pub(super) const KINDS: [(&str, Kind); 8] = [
    ("publish-scope", Kind::PUBLISH_SCOPE),
    ("publish-item", Kind::PUBLISH_ITEM),
    ("unpublish-scope", Kind::UNPUBLISH_SCOPE),
    ("unpublish-item", Kind::UNPUBLISH_ITEM),
    ("subscribe-scope", Kind::SUBSCRIBE_SCOPE),
    ("subscribe-item", Kind::SUBSCRIBE_ITEM),
    ("unsubscribe-scope", Kind::UNSUBSCRIBE_SCOPE),
    ("unsubscribe-item", Kind::UNSUBSCRIBE_ITEM),
];

fn refusal(word: &str) -> Option<Refusal> {
    Some(match word {
        "not-publisher" => Refusal::NotPublisher,
        "stopped" => Refusal::Stopped,
        "id" => Refusal::Id,
        "unfit" => Refusal::Unfit,
        "too-long" => Refusal::TooLong,
        "too-large" => Refusal::TooLarge,
        _ => return None,
    })
}

pub(super) fn strategy(line: &Line, default: Strategy) -> Result<Strategy, String> {
    let Some(name) = line.options.get("strategy") else { return Ok(default) };
    let number = || name.parse().ok().map(Strategy);
    Strategy::named(name).or_else(number).ok_or_else(|| format!("no strategy {name}"))
}

pub(super) fn payload(line: &Line) -> Result<Vec<u8>, String> {
    if let Some(size) = line.option::<usize>("size")? {
        // So that an exchanged or lost fragment shows.
        return Ok((0..size).map(|i| (i / 7 % 251) as u8).collect());
    }
    Ok(line.options.get("text").map(|t| t.as_bytes().to_vec()).unwrap_or_default())
}

/// How an item is to be retained.
pub(super) fn keep(line: &Line) -> Result<Keep, String> {
    Ok(Keep {
        count: line.word(3, "a number")?.parse().map_err(|_| "no number")?,
        lifetime_ms: line.option("lifetime")?.unwrap_or(0),
        deadline_ms: line.option("deadline")?.unwrap_or(0),
        priority: line.option("priority")?.unwrap_or(0),
        waits: line.option::<u8>("wait")? == Some(1),
    })
}

impl Runner {
    pub(super) fn step(&mut self, line: &Line) -> Result<(), String> {
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
                self.net.run_for(Duration::from_millis(ms));
                Ok(())
            }
            "down" | "up" => {
                let a = self.node(line.word(1, "a node")?)?;
                let b = self.node(line.word(2, "a node")?)?;
                let link = self.net.link_between(a, b).ok_or("no such link")?;
                let is_told = line.words.iter().any(|w| w == "told");
                match head.as_str() {
                    "up" => self.net.link_up(link),
                    _ if is_told => self.net.link_down_told(link),
                    _ => self.net.link_down(link),
                }
                Ok(())
            }
            "crash" => self.node(line.word(1, "a node")?).map(|n| self.net.crash(n)),
            "restart" => self.node(line.word(1, "a node")?).map(|n| self.net.restart(n)),
            "epoch" => {
                let number = line.word(1, "a number")?.parse().map_err(|_| "no number")?;
                self.net.start_epoch(number);
                Ok(())
            }
            "mark" => self.mark(),
            "graph" => self.graph(line),
            "inject" => self.inject(line),
            "crossed" => self.crossed(line),
            "count" => self.count(line),
            "drain" => {
                let (node, app) = self.app(line.word(1, "an application")?)?;
                while self.net.event(node, app).is_some() {}
                Ok(())
            }
            _ => Err("no such step".into()),
        }
    }

    fn act(&mut self, app: &str, line: &Line) -> Result<(), String> {
        let (node, app) = self.app(app)?;
        let word = line.word(1, "what to do")?;
        match word {
            "leave" => {
                self.net.disconnect(node, app);
                return Ok(());
            }
            "data" => return self.publish(node, app, line),
            "retain" => {
                let id = an_id(line.word(2, "an id")?)?;
                let keep = keep(line)?;
                self.tags += 1;
                self.net.retain(node, app, self.tags, &id, keep);
                return self.answered(node, app, line);
            }
            _ => {}
        }
        let kind = KINDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| format!("no request {word}"))?;
        let request = Request {
            kind,
            id: an_id(&format!("/{}", line.word(2, "an id")?.trim_start_matches('/')))?,
            prefix: an_id(line.words.get(3).map_or("/", String::as_str))?,
            strategy: strategy(line, Strategy::DOMAIN_LOCAL)?,
        };
        self.tags += 1;
        self.net.request(node, app, self.tags, &request);
        self.answered(node, app, line)
    }

    /// The last request of an application is answered as the line says.
    fn answered(&mut self, node: usize, app: AppId, line: &Line) -> Result<(), String> {
        let tag = self.tags;
        let wanted = line.options.get("status").map_or("0", String::as_str);
        if wanted == "-" {
            return Ok(());
        }
        let event = self.next_event(node, app, PATIENCE).ok_or("no status came")?;
        match event {
            Event::Status { tag: t, status } if t == tag && status.0.to_string() == wanted => {
                Ok(())
            }
            other => Err(format!("got {}", show(&other))),
        }
    }

    fn publish(&mut self, node: usize, app: AppId, line: &Line) -> Result<(), String> {
        let payload = payload(line)?;
        let mut data = Data::new(
            an_id(line.word(2, "an id")?)?,
            strategy(line, Strategy::DOMAIN_LOCAL)?,
            &payload,
        );
        data.lifetime_ms = line.option("lifetime")?.unwrap_or(0);
        data.about = line.options.get("about").map(|t| an_id(t)).transpose()?;
        if line.options.contains_key("route") {
            data.route = Some(RouteBuf::flat(0, &self.filter(line, "route")?));
        }
        if let Some(to) = line.options.get("via") {
            let to = Label::from_u64(self.node(to)? as u64 + 1);
            let n = self.net.node(node).ok_or("the node is down")?;
            let mut faces = n.forwarder.links().iter().map(|l| l.face);
            data.face = faces.find(|f| n.link_state.neighbour(*f) == Some(to));
            data.face.get_or_insert(FaceId::INVALID);
        }
        // It is not read before.
        self.net.run_until(PATIENCE, |net| !net.is_paused(node, app));
        let result = self.net.publish(node, app, &data).ok_or("the node is down")?;
        match (result, line.options.get("refused")) {
            (Err(why), Some(word)) if refusal(word) == Some(why) => Ok(()),
            (Ok(Sent { local, frames }), None) => {
                let wrong = |key: &str, got: usize| match line.option::<usize>(key) {
                    Ok(Some(want)) if want != got => Err(format!("{key} is {got}")),
                    Ok(_) => Ok(()),
                    Err(e) => Err(e),
                };
                wrong("local", local)?;
                wrong("frames", frames)
            }
            (result, _) => Err(format!("{result:?}")),
        }
    }

    fn hear(&mut self, app: &str, line: &Line) -> Result<(), String> {
        let (node, app) = self.app(app)?;
        let what = line.word(1, "an event")?;
        if what == "nothing" {
            let ms = line.option("for")?.unwrap_or(300);
            let event = self.next_event(node, app, Duration::from_millis(ms));
            return event.map_or(Ok(()), |e| Err(format!("got {}", show(&e))));
        }
        let event = self.next_event(node, app, PATIENCE).ok_or("nothing came")?;
        let got = show(&event);
        let is_it = match (&event, what) {
            (Event::Status { status, .. }, "status") => {
                line.word(2, "a number")? == status.0.to_string()
            }
            (Event::StartPublish(id), "start")
            | (Event::StopPublish(id), "stop")
            | (Event::ScopePublished(id), "scope")
            | (Event::ScopeUnpublished(id), "unscope") => *id == an_id(line.word(2, "an id")?)?,
            (Event::Overdue { id, .. }, "overdue") => *id == an_id(line.word(2, "an id")?)?,
            (Event::Missed(count) | Event::NoRoom(count), "missed") => {
                line.word(2, "a number")? == count.to_string()
            }
            (Event::Data { id, payload: got, .. }, "data") => {
                *id == an_id(line.word(2, "an id")?)? && got[..] == payload(line)?[..]
            }
            _ => false,
        };
        if is_it { Ok(()) } else { Err(format!("got {got}")) }
    }

    /// Looks at the information graph of the rendezvous nodes: now, or until it is as wanted.
    fn graph(&mut self, line: &Line) -> Result<(), String> {
        let until = self.net.now() + Duration::from_millis(line.option("within")?.unwrap_or(0));
        loop {
            let result = self.graph_now(line);
            if result.is_ok() || self.net.now() >= until {
                return result;
            }
            self.net.run_for(GLANCE);
        }
    }

    /// The label of a node, or of a domain.
    fn label(&self, name: &str) -> Result<Label, String> {
        let node = self.nodes.get(name).map(|n| Label::from_u64(*n as u64 + 1));
        node.or_else(|| name.parse().ok()).ok_or_else(|| format!("no node or domain {name:?}"))
    }

    fn graph_now(&self, line: &Line) -> Result<(), String> {
        let id = an_id(line.word(1, "an id")?)?;
        let at = line.options.get("at");
        let asked = self.nodes.iter().filter(|(name, _)| at.is_none_or(|at| at == *name));
        let view = asked.map(|(_, n)| n).find_map(|n| {
            let rendezvous = self.net.node(*n)?.rendezvous.as_ref()?;
            rendezvous.graph().view(&id)
        });
        let Some(view) = view else {
            let is_absent = line.words.iter().any(|w| w == "absent");
            return if is_absent { Ok(()) } else { Err("it is absent".into()) };
        };
        if line.words.iter().any(|w| w == "absent") {
            return Err("it is there".into());
        }
        if let Some(want) = line.list("ids") {
            let want = want.into_iter().map(an_id).collect::<Result<Vec<Id>, _>>()?;
            let got: Vec<Id> = view.ids.iter().map(|(id, ..)| id.clone()).collect();
            if got != want {
                return Err(format!("its ids are {got:?}"));
            }
        }
        let sets: [(&str, Vec<Label>); 2] = [
            ("publishers", view.ids.iter().flat_map(|(_, p, _)| p.clone()).collect()),
            ("subscribers", view.ids.iter().flat_map(|(_, _, s)| s.clone()).collect()),
        ];
        for (key, mut got) in sets {
            let Some(want) = line.list(key) else { continue };
            let want: Result<Vec<Label>, String> = want.iter().map(|n| self.label(n)).collect();
            let mut want = want?;
            want.sort_unstable();
            got.sort_unstable();
            got.dedup();
            if got != want {
                return Err(format!("{key} are {got:?}"));
            }
        }
        Ok(())
    }

    /// Links and insides of a filter: `a-b` for the link from a to b, `a` for the inside of a.
    fn filter(&self, line: &Line, key: &str) -> Result<Filter, String> {
        let mut filter = Filter::EMPTY;
        for part in line.list(key).unwrap_or_default() {
            if part == "all" {
                return Ok(Filter::ALL);
            }
            if let Some(count) = part.strip_prefix("ones:") {
                let count: u16 = count.parse().map_err(|_| "ones:N")?;
                // From the top, where no link of a small script is.
                (0..count).for_each(|i| filter.set((255 - i) as u8));
                continue;
            }
            let number = match part.split_once('-') {
                Some((a, b)) => self
                    .net
                    .link_number(self.node(a)?, self.node(b)?)
                    .ok_or_else(|| format!("no link {part}"))?,
                None => self.inside(self.node(part)?),
            };
            filter.add(&self.scheme().tag(number, 0));
        }
        Ok(filter)
    }

    /// A frame as if the first node had sent it.
    fn inject(&mut self, line: &Line) -> Result<(), String> {
        let (a, b) = self.ends(line.word(1, "a->b")?)?;
        let octets = match line.word(2, "push, control or raw")? {
            "raw" => hex(line.words.get(3).map_or("", String::as_str))?,
            "control" => {
                let sender = match line.options.get("sender") {
                    Some(name) => Label::from_u64(self.node(name)? as u64 + 1),
                    None => line.option("domain")?.unwrap_or(STRANGER),
                };
                let inside = self.scheme().tag(self.inside(b), 0);
                control_frame(line, sender, Label::from_u64(b as u64 + 1), &inside)?
            }
            _ => push_frame(line, &self.filter(line, "flat")?)?,
        };
        for _ in 0..line.option("times")?.unwrap_or(1) {
            self.net.inject(a, b, octets.clone());
        }
        self.net.run_for(Duration::from_millis(100));
        Ok(())
    }

    /// Everything that can be counted, by name.
    fn counters(&self) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        for (name, n) in &self.nodes {
            let Some(node) = self.net.node(*n) else { continue };
            let mut add = |word: &str, value: u64| all.push((format!("{name}.{word}"), value));
            let counters = node.forwarder.counters();
            Verdict::ALL.iter().for_each(|v| add(v.label(), counters.of(*v)));
            let d = node.counters();
            add("sent", d.sent);
            add("delivered", d.delivered);
            add("unwanted", d.unwanted);
            add("malformed", d.malformed);
            add("refused", d.refused);
            add("wrong_flow", d.wrong_flow);
            add("incomplete", d.incomplete);
            add("missing", d.missing);
            add("duplicates", d.duplicates);
            add("repaired", d.repaired);
            add("asked", d.repairs_asked);
            let cache = node.dispatcher.cache();
            add("cache_publications", cache.publications as u64);
            add("cache_partial", cache.partial as u64);
            add("cache_told", cache.told);
            add("cache_sent", cache.sent);
            add("cache_evicted", cache.evicted);
            add("mac", node.dropped.mac);
            add(
                "between",
                node.topology.as_ref().and_then(|t| t.federation()).map_or(0, |f| f.refused),
            );
            add("bad_control", node.dropped.malformed);
            add("misdirected", node.dropped.misdirected);
            let refused = [
                node.rendezvous.as_ref().map_or(0, |r| r.refused),
                node.topology.as_ref().map_or(0, |t| t.refused),
                node.link_state.refused,
            ];
            add("parts_refused", refused.iter().sum());
            add("trees", node.topology.as_ref().map_or(0, |t| t.trees));
            add("matches_told", node.taken(Kind::MATCH));
            add("repairs", node.taken(Kind::REPAIR));
            add("domain_repairs", node.taken(Kind::DOMAIN_REPAIR));
            add("requests", (0..8).map(|kind| node.taken(Kind(kind))).sum());
            for (other, m) in &self.nodes {
                all.push((format!("{name}->{other}"), self.net.crossed(*n, *m).0));
            }
        }
        all
    }

    fn mark(&mut self) -> Result<(), String> {
        self.marked = self.counters().into_iter().collect();
        Ok(())
    }

    fn since_mark(&self, name: &str) -> Result<u64, String> {
        let all = self.counters();
        let value = all.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let value = value.ok_or_else(|| format!("nothing is counted as {name}"))?;
        Ok(value - self.marked.get(name).copied().unwrap_or(0).min(value))
    }

    fn crossed(&self, line: &Line) -> Result<(), String> {
        let link = line.word(1, "a->b")?;
        self.ends(link)?;
        check(link, self.since_mark(link)?, line.word(2, "a number")?)
    }

    fn count(&self, line: &Line) -> Result<(), String> {
        let node = line.word(1, "a node")?;
        line.options.iter().try_for_each(|(word, want)| {
            check(word, self.since_mark(&format!("{node}.{word}"))?, by_clock(want)[0])
        })
    }
}

/// A frame as a neighbour might send it; `filter` is that of the option `flat`.
pub(super) fn push_frame(line: &Line, filter: &Filter) -> Result<Vec<u8>, String> {
    let ids = line.list("ids").unwrap_or_else(|| vec!["/1/2"]);
    let ids = ids.into_iter().map(an_id).collect::<Result<Vec<Id>, _>>()?;
    let route = if line.options.contains_key("flat") {
        RouteBuf::flat(line.option("table")?.unwrap_or(0), filter)
    } else {
        RouteBuf::from(Route::Link)
    };
    let mut octets = Vec::new();
    FrameBuilder {
        hop_limit: line.option("hop")?.unwrap_or(10),
        strategy: strategy(line, Strategy::IMPLICIT)?,
        route: &route,
        ids: &ids,
        options: &hex(line.options.get("options").map_or("", String::as_str))?,
        payload: &payload(line)?,
    }
    .write(&mut octets);
    if let Some(cut) = line.option::<usize>("cut")? {
        octets.truncate(cut);
    }
    // The version octet is the first one of VALUE.
    if let (Some(first), Some(at)) = (line.option::<u8>("first")?, octets.get_mut(2)) {
        *at = first;
    }
    Ok(octets)
}

/// Who sends forged messages, unless the script says who.
pub(super) const STRANGER: Label = Label::from_u64(99);

/// A forged control message for a part of the node `member`; `inside` is the tag of its inside.
pub(super) fn control_frame(
    line: &Line,
    sender: Label,
    member: Label,
    inside: &Filter,
) -> Result<Vec<u8>, String> {
    let kind = Kind(line.option("kind")?.unwrap_or(100));
    let mut message = Control::new(kind, sender);
    let ids = line.list("id").unwrap_or_else(|| vec!["/1/2"]);
    message.ids = ids.into_iter().map(an_id).collect::<Result<_, _>>()?;
    message.nodes = line.option("for")?.into_iter().collect();
    message.hops = line.option("hops")?.unwrap_or(0);
    let missing = line.list("missing").unwrap_or_default();
    message.missing = missing.into_iter().map(range).collect::<Result<_, _>>()?;
    message.sequence.session = line.option("session")?.unwrap_or(0);
    message.sequence.number = line.option("number")?.unwrap_or(0);
    message.strategy = Strategy::DOMAIN_LOCAL;
    let (root, node) = match line.options.get("to").map(String::as_str) {
        Some("rendezvous") => (reserved::RENDEZVOUS, sender),
        Some("topology") => (reserved::TOPOLOGY, sender),
        Some("domains") => (reserved::DOMAINS, sender),
        _ => (reserved::DISPATCHER, member),
    };
    let is_between = root == reserved::DOMAINS;
    let route = if is_between { Route::Link.into() } else { RouteBuf::flat(0, inside) };
    let mut octets = Vec::new();
    FrameBuilder {
        hop_limit: 10,
        strategy: Strategy::IMPLICIT,
        route: &route,
        ids: &[reserved::of(root, node)],
        options: &[],
        payload: &message.octets(),
    }
    .write(&mut octets);
    Ok(octets)
}

/// `A..B`: fragments, the last one included.
fn range(text: &str) -> Result<(u32, u32), String> {
    let ends = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    ends.ok_or_else(|| format!("{text:?} is no A..B"))
}

/// What a number must be in memory, and over daemons: `M|N`, or the same in both.
pub(super) fn by_clock(want: &str) -> [&str; 2] {
    want.split_once('|').map_or([want, want], |(memory, daemons)| [memory, daemons])
}

pub(super) fn check(what: &str, got: u64, want: &str) -> Result<(), String> {
    let (low, high) = want.split_once("..").unwrap_or((want, want));
    let number = |text: &str, empty: u64| {
        if text.is_empty() { Ok(empty) } else { text.parse().map_err(|_| "no number") }
    };
    let is_it = (number(low, 0)?..=number(high, u64::MAX)?).contains(&got);
    if is_it { Ok(()) } else { Err(format!("{what} is {got}")) }
}

pub(super) fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.as_bytes().as_chunks::<2>();
    if !digits.1.is_empty() {
        return Err("pairs of hexadecimal digits".into());
    }
    let octet = |pair: &[u8; 2]| {
        let text = std::str::from_utf8(pair).map_err(|_| "no text")?;
        u8::from_str_radix(text, 16).map_err(|_| "no hexadecimal digits")
    };
    digits.0.iter().map(|p| octet(p).map_err(str::to_owned)).collect()
}
