//! Waiting for certificates: packets, and certificates whose issuer is not known yet.

use super::cache::Verified;
use super::claim::{Claim, Context, OwnedClaim, is_full};
use super::event::{Event, Fetch, Judged, Trusted};
use super::refusal::{Element, Refusal};
use super::revocation::Revoker;
use super::validator::Validator;
use super::waiting::{State, Waiter, Want, Wanted};
use super::window::Window;
use onym_crypto::Certificate;
use onym_crypto::cert::key_of_locator;
use onym_wire::data::Data;
use onym_wire::{Name, NameRef};

impl Validator {
    /// Lets a packet wait for the certificate that its locator names; `then` is judged when it is
    /// good.
    ///
    /// # Errors
    /// [`Refusal::Busy`] at a bound, or the remembered failure of that certificate.
    pub(super) fn wait_for(
        &mut self,
        claim: &Claim<'_>,
        then: Option<Box<OwnedClaim>>,
        ticket: u64,
        context: &Context,
    ) -> Result<(), Refusal> {
        if self.waiting.packets >= self.limits.packets {
            return Err(Refusal::Busy("too many packets wait"));
        }
        let owned = claim.to_waiting().followed_by(then);
        let octets = owned.octets();
        if self.waiting.octets + octets > self.limits.octets {
            return Err(Refusal::Busy("too many octets wait"));
        }
        let want = (context.via, claim.locator.to_name());
        self.want(&want, context.now_ms)?;
        let Some(wanted) = self.waiting.wanted.get_mut(&want) else { return Ok(()) };
        wanted.waiters.push(Waiter::Packet { ticket, claim: owned, context: *context });
        self.waiting.packets += 1;
        self.waiting.octets += octets;
        Ok(())
    }

    /// Asks for a certificate, unless somebody did already.
    fn want(&mut self, want: &Want, now_ms: u64) -> Result<(), Refusal> {
        if self.waiting.wanted.contains_key(want) {
            return Ok(());
        }
        if let Some(refusal) = self.failures.of(want, now_ms) {
            return Err(refusal.clone());
        }
        if self.waiting.wanted.len() >= self.limits.fetches {
            return Err(Refusal::Busy("too many certificates are fetched"));
        }
        let newest = !is_full(want.1.as_ref());
        let id = self.fetch(want, want.1.clone(), newest);
        let wanted = Wanted {
            id,
            state: State::Fetching,
            waiters: Vec::new(),
            below: 0,
            asked_ms: now_ms,
            asked: want.1.clone(),
        };
        self.waiting.wanted.insert(want.clone(), wanted);
        Ok(())
    }

    /// Asks for the newest Data under `name`, which `want` needs next.
    pub(super) fn fetch_newest(&mut self, want: &Want, name: Name) -> u64 {
        self.fetch(want, name, true)
    }

    fn fetch(&mut self, want: &Want, name: Name, newest: bool) -> u64 {
        self.counts.fetches += 1;
        self.waiting.last_id += 1;
        let id = self.waiting.last_id;
        self.waiting.by_id.insert(id, want.clone());
        self.events.push_back(Event::Fetch(Fetch { id, name, newest, via: want.0 }));
        id
    }

    /// Takes the Data that a fetch brought. An answer to a fetch that is over is ignored.
    pub fn certificate(&mut self, id: u64, wire: &[u8], context: &Context) {
        let Some(want) = self.waiting.of_fetch(id) else { return };
        if self.is_record(&want) {
            return self.take_record(want, Ok(wire), context.now_ms);
        }
        if self.is_list(&want) {
            return self.take_list(want, Ok(wire), context.now_ms);
        }
        match self.take(&want, wire, context.now_ms) {
            Ok(None) => {}
            Ok(Some(())) => self.settle(want, Ok(()), context.now_ms),
            Err(refusal) => {
                self.counts.failed += 1;
                self.settle(want, Err(refusal), context.now_ms);
            }
        }
    }

    /// Checks what came. `Some` says that it is verified, `None` that its issuer or a record is
    /// wanted.
    fn take(&mut self, want: &Want, wire: &[u8], now_ms: u64) -> Result<Option<()>, Refusal> {
        let certificate = self.usable(&want.1, wire)?;
        // One whose chain is over is verified again: somebody above may have renewed.
        if let Some(known) = self.cache.get(certificate.name(), now_ms)
            && known.certificate == certificate
            && known.window.check(now_ms).is_ok()
        {
            return Ok(Some(()));
        }
        let malformed = |e: onym_wire::Malformed| Refusal::Malformed(e.to_string());
        let data = Data::parse(wire).map_err(malformed)?;
        let claim = Claim::data(&data)?;
        if claim.is_by_itself() {
            if !self.limits.certificate_lists {
                return Err(Refusal::NotAnAnchor(certificate.name().to_name()));
            }
            claim.verify(&certificate)?;
            self.ask_list(want, certificate, now_ms);
            return Ok(None);
        }
        let issuer = claim.locator.to_name();
        match self.judge(&claim, now_ms, None) {
            Judged::Done(Ok(_)) => self.confirm(want, certificate, issuer, now_ms),
            Judged::Done(Err(refusal)) => Err(refusal),
            Judged::Unknown => {
                self.link(want, certificate, issuer, now_ms)?;
                Ok(None)
            }
        }
    }

    /// The certificate that came for `locator`, if it is one that may be used.
    fn usable(&self, locator: &Name, wire: &[u8]) -> Result<Certificate, Refusal> {
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
        Ok(certificate)
    }

    /// Lets the certificate that came for `want` wait for its issuer's.
    pub(super) fn link(
        &mut self,
        want: &Want,
        certificate: Certificate,
        issuer: Name,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let above_it = (want.0, issuer.clone());
        if above_it == *want || self.waiting.above(&above_it).contains(want) {
            return Err(Refusal::Loop(certificate.name().to_name()));
        }
        let octets = certificate.wire().len();
        if self.waiting.octets + octets > self.limits.octets {
            return Err(Refusal::Busy("too many octets wait"));
        }
        let below = self.waiting.wanted.get(want).map_or(0, |wanted| wanted.below);
        // Certificates from the one nearest to a packet up to the highest that came, and one more.
        let above = self.waiting.above(&above_it);
        if below + above.len() + 2 > self.limits.depth {
            return Err(Refusal::TooDeep(self.limits.depth));
        }
        self.want(&above_it, now_ms)?;
        for (steps, at) in (1..).zip(std::iter::once(&above_it).chain(&above)) {
            if let Some(wanted) = self.waiting.wanted.get_mut(at) {
                wanted.below = wanted.below.max(below + steps);
            }
        }
        if let Some(wanted) = self.waiting.wanted.get_mut(&above_it) {
            wanted.waiters.push(Waiter::Certificate(want.clone()));
        }
        if let Some(wanted) = self.waiting.wanted.get_mut(want) {
            wanted.state = State::Issuer { certificate, issuer, listed: None };
            self.waiting.octets += octets;
        }
        Ok(())
    }

    /// A certificate's signature is right: it is kept, or first a record is asked for.
    pub(super) fn confirm(
        &mut self,
        want: &Want,
        certificate: Certificate,
        issuer: Name,
        now_ms: u64,
    ) -> Result<Option<()>, Refusal> {
        if !self.records.are_about(&certificate) {
            return self.keep(certificate, issuer.as_ref(), now_ms).map(Some);
        }
        self.ask_record(want, certificate, issuer, Revoker::Issuer, now_ms);
        Ok(None)
    }

    /// Keeps a certificate whose signature was checked with its issuer's key.
    pub(super) fn keep(
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
        let has_records = self.records.are_about(&certificate);
        let recorded = has_records.then_some((now_ms, self.records.keep_ms));
        self.cache.insert(Verified { certificate, window, depth, anchor, recorded });
        Ok(())
    }

    /// Tells everything that waits for `want` what came of it, and what waits for that.
    pub(super) fn settle(&mut self, want: Want, result: Result<(), Refusal>, now_ms: u64) {
        let mut settled = vec![(want, result)];
        while let Some((want, result)) = settled.pop() {
            let Some(wanted) = self.waiting.wanted.remove(&want) else { continue };
            self.waiting.by_id.remove(&wanted.id);
            if let Err(refusal) = &result {
                self.failures.remember(&want, refusal, now_ms);
            }
            self.waiting.octets -= wanted.state.octets();
            for waiter in wanted.waiters {
                match waiter {
                    Waiter::Packet { ticket, claim, context } => {
                        let context = Context { now_ms, ..context };
                        self.settle_packet(&want, ticket, &claim, &result, &context);
                    }
                    Waiter::Certificate(below) => {
                        let result = match &result {
                            Ok(()) => self.verify_waiting(&below, now_ms),
                            Err(refusal) => self.without_issuer(&below, refusal, now_ms),
                        };
                        if let Some(result) = result.transpose() {
                            settled.push((below, result));
                        }
                    }
                }
            }
        }
    }

    fn settle_packet(
        &mut self,
        want: &Want,
        ticket: u64,
        claim: &OwnedClaim,
        result: &Result<(), Refusal>,
        context: &Context,
    ) {
        self.waiting.packets -= 1;
        self.waiting.octets -= claim.octets();
        let result = match result {
            Ok(()) => self.judge_again(claim, context),
            Err(refusal) => Err(refusal.clone()),
        };
        if let Err(refusal @ Refusal::Expired { .. }) = &result {
            self.failures.remember(want, refusal, context.now_ms);
        }
        if let (Ok(_), Some(then)) = (&result, &claim.then) {
            if let Some(result) = self.submit(&then.borrow(), ticket, context) {
                self.tell(ticket, result);
            }
            return;
        }
        self.tell(ticket, result);
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

    /// Verifies the certificate that came for `want`, now that its issuer is known.
    fn verify_waiting(&mut self, want: &Want, now_ms: u64) -> Result<Option<()>, Refusal> {
        let wanted = self.waiting.wanted.get_mut(want);
        let Some(State::Issuer { certificate, issuer, listed }) =
            wanted.map(|wanted| &mut wanted.state)
        else {
            return Err(Refusal::Busy("the certificate was forgotten"));
        };
        if let Some(listed) = listed {
            let (certificate, issuer) = (certificate.clone(), issuer.clone());
            let listed = listed.clone();
            return self.listed(want, certificate, &issuer, listed, now_ms);
        }
        let (certificate, issuer) = (certificate.clone(), issuer.clone());
        let malformed = |e: onym_wire::Malformed| Refusal::Malformed(e.to_string());
        let wire = certificate.wire().to_vec();
        let data = Data::parse(&wire).map_err(malformed)?;
        match self.judge(&Claim::data(&data)?, now_ms, None) {
            Judged::Done(Ok(_)) => self.confirm(want, certificate, issuer, now_ms),
            Judged::Done(Err(refusal)) => Err(refusal),
            Judged::Unknown => Err(self.why_not(issuer.as_ref(), now_ms)),
        }
    }
}
