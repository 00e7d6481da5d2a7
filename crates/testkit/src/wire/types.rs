//! TLV types that scripts use, by the names of the specifications.

/// An Interest.
pub const INTEREST: u64 = 5;
/// A Data.
pub const DATA: u64 = 6;
/// A Name.
pub const NAME: u64 = 7;
/// A generic name component.
pub const GENERIC: u64 = 8;
/// An implicit digest component.
pub const IMPLICIT_DIGEST: u64 = 1;
/// A parameters digest component.
pub const PARAMS_DIGEST: u64 = 2;
/// CanBePrefix.
pub const CAN_BE_PREFIX: u64 = 33;
/// MustBeFresh.
pub const MUST_BE_FRESH: u64 = 18;
/// ForwardingHint.
pub const HINT: u64 = 30;
/// Nonce.
pub const NONCE: u64 = 10;
/// InterestLifetime.
pub const LIFETIME: u64 = 12;
/// HopLimit.
pub const HOP_LIMIT: u64 = 34;
/// ApplicationParameters.
pub const PARAMS: u64 = 36;
/// InterestSignatureInfo.
pub const INTEREST_SIG_INFO: u64 = 44;
/// InterestSignatureValue.
pub const INTEREST_SIG_VALUE: u64 = 46;
/// MetaInfo.
pub const META_INFO: u64 = 20;
/// Content.
pub const CONTENT: u64 = 21;
/// SignatureInfo.
pub const SIG_INFO: u64 = 22;
/// SignatureValue.
pub const SIG_VALUE: u64 = 23;
/// ContentType.
pub const CONTENT_TYPE: u64 = 24;
/// FreshnessPeriod.
pub const FRESHNESS: u64 = 25;
/// FinalBlockId.
pub const FINAL_BLOCK: u64 = 26;
/// SignatureType.
pub const SIG_TYPE: u64 = 27;
/// SignatureNonce.
pub const SIG_NONCE: u64 = 38;
/// SignatureTime.
pub const SIG_TIME: u64 = 40;

/// LpPacket.
pub const LP_PACKET: u64 = 100;
/// Fragment.
pub const FRAGMENT: u64 = 80;
/// Sequence.
pub const SEQUENCE: u64 = 81;
/// FragIndex.
pub const FRAG_INDEX: u64 = 82;
/// FragCount.
pub const FRAG_COUNT: u64 = 83;
/// PitToken.
pub const PIT_TOKEN: u64 = 98;
/// Nack.
pub const NACK: u64 = 800;
/// NackReason.
pub const NACK_REASON: u64 = 801;
/// IncomingFaceId.
pub const INCOMING_FACE: u64 = 812;
/// NextHopFaceId.
pub const NEXT_HOP_FACE: u64 = 816;
/// CachePolicy.
pub const CACHE_POLICY: u64 = 820;
/// CachePolicyType.
pub const CACHE_POLICY_TYPE: u64 = 821;
/// CongestionMark.
pub const CONGESTION_MARK: u64 = 832;
/// Ack.
pub const ACK: u64 = 836;
/// TxSequence.
pub const TX_SEQUENCE: u64 = 840;
/// NonDiscovery.
pub const NON_DISCOVERY: u64 = 844;
/// PrefixAnnouncement.
pub const PREFIX_ANNOUNCEMENT: u64 = 848;

/// ControlParameters.
pub const CONTROL_PARAMETERS: u64 = 104;
/// ControlResponse.
pub const CONTROL_RESPONSE: u64 = 101;
/// StatusCode.
pub const STATUS_CODE: u64 = 102;
/// StatusText.
pub const STATUS_TEXT: u64 = 103;
