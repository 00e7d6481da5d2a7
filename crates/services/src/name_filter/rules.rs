//! The rules of a filter.

use crate::config::Action;
use crate::control::{Answer, Changed, Merged, RuleId, RuleInfo, SetRequest};
use crate::cx::Cx;
use crate::events::Event;
use crate::names;
use crate::refusal::Refusal;
use crate::rule::{Applies, Match, Rule};
use onym_tables::prefix_map::PrefixMap;
use onym_tables::{HashKey, NameHashes, Tick};
use onym_wire::name::Name;
use regex::Regex;
use std::collections::BTreeMap;

/// Most regular expressions: each is tried for each packet.
const REGEX_MAX: usize = 64;
/// Most octets that a regular expression may take once compiled.
const REGEX_SIZE_MAX: usize = 1 << 18;

#[derive(Debug)]
struct Kept {
    spec: Rule,
    until: Tick,
    hits: u64,
    regex: Option<Regex>,
    name: Name,
}

type Key = (Match, String);

impl Kept {
    fn key(&self) -> Key {
        (self.spec.how, self.spec.prefix.clone())
    }

    /// What is left of its lifetime; none when it lasts.
    fn left_ms(&self, now: Tick) -> Option<u64> {
        let left = || u64::try_from(self.until.since(now).as_millis()).unwrap_or(u64::MAX);
        (self.until != Tick::NEVER).then(left)
    }
}

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

    fn parse_all(list: &str, rules: Vec<Rule>, now: Tick) -> Result<Vec<Kept>, Refusal> {
        let parse = |(at, rule)| Self::parse(&format!("{list}/{at}"), rule, now);
        rules.into_iter().enumerate().map(parse).collect()
    }

    /// Adds a rule; false when it was there (its lifetime begins again).
    fn add(&mut self, key: &HashKey, rule: Kept) -> bool {
        let at = rule.key();
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
        let is_new = |r: &&Kept| !self.all.contains_key(&r.key());
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

    fn change(&mut self, cx: &mut Cx<'_>, add: Vec<Kept>, remove: &[Key]) -> Changed {
        let mut removed = 0;
        for at in remove {
            removed += u64::from(self.remove(cx.key, at).is_some());
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
        Changed::new(added, removed, unchanged)
    }

    fn note_end(&mut self) {
        self.end = self.all.values().map(|r| r.until).min().filter(|t| *t != Tick::NEVER);
    }

    /// The resource `rules`.
    pub(super) fn control(
        &mut self,
        cx: &mut Cx<'_>,
        request: SetRequest<Rule, RuleId>,
        max: usize,
    ) -> Result<Answer, Refusal> {
        match request {
            SetRequest::List => Ok(Answer::Rules { rules: self.list(cx.now) }),
            SetRequest::Replace(rules) => {
                let add = Self::parse_all("rules", rules, cx.now)?;
                let wanted: Vec<Key> = add.iter().map(Kept::key).collect();
                let ours = self.all.iter().filter(|(_, r)| r.spec.origin == "operator");
                let gone = ours.map(|(k, _)| k).filter(|k| !wanted.contains(k));
                let remove: Vec<Key> = gone.cloned().collect();
                self.room(&add, remove.len(), max)?;
                Ok(self.change(cx, add, &remove).into())
            }
            SetRequest::Change { add, remove } => {
                let add = Self::parse_all("add", add, cx.now)?;
                let remove: Vec<Key> = remove.into_iter().map(|id| (id.how, id.prefix)).collect();
                let leaving = remove.iter().filter(|k| self.all.contains_key(*k)).count();
                self.room(&add, leaving, max)?;
                Ok(self.change(cx, add, &remove).into())
            }
        }
    }

    pub(super) fn import(
        &mut self,
        cx: &mut Cx<'_>,
        rules: Vec<Rule>,
        max: usize,
    ) -> Result<Answer, Refusal> {
        let add = Self::parse_all("entries", rules, cx.now)?;
        self.room(&add, 0, max)?;
        Ok(Merged::from(self.change(cx, add, &[])).into())
    }

    /// Every rule with what is left of its lifetime, as it can be posted again.
    pub(super) fn specs(&self, now: Tick) -> Vec<Rule> {
        let one = |rule: &Kept| Rule { lifetime_ms: rule.left_ms(now), ..rule.spec.clone() };
        self.all.values().map(one).collect()
    }

    fn list(&self, now: Tick) -> Vec<RuleInfo> {
        let one = |kept: &Kept| RuleInfo {
            rule: kept.spec.clone(),
            hits: kept.hits,
            left_ms: kept.left_ms(now),
        };
        self.all.values().map(one).collect()
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
