use super::*;
use proptest::prelude::*;

#[test]
fn only_the_shortest_form_of_a_number_is_read() {
    assert_eq!(Element::parse(&[0xFD, 0, 0xFC, 0]), Err(Malformed::LongNumber));
    assert_eq!(Element::parse(&[8, 0xFD, 0, 1, 0]), Err(Malformed::LongNumber));
    assert_eq!(Element::parse(&[0xFE, 0, 0, 0xFF, 0xFF, 0]), Err(Malformed::LongNumber));
    assert_eq!(Element::parse(&[0xFF, 0, 0, 0, 1, 0, 0, 0, 0, 0]), Err(Malformed::TypeRange));
    assert_eq!(Element::parse(&[0, 0]), Err(Malformed::TypeRange));
    assert_eq!(Element::parse(&[8, 2, 1]), Err(Malformed::Truncated));
    assert_eq!(Element::parse(&[8, 0, 1]), Err(Malformed::Trailing));
    let element = Element::parse(&[0xFD, 0, 0xFD, 1, 7]).unwrap();
    assert_eq!((element.typ, element.value), (253, &[7][..]));
}

#[test]
fn a_frame_longer_than_a_packet_is_refused_as_soon_as_its_length_is_known() {
    assert_eq!(frame_len(&[]), Ok(None));
    assert_eq!(frame_len(&[6]), Ok(None));
    assert_eq!(frame_len(&[6, 0xFD, 0x22]), Ok(None));
    assert_eq!(frame_len(&[6, 0xFD, 0x22, 0x5C]), Ok(Some(8800)));
    assert_eq!(frame_len(&[6, 0xFD, 0x22, 0x5D]), Err(Malformed::TooLong));
    assert_eq!(
        frame_len(&[6, 0xFF, 255, 255, 255, 255, 255, 255, 255, 255]),
        Err(Malformed::TooLong)
    );
    assert_eq!(frame_len(&[0]), Err(Malformed::TypeRange));
    assert_eq!(frame_len(&[0, 1]), Err(Malformed::TypeRange));
}

#[test]
fn criticality_follows_the_parity_above_31() {
    assert!(is_critical(1) && is_critical(30) && is_critical(33) && is_critical(253));
    assert!(!is_critical(32) && !is_critical(36) && !is_critical(256));
}

proptest! {
    #[test]
    fn an_element_written_is_read_back(typ in 1u32.., value: Vec<u8>) {
        let mut out = vec![9];
        put_tlv(&mut out, typ, &value);
        prop_assert_eq!(out.len() - 1, tlv_len(typ, value.len()));
        let element = Element::parse(&out[1..]).unwrap();
        prop_assert_eq!((element.typ, element.value, element.wire), (typ, &value[..], &out[1..]));
    }

    #[test]
    fn nested_writing_equals_writing_with_known_length(
        typ in 1u32.., len in prop_oneof![0usize..600, 65_500usize..65_600], guess in 0usize..70_000,
    ) {
        let body = vec![0xAB; len];
        let mut plain = vec![1, 2];
        put_tlv(&mut plain, typ, &body);
        let mut nested = vec![1, 2];
        put_nested_sized(&mut nested, typ, guess, |out| out.extend_from_slice(&body));
        prop_assert_eq!(plain, nested);
    }

    #[test]
    fn a_number_written_is_read_back(n: u64) {
        let mut out = Vec::new();
        put_nni_tlv(&mut out, 8, n);
        prop_assert_eq!(out.len(), nni_tlv_len(8, n));
        prop_assert_eq!(Element::parse(&out).unwrap().nni(), Ok(n));
    }

    #[test]
    fn arbitrary_bytes_end_in_elements_or_an_error(bytes: Vec<u8>) {
        let mut total = 0;
        for element in Reader::new(&bytes) {
            let Ok(element) = element else { return Ok(()) };
            total += element.wire.len();
        }
        prop_assert_eq!(total, bytes.len());
    }

    #[test]
    fn the_length_of_a_frame_is_that_of_its_element(bytes: Vec<u8>) {
        if let Ok((element, _)) = Element::split(&bytes) {
            prop_assert_eq!(frame_len_within(&bytes, usize::MAX), Ok(Some(element.wire.len())));
        }
    }
}

#[test]
fn where_the_first_element_begins_follows_from_the_lengths() {
    for value_len in (0..600).chain([1000, 8000]) {
        for more in [0, 1, 100, 252, 253, 300] {
            let mut inner = Vec::new();
            put_tlv(&mut inner, 7, &vec![1; value_len]);
            inner.extend(std::iter::repeat_n(9, more));
            let mut packet = Vec::new();
            put_tlv(&mut packet, 5, &inner);
            let outer = Head::at(&packet, 0).unwrap();
            let first = Head::at(&packet, outer.value).unwrap();
            let at = first_value_at(packet.len(), value_len);
            assert_eq!(at, first.value, "{value_len} of {}", packet.len());
        }
    }
}
