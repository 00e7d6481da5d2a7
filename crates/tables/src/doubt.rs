//! What the network says about a neighbour: that nobody takes packets at its address.
//!
//! Such an answer (ICMP port unreachable) comes at once when the process of a neighbour ends, but
//! anybody can forge it. So it only raises a question, which the neighbour can answer.

use crate::Tick;
use std::time::Duration;

/// Questions, one after the other; without an answer to any of them nobody is there.
const TRIES: u32 = 5;
/// Time between two of them: two round trips of the link, in these bounds.
const STEP_MIN: Duration = Duration::from_millis(40);
const STEP_MAX: Duration = Duration::from_secs(1);
/// While no round trip is known.
const STEP: Duration = Duration::from_millis(100);
/// Time between the beginnings of two doubts.
const PAUSE_MS: u64 = 1_000;

/// Whether somebody is at the other end of a link.
#[derive(Debug, Clone, Default)]
pub struct Doubt {
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

/// What is to be done about a doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The neighbour is asked.
    Ask,
    /// It answered none of five questions.
    End,
}

impl Doubt {
    /// Whether a doubt begins; `rtt` is that of the link.
    pub fn begin(&mut self, now: Tick, rtt: Option<Duration>) -> bool {
        if self.asked.is_some() || now < self.pause {
            return false;
        }
        self.pause = now.plus_ms(PAUSE_MS);
        let step = rtt.map_or(STEP, |rtt| (rtt * 2).clamp(STEP_MIN, STEP_MAX));
        self.asked = Some(Asked { count: 0, next: now, step });
        true
    }

    /// The neighbour was heard.
    pub fn settle(&mut self) {
        self.asked = None;
    }

    /// When [`Doubt::step`] has something to do.
    #[must_use]
    pub fn due(&self) -> Tick {
        self.asked.map_or(Tick::NEVER, |asked| asked.next)
    }

    /// What is due now: another question, or the end.
    pub fn step(&mut self, now: Tick) -> Option<Step> {
        let asked = self.asked.as_mut().filter(|asked| asked.next <= now)?;
        if asked.count == TRIES {
            self.asked = None;
            return Some(Step::End);
        }
        asked.count += 1;
        asked.next = now + asked.step;
        Some(Step::Ask)
    }
}
