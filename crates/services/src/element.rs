//! The trait of elements.

use crate::config::KindConfig;
use crate::control::{Answer, Request};
use crate::cx::Cx;
use crate::refusal::Refusal;
use crate::stats::KindStats;
use crate::verdict::Verdict;
use crate::verify::Job;
use onym_link::Packet;
use onym_tables::{FaceId, Tick};
use std::fmt;

/// One function. It owns its tables; faces, the clock and the outbox come with each call.
pub trait Element: Send + fmt::Debug {
    /// Takes one packet. `None`: it waits for a verification, [`Element::verified`] ends it.
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict>;

    /// Sends a packet that was held while its side was frozen.
    fn resume(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        self.receive(cx, packet);
    }

    /// A verification that this element asked for has ended.
    fn verified(&mut self, _: &mut Cx<'_>, _: Job) -> Option<Verdict> {
        None
    }

    /// Does what is due.
    fn handle_timeout(&mut self, _: &mut Cx<'_>) {}

    /// When [`Element::handle_timeout`] should be called next.
    fn poll_timeout(&self) -> Option<Tick> {
        None
    }

    /// A face has gone.
    fn face_removed(&mut self, _: &mut Cx<'_>, _: FaceId, _label: &str) {}

    /// A face is connected, or is so no more.
    fn face_up(&mut self, _: &mut Cx<'_>, _: FaceId) {}

    /// A face came.
    fn face_added(&mut self, _: &mut Cx<'_>, _: FaceId) {}

    /// Its configuration, every key.
    fn config(&self) -> KindConfig;

    /// Takes a configuration of its kind, whose values are not checked yet.
    ///
    /// # Errors
    /// What is wrong; then nothing was changed.
    fn configure(&mut self, cx: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal>;

    /// What only its kind counts.
    fn stats(&self, cx: &Cx<'_>) -> KindStats;

    /// Resources of its own.
    ///
    /// # Errors
    /// [`Refusal::no_path`] for what it does not have.
    fn control(&mut self, _: &mut Cx<'_>, _: Request) -> Result<Answer, Refusal> {
        Err(Refusal::no_path())
    }

    /// What still waits for answers.
    fn pending(&self) -> usize {
        0
    }

    /// Most verifications under way at once; beyond, the shell reads nothing.
    fn jobs_max(&self) -> usize {
        usize::MAX
    }

    /// A period of the statistics has ended.
    fn period(&mut self, _: &mut Cx<'_>) {}
}
