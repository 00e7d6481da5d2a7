//! What neighbour domains were sent and have not answered yet: it is sent again (P-80).

use onym_tables::Tick;
use onym_wire::push::{Control, Kind, Label, Sequence};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the first answer is waited for; each further one twice as long.
const PATIENCE: Duration = Duration::from_millis(200);
/// How often a message is sent again: with more the round that says everything comes first. To who
/// never answered anything once: it may not know how.
const TRIES_MAX: u32 = 4;
/// Messages to one neighbour that wait for an answer; of more the oldest are left to the round that
/// says everything.
const WAITING_MAX: usize = 256;

/// A message that is not answered.
#[derive(Debug)]
struct Waiting {
    message: Control,
    due: Tick,
    tries: u32,
}

impl Waiting {
    /// Leaves what `later` says anew; whether something is left.
    fn without(&mut self, later: &Control) -> bool {
        let ours = &mut self.message;
        if ours.kind != later.kind {
            return true;
        }
        if ours.kind == Kind::DOMAIN_ROUTES {
            return false;
        }
        if (ours.sender, ours.item, &ours.nodes) == (later.sender, later.item, &later.nodes) {
            ours.ids.retain(|id| !later.ids.contains(id));
        }
        !ours.ids.is_empty()
    }
}

/// The messages that wait for answers.
#[derive(Debug)]
pub(super) struct Unheard {
    session: u32,
    last: u32,
    waiting: BTreeMap<Label, BTreeMap<u32, Waiting>>,
    /// Neighbours that answered something.
    answering: BTreeSet<Label>,
    /// No later than the first one is due.
    due: Option<Tick>,
}

impl Unheard {
    pub(super) fn new(session: u32) -> Self {
        let waiting = BTreeMap::new();
        Self { session, last: 0, waiting, answering: BTreeSet::new(), due: None }
    }

    /// A message to a neighbour, with a number by which that answers it.
    pub(super) fn send(&mut self, now: Tick, neighbour: Label, message: &Control) -> Control {
        self.last = self.last.wrapping_add(1).max(1);
        let sequence = Sequence { session: self.session, number: self.last };
        let message = Control { sequence, ..message.clone() };
        let waiting = self.waiting.entry(neighbour).or_default();
        waiting.retain(|_, before| before.without(&message));
        if waiting.len() >= WAITING_MAX {
            waiting.pop_first();
        }
        let due = now + PATIENCE;
        waiting.insert(self.last, Waiting { message: message.clone(), due, tries: 0 });
        self.due = Some(self.due.map_or(due, |first| first.min(due)));
        message
    }

    /// A neighbour answered.
    pub(super) fn heard(&mut self, neighbour: Label, sequence: Sequence) {
        let waiting = self.waiting.get_mut(&neighbour).filter(|_| sequence.session == self.session);
        if let Some(waiting) = waiting
            && waiting.remove(&sequence.number).is_some()
        {
            self.answering.insert(neighbour);
        }
    }

    /// A neighbour is not reached any more.
    pub(super) fn forget(&mut self, neighbour: Label) {
        self.waiting.remove(&neighbour);
        self.answering.remove(&neighbour);
    }

    /// When something is to be sent again, at the earliest.
    pub(super) fn due(&self) -> Option<Tick> {
        self.due
    }

    /// What is to be sent again now.
    pub(super) fn again(&mut self, now: Tick) -> Vec<(Label, Control)> {
        if self.due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        let mut again = Vec::new();
        for (neighbour, waiting) in &mut self.waiting {
            let most = if self.answering.contains(neighbour) { TRIES_MAX } else { 1 };
            waiting.retain(|_, message| message.due > now || message.tries < most);
            for message in waiting.values_mut().filter(|message| message.due <= now) {
                message.tries += 1;
                message.due = now + PATIENCE * (1 << message.tries);
                again.push((*neighbour, message.message.clone()));
            }
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        self.due = self.waiting.values().flat_map(BTreeMap::values).map(|m| m.due).min();
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(n: u64) -> Label {
        Label::from_u64(n)
    }

    fn facts(number: u64, ids: &[&str], is_gone: bool) -> Control {
        Control {
            ids: ids.iter().map(|id| id.parse().unwrap()).collect(),
            item: Some(1),
            number,
            is_full: is_gone,
            ..Control::new(Kind::DOMAIN_FACTS, label(7))
        }
    }

    /// When what of it is sent again.
    fn times(unheard: &mut Unheard) -> Vec<(u64, usize)> {
        let mut times = Vec::new();
        while let Some(due) = unheard.due() {
            let again = unheard.again(due).len();
            if again > 0 {
                times.push((due.0 / 1_000_000, again));
            }
        }
        times
    }

    #[test]
    fn what_is_not_answered_is_sent_again_until_the_round_that_says_everything() {
        let mut unheard = Unheard::new(3);
        let first = unheard.send(Tick(0), label(1), &facts(1, &["/1/2"], false));
        assert_eq!(times(&mut unheard), [(200, 1)], "it may not know how to answer");
        unheard.send(Tick(0), label(1), &facts(1, &["/1/2"], false));
        unheard.heard(label(2), Sequence { number: 2, ..first.sequence });
        unheard.heard(label(1), Sequence { number: 2, session: 9 });
        assert!(unheard.again(Tick::from_ms(199)).is_empty());
        unheard.heard(label(1), Sequence { number: 2, ..first.sequence });
        assert!(times(&mut unheard).is_empty() && unheard.waiting.is_empty());
        unheard.send(Tick(0), label(1), &facts(2, &["/1/2"], false));
        assert_eq!(times(&mut unheard), [(200, 1), (600, 1), (1400, 1), (3000, 1)]);
        unheard.send(Tick(0), label(1), &facts(2, &["/1/2"], false));
        unheard.forget(label(1));
        assert!(times(&mut unheard).is_empty());
    }

    #[test]
    fn what_is_said_anew_is_not_sent_again_as_it_was() {
        let mut unheard = Unheard::new(3);
        unheard.send(Tick(0), label(1), &facts(1, &["/1/2", "/1/3"], false));
        unheard.send(Tick(0), label(2), &facts(1, &["/1/2", "/1/3"], false));
        unheard.send(Tick(0), label(1), &facts(2, &["/1/2"], true));
        let routes = Control::new(Kind::DOMAIN_ROUTES, label(7));
        unheard.send(Tick(0), label(1), &routes);
        unheard.send(Tick(0), label(1), &Control { is_full: true, ..routes });
        let again = unheard.again(Tick::from_ms(200));
        let ids = |m: &Control| m.ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let told: Vec<_> =
            again.iter().map(|(n, m)| (n.to_u64(), m.number, m.is_full, ids(m))).collect();
        let (two, three) = ("/0001/0002".to_owned(), "/0001/0003".to_owned());
        assert_eq!(
            told,
            [
                (1, 1, false, vec![three.clone()]),
                (1, 2, true, vec![two.clone()]),
                (1, 0, true, vec![]),
                (2, 1, false, vec![two, three]),
            ]
        );
    }

    #[test]
    fn so_many_messages_wait_for_the_answers_of_a_neighbour() {
        let mut unheard = Unheard::new(3);
        for n in 0..WAITING_MAX as u64 + 9 {
            unheard.send(Tick(0), label(1), &facts(n, &[&format!("/1/{n:x}")], false));
        }
        let again = unheard.again(Tick::from_ms(200));
        assert_eq!((again.len(), again[0].1.number), (WAITING_MAX, 9));
    }
}
