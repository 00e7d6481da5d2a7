//! A store that is a cache: what is oldest gives way to what comes, a segment at a time.

use super::{Group, Writer};
use crate::Error;
use crate::record::{Kind, Place, Record};
use crate::scan::Scan;
use onym_wire::data::Data;
use onym_wire::name::NameRef;
use std::fmt;

/// Hears the name of each packet that goes without being asked to.
pub struct Gone(pub Box<dyn FnMut(NameRef<'_>) + Send>);

impl fmt::Debug for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gone")
    }
}

/// Records of a segment that are let go in one transaction.
const STEP: usize = 4096;
/// A segment is full with this share of the packets that there may be: what gives way at once is
/// no more.
const SHARE: u64 = 8;

impl Writer {
    /// From now on the oldest segment gives way when there is no room: `octets_max` is then what the
    /// log takes on the disk, dead records included, and `Refused::Full` is for what is larger than
    /// all of it.
    pub fn give_way(&mut self, gone: Gone) {
        self.gone = Some(gone);
    }

    /// Tells who listens that these are gone.
    pub(super) fn tell_gone(&mut self, names: &[Vec<u8>]) {
        let Some(gone) = &mut self.gone else { return };
        names.iter().filter_map(|n| NameRef::parse_value(n).ok()).for_each(|name| gone.0(name));
    }

    /// Makes room for so much more, if what is oldest gives way.
    pub(super) fn make_room(&mut self, octets: u64, packets: u64) -> Result<(), Error> {
        if self.gone.is_none() {
            return Ok(());
        }
        let bounds = self.options.bounds;
        let in_open = self.log.open_segment().and_then(|s| self.tally.segments.get(&s));
        if in_open.is_some_and(|used| used.packets >= bounds.packets_max.div_ceil(SHARE)) {
            self.log.give_up_segment();
        }
        while self.log.octets().saturating_add(octets) > bounds.octets_max
            || self.tally.total.packets.saturating_add(packets) > bounds.packets_max
        {
            let Some(oldest) = self.log.oldest() else { break };
            if self.log.open_segment() == Some(oldest) {
                self.log.give_up_segment();
            }
            self.let_go(oldest)?;
        }
        Ok(())
    }

    /// Forgets everything in the oldest segment, and removes it.
    fn let_go(&mut self, segment: u32) -> Result<(), Error> {
        self.compaction = None;
        if let Some(file) = self.log.file(segment) {
            let mut scan = Scan::new(file, segment, 0, self.log.len_of(segment));
            let mut ended = false;
            while !ended {
                let mut names = Vec::new();
                let step = self.group(0, false, |group| {
                    for _ in 0..STEP {
                        // Behind what cannot be read nothing is found here: see below.
                        let Ok(Some((place, record))) = scan.next() else { return Ok(true) };
                        group.let_go(place, &record, &mut names)?;
                    }
                    Ok(false)
                });
                ended = step.map_err(Error::Index)?;
                self.tell_gone(&names);
            }
        }
        if self.tally.segments.get(&segment).is_some_and(|used| used.packets > 0) {
            self.drop_those(segment, |_| true)?;
        }
        self.remove_segment(segment)
    }
}

impl Group<'_, '_, '_> {
    /// Takes the packet of a record out of the index, if it is this one that counts.
    fn let_go(
        &mut self,
        place: Place,
        record: &Record<'_>,
        names: &mut Vec<Vec<u8>>,
    ) -> Result<(), Error> {
        let (Kind::Packet, Ok(data)) = (record.kind, Data::parse(record.body)) else {
            return Ok(());
        };
        let name = data.name.value();
        if self.tables.entry(name)?.is_some_and(|entry| entry.place == place) {
            self.tables.remove(self.tally, name)?;
            self.moved = true;
            names.push(name.to_vec());
        }
        Ok(())
    }
}
