//! The loop.

use super::{Order, Report, Shard, io};
use onym_forward::Verdict;
use onym_tables::Tick;
use std::time::Duration;

impl Shard {
    /// Runs until told to stop.
    pub(crate) fn run(mut self) {
        while self.running {
            self.wait();
            self.now = self.clock.now();
            let begin = self.now;
            self.round();
            self.counters.rounds += 1;
            let spent = self.clock.now().since(begin).as_nanos();
            self.counters.busy_ns += u64::try_from(spent).unwrap_or(u64::MAX);
        }
    }

    /// Waits until something is to be done and notes which faces are ready.
    pub(super) fn wait(&mut self) {
        self.bell.about_to_sleep();
        let timeout = if self.has_work() { Duration::ZERO } else { self.sleep() };
        self.events.clear();
        if let Err(error) = self.epoll.wait(Some(timeout), &mut self.events) {
            tracing::error!(shard = self.index, %error, "waiting for descriptors failed");
        }
        self.bell.awake();
        let events = std::mem::take(&mut self.events);
        for event in &events {
            if event.token != io::BELL {
                self.note_ready(event);
            }
        }
        self.events = events;
    }

    /// Whether the next round may not wait for anything.
    pub(super) fn has_work(&mut self) -> bool {
        if self.order.is_none() {
            self.order = self.orders.try_recv().ok();
        }
        self.order.is_some()
            || !self.running
            || !self.ready.is_empty() && self.peers_have_room()
            || !self.is_alone() && self.from.iter().flatten().any(|p| p.waits())
            || self.push_waits() && !self.is_held_back()
    }

    /// Time until the next timer.
    fn sleep(&mut self) -> Duration {
        let mut next = self.fw.poll_timeout().unwrap_or(Tick::NEVER);
        for i in 0..self.timed.len() {
            if let Some(face) = self.faces.get(self.timed[i]) {
                next = next.min(face.link.poll_timeout());
            }
        }
        let longest = if self.is_cramped() { Self::RETRY } else { Self::SLEEP_MAX };
        if next == Tick::NEVER { longest } else { next.since(self.clock.now()).min(longest) }
    }

    /// Whether something waits for room that nobody tells about: batches and reports.
    fn is_cramped(&self) -> bool {
        !self.late.is_empty()
            || self.to.iter().flatten().any(|p| !p.is_empty())
            || self.push.as_ref().is_some_and(|push| !push.to.is_empty())
            || self.has_held()
    }

    pub(super) fn round(&mut self) {
        self.take_orders();
        if !self.is_alone() {
            self.take_crossings();
        }
        self.take_in_place();
        self.take_push();
        self.release_held();
        self.turns();
        self.timers();
        self.flush_dirty();
        if !self.is_alone() {
            for peer in self.to.iter_mut().flatten() {
                peer.flush();
            }
        }
        if let Some(push) = &mut self.push {
            push.to.flush();
        }
        self.report_late();
        if std::mem::take(&mut self.reported) {
            self.control.wake();
        }
    }

    fn take_orders(&mut self) {
        while let Some(Order(work)) = self.order.take().or_else(|| self.orders.try_recv().ok()) {
            work(self);
        }
        self.dispatch();
    }

    fn take_crossings(&mut self) {
        for peer in 0..self.from.len() {
            // One batch each: a peer that sends all the time has its share of the round.
            let Some(mut batch) = self.from[peer].as_mut().and_then(|p| p.next()) else { continue };
            for (leg, packet) in batch.packets.drain(..) {
                let id = packet.face;
                if let Some(verdict @ (Verdict::Malformed | Verdict::TooLarge)) =
                    self.arrive(leg, packet)
                {
                    self.report(Report::Malformed { id, word: verdict.label() });
                }
            }
            self.dispatch();
            let mut out = std::mem::take(&mut batch.out);
            for item in out.items.drain(..) {
                self.transmit(&out.arena, item);
            }
            batch.out = out;
            if let Some(peer) = &mut self.from[peer] {
                peer.give_back(batch);
            }
        }
    }
}
