//! Meeting neighbours: the state machine of [`crate::meet`] with the shell around it.

use super::told::tell;
use super::{Check, Shell};
use crate::command::{Done, Order, Whose};
use crate::meet::hello::{self, Hello};
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

/// Times of meeting.
pub(super) struct Timing {
    /// Between two hellos.
    pub(super) hello: Duration,
    /// Silence after which another way is tried.
    pub(super) dead: Duration,
    /// Between two look-ups of a host.
    pub(super) resolve: Duration,
}

/// What a router has that meets neighbours.
pub(super) struct Meeting {
    pub(super) meet: Meet,
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
        let prefix = endpoint.serve(hello::interests(&names)).map_err(io::Error::other)?;
        let found = match hosts.is_empty() {
            true => None,
            false => Some(names::follow(hosts.clone(), timing.resolve, Arc::clone(is_over))?),
        };
        let meet = Meet::new(names.router.clone(), timing.hello, timing.dead, random_u64());
        Ok(Self { meet, prefix, names, signer, signed_ms: 0, hosts, found })
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
    pub(super) fn meeting_due(&self) -> Tick {
        self.meeting.as_ref().map_or(Tick::NEVER, |meeting| meeting.meet.poll_timeout())
    }

    /// Takes what was found, and does what follows.
    pub(super) fn meet(&mut self, now: Tick) {
        let Some(meeting) = &mut self.meeting else { return };
        while let Some(found) = meeting.found.as_ref().and_then(|found| found.try_recv().ok()) {
            if let Some(host) = meeting.hosts.get(found.index) {
                meeting.meet.resolved(now, found.index, &host.link, found.ways);
            }
        }
        meeting.meet.handle_timeout(now);
        self.meeting_obeys(now);
    }

    fn meeting_obeys(&mut self, now: Tick) {
        while let Some(output) =
            self.meeting.as_mut().and_then(|meeting| meeting.meet.poll_output())
        {
            match output {
                Output::Say { lan, reach, interval_ms } => {
                    let Some(meeting) = &mut self.meeting else { return };
                    if let Some(wire) = meeting.greeting(reach, interval_ms) {
                        self.endpoint.notify(wire, Some(lan));
                    }
                }
                Output::Make { id, way, mtu } => {
                    let order = Order::Make { uri: way.uri, local: way.local, mtu };
                    self.order(now, Whose::Meet(id), order);
                }
                Output::Destroy { face } => self.order(now, Whose::Nobody, Order::Destroy { face }),
                Output::Up { face, link } => {
                    tracing::info!(target: "onym::route", uri = link.uri, face, "a link is there");
                    let taken = self.router.with(now, 0, |router| router.link_up(now, face, link));
                    if taken != Some(true) {
                        tracing::warn!(target: "onym::route", face, "too many links: it is not used");
                    }
                }
                Output::Down { face } => {
                    tracing::info!(target: "onym::route", face, "a link is not there any more");
                    self.router.with(now, 0, |router| router.link_down(now, face));
                }
            }
        }
    }

    /// The forwarder made a face, or did not.
    pub(super) fn met(&mut self, now: Tick, id: u64, result: Result<Done, CommandError>) {
        let Some(meeting) = &mut self.meeting else { return };
        let made = match result {
            Ok(Done { face: Some(face), is_new }) => Ok(Made { face, is_own: is_new }),
            Ok(Done { face: None, .. }) => Err(()),
            Err(error) => {
                tracing::warn!(target: "onym::route", ?error, "a link to a neighbour cannot be made");
                Err(())
            }
        };
        meeting.meet.made(now, id, made);
        self.meeting_obeys(now);
    }

    pub(super) fn meeting_lost(&mut self, now: Tick, face: u64) {
        if let Some(meeting) = &mut self.meeting {
            meeting.meet.face_gone(now, face);
        }
    }

    pub(super) fn meeting_forgets(&mut self, now: Tick) {
        if let Some(meeting) = &mut self.meeting {
            meeting.meet.forget_faces(now);
        }
    }

    /// Four times a second: by which faces neighbours are heard.
    pub(super) fn meeting_looks(&mut self, now: Tick) {
        let Some(meeting) = &mut self.meeting else { return };
        let Some(router) = self.router.routers().first() else { return };
        let heard: Vec<(Name, u64)> =
            router.heard_by().map(|(router, face)| (router.clone(), face)).collect();
        let held = router.held().cloned().collect();
        meeting.meet.look(now, &heard, &held);
        self.meeting_obeys(now);
    }

    /// A hello came; it counts when its signature holds.
    pub(super) fn greeted(&mut self, now: Tick, incoming: &Incoming) {
        let (Some(meeting), Some(face)) = (&mut self.meeting, incoming.face) else { return };
        if !meeting.meet.allow(now, face) {
            return;
        }
        if let Some((hello, packet)) = Hello::read(&meeting.names, incoming)
            && hello.router != meeting.names.router
        {
            self.check(Check::Hello(face, Box::new(hello)), packet, Some(face));
        }
    }

    pub(super) fn greeting_judged(
        &mut self,
        now: Tick,
        face: u64,
        hello: &Hello,
        packet: &Packet,
        verdict: Verdict,
    ) {
        let Some(meeting) = &mut self.meeting else { return };
        match verdict {
            Verdict::Good => meeting.meet.heard(now, face, hello),
            Verdict::Bad(why) => {
                meeting.meet.counters.refused += 1;
                let locator = packet.data().signature_info().key_locator;
                let key = locator.and_then(|locator| locator.name()).map(|name| name.to_name());
                tell(&Notice::Refused { router: hello.router.clone(), key, why });
            }
        }
    }
}
