//! Patterns against packets.

use crate::env::{Env, Kept};
use crate::script::{FaceSpec, Field, Packet, PacketKind, Value};
use crate::wire::build;
use crate::wire::name::{Component, uri};
use crate::wire::tlv::hex;
use crate::wire::view::{Interest, Seen};

/// A field of a packet or row, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Not there.
    Absent,
    /// There, without a value.
    Flag,
    /// A number.
    Number(u64),
    /// Octets.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
    /// A name.
    Name(Vec<Component>),
    /// Names.
    Names(Vec<Vec<Component>>),
    /// A component.
    Component(Component),
    /// `I/N`.
    Fraction(u64, u64),
    /// Numbers.
    Numbers(Vec<u64>),
}

impl Found {
    fn flag(set: bool) -> Self {
        if set { Self::Flag } else { Self::Absent }
    }

    fn number(n: Option<u64>) -> Self {
        n.map_or(Self::Absent, Self::Number)
    }

    fn bytes(b: Option<&Vec<u8>>) -> Self {
        b.map_or(Self::Absent, |b| Self::Bytes(b.clone()))
    }

    /// For messages.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Self::Absent => "absent".into(),
            Self::Flag => "present".into(),
            Self::Number(n) => n.to_string(),
            Self::Bytes(b) => hex(b),
            Self::Text(t) => t.clone(),
            Self::Name(n) => uri(n),
            Self::Names(n) => n.iter().map(|n| uri(n)).collect::<Vec<_>>().join(","),
            Self::Component(c) => uri(std::slice::from_ref(c)),
            Self::Fraction(i, n) => format!("{i}/{n}"),
            Self::Numbers(n) => format!("{n:?}"),
        }
    }
}

/// Whether a value of a pattern fits what was found.
pub fn fits(env: &mut Env, value: &Value, found: &Found) -> bool {
    match (value, found) {
        (Value::Absent, f) => *f == Found::Absent,
        (Value::Not(inner), f) => !fits(&mut env.clone(), inner, f),
        (_, Found::Absent) => false,
        (Value::Any, _) | (Value::Flag, Found::Flag) => true,
        (Value::Number(a), Found::Number(b)) => a == b,
        (Value::Range(lo, hi), Found::Number(n)) => (lo..=hi).contains(&n),
        (Value::Bytes(a), Found::Bytes(b)) => a == b,
        (Value::Label(label), Found::Bytes(b)) => env.packet(label).is_ok_and(|a| a == b),
        (Value::Text(a), Found::Text(b)) => a == b,
        (Value::Text(a), Found::Number(b)) => {
            (if a == "digest" { "0" } else { a.as_str() }) == b.to_string()
        }
        (Value::Name(parts), Found::Name(n)) => env.match_name(parts, n),
        (Value::Names(all), Found::Names(n)) => {
            all.len() == n.len() && all.iter().zip(n).all(|(parts, n)| env.match_name(parts, n))
        }
        (Value::Component(a), Found::Component(b)) => a == b,
        (Value::Face(name), Found::Number(n)) => env.face(name).is_ok_and(|id| id == *n),
        (Value::Fraction(i, n), Found::Fraction(a, b)) => (i, n) == (a, b),
        (Value::Numbers(a), Found::Numbers(b)) => a == b,
        (Value::Number(a), Found::Numbers(b)) => b.as_slice() == [*a],
        (Value::Capture(label), f) => kept(f).is_some_and(|k| env.keep(label, k)),
        _ => false,
    }
}

fn kept(found: &Found) -> Option<Kept> {
    Some(match found {
        Found::Number(n) => Kept::Number(*n),
        Found::Bytes(b) => Kept::Bytes(b.clone()),
        Found::Component(c) => Kept::Component(c.clone()),
        Found::Text(t) => Kept::Text(t.clone()),
        Found::Numbers(n) if n.len() == 1 => Kept::Number(n[0]),
        _ => return None,
    })
}

/// Compares fields with what `look` finds; a field that `look` does not know is the script's error.
///
/// # Errors
/// The first field that does not fit, in words.
pub fn fields(
    env: &mut Env,
    fields: &[Field],
    look: impl Fn(&str) -> Option<Found>,
) -> Result<(), String> {
    for field in fields {
        let Some(found) = look(field.key) else { continue };
        if !fits(env, &field.value, &found) {
            return Err(format!("{} is {}", field.key, found.show()));
        }
    }
    Ok(())
}

/// Compares a packet that left by `face` with a pattern.
///
/// # Errors
/// What differs, in words. Captures may have been made; the caller keeps a copy of the old ones.
pub fn packet(env: &mut Env, pattern: &Packet, seen: &Seen, face: &FaceSpec) -> Result<(), String> {
    match &pattern.kind {
        PacketKind::Raw(_) => {
            let bytes = build::frame(env, pattern)?;
            return if bytes == seen.frame {
                Ok(())
            } else {
                Err(format!("the octets are {}", hex(&seen.frame)))
            };
        }
        PacketKind::Interest(parts) => {
            let i =
                seen.interest().filter(|_| seen.lp.nack.is_none()).ok_or("it is no Interest")?;
            interest(env, parts, pattern, &i)?;
        }
        PacketKind::Nack(reason, parts) => {
            let (Some(seen_reason), Some(i)) = (seen.lp.nack, seen.interest()) else {
                return Err("it is not a Nack".into());
            };
            // An unknown reason means none.
            let known = if matches!(seen_reason, 50 | 100 | 150) { seen_reason } else { 0 };
            if !fits(env, reason, &Found::Number(known)) {
                return Err(format!("the reason is {seen_reason}"));
            }
            interest(env, parts, pattern, &i)?;
        }
        PacketKind::Data(parts) => {
            let d =
                seen.data().filter(|_| seen.lp.nack.is_none()).ok_or("it is not a Data packet")?;
            if !env.match_name(parts, &d.name) {
                return Err("the name differs".into());
            }
            fields(env, &pattern.fields, |key| {
                Some(match key {
                    "fresh" => Found::number(d.freshness),
                    "type" => Found::number(d.content_type),
                    "final" => d.final_block.clone().map_or(Found::Absent, Found::Component),
                    "content" => Found::bytes(d.content.as_ref()),
                    "sig" => Found::number(d.sig_type),
                    _ => return None,
                })
            })?;
        }
        PacketKind::Labelled(label) => {
            let want = env.packet(label)?;
            if seen.net.as_deref() != Some(want) {
                return Err(format!("the octets are not those of {label}"));
            }
        }
        PacketKind::Lp => {}
        other => return Err(format!("{other:?} is no pattern of a packet")),
    }
    link(env, pattern, seen, face)
}

fn interest(
    env: &mut Env,
    parts: &[crate::wire::name::Part],
    pattern: &Packet,
    i: &Interest,
) -> Result<(), String> {
    if !env.match_name(parts, &i.name) {
        return Err("the name differs".into());
    }
    let hint = if i.hint.is_empty() { Found::Absent } else { Found::Names(i.hint.clone()) };
    let look = |key: &str| {
        Some(match key {
            "prefix" => Found::flag(i.can_be_prefix),
            "fresh" => Found::flag(i.must_be_fresh),
            "hint" => hint.clone(),
            "nonce" => Found::bytes(i.nonce.as_ref()),
            "lifetime" => Found::number(i.lifetime),
            "hop" => Found::number(i.hop_limit),
            "params" => Found::bytes(i.params.as_ref()),
            _ => return None,
        })
    };
    fields(env, &pattern.fields, look)?;
    if pattern.open {
        return Ok(());
    }
    if i.nonce.is_none() {
        return Err("it has no Nonce".into());
    }
    absent(pattern, &["prefix", "fresh", "hint", "hop"], look)
}

/// Fields that must be absent when the pattern does not name them.
fn absent(
    pattern: &Packet,
    keys: &[&'static str],
    look: impl Fn(&str) -> Option<Found>,
) -> Result<(), String> {
    for key in keys {
        if pattern.fields.iter().any(|f| f.key == *key) {
            continue;
        }
        match look(key) {
            None | Some(Found::Absent) => {}
            Some(found) => return Err(format!("{key} is {} and was not expected", found.show())),
        }
    }
    Ok(())
}

fn link(env: &mut Env, pattern: &Packet, seen: &Seen, face: &FaceSpec) -> Result<(), String> {
    let lp = &seen.lp;
    let acks = if lp.acks.is_empty() { Found::Absent } else { Found::Numbers(lp.acks.clone()) };
    let look = |key: &str| {
        Some(match key {
            "token" => Found::bytes(lp.token.as_ref()),
            // A mark of 0 says the same as none.
            "mark" => Found::number(lp.mark.filter(|m| *m > 0)),
            "next-face" => Found::number(lp.next_face),
            "in-face" => Found::number(lp.in_face),
            "no-cache" => Found::flag(lp.no_cache),
            "no-discovery" => Found::flag(lp.no_discovery),
            "announce" => Found::bytes(lp.announce.as_ref()),
            "seq" => Found::number(lp.seq),
            "frag" => lp
                .frag
                .filter(|f| *f != (0, 1))
                .map_or(Found::Absent, |(i, n)| Found::Fraction(i, n)),
            "tx" => Found::number(lp.tx),
            "ack" => acks.clone(),
            "payload" => Found::bytes(seen.net.as_ref()),
            _ => return None,
        })
    };
    fields(env, &pattern.fields, look)?;
    if pattern.open {
        return Ok(());
    }
    let answer = seen.lp.nack.is_some() || seen.data().is_some();
    let mut keys = vec!["mark", "next-face", "no-discovery", "announce", "frag"];
    if answer {
        keys.push("token");
    }
    if !face.local_fields {
        keys.push("in-face");
    }
    absent(pattern, &keys, look)
}
