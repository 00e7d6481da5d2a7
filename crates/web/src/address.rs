//! Which name the path of a URL means.

use onym_wire::name::{Component, Name};
use std::fmt::Write as _;

/// What names begin with in paths.
const BEGIN: &str = "/ndn/";
/// Components of a name, at most.
const COMPONENTS_MAX: usize = 64;

/// What a path means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) name: Name,
    /// It ends with `/`: what the folder has.
    pub(crate) is_folder: bool,
}

/// Why a path means no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoName {
    #[error("paths of names begin with /ndn/")]
    Elsewhere,
    #[error("this is not the URI of a name")]
    Malformed,
    #[error("names under /localhost and /localhop are not for others")]
    Local,
}

impl Address {
    /// The name that `path` means: what follows `/ndn/`, else what is under `root`.
    pub(crate) fn of(path: &str, root: Option<&Name>) -> Result<Self, NoName> {
        let (mut name, rest) = match (path.strip_prefix(BEGIN), root) {
            (Some(rest), _) => (Name::new(), rest),
            (None, Some(root)) => (root.clone(), path.strip_prefix('/').unwrap_or(path)),
            (None, None) => return Err(NoName::Elsewhere),
        };
        let is_folder = rest.is_empty() || rest.ends_with('/');
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if !rest.is_empty() {
            // "." is where it stands (RFC 3986): apt writes it.
            for text in rest.split('/').filter(|text| *text != ".") {
                push(&mut name, text)?;
            }
        }
        let first = name.as_ref().get(0);
        if name.is_empty() || name.len() > COMPONENTS_MAX {
            return Err(NoName::Malformed);
        }
        if first.is_some_and(|c| matches!(c.value, b"localhost" | b"localhop")) {
            return Err(NoName::Local);
        }
        Ok(Self { name, is_folder })
    }
}

/// Appends one component. What only looks like a typed one is the name of a file.
fn push(name: &mut Name, text: &str) -> Result<(), NoName> {
    if text.is_empty() {
        return Err(NoName::Malformed);
    }
    let component = text.parse::<Name>().or_else(|_| text.replace('=', "%3D").parse());
    let component = component.map_err(|_| NoName::Malformed)?;
    match component.as_ref().get(0) {
        Some(one) if component.len() == 1 => {
            name.push(one);
            Ok(())
        }
        _ => Err(NoName::Malformed),
    }
}

/// A component as a URL has it.
pub(crate) fn escaped(value: &[u8]) -> String {
    let mut name = Name::new();
    name.push(Component { typ: 8, value });
    let mut out = String::new();
    for octet in name.to_string().trim_start_matches('/').bytes() {
        match octet {
            b'%' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(octet)),
            _ if octet.is_ascii_alphanumeric() => out.push(char::from(octet)),
            _ => {
                let _ = write!(out, "%{octet:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Result<(String, bool), NoName> {
        Address::of(path, None).map(|a| (a.name.to_string(), a.is_folder))
    }

    #[test]
    fn paths_are_names_and_files_whose_name_has_an_equals_sign_are_files() {
        assert_eq!(of("/ndn/a/b%20c"), Ok(("/a/b%20c".into(), false)));
        assert_eq!(of("/ndn/a/v=7/seg=0"), Ok(("/a/v=7/seg=0".into(), false)));
        assert_eq!(of("/ndn/a/"), Ok(("/a".into(), true)));
        assert_eq!(of("/ndn/a/./b"), Ok(("/a/b".into(), false)));
        assert_eq!(of("/ndn/a/x=y"), Ok(("/a/x%3Dy".into(), false)));
        assert_eq!(of("/ndn/a/v=x"), Ok(("/a/v%3Dx".into(), false)));
        for wrong in ["/ndn/", "/ndn//a", "/ndn/a/../b", "/ndn/a/%zz", "/ndn/."] {
            assert_eq!(of(wrong), Err(NoName::Malformed), "{wrong}");
        }
        assert_eq!(of("/"), Err(NoName::Elsewhere));
        assert_eq!(of("/ndn/localhost/nfd"), Err(NoName::Local));
        assert_eq!(of("/ndn/localhop/nfd"), Err(NoName::Local));
        assert_eq!(of("/ndn/8=localhost/nfd"), Err(NoName::Local));
    }

    #[test]
    fn other_paths_are_under_the_root() {
        let root: Name = "/site".parse().unwrap();
        let of = |path: &str| Address::of(path, Some(&root)).unwrap();
        assert_eq!((of("/").name.to_string(), of("/").is_folder), ("/site".into(), true));
        assert_eq!(of("/a/b").name.to_string(), "/site/a/b");
        assert_eq!(of("/ndn/a").name.to_string(), "/a");
    }

    #[test]
    fn an_escaped_component_means_the_same() {
        for value in [&b"a b&<c>\"'"[..], b"..", b"x=y", b"\xff\0%", b"v=1"] {
            let path = format!("/ndn/a/{}", escaped(value));
            let address = Address::of(&path, None).unwrap();
            assert_eq!(address.name.as_ref().get(1).unwrap().value, value, "{path}");
        }
    }
}
