//! Fields of packets and the values that stand in them.

use crate::wire::name::{self, Part};
use crate::wire::tlv::unhex;

/// `key`, or `key=value`.
#[derive(Debug, Clone)]
pub struct Field {
    /// The key, one of the table for its kind of packet.
    pub key: &'static str,
    /// The value.
    pub value: Value,
}

/// A value or a pattern of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A number relative to the present, in milliseconds.
    Offset(i64),
    /// Octets.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
    /// A name.
    Name(Vec<Part>),
    /// Several names.
    Names(Vec<Vec<Part>>),
    /// A name component.
    Component(name::Component),
    /// A face of the script, by its name.
    Face(String),
    /// A labelled packet.
    Label(String),
    /// `I/N`.
    Fraction(u64, u64),
    /// `LABEL:I/N`.
    Part(String, u64, u64),
    /// `T:HEX`.
    Header(u64, Vec<u8>),
    /// Several numbers.
    Numbers(Vec<u64>),
    /// The key alone.
    Flag,
    /// `*`
    Any,
    /// `-`
    Absent,
    /// `$x`
    Capture(String),
    /// `!v`
    Not(Box<Self>),
    /// `M..N`
    Range(u64, u64),
}

/// What a key's value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ty {
    /// No value.
    Flag,
    /// A decimal number.
    Num,
    /// Hexadecimal octets.
    Hex,
    /// One name.
    Name,
    /// Names joined by commas.
    Names,
    /// Text with escapes, `hex:…` or `size:N`.
    Bytes,
    /// A face name or number.
    Face,
    /// A name component.
    Component,
    /// A label.
    Label,
    /// A word.
    Text,
    /// `I/N`.
    Fraction,
    /// `LABEL:I/N`.
    Part,
    /// `T:HEX`.
    Header,
    /// Numbers joined by commas.
    Nums,
    /// Signed number.
    Offset,
}

/// Keys and the types of their values.
pub type Keys = &'static [(&'static str, Ty)];

/// Fields of Interests.
pub const INTEREST: Keys = &[
    ("prefix", Ty::Flag),
    ("fresh", Ty::Flag),
    ("hint", Ty::Names),
    ("nonce", Ty::Hex),
    ("lifetime", Ty::Num),
    ("hop", Ty::Num),
    ("params", Ty::Bytes),
];
/// Fields of Data.
pub const DATA: Keys = &[
    ("fresh", Ty::Num),
    ("type", Ty::Num),
    ("final", Ty::Component),
    ("content", Ty::Bytes),
    ("sig", Ty::Text),
];
/// Link fields.
pub const LINK: Keys = &[
    ("token", Ty::Hex),
    ("mark", Ty::Num),
    ("next-face", Ty::Face),
    ("in-face", Ty::Face),
    ("no-cache", Ty::Flag),
    ("no-discovery", Ty::Flag),
    ("announce", Ty::Label),
    ("seq", Ty::Num),
    ("frag", Ty::Fraction),
    ("tx", Ty::Num),
    ("ack", Ty::Nums),
    ("field", Ty::Header),
];
/// Further fields of `lp`.
pub const LP_ONLY: Keys = &[("payload", Ty::Hex), ("part", Ty::Part)];
/// ControlParameters.
pub const CONTROL: Keys = &[
    ("name", Ty::Name),
    ("face", Ty::Face),
    ("uri", Ty::Text),
    ("local-uri", Ty::Text),
    ("origin", Ty::Num),
    ("cost", Ty::Num),
    ("capacity", Ty::Num),
    ("count", Ty::Num),
    ("flags", Ty::Num),
    ("mask", Ty::Num),
    ("strategy", Ty::Name),
    ("expires", Ty::Num),
    ("persistency", Ty::Num),
    ("marking-interval", Ty::Num),
    ("marking-threshold", Ty::Num),
    ("mtu", Ty::Num),
];
/// Fields of a command that are not ControlParameters.
pub const COMMAND: Keys = &[
    ("format", Ty::Text),
    ("at", Ty::Name),
    ("lifetime", Ty::Num),
    ("nonce", Ty::Hex),
    ("token", Ty::Hex),
    ("time", Ty::Offset),
    ("announce", Ty::Label),
    ("body", Ty::Bytes),
];
/// Fields of a response that are not ControlParameters.
pub const RESPONSE: Keys = &[("text", Ty::Text), ("token", Ty::Hex), ("at", Ty::Name)];
/// Fields of dataset rows, filters and events.
pub const ROW: Keys = &[
    ("name", Ty::Name),
    ("face", Ty::Face),
    ("uri", Ty::Text),
    ("uri-scheme", Ty::Text),
    ("local-uri", Ty::Text),
    ("origin", Ty::Num),
    ("cost", Ty::Num),
    ("capacity", Ty::Num),
    ("entries", Ty::Num),
    ("hits", Ty::Num),
    ("misses", Ty::Num),
    ("flags", Ty::Num),
    ("strategy", Ty::Name),
    ("expires", Ty::Num),
    ("scope", Ty::Num),
    ("persistency", Ty::Num),
    ("link", Ty::Num),
    ("mtu", Ty::Num),
    ("marking-interval", Ty::Num),
    ("marking-threshold", Ty::Num),
    ("in-interests", Ty::Num),
    ("in-data", Ty::Num),
    ("in-nacks", Ty::Num),
    ("out-interests", Ty::Num),
    ("out-data", Ty::Num),
    ("out-nacks", Ty::Num),
    ("in-bytes", Ty::Num),
    ("out-bytes", Ty::Num),
    ("version", Ty::Text),
    ("fib-entries", Ty::Num),
    ("pit-entries", Ty::Num),
    ("cs-entries", Ty::Num),
    ("satisfied", Ty::Num),
    ("unsatisfied", Ty::Num),
];

/// Parses `key` or `key=value` by the tables, the first table that has the key.
///
/// # Errors
/// What is wrong, and what is allowed.
pub fn parse(word: &str, tables: &[Keys]) -> Result<Field, (String, String)> {
    let (key, text) = match word.split_once('=') {
        Some((k, v)) => (k, Some(v)),
        None => (word, None),
    };
    let Some((key, ty)) = tables.iter().flat_map(|t| t.iter()).find(|(k, _)| *k == key) else {
        let all: Vec<&str> = tables.iter().flat_map(|t| t.iter().map(|(k, _)| *k)).collect();
        return Err((format!("unknown field {key:?}"), all.join(" ")));
    };
    let value = match text {
        None if *ty == Ty::Flag => Value::Flag,
        None => return Err((format!("field {key:?} wants a value"), format!("{key}=…"))),
        Some(t) => value(t, *ty).map_err(|e| (format!("{key}: {e}"), allowed(*ty).to_owned()))?,
    };
    Ok(Field { key, value })
}

fn allowed(ty: Ty) -> &'static str {
    match ty {
        Ty::Flag => "the key alone, or key=-",
        Ty::Num => "a number, M..N, *, -, $x, !v",
        Ty::Hex => "hexadecimal octets, *, -, $x, !v",
        Ty::Name => "a name",
        Ty::Names => "names joined by commas",
        Ty::Bytes => "text, hex:OCTETS, size:N",
        Ty::Face => "a face of the script, or a number",
        Ty::Component => "a name component",
        Ty::Label => "a label that `let` defined",
        Ty::Text => "a word",
        Ty::Fraction => "I/N",
        Ty::Part => "LABEL:I/N",
        Ty::Header => "TYPE:HEX",
        Ty::Nums => "numbers joined by commas",
        Ty::Offset => "milliseconds, may be negative",
    }
}

/// Parses one value of a type.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn value(text: &str, ty: Ty) -> Result<Value, String> {
    match text {
        "*" => return Ok(Value::Any),
        "-" => return Ok(Value::Absent),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix('!') {
        return Ok(Value::Not(Box::new(value(rest, ty)?)));
    }
    if let Some(label) = text.strip_prefix('$') {
        return Ok(match label.strip_prefix("face.") {
            Some(face) => Value::Face(face.into()),
            None => Value::Capture(label.into()),
        });
    }
    literal(text, ty)
}

fn literal(text: &str, ty: Ty) -> Result<Value, String> {
    let bad = || format!("{text:?} does not fit");
    Ok(match ty {
        Ty::Flag => return Err(bad()),
        Ty::Num => number(text).ok_or_else(bad)?,
        Ty::Hex => Value::Bytes(unhex(text).ok_or_else(bad)?),
        Ty::Name => Value::Name(name::parse(text)?),
        Ty::Names => Value::Names(text.split(',').map(name::parse).collect::<Result<_, _>>()?),
        Ty::Bytes => Value::Bytes(octets(text)?),
        Ty::Face => match text.parse() {
            Ok(n) => Value::Number(n),
            Err(_) => Value::Face(text.into()),
        },
        Ty::Component => Value::Component(name::component(text)?),
        Ty::Label => Value::Label(text.into()),
        Ty::Text => Value::Text(text.into()),
        Ty::Fraction => {
            let (i, n) = fraction(text).ok_or_else(bad)?;
            Value::Fraction(i, n)
        }
        Ty::Part => {
            let (label, rest) = text.split_once(':').ok_or_else(bad)?;
            let (i, n) = fraction(rest).filter(|(i, n)| i < n).ok_or_else(bad)?;
            Value::Part(label.into(), i, n)
        }
        Ty::Header => {
            let (t, v) = text.split_once(':').ok_or_else(bad)?;
            Value::Header(t.parse().map_err(|_| bad())?, unhex(v).ok_or_else(bad)?)
        }
        Ty::Nums => Value::Numbers(
            text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?,
        ),
        Ty::Offset => Value::Offset(text.parse().map_err(|_| bad())?),
    })
}

/// A number or a range of numbers.
#[must_use]
pub fn number(text: &str) -> Option<Value> {
    let Some((lo, hi)) = text.split_once("..") else {
        return text.parse().ok().map(Value::Number);
    };
    let bound = |t: &str, open| if t.is_empty() { Some(open) } else { t.parse().ok() };
    if lo.is_empty() && hi.is_empty() {
        return None;
    }
    Some(Value::Range(bound(lo, 0)?, bound(hi, u64::MAX)?))
}

fn fraction(text: &str) -> Option<(u64, u64)> {
    let (i, n) = text.split_once('/')?;
    Some((i.parse().ok()?, n.parse().ok()?))
}

fn octets(text: &str) -> Result<Vec<u8>, String> {
    if let Some(h) = text.strip_prefix("hex:") {
        return unhex(h).ok_or(format!("{h:?} is not hexadecimal"));
    }
    if let Some(n) = text.strip_prefix("size:") {
        let n: usize = n
            .parse()
            .ok()
            .filter(|n| *n <= 100_000)
            .ok_or(format!("{n:?}: a size of 0 to 100000"))?;
        return Ok(vec![0x58; n]);
    }
    if text.is_empty() { Ok(Vec::new()) } else { name::unescape(text) }
}
