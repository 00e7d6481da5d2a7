//! What `onym top` asks for.

use clap::ValueEnum;
use serde::Serialize;

/// Orders of faces as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Packets a second.
    Packets,
    /// Octets a second received.
    In,
    /// Octets a second sent.
    Out,
    /// Packets a second that were not sent.
    Losses,
    /// Octets that wait.
    Queue,
    /// Round trip.
    Rtt,
    /// Number.
    Face,
}

impl Order {
    const ALL: [Self; 7] =
        [Self::Packets, Self::In, Self::Out, Self::Losses, Self::Queue, Self::Rtt, Self::Face];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::In => "in",
            Self::Out => "out",
            Self::Losses => "losses",
            Self::Queue => "queue",
            Self::Rtt => "rtt",
            Self::Face => "face",
        }
    }

    pub(super) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|order| *order == self).unwrap_or_default();
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) order: Order,
    pub(super) faces: u16,
    pub(super) depth: u8,
    pub(super) face: Option<u32>,
    /// Only faces and prefixes with this; all when it is empty.
    pub(super) text: String,
    /// Whether faces with which something is wrong are asked for, too.
    pub(super) is_why: bool,
}

impl Question {
    /// What slows the node down, and no list.
    pub(super) fn why() -> Self {
        Self { faces: 0, is_why: true, ..Self::default() }
    }
}

impl Default for Question {
    fn default() -> Self {
        let text = String::new();
        Self { order: Order::Packets, faces: 100, depth: 2, face: None, text, is_why: false }
    }
}
