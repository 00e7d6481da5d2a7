//! Connections to the node: a few, each with one question at a time.

use crate::node::{Node, Nodes, Question};
use crate::refused::{Kind, Refused};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Semaphore;

/// Questions to the node at the same time.
pub const ASKING_MAX: usize = 4;

/// The connections.
#[derive(Clone)]
pub(crate) struct Pool {
    nodes: Arc<dyn Nodes>,
    idle: Arc<Mutex<Vec<Box<dyn Node>>>>,
    places: Arc<Semaphore>,
}

impl Pool {
    pub(crate) fn new(nodes: Arc<dyn Nodes>) -> Self {
        Self { nodes, idle: Arc::default(), places: Arc::new(Semaphore::new(ASKING_MAX)) }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Box<dyn Node>>> {
        self.idle.lock().expect("invariant: no panic under this lock")
    }

    /// The node's answer. A question that began is asked to its end, and keeps its place until then,
    /// even when nobody waits for the answer any more.
    pub(crate) async fn ask(&self, question: Question) -> Result<String, Refused> {
        let gone = |_| Refused::new(Kind::Failed, "the console ends");
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_| Refused::new(Kind::Failed, "the console ends"))?;
        let pool = self.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let known = pool.idle().pop();
            let mut node = known.map_or_else(|| pool.nodes.open(), Ok)?;
            let answer = node.ask(&question);
            // Whoever answered is asked again; another one may be there next time.
            if !matches!(&answer, Err(refused) if refused.kind == Kind::NoNode) {
                pool.idle().push(node);
            }
            drop(place);
            answer
        });
        asked.await.map_err(gone)?
    }
}
