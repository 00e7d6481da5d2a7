//! Which keys may sign which names: rules of expressions, or a trust schema.

use crate::element::{Refusal, Request, read};
use crate::keys::Key;
use crate::names;
use onym_trust::conf::{Rules, no_include};
use onym_trust::lvs::{Functions, Mode, Schema, compile};
use onym_trust::{KeyForm, Policy, Subject};
use onym_wire::name::{Name, NameRef};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

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

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Whole {
    rules: Option<Vec<Rule>>,
    /// LightVerSec.
    lightversec: Option<String>,
    /// Validator configuration of ndn-cxx; its anchors do not count here.
    validator: Option<String>,
    /// Where in the configuration the rules are.
    section: String,
}

/// Rules in order, of which the first whose expression matches decides; none matches: any known key.
/// Or a schema, which refuses what it does not allow.
#[derive(Debug, Default)]
pub(super) struct Trust {
    rules: Vec<(Rule, Regex, Name)>,
    schema: Option<Written>,
}

/// A schema, and how it was written.
#[derive(Debug)]
struct Written {
    policy: Arc<dyn Policy>,
    source: Value,
}

impl Trust {
    /// Whether `key` may sign Data of this name with a signature of this type.
    pub(super) fn allows(&self, data: NameRef<'_>, signature_type: u64, key: &Key) -> bool {
        if let Some(schema) = &self.schema {
            let subject = Subject::data(data).signed(signature_type);
            let name = match schema.policy.key_form() {
                KeyForm::Certificate => key.certificate.as_ref().unwrap_or(&key.name),
                KeyForm::Locator => &key.name,
            };
            return schema.policy.check(&subject, name.as_ref()).is_allowed();
        }
        if self.rules.is_empty() {
            return true;
        }
        let uri = data.to_string();
        let found = self.rules.iter().find(|(_, regex, _)| regex.is_match(&uri));
        found.is_none_or(|(_, _, prefix)| prefix.as_ref().is_prefix_of(key.name.as_ref()))
    }

    /// Whether there is a schema: then it decides alone, also about certificates.
    pub(super) const fn is_schema(&self) -> bool {
        self.schema.is_some()
    }

    pub(super) fn to_json(&self) -> Value {
        match &self.schema {
            Some(schema) => schema.source.clone(),
            None => {
                json!({ "rules": self.rules.iter().map(|(rule, ..)| rule).collect::<Vec<_>>() })
            }
        }
    }

    pub(super) fn put(&mut self, request: &Request<'_>) -> Result<Value, Refusal> {
        let whole: Whole = read(request.body.clone())?;
        let before = self.to_json();
        match (whole.rules, whole.lightversec, whole.validator) {
            (Some(rules), None, None) => {
                self.rules = compiled(rules)?;
                self.schema = None;
            }
            (None, Some(text), None) => {
                let wrong =
                    |e: &dyn std::fmt::Display| Refusal::field("lightversec", e.to_string());
                let model = compile(&text, Mode::Strict).map_err(|e| wrong(&e))?;
                let schema = Schema::new(model, Functions::default()).map_err(|e| wrong(&e))?;
                let source = json!({ "lightversec": text });
                self.schema = Some(Written { policy: Arc::new(schema), source });
                self.rules = Vec::new();
            }
            (None, None, Some(text)) => {
                let rules = Rules::parse(&text, &whole.section, &mut no_include);
                let rules = rules.map_err(|e| Refusal::field("validator", e.to_string()))?;
                if rules.allows_anything() {
                    let why =
                        "a trust anchor of type any turns all rules off: say so with no rules";
                    return Err(Refusal::field("validator", why));
                }
                let source = json!({ "validator": text, "section": whole.section });
                self.schema = Some(Written { policy: Arc::new(rules), source });
                self.rules = Vec::new();
            }
            _ => {
                let why = "exactly one of rules, lightversec and validator is given";
                return Err(Refusal::field("", why));
            }
        }
        let now = self.to_json();
        Ok(json!({ "changed": now != before, "rules": self.rules.len() }))
    }
}

fn compiled(rules: Vec<Rule>) -> Result<Vec<(Rule, Regex, Name)>, Refusal> {
    if rules.len() > RULES_MAX {
        return Err(Refusal::field("rules", format!("at most {RULES_MAX} rules are kept")));
    }
    let mut all = Vec::new();
    for (at, rule) in rules.into_iter().enumerate() {
        let regex = regex::RegexBuilder::new(&rule.data).size_limit(1 << 18).build();
        let regex = regex.map_err(|e| Refusal::field(format!("rules/{at}/data"), e.to_string()))?;
        let key = names::name(&format!("rules/{at}/key"), &rule.key)?;
        all.push((rule, regex, key));
    }
    Ok(all)
}
