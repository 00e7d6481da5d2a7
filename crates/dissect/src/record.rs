//! One packet with what is known about its way, as text and as JSON.

mod shown;

pub use shown::{Kind, Shown};

use onym_wire::Name;
use onym_wire::dump;
use onym_wire::name::NameRef;
use serde::Serialize;
use std::fmt;

/// Which way a frame went at the machine that captured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// It was received.
    In,
    /// It was sent.
    Out,
}

/// What carried a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// Nothing: octets.
    #[default]
    Bare,
    /// Ethernet.
    Ethernet,
    /// The point-to-point protocol.
    Ppp,
    /// A datagram.
    Udp,
    /// A stream.
    Tcp,
    /// A message of a WebSocket.
    Websocket,
}

impl Carrier {
    /// Its name in text; empty for bare octets.
    const fn text(self) -> &'static str {
        match self {
            Self::Bare => "",
            Self::Ethernet => "ethernet",
            Self::Ppp => "ppp",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Websocket => "websocket",
        }
    }
}

/// A packet, or a frame of a link, with what is known about its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// When, in nanoseconds of Unix time.
    pub time_ns: Option<u64>,
    /// Name of the interface.
    pub interface: Option<String>,
    /// Which way it went.
    pub direction: Option<Direction>,
    /// What carried it.
    pub carrier: Carrier,
    /// Who sent it.
    pub from: Option<String>,
    /// Whom it was sent to.
    pub to: Option<String>,
    /// What the capture says about it.
    pub comment: Option<String>,
    /// Octets that the capture left out.
    pub missing: u64,
    /// The frame: LpPacket, Interest, Data, or one of the push half.
    pub octets: Vec<u8>,
    /// The network-layer packet, where this fragment was the last one that was missing.
    pub whole: Option<Vec<u8>>,
}

impl Record {
    /// As an object of JSON.
    #[must_use]
    pub fn shown(&self) -> Shown<'_> {
        shown::shown(self)
    }

    /// The tree of its elements, and of the packet that it completes.
    #[must_use]
    pub fn tree(&self) -> String {
        let mut tree = dump::Tree(&self.octets).to_string();
        if let Some(whole) = &self.whole {
            tree += &dump::Tree(whole).to_string();
        }
        tree
    }

    /// Its name, where it has one, or the packet that it completes.
    #[must_use]
    pub fn name(&self) -> Option<Name> {
        self.shown().name?.parse().ok()
    }

    /// Whether its name is under `prefix`.
    #[must_use]
    pub fn is_under(&self, prefix: NameRef<'_>) -> bool {
        self.name().is_some_and(|name| prefix.is_prefix_of(name.as_ref()))
    }
}

/// One line, without a line end: text of others may be in it.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ns) = self.time_ns {
            write!(f, "{}.{:09} ", ns / 1_000_000_000, ns % 1_000_000_000)?;
        }
        if let Some(interface) = &self.interface {
            write!(f, "{} ", interface.escape_debug())?;
        }
        f.write_str(match self.direction {
            Some(Direction::In) => "in ",
            Some(Direction::Out) => "out ",
            None => "",
        })?;
        if self.carrier != Carrier::Bare {
            write!(f, "{} ", self.carrier.text())?;
        }
        if let (Some(from), Some(to)) = (&self.from, &self.to) {
            write!(f, "{from} > {to} ")?;
        }
        write!(f, "{}", dump::Line(&self.octets))?;
        if let Some(whole) = &self.whole {
            write!(f, " whole: {}", dump::Line(whole))?;
        }
        if self.missing > 0 {
            write!(f, " missing={} octets", self.missing)?;
        }
        if let Some(comment) = &self.comment {
            write!(f, " # {}", comment.escape_debug())?;
        }
        Ok(())
    }
}
