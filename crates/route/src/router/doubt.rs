//! What the network says about a neighbour: that nobody takes packets at its address.
//!
//! Such an answer (ICMP port unreachable) comes at once when the process of a neighbour ends, but
//! anybody can forge it. So it only raises a question, which the neighbour can answer.

use super::measure::Probe;
use super::{Router, Why};
use crate::table::PeerId;
use onym_tables::Tick;
use std::sync::Arc;
use std::time::Duration;

/// Probes of a doubted face, one after the other; without an answer to any of them it is dropped.
const TRIES: u32 = 5;
/// Time between two of them: two round trips of the link, in these bounds.
const STEP_MIN: Duration = Duration::from_millis(40);
const STEP_MAX: Duration = Duration::from_secs(1);
/// While no round trip is known.
const STEP: Duration = Duration::from_millis(100);
/// Time between the beginnings of two doubts about a face.
const PAUSE_MS: u64 = 1_000;

/// Whether somebody is at the other end of a face.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubt {
    asked: Option<Asked>,
    /// No doubt begins before.
    pause: Tick,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    count: u32,
    next: Tick,
    step: Duration,
}

impl Doubt {
    /// Whether a doubt begins; `rtt` is that of the link.
    fn begin(&mut self, now: Tick, rtt: Option<Duration>) -> bool {
        if self.asked.is_some() || now < self.pause {
            return false;
        }
        self.pause = now.plus_ms(PAUSE_MS);
        let step = rtt.map_or(STEP, |rtt| (rtt * 2).clamp(STEP_MIN, STEP_MAX));
        self.asked = Some(Asked { count: 0, next: now, step });
        true
    }

    /// The neighbour was heard there.
    pub(super) fn settle(&mut self) {
        self.asked = None;
    }

    pub(super) fn due(&self) -> Tick {
        self.asked.map_or(Tick::NEVER, |asked| asked.next)
    }

    /// What is due now: another probe, or the end.
    fn step(&mut self, now: Tick) -> Option<Step> {
        let asked = self.asked.as_mut().filter(|asked| asked.next <= now)?;
        if asked.count == TRIES {
            return Some(Step::End);
        }
        asked.count += 1;
        asked.next = now + asked.step;
        Some(Step::Probe)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Probe,
    End,
}

impl Router {
    /// The network refused what was sent by `face`: neighbours there that answer probes are asked, and
    /// dropped when they do not answer.
    pub fn face_refused(&mut self, now: Tick, face: u64) {
        for neighbour in self.neighbours.iter_mut().filter(|n| n.ours) {
            for heard in neighbour.faces.iter_mut().filter(|f| f.face == face) {
                let rtt = heard.measure.rtt;
                self.counters.doubts += u64::from(heard.doubt.begin(now, rtt));
            }
        }
        self.inquire(now);
        self.progress(now);
    }

    /// Probes of doubted faces that are due; faces without an answer go.
    pub(super) fn inquire(&mut self, now: Tick) {
        let (mut probes, mut ended) = (Vec::new(), Vec::new());
        for neighbour in self.neighbours.iter_mut() {
            let (peer, name) = (neighbour.id, Arc::clone(&neighbour.name));
            for heard in &mut neighbour.faces {
                let probe = Probe { peer, face: heard.face, is_full: false };
                match heard.doubt.step(now) {
                    Some(Step::Probe) => probes.push((probe, Arc::clone(&name))),
                    Some(Step::End) => ended.push((peer, heard.face)),
                    None => {}
                }
            }
        }
        for (probe, name) in probes {
            self.send_probe(now, probe, &name);
        }
        for (peer, face) in &ended {
            if let Some(neighbour) = self.neighbours.get_mut(*peer) {
                neighbour.faces.retain(|f| f.face != *face);
            }
            self.neighbour_faces_changed(now, *peer, Why::Refused);
        }
        if !ended.is_empty() {
            self.control_routes();
        }
    }

    /// The neighbour answered by `face`.
    pub(super) fn settle_doubt(&mut self, peer: PeerId, face: u64) {
        if let Some(neighbour) = self.neighbours.get_mut(peer) {
            let heard = neighbour.faces.iter_mut().filter(|f| f.face == face);
            heard.for_each(|f| f.doubt.settle());
        }
    }
}
