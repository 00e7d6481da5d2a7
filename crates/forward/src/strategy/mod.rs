//! Strategies decide where an Interest goes. They are shared, hold parameters only, and keep what
//! they learn in the PIT entry ([`Info`]) or the measurements ([`Measured`]). A strategy never sends:
//! it pushes [`Action`]s, which the path carries out in order when the call returns.

mod access;
mod asf;
mod best_route;
mod instance;
mod multicast;
mod random;
mod relay;
mod retx;
mod self_learning;
#[cfg(test)]
mod tests;

pub use access::{Access, AccessInfo};
pub use asf::{Asf, AsfInfo};
pub use best_route::BestRoute;
pub use instance::Instance;
pub use multicast::Multicast;
pub use random::Random;
pub use relay::{Relay, Repeat};
pub use retx::{Retx, RetxInfo, Suppression};
pub use self_learning::SelfLearning;

use crate::faces::{Face, Faces};
use crate::path::{is_localhop, is_localhost};
use onym_frame::Buf;
use onym_tables::fib::NextHop;
use onym_tables::measurements::Measurements;
use onym_tables::{FaceId, HashKey, Prefix, Rng, Tick, pit};
use onym_wire::lp::NackReason;
use onym_wire::mgmt::LinkType;
use std::fmt;
use std::time::Duration;

/// What a strategy keeps with a PIT entry. A strategy adds a variant of its own, 24 octets or less.
#[derive(Debug, Clone, Default)]
pub enum Info {
    /// Nothing yet.
    #[default]
    None,
    /// Suppression of retransmissions, for the whole entry.
    Retx(RetxInfo),
}

/// What a strategy keeps about a prefix. A strategy adds a variant of its own, boxed when large.
#[derive(Debug, Clone, Default)]
pub enum Measured {
    /// Nothing yet.
    #[default]
    None,
    /// The last working next hop of a prefix (access).
    Access(Box<AccessInfo>),
    /// Round-trip times of a namespace's next hops (asf).
    Asf(Box<AsfInfo>),
}

/// Bits of [`pit::OutRecord::marks`].
pub mod out_marks {
    /// The Interest was sent with NonDiscovery; the path sets it for
    /// [`super::Action::ForwardNonDiscovery`] and clears it for other sending.
    pub const NON_DISCOVERY: u8 = 1;
}

/// A PIT entry as strategies see it.
pub type Entry = pit::Entry<Info>;

/// Why a strategy forwards an Interest nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The FIB has no next hop.
    NoRoute,
    /// There are next hops, but none may be used.
    NoEligibleNextHop,
    /// Another reason of the strategy.
    Rejected,
}

/// What the path does for a strategy.
#[derive(Debug, Clone)]
pub enum Action {
    /// Send the pending Interest with the Nonce of the latest downstream.
    Forward(FaceId),
    /// Send a copy with a new Nonce, as a probe.
    Probe(FaceId),
    /// Send with NonDiscovery set.
    ForwardNonDiscovery(FaceId),
    /// Send a Nack to a downstream and forget that it asked.
    Nack(FaceId, NackReason),
    /// Send a Nack to every downstream and forget that they asked.
    NackAll(NackReason),
    /// Give the entry up: it ends now. The reason becomes the verdict of the Interest.
    Reject(Refusal),
    /// Nothing could be sent, but the entry stays until it expires. The reason becomes the verdict.
    Hold(Refusal),
    /// The Interest was a retransmission too soon after another: verdict `suppressed`.
    Suppress,
    /// When the entry is satisfied, keep it for so long that later Data of other upstreams still
    /// finds it (only from [`Strategy::before_satisfy`]).
    Linger(Duration),
    /// Call [`Strategy::on_timer`] at this moment; one timer per entry, the latest order counts.
    SetTimer(Tick),
    /// Tell the shell that a route to the announced prefix over `0` was seen.
    Learn(FaceId, Buf),
    /// Tell the shell that the learned route for this Interest over `0` failed.
    Unlearn(FaceId),
    /// Attach the known prefix announcement to the Data (only from [`Strategy::before_satisfy`]).
    AttachAnnouncement,
}

/// What a strategy sees and may change while it decides about one PIT entry.
#[derive(Debug)]
pub struct Ctx<'a> {
    /// Now.
    pub now: Tick,
    /// Value of the Interest's name.
    pub name: &'a [u8],
    /// The pending Interest.
    pub entry: &'a mut Entry,
    /// Next hops of the longest FIB prefix, lowest cost first; empty when there is none.
    pub next_hops: &'a [NextHop],
    /// That prefix (of the name, or of the forwarding hint that was chosen); empty for none.
    pub fib_prefix: Prefix<'a>,
    /// The faces.
    pub faces: &'a Faces,
    /// What strategies know of prefixes.
    pub measurements: &'a mut Measurements<Measured>,
    /// The key of name hashes, to look up measurements of other prefixes.
    pub key: &'a HashKey,
    /// Randomness.
    pub rng: &'a mut Rng,
    /// What is to be done; push in order.
    pub actions: &'a mut Vec<Action>,
}

/// Whether an Interest of this name (its value) from `ingress` may go to `face`.
#[inline(always)]
pub(crate) fn is_eligible(faces: &Faces, name: &[u8], ingress: FaceId, face: FaceId) -> bool {
    let Some(to) = faces.get(face) else { return false };
    if face == ingress && to.info.link != LinkType::AdHoc {
        return false;
    }
    to.is_local() || is_within_scope(faces, name, ingress)
}

/// Whether an Interest of this name from `ingress` may leave this host.
fn is_within_scope(faces: &Faces, name: &[u8], ingress: FaceId) -> bool {
    // /localhop from another node stays here.
    !is_localhost(name) && (!is_localhop(name) || faces.get(ingress).is_none_or(Face::is_local))
}

impl Ctx<'_> {
    /// Appends an action.
    #[inline]
    pub fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Whether an Interest from `ingress` may go to `face`: it exists, is another face (or an
    /// ad-hoc one), and the scope of the name allows it.
    #[inline(always)]
    #[must_use]
    pub fn is_eligible(&self, ingress: FaceId, face: FaceId) -> bool {
        is_eligible(self.faces, self.name, ingress, face)
    }

    /// Next hops that an Interest from `ingress` may take, lowest cost first.
    pub fn eligible(&self, ingress: FaceId) -> impl Iterator<Item = NextHop> + '_ {
        self.next_hops.iter().copied().filter(move |hop| self.is_eligible(ingress, hop.face))
    }

    /// Eligible next hops without an unexpired out-record.
    pub fn eligible_unused(&self, ingress: FaceId) -> impl Iterator<Item = NextHop> + '_ {
        let now = self.now;
        self.eligible(ingress)
            .filter(move |hop| self.entry.out_record(hop.face).is_none_or(|r| r.expiry <= now))
    }

    /// Refuses with Nack NoRoute to `ingress`, as most strategies do when nothing is eligible.
    pub fn refuse_no_route(&mut self, ingress: FaceId) {
        let refusal =
            if self.next_hops.is_empty() { Refusal::NoRoute } else { Refusal::NoEligibleNextHop };
        self.push(Action::Nack(ingress, NackReason::NO_ROUTE));
        self.push(Action::Reject(refusal));
    }

    /// The standard merging of Nacks (best-route, ASF, random): waits while more than one upstream
    /// may answer, or the last of them is no downstream; else passes the least severe reason on.
    pub fn merge_nacks(&mut self) {
        let mut waiting = 0;
        let mut last = FaceId::INVALID;
        let mut least = NackReason::NONE;
        for out in &self.entry.outs {
            match out.nack {
                Some(reason) => least = least.min(NackReason(u64::from(reason))),
                None => {
                    waiting += 1;
                    last = out.face;
                }
            }
        }
        match waiting {
            0 => self.push(Action::NackAll(least)),
            // The upstream that has not answered waits for us as well: it gets the Nack.
            1 if self.entry.in_record(last).is_some() => self.push(Action::Nack(last, least)),
            _ => {}
        }
    }
}

/// The Data that satisfies an entry.
#[derive(Debug)]
pub struct DataIn<'a> {
    /// The face it came from.
    pub face: FaceId,
    /// Value of its name.
    pub name: &'a [u8],
    /// The prefix announcement that came with it.
    pub announcement: Option<&'a Buf>,
}

/// One strategy with its parameters.
pub trait Strategy: fmt::Debug + Send {
    /// An Interest came from `ingress`, was not answered from the cache and has its in-record.
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId);

    /// Whether an Interest that was sent nowhere yet goes to the first eligible next hop, where there is
    /// one, and nothing else is done: then the strategy is not asked about it. Asked once, when it is
    /// chosen.
    fn takes_first(&self) -> bool {
        false
    }

    /// Whether [`Strategy::before_satisfy`] does anything; asked once, when it is chosen.
    fn minds_data(&self) -> bool {
        false
    }

    /// Data is about to satisfy the entry (only where [`Strategy::minds_data`]). The out-record of
    /// `data.face`, when there is one, is still in the entry and tells the round-trip time.
    fn before_satisfy(&self, _ctx: &mut Ctx<'_>, _data: &DataIn<'_>) {}

    /// The upstream `face` answered with a Nack; its out-record holds the reason.
    fn after_receive_nack(&self, ctx: &mut Ctx<'_>, face: FaceId, reason: NackReason);

    /// The link service gave up sending the Interest to the upstream `face`, whose out-record
    /// tells when that was.
    fn on_lost_interest(&self, _ctx: &mut Ctx<'_>, _face: FaceId) {}

    /// The timer of [`Action::SetTimer`].
    fn on_timer(&self, _ctx: &mut Ctx<'_>) {}

    /// `hop` was added to the FIB prefix of this pending Interest.
    fn after_new_next_hop(&self, _ctx: &mut Ctx<'_>, _hop: NextHop) {}

    /// Whether [`Strategy::after_new_next_hop`] does anything; asked before the PIT is searched.
    fn wants_new_next_hop(&self) -> bool {
        false
    }

    /// Whether a looped Interest is answered with Nack Duplicate on point-to-point faces.
    fn nacks_loops(&self) -> bool {
        true
    }
}

/// Why a strategy instance name was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// There is no strategy of this name (404 in management).
    #[error("no strategy is called {0:?}")]
    Unknown(String),
    /// A version newer than ours.
    #[error("strategy {name} has version {ours}, not {asked}")]
    Version {
        /// Strategy.
        name: &'static str,
        /// The version there is.
        ours: u64,
        /// The version asked for.
        asked: u64,
    },
    /// A parameter that the strategy does not know, or a value it does not allow.
    #[error("strategy parameter {parameter:?}: {reason}")]
    Parameter {
        /// The parameter as given.
        parameter: String,
        /// What is wrong and what is allowed.
        reason: String,
    },
}

impl StrategyError {
    /// The code of the management protocol: 404 for what does not exist, 409 for what the
    /// strategy refuses.
    #[must_use]
    pub fn status_code(&self) -> u64 {
        match self {
            Self::Unknown(_) | Self::Version { .. } => 404,
            Self::Parameter { .. } => 409,
        }
    }
}

/// Parameters of an instance, each `name~value` as text.
pub type Parameters<'a> = &'a [(&'a str, &'a str)];

/// One kind of strategy that can be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The component of its name after `/localhost/nfd/strategy`.
    pub name: &'static str,
    /// Its version.
    pub version: u64,
    /// Makes an instance.
    pub create: fn(Parameters<'_>) -> Result<Box<dyn Strategy>, StrategyError>,
}

/// Every strategy there is.
pub const KINDS: &[Kind] = &[
    Kind { name: "access", version: 1, create: Access::create },
    Kind { name: "asf", version: 5, create: Asf::create },
    Kind { name: "best-route", version: 5, create: BestRoute::create },
    Kind { name: "multicast", version: 5, create: Multicast::create },
    Kind { name: "random", version: 1, create: Random::create },
    Kind { name: "self-learning", version: 1, create: SelfLearning::create },
];
