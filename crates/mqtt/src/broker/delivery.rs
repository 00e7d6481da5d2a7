//! What a client is to acknowledge: the identifiers in use, and the messages that wait for one.

use crate::packet::Message;
use std::collections::{BTreeMap, VecDeque};

/// Most identifiers in use.
const WINDOW_MAX: u16 = 64;

#[derive(Debug, Default)]
pub(super) struct Delivery {
    window: usize,
    /// The identifier that was used last.
    last: u16,
    /// Octets of the message of each identifier in use.
    sent: BTreeMap<u16, usize>,
    waiting: VecDeque<Message>,
    /// Of what was sent and of what waits.
    octets: usize,
}

impl Delivery {
    /// For a client that takes so many unacknowledged messages.
    pub(super) fn new(receive_max: u16) -> Self {
        Self { window: usize::from(receive_max.min(WINDOW_MAX)), ..Self::default() }
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

    /// The next message that may leave, and its identifier.
    pub(super) fn pop(&mut self) -> Option<(u16, Message)> {
        if self.sent.len() >= self.window {
            return None;
        }
        let message = self.waiting.pop_front()?;
        // There are far more identifiers than may be in use.
        self.last = following(self.last);
        while self.sent.contains_key(&self.last) {
            self.last = following(self.last);
        }
        self.sent.insert(self.last, octets(&message));
        Some((self.last, message))
    }

    /// An identifier is no longer in use, if it was.
    pub(super) fn acknowledged(&mut self, number: u16) {
        self.octets -= self.sent.remove(&number).unwrap_or(0);
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

    #[test]
    fn an_identifier_is_never_one_in_use_and_never_nothing() {
        let message = || Message { topic: "a".into(), payload: Vec::new(), retain: false };
        let mut all = Delivery::new(2);
        assert!(all.push(message(), 0));
        let (held, _) = all.pop().unwrap();
        for _ in 0..=2 * u32::from(u16::MAX) {
            assert!(all.push(message(), usize::MAX));
            let (number, _) = all.pop().unwrap();
            assert!(number != held && number != 0 && all.pop().is_none());
            all.acknowledged(number);
        }
        all.acknowledged(held);
        assert_eq!((all.unacknowledged(), all.octets), (0, 0));
    }
}
