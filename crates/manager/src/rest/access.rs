//! Which requests a listener of the manager answers, and how a browser obtains a session.

use super::Refusal;
use crate::engine::random_hex;
use axum::http::{HeaderMap, StatusCode};
use onym_http::access::{Foreign, bearer, check_loopback, check_origin, is_same};
use onym_http::entries::Entries;
use onym_http::server::Caller;
use onym_sys::peer::Operators;
use std::sync::Arc;

/// Whose requests are answered.
#[derive(Debug, Clone)]
pub enum Access {
    /// Those of operators, by a Unix socket.
    Operators(Operators),
    /// Those that carry the token, or that of a page.
    Token(Arc<str>),
    /// Those of who has shown a certificate, unless they come from a page of another place.
    Certificate,
    /// Those meant for this machine that come from no page of another place, whoever asks.
    Machine,
}

impl From<Option<String>> for Access {
    fn from(token: Option<String>) -> Self {
        token.map_or(Self::Machine, |t| Self::Token(Arc::from(t)))
    }
}

impl Access {
    /// Refuses who may not ask.
    pub(super) fn check(
        &self,
        headers: &HeaderMap,
        caller: Option<&Caller>,
        pages: &Pages,
    ) -> Result<(), Refusal> {
        match self {
            Self::Operators(operators) => {
                let peer = caller.and_then(|caller| caller.credentials.as_ref());
                if !peer.is_some_and(|peer| operators.include(peer)) {
                    let text = "this socket answers root, the manager's user and members of its \
                                group (onym, or what --group names)";
                    return Err(Refusal::new(StatusCode::FORBIDDEN, "user", text));
                }
                check_origin(headers).map_err(foreign)
            }
            Self::Token(token) => {
                let given = bearer(headers).unwrap_or_default();
                if is_same(given.as_bytes(), token.as_bytes()) || pages.knows(given) {
                    return Ok(());
                }
                let text = "a token is needed: Authorization: Bearer TOKEN; `onym net` finds its \
                            own way, and `onym net page` prints an address for a browser";
                Err(Refusal::new(StatusCode::UNAUTHORIZED, "token", text))
            }
            Self::Certificate => check_origin(headers).map_err(foreign),
            Self::Machine => check_loopback(headers).map_err(foreign),
        }
    }
}

fn foreign(why: Foreign) -> Refusal {
    let status =
        if why == Foreign::NoHost { StatusCode::BAD_REQUEST } else { StatusCode::FORBIDDEN };
    Refusal::new(status, "host", why.to_string())
}

/// Where the page is, and the browsers that were let in: an operator asks for an address with a
/// code, and who shows the code first, and in time, has a token of its own.
#[derive(Debug)]
pub struct Pages {
    url: Option<String>,
    coded: bool,
    entries: Entries,
}

impl Default for Pages {
    fn default() -> Self {
        Self { url: None, coded: false, entries: Entries::new(|| random_hex(16)) }
    }
}

impl Pages {
    /// The page is at `url`, for every browser that the interface lets in.
    #[must_use]
    pub fn open(url: String) -> Self {
        Self { url: Some(url), ..Self::default() }
    }

    /// The page is at `url`, and a browser needs a code.
    #[must_use]
    pub fn coded(url: String) -> Self {
        Self { coded: true, ..Self::open(url) }
    }

    /// An address at which a browser finds the page and is let in, once.
    pub(super) fn address(&self) -> Option<String> {
        let url = self.url.as_ref()?;
        if !self.coded {
            return Some(format!("{url}/"));
        }
        // What is behind # stays in the browser: it is in no request line and in no log.
        Some(format!("{url}/#code={}", self.entries.code()))
    }

    /// A token for a code, which is of no use from then on.
    pub(super) fn token_for(&self, code: &str) -> Option<String> {
        self.entries.exchange(code)
    }

    fn knows(&self, token: &str) -> bool {
        self.entries.knows(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_code_where_one_is_needed() {
        let pages = Pages::coded("http://127.0.0.1:1".into());
        let address = pages.address().unwrap();
        let token = pages.token_for(address.split_once("#code=").unwrap().1).unwrap();
        assert!(pages.knows(&token) && !pages.knows(""));
        assert_eq!(Pages::open("http://a".into()).address().unwrap(), "http://a/");
        assert_eq!(Pages::default().address(), None);
    }
}
