//! What a viewer wants to see, and its form in a name: `key=value` with `&` between.

use crate::{Direction, Kind, Seen};
use onym_tables::FaceId;
use onym_wire::name::{Name, NameRef};
use std::fmt;

/// Octets of a packet that are kept unless told otherwise: all, with link-layer fields.
const SNAP: usize = 16 << 10;
/// Verdicts that a filter names at most.
const VERDICTS_MAX: usize = 32;
/// Octets of a word of a filter.
const WORD_MAX: usize = 64;

/// Which packets a capture keeps, and how much of them. The default keeps all, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Of this face only.
    pub face: Option<FaceId>,
    /// With names under this prefix only.
    pub prefix: Option<Name>,
    /// Of these kinds only; empty means all.
    pub kinds: Vec<Kind>,
    /// In this direction only.
    pub direction: Option<Direction>,
    /// With these outcomes only; empty means all.
    pub verdicts: Vec<String>,
    /// One of so many that fit; 1 means all.
    pub sample: u32,
    /// Octets of a packet that are kept.
    pub snap: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            face: None,
            prefix: None,
            kinds: Vec::new(),
            direction: None,
            verdicts: Vec::new(),
            sample: 1,
            snap: SNAP,
        }
    }
}

/// A filter that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct FilterError {
    key: String,
    what: &'static str,
}

impl Filter {
    /// Whether a packet is wanted.
    #[inline]
    #[must_use]
    pub fn takes(&self, seen: &Seen<'_>) -> bool {
        self.face.is_none_or(|face| face == seen.face)
            && self.direction.is_none_or(|direction| direction == seen.direction)
            && (self.kinds.is_empty() || self.kinds.contains(&seen.kind))
            && (self.verdicts.is_empty() || self.verdicts.iter().any(|v| v == seen.outcome.word))
            && self.prefix.as_ref().is_none_or(|prefix| is_under(prefix.as_ref(), seen))
    }

    /// Sets what `key` says. `Ok(false)`: it is no key of a filter.
    ///
    /// # Errors
    /// The value does not fit the key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, FilterError> {
        let wrong = |what| FilterError { key: key.to_owned(), what };
        match key {
            "face" => {
                let id = value.parse().map_err(|_| wrong("it is the number of a face"))?;
                self.face = Some(FaceId(id));
            }
            "prefix" => {
                self.prefix = Some(value.parse().map_err(|_| wrong("it is a name"))?);
            }
            "kind" => {
                let kinds = value.split(',').map(Kind::of_word);
                let kinds = kinds.collect::<Option<Vec<_>>>();
                let what = "kinds are interest, data, nack, push and push-app";
                self.kinds = kinds.ok_or_else(|| wrong(what))?;
                self.kinds.dedup();
                self.kinds.truncate(Kind::ALL.len());
            }
            "direction" => {
                self.direction = match value {
                    "in" => Some(Direction::In),
                    "out" => Some(Direction::Out),
                    _ => return Err(wrong("it is in or out")),
                };
            }
            "verdict" => {
                let words: Vec<String> = value.split(',').map(str::to_owned).collect();
                if words.len() > VERDICTS_MAX || words.iter().any(|w| w.len() > WORD_MAX) {
                    return Err(wrong("at most 32 words of 64 octets"));
                }
                self.verdicts = words;
            }
            "sample" => {
                let n = value.parse().ok().filter(|n| *n > 0);
                self.sample = n.ok_or_else(|| wrong("it is one or more"))?;
            }
            "snap" => {
                let n = value.parse::<usize>().ok().filter(|n| *n > 0);
                self.snap = n.ok_or_else(|| wrong("it is one octet or more"))?.min(SNAP);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// What [`Filter::set`] takes, without what is as in the default.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.face.map(|face| format!("face={}", face.0)));
        parts.extend(self.prefix.as_ref().map(|prefix| format!("prefix={prefix}")));
        if !self.kinds.is_empty() {
            let words: Vec<_> = self.kinds.iter().map(|kind| kind.word()).collect();
            parts.push(format!("kind={}", words.join(",")));
        }
        parts.extend(self.direction.map(|direction| format!("direction={}", direction.word())));
        if !self.verdicts.is_empty() {
            parts.push(format!("verdict={}", self.verdicts.join(",")));
        }
        if self.sample != 1 {
            parts.push(format!("sample={}", self.sample));
        }
        if self.snap != SNAP {
            parts.push(format!("snap={}", self.snap));
        }
        f.write_str(&parts.join("&"))
    }
}

fn is_under(prefix: NameRef<'_>, seen: &Seen<'_>) -> bool {
    // Components are whole elements, so a prefix in octets that ends one is a prefix in components.
    seen.name.is_some_and(|name| name.starts_with(prefix.value()))
}
