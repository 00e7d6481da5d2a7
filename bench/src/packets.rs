//! Packets of the load generator: written once, then only numbers in them change.
//!
//! Names are `/onym/bench/load/alpha/bravo/charlie/<slot>/<number>`: eight components, so that each
//! exchange has a name of its own. A slot is one place of the window.

use onym_frame::Buf;
use onym_wire::lp::LpPacket;
use onym_wire::name::Name;

/// The prefix that the producer registers.
pub const PREFIX: &str = "/onym/bench/load";
const FIXED: [&str; 6] = ["onym", "bench", "load", "alpha", "bravo", "charlie"];
/// A slot number that no producer answers: the names of the attacker.
pub const ATTACK: u32 = u32::MAX;
/// Octets of the last two components with their headers.
const NUMBERS_LEN: usize = 2 + 4 + 2 + 8;

/// Which exchange a packet belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The place in the window.
    pub slot: u32,
    /// Counts up in each slot.
    pub number: u64,
}

fn tlv(typ: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![typ];
    match u8::try_from(value.len()) {
        Ok(len) if len < 253 => out.push(len),
        _ => {
            out.push(253);
            let len = u16::try_from(value.len()).expect("invariant: packets are below 64 KiB");
            out.extend(len.to_be_bytes());
        }
    }
    out.extend(value);
    out
}

fn name(prefix: &[&str]) -> Vec<u8> {
    let mut components: Vec<u8> = prefix.iter().flat_map(|c| tlv(8, c.as_bytes())).collect();
    components.extend(tlv(8, &[0; 4]));
    components.extend(tlv(8, &[0; 8]));
    tlv(7, &components)
}

/// The name of an exchange.
#[must_use]
pub fn name_of(exchange: Exchange) -> Name {
    let mut out = Name::default();
    for component in FIXED {
        out.append_generic(component);
    }
    out.append_generic(exchange.slot.to_be_bytes());
    out.append_generic(exchange.number.to_be_bytes());
    out
}

fn write_numbers(name_end: &mut [u8], exchange: Exchange) {
    name_end[2..6].copy_from_slice(&exchange.slot.to_be_bytes());
    name_end[8..16].copy_from_slice(&exchange.number.to_be_bytes());
}

fn read_numbers(name_end: &[u8]) -> Option<Exchange> {
    let slot = u32::from_be_bytes(name_end.get(2..6)?.try_into().ok()?);
    let number = u64::from_be_bytes(name_end.get(8..16)?.try_into().ok()?);
    Some(Exchange { slot, number })
}

/// Interests that differ in their numbers and Nonce.
#[derive(Debug)]
pub struct InterestTemplate {
    wire: Vec<u8>,
    name_end: usize,
    nonce: u32,
}

impl InterestTemplate {
    /// Interests for the producer's names.
    #[must_use]
    pub fn new() -> Self {
        let value = [name(&FIXED), tlv(0x0A, &[0; 4])].concat();
        let wire = tlv(5, &value);
        let name_end = wire.len() - 6;
        Self { wire, name_end, nonce: std::process::id().wrapping_mul(0x9E37_79B9) }
    }

    /// The Interest of `exchange`, with a Nonce of its own.
    pub fn write(&mut self, exchange: Exchange) -> &[u8] {
        write_numbers(&mut self.wire[self.name_end - NUMBERS_LEN..self.name_end], exchange);
        self.nonce = self.nonce.wrapping_add(0x9E37_79B9);
        let at = self.wire.len() - 4;
        self.wire[at..].copy_from_slice(&self.nonce.to_be_bytes());
        &self.wire
    }
}

impl Default for InterestTemplate {
    fn default() -> Self {
        Self::new()
    }
}

/// Data that differ in their numbers. The signature has the right form and length but is not
/// computed for each packet: nobody on the way looks at it, and the generator must not be the
/// bottleneck.
#[derive(Debug)]
pub struct DataTemplate {
    head: Vec<u8>,
    rest: Buf,
    name_end: usize,
    scratch: Vec<u8>,
}

impl DataTemplate {
    /// Data with `payload` octets of content, fresh for 10 s.
    #[must_use]
    pub fn new(payload: usize) -> Self {
        let name = name(&FIXED);
        let meta = tlv(0x14, &tlv(0x19, &10_000_u16.to_be_bytes()));
        let content = tlv(0x15, &vec![0xA5; payload]);
        let signature = [tlv(0x16, &tlv(0x1B, &[0])), tlv(0x17, &[0x5A; 32])].concat();
        let rest = [meta, content, signature].concat();
        let whole = tlv(6, &[name.clone(), rest.clone()].concat());
        let name_end = whole.len() - rest.len();
        Self {
            head: whole[..name_end].to_vec(),
            rest: Buf::copy_from(&rest),
            name_end,
            scratch: Vec::new(),
        }
    }

    /// The Data of `exchange` in two parts, with `token` in a link header when there is one.
    pub fn write(&mut self, exchange: Exchange, token: &[u8]) -> (&[u8], &Buf) {
        write_numbers(&mut self.head[self.name_end - NUMBERS_LEN..], exchange);
        if token.is_empty() {
            return (&self.head, &self.rest);
        }
        self.scratch.clear();
        link_header(&mut self.scratch, token, self.head.len() + self.rest.len());
        self.scratch.extend(&self.head);
        (&self.scratch, &self.rest)
    }
}

/// The header that carries `token` in front of a packet of `packet_len` octets.
pub fn link_header(out: &mut Vec<u8>, token: &[u8], packet_len: usize) {
    let token_field = 2 + token.len();
    out.push(0x64);
    push_len(out, token_field + 1 + len_len(packet_len) + packet_len);
    out.extend([0x62, u8::try_from(token.len()).unwrap_or(0)]);
    out.extend(token);
    out.push(0x50);
    push_len(out, packet_len);
}

fn len_len(len: usize) -> usize {
    if len < 253 { 1 } else { 3 }
}

fn push_len(out: &mut Vec<u8>, len: usize) {
    match u8::try_from(len) {
        Ok(len) if len < 253 => out.push(len),
        _ => {
            out.push(253);
            out.extend(u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
}

/// What a frame holds for the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<'a> {
    /// An Interest of ours, with the token to be echoed.
    Interest(Exchange, &'a [u8]),
    /// A Data of ours, with the octets of the whole packet.
    Data(Exchange, usize),
    /// A Nack of an Interest of ours.
    Nack(Exchange),
    /// Anything else.
    Other,
}

/// Looks into a frame.
#[must_use]
pub fn see(frame: &[u8]) -> Seen<'_> {
    if matches!(frame.first(), Some(5 | 6)) {
        return see_packet(frame, &[], false);
    }
    match LpPacket::parse(frame) {
        Ok(LpPacket { fragment: Some(packet), pit_token, nack, .. }) => {
            see_packet(packet, pit_token.unwrap_or(&[]), nack.is_some())
        }
        _ => Seen::Other,
    }
}

fn see_packet<'a>(packet: &[u8], token: &'a [u8], is_nack: bool) -> Seen<'a> {
    let header = if packet.get(1).is_some_and(|&l| l < 253) { 2 } else { 4 };
    // The name is short: its header is two octets.
    let Some(&name_len) = packet.get(header + 1) else { return Seen::Other };
    let end = header + 2 + usize::from(name_len);
    let numbers = end.checked_sub(NUMBERS_LEN).and_then(|at| packet.get(at..end));
    let Some(exchange) = numbers.and_then(read_numbers) else { return Seen::Other };
    match packet[0] {
        5 if is_nack => Seen::Nack(exchange),
        5 => Seen::Interest(exchange, token),
        6 => Seen::Data(exchange, packet.len()),
        _ => Seen::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::data::Data;
    use onym_wire::interest::Interest;

    #[test]
    fn templates_are_valid_packets_with_names_of_eight_components() {
        let exchange = Exchange { slot: 7, number: 1 << 40 };
        let mut interests = InterestTemplate::new();
        let wire = interests.write(exchange).to_vec();
        let interest = Interest::parse(&wire).unwrap();
        assert_eq!(interest.name.components().count(), 8);
        assert_eq!(see(&wire), Seen::Interest(exchange, &[]));
        for payload in [100, 8000] {
            for token in [&b""[..], b"12345678"] {
                let mut data = DataTemplate::new(payload);
                let (head, rest) = data.write(exchange, token);
                let frame = [head, &**rest].concat();
                let lp = LpPacket::parse(&frame).unwrap();
                assert_eq!(lp.pit_token.unwrap_or(&[]), token);
                let packet = Data::parse(lp.fragment.unwrap()).unwrap();
                assert_eq!(packet.content.len(), payload);
                assert_eq!(packet.name, interest.name);
                assert_eq!(see(&frame), Seen::Data(exchange, lp.fragment.unwrap().len()));
            }
        }
    }
}
