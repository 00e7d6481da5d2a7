//! What a viewer wants to see, and its form in a name: `key=value` with `&` between.

use crate::{Direction, Kind, Seen};
use onym_tables::FaceId;
use onym_wire::name::{Name, NameRef};
use onym_wire::types;
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

/// The last octets of a prefix, by which most packets of other names are told apart without a look at
/// their elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Octets of the VALUE of the prefix, and of other names how many beyond it have their length in one
    /// octet.
    len: u8,
    beyond: u8,
    /// From the first octet of the name's VALUE.
    at: u8,
    octets: u64,
    mask: u64,
}

/// Names of up to so many octets have their length in one octet.
const SHORT_MAX: u8 = 252;

impl Tail {
    /// That of no name.
    pub(crate) const NONE: Self = Self { octets: 1, ..Self::ANY };
    /// That of every name.
    pub(crate) const ANY: Self = Self { len: 0, beyond: SHORT_MAX, at: 0, octets: 0, mask: 0 };

    /// A longer prefix is taken for as much of it as has its length in one octet.
    pub(crate) fn of(prefix: NameRef<'_>) -> Self {
        let mut len = 0;
        for component in prefix.components() {
            match u8::try_from(usize::from(len) + component.wire_len()) {
                Ok(longer) if longer <= SHORT_MAX => len = longer,
                _ => break,
            }
        }
        let value = &prefix.value()[..len.into()];
        let tail = &value[value.len().saturating_sub(8)..];
        let mut octets = [0; 8];
        octets[..tail.len()].copy_from_slice(tail);
        let mask = if tail.is_empty() { 0 } else { u64::MAX >> (64 - 8 * tail.len()) };
        let at = len.saturating_sub(8);
        Self { len, beyond: SHORT_MAX - len, at, octets: u64::from_le_bytes(octets), mask }
    }

    /// Whether an Interest or Data may have a name under the prefix, or an Interest one above it that
    /// Data under it answers; it errs to yes. While somebody dumps a prefix this is asked of every packet
    /// and is nearly always no: eight octets are compared, where the last ones of the prefix would be.
    #[inline(always)]
    pub(crate) fn may_concern(&self, packet: &[u8]) -> bool {
        // One bound is that of all: Interests are seldom so long that their length is not in one octet.
        let at = 4 + usize::from(self.at);
        let (Some(tail), [_, ..=SHORT_MAX, _, len, ..]) = (packet.get(at..at + 8), packet) else {
            return self.may_concern_other(packet);
        };
        let tail = tail.first_chunk().map_or(self.octets, |tail| u64::from_le_bytes(*tail));
        if tail & self.mask == self.octets {
            return true;
        }
        len.wrapping_sub(self.len) > self.beyond && self.may_be_above(packet, 4, *len)
    }

    /// The same of a packet of more than 252 octets, and of one that ends before the last octets of the
    /// prefix would.
    #[cold]
    fn may_concern_other(&self, packet: &[u8]) -> bool {
        let Some([_, 253, _, _, _, len]) = packet.first_chunk() else {
            return self.may_concern_short(packet);
        };
        let at = 6 + usize::from(self.at);
        let tail = packet.get(at..at + 8).and_then(<[u8]>::first_chunk);
        let Some(tail) = tail else { return self.may_concern_short(packet) };
        u64::from_le_bytes(*tail) & self.mask == self.octets
            || len.wrapping_sub(self.len) > self.beyond && self.may_be_above(packet, 6, *len)
    }

    /// The same of a packet that ends before the last octets of the prefix would.
    fn may_concern_short(&self, packet: &[u8]) -> bool {
        let (start, len) = match packet.first_chunk() {
            // The packet has up to 252 octets, or up to 65,535.
            Some([_, ..=SHORT_MAX, _, len, _, _]) => (4, *len),
            Some([_, 253, _, _, _, len]) => (6, *len),
            _ => return *self != Self::NONE,
        };
        match len.wrapping_sub(self.len) > self.beyond {
            true => self.may_be_above(packet, start, len),
            false => *self != Self::NONE,
        }
    }

    /// The same of a packet whose name, at `start`, is shorter than the prefix, or so long that its
    /// length is not in one octet.
    #[cold]
    fn may_be_above(&self, packet: &[u8], start: usize, len: u8) -> bool {
        // CanBePrefix comes next to the name.
        let next = packet.get(start + usize::from(len)).copied().map(u32::from);
        *self != Self::NONE && (len > SHORT_MAX || next == Some(types::CAN_BE_PREFIX))
    }
}

fn is_under(prefix: NameRef<'_>, seen: &Seen<'_>) -> bool {
    // Components are whole elements, so a prefix in octets that ends one is a prefix in components.
    seen.name.is_some_and(|name| name.starts_with(prefix.value()))
}
