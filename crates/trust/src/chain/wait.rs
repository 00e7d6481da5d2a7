//! Waiting for certificates: packets, and certificates whose issuer is not known yet.

use super::cache::Verified;
use super::claim::{Claim, Context, OwnedClaim, is_full};
use super::event::{Event, Fetch, Judged, Trusted};
use super::refusal::{Element, Refusal};
use super::validator::Validator;
use super::waiting::{State, Waiter, Wanted};
use super::window::Window;
use onym_crypto::Certificate;
use onym_crypto::cert::key_of_locator;
use onym_wire::data::Data;
use onym_wire::{Name, NameRef};

/// Most failures that are remembered.
const FAILURES_MAX: usize = 4096;

impl Validator {
    /// Lets a packet wait for the certificate that its locator names.
    ///
    /// # Errors
    /// [`Refusal::Busy`] at a bound, or the remembered failure of that certificate.
    pub(super) fn wait_for(
        &mut self,
        claim: &Claim<'_>,
        ticket: u64,
        context: &Context,
    ) -> Result<(), Refusal> {
        if self.waiting.packets >= self.limits.packets {
            return Err(Refusal::Busy("too many packets wait"));
        }
        let owned = claim.to_waiting();
        let octets = owned.octets();
        if self.waiting.octets + octets > self.limits.octets {
            return Err(Refusal::Busy("too many octets wait"));
        }
        let locator = claim.locator.to_name();
        self.want(&locator, context)?;
        let Some(wanted) = self.waiting.wanted.get_mut(locator.value()) else { return Ok(()) };
        wanted.waiters.push(Waiter::Packet { ticket, claim: owned, context: *context });
        self.waiting.packets += 1;
        self.waiting.octets += octets;
        Ok(())
    }

    /// Asks for a certificate, unless somebody did already.
    fn want(&mut self, locator: &Name, context: &Context) -> Result<(), Refusal> {
        if self.waiting.wanted.contains_key(locator.value()) {
            return Ok(());
        }
        if let Some((until, refusal)) = self.failures.get(locator.value())
            && *until > context.now_ms
        {
            return Err(refusal.clone());
        }
        if self.waiting.wanted.len() >= self.limits.fetches {
            return Err(Refusal::Busy("too many certificates are fetched"));
        }
        self.waiting.last_id += 1;
        let id = self.waiting.last_id;
        let wanted = Wanted {
            id,
            state: State::Fetching,
            waiters: Vec::new(),
            below: 0,
            asked_ms: context.now_ms,
            via: context.via,
        };
        self.waiting.wanted.insert(locator.clone(), wanted);
        self.waiting.by_id.insert(id, locator.clone());
        let newest = !is_full(locator.as_ref());
        let fetch = Fetch { id, name: locator.clone(), newest, via: context.via };
        self.events.push_back(Event::Fetch(fetch));
        Ok(())
    }

    /// Takes the Data that a fetch brought. An answer to a fetch that is over is ignored.
    pub fn certificate(&mut self, id: u64, wire: &[u8], context: &Context) {
        let Some(locator) = self.waiting.locator_of(id) else { return };
        match self.take(&locator, wire, context) {
            Ok(None) => {}
            Ok(Some(())) => self.settle(locator, Ok(()), context.now_ms),
            Err(refusal) => self.settle(locator, Err(refusal), context.now_ms),
        }
    }

    /// Checks what came. `Some` says that it is verified, `None` that its issuer is wanted.
    fn take(
        &mut self,
        locator: &Name,
        wire: &[u8],
        context: &Context,
    ) -> Result<Option<()>, Refusal> {
        let bad = |name: NameRef<'_>, what: String| Refusal::BadCertificate {
            name: name.to_name(),
            what,
        };
        if wire.len() > onym_wire::PACKET_LEN_MAX {
            return Err(bad(locator.as_ref(), "it is longer than 8800 octets".into()));
        }
        let data = Data::parse(wire).map_err(|e| bad(locator.as_ref(), e.to_string()))?;
        if !locator.as_ref().is_prefix_of(data.name) {
            let (wanted, got) = (locator.clone(), data.name.to_name());
            return Err(Refusal::WrongCertificate { wanted, got });
        }
        let certificate =
            Certificate::from_data(&data).map_err(|e| bad(data.name, e.to_string()))?;
        if key_of_locator(locator.as_ref()) != Some(certificate.key_name()) {
            let (wanted, got) = (locator.clone(), data.name.to_name());
            return Err(Refusal::WrongCertificate { wanted, got });
        }
        let validity = certificate.validity();
        if validity.not_after < validity.not_before {
            let what = "it ends before it begins".into();
            return Err(bad(certificate.name(), what));
        }
        self.check_revoked(&certificate)?;
        // One whose chain is over is verified again: somebody above may have renewed.
        if let Some(known) = self.cache.get(certificate.name())
            && known.certificate == certificate
            && known.window.check(context.now_ms).is_ok()
        {
            return Ok(Some(()));
        }
        let claim = Claim::data(&data)?;
        if claim.is_by_itself() {
            return Err(Refusal::NotAnAnchor(certificate.name().to_name()));
        }
        let issuer = claim.locator.to_name();
        match self.judge(&claim, context.now_ms, None) {
            Judged::Done(Ok(_)) => {
                self.keep(certificate, issuer.as_ref(), context.now_ms).map(Some)
            }
            Judged::Done(Err(refusal)) => Err(refusal),
            Judged::Unknown => {
                self.link(locator, certificate, issuer, context)?;
                Ok(None)
            }
        }
    }

    /// Lets the certificate under `locator` wait for its issuer's.
    fn link(
        &mut self,
        locator: &Name,
        certificate: Certificate,
        issuer: Name,
        context: &Context,
    ) -> Result<(), Refusal> {
        if issuer == *locator || self.waiting.above(&issuer).contains(locator) {
            return Err(Refusal::Loop(certificate.name().to_name()));
        }
        let octets = certificate.wire().len();
        if self.waiting.octets + octets > self.limits.octets {
            return Err(Refusal::Busy("too many octets wait"));
        }
        let own = self.waiting.wanted.get(locator.value());
        let (via, below) = own.map_or((None, 0), |wanted| (wanted.via, wanted.below));
        // Certificates from the one nearest to a packet up to the highest that came, and one more.
        let above = self.waiting.above(&issuer);
        if below + above.len() + 2 > self.limits.depth {
            return Err(Refusal::TooDeep(self.limits.depth));
        }
        self.want(&issuer, &Context { via, ..*context })?;
        for (steps, at) in (1..).zip(std::iter::once(&issuer).chain(&above)) {
            if let Some(wanted) = self.waiting.wanted.get_mut(at.value()) {
                wanted.below = wanted.below.max(below + steps);
            }
        }
        if let Some(wanted) = self.waiting.wanted.get_mut(issuer.value()) {
            wanted.waiters.push(Waiter::Certificate(locator.clone()));
        }
        if let Some(wanted) = self.waiting.wanted.get_mut(locator.value()) {
            wanted.state = State::Issuer { certificate, issuer };
            self.waiting.octets += octets;
        }
        Ok(())
    }

    /// Keeps a certificate whose signature was checked with its issuer's key.
    fn keep(
        &mut self,
        certificate: Certificate,
        issuer: NameRef<'_>,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let Some((_, window, depth, anchor)) = self.find(issuer, now_ms) else {
            return Err(Refusal::Busy("the issuer's certificate was forgotten"));
        };
        let depth = depth + 1;
        if depth > self.limits.depth {
            return Err(Refusal::TooDeep(self.limits.depth));
        }
        let window = Window::of(&certificate, Element::Chain).within(&window);
        let anchor = anchor.to_name();
        self.cache.insert(Verified { certificate, window, depth, anchor });
        Ok(())
    }

    /// Tells everything that waits for `locator` what came of it, and what waits for that.
    pub(super) fn settle(&mut self, locator: Name, result: Result<(), Refusal>, now_ms: u64) {
        let mut settled = vec![(locator, result)];
        while let Some((locator, result)) = settled.pop() {
            let Some(wanted) = self.waiting.wanted.remove(locator.value()) else { continue };
            self.waiting.by_id.remove(&wanted.id);
            if let Err(refusal) = &result {
                self.remember_failure(&locator, refusal, now_ms);
            }
            if let State::Issuer { certificate, .. } = &wanted.state {
                self.waiting.octets -= certificate.wire().len();
            }
            for waiter in wanted.waiters {
                match waiter {
                    Waiter::Packet { ticket, claim, context } => {
                        self.waiting.packets -= 1;
                        self.waiting.octets -= claim.octets();
                        let result = match &result {
                            Ok(()) => self.judge_again(&claim, &Context { now_ms, ..context }),
                            Err(refusal) => Err(refusal.clone()),
                        };
                        if let Err(refusal @ Refusal::Expired { .. }) = &result {
                            self.remember_failure(&locator, refusal, now_ms);
                        }
                        self.events.push_back(Event::Judged { ticket, result });
                    }
                    Waiter::Certificate(below) => {
                        let result = match &result {
                            Ok(()) => self.verify_waiting(&below, now_ms),
                            Err(refusal) => Err(refusal.clone()),
                        };
                        settled.push((below, result));
                    }
                }
            }
        }
    }

    fn judge_again(&self, claim: &OwnedClaim, context: &Context) -> Result<Trusted, Refusal> {
        let claim = claim.borrow();
        // What was kept a moment ago and is not valid now is not found by the name of its key.
        match self.judge(&claim, context.now_ms, Some(context)) {
            Judged::Done(result) => result,
            Judged::Unknown => Err(self.why_not(claim.locator, context.now_ms)),
        }
    }

    /// Why no certificate that a locator means can be used.
    fn why_not(&self, locator: NameRef<'_>, now_ms: u64) -> Refusal {
        match self.cache.newest(locator).map(|known| known.window.check(now_ms)) {
            Some(Err(refusal)) => refusal,
            _ => Refusal::Busy("the certificate was forgotten"),
        }
    }

    /// Verifies the certificate that came for `locator`, now that its issuer is known.
    fn verify_waiting(&mut self, locator: &Name, now_ms: u64) -> Result<(), Refusal> {
        let wanted = self.waiting.wanted.get(locator.value());
        let Some(State::Issuer { certificate, issuer }) = wanted.map(|wanted| &wanted.state) else {
            return Err(Refusal::Busy("the certificate was forgotten"));
        };
        let (certificate, issuer) = (certificate.clone(), issuer.clone());
        let malformed = |e: onym_wire::Malformed| Refusal::Malformed(e.to_string());
        let wire = certificate.wire().to_vec();
        let data = Data::parse(&wire).map_err(malformed)?;
        match self.judge(&Claim::data(&data)?, now_ms, None) {
            Judged::Done(Ok(_)) => self.keep(certificate, issuer.as_ref(), now_ms),
            Judged::Done(Err(refusal)) => Err(refusal),
            Judged::Unknown => Err(self.why_not(issuer.as_ref(), now_ms)),
        }
    }

    pub(super) fn remember_failure(&mut self, locator: &Name, refusal: &Refusal, now_ms: u64) {
        // A bound says nothing about the certificate.
        if matches!(refusal, Refusal::Busy(_)) {
            return;
        }
        if self.failures.len() >= FAILURES_MAX {
            self.failures.retain(|_, (until, _)| *until > now_ms);
        }
        if self.failures.len() < FAILURES_MAX {
            let until = now_ms.saturating_add(self.limits.failure_ms);
            self.failures.insert(locator.clone(), (until, refusal.clone()));
        }
    }
}
