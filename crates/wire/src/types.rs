//! TLV type numbers (NDN Packet Format v0.3, NDNLPv2, NFD management).

macro_rules! types {
    ($($(#[$meta:meta])* $name:ident = $number:literal,)*) => {
        $($(#[$meta])* #[doc = concat!("TLV type ", stringify!($number), ".")] pub const $name: u32 = $number;)*
    };
}

types! {
    IMPLICIT_SHA256_DIGEST = 1,
    PARAMETERS_SHA256_DIGEST = 2,
    INTEREST = 5,
    DATA = 6,
    NAME = 7,
    GENERIC_COMPONENT = 8,
    NONCE = 10,
    INTEREST_LIFETIME = 12,
    MUST_BE_FRESH = 18,
    META_INFO = 20,
    CONTENT = 21,
    SIGNATURE_INFO = 22,
    SIGNATURE_VALUE = 23,
    CONTENT_TYPE = 24,
    FRESHNESS_PERIOD = 25,
    FINAL_BLOCK_ID = 26,
    SIGNATURE_TYPE = 27,
    KEY_LOCATOR = 28,
    KEY_DIGEST = 29,
    FORWARDING_HINT = 30,
    /// Retired; still met inside a forwarding hint of the old form.
    DELEGATION = 31,
    KEYWORD_COMPONENT = 32,
    CAN_BE_PREFIX = 33,
    HOP_LIMIT = 34,
    APPLICATION_PARAMETERS = 36,
    SIGNATURE_NONCE = 38,
    SIGNATURE_TIME = 40,
    SIGNATURE_SEQ_NUM = 42,
    INTEREST_SIGNATURE_INFO = 44,
    INTEREST_SIGNATURE_VALUE = 46,
    SEGMENT_COMPONENT = 50,
    BYTE_OFFSET_COMPONENT = 52,
    VERSION_COMPONENT = 54,
    TIMESTAMP_COMPONENT = 56,
    SEQUENCE_NUM_COMPONENT = 58,

    LP_FRAGMENT = 80,
    LP_SEQUENCE = 81,
    LP_FRAG_INDEX = 82,
    LP_FRAG_COUNT = 83,
    /// Used by a simulator only; read and ignored.
    LP_HOP_COUNT = 84,
    LP_PIT_TOKEN = 98,
    LP_PACKET = 100,
    LP_NACK = 800,
    LP_NACK_REASON = 801,
    LP_INCOMING_FACE_ID = 812,
    LP_NEXT_HOP_FACE_ID = 816,
    LP_CACHE_POLICY = 820,
    LP_CACHE_POLICY_TYPE = 821,
    LP_CONGESTION_MARK = 832,
    LP_ACK = 836,
    LP_TX_SEQUENCE = 840,
    LP_NON_DISCOVERY = 844,
    LP_PREFIX_ANNOUNCEMENT = 848,
    /// Between services of one chain only (spec/services.md, section 2).
    LP_SERVICE_ORIGIN = 896,
    /// As [`LP_SERVICE_ORIGIN`].
    LP_SERVICE_NEXT_HOPS = 900,
    /// Asks whether a frame as long as this one arrives (spec/registry.md).
    LP_PATH_PROBE = 904,
    /// Says that one did.
    LP_PATH_ANSWER = 908,
    /// The trace and span that an Interest belongs to; others ignore it.
    LP_TRACE_CONTEXT = 912,

    SAFE_BAG = 128,
    ENCRYPTED_KEY = 129,
    VALIDITY_PERIOD = 253,
    NOT_BEFORE = 254,
    NOT_AFTER = 255,
    ADDITIONAL_DESCRIPTION = 258,
    DESCRIPTION_ENTRY = 512,
    DESCRIPTION_KEY = 513,
    DESCRIPTION_VALUE = 514,

    /// Ours: a frame of the push half.
    PUSH_FRAME = 240,
    /// Ours: between an application of the push half and its node.
    PUSH_APP = 242,

    CONTROL_RESPONSE = 101,
    STATUS_CODE = 102,
    STATUS_TEXT = 103,
    CONTROL_PARAMETERS = 104,
    FACE_ID = 105,
    COST = 106,
    STRATEGY = 107,
    FLAGS = 108,
    EXPIRATION_PERIOD = 109,
    ORIGIN = 111,
    MASK = 112,
    URI = 114,
    LOCAL_URI = 129,
    CAPACITY = 131,
    COUNT = 132,
    FACE_SCOPE = 132,
    FACE_PERSISTENCY = 133,
    LINK_TYPE = 134,
    BASE_CONGESTION_MARKING_INTERVAL = 135,
    DEFAULT_CONGESTION_THRESHOLD = 136,
    MTU = 137,
}

/// Content type of ordinary Data, the default.
pub const CONTENT_BLOB: u64 = 0;
/// Content type of a LINK: names, preferred first.
pub const CONTENT_LINK: u64 = 1;
/// Content type of a certificate.
pub const CONTENT_KEY: u64 = 2;
/// Content type of an application's Nack.
pub const CONTENT_NACK: u64 = 3;
/// Content type of a manifest.
pub const CONTENT_MANIFEST: u64 = 4;
/// Content type of a prefix announcement.
pub const CONTENT_PREFIX_ANNOUNCEMENT: u64 = 5;

/// Signature type: SHA-256 of the signed portion, no key.
pub const SIGNATURE_DIGEST_SHA256: u64 = 0;
/// Signature type: RSASSA-PKCS1-v1_5 with SHA-256.
pub const SIGNATURE_RSA_SHA256: u64 = 1;
/// Signature type: ECDSA with SHA-256.
pub const SIGNATURE_ECDSA_SHA256: u64 = 3;
/// Signature type: HMAC with SHA-256.
pub const SIGNATURE_HMAC_SHA256: u64 = 4;
/// Signature type: Ed25519.
pub const SIGNATURE_ED25519: u64 = 5;
/// Signature type: none.
pub const SIGNATURE_NULL: u64 = 200;

/// What a packet or frame is, by its first octet, which is the whole TYPE of all of these. Nothing
/// behind it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketType {
    /// Interest.
    Interest,
    /// Data.
    Data,
    /// A link-layer packet.
    LpPacket,
    /// A frame of the push half.
    PushFrame,
    /// A message between the push half and an application.
    PushApp,
}

impl PacketType {
    /// The type of what `octets` begin; `None` when it is none of these.
    #[inline]
    #[must_use]
    pub const fn of(octets: &[u8]) -> Option<Self> {
        let [first, ..] = octets else { return None };
        Some(match *first as u32 {
            INTEREST => Self::Interest,
            DATA => Self::Data,
            LP_PACKET => Self::LpPacket,
            PUSH_FRAME => Self::PushFrame,
            PUSH_APP => Self::PushApp,
            _ => return None,
        })
    }

    /// Whether it belongs to the push half.
    #[inline]
    #[must_use]
    pub const fn is_push(self) -> bool {
        matches!(self, Self::PushFrame | Self::PushApp)
    }
}
