//! What leaves behind what did not leave yet, as fast as receivers take it: long publications, which
//! are kept for repair, short ones behind them, and histories (section 5.1, P-73).

use super::Origin;
use super::answer::{Answer, fragment_id};
use super::late::Replay;
use super::pace::Pace;
use crate::publication::{Mark, Outbox, Publication, Target};
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Id, Strategy};
use std::collections::VecDeque;
use std::time::Duration;

/// Publications of the cache that were sent and may be asked for, in whole or in part, when one more
/// is asked for in part.
const HOLES_MAX: usize = 256;

/// Bounds of fragmentation.
#[derive(Debug, Clone, Copy)]
pub struct FragmentLimits {
    /// Most publications that are put together at once.
    pub publications_max: usize,
    /// Most octets of publications that are put together, and of those kept for repair.
    pub octets_max: usize,
    /// Time for which a publication is kept for repair after it was sent or asked for.
    pub keep: Duration,
}

impl Default for FragmentLimits {
    fn default() -> Self {
        Self { publications_max: 64, octets_max: 64 << 20, keep: Duration::from_secs(10) }
    }
}

/// A publication that may be asked for again, or one that fits a frame and waits behind such.
#[derive(Debug)]
pub(super) struct Kept {
    /// Who passed it.
    pub(super) origin: Origin,
    /// It fits a frame and is not kept when it has left.
    pub(super) is_whole: bool,
    /// Without label of the fragment and payload.
    pub(super) publication: Publication,
    pub(super) scope: Id,
    pub(super) payload: Vec<u8>,
    pub(super) piece: usize,
    /// It is forgotten then; never before it was sent whole.
    pub(super) until: Tick,
    /// The first fragment that was not sent yet.
    pub(super) next: u32,
    /// When fragments were repeated last.
    pub(super) repeated: KeyedMap<u32, Tick>,
    /// It is no publication: those of a history leave here.
    pub(super) replay: Option<Box<Replay>>,
    /// A cache has its fragments.
    pub(super) answer: Option<Answer>,
}

impl Kept {
    /// What leaves as it is, when its turn comes.
    pub(super) fn whole(origin: Origin, publication: Publication, payload: Vec<u8>) -> Self {
        Self {
            origin,
            is_whole: true,
            publication,
            scope: Id::default(),
            piece: payload.len(),
            payload,
            until: Tick::NEVER,
            next: 0,
            repeated: KeyedMap::default(),
            replay: None,
            answer: None,
        }
    }

    pub(super) fn count(&self) -> u32 {
        if self.is_whole {
            return 1;
        }
        if let Some(answer) = &self.answer {
            return answer.count;
        }
        u32::try_from(self.payload.len().div_ceil(self.piece)).unwrap_or(u32::MAX)
    }

    /// What leaves next as fragment `index`.
    fn take(&mut self, index: u32) -> Option<Publication> {
        if !self.is_whole {
            return self.fragment(index);
        }
        let payload = std::mem::take(&mut self.payload);
        Some(Publication { payload, ..self.publication.clone() })
    }

    pub(super) fn fragment(&self, index: u32) -> Option<Publication> {
        if let Some(answer) = &self.answer {
            return answer.fragment(index, &self.publication);
        }
        let start = usize::try_from(index).ok()?.checked_mul(self.piece)?;
        let end = (start + self.piece).min(self.payload.len());
        let payload = self.payload.get(start..end)?.to_vec();
        let mut ids = vec![fragment_id(&self.scope, self.count(), index)];
        ids.extend_from_slice(&self.publication.ids);
        Some(Publication { ids, payload, ..self.publication.clone() })
    }
}

/// Publications that are sent and kept for repair, the oldest first.
#[derive(Debug)]
pub(super) struct Repair {
    pub(super) limits: FragmentLimits,
    pub(super) kept: VecDeque<Kept>,
    pub(super) octets: usize,
    /// Octets of those that were not sent whole yet: the last ones of `kept`.
    pub(super) unsent: usize,
    /// Those of them that are histories.
    pub(super) replays: usize,
    pub(super) pace: Pace,
}

impl Repair {
    pub(super) fn new(limits: FragmentLimits) -> Self {
        Self {
            limits,
            kept: VecDeque::new(),
            octets: 0,
            unsent: 0,
            replays: 0,
            pace: Pace::default(),
        }
    }

    pub(super) fn keep(&mut self, kept: Kept) {
        self.octets += kept.payload.len();
        self.unsent += kept.payload.len();
        self.replays += usize::from(kept.replay.is_some());
        self.kept.push_back(kept);
        while self.octets > self.limits.octets_max
            && self.kept.front().is_some_and(|k| k.until != Tick::NEVER)
        {
            self.drop_oldest();
        }
    }

    /// Whether something was not sent whole yet.
    pub(super) fn has_unsent(&self) -> bool {
        self.kept.back().is_some_and(|kept| kept.until == Tick::NEVER)
    }

    /// Where those begin that were not sent whole: what was is kept for seconds, many thousands of
    /// short ones.
    fn first_unsent(&self) -> usize {
        self.kept.partition_point(|kept| kept.until != Tick::NEVER)
    }

    /// The first thing that this shard passed and that was not sent whole.
    pub(super) fn waiting(&self, shard: u16) -> Option<u64> {
        if !self.has_unsent() {
            return None;
        }
        let mut unsent = self.kept.range(self.first_unsent()..);
        unsent.find(|kept| kept.origin.shard == shard).map(|kept| kept.origin.number)
    }

    /// The fragments that may leave now; whether a history is next.
    pub(super) fn portion(&mut self, now: Tick, out: &mut Outbox) -> bool {
        if !self.has_unsent() {
            return false;
        }
        for kept in self.kept.range_mut(self.first_unsent()..) {
            if kept.replay.is_some() {
                return self.pace.room(now) > 0;
            }
            let len = kept.payload.len();
            while kept.next < kept.count() {
                if self.pace.room(now) == 0 {
                    return false;
                }
                let Some(fragment) = kept.take(kept.next) else { break };
                self.pace.take(fragment.payload.len());
                kept.next += 1;
                out.publish(fragment);
            }
            kept.until = if kept.is_whole { now } else { now + self.limits.keep };
            self.unsent -= len;
            self.octets -= if kept.is_whole { len } else { 0 };
        }
        self.expire(now);
        false
    }

    /// What is sent or kept for repair, of what a cache answers with.
    pub(super) fn answers(&self) -> impl Iterator<Item = (&Kept, &Answer)> {
        self.kept.iter().filter_map(|kept| Some((kept, kept.answer.as_ref()?)))
    }

    /// Keeps what of a cache is sent in parts, as they are asked for, or gives it a new way where it is
    /// kept already; of the oldest ones nobody knows any more what was sent just now.
    pub(super) fn keep_for_holes(&mut self, now: Tick, mut kept: Kept) {
        let Some(Answer { to, .. }) = kept.answer else { return };
        let is_same =
            |k: &&mut Kept| k.scope == kept.scope && k.answer.as_ref().is_some_and(|a| a.to == to);
        if let Some(known) = self.kept.iter_mut().find(is_same) {
            known.publication = kept.publication;
            return;
        }
        let is_old = |k: &Kept| k.answer.is_some() && k.until != Tick::NEVER;
        while self.kept.iter().filter(|k| is_old(k)).count() >= HOLES_MAX {
            if let Some(at) = self.kept.iter().position(is_old) {
                self.kept.remove(at);
            }
        }
        (kept.next, kept.until) = (kept.count(), now + self.limits.keep);
        self.kept.insert(self.first_unsent(), kept);
    }

    /// Histories that are on their way.
    pub(super) const fn replays(&self) -> usize {
        self.replays
    }

    /// Has a history leave behind what was not sent yet.
    pub(super) fn keep_replay(&mut self, origin: Origin, replay: Replay) {
        let Replay { route, .. } = &replay;
        let publication = Publication {
            target: Target::Route(route.clone()),
            strategy: Strategy::DOMAIN_LOCAL,
            hop_limit: 0,
            by: None,
            ids: Vec::new(),
            options: Vec::new(),
            payload: Vec::new(),
            mark: Mark::default(),
        };
        let replay = Some(Box::new(replay));
        self.keep(Kept { replay, ..Kept::whole(origin, publication, Vec::new()) });
    }

    /// Takes the history that is next, for as long as it says what leaves.
    pub(super) fn take_replay(&mut self) -> Option<(Origin, Box<Replay>)> {
        let first = self.first_unsent();
        let kept = self.kept.get_mut(first)?;
        Some((kept.origin, kept.replay.take()?))
    }

    /// Puts it back, behind a publication of it that is cut; `None`: it is at its end.
    pub(super) fn give_replay(&mut self, replay: Option<Box<Replay>>, before: Option<Kept>) {
        let first = self.first_unsent();
        match (replay, self.kept.get_mut(first)) {
            (Some(replay), Some(kept)) => kept.replay = Some(replay),
            _ => {
                self.kept.remove(first);
                self.replays -= 1;
            }
        }
        if let Some(kept) = before {
            self.octets += kept.payload.len();
            self.unsent += kept.payload.len();
            self.kept.insert(first, kept);
        }
    }

    /// Counts what left beside this.
    pub(super) fn note_sent(&mut self, octets: usize) {
        self.pace.take(octets);
    }

    fn drop_oldest(&mut self) {
        if let Some(kept) = self.kept.pop_front() {
            self.octets -= kept.payload.len();
        }
    }

    pub(super) fn expire(&mut self, now: Tick) {
        while self.kept.front().is_some_and(|k| k.until <= now) {
            self.drop_oldest();
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Tick> {
        let portion = self.has_unsent().then(|| self.pace.next());
        portion.or_else(|| self.kept.front().map(|k| k.until))
    }

    /// Whether so much waits to be sent that applications had better wait.
    pub(super) fn is_backlogged(&self) -> bool {
        self.unsent > self.limits.octets_max / 2
    }
}
