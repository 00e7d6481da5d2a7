//! Which elements are known, by the element around them.

use crate::types;

/// How the VALUE of an element is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Elements.
    Elements,
    /// The VALUE of a Name.
    Name,
    /// One name component.
    Component,
    /// A number.
    Number,
    /// Octets or text.
    Octets,
    /// Content, or a packet in a fragment: an element if it looks like one.
    Content,
}

/// Label and kind of an element of type `typ` within one of type `parent` (0: in nothing).
pub(super) const fn known(parent: u32, typ: u32) -> Option<(&'static str, Kind)> {
    match parent {
        types::META_INFO
        | types::SIGNATURE_INFO
        | types::INTEREST_SIGNATURE_INFO
        | types::KEY_LOCATOR
        | types::VALIDITY_PERIOD
        | types::ADDITIONAL_DESCRIPTION
        | types::DESCRIPTION_ENTRY => data_part(typ),
        types::LP_PACKET | types::LP_NACK | types::LP_CACHE_POLICY => lp(typ),
        types::CONTROL_RESPONSE | types::CONTROL_PARAMETERS | types::STRATEGY => management(typ),
        types::CONTENT => match typ {
            types::CONTROL_RESPONSE | types::CONTROL_PARAMETERS => management(typ),
            types::SAFE_BAG => packet(typ),
            _ => None,
        },
        types::LP_FRAGMENT | types::LP_PREFIX_ANNOUNCEMENT => match typ {
            types::INTEREST | types::DATA => packet(typ),
            _ => None,
        },
        types::INTEREST | types::DATA | types::SAFE_BAG | types::FORWARDING_HINT => packet(typ),
        types::DELEGATION => match typ {
            30 => Some(("Preference", Kind::Number)),
            _ => packet(typ),
        },
        _ => match packet(typ) {
            None => match data_part(typ) {
                None => management(typ),
                found => found,
            },
            found => found,
        },
    }
}

const fn packet(typ: u32) -> Option<(&'static str, Kind)> {
    Some(match typ {
        types::INTEREST => ("Interest", Kind::Elements),
        types::DATA => ("Data", Kind::Elements),
        types::LP_PACKET => ("LpPacket", Kind::Elements),
        types::PUSH_FRAME => ("PushFrame", Kind::Octets),
        types::PUSH_APP => ("PushApp", Kind::Octets),
        types::NAME => ("Name", Kind::Name),
        types::CAN_BE_PREFIX => ("CanBePrefix", Kind::Octets),
        types::MUST_BE_FRESH => ("MustBeFresh", Kind::Octets),
        types::FORWARDING_HINT => ("ForwardingHint", Kind::Elements),
        types::DELEGATION => ("Delegation", Kind::Elements),
        types::NONCE => ("Nonce", Kind::Octets),
        types::INTEREST_LIFETIME => ("InterestLifetime", Kind::Number),
        types::HOP_LIMIT => ("HopLimit", Kind::Number),
        types::APPLICATION_PARAMETERS => ("ApplicationParameters", Kind::Content),
        types::INTEREST_SIGNATURE_INFO => ("InterestSignatureInfo", Kind::Elements),
        types::INTEREST_SIGNATURE_VALUE => ("InterestSignatureValue", Kind::Octets),
        types::META_INFO => ("MetaInfo", Kind::Elements),
        types::CONTENT => ("Content", Kind::Content),
        types::SIGNATURE_INFO => ("SignatureInfo", Kind::Elements),
        types::SIGNATURE_VALUE => ("SignatureValue", Kind::Octets),
        types::SAFE_BAG => ("SafeBag", Kind::Elements),
        types::ENCRYPTED_KEY => ("EncryptedKey", Kind::Octets),
        _ => return None,
    })
}

const fn data_part(typ: u32) -> Option<(&'static str, Kind)> {
    Some(match typ {
        types::NAME => ("Name", Kind::Name),
        types::CONTENT_TYPE => ("ContentType", Kind::Number),
        types::FRESHNESS_PERIOD => ("FreshnessPeriod", Kind::Number),
        types::FINAL_BLOCK_ID => ("FinalBlockId", Kind::Component),
        types::SIGNATURE_TYPE => ("SignatureType", Kind::Number),
        types::KEY_LOCATOR => ("KeyLocator", Kind::Elements),
        types::KEY_DIGEST => ("KeyDigest", Kind::Octets),
        types::SIGNATURE_NONCE => ("SignatureNonce", Kind::Octets),
        types::SIGNATURE_TIME => ("SignatureTime", Kind::Number),
        types::SIGNATURE_SEQ_NUM => ("SignatureSeqNum", Kind::Number),
        types::VALIDITY_PERIOD => ("ValidityPeriod", Kind::Elements),
        types::NOT_BEFORE => ("NotBefore", Kind::Octets),
        types::NOT_AFTER => ("NotAfter", Kind::Octets),
        types::ADDITIONAL_DESCRIPTION => ("AdditionalDescription", Kind::Elements),
        types::DESCRIPTION_ENTRY => ("DescriptionEntry", Kind::Elements),
        types::DESCRIPTION_KEY => ("DescriptionKey", Kind::Octets),
        types::DESCRIPTION_VALUE => ("DescriptionValue", Kind::Octets),
        _ => return None,
    })
}

const fn lp(typ: u32) -> Option<(&'static str, Kind)> {
    Some(match typ {
        types::LP_FRAGMENT => ("Fragment", Kind::Content),
        types::LP_SEQUENCE => ("Sequence", Kind::Number),
        types::LP_FRAG_INDEX => ("FragIndex", Kind::Number),
        types::LP_FRAG_COUNT => ("FragCount", Kind::Number),
        types::LP_HOP_COUNT => ("HopCountTag", Kind::Number),
        types::LP_PIT_TOKEN => ("PitToken", Kind::Octets),
        types::LP_NACK => ("Nack", Kind::Elements),
        types::LP_NACK_REASON => ("NackReason", Kind::Number),
        types::LP_INCOMING_FACE_ID => ("IncomingFaceId", Kind::Number),
        types::LP_NEXT_HOP_FACE_ID => ("NextHopFaceId", Kind::Number),
        types::LP_CACHE_POLICY => ("CachePolicy", Kind::Elements),
        types::LP_CACHE_POLICY_TYPE => ("CachePolicyType", Kind::Number),
        types::LP_CONGESTION_MARK => ("CongestionMark", Kind::Number),
        types::LP_ACK => ("Ack", Kind::Number),
        types::LP_TX_SEQUENCE => ("TxSequence", Kind::Number),
        types::LP_NON_DISCOVERY => ("NonDiscovery", Kind::Octets),
        types::LP_PREFIX_ANNOUNCEMENT => ("PrefixAnnouncement", Kind::Content),
        types::LP_SERVICE_ORIGIN => ("ServiceOrigin", Kind::Octets),
        types::LP_SERVICE_NEXT_HOPS => ("ServiceNextHops", Kind::Octets),
        types::LP_PATH_PROBE => ("PathProbe", Kind::Octets),
        types::LP_PATH_ANSWER => ("PathAnswer", Kind::Octets),
        types::LP_TRACE_CONTEXT => ("TraceContext", Kind::Octets),
        _ => return None,
    })
}

const fn management(typ: u32) -> Option<(&'static str, Kind)> {
    Some(match typ {
        types::NAME => ("Name", Kind::Name),
        types::CONTROL_RESPONSE => ("ControlResponse", Kind::Elements),
        types::STATUS_CODE => ("StatusCode", Kind::Number),
        types::STATUS_TEXT => ("StatusText", Kind::Octets),
        types::CONTROL_PARAMETERS => ("ControlParameters", Kind::Elements),
        types::FACE_ID => ("FaceId", Kind::Number),
        types::URI => ("Uri", Kind::Octets),
        types::LOCAL_URI => ("LocalUri", Kind::Octets),
        types::ORIGIN => ("Origin", Kind::Number),
        types::COST => ("Cost", Kind::Number),
        types::CAPACITY => ("Capacity", Kind::Number),
        types::COUNT => ("Count", Kind::Number),
        types::FLAGS => ("Flags", Kind::Number),
        types::MASK => ("Mask", Kind::Number),
        types::STRATEGY => ("Strategy", Kind::Elements),
        types::EXPIRATION_PERIOD => ("ExpirationPeriod", Kind::Number),
        types::FACE_PERSISTENCY => ("FacePersistency", Kind::Number),
        types::BASE_CONGESTION_MARKING_INTERVAL => ("BaseCongestionMarkingInterval", Kind::Number),
        types::DEFAULT_CONGESTION_THRESHOLD => ("DefaultCongestionThreshold", Kind::Number),
        types::MTU => ("Mtu", Kind::Number),
        _ => return None,
    })
}
