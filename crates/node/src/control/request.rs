//! What other threads ask of the control thread: a protocol of typed requests, carried out in the
//! order in which they come.

use super::Control;
use super::record::NewFace;
use super::status::Snapshot;
use crate::config::{Changes, Config, PushLink};
use crate::log::LogControl;
use crate::mgmt::host::{FaceView, NextHop, RouteSpec, TableError};
use crate::reply::Reply;
use onym_tables::FaceId;
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
    pub(super) fn take_requests(&mut self) {
        while let Ok(request) = self.requests.try_recv() {
            self.obey(request);
        }
    }

    /// Does what `request` says.
    fn obey(&mut self, request: Request) {
        match request {
            Request::FaceAdd { new, reply } => reply.send(self.face_add(*new)),
            Request::FaceList { reply } => reply.send(self.face_views(None)),
            Request::RouteList { reply } => reply.send(self.route_list()),
            Request::FibAdd { name, hop, reply } => reply.send(self.fib_set(name.as_ref(), hop)),
            Request::Snapshot { patience, reply } => {
                reply.send(Box::new(self.snapshot_within(patience)));
            }
            Request::Status { reply } => reply.send(self.node_status()),
            Request::Explain { name, reply } => reply.send(self.explain(name.as_ref())),
            Request::ServeLog { log, reply } => {
                self.log = Some(log);
                reply.send(());
            }
            Request::PushLinkAdd { link, reply } => {
                self.config.push.link.push(*link);
                reply.send(self.apply_push_links());
            }
            Request::PushDataset { what, id, reply } => reply.send(self.push_dataset(&what, &id)),
            Request::Reload { config, reply } => reply.send(self.reload(*config)),
            Request::CloseListeners { reply } => {
                self.close_listeners();
                reply.send(Duration::from_millis(self.config.daemon.drain_ms));
            }
            Request::CloseFaces { reply } => {
                self.close_faces();
                reply.send(());
            }
            Request::Stop { reply } => {
                self.stop();
                reply.send(());
            }
            #[cfg(test)]
            Request::OccupyPush(until) => {
                let push = self.push.as_ref().expect("it is enabled");
                push.tell(crate::push::PushOrder::Occupy(until));
            }
        }
    }
}
