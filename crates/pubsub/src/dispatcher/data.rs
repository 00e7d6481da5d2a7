//! Publications of applications, and those that come for them.

use super::Dispatcher;
use super::gaps::{self, Numbers};
use super::subscriptions::{Receivers, Subscribing, Subscriptions};
use crate::publication::{AppId, Event, HOPS_MAX, Outbox, Publication, Target, To, flow_of};
use onym_tables::{FaceId, Tick};
use onym_wire::push::app::PIECE_MAX;
use onym_wire::push::{Frame, FrameBuilder, Id, Route, RouteBuf, Strategy, option, reserved};
use onym_wire::tlv::{self, Element};
use onym_wire::{PACKET_LEN_MAX, types};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;

/// A publication of an application.
#[derive(Debug, Clone)]
pub struct Data<'a> {
    /// Its full identifier.
    pub id: Id,
    /// Its strategy.
    pub strategy: Strategy,
    /// What is published.
    pub payload: &'a [u8],
    /// The filter, for the implicit strategy.
    pub route: Option<RouteBuf>,
    /// The link, for the link-local strategy.
    pub face: Option<FaceId>,
    /// The item whose subscribers are meant, for algorithmic strategies.
    pub about: Option<Id>,
    /// Milliseconds for which caches may answer with it, for algorithmic strategies; 0: not.
    pub lifetime_ms: u64,
}

impl<'a> Data<'a> {
    /// A publication that needs no more than identifier and strategy.
    #[must_use]
    pub const fn new(id: Id, strategy: Strategy, payload: &'a [u8]) -> Self {
        Self { id, strategy, payload, route: None, face: None, about: None, lifetime_ms: 0 }
    }
}

/// What became of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Applications of this node that got it.
    pub local: usize,
    /// Frames for the network.
    pub frames: usize,
}

/// Why something was not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The application does not publish this item.
    #[error("publish the item before its data")]
    NotPublisher,
    /// There are no subscribers, or another application of this node was started.
    #[error("the item is stopped: wait for start publish")]
    Stopped,
    /// The identifier is empty, too long or reserved.
    #[error("an identifier that applications may not publish under")]
    Id,
    /// The strategy needs a filter, a link or an item that is not given, or is unknown.
    #[error("the strategy lacks what it needs")]
    Unfit,
    /// Longer than a frame, under a strategy that does not cut publications.
    #[error("longer than one frame")]
    TooLong,
    /// Longer than the bound of fragmentation.
    #[error("longer than the bound of publications")]
    TooLarge,
}

/// Where a publication goes.
struct Way {
    ids: Vec<Id>,
    target: Option<Target>,
    reply: Option<RouteBuf>,
    hops: u8,
    /// It may be cut.
    item: Option<Vec<Id>>,
}

impl Dispatcher {
    /// Publishes.
    ///
    /// # Errors
    /// [`Refusal`]; then nobody gets anything.
    pub fn publish(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        out: &mut Outbox,
    ) -> Result<Sent, Refusal> {
        let root = data.id.first().ok_or(Refusal::Id)?;
        if reserved::is_reserved(root) {
            return Err(Refusal::Id);
        }
        let way = self.way_of(app, data)?;
        let is_algorithmic =
            matches!(data.strategy, Strategy::ALGORITHMIC_LOCAL | Strategy::ALGORITHMIC_DOMAIN);
        let mut options = Vec::new();
        if is_algorithmic && data.lifetime_ms > 0 {
            tlv::put_nni_tlv(&mut options, option::LIFETIME, data.lifetime_ms);
            self.cache.insert(now, &data.id, data.payload, Some(app), data.lifetime_ms);
        }
        let mut sent = Sent::default();
        if let Some(target) = way.target {
            let mut publication = Publication {
                target,
                strategy: data.strategy,
                hop_limit: way.hops,
                ids: way.ids.clone(),
                options,
                payload: Vec::new(),
            };
            let is_numbered = gaps::is_numbered(data.strategy);
            let more = self.config.reserve + if is_numbered { gaps::OPTION_LEN } else { 0 };
            let len = frame_len(&publication, data.payload.len()) + more;
            if len <= self.config.frame_max || (way.item.is_none() && len <= PACKET_LEN_MAX) {
                if is_numbered {
                    self.put_number(now, &data.id, &mut publication.options);
                }
                publication.payload = data.payload.to_vec();
                out.publish(publication);
                sent.frames = 1;
            } else {
                let item = way.item.ok_or(Refusal::TooLong)?;
                sent.frames = self.cut(now, publication, item, way.reply, data.payload, out)?;
            }
            self.counters.sent += 1;
        }
        let is_deep = !data.strategy.has_rendezvous();
        if !matches!(data.strategy, Strategy::LINK_LOCAL) {
            sent.local = self.deliver(&way.ids, data.payload, is_deep, Some(app), out);
        }
        Ok(sent)
    }

    /// Publishes what needs nothing but the head that its item's frames have: matched, started, and
    /// short enough for one frame, of which all but the payload is put into `octets`; or what stays
    /// in this node. `None`: anything else, and nothing was done.
    pub fn publish_ready(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        octets: &mut Vec<u8>,
        out: &mut Outbox,
    ) -> Option<Sent> {
        let is_local = data.strategy == Strategy::NODE_LOCAL;
        // Room is kept where something is put into each frame: a signature.
        if !is_local && (data.strategy != Strategy::DOMAIN_LOCAL || self.config.reserve > 0) {
            return None;
        }
        let entry = self.publications.get_mut(&data.id).filter(|p| !p.is_scope)?;
        if !entry.publishers.iter().any(|p| p.app == app && p.is_started) {
            return None;
        }
        let mut sent = Sent::default();
        if let (false, Some(route)) = (is_local, &entry.route) {
            let hop_limit = entry.hops.saturating_add(self.config.spare_hops);
            let ids = &entry.aliases;
            let numbers = &mut entry.numbers;
            let head = entry.head.get_or_insert_with(|| head_of(hop_limit, route, ids, numbers));
            // Its last octets are those of the number.
            let (fixed, _) = head.split_last_chunk::<4>()?;
            // The head of the element is four octets, or more for what is too long anyway.
            let len = head.len() + data.payload.len();
            if len + 4 > self.config.frame_max {
                return None;
            }
            octets.reserve(head.len() + 4);
            tlv::put_head(octets, types::PUSH_FRAME, len);
            octets.extend_from_slice(fixed);
            octets.extend_from_slice(&numbers.take().to_be_bytes());
            if numbers.begins() {
                self.watched.add(now, &data.id);
            }
            sent.frames = 1;
            self.counters.sent += 1;
        }
        let names = (&entry.aliases[..], false);
        sent.local = deliver(&mut self.subscriptions, names, data.payload, Some(app), out);
        self.counters.delivered += sent.local as u64;
        Some(sent)
    }

    fn way_of(&self, app: AppId, data: &Data<'_>) -> Result<Way, Refusal> {
        let one = || vec![data.id.clone()];
        let plain =
            |ids, target, hops| Way { ids, target: Some(target), reply: None, hops, item: None };
        match data.strategy {
            Strategy::NODE_LOCAL | Strategy::DOMAIN_LOCAL | Strategy::INTER_DOMAIN => {
                self.matched_way(app, data)
            }
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
        let entry = entry.ok_or(Refusal::NotPublisher)?;
        let publisher = entry.publishers.iter().find(|p| p.app == app);
        if !publisher.ok_or(Refusal::NotPublisher)?.is_started {
            return Err(Refusal::Stopped);
        }
        let target = entry.route.clone().map(Target::Route);
        let hops = entry.hops.saturating_add(self.config.spare_hops);
        let reply = entry.reply.clone();
        Ok(Way {
            ids: entry.aliases.to_vec(),
            target,
            reply,
            hops,
            item: Some(entry.aliases.to_vec()),
        })
    }

    /// A matched item, or what is published beneath one.
    fn matched_way(&self, app: AppId, data: &Data<'_>) -> Result<Way, Refusal> {
        let way = match self.publications.get(&data.id) {
            Some(_) => self.started(app, &data.id)?,
            None => {
                let mut way = self.started(app, &Id::from_labels(data.id.father()))?;
                let label = data.id.last().ok_or(Refusal::Id)?;
                way.ids = way.ids.iter().map(|id| id.child(label)).collect();
                way.item = Some(way.ids.clone());
                way
            }
        };
        let is_local = data.strategy == Strategy::NODE_LOCAL;
        let target = way.target.filter(|_| !is_local);
        Ok(Way { target, ..way })
    }

    /// The id, and the same beneath every known name of its father.
    fn names(&self, id: &Id) -> Vec<Id> {
        let mut names = vec![id.clone()];
        if let (Some(father), Some(label)) =
            (self.publications.get(id.father().as_flattened()), id.last())
        {
            names.extend(father.aliases.iter().map(|a| a.child(label)).filter(|n| n != id));
        }
        names
    }

    /// Hands a publication to the applications that subscribed to one of its names (P-28); how
    /// many.
    pub(super) fn deliver(
        &mut self,
        ids: &[Id],
        payload: &[u8],
        is_deep: bool,
        except: Option<AppId>,
        out: &mut Outbox,
    ) -> usize {
        let delivered = deliver(&mut self.subscriptions, (ids, is_deep), payload, except, out);
        self.counters.delivered += delivered as u64;
        delivered
    }

    /// Whether somebody here subscribed to one of these names, or is about to.
    pub(super) fn is_wanted(&self, ids: &[Id], is_deep: bool) -> bool {
        let is = |s: &Subscribing| !s.subscribers.is_empty() || !s.waiting.is_empty();
        let has = |name| self.subscriptions.get(name).is_some_and(is);
        ids.iter().any(|id| names_above(id, is_deep).any(has))
    }

    /// The next publications after one that [`Dispatcher::receive_ready`] had receivers for, of the
    /// same item and by the same way: as many of `frames` as are. `None`: the first is something
    /// else, and nothing was done.
    pub fn receive_alike<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<Row> {
        let octets = frames.clone().next()?;
        let alike = self.subscriptions.alike(octets)?;
        let same = octets.get(..alike.number_at())?;
        if octets.len() - alike.payload_at > PIECE_MAX {
            return None;
        }
        let is_alike = |next: &&[u8]| next.len() == octets.len() && next.starts_with(same);
        let numbers = frames.take_while(is_alike).map_while(|next| alike.number(next));
        let frames = self.heard.take_next(alike.stream, numbers);
        if frames == 0 {
            return None;
        }
        self.counters.delivered += (frames * alike.receivers.0.len()) as u64;
        Some(Row { frames, payload_at: alike.payload_at, to: alike.receivers.clone() })
    }

    /// A frame of data that came for this node in `octets`, under a strategy whose publications are
    /// not kept and not cut. Where one list of applications gets it, this is returned and nothing
    /// is said to them: the caller hands them the payload, behind what is in `out`.
    pub fn receive_ready(
        &mut self,
        octets: &[u8],
        frame: &Frame<'_>,
        out: &mut Outbox,
    ) -> Option<Row> {
        let ids = self.names_of(frame, out)?;
        let found = find(&self.subscriptions, (&ids[..], false));
        if let Some((apps, id)) = list_of(&mut self.subscriptions, &found, None) {
            self.counters.delivered += apps.len() as u64;
            let to = (apps, id.clone());
            self.subscriptions.remember(octets, frame, &to);
            return Some(Row { frames: 1, payload_at: octets.len() - frame.payload.len(), to });
        }
        if self.deliver(&ids, frame.payload, false, None, out) == 0 {
            self.nobody_has(&ids, frame.payload);
        }
        None
    }

    /// The names of a frame that came; `None` when it is not of its flow, or no publication that is
    /// new.
    #[inline]
    fn names_of(&mut self, frame: &Frame<'_>, out: &mut Outbox) -> Option<SmallVec<[Id; 2]>> {
        let ids: SmallVec<[Id; 2]> = frame.ids.map(Id::from_labels).collect();
        if let Route::Keyed { flow, .. } = frame.route
            && !ids.iter().any(|id| is_of_flow(id, flow))
        {
            self.counters.wrong_flow += 1;
            return None;
        }
        self.note_number(&ids, frame, out).then_some(ids)
    }

    /// A frame that came for this node.
    pub fn receive(&mut self, now: Tick, frame: &Frame<'_>, out: &mut Outbox) {
        let Some(ids) = self.names_of(frame, out) else { return };
        if frame.strategy == Strategy::ALGORITHMIC_DOMAIN && ids.len() > 1 {
            return self.piece(now, ids.into_vec(), frame, out);
        }
        if let (Strategy::ALGORITHMIC_DOMAIN, Some(lifetime_ms), [id]) =
            (frame.strategy, frame.options.lifetime_ms, &ids[..])
        {
            self.cache.insert(now, id, frame.payload, None, lifetime_ms);
        }
        let is_deep = !frame.strategy.has_rendezvous();
        if self.deliver(&ids, frame.payload, is_deep, None, out) == 0 {
            self.nobody_has(&ids, frame.payload);
        }
    }
}

/// Publications of one item that came one behind the other by the same way, all equally long.
#[derive(Debug)]
pub struct Row {
    /// How many; at least one.
    pub frames: usize,
    /// Where the payload of each begins.
    pub payload_at: usize,
    /// All who get them, and the id that they subscribed to.
    pub to: Receivers,
}

/// The octets of a subscription's identifier.
pub(super) type Name<'a> = &'a [u8];

/// Subscriptions that get what is published under an id: to it and to its father, or to everything
/// above it.
pub(super) fn names_above(id: &Id, is_deep: bool) -> impl Iterator<Item = Name<'_>> {
    let above = if is_deep { id.len() } else { 2 };
    (1..=id.len()).rev().take(above).map(|depth| id.labels()[..depth].as_flattened())
}

/// Names with subscriptions, each with the id that it is above of.
type Found<'a> = SmallVec<[(&'a Id, Name<'a>); 4]>;

#[inline]
fn find<'a>(subscriptions: &Subscriptions, (ids, is_deep): (&'a [Id], bool)) -> Found<'a> {
    let wanted = |s: &Subscribing| !s.subscribers.is_empty();
    let mut found = Found::new();
    for id in ids {
        let names = names_above(id, is_deep);
        found.extend(
            names
                .filter(|name| subscriptions.get(*name).is_some_and(wanted))
                .map(|name| (id, name)),
        );
    }
    found
}

/// The one list of those who get what is published under these names, with the id that they are
/// above of; `None` when it is not one list as it is.
#[inline]
fn list_of<'a>(
    subscriptions: &mut Subscriptions,
    found: &Found<'a>,
    except: Option<AppId>,
) -> Option<(Arc<[AppId]>, &'a Id)> {
    let [(id, name)] = found[..] else { return None };
    Some((subscriptions.list(name, except)?, id))
}

fn deliver(
    subscriptions: &mut Subscriptions,
    names: (&[Id], bool),
    payload: &[u8],
    except: Option<AppId>,
    out: &mut Outbox,
) -> usize {
    let found = find(subscriptions, names);
    if found.is_empty() {
        return 0;
    }
    let payload: Arc<[u8]> = payload.into();
    if let Some((apps, id)) = list_of(subscriptions, &found, except) {
        // One list as it is: nobody gets it twice.
        let count = apps.len();
        out.events.push((To::All(apps), Event::Data { id: id.clone(), payload }));
        return count;
    }
    let mut served: HashSet<AppId> = except.into_iter().collect();
    let before = served.len();
    for (id, name) in found {
        for app in subscriptions.get(name).iter().flat_map(|s| s.subscribers.iter()) {
            if served.insert(*app) {
                out.tell(*app, Event::Data { id: id.clone(), payload: Arc::clone(&payload) });
            }
        }
    }
    served.len() - before
}

/// Whether the filter of this flow is for the item, or for the one that it is beneath.
fn is_of_flow(id: &Id, flow: u64) -> bool {
    flow_of(id) == flow || flow_of(&Id::from_labels(id.father())) == flow
}

/// The value of a frame without its payload.
fn head_of(hop_limit: u8, route: &RouteBuf, ids: &[Id], numbers: &Numbers) -> Vec<u8> {
    let strategy = Strategy::DOMAIN_LOCAL;
    let (mut frame, mut options) = (Vec::new(), Vec::new());
    numbers.put(option::NUMBER, 0, &mut options);
    let options = &options[..];
    FrameBuilder { hop_limit, strategy, route, ids, options, payload: &[] }.write(&mut frame);
    Element::parse(&frame).map(|e| e.value.to_vec()).unwrap_or_default()
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
