//! What caches answer with (P-87 to P-89): a late subscriber is told what the cache of its own node
//! holds, and asks a topology manager, which knows the nearest cache of another node and has that
//! send it.

use super::answer::Answer;
use super::cache::{Holder, Piece, Sender, Whole};
use super::repair::Kept;
use super::request::Waiting;
use super::{Dispatcher, Origin};
use crate::data::names_above;
use crate::publication::{AppId, Event, Mark, Outbox, Publication, Target, responsible};
use onym_tables::{FaceId, KeyedMap, Tick};
use onym_wire::push::{Control, Flags, Frame, Id, Kind, Label, Role, RouteBuf, Strategy, reserved};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Most answers to other nodes that are on their way, and most of them to one.
pub const ANSWERS_MAX: usize = 64;
const ANSWERS_TO_ONE: usize = 16;
/// Most publications that one subscriber is told at once.
const TOLD_MAX: usize = 64;
/// A publication is not sent again to a node that got it so recently.
const AGAIN: Duration = Duration::from_secs(1);
/// Names in one message.
const NAMES: usize = 32;
/// Times after a subscription at which caches are asked, unless one answered.
const ASKS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(300), Duration::from_millis(2700)];
/// Most subscriptions for which they are asked; others are asked for once.
const ASKS_MAX: usize = 1024;

/// A late subscriber, and the way to it.
#[derive(Debug, Clone, Copy)]
struct Toward<'a> {
    node: Label,
    route: &'a RouteBuf,
    hop_limit: u8,
}

/// What caches of other nodes are asked for.
#[derive(Debug, Default)]
pub(super) struct Asks {
    /// Some node holds something: without that nobody is asked.
    pub(super) are_known: bool,
    /// Names with what is due, and how often they were asked for.
    waiting: VecDeque<(Tick, Id, usize)>,
}

impl Asks {
    pub(super) fn next_timeout(&self) -> Option<Tick> {
        self.waiting.iter().map(|(due, ..)| *due).min()
    }

    /// A cache answers with an item of these names: who asked for that does not ask again.
    pub(super) fn answered(&mut self, names: &[Id], flags: Flags) {
        if flags.is_cached() {
            let is_it = |name: &Id| {
                names.iter().any(|id| names_above(id, false).any(|above| above == name.octets()))
            };
            self.waiting.retain(|(_, name, _)| !is_it(name));
        }
    }
}

impl Dispatcher {
    /// A fragment that is only on its way to others.
    pub(crate) fn keep_passing(
        &mut self,
        now: Tick,
        frame: &Frame<'_>,
        face: FaceId,
        flags: Flags,
    ) {
        let ids: Vec<Id> = frame.ids.map(Id::from_labels).collect();
        let is_free = ids.iter().filter_map(Id::first).all(|root| !reserved::is_reserved(root));
        if is_free && frame.strategy == Strategy::ALGORITHMIC_DOMAIN {
            self.keep_piece(now, &ids, frame, face, flags);
        }
    }

    /// Keeps a fragment that caches may keep.
    pub(super) fn keep_piece(
        &mut self,
        now: Tick,
        ids: &[Id],
        frame: &Frame<'_>,
        face: FaceId,
        flags: Flags,
    ) {
        if !flags.may_keep() || !self.cache.is_on() || frame.options.retained.is_some() {
            return;
        }
        self.keeps = true;
        let lifetime_ms = frame.options.lifetime_ms.unwrap_or(0);
        let piece = Piece::new(frame.options.octets(), frame.payload);
        let sender = Sender { holder: Holder::Face(face), flags };
        self.cache.insert_piece(now, sender, ids, lifetime_ms, piece);
    }

    /// Keeps what an application of this node publishes, as it leaves.
    pub(super) fn keep_own(
        &mut self,
        now: Tick,
        app: Option<AppId>,
        kept: &Kept,
        lifetime_ms: u64,
    ) {
        let Some(app) = app.filter(|_| self.cache.is_on()) else { return };
        self.keeps = true;
        let sender = Sender { holder: Holder::App(app), flags: Flags::KEEP };
        for Publication { ids, options, payload, .. } in
            (0..kept.count()).filter_map(|index| kept.fragment(index))
        {
            let piece = Piece::new(&options, &payload);
            self.cache.insert_piece(now, sender, &ids, lifetime_ms, piece);
        }
    }

    /// A subscription is answered: these applications are told what was published before, and
    /// caches of other nodes are asked for more.
    #[cold]
    pub(super) fn tell_earlier(
        &mut self,
        now: Tick,
        name: &Id,
        waiting: &[Waiting],
        out: &mut Outbox,
    ) {
        for waiting in waiting {
            self.tell_retained(waiting.app, name, out);
            self.tell_cached(waiting.app, name, out);
        }
        let strategy = self.subscriptions.get(name).map(|s| s.strategy);
        let is_sent = matches!(strategy, Some(Strategy::DOMAIN_LOCAL | Strategy::INTER_DOMAIN));
        if !is_sent || !self.asks.are_known || waiting.is_empty() {
            return;
        }
        if self.asks.waiting.len() < ASKS_MAX {
            self.asks.waiting.push_back((now, name.clone(), 0));
            self.ask_caches(now, out);
        } else {
            self.ask_for(name, out);
        }
    }

    /// Tells an application what this node's cache holds for a subscription.
    pub(super) fn tell_cached(&mut self, app: AppId, name: &Id, out: &mut Outbox) {
        for (id, whole) in self.cache.find(name, Some(app), TOLD_MAX) {
            self.cache.told += 1;
            out.tell(app, Event::Data { id, payload: whole.payload(), came_by: None });
        }
    }

    /// Asks for what is due.
    fn ask_caches(&mut self, now: Tick, out: &mut Outbox) {
        for _ in 0..self.asks.waiting.len() {
            let Some((due, name, count)) = self.asks.waiting.pop_front() else { return };
            if due > now {
                self.asks.waiting.push_back((due, name, count));
                continue;
            }
            let is_wanted = self.is_wanted(std::slice::from_ref(&name), false);
            if is_wanted {
                self.ask_for(&name, out);
            }
            if let Some(pause) = ASKS.get(count + 1).filter(|_| is_wanted) {
                self.asks.waiting.push_back((now + *pause, name, count + 1));
            }
        }
    }

    /// The topology manager that speaks to this node.
    pub(super) fn manager(&self) -> Option<Target> {
        let managers = self.homes.iter().filter(|h| h.role.has(Role::TOPOLOGY)).map(|h| h.node);
        self.way(responsible(self.config.node, managers)?, Role::TOPOLOGY)
    }

    /// Asks it for what was subscribed to.
    fn ask_for(&self, name: &Id, out: &mut Outbox) {
        let Some(target) = self.manager() else { return };
        let message = Control { ids: vec![name.clone()], ..self.message(Kind::WANTED) };
        out.control(target, reserved::TOPOLOGY, self.config.node, message);
    }

    /// What of the cache is too old, to be told, or to be asked for.
    pub(super) fn caches_timeout(&mut self, now: Tick, out: &mut Outbox) {
        self.cache.expire(now);
        if let Some((came, went)) = self.cache.news.take(now) {
            self.announce(&came, 0, false, out);
            self.announce(&went, 1, false, out);
        }
        if self.cache.is_repeated(now) {
            self.announce_all(out);
        }
        if !self.asks.waiting.is_empty() {
            self.ask_caches(now, out);
        }
    }

    /// Tells topology managers all that the cache holds of items.
    pub(super) fn announce_all(&self, out: &mut Outbox) {
        let held: Vec<Id> = self.cache.held().into_iter().collect();
        self.announce(&held, 0, true, out);
    }

    /// Tells topology managers names that are held from now on, or (`item` 1) not any more.
    fn announce(&self, names: &[Id], item: u64, is_all: bool, out: &mut Outbox) {
        let managers = self.homes.iter().filter(|h| h.role.has(Role::TOPOLOGY));
        for node in managers.map(|h| h.node) {
            for (at, names) in names.chunks(NAMES).enumerate() {
                let Some(target) = self.way(node, Role::TOPOLOGY) else { break };
                let (ids, item) = (names.to_vec(), Some(item));
                let is_full = is_all && at == 0;
                let message = Control { ids, item, is_full, ..self.message(Kind::CACHED) };
                out.control(target, reserved::TOPOLOGY, self.config.node, message);
            }
        }
    }

    /// A topology manager has this node send a late subscriber what its cache holds.
    pub(super) fn answer(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let ([to], Some(route)) = (&message.nodes[..], &message.route) else {
            self.counters.refused += 1;
            return;
        };
        let hops = u8::try_from(message.hops).unwrap_or(u8::MAX);
        let hop_limit = hops.saturating_add(self.config.spare_hops);
        let toward = Toward { node: *to, route, hop_limit };
        if !message.missing.is_empty() {
            return self.fill_holes(now, message, toward, out);
        }
        for name in message.ids.iter().take(ANSWERS_MAX) {
            let Some(whole) = self.cache.whole(name).cloned() else { continue };
            let Some(flags) = whole.flags(now) else { continue };
            if !self.has_room_for_answer(now, *to, &whole.scope) {
                continue;
            }
            self.cache.sent += 1;
            self.repair.keep(self.kept_of(toward, &whole, flags));
        }
        self.portion(now, out);
    }

    /// A topology manager has this node send what another one misses of a publication that the cache
    /// here has whole: at once, as other repairs (P-92).
    fn fill_holes(&mut self, now: Tick, message: &Control, toward: Toward<'_>, out: &mut Outbox) {
        let Some(scope) = message.ids.first() else { return };
        let whole = self.cache.beneath_scope(scope).cloned();
        let found = whole.and_then(|whole| Some((whole.flags(now)?, whole)));
        let Some((flags, whole)) = found else {
            self.counters.refused += 1;
            return;
        };
        let kept = self.kept_of(toward, &whole, flags);
        self.repair.keep_for_holes(now, kept);
        let (ids, nodes, missing) =
            (vec![scope.clone()], vec![toward.node], message.missing.clone());
        let like = Control::new(Kind::REPAIR, message.sender);
        self.repair(now, &Control { ids, nodes, missing, ..like }, out);
    }

    /// What of a publication leaves for a late subscriber, behind what did not leave yet.
    fn kept_of(&self, toward: Toward<'_>, whole: &Arc<Whole>, flags: Flags) -> Kept {
        let Toward { node, route, hop_limit } = toward;
        let number = self.taken.first().map_or(0, |taken| taken + 1);
        let publication = Publication {
            target: Target::Route(route.clone()),
            strategy: Strategy::ALGORITHMIC_DOMAIN,
            hop_limit,
            by: Some(0),
            ids: Vec::new(),
            options: Vec::new(),
            payload: Vec::new(),
            mark: Mark { flags, is_foreign: !whole.is_own },
        };
        Kept {
            origin: Origin { shard: 0, number },
            is_whole: false,
            publication,
            scope: whole.scope.clone(),
            payload: Vec::new(),
            piece: 0,
            until: Tick::NEVER,
            next: 0,
            repeated: KeyedMap::default(),
            replay: None,
            answer: Some(Answer::new(node, whole)),
        }
    }

    /// Whether a publication may be sent to a late subscriber: not when it is, or just was, and no
    /// more than so many at once. What was sent to it before is repaired no more.
    fn has_room_for_answer(&mut self, now: Tick, to: Label, scope: &Id) -> bool {
        let keep = self.repair.limits.keep;
        let is_same = |kept: &Kept| {
            kept.scope == *scope && kept.answer.as_ref().is_some_and(|answer| answer.to == to)
        };
        let (mut all, mut of_this, mut is_recent) = (0, 0, false);
        for (kept, answer) in self.repair.answers() {
            let is_under_way = kept.until == Tick::NEVER;
            all += usize::from(is_under_way);
            of_this += usize::from(is_under_way && answer.to == to);
            is_recent |= is_same(kept) && (is_under_way || kept.until + AGAIN > now + keep);
        }
        let is_full = all >= ANSWERS_MAX || of_this >= ANSWERS_TO_ONE;
        if is_recent || is_full {
            self.cache.unsent += u64::from(is_full && !is_recent);
            return false;
        }
        self.repair.kept.retain(|kept| !is_same(kept));
        true
    }

    /// What the cache holds, for the status.
    #[must_use]
    pub fn cache(&self) -> super::CacheView {
        self.cache.view()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatcher::Config;
    use crate::publication::{Said, algorithmic_scope};
    use onym_wire::push::Filter;

    const NOW: Tick = Tick(1);

    /// A dispatcher whose cache has a publication of three fragments whole, and their scope.
    fn holder() -> (Dispatcher, Id) {
        let mut dispatcher = Dispatcher::new(Config::new(Label::from_u64(1), 1));
        let item: Id = "/1/2".parse().expect("an identifier");
        let scope = algorithmic_scope(&item).child(Label::from_u64(7));
        for index in 0..3 {
            let own = scope.child(Label::from_u64(3 << 32 | index));
            let sender = Sender { holder: Holder::Face(FaceId(256)), flags: Flags::KEEP };
            let (ids, piece) = ([own, item.clone()], Piece::new(&[], &[7; 1000]));
            dispatcher.cache.insert_piece(NOW, sender, &ids, 60_000, piece);
        }
        (dispatcher, scope)
    }

    /// Fragments that leave when `to` misses these of what is beneath `scope`.
    fn fills(dispatcher: &mut Dispatcher, to: u64, scope: &Id, missing: &[(u32, u32)]) -> usize {
        let mut out = Outbox::default();
        let (ids, nodes) = (vec![scope.clone()], vec![Label::from_u64(to)]);
        let (route, missing) = (Some(RouteBuf::flat(0, &Filter::EMPTY)), missing.to_vec());
        let like = Control::new(Kind::ANSWER, Label::from_u64(9));
        dispatcher.answer(NOW, &Control { ids, nodes, route, missing, ..like }, &mut out);
        out.said.iter().filter(|said| matches!(said, Said::Publication(_))).count()
    }

    #[test]
    fn holes_are_filled_once_in_a_while_for_each_who_misses_them() {
        let (mut dispatcher, scope) = holder();
        assert_eq!(fills(&mut dispatcher, 2, &scope, &[(1, 1)]), 1);
        assert_eq!(fills(&mut dispatcher, 2, &scope, &[(0, u32::MAX)]), 2, "one just left");
        assert_eq!(fills(&mut dispatcher, 3, &scope, &[(1, 9), (5, 2)]), 2);
        let other = Id::from_labels(scope.parent()).child(Label::from_u64(8));
        assert_eq!(fills(&mut dispatcher, 2, &other, &[(0, 2)]), 0, "of another publication");
        assert_eq!(dispatcher.counters.refused, 1);
    }

    #[test]
    fn who_misses_what_is_remembered_within_a_bound() {
        let (mut dispatcher, scope) = holder();
        for to in 0..1000 {
            assert_eq!(fills(&mut dispatcher, to, &scope, &[(0, 0)]), 1);
            assert!(dispatcher.repair.kept.len() <= 256);
        }
        assert!(!dispatcher.repair.has_unsent());
        dispatcher.repair.expire(NOW + Duration::from_secs(10));
        assert!(dispatcher.repair.kept.is_empty());
    }
}
