//! Data believed by a trust schema, anchors and the certificates between.

use crate::error::Error as ClientError;
use crate::fetch::FetchError;
use crate::request::Unanswered;
use crate::verify::Verifier;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_crypto::{Certificate, Error, Signer};
use onym_guard::{Guard, GuardError, Notice};
use onym_trust::chain::{
    Context, Event, Failure, Fetch, Limits, Records, Refusal, Revoked, Trusted, record_by,
};
use onym_trust::suggest::{Candidate, Unfit, suggest};
use onym_trust::{Hierarchy, Policy, Subject};
use onym_wire::data::Data;
use onym_wire::name::{Name, NameRef};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most notices that are kept for [`Schema::notices`]; the oldest go.
const NOTICES_MAX: usize = 64;

/// What verifies Data by certificates that it has to be given.
pub trait Trust: Verifier {
    /// Name of a certificate, or of its key, without which a Data failed.
    fn wanted(&self) -> Option<Name>;

    /// Takes the certificate that was wanted. After a failure it is not wanted any more.
    ///
    /// # Errors
    /// [`Error::Untrusted`] when a chain ends there.
    fn certificate(&self, wire: &[u8]) -> Result<(), Error>;

    /// Nobody has the certificate or record that was wanted: it is not wanted any more.
    ///
    /// # Errors
    /// [`Error::Untrusted`] when a chain ends there. It need not: what is not revoked need not have
    /// a record.
    fn not_found(&self) -> Result<(), Error>;
}

/// What it means to `trust` that what it wanted because of the Data `name` did not come.
pub(crate) fn did_not_come<T: Trust + ?Sized>(
    trust: &T,
    name: &Name,
    wanted: &Name,
    silence: ClientError,
) -> Result<(), ClientError> {
    let has_node =
        !matches!(silence, ClientError::Unanswered { why: Unanswered::Disconnected, .. });
    match (trust.not_found(), &silence) {
        // A record of revocation need not exist.
        (Ok(()), ClientError::Unanswered { .. }) if has_node => Ok(()),
        (Err(source), _) if record_by(wanted.as_ref()).is_some() => {
            Err(FetchError::NotVerified { name: name.clone(), source }.into())
        }
        // Why a certificate did not come says more than that it is missing.
        _ => Err(silence),
    }
}

/// Verifies Data by a trust schema: its rules say which key signs which name, a chain of
/// certificates leads from the key to an anchor, and all of them are valid now.
///
/// It asks the network for nothing itself: a Data whose certificate is not known fails with
/// [`Error::NoCertificate`], [`wanted`](Trust::wanted) tells what to fetch then, and
/// [`certificate`](Trust::certificate) takes it, until nothing is wanted any more. The shells do so
/// by themselves: see [`blocking::Client::fetch_trusted`](crate::blocking::Client::fetch_trusted).
///
/// Files of the schema, of anchors and of revocations are looked at again when it is time to.
#[derive(Debug)]
pub struct Schema {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    guard: Guard,
    fetches: VecDeque<Fetch>,
    notices: VecDeque<Notice>,
}

impl From<Guard> for Schema {
    /// Believes by what a guard reads from files.
    fn from(guard: Guard) -> Self {
        let (fetches, notices) = (VecDeque::new(), VecDeque::new());
        Self { state: Mutex::new(State { guard, fetches, notices }) }
    }
}

impl Schema {
    /// Believes by `policy` what `anchors` vouch for.
    ///
    /// # Errors
    /// [`GuardError`] when the schema has no root of trust for an anchor.
    pub fn new(policy: Arc<dyn Policy>, anchors: Vec<Certificate>) -> Result<Self, GuardError> {
        Guard::fixed(policy, anchors, Limits::default()).map(Self::from)
    }

    /// Believes a key for names under its identity, when `anchors` vouch for it.
    ///
    /// # Errors
    /// [`GuardError`] when there are too many anchors.
    pub fn hierarchy(anchors: Vec<Certificate>) -> Result<Self, GuardError> {
        Self::new(Arc::new(Hierarchy), anchors)
    }

    /// Believes what this list names no longer.
    pub fn set_revoked(&self, revoked: Revoked) {
        self.state().guard.validator_mut().set_revoked(revoked);
    }

    /// Looks records of revocation up before it believes these certificates.
    pub fn set_records(&self, records: Records) {
        self.state().guard.validator_mut().set_records(records);
    }

    /// Who signed `data`, judged by the rules about `subject`: the name that it speaks about.
    ///
    /// # Errors
    /// [`Error::NoCertificate`] names what is wanted first, [`Error::Untrusted`] says why not.
    pub fn judge(&self, data: &Data<'_>, subject: NameRef<'_>) -> Result<Trusted, Error> {
        let mut state = self.state();
        let context = now();
        state.look(context.now_ms);
        match state.guard.validator_mut().data_about(data, subject, 0, &context) {
            Some(result) => result.map_err(|refusal| untrusted(&refusal)),
            None => {
                state.drain()?;
                let locator = data.signature_info().key_locator.and_then(|locator| locator.name());
                let wanted = locator.and_then(|l| state.guard.validator().waits_for(None, l));
                Err(Error::NoCertificate(wanted.cloned().unwrap_or_default()))
            }
        }
    }

    /// Takes what came for the certificate `wanted`; without it nobody has it.
    ///
    /// # Errors
    /// [`Error::Untrusted`] when a chain ends there.
    pub fn answer(&self, wanted: &Name, wire: Option<&[u8]>) -> Result<(), Error> {
        let mut state = self.state();
        let Some(at) = state.fetches.iter().position(|fetch| fetch.name == *wanted) else {
            return Ok(());
        };
        let Some(fetch) = state.fetches.remove(at) else { return Ok(()) };
        let (validator, context) = (state.guard.validator_mut(), now());
        match wire {
            Some(wire) => validator.certificate(fetch.id, wire, &context),
            None => validator.failed(fetch.id, Failure::TimedOut, context.now_ms),
        }
        state.drain()
    }

    /// What changed in its files since the last call.
    pub fn notices(&self) -> Vec<Notice> {
        self.state().notices.drain(..).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> Context {
    Context { now_ms: unix_now_ms(), ..Context::default() }
}

fn untrusted(refusal: &Refusal) -> Error {
    Error::Untrusted(refusal.to_string())
}

impl State {
    fn look(&mut self, now_ms: u64) {
        self.notices.extend(self.guard.look(now_ms));
        while self.notices.len() > NOTICES_MAX {
            self.notices.pop_front();
        }
    }

    /// Takes what the validator wants; an error when a packet was refused.
    fn drain(&mut self) -> Result<(), Error> {
        let mut refused = None;
        while let Some(event) = self.guard.validator_mut().poll() {
            match event {
                Event::Fetch(fetch) => self.fetches.push_back(fetch),
                Event::Judged { result: Err(refusal), .. } => {
                    refused.get_or_insert_with(|| untrusted(&refusal));
                }
                // A Data is verified again when it comes again.
                Event::Judged { result: Ok(_), .. } => {}
            }
        }
        refused.map_or(Ok(()), Err)
    }
}

impl Verifier for Schema {
    fn verify(&self, data: &Data<'_>) -> Result<(), Error> {
        self.judge(data, data.name).map(|_| ())
    }
}

impl Trust for Schema {
    fn wanted(&self) -> Option<Name> {
        self.state().fetches.front().map(|fetch| fetch.name.clone())
    }

    fn certificate(&self, wire: &[u8]) -> Result<(), Error> {
        self.wanted().map_or(Ok(()), |wanted| self.answer(&wanted, Some(wire)))
    }

    fn not_found(&self) -> Result<(), Error> {
        self.wanted().map_or(Ok(()), |wanted| self.answer(&wanted, None))
    }
}

/// Why no key of a store may sign a name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoSigner {
    /// Each certificate of the store, with the first rule that fails.
    #[error("no key of the store may sign {name}{}", listed(.candidates))]
    Unfit {
        /// What was to be signed.
        name: Name,
        /// Certificates, each with its reason.
        candidates: Vec<(Name, Unfit)>,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
}

fn listed(candidates: &[(Name, Unfit)]) -> String {
    candidates.iter().map(|(name, unfit)| format!("; {name}: {unfit}")).collect()
}

/// The key of `store` that `policy` lets sign Data of this name, with the full name of its
/// certificate as locator: the one form that every implementation takes.
///
/// # Errors
/// [`NoSigner`], with the first rule that fails for each certificate.
pub fn signer_for(
    policy: &dyn Policy,
    store: &KeyStore,
    anchors: &[Certificate],
    name: &Name,
) -> Result<Signer, NoSigner> {
    let now_ms = unix_now_ms();
    let certificates = store.certificates()?;
    let candidates: Vec<Candidate<'_>> = certificates
        .iter()
        .map(|certificate| Candidate {
            certificate: certificate.name(),
            issuer: certificate.issuer(),
            is_anchor: anchors.contains(certificate),
            is_valid: certificate.check_valid_at(now_ms).is_ok(),
        })
        .collect();
    match suggest(policy, &Subject::data(name.as_ref()), &candidates) {
        Ok(number) => {
            let certificate = certificates.get(number).ok_or(Error::Unsigned)?;
            let key = store.key(certificate.key_name())?;
            Ok(Signer::key(key, certificate.name().to_name()))
        }
        Err(unfit) => {
            let names = certificates.iter().map(|certificate| certificate.name().to_name());
            let candidates = names.zip(unfit).collect();
            Err(NoSigner::Unfit { name: name.clone(), candidates })
        }
    }
}
