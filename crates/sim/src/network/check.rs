//! What must hold at every moment of a run.

use super::{Happening, Line, Network};
use crate::node::Node;

impl Network {
    /// Checks what must hold at every moment: both equations of each node's verdicts, that no
    /// frame appears or vanishes between nodes, and that each Interest of a consumer is answered,
    /// Nacked, timed out or under way.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.nodes.iter().try_for_each(Node::check)?;
        for (from, to, channel) in self.channels() {
            let counters = channel.counters();
            if !counters.balance() {
                return Err(format!("link {from} to {to}: {counters:?}"));
            }
        }
        for (node, app) in self.apps() {
            let stats = app.stats();
            if !stats.balance() {
                return Err(format!("{}: {stats:?}", self.nodes[node].name));
            }
        }
        let planned = self.events.iter().filter(|event| {
            matches!(
                event.what,
                Happening::Frame { .. } | Happening::Worked { .. } | Happening::AppFrame { .. }
            )
        });
        if planned.count() as u64 != self.in_flight {
            return Err("frames in flight were lost or invented".to_owned());
        }
        self.check_frames()
    }

    /// Frames that a node received and those carried to it must be the same number.
    fn check_frames(&self) -> Result<(), String> {
        for (number, node) in self.nodes.iter().enumerate() {
            for (port, line) in self.lines[number].iter().enumerate() {
                let Line::Node { node: peer, port: back, .. } = line else { continue };
                let Line::Node { channel, .. } = &self.lines[*peer][*back] else { continue };
                let coming = self.events.iter().filter(|event| {
                    matches!(event.what, Happening::Frame { node, port: p, .. }
                        | Happening::Worked { node, port: p, .. } if node == number && p == port)
                });
                let received: u64 = node.link_counters(port).verdicts.iter().sum();
                let carried = channel.counters().carried;
                let shed = self.shed[number].get(port).copied().unwrap_or_default();
                if carried != received + shed + coming.count() as u64 {
                    return Err(format!(
                        "{}: {carried} frames carried to port {port}, {received} received",
                        node.name
                    ));
                }
            }
        }
        Ok(())
    }
}
