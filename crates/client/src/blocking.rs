//! The blocking shell: the caller's thread does the I/O.

use crate::driver::{ClientOptions, Driver, Notice};
use crate::endpoint::{Endpoint, EndpointCounters, Event, TooMany};
use crate::error::Error;
use crate::fetch::{FetchError, FetchOptions, Progress};
use crate::producer::{Respond, ResponderId};
use crate::registration::{NotRegistered, RegistrationId, RouteOptions};
use crate::request::{Packet, Request, RequestId, Unanswered};
use crate::schema::{Trust, did_not_come};
use crate::serve::Object;
use crate::verify::Verify;
use onym_crypto::Signer;
use onym_face::Face;
use onym_tables::Tick;
use onym_wire::data::Data;
use onym_wire::mgmt::{Block as _, ControlParameters, ControlResponse};
use onym_wire::name::Name;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A client whose calls wait.
///
/// ```no_run
/// use onym_client::{Request, blocking::Client};
/// let mut client = Client::open(Default::default())?;
/// let packet = client.request(&Request::new("/example/hello/v=7/seg=0".parse().unwrap()))?;
/// println!("{}", String::from_utf8_lossy(&packet.content()));
/// # Ok::<(), onym_client::Error>(())
/// ```
#[derive(Debug)]
pub struct Client {
    driver: Driver,
    stop: Option<Arc<AtomicBool>>,
}

/// What a long operation tells while it runs.
#[derive(Debug)]
pub enum Watch<'a> {
    /// Some time passed; for progress bars.
    Progress(&'a Progress),
    /// Something happened to the connection.
    Notice(Notice),
}

/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Keys of one object whose certificates are looked for: its metadata and its first segments may
/// have different ones.
const SIGNERS_MAX: usize = 4;

/// A sink that counts.
struct Counted<'a> {
    sink: &'a mut dyn Write,
    octets: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(octets)?;
        self.octets += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl Client {
    /// Connects to the node that `options` name, or the first that answers at the usual places.
    ///
    /// # Errors
    /// [`Error::Search`] and [`Error::NoNode`].
    pub fn open(options: ClientOptions) -> Result<Self, Error> {
        let timeout = options.connect_timeout;
        let mut client = Self { driver: Driver::open(options)?, stop: None };
        let until = Instant::now() + timeout;
        // A TCP connection is made in the background; wait for it here, once.
        while client.driver.face().is_some_and(Face::is_connecting) && Instant::now() < until {
            client.wait(until)?;
            client.driver.turn();
        }
        match client.driver.poll_notice() {
            Some(Notice::Lost(why) | Notice::GivenUp(why)) => Err(client.driver.no_node(why)),
            _ => Ok(client),
        }
    }

    /// A client over an open face, such as one end of an in-memory pair. It does not connect again.
    #[must_use]
    pub fn over(face: Box<dyn Face>) -> Self {
        Self { driver: Driver::over(face, None, ClientOptions::default()), stop: None }
    }

    /// Ends whatever waits with [`Error::Stopped`] once `flag` is set, by a signal handler for one.
    /// A signal interrupts the wait; a flag that is set otherwise is seen within 100 ms.
    pub fn stop_when(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Some(flag);
    }

    /// The state machine inside.
    pub fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.driver.endpoint
    }

    /// What a loop that waits for several things waits on: the descriptor, while there is one,
    /// whether also for writing, and until when at most. Then it calls [`Client::step`].
    #[must_use]
    pub fn waits_for(&self) -> (Option<BorrowedFd<'_>>, bool, Option<Instant>) {
        let driver = &self.driver;
        (driver.face().map(Face::fd), driver.wants_write(), driver.deadline())
    }

    /// The present moment, as the endpoint counts.
    #[must_use]
    pub fn now(&self) -> Tick {
        self.driver.now()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> EndpointCounters {
        self.driver.endpoint.counters()
    }

    /// Sends `request` and waits for its end.
    ///
    /// # Errors
    /// [`Error::Unanswered`]; [`Error::NoNode`] when nothing was ever heard from the node.
    pub fn request(&mut self, request: &Request) -> Result<Packet, Error> {
        let now = self.driver.now();
        let id = self.driver.endpoint.request(now, request)?;
        self.wait_for(id)?
            .map_err(|why| Error::Unanswered { name: request.name.clone(), why })
            .map_err(|e| self.driver.never_heard().unwrap_or(e))
    }

    /// Sends `request` and waits for a Data that `trust` vouches for; certificates on the way to it
    /// are fetched by their names.
    ///
    /// # Errors
    /// Those of [`request`](Self::request), and [`FetchError::NotVerified`].
    pub fn request_trusted<T: Trust>(
        &mut self,
        request: &Request,
        trust: &T,
    ) -> Result<Packet, Error> {
        let packet = self.request(request)?;
        self.believe(&packet.data(), trust)?;
        Ok(packet)
    }

    /// Checks that `trust` vouches for `data`; certificates on the way to it are fetched by their
    /// names.
    ///
    /// # Errors
    /// Those of [`request`](Self::request), and [`FetchError::NotVerified`].
    pub fn believe<T: Trust>(&mut self, data: &Data<'_>, trust: &T) -> Result<(), Error> {
        let mut verified = trust.verify(data);
        for _ in 0..SIGNERS_MAX {
            let Err(onym_crypto::Error::NoCertificate(_)) = verified else { break };
            self.follow(&data.name.to_name(), trust)?;
            verified = trust.verify(data);
        }
        let name = || data.name.to_name();
        verified.map_err(|source| Error::Fetch(FetchError::NotVerified { name: name(), source }))
    }

    /// Sends the command `[module, verb]` and waits for its answer.
    ///
    /// # Errors
    /// [`Error::Refused`] for a code of 400 or more, [`Error::NoAnswer`], [`Error::Answer`].
    pub fn command(
        &mut self,
        [module, verb]: [&str; 2],
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Error> {
        let response = self.command_response([module, verb], parameters)?;
        if response.is_success() {
            return Ok(response.body.unwrap_or_default());
        }
        let command = format!("{module}/{verb}");
        Err(Error::Refused { command, code: response.code, text: response.text })
    }

    /// As [`Client::command`], for callers who look at the code themselves.
    ///
    /// # Errors
    /// [`Error::NoAnswer`], [`Error::Answer`].
    pub fn command_response(
        &mut self,
        [module, verb]: [&str; 2],
        parameters: &ControlParameters,
    ) -> Result<ControlResponse, Error> {
        let command = || format!("{module}/{verb}");
        let now = self.driver.now();
        let id = self.driver.endpoint.command(now, [module, verb], parameters)?;
        let packet = self
            .wait_for(id)?
            .map_err(|why| Error::NoAnswer { command: command(), why })
            .map_err(|e| self.driver.never_heard().unwrap_or(e))?;
        ControlResponse::parse(packet.data().content)
            .map_err(|source| Error::Answer { command: command(), source })
    }

    /// Sends a command to whoever takes commands under `prefix`, signed by `signer`; the answer's code
    /// is for the caller.
    ///
    /// # Errors
    /// [`Error::NoAnswer`], [`Error::Answer`].
    pub fn command_to(
        &mut self,
        prefix: &Name,
        [module, verb]: [&str; 2],
        parameters: &ControlParameters,
        signer: &Signer,
    ) -> Result<ControlResponse, Error> {
        let command = || format!("{prefix}/{module}/{verb}");
        let now = self.driver.now();
        let id =
            self.driver.endpoint.command_to(now, prefix, [module, verb], parameters, signer)?;
        let packet =
            self.wait_for(id)?.map_err(|why| Error::NoAnswer { command: command(), why })?;
        ControlResponse::parse(packet.data().content)
            .map_err(|source| Error::Answer { command: command(), source })
    }

    fn wait_for(&mut self, id: RequestId) -> Result<Result<Packet, Unanswered>, Error> {
        loop {
            self.driver.turn();
            while let Some(event) = self.driver.endpoint.poll_event() {
                match event {
                    Event::Answered(answered, answer) if answered == id => return Ok(answer),
                    other => log_event(&other),
                }
            }
            self.wait(Instant::now() + PROGRESS_EVERY)?;
        }
    }

    /// Fetches the segmented object `name` into `sink`, in order, and tells `watch` how it goes.
    ///
    /// # Errors
    /// [`Error::Fetch`], [`Error::Sink`].
    pub fn fetch(
        &mut self,
        name: Name,
        options: FetchOptions,
        sink: &mut dyn Write,
        watch: &mut dyn FnMut(Watch<'_>),
    ) -> Result<Progress, Error> {
        let now = self.driver.now();
        let id = self.driver.endpoint.fetch(now, name, options)?;
        let mut tell_at = Instant::now() + PROGRESS_EVERY;
        loop {
            self.driver.turn();
            while let Some(piece) = self.driver.endpoint.fetch_read(id) {
                if let Err(error) = sink.write_all(&piece) {
                    self.driver.endpoint.fetch_cancel(id);
                    return Err(Error::Sink(error));
                }
            }
            if let Some(end) = self.driver.endpoint.fetch_end(id) {
                let progress = end.map_err(|e| self.why_not_fetched(e))?;
                sink.flush().map_err(Error::Sink)?;
                return Ok(progress);
            }
            while let Some(notice) = self.driver.poll_notice() {
                watch(Watch::Notice(notice));
            }
            if Instant::now() >= tell_at {
                tell_at = Instant::now() + PROGRESS_EVERY;
                if let Some(progress) = self.driver.endpoint.fetch_progress(id) {
                    watch(Watch::Progress(&progress));
                }
            }
            self.wait(tell_at)?;
        }
    }

    /// Fetches as [`fetch`](Self::fetch) does; every Data must be signed with a key that `trust`
    /// vouches for. Certificates on the way to them are fetched by their names before any content is
    /// handed out.
    ///
    /// # Errors
    /// Those of `fetch` and [`request`](Self::request), and [`FetchError::NotVerified`] with the
    /// reason why a chain leads to no anchor.
    pub fn fetch_trusted<T: Trust + 'static>(
        &mut self,
        name: &Name,
        options: &FetchOptions,
        trust: &Arc<T>,
        sink: &mut dyn Write,
        watch: &mut dyn FnMut(Watch<'_>),
    ) -> Result<Progress, Error> {
        let verify = Verify::With(Arc::<T>::clone(trust));
        let options = FetchOptions { verify, ..options.clone() };
        let mut sink = Counted { sink, octets: 0 };
        for _ in 0..SIGNERS_MAX {
            let fetched = self.fetch(name.clone(), options.clone(), &mut sink, watch);
            match fetched {
                Err(Error::Fetch(FetchError::NotVerified {
                    name,
                    source: onym_crypto::Error::NoCertificate(_),
                })) if sink.octets == 0 => self.follow(&name, &**trust)?,
                other => return other,
            }
        }
        self.fetch(name.clone(), options, &mut sink, watch)
    }

    /// Fetches the certificates between the Data `name`, which failed for want of one, and an
    /// anchor.
    fn follow(&mut self, name: &Name, trust: &dyn Trust) -> Result<(), Error> {
        while let Some(wanted) = trust.wanted() {
            // By the name of a key any certificate of it will do.
            let request = Request {
                can_be_prefix: true,
                must_be_fresh: true,
                ..Request::new(wanted.clone())
            };
            match self.request(&request) {
                Ok(packet) => {
                    trust.certificate(packet.bytes()).map_err(|e| not_verified(name, e))?;
                }
                Err(silence) => did_not_come(trust, name, &wanted, silence)?,
            }
        }
        Ok(())
    }

    fn why_not_fetched(&mut self, error: FetchError) -> Error {
        if let Some(no_node) = self.driver.never_heard() {
            return no_node;
        }
        match (error, self.driver.poll_notice()) {
            (FetchError::Disconnected, Some(Notice::GivenUp(why) | Notice::Lost(why))) => {
                Error::Disconnected(why)
            }
            (error, _) => Error::Fetch(error),
        }
    }

    /// Answers Interests under `prefix` with `respond` while the client runs.
    ///
    /// # Errors
    /// [`TooMany`] responders.
    pub fn respond(
        &mut self,
        prefix: Name,
        respond: Box<dyn Respond>,
    ) -> Result<ResponderId, TooMany> {
        self.driver.endpoint.respond(prefix, respond)
    }

    /// Registers `prefix` and waits until the node accepted it. It stays registered, also after the
    /// node was gone, while the client runs.
    ///
    /// # Errors
    /// [`Error::NotRegistered`] with the node's first refusal.
    pub fn register(
        &mut self,
        prefix: Name,
        options: RouteOptions,
    ) -> Result<RegistrationId, Error> {
        let id = self.driver.endpoint.register(prefix.clone(), options)?;
        loop {
            self.driver.turn();
            while let Some(event) = self.driver.endpoint.poll_event() {
                match event {
                    Event::Registered(done) if done == id => return Ok(id),
                    Event::NotRegistered(refused, why) if refused == id => {
                        return Err(self.not_registered(id, prefix, why));
                    }
                    other => log_event(&other),
                }
            }
            if self.driver.is_closed() {
                return Err(Error::Disconnected("while registering".into()));
            }
            self.wait(Instant::now() + PROGRESS_EVERY)?;
        }
    }

    fn not_registered(&mut self, id: RegistrationId, prefix: Name, why: NotRegistered) -> Error {
        let now = self.driver.now();
        self.driver.endpoint.unregister(now, id);
        self.driver.never_heard().unwrap_or(Error::NotRegistered { prefix, why })
    }

    /// Serves `object` under `prefix` (its name, or a prefix of it) and registers that.
    ///
    /// # Errors
    /// Those of [`Client::register`].
    pub fn serve(&mut self, prefix: Name, object: Object) -> Result<RegistrationId, Error> {
        self.respond(object.name().to_name(), Box::new(object))?;
        self.register(prefix, RouteOptions::default())
    }

    /// Runs until `stop` says so, which is asked after each turn and at least every `every`; tells
    /// `watch` about the connection and about registrations.
    ///
    /// # Errors
    /// [`Error::Disconnected`] when the node is gone for good.
    pub fn run(
        &mut self,
        every: Duration,
        stop: &mut dyn FnMut() -> bool,
        watch: &mut dyn FnMut(Happened),
    ) -> Result<(), Error> {
        while !stop() {
            self.driver.turn();
            while let Some(event) = self.driver.endpoint.poll_event() {
                watch(Happened::Event(event));
            }
            while let Some(notice) = self.driver.poll_notice() {
                if let Notice::GivenUp(why) = notice {
                    return Err(Error::Disconnected(why));
                }
                watch(Happened::Notice(notice));
            }
            self.wait(Instant::now() + every)?;
        }
        Ok(())
    }

    /// One turn of a loop of the application's own: the next event, at once when there is one;
    /// else what is queued is sent, what came is taken, and, when that gave no event, once more
    /// after waiting, at most until `until`.
    ///
    /// # Errors
    /// [`Error::Disconnected`] when the node is gone for good; [`Error::Wait`].
    pub fn step(&mut self, until: Instant) -> Result<Option<Event>, Error> {
        if let Some(event) = self.driver.endpoint.poll_event() {
            return Ok(Some(event));
        }
        self.driver.turn();
        let event = self.driver.endpoint.poll_event();
        if event.is_some() {
            return Ok(event);
        }
        if self.driver.is_closed() {
            return Err(Error::Disconnected("while waiting for an answer".into()));
        }
        self.wait(until)?;
        self.driver.turn();
        Ok(self.driver.endpoint.poll_event())
    }

    /// Sends what still waits to be sent, for at most `patience`.
    ///
    /// # Errors
    /// [`Error::Wait`].
    pub fn flush(&mut self, patience: Duration) -> Result<(), Error> {
        let until = Instant::now() + patience;
        loop {
            self.driver.turn();
            if self.driver.endpoint.tx().is_empty() || Instant::now() >= until {
                return Ok(());
            }
            self.wait(until)?;
        }
    }

    /// Waits for the face or the next timer, at most until `until`.
    fn wait(&mut self, until: Instant) -> Result<(), Error> {
        if self.stop.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Error::Stopped);
        }
        let until = self.driver.deadline().map_or(until, |d| d.min(until));
        let wait = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let mut flags = PollFlags::IN;
        if self.driver.wants_write() {
            flags |= PollFlags::OUT;
        }
        let result = match self.driver.face() {
            Some(face) => poll(&mut [PollFd::from_borrowed_fd(face.fd(), flags)], Some(&timeout)),
            None => poll(&mut [], Some(&timeout)),
        };
        match result {
            // A signal: the caller looks at what it meant.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::Wait(io::Error::from(errno))),
        }
    }
}

/// What happened while a client ran.
#[derive(Debug)]
pub enum Happened {
    /// An event of the endpoint.
    Event(Event),
    /// Something about the connection.
    Notice(Notice),
}

fn not_verified(name: &Name, source: onym_crypto::Error) -> Error {
    Error::Fetch(FetchError::NotVerified { name: name.clone(), source })
}

/// Events that nobody waits for at the moment.
fn log_event(event: &Event) {
    match event {
        Event::NotRegistered(_, why) => tracing::warn!(%why, "not-registered"),
        other => tracing::debug!(?other, "event"),
    }
}
