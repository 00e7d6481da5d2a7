//! The push frame: view and builder.

use super::{Id, Label, Route, RouteBuf, Strategy, VERSION};
use crate::tlv::{self, Element, Malformed, Reader};
use crate::{PACKET_LEN_MAX, types};

/// Types of the options of a frame.
pub mod option {
    /// By what forwarding part the publisher is reached.
    pub const REPLY: u32 = 1;
    /// Signature of the publication.
    pub const SIGNATURE: u32 = 3;
    /// Node of the publisher.
    pub const ORIGIN: u32 = 32;
    /// Milliseconds for which a cache may answer with it.
    pub const LIFETIME: u32 = 34;
    /// Stream and number of the publication.
    pub const NUMBER: u32 = 36;
    /// Publications of the item are retained: how many at most, and the number of the first one.
    pub const RETAINED: u32 = 38;
    /// Of an item that is retained: priority:8, deadline:32 in milliseconds.
    pub const TERMS: u32 = 40;
    /// Stream and number of the next publication: nothing is published.
    pub const REACHED: u32 = 5;
}

/// What a node on the way looks at (P-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// Links that the frame may still travel, this arrival included.
    pub hop_limit: u8,
    /// How the item is disseminated.
    pub strategy: Strategy,
    /// Where the frame goes.
    pub route: Route<'a>,
    /// Offset of the version octet within the frame; the hop limit follows it.
    pub at: usize,
    /// What follows the forwarding part, not looked at.
    rest: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads the head of a frame.
    ///
    /// # Errors
    /// [`Malformed`]; [`Malformed::Value`] with the version when that is another, and
    /// [`Malformed::Unexpected`] with the form when that is unknown.
    #[inline]
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        if octets.len() > PACKET_LEN_MAX {
            return Err(Malformed::TooLong);
        }
        let element = Element::parse_as(octets, types::PUSH_FRAME)?;
        Self::of_value(octets.len() - element.value.len(), element.value)
    }

    /// As [`Head::parse`] for a frame of `len` octets, of which `start` are the first ones: as many
    /// as the forwarding part needs.
    ///
    /// # Errors
    /// As [`Head::parse`], and [`Malformed::Truncated`] where `start` is too short.
    #[inline]
    pub fn parse_start(start: &'a [u8], len: usize) -> Result<Self, Malformed> {
        match start.first() {
            Some(typ) if u32::from(*typ) == types::PUSH_FRAME => {}
            Some(typ) => return Err(Malformed::Unexpected((*typ).into())),
            None => return Err(Malformed::Truncated),
        }
        if tlv::frame_len(start)? != Some(len) {
            return Err(Malformed::Truncated);
        }
        // A LENGTH of one octet, or of three.
        let at = if start.get(1).is_some_and(|len| *len < 253) { 2 } else { 4 };
        Self::of_value(at, start.get(at..).ok_or(Malformed::Truncated)?)
    }

    #[inline]
    fn of_value(at: usize, value: &'a [u8]) -> Result<Self, Malformed> {
        let ([first, hop_limit, strategy, _], rest) =
            value.split_first_chunk().ok_or(Malformed::Truncated)?;
        if first >> 4 != VERSION {
            return Err(Malformed::Value(u32::from(first >> 4)));
        }
        let (route, rest) = Route::split(first & 15, rest)?;
        Ok(Self { hop_limit: *hop_limit, strategy: Strategy(*strategy), route, at, rest })
    }
}

/// A checked frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Links that the frame may still travel, this arrival included.
    pub hop_limit: u8,
    /// How the item is disseminated.
    pub strategy: Strategy,
    /// Where it goes.
    pub route: Route<'a>,
    /// The names of the item, at least one.
    pub ids: Ids<'a>,
    /// Options.
    pub options: Options<'a>,
    /// What is published.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Checks a whole frame.
    ///
    /// # Errors
    /// [`Malformed`] as for [`Head::parse`], and for ids and options that are not well-formed.
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        Self::of(Head::parse(octets)?)
    }

    /// Checks what follows a head.
    ///
    /// # Errors
    /// [`Malformed`] for ids and options that are not well-formed.
    pub fn of(head: Head<'a>) -> Result<Self, Malformed> {
        let (count, rest) = split_num(head.rest)?;
        if count == 0 {
            return Err(Malformed::Missing(types::NAME));
        }
        let (ids, rest) = check_ids(count, rest)?;
        let (len, rest) = split_num(rest)?;
        let len = usize::try_from(len).map_err(|_| Malformed::Truncated)?;
        let (options, payload) = rest.split_at_checked(len).ok_or(Malformed::Truncated)?;
        let options = Options::parse(options)?;
        let Head { hop_limit, strategy, route, .. } = head;
        Ok(Self { hop_limit, strategy, route, ids, options, payload })
    }
}

/// Reads a TLV number by reading an element whose TYPE it would be.
fn split_num(octets: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let long = |len: usize, least: u64| {
        let (number, rest) =
            octets.get(1..).and_then(|o| o.split_at_checked(len)).ok_or(Malformed::Truncated)?;
        let number = tlv::nni(number)?;
        if number < least { Err(Malformed::LongNumber) } else { Ok((number, rest)) }
    };
    match octets {
        [n @ 0..=252, rest @ ..] => Ok((u64::from(*n), rest)),
        [253, ..] => long(2, 253),
        [254, ..] => long(4, 1 << 16),
        [255, ..] => long(8, 1 << 32),
        [] => Err(Malformed::Truncated),
    }
}

/// Splits `count` ids off and checks them.
pub(super) fn check_ids(count: u64, octets: &[u8]) -> Result<(Ids<'_>, &[u8]), Malformed> {
    let mut rest = octets;
    for _ in 0..count {
        let (labels, tail) = rest.split_first().ok_or(Malformed::Truncated)?;
        if *labels == 0 {
            return Err(Malformed::EmptyName);
        }
        (_, rest) = tail.split_at_checked(8 * usize::from(*labels)).ok_or(Malformed::Truncated)?;
    }
    let (ids, rest) = octets.split_at(octets.len() - rest.len());
    Ok((Ids { octets: ids }, rest))
}

/// The names of an item, each as its labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids<'a> {
    /// Checked.
    octets: &'a [u8],
}

impl<'a> Iterator for Ids<'a> {
    type Item = &'a [[u8; 8]];

    fn next(&mut self) -> Option<Self::Item> {
        let (labels, rest) = self.octets.split_first()?;
        let (id, rest) = rest.split_at_checked(8 * usize::from(*labels))?;
        self.octets = rest;
        Some(id.as_chunks().0)
    }
}

/// The options of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options<'a> {
    octets: &'a [u8],
    /// Where the publisher is reached: form octet and forwarding part.
    pub reply: Option<&'a [u8]>,
    /// Signature, its value.
    pub signature: Option<&'a [u8]>,
    /// Node of the publisher.
    pub origin: Option<Label>,
    /// Milliseconds for which a cache may answer with it.
    pub lifetime_ms: Option<u64>,
    /// Stream and number of the publication.
    pub number: Option<(u64, u32)>,
    /// Stream, and number that the next publication will have: this is none.
    pub reached: Option<(u64, u32)>,
    /// Publications of the item are retained at its publisher's node: how many at most, and the number
    /// of the first one.
    pub retained: Option<(u32, u32)>,
}

/// Stream and number.
fn numbered(element: Element<'_>) -> Result<(u64, u32), Malformed> {
    match *element.value {
        [a, b, c, d, e, f, g, h, i, j, k, l] => {
            Ok((u64::from_be_bytes([a, b, c, d, e, f, g, h]), u32::from_be_bytes([i, j, k, l])))
        }
        _ => Err(wrong(element.typ)),
    }
}

impl<'a> Options<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let mut options = Self { octets, ..Self::default() };
        for element in Reader::new(octets) {
            let element = element?;
            match element.typ {
                option::REPLY => {
                    RouteBuf::parse(element.value)?;
                    options.reply = Some(element.value);
                }
                option::SIGNATURE => options.signature = Some(element.value),
                option::ORIGIN => {
                    let label = element.value.try_into().map_err(|_| wrong(option::ORIGIN))?;
                    options.origin = Some(Label(label));
                }
                option::NUMBER => options.number = Some(numbered(element)?),
                option::REACHED => options.reached = Some(numbered(element)?),
                option::RETAINED => {
                    let [a, b, c, d, e, f, g, h] = *element.value else {
                        return Err(wrong(option::RETAINED));
                    };
                    let depth = u32::from_be_bytes([a, b, c, d]);
                    options.retained = Some((depth, u32::from_be_bytes([e, f, g, h])));
                }
                option::LIFETIME => options.lifetime_ms = Some(element.nni()?),
                other if tlv::is_critical(other) => return Err(Malformed::UnknownCritical(other)),
                _ => {}
            }
        }
        Ok(options)
    }

    /// Priority of an item that is retained, and milliseconds within which its next publication
    /// follows; read anew each time, as few frames have it.
    #[must_use]
    pub fn terms(&self) -> Option<(u8, u32)> {
        let terms = |element: Element<'_>| match *element.value {
            [priority, a, b, c, d] => Some((priority, u32::from_be_bytes([a, b, c, d]))),
            _ => None,
        };
        let mut elements = Reader::new(self.octets).filter_map(Result::ok);
        elements.find(|element| element.typ == option::TERMS).and_then(terms)
    }

    /// All options as they are.
    #[must_use]
    pub const fn octets(&self) -> &'a [u8] {
        self.octets
    }
}

const fn wrong(typ: u32) -> Malformed {
    Malformed::Length(typ)
}

/// Writes a frame.
#[derive(Debug, Clone, Copy)]
pub struct FrameBuilder<'a> {
    /// Links that the frame may travel.
    pub hop_limit: u8,
    /// How the item is disseminated.
    pub strategy: Strategy,
    /// Where it goes: form octet and forwarding part.
    pub route: &'a RouteBuf,
    /// The names of the item, at least one, none empty.
    pub ids: &'a [Id],
    /// Options, well-formed TLV.
    pub options: &'a [u8],
    /// What is published.
    pub payload: &'a [u8],
}

impl FrameBuilder<'_> {
    /// Octets of the frame.
    #[must_use]
    pub fn len(&self) -> usize {
        tlv::tlv_len(types::PUSH_FRAME, self.value_len())
    }

    /// Whether there is nothing to write: never, a frame has a head.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    fn value_len(&self) -> usize {
        let ids: usize = self.ids.iter().map(|id| 1 + 8 * id.len()).sum();
        // Version and form are one octet; the form stands in front of the route.
        3 + self.route.octets().len()
            + tlv::num_len(self.ids.len() as u64)
            + ids
            + tlv::num_len(self.options.len() as u64)
            + self.options.len()
            + self.payload.len()
    }

    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        tlv::put_head(out, types::PUSH_FRAME, self.value_len());
        let (form, part) = self.route.octets().split_first().unwrap_or((&0, &[]));
        out.extend_from_slice(&[(VERSION << 4) | form, self.hop_limit, self.strategy.0, 0]);
        out.extend_from_slice(part);
        tlv::put_num(out, self.ids.len() as u64);
        for id in self.ids {
            out.push(u8::try_from(id.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(id.octets());
        }
        tlv::put_num(out, self.options.len() as u64);
        out.extend_from_slice(self.options);
        out.extend_from_slice(self.payload);
    }
}
