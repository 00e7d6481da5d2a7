//! A group of changes of callers.

use super::{Group, Writer};
use crate::Error;
use crate::change::{Change, Done, OwnerId, Refused};
use crate::disk::read_exact;
use crate::entry::Entry;
use crate::log::Files;
use crate::options::Bounds;
use crate::record::{HEADER, Kind, Record, note_body, padded};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::data::Data;
use onym_wire::name::NameRef;

/// Longest name, and longest key of a note.
const NAME_MAX: usize = 4096;
const NOTE_MAX: usize = 1 << 20;
/// Keys of notes of the store itself begin with this.
pub(super) const OWN: &[u8] = b"\0owner\0";
/// How much is written before the disk is asked again how much is free.
const FREE_STEP: u64 = 8 << 20;

/// The note that names an owner.
pub(super) fn owner_note(id: u16, name: NameRef<'_>) -> Change {
    let key = [OWN, &id.to_be_bytes()].concat();
    Change::Note { key, value: Some(name.value().to_vec()) }
}

/// When a packet came and when it goes.
#[derive(Debug, Clone, Copy)]
struct Times {
    arrival_ms: u64,
    expires_ms: u64,
}

/// What a group needs besides its tables.
struct Rules<'a> {
    now_ms: u64,
    bounds: Bounds,
    disk_full: bool,
    files: &'a Files,
}

impl Writer {
    /// Makes `changes`; each has its own answer. What is not refused is on the disk afterwards.
    /// After an error of the disk all are refused.
    pub fn apply(&mut self, now_ms: u64, changes: Vec<Change>) -> Vec<Result<Done, Refused>> {
        if self.read_only {
            return changes.iter().map(|_| Err(Refused::ReadOnly)).collect();
        }
        let octets = changes.iter().map(|c| padded(c.len() + 8)).sum();
        if let Err(error) = self.make_room(octets as u64, changes.len() as u64) {
            // What finds no room is refused below.
            tracing::warn!(%error, "store-oldest-stays");
        }
        let shared = std::sync::Arc::clone(&self.shared);
        let rules = Rules {
            now_ms,
            bounds: self.options.bounds,
            disk_full: self.is_disk_full(octets as u64),
            files: &shared.files,
        };
        let made = self.group(octets, false, |group| {
            changes.iter().map(|change| group.change(&rules, change)).collect::<Result<Vec<_>, _>>()
        });
        made.unwrap_or_else(|why| changes.iter().map(|_| Err(Refused::Disk(why.clone()))).collect())
    }

    fn is_disk_full(&mut self, octets: u64) -> bool {
        if self.free_credit < octets {
            let want = self.options.bounds.free_min_octets.saturating_add(octets);
            while self.disk.free().unwrap_or(u64::MAX) < want {
                // What the bucket has makes room.
                if !self.leave_one().unwrap_or(false) {
                    return true;
                }
            }
            self.free_credit = FREE_STEP.max(octets);
        }
        self.free_credit -= octets;
        false
    }
}

impl<'p> Group<'_, '_, 'p> {
    fn change(
        &mut self,
        rules: &Rules<'_>,
        change: &'p Change,
    ) -> Result<Result<Done, Refused>, Error> {
        match change {
            Change::Insert { packet, owner, expires_ms, arrived_ms } => {
                let arrival_ms = if *arrived_ms == 0 { rules.now_ms } else { *arrived_ms };
                self.insert(rules, packet, *owner, Times { arrival_ms, expires_ms: *expires_ms })
            }
            Change::Delete { name, owner } => self.delete(rules, name.as_ref(), *owner),
            Change::Note { key, value } => self.note(rules, key, value.as_deref()),
        }
    }

    fn insert(
        &mut self,
        rules: &Rules<'_>,
        packet: &'p [u8],
        owner: OwnerId,
        times: Times,
    ) -> Result<Result<Done, Refused>, Error> {
        let Times { arrival_ms, expires_ms } = times;
        let data = match Data::parse(packet) {
            Ok(data) if packet.len() <= PACKET_LEN_MAX => data,
            _ => return Ok(Err(Refused::Malformed)),
        };
        let name = data.name.value();
        if name.len() > NAME_MAX {
            return Ok(Err(Refused::NameTooLong));
        }
        let old = self.tables.entry(name)?.filter(|old| !old.is_expired(rules.now_ms));
        if let Some(old) = &old {
            if old.owner != owner {
                return Ok(Err(Refused::NotYours));
            }
            if old.expires_ms == expires_ms && self.holds(rules, old, packet) {
                return Ok(Ok(Done::Had));
            }
        }
        if let Err(refused) = self.room(rules, owner, packet.len(), old.as_ref()) {
            return Ok(Err(refused));
        }
        let place = self.place();
        let kind = Kind::Packet;
        let record = Record { kind, owner: owner.0, arrival_ms, expires_ms, body: packet };
        self.parts.lend(&record, place);
        let entry = Entry {
            place,
            len: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            owner,
            fresh_until_ms: fresh_until(&data, arrival_ms),
            expires_ms,
        };
        self.moved |= self.tables.put(self.tally, data.name, &entry)?;
        Ok(Ok(if old.is_some() { Done::Replaced } else { Done::New }))
    }

    /// Whether `old` is `packet`, octet for octet, and undamaged.
    fn holds(&self, rules: &Rules<'_>, old: &Entry, packet: &[u8]) -> bool {
        if old.len as usize != packet.len() {
            return false;
        }
        // Of this very group?
        if old.place.segment == self.start.segment && old.place.offset >= self.start.offset {
            let at = (old.place.offset - self.start.offset) as usize + HEADER;
            return self.parts.lent_at(at) == Some(packet);
        }
        let mut octets = vec![0; HEADER + packet.len()];
        rules.files.get(old.place.segment).is_some_and(|file| {
            read_exact(&*file, u64::from(old.place.offset), &mut octets).is_ok()
                && Record::read(&octets, old.place).is_some_and(|r| r.body == packet)
        })
    }

    fn room(
        &self,
        rules: &Rules<'_>,
        owner: OwnerId,
        len: usize,
        old: Option<&Entry>,
    ) -> Result<(), Refused> {
        let bounds = &rules.bounds;
        if rules.disk_full {
            return Err(Refused::DiskFull(bounds.free_min_octets));
        }
        let goes = old.map_or(0, |old| padded(old.len as usize) as u64);
        let octets = (padded(len) as u64).saturating_sub(goes);
        let packets = u64::from(old.is_none());
        let (all, own) = (self.tally.total, self.tally.owner(owner));
        if all.octets.saturating_add(octets) > bounds.octets_max {
            return Err(Refused::Full("octets_max"));
        }
        if all.packets + packets > bounds.packets_max {
            return Err(Refused::Full("packets_max"));
        }
        if own.octets.saturating_add(octets) > bounds.owner_octets_max {
            return Err(Refused::Quota("owner_octets_max"));
        }
        if own.packets + packets > bounds.owner_packets_max {
            return Err(Refused::Quota("owner_packets_max"));
        }
        Ok(())
    }

    fn delete(
        &mut self,
        rules: &Rules<'_>,
        name: NameRef<'_>,
        owner: Option<OwnerId>,
    ) -> Result<Result<Done, Refused>, Error> {
        let Some(old) = self.tables.entry(name.value())? else { return Ok(Ok(Done::Missing)) };
        if owner.is_some_and(|owner| owner != old.owner) {
            return Ok(Err(Refused::NotYours));
        }
        let place = self.place();
        let (arrival_ms, body) = (rules.now_ms, name.value());
        let owner = old.owner.0;
        let record = Record { kind: Kind::Delete, owner, arrival_ms, expires_ms: 0, body };
        self.parts.copy(&record, place);
        self.tally.deletion_is(place.segment, padded(body.len()));
        self.tables.remove(self.tally, name.value())?;
        self.moved = true;
        Ok(Ok(if old.is_expired(rules.now_ms) { Done::Missing } else { Done::Deleted }))
    }

    fn note(
        &mut self,
        rules: &Rules<'_>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<Result<Done, Refused>, Error> {
        if key.len() > NAME_MAX || value.is_some_and(|v| v.len() > NOTE_MAX) {
            return Ok(Err(Refused::NoteTooLong));
        }
        let body = note_body(key, value);
        let place = self.place();
        let (arrival_ms, expires_ms) = (rules.now_ms, 0);
        let record = Record { kind: Kind::Note, owner: 0, arrival_ms, expires_ms, body: &body };
        self.parts.copy(&record, place);
        self.tables.put_note(self.tally, key, value, place)?;
        Ok(Ok(Done::Noted))
    }
}

/// Until when a packet that arrived at `arrival_ms` is fresh; 0 when it never is.
pub(super) fn fresh_until(data: &Data<'_>, arrival_ms: u64) -> u64 {
    match data.freshness_ms {
        0 => 0,
        period => arrival_ms.saturating_add(period),
    }
}
