//! Header fields by which two ends of a face find the longest frame that passes between them
//! (spec/registry.md). Others ignore them.

use crate::tlv::{self, Element, Reader};
use crate::types;

const NONCE_LEN: usize = 8;
/// Octets of an answer: nonce, length.
const ANSWER_LEN: usize = NONCE_LEN + 2;
/// Octets before the value of a probe that is long, and of one that is short.
const LONG_HEAD: usize = 4 + 3 + 3;
const SHORT_HEAD: usize = 2 + 3 + 1;
/// From this length on a probe has long heads.
const LONG_FROM: usize = 300;

/// What a frame without a packet says of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathField {
    /// Asks whether a frame of this length arrives.
    Probe {
        /// Comes back in the answer.
        nonce: u64,
    },
    /// Says that one did.
    Answer {
        /// That of the probe.
        nonce: u64,
        /// Octets of the whole frame that arrived.
        len: u16,
    },
}

impl PathField {
    /// The field of a frame that [`super::LpPacket::parse`] has checked; `None` when there is none, or
    /// none that can be used.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let outer = Element::parse_as(frame, types::LP_PACKET).ok()?;
        let fields = Reader::new(outer.value).map_while(Result::ok);
        let of_path = |typ| matches!(typ, types::LP_PATH_PROBE | types::LP_PATH_ANSWER);
        let Element { typ, value, .. } = fields.into_iter().find(|field| of_path(field.typ))?;
        let (nonce, rest) = value.split_first_chunk::<NONCE_LEN>()?;
        let nonce = u64::from_be_bytes(*nonce);
        if typ == types::LP_PATH_PROBE {
            return Some(Self::Probe { nonce });
        }
        Some(Self::Answer { nonce, len: u16::from_be_bytes(rest.try_into().ok()?) })
    }

    /// Appends a frame of `len` octets, 64 to 8800, that asks whether such a one arrives.
    pub fn put_probe(out: &mut Vec<u8>, nonce: u64, len: usize) {
        let head = if len < LONG_FROM { SHORT_HEAD } else { LONG_HEAD };
        let value_len = len.saturating_sub(head).max(NONCE_LEN);
        let end = out.len() + len;
        tlv::put_head(out, types::LP_PACKET, tlv::tlv_len(types::LP_PATH_PROBE, value_len));
        tlv::put_head(out, types::LP_PATH_PROBE, value_len);
        out.extend_from_slice(&nonce.to_be_bytes());
        out.resize(end.max(out.len()), 0);
    }

    /// Appends the frame that answers a probe of `len` octets.
    pub fn put_answer(out: &mut Vec<u8>, nonce: u64, len: u16) {
        tlv::put_head(out, types::LP_PACKET, tlv::tlv_len(types::LP_PATH_ANSWER, ANSWER_LEN));
        tlv::put_head(out, types::LP_PATH_ANSWER, ANSWER_LEN);
        out.extend_from_slice(&nonce.to_be_bytes());
        out.extend_from_slice(&len.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lp::LpPacket;

    #[test]
    fn a_probe_is_as_long_as_it_asks_and_says_nothing_else() {
        for len in [64, 200, 1232, 1472, 8800] {
            let mut out = Vec::new();
            PathField::put_probe(&mut out, 0x1234_5678_9abc_def0, len);
            assert_eq!(out.len(), len);
            assert_eq!(LpPacket::parse(&out).unwrap().fragment, None);
            let probe = PathField::Probe { nonce: 0x1234_5678_9abc_def0 };
            assert_eq!(PathField::parse(&out), Some(probe));
        }
        let mut out = Vec::new();
        PathField::put_answer(&mut out, 7, 1472);
        assert_eq!(LpPacket::parse(&out).unwrap().fragment, None);
        assert_eq!(PathField::parse(&out), Some(PathField::Answer { nonce: 7, len: 1472 }));
    }

    #[test]
    fn fields_that_are_cut_say_nothing() {
        let frame = |typ: u32, value: &[u8]| {
            let mut field = Vec::new();
            tlv::put_tlv(&mut field, typ, value);
            let mut out = Vec::new();
            tlv::put_tlv(&mut out, types::LP_PACKET, &field);
            out
        };
        for (typ, len) in [
            (types::LP_PATH_PROBE, 7),
            (types::LP_PATH_ANSWER, 8),
            (types::LP_PATH_ANSWER, 9),
            (types::LP_PATH_ANSWER, 11),
            (types::LP_ACK, 8),
        ] {
            assert_eq!(PathField::parse(&frame(typ, &vec![1; len])), None, "{typ} {len}");
        }
        assert_eq!(PathField::parse(&[100, 0]), None);
        assert_eq!(PathField::parse(&[]), None);
    }
}
