//! In: the actions of a strategy.  Out: Interests and Nacks in the outbox, out-records, timers.
//! Drops: none.  Counters: those of copies (asked, sent, unsent).

use super::emit::{self, Sent};
use super::finalize;
use super::incoming::Incoming;
use crate::stage::{Pending, Strategies};
use crate::strategy::{Action, Refusal, out_marks};
use crate::{Event, Verdict, fairness};
use onym_link::{LpOut, Outbox, Payload};
use onym_tables::pit::OutRecord;
use onym_tables::{FaceId, Tick};
use onym_wire::interest::{Hint, Interest};
use onym_wire::lp::NackReason;
use std::ops::Range;
use std::time::Duration;

/// An Interest on its way up: everything that is the same for all upstreams.
#[derive(Debug)]
pub(crate) struct Upstream<'a> {
    interest: &'a Interest<'a>,
    /// Its PIT entry.
    slot: u32,
    nonce: u32,
    hop_limit: Option<u8>,
    hint: Hint,
    non_discovery: bool,
    congestion_mark: u8,
    ingress: FaceId,
    /// Whether nobody was asked before: only then can it be refused.
    pub(crate) is_new: bool,
    /// The octets, once written; all upstreams share them.
    written: Range<u32>,
}

impl<'a> Upstream<'a> {
    pub(crate) fn new(incoming: &'a Incoming<'_>, slot: u32) -> Self {
        Self {
            interest: incoming.interest,
            slot,
            nonce: incoming.nonce,
            hop_limit: incoming.hop_limit,
            hint: if incoming.strips_hint() { Hint::Strip } else { Hint::Keep },
            non_discovery: incoming.packet.lp.non_discovery,
            congestion_mark: incoming.packet.lp.congestion_mark,
            ingress: incoming.packet.face,
            is_new: false,
            written: 0..0,
        }
    }

    /// The pending Interest of `slot`, as its latest downstream would send it.
    pub(crate) fn pending(
        pending: &Pending,
        slot: u32,
        interest: &'a Interest<'a>,
        hint: Hint,
    ) -> Self {
        let nonce = interest.nonce.map_or(0, u32::from_be_bytes);
        let (ingress, nonce) = pending.latest_downstream(slot).unwrap_or((FaceId::INVALID, nonce));
        let hop_limit = match interest.hop_limit {
            Some(limit) => Some(limit.saturating_sub(pending.config.hop)),
            None => Some(pending.config.default_hop_limit).filter(|limit| *limit > 0),
        };
        Self {
            nonce,
            hop_limit,
            hint,
            non_discovery: false,
            congestion_mark: 0,
            ingress,
            is_new: false,
            written: 0..0,
            interest,
            slot,
        }
    }

    fn write(&mut self, out: &mut Outbox) -> Payload {
        let (nonce, hop_limit) = (self.nonce.to_be_bytes(), self.hop_limit);
        if self.written.is_empty() {
            self.written = out.write(|arena| {
                self.interest.write_forwarded(arena, nonce, hop_limit, self.hint);
            });
        }
        Payload::Arena(self.written.clone())
    }
}

/// What came of a strategy's actions.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Interests sent, and those of them to management.
    pub(crate) sent: u32,
    pub(crate) delivered: u32,
    /// Nacks sent.
    pub(crate) nacked: u32,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) suppressed: bool,
    /// An upstream was not asked because it is contended.
    pub(crate) congested: bool,
    pub(crate) linger: Option<Duration>,
    pub(crate) attach_announcement: bool,
}

/// Whether an upstream was sent an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Upstream,
    /// The node itself.
    Management,
    /// It is not, because it is contended.
    Congested,
    /// It is not, and that was counted.
    Not,
}

impl Asked {
    /// Where it was to be the only one.
    #[inline(always)]
    pub(crate) const fn verdict(self) -> Verdict {
        match self {
            Self::Upstream => Verdict::Forwarded,
            Self::Management => Verdict::Delivered,
            Self::Congested => Verdict::Congestion,
            Self::Not => Verdict::NoEligibleNextHop,
        }
    }
}

impl Done {
    fn note(&mut self, asked: Asked) {
        match asked {
            Asked::Upstream => self.sent += 1,
            Asked::Management => {
                self.sent += 1;
                self.delivered += 1;
            }
            Asked::Congested => self.congested = true,
            Asked::Not => {}
        }
    }
}

/// Carries out the waiting actions. Says whether the strategy gave the entry up, which the caller
/// then ends.
#[inline(always)]
pub(crate) fn run_open(
    pending: &mut Pending,
    strategies: &mut Strategies,
    now: Tick,
    upstream: &mut Upstream<'_>,
    out: &mut Outbox,
) -> (Done, bool) {
    let mut done = Done::default();
    if let [Action::Forward(face)] = strategies.actions[..] {
        strategies.actions.pop();
        done.note(send(pending, now, upstream, face, out));
        return (done, false);
    }
    let ended = run_several(pending, strategies, now, upstream, &mut done, out);
    (done, ended)
}

/// The same when it is not one Interest for one upstream.
fn run_several(
    pending: &mut Pending,
    strategies: &mut Strategies,
    now: Tick,
    upstream: &mut Upstream<'_>,
    done: &mut Done,
    out: &mut Outbox,
) -> bool {
    let mut ended = false;
    let mut actions = std::mem::take(&mut strategies.actions);
    for action in &actions {
        match action {
            Action::Forward(face) => done.note(send(pending, now, upstream, *face, out)),
            other => ended |= run_other(pending, strategies, now, upstream, other, done, out),
        }
    }
    fairness::charge_copies(pending, upstream.ingress, done.sent);
    actions.clear();
    strategies.actions = actions;
    ended
}

/// Carries out one of the actions that are not the rule. Says whether the entry was given up.
#[cold]
fn run_other(
    pending: &mut Pending,
    strategies: &mut Strategies,
    now: Tick,
    upstream: &mut Upstream<'_>,
    action: &Action,
    done: &mut Done,
    out: &mut Outbox,
) -> bool {
    match *action {
        Action::Forward(face) => done.note(send(pending, now, upstream, face, out)),
        Action::Probe(face) => {
            let saved = (upstream.nonce, std::mem::take(&mut upstream.written));
            upstream.nonce = pending.rng.next_u32();
            done.note(send(pending, now, upstream, face, out));
            (upstream.nonce, upstream.written) = saved;
        }
        Action::ForwardNonDiscovery(face) => {
            let saved = std::mem::replace(&mut upstream.non_discovery, true);
            done.note(send(pending, now, upstream, face, out));
            upstream.non_discovery = saved;
        }
        Action::Nack(face, reason) => {
            let slot = upstream.slot;
            done.nacked += nack(pending, slot, upstream.interest, face, reason, out);
        }
        Action::NackAll(reason) => {
            let slot = upstream.slot;
            while let Some(face) = pending.pit.entry(slot).ins.last().map(|r| r.face) {
                done.nacked += nack(pending, slot, upstream.interest, face, reason, out);
            }
            return true;
        }
        Action::Reject(refusal) => {
            done.refusal = Some(refusal);
            return true;
        }
        Action::Hold(refusal) => done.refusal = Some(refusal),
        Action::Suppress => done.suppressed = true,
        Action::Linger(time) => done.linger = Some(time),
        Action::SetTimer(at) => pending.pit.set_timer(upstream.slot, at),
        Action::Learn(face, ref announcement) => {
            strategies.note(Event::Learn { face, announcement: announcement.clone() });
        }
        Action::Unlearn(face) => {
            let name = upstream.interest.name.to_name();
            strategies.note(Event::Unlearn { face, name });
        }
        Action::AttachAnnouncement => done.attach_announcement = true,
    }
    false
}

/// The outgoing Interest pipeline: hop limit, out-record, one copy.
pub(crate) fn send(
    pending: &mut Pending,
    now: Tick,
    upstream: &mut Upstream<'_>,
    face: FaceId,
    out: &mut Outbox,
) -> Asked {
    let Some(to) = emit::may_send_interest(pending, face, upstream.hop_limit) else {
        return Asked::Not;
    };
    if upstream.is_new && fairness::is_congested(pending, upstream.ingress, pending.faces.at(to)) {
        return Asked::Congested;
    }
    let lifetime_ms = upstream.interest.lifetime_or_default().min(pending.config.lifetime_max_ms);
    let slot = upstream.slot;
    let entry = pending.pit.entry_mut(slot);
    let (nonce, expiry) = (upstream.nonce, now.plus_ms(lifetime_ms));
    let mut sent = Sent::Again;
    let mark = if upstream.non_discovery { out_marks::NON_DISCOVERY } else { 0 };
    let known = if entry.outs.is_empty() { None } else { entry.out_record_mut(face) };
    match known {
        Some(r) => {
            (r.nonce, r.sent, r.expiry, r.nack) = (nonce, now, expiry, None);
            r.marks = r.marks & !out_marks::NON_DISCOVERY | mark;
        }
        None => {
            sent = Sent::First;
            entry.outs.push(OutRecord {
                face,
                nonce,
                sent: now,
                expiry,
                nack: None,
                interval_us: 0,
                deadline: Tick::NEVER,
                marks: mark,
            });
        }
    }
    let own = pending.config.originate_tokens.then(|| pending.own_token(slot));
    let bytes = upstream.write(out);
    let lp = || LpOut {
        pit_token: own.unwrap_or_default(),
        congestion_mark: upstream.congestion_mark,
        incoming_face: upstream.ingress.told(),
        non_discovery: upstream.non_discovery,
        ..LpOut::default()
    };
    emit::interest(pending, bytes, to, sent, lp, out);
    if face == FaceId::INTERNAL { Asked::Management } else { Asked::Upstream }
}

/// The outgoing Nack pipeline: needs an in-record, which it consumes.
pub(crate) fn nack(
    pending: &mut Pending,
    slot: u32,
    interest: &Interest<'_>,
    face: FaceId,
    reason: NackReason,
    out: &mut Outbox,
) -> u32 {
    let entry = pending.pit.entry_mut(slot);
    let Some(at) = entry.ins.iter().position(|r| r.face == face) else { return 0 };
    let record = entry.ins.remove(at);
    finalize::note_unsatisfied(pending, record.face);
    let (nonce, token) = (record.nonce, record.token);
    u32::from(emit::nack_point_to_point(pending, interest, nonce, face, token, reason, out))
}
