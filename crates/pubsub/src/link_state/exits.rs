//! Links to other domains, and whether those are heard over them (P-81).

use super::asking::Asking;
use onym_tables::doubt::Step;
use onym_tables::{FaceId, Tick};
use onym_wire::push::{Control, Kind, Label, Link};
use std::collections::BTreeMap;
use std::time::Duration;

/// A link to another domain.
#[derive(Debug)]
struct Exit {
    /// The domain in place of a neighbour.
    link: Link,
    /// When the last hello came; who never said any may not know how.
    hello: Option<Tick>,
    /// Something came over it.
    is_up: bool,
    /// Silence after which a domain that says hello is gone.
    dead: Duration,
    asking: Asking,
}

impl Exit {
    /// Nothing comes over it any more; whether it was up.
    fn end(&mut self) -> bool {
        self.hello = None;
        self.asking.forget();
        std::mem::replace(&mut self.is_up, false)
    }
}

/// What a message over a link changed.
pub(super) struct Heard {
    /// The number of the question that it is.
    pub(super) answer: Option<u64>,
    /// It is a hello of whom it is not known whether it answers.
    pub(super) is_curious: bool,
    /// The link was down.
    pub(super) is_up_now: bool,
}

/// All links to other domains.
#[derive(Debug, Default)]
pub(super) struct Exits {
    exits: BTreeMap<FaceId, Exit>,
}

impl Exits {
    pub(super) fn is_empty(&self) -> bool {
        self.exits.is_empty()
    }

    pub(super) fn add(&mut self, face: FaceId, link: Link, dead: Duration) {
        self.exits.insert(
            face,
            Exit { link, hello: None, is_up: false, dead, asking: Asking::default() },
        );
    }

    pub(super) fn remove(&mut self, face: FaceId) {
        self.exits.remove(&face);
    }

    pub(super) fn connected(&mut self, face: FaceId, dead: Duration) {
        if let Some(exit) = self.exits.get_mut(&face) {
            exit.dead = dead;
        }
    }

    pub(super) fn not_listened(&mut self, face: FaceId, then: Tick) {
        if let Some(exit) = self.exits.get_mut(&face) {
            exit.hello = exit.hello.map(|heard| heard.max(then));
        }
    }

    pub(super) fn domain(&self, face: FaceId) -> Option<Label> {
        self.exits.get(&face).map(|exit| exit.link.neighbour)
    }

    pub(super) fn face_of(&self, number: u32) -> Option<FaceId> {
        self.exits.iter().find(|(_, exit)| exit.link.number == number).map(|(face, _)| *face)
    }

    pub(super) fn faces(&self) -> impl Iterator<Item = FaceId> {
        self.exits.keys().copied()
    }

    /// The links that are up.
    pub(super) fn up(&self) -> impl Iterator<Item = Link> {
        self.exits.values().filter(|exit| exit.is_up).map(|exit| exit.link)
    }

    /// A message came over a link; any takes it up.
    pub(super) fn heard(&mut self, now: Tick, face: FaceId, message: &Control) -> Option<Heard> {
        let exit = self.exits.get_mut(&face)?;
        let (mut answer, mut is_curious) = (None, false);
        if message.kind == Kind::HELLO {
            answer = exit.asking.heard(now, message);
            is_curious = exit.hello.is_none() || exit.asking.is_curious(message);
            exit.hello = Some(now);
        }
        let is_up_now = !std::mem::replace(&mut exit.is_up, true);
        Some(Heard { answer, is_curious, is_up_now })
    }

    /// Makes a hello over a link a question.
    pub(super) fn ask(&mut self, now: Tick, face: FaceId, hello: Control) -> Option<Control> {
        self.exits.get_mut(&face).map(|exit| exit.asking.ask(now, hello))
    }

    /// The network refused what was sent over a link; whether a doubt begins.
    pub(super) fn refused(&mut self, now: Tick, face: FaceId) -> bool {
        let exit = self.exits.get_mut(&face).filter(|exit| exit.is_up);
        exit.is_some_and(|exit| exit.asking.refused(now))
    }

    /// Links of which the other end is to be asked now, and whether one went that did not answer.
    pub(super) fn inquire(&mut self, now: Tick) -> (Vec<FaceId>, bool) {
        let (mut asked, mut is_changed) = (Vec::new(), false);
        for (face, exit) in &mut self.exits {
            match exit.asking.step(now) {
                Some(Step::Ask) => asked.push(*face),
                Some(Step::End) => is_changed |= exit.end(),
                None => {}
            }
        }
        (asked, is_changed)
    }

    /// When there is somebody to ask.
    pub(super) fn due(&self) -> impl Iterator<Item = Tick> {
        self.exits.values().map(|exit| exit.asking.due())
    }

    /// A link is down; whether it was up.
    pub(super) fn down(&mut self, face: FaceId) -> bool {
        self.exits.get_mut(&face).is_some_and(Exit::end)
    }

    /// Takes down the links over which no hello comes any more; whether there are such.
    pub(super) fn silent(&mut self, now: Tick) -> bool {
        let is_silent = |exit: &Exit| exit.hello.is_some_and(|heard| now.since(heard) >= exit.dead);
        let mut is_changed = false;
        for exit in self.exits.values_mut().filter(|exit| is_silent(exit)) {
            is_changed |= exit.end();
        }
        is_changed
    }

    /// When a link is silent too long, at the earliest.
    pub(super) fn next_silence(&self) -> Option<Tick> {
        self.exits.values().filter_map(|exit| exit.hello.map(|heard| heard + exit.dead)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: FaceId = FaceId(300);

    fn exits() -> Exits {
        let mut exits = Exits::default();
        let link = Link { neighbour: Label::from_u64(0xD1), number: 7, cost: 1 };
        exits.add(FACE, link, Duration::from_millis(3500));
        exits
    }

    fn is_up_at(exits: &mut Exits, ms: u64) -> bool {
        exits.silent(Tick::from_ms(ms));
        exits.up().next().is_some()
    }

    fn message(kind: Kind) -> Control {
        Control::new(kind, Label::from_u64(0xD1))
    }

    /// Whether the other end is asked now, and whether the link is up now.
    fn heard(exits: &mut Exits, ms: u64, kind: Kind) -> (bool, bool) {
        let now = Tick::from_ms(ms);
        let heard = exits.heard(now, FACE, &message(kind)).unwrap();
        if heard.is_curious {
            exits.ask(now, FACE, message(Kind::HELLO)).unwrap();
        }
        (heard.is_curious, heard.is_up_now)
    }

    #[test]
    fn a_link_is_up_from_the_first_message_until_hellos_cease() {
        let mut exits = exits();
        assert!(!is_up_at(&mut exits, 0));
        assert_eq!(heard(&mut exits, 0, Kind::HELLO), (true, true));
        assert_eq!(heard(&mut exits, 1000, Kind::HELLO), (true, false), "it did not answer yet");
        assert_eq!(heard(&mut exits, 2000, Kind::DOMAIN_ROUTES), (false, false), "no hello");
        assert_eq!(exits.next_silence(), Some(Tick::from_ms(4500)));
        assert!(is_up_at(&mut exits, 4400));
        exits.not_listened(FACE, Tick::from_ms(2000));
        assert!(is_up_at(&mut exits, 5400));
        assert!(!is_up_at(&mut exits, 5500));
        assert_eq!(heard(&mut exits, 6000, Kind::HELLO), (true, true));
        exits.connected(FACE, Duration::from_millis(10_500));
        assert!(is_up_at(&mut exits, 16_000) && !is_up_at(&mut exits, 16_500));
        assert!(!exits.down(FACE) && exits.next_silence().is_none());
        heard(&mut exits, 17_000, Kind::HELLO);
        assert!(exits.down(FACE) && !is_up_at(&mut exits, 17_000));
    }

    #[test]
    fn one_that_says_no_hello_is_up_until_its_face_ends() {
        let mut exits = exits();
        assert_eq!(heard(&mut exits, 0, Kind::DOMAIN_ROUTES), (false, true));
        assert!(exits.next_silence().is_none() && is_up_at(&mut exits, 1_000_000));
        assert!(exits.down(FACE) && !is_up_at(&mut exits, 1_000_000));
        assert_eq!(heard(&mut exits, 1_000_000, Kind::DOMAIN_ROUTES), (false, true));
        exits.remove(FACE);
        assert!(exits.is_empty() && exits.heard(Tick(0), FACE, &message(Kind::HELLO)).is_none());
    }
}
