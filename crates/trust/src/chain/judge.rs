//! Judges a packet with the known certificates, or names the certificate that is needed first.

use super::cache::Verified;
use super::claim::{Claim, Context, is_full};
use super::event::{Event, Judged, Trusted};
use super::refusal::{Element, Refusal};
use super::validator::{OldData, Validator};
use super::window::Window;
use crate::invite::{Invitation, attached};
use crate::policy::{KeyForm, Subject, Verdict};
use onym_crypto::Certificate;
use onym_crypto::cert::key_of_locator;
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::{Name, NameRef, types};

impl Validator {
    /// Counts what was judged at once.
    fn told(
        &mut self,
        judged: Option<Result<Trusted, Refusal>>,
    ) -> Option<Result<Trusted, Refusal>> {
        if let Some(result) = &judged {
            self.count(result);
        }
        judged
    }

    pub(super) fn count(&mut self, result: &Result<Trusted, Refusal>) {
        match result {
            Ok(_) => self.counts.accepted += 1,
            Err(refusal) => {
                self.counts.refused += 1;
                self.counts.busy += u64::from(matches!(refusal, Refusal::Busy(_)));
            }
        }
    }

    /// Tells what came of a packet that waited.
    pub(super) fn tell(&mut self, ticket: u64, result: Result<Trusted, Refusal>) {
        self.count(&result);
        self.events.push_back(Event::Judged { ticket, result });
    }

    /// Judges a Data. `None` says that it waits for certificates: [`Validator::poll`] has the
    /// answer later, under `ticket`.
    pub fn data(
        &mut self,
        wire: &[u8],
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        match Data::parse(wire) {
            Ok(data) => self.data_about(&data, data.name, ticket, context),
            Err(error) => self.told(Some(Err(Refusal::Malformed(error.to_string())))),
        }
    }

    /// As [`Validator::data`], by the rules about `subject`: the name that the Data speaks about,
    /// such as the prefix of an announcement.
    pub fn data_about(
        &mut self,
        data: &Data<'_>,
        subject: NameRef<'_>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        let judged = self.judge_data(data, subject, ticket, context);
        self.told(judged)
    }

    fn judge_data(
        &mut self,
        data: &Data<'_>,
        subject: NameRef<'_>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        let subject = Subject::data(subject);
        let kind = data.signature_info().kind;
        if self.policy.allows_anything() {
            return Some(Ok(anything()));
        }
        if kind == types::SIGNATURE_DIGEST_SHA256 {
            if !self.policy.allows_digest(&subject.signed(kind)) {
                return Some(Err(Refusal::NoKey(kind)));
            }
            let integrity = onym_crypto::verify::integrity(data);
            let malformed = |e: onym_crypto::Error| Refusal::Malformed(e.to_string());
            return Some(integrity.map(|()| anything()).map_err(malformed));
        }
        let claim = match Claim::data(data) {
            Ok(claim) => claim.about(subject.name),
            Err(refusal) => return Some(Err(refusal)),
        };
        if data.content_type == types::CONTENT_KEY
            && let Some(done) = self.own_certificate(data, &claim, context)
        {
            return Some(done);
        }
        if self.limits.invitations
            && let Some(wire) = attached(data)
            && !self.policy.check(&claim.subject, claim.locator).is_allowed()
        {
            match self.invitation(wire, &claim, context.now_ms) {
                Ok(owner) => return self.by_invitation(&owner, &claim, ticket, context),
                // A locator that is no full name says not yet what the rules say.
                Err(refusal) if is_full(claim.locator) => return Some(Err(refusal)),
                Err(_) => {}
            }
        }
        self.submit(&claim, ticket, context)
    }

    /// The claim of an invitation that lets the key of `claim` sign its name now.
    fn invitation<'a>(
        &self,
        wire: &'a [u8],
        claim: &Claim<'a>,
        now_ms: u64,
    ) -> Result<Claim<'a>, Refusal> {
        let data = Data::parse(wire).map_err(|e| Refusal::Malformed(e.to_string()))?;
        let invitation = Invitation::parse(&data).map_err(Refusal::Invitation)?;
        invitation.check_valid_at(now_ms).map_err(Refusal::Invitation)?;
        if !invitation.allows(claim.subject.name, whole(claim.locator).as_ref()) {
            self.allow(claim, claim.locator)?;
        }
        // Whoever may sign this Data may let others sign it.
        Ok(Claim::data(&data)?.about(claim.subject.name))
    }

    /// Judges a claim that only its invitation lets in, first the invitation's own.
    fn by_invitation(
        &mut self,
        owner: &Claim<'_>,
        claim: &Claim<'_>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        match self.judge(owner, context.now_ms, Some(context)) {
            Judged::Done(Ok(_)) => self.submit(&claim.invited(), ticket, context),
            Judged::Done(Err(refusal)) => Some(Err(refusal)),
            Judged::Unknown => {
                let then = Some(Box::new(claim.invited().to_waiting()));
                self.wait_for(owner, then, ticket, context).err().map(Err)
            }
        }
    }

    /// Judges a signed Interest of either form, as [`Validator::data`]. Replay is not judged here.
    pub fn interest(
        &mut self,
        wire: &[u8],
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        match Interest::parse(wire) {
            Ok(interest) => self.interest_about(&interest, None, ticket, context),
            Err(error) => self.told(Some(Err(Refusal::Malformed(error.to_string())))),
        }
    }

    /// As [`Validator::interest`], by the rules about `subject`: the name that a command speaks
    /// about. Without it the rules see the Interest's own name.
    pub fn interest_about(
        &mut self,
        interest: &Interest<'_>,
        subject: Option<NameRef<'_>>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        let judged = self.judge_interest(interest, subject, ticket, context);
        self.told(judged)
    }

    fn judge_interest(
        &mut self,
        interest: &Interest<'_>,
        subject: Option<NameRef<'_>>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        if self.policy.allows_anything() {
            return Some(Ok(anything()));
        }
        match Claim::interest(interest) {
            Ok(claim) => {
                let claim = subject.map_or(claim, |name| claim.about(name));
                self.submit(&claim, ticket, context)
            }
            Err(Refusal::NoKey(types::SIGNATURE_DIGEST_SHA256)) => {
                Some(self.digest_interest(interest, subject))
            }
            Err(refusal) => Some(Err(refusal)),
        }
    }

    fn digest_interest(
        &self,
        interest: &Interest<'_>,
        subject: Option<NameRef<'_>>,
    ) -> Result<Trusted, Refusal> {
        let malformed = |e: onym_crypto::Error| Refusal::Malformed(e.to_string());
        let signed = onym_crypto::verify::Signed::interest(interest).map_err(malformed)?;
        if !self.policy.allows_digest(&Subject::interest(subject.unwrap_or(signed.name))) {
            return Err(Refusal::NoKey(types::SIGNATURE_DIGEST_SHA256));
        }
        signed.verify_digest().map_err(malformed)?;
        Ok(anything())
    }

    /// A certificate that is judged as a packet: its own period counts, and an anchor needs no
    /// rule that says who signs it.
    fn own_certificate(
        &self,
        data: &Data<'_>,
        claim: &Claim<'_>,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        let certificate = Certificate::from_data(data).ok()?;
        if let Err(refusal) = self.check_revoked(&certificate) {
            return Some(Err(refusal));
        }
        let window = Window::of(&certificate, Element::Packet);
        if let Err(refusal) = self.check_time(&window, claim, context) {
            return Some(Err(refusal));
        }
        if !claim.is_by_itself() {
            return None;
        }
        let mut anchors = self.anchors.iter();
        let same = anchors.find(|a| a.public_key().spki() == certificate.public_key().spki());
        let Some(anchor) = same.filter(|a| a.key_name() == certificate.key_name()) else {
            return Some(Err(Refusal::NotAnAnchor(certificate.name().to_name())));
        };
        let anchor = anchor.name().to_name();
        Some(claim.verify(&certificate).map(|()| Trusted {
            rule: String::new(),
            key: anchor.clone(),
            anchor,
            depth: 0,
        }))
    }

    pub(super) fn submit(
        &mut self,
        claim: &Claim<'_>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        match self.judge(claim, context.now_ms, Some(context)) {
            Judged::Done(Err(refusal)) => {
                self.note_end(claim, &refusal, context);
                Some(Err(refusal))
            }
            Judged::Done(result) => Some(result),
            Judged::Unknown => self.wait_for(claim, None, ticket, context).err().map(Err),
        }
    }

    /// Forgets a chain that is over: what is renewed above it is found by the next fetch, which is
    /// made when the failure is forgotten and not for each packet.
    fn note_end(&mut self, claim: &Claim<'_>, refusal: &Refusal, context: &Context) {
        let is_over = matches!(refusal, Refusal::Expired { element: Element::Chain, .. });
        if !is_over || self.limits.old_data != OldData::Refuse {
            return;
        }
        self.cache.forget_expired(context.now_ms);
        let want = (context.via, claim.locator.to_name());
        self.failures.remember(&want, refusal, context.now_ms);
    }

    /// Judges a claim with what is known. Without `context` it is a certificate's, whose period
    /// counts where it is used.
    pub(super) fn judge(
        &self,
        claim: &Claim<'_>,
        now_ms: u64,
        context: Option<&Context>,
    ) -> Judged {
        match self.try_judge(claim, now_ms, context) {
            Ok(Some(trusted)) => Judged::Done(Ok(trusted)),
            Ok(None) => Judged::Unknown,
            Err(refusal) => Judged::Done(Err(refusal)),
        }
    }

    fn try_judge(
        &self,
        claim: &Claim<'_>,
        now_ms: u64,
        context: Option<&Context>,
    ) -> Result<Option<Trusted>, Refusal> {
        let form = self.policy.key_form();
        let mut rule = None;
        if form == KeyForm::Locator || is_full(claim.locator) {
            // What the rules forbid is not worth a fetch.
            rule = Some(self.allow(claim, claim.locator)?);
        }
        let found = self.find(claim.locator, now_ms);
        let Some((certificate, window, depth, anchor)) = found else { return Ok(None) };
        if form == KeyForm::Certificate && certificate.name() != claim.locator {
            rule = Some(self.allow(claim, certificate.name())?);
        }
        self.check_revoked(certificate)?;
        if let Some(context) = context {
            self.check_time(&window, claim, context)?;
        }
        claim.verify(certificate)?;
        Ok(Some(Trusted {
            rule: rule.unwrap_or_default(),
            key: certificate.name().to_name(),
            anchor: anchor.to_name(),
            depth,
        }))
    }

    fn allow(&self, claim: &Claim<'_>, key: NameRef<'_>) -> Result<String, Refusal> {
        if claim.is_invited {
            return Ok("invitation".to_owned());
        }
        match self.policy.check(&claim.subject, key) {
            Verdict::Allowed { rule } => Ok(rule),
            Verdict::Denied(denial) => Err(Refusal::Denied(denial)),
        }
    }

    /// The trusted certificate that a locator means, with when its chain is valid.
    pub(super) fn find(
        &self,
        locator: NameRef<'_>,
        now_ms: u64,
    ) -> Option<(&Certificate, Window, usize, NameRef<'_>)> {
        if let Some(anchor) = self.anchors.find(locator, now_ms) {
            let window = if self.limits.expired_anchors {
                Window::always()
            } else {
                Window::of(anchor, Element::Anchor)
            };
            return Some((anchor, window, 0, anchor.name()));
        }
        let valid = self.cache.find(locator, now_ms);
        // Of old data the chain may be one that was valid once.
        let old = || match self.limits.old_data {
            OldData::AtWitnessedTime => self.cache.newest(locator),
            OldData::Refuse => None,
        };
        let found: &Verified = valid.or_else(old)?;
        Some((&found.certificate, found.window.clone(), found.depth, found.anchor.as_ref()))
    }

    pub(super) fn check_revoked(&self, certificate: &Certificate) -> Result<(), Refusal> {
        if self.revoked.has(certificate) {
            return Err(Refusal::Revoked(certificate.name().to_name()));
        }
        Ok(())
    }

    /// Whether the chain is valid at the moment that counts.
    fn check_time(
        &self,
        window: &Window,
        claim: &Claim<'_>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let Err(refusal) = window.check(context.now_ms) else { return Ok(()) };
        let is_over = matches!(refusal, Refusal::Expired { .. });
        if self.limits.old_data == OldData::Refuse || !is_over {
            return Err(refusal);
        }
        match (claim.time_ms, context.witness_ms) {
            (Some(signed), Some(seen)) if signed <= seen && seen <= context.now_ms => {
                window.check(signed)?;
                window.check(seen)
            }
            _ => Err(Refusal::NoWitness(claim.subject.name.to_name())),
        }
    }
}

fn anything() -> Trusted {
    Trusted { rule: String::new(), key: Name::new(), anchor: Name::new(), depth: 0 }
}

/// A locator as long as the name of a certificate: what it leaves out is named by nothing.
fn whole(locator: NameRef<'_>) -> Name {
    let mut name = locator.to_name();
    let key = key_of_locator(locator).map_or(0, |key| key.len());
    if name.as_ref().len() == key {
        name.append_generic(b"");
    }
    if name.as_ref().len() == key + 1 {
        name.append_version(0);
    }
    name
}
