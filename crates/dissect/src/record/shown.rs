//! A record as a JSON object, without absent and default members.

use super::{Carrier, Direction, Record};
use onym_wire::data::Data;
use onym_wire::dump::Hex;
use onym_wire::interest::Interest;
use onym_wire::lp::LpPacket;
use onym_wire::push::app::Message;
use onym_wire::push::{Flags, Frame, Id};
use onym_wire::tlv::Malformed;
use onym_wire::types::{self, PacketType};
use serde::Serialize;

/// What a record is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Interest.
    Interest,
    /// Data.
    Data,
    /// Nack.
    Nack,
    /// A piece of a packet, whose other pieces are not all here.
    Fragment,
    /// A frame of a link without a packet.
    Idle,
    /// A frame of the push half.
    Push,
    /// A message between an application and the push half.
    PushApp,
    /// None of these, or damaged.
    #[default]
    Malformed,
}

/// A record as `--json` prints it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Shown<'a> {
    /// When, in nanoseconds of Unix time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
    /// Name of the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<&'a str>,
    /// Which way it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// What carried it.
    pub carrier: Carrier,
    /// Who sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'a str>,
    /// Whom it was sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<&'a str>,
    /// Octets of the frame.
    pub length: usize,
    /// What it is.
    pub kind: Kind,
    /// Why it is malformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Name of the Interest or Data; of a Nack, that of its Interest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Reason of a Nack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nack_reason: Option<String>,
    /// CanBePrefix.
    #[serde(skip_serializing_if = "is_false")]
    pub can_be_prefix: bool,
    /// MustBeFresh.
    #[serde(skip_serializing_if = "is_false")]
    pub must_be_fresh: bool,
    /// Delegations of the forwarding hint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forwarding_hint: Vec<String>,
    /// Nonce, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// InterestLifetime in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_ms: Option<u64>,
    /// HopLimit, of a frame of the push half too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_limit: Option<u8>,
    /// Octets of ApplicationParameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters_length: Option<usize>,
    /// ContentType.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<u64>,
    /// FreshnessPeriod in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freshness_ms: Option<u64>,
    /// FinalBlockId.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_block: Option<String>,
    /// Octets of Content, or of what is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_length: Option<usize>,
    /// SignatureType.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_type: Option<u64>,
    /// Name in the KeyLocator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_locator: Option<String>,
    /// Sequence of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// FragIndex and FragCount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment: Option<[u64; 2]>,
    /// PIT token, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pit_token: Option<String>,
    /// IncomingFaceId.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incoming_face: Option<u64>,
    /// NextHopFaceId.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_hop_face: Option<u64>,
    /// CongestionMark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_mark: Option<u64>,
    /// Whether the cache policy is NoCache.
    #[serde(skip_serializing_if = "is_false")]
    pub no_cache: bool,
    /// TxSequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_sequence: Option<u64>,
    /// Ack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acks: Vec<u64>,
    /// Identifiers of the item.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Dissemination strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Whether caches may keep the frame.
    #[serde(skip_serializing_if = "is_false")]
    pub keep: bool,
    /// Parts of 64 of its lifetime that are over, where a cache sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<u8>,
    /// Number of the kind of a message of the push half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_kind: Option<u8>,
    /// Octets that the capture left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// What the capture says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<&'a str>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks so
const fn is_false(value: &bool) -> bool {
    !*value
}

pub(super) fn shown(record: &Record) -> Shown<'_> {
    let mut shown = Shown {
        time_ns: record.time_ns,
        interface: record.interface.as_deref(),
        direction: record.direction,
        carrier: record.carrier,
        from: record.from.as_deref(),
        to: record.to.as_deref(),
        length: record.octets.len(),
        missing: Some(record.missing).filter(|missing| *missing > 0),
        comment: record.comment.as_deref(),
        ..Shown::default()
    };
    if let Err(error) = shown.frame(&record.octets, record.whole.as_deref()) {
        shown.kind = Kind::Malformed;
        shown.error = Some(error.to_string());
    }
    shown
}

impl Shown<'_> {
    fn frame(&mut self, octets: &[u8], whole: Option<&[u8]>) -> Result<(), Malformed> {
        if PacketType::of(octets).is_some_and(PacketType::is_push) {
            return self.push(octets);
        }
        let link = LpPacket::parse(octets)?;
        self.sequence = link.sequence;
        self.fragment = link.is_fragmented().then_some([link.frag_index, link.frag_count]);
        self.pit_token = link.pit_token.map(|token| Hex(token).to_string());
        self.incoming_face = link.incoming_face;
        self.next_hop_face = link.next_hop_face;
        self.congestion_mark = Some(link.congestion_mark).filter(|mark| *mark != 0);
        self.no_cache = link.no_cache;
        self.tx_sequence = link.tx_sequence;
        self.acks = link.acks().collect();
        match (link.fragment, whole) {
            (None, _) => self.kind = Kind::Idle,
            (Some(_), None) if link.is_fragmented() => self.kind = Kind::Fragment,
            (Some(packet), whole) => self.packet(whole.unwrap_or(packet))?,
        }
        if let Some(reason) = link.nack {
            self.kind = Kind::Nack;
            self.nack_reason = Some(reason.to_string());
        }
        Ok(())
    }

    fn packet(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        match PacketType::of(packet) {
            Some(PacketType::Interest) => self.interest(&Interest::parse(packet)?),
            Some(PacketType::Data) => self.data(&Data::parse(packet)?),
            Some(PacketType::PushFrame | PacketType::PushApp) => self.push(packet)?,
            _ => {
                let typ = packet.first().copied().unwrap_or_default();
                return Err(Malformed::Unexpected(typ.into()));
            }
        }
        Ok(())
    }

    fn interest(&mut self, interest: &Interest<'_>) {
        self.kind = Kind::Interest;
        self.name = Some(interest.name.to_string());
        self.can_be_prefix = interest.can_be_prefix;
        self.must_be_fresh = interest.must_be_fresh;
        self.forwarding_hint = interest.forwarding_hint.iter().map(|n| n.to_string()).collect();
        self.nonce = interest.nonce.map(|nonce| Hex(&nonce).to_string());
        self.lifetime_ms = interest.lifetime_ms;
        self.hop_limit = interest.hop_limit;
        self.parameters_length = interest.app_parameters.map(<[u8]>::len);
        let info = interest.signature_info();
        self.signature_type = info.as_ref().map(|info| info.kind);
        let locator = info.and_then(|info| info.key_locator);
        self.key_locator = locator.and_then(|l| l.name()).map(|name| name.to_string());
    }

    fn data(&mut self, data: &Data<'_>) {
        self.kind = Kind::Data;
        self.name = Some(data.name.to_string());
        let kind = Some(data.content_type);
        self.content_type = kind.filter(|kind| *kind != types::CONTENT_BLOB);
        self.freshness_ms = Some(data.freshness_ms).filter(|ms| *ms != 0);
        self.final_block = data.final_block_id.map(|component| component.to_string());
        self.content_length = Some(data.content.len());
        let info = data.signature_info();
        self.signature_type = Some(info.kind);
        let locator = info.key_locator;
        self.key_locator = locator.and_then(|l| l.name()).map(|name| name.to_string());
    }

    fn push(&mut self, octets: &[u8]) -> Result<(), Malformed> {
        if PacketType::of(octets) == Some(PacketType::PushFrame) {
            let frame = Frame::parse(octets)?;
            self.kind = Kind::Push;
            self.hop_limit = Some(frame.hop_limit);
            self.strategy = Some(frame.strategy.to_string());
            let flags = Flags::of(octets);
            self.keep = flags.may_keep();
            self.age = flags.is_cached().then(|| flags.age());
            self.ids = frame.ids.map(|labels| Id::from_labels(labels).to_string()).collect();
            self.content_length = Some(frame.payload.len());
        } else {
            let message = Message::parse(octets)?;
            self.kind = Kind::PushApp;
            self.message_kind = Some(message.kind.0);
            self.ids =
                (!message.id.is_empty()).then(|| message.id().to_string()).into_iter().collect();
            self.content_length = Some(message.payload.len());
        }
        Ok(())
    }
}
