//! Control messages are collected by destination during a round (P-46).
//!
//! A busy node sends many messages to each peer: those of one round share few frames and one
//! acknowledgement. A message waits for the end of its round and for nothing else.

use crate::publication::{Publication, Target};
use onym_tables::KeyedMap;
use onym_wire::push::{Bundle, Id, RouteBuf};

/// Octets of the messages in one frame: it shall fit one packet of most links.
const OCTETS_MAX: usize = 1300;
/// Octets that the head of a field takes at most here.
const FIELD_HEAD: usize = 8;

/// A frame that is not full yet.
#[derive(Debug)]
struct Open {
    /// Its payload is in the bundle.
    publication: Publication,
    bundle: Bundle,
}

impl Open {
    fn close(self) -> Publication {
        Publication { payload: self.bundle.into_payload(), ..self.publication }
    }
}

/// What waits, by where it goes. What is added in one round bounds it.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    /// In the order of their first messages.
    open: Vec<Open>,
    places: KeyedMap<(Id, RouteBuf), usize>,
    /// Octets of a frame that are not for messages.
    reserve: usize,
}

impl Bundles {
    /// Nothing waits; `reserve` octets of each frame are for what is added to it, a signature.
    pub(super) fn new(reserve: usize) -> Self {
        Self { reserve, ..Self::default() }
    }

    /// Adds a control message; returns what has to leave for it to find room, or the message when
    /// it goes by no forwarding part.
    pub(super) fn add(&mut self, publication: Publication) -> Option<Publication> {
        let Target::Route(route) = &publication.target else { return Some(publication) };
        let id = publication.ids.first().cloned().unwrap_or_default();
        let at = *self.places.entry((id, route.clone())).or_insert(self.open.len());
        let mut bundle = Bundle::default();
        bundle.push(&publication.payload);
        let Some(open) = self.open.get_mut(at) else {
            self.open.push(Open { publication, bundle });
            return None;
        };
        let octets_max = OCTETS_MAX.saturating_sub(self.reserve);
        if open.bundle.len() + publication.payload.len() + FIELD_HEAD > octets_max {
            return Some(std::mem::replace(open, Open { publication, bundle }).close());
        }
        open.bundle.push(&publication.payload);
        None
    }

    /// Takes all that waits.
    pub(super) fn take(&mut self) -> Vec<Publication> {
        self.places.clear();
        self.open.drain(..).map(Open::close).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::push::{Control, Filter, Kind, Label, reserved};

    fn message(number: u64, table: u8) -> Publication {
        let own = Label([1; 8]);
        let control = Control { number, ..Control::new(Kind::ASSERT, own) };
        let target = Target::Route(RouteBuf::flat(table, &Filter::EMPTY));
        Publication::control(target, reserved::DISPATCHER, own, &control)
    }

    fn numbers(publication: &Publication) -> Vec<u64> {
        let all = Bundle::messages(&publication.payload);
        all.map(|m| Control::parse(m.unwrap()).unwrap().number).collect()
    }

    #[test]
    fn messages_to_one_place_leave_together_and_in_order() {
        let mut bundles = Bundles::default();
        for number in 1..=3 {
            assert_eq!(bundles.add(message(number, 0)), None);
            assert_eq!(bundles.add(message(10 + number, 1)), None);
        }
        let all = bundles.take();
        assert_eq!(all.iter().map(numbers).collect::<Vec<_>>(), [[1, 2, 3], [11, 12, 13]]);
        assert!(bundles.is_empty() && bundles.take().is_empty());
    }

    #[test]
    fn a_full_frame_leaves_and_no_message_is_lost() {
        let mut bundles = Bundles::default();
        let mut seen = Vec::new();
        let mut left = Vec::new();
        for number in 1..=1000 {
            left.extend(bundles.add(message(number, 0)));
        }
        left.extend(bundles.take());
        assert!((10..100).contains(&left.len()), "{}", left.len());
        for publication in &left {
            assert!(publication.payload.len() <= OCTETS_MAX);
            seen.extend(numbers(publication));
        }
        assert_eq!(seen, (1..=1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_message_without_a_forwarding_part_does_not_wait() {
        let mut bundles = Bundles::default();
        let near = Publication { target: Target::Neighbours(None), ..message(1, 0) };
        assert_eq!(bundles.add(near.clone()), Some(near));
        assert!(bundles.is_empty());
    }
}
