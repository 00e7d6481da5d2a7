//! Data frames for this node: the only path by which they are delivered.

use super::{Effects, Fib};
use crate::data::{Above, Place, is_of_item};
use crate::publication::flow_of;
use onym_wire::push::{Flags, Frame, Id, Route, Strategy, reserved};
use smallvec::SmallVec;

/// Names of what came.
type Names = SmallVec<[Id; 2]>;

/// What becomes of frames that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Who gets the payloads of the first of them, and where in each that begins: so many, which came
    /// one behind the other by the same way, are of one item, and are equally long.
    Here {
        /// At least one.
        frames: usize,
        /// Behind the octets of each when it is malformed.
        payload_at: usize,
    },
    /// The first is for the control plane, as the thing with this number.
    Pass(u64),
}

impl Fib {
    /// Frames that came for this node, over a link to another domain or not: the first, and those
    /// behind it that continue it. Control messages, fragments, what has to be checked or kept, and
    /// what is behind such in its stream, are passed to the control plane. `None`: there are none.
    #[inline]
    pub fn receive<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a [u8]> + Clone,
        is_external: bool,
        effects: &mut Effects,
    ) -> Option<Received> {
        effects.clear();
        let octets = frames.clone().next()?;
        // What the last one was asked is not asked again.
        if !is_external && let Some(alike) = self.receive_alike(octets, frames, effects) {
            return Some(alike);
        }
        let Ok(frame) = Frame::parse(octets) else {
            self.counters.malformed += 1;
            return Some(Received::Here { frames: 1, payload_at: octets.len() });
        };
        Some(self.receive_one(octets, &frame, is_external, effects))
    }

    /// The next publications after one that one list of receivers was found for, of the same item
    /// and by the same way. `None`: the first is something else, and nothing was done.
    #[inline]
    fn receive_alike<'a>(
        &mut self,
        octets: &'a [u8],
        frames: impl Iterator<Item = &'a [u8]>,
        effects: &mut Effects,
    ) -> Option<Received> {
        let alike = self.receivers.alike(octets)?;
        let same = octets.get(..alike.number_at())?;
        let is_alike = |next: &&[u8]| next.len() == octets.len() && next.starts_with(same);
        let numbers = frames.take_while(is_alike).map_while(|next| alike.number(next));
        let frames = self.heard.take_next((alike.stream, self.done), numbers);
        if frames == 0 {
            return None;
        }
        let count = effects.take(alike.found);
        self.counters.delivered += (frames * count) as u64;
        if effects.shards != 0 {
            effects.names.clone_from(alike.names);
        }
        Some(Received::Here { frames, payload_at: alike.payload_at })
    }

    fn receive_one(
        &mut self,
        octets: &[u8],
        frame: &Frame<'_>,
        is_external: bool,
        effects: &mut Effects,
    ) -> Received {
        let here = Received::Here { frames: 1, payload_at: octets.len() - frame.payload.len() };
        let ids: Names = frame.ids.map(Id::from_labels).collect();
        let root = ids.first().and_then(Id::first);
        if root.is_none_or(reserved::is_reserved)
            || is_external && !matches!(frame.route, Route::Domains { .. })
        {
            return self.pass_frame();
        }
        if let Route::Keyed { flow, .. } = frame.route
            && !ids.iter().any(|id| is_of_flow(id, flow))
        {
            self.counters.wrong_flow += 1;
            return here;
        }
        let place = Place::of(frame);
        // Fragments have an identifier of their own; caches may answer with what has a lifetime.
        let is_algorithmic = frame.strategy == Strategy::ALGORITHMIC_DOMAIN;
        let is_apart = is_algorithmic && (ids.len() > 1 || frame.options.lifetime_ms.is_some());
        let is_retained = frame.options.retained.is_some();
        if self.config.is_checked || is_apart || is_retained || self.is_behind(place) {
            // What a cache sends has no place in a stream.
            let place = if Flags::of(octets).is_cached() { Place::None } else { place };
            return self.pass_data(&ids[usize::from(is_apart && ids.len() > 1)..], place);
        }
        if !self.note(&ids, place, effects) {
            return here;
        }
        if is_of_item(frame.strategy)
            && let Some(found) = self.receivers.one_list(&ids)
        {
            self.counters.delivered += effects.take(&found) as u64;
            effects.name(&ids, Above::Parent);
            if effects.is_nobodys() && effects.shards == 0 {
                self.nobody_has(&ids, frame.payload);
            } else if !is_external {
                self.receivers.remember(octets, frame, found, effects.names.clone());
            }
            return here;
        }
        let above = if frame.strategy.has_rendezvous() { Above::Parent } else { Above::All };
        let count = self.receivers.find(&ids, above, None, effects);
        effects.came_by = Some(frame.strategy).filter(|strategy| !strategy.has_rendezvous());
        effects.name(&ids, above);
        self.counters.delivered += count as u64;
        if count == 0 && effects.shards == 0 {
            self.nobody_has(&ids, frame.payload);
        }
        here
    }

    /// The shard that a frame of this domain's data for this node belongs to, which follows the
    /// numbers of its stream; none: that at which it came.
    #[must_use]
    pub fn owner(&self, octets: &[u8]) -> Option<u16> {
        let frame = Frame::parse(octets).ok().filter(|_| self.config.shards > 1)?;
        match Place::of(&frame) {
            Place::None => None,
            Place::Number(stream, _) | Place::Reached(stream, _) => {
                u16::try_from(stream % u64::from(self.config.shards)).ok()
            }
        }
    }

    /// Whether something that came before it in its stream is with the control plane.
    fn is_behind(&self, place: Place) -> bool {
        match place {
            Place::None => false,
            Place::Number(stream, _) | Place::Reached(stream, _) => {
                self.heard.is_fenced(stream, self.done)
            }
        }
    }

    /// A frame is for the control plane.
    fn pass_frame(&mut self) -> Received {
        self.passed += 1;
        Received::Pass(self.passed)
    }

    /// A frame of data of the item `ids` is, and so is what follows in its stream until that is
    /// done.
    fn pass_data(&mut self, ids: &[Id], place: Place) -> Received {
        let passed = self.pass_frame();
        if let (Place::Number(stream, number) | Place::Reached(stream, number), Some(item)) =
            (place, ids.first())
            && self.receivers.is_wanted(ids)
        {
            self.heard.fence((stream, number), self.passed, item);
        }
        passed
    }
}

/// Whether the filter of this flow is for the item, or for the one that it is beneath.
fn is_of_flow(id: &Id, flow: u64) -> bool {
    flow_of(id) == flow || flow_of(&Id::from_labels(id.parent())) == flow
}
