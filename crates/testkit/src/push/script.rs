//! Lines of a push script.

use crate::script::ScriptError;
use crate::script::parse::repeat;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A push script.
#[derive(Debug, Clone)]
pub struct PushScript {
    /// Where it was read.
    pub path: PathBuf,
    /// File name without extension.
    pub name: String,
    /// The law it shows.
    pub law: String,
    /// Numbers of the sections or rules that state the law.
    pub sections: Vec<String>,
    /// Words of the `tags:` line.
    pub tags: Vec<String>,
    /// What follows the header.
    pub lines: Vec<Line>,
}

/// A line: words, and `key=value` options.
#[derive(Debug, Clone)]
pub struct Line {
    /// Number in the file, from 1.
    pub number: usize,
    /// As written.
    pub text: String,
    /// Words without `=`.
    pub words: Vec<String>,
    /// Words with `=`.
    pub options: BTreeMap<String, String>,
}

const STATEMENTS: &[&str] = &[
    "node",
    "link",
    "app",
    "scheme",
    "forwarders",
    "wait",
    "mark",
    "down",
    "up",
    "crash",
    "restart",
    "graph",
    "epoch",
    "inject",
    "crossed",
    "count",
    "drain",
];

/// Reads and parses a file.
///
/// # Errors
/// It cannot be read, or a line is wrong.
pub fn parse_file(path: &Path) -> Result<PushScript, ScriptError> {
    let text = std::fs::read_to_string(path).map_err(|e| ScriptError {
        path: path.into(),
        line: 0,
        what: format!("cannot be read: {e}"),
        allowed: "a readable ASCII file".into(),
    })?;
    parse(path, &text)
}

/// Parses a script; `path` is for messages and gives the name.
///
/// # Errors
/// A line is wrong.
pub fn parse(path: &Path, text: &str) -> Result<PushScript, ScriptError> {
    let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let mut script = PushScript {
        path: path.into(),
        name,
        law: String::new(),
        sections: Vec::new(),
        tags: Vec::new(),
        lines: Vec::new(),
    };
    let wrong = |line: usize, what: String, allowed: &str| ScriptError {
        path: path.into(),
        line,
        what,
        allowed: allowed.into(),
    };
    for (i, line) in text.lines().enumerate() {
        let number = i + 1;
        if !line.is_ascii() {
            return Err(wrong(number, "a character outside ASCII".into(), "ASCII"));
        }
        if header(&mut script, line) {
            continue;
        }
        let words = line.split_ascii_whitespace().take_while(|w| !w.starts_with('#'));
        let line = words.collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            continue;
        }
        let lines = repeat(&line).map_err(|(what, allowed)| wrong(number, what, &allowed))?;
        for text in lines {
            let first = text.split(' ').next().unwrap_or_default();
            if !STATEMENTS.contains(&first) && !first.ends_with('!') && !first.ends_with('<') {
                let allowed = format!("{}, or APP! APP<", STATEMENTS.join(" "));
                return Err(wrong(number, format!("unknown statement {first:?}"), &allowed));
            }
            script.lines.push(one(number, &text));
        }
    }
    if script.law.is_empty() || script.sections.is_empty() || script.lines.is_empty() {
        let what = "law, section or lines are missing".to_owned();
        return Err(wrong(1, what, "law: and section: come first, then what happens"));
    }
    Ok(script)
}

fn header(script: &mut PushScript, line: &str) -> bool {
    if let Some(law) = line.strip_prefix("law:") {
        script.law = law.trim().into();
    } else if let Some(numbers) = line.strip_prefix("section:") {
        script.sections = numbers.split(',').map(|s| s.trim().to_owned()).collect();
    } else if let Some(tags) = line.strip_prefix("tags:") {
        script.tags = tags.split_ascii_whitespace().map(str::to_owned).collect();
    } else {
        return false;
    }
    true
}

fn one(number: usize, text: &str) -> Line {
    let (mut words, mut options) = (Vec::new(), BTreeMap::new());
    for word in text.split(' ') {
        match word.split_once('=') {
            Some((key, value)) => drop(options.insert(key.to_owned(), value.to_owned())),
            None => words.push(word.to_owned()),
        }
    }
    Line { number, text: text.to_owned(), words, options }
}

impl PushScript {
    /// Milliseconds of all lines `wait`.
    #[must_use]
    pub fn waits_ms(&self) -> u64 {
        let waits = self.lines.iter().filter(|line| line.words[0] == "wait");
        waits.filter_map(|line| line.words.get(1)?.parse::<u64>().ok()).sum()
    }
}

impl Line {
    /// The word at `at`.
    pub(super) fn word(&self, at: usize, what: &str) -> Result<&str, String> {
        self.words.get(at).map(String::as_str).ok_or_else(|| format!("{what} is missing"))
    }

    /// An option, parsed; `None` when it is not written.
    pub(super) fn option<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, String> {
        let Some(text) = self.options.get(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("{key}={text} cannot be read"))
    }

    /// Words separated by commas.
    pub(super) fn list(&self, key: &str) -> Option<Vec<&str>> {
        let text = self.options.get(key)?;
        Some(text.split(',').filter(|w| !w.is_empty()).collect())
    }
}
