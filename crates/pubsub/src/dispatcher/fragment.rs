//! Publications longer than a frame: cut, put together, repaired (section 5.1).

use super::cache::Holder;
use super::data::frame_len;
use super::repair::{FragmentLimits, Kept, Repair};
use super::{Came, Dispatcher, Origin, Refusal};
use crate::data::{Handout, Place, Told};
use crate::missing::{FRAGMENTS_MAX, Ranges, fragments};
use crate::publication::{Outbox, Publication, Target, algorithmic_scope};
use onym_tables::{FaceId, KeyedMap, Tick};
use onym_wire::push::{
    Control, Flags, Frame, Id, Kind, Label, Role, RouteBuf, Strategy, option, reserved,
};
use onym_wire::tlv;
use std::collections::VecDeque;
use std::time::Duration;

/// Time without progress after which a receiver asks for what is missing.
const PATIENCE: Duration = Duration::from_millis(50);
/// Times that it asks without progress.
const ASKS_MAX: u32 = 5;
/// The same where requests go by the topology managers: the way is longer, and loses more of them.
/// So do those for caches, of which every second one may be gone with the publisher.
const ASKS_FAR_MAX: u32 = 16;
/// Time within which requests for the same fragment are one.
const SAME: Duration = Duration::from_millis(20);
/// What a request for lost fragments is when caches are to be asked.
pub(crate) const HOLES: u64 = 2;
/// Publications that were put together and are remembered, so that late fragments are known.
const DONE_MAX: usize = 256;
/// Time for which what a cache sends of such a one is no news.
const DONE: Duration = Duration::from_secs(1);

/// A publication of which fragments came.
#[derive(Debug)]
pub(super) struct Partial {
    ids: Vec<Id>,
    pieces: Vec<Option<Vec<u8>>>,
    missing: u32,
    octets: usize,
    reply: Option<RouteBuf>,
    origin: Option<Label>,
    due: Tick,
    asked: u32,
    /// It has an algorithmic identifier of its own, and caches may answer with it for so many
    /// milliseconds.
    algorithmic: Option<u64>,
    /// Its place in its stream, and what came behind it there.
    place: Place,
    behind: Vec<Handout>,
    /// What it says of what is retained.
    retained: Option<Told>,
    /// The first of its fragments, and the face that it came over.
    origin_here: Origin,
    face: FaceId,
    /// A cache sends it.
    is_cached: bool,
    /// Others than its publisher may have it, too.
    holes: Holes,
}

impl Partial {
    /// One of which nothing came yet but that there is `frame`.
    fn new(
        ids: Vec<Id>,
        count: usize,
        frame: &Frame<'_>,
        came: Came,
        algorithmic: Option<u64>,
        due: Tick,
    ) -> Self {
        let mut partial = Self {
            ids,
            pieces: vec![None; count],
            missing: u32::try_from(count).unwrap_or(u32::MAX),
            octets: 0,
            reply: None,
            origin: frame.options.origin,
            due,
            asked: 0,
            algorithmic,
            place: Place::None,
            behind: Vec::new(),
            retained: Told::of(&frame.options),
            origin_here: came.origin,
            face: came.face,
            is_cached: true,
            holes: Holes::default(),
        };
        partial.holes.are_kept = came.flags.may_keep() && partial.algorithmic.is_none();
        partial.came_again(frame, came.flags);
        partial
    }

    /// A fragment came. What a cache sends has no place in a stream, and its publisher does not
    /// reach who gets it over Reply; where the cache was only faster, both are as ever.
    fn came_again(&mut self, frame: &Frame<'_>, flags: Flags) {
        self.holes.came(flags.is_cached());
        if self.is_cached && !flags.is_cached() {
            let reply = frame.options.reply.and_then(|r| RouteBuf::parse(r).ok());
            (self.place, self.reply, self.is_cached) = (Place::of(frame), reply, false);
        }
    }
}

/// What a node does to have caches fill the holes of a publication.
#[derive(Debug, Default)]
struct Holes {
    /// Caches may keep its fragments.
    are_kept: bool,
    /// One sent the last fragment that came.
    is_helped: bool,
    /// How many caches were asked in vain, and whether one is asked.
    tried: u32,
    is_asked: bool,
}

impl Holes {
    /// A fragment came, from a cache or from who publishes.
    fn came(&mut self, is_cached: bool) {
        (self.is_helped, self.is_asked) = (is_cached, false);
    }

    /// Who sends the publication was asked so often in vain; which cache is asked now, if one is.
    fn ask(&mut self, asked: u32) -> Option<u32> {
        if !self.are_kept || (asked == 0 && !self.is_helped) {
            return None;
        }
        self.tried += u32::from(std::mem::replace(&mut self.is_asked, true));
        Some(self.tried)
    }
}

/// A way of requests, with the root and the node of their identifier.
type Way = (Target, Label, Label);

/// Publications that are put together.
#[derive(Debug)]
pub(super) struct Reassembly {
    limits: FragmentLimits,
    partial: KeyedMap<Id, Partial>,
    octets: usize,
    /// With the time of the last fragment, about.
    done: VecDeque<(Id, Tick)>,
}

impl Reassembly {
    pub(super) fn new(limits: FragmentLimits) -> Self {
        Self { limits, partial: KeyedMap::default(), octets: 0, done: VecDeque::new() }
    }

    pub(super) fn next_timeout(&self) -> Option<Tick> {
        self.partial.values().map(|p| p.due).min()
    }

    /// Has publications wait behind the last one before them in their stream that is not whole;
    /// returns them when there is none.
    pub(super) fn wait(&mut self, all: Vec<Handout>) -> Option<Vec<Handout>> {
        let Some(before) = all.first().and_then(|first| self.before(first.place)) else {
            return Some(all);
        };
        let len = |handout: &Handout| handout.payload.as_ref().map_or(0, |payload| payload.len());
        let octets: usize = all.iter().map(len).sum();
        before.octets += octets;
        before.behind.extend(all);
        self.octets += octets;
        None
    }

    /// The last publication before `place` in its stream that is not whole.
    fn before(&mut self, place: Place) -> Option<&mut Partial> {
        let (Place::Number(stream, number) | Place::Reached(stream, number)) = place else {
            return None;
        };
        let ahead = |partial: &Partial| match partial.place {
            Place::Number(of, at) if of == stream => Some(number.wrapping_sub(at)),
            _ => None,
        };
        let before = |partial: &&mut Partial| ahead(partial).is_some_and(|n| n > 0 && n < 1 << 31);
        let all = self.partial.values_mut().filter(before);
        all.min_by_key(|partial| ahead(partial))
    }

    /// The first thing that this shard passed and that waits to be whole.
    pub(super) fn waiting(&self, shard: u16) -> Option<u64> {
        let of = self.partial.values().map(|partial| partial.origin_here);
        of.filter(|origin| origin.shard == shard).map(|origin| origin.number).min()
    }

    fn remove(&mut self, scope: &Id) -> Option<Partial> {
        let partial = self.partial.remove(scope)?;
        self.octets -= partial.octets;
        if self.done.len() >= DONE_MAX {
            self.done.pop_front();
        }
        self.done.push_back((scope.clone(), partial.due));
        Some(partial)
    }

    /// Makes room; the publications that were given up for it.
    pub(super) fn make_room(&mut self, octets: usize) -> Vec<Partial> {
        let mut given_up = Vec::new();
        // One more is to come where there are octets of it.
        while self.partial.len() + usize::from(octets > 0) > self.limits.publications_max
            || (self.octets + octets > self.limits.octets_max && !self.partial.is_empty())
        {
            let oldest = self.partial.iter().min_by_key(|(id, p)| (p.due, (*id).clone()));
            let Some(scope) = oldest.map(|(id, _)| id.clone()) else { break };
            given_up.extend(self.remove(&scope));
        }
        given_up
    }
}

impl Dispatcher {
    /// Sends what may leave now.
    pub(super) fn portion(&mut self, now: Tick, out: &mut Outbox) {
        while self.repair.portion(now, out) && self.replay_one(now, out) {}
    }

    /// Sends a long publication as fragments, as fast as receivers take them; how many.
    pub(super) fn cut(&mut self, now: Tick, kept: Kept, out: &mut Outbox) -> usize {
        let count = kept.count();
        self.repair.keep(kept);
        self.portion(now, out);
        count as usize
    }

    /// A long publication as its fragments.
    pub(super) fn cut_up(
        &mut self,
        mut publication: Publication,
        item: Vec<Id>,
        reply: Option<RouteBuf>,
        payload: &[u8],
        origin: Origin,
    ) -> Result<Kept, Refusal> {
        if payload.len() > self.config.fragments.octets_max {
            return Err(Refusal::TooLarge);
        }
        let first = item.first().ok_or(Refusal::Id)?;
        self.publication_number = self.publication_number.wrapping_add(1);
        // What is algorithmic itself is cut beneath its own identifier.
        let is_algorithmic = publication.strategy == Strategy::ALGORITHMIC_DOMAIN;
        let above = if is_algorithmic { first.clone() } else { algorithmic_scope(first) };
        let scope = above.child(Label::from_u64(self.publication_number));
        if scope.child(Label::default()).len() < above.len() + 2 {
            return Err(Refusal::TooLong);
        }
        // Without a way back the node is nobody's business: it may be another domain's.
        if let Some(reply) = &reply {
            tlv::put_tlv(&mut publication.options, option::REPLY, reply.octets());
            tlv::put_tlv(&mut publication.options, option::ORIGIN, &self.config.node.0);
        }
        publication.strategy = Strategy::ALGORITHMIC_DOMAIN;
        publication.ids = item;
        let mut longest = publication.clone();
        longest.ids.push(scope.child(Label::default()));
        let piece = self.config.frame_max.checked_sub(frame_len(&longest, 0) + self.config.reserve);
        let piece = piece.filter(|p| *p >= 64).ok_or(Refusal::TooLong)?;
        let (until, next) = (Tick::NEVER, 0);
        let (payload, repeated) = (payload.to_vec(), KeyedMap::default());
        let (is_whole, replay, answer) = (false, None, None);
        Ok(Kept {
            origin,
            is_whole,
            publication,
            scope,
            payload,
            piece,
            until,
            next,
            repeated,
            replay,
            answer,
        })
    }

    /// Sends what fits a frame, behind what was not sent whole yet.
    pub(super) fn send_behind(
        &mut self,
        now: Tick,
        mut publication: Publication,
        origin: Origin,
        out: &mut Outbox,
    ) {
        if !self.repair.has_unsent() {
            return out.publish(publication);
        }
        let payload = std::mem::take(&mut publication.payload);
        self.repair.keep(Kept::whole(origin, publication, payload));
        self.portion(now, out);
    }

    /// A fragment that came: its own id first, then the names of the item.
    pub(super) fn piece(
        &mut self,
        now: Tick,
        mut ids: Vec<Id>,
        frame: &Frame<'_>,
        came: Came,
        out: &mut Outbox,
    ) {
        self.keep_piece(now, &ids, frame, came.face, came.flags);
        let own = ids.remove(0);
        let scope = Id::from_labels(own.parent());
        let is_algorithmic = matches!(&ids[..], [id] if id.labels() == scope.parent());
        let algorithmic = is_algorithmic.then(|| frame.options.lifetime_ms.unwrap_or(0));
        let is_kept = algorithmic.is_some_and(|lifetime| lifetime > 0);
        let is_wanted = self.is_wanted(&ids, is_algorithmic)
            || self.is_wanted(std::slice::from_ref(&own), true);
        if !is_wanted && !is_kept {
            self.counters.unwanted += 1;
            return;
        }
        let label = own.last().unwrap_or_default().to_u64();
        let (count, index) = ((label >> 32) as u32, (label & 0xffff_ffff) as u32);
        // Every piece has at least one octet.
        let is_sound = index < count && count as usize <= self.config.fragments.octets_max / 64;
        if !is_sound || frame.payload.is_empty() {
            self.counters.malformed += 1;
            return;
        }
        if let Some(partial) = self.reassembly.partial.get_mut(&scope) {
            partial.came_again(frame, came.flags);
        } else {
            if self.is_done(now, &scope, came) {
                return;
            }
            self.asks.answered(&ids, came.flags);
            let given_up = self.reassembly.make_room(frame.payload.len());
            self.given_up(now, given_up, out);
            let due = now + PATIENCE;
            let partial = Partial::new(ids, count as usize, frame, came, algorithmic, due);
            self.reassembly.partial.insert(scope.clone(), partial);
        }
        self.take_piece(now, &scope, index, frame.payload, out);
    }

    /// Whether the publication with these fragments was put together: late ones are nothing new.
    /// What a cache sends is, when that was long ago and nothing of it is left here.
    fn is_done(&self, now: Tick, scope: &Id, came: Came) -> bool {
        let done = self.reassembly.done.iter().rev().find(|(known, _)| known == scope);
        let is_forgotten = |at: Tick| {
            came.flags.is_cached()
                && now.since(at) > DONE
                && self.cache.beneath_scope(scope).is_none()
        };
        done.is_some_and(|(_, at)| !is_forgotten(*at))
    }

    fn take_piece(&mut self, now: Tick, scope: &Id, index: u32, payload: &[u8], out: &mut Outbox) {
        let Some(partial) = self.reassembly.partial.get_mut(scope) else { return };
        let Some(slot) = partial.pieces.get_mut(index as usize) else {
            self.counters.malformed += 1;
            return;
        };
        if slot.is_some() {
            return;
        }
        *slot = Some(payload.to_vec());
        partial.octets += payload.len();
        partial.missing -= 1;
        (partial.due, partial.asked) = (now + PATIENCE, 0);
        let is_whole = partial.missing == 0;
        self.reassembly.octets += payload.len();
        if is_whole {
            if let Some(partial) = self.reassembly.remove(scope) {
                self.whole(now, scope, partial, out);
            }
        } else if self.reassembly.octets > self.config.fragments.octets_max {
            let given_up = self.reassembly.make_room(0);
            self.given_up(now, given_up, out);
        }
    }

    /// The last fragment came.
    fn whole(&mut self, now: Tick, scope: &Id, partial: Partial, out: &mut Outbox) {
        let Partial { mut ids, pieces, octets, algorithmic, place, behind, retained, face, .. } =
            partial;
        let mut payload = Vec::with_capacity(octets);
        pieces.into_iter().flatten().for_each(|piece| payload.extend_from_slice(&piece));
        if let (Some(lifetime_ms), [id]) = (algorithmic, &ids[..]) {
            let by = Strategy::ALGORITHMIC_DOMAIN;
            let holder = Holder::Face(face);
            self.cache.insert(now, id, &payload, by, holder, lifetime_ms);
        } else if retained.is_none() {
            ids.push(scope.clone());
        }
        let (ids, payload) = (ids.into(), Some(payload.into()));
        let came_by = algorithmic.map(|_| Strategy::ALGORITHMIC_DOMAIN);
        let (shard, except) = (partial.origin_here.shard, None);
        let handout = Handout { shard, ids, payload, came_by, except, place, retained };
        self.hand(now, handout, behind, out);
    }

    pub(super) fn fragments_timeout(&mut self, now: Tick, out: &mut Outbox) {
        self.repair.expire(now);
        self.portion(now, out);
        let is_due = |p: &Partial| p.due <= now;
        let mut due: Vec<Id> = self
            .reassembly
            .partial
            .iter()
            .filter(|(_, p)| is_due(p))
            .map(|(id, _)| id.clone())
            .collect();
        due.sort_unstable();
        for scope in due {
            self.ask_pieces(now, &scope, out);
        }
    }

    /// Long publications that will not be whole: who waited for them hears it.
    pub(super) fn given_up(
        &mut self,
        now: Tick,
        partials: impl IntoIterator<Item = Partial>,
        out: &mut Outbox,
    ) {
        for Partial { ids, place, behind, origin_here, retained, .. } in partials {
            self.counters.incomplete += 1;
            let (ids, came_by) = (ids.into(), None);
            let shard = origin_here.shard;
            let (payload, except) = (None, None);
            let handout = Handout { shard, ids, payload, came_by, except, place, retained };
            self.hand(now, handout, behind, out);
        }
    }

    /// Asks for what is missing, or gives up.
    fn ask_pieces(&mut self, now: Tick, scope: &Id, out: &mut Outbox) {
        let Some(partial) = self.reassembly.partial.get(scope) else { return };
        // Of a cache, topology managers know which.
        let item = partial.is_cached.then_some(1);
        let asked = partial.asked + 1;
        let is_by_manager = partial.holes.is_asked || partial.holes.is_helped;
        let is_far = |names: &[Id]| is_by_manager || !names.is_empty();
        let way = self.ways_back(partial).map(|(ways, names)| (ways, is_far(&names), names));
        let most = |is_far| if is_far { ASKS_FAR_MAX } else { ASKS_MAX };
        let Some((ways, is_far, names)) = way.filter(|(_, far, _)| asked <= most(*far)) else {
            let given_up = self.reassembly.remove(scope);
            return self.given_up(now, given_up, out);
        };
        let mut missing = Ranges::default();
        let indices = (0..).zip(&partial.pieces).filter(|(_, p)| p.is_none()).map(|(i, _)| i);
        indices.take_while(|index| missing.add(*index)).for_each(drop);
        let missing = missing.into_inner();
        self.ask_holders(scope, &missing, out);
        if let Some(partial) = self.reassembly.partial.get_mut(scope) {
            partial.asked = asked;
            let doublings = if is_far { (asked + 1).min(3) } else { asked.min(4) };
            partial.due = now + PATIENCE * (1 << doublings);
        }
        self.counters.repairs_asked += 1;
        let ids = std::iter::once(scope.clone()).chain(names).collect();
        let message = Control { ids, missing, item, ..self.message(Kind::REPAIR) };
        for (target, root, node) in ways {
            out.control(target, root, node, message.clone());
        }
    }

    /// Where fragments of a publication are asked for: its publisher, or without a way back to it
    /// the topology managers, with the names by which these know the item (P-64). `None`: nowhere.
    fn ways_back(&self, partial: &Partial) -> Option<(Vec<Way>, Vec<Id>)> {
        if let Some((reply, origin)) = partial.reply.clone().zip(partial.origin) {
            return Some((vec![(Target::Route(reply), reserved::REPAIR, origin)], Vec::new()));
        }
        let names = self.names_of(partial)?;
        let managers = self.homes.iter().filter(|h| h.role.has(Role::TOPOLOGY));
        let way = |node: Label| {
            let target = self.way(node, Role::TOPOLOGY)?;
            Some((target, reserved::TOPOLOGY, self.config.node))
        };
        let ways: Vec<Way> = managers.filter_map(|home| way(home.node)).collect();
        (!ways.is_empty()).then_some((ways, names))
    }

    /// The names by which topology managers know the item of a publication, where it has one.
    fn names_of(&self, partial: &Partial) -> Option<Vec<Id>> {
        // The names of the item are not with what has an identifier of its own.
        let first = partial.ids.first().filter(|_| partial.algorithmic.is_none())?;
        let wanted = partial.ids.iter().find(|id| self.is_wanted(std::slice::from_ref(*id), false));
        Some(std::iter::once(first).chain(wanted.filter(|id| *id != first)).cloned().collect())
    }

    /// Has a cache send what is missing, too, where one may have it and who sends it was asked in
    /// vain (P-92).
    fn ask_holders(&mut self, scope: &Id, missing: &[(u32, u32)], out: &mut Outbox) {
        let are_known = self.asks.are_known;
        let Some(partial) = self.reassembly.partial.get_mut(scope).filter(|_| are_known) else {
            return;
        };
        let Some(number) = partial.holes.ask(partial.asked) else { return };
        let Some(partial) = self.reassembly.partial.get(scope) else { return };
        let (Some(names), Some(target)) = (self.names_of(partial), self.manager()) else {
            return;
        };
        let ids = std::iter::once(scope.clone()).chain(names).collect();
        let (missing, publishers) = (missing.to_vec(), partial.origin.into_iter().collect());
        let (item, number) = (Some(HOLES), number.into());
        let like = self.message(Kind::REPAIR);
        let message = Control { ids, missing, publishers, item, number, ..like };
        out.control(target, reserved::TOPOLOGY, self.config.node, message);
    }

    /// Somebody misses fragments of a publication of this node.
    pub fn repair(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let scope = message.ids.first();
        let Repair { kept, pace, limits, .. } = &mut self.repair;
        // Who is named gets it from a cache.
        let asker = message.nodes.first();
        let is_meant = |k: &Kept| k.answer.as_ref().map(|answer| &answer.to) == asker;
        let mut kept = kept.iter_mut().filter(|k| !k.is_whole && Some(&k.scope) == scope);
        let kept = kept.find(|k| is_meant(k));
        let Some(kept) = kept.filter(|_| message.kind == Kind::REPAIR) else {
            self.counters.refused += 1;
            return;
        };
        // What was not sent yet is on its way; what one answer leaves out is asked for again.
        let sent = kept.next;
        if kept.until != Tick::NEVER {
            kept.until = now + limits.keep;
        }
        let is_same = |at: &Tick| now.since(*at) < SAME;
        let mut left = FRAGMENTS_MAX;
        for index in fragments(&message.missing, sent) {
            pace.missed(now);
            if kept.repeated.get(&index).is_some_and(is_same) {
                continue;
            }
            if left == 0 {
                return;
            }
            if let Some(fragment) = kept.fragment(index) {
                kept.repeated.insert(index, now);
                left -= 1;
                self.counters.repaired += 1;
                out.publish(fragment);
            }
        }
    }
}
