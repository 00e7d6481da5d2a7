//! Publications of applications, and those that come for them.

use super::Dispatcher;
use crate::publication::{AppId, Event, HOPS_MAX, Outbox, Publication, Target, flow_of};
use onym_tables::{FaceId, Tick};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::push::{Frame, FrameBuilder, Id, Route, RouteBuf, Strategy, option, reserved};
use onym_wire::tlv;
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
            let len = frame_len(&publication, data.payload.len()) + self.config.reserve;
            if len <= self.config.frame_max || (way.item.is_none() && len <= PACKET_LEN_MAX) {
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
                way.item = None;
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
            ids: entry.aliases.clone(),
            target,
            reply,
            hops,
            item: Some(entry.aliases.clone()),
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
        if let (Some(father), Some(label)) = (self.publications.get(id.father()), id.last()) {
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
        let mut served: Vec<AppId> = except.into_iter().collect();
        let before = served.len();
        let mut shared: Option<Arc<[u8]>> = None;
        for id in ids {
            let above = if is_deep { id.len() } else { 2 };
            for depth in (1..=id.len()).rev().take(above) {
                let Some(entry) = self.subscriptions.get(&id.labels()[..depth]) else { continue };
                for app in &entry.subscribers {
                    if !served.contains(app) {
                        served.push(*app);
                        let payload = shared.get_or_insert_with(|| payload.into()).clone();
                        out.tell(*app, Event::Data { id: id.clone(), payload });
                    }
                }
            }
        }
        let delivered = served.len() - before;
        self.counters.delivered += delivered as u64;
        delivered
    }

    /// Whether somebody here subscribed to one of these names.
    pub(super) fn is_wanted(&self, ids: &[Id], is_deep: bool) -> bool {
        ids.iter().any(|id| {
            let above = if is_deep { id.len() } else { 2 };
            let mut depths = (1..=id.len()).rev().take(above);
            depths.any(|depth| {
                let entry = self.subscriptions.get(&id.labels()[..depth]);
                entry.is_some_and(|s| !s.subscribers.is_empty())
            })
        })
    }

    /// A frame that came for this node.
    pub fn receive(&mut self, now: Tick, frame: &Frame<'_>, out: &mut Outbox) {
        let ids: Vec<Id> = frame.ids.map(Id::from_labels).collect();
        if let Route::Keyed { flow, .. } = frame.route
            && !ids.iter().any(|id| is_of_flow(id, flow))
        {
            self.counters.wrong_flow += 1;
            return;
        }
        if frame.strategy == Strategy::ALGORITHMIC_DOMAIN && ids.len() > 1 {
            return self.piece(now, ids, frame, out);
        }
        if let (Strategy::ALGORITHMIC_DOMAIN, Some(lifetime_ms), [id]) =
            (frame.strategy, frame.options.lifetime_ms, &ids[..])
        {
            self.cache.insert(now, id, frame.payload, None, lifetime_ms);
        }
        let is_deep = !frame.strategy.has_rendezvous();
        if self.deliver(&ids, frame.payload, is_deep, None, out) == 0 {
            self.counters.unwanted += 1;
        }
    }
}

/// Whether the filter of this flow is for the item, or for the one that it is beneath.
fn is_of_flow(id: &Id, flow: u64) -> bool {
    flow_of(id) == flow || flow_of(&Id::from_labels(id.father())) == flow
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
