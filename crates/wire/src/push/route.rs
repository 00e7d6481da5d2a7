//! Forwarding parts: what tells a frame where to go.

use super::Filter;
use crate::tlv::Malformed;
use crate::types;

/// A fault in a forwarding part, as a fault of the frame around it.
const BAD: Malformed = Malformed::Value(types::PUSH_FRAME);

/// A forwarding part (section 2), parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route<'a> {
    /// To the neighbour only.
    Link,
    /// LIPSIN.
    Flat {
        /// Which tag of each link.
        table: u8,
        /// The links.
        filter: Filter,
    },
    /// LIPSIN with tags made for the flow, the moment and the pair of links.
    Keyed {
        /// Which tag of each link.
        table: u8,
        /// Number of the keys, modulo 256.
        epoch: u8,
        /// What the tags are made for.
        flow: u64,
        /// The links.
        filter: Filter,
    },
    /// A filter for each distance from the publisher.
    Stages(Stages<'a>),
    /// Stages over domains, and the way within the present one.
    Domains {
        /// One stage for each domain on the way.
        stages: Stages<'a>,
        /// Which tag of each link.
        table: u8,
        /// The links within the present domain.
        filter: Filter,
    },
}

/// The stages of a multi-stage filter and which one is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stages<'a> {
    count: u8,
    index: u8,
    /// Checked: `count` whole stages.
    octets: &'a [u8],
}

/// One stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage<'a> {
    /// Bits of the filter, 1 to 4095.
    pub bits: u16,
    /// Positions of a member, 0 to 15.
    pub k: u8,
    /// Seed of the positions.
    pub seed: u8,
    /// The filter; bits beyond `bits` are 0.
    pub octets: &'a [u8],
}

impl<'a> Stage<'a> {
    /// Splits the first stage off.
    ///
    /// # Errors
    /// [`Malformed`] when it is not whole, or has no bits.
    #[inline]
    pub fn split(octets: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let ([a, b, seed], rest) = octets.split_first_chunk().ok_or(Malformed::Truncated)?;
        let head = u16::from_be_bytes([*a, *b]);
        let (bits, k) = (head >> 4, (b & 15));
        if bits == 0 {
            return Err(BAD);
        }
        let len = usize::from(bits).div_ceil(8);
        let (octets, rest) = rest.split_at_checked(len).ok_or(Malformed::Truncated)?;
        Ok((Self { bits, k, seed: *seed, octets }, rest))
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let head = (self.bits << 4) | u16::from(self.k & 15);
        out.extend_from_slice(&head.to_be_bytes());
        out.push(self.seed);
        out.extend_from_slice(self.octets);
    }

    /// Whether bit `bit` is set; bits beyond the filter are not.
    #[inline]
    #[must_use]
    pub fn has(&self, bit: u16) -> bool {
        let octet = self.octets.get(usize::from(bit >> 3));
        bit < self.bits && octet.is_some_and(|octet| octet & (1 << (bit & 7)) != 0)
    }
}

impl<'a> Stages<'a> {
    fn split(octets: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let ([count, index, a, b], rest) =
            octets.split_first_chunk().ok_or(Malformed::Truncated)?;
        let len = usize::from(u16::from_be_bytes([*a, *b]));
        let (octets, rest) = rest.split_at_checked(len).ok_or(Malformed::Truncated)?;
        let mut left = octets;
        for _ in 0..*count {
            (_, left) = Stage::split(left)?;
        }
        if left.is_empty() && index <= count {
            Ok((Self { count: *count, index: *index, octets }, rest))
        } else {
            Err(BAD)
        }
    }

    /// Number of stages.
    #[must_use]
    pub const fn count(&self) -> u8 {
        self.count
    }

    /// Number of the stage that is next; equal to `count` behind the last one.
    #[must_use]
    pub const fn index(&self) -> u8 {
        self.index
    }

    /// The stage that is next.
    #[must_use]
    pub fn current(&self) -> Option<Stage<'a>> {
        self.get(self.index)
    }

    /// Stage number `index`.
    #[must_use]
    pub fn get(&self, index: u8) -> Option<Stage<'a>> {
        let mut left = self.octets;
        for _ in 0..index {
            (_, left) = Stage::split(left).ok()?;
        }
        Stage::split(left).ok().map(|(stage, _)| stage)
    }

    /// Bits of all stages together.
    #[must_use]
    pub fn bits(&self) -> usize {
        (0..self.count).filter_map(|i| self.get(i)).map(|stage| usize::from(stage.bits)).sum()
    }
}

impl<'a> Route<'a> {
    /// Splits the forwarding part of form `form` off.
    ///
    /// # Errors
    /// [`Malformed`]; [`Malformed::Unexpected`] with the form when it is unknown.
    #[inline]
    pub fn split(form: u8, octets: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        match form {
            0 => Ok((Route::Link, octets)),
            1 => {
                let ((table, filter), rest) = split_flat(octets)?;
                Ok((Route::Flat { table, filter }, rest))
            }
            2 => split_keyed(octets),
            3 => {
                let (stages, rest) = Stages::split(octets)?;
                Ok((Route::Stages(stages), rest))
            }
            4 => {
                let (stages, rest) = Stages::split(octets)?;
                let ((table, filter), rest) = split_flat(rest)?;
                Ok((Route::Domains { stages, table, filter }, rest))
            }
            _ => Err(Malformed::Unexpected(u32::from(form))),
        }
    }

    /// Its number on the wire.
    #[inline]
    #[must_use]
    pub const fn form(&self) -> u8 {
        match self {
            Route::Link => 0,
            Route::Flat { .. } => 1,
            Route::Keyed { .. } => 2,
            Route::Stages(_) => 3,
            Route::Domains { .. } => 4,
        }
    }

    /// Appends the forwarding part, without the form.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Route::Link => {}
            Route::Flat { table, filter } => put_flat(out, *table, filter),
            Route::Keyed { table, epoch, flow, filter } => {
                out.extend_from_slice(&[*table, *epoch]);
                out.extend_from_slice(&flow.to_be_bytes());
                out.extend_from_slice(&filter.octets());
            }
            Route::Stages(stages) => put_stages(out, stages),
            Route::Domains { stages, table, filter } => {
                put_stages(out, stages);
                put_flat(out, *table, filter);
            }
        }
    }
}

#[inline]
fn split_flat(octets: &[u8]) -> Result<((u8, Filter), &[u8]), Malformed> {
    let (table, rest) = octets.split_first().ok_or(Malformed::Truncated)?;
    let (filter, rest) = rest.split_first_chunk().ok_or(Malformed::Truncated)?;
    Ok(((*table, Filter::from_octets(filter)), rest))
}

#[inline]
fn split_keyed(octets: &[u8]) -> Result<(Route<'_>, &[u8]), Malformed> {
    let ([table, epoch], rest) = octets.split_first_chunk().ok_or(Malformed::Truncated)?;
    let (flow, rest) = rest.split_first_chunk().ok_or(Malformed::Truncated)?;
    let (filter, rest) = rest.split_first_chunk().ok_or(Malformed::Truncated)?;
    let (flow, filter) = (u64::from_be_bytes(*flow), Filter::from_octets(filter));
    Ok((Route::Keyed { table: *table, epoch: *epoch, flow, filter }, rest))
}

fn put_flat(out: &mut Vec<u8>, table: u8, filter: &Filter) {
    out.push(table);
    out.extend_from_slice(&filter.octets());
}

fn put_stages(out: &mut Vec<u8>, stages: &Stages<'_>) {
    // Checked or built: never longer than a frame.
    let len = u16::try_from(stages.octets.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&[stages.count, stages.index]);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(stages.octets);
}

/// A forwarding part that is kept: form octet and part as on the wire, checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouteBuf(Vec<u8>);

impl RouteBuf {
    /// Checks form octet and forwarding part.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let (form, part) = octets.split_first().ok_or(Malformed::Truncated)?;
        match Route::split(*form, part)? {
            (_, []) => Ok(Self(octets.to_vec())),
            _ => Err(Malformed::Trailing),
        }
    }

    /// A flat filter.
    #[must_use]
    pub fn flat(table: u8, filter: &Filter) -> Self {
        Self::from(Route::Flat { table, filter: *filter })
    }

    /// Stages, each with at most 4095 bits; `None` when that is more than a frame carries.
    #[must_use]
    pub fn stages(stages: &[Stage<'_>]) -> Option<Self> {
        let mut octets = Vec::new();
        stages.iter().for_each(|stage| stage.write(&mut octets));
        let count = u8::try_from(stages.len()).ok()?;
        (octets.len() <= 4096).then_some(())?;
        Some(Self::from(Route::Stages(Stages { count, index: 0, octets: &octets })))
    }

    /// The same stages of domains with another way within the present domain; `None` when this is
    /// neither stages nor domains.
    #[must_use]
    pub fn within(&self, table: u8, filter: &Filter) -> Option<Self> {
        match self.as_ref() {
            Route::Stages(stages) | Route::Domains { stages, .. } => {
                Some(Self::from(Route::Domains { stages, table, filter: *filter }))
            }
            _ => None,
        }
    }

    /// The parsed form.
    #[must_use]
    pub fn as_ref(&self) -> Route<'_> {
        let (form, part) = self.0.split_first().unwrap_or((&0, &[]));
        Route::split(*form, part).map_or(Route::Link, |(route, _)| route)
    }

    /// Form octet and forwarding part.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }
}

impl From<Route<'_>> for RouteBuf {
    fn from(route: Route<'_>) -> Self {
        let mut octets = vec![route.form()];
        route.write(&mut octets);
        Self(octets)
    }
}
