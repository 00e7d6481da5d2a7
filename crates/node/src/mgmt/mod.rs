//! The management protocol of NFD as a state machine without I/O.
//!
//! ```text
//! Interest ─► Management::interest ─► Host (the node) ─► Management::poll_output ─► Data
//!             Management::data  (certificates it asked for)                     ─► Interest
//!             Management::face_created, face_event, rib_changed, handle_timeout
//! ```
//!
//! | file | what |
//! |---|---|
//! | `host` | what is asked of the node |
//! | `command` | names and parameters of commands: which verb, which fields |
//! | `policy`, `authorize` | who may do what: rules, signatures, replay |
//! | `verbs` | the verbs, a file per module |
//! | `dataset`, `serve` | the lists, and the segments they are sent in |
//! | `events` | the streams of events: faces, the RIB |
//! | `guards` | whose signatures count: entries of `trust`, and the certificates they ask for |
//! | `trace` | requests that trace a name, and those that are sent on |
//! | `reply` | Data |
//!
//! What differs from NFD, and why:
//!
//! - a DigestSha256 command on a local face is accepted in any order: there the replay record of
//!   NFD, shared by all applications of a host, refuses honest ones and stops nobody;
//! - unknown verbs are answered with 501 and parameters that cannot be read with 400, each with a
//!   sentence, instead of silence;
//! - FinalBlockId is on every segment of a dataset, and a version is kept for 10 s instead of one;
//! - events are kept until 1024 newer ones came, so that a subscriber behind misses none;
//! - who may do what follows from the user behind a Unix connection (`policy`): everybody registers
//!   for itself, the rest is for operators;
//! - routes of `/localhost/nfd` and `/localhost/onym` cannot be added or removed by commands;
//! - a local face may register under `/localhop/nfd` too, whether that is on for others or not;
//!   while it is off, others get Nack NoRoute.
//!
//! Nothing here panics on any Interest. Bounds: 256 commands wait for a connection, 64 for a
//! certificate, 256 subscribers are remembered, datasets are kept 10 s and 64 MiB; beyond each the
//! newcomer is told so, or the oldest is forgotten.

mod authorize;
mod blank;
mod command;
mod dataset;
mod events;
mod guards;
pub mod host;
pub mod look;
mod options;
pub mod policy;
mod reply;
mod serve;
#[cfg(test)]
mod tests;
mod trace;
mod verbs;

pub use blank::Blank;
pub use command::verbs;
pub use events::FaceEvent;
pub use guards::Guards;
pub use host::Host;
pub use options::Options;
pub(crate) use policy::is_reserved;
pub use policy::{Announcers, Localhop, Policy, Privilege, Rule, RuleError, Who};

pub(crate) use verbs::rib::remaining_ms;

use authorize::{Authorizer, Decision};
use command::{Command, NotCommand, Verb};
use dataset::Datasets;
use events::Events;
use host::{FaceError, FaceView, Ticket, User};
use onym_crypto::Entropy;
use onym_guard::Guard;
use onym_tables::{FaceId, Tick};
use onym_trust::chain::Context;
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::mgmt::ControlResponse;
use onym_wire::name::{Name, NameRef};
use onym_wire::trace::Request;
use onym_wire::{Data, Interest, PACKET_LEN_MAX};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use trace::Relays;

/// Most commands that wait for certificates.
const WAITING_MAX: usize = 64;

/// Most cached certificates of a name that are forgotten before a neighbour is asked for it.
const ERASED_MAX: u64 = 64;

/// The ticket of what waits for nobody.
const NO_TICKET: Ticket = Ticket::MAX;

/// Most commands that wait for a connection.
const CREATIONS_MAX: usize = 256;

/// What management wants sent, through the internal face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// An answer. With `no_cache` it carries CachePolicy NoCache.
    Data {
        /// The packet.
        wire: Vec<u8>,
        /// Whether the content store must leave it out.
        no_cache: bool,
    },
    /// An Interest for a certificate, to be sent on the face `next_hop`, from where the command
    /// came: whoever signs a command can serve its certificates.
    Interest {
        /// The packet.
        wire: Vec<u8>,
        /// The face.
        next_hop: FaceId,
    },
    /// The judgement of a Data that was handed to [`Management::verify`].
    Verified {
        /// What it was handed in with.
        ticket: Ticket,
        /// Whether the rules believe it.
        is_good: bool,
    },
    /// Nack NoRoute: for this requester there is no management here.
    NoRoute {
        /// The Interest.
        interest: Vec<u8>,
    },
}

/// Packets that management saw, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands carried out (code below 400).
    pub commands_done: u64,
    /// Commands refused.
    pub commands_refused: u64,
    /// Dataset requests and segments answered.
    pub datasets: u64,
    /// Interests left without answer: malformed, from elsewhere, or for what is not kept.
    pub ignored: u64,
}

/// The management protocol of one node.
pub struct Management {
    authorizer: Authorizer,
    routable_prefixes: Vec<Name>,
    datasets: Datasets,
    face_events: Events,
    rib_events: Events,
    relays: Relays,
    /// Commands whose signer is not known yet, by ticket.
    waiting: BTreeMap<u64, (Vec<u8>, Requester)>,
    /// Data whose signer is not known yet.
    verifying: BTreeSet<Ticket>,
    /// Commands whose face is being connected.
    creations: HashMap<Ticket, (Name, Requester)>,
    next_ticket: Ticket,
    entropy: Box<dyn Entropy + Send>,
    out: VecDeque<Output>,
    counters: Counters,
}

impl std::fmt::Debug for Management {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Management").field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// The three places where management answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    /// `/localhost/nfd`.
    Localhost,
    /// `/localhop/nfd`.
    Localhop,
    /// `/localhost/onym`.
    Onym,
}

/// Where an Interest came from.
#[derive(Debug, Clone, Copy)]
struct Requester {
    face: FaceId,
    is_local: bool,
    /// Unknown unless local.
    user: User,
}

fn space_of(name: NameRef<'_>) -> Option<Space> {
    let mut parts = name.components().filter(|c| c.is_generic()).map(|c| c.value);
    match (parts.next()?, parts.next()?) {
        (b"localhost", b"nfd") => Some(Space::Localhost),
        (b"localhop", b"nfd") => Some(Space::Localhop),
        (b"localhost", b"onym") => Some(Space::Onym),
        _ => None,
    }
}

impl Management {
    /// Management with `options`; `entropy` gives the nonces of its Interests.
    #[must_use]
    pub fn new(options: Options, entropy: Box<dyn Entropy + Send>) -> Self {
        Self {
            authorizer: Authorizer::new(options.policy, options.trust),
            routable_prefixes: options.routable_prefixes,
            datasets: Datasets::default(),
            face_events: Events::of_faces(),
            rib_events: Events::of_rib(),
            relays: Relays::default(),
            waiting: BTreeMap::new(),
            verifying: BTreeSet::new(),
            creations: HashMap::new(),
            next_ticket: 0,
            entropy,
            out: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Takes over new options. When they say otherwise who may do what, commands that wait for
    /// certificates are refused.
    pub fn reconfigure(&mut self, options: Options) {
        let is_new = self.authorizer.set_policy(options.policy, options.trust);
        self.routable_prefixes = options.routable_prefixes;
        if is_new {
            for ticket in std::mem::take(&mut self.verifying) {
                self.out.push_back(Output::Verified { ticket, is_good: false });
            }
            for (_, (command, requester)) in std::mem::take(&mut self.waiting) {
                self.deny(&command, requester, "the rules changed meanwhile; try again");
            }
        }
    }

    /// The guards by name, as they judge now.
    pub fn guards(&self) -> impl Iterator<Item = (&str, &Guard)> {
        self.authorizer.fetcher.guards()
    }

    /// What became of the Interests so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The next packet to send.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When [`Management::handle_timeout`] should be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Tick> {
        let fetches = self.authorizer.fetcher.next_timeout();
        [self.datasets.next_expiry(), fetches].into_iter().flatten().min()
    }

    /// Lets time pass: old datasets go, certificates that do not come are asked for again or
    /// given up, files of trust are looked at.
    pub fn handle_timeout(&mut self, now: Tick, host: &mut dyn Host) {
        self.datasets.expire(now);
        let (mut out, entropy) = (Vec::new(), &mut *self.entropy);
        self.authorizer.fetcher.handle_timeout(now, host.unix_ms(), entropy, &mut out);
        self.out.extend(out);
        self.work(now, host);
    }

    /// Sends what guards ask for, and ends the commands that they judged.
    fn work(&mut self, now: Tick, host: &mut dyn Host) {
        loop {
            let (mut out, mut asked) = (Vec::new(), Vec::new());
            let fetcher = &mut self.authorizer.fetcher;
            let judged = fetcher.work(now, &mut *self.entropy, &mut out, &mut asked);
            self.out.extend(out);
            for name in asked {
                host.cs_erase(name.as_ref(), ERASED_MAX);
            }
            if judged.is_empty() {
                return;
            }
            for guards::Judged { ticket, result } in judged {
                if self.verifying.remove(&ticket) {
                    self.out.push_back(Output::Verified { ticket, is_good: result.is_ok() });
                    continue;
                }
                // An announcement that came with Data is taken when the next one comes.
                let Some((command, requester)) = self.waiting.remove(&ticket) else { continue };
                match result {
                    Ok(()) => self.resume(&command, requester, host),
                    Err(refusal) => self.deny(&command, requester, &refusal.to_string()),
                }
            }
        }
    }

    /// Judges a Data by the rules of `guard`; [`Output::Verified`] has the answer, now or later.
    pub fn verify(&mut self, guard: &str, wire: &[u8], now: Tick, host: &mut dyn Host) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let context = Context { now_ms: host.unix_ms(), ..Context::default() };
        let found = self.authorizer.fetcher.get(guard);
        let judged = match found {
            Some(guard) => guard.validator_mut().data(wire, ticket, &context).map(|r| r.is_ok()),
            None => Some(false),
        };
        match judged {
            Some(is_good) => self.out.push_back(Output::Verified { ticket, is_good }),
            None => {
                self.verifying.insert(ticket);
            }
        }
        self.work(now, host);
        ticket
    }

    /// Whether an announcement that came with Data from another node may be believed. When its
    /// signer is not known yet, its certificates are asked for on `face`, and the next one counts.
    pub fn announced(
        &mut self,
        data: &Data<'_>,
        announcement: &PrefixAnnouncement<'_>,
        face: FaceId,
        now: Tick,
        host: &mut dyn Host,
    ) -> bool {
        let via = Some(u64::from(face.0));
        let context = Context { now_ms: host.unix_ms(), via, ..Context::default() };
        let judged = self.authorizer.announced(data, announcement, NO_TICKET, &context);
        self.work(now, host);
        match judged {
            Some(Ok(())) => true,
            Some(Err(why)) => {
                tracing::debug!(prefix = %announcement.prefix, "announcement refused: {why}");
                false
            }
            None => false,
        }
    }

    /// An Interest that the forwarder delivered to management; it came in on face `from`.
    pub fn interest(&mut self, wire: &[u8], from: FaceId, now: Tick, host: &mut dyn Host) {
        let is_local = host.is_local(from);
        let user = if is_local { host.user(from) } else { User::UNKNOWN };
        let requester = Requester { face: from, is_local, user };
        let answered = Interest::parse(wire)
            .ok()
            .and_then(|interest| self.dispatch(&interest, requester, now, host));
        if answered.is_none() {
            self.counters.ignored += 1;
        }
    }

    /// `None` when there is no answer, now or later.
    fn dispatch(
        &mut self,
        interest: &Interest<'_>,
        requester: Requester,
        now: Tick,
        host: &mut dyn Host,
    ) -> Option<()> {
        if let Some(request) = Request::of(interest.name) {
            return self.trace(interest, &request, requester, now, host);
        }
        let space = space_of(interest.name)?;
        // Scope is the forwarder's rule; it is checked again because so much depends on it.
        let may_enter = match space {
            Space::Localhost | Space::Onym => requester.is_local,
            Space::Localhop => requester.is_local || self.authorizer.localhop_is_on(),
        };
        if space == Space::Localhop && self.routable(interest, now, host).is_some() {
            return Some(());
        }
        if space == Space::Localhop && !may_enter {
            // As where nothing is registered under that name.
            self.out.push_back(Output::NoRoute { interest: interest.wire.to_vec() });
        }
        if !may_enter {
            return None;
        }
        if space == Space::Onym && !command::is_ours(interest.name) {
            return self.onym(interest, requester, now, host);
        }
        if space == Space::Localhost && self.dataset(interest, now, host)? {
            return Some(());
        }
        match Command::parse(interest) {
            Ok(command) => self.judge(&command, requester, now, host),
            Err(NotCommand::Silent) => return None,
            Err(NotCommand::Refused(_)) if space == Space::Localhop && !requester.is_local => {
                return None;
            }
            Err(NotCommand::Refused(refusal)) => {
                self.respond(interest.name, requester, &refusal.into());
            }
        }
        Some(())
    }

    /// Authorises a command and carries it out, refuses it, or waits for a certificate.
    fn judge(
        &mut self,
        command: &Command<'_>,
        requester: Requester,
        now: Tick,
        host: &mut dyn Host,
    ) {
        // Beyond the bound whoever is known already is judged still.
        let is_full = self.waiting.len() >= WAITING_MAX;
        let ticket = if is_full { NO_TICKET } else { self.next_ticket };
        match self.authorizer.decide(command, requester, ticket, host) {
            Decision::Granted => self.execute(command, requester, host),
            Decision::Denied(why) => {
                self.respond(command.name, requester, &command.denial(&why).into());
            }
            Decision::Waits if is_full => {
                let why = "too many commands wait for certificates";
                self.respond(command.name, requester, &command.denial(why).into());
            }
            Decision::Waits => {
                self.waiting.insert(ticket, (command.wire.to_vec(), requester));
                self.next_ticket += 1;
            }
        }
        self.work(now, host);
    }

    /// A Data that came on `face` for an Interest of [`Output::Interest`].
    pub fn data(&mut self, wire: &[u8], face: FaceId, now: Tick, host: &mut dyn Host) {
        let Ok(data) = Data::parse(wire) else { return };
        if self.relayed(&data) {
            return;
        }
        self.authorizer.fetcher.take(&data, face, host.unix_ms());
        self.work(now, host);
    }

    /// Carries out a command whose signer was found trustworthy meanwhile.
    fn resume(&mut self, wire: &[u8], requester: Requester, host: &mut dyn Host) {
        let Ok(interest) = Interest::parse(wire) else { return };
        let Ok(command) = Command::parse(&interest) else { return };
        // Another copy of it may have come first.
        match self.authorizer.accept(&command, host.unix_ms()) {
            Ok(()) => self.execute(&command, requester, host),
            Err(why) => {
                self.respond(command.name, requester, &command.denial(&why).into());
            }
        }
    }

    fn deny(&mut self, wire: &[u8], requester: Requester, why: &str) {
        let Ok(interest) = Interest::parse(wire) else { return };
        let Ok(command) = Command::parse(&interest) else { return };
        self.respond(command.name, requester, &command.denial(why).into());
    }

    fn execute(&mut self, command: &Command<'_>, requester: Requester, host: &mut dyn Host) {
        let is_full = self.creations.len() >= CREATIONS_MAX;
        let response = match command.validate() {
            Err(refusal) => refusal.into(),
            Ok(()) if command.verb == Verb::FacesCreate && is_full => {
                ControlResponse::new(504, "too many connections are being made; try again later")
            }
            Ok(()) => match verbs::run(command, requester.face, self.next_ticket, host) {
                verbs::Outcome::Done(response) => *response,
                verbs::Outcome::Pending => {
                    let waiting = (command.name.to_name(), requester);
                    self.creations.insert(self.next_ticket, waiting);
                    self.next_ticket += 1;
                    return;
                }
            },
        };
        self.next_ticket += 1;
        self.respond(command.name, requester, &response);
    }

    /// The end of a face creation that took time.
    pub fn face_created(&mut self, ticket: Ticket, result: Result<FaceView, FaceError>) {
        let Some((name, requester)) = self.creations.remove(&ticket) else { return };
        let response = match result {
            Ok(face) => verbs::faces::created(&face),
            Err(error) => verbs::faces::failed(error),
        };
        self.respond(name.as_ref(), requester, &response);
    }

    /// Something happened to a face; subscribers are told.
    pub fn face_event(&mut self, event: FaceEvent, face: &FaceView, now: Tick) {
        let wire = self.face_events.publish(events::notification(event, face), now);
        self.out.extend(wire.map(|wire| Output::Data { wire, no_cache: true }));
    }

    /// Routes that routing did not make changed, `changes` of them since the start; subscribers
    /// are told, once for what changed in one turn.
    pub fn rib_changed(&mut self, changes: u64, now: Tick) {
        let content = serde_json::json!({ "changes": changes }).to_string();
        let wire = self.rib_events.publish(content.into_bytes(), now);
        self.out.extend(wire.map(|wire| Output::Data { wire, no_cache: true }));
    }

    /// Answers over a network are cached, since a command that is sent again because its answer
    /// was lost would be a replay; over local faces nothing is lost.
    fn respond(&mut self, name: NameRef<'_>, requester: Requester, response: &ControlResponse) {
        if response.is_success() {
            self.counters.commands_done += 1;
            // Who asks next sees what was done.
            self.datasets.outdate();
        } else {
            self.counters.commands_refused += 1;
        }
        let mut wire = reply::response(name, response);
        if wire.len() > PACKET_LEN_MAX {
            // The body repeats long names; the code says what happened without it.
            let short = ControlResponse { body: None, ..response.clone() };
            wire = reply::response(name, &short);
        }
        if wire.len() <= PACKET_LEN_MAX {
            self.out.push_back(Output::Data { wire, no_cache: requester.is_local });
        }
    }
}
