//! The second level of the content store, on a disk, as a shard has it: Interests that wait for the
//! disk, and what is to be written. A shard never waits: what the lane has no room for is as if there
//! were no disk.

use super::{Io, Shard};
use onym_engine::Reply;
use onym_forward::Verdict;
use onym_forward::stage::{Offer, OfferCounts, Offers};
use onym_frame::Buf;
use onym_link::Packet;
use onym_store::{Filter, Found};
use onym_tables::{FaceId, Tick};
use onym_wire::interest::Interest;
use onym_wire::name::Name;
use onym_wire::types::PacketType;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;

/// Interests of a shard that wait for the disk, at most; of one face fewer, see [`Waiting::has_room`].
pub(crate) const WAITING_MAX: usize = 256;
/// Data on their way to the disk, of all shards, at most.
pub(crate) const KEEPING_MAX: usize = 512;
/// How long a shard asks for nothing once an answer did not come in time, in milliseconds.
const REST_MS: u64 = 1000;

/// What the disk thread is asked.
#[derive(Debug)]
pub(crate) enum DiskJob {
    /// The packet that answers an Interest.
    Find { shard: u8, number: u64, interest: Buf },
    /// A packet to be written.
    Keep(Offer),
    /// Erases packets under a name; how many, and whether there are more.
    Erase { name: Name, limit: usize, reply: Reply<(usize, bool)> },
}

/// What the disk has for an Interest that waits.
#[derive(Debug)]
pub(crate) struct DiskAnswer {
    pub(crate) number: u64,
    pub(crate) found: Option<Found>,
}

/// What a shard counted of the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Interests answered from it.
    pub hits: u64,
    /// Interests that waited for it and found nothing.
    pub misses: u64,
    /// Interests that it did not answer in time.
    pub late: u64,
    /// Interests that did not wait although it may have an answer: too many did, or it was late.
    pub passed: u64,
    /// Data handed to it to be written, and those for which there was no room.
    pub offers: OfferCounts,
}

/// The disk, as a shard has it.
#[derive(Debug)]
pub(crate) struct DiskSide {
    filter: Arc<Filter>,
    jobs: SyncSender<DiskJob>,
    /// Data on their way to the disk.
    keeping: Arc<AtomicUsize>,
    wait_ms: u64,
    waiting: Waiting,
    /// Until when nothing is asked.
    rests_until: Tick,
    counts: DiskCounts,
}

impl DiskSide {
    pub(crate) fn new(
        filter: Arc<Filter>,
        jobs: SyncSender<DiskJob>,
        keeping: Arc<AtomicUsize>,
        wait_ms: u64,
    ) -> Self {
        Self {
            filter,
            jobs,
            keeping,
            wait_ms,
            waiting: Waiting::default(),
            rests_until: Tick(0),
            counts: DiskCounts::default(),
        }
    }

    /// Hands a Data over to be written; whether there was room.
    fn keep(&self, offer: Offer) -> bool {
        let before = self.keeping.fetch_add(1, Ordering::Relaxed);
        let taken = before < KEEPING_MAX && self.jobs.try_send(DiskJob::Keep(offer)).is_ok();
        if !taken {
            self.keeping.fetch_sub(1, Ordering::Relaxed);
        }
        taken
    }

    /// When the first Interest has waited long enough.
    pub(super) fn poll_timeout(&self) -> Tick {
        self.waiting.due()
    }

    /// Whether no Interest waits.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.list.is_empty()
    }
}

/// Interests that wait, in the order in which they began to.
#[derive(Debug, Default)]
struct Waiting {
    /// The number of the first one.
    first: u64,
    list: VecDeque<Option<Place>>,
    /// How many of each face wait, of all together.
    of_faces: Vec<(FaceId, usize)>,
    count: usize,
}

#[derive(Debug)]
struct Place {
    until: Tick,
    packet: Packet,
}

impl Waiting {
    /// The number of the next one.
    fn next(&self) -> u64 {
        self.first + self.list.len() as u64
    }

    /// Whether one more of `face` may wait. A face may have no more places than are left, so that it
    /// has half of them at most, and of two that want all of them each has a third.
    fn has_room(&self, face: FaceId) -> bool {
        let own = self.of_faces.iter().find(|(of, _)| *of == face).map_or(0, |(_, count)| *count);
        // Between those that wait there are places of some that do not any more.
        self.list.len() < 2 * WAITING_MAX && own < WAITING_MAX.saturating_sub(self.count)
    }

    fn push(&mut self, place: Place) {
        let face = place.packet.face;
        match self.of_faces.iter_mut().find(|(of, _)| *of == face) {
            Some((_, count)) => *count += 1,
            None => self.of_faces.push((face, 1)),
        }
        self.count += 1;
        self.list.push_back(Some(place));
    }

    /// One of `packet`'s face waits no more.
    fn left(&mut self, packet: Packet) -> Packet {
        self.count -= 1;
        if let Some(at) = self.of_faces.iter().position(|(of, _)| *of == packet.face) {
            self.of_faces[at].1 -= 1;
            if self.of_faces[at].1 == 0 {
                self.of_faces.swap_remove(at);
            }
        }
        self.trim();
        packet
    }

    fn take(&mut self, number: u64) -> Option<Packet> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let place = self.list.get_mut(at)?.take()?;
        Some(self.left(place.packet))
    }

    /// Takes out one whose time is over.
    fn overdue(&mut self, now: Tick) -> Option<Packet> {
        if self.due() > now {
            return None;
        }
        let place = self.list.front_mut().and_then(Option::take)?;
        Some(self.left(place.packet))
    }

    fn trim(&mut self) {
        while let Some(None) = self.list.front() {
            self.list.pop_front();
            self.first += 1;
        }
    }

    /// The first is never one that was taken out.
    fn due(&self) -> Tick {
        self.list.front().and_then(Option::as_ref).map_or(Tick::NEVER, |place| place.until)
    }
}

impl Shard {
    /// From now on there is a disk, to which `offers` go.
    pub(crate) fn set_disk(&mut self, side: DiskSide, offers: Offers) {
        self.fw.cache_mut().offers = Some(Box::new(offers));
        self.disk = Some(Box::new(side));
        self.settle_door();
    }

    /// Has an Interest wait for the disk, if what it asks for may be there and is not at hand. Gives
    /// every other packet back.
    #[cold]
    pub(super) fn wait_for_disk(&mut self, now: Tick, packet: Packet) -> Option<Packet> {
        let Some(disk) = &mut self.disk else { return Some(packet) };
        let is_interest = PacketType::of(&packet.bytes) == Some(PacketType::Interest);
        if !is_interest || packet.lp.nack.is_some() {
            return Some(packet);
        }
        let Ok(interest) = Interest::parse(&packet.bytes) else { return Some(packet) };
        if !disk.filter.may_answer(&interest) || self.fw.is_at_hand(now, &interest) {
            return Some(packet);
        }
        let number = disk.waiting.next();
        let shard = u8::try_from(self.index).expect("invariant: at most 64 shards");
        let job = DiskJob::Find { shard, number, interest: packet.bytes.clone() };
        let may_wait = disk.waiting.has_room(packet.face) && disk.rests_until <= now;
        if !may_wait || disk.jobs.try_send(job).is_err() {
            disk.counts.passed += 1;
            return Some(packet);
        }
        let until = now.plus_ms(disk.wait_ms);
        disk.waiting.push(Place { until, packet });
        None
    }

    /// The disk has answered: Interests go on, and find what it had in the content store.
    pub(super) fn disk_answered(&mut self, io: &mut Io, answers: Vec<DiskAnswer>) {
        for DiskAnswer { number, found } in answers {
            let Some(disk) = &mut self.disk else { return };
            let Some(packet) = disk.waiting.take(number) else { continue };
            match found {
                Some(Found { packet, fresh_ms }) => {
                    disk.counts.hits += 1;
                    self.fw.cs_promote(io.now, &packet, fresh_ms);
                }
                None => disk.counts.misses += 1,
            }
            self.go_on(io.now, packet);
        }
        self.send_out(io);
    }

    /// Interests that have waited long enough go on as if there were no disk.
    pub(super) fn end_waits(&mut self, now: Tick) {
        while let Some(disk) = &mut self.disk
            && let Some(packet) = disk.waiting.overdue(now)
        {
            disk.counts.late += 1;
            disk.rests_until = now.plus_ms(REST_MS);
            self.go_on(now, packet);
        }
    }

    /// An Interest that waited for the disk goes through the forwarder.
    fn go_on(&mut self, now: Tick, packet: Packet) {
        // It was parsed before it waited.
        let _: Verdict = self.forward_at_once(now, packet);
    }

    /// Hands over what is to be written.
    #[cold]
    pub(super) fn hand_to_disk(&mut self) {
        let Some(disk) = &self.disk else { return };
        let Some(offers) = &mut self.fw.cache_mut().offers else { return };
        while let Some(offer) = offers.hand_out() {
            if !disk.keep(offer) {
                offers.is_left_out();
            }
        }
    }

    /// What was counted of the disk; none without one.
    pub(super) fn disk_counts(&self) -> Option<DiskCounts> {
        let disk = self.disk.as_ref()?;
        Some(DiskCounts { offers: self.fw.offered(), ..disk.counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_link::LpIn;

    fn packet(n: u8) -> Packet {
        Packet { face: FaceId(256), bytes: Buf::copy_from(&[n]), lp: LpIn::default() }
    }

    fn enter(waiting: &mut Waiting, until: u64, n: u8) -> u64 {
        let number = waiting.next();
        waiting.push(Place { until: Tick(until), packet: packet(n) });
        number
    }

    /// Law: a face has half of the places at most, of two that want all of them each has a third, and
    /// what one gives back the other may have.
    #[test]
    fn places_are_shared_by_face() {
        let mut waiting = Waiting::default();
        let want = |waiting: &mut Waiting, face: u32| {
            let face = FaceId(256 + face);
            let may = waiting.has_room(face);
            if may {
                waiting.push(Place { until: Tick(1), packet: Packet { face, ..packet(0) } });
            }
            may
        };
        let fill = |waiting: &mut Waiting, face| (0..).take_while(|_| want(waiting, face)).count();
        assert_eq!(fill(&mut waiting, 0), WAITING_MAX / 2);
        assert_eq!(fill(&mut waiting, 1), WAITING_MAX / 4);
        for number in 0..2000 {
            assert!(waiting.take(number).is_some());
            want(&mut waiting, 1);
            want(&mut waiting, 0);
        }
        let shares: Vec<usize> = waiting.of_faces.iter().map(|(_, count)| *count).collect();
        let third = WAITING_MAX / 3;
        assert!(shares.iter().all(|share| share.abs_diff(third) <= 2), "{shares:?}");
        assert_eq!(waiting.count, shares.iter().sum::<usize>());
    }

    /// Law: each Interest that waits goes on once, by its answer or by its time, whatever the order.
    #[test]
    fn who_waits_goes_on_once() {
        let mut waiting = Waiting::default();
        let numbers: Vec<u64> = (0..4).map(|n| enter(&mut waiting, 10 + u64::from(n), n)).collect();
        assert_eq!(waiting.due(), Tick(10));
        assert_eq!(waiting.take(numbers[1]).map(|p| p.bytes[0]), Some(1));
        assert!(waiting.take(numbers[1]).is_none(), "a second answer");
        assert_eq!(waiting.overdue(Tick(10)).map(|p| p.bytes[0]), Some(0));
        assert_eq!(waiting.due(), Tick(12), "the one that was answered is passed over");
        assert!(waiting.take(numbers[0]).is_none(), "an answer that came late");
        assert!(waiting.overdue(Tick(11)).is_none());
        assert_eq!(waiting.take(numbers[3]).map(|p| p.bytes[0]), Some(3));
        assert_eq!(waiting.overdue(Tick(99)).map(|p| p.bytes[0]), Some(2));
        assert_eq!((waiting.due(), waiting.list.len()), (Tick::NEVER, 0));
        assert_eq!(enter(&mut waiting, 1, 9), 4);
        assert!(waiting.take(77).is_none());
    }
}
