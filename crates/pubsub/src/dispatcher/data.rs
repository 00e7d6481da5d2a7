//! Publications and data frames that a push FIB passed to the control plane.

use super::cache::Holder;
use super::{Came, Dispatcher, Origin, Subscribing};
use crate::data::{Data, Handout, Place, Published, Refusal, Told, is_of_item, names_above};
use crate::fib::{OPTION_LEN, Pass};
use crate::publication::{AppId, HOPS_MAX, Mark, Notice, Outbox, Publication, Target};
use onym_tables::Tick;
use onym_wire::push::{
    Filter, Flags, Frame, FrameBuilder, Id, Route, RouteBuf, Strategy, option, reserved,
};
use onym_wire::{PACKET_LEN_MAX, tlv};
use smallvec::SmallVec;

/// Where a publication goes.
pub(super) struct Way {
    pub(super) ids: Vec<Id>,
    pub(super) target: Option<Target>,
    reply: Option<RouteBuf>,
    hops: u8,
    /// It may be cut.
    item: Option<Vec<Id>>,
    /// What its frames say of what is retained.
    pub(super) retained: Option<Told>,
    /// Caches may keep it where it is long, that of this node in the share of this application.
    pub(super) keeper: Option<AppId>,
}

/// What leaves of a publication.
pub(super) enum Prepared {
    /// It is for nobody at other nodes.
    Nowhere,
    /// A frame.
    Whole(Publication),
    /// Without payload: it is to be cut, with these names of its item, and this way back.
    Long(Publication, Vec<Id>, Option<RouteBuf>),
    /// The same of one that is for nobody at other nodes: this node's cache keeps it.
    Kept(Publication, Vec<Id>),
}

impl Dispatcher {
    /// Publishes what a push FIB passed: to other nodes, for what is of an item, whose receivers
    /// here that has served; otherwise to both, the latter by what is returned. How many frames.
    ///
    /// # Errors
    /// [`Refusal`]; then nobody gets anything.
    pub(crate) fn publish(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        pass: &Pass,
        origin: Origin,
        out: &mut Outbox,
    ) -> Result<Published, Refusal> {
        let place = pass.place;
        if pass.is_retained {
            return self.publish_retained(now, app, data, place, origin, out);
        }
        if is_of_item(data.strategy) {
            let frames = match self.way_of_item(&data.id) {
                Some(mut way) => {
                    way.keeper = (data.lifetime_ms > 0).then_some(app);
                    self.send(now, data, place, way, origin, out)?
                }
                None => 0,
            };
            return Ok(Published { frames, ..Published::default() });
        }
        let root = data.id.first().ok_or(Refusal::Id)?;
        if reserved::is_reserved(root) {
            return Err(Refusal::Id);
        }
        let way = self.way_of(app, data)?;
        let ids = SmallVec::from(&way.ids[..]);
        let frames = self.send(now, data, place, way, origin, out)?;
        self.counters.sent += u64::from(frames > 0);
        if is_algorithmic(data.strategy) && data.lifetime_ms > 0 {
            let (strategy, lifetime_ms) = (data.strategy, data.lifetime_ms);
            let holder = Holder::App(app);
            self.cache.insert(now, &data.id, data.payload, strategy, holder, lifetime_ms);
        }
        let payload = (data.strategy != Strategy::LINK_LOCAL).then(|| data.payload.into());
        let handout = payload.map(|payload| Handout {
            shard: origin.shard,
            ids,
            payload: Some(payload),
            came_by: Some(data.strategy),
            except: Some(app),
            place,
            retained: None,
        });
        Ok(Published { frames, local: 0, handout })
    }

    /// Why `app` may not publish an item that its push FIB does not know.
    pub(crate) fn refusal(&self, app: AppId, id: &Id) -> Refusal {
        match id.first() {
            None => return Refusal::Id,
            Some(root) if reserved::is_reserved(root) => return Refusal::Id,
            Some(_) => {}
        }
        let of = self.publications.get(id);
        let of = of.or_else(|| self.publications.get(id.parent().as_flattened()));
        match of.filter(|p| !p.is_scope) {
            Some(p) if p.publishers.iter().any(|p| p.app == app) => Refusal::Stopped,
            _ => Refusal::NotPublisher,
        }
    }

    /// Sends a publication to other nodes, whole or in fragments; how many frames.
    pub(super) fn send(
        &mut self,
        now: Tick,
        data: &Data<'_>,
        place: Place,
        way: Way,
        origin: Origin,
        out: &mut Outbox,
    ) -> Result<usize, Refusal> {
        let keeper = way.keeper;
        match self.prepare(data, place, way)? {
            Prepared::Nowhere => Ok(0),
            Prepared::Whole(mut publication) => {
                publication.by = Some(origin.shard);
                self.send_behind(now, publication, origin, out);
                Ok(1)
            }
            Prepared::Long(mut publication, item, reply) => {
                publication.by = Some(origin.shard);
                let cut = self.cut_up(publication, item, reply, data.payload, origin)?;
                self.keep_own(now, keeper, &cut, data.lifetime_ms);
                Ok(self.cut(now, cut, out))
            }
            Prepared::Kept(publication, item) => {
                let cut = self.cut_up(publication, item, None, data.payload, origin)?;
                self.keep_own(now, keeper, &cut, data.lifetime_ms);
                Ok(0)
            }
        }
    }

    /// What leaves of a publication for other nodes.
    pub(super) fn prepare(
        &self,
        data: &Data<'_>,
        place: Place,
        way: Way,
    ) -> Result<Prepared, Refusal> {
        let is_sent = way.target.is_some();
        let is_kept = way.keeper.is_some() && self.cache.is_on();
        let Some(target) = way.target.or_else(|| is_kept.then(any_way)) else {
            return Ok(Prepared::Nowhere);
        };
        let mut options = Vec::new();
        if is_algorithmic(data.strategy) && data.lifetime_ms > 0 {
            tlv::put_nni_tlv(&mut options, option::LIFETIME, data.lifetime_ms);
        }
        put_place(place, &mut options);
        put_retained(way.retained, &mut options);
        let (strategy, hop_limit, ids) = (data.strategy, way.hops, way.ids);
        let (by, payload, mark) = (None, Vec::new(), Mark::default());
        let mut publication =
            Publication { target, strategy, hop_limit, by, ids, options, payload, mark };
        let len = frame_len(&publication, data.payload.len()) + self.config.reserve;
        if len <= self.config.frame_max || (way.item.is_none() && len <= PACKET_LEN_MAX) {
            if !is_sent {
                return Ok(Prepared::Nowhere);
            }
            publication.payload = data.payload.to_vec();
            return Ok(Prepared::Whole(publication));
        }
        let item = way.item.ok_or(Refusal::TooLong)?;
        if way.keeper.is_some() {
            tlv::put_nni_tlv(&mut publication.options, option::LIFETIME, data.lifetime_ms);
            publication.mark.flags = Flags::KEEP;
        }
        if !is_sent {
            return Ok(Prepared::Kept(publication, item));
        }
        Ok(Prepared::Long(publication, item, way.reply))
    }

    /// An item says how far it is.
    pub(crate) fn reached(
        &mut self,
        now: Tick,
        id: &Id,
        place: Place,
        origin: Origin,
        out: &mut Outbox,
    ) {
        self.say_reached(now, id, place, self.reached_of(id, place), origin, out);
    }

    /// Says how far an item is, and what is retained of it.
    pub(super) fn say_reached(
        &mut self,
        now: Tick,
        id: &Id,
        place: Place,
        retained: Option<Told>,
        origin: Origin,
        out: &mut Outbox,
    ) {
        let Some(Way { target: Some(target), ids, hops, .. }) = self.way_of_item(id) else {
            return;
        };
        let strategy = self.publications.get(id).map_or(Strategy::DOMAIN_LOCAL, |p| p.strategy);
        let mut options = Vec::new();
        put_place(place, &mut options);
        put_retained(retained, &mut options);
        let (by, hop_limit, payload) = (Some(origin.shard), hops, Vec::new());
        let mark = Mark::default();
        let publication =
            Publication { target, strategy, hop_limit, by, ids, options, payload, mark };
        self.send_behind(now, publication, origin, out);
    }

    fn way_of(&self, app: AppId, data: &Data<'_>) -> Result<Way, Refusal> {
        let one = || vec![data.id.clone()];
        let plain = |ids, target, hops| {
            let (target, reply, item, retained) = (Some(target), None, None, None);
            Way { ids, target, reply, hops, item, retained, keeper: None }
        };
        match data.strategy {
            Strategy::LINK_LOCAL => {
                let face = data.face.ok_or(Refusal::Unfit)?;
                Ok(plain(one(), Target::Face(face), 1))
            }
            Strategy::BROADCAST => Ok(plain(one(), Target::Neighbours(None), 1)),
            Strategy::IMPLICIT => {
                let route = data.route.clone().ok_or(Refusal::Unfit)?;
                Ok(plain(self.names(&data.id), Target::Route(route), HOPS_MAX))
            }
            Strategy::ALGORITHMIC_LOCAL | Strategy::ALGORITHMIC_DOMAIN => {
                let about = data.about.as_ref().ok_or(Refusal::Unfit)?;
                let mut way = self.started(app, about)?;
                if data.strategy == Strategy::ALGORITHMIC_LOCAL {
                    way.target = None;
                }
                // A keyed filter is made for the other item's name.
                if let Some(Target::Route(route)) = &way.target
                    && matches!(route.as_ref(), Route::Keyed { .. })
                {
                    return Err(Refusal::Unfit);
                }
                way.ids = one();
                way.item = Some(one());
                Ok(way)
            }
            _ => Err(Refusal::Unfit),
        }
    }

    /// The way of an item that `app` publishes and that is started.
    fn started(&self, app: AppId, id: &Id) -> Result<Way, Refusal> {
        let entry = self.publications.get(id).filter(|p| !p.is_scope);
        let publisher = entry.and_then(|entry| entry.publishers.iter().find(|p| p.app == app));
        if !publisher.ok_or(Refusal::NotPublisher)?.is_started {
            return Err(Refusal::Stopped);
        }
        self.way_of_item(id).ok_or(Refusal::NotPublisher)
    }

    /// The way of an item, or of what is published beneath one.
    pub(super) fn way_of_item(&self, id: &Id) -> Option<Way> {
        let (entry, ids) = if let Some(entry) = self.publications.get(id) {
            (entry, entry.aliases.to_vec())
        } else {
            let entry = self.publications.get(id.parent().as_flattened())?;
            let label = id.last()?;
            (entry, entry.aliases.iter().map(|alias| alias.child(label)).collect())
        };
        let target = entry.route.clone().map(Target::Route);
        let hops = entry.hops.saturating_add(self.config.spare_hops);
        let (item, reply) = (Some(ids.clone()), entry.reply.clone());
        Some(Way { item, ids, target, reply, hops, retained: None, keeper: None })
    }

    /// The id, and the same beneath every known name of its parent.
    fn names(&self, id: &Id) -> Vec<Id> {
        let mut names = vec![id.clone()];
        if let (Some(parent), Some(label)) =
            (self.publications.get(id.parent().as_flattened()), id.last())
        {
            names.extend(parent.aliases.iter().map(|a| a.child(label)).filter(|n| n != id));
        }
        names
    }

    /// Whether somebody here subscribed to one of these names, or is about to.
    pub(super) fn is_wanted(&self, ids: &[Id], is_deep: bool) -> bool {
        let is = |s: &Subscribing| !s.subscribers.is_empty() || !s.waiting.is_empty();
        let has = |name| self.subscriptions.get(name).is_some_and(is);
        ids.iter().any(|id| names_above(id, is_deep).any(has))
    }

    /// A frame of data that came for this node and that a push FIB passed.
    pub fn receive(&mut self, now: Tick, frame: &Frame<'_>, came: Came, out: &mut Outbox) {
        let ids: SmallVec<[Id; 2]> = frame.ids.map(Id::from_labels).collect();
        if frame.strategy == Strategy::ALGORITHMIC_DOMAIN && ids.len() > 1 {
            return self.piece(now, ids.into_vec(), frame, came, out);
        }
        if let (Strategy::ALGORITHMIC_DOMAIN, Some(lifetime_ms), [id]) =
            (frame.strategy, frame.options.lifetime_ms, &ids[..])
        {
            let holder = Holder::Face(came.face);
            self.cache.insert(now, id, frame.payload, frame.strategy, holder, lifetime_ms);
        }
        let came_by = Some(frame.strategy).filter(|strategy| !strategy.has_rendezvous());
        let (payload, place) = (Some(frame.payload.into()), Place::of(frame));
        let (shard, retained) = (came.origin.shard, Told::of(&frame.options));
        let handout = Handout { shard, ids, payload, came_by, except: None, place, retained };
        self.hand(now, handout, Vec::new(), out);
    }

    /// Has a publication handed out, and `behind`, which waited for it; all of it waits where one
    /// before it in its stream is not whole.
    pub(super) fn hand(
        &mut self,
        now: Tick,
        handout: Handout,
        behind: Vec<Handout>,
        out: &mut Outbox,
    ) {
        let all = std::iter::once(handout).chain(behind).collect();
        if let Some(all) = self.reassembly.wait(all) {
            for handout in all {
                match handout.retained {
                    Some(told) => self.retained_came(now, handout, told, out),
                    None => out.notices.push(Notice::Data(Box::new(handout))),
                }
            }
            return;
        }
        let given_up = self.reassembly.make_room(0);
        self.given_up(now, given_up, out);
    }

    /// Notes that a shard passed everything up to `origin`.
    pub(crate) fn take(&mut self, origin: Origin) {
        let shard = usize::from(origin.shard);
        if self.taken.len() <= shard {
            self.taken.resize(shard + 1, 0);
        }
        self.taken[shard] = origin.number;
    }

    /// So much of what `shard` passed is done: it has left, or was handed out.
    #[must_use]
    pub fn done(&self, shard: u16) -> u64 {
        let taken = self.taken.get(usize::from(shard)).copied().unwrap_or(0);
        let waiting = self.repair.waiting(shard).into_iter().chain(self.reassembly.waiting(shard));
        waiting.map(|number| number - 1).fold(taken, u64::min)
    }
}

const fn is_algorithmic(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::ALGORITHMIC_LOCAL | Strategy::ALGORITHMIC_DOMAIN)
}

/// A way as long as most: what is cut for nobody yet fits the one by which a cache sends it.
fn any_way() -> Target {
    Target::Route(Route::Keyed { table: 0, epoch: 0, flow: 0, filter: Filter::EMPTY }.into())
}

fn put_place(place: Place, options: &mut Vec<u8>) {
    let (typ, stream, number) = match place {
        Place::None => return,
        Place::Number(stream, number) => (option::NUMBER, stream, number),
        Place::Reached(stream, number) => (option::REACHED, stream, number),
    };
    tlv::put_head(options, typ, OPTION_LEN - 2);
    options.extend_from_slice(&stream.to_be_bytes());
    options.extend_from_slice(&number.to_be_bytes());
}

fn put_retained(retained: Option<Told>, options: &mut Vec<u8>) {
    let Some(told) = retained else { return };
    let Told { depth, first, lifetime_ms, deadline_ms, priority } = told;
    if lifetime_ms > 0 {
        tlv::put_nni_tlv(options, option::LIFETIME, lifetime_ms);
    }
    tlv::put_head(options, option::RETAINED, 8);
    options.extend_from_slice(&depth.to_be_bytes());
    options.extend_from_slice(&first.to_be_bytes());
    if deadline_ms > 0 || priority > 0 {
        tlv::put_head(options, option::TERMS, 5);
        options.push(priority);
        options.extend_from_slice(&deadline_ms.to_be_bytes());
    }
}

/// Octets of the frame that this publication makes with so much payload.
pub(super) fn frame_len(publication: &Publication, payload: usize) -> usize {
    let link = RouteBuf::from(Route::Link);
    let route = match &publication.target {
        Target::Route(route) => route,
        _ => &link,
    };
    let Publication { hop_limit, strategy, ids, options, .. } = publication;
    let (hop_limit, strategy) = (*hop_limit, *strategy);
    let payload_less = FrameBuilder { hop_limit, strategy, route, ids, options, payload: &[] };
    // A longer payload may need a longer LENGTH.
    payload_less.len() + payload + 2
}
