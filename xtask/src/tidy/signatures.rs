//! Parameters that hide what they are: tuples, and a bare bool of a function that others call.
//!
//! `f(a, true)` does not say what is true: an enum or two functions do. A setter whose only parameter
//! it is, `set_x(true)`, says it.

use super::code::{tokens, without_prose};
use super::{Ceiling, files};
use anyhow::Result;
use std::fs;
use std::path::Path;

#[derive(Debug, PartialEq, Eq)]
enum Hidden {
    Tuple,
    Bool,
}

/// A parameter that does not say what it is: `function(parameter)`.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    hidden: Hidden,
    place: String,
}

pub(super) fn check(root: &Path, ceiling: &mut Ceiling<'_>) -> Result<()> {
    let (mut tuples, mut bools) = (Vec::new(), Vec::new());
    for file in files(root)? {
        let is_test = file.components().any(|c| {
            ["tests", "fuzz", "bench", "examples", "benches"]
                .iter()
                .any(|dir| c.as_os_str() == *dir)
        });
        if is_test || file.extension().is_none_or(|e| e != "rs") || file.ends_with("tests.rs") {
            continue;
        }
        for Found { hidden, place } in found(&fs::read_to_string(root.join(&file))?) {
            let place = format!("{}: {place}", file.display());
            match hidden {
                Hidden::Tuple => tuples.push(place),
                Hidden::Bool => bools.push(place),
            }
        }
    }
    ceiling.hold("tuple_parameters", tuples.len(), || {
        format!("{}. Write two parameters, or a struct", tuples.join("; "))
    });
    ceiling.hold("bool_parameters", bools.len(), || {
        format!("{}. Write an enum, or two functions", bools.join("; "))
    });
    Ok(())
}

fn found(text: &str) -> Vec<Found> {
    let code = without_prose(text);
    let tokens = tokens(&code);
    let mut found = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| **token == "fn") {
        let Some(name) = tokens.get(at + 1).filter(|name| is_word(name)) else { continue };
        let Some(open) = opening(&tokens, at + 2) else { continue };
        let all = parameters(&tokens[open..]);
        let own: Vec<&[&str]> = all.into_iter().filter(|p| !p.contains(&"self")).collect();
        let is_setter = own.len() == 1 && name.starts_with("set_");
        for parameter in own {
            let hidden = if is_tuple(parameter) {
                Hidden::Tuple
            } else if kind(parameter) == ["bool"] && is_seen(&tokens, at) && !is_setter {
                Hidden::Bool
            } else {
                continue;
            };
            found.push(Found { hidden, place: format!("{name}({})", parameter.concat()) });
        }
    }
    found
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Where the parameters begin of the function whose name ends before `from`.
fn opening(tokens: &[&str], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match *token {
            "<" => depth += 1,
            ">" if tokens[at - 1] != "-" => depth = depth.checked_sub(1)?,
            "(" if depth == 0 => return Some(at + 1),
            "{" | ";" => return None,
            _ => {}
        }
    }
    None
}

/// The parameters that `tokens` begin with, up to the closing bracket.
fn parameters<'a, 't>(tokens: &'a [&'t str]) -> Vec<&'a [&'t str]> {
    let (mut all, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            ")" if depth == 0 => {
                all.push(&tokens[begin..at]);
                break;
            }
            "(" | "[" | "{" | "<" => depth += 1,
            ">" if at > 0 && matches!(tokens[at - 1], "-" | "=") => {}
            ")" | "]" | "}" | ">" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                all.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    all.retain(|parameter| !parameter.is_empty());
    all
}

/// The type of a parameter.
fn kind<'a, 't>(parameter: &'a [&'t str]) -> &'a [&'t str] {
    let at = parameter.iter().position(|token| *token == ":");
    at.map_or(&[], |at| &parameter[at + 1..])
}

/// Whether the pattern is a tuple, or the type is one, or a reference to one.
fn is_tuple(parameter: &[&str]) -> bool {
    let mut kind = kind(parameter);
    while let Some((first, rest)) = kind.split_first() {
        match *first {
            "&" | "mut" => kind = rest,
            "'" => kind = rest.get(1..).unwrap_or_default(),
            _ => break,
        }
    }
    let is_unit = kind.starts_with(&["(", ")"]);
    // `&(dyn A + B)` is no tuple.
    let is_bracketed = kind.starts_with(&["(", "dyn"]);
    parameter[0] == "(" || kind.first() == Some(&"(") && !is_unit && !is_bracketed
}

/// Whether the function whose `fn` is at `at` is seen outside of its file.
fn is_seen(tokens: &[&str], at: usize) -> bool {
    let before = tokens[..at].iter().rev();
    let begins = |token: &&&str| matches!(**token, "{" | "}" | ";" | "]");
    before.take_while(|token| !begins(token)).any(|token| *token == "pub")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<String> {
        found(text).into_iter().map(|found| found.place).collect()
    }

    #[test]
    fn tuples_are_found_as_patterns_and_as_types() {
        assert_eq!(places("fn f((a, b): (u8, u8), c: u8) {}"), ["f((a,b):(u8,u8))"]);
        assert_eq!(places("fn f<T: Fn(u8) -> (u8, u8)>(&self, a: &'a (u8, u8)) {}").len(), 1);
        assert!(
            places("fn f(a: (), b: &(dyn A + B), c: Vec<(u8, u8)>, d: [(u8, u8); 2]) {}")
                .is_empty()
        );
        assert!(places("fn f(a: impl Fn((u8, u8)) -> bool) -> (u8, u8) {}").is_empty());
    }

    #[test]
    fn a_bool_is_found_where_others_call_and_not_in_a_setter() {
        assert_eq!(places("pub fn f(a: u8, is_b: bool) {}"), ["f(is_b:bool)"]);
        assert_eq!(places("pub(crate) const fn f(is_b: bool) {}"), ["f(is_b:bool)"]);
        assert!(places("pub struct A; impl A { fn f(a: u8, is_b: bool) {} }").is_empty());
        assert!(places("pub fn set_b(&mut self, is_b: bool) {}").is_empty());
        assert!(places("// pub fn f(is_b: bool)\npub fn f(a: Option<bool>) -> bool {}").is_empty());
    }
}
