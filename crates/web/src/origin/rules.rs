//! What an answer of an origin may be used for: the rules of HTTP for shared caches (RFC 9111).

use hyper::header::{self, HeaderMap};
use std::time::{Duration, SystemTime};

/// How long an answer is fresh at most, whatever it says.
const FRESH_MAX: Duration = Duration::from_secs(30 * 86_400);
/// How long it is remembered that there is nothing, where the origin does not say.
const NOTHING_FRESH: Duration = Duration::from_secs(1);

/// What an answer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judged {
    /// A page for everybody, fresh for so long.
    Page { fresh: Duration, stale_if_error: Duration },
    /// What is known is still right (304), fresh for so long.
    Same { fresh: Duration, stale_if_error: Duration },
    /// There is nothing, for so long.
    Nothing { fresh: Duration },
    /// It is for one client only, or not to be kept.
    NotForOthers,
    /// It is there.
    Moved(String),
    /// The origin failed.
    Failed,
}

/// What the answer with this status and these headers is.
pub(crate) fn judge(status: u16, headers: &HeaderMap, now: SystemTime) -> Judged {
    let directives = Directives::of(headers);
    let fresh = directives.fresh(headers, now);
    let stale_if_error = directives.seconds("stale-if-error").unwrap_or_default();
    let has_word = ["must-revalidate", "proxy-revalidate", "no-cache"];
    let may_be_stale = !has_word.iter().any(|word| directives.has(word));
    let stale_if_error = if may_be_stale { stale_if_error } else { Duration::ZERO };
    match status {
        200 if !directives.is_for_all(headers) => Judged::NotForOthers,
        200 => Judged::Page { fresh: fresh.unwrap_or_default(), stale_if_error },
        304 => Judged::Same { fresh: fresh.unwrap_or_default(), stale_if_error },
        404 | 410 => Judged::Nothing { fresh: fresh.unwrap_or(NOTHING_FRESH) },
        301 | 302 | 307 | 308 => match headers.get(header::LOCATION).map(|to| to.to_str()) {
            Some(Ok(to)) => Judged::Moved(to.to_owned()),
            _ => Judged::Failed,
        },
        401 | 403 | 407 => Judged::NotForOthers,
        400..500 => Judged::Nothing { fresh: NOTHING_FRESH },
        _ => Judged::Failed,
    }
}

/// The directives of `Cache-Control`, in small letters.
struct Directives(Vec<(String, Option<String>)>);

impl Directives {
    fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::CACHE_CONTROL).iter();
        let text = lines.filter_map(|line| line.to_str().ok()).collect::<Vec<_>>().join(",");
        let one = |one: &str| match one.split_once('=') {
            Some((name, value)) => {
                (name.trim().to_lowercase(), Some(value.trim().trim_matches('"').to_owned()))
            }
            None => (one.trim().to_lowercase(), None),
        };
        Self(text.split(',').map(one).collect())
    }

    fn has(&self, word: &str) -> bool {
        self.0.iter().any(|(name, _)| name == word)
    }

    fn seconds(&self, word: &str) -> Option<Duration> {
        let (_, value) = self.0.iter().find(|(name, _)| name == word)?;
        // What is no number is not fresh.
        Some(Duration::from_secs(value.as_ref()?.parse().unwrap_or(0)))
    }

    /// Whether others than who asked may have it.
    fn is_for_all(&self, headers: &HeaderMap) -> bool {
        let varies = headers.get_all(header::VARY).iter();
        let by_all = varies
            .filter_map(|v| v.to_str().ok())
            .any(|v| v.split(',').any(|one| one.trim() == "*"));
        let for_one = headers.contains_key(header::SET_COOKIE) && !self.has("public");
        !(self.has("no-store") || self.has("private") || by_all || for_one)
    }

    /// How long it is fresh from now on; `None` where it does not say.
    fn fresh(&self, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
        if self.has("no-cache") {
            return Some(Duration::ZERO);
        }
        let date = |name| {
            let text = headers.get(name)?.to_str().ok()?;
            Some(httpdate::parse_http_date(text).unwrap_or(SystemTime::UNIX_EPOCH))
        };
        let age = headers.get(header::AGE).and_then(|age| age.to_str().ok()?.parse().ok());
        let age = Duration::from_secs(age.unwrap_or(0));
        let stated = self.seconds("s-maxage").or_else(|| self.seconds("max-age"));
        let lifetime = stated.or_else(|| {
            let expires = date(header::EXPIRES)?;
            let since = date(header::DATE).unwrap_or(now);
            Some(expires.duration_since(since).unwrap_or_default())
        })?;
        Some(lifetime.saturating_sub(age).min(FRESH_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, lines: &[(&'static str, &str)]) -> Judged {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        judge(status, &headers, SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000))
    }

    fn page(seconds: u64) -> Judged {
        Judged::Page { fresh: Duration::from_secs(seconds), stale_if_error: Duration::ZERO }
    }

    #[test]
    fn freshness_is_that_of_shared_caches() {
        let date = ("date", "Tue, 14 Nov 2023 22:13:20 GMT");
        for (lines, expected) in [
            (&[][..], page(0)),
            (&[("cache-control", "max-age=60")], page(60)),
            (&[("cache-control", "max-age=60, s-maxage=5")], page(5)),
            (&[("cache-control", "max-age=60"), ("age", "50")], page(10)),
            (&[("cache-control", "max-age=60"), ("age", "70")], page(0)),
            (&[("cache-control", "MAX-AGE=\"60\"")], page(60)),
            (&[("cache-control", "max-age=x")], page(0)),
            (&[("cache-control", "no-cache, max-age=60")], page(0)),
            (&[date, ("expires", "Tue, 14 Nov 2023 22:14:20 GMT")], page(60)),
            (&[date, ("expires", "0")], page(0)),
            (
                &[
                    date,
                    ("expires", "Tue, 14 Nov 2023 22:14:20 GMT"),
                    ("cache-control", "max-age=1"),
                ],
                page(1),
            ),
            (&[("cache-control", "max-age=99999999999")], page(FRESH_MAX.as_secs())),
        ] {
            assert_eq!(judged(200, lines), expected, "{lines:?}");
        }
        let stale =
            Judged::Page { fresh: Duration::from_secs(1), stale_if_error: Duration::from_secs(9) };
        assert_eq!(judged(200, &[("cache-control", "max-age=1, stale-if-error=9")]), stale);
        let strict = "max-age=1, stale-if-error=9, must-revalidate";
        assert_eq!(judged(200, &[("cache-control", strict)]), page(1));
    }

    #[test]
    fn what_is_for_one_client_is_given_to_no_other() {
        for lines in [
            &[("cache-control", "private")][..],
            &[("cache-control", "max-age=60, no-store")],
            &[("vary", "accept-encoding, *")],
            &[("set-cookie", "a=b")],
        ] {
            assert_eq!(judged(200, lines), Judged::NotForOthers, "{lines:?}");
        }
        for status in [401, 403] {
            assert_eq!(judged(status, &[]), Judged::NotForOthers);
        }
        let open = [("cache-control", "public, max-age=1"), ("set-cookie", "a=b")];
        assert_eq!(judged(200, &open), page(1));
        assert_eq!(judged(200, &[("vary", "accept-encoding")]), page(0));
        assert_eq!(judged(404, &[]), Judged::Nothing { fresh: NOTHING_FRESH });
        assert_eq!(judged(503, &[]), Judged::Failed);
        assert_eq!(judged(302, &[("location", "/b")]), Judged::Moved("/b".into()));
    }
}
