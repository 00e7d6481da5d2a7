//! A forwarder that runs already, ours or another's, reached by its sockets.

use crate::script::{Script, StepKind, Transport};
use crate::socket::{AtEnd, Nobody, Offers, Reach, SocketSubject};
use crate::subject::{Bench, Subject};
use crate::wire::name::Component;
use onym_wire::mgmt::LinkType;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs the scripts that hold for any forwarder against a running one.
#[derive(Debug)]
pub struct Foreign {
    reach: Reach,
    factor: u32,
    /// Milliseconds that the forwarder is given to digest what a face sent.
    settle_ms: u64,
    run: u64,
    script: AtomicU64,
}

impl Foreign {
    /// A forwarder at these sockets. `run` keeps the names of this run apart from others.
    #[must_use]
    pub fn new(reach: Reach, factor: u32, settle_ms: u64, run: u64) -> Self {
        Self { reach, factor, settle_ms, run, script: AtomicU64::new(0) }
    }
}

impl Bench for Foreign {
    fn name(&self) -> &str {
        "foreign"
    }

    fn refuses(&self, script: &Script) -> Option<String> {
        if !script.has_tag("any-forwarder") {
            return Some("is not for any forwarder".into());
        }
        if !script.config.is_empty() || !script.regions.is_empty() {
            return Some("needs a configuration of its own".into());
        }
        let asks = |f: fn(&StepKind) -> bool| script.steps.iter().any(|s| f(&s.kind));
        if self.reach.unix.is_none() {
            let local = script.faces.iter().any(|f| f.local || f.transport != Transport::Auto);
            let special = script.faces.iter().any(|f| f.reliability || f.mtu != 8800);
            let needs = script.needs.iter().any(|n| n == "mgmt");
            let commands = asks(|k| matches!(k, StepKind::Strategy { .. } | StepKind::Cs(_)));
            if local
                || special
                || needs
                || commands
                || script.faces.iter().any(|f| f.link != LinkType::PointToPoint)
            {
                return Some("needs the forwarder's local socket".into());
            }
        }
        let offers = Offers { tcp: self.reach.tcp.is_some(), ..Offers::default() };
        crate::socket::refuses(script, offers)
    }

    fn set_up(&self, script: &Script) -> Result<Box<dyn Subject>, String> {
        let mut subject =
            SocketSubject::new(&self.reach, script, Box::new(Nobody), self.factor, AtEnd::LivesOn)?;
        subject.settle_ms = self.settle_ms;
        Ok(Box::new(subject))
    }

    fn apart(&self, _script: &Script) -> Option<Component> {
        let n = self.script.fetch_add(1, Ordering::Relaxed);
        Some((8, format!("run-{:x}-{n}", self.run).into_bytes()))
    }
}
