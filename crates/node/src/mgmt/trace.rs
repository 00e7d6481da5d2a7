//! Trace and echo requests that reached management (RFC 9507, RFC 9508).
//!
//! A request is answered with what this node would do with the target, or, when it has legs, is
//! sent on by the face that its first leg names, and the reply that comes back is returned. So who
//! asks can look at each way of several, node by node.

use super::host::Host;
use super::{Management, Output, Requester, reply};
use onym_crypto::signer::write_parameters;
use onym_tables::{FaceId, Tick};
use onym_wire::name::{Name, NameRef};
use onym_wire::trace::{HOP_LIMIT, Kind, Leg, Reply, Request};
use onym_wire::{Data, Interest, InterestBuilder, PACKET_LEN_MAX};

/// Requests sent on that wait for their replies.
const RELAYS_MAX: usize = 64;
/// Of those, the ones of one face.
const RELAYS_OF_FACE_MAX: usize = 16;
/// How long a reply is waited for, at most, in milliseconds.
const PATIENCE_MS: u64 = 4000;

/// A request that was sent on.
#[derive(Debug)]
struct Relay {
    /// Its name as it was sent on.
    sent: Name,
    /// Its name as it came.
    asked: Name,
    from: FaceId,
    due: Tick,
}

/// The requests that were sent on.
#[derive(Debug, Default)]
pub(super) struct Relays(Vec<Relay>);

impl Relays {
    /// Whether one more of this face has room. What is overdue goes.
    fn has_room(&mut self, from: FaceId, now: Tick) -> bool {
        self.0.retain(|relay| relay.due > now);
        let own = self.0.iter().filter(|relay| relay.from == from).count();
        self.0.len() < RELAYS_MAX && own < RELAYS_OF_FACE_MAX
    }

    /// Takes out what was sent on by this name.
    fn take(&mut self, sent: NameRef<'_>) -> Option<Relay> {
        let at = self.0.iter().position(|relay| relay.sent.as_ref() == sent)?;
        Some(self.0.swap_remove(at))
    }
}

impl Management {
    /// `None` when nothing is done.
    pub(super) fn trace(
        &mut self,
        interest: &Interest<'_>,
        request: &Request<'_>,
        requester: Requester,
        now: Tick,
        host: &mut dyn Host,
    ) -> Option<()> {
        if requester.face == FaceId::INVALID {
            // One that was sent on comes back with a Nack.
            self.relays.take(interest.name);
            return None;
        }
        if !host.may_trace(requester.face) {
            return None;
        }
        if request.kind == Kind::Trace
            && let Some((leg, rest)) =
                Leg::first(interest.app_parameters.unwrap_or_default()).ok()?
        {
            return self.send_on(interest, leg, rest, requester.face, now, host);
        }
        let told = host.traced(request.target, requester.face)?;
        if request.kind == Kind::Echo && told.code == HOP_LIMIT {
            return None;
        }
        let more = (request.kind == Kind::Trace).then_some(told.more.as_bytes());
        let reply = Reply { sender: told.sender.as_ref(), code: told.code, more };
        self.reply(interest.name, &reply.to_content())
    }

    fn reply(&mut self, name: NameRef<'_>, content: &[u8]) -> Option<()> {
        let wire = reply::traced(name, content);
        if wire.len() > PACKET_LEN_MAX {
            return None;
        }
        self.out.push_back(Output::Data { wire, no_cache: true });
        Some(())
    }

    /// Sends a request on by the face of its first leg.
    fn send_on(
        &mut self,
        interest: &Interest<'_>,
        leg: Leg,
        rest: &[u8],
        from: FaceId,
        now: Tick,
        host: &mut dyn Host,
    ) -> Option<()> {
        let request = Request::of(interest.name)?;
        let next_hop = FaceId(leg.face);
        let leads_on = host.face(next_hop).is_some() && !host.is_local(next_hop);
        if !leads_on || next_hop == FaceId::NULL || !self.relays.has_room(from, now) {
            return None;
        }
        let mut nonce = [0; 4];
        self.entropy.fill(&mut nonce);
        let lifetime_ms = interest.lifetime_or_default().min(PATIENCE_MS);
        let sent_on = InterestBuilder {
            must_be_fresh: true,
            nonce: Some(nonce),
            lifetime_ms: Some(lifetime_ms),
            // The forwarder of this node takes one off.
            hop_limit: Some(leg.hops.saturating_add(1)),
            ..InterestBuilder::new(request.bare)
        };
        let mut wire = Vec::new();
        match rest {
            [] => sent_on.write(&mut wire),
            legs => write_parameters(&sent_on, legs, &mut wire),
        }
        let sent = Interest::parse(&wire).ok()?.name.to_name();
        let due = now.plus_ms(lifetime_ms);
        self.relays.0.push(Relay { sent, asked: interest.name.to_name(), from, due });
        self.out.push_back(Output::Interest { wire, next_hop });
        Some(())
    }

    /// Whether this is the reply to a request that was sent on; it is returned.
    pub(super) fn relayed(&mut self, data: &Data<'_>) -> bool {
        let Some(relay) = self.relays.take(data.name) else { return false };
        let is_reply = Reply::parse(data.content).is_ok();
        is_reply && self.reply(relay.asked.as_ref(), data.content).is_some()
    }
}
