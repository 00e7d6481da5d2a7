//! The LIPSIN forwarder: where a frame goes, decided by its filter and the tags of the links.
//!
//! Works in place on one buffer: hop limit and stage number are the same in every copy.

mod border;
mod detour;
mod tags;
#[cfg(test)]
mod tests;

pub use border::{Border, ENTRIES_MAX, Exit};
pub use detour::Detour;

use crate::verdict::{Counters, Verdict};
use detour::Bypass;
use onym_tables::FaceId;
use onym_tables::bloom::{Bits, KeyedTags, Scheme, TABLES_MAX, stage_has};
use onym_wire::push::{Filter, Head, Route, Stages};
use onym_wire::tlv::Malformed;
use onym_wire::types::PacketType;
use tags::{BLOCK, Tags};

/// Most links of a node.
pub const LINKS_MAX: usize = 4096;
/// Number of the link over which a node's own frames come, for keyed tags.
pub const OWN: u32 = u32::MAX;

/// So many octets of a frame hold a flat or keyed filter and all before it.
pub const START: usize = 64;

/// Whether the first [`START`] octets of a frame are all that is looked at and changed: it has a
/// flat filter, keyed or not.
#[must_use]
pub fn has_short_head(frame: &[u8]) -> bool {
    let at = if frame.get(1).is_some_and(|len| *len < 253) { 2 } else { 4 };
    frame.len() > START && frame.get(at).is_some_and(|first| matches!(first & 15, 1 | 2))
}

/// Where a frame comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// This node: sent as it is, and not delivered here.
    Own,
    /// A neighbour.
    Face(FaceId),
}

/// Limits and switches of a forwarder.
#[derive(Debug, Clone)]
pub struct Config {
    /// How link numbers become tags.
    pub scheme: Scheme,
    /// Most ones of a filter, of 256.
    pub fill_max: u32,
    /// Forms of forwarding parts that are obeyed, by their numbers.
    pub forms: [bool; 5],
}

impl Default for Config {
    fn default() -> Self {
        Self { scheme: Scheme::default(), fill_max: 179, forms: [true; 5] }
    }
}

/// Where a frame goes; the buffer is used again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copies {
    /// The faces that get a copy.
    pub faces: Vec<FaceId>,
    /// Whether the dispatcher of this node gets it.
    pub is_delivered: bool,
}

/// A link as the forwarder knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkEntry {
    /// The face that it leaves by.
    pub face: FaceId,
    /// Its number within the domain.
    pub number: u32,
    /// Whether another domain is at its end.
    pub is_external: bool,
}

/// Adding a link was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// [`LINKS_MAX`] links are there.
    #[error("{LINKS_MAX} links are the most of a node")]
    Full,
    /// The face is a link already.
    #[error("{0} is a link already")]
    Twice(FaceId),
}

/// Keys of the present epoch and the last one.
#[derive(Debug, Clone, Copy)]
struct Epochs {
    number: u8,
    present: KeyedTags,
    last: Option<KeyedTags>,
}

/// The forwarder of one node. A clone decides alike and counts on its own.
#[derive(Debug, Clone)]
pub struct Forwarder {
    config: Config,
    links: Vec<LinkEntry>,
    /// Position of the link that a frame came over last: mostly the next one does, too.
    last_ingress: usize,
    /// Tags of all links, by table.
    tags: Vec<Tags>,
    stage_tags: Vec<u64>,
    inside: u32,
    inside_tags: Vec<Filter>,
    inside_stage_tag: u64,
    keys: Option<Epochs>,
    /// Ways round links that are lost.
    bypasses: Vec<Bypass>,
    /// What a border node knows of the domains around.
    pub border: Border,
    counters: Counters,
}

impl Forwarder {
    /// A forwarder without links; `inside` is the number by which filters name this node.
    #[must_use]
    pub fn new(config: Config, inside: u32) -> Self {
        let tables = config.scheme.tables();
        Self {
            inside_tags: (0..tables).map(|table| config.scheme.tag(inside, table)).collect(),
            inside_stage_tag: config.scheme.stage_tag(inside),
            links: Vec::new(),
            last_ingress: 0,
            tags: vec![Tags::default(); usize::from(tables)],
            stage_tags: Vec::new(),
            inside,
            keys: None,
            bypasses: Vec::new(),
            border: Border::default(),
            counters: Counters::default(),
            config,
        }
    }

    /// Adds a link.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn link_add(&mut self, link: LinkEntry) -> Result<(), LinkError> {
        if self.links.len() >= LINKS_MAX {
            return Err(LinkError::Full);
        }
        if self.links.iter().any(|l| l.face == link.face) {
            return Err(LinkError::Twice(link.face));
        }
        let scheme = self.config.scheme;
        for (table, tags) in (0..).zip(&mut self.tags) {
            tags.push(scheme.tag(link.number, table));
        }
        self.stage_tags.push(scheme.stage_tag(link.number));
        self.links.push(link);
        Ok(())
    }

    /// Removes the link of `face`, whose place the last one takes; whether there was one.
    pub fn link_remove(&mut self, face: FaceId) -> bool {
        let Some(at) = self.links.iter().position(|link| link.face == face) else { return false };
        self.links.swap_remove(at);
        self.stage_tags.swap_remove(at);
        self.tags.iter_mut().for_each(|tags| tags.swap_remove(at));
        true
    }

    /// Decides from now on as `other` does; what was counted stays.
    pub fn take_over(&mut self, other: Self) {
        let counters = std::mem::take(&mut self.counters);
        *self = Self { counters, ..other };
    }

    /// Starts epoch `number` of keyed tags; the keys of the epoch before stay good.
    pub fn epoch_start(&mut self, number: u8, keys: KeyedTags) {
        let last = self.keys.filter(|k| k.number.wrapping_add(1) == number).map(|k| k.present);
        self.keys = Some(Epochs { number, present: keys, last });
    }

    /// The links.
    #[must_use]
    pub fn links(&self) -> &[LinkEntry] {
        &self.links
    }

    /// Whether another domain is at the other end of the link of `face`.
    #[must_use]
    pub fn is_external(&self, face: FaceId) -> bool {
        self.links.iter().any(|link| link.face == face && link.is_external)
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Decides where `frame` goes and makes it ready to leave: hop limit and stage number are
    /// changed in place. The verdict is counted.
    pub fn receive(&mut self, source: Source, frame: &mut [u8], copies: &mut Copies) -> Verdict {
        self.receive_as(1, source, frame, copies, |frame| Head::parse(frame))
    }

    /// As [`Forwarder::receive`] for a frame of `len` octets, of which `start` are the first ones,
    /// with [`START`] enough for [`has_short_head`].
    pub fn receive_start(
        &mut self,
        source: Source,
        start: &mut [u8],
        len: usize,
        copies: &mut Copies,
    ) -> Verdict {
        self.receive_row(1, source, start, len, copies)
    }

    /// As [`Forwarder::receive_start`] for a row of `frames` that are as long and start alike: one
    /// decision for all of them.
    pub fn receive_row(
        &mut self,
        frames: usize,
        source: Source,
        start: &mut [u8],
        len: usize,
        copies: &mut Copies,
    ) -> Verdict {
        let frames = frames as u64;
        self.receive_as(frames, source, start, copies, |start| Head::parse_start(start, len))
    }

    /// What [`Forwarder::receive`] would decide; nothing is counted.
    pub fn would(&mut self, source: Source, frame: &mut [u8], copies: &mut Copies) -> Verdict {
        let counters = self.counters.clone();
        let verdict = self.receive(source, frame, copies);
        self.counters = counters;
        verdict
    }

    #[inline]
    fn receive_as(
        &mut self,
        frames: u64,
        source: Source,
        frame: &mut [u8],
        copies: &mut Copies,
        parse: impl Fn(&[u8]) -> Result<Head<'_>, Malformed>,
    ) -> Verdict {
        copies.faces.clear();
        copies.is_delivered = false;
        let verdict = match self.judge(source, frame, copies, parse) {
            Ok(()) => match (copies.faces.is_empty(), copies.is_delivered) {
                (false, false) => Verdict::Forwarded,
                (true, true) => Verdict::Delivered,
                (false, true) => Verdict::Both,
                (true, false) => Verdict::NoMatch,
            },
            Err(verdict) => verdict,
        };
        self.counters.count(frames, verdict, copies.faces.len(), copies.is_delivered.into());
        verdict
    }

    #[inline]
    fn judge(
        &mut self,
        source: Source,
        frame: &mut [u8],
        copies: &mut Copies,
        parse: impl Fn(&[u8]) -> Result<Head<'_>, Malformed>,
    ) -> Result<(), Verdict> {
        let head = parse(frame).map_err(|fault| refusal(frame, fault))?;
        if !self.config.forms[usize::from(head.route.form())] {
            return Err(Verdict::Form);
        }
        let (at, hops) = (head.at, head.hop_limit);
        if hops == 0 {
            return Err(Verdict::HopLimit);
        }
        let from = self.ingress(source)?;
        // The inside of a domain is not for filters of others.
        let is_entry = from.is_some_and(|i| self.links[i].is_external);
        if is_entry && !matches!(head.route, Route::Link | Route::Domains { .. }) {
            return Err(Verdict::Form);
        }
        match head.route {
            Route::Link => copies.is_delivered = from.is_some(),
            Route::Flat { table, filter } => {
                self.flat(from, table, &filter, copies)?;
                if !self.bypasses.is_empty() {
                    // Behind form, hop limit, strategy, flags and table.
                    self.go_round(table, &mut frame[at + 5..at + 5 + Filter::LEN], copies);
                }
            }
            Route::Keyed { table, epoch, flow, filter } => {
                let keys = self.keys_of(epoch).ok_or(Verdict::Epoch)?;
                self.keyed(keys, from, table, flow, &filter, copies)?;
            }
            Route::Stages(stages) => {
                self.stages(from, &stages, copies);
                // Form, hop limit, strategy and flags come first, then the count of stages.
                frame[at + 5] = stages.index().saturating_add(1);
            }
            Route::Domains { table, filter, .. } => {
                let (table, filter) = if is_entry { self.enter(frame)? } else { (table, filter) };
                self.flat(from, table, &filter, copies)?;
            }
        }
        if from.is_some() {
            if hops == 1 && !copies.faces.is_empty() {
                copies.faces.clear();
                if !copies.is_delivered {
                    return Err(Verdict::HopLimit);
                }
            }
            frame[at + 1] = hops - 1;
        }
        Ok(())
    }

    /// Position of the link that the frame came over; `None` for own frames.
    fn ingress(&mut self, source: Source) -> Result<Option<usize>, Verdict> {
        let Source::Face(face) = source else { return Ok(None) };
        if self.links.get(self.last_ingress).is_none_or(|last| last.face != face) {
            let at = self.links.iter().position(|link| link.face == face);
            self.last_ingress = at.ok_or(Verdict::IngressGone)?;
        }
        Ok(Some(self.last_ingress))
    }

    fn check_fill(&self, filter: &Filter) -> Result<(), Verdict> {
        if filter.ones() > self.config.fill_max { Err(Verdict::Overfull) } else { Ok(()) }
    }

    fn flat(
        &self,
        from: Option<usize>,
        table: u8,
        filter: &Filter,
        copies: &mut Copies,
    ) -> Result<(), Verdict> {
        self.check_fill(filter)?;
        let table = usize::from(table);
        let inside = self.inside_tags.get(table).ok_or(Verdict::Malformed)?;
        let tags = self.tags.get(table).ok_or(Verdict::Malformed)?;
        for (block, links) in self.links.chunks(BLOCK).enumerate() {
            let mut matching = tags.held_by(filter, block);
            if let Some(from) = from.filter(|from| from / BLOCK == block) {
                matching &= !(1 << (from % BLOCK));
            }
            while matching != 0 {
                copies.faces.push(links[matching.trailing_zeros() as usize].face);
                matching &= matching - 1;
            }
        }
        copies.is_delivered = from.is_some() && filter.contains(inside);
        Ok(())
    }

    fn keys_of(&self, epoch: u8) -> Option<&KeyedTags> {
        let keys = self.keys.as_ref()?;
        match keys.number.wrapping_sub(epoch) {
            0 => Some(&keys.present),
            1 => keys.last.as_ref(),
            _ => None,
        }
    }

    fn keyed(
        &self,
        keys: &KeyedTags,
        from: Option<usize>,
        table: u8,
        flow: u64,
        filter: &Filter,
        copies: &mut Copies,
    ) -> Result<(), Verdict> {
        self.check_fill(filter)?;
        if table >= TABLES_MAX {
            return Err(Verdict::Malformed);
        }
        let number = from.map_or(OWN, |i| self.links[i].number);
        let (tags, bits) = (keys.of_flow(flow, table), Bits::of(filter));
        for (i, link) in self.links.iter().enumerate() {
            if tags.is_in(&bits, number, link.number) && Some(i) != from {
                copies.faces.push(link.face);
            }
        }
        copies.is_delivered = from.is_some() && tags.is_in(&bits, number, self.inside);
        Ok(())
    }

    fn stages(&self, from: Option<usize>, stages: &Stages<'_>, copies: &mut Copies) {
        let Some(stage) = stages.current() else { return };
        let index = stages.index();
        for (i, (tag, link)) in self.stage_tags.iter().zip(&self.links).enumerate() {
            if Some(i) != from && stage_has(&stage, index, *tag) {
                copies.faces.push(link.face);
            }
        }
        copies.is_delivered = from.is_some() && stage_has(&stage, index, self.inside_stage_tag);
    }
}

/// The verdict on a frame whose head does not parse.
#[cold]
fn refusal(frame: &[u8], fault: Malformed) -> Verdict {
    let is_push = PacketType::of(frame) == Some(PacketType::PushFrame);
    match fault {
        Malformed::Value(version) if is_push && version <= 15 => Verdict::Version,
        Malformed::Unexpected(form) if is_push && form <= 15 => Verdict::Form,
        _ => Verdict::Malformed,
    }
}
