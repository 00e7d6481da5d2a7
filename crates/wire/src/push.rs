//! The push half's bytes: identifiers, frame, forwarding parts, control messages, old framing
//! (`spec/push.md`).

pub mod app;
mod bundle;
mod control;
mod field;
mod filter;
mod flags;
mod frame;
mod id;
mod old;
mod route;
#[cfg(test)]
mod tests;
mod words;

pub use bundle::Bundle;
pub use control::{Control, DomainHop, DomainRoute, Home, Kind, Link, Load, Role, Sequence};
pub use filter::Filter;
pub use flags::Flags;
pub use frame::{Frame, FrameBuilder, Head, Ids, Options, option};
pub use id::{Id, IdError, Label};
pub use old::{OLD_ETHERTYPE, OLD_UDP_PORT, OldFrame};
pub use route::{Route, RouteBuf, Stage, Stages};
pub use words::{Path, WORD_MAX, is_word, written};

/// Version of the frame and of control messages.
pub const VERSION: u8 = 1;
/// Most labels of an identifier.
pub const DEPTH_MAX: usize = 255;

/// How information of a scope is disseminated (section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Strategy(pub u8);

impl Strategy {
    /// Within the node.
    pub const NODE_LOCAL: Self = Self(0);
    /// Over one link.
    pub const LINK_LOCAL: Self = Self(1);
    /// Within the domain, after rendezvous.
    pub const DOMAIN_LOCAL: Self = Self(2);
    /// The publisher gives the filter.
    pub const IMPLICIT: Self = Self(3);
    /// Over every link, once.
    pub const BROADCAST: Self = Self(4);
    /// The subscribers of another item, within the node.
    pub const ALGORITHMIC_LOCAL: Self = Self(5);
    /// The filter of another item.
    pub const ALGORITHMIC_DOMAIN: Self = Self(6);
    /// Several domains.
    pub const INTER_DOMAIN: Self = Self(7);

    /// All of them with their names.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::NODE_LOCAL, "node-local"),
        (Self::LINK_LOCAL, "link-local"),
        (Self::DOMAIN_LOCAL, "domain-local"),
        (Self::IMPLICIT, "implicit"),
        (Self::BROADCAST, "broadcast"),
        (Self::ALGORITHMIC_LOCAL, "algorithmic-local"),
        (Self::ALGORITHMIC_DOMAIN, "algorithmic-domain"),
        (Self::INTER_DOMAIN, "inter-domain"),
    ];

    /// Whether requests of this strategy go to a rendezvous.
    #[must_use]
    pub const fn has_rendezvous(self) -> bool {
        matches!(self, Self::NODE_LOCAL | Self::DOMAIN_LOCAL | Self::INTER_DOMAIN)
    }

    /// Whether there is such a strategy.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 <= Self::INTER_DOMAIN.0
    }

    /// The strategy of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, n)| *n == name).map(|(s, _)| *s)
    }
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Self::ALL.iter().find(|(s, _)| s == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The answer to a request (P-21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// Done.
    pub const OK: Self = Self(0);
    /// Id and prefix do not fit the request, or would make a circle.
    pub const WRONG_IDS: Self = Self(1);
    /// The scope has another strategy.
    pub const STRATEGY: Self = Self(2);
    /// Already publisher or subscriber.
    pub const EXISTS: Self = Self(3);
    /// No scope at the prefix.
    pub const NO_PARENT: Self = Self(4);
    /// An item stands there.
    pub const IS_ITEM: Self = Self(5);
    /// No such scope.
    pub const NO_SCOPE: Self = Self(6);
    /// A scope stands there.
    pub const IS_SCOPE: Self = Self(7);
    /// No such item.
    pub const NO_ITEM: Self = Self(8);
    /// Neither publisher nor subscriber of it.
    pub const NOT_THERE: Self = Self(9);
    /// No such request.
    pub const UNKNOWN: Self = Self(10);
    /// Its parts belong to different rendezvous nodes.
    pub const ELSEWHERE: Self = Self(11);
    /// A bound is reached.
    pub const FULL: Self = Self(12);
    /// A reserved identifier.
    pub const RESERVED: Self = Self(13);
    /// No rendezvous could be reached.
    pub const UNREACHED: Self = Self(14);
    /// The strategy does not know such requests.
    pub const UNFIT: Self = Self(15);
    /// The item has no subscribers, or another application of the node publishes it.
    pub const STOPPED: Self = Self(16);
    /// Longer than one frame, under a strategy that does not cut publications.
    pub const TOO_LONG: Self = Self(17);
    /// The application is not registered.
    pub const NOT_REGISTERED: Self = Self(18);
    /// The push half is off.
    pub const OFF: Self = Self(19);
    /// Not on this kind of face.
    pub const NOT_HERE: Self = Self(20);

    /// Another word has this label there.
    pub const WORD: Self = Self(21);

    /// What it means, for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self.0 {
            0 => "ok",
            1 => "wrong ids",
            2 => "strategy differs",
            3 => "already so",
            4 => "no such parent",
            5 => "an item has this id",
            6 => "no such scope",
            7 => "a scope has this id",
            8 => "no such item",
            9 => "neither publisher nor subscriber",
            10 => "unknown request",
            11 => "of another rendezvous node",
            12 => "a bound is reached",
            13 => "reserved",
            14 => "no rendezvous reached",
            15 => "request and strategy do not go together",
            16 => "stopped: wait for start publish",
            17 => "longer than one frame",
            18 => "not registered",
            19 => "the push half is off",
            20 => "not on this kind of face",
            21 => "another word has this label",
            _ => "unknown status",
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.0, self.text())
    }
}

/// Reserved roots (section 1).
pub mod reserved {
    use super::{Id, Label};

    /// Requests to a rendezvous; then the sender's node.
    pub const RENDEZVOUS: Label = Label([0xff; 8]);
    /// To a topology manager; then the sender's node.
    pub const TOPOLOGY: Label = Label([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
    /// To a dispatcher; then the receiver's node.
    pub const DISPATCHER: Label = Label([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd]);
    /// Between domains; then the sender's domain.
    pub const DOMAINS: Label = Label([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc]);
    /// Flooded link state; then the sender's node.
    pub const LINK_STATE: Label = Label([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfa]);
    /// Requests for lost fragments; then the receiver's node.
    pub const REPAIR: Label = Label([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf9]);
    /// Hello of a neighbour; then the sender's node.
    pub const HELLO: Label = Label([0x01, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x10]);

    /// Whether applications must keep away from what is under this root: the two highest hundred
    /// and the hello.
    #[must_use]
    pub fn is_reserved(root: Label) -> bool {
        root == HELLO || root.0.starts_with(&[0xff; 7])
    }

    /// `/root/node`.
    #[must_use]
    pub fn of(root: Label, node: Label) -> Id {
        Id::root(root).child(node)
    }
}
