//! Answers that say no.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why an answer says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is not understood.
    Usage,
    /// No node answers.
    NoNode,
    /// The node refuses.
    Refused,
    /// There is nothing of this name.
    NotFound,
    /// Something else.
    Failed,
    /// The browser has not been let in.
    Session,
    /// It is not for this page, or by another user.
    Foreign,
    /// A body is not JSON by its media type.
    Media,
    /// A body is too long.
    TooLarge,
    /// The path has no such method.
    Method,
    /// Others do it already.
    Busy,
}

impl Kind {
    const fn parts(self) -> (StatusCode, &'static str) {
        match self {
            Self::Usage => (StatusCode::UNPROCESSABLE_ENTITY, "usage"),
            Self::NoNode => (StatusCode::SERVICE_UNAVAILABLE, "no-node"),
            Self::Refused => (StatusCode::FORBIDDEN, "refused"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found"),
            Self::Failed => (StatusCode::BAD_GATEWAY, "failed"),
            Self::Session => (StatusCode::UNAUTHORIZED, "session"),
            Self::Foreign => (StatusCode::FORBIDDEN, "foreign"),
            Self::Media => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "media"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, "method"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
        }
    }
}

/// An answer that says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub kind: Kind,
    /// What and why, in a sentence: where the node refuses, its own.
    pub message: String,
    /// What to do.
    pub next: Option<String>,
}

impl Refused {
    /// One without advice.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), next: None }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, code) = self.kind.parts();
        let body = json!({ "error": { "code": code, "message": self.message, "next": self.next } });
        (status, axum::Json(body)).into_response()
    }
}
