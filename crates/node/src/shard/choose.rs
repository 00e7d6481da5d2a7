//! Which shard a packet belongs to.
//!
//! Exact Interests go by a keyed hash of the whole name, answers by the shard in our own token,
//! else by their name. Interests with CanBePrefix are pending in shard 0, after all content stores
//! were asked; Data visits shard 0 first while it holds any of them.
//!
//! Differences to a single shard, which no packet shows:
//!
//! - a face that asked for a name by an exact Interest and by one with CanBePrefix gets the Data for
//!   each;
//! - of several cached matches, a prefix Interest gets that of the first shard asked that has one,
//!   not the smallest name;
//! - the limits of tables are divided among the shards, and each evicts in its own order;
//! - what strategies measured of a prefix is known only to the shard that measured it.

use crate::cross::Leg;
use onym_link::Packet;
use onym_tables::hash::without_digest;
use onym_tables::pit::TOKEN_LEN;
use onym_tables::{FoldKey, HashKey};
use onym_wire::types::{self, PacketType};

/// The way of a packet that was just received by some shard: the first shard and what to do there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) shard: usize,
    pub(crate) leg: Leg,
}

/// What shard 0 holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Interests with CanBePrefix, which any Data may answer.
    Discovery,
    /// None of them.
    Exact,
}

/// What decides, the same for all shards.
#[derive(Debug, Clone)]
pub(crate) struct Chooser {
    key: FoldKey,
    pub(crate) shards: usize,
}

// Both have one octet.
const NAME: u8 = types::NAME as u8;
const CAN_BE_PREFIX: u8 = types::CAN_BE_PREFIX as u8;

impl Chooser {
    pub(crate) fn new(key: &HashKey, shards: usize) -> Self {
        Self { key: FoldKey::new(key), shards }
    }

    /// The way of `packet`.
    /// `None` when no name can be found: the packet is malformed, and any shard can say so.
    pub(crate) fn way(&self, packet: &Packet, waiting: Waiting) -> Option<Way> {
        let (kind, name, after) = name_of(&packet.bytes)?;
        if kind == PacketType::Data {
            if waiting == Waiting::Discovery {
                let home = u8::try_from(self.by_name(name)).unwrap_or(0);
                return Some(Way { shard: 0, leg: Leg::Discovery(home) });
            }
            return Some(self.by_token(packet).unwrap_or_else(|| self.home(name)));
        }
        let prefix = after.first() == Some(&CAN_BE_PREFIX);
        Some(match (packet.lp.nack.is_some(), prefix) {
            (true, true) => Way { shard: 0, leg: Leg::Home },
            (false, true) => Way { shard: self.shards - 1, leg: Leg::Probe },
            (_, false) => self.home(name),
        })
    }

    /// Where exact Interests for a name live.
    fn home(&self, name: &[u8]) -> Way {
        Way { shard: self.by_name(name), leg: Leg::Home }
    }

    /// The way that a token of ours says. It saves hashing the name, and may be wrong: the shard
    /// checks. Data for discovery Interests, of shard 0, is cached where exact Interests look.
    fn by_token(&self, packet: &Packet) -> Option<Way> {
        let token = &packet.lp.pit_token;
        let shard = usize::from(*token.first()?);
        let ours = token.len() == TOKEN_LEN && shard != 0 && shard < self.shards;
        ours.then_some(Way { shard, leg: Leg::Token })
    }

    /// Whether a Data that came by its token is in the right shard, this one being `index`;
    /// `fits` says whether the token leads to an Interest of a name. Else the shard it belongs to.
    pub(crate) fn misled(
        &self,
        packet: &Packet,
        index: usize,
        fits: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Option<usize> {
        let (_, name, _) = name_of(&packet.bytes)?;
        if fits(&packet.lp.pit_token, name) {
            return None;
        }
        Some(self.by_name(name)).filter(|home| *home != index)
    }

    /// The shard of exact Interests for a name (its value), an implicit digest at its end left out.
    pub(crate) fn by_name(&self, name: &[u8]) -> usize {
        let hash = self.key.octets(&name[..without_digest(name)]);
        // The upper half of the product: below the number of shards.
        let product = u128::from(hash) * self.shards as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }
}

/// Type of the packet, value of its Name, and what follows the Name.
fn name_of(packet: &[u8]) -> Option<(PacketType, &[u8], &[u8])> {
    let kind = PacketType::of(packet)?;
    if !matches!(kind, PacketType::Interest | PacketType::Data) {
        return None;
    }
    let (_, value, _) = element(packet)?;
    let (typ, name, after) = element(value)?;
    (typ == NAME).then_some((kind, name, after))
}

/// First element of `bytes` when its type has one octet: type, value, rest.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&typ, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        253 => (usize::from(u16::from_be_bytes(*rest.first_chunk()?)), &rest[2..]),
        254 => (usize::try_from(u32::from_be_bytes(*rest.first_chunk()?)).ok()?, &rest[4..]),
        255 => return None,
        len => (usize::from(len), rest),
    };
    let (value, rest) = rest.split_at_checked(len)?;
    Some((typ, value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_frame::Buf;
    use onym_link::LpIn;
    use onym_tables::FaceId;
    use onym_tables::pit::Token;

    fn packet(bytes: &[u8], token: &[u8]) -> Packet {
        let pit_token = Token::try_from(token).unwrap();
        let lp = LpIn { pit_token, ..LpIn::default() };
        Packet { face: FaceId(256), bytes: Buf::copy_from(bytes), lp }
    }

    fn chooser() -> Chooser {
        Chooser::new(&HashKey::new(1, 2), 4)
    }

    const NAME_A: [u8; 5] = [7, 3, 8, 1, b'a'];

    #[test]
    fn an_interest_and_its_data_choose_the_same_shard() {
        let interest = [&[5, 5][..], &NAME_A].concat();
        let data = [&[6, 5][..], &NAME_A].concat();
        let up = chooser().way(&packet(&interest, &[]), Waiting::Exact).unwrap();
        let down = chooser().way(&packet(&data, &[]), Waiting::Exact).unwrap();
        assert_eq!((up.leg, up), (Leg::Home, down));
    }

    #[test]
    fn a_name_and_the_same_with_its_digest_choose_the_same_shard() {
        for n in 0..50 {
            let plain = [8, 1, n];
            let digested = [&plain[..], &[1, 32], &[n; 32]].concat();
            assert_eq!(chooser().by_name(&plain), chooser().by_name(&digested));
        }
    }

    #[test]
    fn a_token_of_ours_is_a_hint_and_a_foreign_one_is_not() {
        let data = [&[6, 5][..], &NAME_A].concat();
        let by_name = chooser().way(&packet(&data, &[]), Waiting::Exact).unwrap().shard;
        for shard in 1..4_u8 {
            let token = [shard, 0, 0, 0, 0, 0];
            assert_eq!(
                chooser().way(&packet(&data, &token), Waiting::Exact).unwrap(),
                Way { shard: shard.into(), leg: Leg::Token }
            );
            let misled =
                |fits: bool| chooser().misled(&packet(&data, &token), shard.into(), |_, _| fits);
            let other = (by_name != usize::from(shard)).then_some(by_name);
            assert_eq!((misled(true), misled(false)), (None, other));
        }
        for token in [&[2][..], &[9, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(
                chooser().way(&packet(&data, token), Waiting::Exact).unwrap().shard,
                by_name
            );
        }
    }

    #[test]
    fn discovery_interests_are_probed_and_data_sees_them_first() {
        let interest = [&[5, 7][..], &NAME_A, &[0x21, 0]].concat();
        let way = chooser().way(&packet(&interest, &[]), Waiting::Exact).unwrap();
        assert_eq!(way, Way { shard: 3, leg: Leg::Probe });
        let data = [&[6, 5][..], &NAME_A].concat();
        let home = chooser().way(&packet(&data, &[]), Waiting::Exact).unwrap().shard;
        let way = chooser().way(&packet(&data, &[]), Waiting::Discovery).unwrap();
        assert_eq!(way, Way { shard: 0, leg: Leg::Discovery(u8::try_from(home).unwrap()) });
    }

    #[test]
    fn a_packet_without_a_name_has_no_way() {
        for bytes in [&[][..], &[5], &[5, 0], &[5, 3, 8, 1, 1], &[5, 200, 7], &[9, 2, 7, 0]] {
            assert_eq!(chooser().way(&packet(bytes, &[]), Waiting::Exact), None);
        }
    }
}
