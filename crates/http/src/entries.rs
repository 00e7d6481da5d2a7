//! Browsers that were let in: a code is good once and soon, and who shows it gets a secret that is
//! good for longer.

use crate::access::is_same;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Codes and secrets that are kept; the oldest gives way.
pub const ENTRIES_MAX: usize = 16;
/// How long a code is good for.
pub const CODE_LIFE: Duration = Duration::from_secs(120);
/// How long the secret of a browser is.
pub const ENTRY_LIFE: Duration = Duration::from_secs(12 * 3600);

/// Codes that wait for a browser, and the secrets of the browsers that came.
///
/// ```
/// use onym_http::entries::Entries;
/// # let secret = || "a1b2".to_owned();
/// let entries = Entries::new(secret);
/// let code = entries.code();
/// let own = entries.exchange(&code).unwrap();
/// assert!(entries.knows(&own) && entries.exchange(&code).is_none());
/// ```
#[derive(Debug)]
pub struct Entries {
    /// Makes a text that nobody guesses.
    secret: fn() -> String,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    codes: VecDeque<(String, Instant)>,
    own: VecDeque<(String, Instant)>,
}

fn keep(list: &mut VecDeque<(String, Instant)>, secret: &str, life: Duration) {
    let now = Instant::now();
    list.retain(|(_, end)| *end > now);
    if list.len() == ENTRIES_MAX {
        list.pop_front();
    }
    list.push_back((secret.to_owned(), now + life));
}

impl Entries {
    /// Nobody is in yet; `secret` makes codes and secrets.
    #[must_use]
    pub fn new(secret: fn() -> String) -> Self {
        Self { secret, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("invariant: no panic under this lock")
    }

    /// A code that lets one browser in, for [`CODE_LIFE`].
    #[must_use]
    pub fn code(&self) -> String {
        let code = (self.secret)();
        keep(&mut self.known().codes, &code, CODE_LIFE);
        code
    }

    /// The secret of a browser for a code, which is of no use from then on.
    #[must_use]
    pub fn exchange(&self, code: &str) -> Option<String> {
        let mut known = self.known();
        let now = Instant::now();
        let fits =
            |(own, end): &(String, Instant)| *end > now && is_same(own.as_bytes(), code.as_bytes());
        let at = known.codes.iter().position(fits)?;
        known.codes.remove(at);
        let own = (self.secret)();
        keep(&mut known.own, &own, ENTRY_LIFE);
        Some(own)
    }

    /// Whether a browser has this secret.
    #[must_use]
    pub fn knows(&self, own: &str) -> bool {
        let now = Instant::now();
        // All are looked at, so that the time tells nothing.
        self.known().own.iter().fold(false, |found, (known, end)| {
            found | (is_same(known.as_bytes(), own.as_bytes()) && *end > now)
        })
    }

    /// Whoever has this secret is let in no more.
    pub fn end(&self, own: &str) {
        self.known().own.retain(|(known, _)| !is_same(known.as_bytes(), own.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Not secret, but each another one.
    fn next() -> String {
        static LAST: AtomicU64 = AtomicU64::new(0);
        format!("{:016x}", LAST.fetch_add(1, Ordering::Relaxed))
    }

    #[test]
    fn a_code_lets_one_browser_in_once() {
        let entries = Entries::new(next);
        let code = entries.code();
        assert!(!entries.knows(&code) && !entries.knows(""));
        let own = entries.exchange(&code).unwrap();
        assert!(entries.knows(&own) && own != code);
        assert_eq!(entries.exchange(&code), None);
        assert_eq!(entries.exchange(""), None);
        entries.end(&own);
        assert!(!entries.knows(&own));
    }

    #[test]
    fn the_oldest_codes_and_browsers_give_way() {
        let entries = Entries::new(next);
        let codes: Vec<_> = (0..=ENTRIES_MAX).map(|_| entries.code()).collect();
        assert_eq!(entries.exchange(&codes[0]), None);
        let first = entries.exchange(&codes[1]).unwrap();
        for _ in 0..ENTRIES_MAX {
            entries.exchange(&entries.code()).unwrap();
        }
        assert!(!entries.knows(&first));
    }
}
