//! What goes on: one question for all browsers, so that the node has one viewer and not one a browser.

use crate::node::{Node, Nodes, Question};
use crate::refused::{Kind, Refused};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// An answer that is younger is told again.
const LIVE_EVERY: Duration = Duration::from_millis(900);

/// The node's viewer.
#[derive(Clone)]
pub(crate) struct Live {
    nodes: Arc<dyn Nodes>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    node: Option<Box<dyn Node>>,
    last: Option<(Instant, String)>,
}

impl Live {
    pub(crate) fn new(nodes: Arc<dyn Nodes>) -> Self {
        Self { nodes, state: Arc::default() }
    }

    /// The answer of now, or of a moment ago. Who asks meanwhile waits for the same one.
    pub(crate) async fn ask(&self) -> Result<String, Refused> {
        let mut state = Arc::clone(&self.state).lock_owned().await;
        if let Some((at, last)) = &state.last
            && at.elapsed() < LIVE_EVERY
        {
            return Ok(last.clone());
        }
        let nodes = Arc::clone(&self.nodes);
        let asked = tokio::task::spawn_blocking(move || {
            let mut node = state.node.take().map_or_else(|| nodes.open(), Ok)?;
            let answer = node.ask(&Question::Top)?;
            state.node = Some(node);
            state.last = Some((Instant::now(), answer.clone()));
            Ok(answer)
        });
        asked.await.map_err(|_| Refused::new(Kind::Failed, "the console ends"))?
    }
}
