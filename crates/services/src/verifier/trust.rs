//! Which keys may sign which names: rules of expressions, or a trust schema.

use crate::control::{Answer, TrustRule, TrustSource};
use crate::keys::Key;
use crate::names;
use crate::refusal::Refusal;
use onym_trust::conf::{Rules, no_include};
use onym_trust::lvs::{Functions, Mode, Schema, compile};
use onym_trust::{KeyForm, Policy, Subject};
use onym_wire::name::{Name, NameRef};
use regex::Regex;
use std::sync::Arc;

/// Most rules: each is tried for each Data.
const RULES_MAX: usize = 64;

/// Rules in order, of which the first whose expression matches decides; none matches: any known key.
/// Or a schema, which refuses what it does not allow.
#[derive(Debug, Default)]
pub(super) struct Trust {
    rules: Vec<(TrustRule, Regex, Name)>,
    schema: Option<Written>,
}

/// A schema, and how it was written.
#[derive(Debug)]
struct Written {
    policy: Arc<dyn Policy>,
    source: TrustSource,
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

    pub(super) fn source(&self) -> TrustSource {
        match &self.schema {
            Some(schema) => schema.source.clone(),
            None => TrustSource::Rules {
                rules: self.rules.iter().map(|(rule, ..)| rule.clone()).collect(),
            },
        }
    }

    pub(super) fn set(&mut self, source: TrustSource) -> Result<Answer, Refusal> {
        let before = self.source();
        let policy: Arc<dyn Policy> = match &source {
            TrustSource::Rules { rules } => {
                self.rules = compiled(rules)?;
                self.schema = None;
                return Ok(self.told(&before));
            }
            TrustSource::LightVerSec { lightversec } => {
                let wrong =
                    |e: &dyn std::fmt::Display| Refusal::field("lightversec", e.to_string());
                let model = compile(lightversec, Mode::Strict).map_err(|e| wrong(&e))?;
                Arc::new(Schema::new(model, Functions::default()).map_err(|e| wrong(&e))?)
            }
            TrustSource::Validator { validator, section } => {
                let rules = Rules::parse(validator, section, &mut no_include);
                let rules = rules.map_err(|e| Refusal::field("validator", e.to_string()))?;
                if rules.allows_anything() {
                    let why =
                        "a trust anchor of type any turns all rules off: say so with no rules";
                    return Err(Refusal::field("validator", why));
                }
                Arc::new(rules)
            }
        };
        self.schema = Some(Written { policy, source });
        self.rules = Vec::new();
        Ok(self.told(&before))
    }

    fn told(&self, before: &TrustSource) -> Answer {
        Answer::TrustSet { changed: self.source() != *before, rules: self.rules.len() }
    }
}

fn compiled(rules: &[TrustRule]) -> Result<Vec<(TrustRule, Regex, Name)>, Refusal> {
    if rules.len() > RULES_MAX {
        return Err(Refusal::field("rules", format!("at most {RULES_MAX} rules are kept")));
    }
    let mut all = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let regex = regex::RegexBuilder::new(&rule.data).size_limit(1 << 18).build();
        let regex = regex.map_err(|e| Refusal::field(format!("rules/{at}/data"), e.to_string()))?;
        let key = names::name(&format!("rules/{at}/key"), &rule.key)?;
        all.push((rule.clone(), regex, key));
    }
    Ok(all)
}
