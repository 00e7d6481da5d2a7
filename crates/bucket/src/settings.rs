//! What can be set of a bucket.

use crate::Error;
use crate::credentials::Credentials;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A bucket, as a file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// `http://` or `https://`, host and port of the service; without it that of Amazon in `region`.
    #[serde(default)]
    pub endpoint: String,
    /// Region that requests are signed for.
    #[serde(default = "region")]
    pub region: String,
    /// What names of objects begin with, so that several stores may use one bucket.
    #[serde(default)]
    pub prefix: String,
    /// File with `aws_access_key_id` and `aws_secret_access_key`; without it the environment has them.
    #[serde(default)]
    pub credentials: Option<PathBuf>,
    /// Certificates (PEM) of the authorities that are trusted; without it those of the system.
    #[serde(default)]
    pub authority: Option<PathBuf>,
    /// How long a request may take.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
}

fn region() -> String {
    "us-east-1".into()
}

fn timeout_ms() -> u64 {
    30_000
}

/// Where systems keep the authorities that they trust.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

impl Settings {
    /// Where the service is.
    #[must_use]
    pub fn url(&self) -> String {
        match self.endpoint.trim_end_matches('/') {
            "" => format!("https://s3.{}.amazonaws.com", self.region),
            endpoint => endpoint.to_owned(),
        }
    }

    /// The bucket, for people.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.prefix.trim_matches('/') {
            "" => format!("s3://{}", self.name),
            prefix => format!("s3://{}/{prefix}", self.name),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.clamp(1, 600_000))
    }

    /// Who uses it; relative paths start at `base`.
    pub(crate) fn who(&self, base: &Path) -> Result<Credentials, Error> {
        match &self.credentials {
            Some(file) => Credentials::from_file(&base.join(file)),
            None => Credentials::from_environment(|name| std::env::var(name).ok()),
        }
    }

    /// The authorities that are trusted, as PEM.
    pub(crate) fn authorities(&self, base: &Path) -> Result<Vec<u8>, Error> {
        let named = self.authority.as_ref().map(|file| base.join(file));
        let known = || AUTHORITIES.iter().map(PathBuf::from).find(|path| path.is_file());
        let Some(path) = named.or_else(known) else {
            let why = "this system has no list of authorities: name one as bucket.authority";
            return Err(Error::Setting(why.into()));
        };
        std::fs::read(&path).map_err(|error| Error::File(path.display().to_string(), error))
    }
}
