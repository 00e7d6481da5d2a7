//! Packets of a script, as octets.

use super::name::{self, Component};
use super::tlv::{nni, put, sha256, tlv};
use super::types as t;
use crate::env::Env;
use crate::script::{Field, Packet, PacketKind, Piece, Value};

/// The frame of a packet that a script sends.
///
/// # Errors
/// A value that cannot be sent, in words.
pub fn frame(env: &mut Env, packet: &Packet) -> Result<Vec<u8>, String> {
    if let PacketKind::Raw(pieces) = &packet.kind {
        return raw(env, pieces);
    }
    let mut headers = headers(env, &packet.fields)?;
    let payload = match &packet.kind {
        PacketKind::Lp => payload(env, &packet.fields)?,
        PacketKind::Nack(reason, _) => {
            let reason = env.number(reason)?.unwrap_or(0);
            let inner = if reason == 0 { Vec::new() } else { tlv(t::NACK_REASON, &nni(reason)) };
            headers.push((t::NACK, inner));
            Some(network(env, packet)?)
        }
        _ => Some(network(env, packet)?),
    };
    match payload {
        Some(bytes) if headers.is_empty() && !matches!(packet.kind, PacketKind::Lp) => Ok(bytes),
        payload => Ok(wrap(headers, payload.as_deref())),
    }
}

/// The network-layer octets of a packet.
///
/// # Errors
/// A value that cannot be sent, in words.
pub fn network(env: &mut Env, packet: &Packet) -> Result<Vec<u8>, String> {
    match &packet.kind {
        PacketKind::Interest(parts) | PacketKind::Nack(_, parts) => {
            let name = env.name(parts)?;
            interest(env, name, &packet.fields)
        }
        PacketKind::Data(parts) => {
            let name = env.name(parts)?;
            data(env, &name, &packet.fields)
        }
        PacketKind::Labelled(label) => env.packet(label).map(<[u8]>::to_vec),
        PacketKind::Raw(pieces) => raw(env, pieces),
        other => Err(format!("{other:?} is no network-layer packet")),
    }
}

/// An LpPacket with these headers.
#[must_use]
pub fn wrap(mut headers: Vec<(u64, Vec<u8>)>, fragment: Option<&[u8]>) -> Vec<u8> {
    headers.sort_by_key(|(typ, _)| *typ);
    let mut out = Vec::new();
    for (typ, value) in headers {
        put(&mut out, typ, &value);
    }
    if let Some(bytes) = fragment {
        put(&mut out, t::FRAGMENT, bytes);
    }
    tlv(t::LP_PACKET, &out)
}

fn interest(env: &mut Env, mut name: Vec<Component>, fields: &[Field]) -> Result<Vec<u8>, String> {
    let get = |key| fields.iter().find(|f| f.key == key).map(|f| &f.value);
    let params =
        get("params").map(|v| env.bytes(v)).transpose()?.flatten().map(|p| tlv(t::PARAMS, &p));
    if let Some(p) = &params {
        name.push((t::PARAMS_DIGEST, sha256(&[p]).to_vec()));
    }
    let mut out = tlv(t::NAME, &name::encode(&name));
    let set = |key| get(key).is_some_and(|v| *v == Value::Flag);
    if set("prefix") {
        put(&mut out, t::CAN_BE_PREFIX, &[]);
    }
    if set("fresh") {
        put(&mut out, t::MUST_BE_FRESH, &[]);
    }
    if let Some(Value::Names(names)) = get("hint") {
        let mut hint = Vec::new();
        for parts in names {
            put(&mut hint, t::NAME, &name::encode(&env.name(parts)?));
        }
        put(&mut out, t::HINT, &hint);
    }
    let nonce = match get("nonce") {
        Some(v) => env.bytes(v)?,
        None => Some(env.next_nonce().to_vec()),
    };
    if let Some(n) = nonce {
        put(&mut out, t::NONCE, &n);
    }
    if let Some(ms) = number(env, get("lifetime"))? {
        put(&mut out, t::LIFETIME, &nni(ms));
    }
    if let Some(hop) = number(env, get("hop"))? {
        put(&mut out, t::HOP_LIMIT, &nni(hop));
    }
    out.extend(params.unwrap_or_default());
    Ok(tlv(t::INTEREST, &out))
}

fn number(env: &Env, value: Option<&Value>) -> Result<Option<u64>, String> {
    value.map(|v| env.number(v)).transpose().map(Option::flatten)
}

fn data(env: &Env, name: &[Component], fields: &[Field]) -> Result<Vec<u8>, String> {
    let get = |key| fields.iter().find(|f| f.key == key).map(|f| &f.value);
    let mut signed = tlv(t::NAME, &name::encode(name));
    let mut meta = Vec::new();
    if let Some(n) = number(env, get("type"))? {
        put(&mut meta, t::CONTENT_TYPE, &nni(n));
    }
    if let Some(ms) = number(env, get("fresh"))? {
        put(&mut meta, t::FRESHNESS, &nni(ms));
    }
    if let Some(Value::Component((typ, value))) = get("final") {
        put(&mut meta, t::FINAL_BLOCK, &tlv(*typ, value));
    }
    if !meta.is_empty() {
        put(&mut signed, t::META_INFO, &meta);
    }
    if let Some(content) = get("content").map(|v| env.bytes(v)).transpose()?.flatten() {
        put(&mut signed, t::CONTENT, &content);
    }
    let typ = match get("sig") {
        None => 0,
        Some(Value::Text(word)) if word == "digest" => 0,
        Some(Value::Text(word)) => {
            word.parse().map_err(|_| format!("sig={word}: digest, or a number"))?
        }
        Some(other) => return Err(format!("sig={other:?}: digest, or a number")),
    };
    put(&mut signed, t::SIG_INFO, &tlv(t::SIG_TYPE, &nni(typ)));
    let value = if typ == 0 { sha256(&[&signed]) } else { [0; 32] };
    put(&mut signed, t::SIG_VALUE, &value);
    Ok(tlv(t::DATA, &signed))
}

fn headers(env: &Env, fields: &[Field]) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let mut out = Vec::new();
    for field in fields {
        let v = &field.value;
        let mut put_number = |typ| -> Result<(), String> {
            out.extend(env.number(v)?.map(|n| (typ, nni(n))));
            Ok(())
        };
        match field.key {
            "mark" => put_number(t::CONGESTION_MARK)?,
            "next-face" => put_number(t::NEXT_HOP_FACE)?,
            "in-face" => put_number(t::INCOMING_FACE)?,
            "token" => out.extend(env.bytes(v)?.map(|b| (t::PIT_TOKEN, b))),
            "no-cache" => out.push((t::CACHE_POLICY, tlv(t::CACHE_POLICY_TYPE, &[1]))),
            "no-discovery" => out.push((t::NON_DISCOVERY, Vec::new())),
            "announce" => out.extend(env.bytes(v)?.map(|b| (t::PREFIX_ANNOUNCEMENT, b))),
            "seq" => out.extend(env.number(v)?.map(|n| (t::SEQUENCE, n.to_be_bytes().to_vec()))),
            "tx" => out.extend(env.number(v)?.map(|n| (t::TX_SEQUENCE, n.to_be_bytes().to_vec()))),
            "ack" => match v {
                Value::Numbers(all) => {
                    out.extend(all.iter().map(|n| (t::ACK, n.to_be_bytes().to_vec())))
                }
                one => out.extend(env.number(one)?.map(|n| (t::ACK, n.to_be_bytes().to_vec()))),
            },
            "frag" => {
                if let Value::Fraction(i, n) = v {
                    out.push((t::FRAG_INDEX, nni(*i)));
                    out.push((t::FRAG_COUNT, nni(*n)));
                }
            }
            "field" => {
                if let Value::Header(typ, bytes) = v {
                    out.push((*typ, bytes.clone()));
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

fn payload(env: &Env, fields: &[Field]) -> Result<Option<Vec<u8>>, String> {
    for field in fields {
        match (field.key, &field.value) {
            ("payload", v) => return env.bytes(v),
            ("part", Value::Part(label, i, n)) => {
                return part(env.packet(label)?, *i, *n).map(Some);
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The `i`-th of `n` equal parts; the last takes the rest.
fn part(bytes: &[u8], i: u64, n: u64) -> Result<Vec<u8>, String> {
    let size = bytes.len() as u64 / n;
    let end = if i + 1 == n { bytes.len() as u64 } else { (i + 1) * size };
    if size == 0 {
        return Err(format!("a packet of {} octets has no {n} parts", bytes.len()));
    }
    Ok(bytes[(i * size) as usize..end as usize].to_vec())
}

fn raw(env: &Env, pieces: &[Piece]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(b) => out.extend_from_slice(b),
            Piece::Name(parts) => put(&mut out, t::NAME, &name::encode(&env.name(parts)?)),
            Piece::Packet(label) => out.extend_from_slice(env.packet(label)?),
            Piece::Tlv(typ, inner) => put(&mut out, *typ, &raw(env, inner)?),
        }
    }
    Ok(out)
}
