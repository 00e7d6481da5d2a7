//! Reading trust schemas from files: LightVerSec text or model, or validator configuration.

use crate::exit::{Exit, Failure};
use onym_crypto::Certificate;
use onym_trust::Policy;
use onym_trust::conf::{Anchor, Rules};
use onym_trust::lvs::{Functions, Mode, Model, OCTETS_MAX, Schema, compile};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest file of a certificate that is read, in octets.
const CERTIFICATE_MAX: u64 = 64 << 10;
/// Most files of a folder of anchors that are read.
const FILES_MAX: usize = 1024;
/// How a binary model begins: its version element.
const MODEL_START: [u8; 2] = [0x61, 0x04];

/// The options of commands that judge by a schema.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Trust schema: which key may sign which name. LightVerSec as text or model, or validator
    /// configuration of ndn-cxx, which may name anchors itself.
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Where in a configuration the rules are, with dots, such as security.validator.
    #[arg(long, value_name = "PATH", default_value = "", requires = "trust")]
    section: String,
    /// Match names of objects: segment, version and metadata components are removed first, as ndnd
    /// does.
    #[arg(long, requires = "trust")]
    objects: bool,
}

impl Options {
    /// Reads the schema, when one is named.
    pub(crate) fn load(&self) -> anyhow::Result<Option<Loaded>> {
        let Some(path) = &self.trust else { return Ok(None) };
        load(path, &self.section, self.objects.into()).map(Some)
    }
}

/// A schema with the anchors that it names itself.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) policy: Arc<dyn Policy>,
    /// Anchors of a validator configuration.
    pub(crate) anchors: Vec<Certificate>,
}

/// What a file of a schema holds.
pub(crate) enum Source {
    /// LightVerSec, as text.
    Text(String),
    /// A compiled model.
    Model(Vec<u8>),
    /// Validator configuration of ndn-cxx.
    Configuration(String),
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> anyhow::Error {
    Failure::new(Exit::Failed, format!("{} is not a usable trust schema", path.display()))
        .why(why)
        .next("use LightVerSec text, its compiled model, or a validator configuration (--section names the part)")
        .into()
}

fn octets(path: &Path, max: u64) -> std::io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    File::open(path)?.take(max + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > max {
        return Err(std::io::Error::other(format!("it is longer than {max} octets")));
    }
    Ok(octets)
}

/// Reads the file of a schema and says what it is.
pub(crate) fn read(path: &Path) -> anyhow::Result<Source> {
    let octets = octets(path, OCTETS_MAX as u64).map_err(|e| unusable(path, e))?;
    if octets.starts_with(&MODEL_START) {
        return Ok(Source::Model(octets));
    }
    let text =
        String::from_utf8(octets).map_err(|_| unusable(path, "it is neither text nor a model"))?;
    let first = text.lines().map(str::trim_start).find(|l| !l.is_empty() && !l.starts_with("//"));
    let is_rule = first.is_none_or(|line| line.starts_with('#') && !line.starts_with("#include"));
    Ok(if is_rule { Source::Text(text) } else { Source::Configuration(text) })
}

/// What the names in a schema are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Packets,
    /// Segment, version and metadata are taken off the name of a packet first.
    Objects,
}

impl From<bool> for Names {
    /// As the option `--objects` says.
    fn from(objects: bool) -> Self {
        if objects { Self::Objects } else { Self::Packets }
    }
}

/// Reads a schema whatever its form; `section` is where a configuration has its rules.
pub(crate) fn load(path: &Path, section: &str, names: Names) -> anyhow::Result<Loaded> {
    let model = match read(path)? {
        Source::Text(text) => compile(&text, Mode::Strict).map_err(|e| unusable(path, e))?,
        Source::Model(octets) => Model::decode(&octets).map_err(|e| unusable(path, e))?,
        Source::Configuration(text) => return configuration(path, &text, section),
    };
    let schema = Schema::new(model, Functions::default()).map_err(|e| unusable(path, e))?;
    let schema = if names == Names::Objects { schema.without_segments() } else { schema };
    Ok(Loaded { policy: Arc::new(schema), anchors: Vec::new() })
}

fn configuration(path: &Path, text: &str, section: &str) -> anyhow::Result<Loaded> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut include = |file: &str| {
        let octets = octets(&folder.join(file), CERTIFICATE_MAX * 16);
        let octets = octets.map_err(|e| format!("{file}: {e}"))?;
        String::from_utf8(octets).map_err(|_| format!("{file} is no text"))
    };
    let rules = Rules::parse(text, section, &mut include).map_err(|e| unusable(path, e))?;
    let mut anchors = Vec::new();
    for anchor in &rules.anchors {
        match anchor {
            Anchor::Any => {}
            Anchor::Certificate(certificate) => anchors.push((**certificate).clone()),
            Anchor::File { path: file, .. } => {
                let file = folder.join(file);
                anchors.push(certificate(&file).map_err(|e| unusable(&file, e))?);
            }
            Anchor::Dir { path: dir, .. } => {
                let dir = folder.join(dir);
                anchors.extend(certificates(&dir).map_err(|e| unusable(&dir, e))?);
            }
        }
    }
    Ok(Loaded { policy: Arc::new(rules), anchors })
}

fn certificate(path: &Path) -> Result<Certificate, String> {
    let octets = octets(path, CERTIFICATE_MAX).map_err(|e| e.to_string())?;
    let text = String::from_utf8(octets).map_err(|_| "the file is no text".to_owned())?;
    Certificate::from_text(&text).map_err(|e| e.to_string())
}

/// The certificates of a folder; other files are passed over.
fn certificates(dir: &Path) -> std::io::Result<Vec<Certificate>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)?.take(FILES_MAX) {
        paths.push(entry?.path());
    }
    paths.sort();
    let files = paths.iter().filter(|path| path.is_file());
    Ok(files.filter_map(|path| certificate(path).ok()).collect())
}
