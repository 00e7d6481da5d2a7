//! Schemas from files: LightVerSec text or model, or validator configuration.

use crate::files;
use onym_crypto::Certificate;
use onym_trust::Policy;
use onym_trust::conf::{Anchor, Rules};
use onym_trust::lvs::{Functions, Mode, Model, OCTETS_MAX, Schema, compile};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest file that a configuration includes, in octets.
const INCLUDE_MAX: u64 = 1 << 20;
/// How a binary model begins: its version element.
const MODEL_START: [u8; 2] = [0x61, 0x04];

/// What a file of a schema holds.
#[derive(Debug)]
pub enum Source {
    /// LightVerSec, as text.
    Text(String),
    /// A compiled model.
    Model(Vec<u8>),
    /// Validator configuration of ndn-cxx.
    Configuration(String),
}

/// What the names in a schema are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Those of packets.
    Packets,
    /// Segment, version and metadata are taken off the name of a packet first.
    Objects,
}

impl From<bool> for Names {
    /// As the setting `objects` says.
    fn from(objects: bool) -> Self {
        if objects { Self::Objects } else { Self::Packets }
    }
}

/// A schema that cannot be used: which, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a usable trust schema: {why}", file.display())]
pub struct Unusable {
    /// The file.
    pub file: PathBuf,
    /// What is wrong.
    pub why: String,
}

fn unusable(file: &Path, why: impl fmt::Display) -> Unusable {
    Unusable { file: file.to_owned(), why: why.to_string() }
}

/// Anchors that a configuration names, with how often they are looked at, in seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File or folder.
    pub path: PathBuf,
    /// Seconds between two looks; `None` is once.
    pub refresh_s: Option<u64>,
}

/// A schema with the anchors that it names itself.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The rules.
    pub policy: Arc<dyn Policy>,
    /// Anchors in the configuration itself.
    pub anchors: Vec<Certificate>,
    /// Files and folders of anchors that it names.
    pub places: Vec<Place>,
}

impl Loaded {
    /// All anchors, the files read.
    ///
    /// # Errors
    /// [`Unusable`] names a file that cannot be read.
    pub fn all_anchors(&self) -> Result<Vec<Certificate>, Unusable> {
        let mut all = self.anchors.clone();
        for place in &self.places {
            let path = &place.path;
            all.extend(files::certificates(path).map_err(|e| unusable(path, e))?);
        }
        Ok(all)
    }
}

/// Reads the file of a schema and says what it is.
///
/// # Errors
/// [`Unusable`] when it cannot be read, or is neither text nor a model.
pub fn read(path: &Path) -> Result<Source, Unusable> {
    let octets = files::octets(path, OCTETS_MAX as u64).map_err(|e| unusable(path, e))?;
    if octets.starts_with(&MODEL_START) {
        return Ok(Source::Model(octets));
    }
    let text =
        String::from_utf8(octets).map_err(|_| unusable(path, "it is neither text nor a model"))?;
    let first = text.lines().map(str::trim_start).find(|l| !l.is_empty() && !l.starts_with("//"));
    let is_rule = first.is_none_or(|line| line.starts_with('#') && !line.starts_with("#include"));
    Ok(if is_rule { Source::Text(text) } else { Source::Configuration(text) })
}

/// Reads a schema whatever its form; `section` is where a configuration has its rules.
///
/// # Errors
/// [`Unusable`].
pub fn load(path: &Path, section: &str, names: Names) -> Result<Loaded, Unusable> {
    let model = match read(path)? {
        Source::Text(text) => compile(&text, Mode::Strict).map_err(|e| unusable(path, e))?,
        Source::Model(octets) => Model::decode(&octets).map_err(|e| unusable(path, e))?,
        Source::Configuration(text) => return configuration(path, &text, section),
    };
    let schema = Schema::new(model, Functions::default()).map_err(|e| unusable(path, e))?;
    let schema = if names == Names::Objects { schema.without_segments() } else { schema };
    Ok(Loaded { policy: Arc::new(schema), anchors: Vec::new(), places: Vec::new() })
}

fn configuration(path: &Path, text: &str, section: &str) -> Result<Loaded, Unusable> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut include = |file: &str| {
        files::text(&folder.join(file), INCLUDE_MAX).map_err(|e| format!("{file}: {e}"))
    };
    let rules = Rules::parse(text, section, &mut include).map_err(|e| unusable(path, e))?;
    let (mut anchors, mut places) = (Vec::new(), Vec::new());
    for anchor in &rules.anchors {
        match anchor {
            Anchor::Any => {}
            Anchor::Certificate(certificate) => anchors.push((**certificate).clone()),
            Anchor::File { path: place, refresh_s } | Anchor::Dir { path: place, refresh_s } => {
                places.push(Place { path: folder.join(place), refresh_s: *refresh_s });
            }
        }
    }
    Ok(Loaded { policy: Arc::new(rules), anchors, places })
}
