//! Hellos on multi-access links: where a router can be reached.

use onym_crypto::Signer;
use onym_crypto::signer::write_parameters;
use onym_endpoint::{Incoming, Packet};
use onym_route::{Names, names};
use onym_wire::faceuri::FaceUri;
use onym_wire::name::Component;
use onym_wire::signature::SignatureInfo;
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{DataBuilder, InterestBuilder, Name, NameRef};

/// FaceUri of the sender (spec/registry.md).
const REACH: u32 = 65298;
/// Time until it says so again.
const INTERVAL: u32 = 65300;
const WORD: &[u8] = b"FIND";
/// URIs in a hello, at most; those beyond are not looked at.
const REACH_MAX: usize = 4;
const LIFETIME_MS: u64 = 1000;
/// To the forwarder here and the one there.
const HOP_LIMIT: u8 = 2;

/// `/localhop/R/32=DV/32=ADV/32=FIND`: that Data.
fn data_name(router: NameRef<'_>) -> Name {
    names::advert_prefix(router).with(Component::keyword(WORD))
}

/// What a router says on a link with several peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The router.
    pub router: Name,
    /// SignatureTime: a later hello has a later one; 0 when there is none.
    pub signed_ms: u64,
    /// Time until it says so again, in milliseconds.
    pub interval_ms: u64,
    /// Where it is reached.
    pub reach: Vec<FaceUri>,
}

impl Hello {
    /// `/localhop/N/32=DV/32=ADS/32=FIND`: Interests carry the hello as a Data.
    #[must_use]
    pub fn prefix(names: &Names) -> Name {
        names.sync.clone().with(Component::keyword(WORD))
    }

    /// Reads a hello and gives the Data whose signature is to be checked.
    #[must_use]
    pub fn read(names: &Names, incoming: &Incoming) -> Option<(Self, Packet)> {
        let interest = incoming.interest();
        onym_crypto::verify::check_parameters_digest(&interest).ok()?;
        let packet = Packet::parse(interest.app_parameters?).ok()?;
        let data = packet.data();
        let router = data.name.drop_last(3).suffix(1).to_name();
        if !names.is_router(router.as_ref()) || data_name(router.as_ref()).as_ref() != data.name {
            return None;
        }
        let signed_ms = data.signature_info().time.unwrap_or(0);
        let hello = parse(data.content, router, signed_ms).ok()?;
        Some((hello, packet))
    }

    /// The Interest that says it, with a Nonce; none when it cannot be signed.
    #[must_use]
    pub fn write(&self, names: &Names, signer: &Signer, nonce: [u8; 4]) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        for uri in self.reach.iter().take(REACH_MAX) {
            tlv::put_tlv(&mut content, REACH, uri.to_string().as_bytes());
        }
        tlv::put_nni_tlv(&mut content, INTERVAL, self.interval_ms);
        let name = data_name(self.router.as_ref());
        let builder = DataBuilder::new(name.as_ref(), &content);
        let info = SignatureInfo { time: Some(self.signed_ms), ..signer.info() };
        let mut data = Vec::new();
        builder.write(&mut data, &info, |signed| signer.sign(&[signed])).ok()?;
        let name = Self::prefix(names);
        let interest = InterestBuilder {
            nonce: Some(nonce),
            lifetime_ms: Some(LIFETIME_MS),
            hop_limit: Some(HOP_LIMIT),
            ..InterestBuilder::new(name.as_ref())
        };
        let mut wire = Vec::new();
        write_parameters(&interest, &data, &mut wire);
        Some(wire)
    }
}

fn parse(content: &[u8], router: Name, signed_ms: u64) -> Result<Hello, Malformed> {
    let mut hello = Hello { router, signed_ms, interval_ms: 0, reach: Vec::new() };
    for element in Reader::new(content) {
        let element = element?;
        match element.typ {
            REACH if hello.reach.len() < REACH_MAX => {
                let text = std::str::from_utf8(element.value).ok();
                // A scheme of a later version is none of ours.
                hello.reach.extend(text.and_then(|text| text.parse::<FaceUri>().ok()));
            }
            INTERVAL => hello.interval_ms = element.nni()?,
            typ if tlv::is_critical(typ) => return Err(Malformed::UnknownCritical(typ)),
            _ => {}
        }
    }
    Ok(hello)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_unknown_schemes_are_left_out() {
        let name = |uri: &str| uri.parse::<Name>().unwrap();
        let mut content = Vec::new();
        for uri in ["udp4://192.0.2.1:6363", "quic://x", "ether://[02:00:00:00:00:01]"] {
            tlv::put_tlv(&mut content, REACH, uri.as_bytes());
        }
        tlv::put_nni_tlv(&mut content, INTERVAL, 5000);
        tlv::put_tlv(&mut content, 65400, b"later");
        let hello = parse(&content, name("/net/a"), 7).unwrap();
        let shown: Vec<String> = hello.reach.iter().map(ToString::to_string).collect();
        assert!(shown.contains(&"udp4://192.0.2.1:6363".to_owned()), "{shown:?}");
        assert!(shown.contains(&"ether://[02:00:00:00:00:01]".to_owned()), "{shown:?}");
        assert_eq!((hello.interval_ms, hello.signed_ms), (5000, 7));
        tlv::put_tlv(&mut content, 31, b"");
        assert!(parse(&content, name("/net/a"), 7).is_err(), "unknown and critical");
        for end in 0..content.len() {
            let _ = parse(content.get(..end).unwrap(), name("/net/a"), 7);
        }
    }
}
