//! What a subscriber hears of publications with numbers: in order, or told as missed in their place.

use onym_pubsub::Event;
use std::collections::BTreeSet;

/// What a subscriber got.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// What is to come next, from the first publication on.
    pub(crate) next: Option<u32>,
    pub(crate) got: u32,
    pub(crate) missed: u64,
    /// Those that were told as missed.
    gone: BTreeSet<u32>,
}

impl Heard {
    /// Takes the next event: a publication begins with its number.
    pub(crate) fn take(&mut self, event: &Event, what: &str) {
        match event {
            Event::Missed(count) | Event::NoRoom(count) => {
                self.missed += count;
                let count = u32::try_from(*count).expect("few are missed");
                self.gone.extend(self.next.iter().flat_map(|next| *next..next + count));
                self.next = self.next.map(|next| next + count);
            }
            Event::Data { payload, .. } => {
                let (number, _) = payload.split_first_chunk().expect("it has a number");
                let number = u32::from_be_bytes(*number);
                let next = self.next.unwrap_or(number);
                self.got += 1;
                // Repaired for somebody else, who missed less of it (P-59).
                if self.gone.remove(&number) {
                    return;
                }
                assert_eq!(number, next, "{what}: out of order, or a loss was not told");
                self.next = Some(number + 1);
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}
