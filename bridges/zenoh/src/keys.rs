//! Key expressions of Zenoh and topics.

use zenoh::key_expr::{KeyExpr, OwnedKeyExpr};

/// The key expressions beneath a prefix, which may be none.
#[derive(Debug, Clone)]
pub(crate) struct Prefix(Option<OwnedKeyExpr>);

impl Prefix {
    /// `text`, which is empty or a key expression without wildcards.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let key = OwnedKeyExpr::try_from(text).map_err(|error| error.to_string())?;
        if key.is_wild() {
            return Err("a prefix has no wildcards".into());
        }
        Ok(Self(Some(key)))
    }

    /// All keys beneath it.
    pub(crate) fn all(&self) -> String {
        self.under("**")
    }

    fn under(&self, rest: &str) -> String {
        self.0.as_ref().map_or_else(|| rest.to_owned(), |prefix| format!("{prefix}/{rest}"))
    }

    /// The topic of a key beneath it.
    pub(crate) fn topic<'a>(&self, key: &'a str) -> Option<&'a str> {
        match &self.0 {
            None => Some(key),
            Some(prefix) => key.strip_prefix(prefix.as_str())?.strip_prefix('/'),
        }
    }

    /// The key of a topic; none: no key is like this.
    pub(crate) fn key(&self, topic: &str) -> Option<KeyExpr<'static>> {
        let key = KeyExpr::try_from(self.under(topic)).ok()?;
        (!key.is_wild()).then_some(key)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_what_is_beneath_the_prefix() {
        let of = |text: &str| Prefix::parse(text).unwrap();
        assert_eq!(of("plant").topic("plant/a/b"), Some("a/b"));
        assert_eq!(of("plant").all(), "plant/**");
        for key in ["plant", "plants/a", "a", ""] {
            assert_eq!(of("plant").topic(key), None, "{key}");
        }
        assert_eq!((of("").topic("a/b"), of("").all()), (Some("a/b"), "**".into()));
        assert_eq!(of("plant").key("a/b").unwrap().as_str(), "plant/a/b");
        // What MQTT has and Zenoh has not.
        for topic in ["", "/a", "a//b", "a/", "a/*", "**", "$*", "a#", "a?b"] {
            assert!(of("plant").key(topic).is_none(), "{topic}");
        }
        for prefix in ["a/*", "/a", "a/", "a#"] {
            assert!(Prefix::parse(prefix).is_err(), "{prefix}");
        }
    }
}
