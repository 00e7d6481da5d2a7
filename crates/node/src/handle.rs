//! The handle by which a program controls its running node.

use crate::control::faces::NewFace;
use crate::control::request::Request;
use crate::counts::Snapshot;
use crate::mgmt::host::{FaceView, RouteSpec};
use crate::node::NodeHandle;
use crate::remote::NodeError;
use onym_face::Face;
use onym_face::mem::{self, MemFace};
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_wire::mgmt::Persistency;
use std::sync::Arc;

impl NodeHandle {
    /// Joins an application or a test to the node by a face in memory; the number of the node's
    /// face and our end.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn attach(&self, scope: onym_wire::mgmt::Scope) -> Result<(FaceId, MemFace), NodeError> {
        let (ours, theirs) = mem::pair(scope).map_err(|e| NodeError::Setup(e.to_string()))?;
        Ok((self.face_add(Box::new(theirs))?, ours))
    }

    /// Adds a face whose transport was made by the caller.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn face_add(&self, io: Box<dyn Face>) -> Result<FaceId, NodeError> {
        let new = Box::new(NewFace::of(Some(io), Persistency::OnDemand));
        self.ask(|reply| Request::FaceAdd { new, reply })?.map_err(NodeError::Setup)
    }

    /// The faces.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub fn faces(&self) -> Result<Vec<FaceView>, NodeError> {
        self.ask(|reply| Request::FaceList { reply })
    }

    /// The routes of the RIB, by name.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub fn routes(&self) -> Result<Vec<RouteSpec>, NodeError> {
        self.ask(|reply| Request::RouteList { reply })
    }

    /// Everything that the node counts.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub fn snapshot(&self) -> Result<Snapshot, NodeError> {
        let patience = crate::push::ANSWER_MAX;
        self.ask(|reply| Request::Snapshot { patience, reply }).map(|snapshot| *snapshot)
    }

    /// The state of the node as `/localhost/onym/status/node` tells it.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub fn status(&self) -> Result<serde_json::Value, NodeError> {
        let text = self.ask(|reply| Request::Status { reply })?;
        Ok(serde_json::from_str(&text).expect("invariant: the status is JSON"))
    }

    /// What would be done with an Interest, as `/localhost/onym/explain` tells it.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn explain(&self, name: &str) -> Result<serde_json::Value, NodeError> {
        let name: onym_wire::name::Name =
            name.parse().map_err(|e| NodeError::Setup(format!("{name}: {e}")))?;
        let text = self.ask(|reply| Request::Explain { name, reply })?;
        Ok(serde_json::from_str(&text).expect("invariant: the explanation is JSON"))
    }

    /// Lets management tell and change the log of this program.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub fn serve_log(&self, log: Arc<dyn crate::log::LogControl>) -> Result<(), NodeError> {
        self.ask(|reply| Request::ServeLog { log, reply })
    }

    /// The page of metrics, where one is served, has those of `source`, too. Only the first call counts.
    pub fn add_metrics(&self, source: Arc<dyn onym_metrics::Source>) {
        if let Some(http) = &self.http {
            http.add(source);
        }
    }

    /// Adds a next hop to the FIB.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn route(&self, prefix: &str, face: FaceId, cost: u64) -> Result<(), NodeError> {
        let name: onym_wire::name::Name =
            prefix.parse().map_err(|e| NodeError::Setup(format!("{prefix}: {e}")))?;
        let hop = NextHop { face, cost };
        let added = self.ask(|reply| Request::FibAdd { name, hop, reply })?;
        added.map_err(|e| NodeError::Setup(format!("{prefix}: {e:?}")))
    }
}
