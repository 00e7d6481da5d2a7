//! One service without sockets, threads and clock: an element with its faces, freezes, counters
//! and events.

use crate::config::Config;
use crate::control::{Answer, Request};
use crate::cx::Cx;
use crate::effect::Effect;
use crate::element::Element;
use crate::events::Event;
use crate::freeze::{Freeze, FreezeState, Limits};
use crate::kind::Kind;
use crate::ports::{Counts, Port, Ports, Side};
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::stats::Stats;
use crate::verdict::{Unsent, Verdict, Verdicts};
use crate::verify::Job;
use onym_link::{Outbox, Packet, PacketKind};
use onym_tables::{FaceId, HashKey, Rng, Tick};
use serde::Serialize;

/// How far draining is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DrainState {
    /// New Interests are refused.
    pub draining: bool,
    /// Interests that wait for answers.
    pub pending: usize,
    /// Whether none does.
    pub empty: bool,
}

/// A service.
#[derive(Debug)]
pub struct Function {
    kind: Kind,
    element: Box<dyn Element>,
    ports: Ports,
    freeze: Freeze,
    settings: Settings,
    verdicts: Verdicts,
    /// What faces that are gone had sent.
    sent_gone: Counts,
    unsent: [u64; Unsent::COUNT],
    events: Vec<Event>,
    effects: Vec<Effect>,
    jobs: Vec<Job>,
    key: HashKey,
    rng: Rng,
    draining: bool,
    period_due: Tick,
}

/// `$body` with a [`Cx`] of `$self`.
macro_rules! with_cx {
    ($self:ident, $now:expr, $unix:expr, $out:expr, |$element:ident, $cx:ident| $body:expr) => {{
        let mut cx = Cx {
            now: $now,
            unix_ms: $unix,
            ports: &mut $self.ports,
            out: $out,
            freeze: &mut $self.freeze,
            events: &mut $self.events,
            effects: &mut $self.effects,
            jobs: &mut $self.jobs,
            key: &$self.key,
            rng: &mut $self.rng,
            settings: &$self.settings,
            unsent: &mut $self.unsent,
            draining: $self.draining,
        };
        let ($element, $cx) = (&mut $self.element, &mut cx);
        $body
    }};
}

/// The moment of a call: the data path's clock, and Unix time.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Of the data path.
    pub tick: Tick,
    /// Unix time in milliseconds.
    pub unix_ms: u64,
}

impl Function {
    /// A service of this kind with its default configuration. The shell draws the key and the
    /// seed from the system's randomness.
    #[must_use]
    pub fn new(kind: Kind, key: HashKey, seed: u64) -> Self {
        Self {
            kind,
            element: kind.element(&key, seed),
            ports: Ports::new(key),
            freeze: Freeze::default(),
            settings: Settings::default(),
            verdicts: Verdicts::default(),
            sent_gone: Counts::default(),
            unsent: [0; Unsent::COUNT],
            events: Vec::new(),
            effects: Vec::new(),
            jobs: Vec::new(),
            key,
            rng: Rng::new(seed),
            draining: false,
            period_due: Tick(0),
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its faces.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Settings of every kind.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Verdicts so far.
    #[must_use]
    pub fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    /// Takes one packet; what is to be sent is appended to `out`. `None`: the verdict comes with
    /// [`Function::verified`].
    pub fn receive(&mut self, now: Now, packet: Packet, out: &mut Outbox) -> Option<Verdict> {
        let kind = packet.kind();
        if let Some(port) = self.ports.get_mut(packet.face) {
            match kind {
                PacketKind::Interest => port.received.interests += 1,
                PacketKind::Data => port.received.data += 1,
                PacketKind::Nack => port.received.nacks += 1,
            }
        }
        let verdict = with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.receive(cx, packet))?;
        self.verdicts.add(kind, verdict);
        Some(verdict)
    }

    /// Signatures that wait for a verification; each goes back by [`Function::verified`].
    pub fn jobs(&mut self) -> &mut Vec<Job> {
        &mut self.jobs
    }

    /// Most verifications under way at once; beyond, nothing more should be read.
    #[must_use]
    pub fn jobs_max(&self) -> usize {
        self.element.jobs_max()
    }

    /// A verification has ended.
    pub fn verified(&mut self, now: Now, job: Job, out: &mut Outbox) -> Option<Verdict> {
        let verdict = with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.verified(cx, job))?;
        self.verdicts.add(PacketKind::Data, verdict);
        Some(verdict)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Now, out: &mut Outbox) {
        while let Some(side) = self.freeze.over(now.tick) {
            self.unfreeze(now, side, out);
        }
        if now.tick >= self.period_due {
            self.period_due = now.tick.plus_ms(self.settings.report_ms.max(100));
            with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.period(cx));
        }
        with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.handle_timeout(cx));
    }

    /// When [`Function::handle_timeout`] should be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        let own = self.element.poll_timeout().unwrap_or(Tick::NEVER);
        own.min(self.freeze.due().unwrap_or(Tick::NEVER)).min(self.period_due)
    }

    /// A face came.
    pub fn face_added(&mut self, now: Now, port: Port, out: &mut Outbox) {
        let id = port.id;
        self.ports.add(port);
        with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.face_added(cx, id));
    }

    /// A face has gone for good.
    pub fn face_removed(&mut self, now: Now, id: FaceId, out: &mut Outbox) {
        if let Some(port) = self.ports.remove(id) {
            self.sent_gone.add(&port.sent);
            let label = port.label;
            with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.face_removed(cx, id, &label));
        }
    }

    /// A face is connected.
    pub fn face_up(&mut self, now: Now, id: FaceId, out: &mut Outbox) {
        self.ports.connected(id);
        with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.face_up(cx, id));
    }

    /// A face is connected no longer; it stays.
    pub fn face_down(&mut self, id: FaceId) {
        self.ports.disconnected(id);
    }

    /// Changes weight, rank or draining of a face.
    pub fn change_face(&mut self, id: FaceId, change: impl FnOnce(&mut Port)) -> bool {
        self.ports.change(id, change)
    }

    /// What happened since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What the shell should do, since the last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Counts a packet that the link did not send.
    pub fn count_unsent(&mut self, reason: Unsent) {
        self.unsent[reason as usize] += 1;
    }

    /// Freezes a side; false when it was frozen (and got the new bounds).
    pub fn start_freeze(&mut self, now: Now, side: Side, limits: Limits) -> bool {
        let started = self.freeze.start(now.tick, side, limits);
        if started {
            self.events.push(Event::Frozen { side });
        }
        started
    }

    /// Ends the freeze of a side and sends what was kept; false when it was not frozen.
    pub fn unfreeze(&mut self, now: Now, side: Side, out: &mut Outbox) -> bool {
        let Some(packets) = self.freeze.end(side) else { return false };
        let count = packets.len();
        for packet in packets {
            with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.resume(cx, packet));
        }
        self.events.push(Event::Unfrozen { side, sent: count as u64 });
        true
    }

    /// The freeze of a side.
    #[must_use]
    pub fn freeze_state(&self, side: Side) -> FreezeState {
        self.freeze.state(side)
    }

    /// Refuses new Interests, or takes them again; whether that changed something.
    pub fn set_draining(&mut self, on: bool) -> bool {
        std::mem::replace(&mut self.draining, on) != on
    }

    /// How far draining is.
    #[must_use]
    pub fn drain_state(&self) -> DrainState {
        let pending = self.element.pending();
        DrainState { draining: self.draining, pending, empty: pending == 0 }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> Config {
        Config { own: self.element.config(), common: self.settings.clone() }
    }

    /// Takes another configuration of its kind, whole.
    ///
    /// # Errors
    /// What is wrong; then nothing was changed.
    pub fn configure(&mut self, now: Now, config: Config, out: &mut Outbox) -> Result<(), Refusal> {
        let Config { own, common } = config;
        with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.configure(cx, own))?;
        self.settings = common;
        Ok(())
    }

    /// Asks the element for a resource of its kind.
    ///
    /// # Errors
    /// What the element refuses.
    pub fn control(
        &mut self,
        now: Now,
        request: Request,
        out: &mut Outbox,
    ) -> Result<Answer, Refusal> {
        with_cx!(self, now.tick, now.unix_ms, out, |e, cx| e.control(cx, request))
    }

    /// The statistics, without what only the shell knows.
    pub fn stats(&mut self, now: Now) -> Stats {
        let mut out = Outbox::default();
        let own = with_cx!(self, now.tick, now.unix_ms, &mut out, |e, cx| e.stats(cx));
        let mut sent = self.sent_gone;
        self.ports.iter().for_each(|port| sent.add(&port.sent));
        Stats { kind: self.kind, verdicts: self.verdicts.clone(), sent, unsent: self.unsent, own }
    }
}
