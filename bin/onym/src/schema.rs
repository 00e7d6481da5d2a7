//! Trust schemas of commands: the options that name them, and errors that say what to do.

use crate::exit::{Exit, Failure};
use onym_crypto::Certificate;
use onym_guard::schema::{self, Loaded, Names, Source, Unusable};
use onym_trust::chain::{Records, Revoked};
use onym_wire::Name;
use std::path::{Path, PathBuf};

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
    /// List of what is believed no longer: on each line the name of a certificate or key, or
    /// sha256: and the digest of a public key.
    #[arg(long, value_name = "FILE", requires = "trust")]
    revoked: Option<PathBuf>,
    /// Look records of revocation up for certificates of this identity and those under it. May be
    /// given more than once.
    #[arg(long, value_name = "IDENTITY", requires = "trust")]
    records: Vec<Name>,
    /// Refuse a certificate under --records unless its issuer says now that it is not revoked.
    #[arg(long, requires = "records")]
    records_needed: bool,
}

impl Options {
    /// Whether a schema is named.
    pub(crate) fn is_given(&self) -> bool {
        self.trust.is_some()
    }

    /// Reads the list of what is believed no longer, when one is named.
    pub(crate) fn revoked(&self) -> anyhow::Result<Option<Revoked>> {
        let Some(path) = &self.revoked else { return Ok(None) };
        onym_guard::revoked(path).map(Some).map_err(|error| {
            Failure::new(Exit::Failed, "the list of --revoked cannot be used")
                .why(error)
                .next("write the name of a key or certificate, or sha256:HEX, on each line")
                .into()
        })
    }

    /// Whose records of revocation are looked up.
    pub(crate) fn records(&self) -> Records {
        let (prefixes, needed) = (self.records.clone(), self.records_needed);
        Records { prefixes, needed, ..Records::default() }
    }

    /// Reads the schema, when one is named, and the anchors that it names itself.
    pub(crate) fn load(&self) -> anyhow::Result<Option<(Loaded, Vec<Certificate>)>> {
        let Some(path) = &self.trust else { return Ok(None) };
        let loaded = load(path, &self.section, self.objects.into())?;
        let anchors = loaded.all_anchors().map_err(unusable)?;
        Ok(Some((loaded, anchors)))
    }
}

fn unusable(error: Unusable) -> anyhow::Error {
    Failure::new(Exit::Failed, format!("{} is not a usable trust schema", error.file.display()))
        .why(error.why)
        .next("use LightVerSec text, its compiled model, or a validator configuration (--section names the part)")
        .into()
}

/// Reads the file of a schema and says what it is.
pub(crate) fn read(path: &Path) -> anyhow::Result<Source> {
    schema::read(path).map_err(unusable)
}

/// Reads a schema whatever its form; `section` is where a configuration has its rules.
pub(crate) fn load(path: &Path, section: &str, names: Names) -> anyhow::Result<Loaded> {
    schema::load(path, section, names).map_err(unusable)
}
