//! Judging a packet by the first rule that is about it.

use super::{Checker, Filter, Hyper, Locator, Relation, Rule, Rules, SignatureType};
use crate::policy::{Cause, Denial, KeyForm, Policy, Subject, Verdict};
use onym_wire::{Name, NameRef};

/// The name that ndn-cxx gives to the key of a digest.
const DIGEST_IDENTITY: &str = "/localhost/identity/digest-sha256";

impl Relation {
    fn holds(self, left: NameRef<'_>, right: NameRef<'_>) -> bool {
        match self {
            Self::Equal => left == right,
            Self::PrefixOf => left.is_prefix_of(right),
            Self::StrictPrefixOf => left.is_prefix_of(right) && left != right,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Equal => "equal to",
            Self::PrefixOf => "a prefix of",
            Self::StrictPrefixOf => "a strict prefix of",
        }
    }
}

impl Filter {
    fn matches(&self, name: NameRef<'_>) -> bool {
        match self {
            Self::Name(own, relation) => relation.holds(own.as_ref(), name),
            Self::Regex(pattern) => pattern.is_match(name),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Name(name, relation) => format!("{name} is {} it", relation.words()),
            Self::Regex(pattern) => pattern.as_str().to_owned(),
        }
    }
}

/// What stands in front of the last `KEY` among the last four components.
fn identity(key: NameRef<'_>) -> Option<NameRef<'_>> {
    (1..=4).find_map(|back| {
        let at = key.len().checked_sub(back)?;
        let is_key = key.get(at)?.is_generic() && key.get(at)?.value == b"KEY";
        is_key.then(|| key.prefix(at))
    })
}

impl Locator {
    /// # Errors
    /// What does not hold, in words.
    fn check(&self, subject: NameRef<'_>, key: NameRef<'_>) -> Result<(), String> {
        match self {
            Self::Name(name, relation) => {
                let identity = identity(key).ok_or_else(|| format!("{key} is no name of a key"))?;
                if relation.holds(name.as_ref(), identity) {
                    return Ok(());
                }
                Err(format!("{name} is not {} the key's identity {identity}", relation.words()))
            }
            Self::Regex(pattern) if pattern.is_match(key) => Ok(()),
            Self::Regex(pattern) => {
                Err(format!("the key {key} does not match {}", pattern.as_str()))
            }
            Self::Hyper(hyper) => hyper.check(subject, key),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Name(name, relation) => {
                format!("keys for whose identity {name} is {} it", relation.words())
            }
            Self::Regex(pattern) => format!("keys like {}", pattern.as_str()),
            Self::Hyper(hyper) => format!(
                "keys like {} related to names like {}",
                hyper.key.as_str(),
                hyper.packet.as_str()
            ),
        }
    }
}

impl Hyper {
    fn check(&self, subject: NameRef<'_>, key: NameRef<'_>) -> Result<(), String> {
        let side = |pattern: &super::Pattern, expand: &super::Expansion, name: NameRef<'_>| {
            let found = pattern
                .find(name)
                .ok_or_else(|| format!("{name} does not match {}", pattern.as_str()))?;
            let expanded = expand.expand(&found);
            expanded.ok_or_else(|| format!("{name} leaves a group of {} open", pattern.as_str()))
        };
        let left = side(&self.key, &self.key_expand, key)?;
        let right = side(&self.packet, &self.packet_expand, subject)?;
        if self.relation.holds(left.as_ref(), right.as_ref()) {
            return Ok(());
        }
        let words = self.relation.words();
        Err(format!("{left}, from the key {key}, is not {words} {right}"))
    }
}

impl Checker {
    fn check(&self, subject: &Subject<'_>, key: NameRef<'_>) -> Result<(), (Cause, String)> {
        if let Some(got) = subject.signature_type
            && got != self.signature.number()
        {
            let wanted = self.signature.word();
            let text = format!("the signature must be {wanted}, this one has type {got}");
            return Err((Cause::SignatureType, text));
        }
        match &self.locator {
            None => Ok(()),
            Some(locator) => locator.check(subject.name, key).map_err(|text| (Cause::Key, text)),
        }
    }
}

impl Rule {
    fn is_about(&self, subject: &Subject<'_>) -> bool {
        self.kind == subject.kind
            && (self.filters.is_empty()
                || self.filters.iter().any(|filter| filter.matches(subject.name)))
    }
}

impl Rules {
    fn rule(&self, subject: &Subject<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.is_about(subject))
    }
}

impl Policy for Rules {
    fn check(&self, subject: &Subject<'_>, key: NameRef<'_>) -> Verdict {
        let Some(rule) = self.rule(subject) else {
            let text = format!("no rule applies to {}", subject.name);
            return Verdict::Denied(Denial { cause: Cause::NoRule, rule: None, text });
        };
        let mut failures = Vec::with_capacity(rule.checkers.len());
        for checker in &rule.checkers {
            match checker.check(subject, key) {
                Ok(()) => return Verdict::Allowed { rule: rule.id.clone() },
                Err(failure) => failures.push(failure),
            }
        }
        // A checker for this type of signature says more than one for another type.
        let cause = failures.iter().map(|(cause, _)| *cause).find(|c| *c == Cause::Key);
        let texts: Vec<String> = failures.into_iter().map(|(_, text)| text).collect();
        Verdict::Denied(Denial {
            cause: cause.unwrap_or(Cause::SignatureType),
            rule: Some(rule.id.clone()),
            text: texts.join("; or "),
        })
    }

    fn key_form(&self) -> KeyForm {
        KeyForm::Locator
    }

    fn anchor(&self, _: NameRef<'_>) -> Result<(), Denial> {
        Ok(())
    }

    fn allows_digest(&self, subject: &Subject<'_>) -> bool {
        let Ok(key) = DIGEST_IDENTITY.parse::<Name>() else { return false };
        self.rule(subject).is_some_and(|rule| {
            let mut checkers = rule.checkers.iter();
            checkers.any(|checker| {
                checker.signature == SignatureType::Digest
                    && checker.check(&subject.signed(0), key.as_ref()).is_ok()
            })
        })
    }

    fn allows_anything(&self) -> bool {
        self.has_any()
    }

    fn explain(&self, subject: &Subject<'_>) -> Vec<String> {
        if self.has_any() {
            return vec!["everything passes: the configuration has a trust anchor \"any\"".into()];
        }
        let Some(rule) = self.rule(subject) else {
            return vec![format!("no rule applies to {}", subject.name)];
        };
        let mut lines = vec![format!("the first rule about it is {:?}", rule.id)];
        let filter = rule.filters.iter().find(|filter| filter.matches(subject.name));
        lines.extend(filter.map(|filter| format!("  it matches {}", filter.shown())));
        for checker in &rule.checkers {
            let by = match &checker.locator {
                Some(locator) => locator.shown(),
                None => "nobody: a digest is enough".to_owned(),
            };
            lines.push(format!("  signed ({}) by {by}", checker.signature.word()));
        }
        lines
    }
}
