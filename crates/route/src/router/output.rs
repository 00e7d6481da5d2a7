//! What a router asks its shell to do, and what it reports.

use onym_endpoint::Packet;
use onym_wire::Name;

/// A command for an NFD-compatible forwarder. The shell carries it out, repeats it when there is no
/// answer, and calls [`Router::completed`](super::Router::completed).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `faces/update`: IncomingFaceId and NextHopFaceId on the face to this router.
    LocalFields,
    /// `rib/register` of `prefix` to this router itself, cost 0.
    Serve {
        /// The prefix.
        prefix: Name,
    },
    /// `strategy-choice/set` to multicast.
    Multicast {
        /// The prefix.
        prefix: Name,
    },
    /// `faces/create`, permanent; a face that exists is as good.
    CreateFace {
        /// FaceUri.
        uri: String,
        /// MTU in octets.
        mtu: Option<u64>,
    },
    /// `rib/register` of origin 128.
    Register {
        /// The prefix.
        prefix: Name,
        /// The face.
        face: u64,
        /// The cost.
        cost: u64,
    },
    /// `rib/unregister` of origin 128.
    Unregister {
        /// The prefix.
        prefix: Name,
        /// The face.
        face: u64,
    },
}

/// Why a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandError {
    /// The forwarder's status code.
    Refused(u64),
    /// No answer.
    Silent,
}

/// What became of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is of who may sign that name.
    Good,
    /// It is not, or nobody knows: the reason, for people.
    Bad(String),
}

/// What the shell shall do.
#[derive(Debug, Clone)]
pub enum Output {
    /// Carry out a command.
    Command {
        /// For the answer.
        id: u64,
        /// What.
        command: Command,
    },
    /// Check the signature of a Data under the names of routing; the answer goes to
    /// [`Router::verified`](super::Router::verified).
    Verify {
        /// For the answer.
        id: u64,
        /// The Data.
        packet: Packet,
        /// The face it came from, where certificates are asked for.
        face: Option<u64>,
    },
    /// Tell the log.
    Notice(Notice),
}

/// Why a neighbour is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Silent for the dead interval.
    Silent,
    /// Its face is down.
    FaceDown,
    /// The network refused what was sent to it, and no probe was answered.
    Refused,
    /// It said goodbye.
    Goodbye,
    /// An operator holds it down.
    Held,
    /// It does not hear this router.
    OneSided,
}

impl Why {
    /// The reason, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Silent => "silent for the dead interval",
            Self::FaceDown => "its face is down",
            Self::Refused => "its host refuses packets, and it answers no probe",
            Self::Goodbye => "it said goodbye",
            Self::Held => "held down by an operator",
            Self::OneSided => "it does not hear this router",
        }
    }
}

/// Something for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A neighbour is there, by this face.
    NeighbourUp(Name, u64),
    /// A neighbour is gone.
    NeighbourDown(Name, Why),
    /// What this router said was not taken: its signature, by this claimed signer, for this reason.
    Refused {
        /// The router that the packet names.
        router: Name,
        /// The key that it names.
        key: Option<Name>,
        /// Why.
        why: String,
    },
    /// Somebody else says to be this router, with this bootstrap time.
    Duplicate(u64),
    /// Hellos come without IncomingFaceId: the forwarder does not tell it to this router.
    NoFaceId,
    /// A configured link cannot be made.
    LinkFailed(String, CommandError),
}

/// What a router counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Hellos sent; each is one or two Interests.
    pub hellos_sent: u64,
    /// Hellos that arrived.
    pub hellos: u64,
    /// Hellos whose neighbour is known and did not say anything new.
    pub pings: u64,
    /// Hellos and advertisements that cannot be read, or are not of whom they name.
    pub malformed: u64,
    /// Hellos that were said before: they keep nobody alive.
    pub replayed: u64,
    /// Hellos not looked at because too many came.
    pub flooded: u64,
    /// Signatures that did not hold.
    pub refused: u64,
    /// Neighbours refused because there are too many.
    pub neighbours_refused: u64,
    /// Hellos without a face.
    pub no_face: u64,
    /// Advertisements published.
    pub adverts: u64,
    /// Advertisements fetched whole.
    pub fetched: u64,
    /// Differences taken out of hellos.
    pub deltas: u64,
    /// Fetches that failed.
    pub fetch_failures: u64,
    /// Operations on prefix tables of others.
    pub prefix_operations: u64,
    /// Prefixes of others that the configuration does not accept from them.
    pub not_accepted: u64,
    /// Operations of ours that could not be published.
    pub unpublished: u64,
    /// Probes of links sent.
    pub probes: u64,
    /// Of them without an answer.
    pub probes_lost: u64,
    /// Times a face was doubted because the network refused what was sent by it.
    pub doubts: u64,
    /// Times a measured cost changed.
    pub cost_changes: u64,
    /// Times the ways to a destination changed.
    pub route_changes: u64,
    /// Commands for the forwarder.
    pub commands: u64,
    /// Of them failed.
    pub commands_failed: u64,
    /// Notices that nobody took.
    pub notices_dropped: u64,
}

impl std::ops::AddAssign for Counters {
    /// The sums of both.
    fn add_assign(&mut self, other: Self) {
        self.hellos_sent += other.hellos_sent;
        self.hellos += other.hellos;
        self.pings += other.pings;
        self.malformed += other.malformed;
        self.replayed += other.replayed;
        self.flooded += other.flooded;
        self.refused += other.refused;
        self.neighbours_refused += other.neighbours_refused;
        self.no_face += other.no_face;
        self.adverts += other.adverts;
        self.fetched += other.fetched;
        self.deltas += other.deltas;
        self.fetch_failures += other.fetch_failures;
        self.prefix_operations += other.prefix_operations;
        self.not_accepted += other.not_accepted;
        self.unpublished += other.unpublished;
        self.probes += other.probes;
        self.probes_lost += other.probes_lost;
        self.doubts += other.doubts;
        self.cost_changes += other.cost_changes;
        self.route_changes += other.route_changes;
        self.commands += other.commands;
        self.commands_failed += other.commands_failed;
        self.notices_dropped += other.notices_dropped;
    }
}
