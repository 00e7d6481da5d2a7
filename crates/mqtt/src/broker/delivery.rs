//! What a client is to acknowledge: the identifiers in use, and the messages that wait for one.

use crate::packet::{Delivered, Message};
use std::collections::VecDeque;

/// Most identifiers in use.
const WINDOW_MAX: u16 = 64;

#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// How many may be unacknowledged in this connection.
    window: usize,
    /// The identifier that was used last.
    last: u16,
    /// What has an identifier, in the order in which it left first.
    sent: VecDeque<(u16, Message)>,
    /// How many of these left in this connection, the first ones; the others leave before what waits.
    left: usize,
    waiting: VecDeque<Message>,
    /// Of what was sent and of what waits.
    octets: usize,
}

impl Delivery {
    /// A connection is there, of a client that takes so many unacknowledged messages. What does not fit
    /// it is dropped; how many.
    pub(super) fn resume(&mut self, receive_max: u16, fits: impl Fn(&Message) -> bool) -> u64 {
        (self.window, self.left) = (usize::from(receive_max.min(WINDOW_MAX)), 0);
        let before = self.unacknowledged();
        self.sent.retain(|(_, message)| fits(message));
        self.waiting.retain(fits);
        self.octets = self.sent.iter().map(|(_, message)| octets(message)).sum::<usize>()
            + self.waiting.iter().map(octets).sum::<usize>();
        before - self.unacknowledged()
    }

    /// There is no connection. The newest make room where more than `most` octets are unacknowledged;
    /// how many.
    pub(super) fn pause(&mut self, most: usize) -> u64 {
        (self.window, self.left) = (0, 0);
        let before = self.unacknowledged();
        while self.octets > most {
            let newest = self.waiting.pop_back();
            let Some(newest) = newest.or_else(|| Some(self.sent.pop_back()?.1)) else { break };
            self.octets -= octets(&newest);
        }
        before - self.unacknowledged()
    }

    /// Whether a message waits from now on; it does not when more octets than `most` are unacknowledged.
    pub(super) fn push(&mut self, message: Message, most: usize) -> bool {
        let is_taken = self.octets <= most;
        if is_taken {
            self.octets += octets(&message);
            self.waiting.push_back(message);
        }
        is_taken
    }

    /// The next message that may leave, and how.
    pub(super) fn pop(&mut self) -> Option<(Delivered, Message)> {
        if self.left >= self.window {
            return None;
        }
        let next = match self.sent.get(self.left) {
            Some((number, message)) => (Delivered::Again(*number), message.clone()),
            None => {
                let message = self.waiting.pop_front()?;
                // There are far more identifiers than may be in use.
                self.last = following(self.last);
                while self.sent.iter().any(|(number, _)| *number == self.last) {
                    self.last = following(self.last);
                }
                self.sent.push_back((self.last, message.clone()));
                (Delivered::Least(self.last), message)
            }
        };
        self.left += 1;
        Some(next)
    }

    /// An identifier is no longer in use, if it was.
    pub(super) fn acknowledged(&mut self, number: u16) {
        let Some(at) = self.sent.iter().position(|(of, _)| *of == number) else { return };
        let Some((_, message)) = self.sent.remove(at) else { return };
        self.octets -= octets(&message);
        self.left -= usize::from(at < self.left);
    }

    /// Messages that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> u64 {
        (self.sent.len() + self.waiting.len()) as u64
    }
}

/// What a message counts for: an empty one takes room, too.
fn octets(message: &Message) -> usize {
    size_of::<Message>() + message.topic.len() + message.payload.len()
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

    #[test]
    fn an_identifier_is_never_one_in_use_and_never_nothing() {
        let mut all = Delivery::default();
        assert!(all.resume(2, |_| true) == 0 && all.push(message(0), 0));
        let number = |of| match of {
            (Delivered::Least(number), _) => number,
            other => panic!("{other:?}"),
        };
        let held = number(all.pop().unwrap());
        for _ in 0..=2 * u32::from(u16::MAX) {
            assert!(all.push(message(0), usize::MAX));
            let number = number(all.pop().unwrap());
            assert!(number != held && number != 0 && all.pop().is_none());
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
        (1..=5).for_each(|len| assert!(all.push(message(len), usize::MAX)));
        let least = |of: [(u16, usize); 3]| of.map(|(number, len)| (Delivered::Least(number), len));
        assert_eq!(leaves(&mut all), least([(1, 1), (2, 2), (3, 3)]));
        all.acknowledged(2);
        assert_eq!(leaves(&mut all), [(Delivered::Least(4), 4)]);
        assert_eq!(all.pause(usize::MAX), 0);
        assert!(leaves(&mut all).is_empty());
        all.resume(2, |_| true);
        assert_eq!(leaves(&mut all), [(Delivered::Again(1), 1), (Delivered::Again(3), 3)]);
        // What has not left again may be acknowledged even so: it was there before.
        all.acknowledged(4);
        assert!(leaves(&mut all).is_empty());
        all.acknowledged(1);
        assert_eq!(leaves(&mut all), [(Delivered::Least(5), 5)]);
        // A client that takes less than before.
        all.pause(usize::MAX);
        assert_eq!(all.resume(9, |message| message.payload.len() < 5), 1);
        assert_eq!(leaves(&mut all), [(Delivered::Again(3), 3)]);
        all.acknowledged(3);
        assert_eq!((all.unacknowledged(), all.octets), (0, 0));
    }

    #[test]
    fn the_newest_make_room_when_there_is_no_connection() {
        let mut all = Delivery::default();
        all.resume(2, |_| true);
        (1..=5).for_each(|len| assert!(all.push(message(len), usize::MAX)));
        assert_eq!(leaves(&mut all).len(), 2);
        let most = 3 * octets(&message(0)) + 1 + 2 + 3;
        assert_eq!(all.pause(most), 2);
        assert_eq!(all.octets, most);
        assert_eq!(all.pause(octets(&message(1))), 2);
        all.resume(2, |_| true);
        assert_eq!(leaves(&mut all), [(Delivered::Again(1), 1)]);
        assert_eq!((all.pause(0), all.octets), (1, 0));
    }
}
