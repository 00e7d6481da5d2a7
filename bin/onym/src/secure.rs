//! TLS of the manager's interface, and whether a token may be sent without it.

use crate::exit::{Exit, Failure};
use anyhow::Result;
use onym_http::tls::{ServerTls, Tls, TlsError};
use std::path::{Path, PathBuf};

/// What a server shows.
#[derive(Debug, clap::Args)]
pub(crate) struct Own {
    /// Certificate of the interface, with its chain (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl Own {
    /// Whether there is a certificate.
    pub(crate) fn is_there(&self) -> bool {
        self.tls_cert.is_some()
    }

    /// Reads the files; clients show certificates that `clients` signed, if any.
    pub(crate) fn load(&self, clients: Option<&Path>) -> Result<Option<ServerTls>> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let ca = clients.map(read).transpose()?;
        let tls = ServerTls::new(&read(certificate)?, &read(key)?, ca.as_deref());
        Ok(Some(tls.map_err(|e| wrong(&e))?))
    }
}

/// What a server shows, and whose certificates it wants.
#[derive(Debug, clap::Args)]
pub(crate) struct Serving {
    #[command(flatten)]
    own: Own,
    /// Certificate authority of clients (PEM); turns mutual TLS on.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Accept the token unencrypted beyond loopback; only where nobody can read along.
    #[arg(long, requires = "token_file")]
    clear_text: bool,
}

impl Serving {
    /// Whether who asks must have a certificate.
    pub(crate) fn is_mutual(&self) -> bool {
        self.tls_ca.is_some()
    }

    /// Whether a token may be asked for beyond loopback.
    pub(crate) fn hides_tokens(&self) -> bool {
        self.own.is_there() || self.clear_text
    }

    /// `http` or `https`.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.own.is_there() { "https" } else { "http" }
    }

    /// Reads the files.
    pub(crate) fn load(&self) -> Result<Option<ServerTls>> {
        self.own.load(self.tls_ca.as_deref())
    }
}

/// Whom a client trusts, and what it shows.
#[derive(Debug, clap::Args)]
pub(crate) struct Asking {
    /// Certificate authority of the manager (PEM).
    #[arg(long, global = true, value_name = "FILE", env = "ONYM_CA")]
    ca: Option<PathBuf>,
    /// Client certificate (PEM).
    #[arg(long, global = true, value_name = "FILE", requires = "tls_key", env = "ONYM_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, global = true, value_name = "FILE", requires = "tls_cert", env = "ONYM_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Send the token unencrypted beyond loopback; only where nobody can read along.
    #[arg(long, global = true)]
    clear_text: bool,
}

impl Asking {
    /// Reads the files.
    pub(crate) fn load(&self) -> Result<Option<Tls>> {
        let Some(ca) = &self.ca else { return Ok(None) };
        let identity = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
            _ => None,
        };
        let identity = identity.as_ref().map(|(c, k)| (c.as_slice(), k.as_slice()));
        Ok(Some(Tls::new(&read(ca)?, identity).map_err(|e| wrong(&e))?))
    }

    /// Refuses to send a token where others may read it.
    pub(crate) fn check(&self, url: &str) -> Result<()> {
        let Some(host) = url.strip_prefix("http://") else { return Ok(()) };
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let near = name == "localhost" || name.starts_with("127.") || name == "[::1]";
        if near || self.clear_text {
            return Ok(());
        }
        Err(Failure::new(Exit::Usage, format!("{url}: the token would travel unencrypted"))
            .next("use https:// with --ca FILE, or accept it with --clear-text on a trusted path")
            .into())
    }
}

/// The token in a file.
pub(crate) fn read_token(file: &Path) -> Result<String> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| {
        Failure::new(Exit::Usage, format!("{shown}: the token cannot be read"))
            .why(e)
            .next("name a file that holds one line of at least 16 characters")
    })?;
    let token = text.trim().to_owned();
    if token.len() < 16 || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(Failure::new(Exit::Usage, format!("{shown}: not a token"))
            .why("a token has at least 16 visible characters")
            .next("head -c 24 /dev/urandom | base64 > FILE")
            .into());
    }
    Ok(token)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|e| {
        Failure::new(Exit::Usage, format!("{}: cannot be read", file.display())).why(e).into()
    })
}

fn wrong(error: &TlsError) -> Failure {
    Failure::new(Exit::Usage, format!("the {} for TLS cannot be used", error.part))
        .why(&error.why)
        .next("use PEM files: certificates, and the key of the first one")
}
