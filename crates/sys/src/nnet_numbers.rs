// Written by kernel/tools/nlgen.py from spec/netlink/socket.yaml; not by hand.

//! Numbers of the sockets of `AF_NNET`.

/// Constant: family-default.
pub const FAMILY_DEFAULT: i32 = 19;
/// Constant: level of options and control messages.
pub const SOL_NNET: i32 = 319;
/// Constant: udp-port.
pub const UDP_PORT: u16 = 6363;
/// Constant: ethertype.
pub const ETHERTYPE: u16 = 34340;
/// Constant: octets of a name in an address.
pub const ADDR_NAME_MAX: usize = 116;
/// Constant: octets of a name value in options.
pub const NAME_MAX: usize = 8192;
/// Protocol argument of `socket()` with `SOCK_RAW`: Interests of its prefixes, answers to its Interests.
pub const PROTO_OWN: i32 = 0;
/// Protocol argument of `socket()` with `SOCK_RAW`: every packet of the host; `CAP_NET_RAW`.
pub const PROTO_ALL: i32 = 1;
/// Protocol argument of `socket()` with `SOCK_RAW`: Interests of its prefixes only.
pub const PROTO_INTEREST: i32 = 2;
/// Protocol argument of `socket()` with `SOCK_RAW`: answers to its Interests only.
pub const PROTO_DATA: i32 = 3;
/// Flags of an address: bind: refuse a prefix without route.
pub const ADDR_STRICT: u8 = 1;
/// Flags of an address: the name was given by `NNET_NAME`.
pub const ADDR_EXTERNAL: u8 = 2;
/// Flags of an address: the name did not fit (recvfrom).
pub const ADDR_TRUNC: u8 = 4;
/// Flags of an address: connect, SEQPACKET: segments are decimal text.
pub const ADDR_DECIMAL: u8 = 8;
/// Socket options at level `SOL_NNET`: octets: the name for `bind()` or `connect()` with EXTERNAL.
pub const NAME: i32 = 1;
/// Socket options at level `SOL_NNET`: u32: the face, 0 before the first send or bind.
pub const FACE: i32 = 2;
/// Socket options at level `SOL_NNET`: int: `bind()` refuses a prefix without route.
pub const STRICT_BIND: i32 = 3;
/// Socket options at level `SOL_NNET`: int: `bind()` may be called again.
pub const MULTIBIND: i32 = 4;
/// Socket options at level `SOL_NNET`: u32: `NNET_BIND_NOROUTE`: what the last `bind()` found.
pub const BIND_FLAGS: i32 = 5;
/// Socket options at level `SOL_NNET`: int: RAW, before the first packet: frames carry `NDNLPv2` headers.
pub const LP: i32 = 6;
/// Socket options at level `SOL_NNET`: struct nnet_sock_stats: counters and the state of the window.
pub const STATS: i32 = 7;
/// Socket options at level `SOL_NNET`: u32: fixed window of SEQPACKET, 0: adaptive.
pub const WINDOW: i32 = 8;
/// Socket options at level `SOL_NNET`: u32 ms: `InterestLifetime` where no message says it.
pub const LIFETIME: i32 = 9;
/// Socket options at level `SOL_NNET`: int: received packets also as `NNET_CM_PACKET`.
pub const WHOLE: i32 = 10;
/// Socket options at level `SOL_NNET`: octets: forget what was published under this prefix.
pub const UNPUBLISH: i32 = 11;
/// Socket options at level `SOL_NNET`: octets: give this prefix back.
pub const UNBIND: i32 = 12;
/// Socket options at level `SOL_NNET`: u64: number of the last segment, ~0: unknown.
pub const FINAL: i32 = 13;
/// Socket options at level `SOL_NNET`: int: Interests that were answered are told too.
pub const STATUS: i32 = 14;
/// Socket options at level `SOL_NNET`: int: with `NNET_LP`, before the first packet: `NextHopFaceId` and `IncomingFaceId`; `CAP_NET_ADMIN`.
pub const LOCAL_FIELDS: i32 = 15;
/// `NNET_BIND_FLAGS`: no route leads Interests to this prefix.
pub const BIND_NOROUTE: u32 = 1;
/// Control messages at level `SOL_NNET`: octets: value of the Name.
pub const CM_NAME: i32 = 1;
/// Control messages at level `SOL_NNET`: u32: `NNET_INTEREST`, `NNET_DATA`, `NNET_NACK`.
pub const CM_TYPE: i32 = 2;
/// Control messages at level `SOL_NNET`: u32 ms.
pub const CM_LIFETIME: i32 = 3;
/// Control messages at level `SOL_NNET`: u32 ms.
pub const CM_FRESHNESS: i32 = 4;
/// Control messages at level `SOL_NNET`: u32: `NNET_CAN_BE_PREFIX`, `NNET_MUST_BE_FRESH`.
pub const CM_FLAGS: i32 = 5;
/// Control messages at level `SOL_NNET`: u32.
pub const CM_HOPLIMIT: i32 = 6;
/// Control messages at level `SOL_NNET`: u32.
pub const CM_CONTENT_TYPE: i32 = 7;
/// Control messages at level `SOL_NNET`: octets: one name component TLV.
pub const CM_FINAL_BLOCK: i32 = 8;
/// Control messages at level `SOL_NNET`: octets: `SignatureInfo` TLV.
pub const CM_SIGINFO: i32 = 9;
/// Control messages at level `SOL_NNET`: octets: the signature.
pub const CM_SIGVALUE: i32 = 10;
/// Control messages at level `SOL_NNET`: u32: received: where it came from.
pub const CM_FACE: i32 = 11;
/// Control messages at level `SOL_NNET`: u32.
pub const CM_NONCE: i32 = 12;
/// Control messages at level `SOL_NNET`: u32: reason of a Nack.
pub const CM_REASON: i32 = 13;
/// Control messages at level `SOL_NNET`: u32 ms: keep this Data and answer with it; 0: until close.
pub const CM_PUBLISH: i32 = 14;
/// Control messages at level `SOL_NNET`: u32: congestion mark.
pub const CM_MARK: i32 = 15;
/// Control messages at level `SOL_NNET`: u64: received: number of the segment.
pub const CM_SEGMENT: i32 = 16;
/// Control messages at level `SOL_NNET`: octets: received: the whole packet as it came.
pub const CM_PACKET: i32 = 17;
/// Control messages at level `SOL_NNET`: u32 1: received: answered by what is published.
pub const CM_SATISFIED: i32 = 18;
/// `NNET_CM_TYPE`: interest.
pub const INTEREST: i32 = 5;
/// `NNET_CM_TYPE`: data.
pub const DATA: i32 = 6;
/// `NNET_CM_TYPE`: nack.
pub const NACK: i32 = 800;
/// `NNET_CM_FLAGS`: can-be-prefix.
pub const CAN_BE_PREFIX: i32 = 1;
/// `NNET_CM_FLAGS`: must-be-fresh.
pub const MUST_BE_FRESH: i32 = 2;
