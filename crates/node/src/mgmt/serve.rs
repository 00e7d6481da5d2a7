//! Requests for datasets, the event stream and our own namespace.

use super::command::Refusal;
use super::dataset::{self, Request};
use super::host::Host;
use super::look::{DumpQuestion, Sight, TopQuestion, history_since};
use super::policy::Privilege;
use super::reply::{self, FRESHNESS_MS};
use super::{Management, Output, Requester};
use onym_tables::Tick;
use onym_wire::Interest;
use onym_wire::name::NameRef;

/// How long the routable prefixes are fresh, in milliseconds.
const ROUTABLE_FRESHNESS_MS: u64 = 5000;

/// Components of a name of our own namespace, without version and segment.
const ONYM_NAME_LEN: usize = 4;

impl Management {
    /// Answers datasets and the event stream: `Some(true)` when it was one, `Some(false)` when the
    /// name is none of them, `None` when it is one that gets no answer.
    pub(super) fn dataset(
        &mut self,
        interest: &Interest<'_>,
        now: Tick,
        host: &mut dyn Host,
    ) -> Option<bool> {
        if let Some(requested) = self.face_events.requested(interest) {
            let wire = self.face_events.subscribe(interest, requested, now);
            self.send_event(wire);
            return Some(true);
        }
        let Some(request) = Request::of(interest.name) else { return Some(false) };
        if let Some(wire) = self.datasets.segment(interest, now) {
            self.send_dataset(wire);
            return Some(true);
        }
        if request.is_past || !interest.can_be_prefix {
            return None;
        }
        match request.content(host) {
            Ok(content) => {
                let wire = self.publish(interest.name, content, FRESHNESS_MS, now, host)?;
                self.send_dataset(wire);
            }
            Err(refusal) => {
                let wire = reply::rejection(interest.name, &refusal.into());
                self.send_dataset(wire);
            }
        }
        Some(true)
    }

    fn publish(
        &mut self,
        name: NameRef<'_>,
        content: Vec<u8>,
        freshness_ms: u64,
        now: Tick,
        host: &dyn Host,
    ) -> Option<Vec<u8>> {
        self.datasets.publish(name, content, freshness_ms, host.unix_ms(), now)
    }

    /// Answers a subscriber, or lets it wait.
    fn send_event(&mut self, wire: Option<Vec<u8>>) {
        self.counters.datasets += 1;
        self.out.extend(wire.map(|wire| Output::Data { wire, no_cache: true }));
    }

    fn send_dataset(&mut self, wire: Vec<u8>) {
        self.counters.datasets += 1;
        self.out.push_back(Output::Data { wire, no_cache: true });
    }

    /// `/localhop/nfd/rib/routable-prefixes`, for everybody.
    pub(super) fn routable(
        &mut self,
        interest: &Interest<'_>,
        now: Tick,
        host: &mut dyn Host,
    ) -> Option<()> {
        let past = dataset::routable_prefixes(interest.name)?;
        if self.routable_prefixes.is_empty() {
            return None;
        }
        let wire = match self.datasets.segment(interest, now) {
            Some(wire) => wire,
            None if past || !interest.can_be_prefix => return None,
            None => {
                let mut content = Vec::new();
                self.routable_prefixes.iter().for_each(|n| n.as_ref().write_tlv(&mut content));
                self.publish(interest.name, content, ROUTABLE_FRESHNESS_MS, now, host)?
            }
        };
        self.send_dataset(wire);
        Some(())
    }

    /// Our own namespace: JSON, in segments when the Interest allows it, else in one Data; and the
    /// events of the RIB.
    pub(super) fn onym(
        &mut self,
        interest: &Interest<'_>,
        requester: Requester,
        now: Tick,
        host: &mut dyn Host,
    ) -> Option<()> {
        if let Some(privilege) = dataset::privilege_for(interest.name)
            && let Err(why) = self.authorizer.may_read(requester, privilege)
        {
            let refusal = Refusal::new(403, why).into();
            self.send_dataset(reply::rejection(interest.name, &refusal));
            return Some(());
        }
        if let Some(requested) = self.rib_events.requested(interest) {
            let wire = self.rib_events.subscribe(interest, requested, now);
            self.send_event(wire);
            return Some(());
        }
        // A question is answered by what is so now; only its further segments are of then.
        let is_question = interest.name.len() == ONYM_NAME_LEN;
        if !is_question && let Some(wire) = self.datasets.segment(interest, now) {
            self.send_dataset(wire);
            return Some(());
        }
        let content = match self.looked_at(interest.name, requester, host) {
            Some(Ok(content)) => content,
            Some(Err(refusal)) => {
                self.send_dataset(reply::rejection(interest.name, &refusal.into()));
                return Some(());
            }
            None => dataset::onym_content(interest.name, host)?.into_bytes(),
        };
        let wire = if interest.can_be_prefix {
            self.publish(interest.name, content, FRESHNESS_MS, now, host)?
        } else {
            reply::single(interest.name, &content)?
        };
        self.send_dataset(wire);
        Some(())
    }

    /// `/localhost/onym/dump/<question>`, `/localhost/onym/top/<question>` and
    /// `/localhost/onym/history/<question>`; none for other names.
    fn looked_at(
        &self,
        name: NameRef<'_>,
        requester: Requester,
        host: &mut dyn Host,
    ) -> Option<Result<Vec<u8>, Refusal>> {
        let [what, question] = [name.get(2)?, name.get(3)?];
        if name.len() != ONYM_NAME_LEN || !what.is_generic() || !question.is_generic() {
            return None;
        }
        let refused = |why| Refusal::new(400, why);
        match what.value {
            b"dump" => Some(
                DumpQuestion::parse(question.value).and_then(|q| host.dump(&q)).map_err(refused),
            ),
            b"top" => {
                let sight = match self.authorizer.may_read(requester, Privilege::Watch) {
                    Ok(()) => Sight::Names,
                    Err(why) => Sight::Counts { why },
                };
                let top = TopQuestion::parse(question.value).and_then(|q| host.top(&q, sight));
                Some(top.map(String::into_bytes).map_err(refused))
            }
            b"history" => {
                let history = history_since(question.value).and_then(|since| {
                    host.history_json(since).ok_or_else(|| "this program keeps no history".into())
                });
                Some(history.map(String::into_bytes).map_err(refused))
            }
            _ => None,
        }
    }
}
