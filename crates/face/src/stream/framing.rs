//! Cutting a stream of octets into TLVs.

use onym_frame::{Buf, RxFrame};
use onym_wire::tlv::{Malformed, frame_len};

/// Appends the whole TLVs at the start of `bytes` to `out`, sharing the chunk, and returns how many
/// octets they take; the rest is the start of a TLV.
pub(crate) fn cut(bytes: &Buf, out: &mut Vec<RxFrame>) -> Result<usize, Malformed> {
    let mut at = 0;
    while let Some(len) = frame_len(&bytes[at..])? {
        if bytes.len() - at < len {
            break;
        }
        out.push(RxFrame { endpoint: 0, bytes: bytes.slice(at..at + len) });
        at += len;
    }
    Ok(at)
}

/// Whether `bytes` starts with a whole TLV (or with what can never be one).
pub(crate) fn has_whole(bytes: &[u8]) -> Result<bool, Malformed> {
    Ok(frame_len(bytes)?.is_some_and(|len| len <= bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_elements_are_cut_and_the_rest_is_left() {
        let bytes = Buf::copy_from(&[5, 1, 9, 6, 0, 5, 3, 1]);
        let mut out = Vec::new();
        assert_eq!(cut(&bytes, &mut out), Ok(5));
        let frames: Vec<&[u8]> = out.iter().map(|f| &*f.bytes).collect();
        assert_eq!(frames, [&[5, 1, 9][..], &[6, 0]]);
        assert_eq!(has_whole(&bytes[5..]), Ok(false));
        assert_eq!(has_whole(&bytes[3..]), Ok(true));
    }

    #[test]
    fn an_element_longer_than_a_packet_may_be_is_refused_at_its_header() {
        assert_eq!(has_whole(&[6, 0xFD, 0x22, 0x61]), Err(Malformed::TooLong));
    }
}
