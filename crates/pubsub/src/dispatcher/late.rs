//! Late subscribers: they get what is retained of an item before what is new (section 5.4).
//!
//! Publications of a retained item go through the control plane, at the node of its publisher and
//! at those of its subscribers. One place therefore knows who got what, and its messages to an
//! application are in order with the answers to that application's requests.

use super::data::Prepared;
use super::retained::Came;
use super::source::{Holder, Source};
use super::terms::Terms;
use super::{Dispatcher, Origin};
use crate::data::{Aliases, Data, Handout, Keep, Place, Published, Refusal, Told, names_above};
use crate::fib::Delta;
use crate::names::Key;
use crate::publication::{AppId, Event, Outbox, Target};
use onym_tables::Tick;
use onym_wire::push::{Control, Id, Kind, RouteBuf, Status, Strategy};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Time after which the last publication is sent once more to who came: no later one tells who got
/// none of them that they are lost.
const AGAIN: Duration = Duration::from_millis(500);
/// So many wait for that; of more it is left out.
const AGAIN_MAX: usize = 1024;

/// Most histories that are on their way to other nodes; who comes when there are as many gets what is
/// new, and is told that it missed the rest.
const REPLAYS_MAX: usize = 1024;
/// What a frame takes beside the payload, about.
const FRAME: usize = 64;

/// A history on its way to late subscribers at other nodes: what of it left, and no publication.
#[derive(Debug)]
pub(super) struct Replay {
    item: Id,
    stream: u64,
    /// The next entry, and the one that came when it began: from there on everybody gets it.
    at: u64,
    end: u64,
    pub(super) route: RouteBuf,
}

/// A late subscriber at another node.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) due: Tick,
    item: Id,
    route: RouteBuf,
}

impl Dispatcher {
    /// From now on the last publications of an item that `app` publishes are retained, as `keep`
    /// says. Its status comes as an event with `tag`.
    pub(crate) fn retain(
        &mut self,
        now: Tick,
        app: AppId,
        tag: u64,
        id: &Id,
        keep: Keep,
        out: &mut Outbox,
    ) {
        if keep.count == 0 {
            self.end_retained(now, id, app, out);
        }
        let status = self.retain_for(app, id, keep, out);
        out.tell(app, Event::Status { tag, status });
    }

    fn retain_for(&mut self, app: AppId, id: &Id, keep: Keep, out: &mut Outbox) -> Status {
        let Some((key, entry)) = self.publications.entry(id).filter(|(_, p)| !p.is_scope) else {
            return Status::NO_ITEM;
        };
        let key = key.clone();
        let Some(at) = entry.publishers.iter().position(|p| p.app == app) else {
            return Status::NOT_THERE;
        };
        let Some(mut terms) = Terms::wanted(keep) else { return Status::FULL };
        terms.waits &= !self.config.hold.is_zero();
        let before = std::mem::replace(&mut entry.publishers[at].terms, terms);
        self.keeps = true;
        if at == 0 && !self.open_first(&key, out) {
            if let Some(entry) = self.publications.get_mut(&key) {
                entry.publishers[at].terms = before;
            }
            return Status::FULL;
        }
        Status::OK
    }

    /// Another application may be the first publisher of an item now, or none.
    pub(super) fn open_next(&mut self, key: &Key, out: &mut Outbox) {
        let first = self.publications.get(key).and_then(|entry| entry.publishers.first());
        if self.retained.is_empty() && first.is_none_or(|first| first.terms.depth == 0) {
            return;
        }
        if !self.open_first(key, out) {
            // No room: it is not retained.
            self.end_history(&Source::Own(Id::clone(key)), out);
        }
    }

    /// What the first publisher of an item wants to be retained of it is; whether there is room.
    fn open_first(&mut self, key: &Key, out: &mut Outbox) -> bool {
        let source = Source::Own(Id::clone(key));
        let entry = self.publications.get_mut(key);
        let wants =
            entry.and_then(|entry| Some((entry.aliases.clone(), entry.publishers.first_mut()?)));
        let Some((aliases, first)) = wants else {
            self.end_history(&source, out);
            return true;
        };
        if first.terms.depth == 0 {
            if std::mem::take(&mut first.is_open) {
                out.delta(Delta::Retains(key.clone(), first.app, false));
            }
            self.end_history(&source, out);
            return true;
        }
        if !self.retained.open(key, first.app, first.terms) {
            first.terms.depth = 0;
            return false;
        }
        self.retained.name(&source, &aliases);
        (first.is_installed, first.is_open) = (true, true);
        out.delta(Delta::Retains(key.clone(), first.app, true));
        self.look(&source, out);
        true
    }

    /// Nothing is retained any more of what `app` published of an item, and the nodes of subscribers
    /// hear it.
    pub(super) fn end_retained(&mut self, now: Tick, item: &Id, app: AppId, out: &mut Outbox) {
        if self.retained.is_empty() {
            return;
        }
        let source = Source::Own(item.clone());
        let history = self.retained.get(&source).filter(|h| h.holder == Holder::App(app));
        let Some(history) = history else { return };
        let place = Place::Reached(history.stream, history.next());
        let told = Told { depth: 0, lifetime_ms: 0, ..history.told() };
        let told = Told { first: history.next(), ..told };
        self.end_history(&source, out);
        let shard = app.shard(self.config.shards);
        let number = self.taken.get(usize::from(shard)).map_or(0, |taken| taken + 1);
        self.say_reached(now, item, place, Some(told), Origin { shard, number }, out);
    }

    /// Retains a publication, sends it to other nodes, and hands it out here.
    ///
    /// # Errors
    /// [`Refusal`]; then nobody gets anything.
    pub(super) fn publish_retained(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        place: Place,
        origin: Origin,
        out: &mut Outbox,
    ) -> Result<Published, Refusal> {
        let Some(mut way) = self.way_of_item(&data.id) else { return Ok(Published::default()) };
        let payload: Arc<[u8]> = data.payload.into();
        let mut ids = Aliases::from_elem(data.id.clone(), 1);
        ids.extend(way.ids.iter().filter(|id| **id != data.id).cloned());
        let source = self.retained.own(&data.id);
        let mut is_over = false;
        if let (Some(source), Place::Number(_, number)) = (&source, place) {
            let payload = Arc::clone(&payload);
            let told = self.retained.push(now, source, place, ids.clone(), payload);
            way.retained = told.map(|(told, _)| as_told(data.strategy, told, number));
            is_over = told.is_some_and(|(_, is_over)| is_over);
        }
        let mut frames = 0;
        if data.strategy != Strategy::NODE_LOCAL {
            match self.send(now, data, place, way, origin, out) {
                Ok(sent) => frames = sent,
                Err(refusal) => {
                    source.iter().for_each(|source| self.retained.unpush(source));
                    return Err(refusal);
                }
            }
        }
        self.counters.sent += u64::from(frames > 0);
        let local = self.tell_data(source.as_ref(), &ids, &payload, Some(app), out);
        if let Some(source) = source.filter(|_| is_over) {
            self.wait_for_readers(now, &source, out);
        }
        Ok(Published { frames, local, handout: None })
    }

    /// Forgets a history, when those who are still to hear of it were told.
    fn end_history(&mut self, source: &Source, out: &mut Outbox) {
        self.finish_all(source, out);
        self.retained.remove(source);
        self.look(source, out);
    }

    /// What word of how far an item is says of what is retained of it.
    pub(super) fn reached_of(&self, id: &Id, place: Place) -> Option<Told> {
        let Place::Reached(_, next) = place else { return None };
        let strategy = self.publications.get(id).map(|p| p.strategy)?;
        self.told_of(id).map(|told| as_told(strategy, Told { lifetime_ms: 0, ..told }, next))
    }

    /// What the frames of an item say of what is retained of it.
    fn told_of(&self, id: &Id) -> Option<Told> {
        if self.retained.is_empty() {
            return None;
        }
        let source = self.retained.own(id)?;
        self.retained.get(&source).map(|history| history.told())
    }

    /// What is retained of an item of this node.
    pub(super) fn retained_of(&self, id: &Id) -> Option<super::HistoryView> {
        self.retained.get(&Source::Own(id.clone())).map(|history| history.view())
    }

    /// What is retained, for the status.
    #[must_use]
    pub fn retained(&self) -> super::RetainedView {
        let (lagging, replays) = (self.readers.lags(), self.repair.replays());
        let (waiting, in_vain) = (self.waits.held().count(), self.waits.in_vain);
        super::RetainedView { lagging, replays, waiting, in_vain, ..self.retained.view() }
    }

    /// Whether lanes to shards have no room: then no history goes on.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Items were started, or have another way: what is retained of them goes to who came.
    pub(super) fn replay(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        if self.retained.is_empty() {
            return;
        }
        let is_start = message.kind == Kind::START;
        let route = if is_start { &message.route } else { &message.late };
        let names = &message.ids;
        for id in names {
            let source = Source::Own(id.clone());
            if self.retained.get(&source).is_none() {
                continue;
            }
            self.retained.name(&source, names);
            let Some(route) = route else { continue };
            self.replay_from(now, id, 0, route, out);
            if self.again.len() < AGAIN_MAX {
                let (due, route) = (now + AGAIN, route.clone());
                self.again.push_back(Again { due, item: id.clone(), route });
            }
        }
    }

    /// Sends what is retained of an item once more, by `route`, from the entry that stands at `at`
    /// on, behind everything that its shard passed until now.
    fn replay_from(&mut self, now: Tick, item: &Id, at: u64, route: &RouteBuf, out: &mut Outbox) {
        let source = Source::Own(item.clone());
        let Some(history) = self.retained.get(&source) else { return };
        let Holder::App(app) = history.holder else { return };
        if self.repair.replays() >= REPLAYS_MAX {
            self.retained.unsent += history.end().saturating_sub(at);
            return;
        }
        let shard = app.shard(self.config.shards);
        let number = self.taken.get(usize::from(shard)).map_or(0, |taken| taken + 1);
        let (stream, end) = (history.stream, history.end());
        let replay = Replay { item: item.clone(), stream, at, end, route: route.clone() };
        self.repair.keep_replay(Origin { shard, number }, replay);
        self.portion(now, out);
    }

    /// The next publication of the history that is next leaves; whether one did, or the history is at
    /// its end.
    pub(super) fn replay_one(&mut self, now: Tick, out: &mut Outbox) -> bool {
        if self.is_full {
            return false;
        }
        let Some((origin, mut replay)) = self.repair.take_replay() else { return false };
        let source = Source::Own(replay.item.clone());
        let history = self.retained.get(&source).filter(|h| h.stream == replay.stream);
        let found = history.and_then(|history| {
            replay.at = replay.at.max(history.start());
            let is_left = replay.at < replay.end;
            let entry = history.entry(replay.at).filter(|_| is_left)?.clone();
            let ahead = u32::try_from(replay.at - history.popped()).ok()?;
            let told = Told { lifetime_ms: entry.left_ms(now), ..history.told() };
            Some((entry, history.first.wrapping_add(ahead), told))
        });
        let Some((entry, number, told)) = found else {
            self.repair.give_replay(None, None);
            return true;
        };
        replay.at += 1;
        self.retained.replayed += 1;
        let mut before = None;
        if let Some(id) = entry.ids.first()
            && let Some(mut way) = self.way_of_item(id)
        {
            let strategy =
                self.publications.get(&replay.item).map_or(Strategy::DOMAIN_LOCAL, |p| p.strategy);
            (way.target, way.retained) = (Some(Target::Route(replay.route.clone())), Some(told));
            let data = Data::new(id.clone(), strategy, &entry.payload);
            // What could be sent once can be sent again.
            match self.prepare(&data, Place::Number(replay.stream, number), way) {
                Ok(Prepared::Whole(mut publication)) => {
                    publication.by = Some(origin.shard);
                    self.repair.note_sent(entry.payload.len() + FRAME);
                    out.publish(publication);
                }
                Ok(Prepared::Long(mut publication, item, reply)) => {
                    publication.by = Some(origin.shard);
                    before = self.cut_up(publication, item, reply, &entry.payload, origin).ok();
                }
                Ok(Prepared::Nowhere | Prepared::Kept(..)) | Err(_) => {}
            }
        }
        self.repair.give_replay(Some(replay), before);
        true
    }

    /// What is due to be sent once more: the last publication, where it is short; a long one is
    /// repaired.
    pub(super) fn late_again(&mut self, now: Tick, out: &mut Outbox) {
        while self.again.front().is_some_and(|again| again.due <= now) {
            let Some(again) = self.again.pop_front() else { return };
            let source = Source::Own(again.item.clone());
            let Some(history) = self.retained.get(&source) else { continue };
            let last = history.end().saturating_sub(1);
            let Some(entry) = history.entries.back() else { continue };
            if entry.payload.len() < self.config.frame_max / 2 {
                self.replay_from(now, &again.item, last, &again.route, out);
            }
        }
    }

    /// Tells of each item of which nothing came in time: its publisher, and who has all that came.
    pub(super) fn tell_overdue(&mut self, now: Tick, out: &mut Outbox) {
        while let Some(source) = self.retained.promises.broken(now) {
            let Some(history) = self.retained.get(&source) else { continue };
            let Some(within) = history.terms.deadline else { continue };
            let publisher = match (history.holder, &source) {
                (Holder::App(app), Source::Own(item)) => Some((app, item.clone())),
                _ => None,
            };
            let except = publisher.as_ref().map(|(app, _)| *app);
            let names = self.retained.names(&source);
            let who = self.who(&names, except, Some(&source));
            for (app, id) in publisher.into_iter().chain(who) {
                out.tell(app, Event::Overdue { id, within });
            }
        }
    }

    /// A publication of an item of which its publisher's node retains the last ones came, in its
    /// place, or will not come.
    pub(super) fn retained_came(
        &mut self,
        now: Tick,
        handout: Handout,
        told: Told,
        out: &mut Outbox,
    ) {
        let Handout { ids, payload, place, .. } = handout;
        if !self.is_wanted(&ids, false) {
            self.counters.unwanted += 1;
            return;
        }
        let (stream, number, came) = match place {
            Place::Number(stream, number) if payload.is_some() => {
                (stream, number, Came::Publication)
            }
            Place::Number(stream, number) => (stream, number.wrapping_add(1), Came::Word),
            Place::Reached(stream, number) => (stream, number, Came::Word),
            Place::None => {
                self.counters.malformed += 1;
                return;
            }
        };
        let is_publication = came == Came::Publication;
        self.keeps = true;
        let source = Source::Stream(stream);
        if self.retained.get(&source).is_none() {
            // Another stream begins: that is the end of those before (P-69).
            let before: Vec<_> = ids.iter().flat_map(|id| self.retained.find(id)).collect();
            for stream in before.iter().filter(|source| matches!(source, Source::Stream(_))) {
                self.finish_all(stream, out);
            }
        }
        let noted = self.retained.note(stream, number, came, told, &ids);
        let (missed, is_new) = noted.unwrap_or((0, is_publication));
        if missed > 0 {
            self.counters.missing += u64::from(missed);
            let who = self.who(&ids, None, Some(&source));
            let count = who.len();
            who.into_iter().for_each(|(app, _)| out.tell(app, Event::Missed(missed.into())));
            self.retained.note_gap(stream, missed.into(), count);
        }
        if told.depth == 0 {
            // Not any more.
            return self.end_history(&Source::Stream(stream), out);
        }
        match payload {
            Some(payload) if is_new => {
                if noted.is_some() {
                    let payload = Arc::clone(&payload);
                    self.retained.keep(now, stream, ids[..].into(), payload, told.lifetime_ms);
                }
                self.tell_data(Some(&source), &ids, &payload, None, out);
            }
            Some(_) if is_publication => self.counters.duplicates += 1,
            _ => {}
        }
    }

    /// Who subscribed to one of these names, and by which; not those who are behind in a history.
    pub(super) fn who(
        &self,
        ids: &[Id],
        except: Option<AppId>,
        behind: Option<&Source>,
    ) -> Vec<(AppId, Id)> {
        let (mut seen, mut who) = (BTreeSet::new(), Vec::new());
        for id in ids {
            for name in names_above(id, false) {
                let Some(of) = self.subscriptions.get(name) else { continue };
                for app in of.subscribers.iter().filter(|app| Some(**app) != except) {
                    let is_behind = behind.is_some_and(|of| self.readers.is_behind(*app, of));
                    if !is_behind && seen.insert(*app) {
                        who.push((*app, id.clone()));
                    }
                }
            }
        }
        who
    }

    /// Nobody here has the subscription `name` any more: what came for it alone is forgotten, and
    /// comes again when somebody subscribes.
    pub(super) fn forget_unwanted(&mut self, name: &Id) {
        if self.retained.is_empty() {
            return;
        }
        for source in self.retained.find(name) {
            let names = self.retained.names(&source);
            if matches!(source, Source::Stream(_)) && !self.is_wanted(&names, false) {
                self.retained.remove(&source);
            }
        }
    }
}

/// What a frame that all get says of what is retained. In other domains nobody got that before, so
/// nobody there is to miss it.
fn as_told(strategy: Strategy, told: Told, number: u32) -> Told {
    Told { first: if strategy == Strategy::INTER_DOMAIN { number } else { told.first }, ..told }
}
