//! TLV types of the fields of control messages (section 6) and of messages of applications.

pub(super) const ID: u32 = 1;
pub(super) const PREFIX: u32 = 3;
pub(super) const STRATEGY: u32 = 5;
pub(super) const STATUS: u32 = 7;
pub(super) const ROUTE: u32 = 9;
pub(super) const REPLY: u32 = 11;
pub(super) const PUBLISHER: u32 = 13;
pub(super) const SUBSCRIBER: u32 = 15;
pub(super) const NODE: u32 = 17;
pub(super) const ITEM: u32 = 19;
pub(super) const VERSION: u32 = 21;
pub(super) const EPOCH: u32 = 23;
pub(super) const NUMBER: u32 = 25;
pub(super) const DIGEST: u32 = 27;
pub(super) const HOPS: u32 = 29;
pub(super) const ROLE: u32 = 31;
pub(super) const REQUEST: u32 = 33;
pub(super) const FULL: u32 = 35;
pub(super) const GONE: u32 = 37;
pub(super) const BODY: u32 = 39;
pub(super) const LINK: u32 = 41;
pub(super) const HOME: u32 = 43;
pub(super) const MISSING: u32 = 45;
pub(super) const MAC: u32 = 47;
pub(super) const DOMAIN: u32 = 49;
pub(super) const EXIT: u32 = 51;
pub(super) const LATE: u32 = 54;
pub(super) const WORD: u32 = 56;
pub(super) const LOAD: u32 = 58;
pub(super) const WAY: u32 = 60;

// Of messages between an application and its node (section 8).
pub(super) const LENGTH: u32 = 65;
pub(super) const OFFSET: u32 = 67;
pub(super) const ABOUT: u32 = 69;
pub(super) const PAYLOAD: u32 = 71;
pub(super) const TEXT: u32 = 96;
pub(super) const LOCAL: u32 = 98;
pub(super) const FRAMES: u32 = 100;
pub(super) const LIFETIME: u32 = 102;
pub(super) const DEADLINE: u32 = 104;
pub(super) const PRIORITY: u32 = 106;
pub(super) const WAIT: u32 = 108;
