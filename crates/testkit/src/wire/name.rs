//! Names of scripts: NDN URIs with wildcards, captures and digests of packets.

use super::tlv::{hex, nni, put, read_nni, split, unhex};
use super::types::{GENERIC, IMPLICIT_DIGEST, PARAMS_DIGEST};

/// A component as it stands in a packet: type and value.
pub type Component = (u64, Vec<u8>);

/// A component as a script writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// This component.
    Fixed(Component),
    /// `*`: any one component.
    Any,
    /// `**`: any number of components, at the end.
    Rest,
    /// `$x`: kept, or equal to what was kept.
    Capture(String),
    /// `@D`: the implicit digest of a packet.
    DigestOf(String),
}

/// The typed components with a decimal form.
const NUMBERED: &[(&str, u64)] = &[("seg", 50), ("off", 52), ("v", 54), ("t", 56), ("seq", 58)];

/// Parses a name as scripts write it.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn parse(text: &str) -> Result<Vec<Part>, String> {
    let path = text.strip_prefix("ndn:").unwrap_or(text);
    let Some(path) = path.strip_prefix('/') else {
        return Err(format!("a name begins with '/', got {text:?}"));
    };
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let parts = path.split('/').map(parse_part).collect::<Result<Vec<_>, _>>()?;
    match parts.iter().position(|p| *p == Part::Rest) {
        Some(i) if i + 1 != parts.len() => Err("'**' stands at the end of a name only".into()),
        _ => Ok(parts),
    }
}

fn parse_part(text: &str) -> Result<Part, String> {
    Ok(match text {
        "*" => Part::Any,
        "**" => Part::Rest,
        _ => match text.split_at_checked(1) {
            Some(("$", label)) => Part::Capture(label.into()),
            Some(("@", label)) => Part::DigestOf(label.into()),
            _ => Part::Fixed(component(text)?),
        },
    })
}

/// Parses one component in URI form.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn component(text: &str) -> Result<Component, String> {
    let Some((head, value)) = text.split_once('=') else {
        return Ok((GENERIC, unescape(text)?));
    };
    if let Some((_, typ)) = NUMBERED.iter().find(|(n, _)| *n == head) {
        let n = value.parse().map_err(|_| format!("{text:?}: not a number"))?;
        return Ok((*typ, nni(n)));
    }
    let digest = || {
        unhex(value).filter(|d| d.len() == 32).ok_or(format!("{text:?}: not 64 hexadecimal digits"))
    };
    match head {
        "sha256digest" => Ok((IMPLICIT_DIGEST, digest()?)),
        "params-sha256" => Ok((PARAMS_DIGEST, digest()?)),
        _ => {
            let typ =
                head.parse().map_err(|_| format!("{text:?}: unknown component type {head:?}"))?;
            Ok((typ, unescape(value)?))
        }
    }
}

/// Undoes `%XX` and the three periods.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn unescape(text: &str) -> Result<Vec<u8>, String> {
    if !text.is_empty() && text.bytes().all(|b| b == b'.') {
        return match text.len() {
            1 | 2 => Err(format!("{text:?}: a component of periods needs three more")),
            n => Ok(vec![b'.'; n - 3]),
        };
    }
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).and_then(unhex).ok_or(format!("{text:?}: bad % escape"))?;
        out.extend(digits);
        rest = &after[2..];
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// A component in URI form, for messages.
#[must_use]
pub fn component_uri(typ: u64, value: &[u8]) -> String {
    if let (Some((word, _)), Some(n)) = (NUMBERED.iter().find(|(_, t)| *t == typ), read_nni(value))
    {
        return format!("{word}={n}");
    }
    match typ {
        IMPLICIT_DIGEST => format!("sha256digest={}", hex(value)),
        PARAMS_DIGEST => format!("params-sha256={}", hex(value)),
        GENERIC => escape(value),
        _ => format!("{typ}={}", escape(value)),
    }
}

fn escape(value: &[u8]) -> String {
    if value.iter().all(|b| *b == b'.') {
        return format!("...{}", String::from_utf8_lossy(value));
    }
    value
        .iter()
        .map(|&b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                (b as char).to_string()
            }
            _ => format!("%{b:02X}"),
        })
        .collect()
}

/// A name in URI form, for messages.
#[must_use]
pub fn uri(name: &[Component]) -> String {
    if name.is_empty() {
        return "/".into();
    }
    name.iter().map(|c| format!("/{}", component_uri(c.0, &c.1))).collect()
}

/// The value of a Name TLV.
#[must_use]
pub fn encode(name: &[Component]) -> Vec<u8> {
    let mut out = Vec::new();
    for (typ, value) in name {
        put(&mut out, *typ, value);
    }
    out
}

/// Reads the value of a Name TLV.
#[must_use]
pub fn decode(mut value: &[u8]) -> Option<Vec<Component>> {
    let mut out = Vec::new();
    while !value.is_empty() {
        let (typ, v, rest) = split(value)?;
        out.push((typ, v.to_vec()));
        value = rest;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printed_as_they_were_written() {
        for text in ["/", "/a/b", "/a/v=1/seg=256", "/32=PA/...", "/%00%FF", "/a/....", "/200=x"] {
            let parts = parse(text).unwrap();
            let fixed: Vec<Component> = parts
                .into_iter()
                .map(|p| match p {
                    Part::Fixed(c) => c,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(uri(&fixed), text);
            assert_eq!(decode(&encode(&fixed)).unwrap(), fixed);
        }
    }

    #[test]
    fn wrong_names_are_refused_with_a_sentence() {
        for text in ["a", "/..", "/%G0", "/seg=x", "/sha256digest=00", "/**/a", "/foo=1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
