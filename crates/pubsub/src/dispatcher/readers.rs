//! How what is retained comes to applications of this node: as fast as each takes it (P-73).
//!
//! An application is told a window of octets at most that it has not taken. Where there is more for
//! it, the dispatcher remembers how far it is in each history and no publication: what comes is in
//! the history, and is told from there. What that forgets before its turn comes is told as missed.

use super::Dispatcher;
use super::retained::{Entry, Gap};
use super::source::{Holder, Source};
use super::terms::Terms;
use crate::data::names_above;
use crate::publication::{AppId, Event, Outbox};
use onym_wire::push::Id;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most histories in which an application lags, over all applications.
const LAGS_MAX: usize = 65_536;
/// Most subscriptions of one application that begin in one history while it lags there.
const PASSES_MAX: usize = 16;
/// What a publication takes in a queue beside identifier and payload, about.
const OVERHEAD: usize = 64;

/// The applications that were told what is retained, and how far they are.
#[derive(Debug)]
pub(super) struct Readers {
    /// Octets that one of them may not have taken.
    window: usize,
    apps: BTreeMap<AppId, Reader>,
    /// Histories in which they lag.
    lags: usize,
    /// Those for which publishers wait, by history (P-93).
    waited: BTreeSet<(Source, AppId)>,
}

#[derive(Debug, Default)]
struct Reader {
    /// Octets that it was told and may not have taken, and those of them behind the mark.
    told: usize,
    behind: usize,
    is_marked: bool,
    lags: BTreeMap<Source, Lag>,
    /// Those of items with a priority.
    urgent: BTreeSet<(u8, Source)>,
    /// A publisher waited for it in vain: none does until it has caught up in all histories.
    is_slow: bool,
}

impl Reader {
    fn remove(&mut self, source: &Source) -> Option<Lag> {
        let lag = self.lags.remove(source)?;
        if lag.priority > 0 {
            self.urgent.remove(&(lag.priority, source.clone()));
        }
        Some(lag)
    }

    /// The history that is told next: that of the item with the highest priority (P-83).
    fn pop(&mut self) -> Option<(Source, Lag)> {
        let Some((_, source)) = self.urgent.pop_last() else { return self.lags.pop_first() };
        let lag = self.lags.remove(&source)?;
        Some((source, lag))
    }
}

/// How far an application is in a history.
#[derive(Debug)]
struct Lag {
    priority: u8,
    at: u64,
    /// What was published from here on is new to it; what was before is for these subscriptions.
    since: u64,
    late: Vec<Id>,
    /// What subscriptions that came meanwhile get of what is before `at`; the last one first.
    passes: Vec<Pass>,
    /// It was told something.
    is_begun: bool,
    /// The publisher waits for it.
    is_waited: bool,
}

impl Lag {
    /// Of an application that had everything until now.
    fn beginning(at: u64, terms: Terms) -> Self {
        let Terms { priority, waits: is_waited, .. } = terms;
        let (late, passes) = (Vec::new(), Vec::new());
        Self { priority, at, since: at, late, passes, is_begun: true, is_waited }
    }

    /// Where the first publication stands that its application may still be told.
    fn needs(&self) -> u64 {
        self.passes.iter().map(|pass| pass.at).fold(self.at, u64::min)
    }
}

/// What a subscription gets of a history that its application was past.
#[derive(Debug)]
struct Pass {
    name: Id,
    at: u64,
    end: u64,
}

/// What came of a look at a history.
enum Step {
    Told(usize),
    Nothing,
    /// The application is at its end.
    End,
}

impl Readers {
    pub(super) const fn new(window: usize) -> Self {
        Self { window, apps: BTreeMap::new(), lags: 0, waited: BTreeSet::new() }
    }

    /// An application is gone; the histories in which it was waited for.
    pub(super) fn forget(&mut self, app: AppId) -> Vec<Source> {
        let waited = self.not_waited(app);
        if let Some(reader) = self.apps.remove(&app) {
            self.lags -= reader.lags.len();
        }
        waited
    }

    /// Where the first publication of a history stands that its publisher waits with.
    pub(super) fn slowest(&self, source: &Source) -> Option<u64> {
        self.waited_in(source).map(|(_, needs)| needs).min()
    }

    /// Nobody waits any more for those who are to be told what was before `first`; the histories in
    /// which they were waited for.
    pub(super) fn give_up(&mut self, source: &Source, first: u64) -> Vec<Source> {
        let slow = self.waited_in(source).filter(|(_, needs)| *needs < first);
        let slow: Vec<AppId> = slow.map(|(app, _)| app).collect();
        let mut waited = Vec::new();
        for app in slow {
            waited.extend(self.not_waited(app));
            if let Some(reader) = self.apps.get_mut(&app) {
                reader.is_slow = true;
            }
        }
        waited
    }

    /// Those for whom the publisher of a history waits, and what each needs of it.
    fn waited_in(&self, source: &Source) -> impl Iterator<Item = (AppId, u64)> {
        let [from, to] = [0, u64::MAX].map(|app| (source.clone(), AppId(app)));
        let apps = self.waited.range(from..=to).map(|(_, app)| *app);
        apps.filter_map(|app| Some((app, self.apps.get(&app)?.lags.get(source)?.needs())))
    }

    fn not_waited(&mut self, app: AppId) -> Vec<Source> {
        let lags = self.apps.get_mut(&app).map(|reader| &mut reader.lags);
        let waited = lags.into_iter().flatten().filter(|(_, lag)| lag.is_waited);
        let waited: Vec<Source> = waited
            .map(|(source, lag)| {
                lag.is_waited = false;
                source.clone()
            })
            .collect();
        for source in &waited {
            self.waited.remove(&(source.clone(), app));
        }
        waited
    }

    /// Histories in which an application lags, over all.
    pub(super) const fn lags(&self) -> usize {
        self.lags
    }

    pub(super) fn is_behind(&self, app: AppId, source: &Source) -> bool {
        self.lags > 0 && self.apps.get(&app).is_some_and(|r| r.lags.contains_key(source))
    }

    fn lag(&mut self, app: AppId, source: &Source, mut lag: Lag) {
        let reader = self.apps.entry(app).or_default();
        lag.is_waited &= !reader.is_slow;
        if lag.is_waited {
            self.waited.insert((source.clone(), app));
        }
        if lag.priority > 0 {
            reader.urgent.insert((lag.priority, source.clone()));
        }
        if reader.lags.insert(source.clone(), lag).is_none() {
            self.lags += 1;
        }
    }

    /// An application is at the end of a history, and lags there no more.
    fn caught_up(&mut self, app: AppId, source: &Source, lag: &Lag) {
        if lag.is_waited {
            self.waited.remove(&(source.clone(), app));
        }
        if let Some(reader) = self.apps.get_mut(&app) {
            reader.is_slow &= !reader.lags.is_empty();
        }
    }

    fn has_room(&self, app: AppId) -> bool {
        self.apps.get(&app).is_none_or(|reader| reader.told < self.window)
    }

    /// Counts what an application is told; from half a window on it is asked to say when it has
    /// taken that.
    fn note(&mut self, app: AppId, octets: usize, out: &mut Outbox) {
        let reader = self.apps.entry(app).or_default();
        reader.told += octets;
        if reader.is_marked {
            reader.behind += octets;
        } else if reader.told >= self.window / 2 {
            (reader.is_marked, reader.behind) = (true, 0);
            out.tell(app, Event::Mark);
        }
    }
}

impl Dispatcher {
    /// What is retained of items that `app` has just subscribed to by `name`.
    pub(super) fn tell_retained(&mut self, app: AppId, name: &Id, out: &mut Outbox) {
        if self.retained.is_empty() {
            return;
        }
        for source in self.retained.find(name) {
            let Some(history) = self.retained.get(&source) else { continue };
            let (first, end) = (history.start(), history.end());
            let Terms { priority, waits: is_waited, .. } = history.terms;
            if history.holder == Holder::App(app) {
                continue;
            }
            let known = self.readers.apps.get_mut(&app).and_then(|r| r.lags.get_mut(&source));
            if let Some(lag) = known {
                if lag.passes.len() < PASSES_MAX {
                    lag.passes.push(Pass { name: name.clone(), at: first, end: lag.at });
                    lag.late.push(name.clone());
                } else {
                    out.tell(app, Event::NoRoom(lag.at.saturating_sub(first)));
                }
            } else if self.readers.lags < LAGS_MAX {
                let (late, passes) = (vec![name.clone()], Vec::new());
                let (at, since, is_begun) = (first, end, false);
                let lag = Lag { priority, at, since, late, passes, is_begun, is_waited };
                self.readers.lag(app, &source, lag);
            } else if end > first {
                out.tell(app, Event::NoRoom(end - first));
            }
        }
        self.read_on(app, out);
    }

    /// An application has taken everything that it was told before its mark.
    pub(crate) fn took(&mut self, app: AppId, out: &mut Outbox) {
        let Some(reader) = self.readers.apps.get_mut(&app) else { return };
        (reader.is_marked, reader.told) = (false, std::mem::take(&mut reader.behind));
        let held = self.waits.held().filter(|source| reader.lags.contains_key(source));
        let held: Vec<Source> = held.cloned().collect();
        self.read_on(app, out);
        for source in held {
            self.look(&source, out);
        }
    }

    /// Tells an application as much as its window takes of the histories in which it lags.
    fn read_on(&mut self, app: AppId, out: &mut Outbox) {
        while self.readers.has_room(app) {
            let next = self.readers.apps.get_mut(&app).and_then(Reader::pop);
            let Some((source, mut lag)) = next else { break };
            self.readers.lags -= 1;
            if self.read(app, &source, &mut lag, out) {
                self.readers.caught_up(app, &source, &lag);
            } else {
                self.readers.lag(app, &source, lag);
            }
        }
    }

    /// Reads one history until its end or that of the window; whether it was the former.
    fn read(&mut self, app: AppId, source: &Source, lag: &mut Lag, out: &mut Outbox) -> bool {
        while self.readers.has_room(app) {
            match self.step(app, source, lag, out) {
                Step::Told(octets) => self.readers.note(app, octets, out),
                Step::Nothing => {}
                Step::End => return true,
            }
        }
        false
    }

    /// Tells an application all of a history that is about to go, or that does not have what comes
    /// next: its queue has room or it hears what it missed.
    pub(super) fn finish(&mut self, app: AppId, source: &Source, out: &mut Outbox) {
        let lag = self.readers.apps.get_mut(&app).and_then(|r| r.remove(source));
        let Some(mut lag) = lag else { return };
        self.readers.lags -= 1;
        self.readers.caught_up(app, source, &lag);
        loop {
            match self.step(app, source, &mut lag, out) {
                Step::Told(octets) => self.readers.note(app, octets, out),
                Step::Nothing => {}
                Step::End => return,
            }
        }
    }

    /// As [`Self::finish`], for all applications.
    pub(super) fn finish_all(&mut self, source: &Source, out: &mut Outbox) {
        if self.readers.lags == 0 {
            return;
        }
        let apps = self.readers.apps.iter().filter(|(_, r)| r.lags.contains_key(source));
        for app in apps.map(|(app, _)| *app).collect::<Vec<_>>() {
            self.finish(app, source, out);
        }
    }

    /// Looks at the next publication of a history, and tells it where the application wants it.
    fn step(&mut self, app: AppId, source: &Source, lag: &mut Lag, out: &mut Outbox) -> Step {
        let Some(history) = self.retained.get(source) else { return Step::End };
        let popped = history.popped();
        if let Some(pass) = lag.passes.last_mut() {
            let at = pass.at.max(popped);
            pass.at = at + 1;
            let name = [pass.name.clone()];
            let entry = history.entry(at).filter(|_| at < pass.end).cloned();
            let Some(entry) = entry else {
                lag.passes.pop();
                return Step::Nothing;
            };
            return self.tell_entry(app, source, &entry, Some(&name), lag, out);
        }
        // What it never had is not missed before it began.
        let from = if lag.is_begun { lag.at } else { lag.at.max(lag.since.min(popped)) };
        if popped > from {
            out.tell(app, Event::NoRoom(popped - from));
        }
        lag.at = lag.at.max(popped);
        let Some(entry) = history.entry(lag.at).cloned() else {
            let Gap { missed, is_untold } = history.gap;
            if missed > 0 && (lag.is_begun || is_untold) {
                out.tell(app, Event::Missed(missed));
                self.retained.note_told(source, 0);
            }
            return Step::End;
        };
        let is_late = lag.at < lag.since;
        lag.at += 1;
        let late = std::mem::take(&mut lag.late);
        let step = self.tell_entry(app, source, &entry, is_late.then_some(&late[..]), lag, out);
        lag.late = late;
        step
    }

    fn tell_entry(
        &mut self,
        app: AppId,
        source: &Source,
        entry: &Entry,
        late: Option<&[Id]>,
        lag: &mut Lag,
        out: &mut Outbox,
    ) -> Step {
        let Some(id) = self.wanted(app, source, entry, late) else { return Step::Nothing };
        // In its place; what was before the first one is nobody's loss, once it was told.
        let Gap { missed, is_untold } = entry.gap;
        if missed > 0 && (lag.is_begun || is_untold) {
            out.tell(app, Event::Missed(missed));
        }
        lag.is_begun = true;
        let octets = octets(&id, &entry.payload);
        out.tell(app, Event::Data { id, payload: Arc::clone(&entry.payload), came_by: None });
        self.retained.note_told(source, late.is_some().into());
        self.counters.delivered += 1;
        Step::Told(octets)
    }

    /// The name by which `app` wants a publication; none for one that it had: which other
    /// subscriptions than these `late` ones brought it.
    fn wanted(
        &self,
        app: AppId,
        source: &Source,
        entry: &Entry,
        late: Option<&[Id]>,
    ) -> Option<Id> {
        let ids = match (source, entry.ids.first()) {
            (Source::Own(_), Some(id)) => self.way_of_item(id).map(|way| way.ids),
            _ => None,
        };
        let mut found = None;
        for id in ids.as_deref().unwrap_or(&entry.ids) {
            for name in names_above(id, false) {
                let of = self.subscriptions.get(name);
                if !of.is_some_and(|s| s.subscribers.contains(&app)) {
                    continue;
                }
                if late.is_some_and(|late| late.iter().all(|late| late.octets() != name)) {
                    return None;
                }
                found.get_or_insert(id);
            }
        }
        found.cloned()
    }

    /// Hands a publication of a history, if it is of one, out to who subscribed to one of its names,
    /// now or when each comes to it; how many that are.
    pub(super) fn tell_data(
        &mut self,
        source: Option<&Source>,
        ids: &[Id],
        payload: &Arc<[u8]>,
        except: Option<AppId>,
        out: &mut Outbox,
    ) -> usize {
        let history = source.and_then(|source| self.retained.get(source));
        // None: it found no room in the history.
        let history = history.filter(|history| history.ends_with(payload));
        let last = history.map(|history| (history.end() - 1, history.terms));
        let who = self.who(ids, except, None);
        let count = who.len();
        for (app, id) in who {
            match (source, last) {
                (Some(source), Some((at, terms))) => {
                    if self.readers.is_behind(app, source) {
                        continue;
                    }
                    if !self.readers.has_room(app) && self.readers.lags < LAGS_MAX {
                        self.readers.lag(app, source, Lag::beginning(at, terms));
                        continue;
                    }
                }
                (Some(source), None) => self.finish(app, source, out),
                (None, _) => {}
            }
            self.readers_told(app, &id, payload, out);
        }
        count
    }

    fn readers_told(&mut self, app: AppId, id: &Id, payload: &Arc<[u8]>, out: &mut Outbox) {
        let (id, payload, came_by) = (id.clone(), Arc::clone(payload), None);
        let octets = octets(&id, &payload);
        out.tell(app, Event::Data { id, payload, came_by });
        self.counters.delivered += 1;
        self.readers.note(app, octets, out);
    }
}

fn octets(id: &Id, payload: &[u8]) -> usize {
    id.octets().len() + payload.len() + OVERHEAD
}
