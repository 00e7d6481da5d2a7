//! Authorization of commands.
//!
//! Rules only grant: a command is executed when a rule matches, and refused when none does.
//! Without rules of their own, operators may do everything, other local faces register prefixes for
//! themselves that are nobody else's, and others nothing; `/localhop` is off.
//!
//! Replay is judged per key and only where a signature proves something: a DigestSha256 command on
//! a local face is accepted in any order, since everybody on the machine could make it again.

use super::Requester;
use super::command::{Command, Module, Verb};
use super::host::Host;
use super::policy::{Localhop, Policy, Privilege, Rule, Who, is_reserved};
use onym_crypto::replay::{ReplayGuard, ReplayPolicy};
use onym_crypto::trust::{Check, Step, Trust};
use onym_crypto::verify::Signed;
use onym_crypto::{Certificate, Error};
use onym_wire::name::Name;
use onym_wire::signature::KeyLocator;
use onym_wire::types;

/// What is decided about a command; `C` is a check that has begun.
#[derive(Debug)]
pub(super) enum Decision<C> {
    Granted,
    /// Refused, with a sentence.
    Denied(String),
    /// A certificate with this name is needed first.
    Fetch(C, Name),
}

/// A signature on its way to an anchor.
#[derive(Debug)]
pub(super) struct Begun {
    check: Check,
    anchors: Anchors,
}

#[derive(Debug, Clone, Copy)]
enum Anchors {
    Announcement,
    Localhop,
}

#[derive(Debug)]
pub(super) struct Authorizer {
    policy: Policy,
    localhop: Trust,
    announcement: Trust,
    replay: ReplayGuard,
}

impl Authorizer {
    pub(super) fn new(policy: Policy) -> Self {
        let mut this = Self {
            policy: Policy::default(),
            localhop: Trust::default(),
            announcement: Trust::default(),
            replay: ReplayGuard::new(ReplayPolicy::default()),
        };
        this.set_policy(policy);
        this
    }

    /// Takes over new rules; what was seen against replay is kept.
    pub(super) fn set_policy(&mut self, policy: Policy) {
        let anchors = match &policy.localhop {
            Some(Localhop::Anchors(anchors)) => anchors.clone(),
            _ => Vec::new(),
        };
        let announcement = match policy.announcement_anchors.as_slice() {
            [] => anchors.clone(),
            own => own.to_vec(),
        };
        self.localhop = Trust::new(anchors);
        self.announcement = Trust::new(announcement);
        self.policy = policy;
    }

    pub(super) fn localhop_is_on(&self) -> bool {
        self.policy.localhop.is_some()
    }

    /// Whether `command` may be carried out for `requester`.
    pub(super) fn decide(
        &mut self,
        command: &Command<'_>,
        requester: Requester,
        host: &mut dyn Host,
    ) -> Decision<Begun> {
        let now_ms = host.unix_ms();
        if let Err(why) = self.intact(command, requester) {
            return Decision::Denied(why);
        }
        let mut reason = None;
        let signed = command.signed.as_ref().ok();
        for rule in self.policy.rules.iter().filter(|r| r.grants(command, requester)) {
            match &rule.who {
                _ if requester.is_local && rule.is_for(requester.user) => {
                    match self.name_is_free(rule, command, requester, host) {
                        Ok(()) => return Decision::Granted,
                        Err(why) => reason = Some(why),
                    }
                }
                Who::Any if !requester.is_local => return self.accept(command, now_ms).into(),
                Who::Any | Who::Local | Who::Operators => {}
                Who::Certificate(certificate) => match signed {
                    Some(signed) if is_by(signed, certificate) => {
                        let valid = verify(signed, certificate, now_ms);
                        match valid.and_then(|()| accept(&mut self.replay, command, now_ms)) {
                            Ok(()) => return Decision::Granted,
                            Err(why) => reason = Some(why),
                        }
                    }
                    _ => {}
                },
            }
        }
        if !requester.is_local && command.module == Module::Rib {
            return self.localhop(command, requester, now_ms);
        }
        Decision::Denied(reason.unwrap_or_else(|| self.no_rule(requester)))
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

    /// Whether an application may read the log.
    pub(super) fn may_read_log(&self, requester: Requester) -> Result<(), String> {
        if self.policy.lets(requester.user, Privilege::Log) {
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
    fn localhop(
        &mut self,
        command: &Command<'_>,
        requester: Requester,
        now_ms: u64,
    ) -> Decision<Begun> {
        if !command.is_about(requester.face) {
            return Decision::Denied("others may register for their own face only".into());
        }
        let is_any = match &self.policy.localhop {
            None => return Decision::Denied("registration from elsewhere is off".into()),
            Some(Localhop::Any) => true,
            Some(Localhop::Anchors(_)) => false,
        };
        let (check, anchors) = match (&command.announcement, command.subject(), &command.signed) {
            (Some(_), ..) if is_any && self.policy.announcement_anchors.is_empty() => {
                return Decision::Granted;
            }
            (Some((data, announcement)), ..) => {
                (Check::new(announcement.prefix, &Signed::data(data)), Anchors::Announcement)
            }
            (None, _, Ok(_)) if is_any => return self.accept(command, now_ms).into(),
            (None, Some(subject), Ok(signed)) => {
                // Before anything is fetched for it.
                if let Err(why) = check_replay(&self.replay, signed, now_ms) {
                    return Decision::Denied(why);
                }
                (Check::new(subject, signed), Anchors::Localhop)
            }
            _ => return Decision::Denied("a signature is needed".into()),
        };
        let mut check = match check {
            Ok(check) => check,
            Err(refusal) => return Decision::Denied(refusal.to_string()),
        };
        match check.start(self.trust(anchors), now_ms) {
            Step::Trusted => self.accept(command, now_ms).into(),
            Step::Fetch(wanted) => Decision::Fetch(Begun { check, anchors }, wanted),
            Step::Refused(refusal) => Decision::Denied(refusal.to_string()),
        }
    }

    fn trust(&mut self, anchors: Anchors) -> &mut Trust {
        match anchors {
            Anchors::Announcement => &mut self.announcement,
            Anchors::Localhop => &mut self.localhop,
        }
    }

    /// Goes on with a certificate that was fetched. [`Decision::Granted`] says that the signer is
    /// trusted; replay is still to be judged by [`Authorizer::accept`].
    pub(super) fn advance(&mut self, begun: &mut Begun, wire: &[u8], now_ms: u64) -> Decision<()> {
        let trust = self.trust(begun.anchors);
        match begun.check.certificate(wire, trust, now_ms) {
            Step::Trusted => Decision::Granted,
            Step::Fetch(wanted) => Decision::Fetch((), wanted),
            Step::Refused(refusal) => Decision::Denied(refusal.to_string()),
        }
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

impl<C> From<Result<(), String>> for Decision<C> {
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
