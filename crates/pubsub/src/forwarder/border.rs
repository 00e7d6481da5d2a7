//! Between domains: a frame that enters gets the filter of this domain (P-16).

use super::Forwarder;
use crate::verdict::Verdict;
use onym_tables::KeyedMap;
use onym_tables::bloom::stage_has;
use onym_wire::push::{Filter, Frame, Id, Route};
use onym_wire::tlv::Element;

/// Most exits, and most items with receivers, that a border node is told of.
pub const ENTRIES_MAX: usize = 65_536;

/// A link by which this domain is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Its tag, as other domains know it.
    pub tag: u64,
    /// The links from this node to the other domain, the last one included.
    pub filter: Filter,
}

/// What a border node knows; its topology manager tells it.
#[derive(Debug, Clone, Default)]
pub struct Border {
    /// Exits of the domain.
    pub exits: Vec<Exit>,
    /// The tag of delivery within this domain.
    pub delivery: u64,
    /// Table of the filters.
    pub table: u8,
    receivers: KeyedMap<Id, Filter>,
}

impl Border {
    /// Tells the links by which an exit is reached; `None` when it is not any more.
    pub fn exit_set(&mut self, tag: u64, filter: Option<Filter>) {
        self.exits.retain(|exit| exit.tag != tag);
        let has_room = self.exits.len() < ENTRIES_MAX;
        self.exits.extend(filter.filter(|_| has_room).map(|filter| Exit { tag, filter }));
    }

    /// The filter by which receivers of `id` are reached.
    #[must_use]
    pub fn receivers(&self, id: &Id) -> Option<&Filter> {
        self.receivers.get(id)
    }

    /// Tells by which filter the receivers of `id` in this domain are reached; `None` when it has
    /// none any more. Whether there was room.
    pub fn receivers_set(&mut self, id: Id, filter: Option<Filter>) -> bool {
        let Some(filter) = filter else {
            self.receivers.remove(&id);
            return true;
        };
        let has_room = self.receivers.len() < ENTRIES_MAX || self.receivers.contains_key(&id);
        if has_room {
            self.receivers.insert(id, filter);
        }
        has_room
    }
}

impl Forwarder {
    /// Moves a frame that came from another domain to its next stage and gives it the filter of
    /// this domain, which is returned with its table.
    pub(super) fn enter(&self, frame: &mut [u8]) -> Result<(u8, Filter), Verdict> {
        let parsed = Frame::parse(frame).map_err(|_| Verdict::Malformed)?;
        let Route::Domains { stages, .. } = parsed.route else { return Err(Verdict::Form) };
        let index = stages.index().saturating_add(1);
        let stage = stages.get(index).filter(|_| index < stages.count());
        let stage = stage.ok_or(Verdict::NoMatch)?;
        let mut filter = Filter::EMPTY;
        for exit in self.border.exits.iter().filter(|e| stage_has(&stage, index, e.tag)) {
            filter.add(&exit.filter);
        }
        if stage_has(&stage, index, self.border.delivery) {
            // What is published beneath an item goes where the item goes.
            let of = |id: &[[u8; 8]]| self.border.receivers.get(id.as_flattened());
            let parent = |id: &'_ [[u8; 8]]| id.split_last().and_then(|(_, parent)| of(parent));
            for receivers in parsed.ids.filter_map(|id| of(id).or_else(|| parent(id))) {
                filter.add(receivers);
            }
        }
        // Form, hop limit, strategy, flags, count, index, length of the stages; behind them the
        // table and the filter.
        let at = frame.len() - Element::parse(frame).map_or(0, |e| e.value.len());
        let len = usize::from(u16::from_be_bytes([frame[at + 6], frame[at + 7]]));
        let start = at + 8 + len + 1;
        frame[at + 5] = index;
        frame[start - 1] = self.border.table;
        frame[start..start + Filter::LEN].copy_from_slice(&filter.octets());
        Ok((self.border.table, filter))
    }
}
