//! The rules of a filter.

use crate::config::Action;
use crate::element::{Cx, Refusal, Request, read};
use crate::events::Event;
use crate::names;
use crate::rule::{Applies, Match, Rule};
use onym_tables::prefix_map::PrefixMap;
use onym_tables::{HashKey, NameHashes, Tick};
use onym_wire::name::Name;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most regular expressions: each is tried for each packet.
const REGEX_MAX: usize = 64;
/// Most octets that a regular expression may take once compiled.
const REGEX_SIZE_MAX: usize = 1 << 18;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    prefix: String,
    #[serde(default, rename = "match")]
    how: Match,
}

#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Change {
    add: Vec<Rule>,
    remove: Vec<Which>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Kept {
    spec: Rule,
    until: Tick,
    hits: u64,
    regex: Option<Regex>,
    name: Name,
}

type Key = (Match, String);

/// All rules: listed by what they match, and found by name.
#[derive(Debug, Default)]
pub(super) struct Rules {
    all: BTreeMap<Key, Kept>,
    exact: PrefixMap<Key>,
    prefixes: PrefixMap<Key>,
    regexes: Vec<Key>,
    /// When the next rule ends.
    end: Option<Tick>,
}

impl Rules {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// What the rules say of a packet with this name (its value).
    pub(super) fn decide(&mut self, key: &HashKey, name: &[u8], kind: Applies) -> Option<Action> {
        let found = self.find(key, name, kind)?;
        let rule = self.all.get_mut(&found)?;
        rule.hits += 1;
        Some(rule.spec.action)
    }

    fn find(&self, key: &HashKey, name: &[u8], kind: Applies) -> Option<Key> {
        let covers = |k: &Key| self.all.get(k).is_some_and(|r| r.spec.applies.covers(kind));
        if !self.regexes.is_empty() {
            let uri = names::uri(name);
            let fits = |k: &&Key| {
                covers(k)
                    && self
                        .all
                        .get(*k)
                        .and_then(|r| r.regex.as_ref())
                        .is_some_and(|r| r.is_match(&uri))
            };
            if let Some(found) = self.regexes.iter().find(fits) {
                return Some(found.clone());
            }
        }
        if !self.exact.is_empty()
            && let Some(found) = self.exact.get(&names::key(key, name)).filter(|k| covers(k))
        {
            return Some(found.clone());
        }
        let hashes = NameHashes::new(key, name, self.prefixes.lengths());
        self.prefixes.longest_match(&hashes, name, covers).map(|(_, found)| found.clone())
    }

    fn parse(field: &str, spec: Rule, now: Tick) -> Result<Kept, Refusal> {
        let until = spec.lifetime_ms.map_or(Tick::NEVER, |ms| now.plus_ms(ms));
        let (mut regex, mut name) = (None, Name::new());
        if spec.how == Match::Regex {
            let built = regex::RegexBuilder::new(&spec.prefix).size_limit(REGEX_SIZE_MAX).build();
            regex = Some(built.map_err(|e| Refusal::field(field, e.to_string()))?);
        } else {
            name = names::prefix(field, &spec.prefix)?;
        }
        Ok(Kept { spec, until, hits: 0, regex, name })
    }

    /// Adds a rule; false when it was there (its lifetime begins again).
    fn add(&mut self, key: &HashKey, rule: Kept) -> bool {
        let at = (rule.spec.how, rule.spec.prefix.clone());
        if let Some(known) = self.all.get_mut(&at) {
            let same = Rule { lifetime_ms: None, ..known.spec.clone() }
                == Rule { lifetime_ms: None, ..rule.spec.clone() };
            let renewed = known.until != rule.until;
            (known.spec, known.until) = (rule.spec, rule.until);
            return !same || (renewed && known.until == Tick::NEVER);
        }
        match rule.spec.how {
            Match::Regex => self.regexes.push(at.clone()),
            Match::Exact => {
                drop(self.exact.insert(&names::key(key, rule.name.value()), at.clone()))
            }
            Match::Prefix => {
                drop(self.prefixes.insert(&names::key(key, rule.name.value()), at.clone()));
            }
        }
        self.all.insert(at, rule);
        true
    }

    fn remove(&mut self, key: &HashKey, at: &Key) -> Option<Rule> {
        let rule = self.all.remove(at)?;
        match rule.spec.how {
            Match::Regex => self.regexes.retain(|k| k != at),
            Match::Exact => drop(self.exact.remove(&names::key(key, rule.name.value()))),
            Match::Prefix => drop(self.prefixes.remove(&names::key(key, rule.name.value()))),
        }
        Some(rule.spec)
    }

    fn room(&self, add: &[Kept], leaving: usize, max: usize) -> Result<(), Refusal> {
        let is_new = |r: &&Kept| !self.all.contains_key(&(r.spec.how, r.spec.prefix.clone()));
        let new: Vec<&Kept> = add.iter().filter(is_new).collect();
        if self.len() + new.len() > max + leaving {
            let text = format!("at most {max} rules are kept (rules_max)");
            return Err(Refusal::conflict("full", text));
        }
        let regexes = new.iter().filter(|r| r.regex.is_some()).count();
        if self.regexes.len() + regexes > REGEX_MAX + leaving {
            let text = format!("at most {REGEX_MAX} regular expressions are kept");
            return Err(Refusal::conflict("full", text));
        }
        Ok(())
    }

    fn change(&mut self, cx: &mut Cx<'_>, add: Vec<Kept>, remove: &[Key]) -> Value {
        let mut removed = 0;
        for at in remove {
            removed += usize::from(self.remove(cx.key, at).is_some());
        }
        let (mut added, mut unchanged) = (0, 0);
        for rule in add {
            let spec = rule.spec.clone();
            if self.add(cx.key, rule) {
                added += 1;
                cx.events.push(Event::RuleAdded { rule: spec });
            } else {
                unchanged += 1;
            }
        }
        self.note_end();
        json!({
            "changed": added + removed > 0, "added": added, "removed": removed,
            "unchanged": unchanged,
        })
    }

    fn note_end(&mut self) {
        self.end = self.all.values().map(|r| r.until).min().filter(|t| *t != Tick::NEVER);
    }

    pub(super) fn put(
        &mut self,
        cx: &mut Cx<'_>,
        request: &Request<'_>,
        max: usize,
    ) -> Result<Value, Refusal> {
        let whole: Whole = read(request.body.clone())?;
        let mut add = Vec::new();
        for (at, spec) in whole.rules.into_iter().enumerate() {
            add.push(Self::parse(&format!("rules/{at}"), spec, cx.now)?);
        }
        let wanted: Vec<Key> = add.iter().map(|r| (r.spec.how, r.spec.prefix.clone())).collect();
        let ours = self.all.iter().filter(|(_, r)| r.spec.origin == "operator");
        let remove: Vec<Key> =
            ours.map(|(k, _)| k).filter(|k| !wanted.contains(k)).cloned().collect();
        self.room(&add, remove.len(), max)?;
        Ok(self.change(cx, add, &remove))
    }

    pub(super) fn post(
        &mut self,
        cx: &mut Cx<'_>,
        request: &Request<'_>,
        max: usize,
    ) -> Result<Value, Refusal> {
        let change: Change = read(request.body.clone())?;
        let mut add = Vec::new();
        for (at, spec) in change.add.into_iter().enumerate() {
            add.push(Self::parse(&format!("add/{at}"), spec, cx.now)?);
        }
        let remove: Vec<Key> = change.remove.into_iter().map(|w| (w.how, w.prefix)).collect();
        let leaving = remove.iter().filter(|k| self.all.contains_key(*k)).count();
        self.room(&add, leaving, max)?;
        Ok(self.change(cx, add, &remove))
    }

    pub(super) fn import(
        &mut self,
        cx: &mut Cx<'_>,
        entries: Vec<Value>,
        max: usize,
    ) -> Result<Value, Refusal> {
        let mut add = Vec::new();
        for (at, value) in entries.into_iter().enumerate() {
            add.push(Self::parse(&format!("entries/{at}"), read(value)?, cx.now)?);
        }
        self.room(&add, 0, max)?;
        let done = self.change(cx, add, &[]);
        let (new, merged) = (&done["added"], &done["unchanged"]);
        Ok(json!({ "changed": done["changed"], "new": new, "merged": merged, "refused": 0 }))
    }

    /// Every rule with what is left of its lifetime, as it can be posted again.
    pub(super) fn specs(&self, now: Tick) -> Vec<Value> {
        let write = |rule: &Kept| {
            let left = (rule.until != Tick::NEVER).then(|| left_ms(rule.until, now));
            let spec = Rule { lifetime_ms: left, ..rule.spec.clone() };
            serde_json::to_value(spec).unwrap_or_default()
        };
        self.all.values().map(write).collect()
    }

    pub(super) fn list(&self, now: Tick) -> Vec<Value> {
        let write = |rule: &Kept| {
            let mut out = serde_json::to_value(&rule.spec).unwrap_or_default();
            out["hits"] = rule.hits.into();
            out["left_ms"] = match rule.until {
                Tick::NEVER => Value::Null,
                until => left_ms(until, now).into(),
            };
            out
        };
        self.all.values().map(write).collect()
    }

    pub(super) fn next_end(&self) -> Option<Tick> {
        self.end
    }

    /// Takes out what is over.
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>) {
        if self.next_end().is_none_or(|end| end > cx.now) {
            return;
        }
        let over = self.all.iter().filter(|(_, r)| r.until <= cx.now);
        let over: Vec<Key> = over.map(|(k, _)| k.clone()).collect();
        for at in over {
            if let Some(spec) = self.remove(cx.key, &at) {
                cx.events.push(Event::RuleExpired { rule: spec });
            }
        }
        self.note_end();
    }
}

fn left_ms(until: Tick, now: Tick) -> u64 {
    u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)
}
