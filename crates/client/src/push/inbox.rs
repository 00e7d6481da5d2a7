//! Events that the application has not taken yet.

use super::{Error, Event, Sent};
use onym_wire::push::Status;
use std::collections::VecDeque;

/// Events that wait.
const EVENTS_MAX: usize = 1 << 16;
/// Octets of publications that wait; one that is longer waits alone.
const OCTETS_MAX: usize = 64 << 20;
/// Requests whose answers were not taken.
const REQUESTS_MAX: usize = 1 << 16;

/// Events and answers, each with a limit: an application hears while it waits for room to publish or
/// for an answer, whether it takes its events or not.
///
/// Publications beyond the limit are counted and told in their place as [`Event::Missed`]. Other
/// events cannot be missed: as many more are kept, then it is an error. So it is to ask for more
/// when nobody takes the answers.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    events: VecDeque<Event>,
    /// Octets of publications among the events.
    octets: usize,
    answers: VecDeque<(u32, Status, Sent)>,
    /// Requests that were made and whose answers were not taken.
    open: usize,
}

impl Inbox {
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn add(&mut self, event: Event) -> Result<(), Error> {
        let len = octets_of(&event);
        let is_full = self.events.len() >= EVENTS_MAX
            || self.octets > 0 && self.octets.saturating_add(len) > OCTETS_MAX;
        let event = match event {
            Event::Data { .. } if is_full => Event::Missed(1),
            event => event,
        };
        match (&event, self.events.back_mut()) {
            (Event::Missed(more), Some(Event::Missed(count)))
            | (Event::Lost(more), Some(Event::Lost(count))) => {
                *count = count.saturating_add(*more);
                return Ok(());
            }
            _ => {}
        }
        if self.events.len() >= 2 * EVENTS_MAX {
            return Err(Error::NotTaken("events"));
        }
        self.octets += octets_of(&event);
        self.events.push_back(event);
        Ok(())
    }

    pub(super) fn event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.octets -= octets_of(&event);
        Some(event)
    }

    /// Counts a request, if there may be one more.
    pub(super) fn open(&mut self) -> Result<(), Error> {
        if self.open >= REQUESTS_MAX {
            return Err(Error::NotTaken("answers"));
        }
        self.open += 1;
        Ok(())
    }

    /// Keeps an answer; one to nothing that was asked is a mistake of the node and is not kept.
    pub(super) fn answered(&mut self, tag: u32, status: Status, sent: Sent) {
        if self.answers.len() < self.open {
            self.answers.push_back((tag, status, sent));
        }
    }

    /// The answer to the request with this tag, if it came.
    pub(super) fn answer(&mut self, tag: u32) -> Option<(Status, Sent)> {
        let at = self.answers.iter().position(|(t, ..)| *t == tag)?;
        let (_, status, sent) = self.answers.remove(at)?;
        self.open -= 1;
        Some((status, sent))
    }

    /// The oldest answer, with the tag of its request.
    pub(super) fn oldest_answer(&mut self) -> Option<(u32, Status)> {
        let (tag, status, _) = self.answers.pop_front()?;
        self.open -= 1;
        Some((tag, status))
    }
}

fn octets_of(event: &Event) -> usize {
    if let Event::Data { payload, .. } = event { payload.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_frame::Buf;
    use onym_wire::push::Id;

    fn data(octets: usize) -> Event {
        Event::Data { id: Id::default(), payload: Buf::copy_from(&vec![7; octets]), came_by: None }
    }

    fn start() -> Event {
        Event::StartPublish(Id::default())
    }

    #[test]
    fn publications_beyond_the_limit_are_told_in_their_place() {
        let mut inbox = Inbox::default();
        for _ in 0..EVENTS_MAX + 10 {
            inbox.add(data(1)).unwrap();
        }
        inbox.add(start()).unwrap();
        inbox.add(data(1)).unwrap();
        for _ in 0..EVENTS_MAX {
            assert_eq!(inbox.event(), Some(data(1)));
        }
        let rest: Vec<Event> = std::iter::from_fn(|| inbox.event()).collect();
        assert_eq!(rest, [Event::Missed(10), start(), Event::Missed(1)]);
        assert_eq!(inbox.octets, 0);
        inbox.add(data(1)).unwrap();
        assert_eq!(inbox.event(), Some(data(1)), "there is room again");
    }

    #[test]
    fn long_publications_fill_it_by_their_octets_and_one_waits_alone_however_long() {
        let mut inbox = Inbox::default();
        inbox.add(data(OCTETS_MAX + 1)).unwrap();
        inbox.add(data(1)).unwrap();
        assert!(matches!(inbox.event(), Some(Event::Data { .. })));
        assert_eq!(inbox.event(), Some(Event::Missed(1)));
        inbox.add(data(OCTETS_MAX - 1)).unwrap();
        inbox.add(data(1)).unwrap();
        inbox.add(data(1)).unwrap();
        let kept = std::iter::from_fn(|| inbox.event()).map(|event| octets_of(&event));
        assert_eq!(kept.collect::<Vec<_>>(), [OCTETS_MAX - 1, 1, 0]);
    }

    #[test]
    fn what_cannot_be_missed_and_is_never_taken_is_an_error() {
        let mut inbox = Inbox::default();
        for _ in 0..2 * EVENTS_MAX {
            inbox.add(start()).unwrap();
        }
        assert!(matches!(inbox.add(start()), Err(Error::NotTaken("events"))));
        assert!(inbox.add(data(1)).is_err());
        inbox.event();
        inbox.add(start()).unwrap();
    }

    #[test]
    fn so_many_requests_may_be_open_and_answers_to_nothing_are_not_kept() {
        let mut inbox = Inbox::default();
        inbox.answered(1, Status::OK, Sent::default());
        assert_eq!(inbox.oldest_answer(), None);
        for _ in 0..REQUESTS_MAX {
            inbox.open().unwrap();
        }
        assert!(matches!(inbox.open(), Err(Error::NotTaken("answers"))));
        inbox.answered(5, Status::OK, Sent::default());
        inbox.answered(6, Status::UNKNOWN, Sent::default());
        assert_eq!(inbox.answer(6), Some((Status::UNKNOWN, Sent::default())));
        assert_eq!(inbox.answer(6), None);
        inbox.open().unwrap();
        assert!(inbox.open().is_err());
        assert_eq!(inbox.oldest_answer(), Some((5, Status::OK)));
        inbox.open().unwrap();
    }
}
