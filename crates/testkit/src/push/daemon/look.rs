//! Observations of push scripts: information graphs, counters, frames that crossed a link.

use super::super::run::an_id;
use super::super::script::Line;
use super::super::step::{by_clock, check};
use super::{EFFECT, PATIENCE, Runner, SETTLING};
use onym_wire::push::Label;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Where the status of a node tells a counter of scripts.
pub(super) fn place(word: &str) -> Option<(&'static str, &str)> {
    match word {
        "sent" | "delivered" | "unwanted" | "missing" | "duplicates" | "incomplete"
        | "repaired" | "malformed" | "wrong_flow" => Some(("publications", word)),
        "asked" => Some(("publications", "repairs_asked")),
        word if word.starts_with("cache_") => Some(("cache", word.trim_start_matches("cache_"))),
        "mac" | "misdirected" | "refused" | "parts_refused" | "between" | "repairs"
        | "domain_repairs" | "requests" | "trees" => Some(("control", word)),
        "matches_told" => Some(("control", "matches")),
        "bad_control" => Some(("control", "malformed")),
        word if word.starts_with("push_") => Some(("verdicts", word)),
        _ => None,
    }
}

impl Runner {
    /// Looks at frames that crossed a link, until they are as wanted.
    pub(super) fn crossed(&self, line: &Line) -> Result<(), String> {
        let (a, b) = self.ends(line)?;
        let (relay, side) = self.relay(a, b)?;
        let before = self.marked.get(&format!("{a}->{b}")).copied().unwrap_or(0);
        let until = Instant::now() + PATIENCE;
        std::thread::sleep(EFFECT);
        loop {
            let got = relay.crossed(side).saturating_sub(before);
            let result = check("it", got, line.word(2, "a number")?);
            if result.is_ok() || Instant::now() > until {
                return result;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Looks at the information graphs of the rendezvous nodes, until they are as wanted: what was
    /// asked for by a node that does not wait is on its way.
    pub(super) fn graph(&self, line: &Line) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.graph_now(line) {
                Err(what) if Instant::now() > until => return Err(what),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// The label of a node, or of a domain.
    fn label(&self, name: &str) -> Result<Label, String> {
        let node = self.nodes.get(name).map(|n| n.label);
        node.or_else(|| name.parse().ok()).ok_or_else(|| format!("no node or domain {name:?}"))
    }

    fn graph_now(&self, line: &Line) -> Result<(), String> {
        let id = an_id(line.word(1, "an id")?)?;
        let mut found = None;
        let at = line.options.get("at");
        let homes = self.nodes.iter().filter(|(_, n)| n.is_home && n.is_alive());
        for (_, member) in homes.filter(|(name, _)| at.is_none_or(|at| at == *name)) {
            let told = member.told("graph", &[])?;
            let vertices = told["vertices"].as_array().cloned().unwrap_or_default();
            let is_it =
                |v: &Value| v["of"] == "domain" && texts(&v["ids"]).contains(&id.to_string());
            found = found.or(vertices.into_iter().find(is_it));
        }
        let is_absent = line.words.iter().any(|w| w == "absent");
        let vertex = match (found, is_absent) {
            (None, true) => return Ok(()),
            (None, false) => return Err("it is absent".into()),
            (Some(_), true) => return Err("it is there".into()),
            (Some(vertex), false) => vertex,
        };
        if let Some(want) = line.list("ids") {
            let want: Result<Vec<String>, String> =
                want.into_iter().map(|t| an_id(t).map(|id| id.to_string())).collect();
            let got = texts(&vertex["ids"]);
            if got != want? {
                return Err(format!("its ids are {got:?}"));
            }
        }
        for key in ["publishers", "subscribers"] {
            let Some(want) = line.list(key) else { continue };
            let want: Result<Vec<String>, String> =
                want.iter().map(|n| self.label(n).map(|l| l.to_string())).collect();
            let (mut want, got) = (want?, texts(&vertex[key]));
            want.sort_unstable();
            if got != want {
                return Err(format!("{key} are {got:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (name, member) in &self.nodes {
            let Ok(told) = member.told("status", &[]) else { continue };
            for group in ["publications", "cache", "control", "verdicts"] {
                for (word, value) in told[group].as_object().into_iter().flatten() {
                    all.insert(format!("{name}.{group}.{word}"), value.as_u64().unwrap_or(0));
                }
            }
        }
        for ([a, b], relay) in &self.relays {
            all.insert(format!("{a}->{b}"), relay.crossed(0));
            all.insert(format!("{b}->{a}"), relay.crossed(1));
        }
        all
    }

    /// Waits until what was asked for before has its effect everywhere: no control message is on
    /// its way, and none left while the nodes were asked. Where a link is cut there is no such
    /// moment, and the script goes on.
    pub(super) fn settle(&self) {
        if !self.has_timers || self.relays.iter().any(|(_, relay)| !relay.is_up()) {
            return;
        }
        let until = Instant::now() + SETTLING;
        let mut before = None;
        while Instant::now() < until {
            let all = self.counters();
            let sum = |word: &str| -> u64 {
                let is_it = |name: &str| name.ends_with(word);
                all.iter().filter(|(name, _)| is_it(name)).map(|(_, n)| n).sum()
            };
            let queued = (sum(".control.unacknowledged") == 0).then(|| sum(".control.queued"));
            if queued.is_some() && queued == before {
                return;
            }
            before = queued;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Looks at counters until they are as wanted: frames are on their way.
    pub(super) fn count(&self, line: &Line) -> Result<(), String> {
        let node = line.word(1, "a node")?;
        let until = Instant::now() + PATIENCE;
        loop {
            let all = self.counters();
            let result = line.options.iter().try_for_each(|(word, want)| {
                let (group, member) = place(word).ok_or("no such counter")?;
                let name = format!("{node}.{group}.{member}");
                let of = |counters: &BTreeMap<String, u64>| *counters.get(&name).unwrap_or(&0);
                check(word, of(&all).saturating_sub(of(&self.marked)), by_clock(want)[1])
            });
            if result.is_ok() || Instant::now() > until {
                return result;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|v| v.as_str().map(str::to_owned)).collect()
}
