//! CHALLENGE: what an applicant must prove, and which names that entitles to.

use super::refusal::{Refusal, check_signature, internal, refuse};
use super::settings::{Invitation, Kind, Order, Reply, Silence};
use super::{Authority, dates};
use crate::error::ErrorCode;
use crate::message::{ChallengeReply, ChallengeRequest, Parameter, Sealed};
use crate::{Error, Now, RequestId, Secret, dns, names, number as n};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use onym_crypto::cert::Issue;
use onym_crypto::{Certificate, Entropy, digest, sha256};
use onym_wire::interest::Interest;
use onym_wire::{Component, Name, NameRef};

/// What an authority that is not told otherwise writes as issuer.
const ISSUER: Component<'static> = Component::generic(b"NDNCERT");
const NONCE_LEN: usize = 16;
/// Digits of a code. Peers have six; eight are harder to guess and typed as well.
const CODE_DIGITS: u32 = 8;

/// What a challenge is given.
struct Bound {
    seconds: u64,
    tries: u64,
}

const PIN: Bound = Bound { seconds: 3600, tries: 3 };
const EMAIL: Bound = Bound { seconds: 300, tries: 3 };
const POSSESSION: Bound = Bound { seconds: 60, tries: 1 };
const RECORD: Bound = Bound { seconds: 1800, tries: 5 };

/// What a code is compared with.
#[derive(Debug)]
enum Code {
    Made(Secret),
    Token(Invitation),
}

impl Code {
    /// In constant time: how long it takes says nothing about how much of a guess is right.
    fn is(&self, given: &[u8]) -> bool {
        let same = match self {
            Self::Made(code) => verify_slices_are_equal(code.reveal().as_bytes(), given),
            Self::Token(invitation) => {
                verify_slices_are_equal(&invitation.digest, &sha256(&[given]))
            }
        };
        same.is_ok()
    }
}

#[derive(Debug)]
enum Proof {
    /// One of these.
    Code(Vec<Code>),
    /// A signature over the nonce by this certificate's key.
    Signature { by: Box<Certificate>, nonce: [u8; NONCE_LEN] },
    /// This value in a record of this name.
    Record { name: String, value: String },
}

/// A challenge that was chosen.
#[derive(Debug)]
pub(super) struct Running {
    kind: Kind,
    proof: Proof,
    tries: u64,
    until_ms: u64,
}

impl Running {
    fn new(kind: Kind, proof: Proof, bound: &Bound, now: Now) -> Self {
        let until_ms = now.tick_ms.saturating_add(bound.seconds * 1000);
        Self { kind, proof, tries: bound.tries, until_ms }
    }

    pub(super) fn until_ms(&self) -> u64 {
        self.until_ms
    }

    fn reply(&self, status: &str, parameters: Vec<Parameter>, now: Now) -> ChallengeReply {
        ChallengeReply {
            status: n::STATUS_CHALLENGE,
            challenge_status: Some(status.to_owned()),
            tries: Some(self.tries),
            time_s: Some(self.until_ms.saturating_sub(now.tick_ms) / 1000),
            parameters,
            ..ChallengeReply::default()
        }
    }
}

/// What a step came to.
enum Outcome {
    Reply(ChallengeReply),
    Passed(Option<Invitation>),
    Lookup,
}

fn given<'a>(request: &'a ChallengeRequest, key: &str) -> Result<&'a [u8], Refusal> {
    let missing = || (ErrorCode::INVALID, format!("the parameter {key} is missing"));
    request.get(key).ok_or_else(missing)
}

fn given_text<'a>(request: &'a ChallengeRequest, key: &str) -> Result<&'a str, Refusal> {
    let text = std::str::from_utf8(given(request, key)?);
    text.map_err(|_| (ErrorCode::INVALID, format!("the parameter {key} is no text")))
}

impl Authority {
    /// The content of the reply; nothing when it has to wait for records.
    pub(super) fn challenge(
        &mut self,
        now: Now,
        id: RequestId,
        interest: &Interest<'_>,
        entropy: &mut dyn Entropy,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(request) = self.requests.get_mut(&id) else {
            return refuse(ErrorCode::INVALID, "there is no such request, or it is over");
        };
        check_signature(interest, request.certificate.public_key())?;
        if now.tick_ms > request.until_ms() {
            self.requests.remove(&id);
            return refuse(ErrorCode::TIME, "the time of the request is over");
        }
        let sealed = Sealed::read(interest.app_parameters.unwrap_or_default())
            .map_err(|e| (ErrorCode::BAD_FORMAT, e.to_string()))?;
        let opened = request.session.open(&sealed);
        // Only who has the key of the request comes so far: what is wrong now ends it.
        let plain = opened.map_err(|e| self.end(id, ErrorCode::INVALID, e.to_string()))?;
        let step = ChallengeRequest::read(&plain)
            .map_err(|e| self.end(id, ErrorCode::BAD_FORMAT, e.to_string()))?;
        let outcome = self.step(now, id, &step, entropy)?;
        self.conclude(now, id, outcome)
    }

    fn end(&mut self, id: RequestId, code: ErrorCode, why: String) -> Refusal {
        self.requests.remove(&id);
        (code, why)
    }

    fn conclude(
        &mut self,
        now: Now,
        id: RequestId,
        outcome: Outcome,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        match outcome {
            Outcome::Lookup => Ok(None),
            Outcome::Reply(reply) => self.sealed(id, &reply).map(Some),
            Outcome::Passed(used) => {
                let issued = self.issue(now, id)?;
                if let Some(used) = used {
                    self.invitations.retain(|other| *other != used);
                    self.orders.push_back(Order::Spent(used));
                }
                let mut name = issued.name().to_name();
                name.append_implicit_digest(&digest::implicit_digest(issued.wire()));
                let reply = ChallengeReply {
                    status: n::STATUS_SUCCESS,
                    issued: Some(name),
                    hints: vec![names::base(self.prefix.as_ref())],
                    ..ChallengeReply::default()
                };
                let content = self.sealed(id, &reply);
                self.requests.remove(&id);
                content.map(Some)
            }
        }
    }

    fn sealed(&mut self, id: RequestId, reply: &ChallengeReply) -> Result<Vec<u8>, Refusal> {
        let Some(request) = self.requests.get_mut(&id) else {
            return refuse(ErrorCode::INVALID, "there is no such request");
        };
        Ok(request.session.seal(&reply.write()).map_err(internal)?.write())
    }

    fn issue(&mut self, now: Now, id: RequestId) -> Result<Certificate, Refusal> {
        let Some(request) = self.requests.get(&id) else {
            return refuse(ErrorCode::INVALID, "there is no such request");
        };
        let asked = request.certificate.validity();
        let Some(validity) = dates::granted(asked, &self.certificate) else {
            return refuse(ErrorCode::VALIDITY, "the authority's own certificate is over by then");
        };
        let issue = Issue { issuer_id: ISSUER, validity, now_ms: now.unix_ms };
        let issued = Certificate::issue(&request.certificate, &self.signer, &issue)
            .map_err(|e| internal(Error::Crypto(e)))?;
        if self.issued.len() >= self.settings.limits.issued_max.max(1) {
            self.issued.pop_front();
        }
        self.issued.push_back(issued.clone());
        self.orders.push_back(Order::Issued(issued.clone()));
        self.counters.issued += 1;
        Ok(issued)
    }

    fn step(
        &mut self,
        now: Now,
        id: RequestId,
        step: &ChallengeRequest,
        entropy: &mut dyn Entropy,
    ) -> Result<Outcome, Refusal> {
        let offered = Kind::of(&step.selected).filter(|k| self.settings.challenges.contains(k));
        let Some(kind) = offered else {
            let why = format!("the challenge {:?} is not offered", step.selected);
            return Err(self.end(id, ErrorCode::INVALID, why));
        };
        let running = self.requests.get(&id).and_then(|request| request.running.as_ref());
        match running.map(|running| running.kind) {
            None => self.begin(now, id, kind, step, entropy),
            Some(chosen) if chosen == kind => self.go_on(now, id, step),
            Some(_) => Err(self.end(id, ErrorCode::INVALID, "another challenge was chosen".into())),
        }
    }

    fn begin(
        &mut self,
        now: Now,
        id: RequestId,
        kind: Kind,
        step: &ChallengeRequest,
        entropy: &mut dyn Entropy,
    ) -> Result<Outcome, Refusal> {
        let Some(request) = self.requests.get(&id) else {
            return refuse(ErrorCode::INVALID, "there is no such request");
        };
        let certificate = request.certificate.clone();
        let begun = match kind {
            Kind::Pin => self.begin_pin(now, certificate.identity(), entropy),
            Kind::Email => self.begin_email(now, certificate.identity(), step, entropy),
            Kind::Possession => self.begin_possession(now, certificate.identity(), step, entropy),
            Kind::Dns => self.begin_dns(now, &certificate, step, entropy),
        };
        let (running, status, parameters) = begun.map_err(|(c, why)| self.end(id, c, why))?;
        let reply = running.reply(status, parameters, now);
        if let Some(request) = self.requests.get_mut(&id) {
            request.running = Some(running);
        }
        Ok(Outcome::Reply(reply))
    }

    /// A code that the operator hands over; with an invitation of this identity its token counts.
    fn begin_pin(&mut self, now: Now, identity: NameRef<'_>, entropy: &mut dyn Entropy) -> Begun {
        let now_s = now.unix_ms / 1000;
        let invited = |i: &&Invitation| i.identity == identity && now_s <= i.until_s;
        let invited: Vec<_> = self.invitations.iter().filter(invited).cloned().collect();
        let codes = if invited.is_empty() {
            let code = self.make_code(now, entropy)?;
            let order = Order::Show { identity: identity.to_name(), code: code.clone() };
            self.orders.push_back(order);
            vec![Code::Made(code)]
        } else {
            invited.into_iter().map(Code::Token).collect()
        };
        Ok((Running::new(Kind::Pin, Proof::Code(codes), &PIN, now), "need-code", Vec::new()))
    }

    fn make_code(&mut self, now: Now, entropy: &mut dyn Entropy) -> Result<Secret, Refusal> {
        if !self.wrong_codes.is_open(now) {
            return refuse(ErrorCode::TRIES, "too many wrong codes were given; ask in an hour");
        }
        let mut random = [0; 8];
        entropy.fill(&mut random);
        let code = u64::from_be_bytes(random) % 10_u64.pow(CODE_DIGITS);
        Ok(Secret::new(format!("{code:0width$}", width = CODE_DIGITS as usize)))
    }

    /// A code by mail. The address gives a right to two names, and what is under them: itself as one
    /// component, and its domain from the top down with the user behind.
    fn begin_email(
        &mut self,
        now: Now,
        identity: NameRef<'_>,
        step: &ChallengeRequest,
        entropy: &mut dyn Entropy,
    ) -> Begun {
        let address = given_text(step, "email")?;
        let parts = address.split_once('@').filter(|(user, domain)| {
            let plain = |c: char| c.is_ascii_graphic() && !"\"'`$\\;&|<>(){}@/".contains(c);
            !user.is_empty()
                && !user.starts_with('-')
                && address.len() <= 254
                && user.chars().all(plain)
                && dns::is_domain(domain)
        });
        let Some((user, domain)) = parts else {
            return refuse(ErrorCode::INVALID, "invalid-email: it is no address user@domain");
        };
        let mut whole = self.prefix.clone();
        whole.append_generic(address);
        let mut reversed = self.prefix.clone();
        domain.rsplit('.').chain([user]).for_each(|part| {
            reversed.append_generic(part);
        });
        within(identity, &[whole, reversed])?;
        let code = self.make_code(now, entropy)?;
        self.orders.push_back(Order::Mail {
            address: address.to_owned(),
            code: code.clone(),
            identity: identity.to_name(),
        });
        let proof = Proof::Code(vec![Code::Made(code)]);
        Ok((Running::new(Kind::Email, proof, &EMAIL, now), "need-code", Vec::new()))
    }

    /// A certificate that this authority issued gives a right to its own identity; one of another
    /// anchor to that identity behind the prefix.
    fn begin_possession(
        &mut self,
        now: Now,
        identity: NameRef<'_>,
        step: &ChallengeRequest,
        entropy: &mut dyn Entropy,
    ) -> Begun {
        let shown = Certificate::parse(given(step, "issued-cert")?)
            .map_err(|e| (ErrorCode::INVALID, e.to_string()))?;
        shown.check_valid_at(now.unix_ms).map_err(|e| (ErrorCode::INVALID, e.to_string()))?;
        let own = shown.verify(self.certificate.public_key()).is_ok();
        let allowed = if own {
            shown.identity().to_name()
        } else {
            let vouches = |anchor: &&Certificate| {
                anchor.check_valid_at(now.unix_ms).is_ok()
                    && anchor.identity().is_prefix_of(shown.identity())
                    && shown.verify(anchor.public_key()).is_ok()
            };
            if !self.settings.anchors.iter().any(|anchor| vouches(&anchor)) {
                let why = format!("{} is signed by an unknown issuer", shown.name());
                return refuse(ErrorCode::INVALID, why);
            }
            self.prefix.clone().join(shown.identity())
        };
        if identity != allowed {
            return refuse(ErrorCode::NAME, format!("it proves {allowed} and nothing else"));
        }
        let mut nonce = [0; NONCE_LEN];
        entropy.fill(&mut nonce);
        let proof = Proof::Signature { by: Box::new(shown), nonce };
        let running = Running::new(Kind::Possession, proof, &POSSESSION, now);
        Ok((running, "need-proof", vec![Parameter::new("nonce", nonce)]))
    }

    /// A record in the zone gives a right to the domain as one component, and what is under it.
    fn begin_dns(
        &mut self,
        now: Now,
        certificate: &Certificate,
        step: &ChallengeRequest,
        entropy: &mut dyn Entropy,
    ) -> Begun {
        let domain = given_text(step, "domain")?.to_ascii_lowercase();
        if !dns::is_domain(&domain) {
            return refuse(ErrorCode::INVALID, "it is no domain");
        }
        let mut allowed = self.prefix.clone();
        allowed.append_generic(&domain);
        within(certificate.identity(), &[allowed])?;
        let mut secret = [0; 16];
        entropy.fill(&mut secret);
        let key = digest::hex(&certificate.public_key().key_digest());
        let value = digest::hex(&sha256(&[digest::hex(&secret).as_bytes(), b".", key.as_bytes()]));
        let name = format!("_ndncert-challenge.{domain}");
        let told = vec![
            Parameter::new("record-name", name.as_bytes()),
            Parameter::new("expected-value", value.as_bytes()),
        ];
        let proof = Proof::Record { name, value };
        Ok((Running::new(Kind::Dns, proof, &RECORD, now), "need-record", told))
    }

    fn go_on(
        &mut self,
        now: Now,
        id: RequestId,
        step: &ChallengeRequest,
    ) -> Result<Outcome, Refusal> {
        let open = self.requests.get_mut(&id).and_then(|request| request.running.as_mut());
        let Some(running) = open else {
            return refuse(ErrorCode::INVALID, "no challenge was chosen");
        };
        match &running.proof {
            Proof::Code(codes) => {
                let code = given(step, "code")?;
                if let Some(right) = codes.iter().find(|expected| expected.is(code)) {
                    let used = match right {
                        Code::Token(invitation) => Some(invitation.clone()),
                        Code::Made(_) => None,
                    };
                    // Another request may have used it meanwhile.
                    if used.as_ref().is_none_or(|used| self.invitations.contains(used)) {
                        return Ok(Outcome::Passed(used));
                    }
                }
                self.wrong_codes.take(now);
                self.failed(now, id, "wrong-code")
            }
            Proof::Signature { by, nonce } => {
                let kind = by.public_key().key_type().signature_type();
                let proof = given(step, "proof")?;
                if by.public_key().verify(kind, &[nonce], proof).is_ok() {
                    return Ok(Outcome::Passed(None));
                }
                self.failed(now, id, "wrong-proof")
            }
            Proof::Record { name, .. } => {
                if given(step, "confirmation")? != b"ready" {
                    return refuse(ErrorCode::INVALID, "the confirmation is `ready`");
                }
                let order = Order::Lookup { id, name: name.clone() };
                self.orders.push_back(order);
                Ok(Outcome::Lookup)
            }
        }
    }

    /// One try less; the request ends with the last one.
    fn failed(&mut self, now: Now, id: RequestId, status: &str) -> Result<Outcome, Refusal> {
        let open = self.requests.get_mut(&id).and_then(|request| request.running.as_mut());
        let Some(running) = open else {
            return refuse(ErrorCode::INVALID, "no challenge was chosen");
        };
        running.tries -= 1;
        if running.tries == 0 {
            return Err(self.end(id, ErrorCode::TRIES, format!("{status}, and no try is left")));
        }
        Ok(Outcome::Reply(running.reply(status, Vec::new(), now)))
    }

    /// The Interest waits for records, if not too many do already.
    pub(super) fn waits(&mut self, id: RequestId, name: NameRef<'_>) -> Reply {
        let waiting = self.requests.values().filter(|request| request.waiting.is_some()).count();
        match self.requests.get_mut(&id) {
            Some(request) if waiting < self.settings.limits.lookups_max => {
                request.waiting = Some(name.to_name());
                Reply::Later(id)
            }
            _ => {
                self.orders.retain(
                    |order| !matches!(order, Order::Lookup { id: other, .. } if *other == id),
                );
                Reply::Nothing(Silence::Lookups)
            }
        }
    }

    /// The texts that were found for a [`Order::Lookup`]; none when the lookup failed. The Data that
    /// answers the Interest that waits, if it still does.
    pub fn records(&mut self, now: Now, id: RequestId, texts: &[String]) -> Option<Vec<u8>> {
        let request = self.requests.get_mut(&id)?;
        let name: Name = request.waiting.take()?;
        let found = request.running.as_ref().is_some_and(|running| match &running.proof {
            Proof::Record { value, .. } => texts.iter().any(|text| text == value),
            _ => false,
        });
        let outcome =
            if found { Ok(Outcome::Passed(None)) } else { self.failed(now, id, "wrong-record") };
        let content = match outcome.and_then(|outcome| self.conclude(now, id, outcome)) {
            Ok(content) => content?,
            Err((code, info)) => {
                self.counters.refused += 1;
                crate::message::write_error(code, &info)
            }
        };
        match self.reply(now, name.as_ref(), &content) {
            Reply::Data(wire) => Some(wire),
            Reply::Later(_) | Reply::Nothing(_) => None,
        }
    }
}

/// A challenge that begins, its status and what it tells.
type Begun = Result<(Running, &'static str, Vec<Parameter>), Refusal>;

/// Refuses an identity that is neither one of `allowed` nor under it.
fn within(identity: NameRef<'_>, allowed: &[Name]) -> Result<(), Refusal> {
    if allowed.iter().any(|name| name.as_ref().is_prefix_of(identity)) {
        return Ok(());
    }
    let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    refuse(ErrorCode::NAME, format!("it proves {} and what is under it", names.join(" or ")))
}
