//! Filters, and which topic one means.

use crate::packet::Reason;
use onym_topics::LEVELS_MAX;

/// Whether a filter is one, and has wildcards.
pub(crate) fn filter(filter: &str) -> Result<bool, Reason> {
    if filter.starts_with("$share/") {
        return Err(Reason::Shared);
    }
    let levels: Vec<&str> = filter.split('/').collect();
    let is_sound = |(at, level): (usize, &&str)| match *level {
        "+" => true,
        "#" => at + 1 == levels.len(),
        level => !level.contains(['+', '#']),
    };
    let is_good = !filter.is_empty() && levels.iter().enumerate().all(is_sound);
    if !is_good || levels.len() > LEVELS_MAX {
        return Err(Reason::Filter);
    }
    Ok(levels.iter().any(|level| matches!(*level, "+" | "#")))
}

/// Whether a topic is one that a filter, which is one, means.
pub(crate) fn matches(filter: &str, topic: &str) -> bool {
    let (mut wanted, mut levels) = (filter.split('/'), topic.split('/'));
    loop {
        match (wanted.next(), levels.next()) {
            (Some("#"), _) | (None, None) => return true,
            (Some("+"), Some(_)) => {}
            (Some(want), Some(level)) if want == level => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_mean_what_the_standard_says() {
        for (text, is_wild) in [("a/b", false), ("a/+", true), ("#", true), ("+/a/#", true)] {
            assert_eq!(filter(text), Ok(is_wild), "{text}");
        }
        for text in ["", "a#", "a/#/b", "a+/b"] {
            assert_eq!(filter(text), Err(Reason::Filter), "{text}");
        }
        assert_eq!(filter("$share/x/a"), Err(Reason::Shared));
        for (filter, yes, no) in [
            ("a/b", "a/b", "a"),
            ("a/#", "a", "b/a"),
            ("a/#", "a/b/c", "ab"),
            ("a/+", "a/", "a"),
            ("a/+/c", "a/b/c", "a/b/d"),
            ("+", "a", "/a"),
        ] {
            assert!(matches(filter, yes) && !matches(filter, no), "{filter} {yes} {no}");
        }
        assert!(matches("#", "/") && matches("#", "a/b"));
    }
}
