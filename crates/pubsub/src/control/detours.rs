//! Ways round lost links: told by the topology manager, taken while a link is lost (P-91).

use super::ControlPlane;
use crate::forwarder::{Detour, LINKS_MAX};
use onym_tables::Tick;

impl ControlPlane {
    /// A link of this node has this number: a way round it may be told, also when its face has gone.
    pub(super) fn note_link(&mut self, number: u32) {
        if self.numbers.len() >= LINKS_MAX {
            self.numbers = self.forwarder.links().iter().map(|link| link.number).collect();
        }
        self.numbers.insert(number);
        self.are_detours_old = true;
    }

    /// Has frames go round those of its links that are lost, or of which a hello is missed.
    pub(super) fn look_for_detours(&mut self, now: Tick) {
        let backups = self.dispatcher.backups();
        if backups.is_empty() && self.detours.is_empty() {
            return;
        }
        let is_lost =
            |number: &u32| self.numbers.contains(number) && !self.link_state.is_heard(now, *number);
        let lost = backups.iter().filter(|(number, _)| is_lost(number));
        let detours: Vec<Detour> =
            lost.map(|(number, way)| Detour { lost: *number, way: way.clone() }).collect();
        let are_old = std::mem::take(&mut self.are_detours_old);
        if detours != self.detours || are_old {
            self.forwarder.detours_set(&detours);
            self.is_forwarder_changed = true;
            self.detours = detours;
        }
    }

    /// When the next hello is missed on a link that has a way round it.
    pub(super) fn next_missed(&self) -> Option<Tick> {
        let backups = self.dispatcher.backups();
        let is_watched = |number: &u32| {
            backups.contains_key(number) && !self.detours.iter().any(|d| d.lost == *number)
        };
        if backups.is_empty() { None } else { self.link_state.next_missed(is_watched) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use crate::dispatcher::WAY_MAX;
    use crate::forwarder::{Copies, LinkEntry, Source};
    use crate::node::Output;
    use crate::publication::Outbox;
    use onym_tables::FaceId;
    use onym_tables::bloom::Scheme;
    use onym_wire::push::{
        Control, Filter, FrameBuilder, Id, Kind, Label, Role, RouteBuf, Sequence, Strategy,
    };

    const LOST: FaceId = FaceId(301);
    const OTHER: FaceId = FaceId(302);

    /// A node whose links 1 and 2 have the faces 301 and 302 and are heard.
    fn heard() -> ControlPlane {
        let mut plane = ControlPlane::new(Config::new(Label::from_u64(1), 9, Role::default(), 1));
        for (face, number) in [(LOST, 1), (OTHER, 2)] {
            plane.link_add(Tick(0), LinkEntry { face, number, is_external: false }, 1).unwrap();
            let hello = Control::new(Kind::HELLO, Label::from_u64(u64::from(number) + 1));
            plane.link_state.receive(Tick(0), face, hello, &mut Outbox::default());
        }
        plane
    }

    /// What a manager says, as the message with this number, and time goes by.
    fn told(plane: &mut ControlPlane, number: u32, link: u64, way: &[u32], ms: u64) {
        let message = Control {
            item: Some(link),
            way: way.to_vec(),
            sequence: Sequence { session: 7, number },
            ..Control::new(Kind::BACKUP, Label::from_u64(5))
        };
        plane.dispatcher.control(Tick(0), &message, false, &mut Outbox::default());
        plane.handle_timeout(Tick::from_ms(ms), &mut Output::default());
    }

    /// Where a frame of a neighbour with these links goes.
    fn goes(plane: &mut ControlPlane, links: &[u32]) -> Vec<FaceId> {
        let mut filter = Filter::EMPTY;
        links.iter().for_each(|link| filter.add(&Scheme::default().tag(*link, 0)));
        let ids: [Id; 1] = ["/1/2".parse().unwrap()];
        let mut frame = Vec::new();
        let route = RouteBuf::flat(0, &filter);
        let strategy = Strategy::DOMAIN_LOCAL;
        let like = FrameBuilder {
            hop_limit: 9,
            strategy,
            route: &route,
            ids: &ids,
            options: &[],
            payload: &[],
        };
        like.write(&mut frame);
        let mut copies = Copies::default();
        plane.forwarder.receive(Source::Own, &mut frame, &mut copies);
        copies.faces
    }

    #[test]
    fn a_missed_hello_sends_frames_round_and_the_next_one_does_not() {
        let mut plane = heard();
        told(&mut plane, 1, 1, &[2, 70], 1400);
        assert_eq!(goes(&mut plane, &[1]), [LOST]);
        assert_eq!(plane.next_missed(), Some(Tick::from_ms(1500)));
        plane.handle_timeout(Tick::from_ms(1500), &mut Output::default());
        assert_eq!(goes(&mut plane, &[1]), [LOST, OTHER]);
        assert_eq!(plane.next_missed(), None);
        let hello = Control::new(Kind::HELLO, Label::from_u64(2));
        plane.link_state.receive(Tick::from_ms(1600), LOST, hello, &mut Outbox::default());
        plane.handle_timeout(Tick::from_ms(1601), &mut Output::default());
        assert_eq!(goes(&mut plane, &[1]), [LOST]);
        // A face that went, as that of an ended connection, is gone round all the same.
        plane.link_remove(Tick::from_ms(1602), LOST, &mut Output::default());
        assert_eq!(goes(&mut plane, &[1]), [OTHER]);
        told(&mut plane, 2, 1, &[], 1603);
        assert!(goes(&mut plane, &[1]).is_empty());
    }

    /// Law: a way is of a link of the node, begins with one, and has a bound; whoever says another is
    /// not obeyed.
    #[test]
    fn forged_ways_lead_nowhere() {
        let mut plane = heard();
        // Of a link that the node never had; to a neighbour that it has not; too long.
        told(&mut plane, 1, 77, &[2], 10);
        told(&mut plane, 2, 1 << 32, &[2], 10);
        told(&mut plane, 3, 1, &[78, 2], 10);
        told(&mut plane, 4, 2, &[1; WAY_MAX + 1], 10);
        plane.link_down(Tick::from_ms(20), LOST, &mut Output::default());
        plane.link_down(Tick::from_ms(20), OTHER, &mut Output::default());
        assert!(goes(&mut plane, &[77]).is_empty());
        assert_eq!(goes(&mut plane, &[1, 2]), [LOST, OTHER]);
        assert_eq!(plane.dispatcher.counters.refused, 2);
        for n in 0..2 * LINKS_MAX as u64 {
            told(&mut plane, 5 + n as u32, 100 + n, &[2], 30);
        }
        assert_eq!(plane.dispatcher.backups().len(), LINKS_MAX);
    }
}
