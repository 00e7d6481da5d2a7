//! What tokens have as octets, and packets in DER.

/// The curve's name: CKA_EC_PARAMS.
pub(crate) const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// What stands in front of a point in a SubjectPublicKeyInfo.
const SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Octets of an uncompressed point, and of a number.
const POINT: usize = 65;
const NUMBER: usize = 32;

/// The SubjectPublicKeyInfo of CKA_EC_POINT: an OCTET STRING of a point, or, by some tokens, the
/// point alone.
pub(crate) fn spki(point: &[u8]) -> Option<Vec<u8>> {
    let point = match point {
        [4, 65, rest @ ..] if rest.len() == POINT => rest,
        bare => bare,
    };
    (point.len() == POINT && point.first() == Some(&4)).then(|| [&SPKI[..], point].concat())
}

/// The two numbers of an ECDSA signature as DER.
pub(crate) fn signature(raw: &[u8]) -> Option<Vec<u8>> {
    if raw.len() != 2 * NUMBER {
        return None;
    }
    let (r, s) = raw.split_at(NUMBER);
    let mut body = Vec::with_capacity(72);
    for number in [r, s] {
        let zeros = number.iter().take_while(|octet| **octet == 0).count();
        let short = number.get(zeros.min(NUMBER - 1)..)?;
        // A first bit would mean a negative number.
        let sign = usize::from(short.first().is_some_and(|octet| *octet >= 0x80));
        body.extend([2, u8::try_from(short.len() + sign).ok()?]);
        body.extend(std::iter::repeat_n(0, sign));
        body.extend_from_slice(short);
    }
    Some([&[0x30, u8::try_from(body.len()).ok()?][..], &body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_short_and_positive() {
        let mut raw = [0; 64];
        (raw[31], raw[32], raw[63]) = (1, 0x80, 9);
        let der = signature(&raw).unwrap();
        assert_eq!(der[..7], [0x30, 38, 2, 1, 1, 2, 33]);
        assert_eq!((der[7], der[8], der[39]), (0, 0x80, 9));
        assert_eq!(signature(&[0; 64]).unwrap(), [0x30, 6, 2, 1, 0, 2, 1, 0]);
        assert!(signature(&raw[1..]).is_none());
    }

    #[test]
    fn points_are_taken_in_both_forms_and_others_refused() {
        let mut bare = vec![4; 65];
        let wrapped = [&[4, 65][..], &bare].concat();
        assert_eq!(spki(&bare), spki(&wrapped));
        assert_eq!(spki(&bare).unwrap().len(), 91);
        bare[0] = 2;
        assert!(spki(&bare).is_none() && spki(&bare[..33]).is_none() && spki(&[]).is_none());
    }
}
