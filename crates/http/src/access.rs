//! Access control: tokens, `Host` and `Origin` of a request, users.

use axum::http::{HeaderMap, header};
use onym_sys::origin::{is_loopback_host, is_same_origin};
use thiserror::Error;

/// Why a request is not meant for this machine, or comes from a page of another place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Foreign {
    /// It names no host.
    #[error("the request has no Host header; HTTP/1.1 requires one")]
    NoHost,
    /// It names another host: a page has a name of its own resolve to this machine, say.
    #[error("the request is for host {0:?}; only localhost and loopback addresses are served")]
    Host(String),
    /// A page of another place sent it.
    #[error("the request comes from a page of {0:?}; pages of other origins are refused")]
    Origin(String),
}

/// Refuses what is for another host than loopback, and what a page of another place sends.
///
/// # Errors
/// Which of the two.
pub fn check_loopback(headers: &HeaderMap) -> Result<(), Foreign> {
    let host = text(headers, &header::HOST).ok_or(Foreign::NoHost)?;
    if !is_loopback_host(host) {
        return Err(Foreign::Host(host.to_owned()));
    }
    check_origin(headers)
}

/// Refuses what a page of another place sends.
///
/// # Errors
/// [`Foreign::Origin`].
pub fn check_origin(headers: &HeaderMap) -> Result<(), Foreign> {
    let host = text(headers, &header::HOST).unwrap_or_default();
    match headers.get(header::ORIGIN) {
        None => Ok(()),
        Some(origin) => {
            let origin = String::from_utf8_lossy(origin.as_bytes()).into_owned();
            if is_same_origin(&origin, host) { Ok(()) } else { Err(Foreign::Origin(origin)) }
        }
    }
}

/// Whether the body is said to be JSON, which no page of another place can say without being asked
/// back (CORS).
#[must_use]
pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// The token that a request carries.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    text(headers, &header::AUTHORIZATION)?.strip_prefix("Bearer ").map(str::trim)
}

/// Whether two secrets are the same, in a time that does not tell how much of them is.
#[must_use]
pub fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |sum, (x, y)| sum | (x ^ y));
    a.len() == b.len() && differ == 0
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            headers.insert(*name, header::HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_foreign_host_or_page_is_told() {
        let check = |rows: &[_]| check_loopback(&headers(rows));
        assert_eq!(check(&[("host", "127.0.0.1:80")]), Ok(()));
        assert_eq!(check(&[("host", "[::1]:80"), ("origin", "http://[::1]:80")]), Ok(()));
        assert_eq!(check(&[]), Err(Foreign::NoHost));
        assert_eq!(check(&[("host", "evil.example")]), Err(Foreign::Host("evil.example".into())));
        for origin in ["null", "http://evil.example", "http://localhost:81"] {
            let rows = [("host", "localhost:80"), ("origin", origin)];
            assert_eq!(check(&rows), Err(Foreign::Origin(origin.into())));
        }
    }

    #[test]
    fn json_is_told_by_its_media_type() {
        assert!(is_json(&headers(&[("content-type", "Application/JSON; charset=utf-8")])));
        for kind in ["text/plain", "application/jsonp", "text/json, application/json"] {
            assert!(!is_json(&headers(&[("content-type", kind)])), "{kind}");
        }
        assert!(!is_json(&headers(&[])));
    }

    #[test]
    fn secrets_are_compared_whole() {
        assert!(is_same(b"abc", b"abc"));
        assert!(!is_same(b"abc", b"abd") && !is_same(b"abc", b"ab") && !is_same(b"", b"a"));
    }
}
