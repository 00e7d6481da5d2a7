//! Data with real signatures, made before they are asked for.

use crate::packets::{Exchange, link_header, name_of};
use anyhow::Result;
use onym_crypto::Signer;
use onym_frame::Buf;
use onym_wire::data::DataBuilder;

/// Signed Data for every slot and the first numbers of each.
#[derive(Debug)]
pub struct SignedSet {
    wires: Vec<Buf>,
    per_slot: u64,
    header: Vec<u8>,
}

impl SignedSet {
    /// Signs `per_slot` Data of `payload` octets for each of `slots`, fresh for 10 s.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn new(payload: usize, slots: u32, per_slot: u64, signer: &Signer) -> Result<Self> {
        let content = vec![0xA5; payload];
        let mut wires = Vec::new();
        for slot in 0..slots {
            for number in 0..per_slot {
                let name = name_of(Exchange { slot, number });
                let mut data = DataBuilder::new(name.as_ref(), &content);
                data.freshness_ms = 10_000;
                let mut wire = Vec::new();
                signer.sign_data(&data, &mut wire)?;
                wires.push(Buf::copy_from(&wire));
            }
        }
        Ok(Self { wires, per_slot, header: Vec::new() })
    }

    /// The Data of `exchange` behind a link header with `token` when there is one; `None` for
    /// what is not in the set.
    pub fn write(&mut self, exchange: Exchange, token: &[u8]) -> Option<(&[u8], &Buf)> {
        let at = u64::from(exchange.slot) * self.per_slot + exchange.number;
        let wire = usize::try_from(at).ok().and_then(|at| self.wires.get(at))?;
        self.header.clear();
        if !token.is_empty() {
            link_header(&mut self.header, token, wire.len());
        }
        Some((&self.header, wire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::{Seen, see};
    use onym_crypto::verify::Signed;
    use onym_crypto::{KeyType, PrivateKey, PublicKey};
    use onym_wire::data::Data;
    use onym_wire::lp::LpPacket;

    #[test]
    fn prepared_data_carry_their_names_and_signatures_that_verify() {
        let key = PrivateKey::generate(KeyType::Ecdsa).unwrap();
        let public = PublicKey::from_spki(key.spki()).unwrap();
        let signer = Signer::key(key, "/onym/bench/KEY/1".parse().unwrap());
        let mut set = SignedSet::new(300, 3, 2, &signer).unwrap();
        let exchange = Exchange { slot: 2, number: 1 };
        for token in [&b""[..], b"1234"] {
            let (header, wire) = set.write(exchange, token).unwrap();
            let frame = [header, &**wire].concat();
            assert!(matches!(see(&frame), Seen::Data(seen, _) if seen == exchange));
            let lp = LpPacket::parse(&frame).unwrap();
            assert_eq!(lp.pit_token.unwrap_or(&[]), token);
            let data = Data::parse(lp.fragment.unwrap()).unwrap();
            assert!(Signed::data(&data).verify_key(&public).is_ok());
        }
        assert!(set.write(Exchange { slot: 3, number: 0 }, b"").is_none());
    }
}
