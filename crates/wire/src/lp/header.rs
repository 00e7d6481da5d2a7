//! Writing link headers.

use super::NackReason;
use crate::tlv::{self, nni_tlv_len, tlv_len};
use crate::types;

/// The header fields of a link-layer packet to send. The default has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LpHeader<'a> {
    /// Sequence.
    pub sequence: Option<u64>,
    /// FragIndex and FragCount, when the body is a piece of a larger packet.
    pub fragment: Option<(u64, u64)>,
    /// PIT token, at most 32 octets; empty when there is none.
    pub pit_token: &'a [u8],
    /// Nack reason; [`NackReason::NONE`] is written as a Nack without reason.
    pub nack: Option<NackReason>,
    /// IncomingFaceId.
    pub incoming_face: Option<u64>,
    /// NextHopFaceId.
    pub next_hop_face: Option<u64>,
    /// Whether the Data must not be cached.
    pub no_cache: bool,
    /// CongestionMark; 0 is not written.
    pub congestion_mark: u64,
    /// TxSequences to acknowledge.
    pub acks: &'a [u64],
    /// TxSequence.
    pub tx_sequence: Option<u64>,
    /// Whether the Interest is no discovery.
    pub non_discovery: bool,
    /// A prefix announcement: one Data element.
    pub prefix_announcement: Option<&'a [u8]>,
    /// Where the packet entered a chain of services; for services of that chain only.
    pub service_origin: Option<u64>,
    /// The next hops of an Interest; for services of that chain only.
    pub service_next_hops: Option<&'a [u8]>,
    /// The trace that an Interest belongs to, in octets.
    pub trace_context: Option<&'a [u8]>,
}

/// Octets of the VALUE of a Nack.
const fn nack_len(reason: NackReason) -> usize {
    if reason.0 == 0 { 0 } else { nni_tlv_len(types::LP_NACK_REASON, reason.0) }
}

const CACHE_POLICY_LEN: usize = nni_tlv_len(types::LP_CACHE_POLICY_TYPE, 1);
const ACK_LEN: usize = tlv_len(types::LP_ACK, 8);

impl LpHeader<'_> {
    /// Whether no field is set: the body is sent bare.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sequence.is_none()
            && self.pit_token.is_empty()
            && self.fragment.is_none()
            && self.nack.is_none()
            && self.incoming_face.is_none()
            && self.next_hop_face.is_none()
            && !self.no_cache
            && self.congestion_mark == 0
            && self.acks.is_empty()
            && self.tx_sequence.is_none()
            && !self.non_discovery
            && self.prefix_announcement.is_none()
            && self.service_origin.is_none()
            && self.service_next_hops.is_none()
            && self.trace_context.is_none()
    }

    /// Octets of the fields.
    #[must_use]
    pub fn fields_len(&self) -> usize {
        let nni = |typ, n: Option<u64>| n.map_or(0, |n| nni_tlv_len(typ, n));
        let flag = |set: bool, len| if set { len } else { 0 };
        let fixed = |typ, n: Option<u64>| flag(n.is_some(), tlv_len(typ, 8));
        let octets = |typ, value: Option<&[u8]>| value.map_or(0, |v| tlv_len(typ, v.len()));
        let (index, count) = self.fragment.unzip();
        let token_len = self.pit_token.len();
        fixed(types::LP_SEQUENCE, self.sequence)
            + nni(types::LP_FRAG_INDEX, index)
            + nni(types::LP_FRAG_COUNT, count)
            + flag(token_len > 0, tlv_len(types::LP_PIT_TOKEN, token_len))
            + self.nack.map_or(0, |reason| tlv_len(types::LP_NACK, nack_len(reason)))
            + nni(types::LP_INCOMING_FACE_ID, self.incoming_face)
            + nni(types::LP_NEXT_HOP_FACE_ID, self.next_hop_face)
            + flag(self.no_cache, tlv_len(types::LP_CACHE_POLICY, CACHE_POLICY_LEN))
            + nni(types::LP_CONGESTION_MARK, Some(self.congestion_mark).filter(|mark| *mark != 0))
            + self.acks.len() * ACK_LEN
            + fixed(types::LP_TX_SEQUENCE, self.tx_sequence)
            + flag(self.non_discovery, tlv_len(types::LP_NON_DISCOVERY, 0))
            + octets(types::LP_PREFIX_ANNOUNCEMENT, self.prefix_announcement)
            + fixed(types::LP_SERVICE_ORIGIN, self.service_origin)
            + octets(types::LP_SERVICE_NEXT_HOPS, self.service_next_hops)
            + octets(types::LP_TRACE_CONTEXT, self.trace_context)
    }

    /// Octets that [`LpHeader::write`] appends for a body of `body_len` octets.
    #[must_use]
    pub fn encoded_len(&self, body_len: usize) -> usize {
        if self.is_empty() {
            return 0;
        }
        let fields = self.fields_len() + fragment_head_len(body_len);
        tlv_len(types::LP_PACKET, fields + body_len) - body_len
    }

    /// Appends everything that goes before a body of `body_len` octets.
    ///
    /// Nothing without fields: the body goes bare. With `body_len` 0 there is no Fragment element.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>, body_len: usize) {
        if self.is_empty() {
            return;
        }
        let len = self.fields_len() + fragment_head_len(body_len) + body_len;
        tlv::put_head(out, types::LP_PACKET, len);
        self.write_low_fields(out);
        self.write_high_fields(out);
        if body_len > 0 {
            tlv::put_head(out, types::LP_FRAGMENT, body_len);
        }
    }

    fn write_low_fields(&self, out: &mut Vec<u8>) {
        if let Some(sequence) = self.sequence {
            tlv::put_tlv(out, types::LP_SEQUENCE, &sequence.to_be_bytes());
        }
        if let Some((index, count)) = self.fragment {
            tlv::put_nni_tlv(out, types::LP_FRAG_INDEX, index);
            tlv::put_nni_tlv(out, types::LP_FRAG_COUNT, count);
        }
        if !self.pit_token.is_empty() {
            tlv::put_tlv(out, types::LP_PIT_TOKEN, self.pit_token);
        }
    }

    fn write_high_fields(&self, out: &mut Vec<u8>) {
        if let Some(reason) = self.nack {
            tlv::put_head(out, types::LP_NACK, nack_len(reason));
            if reason != NackReason::NONE {
                tlv::put_nni_tlv(out, types::LP_NACK_REASON, reason.0);
            }
        }
        if let Some(face) = self.incoming_face {
            tlv::put_nni_tlv(out, types::LP_INCOMING_FACE_ID, face);
        }
        if let Some(face) = self.next_hop_face {
            tlv::put_nni_tlv(out, types::LP_NEXT_HOP_FACE_ID, face);
        }
        if self.no_cache {
            tlv::put_head(out, types::LP_CACHE_POLICY, CACHE_POLICY_LEN);
            tlv::put_nni_tlv(out, types::LP_CACHE_POLICY_TYPE, 1);
        }
        if self.congestion_mark != 0 {
            tlv::put_nni_tlv(out, types::LP_CONGESTION_MARK, self.congestion_mark);
        }
        for ack in self.acks {
            tlv::put_tlv(out, types::LP_ACK, &ack.to_be_bytes());
        }
        if let Some(tx_sequence) = self.tx_sequence {
            tlv::put_tlv(out, types::LP_TX_SEQUENCE, &tx_sequence.to_be_bytes());
        }
        if self.non_discovery {
            tlv::put_tlv(out, types::LP_NON_DISCOVERY, &[]);
        }
        if let Some(data) = self.prefix_announcement {
            tlv::put_tlv(out, types::LP_PREFIX_ANNOUNCEMENT, data);
        }
        if let Some(origin) = self.service_origin {
            tlv::put_tlv(out, types::LP_SERVICE_ORIGIN, &origin.to_be_bytes());
        }
        if let Some(hops) = self.service_next_hops {
            tlv::put_tlv(out, types::LP_SERVICE_NEXT_HOPS, hops);
        }
        if let Some(context) = self.trace_context {
            tlv::put_tlv(out, types::LP_TRACE_CONTEXT, context);
        }
    }
}

/// Octets of TYPE and LENGTH of the Fragment element.
const fn fragment_head_len(body_len: usize) -> usize {
    if body_len == 0 { 0 } else { tlv_len(types::LP_FRAGMENT, body_len) - body_len }
}
