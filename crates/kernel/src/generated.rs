// Written by kernel/tools/nlgen.py from spec/netlink/nnet.yaml; not by hand.

//! Numbers of the netlink family.

/// Name of the family.
pub const FAMILY: &str = "nnet";

/// Values of `face-kind`.
pub mod face_kind {
    /// `local`.
    pub const LOCAL: u8 = 1;
    /// `socket`.
    pub const SOCKET: u8 = 2;
    /// `ether`.
    pub const ETHER: u8 = 3;
    /// `udp`.
    pub const UDP: u8 = 4;
}

/// Values of `strategy`.
pub mod strategy {
    /// `best-route`.
    pub const BEST_ROUTE: u8 = 1;
    /// `multicast`.
    pub const MULTICAST: u8 = 2;
    /// `random`.
    pub const RANDOM: u8 = 3;
}

/// Values of `unsolicited`.
pub mod unsolicited {
    /// `drop`.
    pub const DROP: u8 = 0;
    /// `local`.
    pub const LOCAL: u8 = 1;
    /// `network`.
    pub const NETWORK: u8 = 2;
    /// `all`.
    pub const ALL: u8 = 3;
}

/// Values of `dispatch`.
pub mod dispatch {
    /// `inline`.
    pub const INLINE: u8 = 0;
    /// `name`.
    pub const NAME: u8 = 1;
    /// `prefix`.
    pub const PREFIX: u8 = 2;
    /// `random`.
    pub const RANDOM: u8 = 3;
}

/// Attributes.
pub mod attr {
    /// u32.
    pub const FACE_ID: u16 = 1;
    /// u8.
    pub const FACE_KIND: u16 = 2;
    /// u32.
    pub const IFINDEX: u16 = 3;
    /// binary: Ethernet address of the peer or group.
    pub const PEER: u16 = 4;
    /// binary: IPv6 address.
    pub const ADDRESS: u16 = 5;
    /// u16: host byte order.
    pub const PORT: u16 = 6;
    /// u16: octets of a frame; 0 is the link's own.
    pub const MTU: u16 = 7;
    /// u32: of a face: bit 0 local, 1 several peers, 2 local fields, 3 link headers; of a pending Interest: bit 0 CanBePrefix, 1 MustBeFresh.
    pub const FLAGS: u16 = 8;
    /// binary: value of a Name TLV.
    pub const NAME: u16 = 9;
    /// u32.
    pub const COST: u16 = 10;
    /// u8: 0 takes a choice back.
    pub const STRATEGY: u16 = 11;
    /// u32: packets.
    pub const CAPACITY: u16 = 12;
    /// u32: ms that a pending Interest has left, or for which a Data is still fresh.
    pub const LIFETIME: u16 = 13;
    /// u64.
    pub const BYTES_MAX: u16 = 14;
    /// u8.
    pub const ADMIT: u16 = 15;
    /// u8.
    pub const SERVE: u16 = 16;
    /// u8.
    pub const UNSOLICITED: u16 = 17;
    /// u32.
    pub const ENTRIES: u16 = 18;
    /// u32.
    pub const PACKETS: u16 = 19;
    /// u64.
    pub const BYTES: u16 = 20;
    /// u32.
    pub const COUNT: u16 = 21;
    /// u32.
    pub const PIT_MAX: u16 = 22;
    /// string.
    pub const COUNTER_KIND: u16 = 23;
    /// string.
    pub const COUNTER_WORD: u16 = 24;
    /// u64.
    pub const VALUE: u16 = 25;
    /// u8.
    pub const DISPATCH_MODE: u16 = 26;
    /// u8.
    pub const DISPATCH_DEPTH: u16 = 27;
    /// u8.
    pub const DISPATCH_THREADS: u16 = 28;
    /// u8.
    pub const DISPATCH_SEPARATE: u16 = 29;
    /// u8.
    pub const AUTO_FACES: u16 = 30;
    /// binary.
    pub const PACKET: u16 = 31;
    /// u8: every Data goes to the store in user space and none is kept.
    pub const IN_USER: u16 = 32;
    /// u64.
    pub const IN_INTERESTS: u16 = 33;
    /// u64.
    pub const IN_DATA: u16 = 34;
    /// u64.
    pub const IN_NACKS: u16 = 35;
    /// u64.
    pub const IN_BYTES: u16 = 36;
    /// u64.
    pub const OUT_INTERESTS: u16 = 37;
    /// u64.
    pub const OUT_DATA: u16 = 38;
    /// u64.
    pub const OUT_NACKS: u16 = 39;
    /// u64.
    pub const OUT_BYTES: u16 = 40;
    /// u32.
    pub const FAMILY: u16 = 41;
    /// u8.
    pub const LOCAL_FIELDS: u16 = 42;
    /// pad.
    pub const PAD: u16 = 43;
}

/// Commands.
pub mod cmd {
    /// Makes a face: ether (ifindex, peer) or udp (address, port); answers with its number.
    pub const FACE_NEW: u8 = 1;
    /// `face-del`.
    pub const FACE_DEL: u8 = 2;
    /// `face-set`.
    pub const FACE_SET: u8 = 3;
    /// `face-get`.
    pub const FACE_GET: u8 = 4;
    /// `fib-add`.
    pub const FIB_ADD: u8 = 5;
    /// `fib-del`.
    pub const FIB_DEL: u8 = 6;
    /// `fib-get`.
    pub const FIB_GET: u8 = 7;
    /// `strategy-set`.
    pub const STRATEGY_SET: u8 = 8;
    /// `cs-config`.
    pub const CS_CONFIG: u8 = 9;
    /// `cs-erase`.
    pub const CS_ERASE: u8 = 10;
    /// `cs-get`.
    pub const CS_GET: u8 = 11;
    /// `bpt-get`.
    pub const BPT_GET: u8 = 12;
    /// `pit-set`.
    pub const PIT_SET: u8 = 13;
    /// Count is that of downstreams.
    pub const PIT_GET: u8 = 14;
    /// `stats-get`.
    pub const STATS_GET: u8 = 15;
    /// `dispatch-set`.
    pub const DISPATCH_SET: u8 = 16;
    /// Name adds a region, port opens the UDP sockets.
    pub const NET_SET: u8 = 17;
    /// The sender is the cache behind the cache until it closes.
    pub const STORE_ATTACH: u8 = 18;
    /// To the store.
    pub const STORE_OFFER: u8 = 19;
    /// To the store.
    pub const STORE_ASK: u8 = 20;
    /// From the store, a Data that it was asked for.
    pub const STORE_DATA: u8 = 21;
    /// From the store, the Interest that it cannot answer.
    pub const STORE_MISS: u8 = 22;
    /// `face-event`.
    pub const FACE_EVENT: u8 = 23;
    /// `pit-info`.
    pub const PIT_INFO: u8 = 24;
    /// Ends what is pending under a prefix.
    pub const PIT_ERASE: u8 = 25;
    /// From the store, a Data that it has: Interests for it are asked.
    pub const STORE_HAVE: u8 = 26;
}
