//! Which shard a packet belongs to.
//!
//! Exact Interests go by a keyed hash of the whole name, answers by the shard in our own token,
//! else by their name. Interests with CanBePrefix are pending in shard 0, after all content stores
//! were asked; Data that may answer one of them (`wanted`) visits shard 0 first.
//!
//! Differences to a single shard, which no packet shows:
//!
//! - a face that asked for a name by an exact Interest and by one with CanBePrefix gets the Data for
//!   each;
//! - of several cached matches, a prefix Interest gets that of the first shard asked that has one,
//!   not the smallest name;
//! - the limits of tables are divided among the shards, and each evicts in its own order;
//! - what strategies measured of a prefix is known only to the shard that measured it.

use super::wanted::Wanted;
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

    /// The way of `packet`, where shard 0 waits for what is `wanted`.
    /// `None` when no name can be found: the packet is malformed, and any shard can say so.
    #[inline]
    pub(crate) fn way(&self, packet: &Packet, wanted: &Wanted) -> Option<Way> {
        let is_data = PacketType::of(&packet.bytes)? == PacketType::Data;
        if is_data {
            return self.way_of_data(packet, wanted);
        }
        let (name, after) = name_of(&packet.bytes)?;
        if after.first() != Some(&CAN_BE_PREFIX) {
            return Some(self.home(name));
        }
        Some(match packet.lp.nack {
            Some(_) => Way { shard: 0, leg: Leg::Home },
            None => Way { shard: self.shards - 1, leg: Leg::Probe },
        })
    }

    #[inline]
    fn way_of_data(&self, packet: &Packet, wanted: &Wanted) -> Option<Way> {
        if !wanted.is_empty() {
            let (name, _) = name_of(&packet.bytes)?;
            if wanted.may_be(name) {
                let home = u8::try_from(self.by_name(name)).unwrap_or(0);
                return Some(Way { shard: 0, leg: Leg::Discovery(home) });
            }
        }
        if let Some(way) = self.by_token(packet) {
            return Some(way);
        }
        name_of(&packet.bytes).map(|(name, _)| self.home(name))
    }

    /// Where exact Interests for a name live.
    #[inline]
    fn home(&self, name: &[u8]) -> Way {
        Way { shard: self.by_name(name), leg: Leg::Home }
    }

    /// The way that a token of ours says. It saves finding and hashing the name, and may be wrong:
    /// the shard checks.
    #[inline]
    fn by_token(&self, packet: &Packet) -> Option<Way> {
        let token = &packet.lp.pit_token;
        let shard = usize::from(*token.first()?);
        let ours = token.len() == TOKEN_LEN && shard < self.shards;
        ours.then_some(Way { shard, leg: Leg::Token })
    }

    /// The shard of a Data whose token misled it to shard `index`; `None`: that one.
    pub(crate) fn home_elsewhere(&self, packet: &Packet, index: usize) -> Option<usize> {
        let (name, _) = name_of(&packet.bytes)?;
        Some(self.by_name(name)).filter(|home| *home != index)
    }

    /// The shard of exact Interests for a name (its value), an implicit digest at its end left out.
    #[inline]
    pub(crate) fn by_name(&self, name: &[u8]) -> usize {
        let hash = self.key.octets(&name[..without_digest(name)]);
        // The upper half of the product: below the number of shards.
        let product = u128::from(hash) * self.shards as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }
}

/// Value of the Name of an Interest or Data, and what follows it.
#[inline]
fn name_of(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    if !matches!(PacketType::of(packet), Some(PacketType::Interest | PacketType::Data)) {
        return None;
    }
    let (_, value, _) = element(packet)?;
    let (typ, name, after) = element(value)?;
    (typ == NAME).then_some((name, after))
}

/// First element of `bytes` when its type has one octet: type, value, rest.
#[inline]
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
    use onym_tables::hash::NameHashes;
    use onym_tables::pit::{Key, Pit, Token};

    fn packet(bytes: &[u8], token: &[u8]) -> Packet {
        let pit_token = Token::try_from(token).unwrap();
        let lp = LpIn { pit_token, ..LpIn::default() };
        Packet { face: FaceId(256), bytes: Buf::copy_from(bytes), lp }
    }

    fn chooser() -> Chooser {
        Chooser::new(&KEY, 4)
    }

    const KEY: HashKey = HashKey::new(1, 2);

    fn nothing() -> Wanted {
        Wanted::new(KEY)
    }

    /// Law: Data that answers an Interest with CanBePrefix sees it first; other Data goes its way, and
    /// all does again when that has ended.
    #[test]
    fn only_data_that_may_answer_a_discovery_is_shown_to_it() {
        let wanted = nothing();
        let (mut pit, name): (Pit<u8>, _) = (Pit::new(10), &NAME_A[2..]);
        let interest = [&[5, 7][..], &NAME_A, &[0x21, 0]].concat();
        let hashes = NameHashes::new(&KEY, name, 0);
        let key = Key { can_be_prefix: true, ..Key::new(&interest[4..7], &hashes) };
        let slot = pit.insert(&pit.look(&key), &key, &interest).unwrap();
        wanted.tell(pit.prefixes_mut());
        let leg = |wanted: &Wanted, n: u8| {
            let data = [6, 8, 7, 6, 8, 1, n, 8, 1, b'x'];
            chooser().way(&packet(&data, &[]), wanted).unwrap().leg
        };
        assert!(matches!(leg(&wanted, b'a'), Leg::Discovery(_)));
        let shown = (0..=255).filter(|n| leg(&wanted, *n) != Leg::Home).count();
        assert_eq!(shown, 1);
        pit.erase(slot);
        wanted.tell(pit.prefixes_mut());
        assert_eq!(leg(&wanted, b'a'), Leg::Home);
    }

    const NAME_A: [u8; 5] = [7, 3, 8, 1, b'a'];

    #[test]
    fn an_interest_and_its_data_choose_the_same_shard() {
        let interest = [&[5, 5][..], &NAME_A].concat();
        let data = [&[6, 5][..], &NAME_A].concat();
        let up = chooser().way(&packet(&interest, &[]), &nothing()).unwrap();
        let down = chooser().way(&packet(&data, &[]), &nothing()).unwrap();
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
        let by_name = chooser().way(&packet(&data, &[]), &nothing()).unwrap().shard;
        for shard in 0..4_u8 {
            let token = [shard, 0, 0, 0, 0, 0];
            assert_eq!(
                chooser().way(&packet(&data, &token), &nothing()).unwrap(),
                Way { shard: shard.into(), leg: Leg::Token }
            );
            let other = (by_name != usize::from(shard)).then_some(by_name);
            assert_eq!(chooser().home_elsewhere(&packet(&data, &token), shard.into()), other);
        }
        for token in [&[2][..], &[9, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(chooser().way(&packet(&data, token), &nothing()).unwrap().shard, by_name);
        }
    }

    #[test]
    fn discovery_interests_are_probed_from_the_last_shard_on() {
        let interest = [&[5, 7][..], &NAME_A, &[0x21, 0]].concat();
        let way = chooser().way(&packet(&interest, &[]), &nothing()).unwrap();
        assert_eq!(way, Way { shard: 3, leg: Leg::Probe });
    }

    #[test]
    fn a_packet_without_a_name_has_no_way() {
        for bytes in [&[][..], &[5], &[5, 0], &[5, 3, 8, 1, 1], &[5, 200, 7], &[9, 2, 7, 0]] {
            assert_eq!(chooser().way(&packet(bytes, &[]), &nothing()), None);
        }
    }
}
