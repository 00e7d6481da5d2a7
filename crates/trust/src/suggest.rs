//! Which key signs this: the first that the policy allows, and why the others are not.

use crate::policy::{Denial, Policy, Subject, Verdict};
use onym_wire::NameRef;

/// A key that a producer has a certificate for.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Name of its certificate.
    pub certificate: NameRef<'a>,
    /// KeyLocator of the certificate; `None` when it has none.
    pub issuer: Option<NameRef<'a>>,
    /// Whether the certificate is a trust anchor: then nobody needs to have signed it.
    pub is_anchor: bool,
    /// Whether it is valid at the moment of signing.
    pub is_valid: bool,
}

/// Why a candidate is not chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// It may not sign the packet.
    Packet(Denial),
    /// Its own certificate would not be believed.
    Certificate(Denial),
    /// Its certificate names no issuer.
    NoIssuer,
    /// Its certificate is outside its validity period.
    NotValid,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Packet(denial) => denial.fmt(f),
            Self::Certificate(denial) => write!(f, "its certificate would be refused: {denial}"),
            Self::NoIssuer => f.write_str("its certificate names no issuer"),
            Self::NotValid => f.write_str("its certificate is not valid now"),
        }
    }
}

/// The number of the first candidate that may sign, or why each of them may not.
///
/// # Errors
/// One reason for each candidate, in their order.
pub fn suggest(
    policy: &dyn Policy,
    subject: &Subject<'_>,
    candidates: &[Candidate<'_>],
) -> Result<usize, Vec<Unfit>> {
    let mut unfit = Vec::with_capacity(candidates.len());
    for (number, candidate) in candidates.iter().enumerate() {
        match fit(policy, subject, candidate) {
            Ok(()) => return Ok(number),
            Err(reason) => unfit.push(reason),
        }
    }
    Err(unfit)
}

fn fit(policy: &dyn Policy, subject: &Subject<'_>, candidate: &Candidate<'_>) -> Result<(), Unfit> {
    if let Verdict::Denied(denial) = policy.check(subject, candidate.certificate) {
        return Err(Unfit::Packet(denial));
    }
    if !candidate.is_valid {
        return Err(Unfit::NotValid);
    }
    if candidate.is_anchor {
        return policy.anchor(candidate.certificate).map_err(Unfit::Certificate);
    }
    let issuer = candidate.issuer.ok_or(Unfit::NoIssuer)?;
    match policy.check(&Subject::data(candidate.certificate), issuer) {
        Verdict::Allowed { .. } => Ok(()),
        Verdict::Denied(denial) => Err(Unfit::Certificate(denial)),
    }
}
