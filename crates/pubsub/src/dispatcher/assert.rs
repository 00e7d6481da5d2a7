//! Keep-alives, and asserting everything again (P-41).

use super::{Dispatcher, Pending, Request, Word};
use crate::publication::Outbox;
use crate::rendezvous::graph::{Held, digest_of};
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Control, Id, Kind, Label, Role, Strategy};

/// What is asserted of one identifier.
struct Assertion {
    held: Held,
    request: Request,
    word: Option<Word>,
    /// Somebody was told that it is done.
    is_settled: bool,
}

impl Dispatcher {
    /// Everything that is asserted at the rendezvous of the domain, parents first and what is
    /// published once more last.
    fn assertions(&self) -> Vec<Assertion> {
        let mut all: Vec<Assertion> = self.asserted().collect();
        all.sort_by_cached_key(|x| {
            (x.request.id.len() > 1, !x.held.is_scope, x.held.id.len(), x.held.clone())
        });
        all
    }

    /// The same in any order.
    fn asserted(&self) -> impl Iterator<Item = Assertion> {
        let of = |is_subscription: bool,
                  full: &Id,
                  (is_scope, strategy): (bool, Strategy),
                  (id, prefix, word): (&Id, &Id, &Option<Word>),
                  is_settled: bool| {
            let kind = Kind(u8::from(!is_scope) + 4 * u8::from(is_subscription));
            let request = Request { kind, id: id.clone(), prefix: prefix.clone(), strategy };
            Assertion {
                held: Held::new(is_scope, is_subscription, full.clone()),
                request,
                word: word.clone(),
                is_settled,
            }
        };
        let publications = self.publications.iter().map(move |(full, p)| {
            let what = (p.is_scope, p.strategy);
            of(false, full, what, (&p.id, &p.prefix, &p.word), !p.publishers.is_empty())
        });
        let subscriptions = self.subscriptions.iter().map(move |(full, s)| {
            let what = (s.is_scope, s.strategy);
            of(true, full, what, (&s.id, &s.prefix, &s.word), !s.subscribers.is_empty())
        });
        let is_theirs = |a: &Assertion| {
            a.request.strategy.has_rendezvous() && a.request.strategy != Strategy::NODE_LOCAL
        };
        publications.chain(subscriptions).filter(is_theirs)
    }

    /// Tells each rendezvous that the node lives and what it asserts.
    pub(super) fn keep_alive(&self, out: &mut Outbox) {
        let mut digests: KeyedMap<Label, u64> = KeyedMap::default();
        for assertion in self.asserted() {
            if let Some(owner) = self.rendezvous_of(&assertion.held.id) {
                *digests.entry(owner).or_default() ^= digest_of(&assertion.held);
            }
        }
        let homes = self.homes.iter().filter(|h| h.role.has(Role::RENDEZVOUS));
        for node in homes.map(|h| h.node) {
            let theirs = digests.get(&node).copied();
            // While something is under way the digests cannot agree.
            let is_quiet = self.rendezvous.is_idle(node) && self.early.is_empty();
            let is_known = self.epochs.contains_key(&node);
            if is_quiet && (is_known || theirs.is_some()) {
                let digest = theirs.unwrap_or(0);
                let epoch = self.epochs.get(&node).copied();
                let number = self.rounds.get(&node).copied().unwrap_or(0);
                let message = Control { digest, epoch, number, ..self.message(Kind::KEEP_ALIVE) };
                self.publish_to_rendezvous(node, message, out);
            }
        }
    }

    /// The rendezvous forgot the session: everything is said again in a new one.
    pub(super) fn assert_all(&mut self, now: Tick, node: Label, out: &mut Outbox) {
        self.rendezvous.end(node);
        let keys: Vec<_> = self.pending.keys().filter(|(n, _)| *n == node).copied().collect();
        let mut held: Vec<_> = keys
            .into_iter()
            .filter_map(|key| self.pending.remove(&key).map(|pending| (key, pending)))
            .filter(|(_, pending)| pending.kind.is_withdrawal())
            .collect();
        held.sort_by_key(|(key, _)| *key);
        self.assert_where(now, out, |owner| owner == node);
        for (_, pending) in held {
            // The rendezvous may have done it, and only its answer was lost.
            self.ask(now, Pending { is_assertion: true, ..pending }, out);
        }
    }

    /// Says again what belongs to rendezvous nodes that `is_wanted` names.
    pub(super) fn assert_where(
        &mut self,
        now: Tick,
        out: &mut Outbox,
        is_wanted: impl Fn(Label) -> bool,
    ) {
        for assertion in self.assertions() {
            if self.rendezvous_of(&assertion.held.id).is_some_and(&is_wanted) {
                let pending = Pending {
                    is_assertion: assertion.is_settled,
                    word: assertion.word,
                    ..Pending::new(now, &assertion.request, self.key(assertion.held.id))
                };
                self.ask(now, pending, out);
            }
        }
    }

    /// Owners of all that is asserted, to see which ones change.
    pub(super) fn owners(&self) -> Vec<(Held, Option<Label>)> {
        let owner = |a: Assertion| {
            let owner = self.rendezvous_of(&a.held.id);
            (a.held, owner)
        };
        self.assertions().into_iter().map(owner).collect()
    }

    /// After rendezvous nodes came or went: what has another owner now is said to it.
    pub(super) fn assert_moved(
        &mut self,
        now: Tick,
        before: &[(Held, Option<Label>)],
        out: &mut Outbox,
    ) {
        let moved: Vec<Held> = before
            .iter()
            .filter(|(held, owner)| owner.is_some() && self.rendezvous_of(&held.id) != *owner)
            .map(|(held, _)| held.clone())
            .collect();
        if moved.is_empty() {
            return;
        }
        let is_waiting = |held: &Held, pending: &Pending| *pending.full == held.id;
        self.pending.retain(|_, p| !moved.iter().any(|held| is_waiting(held, p)));
        for assertion in self.assertions() {
            if moved.contains(&assertion.held) {
                let pending = Pending {
                    is_assertion: assertion.is_settled,
                    word: assertion.word,
                    ..Pending::new(now, &assertion.request, self.key(assertion.held.id))
                };
                self.ask(now, pending, out);
            }
        }
    }
}
