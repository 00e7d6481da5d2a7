//! Authorization of commands.
//!
//! Rules only grant: a command is executed when a rule matches, and refused when none does.
//! Without configured rules, operators may do everything, other local faces may register prefixes
//! for themselves that no other user has, everybody else may do nothing, and `/localhop` is off.
//!
//! Rules can name keys. Whether another key's signature counts is decided by a guard: the rules of an
//! entry of `trust`, or hierarchy from the anchors of a key. The name that a guard judges:
//!
//! | rules | name |
//! |---|---|
//! | hierarchy | the prefix that is registered or announced |
//! | LightVerSec | the command without parameters, followed by that prefix |
//! | validator configuration | the Interest's own, as ndn-cxx does |
//!
//! Replay is checked per key, and only where a signature proves something: a DigestSha256 command on
//! a local face is accepted in any order, because every local program could produce it again.

use super::Requester;
use super::command::{Command, Module, Verb};
use super::guards::{Fetcher, Guards};
use super::host::Host;
use super::policy::{Announcers, Localhop, Policy, Privilege, Rule, Who, is_reserved};
use onym_crypto::replay::{ReplayGuard, ReplayPolicy};
use onym_crypto::verify::Signed;
use onym_crypto::{Certificate, Error};
use onym_trust::KeyForm;
use onym_trust::chain::{Context, Refusal};
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::signature::KeyLocator;
use onym_wire::types;

/// The guard that `rib.localhop_anchors` make.
pub(super) const LOCALHOP: &str = "rib.localhop_anchors";
/// The guard that `rib.announcement_anchors` make.
pub(super) const ANNOUNCEMENTS: &str = "rib.announcement_anchors";

/// What is decided about a command.
#[derive(Debug)]
pub(super) enum Decision {
    Granted,
    /// Refused, with a sentence.
    Denied(String),
    /// Its signer is not known yet: a guard judges later.
    Waits,
}

/// One command under decision.
struct Case<'a> {
    command: &'a Command<'a>,
    requester: Requester,
    now_ms: u64,
    /// Under which a guard answers later.
    ticket: u64,
}

#[derive(Debug)]
pub(super) struct Authorizer {
    policy: Policy,
    pub(super) fetcher: Fetcher,
    replay: ReplayGuard,
}

impl Authorizer {
    pub(super) fn new(policy: Policy, guards: Guards) -> Self {
        let replay = ReplayGuard::new(ReplayPolicy::default());
        Self { policy, fetcher: Fetcher::new(guards), replay }
    }

    /// Takes over new rules; what was seen against replay is kept, and what guards learned that did
    /// not change. Whether commands that wait must be refused.
    pub(super) fn set_policy(&mut self, policy: Policy, guards: Guards) -> bool {
        let is_new = policy != self.policy;
        self.policy = policy;
        !self.fetcher.set(guards).is_empty() || is_new
    }

    pub(super) fn localhop_is_on(&self) -> bool {
        self.policy.localhop.is_some()
    }

    /// Whether `command` may be carried out for `requester`.
    pub(super) fn decide(
        &mut self,
        command: &Command<'_>,
        requester: Requester,
        ticket: u64,
        host: &mut dyn Host,
    ) -> Decision {
        let now_ms = host.unix_ms();
        let case = Case { command, requester, now_ms, ticket };
        if let Err(why) = self.intact(command, requester) {
            return Decision::Denied(why);
        }
        let mut reason = None;
        let rules = std::mem::take(&mut self.policy.rules);
        let decision = self.by_rules(&rules, &case, host, &mut reason);
        self.policy.rules = rules;
        if let Some(decision) = decision {
            return decision;
        }
        if !requester.is_local && command.module == Module::Rib {
            return self.localhop(&case);
        }
        Decision::Denied(reason.unwrap_or_else(|| self.no_rule(requester)))
    }

    /// What the first rule says that decides; `reason` is why one that came close does not grant.
    fn by_rules(
        &mut self,
        rules: &[Rule],
        case: &Case<'_>,
        host: &mut dyn Host,
        reason: &mut Option<String>,
    ) -> Option<Decision> {
        let Case { command, requester, now_ms, .. } = *case;
        let signed = command.signed.as_ref().ok();
        for rule in rules.iter().filter(|r| r.grants(command, requester)) {
            match &rule.who {
                _ if requester.is_local && rule.is_for(requester.user) => {
                    match self.name_is_free(rule, command, requester, host) {
                        Ok(()) => return Some(Decision::Granted),
                        Err(why) => *reason = Some(why),
                    }
                }
                Who::Any if !requester.is_local => {
                    return Some(self.accept(command, now_ms).into());
                }
                Who::Any | Who::Local | Who::Operators => {}
                Who::Certificate(certificate) => match signed {
                    Some(signed) if is_by(signed, certificate) => {
                        let valid = verify(signed, certificate, now_ms);
                        match valid.and_then(|()| accept(&mut self.replay, command, now_ms)) {
                            Ok(()) => return Some(Decision::Granted),
                            Err(why) => *reason = Some(why),
                        }
                    }
                    _ => {}
                },
                Who::Trusted(guard) if signed.is_some_and(is_by_key) => {
                    match self.by_guard(guard, case) {
                        Decision::Denied(why) => *reason = Some(why),
                        decision => return Some(decision),
                    }
                }
                Who::Trusted(_) => {}
            }
        }
        None
    }

    /// What the rules of a guard say about a signed command.
    fn by_guard(&mut self, guard: &str, case: &Case<'_>) -> Decision {
        // Before anything is fetched for it.
        if let Ok(signed) = &case.command.signed
            && let Err(why) = check_replay(&self.replay, signed, case.now_ms)
        {
            return Decision::Denied(why);
        }
        let Ok(interest) = Interest::parse(case.command.wire) else {
            return Decision::Denied("it is malformed".into());
        };
        let Some(found) = self.fetcher.get(guard) else { return no_guard(guard) };
        let form = found.validator().policy().key_form();
        let subject = match form {
            _ if guard == LOCALHOP => case.command.subject().map(|name| name.to_name()),
            KeyForm::Certificate => Some(case.command.spoken()),
            KeyForm::Locator => None,
        };
        let subject = subject.as_ref().map(|name| name.as_ref());
        let context = case.context();
        let validator = found.validator_mut();
        let judged = validator.interest_about(&interest, subject, case.ticket, &context);
        match judged {
            None => Decision::Waits,
            Some(Ok(_)) => self.accept(case.command, case.now_ms).into(),
            Some(Err(refusal)) => Decision::Denied(refusal.to_string()),
        }
    }

    /// Why none of the rules grants.
    fn no_rule(&self, requester: Requester) -> String {
        let words = "no rule allows this command for this face or key";
        let has_operators = self.policy.rules.iter().any(|rule| rule.who == Who::Operators);
        if !requester.is_local || requester.user.is_operator || !has_operators {
            return words.to_owned();
        }
        let who = match requester.user.uid {
            Some(uid) => format!("the user {uid} is none of them"),
            None => "this connection does not tell its user".to_owned(),
        };
        format!("it is for {}; {who}", self.policy.operators())
    }

    /// Whether a rule for who is no operator grants the name of a registration, too: it must be
    /// nobody else's.
    fn name_is_free(
        &self,
        rule: &Rule,
        command: &Command<'_>,
        requester: Requester,
        host: &mut dyn Host,
    ) -> Result<(), String> {
        let takes = matches!(command.verb, Verb::RibRegister | Verb::RibAnnounce);
        let Some(name) = command.subject() else { return Ok(()) };
        if !takes || requester.user.is_operator || rule.has(Privilege::Rib) {
            return Ok(());
        }
        let may = || format!("it may be registered by {}", self.policy.operators());
        if is_reserved(name) {
            let what =
                "the empty name and names under /localhost and /localhop are reserved for the node";
            return Err(format!("{what}; {}", may()));
        }
        if host.is_of_others(name, requester.face) {
            return Err(format!(
                "another user or the node has a route at or under this name; {}",
                may()
            ));
        }
        Ok(())
    }

    /// Whether an application may read what `privilege` is about: the log, packets of others.
    ///
    /// # Errors
    /// A sentence that names who may.
    pub(super) fn may_read(
        &self,
        requester: Requester,
        privilege: Privilege,
    ) -> Result<(), String> {
        if self.policy.lets(requester.user, privilege) {
            return Ok(());
        }
        Err(format!("authorization rejected: {}", self.no_rule(requester)))
    }

    /// What must be so before any rule is asked.
    fn intact(&self, command: &Command<'_>, requester: Requester) -> Result<(), String> {
        match &command.signed {
            Ok(signed) if signed.signature_type == types::SIGNATURE_DIGEST_SHA256 => {
                signed.verify_digest().map_err(|e| e.to_string())
            }
            Ok(_) => Ok(()),
            // An announcement is signed itself; other modules may be granted to everybody.
            Err(Error::Unsigned) if command.verb == Verb::RibAnnounce => Ok(()),
            Err(Error::Unsigned) if command.module != Module::Rib && requester.is_local => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Registrations from elsewhere.
    fn localhop(&mut self, case: &Case<'_>) -> Decision {
        if !case.command.is_about(case.requester.face) {
            return Decision::Denied("others may register for their own face only".into());
        }
        let localhop = match &self.policy.localhop {
            None => return Decision::Denied("registration from elsewhere is off".into()),
            Some(localhop) => localhop.clone(),
        };
        if let Some((data, announcement)) = &case.command.announcement {
            let judged = self.announced(data, announcement, case.ticket, &case.context());
            return match judged {
                None => Decision::Waits,
                Some(Ok(())) => Decision::Granted,
                Some(Err(refusal)) => Decision::Denied(refusal),
            };
        }
        if case.command.signed.is_err() {
            return Decision::Denied("a signature is needed".into());
        }
        match localhop {
            Localhop::Any => self.accept(case.command, case.now_ms).into(),
            Localhop::Anchors => self.by_guard(LOCALHOP, case),
            Localhop::Trust(guard) => self.by_guard(&guard, case),
        }
    }

    /// Whether an announcement that came from elsewhere may be believed; `None` says that a guard
    /// judges later.
    pub(super) fn announced(
        &mut self,
        data: &Data<'_>,
        announcement: &PrefixAnnouncement<'_>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<(), String>> {
        let guard = match (&self.policy.announcers, &self.policy.localhop) {
            (Announcers::Trust(guard), _) => guard.clone(),
            (Announcers::Anchors, _) => ANNOUNCEMENTS.to_owned(),
            (Announcers::Localhop, Some(Localhop::Any)) => return Some(Ok(())),
            (Announcers::Localhop, Some(Localhop::Anchors)) => LOCALHOP.to_owned(),
            (Announcers::Localhop, Some(Localhop::Trust(guard))) => guard.clone(),
            (Announcers::Localhop, None) => {
                return Some(Err("announcements from elsewhere are off".into()));
            }
        };
        if self.fetcher.get(&guard).is_none() {
            return Some(Err(format!("there is no trust {guard}")));
        }
        let is_own = guard == LOCALHOP || guard == ANNOUNCEMENTS;
        let subject = if is_own { announcement.prefix } else { data.name };
        let judged = self.fetcher.data(&guard, data, subject, ticket, context);
        judged.map(|result| result.map_err(|refusal: Refusal| refusal.to_string()))
    }

    /// Judges replay and remembers the command. An announcement may be sent again.
    pub(super) fn accept(&mut self, command: &Command<'_>, now_ms: u64) -> Result<(), String> {
        accept(&mut self.replay, command, now_ms)
    }
}

fn accept(replay: &mut ReplayGuard, command: &Command<'_>, now_ms: u64) -> Result<(), String> {
    if command.verb == Verb::RibAnnounce {
        return Ok(());
    }
    let signed = command.signed.as_ref().map_err(ToString::to_string)?;
    check_replay(replay, signed, now_ms)?;
    replay.record(&replay_key(signed), signed.replay, now_ms);
    Ok(())
}

fn check_replay(replay: &ReplayGuard, signed: &Signed<'_>, now_ms: u64) -> Result<(), String> {
    replay.check(&replay_key(signed), signed.replay, now_ms).map_err(|e| e.to_string())
}

impl Case<'_> {
    fn context(&self) -> Context {
        let via = Some(u64::from(self.requester.face.0));
        Context { now_ms: self.now_ms, via, ..Context::default() }
    }
}

fn no_guard(name: &str) -> Decision {
    Decision::Denied(format!("there is no trust {name}"))
}

/// Whether the signature is made with a private key: no guard believes another.
const fn is_by_key(signed: &Signed<'_>) -> bool {
    signed.signature_type != types::SIGNATURE_DIGEST_SHA256
}

impl From<Result<(), String>> for Decision {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Denied, |()| Self::Granted)
    }
}

/// Under which key the replay state is kept.
fn replay_key(signed: &Signed<'_>) -> Vec<u8> {
    match signed.key_locator {
        Some(KeyLocator::Name(name)) => name.value().to_vec(),
        Some(KeyLocator::Digest(digest)) => digest.to_vec(),
        // All who sign with a digest are one: there the nonces differ, and the order is theirs.
        _ => Vec::new(),
    }
}

/// Whether the key locator means the key of `certificate`.
fn is_by(signed: &Signed<'_>, certificate: &Certificate) -> bool {
    match signed.key_locator {
        Some(KeyLocator::Name(name)) => {
            let key = certificate.key_name();
            key.is_prefix_of(name) || name == key
        }
        Some(KeyLocator::Digest(digest)) => digest == certificate.public_key().key_digest(),
        _ => false,
    }
}

fn verify(signed: &Signed<'_>, certificate: &Certificate, now_ms: u64) -> Result<(), String> {
    certificate.check_valid_at(now_ms).map_err(|e| e.to_string())?;
    signed.verify_key(certificate.public_key()).map_err(|e| e.to_string())
}
