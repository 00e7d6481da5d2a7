//! The vectors of spec/vectors/ndn.json: each is decoded, compared field by field, encoded again
//! from its fields alone, and compared octet by octet. Beside them: what is tolerated, refused, and
//! the order of names.

#![allow(clippy::unwrap_used)]

use onym_crypto::digest::sha256;
use onym_wire::lp::NackReason;
use onym_wire::mgmt::{
    Block, ControlParameters, ControlResponse, FaceStatus, LinkType, Persistency, Scope,
    command_name, parameters_of,
};
use onym_wire::signature::NameSignature;
use onym_wire::{
    Data, DataBuilder, Interest, InterestBuilder, LpHeader, LpPacket, Name, NameRef, SignatureInfo,
    tlv, types,
};
use serde_json::Value;
use std::convert::Infallible;

fn vectors() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors/ndn.json");
    let text = std::fs::read_to_string(path).unwrap();
    let mut all: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(all["vectors"].take()).unwrap()
}

fn octets(value: &Value) -> Option<Vec<u8>> {
    let text = value.as_str()?.as_bytes();
    let (pairs, _) = text.as_chunks::<2>();
    pairs.iter().map(|p| u8::from_str_radix(std::str::from_utf8(p).ok()?, 16).ok()).collect()
}

fn name(value: &Value) -> Name {
    value.as_str().unwrap().parse().unwrap()
}

fn digest_of(part: &[u8]) -> [u8; 32] {
    sha256(&[part])
}

fn parameters(value: &Value) -> ControlParameters {
    ControlParameters {
        name: Some(name(&value["name"])),
        face_id: value["face_id"].as_u64(),
        origin: value["origin"].as_u64(),
        cost: value["cost"].as_u64(),
        flags: value["flags"].as_u64(),
        ..Default::default()
    }
}

#[test]
fn every_vector_is_decoded_and_encoded_again() {
    let mut seen = 0;
    for vector in vectors() {
        let wire = octets(&vector["hex"]).unwrap();
        let fields = &vector["fields"];
        println!("{}: {}", vector["id"], vector["what"]);
        let encoded = match vector["kind"].as_str().unwrap() {
            "interest" => interest(fields, &wire),
            "data" => data(fields, &wire),
            "name" => uri_and_name(fields, &wire),
            "command" => command(fields, &wire),
            "command_v02" => command_v02(fields, &wire),
            "control_response" => control_response(fields, &wire),
            "lp" => lp(fields, &wire),
            "face_status" => face_status(fields, &wire),
            "malformed" | "order" | "tolerated" | "uri_refused" => continue,
            other => panic!("unknown kind {other}"),
        };
        assert_eq!(encoded, wire, "{}: {}", vector["id"], vector["what"]);
        seen += 1;
    }
    assert!(seen >= 45, "{seen}");
}

#[test]
fn what_no_encoder_writes_but_decoders_take_is_read() {
    for vector in vectors().iter().filter(|v| v["kind"] == "tolerated") {
        let wire = octets(&vector["hex"]).unwrap();
        let fields = &vector["fields"];
        println!("{}: {}", vector["id"], vector["what"]);
        let encoded = match fields["of"].as_str().unwrap() {
            "interest" => interest(fields, &wire),
            "data" => data(fields, &wire),
            "lp" => lp(fields, &wire),
            other => panic!("unknown packet {other}"),
        };
        assert!(encoded != wire || fields["of"] == "lp", "{}", vector["id"]);
    }
}

#[test]
fn what_is_malformed_is_refused() {
    let mut seen = 0;
    for vector in vectors().iter().filter(|v| v["kind"] == "malformed") {
        let wire = octets(&vector["hex"]).unwrap();
        let is_refused = match vector["fields"]["of"].as_str().unwrap() {
            "interest" => Interest::parse(&wire).is_err(),
            "data" => Data::parse(&wire).is_err(),
            "lp" => LpPacket::parse(&wire).is_err(),
            other => panic!("unknown packet {other}"),
        };
        assert!(is_refused, "{}: {}", vector["id"], vector["what"]);
        seen += 1;
    }
    assert!(seen >= 50, "{seen}");
}

#[test]
fn a_uri_that_is_no_name_is_refused() {
    for vector in vectors().iter().filter(|v| v["kind"] == "uri_refused") {
        let uri = vector["fields"]["uri"].as_str().unwrap();
        assert!(uri.parse::<Name>().is_err(), "{uri}");
    }
}

#[test]
fn names_have_the_canonical_order_of_the_vectors() {
    for vector in vectors().iter().filter(|v| v["kind"] == "order") {
        let wires = vector["fields"]["names"].as_array().unwrap().iter().map(octets);
        let wires: Vec<Vec<u8>> = wires.map(Option::unwrap).collect();
        let names: Vec<NameRef<'_>> = wires.iter().map(|w| NameRef::parse(w).unwrap()).collect();
        for pair in names.windows(2) {
            assert!(pair[0] < pair[1], "{} {}", pair[0], pair[1]);
            assert!(pair[0].components().lt(pair[1].components()), "{} {}", pair[0], pair[1]);
            // The root's successor is the first full name, as the field has it.
            assert!(pair[0].is_empty() || pair[0].successor().as_ref() > pair[0]);
        }
    }
}

fn uri_and_name(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let found = NameRef::parse(wire).unwrap();
    assert_eq!(found.to_string(), fields["uri"]);
    assert_eq!(found.display_canonical().to_string(), fields["canonical"]);
    assert_eq!(found.len() as u64, fields["components"]);
    let also = fields["also"].as_array().unwrap();
    for uri in also.iter().chain([&fields["canonical"]]) {
        assert_eq!(name(uri), found, "{uri}");
    }
    let mut out = Vec::new();
    name(&fields["uri"]).as_ref().write_tlv(&mut out);
    out
}

fn interest(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let interest = Interest::parse(wire).unwrap();
    let name = name(&fields["name"]);
    let nonce = octets(&fields["nonce"]).and_then(|n| n.try_into().ok());
    let hop_limit = fields["hop_limit"].as_u64().and_then(|n| n.try_into().ok());
    let parameters = octets(&fields["app_parameters"]);
    let hint: Vec<Name> =
        fields["forwarding_hint"].as_array().into_iter().flatten().map(self::name).collect();
    let hint: Vec<NameRef<'_>> = hint.iter().map(Name::as_ref).collect();
    assert_eq!(interest.name, name);
    assert_eq!(interest.can_be_prefix, fields["can_be_prefix"]);
    assert_eq!(interest.must_be_fresh, fields["must_be_fresh"]);
    assert_eq!(interest.lifetime_ms, fields["lifetime_ms"].as_u64());
    assert_eq!((interest.nonce, interest.hop_limit), (nonce, hop_limit));
    assert_eq!(interest.app_parameters, parameters.as_deref());
    assert_eq!(interest.forwarding_hint.iter().collect::<Vec<_>>(), hint);
    assert_eq!(interest.parameters_digest().copied(), interest.parameters_range().map(digest_of));
    assert_eq!(interest.signature_info(), None);
    let mut out = Vec::new();
    let builder = InterestBuilder {
        name: name.as_ref(),
        can_be_prefix: interest.can_be_prefix,
        must_be_fresh: interest.must_be_fresh,
        forwarding_hint: &hint,
        nonce,
        lifetime_ms: fields["lifetime_ms"].as_u64(),
        hop_limit,
    };
    match parameters {
        Some(parameters) => builder.write_with_parameters(&mut out, &parameters, digest_of),
        None => builder.write(&mut out),
    }
    out
}

fn data(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let data = Data::parse(wire).unwrap();
    let name = name(&fields["name"]);
    let last: Option<Name> = fields["final_block_id"].as_str().map(|text| text.parse().unwrap());
    let last = last.as_ref().and_then(|name| name.as_ref().last());
    let content = octets(&fields["content"]).unwrap();
    let content_type = fields["content_type"].as_u64().unwrap_or(0);
    let app_meta_info = octets(&fields["app_meta_info"]).unwrap_or_default();
    assert_eq!(data.name, name);
    assert_eq!(data.freshness_ms, fields["freshness_ms"]);
    assert_eq!(data.final_block_id, last);
    assert_eq!(data.content_type, content_type);
    assert_eq!(data.content, content);
    assert_eq!(
        data.app_meta_info().flat_map(|e| e.wire.to_vec()).collect::<Vec<_>>(),
        app_meta_info
    );
    assert_eq!(data.signature_info().kind, types::SIGNATURE_DIGEST_SHA256);
    assert_eq!(data.signature_value, sha256(&[data.signed_range]));
    assert_eq!(sha256(&[wire]).to_vec(), octets(&fields["implicit_digest"]).unwrap());
    let mut out = Vec::new();
    DataBuilder {
        content_type,
        freshness_ms: fields["freshness_ms"].as_u64().unwrap(),
        final_block_id: last,
        app_meta_info: &app_meta_info,
        ..DataBuilder::new(name.as_ref(), &content)
    }
    .write(&mut out, &SignatureInfo::of_kind(0), |b| Ok::<_, Infallible>(digest_of(b)))
    .unwrap();
    out
}

fn command(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let interest = Interest::parse(wire).unwrap();
    let parameters = parameters(&fields["parameters"]);
    let prefix = name(&fields["prefix"]);
    let text = |key: &str| fields[key].as_str().unwrap();
    let name = command_name(prefix.as_ref(), text("module"), text("verb"), &parameters);
    assert_eq!(interest.name.drop_last(1), name);
    assert_eq!(parameters_of(interest.name.get(4).unwrap()), Ok(parameters));
    let parts = interest.signed_ranges().unwrap();
    assert_eq!(interest.signature_value.unwrap(), sha256(&parts));
    assert_eq!(
        *interest.parameters_digest().unwrap(),
        digest_of(interest.parameters_range().unwrap())
    );
    let nonce = octets(&fields["signature_nonce"]).unwrap();
    let info = SignatureInfo {
        nonce: Some(&nonce),
        time: fields["signature_time_ms"].as_u64(),
        ..SignatureInfo::of_kind(0)
    };
    assert_eq!(interest.signature_info(), Some(info));
    let mut out = Vec::new();
    InterestBuilder {
        nonce: octets(&fields["nonce"]).and_then(|n| n.try_into().ok()),
        lifetime_ms: fields["lifetime_ms"].as_u64(),
        ..InterestBuilder::new(name.as_ref())
    }
    .write_signed(&mut out, &[], &info, |parts| Ok::<_, Infallible>(sha256(parts)), digest_of)
    .unwrap();
    out
}

fn command_v02(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let interest = Interest::parse(wire).unwrap();
    let signature = NameSignature::of(interest.name).unwrap();
    let parameters = parameters(&fields["parameters"]);
    let time = fields["signature_time_ms"].as_u64().unwrap();
    let nonce = octets(&fields["signature_nonce"]).unwrap();
    assert_eq!(parameters_of(signature.name.last().unwrap()), Ok(parameters.clone()));
    assert_eq!((signature.timestamp, signature.nonce), (time, &nonce[..]));
    assert_eq!(signature.value, digest_of(signature.signed));
    let text = |key: &str| fields[key].as_str().unwrap();
    let prefix = name(&fields["prefix"]);
    let mut name = command_name(prefix.as_ref(), text("module"), text("verb"), &parameters);
    let mut info = Vec::new();
    SignatureInfo::of_kind(0).write(&mut info, types::SIGNATURE_INFO);
    name.append_generic(time.to_be_bytes()).append_generic(&nonce).append_generic(&info);
    let mut value = Vec::new();
    tlv::put_tlv(&mut value, types::SIGNATURE_VALUE, &digest_of(name.value()));
    name.append_generic(&value);
    let mut out = Vec::new();
    InterestBuilder {
        nonce: octets(&fields["nonce"]).and_then(|n| n.try_into().ok()),
        lifetime_ms: fields["lifetime_ms"].as_u64(),
        ..InterestBuilder::new(name.as_ref())
    }
    .write(&mut out);
    out
}

fn control_response(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let expected = ControlResponse {
        code: fields["code"].as_u64().unwrap(),
        text: fields["text"].as_str().unwrap().to_owned(),
        body: Some(parameters(&fields["parameters"])),
    };
    assert_eq!(ControlResponse::parse(wire).as_ref(), Ok(&expected));
    expected.to_wire()
}

fn lp(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let packet = LpPacket::parse(wire).unwrap();
    let number = |key: &str| fields[key].as_u64();
    let token = octets(&fields["pit_token"]).unwrap_or_default();
    let body = octets(&fields["fragment"]).unwrap_or_default();
    let acks: Vec<u64> =
        fields["acks"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    assert_eq!(packet.fragment.unwrap_or_default(), body);
    let nack = number("nack").map(NackReason);
    assert_eq!((packet.nack, packet.sequence), (nack, number("sequence")));
    assert_eq!(packet.frag_index, number("frag_index").unwrap_or(0));
    assert_eq!(packet.frag_count, number("frag_count").unwrap_or(1));
    assert_eq!(packet.congestion_mark, number("congestion_mark").unwrap_or(0));
    assert_eq!(packet.pit_token.unwrap_or_default(), token);
    assert_eq!(packet.acks().collect::<Vec<_>>(), acks);
    assert_eq!(packet.tx_sequence, number("tx_sequence"));
    assert_eq!(packet.incoming_face, number("incoming_face"));
    assert_eq!(packet.next_hop_face, number("next_hop_face"));
    assert_eq!(packet.no_cache, fields["no_cache"].as_bool().unwrap_or(false));
    assert_eq!(packet.non_discovery, fields["non_discovery"].as_bool().unwrap_or(false));
    let announcement = octets(&fields["prefix_announcement"]);
    assert_eq!(packet.prefix_announcement, announcement.as_deref());
    let header = LpHeader {
        sequence: number("sequence"),
        fragment: number("frag_index").zip(number("frag_count")),
        pit_token: &token,
        nack,
        congestion_mark: number("congestion_mark").unwrap_or(0),
        acks: &acks,
        tx_sequence: number("tx_sequence"),
        incoming_face: number("incoming_face"),
        next_hop_face: number("next_hop_face"),
        no_cache: packet.no_cache,
        non_discovery: packet.non_discovery,
        prefix_announcement: announcement.as_deref(),
        ..LpHeader::default()
    };
    let mut out = Vec::new();
    header.write(&mut out, body.len());
    assert_eq!(out.len(), header.encoded_len(body.len()));
    out.extend_from_slice(&body);
    out
}

fn face_status(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let number = |key: &str| fields[key].as_u64().unwrap();
    let text = |key: &str| fields[key].as_str().unwrap().to_owned();
    let expected = FaceStatus {
        face_id: number("face_id"),
        uri: text("uri"),
        local_uri: text("local_uri"),
        expiration_period_ms: fields["expiration_period_ms"].as_u64(),
        face_scope: Scope::from_number(number("face_scope")).unwrap(),
        face_persistency: Persistency::from_number(number("face_persistency")).unwrap(),
        link_type: LinkType::from_number(number("link_type")).unwrap(),
        base_congestion_marking_interval_ns: fields["base_congestion_marking_interval_ns"].as_u64(),
        default_congestion_threshold: fields["default_congestion_threshold"].as_u64(),
        mtu: fields["mtu"].as_u64(),
        in_interests: number("in_interests"),
        in_data: number("in_data"),
        in_nacks: number("in_nacks"),
        out_interests: number("out_interests"),
        out_data: number("out_data"),
        out_nacks: number("out_nacks"),
        in_bytes: number("in_bytes"),
        out_bytes: number("out_bytes"),
        flags: number("flags"),
    };
    assert_eq!(FaceStatus::parse(wire).as_ref(), Ok(&expected));
    expected.to_wire()
}

#[test]
fn the_two_fragments_make_the_interest_of_the_nack() {
    let all = vectors();
    let fragment = |id: &str| {
        let vector = all.iter().find(|v| v["id"] == id).unwrap();
        octets(&vector["fields"]["fragment"]).unwrap()
    };
    assert_eq!([fragment("L4a"), fragment("L4b")].concat(), fragment("L1"));
}
