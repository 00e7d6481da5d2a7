//! Topics as paths of words (README, "Topics").

use onym_wire::push::{Label, Path, is_word};

/// Most levels of a topic.
pub const LEVELS_MAX: usize = 32;
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
pub struct Items {
    /// What is published.
    pub value: Path,
    /// The last one of it that is to be kept.
    pub retained: Path,
}

/// The items of a topic beneath a scope; none: it cannot have any.
#[must_use]
pub fn items(root: &Path, topic: &str) -> Option<Items> {
    let is_bad = topic.is_empty() || topic.starts_with('$') || topic.contains(['+', '#']);
    if is_bad || topic.split('/').count() > LEVELS_MAX {
        return None;
    }
    let mut scope = root.clone();
    for level in topic.split('/') {
        let word = word(level);
        if !is_word(&word) {
            return None;
        }
        scope = scope.beneath(&word);
    }
    Some(Items { value: scope.beneath(VALUE), retained: scope.beneath(RETAINED) })
}

/// The scope in which bridges say which topics their clients publish.
#[must_use]
pub fn directory(root: &Path) -> Path {
    root.beneath(TOPICS)
}

/// The item in it of the bridge that is the application with this token.
pub(crate) fn own_directory(root: &Path, token: Label) -> Path {
    let scope = directory(root);
    let mut words = scope.words.clone();
    words.push(None);
    Path { id: scope.id.child(token), words }
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
        assert!(items(&root, &long[0]).is_some());
        let bad = ["", "$SYS/x", "a/+", "#", "a\u{1}", &long[1], &"a/".repeat(32)];
        assert!(bad.iter().all(|topic| items(&root, topic).is_none()));
        assert_eq!(items(&root, "a/b").unwrap().value.to_string(), "/mqtt/=a/=b/~value");
    }
}
