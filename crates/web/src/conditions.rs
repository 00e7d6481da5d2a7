//! What a request wants of a representation: conditions and ranges, as RFC 9110 judges them.

use hyper::HeaderMap;
use hyper::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

/// What to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// These octets.
    Part(RangeInclusive<u64>),
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    Nothing,
}

/// What is known about the representation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// With its quotes.
    pub(crate) etag: &'a str,
    pub(crate) modified: Option<SystemTime>,
    /// Octets, where parts can be had.
    pub(crate) size: Option<u64>,
}

/// What the headers of a GET or HEAD ask for.
pub(crate) fn wanted(headers: &HeaderMap, known: Known<'_>) -> Wanted {
    let is_later = |limit: SystemTime| known.modified.is_none_or(|at| seconds(at) > seconds(limit));
    if headers.contains_key(IF_MATCH) {
        if !names(headers, IF_MATCH.as_str(), known.etag, Tags::Strong) {
            return Wanted::Failed;
        }
    } else if date(headers, IF_UNMODIFIED_SINCE.as_str()).is_some_and(is_later) {
        return Wanted::Failed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        if names(headers, IF_NONE_MATCH.as_str(), known.etag, Tags::Weak) {
            return Wanted::NotModified;
        }
    } else if known.modified.is_some()
        && date(headers, IF_MODIFIED_SINCE.as_str()).is_some_and(|limit| !is_later(limit))
    {
        return Wanted::NotModified;
    }
    match (range(headers, known.size), headers.get(IF_RANGE)) {
        (None, _) => Wanted::Whole,
        (Some(wanted), None) => wanted,
        (Some(wanted), Some(condition)) => {
            let text = condition.to_str().unwrap_or_default().trim();
            let same_date = || {
                let date = httpdate::parse_http_date(text).ok().map(seconds);
                date.is_some() && date == known.modified.map(seconds)
            };
            if text == known.etag || same_date() { wanted } else { Wanted::Whole }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tags {
    Strong,
    Weak,
}

/// Whether the header lists `etag`, or `*`.
fn names(headers: &HeaderMap, header: &str, etag: &str, tags: Tags) -> bool {
    headers.get_all(header).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').map(str::trim).any(|one| {
            let one = if tags == Tags::Weak { one.strip_prefix("W/").unwrap_or(one) } else { one };
            one == "*" || one == etag
        })
    })
}

fn date(headers: &HeaderMap, header: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(header)?.to_str().ok()?).ok()
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// The one range of octets that is asked for. More than one, and other units, are no range here.
fn range(headers: &HeaderMap, size: Option<u64>) -> Option<Wanted> {
    let size = size?;
    let text = headers.get(RANGE)?.to_str().ok()?;
    let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // More octets than can be counted are more than there are.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (first, last) = (first.trim(), last.trim());
    let (first, last) = match (first, last) {
        ("", last) => {
            let count: u64 = number(last)?;
            if count == 0 {
                return Some(Wanted::Nothing);
            }
            (size.saturating_sub(count), size.saturating_sub(1))
        }
        (first, "") => (number(first)?, size.saturating_sub(1)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            (first, last.min(size.saturating_sub(1)))
        }
    };
    Some(if first < size { Wanted::Part(first..=last) } else { Wanted::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "Tue, 14 Nov 2023 22:13:20 GMT";

    fn ask(lines: &[(&'static str, &str)]) -> Wanted {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let modified = Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_900));
        wanted(&headers, Known { etag: "\"7\"", modified, size: Some(100) })
    }

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        for (text, expected) in [
            ("bytes=0-9", Wanted::Part(0..=9)),
            ("bytes=90-", Wanted::Part(90..=99)),
            ("bytes=90-200", Wanted::Part(90..=99)),
            ("bytes=-7", Wanted::Part(93..=99)),
            ("bytes=-700", Wanted::Part(0..=99)),
            ("bytes=0-99999999999999999999999", Wanted::Part(0..=99)),
            ("bytes=100-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=9-0", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
        ] {
            assert_eq!(ask(&[("range", text)]), expected, "{text}");
        }
    }

    #[test]
    fn conditions_are_judged_in_the_order_of_http() {
        let part = ("range", "bytes=0-9");
        assert_eq!(ask(&[("if-none-match", "\"6\", W/\"7\""), part]), Wanted::NotModified);
        assert_eq!(ask(&[("if-none-match", "*")]), Wanted::NotModified);
        assert_eq!(ask(&[("if-none-match", "\"6\"")]), Wanted::Whole);
        assert_eq!(ask(&[("if-modified-since", AT)]), Wanted::NotModified);
        assert_eq!(ask(&[("if-none-match", "\"6\""), ("if-modified-since", AT)]), Wanted::Whole);
        assert_eq!(ask(&[("if-modified-since", "Tue, 14 Nov 2023 22:13:19 GMT")]), Wanted::Whole);
        assert_eq!(ask(&[("if-match", "\"6\"")]), Wanted::Failed);
        assert_eq!(ask(&[("if-match", "W/\"7\"")]), Wanted::Failed, "weak tags do not match");
        assert_eq!(ask(&[("if-match", "\"7\"")]), Wanted::Whole);
        assert_eq!(
            ask(&[("if-unmodified-since", "Tue, 14 Nov 2023 22:13:19 GMT")]),
            Wanted::Failed
        );
        assert_eq!(ask(&[("if-range", "\"7\""), part]), Wanted::Part(0..=9));
        assert_eq!(ask(&[("if-range", AT), part]), Wanted::Part(0..=9));
        assert_eq!(ask(&[("if-range", "\"6\""), part]), Wanted::Whole);
        assert_eq!(ask(&[("if-range", "W/\"7\""), part]), Wanted::Whole);
    }
}
