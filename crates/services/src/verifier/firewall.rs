//! Turns failed verifications into rules of a name filter: bounded, with a lifetime, and never for
//! names with valid Data.

use crate::config::{Action, Filter};
use crate::cx::Cx;
use crate::effect::{Effect, RulesForFilter};
use crate::rule::{Applies, Match, Rule};
use onym_tables::Tick;
use onym_wire::name::{Name, NameRef};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Names that are remembered in a period, good and bad each; beyond, no rule is made from them.
const NAMES_MAX: usize = 16_384;

/// What this period and the one before saw.
#[derive(Debug, Default)]
pub(super) struct Firewall {
    bad: BTreeSet<Vec<u8>>,
    good: [BTreeSet<Vec<u8>>; 2],
    /// Ends of rules that were sent and still count.
    alive: VecDeque<Tick>,
    sent: u64,
}

impl Firewall {
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn failed(&mut self, name: NameRef<'_>) {
        if self.bad.len() < NAMES_MAX {
            self.bad.insert(name.value().to_vec());
        }
    }

    pub(super) fn valid(&mut self, name: NameRef<'_>) {
        let good = &mut self.good[0];
        if good.len() < NAMES_MAX {
            good.insert(name.value().to_vec());
        }
    }

    fn is_good(&self, name: &[u8]) -> bool {
        // A full set may miss a good name: then nothing is believed bad.
        self.good.iter().any(|g| g.len() >= NAMES_MAX || g.contains(name))
    }

    /// Whether a good name lies under `prefix` (a name's value).
    fn has_good(&self, prefix: &[u8]) -> bool {
        let under = |g: &BTreeSet<Vec<u8>>| {
            g.range(prefix.to_vec()..).next().is_some_and(|n| n.starts_with(prefix))
        };
        self.good.iter().any(|g| g.len() >= NAMES_MAX || under(g))
    }

    /// The period has ended: what failed goes to the filter.
    pub(super) fn period(&mut self, cx: &mut Cx<'_>, target: Option<&Filter>) {
        let bad = std::mem::take(&mut self.bad);
        if let Some(target) = target.filter(|_| !bad.is_empty()) {
            let rules = self.rules(cx.now, target, &bad);
            if !rules.is_empty() {
                self.sent += rules.len() as u64;
                let (url, token) = (target.url.clone(), target.token.clone());
                cx.effects.push(Effect::AddRules(RulesForFilter { url, token, rules }));
            }
        }
        self.good[1] = std::mem::take(&mut self.good[0]);
    }

    fn rules(&mut self, now: Tick, target: &Filter, bad: &BTreeSet<Vec<u8>>) -> Vec<Rule> {
        while self.alive.front().is_some_and(|end| *end <= now) {
            self.alive.pop_front();
        }
        let mut parents: BTreeMap<Name, usize> = BTreeMap::new();
        let parse = |n: &Vec<u8>| NameRef::parse_value(n).ok().map(NameRef::to_name);
        for name in bad.iter().filter_map(parse) {
            *parents.entry(name.as_ref().drop_last(1).to_name()).or_default() += 1;
        }
        let whole = |parent: &Name| {
            let many = parents.get(parent).is_some_and(|n| *n >= target.after.max(1));
            !parent.is_empty() && many && !self.has_good(parent.value())
        };
        let mut wanted: BTreeSet<(Name, Match)> = BTreeSet::new();
        for name in bad.iter().filter_map(parse) {
            let parent = name.as_ref().drop_last(1).to_name();
            if whole(&parent) {
                wanted.insert((parent, Match::Prefix));
            } else if !self.is_good(name.value()) {
                wanted.insert((name, Match::Exact));
            }
        }
        let mut rules = Vec::new();
        for (name, how) in wanted {
            if self.alive.len() >= target.rules_max {
                break;
            }
            self.alive.push_back(now.plus_ms(target.lifetime_ms));
            rules.push(Rule {
                prefix: name.to_string(),
                how,
                action: Action::Drop,
                applies: Applies::Data,
                lifetime_ms: Some(target.lifetime_ms),
                origin: "verifier".to_owned(),
            });
        }
        rules
    }
}
