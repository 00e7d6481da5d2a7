//! Both formats as one tree: keys with values, lines and children.

use crate::draft::Draft;
use crate::{Error, Outcome};
use onym_trust::conf::info::{self, Entry};
use onym_trust::conf::no_include;
use onym_yaml::{Bounds, MarkedYaml, Scalar, YamlData};
use std::str::FromStr;

/// What a YAML file may be; that of INFO is the reader's.
const BOUNDS: Bounds = Bounds { bytes_max: 4 << 20, depth_max: 16 };

/// A section whose keys are taken one after the other; what is left at its end was not understood.
#[derive(Debug)]
pub(crate) struct Section {
    path: String,
    pub(crate) line: usize,
    left: Vec<Entry>,
}

/// A value, with the key's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Section {
    pub(crate) fn from_info(text: &str) -> Outcome<Self> {
        let entries = info::parse(text, &mut no_include);
        let left = entries.map_err(|(line, what)| Error { line, what })?;
        Ok(Self { path: String::new(), line: 1, left })
    }

    pub(crate) fn from_yaml(text: &str) -> Outcome<Self> {
        let document = onym_yaml::load(text, BOUNDS)
            .map_err(|onym_yaml::Error { line, what }| Error { line, what })?;
        let left = document.map_or(Ok(Vec::new()), |document| children(&document))?;
        Ok(Self { path: String::new(), line: 1, left })
    }

    fn of(&self, entry: Entry) -> Self {
        let path = self.path_of(&entry.key);
        Self { path, line: entry.line, left: entry.children }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn take(&mut self, key: &str) -> Option<Entry> {
        let at = self.left.iter().position(|entry| entry.key == key)?;
        Some(self.left.remove(at))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.left.iter().any(|entry| entry.key == key)
    }

    /// The section of that key, if it is there.
    pub(crate) fn section(&mut self, key: &str) -> Option<Self> {
        let entry = self.take(key)?;
        Some(self.of(entry))
    }

    /// All sections of that key.
    pub(crate) fn sections(&mut self, key: &str) -> Vec<Self> {
        std::iter::from_fn(|| self.section(key)).collect()
    }

    /// The text of that key.
    pub(crate) fn text(&mut self, key: &str) -> Option<Text> {
        self.take(key).map(|entry| Text { line: entry.line, text: entry.value })
    }

    /// All keys that are left, with their texts, in order.
    pub(crate) fn rest(&mut self) -> Vec<(String, Text)> {
        let entries = std::mem::take(&mut self.left).into_iter();
        entries.map(|e| (e.key, Text { line: e.line, text: e.value })).collect()
    }

    /// The texts of a list, `key: [a, b]` in YAML.
    pub(crate) fn list(&mut self, key: &str) -> Vec<Text> {
        self.section(key)
            .map(|mut list| list.rest().into_iter().map(|(_, text)| text).collect())
            .unwrap_or_default()
    }

    /// The sections of a list.
    pub(crate) fn items(&mut self) -> Vec<Self> {
        self.sections(ITEM)
    }

    /// Whether it says yes.
    pub(crate) fn switch(&mut self, key: &str) -> Outcome<Option<bool>> {
        let Some(Text { line, text }) = self.text(key) else { return Ok(None) };
        match text.as_str() {
            "yes" | "true" | "on" => Ok(Some(true)),
            "no" | "false" | "off" => Ok(Some(false)),
            _ => Err(Error {
                line,
                what: format!("{} is {text:?}, not yes or no", self.path_of(key)),
            }),
        }
    }

    /// The number of that key.
    pub(crate) fn number<T: FromStr>(&mut self, key: &str) -> Outcome<Option<T>> {
        let Some(Text { line, text }) = self.text(key) else { return Ok(None) };
        let wrong = || Error {
            line,
            what: format!("{} is {text:?}, no number in range", self.path_of(key)),
        };
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// Takes that key without a word: it means nothing to a node of ours.
    pub(crate) fn ignore(&mut self, key: &str) {
        while self.take(key).is_some() {}
    }

    /// Takes that key, with a note of what to do instead.
    pub(crate) fn without(&mut self, key: &str, instead: &str, draft: &mut Draft) {
        while let Some(entry) = self.take(key) {
            draft.note(entry.line, format!("{} is not carried over: {instead}", self.path_of(key)));
        }
    }

    /// Notes each key that nobody took.
    pub(crate) fn end(self, draft: &mut Draft) {
        for entry in &self.left {
            let path = self.path_of(&entry.key);
            draft.note(
                entry.line,
                format!("{path} is not a key that this import knows; not carried over"),
            );
        }
    }
}

/// The key of an item of a list.
const ITEM: &str = "-";

fn children(node: &MarkedYaml<'_>) -> Outcome<Vec<Entry>> {
    let line = node.span.start.line();
    match &node.data {
        YamlData::Mapping(map) => map
            .iter()
            .map(|(key, value)| entry(scalar(key)?, key.span.start.line(), value))
            .collect(),
        YamlData::Sequence(list) => list
            .iter()
            .map(|value| entry(ITEM.to_owned(), value.span.start.line(), value))
            .collect(),
        YamlData::Value(Scalar::Null) => Ok(Vec::new()),
        _ => Err(Error { line, what: "a section with keys is wanted here".into() }),
    }
}

fn entry(key: String, line: usize, value: &MarkedYaml<'_>) -> Outcome<Entry> {
    let is_inner = matches!(value.data, YamlData::Mapping(_) | YamlData::Sequence(_));
    if is_inner {
        return Ok(Entry { key, line, value: String::new(), children: children(value)? });
    }
    Ok(Entry { key, line, value: scalar(value)?, children: Vec::new() })
}

fn scalar(node: &MarkedYaml<'_>) -> Outcome<String> {
    match &node.data {
        YamlData::Value(Scalar::Null) => Ok(String::new()),
        YamlData::Value(Scalar::Boolean(value)) => Ok(value.to_string()),
        YamlData::Value(Scalar::Integer(value)) => Ok(value.to_string()),
        YamlData::Value(Scalar::FloatingPoint(value)) => Ok(value.to_string()),
        YamlData::Value(Scalar::String(value)) => Ok(value.to_string()),
        _ => Err(Error { line: node.span.start.line(), what: "a value is wanted here".into() }),
    }
}
