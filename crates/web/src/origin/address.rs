//! Which URL a name under the prefix of an origin means, and what of it is asked for.

use onym_wire::name::{Component, Name, NameRef};
use std::fmt::Write as _;

/// Octets of a path, at most.
const PATH_MAX: usize = 8192;

/// What is asked for of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Metadata,
    Segment { version: u64, segment: u64 },
}

/// A page and what of it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The name of the page.
    pub(crate) page: Name,
    /// Its path with the query, as it is sent.
    pub(crate) path: String,
    pub(crate) asked: Asked,
}

impl Target {
    /// What an Interest for `name` asks for; `None` when it is nothing of an origin at `prefix`.
    pub(crate) fn of(prefix: &Name, name: NameRef<'_>) -> Option<Self> {
        let rest = name.strip_prefix(prefix.as_ref())?;
        let last = rest.last()?;
        let (page, asked) = if last.is_keyword(b"metadata") {
            (name.drop_last(1), Asked::Metadata)
        } else {
            let segment = last.as_segment()?;
            let version = rest.get(rest.len().checked_sub(2)?)?.as_version()?;
            (name.drop_last(2), Asked::Segment { version, segment })
        };
        let path = path(page.strip_prefix(prefix.as_ref())?.components())?;
        Some(Self { page: page.to_name(), path, asked })
    }
}

/// The path that components mean: a component for each segment, an empty one at the end for a `/`
/// there, and one that begins with `?` at the end for the query.
fn path<'a>(components: impl Iterator<Item = Component<'a>>) -> Option<String> {
    let components: Vec<Component<'a>> = components.collect();
    if !components.iter().all(|one| one.is_generic()) {
        return None;
    }
    let query = components.last().and_then(|last| last.value.strip_prefix(b"?"));
    let segments = &components[..components.len() - usize::from(query.is_some())];
    let mut path = String::new();
    for (at, one) in segments.iter().enumerate() {
        // Before the query, too.
        let is_last = at + 1 == segments.len();
        if matches!(one.value, b"." | b"..") || (one.value.is_empty() && !is_last) {
            return None;
        }
        path.push('/');
        escape(&mut path, one.value, b"-._~!$&'()*+,;=:@");
    }
    if path.is_empty() {
        path.push('/');
    }
    if let Some(query) = query {
        path.push('?');
        // What is escaped in a query stays so: % is a part of it.
        escape(&mut path, query, b"-._~!$&'()*+,;=:@/?%");
    }
    (path.len() <= PATH_MAX).then_some(path)
}

fn escape(out: &mut String, octets: &[u8], plain: &[u8]) {
    for octet in octets {
        if octet.is_ascii_alphanumeric() || plain.contains(octet) {
            out.push(char::from(*octet));
        } else {
            let _ = write!(out, "%{octet:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_of(name: &str) -> Option<String> {
        let mut name: Name = format!("/p{name}").parse().unwrap();
        name.append_keyword("metadata");
        let target = Target::of(&"/p".parse().unwrap(), name.as_ref())?;
        assert_eq!(target.asked, Asked::Metadata);
        Some(target.path)
    }

    #[test]
    fn a_name_is_a_url_and_nothing_leads_elsewhere() {
        for (name, path) in [
            ("", "/"),
            ("/...", "/"),
            ("/a/b.txt", "/a/b.txt"),
            ("/a/...", "/a/"),
            ("/a%20b/%2Fc", "/a%20b/%2Fc"),
            ("/a/%3Fx%3D1%26y%3D%252F", "/a?x=1&y=%2F"),
            ("/%0D%0AHost:%20x", "/%0D%0AHost:%20x"),
            ("/a/%3Fx%20y%0D%0A", "/a?x%20y%0D%0A"),
        ] {
            assert_eq!(path_of(name).as_deref(), Some(path), "{name}");
        }
        for nothing in ["/.....", "/a/..../b", "/a/.../b", "/32=ls", "/v=1"] {
            assert_eq!(path_of(nothing), None, "{nothing}");
        }
        let segment: Name = "/p/a/v=7/seg=3".parse().unwrap();
        let target = Target::of(&"/p".parse().unwrap(), segment.as_ref()).unwrap();
        assert_eq!((target.path.as_str(), target.page.to_string()), ("/a", "/p/a".into()));
        assert_eq!(target.asked, Asked::Segment { version: 7, segment: 3 });
        assert_eq!(Target::of(&"/q".parse().unwrap(), segment.as_ref()), None);
    }
}
