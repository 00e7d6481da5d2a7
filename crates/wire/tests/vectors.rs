//! The vectors of spec/vectors/ndn.json: each is decoded, compared field by field, encoded again
//! from its fields alone, and compared octet by octet.

#![allow(clippy::unwrap_used)]

use onym_crypto::digest::sha256;
use onym_wire::mgmt::{
    Block, ControlParameters, ControlResponse, FacePersistency, FaceScope, FaceStatus, LinkType,
    command_name, parameters_of,
};
use onym_wire::signature::NameSignature;
use onym_wire::{
    Data, DataBuilder, Interest, InterestBuilder, LpHeader, LpPacket, Name, SignatureInfo, tlv,
    types,
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
        let encoded = match vector["kind"].as_str().unwrap() {
            "interest" => interest(fields, &wire),
            "data" => data(fields, &wire),
            "command" => command(fields, &wire),
            "command_v02" => command_v02(fields, &wire),
            "control_response" => control_response(fields, &wire),
            "lp" => lp(fields, &wire),
            "face_status" => face_status(fields, &wire),
            other => panic!("unknown kind {other}"),
        };
        assert_eq!(encoded, wire, "{}: {}", vector["id"], vector["what"]);
        seen += 1;
    }
    assert!(seen >= 12);
}

fn interest(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let interest = Interest::parse(wire).unwrap();
    let name = name(&fields["name"]);
    let nonce = octets(&fields["nonce"]).and_then(|n| n.try_into().ok());
    let hop_limit = fields["hop_limit"].as_u64().and_then(|n| n.try_into().ok());
    assert_eq!(interest.name, name);
    assert_eq!(interest.can_be_prefix, fields["can_be_prefix"]);
    assert_eq!(interest.must_be_fresh, fields["must_be_fresh"]);
    assert_eq!(interest.lifetime_ms, fields["lifetime_ms"].as_u64());
    assert_eq!((interest.nonce, interest.hop_limit), (nonce, hop_limit));
    let mut out = Vec::new();
    InterestBuilder {
        name: name.as_ref(),
        can_be_prefix: interest.can_be_prefix,
        must_be_fresh: interest.must_be_fresh,
        forwarding_hint: &[],
        nonce,
        lifetime_ms: fields["lifetime_ms"].as_u64(),
        hop_limit,
    }
    .write(&mut out);
    out
}

fn data(fields: &Value, wire: &[u8]) -> Vec<u8> {
    let data = Data::parse(wire).unwrap();
    let name = name(&fields["name"]);
    let last: Name = fields["final_block_id"].as_str().unwrap().parse().unwrap();
    let content = octets(&fields["content"]).unwrap();
    assert_eq!(data.name, name);
    assert_eq!(data.freshness_ms, fields["freshness_ms"]);
    assert_eq!(data.final_block_id, last.as_ref().last());
    assert_eq!(data.content, content);
    assert_eq!(data.signature_info().kind, types::SIGNATURE_DIGEST_SHA256);
    assert_eq!(data.signature_value, sha256(&[data.signed_range]));
    assert_eq!(sha256(&[wire]).to_vec(), octets(&fields["implicit_digest"]).unwrap());
    let mut out = Vec::new();
    DataBuilder {
        freshness_ms: fields["freshness_ms"].as_u64().unwrap(),
        final_block_id: last.as_ref().last(),
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
    assert_eq!((packet.nack, packet.sequence), (number("nack"), number("sequence")));
    assert_eq!(packet.frag_index, number("frag_index").unwrap_or(0));
    assert_eq!(packet.frag_count, number("frag_count").unwrap_or(1));
    assert_eq!(packet.congestion_mark, number("congestion_mark").unwrap_or(0));
    assert_eq!(packet.pit_token.unwrap_or_default(), token);
    assert_eq!(packet.acks().collect::<Vec<_>>(), acks);
    let header = LpHeader {
        sequence: number("sequence"),
        fragment: number("frag_index").zip(number("frag_count")),
        pit_token: &token,
        nack: number("nack"),
        congestion_mark: number("congestion_mark").unwrap_or(0),
        acks: &acks,
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
        face_scope: FaceScope::from_number(number("face_scope")).unwrap(),
        face_persistency: FacePersistency::from_number(number("face_persistency")).unwrap(),
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
