//! Echo requests and replies of RFC 9508, with the names and TLV that RFC 9507 gives NDN: the target,
//! a nonce, `32=ping`; the sender's name and a code of two octets.

use onym_wire::Name;
use onym_wire::name::NameRef;
use onym_wire::tlv::{self, Reader};
use onym_wire::types;

/// TYPE of the code. No registry has one; this is that of the one implementation for NDN (of RFC
/// 9507).
const CODE: u32 = 128;
/// The target is an application that answers.
pub(crate) const APPLICATION: u16 = 2;
/// Milliseconds for which a reply is fresh.
pub(crate) const FRESHNESS_MS: u64 = 1;

/// Name of an echo request.
pub(crate) fn request(target: &Name, nonce: [u8; 4]) -> Name {
    let mut name = target.clone();
    name.append_generic(nonce);
    name.append_keyword("ping");
    name
}

/// What an echo request asks for; `None` when the name is none of one.
pub(crate) fn target(name: NameRef<'_>) -> Option<NameRef<'_>> {
    let digests = usize::from(name.last()?.is_parameters_digest());
    let name = name.drop_last(digests);
    (name.len() >= 2 && name.last()?.is_keyword(b"ping")).then(|| name.drop_last(2))
}

/// Content of a reply.
pub(crate) fn content(sender: NameRef<'_>, code: u16) -> Vec<u8> {
    let mut out = Vec::new();
    sender.write_tlv(&mut out);
    tlv::put_tlv(&mut out, CODE, &code.to_be_bytes());
    out
}

/// Sender and code of a reply; what follows them is of others.
pub(crate) fn reply(content: &[u8]) -> Option<(Name, u16)> {
    let mut reader = Reader::new(content);
    let sender = reader.expect(types::NAME).ok()?;
    let code = reader.expect(CODE).ok()?.value;
    let sender = NameRef::parse_value(sender.value).ok()?;
    Some((sender.to_name(), u16::from_be_bytes(code.try_into().ok()?)))
}

/// What a code means.
pub(crate) const fn meaning(code: u16) -> &'static str {
    match code {
        1 => "a forwarder has this name",
        2 => "an application answers",
        3 => "an object with this name is there",
        _ => "unknown code",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Content of a reply from /site/router1 with code 4, as others write it.
    const REPLY: &[u8] = b"\x07\x0f\x08\x04site\x08\x07router1\x80\x02\x00\x04";

    #[test]
    fn names_and_replies_are_those_of_others() {
        let name = request(&"/target".parse().unwrap(), [1, 2, 3, 4]);
        assert_eq!(name.value(), b"\x08\x06target\x08\x04\x01\x02\x03\x04\x20\x04ping");
        assert_eq!(target(name.as_ref()).unwrap().to_string(), "/target");
        let mut with = name.clone();
        with.append_parameters_digest(&[7; 32]);
        assert_eq!(target(with.as_ref()).unwrap().to_string(), "/target");
        let site: Name = "/site/router1".parse().unwrap();
        assert_eq!(reply(REPLY), Some((site.clone(), 4)));
        assert_eq!(content(site.as_ref(), 4), REPLY);
    }

    #[test]
    fn what_is_no_request_and_no_reply_is_told_apart() {
        for name in ["/", "/32=ping", "/a/ping", "/a/ping/1", "/a/1/ping"] {
            assert_eq!(target(name.parse::<Name>().unwrap().as_ref()), None, "{name}");
        }
        for len in 0..REPLY.len() {
            assert_eq!(reply(&REPLY[..len]), None, "{len}");
        }
    }
}
