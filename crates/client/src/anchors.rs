//! Trust anchors, and the chains of certificates that lead from Data to them.

use crate::verify::Verifier;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::trust::{self, Check, Refusal, Step};
use onym_crypto::verify::Signed;
use onym_crypto::{Certificate, Error};
use onym_wire::data::Data;
use onym_wire::name::Name;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What verifies Data by certificates that it has to be given: [`Anchors`] by hierarchy, or a
/// [`Schema`](crate::Schema).
pub trait Trust: Verifier {
    /// Name of a certificate, or of its key, without which a Data failed.
    fn wanted(&self) -> Option<Name>;

    /// Takes the certificate that was wanted. After a failure it is not wanted any more.
    ///
    /// # Errors
    /// [`Error::Untrusted`] when a chain ends there.
    fn certificate(&self, wire: &[u8]) -> Result<(), Error>;

    /// Nobody has the certificate that was wanted: it is not wanted any more.
    fn not_found(&self);
}

/// Verifies Data by trust anchors: a key may sign names under its identity, and must be vouched for
/// by an anchor or, over at most [`DEPTH_MAX`](onym_crypto::trust::DEPTH_MAX) certificates, by what
/// an anchor vouches for.
///
/// It does no input or output. A Data whose certificate is not known fails with
/// [`Error::NoCertificate`]; [`wanted`](Trust::wanted) tells what to fetch then and
/// [`certificate`](Trust::certificate) takes it, until nothing is wanted any more. The shells do so
/// by themselves: see [`blocking::Client::fetch_trusted`](crate::blocking::Client::fetch_trusted).
#[derive(Debug)]
pub struct Anchors {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    trust: trust::Trust,
    /// The Data that failed last for want of a certificate.
    open: Option<(Check, Name)>,
}

impl Anchors {
    /// Trusts these certificates and what they vouch for.
    #[must_use]
    pub fn new(anchors: Vec<Certificate>) -> Self {
        Self { state: Mutex::new(State { trust: trust::Trust::new(anchors), open: None }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trust for Anchors {
    fn wanted(&self) -> Option<Name> {
        self.state().open.as_ref().map(|(_, name)| name.clone())
    }

    fn certificate(&self, wire: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        let Some((mut check, _)) = state.open.take() else { return Ok(()) };
        match check.certificate(wire, &mut state.trust, unix_now_ms()) {
            Step::Trusted => Ok(()),
            Step::Fetch(name) => {
                state.open = Some((check, name));
                Ok(())
            }
            Step::Refused(refusal) => Err(untrusted(refusal)),
        }
    }

    fn not_found(&self) {
        self.state().open = None;
    }
}

fn untrusted(refusal: Refusal) -> Error {
    Error::Untrusted(Box::new(refusal))
}

impl Verifier for Anchors {
    fn verify(&self, data: &Data<'_>) -> Result<(), Error> {
        let mut check = Check::new(data.name, &Signed::data(data)).map_err(untrusted)?;
        let mut state = self.state();
        match check.start(&mut state.trust, unix_now_ms()) {
            Step::Trusted => Ok(()),
            Step::Refused(refusal) => Err(untrusted(refusal)),
            Step::Fetch(name) => {
                state.open = Some((check, name.clone()));
                Err(Error::NoCertificate(name))
            }
        }
    }
}
