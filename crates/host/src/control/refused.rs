//! Refusals as HTTP tells them.

use onym_services::{Reason, Refusal};

/// Why a request is refused.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Status of HTTP.
    pub(crate) status: u16,
    /// A word for programs.
    pub(crate) code: &'static str,
    /// What happened and what to do.
    pub(crate) message: String,
    /// Which member is wrong.
    pub(crate) field: Option<String>,
}

impl Refused {
    /// A member of the request is wrong.
    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Refusal::field(field, message).into()
    }

    /// There is no such path.
    pub(crate) fn no_path() -> Self {
        Refusal::no_path().into()
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let Refusal { reason, code, message, field } = refusal;
        let status = match reason {
            Reason::Invalid => 422,
            Reason::NotFound => 404,
            Reason::Conflict => 409,
        };
        Self { status, code, message, field }
    }
}
