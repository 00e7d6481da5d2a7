//! Data believed by a trust schema, anchors and the certificates between.

use crate::anchors::Trust;
use crate::verify::Verifier;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_crypto::trust::Refusal;
use onym_crypto::{Certificate, Error, Signer};
use onym_trust::chain::{AnchorError, Context, Event, Failure, Fetch, Limits, Validator};
use onym_trust::suggest::{Candidate, Unfit, suggest};
use onym_trust::{Policy, Subject};
use onym_wire::data::Data;
use onym_wire::name::Name;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Verifies Data by a trust schema: its rules say which key signs which name, a chain of
/// certificates leads from the key to an anchor, and all of them are valid now.
///
/// It does no input or output, as [`Anchors`](crate::Anchors): a Data whose certificate is not known
/// fails with [`Error::NoCertificate`], and [`Trust::wanted`] tells what to fetch.
#[derive(Debug)]
pub struct Schema {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    validator: Validator,
    fetches: VecDeque<Fetch>,
}

impl Schema {
    /// Believes by `policy` what `anchors` vouch for.
    ///
    /// # Errors
    /// [`AnchorError`] when the schema has no root of trust for an anchor.
    pub fn new(policy: Arc<dyn Policy>, anchors: Vec<Certificate>) -> Result<Self, AnchorError> {
        let mut validator = Validator::new(policy, Limits::default());
        for anchor in anchors {
            validator.add_anchor(anchor)?;
        }
        Ok(Self { state: Mutex::new(State { validator, fetches: VecDeque::new() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> Context {
    Context { now_ms: unix_now_ms(), ..Context::default() }
}

fn untrusted(refusal: &onym_trust::chain::Refusal) -> Error {
    Error::Untrusted(Box::new(Refusal::Schema(refusal.to_string())))
}

impl State {
    /// Takes what the validator wants; an error when a packet was refused.
    fn drain(&mut self) -> Result<(), Error> {
        let mut refused = None;
        while let Some(event) = self.validator.poll() {
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
        let mut state = self.state();
        match state.validator.data(data.wire, 0, &now()) {
            Some(Ok(_)) => Ok(()),
            Some(Err(refusal)) => Err(untrusted(&refusal)),
            None => {
                state.drain()?;
                let wanted = state.fetches.front().map(|fetch| fetch.name.clone());
                Err(Error::NoCertificate(wanted.unwrap_or_default()))
            }
        }
    }
}

impl Trust for Schema {
    fn wanted(&self) -> Option<Name> {
        self.state().fetches.front().map(|fetch| fetch.name.clone())
    }

    fn certificate(&self, wire: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        let Some(fetch) = state.fetches.pop_front() else { return Ok(()) };
        state.validator.certificate(fetch.id, wire, &now());
        state.drain()
    }

    fn not_found(&self) {
        let mut state = self.state();
        if let Some(fetch) = state.fetches.pop_front() {
            state.validator.failed(fetch.id, Failure::TimedOut, unix_now_ms());
        }
        let _ = state.drain();
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
