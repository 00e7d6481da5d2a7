//! Topics as paths of words (README, "Topics"), and which filter matches which topic.

use crate::packet::Reason;
use onym_wire::push::{Label, Path, is_word};

/// Most levels of a topic.
const LEVELS_MAX: usize = 32;
/// What every level that begins with one of these is written with in front.
const MARK: char = '~';
const MARKED: [char; 3] = [MARK, '=', '*'];

/// Words of what a topic has, and of where bridges say their topics.
const VALUE: &str = "~value";
const RETAINED: &str = "~retained";
const TOPICS: &str = "~topics";

/// The word of a level; an empty one is the mark alone.
fn word(level: &str) -> String {
    if level.is_empty() || level.starts_with(MARKED) {
        format!("{MARK}{level}")
    } else {
        level.to_owned()
    }
}

/// The items of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Items {
    /// What is published.
    pub(crate) value: Path,
    /// The last one of it that is to be kept.
    pub(crate) retained: Path,
}

/// The items of a topic beneath a scope.
pub(crate) fn items(root: &Path, topic: &str) -> Result<Items, Reason> {
    let is_bad = topic.is_empty() || topic.starts_with('$') || topic.contains(['+', '#']);
    if is_bad || topic.split('/').count() > LEVELS_MAX {
        return Err(Reason::Topic);
    }
    let mut scope = root.clone();
    for level in topic.split('/') {
        let word = word(level);
        if !is_word(&word) {
            return Err(Reason::Topic);
        }
        scope = scope.beneath(&word);
    }
    Ok(Items { value: scope.beneath(VALUE), retained: scope.beneath(RETAINED) })
}

/// The scope in which bridges say which topics their clients publish.
pub(crate) fn directory(root: &Path) -> Path {
    root.beneath(TOPICS)
}

/// The item in it of the bridge that is the application with this token.
pub(crate) fn own_directory(root: &Path, token: Label) -> Path {
    let scope = directory(root);
    let mut words = scope.words.clone();
    words.push(None);
    Path { id: scope.id.child(token), words }
}

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
    use std::collections::BTreeSet;

    #[test]
    fn different_topics_have_different_items() {
        let root: Path = "/mqtt".parse().unwrap();
        let topics = [
            "a",
            "a/b",
            "/a",
            "a/",
            "a//b",
            "//",
            "/",
            "~",
            "~value",
            "~a",
            "=a",
            "*",
            "1",
            "=1",
            "a/~topics",
        ];
        let paths: BTreeSet<String> =
            topics.iter().map(|topic| items(&root, topic).unwrap().value.to_string()).collect();
        assert_eq!(paths.len(), topics.len(), "{paths:?}");
        // A path reads as it is written.
        for text in &paths {
            assert_eq!(text.parse::<Path>().unwrap().to_string(), *text);
        }
        let long = ["x".repeat(64), "x".repeat(65)];
        assert!(items(&root, &long[0]).is_ok());
        let bad = ["", "$SYS/x", "a/+", "#", "a\u{1}", &long[1], &"a/".repeat(32)];
        assert!(bad.iter().all(|topic| items(&root, topic) == Err(Reason::Topic)));
        assert_eq!(items(&root, "a/b").unwrap().value.to_string(), "/mqtt/=a/=b/~value");
    }

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
