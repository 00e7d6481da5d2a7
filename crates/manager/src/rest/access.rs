//! Which requests a listener of the manager answers, and how a browser obtains a session.

use super::Refusal;
use crate::engine::random_hex;
use axum::http::{HeaderMap, StatusCode};
use onym_http::access::{Foreign, bearer, check_loopback, check_origin, is_same};
use onym_http::server::Caller;
use onym_sys::peer::Operators;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

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

/// Codes and tokens of pages that are kept; the oldest gives way.
const PAGES_MAX: usize = 16;
/// How long a code is good for.
pub(super) const CODE_LIFE: Duration = Duration::from_secs(120);
/// How long the token of a page is.
const PAGE_LIFE: Duration = Duration::from_secs(12 * 3600);

/// Where the page is, and the browsers that were let in: an operator asks for an address with a
/// code, and who shows the code first, and in time, has a token of its own.
#[derive(Debug, Default)]
pub struct Pages {
    url: Option<String>,
    coded: bool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    codes: VecDeque<(String, Instant)>,
    tokens: VecDeque<(String, Instant)>,
}

fn keep(list: &mut VecDeque<(String, Instant)>, secret: &str, life: Duration) {
    list.retain(|(_, end)| *end > Instant::now());
    if list.len() == PAGES_MAX {
        list.pop_front();
    }
    list.push_back((secret.to_owned(), Instant::now() + life));
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
        Self { url: Some(url), coded: true, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("invariant: no panic under this lock")
    }

    /// An address at which a browser finds the page and is let in, once.
    pub(super) fn address(&self) -> Option<String> {
        let url = self.url.as_ref()?;
        if !self.coded {
            return Some(format!("{url}/"));
        }
        let code = random_hex(16);
        keep(&mut self.known().codes, &code, CODE_LIFE);
        // What is behind # stays in the browser: it is in no request line and in no log.
        Some(format!("{url}/#code={code}"))
    }

    /// A token for a code, which is of no use from then on.
    pub(super) fn token_for(&self, code: &str) -> Option<String> {
        let mut known = self.known();
        let now = Instant::now();
        let fits =
            |(own, end): &(String, Instant)| *end > now && is_same(own.as_bytes(), code.as_bytes());
        let at = known.codes.iter().position(fits)?;
        known.codes.remove(at);
        let token = random_hex(16);
        keep(&mut known.tokens, &token, PAGE_LIFE);
        Some(token)
    }

    fn knows(&self, token: &str) -> bool {
        let now = Instant::now();
        let known = self.known();
        // All are looked at, so that the time tells nothing.
        known.tokens.iter().fold(false, |found, (own, end)| {
            found | (is_same(own.as_bytes(), token.as_bytes()) && *end > now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(pages: &Pages) -> String {
        pages.address().unwrap().split_once("#code=").unwrap().1.to_owned()
    }

    #[test]
    fn a_code_lets_one_browser_in_once() {
        let pages = Pages::coded("http://127.0.0.1:1".into());
        let code = code(&pages);
        assert!(!pages.knows(&code) && !pages.knows(""));
        let token = pages.token_for(&code).unwrap();
        assert!(pages.knows(&token) && token != code);
        assert_eq!(pages.token_for(&code), None);
        assert_eq!(pages.token_for(""), None);
    }

    #[test]
    fn the_oldest_codes_and_pages_give_way() {
        let pages = Pages::coded("http://127.0.0.1:1".into());
        let codes: Vec<_> = (0..=PAGES_MAX).map(|_| code(&pages)).collect();
        assert_eq!(pages.token_for(&codes[0]), None);
        let first = pages.token_for(&codes[1]).unwrap();
        for _ in 0..PAGES_MAX {
            pages.token_for(&code(&pages)).unwrap();
        }
        assert!(!pages.knows(&first));
    }
}
