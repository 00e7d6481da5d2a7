//! Why a request of the control interface is refused.

/// Kinds of reasons for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Something in the request is wrong.
    Invalid,
    /// What the request is about does not exist.
    NotFound,
    /// The request does not fit what is there.
    Conflict,
}

/// Why a request of the control interface is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of reason it is.
    pub reason: Reason,
    /// A word for programs.
    pub code: &'static str,
    /// What happened and what to do.
    pub message: String,
    /// Which member is wrong.
    pub field: Option<String>,
}

impl Refusal {
    /// A member of the request is wrong.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let field = Some(field.into());
        Self { reason: Reason::Invalid, code: "invalid", message: message.into(), field }
    }

    /// There is no such path for this kind of service.
    #[must_use]
    pub fn no_path() -> Self {
        let message =
            "this kind of service does not have this path; spec/services.md lists them".into();
        Self { reason: Reason::NotFound, code: "no_such_path", message, field: None }
    }

    /// The request does not fit what is there; `code` is a word for programs.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self { reason: Reason::Conflict, code, message: message.into(), field: None }
    }
}
