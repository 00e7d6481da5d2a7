#![doc = include_str!("../README.md")]

mod draft;
mod ndnd;
mod nfd;
mod tree;

use draft::Draft;
use std::fmt::Write as _;
use tree::Section;

/// Whose configuration a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// NFD, in the INFO format.
    Nfd,
    /// ndnd (YaNFD), in YAML.
    Ndnd,
}

/// What a configuration says in our words.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The configuration.
    pub table: toml::Table,
    /// What has no equivalent, by line.
    pub notes: Vec<Note>,
}

/// Something that was not carried over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line of the other configuration, counted from 1.
    pub line: usize,
    /// What it says there, and what to do instead.
    pub text: String,
}

/// A configuration that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Error {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

type Outcome<T> = Result<T, Error>;

/// Reads `text`.
///
/// # Errors
/// A text that is not in the format of `origin`, or a value that cannot be read.
pub fn import(origin: Origin, text: &str) -> Result<Imported, Error> {
    let mut draft = Draft::default();
    match origin {
        Origin::Nfd => nfd::import(Section::from_info(text)?, &mut draft)?,
        Origin::Ndnd => ndnd::import(Section::from_yaml(text)?, &mut draft)?,
    }
    Ok(draft.finish())
}

impl Imported {
    /// The configuration as TOML; the notes are comments at its head, and `file` says where the lines
    /// are.
    ///
    /// # Errors
    /// Never for what [`import`] returned; those of the serializer for a table made otherwise.
    pub fn to_toml(&self, file: &str) -> Result<String, toml::ser::Error> {
        let mut text = String::new();
        for note in &self.notes {
            // Names of files and texts of others stay within their comment.
            let line =
                format!("{file}:{}: {}", note.line, note.text).replace(char::is_control, " ");
            let _ = writeln!(text, "# {line}");
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&toml::to_string_pretty(&self.table)?);
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
