#![doc = include_str!("../README.md")]

pub use saphyr::{MarkedYaml, Scalar, YamlData};

use saphyr::LoadableYamlNode as _;
use saphyr_parser::{Event, Parser, ScanError};

/// What a text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most octets.
    pub bytes_max: usize,
    /// Most lists and maps within each other.
    pub depth_max: usize,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Error {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

/// Reads one document; `None` for a text without one.
///
/// # Errors
/// A text beyond its bounds, of more than one document, or that is no YAML.
pub fn load(text: &str, bounds: Bounds) -> Result<Option<MarkedYaml<'_>>, Error> {
    if text.len() > bounds.bytes_max {
        return Err(at(1, format!("the text is longer than {} octets", bounds.bytes_max)));
    }
    check(text, bounds.depth_max)?;
    let mut documents = MarkedYaml::load_from_str(text).map_err(|error| scan(&error))?;
    Ok(documents.pop())
}

/// Counts the levels and documents of `text` without building anything.
fn check(text: &str, depth_max: usize) -> Result<(), Error> {
    let (mut depth, mut documents) = (0, 0);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| scan(&error))?;
        match event {
            Event::DocumentStart(_) => documents += 1,
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth -= 1,
            _ => {}
        }
        if depth > depth_max {
            return Err(at(span.start.line(), format!("nested deeper than {depth_max}")));
        }
        if documents > 1 {
            return Err(at(span.start.line(), "a second document begins here".to_owned()));
        }
    }
    Ok(())
}

fn scan(error: &ScanError) -> Error {
    at(error.marker().line(), error.info().to_owned())
}

fn at(line: usize, what: String) -> Error {
    Error { line: line.max(1), what }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const BOUNDS: Bounds = Bounds { bytes_max: 1 << 20, depth_max: 16 };

    #[test]
    fn what_is_too_deep_is_refused_before_it_takes_the_stack() {
        for text in ["- ".repeat(500_000), "[".repeat(100_000), "{a: ".repeat(100_000)] {
            // The parser has a bound of its own for brackets.
            let error = load(&text, BOUNDS).unwrap_err();
            let own = ["nested deeper than 16", "recursion limit exceeded"];
            assert!(error.line == 1 && own.contains(&error.what.as_str()), "{error}");
        }
        let deepest = "- ".repeat(16);
        assert!(load(&deepest, BOUNDS).is_ok());
        assert!(load(&format!("{deepest}- x"), BOUNDS).is_err());
    }

    #[test]
    fn a_long_text_and_a_second_document_are_refused() {
        let error = load(&" ".repeat((1 << 20) + 1), BOUNDS).unwrap_err();
        assert_eq!(error.what, "the text is longer than 1048576 octets");
        let error = load("a: 1\n---\nb: 2\n", BOUNDS).unwrap_err();
        assert_eq!(error, at(2, "a second document begins here".to_owned()));
        assert!(load("", BOUNDS).unwrap().is_none());
        assert!(load("a: 1\n", BOUNDS).unwrap().is_some());
    }

    #[test]
    fn aliases_do_not_multiply_without_end() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let list = vec![format!("*a{}", i - 1); 10].join(", ");
            text.push_str(&format!("a{i}: &a{i} [{list}]\n"));
        }
        assert!(load(&text, BOUNDS).is_err());
    }
}
