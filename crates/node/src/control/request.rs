//! What other threads ask of the control thread: a protocol of typed requests, carried out in the
//! order in which they come.

use super::apply::Applier;
use super::explain::Explainer;
use super::faces::NewFace;
use super::status::Survey;
use super::{Control, Io};
use crate::config::{Changes, Config, PushLink};
use crate::counts::Snapshot;
use crate::log::LogControl;
use crate::mgmt::host::{FaceView, RouteSpec, TableError};
use crate::shard::WatchOrder;
use onym_engine::Reply;
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_watch::Span;
use onym_wire::name::Name;
use std::sync::Arc;
use std::time::Duration;

/// A request to the control thread; it is answered when it is done.
#[derive(Debug)]
pub(crate) enum Request {
    /// Adds a face whose transport the caller made; its number.
    FaceAdd { new: Box<NewFace>, reply: Reply<Result<FaceId, String>> },
    /// The faces.
    FaceList { reply: Reply<Vec<FaceView>> },
    /// The routes of the RIB, by name.
    RouteList { reply: Reply<Vec<RouteSpec>> },
    /// Adds a next hop to the FIB.
    FibAdd { name: Name, hop: NextHop, reply: Reply<Result<(), TableError>> },
    /// Spans that have ended since they were asked for last.
    Spans { reply: Reply<Vec<Span>> },
    /// Everything that the node counts; what the push half counted may be that of the last time
    /// when its thread does not say so within `patience`.
    Snapshot { patience: Duration, reply: Reply<Box<Snapshot>> },
    /// The state of the node, as JSON.
    Status { reply: Reply<String> },
    /// What would be done with an Interest, as JSON.
    Explain { name: Name, reply: Reply<String> },
    /// Lets management tell and change the log of the program.
    ServeLog { log: Arc<dyn LogControl>, reply: Reply<()> },
    /// Adds a link of the push half to those of the configuration.
    PushLinkAdd { link: Box<PushLink>, reply: Reply<Result<(), String>> },
    /// A routing program found a neighbour behind a face, at a cost; or lost it.
    PushLinkFound { face: FaceId, cost: Option<u16> },
    /// A dataset of the push half about an identifier, as JSON; none: there is no such one.
    PushDataset { what: String, id: Vec<u8>, reply: Reply<Option<String>> },
    /// Takes over a configuration that was checked.
    Reload { config: Box<Config>, reply: Reply<Result<Changes, String>> },
    /// Accepts nobody any more; how long what is queued may take to leave.
    CloseListeners { reply: Reply<Duration> },
    /// Closes every face.
    CloseFaces { reply: Reply<()> },
    /// Ends the thread after this round.
    Stop { reply: Reply<()> },
    /// Keeps the push thread at something until the other end is dropped.
    #[cfg(test)]
    OccupyPush(std::sync::mpsc::Receiver<()>),
}

impl Control {
    /// Does what `request` says.
    pub(super) fn carry_out(&mut self, io: &mut Io, request: Request) {
        let plane = &mut self.plane;
        match request {
            Request::FaceAdd { new, reply } => reply.send(plane.face_add(*new)),
            Request::FaceList { reply } => reply.send(plane.face_views()),
            Request::RouteList { reply } => reply.send(plane.routes.list(io.now)),
            Request::FibAdd { name, hop, reply } => {
                reply.send(plane.shards.fib_set(&plane.faces, name.as_ref(), hop));
            }
            Request::Spans { reply } => {
                let each = plane.shards.ask_all(|reply| WatchOrder::Spans { reply });
                // Those of one shard stay where they are.
                let all = each.into_iter().reduce(|mut all, mut more| {
                    all.append(&mut more);
                    all
                });
                reply.send(all.unwrap_or_default());
            }
            Request::Snapshot { patience, reply } => {
                let snapshot = Survey { plane, io }.snapshot(patience);
                let management = self.management.counters();
                let trust = self.management.guards();
                let trust = trust.map(|(name, guard)| (name.to_owned(), guard.status())).collect();
                reply.send(Box::new(Snapshot { management, trust, ..snapshot }));
            }
            Request::Status { reply } => reply.send(Survey { plane, io }.json()),
            Request::Explain { name, reply } => {
                reply.send(Explainer::of(plane).explain(name.as_ref()));
            }
            Request::ServeLog { log, reply } => {
                self.log = Some(log);
                reply.send(());
            }
            Request::PushLinkAdd { link, reply } => {
                if let Some(push) = &mut plane.push {
                    push.links.add((*link).clone());
                }
                plane.settings.config.push.link.push(*link);
                reply.send(Applier::new(plane, io).push_links());
            }
            Request::PushLinkFound { face, cost } => {
                if let Some(push) = &mut plane.push {
                    push.found(&plane.faces, &plane.settings.config.push, face, cost);
                }
            }
            Request::PushDataset { what, id, reply } => {
                let (push, shards) = (plane.push.as_ref(), &plane.shards);
                reply.send(super::push::dataset(push, shards, &plane.faces, &what, &id));
            }
            Request::Reload { config, reply } => reply.send(self.reload(io, *config)),
            Request::CloseListeners { reply } => {
                io.close_listeners();
                io.abandon_attempts();
                plane.listeners = super::Listeners::default();
                reply.send(Duration::from_millis(plane.settings.config.daemon.drain_ms));
            }
            Request::CloseFaces { reply } => {
                for id in plane.faces.ids() {
                    plane.face_remove(id, "the node stops");
                }
                reply.send(());
            }
            Request::Stop { reply } => {
                io.stop();
                reply.send(());
            }
            #[cfg(test)]
            Request::OccupyPush(until) => {
                let push = plane.push.as_ref().expect("it is enabled");
                push.port.tell(crate::push::PushOrder::Occupy(until));
            }
        }
    }

    fn reload(&mut self, io: &mut Io, new: Config) -> Result<Changes, String> {
        // What names files is read before anything changes.
        let options = self.plane.settings.management_options(&new)?;
        let changes = Applier::new(&mut self.plane, io).reload(new)?;
        self.plane.routes.policy = options.policy.clone();
        self.management.reconfigure(options);
        Ok(changes)
    }
}
