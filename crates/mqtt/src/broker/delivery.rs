//! What a client is to acknowledge: the identifiers in use, and the messages that wait for one.

use crate::packet::{Delivered, Level, Message, Quality};
use std::collections::VecDeque;

/// Most identifiers in use.
const WINDOW_MAX: u16 = 64;

/// A message that is to be acknowledged.
#[derive(Debug, Clone)]
struct Sure {
    message: Message,
    /// In two steps, so that it comes exactly once.
    is_once: bool,
}

impl Sure {
    fn quality(&self, number: u16) -> Quality {
        if self.is_once { Quality::Exactly(number) } else { Quality::Least(number) }
    }

    /// What it counts for: an empty one takes room, too.
    fn octets(&self) -> usize {
        size_of::<Message>() + self.message.topic.len() + self.message.payload.len()
    }
}

#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// How many identifiers may be in use in this connection.
    window: usize,
    /// The identifier that was used last.
    last: u16,
    /// What has an identifier and was not acknowledged, in the order in which it left first.
    sent: VecDeque<(u16, Sure)>,
    /// How many of these left in this connection, the first ones; the others leave before what waits.
    left: usize,
    /// Identifiers of what comes no more, in that order, until the client lets go of them.
    released: VecDeque<u16>,
    waiting: VecDeque<Sure>,
    /// Of what was sent and of what waits.
    octets: usize,
}

impl Delivery {
    /// A connection is there, of a client that takes so many unacknowledged messages. What does not fit
    /// it is dropped; how many.
    pub(super) fn resume(&mut self, receive_max: u16, fits: impl Fn(&Message) -> bool) -> u64 {
        (self.window, self.left) = (usize::from(receive_max.min(WINDOW_MAX)), 0);
        let before = self.unacknowledged();
        for (number, sure) in std::mem::take(&mut self.sent) {
            match fits(&sure.message) {
                true => self.sent.push_back((number, sure)),
                false => self.give_up(number, &sure),
            }
        }
        self.waiting.retain(|sure| fits(&sure.message));
        let sent = self.sent.iter().map(|(_, sure)| sure);
        self.octets = sent.chain(&self.waiting).map(Sure::octets).sum();
        before - self.unacknowledged()
    }

    /// There is no connection. The newest make room where more than `most` octets are unacknowledged;
    /// how many.
    pub(super) fn pause(&mut self, most: usize) -> u64 {
        (self.window, self.left) = (0, 0);
        let before = self.unacknowledged();
        while self.octets > most {
            let newest = self.waiting.pop_back().or_else(|| {
                let (number, newest) = self.sent.pop_back()?;
                self.give_up(number, &newest);
                Some(newest)
            });
            let Some(newest) = newest else { break };
            self.octets -= newest.octets();
        }
        before - self.unacknowledged()
    }

    /// A message that left is sent no more. A client that is to get it once may have it, and would take
    /// the next one of this identifier for the same.
    fn give_up(&mut self, number: u16, sure: &Sure) {
        if sure.is_once {
            self.released.push_back(number);
        }
    }

    /// Whether a message waits from now on; it does not when more octets than `most` are unacknowledged.
    pub(super) fn push(&mut self, message: Message, level: Level, most: usize) -> bool {
        let is_taken = self.octets <= most;
        if is_taken {
            let sure = Sure { message, is_once: level == Level::Exactly };
            self.octets += sure.octets();
            self.waiting.push_back(sure);
        }
        is_taken
    }

    /// The next message that may leave, and how.
    pub(super) fn pop(&mut self) -> Option<(Delivered, Message)> {
        if self.left + self.released.len() >= self.window {
            return None;
        }
        let next = match self.sent.get(self.left) {
            Some((number, sure)) => (Delivered::Again(sure.quality(*number)), sure.message.clone()),
            None => {
                let sure = self.waiting.pop_front()?;
                // There are far more identifiers than may be in use.
                self.last = following(self.last);
                while self.is_used(self.last) {
                    self.last = following(self.last);
                }
                let next = (Delivered::First(sure.quality(self.last)), sure.message.clone());
                self.sent.push_back((self.last, sure));
                next
            }
        };
        self.left += 1;
        Some(next)
    }

    fn is_used(&self, number: u16) -> bool {
        self.sent.iter().any(|(of, _)| *of == number) || self.released.contains(&number)
    }

    /// The client has a message that is to come at least once.
    pub(super) fn acknowledged(&mut self, number: u16) {
        self.remove(number, false);
    }

    /// The client has a message that is to come exactly once: it comes no more. Whether there is one, or
    /// was.
    pub(super) fn received(&mut self, number: u16) -> bool {
        if self.remove(number, true) {
            self.released.push_back(number);
        }
        self.released.contains(&number)
    }

    /// The client does not take a message that is to come exactly once.
    pub(super) fn declined(&mut self, number: u16) {
        self.remove(number, true);
        self.completed(number);
    }

    /// The client let go of the identifier of what comes no more.
    pub(super) fn completed(&mut self, number: u16) {
        self.released.retain(|of| *of != number);
    }

    /// Identifiers of what comes no more, in order.
    pub(super) fn released(&self) -> impl Iterator<Item = u16> {
        self.released.iter().copied()
    }

    /// A message that left is the client's; whether there was such a one.
    fn remove(&mut self, number: u16, is_once: bool) -> bool {
        let is_it = |(of, sure): &(u16, Sure)| *of == number && sure.is_once == is_once;
        let Some(at) = self.sent.iter().position(is_it) else { return false };
        let Some((_, sure)) = self.sent.remove(at) else { return false };
        self.octets -= sure.octets();
        self.left -= usize::from(at < self.left);
        true
    }

    /// Messages that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        (self.sent.len() + self.waiting.len()) as u64
    }
}

/// The identifier after another; 0 is none.
const fn following(number: u16) -> u16 {
    match number.checked_add(1) {
        Some(next) => next,
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: usize) -> Message {
        Message { topic: "a".into(), payload: vec![0; len].into(), retain: false }
    }

    /// A message of so many octets, to come at least once.
    fn push(all: &mut Delivery, len: usize) -> bool {
        all.push(message(len), Level::Least, usize::MAX)
    }

    #[test]
    fn an_identifier_is_never_one_in_use_and_never_nothing() {
        let mut all = Delivery::default();
        assert_eq!(all.resume(3, |_| true), 0);
        let number = |of| match of {
            (Delivered::First(Quality::Least(number) | Quality::Exactly(number)), _) => number,
            other => panic!("{other:?}"),
        };
        assert!(push(&mut all, 0) && all.push(message(0), Level::Exactly, usize::MAX));
        let held = number(all.pop().unwrap());
        let released = number(all.pop().unwrap());
        assert!(all.received(released));
        for _ in 0..=2 * u32::from(u16::MAX) {
            assert!(push(&mut all, 0));
            let number = number(all.pop().unwrap());
            assert!(![held, released, 0].contains(&number) && all.pop().is_none());
            all.acknowledged(number);
        }
        all.acknowledged(held);
        assert_eq!((all.unacknowledged(), all.octets), (0, 0));
    }

    /// What leaves in a connection: how, and the octets of each.
    fn leaves(all: &mut Delivery) -> Vec<(Delivered, usize)> {
        std::iter::from_fn(|| all.pop()).map(|(of, message)| (of, message.payload.len())).collect()
    }

    #[test]
    fn what_left_leaves_again_first_and_no_more_than_the_new_window() {
        let mut all = Delivery::default();
        all.resume(3, |_| true);
        (1..=5).for_each(|len| assert!(push(&mut all, len)));
        let least = |of: [(u16, usize); 3]| {
            of.map(|(number, len)| (Delivered::First(Quality::Least(number)), len))
        };
        assert_eq!(leaves(&mut all), least([(1, 1), (2, 2), (3, 3)]));
        all.acknowledged(2);
        assert_eq!(leaves(&mut all), [(Delivered::First(Quality::Least(4)), 4)]);
        assert_eq!(all.pause(usize::MAX), 0);
        assert!(leaves(&mut all).is_empty());
        all.resume(2, |_| true);
        assert_eq!(
            leaves(&mut all),
            [(Delivered::Again(Quality::Least(1)), 1), (Delivered::Again(Quality::Least(3)), 3)]
        );
        // What has not left again may be acknowledged even so: it was there before.
        all.acknowledged(4);
        assert!(leaves(&mut all).is_empty());
        all.acknowledged(1);
        assert_eq!(leaves(&mut all), [(Delivered::First(Quality::Least(5)), 5)]);
        // A client that takes less than before.
        all.pause(usize::MAX);
        assert_eq!(all.resume(9, |message| message.payload.len() < 5), 1);
        assert_eq!(leaves(&mut all), [(Delivered::Again(Quality::Least(3)), 3)]);
        all.acknowledged(3);
        assert_eq!((all.unacknowledged(), all.octets), (0, 0));
    }

    #[test]
    fn the_newest_make_room_when_there_is_no_connection() {
        let mut all = Delivery::default();
        all.resume(2, |_| true);
        (1..=5).for_each(|len| assert!(push(&mut all, len)));
        assert_eq!(leaves(&mut all).len(), 2);
        let empty = size_of::<Message>() + 1;
        let most = 3 * empty + 1 + 2 + 3;
        assert_eq!(all.pause(most), 2);
        assert_eq!(all.octets, most);
        assert_eq!(all.pause(empty + 1), 2);
        all.resume(2, |_| true);
        assert_eq!(leaves(&mut all), [(Delivered::Again(Quality::Least(1)), 1)]);
        assert_eq!((all.pause(0), all.octets), (1, 0));
    }
}
