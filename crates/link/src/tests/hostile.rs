//! Bounds hold whatever a neighbour sends.

use super::*;

/// A small deterministic generator: the seed is printed by what asserts.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn fragment(sequence: u64, index: u64, count: u64, len: usize) -> Vec<u8> {
    let header = onym_wire::LpHeader {
        sequence: Some(sequence),
        fragment: Some((index, count)),
        ..onym_wire::LpHeader::default()
    };
    let mut wire = Vec::new();
    header.write(&mut wire, len);
    wire.resize(wire.len() + len, 6);
    wire
}

#[test]
fn reassembly_stays_within_its_bounds_and_loses_no_frame_from_its_count() {
    let seed = 0x5eed;
    let mut state = seed;
    let limits = ReassemblyLimits {
        messages_max: 16,
        octets_max: 20_000,
        timeout: Duration::from_millis(500),
    };
    let config = LinkConfig { reassembly_limits: limits, ..LinkConfig::datagram(1400) };
    let mut link = Link::new(config);
    let mut queue = TxQueue::new(1 << 16);
    let (mut received, mut consumed) = (0, 0);
    for step in 0..20_000_u64 {
        let now = Tick::from_ms(step / 4);
        let count = 1 + next(&mut state) % 6;
        let index = next(&mut state) % (count + u64::from(step % 50 == 0));
        let id = 8 * (step / 20 + next(&mut state) % 3);
        let len = 1 + usize::try_from(next(&mut state) % 4000).unwrap();
        let frame = fragment(id.wrapping_add(index), index, count, len);
        received += 1;
        if let Received::Packet(_) = receive_at(&mut link, now, id / 8 % 4, &frame) {
            consumed += count - 1;
        }
        if next(&mut state).is_multiple_of(100) {
            link.handle_timeout(now, &mut queue);
        }
        assert!(link.reassembler.len() <= 16, "seed {seed:#x} step {step}");
        assert!(link.reassembler.charge() <= 20_000, "seed {seed:#x} step {step}");
    }
    let counters = link.counters();
    assert_eq!(counters.verdicts.iter().sum::<u64>(), received);
    let held = counters.of(FrameVerdict::FragmentHeld);
    let lost = counters.frag_timeout + counters.frag_evicted;
    assert_eq!(held, consumed + lost + link.reassembler.frames(), "seed {seed:#x}");
    assert!(lost > 100 && consumed > 100, "{counters:?} {consumed}: the test meets its cases");
}

#[test]
fn a_neighbour_that_sends_halves_of_packets_does_not_keep_others_from_reassembly() {
    let mut link = Link::new(LinkConfig::datagram(1400));
    let mut tx = Link::new(LinkConfig::datagram(1400));
    let mut delivered = 0;
    for step in 0..200_u64 {
        let pieces = sent(&mut tx, PacketKind::Data, &data(2000, 1), LpOut::default());
        let now = Tick::from_ms(step);
        receive_at(&mut link, now, 1, &pieces[0]);
        for flood in 0..500 {
            let wire = fragment((step * 500 + flood) * 10, 0, 2, 1300);
            receive_at(&mut link, now, 666, &wire);
        }
        if let Received::Packet(_) = receive_at(&mut link, now, 1, &pieces[1]) {
            delivered += 1;
        }
    }
    assert_eq!(delivered, 200);
}

#[test]
fn a_fragment_count_that_changes_or_a_whole_above_8800_is_invalid() {
    let mut link = Link::new(LinkConfig::datagram(9000));
    assert!(matches!(receive(&mut link, &fragment(10, 0, 3, 4000)), Received::Held));
    let changed = receive(&mut link, &fragment(11, 1, 2, 4000));
    assert_eq!(dropped(changed), FrameVerdict::FragInvalid);
    assert!(matches!(receive(&mut link, &fragment(12, 2, 3, 4000)), Received::Held));
    let long = receive(&mut link, &fragment(11, 1, 3, 801));
    assert_eq!(dropped(long), FrameVerdict::FragInvalid);
    assert_eq!((link.reassembler.len(), link.counters().frag_evicted), (0, 2));
    let many = receive(&mut link, &fragment(11, 1, 401, 1));
    assert_eq!(dropped(many), FrameVerdict::FragInvalid);
}

#[test]
fn a_fragment_that_cannot_be_held_at_all_is_refused() {
    let reassembly_limits = ReassemblyLimits { octets_max: 1000, ..ReassemblyLimits::default() };
    let mut link = Link::new(LinkConfig { reassembly_limits, ..LinkConfig::datagram(1400) });
    let refused = receive(&mut link, &fragment(10, 0, 2, 900));
    assert_eq!(dropped(refused), FrameVerdict::ReassemblyFull);
}

proptest! {
    #[test]
    fn no_frame_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), lp in any::<bool>()) {
        let config = LinkConfig { reliability: true, local_fields: true, ..LinkConfig::datagram(1400) };
        let mut link = Link::new(config);
        let mut wire = bytes.clone();
        if lp {
            wire.clear();
            onym_wire::tlv::put_tlv(&mut wire, 100, &bytes);
        }
        let _ = receive(&mut link, &wire);
        prop_assert_eq!(link.counters().verdicts.iter().sum::<u64>(), 1);
    }
}
