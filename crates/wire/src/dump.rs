//! Packets as text for people: one line, or the whole tree of elements.
//!
//! Any bytes can be shown; what is malformed is shown as far as it goes.

mod known;
mod push;
#[cfg(test)]
mod tests;

use crate::data::Data;
use crate::interest::Interest;
use crate::lp::{LpPacket, TraceContext};
use crate::mgmt::{Block, ControlParameters, ControlResponse};
use crate::name::{Component, NameRef};
use crate::tlv::{Element, Reader};
use crate::types::{self, PacketType};
use known::{Kind, known};
use std::fmt;

/// Levels of elements within elements that are shown; deeper ones are octets.
const DEPTH_MAX: usize = 16;
/// Octets of a value that are shown.
const OCTETS_MAX: usize = 48;

/// Shows the elements in the given bytes as a tree, one element a line.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a>(pub &'a [u8]);

impl fmt::Display for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_elements(f, self.0, 0, 0)
    }
}

fn fmt_elements(
    f: &mut fmt::Formatter<'_>,
    bytes: &[u8],
    parent: u32,
    depth: usize,
) -> fmt::Result {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let rest = reader.rest();
        match reader.element() {
            Ok(element) => fmt_element(f, element, parent, depth)?,
            Err(error) => {
                return writeln!(f, "{:1$}! {error}: {2}", "", depth * 2, Octets(rest));
            }
        }
    }
    Ok(())
}

fn fmt_element(
    f: &mut fmt::Formatter<'_>,
    element: Element<'_>,
    parent: u32,
    depth: usize,
) -> fmt::Result {
    let Element { typ, value, .. } = element;
    let (label, kind) = known(parent, typ).unwrap_or(("?", Kind::Octets));
    write!(f, "{:1$}{label} ({typ}), {2} octets", "", depth * 2, value.len())?;
    let is_deeper = match kind {
        Kind::Elements => true,
        // What looks like an element that is known at its place is shown as one.
        Kind::Content => Element::parse(value).is_ok_and(|inner| known(typ, inner.typ).is_some()),
        _ => false,
    };
    if is_deeper && depth < DEPTH_MAX {
        writeln!(f)?;
        return fmt_elements(f, value, typ, depth + 1);
    }
    if depth == 0 && matches!(typ, types::PUSH_FRAME | types::PUSH_APP) {
        f.write_str(": ")?;
        push::fmt_line(f, element.wire)?;
        return writeln!(f);
    }
    match kind {
        Kind::Name => match NameRef::parse_value(value) {
            Ok(name) => writeln!(f, ": {name}"),
            Err(error) => writeln!(f, ": ! {error}: {}", Octets(value)),
        },
        Kind::Component => match Component::split(value) {
            Ok((component, [])) => writeln!(f, ": {component}"),
            _ => writeln!(f, ": ! not a name component: {}", Octets(value)),
        },
        Kind::Number => match element.nni() {
            Ok(number) => writeln!(f, ": {number}"),
            Err(error) => writeln!(f, ": ! {error}: {}", Octets(value)),
        },
        _ if value.is_empty() => writeln!(f),
        _ => writeln!(f, ": {}", Octets(value)),
    }
}

/// Octets, as text when all are printable, else in hexadecimal; cut when there are many.
struct Octets<'a>(&'a [u8]);

impl fmt::Display for Octets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..OCTETS_MAX).unwrap_or(self.0);
        let is_text = |octet: &u8| octet.is_ascii_graphic() || *octet == b' ';
        match std::str::from_utf8(shown) {
            Ok(text) if shown.iter().all(is_text) => write!(f, "{text:?}")?,
            _ => write!(f, "{}", Hex(shown))?,
        }
        if shown.len() < self.0.len() { f.write_str("…") } else { Ok(()) }
    }
}

/// Octets in hexadecimal.
#[derive(Debug, Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Shows a frame (LpPacket, Interest or Data) on one line.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a>(pub &'a [u8]);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if PacketType::of(self.0).is_some_and(PacketType::is_push) {
            return push::fmt_line(f, self.0);
        }
        let packet = match LpPacket::parse(self.0) {
            Ok(packet) => packet,
            Err(error) => return write!(f, "malformed ({error}): {}", Octets(self.0)),
        };
        if let Some(reason) = packet.nack {
            write!(f, "Nack {reason} ")?;
        }
        match packet.fragment {
            None => f.write_str("Idle")?,
            Some(_) if packet.is_fragmented() => {
                write!(f, "Fragment {}/{}", packet.frag_index, packet.frag_count)?;
            }
            Some(bytes) => fmt_packet(f, bytes)?,
        }
        fmt_fields(f, &packet)
    }
}

fn fmt_fields(f: &mut fmt::Formatter<'_>, packet: &LpPacket<'_>) -> fmt::Result {
    let mut number = |label: &str, n: Option<u64>| n.map_or(Ok(()), |n| write!(f, " {label}={n}"));
    number("sequence", packet.sequence)?;
    number("mark", Some(packet.congestion_mark).filter(|mark| *mark != 0))?;
    number("incoming-face", packet.incoming_face)?;
    number("next-hop-face", packet.next_hop_face)?;
    number("tx", packet.tx_sequence)?;
    packet.acks().try_for_each(|ack| number("ack", Some(ack)))?;
    if let Some(token) = packet.pit_token {
        write!(f, " token={}", Hex(token))?;
    }
    for (is_set, label) in [
        (packet.no_cache, " no-cache"),
        (packet.non_discovery, " non-discovery"),
        (packet.prefix_announcement.is_some(), " announcement"),
    ] {
        f.write_str(if is_set { label } else { "" })?;
    }
    match packet.trace_context.and_then(TraceContext::parse) {
        Some(TraceContext { trace, span }) => write!(f, " trace={trace:032x}/{span:016x}"),
        None => Ok(()),
    }
}

fn fmt_packet(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    match bytes.first().map(|typ| u32::from(*typ)) {
        Some(types::INTEREST) => match Interest::parse(bytes) {
            Ok(interest) => fmt_interest(f, &interest),
            Err(error) => write!(f, "malformed Interest ({error})"),
        },
        Some(types::DATA) => match Data::parse(bytes) {
            Ok(data) => fmt_data(f, &data),
            Err(error) => write!(f, "malformed Data ({error})"),
        },
        Some(types::PUSH_FRAME | types::PUSH_APP) => push::fmt_line(f, bytes),
        _ => write!(f, "unknown packet {}", Octets(bytes)),
    }
}

fn fmt_interest(f: &mut fmt::Formatter<'_>, interest: &Interest<'_>) -> fmt::Result {
    write!(f, "Interest {}", interest.name)?;
    f.write_str(if interest.can_be_prefix { " can-be-prefix" } else { "" })?;
    f.write_str(if interest.must_be_fresh { " must-be-fresh" } else { "" })?;
    for name in interest.forwarding_hint.iter() {
        write!(f, " hint={name}")?;
    }
    if let Some(nonce) = &interest.nonce {
        write!(f, " nonce={}", Hex(nonce))?;
    }
    if let Some(lifetime) = interest.lifetime_ms {
        write!(f, " lifetime={lifetime}ms")?;
    }
    if let Some(hop_limit) = interest.hop_limit {
        write!(f, " hops={hop_limit}")?;
    }
    if let Some(parameters) = interest.app_parameters {
        write!(f, " parameters={} octets", parameters.len())?;
    }
    if let Some(info) = interest.signature_info() {
        write!(f, " signature-type={}", info.kind)?;
    }
    Ok(())
}

fn fmt_data(f: &mut fmt::Formatter<'_>, data: &Data<'_>) -> fmt::Result {
    write!(f, "Data {}", data.name)?;
    if data.content_type != types::CONTENT_BLOB {
        write!(f, " type={}", data.content_type)?;
    }
    if data.freshness_ms != 0 {
        write!(f, " fresh={}ms", data.freshness_ms)?;
    }
    if let Some(component) = data.final_block_id {
        write!(f, " final={component}")?;
    }
    write!(
        f,
        " content={} octets signature-type={}",
        data.content.len(),
        data.signature_info().kind
    )
}

impl fmt::Display for ControlResponse {
    /// Code and text, as people read them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text)
    }
}

impl fmt::Display for ControlParameters {
    /// The fields that are present, as `key=value`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = Vec::new();
        self.write_value(&mut value);
        for (index, element) in Reader::new(&value).filter_map(Result::ok).enumerate() {
            let (label, kind) = known(Self::TYPE, element.typ).unwrap_or(("?", Kind::Octets));
            write!(f, "{}{label}=", if index == 0 { "" } else { " " })?;
            match (kind, element.nni()) {
                (Kind::Name, _) => {
                    write!(f, "{}", NameRef::parse_value(element.value).unwrap_or_default())?
                }
                (Kind::Number, Ok(number)) => write!(f, "{number}")?,
                (Kind::Elements, _) => {
                    write!(f, "{}", NameRef::parse(element.value).unwrap_or_default())?;
                }
                _ => write!(f, "{}", String::from_utf8_lossy(element.value))?,
            }
        }
        Ok(())
    }
}
