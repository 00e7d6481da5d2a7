//! The loop of a repository: Interests of the node, messages with commands, jobs, answers of the store.

mod advance;
mod groups;
mod late;

use crate::admission::{Act, NotAdmitted};
use crate::afar::Waits;
use crate::command::{self, Notify};
use crate::group::Groups;
use crate::job::{Fetching, Job};
use crate::once::{NotOnce, Once, Signed, Taken};
use crate::options::RepoOptions;
use onym_client::blocking::Client;
use onym_client::producer::{Answer, Incoming};
use onym_client::registration::RegistrationId;
use onym_client::{
    Error as ClientError, Event, Packet, Request, RequestId, RouteOptions, Unanswered,
};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::sha256;
use onym_frame::Buf;
use onym_store::{Change, Error as StoreError, OwnerId, Reader, Refused, Store};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::name::{Name, NameRef};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Commands that are being fetched, and Interests that wait for the loop.
const WAITING_MAX: usize = 64;
/// Jobs that run.
const JOBS_MAX: usize = 256;
/// How long an ended job is told about.
const TELL_MS: u64 = 600_000;
/// How often progress is noted.
const NOTE_EVERY: Duration = Duration::from_secs(2);
/// A nonce that comes again within this time is ignored.
const NONCE_MS: u64 = 60_000;
/// Tries for a segment.
const TRIES: u32 = 15;
/// Names that a deletion looks at in one turn.
const DELETE_STEP: usize = 512;

/// Keys of the notes.
const JOB: &[u8] = b"job/";
const ROOT: &[u8] = b"root/";
const ONCE: &[u8] = b"once/";
const GROUP: &[u8] = b"group/";

enum Asked {
    Message {
        act: Act,
        notify: Incoming,
    },
    Segment {
        job: [u8; 32],
        segment: u64,
    },
    /// A certificate without which nobody knows whether a group may be joined or left.
    Joiner {
        wanted: Name,
        incoming: Incoming,
    },
    /// A certificate without which nobody knows whether the command counts.
    Certificate {
        number: [u8; 32],
        wanted: Name,
        act: Act,
        command: Packet,
    },
}

/// What the store answered for a job: for how many packets, and whether it refused one.
struct Stored {
    job: [u8; 32],
    kept: u64,
    refused: Option<Refused>,
    count: u64,
}

struct Running {
    job: Job,
    owner: OwnerId,
    fetching: Option<Fetching>,
    /// Packets that the queue of the store had no room for.
    held: Vec<Change>,
    noted: Instant,
}

/// A root that is to be served, and who is told when the node routes it here.
pub type WantedRoot = (Name, Sender<()>);

type Inbox = Arc<Mutex<VecDeque<(Act, bool, Incoming)>>>;

/// A repository.
pub struct Repo {
    client: Client,
    store: Arc<Store>,
    reader: Reader,
    options: RepoOptions,
    inbox: Inbox,
    asked: HashMap<RequestId, Asked>,
    running: BTreeMap<[u8; 32], Running>,
    ended: BTreeMap<[u8; 32], Job>,
    nonces: VecDeque<(u64, Vec<u8>)>,
    once: Once,
    roots: Vec<Name>,
    /// Groups in which it takes part, and the thread that does.
    groups: Vec<Name>,
    parts: Groups,
    group_inbox: Arc<Mutex<VecDeque<Incoming>>>,
    stored: (Sender<Stored>, Receiver<Stored>),
    wanted_roots: (Sender<WantedRoot>, Receiver<WantedRoot>),
    /// Interests that wait for a bucket, where the store has one.
    waits: Option<Arc<Waits>>,
    /// Who waits for a route.
    routes: HashMap<RegistrationId, Sender<()>>,
}

impl fmt::Debug for Repo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Repo({}, {} jobs)", self.options.name, self.running.len())
    }
}

/// Why a repository ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The node.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The store.
    #[error(transparent)]
    Store(#[from] onym_store::Error),
}

impl Repo {
    /// Registers the repository and what it serves, and takes up jobs that had not ended.
    ///
    /// # Errors
    /// Those of the node and of the store.
    pub fn open(client: Client, store: Arc<Store>, options: RepoOptions) -> Result<Self, Error> {
        let reader = store.reader();
        let has_bucket = store.stats()?.afar.is_some();
        let waits = has_bucket.then(Waits::start).transpose().map_err(StoreError::from)?;
        let mut repo = Self {
            waits,
            client,
            reader,
            inbox: Inbox::default(),
            asked: HashMap::new(),
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            nonces: VecDeque::new(),
            once: Once::default(),
            roots: Vec::new(),
            groups: Vec::new(),
            parts: Groups::start(options.node.clone(), Arc::clone(&store))
                .map_err(StoreError::from)?,
            group_inbox: Arc::default(),
            stored: channel(),
            wanted_roots: channel(),
            routes: HashMap::new(),
            store,
            options,
        };
        repo.listen()?;
        repo.listen_for_groups()?;
        repo.client.register(repo.options.name.clone(), RouteOptions::default())?;
        for root in std::mem::take(&mut repo.options.serve) {
            repo.serve(root, false)?;
        }
        for (key, _) in repo.store.notes(ROOT)? {
            if let Ok(root) = NameRef::parse_value(key.get(ROOT.len()..).unwrap_or_default()) {
                repo.serve(root.to_name(), false)?;
            }
        }
        repo.take_up()?;
        repo.take_up_groups()?;
        Ok(repo)
    }

    /// Tell a root here and it is served from the next turn on.
    #[must_use]
    pub fn roots(&self) -> Sender<WantedRoot> {
        self.wanted_roots.0.clone()
    }

    /// Serves `stop` until it says so.
    ///
    /// # Errors
    /// Those of the node when it is gone for good, and of the store.
    pub fn run(&mut self, stop: &mut dyn FnMut() -> bool) -> Result<(), Error> {
        while !stop() {
            let is_storing = self.running.values().any(|r| {
                !r.job.inserts
                    || !r.held.is_empty()
                    || r.fetching.as_ref().is_some_and(Fetching::is_storing)
            });
            let is_soon = is_storing || self.waits.as_ref().is_some_and(|waits| waits.is_any());
            let wait = if is_soon { Duration::from_millis(2) } else { Duration::from_millis(100) };
            let until = Instant::now() + wait;
            while let Some(event) = self.client.step(until)? {
                match event {
                    Event::Answered(id, answer) => self.answered(id, answer)?,
                    Event::Registered(route) => {
                        self.routes.remove(&route).map(|tell| tell.send(()));
                    }
                    _ => {}
                }
                self.take_late();
                self.take_interests()?;
                self.take_group_commands()?;
                self.advance()?;
            }
            self.take_late();
            self.take_interests()?;
            self.take_group_commands()?;
            while let Ok((root, tell)) = self.wanted_roots.1.try_recv() {
                match self.serve(root, true)? {
                    Some(route) => drop(self.routes.insert(route, tell)),
                    None => drop(tell.send(())),
                }
            }
            while let Ok(stored) = self.stored.1.try_recv() {
                self.take_stored(stored);
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Interests for commands go to the loop.
    fn listen(&mut self) -> Result<(), Error> {
        for (act, word) in [(Act::Insert, "insert"), (Act::Delete, "delete")] {
            let mut notify = self.options.name.clone();
            notify.append_generic(word).append_generic("notify");
            let mut check = self.options.name.clone();
            check.append_generic(format!("{word} check"));
            for (prefix, is_check) in [(notify, false), (check, true)] {
                let inbox = Arc::clone(&self.inbox);
                let respond = move |incoming: &Incoming, _: &mut Vec<u8>| {
                    let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
                    // Beyond the bound it is asked again.
                    if inbox.len() < WAITING_MAX {
                        inbox.push_back((act, is_check, incoming.clone()));
                    }
                    Answer::Nothing
                };
                self.client.respond(prefix, Box::new(respond)).map_err(ClientError::from)?;
            }
        }
        Ok(())
    }

    /// Serves what is stored under `root`; one route for it, unless it is served already.
    fn serve(&mut self, root: Name, remember: bool) -> Result<Option<RegistrationId>, Error> {
        if self.roots.iter().any(|known| known.as_ref().is_prefix_of(root.as_ref())) {
            return Ok(None);
        }
        let answers = self.answers();
        self.client.respond(root.clone(), Box::new(answers)).map_err(ClientError::from)?;
        let route = RouteOptions::default();
        let route = self.client.endpoint().register(root.clone(), route);
        let route = route.map_err(ClientError::from)?;
        if remember {
            let key = [ROOT, root.value()].concat();
            self.store.apply(vec![Change::Note { key, value: Some(Vec::new()) }])?;
        }
        self.roots.push(root);
        Ok(Some(route))
    }

    /// Jobs that a restart interrupted go on, and commands that acted before it do not act again.
    fn take_up(&mut self) -> Result<(), Error> {
        for (key, value) in self.store.notes(ONCE)? {
            let signed = key.get(ONCE.len()..).and_then(|s| Signed::try_from(s).ok());
            if let (Some(signed), Some(taken)) = (signed, Taken::from_note(&value)) {
                self.once.remember(signed, taken);
            }
        }
        for (key, value) in self.store.notes(JOB)? {
            let number = key.get(JOB.len()..).and_then(|n| n.try_into().ok());
            let (Some(number), Ok(job)) = (number, serde_json::from_slice::<Job>(&value)) else {
                continue;
            };
            if job.ended_ms.is_some() {
                self.ended.insert(number, job);
            } else {
                self.start(number, job)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, number: [u8; 32], job: Job) -> Result<(), Error> {
        let owner: Name = job.owner.parse().unwrap_or_default();
        let owner = self.store.owner(owner.as_ref())?;
        let running =
            Running { job, owner, fetching: None, held: Vec::new(), noted: Instant::now() };
        self.note(number, &running.job);
        self.running.insert(number, running);
        Ok(())
    }

    /// Notes how far a job is; what cannot be noted now is noted later.
    fn note(&self, number: [u8; 32], job: &Job) {
        let key = [JOB, &number].concat();
        let value = serde_json::to_vec(job).ok();
        let _ = self.store.try_apply(vec![Change::Note { key, value }], |_| {});
    }

    fn take_interests(&mut self) -> Result<(), Error> {
        loop {
            let next = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((act, is_check, incoming)) = next else { return Ok(()) };
            let parameters = parameters_of(&incoming);
            if is_check {
                self.check(&incoming, &parameters);
            } else {
                self.notified(act, incoming, &parameters)?;
            }
        }
    }

    fn reply(&mut self, incoming: &Incoming, content: &[u8], freshness_ms: u64) {
        let data =
            DataBuilder { freshness_ms, ..DataBuilder::new(incoming.interest().name, content) };
        let mut wire = Vec::new();
        if self.options.signer.sign_data(&data, &mut wire).is_ok() {
            let now = self.client.now();
            self.client.endpoint().reply(now, incoming, Buf::copy_from(&wire));
        }
    }

    fn check(&mut self, incoming: &Incoming, parameters: &[u8]) {
        let number = command::parse_query(parameters);
        let content = match number {
            Err(_) => command::write_result(command::REFUSED, &[]),
            // The same command of somebody else may have been refused before.
            Ok(number) if self.waits_for_certificate(&number) => {
                command::write_result(command::QUEUED, &[])
            }
            Ok(number) => {
                let job = self.running.get(&number).map(|r| &r.job);
                let job = job.or_else(|| self.ended.get(&number));
                job.map_or_else(|| command::write_result(command::UNKNOWN, &[]), Job::result)
            }
        };
        self.reply(incoming, &content, 1000);
    }

    fn waits_for_certificate(&self, wanted: &[u8; 32]) -> bool {
        let mut asked = self.asked.values();
        asked.any(|a| matches!(a, Asked::Certificate { number, .. } if number == wanted))
    }

    /// Somebody has a command: it is fetched.
    fn notified(&mut self, act: Act, notify: Incoming, parameters: &[u8]) -> Result<(), Error> {
        let Ok(notice) = Notify::parse(parameters) else { return Ok(()) };
        let now_ms = unix_now_ms();
        self.nonces.retain(|(at, _)| at + NONCE_MS > now_ms);
        let is_known = self.nonces.iter().any(|(_, nonce)| *nonce == notice.nonce);
        let messages = self.asked.values().filter(|a| matches!(a, Asked::Message { .. })).count();
        if is_known || messages >= WAITING_MAX || self.nonces.len() >= WAITING_MAX * 16 {
            return Ok(());
        }
        self.nonces.push_back((now_ms, notice.nonce.clone()));
        let mut topic = self.options.name.clone();
        topic.append_generic(if act == Act::Insert { "insert" } else { "delete" });
        let request = Request {
            forwarding_hint: notice.hint.clone(),
            retries: 2,
            ..Request::new(notice.message_name(topic.as_ref()))
        };
        let now = self.client.now();
        let id = self.client.endpoint().request(now, &request).map_err(ClientError::from)?;
        self.asked.insert(id, Asked::Message { act, notify });
        Ok(())
    }

    fn answered(&mut self, id: RequestId, answer: Result<Packet, Unanswered>) -> Result<(), Error> {
        match (self.asked.remove(&id), answer) {
            (Some(Asked::Message { act, notify }), Ok(packet)) => {
                self.reply(&notify, &[], 0);
                self.command(act, &packet)?;
            }
            (Some(Asked::Segment { job, segment }), answer) => {
                self.segment(job, segment, answer);
            }
            (Some(Asked::Joiner { wanted, incoming }), answer) => {
                let wire = answer.as_ref().ok().map(|packet| &**packet.bytes());
                self.options.admission.certificate(&wanted, wire);
                if wire.is_some() {
                    self.group_command(incoming)?;
                }
            }
            (Some(Asked::Certificate { wanted, act, command, .. }), answer) => {
                let wire = answer.as_ref().ok().map(|packet| &**packet.bytes());
                self.options.admission.certificate(&wanted, wire);
                self.command(act, &command)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A command came.
    fn command(&mut self, act: Act, packet: &Packet) -> Result<(), Error> {
        let data = packet.data();
        let number = command::request_no(data.content);
        if self.running.contains_key(&number) || self.running.len() >= JOBS_MAX {
            return Ok(());
        }
        let objects = match command::parse_objects(data.content) {
            Ok(objects) => objects,
            Err(error) => return self.refuse(number, &error.to_string()),
        };
        let names: Vec<NameRef<'_>> = objects
            .iter()
            .flat_map(|o| std::iter::once(&o.name).chain(o.register.as_ref()))
            .map(Name::as_ref)
            .collect();
        let owner = match self.options.admission.admit(act, &names, &data, unix_now_ms()) {
            Ok(owner) => owner,
            Err(NotAdmitted::Refused(why)) => return self.refuse(number, &why),
            Err(NotAdmitted::Unknown(wanted)) => {
                return self.ask_certificate(number, wanted, act, packet);
            }
        };
        if self.options.admission.acts_once() && !self.take_once(number, &data, &owner)? {
            return Ok(());
        }
        let job = Job::new(act, &owner, &self.options.name, &objects);
        for object in objects {
            let Some(prefix) = object.register.filter(|_| act == Act::Insert) else { continue };
            let own = self.options.name.as_ref();
            if !own.is_prefix_of(prefix.as_ref()) && !prefix.as_ref().is_prefix_of(own) {
                self.serve(prefix, true)?;
            }
        }
        self.ended.remove(&number);
        self.start(number, job)
    }

    /// Asks for the certificate that says whether a command counts.
    fn ask_certificate(
        &mut self,
        number: [u8; 32],
        wanted: Name,
        act: Act,
        command: &Packet,
    ) -> Result<(), Error> {
        let asked = self.asked.values();
        let waiting = asked.filter(|a| matches!(a, Asked::Certificate { .. })).count();
        if waiting >= WAITING_MAX {
            return self.refuse(number, "too many commands wait for certificates");
        }
        let request = Request {
            can_be_prefix: true,
            must_be_fresh: true,
            retries: 2,
            ..Request::new(wanted.clone())
        };
        let now = self.client.now();
        let id = self.client.endpoint().request(now, &request).map_err(ClientError::from)?;
        let command = command.clone();
        self.asked.insert(id, Asked::Certificate { number, wanted, act, command });
        Ok(())
    }

    /// Whether the command `data` of `owner` acts. That is noted first, so that it does not act
    /// again whatever happens.
    fn take_once(
        &mut self,
        number: [u8; 32],
        data: &Data<'_>,
        owner: &Name,
    ) -> Result<bool, Error> {
        let note = |signed: Signed, value| Change::Note { key: [ONCE, &signed].concat(), value };
        let now_ms = unix_now_ms();
        for signed in self.once.forget_past(now_ms) {
            // One that is not forgotten on the disk is read at the next start, and forgotten then.
            let _ = self.store.try_apply(vec![note(signed, None)], |_| {});
        }
        let signed = sha256(&[data.signed_range]);
        let time_ms = data.signature_info().time;
        let taken = match self.once.take(signed, &owner.to_string(), time_ms, now_ms) {
            Ok(taken) => taken,
            Err(NotOnce::Again) => {
                // What became of it stays as it is.
                tracing::info!(%owner, "repo-command-sent-again");
                return Ok(false);
            }
            Err(why) => {
                self.refuse(number, &why.to_string())?;
                return Ok(false);
            }
        };
        let answers = self.store.apply(vec![note(signed, Some(taken.to_note()))])?;
        if let Some(why) = answers.into_iter().find_map(Result::err) {
            self.refuse(number, &why.to_string())?;
            return Ok(false);
        }
        Ok(true)
    }

    fn refuse(&mut self, number: [u8; 32], why: &str) -> Result<(), Error> {
        tracing::info!(%why, "repo-command-refused");
        // Who may not command does not change what is told about a command that was carried out.
        self.ended.entry(number).or_insert_with(|| Job::refused(unix_now_ms()));
        self.forget_ended();
        Ok(())
    }

    fn forget_ended(&mut self) {
        let now_ms = unix_now_ms();
        let keep = |job: &Job| job.ended_ms.is_some_and(|at| at + TELL_MS > now_ms);
        let gone: Vec<_> =
            self.ended.iter().filter(|(_, job)| !keep(job)).map(|(n, _)| *n).collect();
        for number in gone {
            self.ended.remove(&number);
            let key = [JOB, &number].concat();
            let _ = self.store.try_apply(vec![Change::Note { key, value: None }], |_| {});
        }
        while self.ended.len() > JOBS_MAX * 4 {
            self.ended.pop_first();
        }
    }
}

/// The content of ApplicationParameters.
fn parameters_of(incoming: &Incoming) -> Vec<u8> {
    let interest = incoming.interest();
    let range = interest.parameters_range().unwrap_or_default();
    onym_wire::tlv::Element::split(range).map(|(e, _)| e.value.to_vec()).unwrap_or_default()
}
