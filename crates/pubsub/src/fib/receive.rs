//! Frames of data that came for this node: the one way in which they are handed out.

use super::{Effects, Fib};
use crate::data::{Place, Row, is_of_item};
use crate::publication::{To, flow_of};
use onym_wire::push::app::PIECE_MAX;
use onym_wire::push::{Frame, Id, Label, Route, Strategy, reserved};
use smallvec::SmallVec;

/// Names of what came.
type Names = SmallVec<[Id; 2]>;

/// What becomes of a frame that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Who gets its payload is in the effects.
    Here,
    /// It is for the control plane, as the thing with this number.
    Pass(u64),
}

impl Fib {
    /// The next publications after one that [`Fib::receive`] had one list of receivers for, of the
    /// same item and by the same way: as many of `frames` as are. `None`: the first is something
    /// else, and nothing was done.
    #[inline]
    pub fn receive_alike<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<Row> {
        let octets = frames.clone().next()?;
        let alike = self.receivers.alike(octets)?;
        let same = octets.get(..alike.number_at())?;
        if octets.len() - alike.payload_at > PIECE_MAX {
            return None;
        }
        let is_alike = |next: &&[u8]| next.len() == octets.len() && next.starts_with(same);
        let numbers = frames.take_while(is_alike).map_while(|next| alike.number(next));
        let frames = self.heard.take_next((alike.stream, self.done), numbers);
        if frames == 0 {
            return None;
        }
        self.counters.delivered += (frames * alike.receivers.0.len()) as u64;
        Some(Row { frames, payload_at: alike.payload_at, to: alike.receivers.clone() })
    }

    /// A frame that came for this node in `octets`, over a link to another domain or not. Control
    /// messages, fragments, what has to be checked or kept, and what is behind such in its stream,
    /// are passed to the control plane.
    pub fn receive(
        &mut self,
        octets: &[u8],
        frame: &Frame<'_>,
        is_external: bool,
        effects: &mut Effects,
    ) -> Received {
        effects.clear();
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
            return Received::Here;
        }
        let place = Place::of(frame);
        // Fragments have an identifier of their own; caches may answer with what has a lifetime.
        let is_apart = frame.strategy == Strategy::ALGORITHMIC_DOMAIN
            && (ids.len() > 1 || frame.options.lifetime_ms.is_some());
        if self.config.is_checked || is_apart || self.is_behind(place) {
            return self.pass_data(&ids[usize::from(is_apart && ids.len() > 1)..], place);
        }
        if !self.note(&ids, place, effects) {
            return Received::Here;
        }
        if is_of_item(frame.strategy)
            && let Some(list) = self.receivers.one_list(&ids)
        {
            self.counters.delivered += list.0.len() as u64;
            if !is_external {
                self.receivers.remember(octets, frame, &list);
            }
            effects.to.push((To::All(list.0), list.1));
            return Received::Here;
        }
        let is_deep = !frame.strategy.has_rendezvous();
        let count = self.receivers.find(&ids, is_deep, None, effects);
        self.counters.delivered += count as u64;
        if count == 0 {
            self.nobody_has(&ids, frame.payload);
        }
        Received::Here
    }

    /// Whether the frame, of this domain, is of an item and needs no more than to be handed out.
    #[must_use]
    pub fn is_ready(&self, frame: &Frame<'_>) -> bool {
        let is_behind = || self.is_behind(Place::of(frame));
        frame.strategy == Strategy::DOMAIN_LOCAL
            && !root_of(frame).is_none_or(reserved::is_reserved)
            && !self.config.is_checked
            && !is_behind()
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

/// The first label of what a frame is about; nothing else of it is looked at.
fn root_of(frame: &Frame<'_>) -> Option<Label> {
    let first = frame.ids.into_iter().next();
    first.and_then(|labels| labels.first().copied()).map(Label)
}

/// Whether the filter of this flow is for the item, or for the one that it is beneath.
fn is_of_flow(id: &Id, flow: u64) -> bool {
    flow_of(id) == flow || flow_of(&Id::from_labels(id.parent())) == flow
}
