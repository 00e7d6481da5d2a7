//! Status datasets and notifications.

use super::field::structure;
use super::{FaceEventKind, LinkType, Persistency, Scope};
use crate::name::Name;
use crate::types;

structure! {
    /// General status. In its dataset the fields stand in Content without an element around them:
    /// use [`Block::parse_value`](super::Block::parse_value) and
    /// [`Block::write_value`](super::Block::write_value).
    pub struct ForwarderStatus = types::CONTENT => {
        /// Name and version of the forwarder.
        nfd_version: String = 128,
        /// Milliseconds since the Unix epoch.
        start_timestamp_ms: u64 = 129,
        /// Milliseconds since the Unix epoch.
        current_timestamp_ms: u64 = 130,
        /// Name tree entries.
        name_tree_entries: u64 = 131,
        /// FIB entries.
        fib_entries: u64 = 132,
        /// PIT entries.
        pit_entries: u64 = 133,
        /// Measurements entries.
        measurements_entries: u64 = 134,
        /// CS entries.
        cs_entries: u64 = 135,
        /// Interests received.
        in_interests: u64 = 144,
        /// Data received.
        in_data: u64 = 145,
        /// Nacks received.
        in_nacks: u64 = 151,
        /// Interests sent.
        out_interests: u64 = 146,
        /// Data sent.
        out_data: u64 = 147,
        /// Nacks sent.
        out_nacks: u64 = 152,
        /// PIT entries that ended with Data.
        satisfied_interests: u64 = 153,
        /// PIT entries that ended without.
        unsatisfied_interests: u64 = 154,
    }
}

structure! {
    /// A face with its counters.
    pub struct FaceStatus = 128 => {
        /// FaceId.
        face_id: u64 = types::FACE_ID,
        /// Remote FaceUri.
        uri: String = types::URI,
        /// Local FaceUri.
        local_uri: String = types::LOCAL_URI,
        /// Milliseconds until an idle face is closed.
        expiration_period_ms: Option<u64> = types::EXPIRATION_PERIOD,
        /// Scope.
        face_scope: Scope = types::FACE_SCOPE,
        /// Persistency.
        face_persistency: Persistency = types::FACE_PERSISTENCY,
        /// Link type.
        link_type: LinkType = types::LINK_TYPE,
        /// Base interval of congestion marking, in nanoseconds.
        base_congestion_marking_interval_ns: Option<u64> = types::BASE_CONGESTION_MARKING_INTERVAL,
        /// Queue length above which congestion is marked, in octets.
        default_congestion_threshold: Option<u64> = types::DEFAULT_CONGESTION_THRESHOLD,
        /// MTU in octets; 8800 when unlimited.
        mtu: Option<u64> = types::MTU,
        /// Interests received.
        in_interests: u64 = 144,
        /// Data received.
        in_data: u64 = 145,
        /// Nacks received.
        in_nacks: u64 = 151,
        /// Interests sent.
        out_interests: u64 = 146,
        /// Data sent.
        out_data: u64 = 147,
        /// Nacks sent.
        out_nacks: u64 = 152,
        /// Octets received, link headers included.
        in_bytes: u64 = 148,
        /// Octets sent, link headers included.
        out_bytes: u64 = 149,
        /// Face flags.
        flags: u64 = types::FLAGS,
    }
}

structure! {
    /// Which faces to list; all conditions must hold.
    pub struct FaceQueryFilter = 150 => {
        /// FaceId.
        face_id: Option<u64> = types::FACE_ID,
        /// Scheme of the remote or the local FaceUri.
        uri_scheme: Option<String> = 131,
        /// Remote FaceUri.
        uri: Option<String> = types::URI,
        /// Local FaceUri.
        local_uri: Option<String> = types::LOCAL_URI,
        /// Scope.
        face_scope: Option<Scope> = types::FACE_SCOPE,
        /// Persistency.
        face_persistency: Option<Persistency> = types::FACE_PERSISTENCY,
        /// Link type.
        link_type: Option<LinkType> = types::LINK_TYPE,
    }
}

structure! {
    /// A place where faces are accepted or made.
    pub struct ChannelStatus = 130 => {
        /// Local FaceUri.
        local_uri: String = types::LOCAL_URI,
    }
}

structure! {
    /// One next hop of a FIB entry.
    pub struct NextHopRecord = 129 => {
        /// FaceId.
        face_id: u64 = types::FACE_ID,
        /// Cost.
        cost: u64 = types::COST,
    }
}

structure! {
    /// A FIB entry.
    pub struct FibEntry = 128 => {
        /// Prefix.
        name: Name = types::NAME,
        /// Next hops.
        next_hops: Vec<NextHopRecord> = 129,
    }
}

structure! {
    /// One route of a RIB entry.
    pub struct Route = 129 => {
        /// FaceId.
        face_id: u64 = types::FACE_ID,
        /// Origin.
        origin: u64 = types::ORIGIN,
        /// Cost.
        cost: u64 = types::COST,
        /// Route flags.
        flags: u64 = types::FLAGS,
        /// Milliseconds left.
        expiration_period_ms: Option<u64> = types::EXPIRATION_PERIOD,
    }
}

structure! {
    /// A RIB entry.
    pub struct RibEntry = 128 => {
        /// Prefix.
        name: Name = types::NAME,
        /// Routes.
        routes: Vec<Route> = 129,
    }
}

structure! {
    /// Which strategy a prefix has.
    pub struct StrategyChoice = 128 => {
        /// Prefix.
        name: Name = types::NAME,
        /// Full name of the strategy instance.
        strategy: Name = types::STRATEGY,
    }
}

structure! {
    /// Status of the content store.
    pub struct CsInfo = 128 => {
        /// Capacity in packets.
        capacity: u64 = types::CAPACITY,
        /// CS flags.
        flags: u64 = types::FLAGS,
        /// Entries.
        cs_entries: u64 = 135,
        /// Lookups that found Data.
        hits: u64 = 129,
        /// Lookups that did not.
        misses: u64 = 130,
    }
}

structure! {
    /// Something happened to a face.
    pub struct FaceEventNotification = 192 => {
        /// What.
        kind: FaceEventKind = 193,
        /// FaceId.
        face_id: u64 = types::FACE_ID,
        /// Remote FaceUri.
        uri: String = types::URI,
        /// Local FaceUri.
        local_uri: String = types::LOCAL_URI,
        /// Scope.
        face_scope: Scope = types::FACE_SCOPE,
        /// Persistency.
        face_persistency: Persistency = types::FACE_PERSISTENCY,
        /// Link type.
        link_type: LinkType = types::LINK_TYPE,
        /// Face flags.
        flags: u64 = types::FLAGS,
    }
}
