//! Everything that reads octets from others.

use onym_crypto::SafeBag;
use onym_wire::cert::{CertName, CertTime, PrefixAnnouncement, ValidityPeriod};
use onym_wire::dump::{Hex, Line, Tree};
use onym_wire::interest::{ForwardingHint, Hint, Interest};
use onym_wire::lp::{LpHeader, LpPacket};
use onym_wire::mgmt::{
    Block, ChannelStatus, ControlParameters, ControlResponse, CsInfo, FaceEventNotification,
    FaceQueryFilter, FaceStatus, FibEntry, ForwarderStatus, RibEntry, StrategyChoice, parse_list,
};
use onym_wire::push::app::Message;
use onym_wire::push::{Control, Frame};
use onym_wire::signature::{NameSignature, SignatureInfo};
use onym_wire::tlv::{Element, Reader, frame_len};
use onym_wire::{Data, DataBuilder, FaceUri, InterestBuilder};
use std::fmt::Debug;

/// Gives `input` to every decoder of the wire crate. What one of them accepts is written again and
/// must be read as the same.
///
/// # Panics
/// When a decoder panics, or reads something else than was written.
pub fn decode(input: &[u8]) {
    elements(input);
    if let Ok(packet) = LpPacket::parse(input) {
        link_packet(&packet);
        packet.fragment.into_iter().for_each(network);
    }
    network(input);
    push(input);
    structures(input);
    if let Ok(text) = std::str::from_utf8(input) {
        if let Ok(uri) = text.parse::<FaceUri>() {
            let shown = uri.to_string();
            assert_eq!(shown.parse::<FaceUri>().as_ref(), Ok(&uri), "{shown}");
        }
        let _ = FaceUri::parse_canonical(text);
    }
}

fn elements(input: &[u8]) {
    let mut read = 0;
    for element in Reader::new(input).map_while(Result::ok) {
        assert_eq!(Element::parse(element.wire), Ok(element));
        read += element.wire.len();
    }
    assert!(read <= input.len());
    if let Ok((element, rest)) = Element::split(input) {
        assert_eq!(element.wire.len() + rest.len(), input.len());
        if let Ok(len) = frame_len(input) {
            assert_eq!(len, Some(element.wire.len()));
        }
    }
    let shown = [Tree(input).to_string(), Line(input).to_string(), Hex(input).to_string()];
    assert!(shown.iter().all(|text| text.chars().all(|c| c == '\n' || !c.is_control())));
}

/// Frames, control messages and messages of applications of the push half.
fn push(input: &[u8]) {
    if let Ok(frame) = Frame::parse(input) {
        let _ = Control::parse(frame.payload);
        let _ = frame.ids.count();
    }
    if let Ok(control) = Control::parse(input) {
        let octets = control.octets();
        let again = Control::parse(&octets).expect("law: a message that was written can be read");
        assert_eq!(again.octets(), octets);
    }
    if let Ok(message) = Message::parse(input) {
        let octets = message.octets();
        let again = Message::parse(&octets).expect("law: a message that was written can be read");
        assert_eq!(again.octets(), octets);
        let _ = (message.piece(), message.id(), message.prefix(), message.about());
        let _ = (message.route(), message.text());
    }
}

fn network(wire: &[u8]) {
    if let Ok(interest) = Interest::parse(wire) {
        self::interest(&interest);
    }
    if let Ok(data) = Data::parse(wire) {
        self::data(&data);
    }
}

fn interest(interest: &Interest<'_>) {
    let _ = (interest.signed_ranges(), interest.implicit_digest(), interest.parameters_range());
    let _ = (interest.signature_info(), NameSignature::of(interest.name));
    if let Some(at) = interest.nonce_offset() {
        assert_eq!(interest.wire.get(at..at + 4), interest.nonce.as_ref().map(|n| &n[..]));
    }
    let ways =
        [(None, Hint::Keep), (Some(7), Hint::Keep), (None, Hint::Strip), (Some(9), Hint::Strip)];
    for (hop_limit, hint) in ways {
        let mut out = Vec::new();
        interest.write_forwarded(&mut out, [1, 2, 3, 4], hop_limit, hint);
        let sent = Interest::parse(&out).expect("law: what is sent on can be read");
        assert_eq!((sent.name, sent.nonce), (interest.name, Some([1, 2, 3, 4])));
        assert_eq!(sent.hop_limit, hop_limit.or(interest.hop_limit));
        assert_eq!(sent.app_parameters, interest.app_parameters);
        assert_eq!(sent.signed_ranges(), interest.signed_ranges());
        assert_eq!(sent.parameters_digest(), interest.parameters_digest());
        assert_eq!(
            sent.forwarding_hint.is_empty(),
            hint == Hint::Strip || interest.forwarding_hint.is_empty()
        );
    }
    if interest.app_parameters.is_none() {
        let hint: Vec<_> = interest.forwarding_hint.iter().collect();
        let mut out = Vec::new();
        let builder = InterestBuilder {
            name: interest.name,
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
            forwarding_hint: &hint,
            nonce: interest.nonce,
            lifetime_ms: interest.lifetime_ms,
            hop_limit: interest.hop_limit,
        };
        builder.write(&mut out);
        let again = Interest::parse(&out).expect("law: what is built can be read");
        assert_eq!((again.name, again.nonce), (interest.name, interest.nonce));
        assert_eq!(again.lifetime_or_default(), interest.lifetime_or_default());
        assert!(again.forwarding_hint.iter().eq(interest.forwarding_hint.iter()));
    }
}

fn data(data: &Data<'_>) {
    let info = data.signature_info();
    let _ = (data.is_final_block(), CertName::parse(data.name));
    if let Ok(announcement) = PrefixAnnouncement::parse(data) {
        let mut content = Vec::new();
        announcement.write_content(&mut content);
        let _ = announcement.name();
    }
    let app_meta_info: Vec<u8> = data.app_meta_info().flat_map(|e| e.wire.to_vec()).collect();
    let mut out = Vec::new();
    let builder = DataBuilder {
        name: data.name,
        content_type: data.content_type,
        freshness_ms: data.freshness_ms,
        final_block_id: data.final_block_id,
        app_meta_info: &app_meta_info,
        content: data.content,
    };
    builder
        .write(&mut out, &info, |_| Ok::<_, std::convert::Infallible>(data.signature_value))
        .unwrap_or_else(|never| match never {});
    let again = Data::parse(&out).expect("law: what is built can be read");
    assert_eq!((again.name, again.content), (data.name, data.content));
    assert_eq!((again.content_type, again.freshness_ms), (data.content_type, data.freshness_ms));
    assert_eq!((again.final_block_id, again.signature_info()), (data.final_block_id, info));
    assert_eq!(again.signature_value, data.signature_value);
}

fn link_packet(packet: &LpPacket<'_>) {
    let Some(body) = packet.fragment else { return };
    let acks: Vec<u64> = packet.acks().collect();
    let header = LpHeader {
        sequence: packet.sequence,
        fragment: (packet.frag_count != 1 || packet.frag_index != 0)
            .then_some((packet.frag_index, packet.frag_count)),
        pit_token: packet.pit_token.unwrap_or_default(),
        nack: packet.nack,
        incoming_face: packet.incoming_face,
        next_hop_face: packet.next_hop_face,
        no_cache: packet.no_cache,
        congestion_mark: packet.congestion_mark,
        acks: &acks,
        tx_sequence: packet.tx_sequence,
        non_discovery: packet.non_discovery,
        prefix_announcement: packet.prefix_announcement,
        trace_context: packet.trace_context,
        ..LpHeader::default()
    };
    let mut frame = Vec::new();
    header.write(&mut frame, body.len());
    let head = frame.len();
    assert_eq!(head, header.encoded_len(body.len()));
    frame.extend_from_slice(body);
    // Without fields the body goes bare, and only packets do.
    if head > 0 {
        let again = LpPacket::parse(&frame).expect("law: what is written can be read");
        assert!(again.acks().eq(packet.acks()));
        assert_eq!((again.fragment, again.pit_token), (packet.fragment, packet.pit_token));
        assert_eq!((again.nack, again.sequence), (packet.nack, packet.sequence));
        assert_eq!((again.frag_index, again.frag_count), (packet.frag_index, packet.frag_count));
        assert_eq!(again.congestion_mark, packet.congestion_mark);
    }
}

fn structures(input: &[u8]) {
    block::<ControlParameters>(input);
    block::<ControlResponse>(input);
    block::<FaceQueryFilter>(input);
    block::<FaceEventNotification>(input);
    block::<FaceStatus>(input);
    block::<ForwarderStatus>(input);
    block::<CsInfo>(input);
    list::<FaceStatus>(input);
    list::<ChannelStatus>(input);
    list::<FibEntry>(input);
    list::<RibEntry>(input);
    list::<StrategyChoice>(input);
    let _ = ForwardingHint::parse(input);
    if let Ok(info) = SignatureInfo::parse(input) {
        let mut out = Vec::new();
        info.write(&mut out, onym_wire::types::SIGNATURE_INFO);
        let element = Element::parse(&out).expect("law: what is written is an element");
        assert_eq!(SignatureInfo::parse(element.value), Ok(info));
    }
    if let Ok(period) = ValidityPeriod::parse(input) {
        let _ = period.contains(0);
    }
    if let Some(time) = CertTime::parse(input) {
        assert_eq!(CertTime::parse(time.to_string().as_bytes()), Some(time));
    }
    let _ = SafeBag::parse(input);
}

/// One structure: what is read can be written, and reads as the same.
fn block<T: Block + PartialEq + Debug>(input: &[u8]) {
    let Ok(found) = T::parse(input) else { return };
    let mut out = Vec::new();
    found.write(&mut out);
    assert_eq!(T::parse(&out), Ok(found));
}

fn list<T: Block>(input: &[u8]) {
    let Ok(found) = parse_list::<T>(input) else { return };
    let mut out = Vec::new();
    found.iter().for_each(|item| item.write(&mut out));
    let again = parse_list::<T>(&out).expect("law: what is written can be read");
    assert_eq!(again.len(), found.len());
}
