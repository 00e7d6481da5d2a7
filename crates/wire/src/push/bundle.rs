//! Several control messages of one sender in one payload (P-46).

use super::control::{Control, FIXED, Kind};
use super::{Label, VERSION, field};
use crate::tlv::{self, Malformed, Reader};

/// Control messages on their way to the same part; one alone travels as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    /// Room for the fixed part, then the messages as fields.
    octets: Vec<u8>,
    /// Where the first message begins.
    first: usize,
    count: usize,
}

impl Bundle {
    /// Adds a written message, without a MAC.
    pub fn push(&mut self, message: &[u8]) {
        if self.count == 0 {
            self.octets.resize(FIXED, 0);
        }
        tlv::put_head(&mut self.octets, field::BODY, message.len());
        if self.count == 0 {
            self.first = self.octets.len();
        }
        self.octets.extend_from_slice(message);
        self.count += 1;
    }

    /// Octets of the payload, at most.
    #[must_use]
    pub fn len(&self) -> usize {
        self.octets.len()
    }

    /// Whether there is no message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The payload, without a MAC: the message itself when there is one only.
    #[must_use]
    pub fn into_payload(self) -> Vec<u8> {
        let Self { mut octets, first, count } = self;
        if count == 1 {
            octets.drain(..first);
            return octets;
        }
        let sender = octets.get(first + 2..first + 10).and_then(|s| s.try_into().ok());
        let mut head = Vec::with_capacity(FIXED);
        Control::new(Kind::BUNDLE, Label(sender.unwrap_or_default())).write(&mut head);
        octets.iter_mut().zip(head).for_each(|(octet, of_head)| *octet = of_head);
        octets
    }

    /// The messages in the payload of a publication under a reserved identifier, each to be
    /// [parsed](Control::parse); the payload itself when it is no bundle.
    pub fn messages(payload: &[u8]) -> impl Iterator<Item = Result<&[u8], Malformed>> {
        let is_bundle = payload.starts_with(&[VERSION, Kind::BUNDLE.0]);
        let alone = (!is_bundle).then_some(Ok(payload));
        let fields = if is_bundle { payload.get(FIXED..).unwrap_or_default() } else { &[] };
        let inner = Reader::new(fields).filter_map(|element| match element {
            Ok(element) if element.typ == field::BODY => Some(Ok(element.value)),
            Ok(element) if element.typ != field::MAC && tlv::is_critical(element.typ) => {
                Some(Err(Malformed::UnknownCritical(element.typ)))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        alone.into_iter().chain(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u64) -> Vec<u8> {
        Control { number, ..Control::new(Kind::ASSERT, Label([3; 8])) }.octets()
    }

    fn numbers(payload: &[u8]) -> Result<Vec<u64>, Malformed> {
        Bundle::messages(payload).map(|m| Ok(Control::parse(m?)?.number)).collect()
    }

    #[test]
    fn messages_come_out_in_the_order_in_which_they_went_in() {
        for count in [1, 2, 17] {
            let mut bundle = Bundle::default();
            (1..=count).for_each(|n| bundle.push(&message(n)));
            let most = bundle.len();
            let mut payload = bundle.into_payload();
            assert!(payload.len() <= most);
            assert_eq!(numbers(&payload).unwrap(), (1..=count).collect::<Vec<_>>());
            Control::put_mac(&mut payload, &[9; 16]);
            assert_eq!(numbers(&payload).unwrap().len() as u64, count, "with a MAC");
        }
    }

    #[test]
    fn one_message_alone_is_no_bundle() {
        let mut bundle = Bundle::default();
        assert!(bundle.is_empty());
        bundle.push(&message(7));
        assert_eq!(bundle.into_payload(), message(7));
    }

    #[test]
    fn a_bundle_is_of_the_sender_of_its_messages() {
        let mut bundle = Bundle::default();
        (1..=2).for_each(|n| bundle.push(&message(n)));
        let parsed = Control::parse(&bundle.into_payload()).unwrap();
        assert_eq!((parsed.kind, parsed.sender), (Kind::BUNDLE, Label([3; 8])));
    }

    #[test]
    fn a_bundle_that_is_cut_ends_in_an_error() {
        let mut bundle = Bundle::default();
        (1..=2).for_each(|n| bundle.push(&message(n)));
        let payload = bundle.into_payload();
        for len in FIXED + 1..payload.len() {
            let all: Vec<_> = Bundle::messages(&payload[..len]).collect();
            assert!(all.len() <= 2, "{len}");
            let is_whole = len == FIXED + (payload.len() - FIXED) / 2;
            assert_eq!(all.iter().any(Result::is_err), !is_whole, "{len}");
        }
    }
}
