//! A packet script as a tree, and the parser that makes it (`spec/conformance/FORMAT.md`).

pub mod fields;
mod options;
mod packets;
pub mod parse;

use crate::wire::name::Part;
use onym_wire::mgmt::LinkType;
use std::path::PathBuf;

pub use fields::{Field, Value};
pub use parse::{ScriptError, parse, parse_file};

/// A whole script.
#[derive(Debug, Clone)]
pub struct Script {
    /// Where it was read.
    pub path: PathBuf,
    /// File name without extension.
    pub name: String,
    /// The law it shows, one sentence.
    pub law: String,
    /// Numbers of the sections that state the law.
    pub sections: Vec<String>,
    /// Words of the `tags:` line other than `needs=`.
    pub tags: Vec<String>,
    /// What a subject must have.
    pub needs: Vec<String>,
    /// Faces of the forwarder, in the order of the script.
    pub faces: Vec<FaceSpec>,
    /// Names of regions that the node is in.
    pub regions: Vec<Vec<Part>>,
    /// Configuration keys of the registry with their values.
    pub config: Vec<(String, String)>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

impl Script {
    /// Whether the script carries this tag.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t == tag)
    }

    /// The position of a face by its name.
    #[must_use]
    pub fn face(&self, name: &str) -> Option<usize> {
        self.faces.iter().position(|f| f.name == name)
    }

    /// The least time that the script takes, in milliseconds.
    #[must_use]
    pub fn wait_ms(&self) -> u64 {
        self.steps
            .iter()
            .map(|s| match &s.kind {
                StepKind::Wait(ms) | StepKind::Nothing { for_ms: ms, .. } => *ms,
                _ => 0,
            })
            .sum()
    }
}

/// Kind of socket that carries a face, where there are sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// Unix for local faces, UDP for others.
    #[default]
    Auto,
    /// Unix stream.
    Unix,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// WebSocket.
    Ws,
    /// Ethernet.
    Ether,
}

/// A face of the forwarder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceSpec {
    /// Its name in the script.
    pub name: String,
    /// May carry `/localhost`.
    pub local: bool,
    /// Link type.
    pub link: LinkType,
    /// Largest frame in octets.
    pub mtu: usize,
    /// The forwarder cuts and joins packets.
    pub fragment: bool,
    /// NDNLPv2 acknowledgements.
    pub reliability: bool,
    /// NextHopFaceId and IncomingFaceId.
    pub local_fields: bool,
    /// The script sees frames as they are.
    pub see_frames: bool,
    /// Kind of socket.
    pub transport: Transport,
    /// The peer's first frame makes the face, not a command.
    pub by_peer: bool,
}

/// One line that does something.
#[derive(Debug, Clone)]
pub struct Step {
    /// Line number in the file, from 1.
    pub line: usize,
    /// The line, for messages.
    pub text: String,
    /// What it does.
    pub kind: StepKind,
}

/// What a line does.
#[derive(Debug, Clone)]
pub enum StepKind {
    /// `a> packet`
    Send {
        /// The face.
        face: usize,
        /// What to send.
        packet: Packet,
    },
    /// `a< packet`
    Receive {
        /// The face.
        face: usize,
        /// What must come next.
        packet: Packet,
        /// Upper bound in milliseconds.
        within: Option<u64>,
    },
    /// `a< nothing for=MS`
    Nothing {
        /// The face.
        face: usize,
        /// How long.
        for_ms: u64,
    },
    /// `a< closed`
    Closed {
        /// The face.
        face: usize,
    },
    /// `a? dataset`
    Query {
        /// The face over which it is asked.
        face: usize,
        /// `module/name`.
        dataset: String,
        /// Fields of the filter.
        filter: Vec<Field>,
    },
    /// `has …`
    Has(Vec<Field>),
    /// `lacks …`
    Lacks(Vec<Field>),
    /// `rows N`
    Rows(Value),
    /// `let D = packet`
    Let {
        /// Its label.
        label: String,
        /// The packet.
        packet: Packet,
    },
    /// `wait MS`
    Wait(u64),
    /// `close a`
    Close(usize),
    /// `drain a`
    Drain(usize),
    /// `expect word=N…`
    Expect(Vec<(String, Value)>),
    /// `route P -> a cost=N`
    Route {
        /// Prefix.
        prefix: Vec<Part>,
        /// Next hop.
        face: usize,
        /// Cost.
        cost: u64,
    },
    /// `unroute P -> a`
    Unroute {
        /// Prefix.
        prefix: Vec<Part>,
        /// Next hop.
        face: usize,
    },
    /// `strategy P NAME`
    Strategy {
        /// Prefix.
        prefix: Vec<Part>,
        /// Last components of the strategy name: `best-route`, `asf/v=5/probing-interval~2000`.
        strategy: String,
    },
    /// `cs key=value…`
    Cs(CsSpec),
}

/// Settings of the content store; absent ones stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsSpec {
    /// Packets.
    pub capacity: Option<u64>,
    /// `lru` or `priority_fifo`.
    pub policy: Option<String>,
    /// Insertion allowed.
    pub admit: Option<bool>,
    /// Lookup allowed.
    pub serve: Option<bool>,
    /// Policy for unsolicited Data.
    pub unsolicited: Option<String>,
}

/// A packet to build, or the pattern of one.
#[derive(Debug, Clone)]
pub struct Packet {
    /// What kind.
    pub kind: PacketKind,
    /// Its fields.
    pub fields: Vec<Field>,
    /// `...`: fields not written are not looked at.
    pub open: bool,
}

/// Kind of a packet.
#[derive(Debug, Clone)]
pub enum PacketKind {
    /// Interest of this name.
    Interest(Vec<Part>),
    /// Data of this name.
    Data(Vec<Part>),
    /// Nack of an Interest of this name.
    Nack(Value, Vec<Part>),
    /// A bare LpPacket.
    Lp,
    /// Octets.
    Raw(Vec<Piece>),
    /// A packet that `let` built.
    Labelled(String),
    /// A management command `module/verb`.
    Command(String),
    /// The response to a command.
    Response(Value),
    /// A face event.
    Event(String),
}

/// A piece of `raw`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Octets as they are.
    Bytes(Vec<u8>),
    /// A Name TLV.
    Name(Vec<Part>),
    /// The octets of a labelled packet.
    Packet(String),
    /// A TLV of this type around the pieces.
    Tlv(u64, Vec<Self>),
}
