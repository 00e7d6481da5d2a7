//! Advertisements: what a router reaches, by whom, at what cost.

use super::{
    COST, DEST_SEQ, DESTINATION, ENTRY, INFINITY, METRIC, NEXT_HOP, OTHER_COST, REQUEST,
    REQUEST_TO, name, named, put_named, skip,
};
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{Name, NameRef};

/// One destination of an advertisement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvEntry {
    /// The router that is reached.
    pub destination: Name,
    /// The neighbour by which it is reached; the sender itself for its own entry.
    pub next_hop: Name,
    /// Cost of the best way; 16 and more is unreachable.
    pub cost: u64,
    /// Cost of the second-best way, 16 when there is none.
    pub other_cost: u64,
    /// Ours: the destination's own number. Routes with a newer one cannot be part of an old loop.
    pub seq: Option<u64>,
    /// Ours: cost beyond 15.
    pub metric: Option<u64>,
}

impl AdvEntry {
    pub(super) fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let (mut destination, mut next_hop) = (None, None);
        let (mut cost, mut other, mut seq, mut metric) = (None, None, None, None);
        for element in Reader::new(value) {
            let element = element?;
            match element.typ {
                DESTINATION if destination.is_none() => destination = Some(name(element.value)?),
                NEXT_HOP if next_hop.is_none() => next_hop = Some(name(element.value)?),
                COST if cost.is_none() => cost = Some(element.nni()?),
                OTHER_COST if other.is_none() => other = Some(element.nni()?),
                DEST_SEQ if seq.is_none() => seq = Some(element.nni()?),
                METRIC if metric.is_none() => metric = Some(element.nni()?),
                typ => skip(typ)?,
            }
        }
        Ok(Self {
            destination: destination.ok_or(Malformed::Missing(DESTINATION))?.to_name(),
            next_hop: next_hop.ok_or(Malformed::Missing(NEXT_HOP))?.to_name(),
            cost: cost.ok_or(Malformed::Missing(COST))?,
            other_cost: other.unwrap_or(INFINITY),
            seq,
            metric,
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, ENTRY, |out| {
            put_named(out, DESTINATION, &self.destination);
            put_named(out, NEXT_HOP, &self.next_hop);
            tlv::put_nni_tlv(out, COST, self.cost);
            tlv::put_nni_tlv(out, OTHER_COST, self.other_cost);
            if let Some(seq) = self.seq {
                tlv::put_nni_tlv(out, DEST_SEQ, seq);
            }
            if let Some(metric) = self.metric {
                tlv::put_nni_tlv(out, METRIC, metric);
            }
        });
    }
}

/// Ours: a router without a feasible way to `destination` asks for a newer number of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The router that shall count on.
    pub destination: Name,
    /// The least number that helps.
    pub seq: u64,
    /// The neighbour that is asked; every one when there is none.
    pub to: Option<Name>,
}

impl Request {
    pub(super) fn parse(element: tlv::Element<'_>) -> Result<Self, Malformed> {
        let (destination, rest) = named(element)?;
        let (mut seq, mut to): (_, Option<NameRef<'_>>) = (None, None);
        for element in rest {
            let element = element?;
            match element.typ {
                DEST_SEQ => seq = Some(element.nni()?),
                REQUEST_TO => to = Some(name(element.value)?),
                typ => skip(typ)?,
            }
        }
        Ok(Self {
            destination: destination.to_name(),
            seq: seq.ok_or(Malformed::Missing(DEST_SEQ))?,
            to: to.map(|name| name.to_name()),
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, REQUEST, |out| {
            self.destination.as_ref().write_tlv(out);
            tlv::put_nni_tlv(out, DEST_SEQ, self.seq);
            if let Some(to) = &self.to {
                put_named(out, REQUEST_TO, to);
            }
        });
    }
}

/// The content of an advertisement: a bare list, without an outer element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advert {
    /// Destinations, the sender's own entry among them.
    pub entries: Vec<AdvEntry>,
    /// Ours: what the sender asks for.
    pub requests: Vec<Request>,
}

impl Advert {
    /// Reads a content of at most `entries_max` destinations.
    ///
    /// # Errors
    /// [`Malformed`]; [`Malformed::TooLong`] when there are more entries or requests.
    pub fn parse(content: &[u8], entries_max: usize) -> Result<Self, Malformed> {
        let mut advert = Self::default();
        for element in Reader::new(content) {
            let element = element?;
            match element.typ {
                ENTRY => advert.entries.push(AdvEntry::parse(element.value)?),
                REQUEST => advert.requests.push(Request::parse(element)?),
                typ => skip(typ)?,
            }
            if advert.entries.len() > entries_max || advert.requests.len() > entries_max {
                return Err(Malformed::TooLong);
            }
        }
        Ok(advert)
    }

    /// Appends the content.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.entries.iter().for_each(|entry| entry.write(out));
        self.requests.iter().for_each(|request| request.write(out));
    }
}
