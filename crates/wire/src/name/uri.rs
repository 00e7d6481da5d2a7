//! The URI form of names.

use super::{Component, Name, NameRef};
use crate::types;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use thiserror::Error;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UriError {
    /// A component of fewer than three periods, or an empty one.
    #[error(
        "component {0:?}: a component that consists of periods is written with three more of them (an empty one as \"...\")"
    )]
    Periods(String),
    /// `%` without two hexadecimal digits.
    #[error("component {0:?}: % must be followed by two hexadecimal digits")]
    Percent(String),
    /// The part before `=` is neither a type number nor a known word.
    #[error(
        "component {0:?}: the part before = must be a type from 1 to 65535 or one of sha256digest, params-sha256, seg, off, v, t, seq; a = within a value is written %3D"
    )]
    Prefix(String),
    /// A digest that is not 32 octets.
    #[error("component {0:?}: a digest has 32 octets, written as 64 hexadecimal digits")]
    Digest(String),
    /// A number that is not decimal, has leading zeros, or passes 64 bits.
    #[error("component {0:?}: a decimal number below 2^64 without leading zeros is expected")]
    Number(String),
    /// Another scheme than `ndn`.
    #[error("{0:?} is not a name: the scheme must be ndn or absent")]
    Scheme(String),
}

/// Words that stand for the type of a component that holds a number.
const NUMBER_WORDS: [(&str, u32); 5] = [
    ("seg", types::SEGMENT_COMPONENT),
    ("off", types::BYTE_OFFSET_COMPONENT),
    ("v", types::VERSION_COMPONENT),
    ("t", types::TIMESTAMP_COMPONENT),
    ("seq", types::SEQUENCE_NUM_COMPONENT),
];

/// Words that stand for the type of a digest component.
const DIGEST_WORDS: [(&str, u32); 2] = [
    ("sha256digest", types::IMPLICIT_SHA256_DIGEST),
    ("params-sha256", types::PARAMETERS_SHA256_DIGEST),
];

fn type_of(words: &[(&str, u32)], word: &str) -> Option<u32> {
    words.iter().find(|(w, _)| *w == word).map(|(_, typ)| *typ)
}

fn word_of(words: &[(&'static str, u32)], typ: u16) -> Option<&'static str> {
    words.iter().find(|(_, t)| *t == u32::from(typ)).map(|(word, _)| *word)
}

impl FromStr for Name {
    type Err = UriError;

    /// Reads a URI: `ndn:` and an authority may stand before the path, a leading `/` may be missing.
    fn from_str(uri: &str) -> Result<Self, UriError> {
        let mut path = uri.strip_prefix("ndn:").unwrap_or(uri);
        if let Some(authority) = path.strip_prefix("//") {
            path = authority.find('/').and_then(|at| authority.get(at..)).unwrap_or("");
        } else if path.contains("://") {
            return Err(UriError::Scheme(uri.to_owned()));
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut name = Self::new();
        if path.is_empty() {
            return Ok(name);
        }
        for text in path.strip_suffix('/').unwrap_or(path).split('/') {
            push_component(&mut name, text)?;
        }
        Ok(name)
    }
}

fn push_component(name: &mut Name, text: &str) -> Result<(), UriError> {
    let Some((prefix, value)) = text.split_once('=') else {
        name.append_generic(unescape(text, text)?);
        return Ok(());
    };
    if let Some(typ) = type_of(&NUMBER_WORDS, prefix) {
        name.append_number(typ, decimal(value).ok_or_else(|| UriError::Number(text.to_owned()))?);
        return Ok(());
    }
    let (typ, value) = match type_of(&DIGEST_WORDS, prefix) {
        Some(typ) => (typ, hex(value.as_bytes()).ok_or_else(|| UriError::Digest(text.to_owned()))?),
        None => (type_prefix(prefix, text)?, unescape(value, text)?),
    };
    if typ <= 2 && value.len() != 32 {
        return Err(UriError::Digest(text.to_owned()));
    }
    let typ = u16::try_from(typ).map_err(|_| UriError::Prefix(text.to_owned()))?;
    name.push(Component { typ, value: &value });
    Ok(())
}

fn type_prefix(prefix: &str, text: &str) -> Result<u32, UriError> {
    match decimal(prefix).and_then(|typ| u16::try_from(typ).ok()) {
        Some(typ) if typ > 0 => Ok(u32::from(typ)),
        _ => Err(UriError::Prefix(text.to_owned())),
    }
}

fn decimal(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    if canonical && text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn digit(octet: u8) -> Option<u8> {
    char::from(octet).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// The octets that escaped `text` means; `whole` is what an error shows.
fn unescape(text: &str, whole: &str) -> Result<Vec<u8>, UriError> {
    if text.bytes().all(|b| b == b'.') {
        let periods = text.len().checked_sub(3).ok_or_else(|| UriError::Periods(whole.into()))?;
        return Ok(vec![b'.'; periods]);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut octets = text.bytes();
    while let Some(octet) = octets.next() {
        if octet != b'%' {
            out.push(octet);
            continue;
        }
        let mut next = || octets.next().and_then(digit);
        match (next(), next()) {
            (Some(high), Some(low)) => out.push(high << 4 | low),
            _ => return Err(UriError::Percent(whole.to_owned())),
        }
    }
    Ok(out)
}

impl fmt::Display for Component<'_> {
    /// The URI form, with the words for typed components where they say the same octets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Pieces::new(f);
        self.write_uri(&mut out)?;
        out.flush()
    }
}

/// Whether an octet stands in a URI as it is.
const fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// What each octet is in a URI: up to three octets, the first one lowest, and above them how many.
const WRITTEN: [u32; 256] = {
    let (mut written, mut octet) = ([0; 256], 0_u8);
    loop {
        #[allow(clippy::indexing_slicing)]
        let place = &mut written[octet as usize];
        *place = u32::from_le_bytes(match is_plain(octet) {
            true => [octet, 0, 0, 1],
            false => [b'%', digit_of(octet >> 4), digit_of(octet & 15), 3],
        });
        if octet == u8::MAX {
            break written;
        }
        octet += 1;
    }
};

/// Octets of text that are written at once.
const PIECE: usize = 126;
/// Octets of a component that have room in a piece, whatever they are.
const BLOCK: usize = PIECE / 3;
/// Behind them there is room for a slash, and for what an octet may be at most.
const ROOM: usize = PIECE + 1 + 4;

/// Text on its way to a writer, in pieces: a call of the writer, and the proof that octets are text,
/// cost as much as some tens of octets.
struct Pieces<'a, W> {
    out: &'a mut W,
    text: [u8; ROOM],
    len: usize,
}

impl<'a, W: fmt::Write> Pieces<'a, W> {
    const fn new(out: &'a mut W) -> Self {
        Self { out, text: [0; ROOM], len: 0 }
    }

    /// Appends the slash before a component. There is always room: what is appended next, even if it is
    /// empty, writes out a piece that is full.
    #[inline]
    fn slash(&mut self) {
        if let Some(place) = self.text.get_mut(self.len) {
            *place = b'/';
            self.len += 1;
        }
    }

    /// Appends octets as a URI has them.
    #[inline]
    fn escaped(&mut self, octets: &[u8]) -> fmt::Result {
        let mut rest = octets;
        while let Some((block, behind)) = rest.split_at_checked(BLOCK) {
            self.block(block)?;
            rest = behind;
        }
        self.block(rest)
    }

    /// The same of at most [`BLOCK`] octets.
    #[inline]
    fn block(&mut self, octets: &[u8]) -> fmt::Result {
        if self.len + 3 * octets.len() > PIECE {
            self.flush()?;
        }
        let mut len = self.len;
        for octet in octets {
            let written = WRITTEN.get(usize::from(*octet)).copied().unwrap_or_default();
            if let Some(place) = self.text.get_mut(len..).and_then(<[u8]>::first_chunk_mut) {
                *place = written.to_le_bytes();
            }
            len += (written >> 24) as usize;
        }
        self.len = len;
        Ok(())
    }

    /// Appends up to [`PIECE`] octets of text.
    #[inline]
    fn put(&mut self, text: &[u8]) -> fmt::Result {
        if self.len + text.len() > PIECE {
            self.flush()?;
        }
        if let Some(place) = self.text.get_mut(self.len..self.len + text.len()) {
            place.copy_from_slice(text);
            self.len += text.len();
        }
        Ok(())
    }

    /// Writes what there is.
    fn flush(&mut self) -> fmt::Result {
        let text = self.text.get(..self.len).unwrap_or_default();
        let text = std::str::from_utf8(text).map_err(|_| fmt::Error)?;
        self.len = 0;
        self.out.write_str(text)
    }
}

impl<W: fmt::Write> fmt::Write for Pieces<'_, W> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() <= PIECE {
            return self.put(text.as_bytes());
        }
        self.flush()?;
        self.out.write_str(text)
    }
}

/// The digit of a number below 16.
const fn digit_of(number: u8) -> u8 {
    if number < 10 { b'0' + number } else { b'A' + number - 10 }
}

impl Component<'_> {
    /// The same to anything.
    #[inline]
    fn write_uri<W: fmt::Write>(&self, out: &mut Pieces<'_, W>) -> fmt::Result {
        if self.is_generic() { self.write_value(out) } else { self.write_typed(out) }
    }

    /// The same of one with a type of its own.
    #[inline(never)]
    fn write_typed<W: fmt::Write>(self, out: &mut Pieces<'_, W>) -> fmt::Result {
        if let Some(word) = word_of(&DIGEST_WORDS, self.typ) {
            write!(out, "{word}=")?;
            return self.value.iter().try_for_each(|octet| write!(out, "{octet:02x}"));
        }
        if let (Some(word), Some(n)) = (word_of(&NUMBER_WORDS, self.typ), self.as_number())
            && crate::tlv::nni_len(n) == self.value.len()
        {
            return write!(out, "{word}={n}");
        }
        self.write_canonical(out)
    }

    fn write_canonical<W: fmt::Write>(&self, out: &mut Pieces<'_, W>) -> fmt::Result {
        if !self.is_generic() {
            write!(out, "{}=", self.typ)?;
        }
        self.write_value(out)
    }

    #[inline(always)]
    fn write_value<W: fmt::Write>(&self, out: &mut Pieces<'_, W>) -> fmt::Result {
        let is_of_periods = |value: &[u8]| value.iter().all(|octet| *octet == b'.');
        if matches!(self.value, [] | [b'.', ..]) && is_of_periods(self.value) {
            out.write_str("...")?;
        }
        out.escaped(self.value)
    }
}

/// Shows a name in its canonical URI form, types as numbers.
struct Canonical<'a>(NameRef<'a>);

impl fmt::Display for Canonical<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_char('/');
        }
        let mut out = Pieces::new(f);
        for component in self.0 {
            out.slash();
            component.write_canonical(&mut out)?;
        }
        out.flush()
    }
}

impl<'a> NameRef<'a> {
    /// The canonical URI form: types as numbers (`54=%01`), not as words (`v=1`).
    pub fn display_canonical(self) -> impl fmt::Display + 'a {
        Canonical(self)
    }
}

impl NameRef<'_> {
    /// Appends the URI form to `out`, as [`Display`](fmt::Display) shows it.
    ///
    /// # Errors
    /// That of `out`.
    pub fn write_uri(self, out: &mut impl fmt::Write) -> fmt::Result {
        if self.is_empty() {
            return out.write_char('/');
        }
        let mut out = Pieces::new(out);
        for component in self.components() {
            out.slash();
            component.write_uri(&mut out)?;
        }
        out.flush()
    }
}

impl fmt::Display for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_uri(f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_ref(), f)
    }
}
