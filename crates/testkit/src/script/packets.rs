//! Packets and patterns as words of a line.

use super::fields::{self, Field, Keys, Ty, Value};
use super::{Packet, PacketKind, Piece};
use crate::wire::name;
use crate::wire::tlv::unhex;

/// What is wrong, and what is allowed.
pub(super) type Wrong = (String, String);

pub(super) fn wrong(what: impl Into<String>, allowed: impl Into<String>) -> Wrong {
    (what.into(), allowed.into())
}

/// Whether the packet is to be sent or expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Build,
    Pattern,
}

const KINDS: &str = "interest data nack lp raw packet command response event nothing closed";

pub(super) fn packet(words: &[&str], role: Role) -> Result<Packet, Wrong> {
    let Some((&kind, rest)) = words.split_first() else {
        return Err(wrong("a packet is missing", KINDS));
    };
    let named = |rest: &[&str]| -> Result<Vec<name::Part>, Wrong> {
        let text = rest
            .first()
            .ok_or_else(|| wrong(format!("{kind} wants a name"), "an NDN URI such as /a/b"))?;
        name::parse(text).map_err(|e| wrong(e, "an NDN URI such as /a/b/seg=1"))
    };
    let (kind, skip, tables): (PacketKind, usize, &[Keys]) = match kind {
        "interest" => (PacketKind::Interest(named(rest)?), 1, &[fields::INTEREST, fields::LINK]),
        "data" => (PacketKind::Data(named(rest)?), 1, &[fields::DATA, fields::LINK]),
        "nack" => {
            let reason = reason(rest.first().copied().unwrap_or(""))?;
            (PacketKind::Nack(reason, named(&rest[1..])?), 2, &[fields::INTEREST, fields::LINK])
        }
        "lp" => (PacketKind::Lp, 0, &[fields::LINK, fields::LP_ONLY]),
        "raw" => {
            return Ok(Packet {
                kind: PacketKind::Raw(pieces(rest)?),
                fields: Vec::new(),
                open: false,
            });
        }
        "packet" => {
            let label = rest
                .first()
                .ok_or_else(|| wrong("packet wants a label", "a label that `let` defined"))?;
            (PacketKind::Labelled((*label).into()), 1, &[fields::LINK])
        }
        "command" if role == Role::Build => {
            let verb = rest.first().filter(|v| v.contains('/'));
            let verb = verb.ok_or_else(|| {
                wrong("command wants module/verb", "rib/register, faces/create, …")
            })?;
            (PacketKind::Command((*verb).into()), 1, &[fields::COMMAND, fields::CONTROL])
        }
        "response" if role == Role::Pattern => {
            let code = rest.first().copied().unwrap_or("");
            let code = fields::value(code, Ty::Num)
                .map_err(|_| wrong("response wants a code", "a number, or *"))?;
            (PacketKind::Response(code), 1, &[fields::RESPONSE, fields::CONTROL])
        }
        "event" if role == Role::Pattern => {
            let word = rest.first().filter(|w| EVENTS.contains(w));
            let word = word.ok_or_else(|| wrong("event wants a kind", EVENTS.join(" ")))?;
            (PacketKind::Event((*word).into()), 1, &[fields::ROW])
        }
        other => return Err(wrong(format!("unknown kind of packet {other:?}"), KINDS)),
    };
    let mut packet = Packet { kind, fields: Vec::new(), open: false };
    for word in &rest[skip..] {
        if *word == "..." && role == Role::Pattern {
            packet.open = true;
        } else {
            packet.fields.push(fields::parse(word, tables)?);
        }
    }
    if role == Role::Build {
        packet.fields.iter().try_for_each(buildable)?;
    }
    Ok(packet)
}

/// The kinds of face events.
pub(crate) const EVENTS: &[&str] = &["created", "destroyed", "up", "down"];

fn buildable(field: &Field) -> Result<(), Wrong> {
    match field.value {
        Value::Any | Value::Not(_) | Value::Range(..) => Err(wrong(
            format!("{}: a packet to send needs a value, not a pattern", field.key),
            "a value, $x or -",
        )),
        _ => Ok(()),
    }
}

fn reason(word: &str) -> Result<Value, Wrong> {
    Ok(match word {
        "none" => Value::Number(0),
        "congestion" => Value::Number(50),
        "duplicate" => Value::Number(100),
        "no-route" => Value::Number(150),
        "*" => Value::Any,
        n => Value::Number(n.parse().map_err(|_| {
            wrong(
                format!("unknown Nack reason {word:?}"),
                "none congestion duplicate no-route, a number or *",
            )
        })?),
    })
}

fn pieces(words: &[&str]) -> Result<Vec<Piece>, Wrong> {
    let mut open: Vec<(u64, Vec<Piece>)> = Vec::new();
    let mut here: Vec<Piece> = Vec::new();
    for word in words {
        match *word {
            "]" => {
                let Some((typ, outer)) = open.pop() else {
                    return Err(wrong("']' without '['", PIECES));
                };
                let inner = std::mem::replace(&mut here, outer);
                here.push(Piece::Tlv(typ, inner));
            }
            w => match w.strip_prefix('[') {
                Some(typ) => {
                    let typ =
                        typ.parse().map_err(|_| wrong(format!("{w:?}: not a TLV type"), PIECES))?;
                    open.push((typ, std::mem::take(&mut here)));
                }
                None => here.push(piece(w)?),
            },
        }
    }
    if open.is_empty() { Ok(here) } else { Err(wrong("'[' without ']'", PIECES)) }
}

const PIECES: &str = "hexadecimal octets, \"text\", name:/x, zeros:N, packet:LABEL, [TYPE … ]";

fn piece(word: &str) -> Result<Piece, Wrong> {
    if let Some(text) = word.strip_prefix('"').and_then(|w| w.strip_suffix('"')) {
        return Ok(Piece::Bytes(text.as_bytes().to_vec()));
    }
    if let Some(uri) = word.strip_prefix("name:") {
        return name::parse(uri).map(Piece::Name).map_err(|e| wrong(e, PIECES));
    }
    if let Some(n) =
        word.strip_prefix("zeros:").and_then(|n| n.parse::<usize>().ok()).filter(|n| *n <= 100_000)
    {
        return Ok(Piece::Bytes(vec![0; n]));
    }
    if let Some(label) = word.strip_prefix("packet:") {
        return Ok(Piece::Packet(label.into()));
    }
    unhex(word)
        .map(Piece::Bytes)
        .ok_or_else(|| wrong(format!("{word:?} is no piece of raw"), PIECES))
}
