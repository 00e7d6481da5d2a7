//! Trace and echo requests with their replies: RFC 9507 and RFC 9508 as they read for NDN.
//!
//! A request is an Interest `/TARGET/NONCE/32=traceroute` or `/TARGET/NONCE/32=ping`, its reply Data
//! of that name with the sender's name and a code. Neither RFC gives NDN a TYPE for the code; it is
//! the one of the known implementation, which also has requests `/TARGET/traceroute/NONCE`.
//! The further elements are our own; `spec/registry.md` lists them.

use crate::name::{Name, NameRef};
use crate::tlv::{self, Element, Malformed, Reader};
use crate::types;

/// TYPE of the code in a reply.
const CODE: u32 = 128;
/// TYPE of what a node of ours tells beside the code: JSON.
const MORE: u32 = 130;
/// TYPE of a leg in the parameters of a request.
const LEG: u32 = 132;
/// TYPE of the face within a leg.
const LEG_FACE: u32 = 134;
/// TYPE of the number of hops within a leg.
const LEG_HOPS: u32 = 136;

/// The code of a reply: the target is a name of the replying forwarder.
pub const FORWARDER: u16 = 1;
/// The target leads to an application of the replying forwarder.
pub const APPLICATION: u16 = 2;
/// The replying forwarder has a packet of exactly this name.
pub const OBJECT: u16 = 3;
/// The HopLimit of the request is used up; the target lies further.
pub const HOP_LIMIT: u16 = 4;

/// Milliseconds for which a reply is fresh.
pub const FRESHNESS_MS: u64 = 1;

/// Most legs of a request.
pub const LEGS_MAX: usize = 32;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The way: each forwarder at which the HopLimit ends replies.
    Trace,
    /// Whether somebody is there.
    Echo,
}

/// The name of a request, taken apart.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it asks for.
    pub kind: Kind,
    /// What it asks about; never empty.
    pub target: NameRef<'a>,
    /// The name without a parameters digest.
    pub bare: NameRef<'a>,
}

impl<'a> Request<'a> {
    /// The request that `name` is; `None` when it is none.
    #[must_use]
    pub fn of(name: NameRef<'a>) -> Option<Self> {
        let digests = usize::from(name.last()?.is_parameters_digest());
        let bare = name.drop_last(digests);
        let last = bare.last()?;
        let before = bare.get(bare.len().checked_sub(2)?)?;
        let kind = match () {
            () if last.is_keyword(b"traceroute") || before.is_keyword(b"traceroute") => Kind::Trace,
            () if before.is_generic() && before.value == b"traceroute" => Kind::Trace,
            () if last.is_keyword(b"ping") => Kind::Echo,
            () => return None,
        };
        (bare.len() > 2).then(|| Self { kind, target: bare.drop_last(2), bare })
    }
}

/// The name of a request about `target`.
#[must_use]
pub fn request(kind: Kind, target: &Name, nonce: [u8; 4]) -> Name {
    let mut name = target.clone();
    name.append_generic(nonce);
    name.append_keyword(match kind {
        Kind::Trace => "traceroute",
        Kind::Echo => "ping",
    });
    name
}

/// The name of a trace request about `target` as the known implementation, a patch of NFD, has it: it
/// takes no other for one.
#[must_use]
pub fn request_of_nfd(target: &Name, nonce: [u8; 4]) -> Name {
    let mut name = target.clone();
    name.append_generic("traceroute").append_generic(nonce);
    name
}

/// What a request asks about of the push half, as its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication<'a> {
    /// Octets of the identifier of an item.
    pub item: &'a [u8],
    /// A frame without payload, as the node before sends it; none: as the publisher's own node does.
    pub frame: Option<&'a [u8]>,
}

impl<'a> Publication<'a> {
    /// What `target` asks about; `None` when that is a name of the pull half.
    #[must_use]
    pub fn of(target: NameRef<'a>) -> Option<Self> {
        let octets = |at| target.get(at).filter(|c| c.is_generic()).map(|c| c.value);
        let is_push = target.get(0)?.is_keyword(b"PUSH") && (2..=3).contains(&target.len());
        let frame = octets(2);
        let is_whole = frame.is_some() == (target.len() == 3);
        (is_push && is_whole).then_some(Self { item: octets(1)?, frame })
    }

    /// The target.
    #[must_use]
    pub fn to_target(self) -> Name {
        let mut name = Name::new();
        name.append_keyword("PUSH").append_generic(self.item);
        if let Some(frame) = self.frame {
            name.append_generic(frame);
        }
        name
    }
}

/// A part of the way that whoever asks prescribes: by this face of the node, and so many hops on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// A FaceId of the node where the leg begins.
    pub face: u32,
    /// Hops from there, at least 1; where they end the next leg begins.
    pub hops: u8,
}

impl Leg {
    /// Appends the leg to the parameters of a request.
    pub fn write(self, out: &mut Vec<u8>) {
        tlv::put_nested(out, LEG, |out| {
            tlv::put_nni_tlv(out, LEG_FACE, self.face.into());
            tlv::put_nni_tlv(out, LEG_HOPS, self.hops.into());
        });
    }

    /// The first leg in the parameters of a request, and the parameters behind it; `None` when
    /// there is no leg.
    ///
    /// # Errors
    /// They are no legs, or more than [`LEGS_MAX`].
    pub fn first(parameters: &[u8]) -> Result<Option<(Self, &[u8])>, Malformed> {
        if parameters.is_empty() {
            return Ok(None);
        }
        let (first, rest) = Self::split(parameters)?;
        let (mut left, mut count) = (rest, 1);
        while !left.is_empty() {
            (_, left) = Self::split(left)?;
            count += 1;
        }
        if count > LEGS_MAX { Err(Malformed::TooLong) } else { Ok(Some((first, rest))) }
    }

    fn split(parameters: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (element, rest) = Element::split(parameters)?;
        if element.typ != LEG {
            return Err(Malformed::Missing(LEG));
        }
        let mut reader = Reader::new(element.value);
        let face = reader.expect(LEG_FACE)?.nni()?;
        let hops = reader.expect(LEG_HOPS)?.nni()?;
        let face = u32::try_from(face).map_err(|_| Malformed::Length(LEG_FACE))?;
        match u8::try_from(hops) {
            Ok(hops @ 1..) => Ok((Self { face, hops }, rest)),
            _ => Err(Malformed::Length(LEG_HOPS)),
        }
    }
}

/// The content of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Who replies.
    pub sender: NameRef<'a>,
    /// Why this one; 1 to 4.
    pub code: u16,
    /// What a node of ours tells beside it: JSON.
    pub more: Option<&'a [u8]>,
}

impl<'a> Reply<'a> {
    /// Reads a content; what others put behind the code is skipped.
    ///
    /// # Errors
    /// It does not begin with a name and a code.
    pub fn parse(content: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(content);
        let sender = NameRef::parse_value(reader.expect(types::NAME)?.value)?;
        // Two octets by the RFC; the patch of NFD writes it as any number, in one.
        let code = reader.expect(CODE)?.nni()?;
        let code = code.try_into().map_err(|_| Malformed::Length(CODE))?;
        let mut more = None;
        while let Ok(element) = reader.element() {
            if element.typ == MORE {
                more = Some(element.value);
                break;
            }
        }
        Ok(Self { sender, code, more })
    }

    /// The content.
    #[must_use]
    pub fn to_content(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.sender.write_tlv(&mut out);
        tlv::put_tlv(&mut out, CODE, &self.code.to_be_bytes());
        if let Some(more) = self.more {
            tlv::put_tlv(&mut out, MORE, more);
        }
        out
    }
}

/// What a code means, in words.
#[must_use]
pub const fn meaning(code: u16) -> &'static str {
    match code {
        FORWARDER => "a forwarder has this name",
        APPLICATION => "an application answers",
        OBJECT => "an object with this name is there",
        HOP_LIMIT => "the hop limit is used up",
        _ => "unknown code",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Data, Interest, InterestBuilder};

    fn octets(hex: &str) -> Vec<u8> {
        let digits = hex.as_bytes().chunks(2);
        digits.map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
    }

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    /// As others write them: a request of RFC 9507, one in the form of the known implementation,
    /// and a reply of `/site/router1` with code 4.
    const REQUEST: &str = "052e071d0806746172676574080178080401020304200a7472616365726f75746512000a0\
                           4010203040c0207d0220101";
    const OTHER_FORM: &str = "053207210806746172676574080178080a7472616365726f75746508080102030405060\
                              70812000a04010203040c0207d0220101";
    const REPLY: &str = "0665071d0806746172676574080178080401020304200a7472616365726f7574651406180100\
                         1901011515070f0804736974650807726f75746572318002000416031b01001720a9f60ab26b4e02\
                         aae575a6594c58c04cff3758d2b5addfddc3e48b1d763d6b8d";

    #[test]
    fn requests_of_others_are_read_and_written() {
        let wire = octets(REQUEST);
        let interest = Interest::parse(&wire).unwrap();
        let asked = Request::of(interest.name).unwrap();
        assert_eq!((asked.kind, asked.target.to_string()), (Kind::Trace, "/target/x".into()));
        assert_eq!((interest.hop_limit, interest.must_be_fresh), (Some(1), true));
        let own = request(Kind::Trace, &name("/target/x"), [1, 2, 3, 4]);
        let mut written = Vec::new();
        InterestBuilder {
            must_be_fresh: true,
            nonce: Some([1, 2, 3, 4]),
            lifetime_ms: Some(2000),
            hop_limit: Some(1),
            ..InterestBuilder::new(own.as_ref())
        }
        .write(&mut written);
        assert_eq!(written, wire);
        let wire = octets(OTHER_FORM);
        let asked = Request::of(Interest::parse(&wire).unwrap().name).unwrap();
        assert_eq!((asked.kind, asked.target.to_string()), (Kind::Trace, "/target/x".into()));
        let own = request_of_nfd(&name("/target/x"), [1, 2, 3, 4]);
        assert_eq!(own, name("/target/x/traceroute/%01%02%03%04"));
    }

    #[test]
    fn replies_of_others_are_read_and_written() {
        let wire = octets(REPLY);
        let data = Data::parse(&wire).unwrap();
        let reply = Reply::parse(data.content).unwrap();
        assert_eq!((reply.sender.to_string(), reply.code), ("/site/router1".into(), HOP_LIMIT));
        assert_eq!((reply.more, data.freshness_ms), (None, FRESHNESS_MS));
        assert_eq!(reply.to_content(), data.content);
        let of_nfd = [&data.content[..17], &[128, 1, 4][..]].concat();
        assert_eq!(Reply::parse(&of_nfd).unwrap(), reply, "as the patch of NFD writes it");
        let wide = [&data.content[..17], &[128, 4, 0, 1, 0, 0][..]].concat();
        assert!(Reply::parse(&wide).is_err(), "no code is so large");
        let more = Reply { more: Some(b"{}"), ..reply }.to_content();
        assert_eq!(&more[..data.content.len()], data.content, "others skip what is behind");
        assert_eq!(Reply::parse(&more).unwrap().more, Some(&b"{}"[..]));
    }

    #[test]
    fn names_of_echo_requests_are_told_from_those_of_pings() {
        let own = request(Kind::Echo, &name("/target"), [1, 2, 3, 4]);
        assert_eq!(own.value(), b"\x08\x06target\x08\x04\x01\x02\x03\x04\x20\x04ping");
        let mut with = own.clone();
        with.append_parameters_digest(&[7; 32]);
        for name in [&own, &with] {
            let asked = Request::of(name.as_ref()).unwrap();
            assert_eq!((asked.kind, asked.target.to_string()), (Kind::Echo, "/target".into()));
            assert_eq!(asked.bare, own.as_ref());
        }
        for none in ["/", "/32=ping", "/1/32=ping", "/a/ping", "/a/ping/1", "/a/1/ping"] {
            assert!(Request::of(name(none).as_ref()).is_none(), "{none}");
        }
        for none in ["/32=traceroute", "/1/32=traceroute", "/traceroute/1", "/a/1/traceroute"] {
            assert!(Request::of(name(none).as_ref()).is_none(), "{none}");
        }
    }

    #[test]
    fn publications_are_told_from_names() {
        for frame in [None, Some(&b"frame"[..])] {
            let asked = Publication { item: &[7; 16], frame };
            let name = request(Kind::Trace, &asked.to_target(), [1, 2, 3, 4]);
            let target = Request::of(name.as_ref()).unwrap().target;
            assert_eq!(Publication::of(target), Some(asked));
        }
        for none in ["/32=PUSH", "/PUSH/a", "/a/32=PUSH/b", "/32=PUSH/a/b/c", "/32=PUSH/32=a"] {
            assert_eq!(Publication::of(name(none).as_ref()), None, "{none}");
        }
    }

    #[test]
    fn legs_are_taken_one_by_one_and_what_is_none_is_refused() {
        let legs = [Leg { face: 260, hops: 1 }, Leg { face: 70_000, hops: 3 }];
        let mut parameters = Vec::new();
        legs.iter().for_each(|leg| leg.write(&mut parameters));
        let (first, rest) = Leg::first(&parameters).unwrap().unwrap();
        let (second, end) = Leg::first(rest).unwrap().unwrap();
        assert_eq!(([first, second], end), (legs, &[][..]));
        assert_eq!(Leg::first(b"").unwrap(), None);
        for len in 1..parameters.len() {
            let is_whole = len == parameters.len() - rest.len();
            assert_eq!(Leg::first(&parameters[..len]).is_ok(), is_whole, "{len}");
        }
        let mut none = Vec::new();
        Leg { face: 260, hops: 0 }.write(&mut none);
        assert!(Leg::first(&none).is_err(), "a leg goes somewhere");
        let mut many = Vec::new();
        (0..=LEGS_MAX).for_each(|_| legs[0].write(&mut many));
        assert_eq!(Leg::first(&many), Err(Malformed::TooLong));
    }

    #[test]
    fn a_content_that_is_cut_off_is_no_reply() {
        let whole = Reply { sender: name("/a").as_ref(), code: 2, more: None }.to_content();
        for len in 0..whole.len() {
            assert!(Reply::parse(&whole[..len]).is_err(), "{len}");
        }
    }
}
