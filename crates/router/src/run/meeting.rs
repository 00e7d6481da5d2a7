//! Meeting neighbours: the state machine of [`crate::meet`] with the shell around it.

use super::told::tell;
use super::{Check, Shell};
use crate::Settings;
use crate::command::{Done, Order, Whose};
use crate::meet::hello::Hello;
use crate::meet::lan::Lan;
use crate::meet::{Made, Meet, Output};
use crate::names::{self, Found, Host};
use onym_crypto::Signer;
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_endpoint::{Endpoint, Incoming, Packet, PrefixId};
use onym_route::router::CommandError;
use onym_route::{Names, Notice, Verdict};
use onym_tables::Tick;
use onym_wire::Name;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Times of meeting, and whether neighbours are looked for.
pub(super) struct Timing {
    /// On links with several peers.
    pub(super) discover: bool,
    /// Between two hellos.
    pub(super) hello: Duration,
    /// Silence after which another way is tried.
    pub(super) dead: Duration,
    /// Between two look-ups of a host.
    pub(super) resolve: Duration,
}

impl Timing {
    /// Those of `settings`, for neighbours named by hosts.
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            discover: false,
            hello: settings.advertise_interval,
            dead: settings.dead_interval,
            resolve: settings.resolve_every,
        }
    }
}

/// What a router has that meets neighbours, in one network.
pub(super) struct Meeting {
    pub(super) meet: Meet,
    pub(super) discover: bool,
    pub(super) prefix: PrefixId,
    names: Names,
    signer: Signer,
    signed_ms: u64,
    hosts: Vec<Host>,
    found: Option<Receiver<Found>>,
}

impl Meeting {
    pub(super) fn start(
        names: Names,
        timing: Timing,
        signer: Signer,
        hosts: Vec<Host>,
        endpoint: &mut Endpoint,
        is_over: &Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let prefix = endpoint.serve(Hello::prefix(&names)).map_err(io::Error::other)?;
        let found = match hosts.is_empty() {
            true => None,
            false => Some(names::follow(hosts.clone(), timing.resolve, Arc::clone(is_over))?),
        };
        let meet = Meet::new(names.router.clone(), timing.hello, timing.dead, random_u64());
        let discover = timing.discover;
        Ok(Self { meet, discover, prefix, names, signer, signed_ms: 0, hosts, found })
    }

    /// Signs by another certificate from now on.
    pub(super) fn renew(&mut self, signer: Signer) {
        self.signer = signer;
    }

    /// The Interest of a hello, signed later than every one before.
    fn greeting(
        &mut self,
        reach: onym_wire::faceuri::FaceUri,
        interval_ms: u64,
    ) -> Option<Vec<u8>> {
        self.signed_ms = unix_now_ms().max(self.signed_ms + 1);
        let (router, signed_ms) = (self.names.router.clone(), self.signed_ms);
        let hello = Hello { router, signed_ms, interval_ms, reach: vec![reach] };
        let [a, b, c, d, ..] = random_u64().to_be_bytes();
        hello.write(&self.names, &self.signer, [a, b, c, d])
    }
}

impl Shell {
    /// The meetings, each with the number of its network.
    fn meetings(&mut self) -> impl Iterator<Item = (usize, &mut Meeting)> {
        let areas = self.areas.iter_mut().enumerate();
        areas.filter_map(|(at, area)| Some((at, area.meeting.as_mut()?)))
    }

    fn meeting(&mut self, at: usize) -> Option<&mut Meeting> {
        self.areas.get_mut(at)?.meeting.as_mut()
    }

    pub(super) fn meetings_due(&self) -> Tick {
        let meetings = self.areas.iter().filter_map(|area| area.meeting.as_ref());
        meetings.map(|meeting| meeting.meet.poll_timeout()).min().unwrap_or(Tick::NEVER)
    }

    /// Takes what was found, and does what follows.
    pub(super) fn meet(&mut self, now: Tick) {
        for (_, meeting) in self.meetings() {
            while let Some(found) = meeting.found.as_ref().and_then(|found| found.try_recv().ok()) {
                if let Some(host) = meeting.hosts.get(found.index) {
                    meeting.meet.resolved(now, found.index, &host.link, found.ways);
                }
            }
            meeting.meet.handle_timeout(now);
        }
        self.meetings_obey(now);
    }

    fn meetings_obey(&mut self, now: Tick) {
        for at in 0..self.areas.len() {
            while let Some(output) = self.meeting(at).and_then(|meeting| meeting.meet.poll_output())
            {
                self.meeting_obeys(now, at, output);
            }
        }
    }

    fn meeting_obeys(&mut self, now: Tick, at: usize, output: Output) {
        match output {
            Output::Say { lan, reach, interval_ms } => {
                let Some(meeting) = self.meeting(at) else { return };
                if let Some(wire) = meeting.greeting(reach, interval_ms) {
                    self.endpoint.notify(wire, Some(lan));
                }
            }
            Output::Make { id, way, mtu } => {
                let order = Order::Make { uri: way.uri, local: way.local, mtu };
                self.order(now, Whose::Meet(at, id), order);
            }
            Output::Destroy { face } => self.order(now, Whose::Nobody, Order::Destroy { face }),
            Output::Up { face, link } => {
                tracing::info!(target: "onym::route", uri = link.uri, face, "a link is there");
                let taken = self.router.with(now, at, |router| router.link_up(now, face, link));
                if taken != Some(true) {
                    tracing::warn!(target: "onym::route", face, "too many links: it is not used");
                }
            }
            Output::Down { face } => {
                tracing::info!(target: "onym::route", face, "a link is not there any more");
                self.router.with(now, at, |router| router.link_down(now, face));
            }
        }
    }

    /// The forwarder made a face, or did not. A link is in one network: of several in which the same
    /// neighbour was met, the one that has the face keeps it.
    pub(super) fn met(
        &mut self,
        now: Tick,
        at: usize,
        id: u64,
        result: Result<Done, CommandError>,
    ) {
        let others = self.router.routers().iter().enumerate().filter(|(of, _)| *of != at);
        let is_taken = |face| others.clone().any(|(_, router)| router.has_face(face));
        let made = match result {
            Ok(Done { face: Some(face), .. }) if is_taken(face) => {
                tracing::info!(
                    target: "onym::route", face, "another network of this host has this link already"
                );
                Err(())
            }
            Ok(Done { face: Some(face), is_new }) => Ok(Made { face, is_own: is_new }),
            Ok(Done { face: None, .. }) => Err(()),
            Err(error) => {
                tracing::warn!(target: "onym::route", ?error, "a link to a neighbour cannot be made");
                Err(())
            }
        };
        if let Some(meeting) = self.meeting(at) {
            meeting.meet.made(now, id, made);
        }
        self.meetings_obey(now);
    }

    pub(super) fn meetings_lose(&mut self, now: Tick, face: u64) {
        self.meetings().for_each(|(_, meeting)| meeting.meet.face_gone(now, face));
    }

    pub(super) fn meetings_forget(&mut self, now: Tick) {
        self.meetings().for_each(|(_, meeting)| meeting.meet.forget_faces(now));
    }

    /// The links with several peers that the forwarder has, when they were looked at.
    pub(super) fn meetings_see(&mut self, now: Tick, lans: Option<Vec<Lan>>) {
        let Some(lans) = lans else { return };
        let discovering = self.meetings().filter(|(_, meeting)| meeting.discover);
        discovering.for_each(|(_, meeting)| meeting.meet.set_lans(now, lans.clone()));
    }

    /// Four times a second: by which faces neighbours are heard.
    pub(super) fn meetings_look(&mut self, now: Tick) {
        for (area, router) in self.areas.iter_mut().zip(self.router.routers()) {
            let Some(meeting) = &mut area.meeting else { continue };
            let heard: Vec<(Name, u64)> =
                router.heard_by().map(|(router, face)| (router.clone(), face)).collect();
            let held = router.held().cloned().collect();
            meeting.meet.look(now, &heard, &held);
        }
        self.meetings_obey(now);
    }

    /// A hello for the network `at` came; it counts when its signature holds.
    pub(super) fn greeted(&mut self, now: Tick, at: usize, incoming: &Incoming) {
        let (Some(meeting), Some(lan)) = (self.meeting(at), incoming.face) else { return };
        if !meeting.meet.allow(now, lan) {
            return;
        }
        if let Some((hello, packet)) = Hello::read(&meeting.names, incoming)
            && hello.router != meeting.names.router
        {
            self.check(Check::Hello { at, lan, hello: Box::new(hello) }, packet, Some(lan));
        }
    }

    pub(super) fn greeting_judged(
        &mut self,
        now: Tick,
        at: usize,
        lan: u64,
        hello: &Hello,
        packet: &Packet,
        verdict: Verdict,
    ) {
        let Some(meeting) = self.meeting(at) else { return };
        match verdict {
            Verdict::Good => meeting.meet.heard(now, lan, hello),
            Verdict::Bad(why) => {
                meeting.meet.counters.refused += 1;
                let locator = packet.data().signature_info().key_locator;
                let key = locator.and_then(|locator| locator.name()).map(|name| name.to_name());
                tell(&Notice::Refused { router: hello.router.clone(), key, why });
            }
        }
    }
}
