//! From entries to rules: the grammar of validator configuration, its order enforced.

use super::info::{self, Entry, Include};
use super::{
    Anchor, Checker, Expansion, Filter, Hyper, Locator, Pattern, PatternError, Relation, Rule,
    Rules, SignatureType,
};
use crate::policy::Kind;
use onym_crypto::Certificate;
use onym_wire::Name;

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ConfError {
    /// Line, from 1; 0 when it is about the whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

type Read<T> = Result<T, ConfError>;

fn fault<T>(line: usize, what: impl Into<String>) -> Read<T> {
    Err(ConfError { line, what: what.into() })
}

impl Rules {
    /// Reads the rules of a configuration. `section` is the way to them, with dots, such as
    /// `rib.localhop_security`; empty when the text is the rules.
    ///
    /// # Errors
    /// [`ConfError`]: unknown words, another order than that of the grammar, a bad expression.
    pub fn parse(text: &str, section: &str, include: &mut Include<'_>) -> Read<Self> {
        let entries = info::parse(text, include);
        let mut entries = entries.map_err(|(line, what)| ConfError { line, what })?;
        for step in section.split('.').filter(|step| !step.is_empty()) {
            let found = entries.into_iter().find(|entry| entry.key.eq_ignore_ascii_case(step));
            match found {
                Some(entry) => entries = entry.children,
                None => return fault(0, format!("there is no section {step:?} of {section:?}")),
            }
        }
        let mut rules = Self { rules: Vec::new(), anchors: Vec::new() };
        for entry in &entries {
            match entry.key.to_ascii_lowercase().as_str() {
                "rule" => rules.rules.push(rule(entry)?),
                "trust-anchor" => rules.add_anchor(entry)?,
                // NLSR: what a router publishes, not what it believes.
                "cert-to-publish" => {}
                other => {
                    return fault(entry.line, format!("{other:?} is no section of a validator"));
                }
            }
        }
        if rules.rules.is_empty() && !rules.has_any() {
            return fault(0, "there is no rule: nothing would ever pass");
        }
        Ok(rules)
    }

    pub(super) fn has_any(&self) -> bool {
        self.anchors.iter().any(|anchor| matches!(anchor, Anchor::Any))
    }

    fn add_anchor(&mut self, entry: &Entry) -> Read<()> {
        let found = anchor(entry)?;
        let id = |anchor: &Anchor| match anchor {
            Anchor::File { path, refresh_s } | Anchor::Dir { path, refresh_s } => {
                Some((path.clone(), refresh_s.is_some()))
            }
            _ => None,
        };
        if let Some((path, refreshes)) = id(&found) {
            let known = self.anchors.iter().filter_map(id).find(|(other, _)| *other == path);
            if known.is_some_and(|(_, other)| other != refreshes) {
                let what = format!("{path} is an anchor both with and without refresh");
                return fault(entry.line, what);
            }
        }
        self.anchors.push(found);
        Ok(())
    }
}

/// The children of an entry, taken in their order.
struct Children<'e> {
    of: &'e Entry,
    rest: std::slice::Iter<'e, Entry>,
}

impl<'e> Children<'e> {
    fn new(of: &'e Entry) -> Self {
        Self { of, rest: of.children.iter() }
    }

    fn optional(&mut self, key: &str) -> Option<&'e Entry> {
        let next = self.rest.as_slice().first()?;
        if next.key.eq_ignore_ascii_case(key) { self.rest.next() } else { None }
    }

    fn expect(&mut self, key: &str) -> Read<&'e Entry> {
        if let Some(entry) = self.optional(key) {
            return Ok(entry);
        }
        let (of, line) = (&self.of.key, self.of.line);
        match self.rest.as_slice().first() {
            Some(next) => fault(next.line, format!("{of}: {key:?} comes here, not {:?}", next.key)),
            None => fault(line, format!("{of}: {key:?} is missing")),
        }
    }

    fn finish(mut self) -> Read<()> {
        match self.rest.next() {
            Some(next) => {
                let of = &self.of.key;
                fault(next.line, format!("{of}: {:?} is unknown, or not in its place", next.key))
            }
            None => Ok(()),
        }
    }
}

fn rule(entry: &Entry) -> Read<Rule> {
    let mut children = Children::new(entry);
    let id = children.expect("id")?.value.clone();
    let kind = children.expect("for")?;
    let kind = match kind.value.to_ascii_lowercase().as_str() {
        "data" => Kind::Data,
        "interest" => Kind::Interest,
        other => return fault(kind.line, format!("a rule is for data or interest, not {other:?}")),
    };
    let mut filters = Vec::new();
    while let Some(entry) = children.optional("filter") {
        filters.push(filter(entry)?);
    }
    let mut checkers = vec![checker(children.expect("checker")?)?];
    while let Some(entry) = children.optional("checker") {
        checkers.push(checker(entry)?);
    }
    children.finish()?;
    Ok(Rule { id, kind, filters, checkers })
}

fn of_type_name(children: &mut Children<'_>) -> Read<()> {
    let kind = children.expect("type")?;
    if kind.value.eq_ignore_ascii_case("name") {
        return Ok(());
    }
    fault(kind.line, format!("the only type here is name, not {:?}", kind.value))
}

fn filter(entry: &Entry) -> Read<Filter> {
    let mut children = Children::new(entry);
    of_type_name(&mut children)?;
    let found = match children.optional("regex") {
        Some(entry) => Filter::Regex(pattern(entry)?),
        None => {
            let (name, relation) = name_relation(&mut children)?;
            Filter::Name(name, relation)
        }
    };
    children.finish()?;
    Ok(found)
}

fn name_relation(children: &mut Children<'_>) -> Read<(Name, Relation)> {
    let entry = children.expect("name")?;
    let name = entry.value.parse().map_err(|e| ConfError {
        line: entry.line,
        what: format!("{:?} is no name: {e}", entry.value),
    })?;
    Ok((name, relation(children.expect("relation")?)?))
}

fn relation(entry: &Entry) -> Read<Relation> {
    match entry.value.to_ascii_lowercase().as_str() {
        "equal" => Ok(Relation::Equal),
        "is-prefix-of" => Ok(Relation::PrefixOf),
        "is-strict-prefix-of" => Ok(Relation::StrictPrefixOf),
        other => fault(
            entry.line,
            format!("a relation is equal, is-prefix-of or is-strict-prefix-of, not {other:?}"),
        ),
    }
}

fn located<T>(entry: &Entry, read: Result<T, PatternError>) -> Read<T> {
    read.map_err(|e| ConfError { line: entry.line, what: e.to_string() })
}

fn pattern(entry: &Entry) -> Read<Pattern> {
    located(entry, Pattern::new(&entry.value))
}

fn signature(entry: Option<&Entry>) -> Read<SignatureType> {
    let Some(entry) = entry else { return Ok(SignatureType::Ecdsa) };
    match entry.value.to_ascii_lowercase().as_str() {
        "sha256" => Ok(SignatureType::Digest),
        "rsa-sha256" => Ok(SignatureType::Rsa),
        "ecdsa-sha256" => Ok(SignatureType::Ecdsa),
        "ed25519" => Ok(SignatureType::Ed25519),
        other => fault(
            entry.line,
            format!("a sig-type is rsa-sha256, ecdsa-sha256, ed25519 or sha256, not {other:?}"),
        ),
    }
}

fn checker(entry: &Entry) -> Read<Checker> {
    let mut children = Children::new(entry);
    let kind = children.expect("type")?;
    let signature = signature(children.optional("sig-type"))?;
    let locator = match kind.value.to_ascii_lowercase().as_str() {
        "hierarchical" => {
            // Only the words of the grammar may follow: a locator here would be ignored.
            Some(Locator::Hyper(Box::new(located(kind, hierarchy())?)))
        }
        "customized" => match children.optional("key-locator") {
            Some(entry) => Some(locator(entry)?),
            None if signature == SignatureType::Digest => None,
            None => {
                let what = "a customized checker without key-locator takes sha256 only";
                return fault(entry.line, what);
            }
        },
        other => {
            let what = format!("a checker is customized or hierarchical, not {other:?}");
            return fault(kind.line, what);
        }
    };
    children.finish()?;
    Ok(Checker { signature, locator })
}

/// The identity of the key is a prefix of the packet's name.
fn hierarchy() -> Result<Hyper, PatternError> {
    let key = Pattern::new("^(<>*)<KEY><>{1,3}$")?;
    let packet = Pattern::new("^(<>*)$")?;
    Ok(Hyper {
        key_expand: Expansion::new("\\1", &key)?,
        packet_expand: Expansion::new("\\1", &packet)?,
        relation: Relation::PrefixOf,
        key,
        packet,
    })
}

fn locator(entry: &Entry) -> Read<Locator> {
    let mut children = Children::new(entry);
    of_type_name(&mut children)?;
    let found = if let Some(entry) = children.optional("regex") {
        Locator::Regex(pattern(entry)?)
    } else if let Some(entry) = children.optional("hyper-relation") {
        Locator::Hyper(Box::new(hyper(entry)?))
    } else {
        let (name, relation) = name_relation(&mut children)?;
        Locator::Name(name, relation)
    };
    children.finish()?;
    Ok(found)
}

fn hyper(entry: &Entry) -> Read<Hyper> {
    let mut children = Children::new(entry);
    let key = pattern(children.expect("k-regex")?)?;
    let expand = children.expect("k-expand")?;
    let key_expand = located(expand, Expansion::new(&expand.value, &key))?;
    let relation = relation(children.expect("h-relation")?)?;
    let packet = pattern(children.expect("p-regex")?)?;
    let expand = children.expect("p-expand")?;
    let packet_expand = located(expand, Expansion::new(&expand.value, &packet))?;
    children.finish()?;
    Ok(Hyper { key, key_expand, relation, packet, packet_expand })
}

fn anchor(entry: &Entry) -> Read<Anchor> {
    let mut children = Children::new(entry);
    let kind = children.expect("type")?;
    let found = match kind.value.to_ascii_lowercase().as_str() {
        "file" => {
            let path = children.expect("file-name")?.value.clone();
            Anchor::File { path, refresh_s: refresh(children.optional("refresh"))? }
        }
        "dir" => {
            let path = children.expect("dir")?.value.clone();
            Anchor::Dir { path, refresh_s: refresh(children.optional("refresh"))? }
        }
        "base64" => {
            let text = children.expect("base64-string")?;
            let certificate = Certificate::from_text(&text.value).map_err(|e| ConfError {
                line: text.line,
                what: format!("the anchor cannot be read: {e}"),
            })?;
            Anchor::Certificate(Box::new(certificate))
        }
        "any" => Anchor::Any,
        other => {
            return fault(
                kind.line,
                format!("an anchor is file, base64, dir or any, not {other:?}"),
            );
        }
    };
    children.finish()?;
    Ok(found)
}

/// `1h`, `10m`, `30s`; 0 is an hour.
fn refresh(entry: Option<&Entry>) -> Read<Option<u64>> {
    const HOUR_S: u64 = 3600;
    let Some(entry) = entry else { return Ok(None) };
    let what = || ConfError {
        line: entry.line,
        what: format!("refresh is a number with h, m or s, not {:?}", entry.value),
    };
    let unit = match entry.value.chars().last() {
        Some('h' | 'H') => HOUR_S,
        Some('m' | 'M') => 60,
        Some('s' | 'S') => 1,
        _ => return Err(what()),
    };
    let digits = entry.value.get(..entry.value.len() - 1).unwrap_or("");
    let count: u64 = digits.parse().map_err(|_| what())?;
    Ok(Some(match count.saturating_mul(unit) {
        0 => HOUR_S,
        seconds => seconds,
    }))
}
