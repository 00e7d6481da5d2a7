//! A page in one file, and what a browser is told about it: nothing from elsewhere, no other script
//! and no other style than its own, in no frame.

use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse, Response};

/// A page with its policy.
#[derive(Debug, Clone)]
pub struct Page {
    html: &'static str,
    policy: String,
}

/// What stands between `open` and `close`.
fn inside<'a>(html: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = html.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

impl Page {
    /// The page `html`, which has one `<script>` and one `<style>`; `digest` is the SHA-256 of a text
    /// in Base64.
    #[must_use]
    pub fn new(html: &'static str, digest: impl Fn(&str) -> String) -> Self {
        let of = |open, close| match inside(html, open, close) {
            Some(text) => format!("'sha256-{}'", digest(text)),
            None => "'none'".to_owned(),
        };
        let (script, style) = (of("<script>", "</script>"), of("<style>", "</style>"));
        let policy = format!(
            "default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; \
             img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'"
        );
        Self { html, policy }
    }
}

impl IntoResponse for &Page {
    fn into_response(self) -> Response {
        let kind = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
            (header::CONTENT_SECURITY_POLICY, self.policy.clone()),
        ];
        (SAFE, kind, self.html).into_response()
    }
}

/// Headers of every answer that a browser may get: nothing is kept, guessed, framed or told on.
pub const SAFE: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_allows_its_own_script_and_nothing_else() {
        let html = "<style>a{}</style><script>b()</script>";
        let page = Page::new(html, |text| format!("<{text}>"));
        let answer = (&page).into_response();
        let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(
            policy.contains("script-src 'sha256-<b()>'; style-src 'sha256-<a{}>';"),
            "{policy}"
        );
        for no in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(no), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let answer = (&Page::new("", str::to_owned)).into_response();
        let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("script-src 'none'"), "{policy}");
    }
}
