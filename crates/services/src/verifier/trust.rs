//! Which keys may sign which names.

use crate::element::{Refusal, Request, read};
use crate::names;
use onym_wire::name::{Name, NameRef};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Most rules: each is tried for each Data.
const RULES_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Regular expression over the URI of the Data's name.
    data: String,
    /// The key's name starts with this.
    key: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    rules: Vec<Rule>,
}

/// Rules in order; the first whose expression matches decides. None matches: any known key.
#[derive(Debug, Default)]
pub(super) struct Trust {
    rules: Vec<(Rule, Regex, Name)>,
}

impl Trust {
    pub(super) fn allows(&self, data: NameRef<'_>, key: NameRef<'_>) -> bool {
        if self.rules.is_empty() {
            return true;
        }
        let uri = data.to_string();
        let found = self.rules.iter().find(|(_, regex, _)| regex.is_match(&uri));
        found.is_none_or(|(_, _, prefix)| prefix.as_ref().is_prefix_of(key))
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "rules": self.rules.iter().map(|(rule, ..)| rule).collect::<Vec<_>>() })
    }

    pub(super) fn put(&mut self, request: &Request<'_>) -> Result<Value, Refusal> {
        let whole: Whole = read(request.body.clone())?;
        if whole.rules.len() > RULES_MAX {
            return Err(Refusal::field("rules", format!("at most {RULES_MAX} rules are kept")));
        }
        let mut rules = Vec::new();
        for (at, rule) in whole.rules.into_iter().enumerate() {
            let regex = regex::RegexBuilder::new(&rule.data).size_limit(1 << 18).build();
            let regex =
                regex.map_err(|e| Refusal::field(format!("rules/{at}/data"), e.to_string()))?;
            let key = names::name(&format!("rules/{at}/key"), &rule.key)?;
            rules.push((rule, regex, key));
        }
        let same = rules.iter().map(|r| &r.0).eq(self.rules.iter().map(|r| &r.0));
        self.rules = rules;
        Ok(json!({ "changed": !same, "rules": self.rules.len() }))
    }
}
