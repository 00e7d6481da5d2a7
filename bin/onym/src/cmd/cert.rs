//! `onym cert`: certificates.

mod authority;
mod condition;
mod request;
mod revoke;
mod serve;
mod status;

pub(crate) use condition::{Condition, days_left};

use crate::exit::{Exit, Failure};
use crate::key_files::{failure, read_text};
use crate::output::Context;
use clap::Subcommand;
use jiff::Timestamp;
use onym_crypto::cert::validity_of_days;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_crypto::{Certificate, Issue, digest};
use onym_wire::{Component, Name, NameRef};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// How an applicant shows a right to the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Challenge {
    /// A code that the authority's operator hands over, or the token of an invitation.
    Pin,
    /// A code by mail.
    Email,
    /// A certificate that is still valid.
    Possession,
    /// A TXT record in the DNS.
    Dns,
}

/// Create, show and store certificates.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym cert self-sign /alice                       a request, or an anchor for others
  onym cert export /alice -o alice.ndncert         base64, as ndnsec and NFD read it
  onym cert issue alice.ndncert --signer /root -o alice-by-root.ndncert
  onym cert install alice-by-root.ndncert
  onym cert serve /alice                           so that others find it by its name
  onym cert request ca.ndncert --for /ca/alice     from an authority, by a code
  onym cert renew ca.ndncert --keep                when a third of its time is left
  onym cert revoke alice-by-root.ndncert           its key is believed no longer
  onym cert status                                 days left, and what depends on it
  onym cert show /alice
  onym cert show alice.ndncert --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make and store a new self-signed certificate of a key.
    #[command(after_help = "Example:\n  onym cert self-sign /alice --days 3650")]
    SelfSign {
        /// Identity or key; without it the default identity.
        name: Option<Name>,
        /// Validity, in days.
        #[arg(long, default_value_t = 7300, value_parser = clap::value_parser!(u32).range(1..=365_000))]
        days: u32,
    },
    /// Sign someone's certificate (or self-signed request) with a key of yours.
    #[command(after_help = "Example:\n  onym cert issue alice.ndncert --signer /root --days 365")]
    Issue {
        /// File of the certificate or request; `-` for standard input.
        request: PathBuf,
        /// Identity or key that signs; without it the default identity.
        #[arg(long, value_name = "NAME")]
        signer: Option<Name>,
        /// Issuer id, a component of the new certificate's name.
        #[arg(long, default_value = "NA", value_name = "TEXT")]
        issuer_id: String,
        /// Validity, in days.
        #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=365_000))]
        days: u32,
        /// File to write; without it standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// List the certificates of the key store.
    #[command(after_help = "Example:\n  onym cert list --json")]
    List,
    /// Show a certificate.
    #[command(after_help = "Example:\n  onym cert show alice.ndncert")]
    Show {
        /// File, or the name of a certificate, key or identity in the key store.
        what: String,
    },
    /// Put a certificate into the key store.
    #[command(after_help = "Example:\n  onym cert install alice.ndncert")]
    Install {
        /// File of the certificate; `-` for standard input.
        file: PathBuf,
    },
    /// Serve the certificates of the key store until interrupted.
    #[command(after_help = "Examples:
  onym cert serve                        every identity of the key store
  onym cert serve /alice /root --json

Registers IDENTITY/KEY for each identity, and IDENTITY/REVOKE where the key store has a record of
`onym cert revoke`. A consumer that trusts an anchor finds so what leads from a segment to it: `onym get
--anchor`. A certificate is served with what its issuer signed, as it is.")]
    Serve {
        /// Identities; without any, all those of the key store.
        identities: Vec<Name>,
        /// Say for certificates under this identity that it has not revoked them, unless there is a
        /// record, signed with its key at the time of asking: where `records_needed` is set they
        /// count with that only. Registers the identity. May be given more than once.
        #[arg(long, value_name = "IDENTITY")]
        vouch: Vec<Name>,
    },
    /// Revoke a certificate: a record of its issuer, or of its own key, that it is believed no longer.
    #[command(after_help = "Examples:
  onym cert revoke alice-by-root.ndncert                         with the issuer's key
  onym cert revoke /alice --signer /alice --reason key-compromise   by the key itself
  onym cert revoke alice-by-root.ndncert --list /etc/onym/revoked   on this machine at once

The record is stored beside the keys, and `onym cert serve` serves it, at once where it is running.
Whoever looks records up (`records` of a [[trust]] entry, `onym get --records`) believes the certificate no
longer; the list (`revoked`, `--revoked`) needs no network.")]
    Revoke(revoke::Args),
    /// Get a certificate from an authority (NDNCERT 0.3).
    #[command(after_help = "Examples:
  onym cert request ca.ndncert --for /ca/alice                       by a code of its operator
  onym cert request ca.ndncert --email alice@example.net --challenge email
  onym cert request ca.ndncert --for /ca/alice --challenge possession
  onym cert request ca.ndncert --for /ca/example.net --challenge dns --domain example.net

The identity's key is used, and made when there is none.")]
    Request(request::Args),
    /// Renew certificates by the ones that are still valid, when a third of their time is left.
    #[command(after_help = "Examples:
  onym cert renew ca.ndncert --keep
  onym cert renew ca.ndncert /ca/alice --now

The old certificate stays beside the new one until it ends.")]
    Renew(request::RenewArgs),
    /// Run a certificate authority (NDNCERT 0.3) until interrupted: it certifies a key for a name once
    /// the applicant has passed a challenge.
    #[command(after_help = "Examples:
  onym cert authority /ca
  onym cert authority /ca --challenge email,possession --probe email --mail-command ./send-code
  onym cert authority /ca --challenge dns --resolver 127.0.0.1:53
  onym cert authority --folder /var/lib/onym/routing

The codes of `pin` are printed here: give one to the applicant if the identity is theirs.")]
    Authority(authority::Args),
    /// Say how long certificates are good for, and what depends on them.
    #[command(after_help = "Example:\n  onym cert status --json")]
    Status,
    /// Write a certificate as base64.
    #[command(after_help = "Example:\n  onym cert export /alice -o alice.ndncert")]
    Export {
        /// Certificate, key or identity; without it the default identity.
        name: Option<Name>,
        /// File to write; without it standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let store = KeyStore::of_user().map_err(failure)?;
    match args.command.unwrap_or(Command::List) {
        Command::SelfSign { name, days } => self_sign(cx, &store, name.as_ref(), days),
        Command::Issue { request, signer, issuer_id, days, output } => {
            let signer = store.signer(signer.as_ref().map(Name::as_ref)).map_err(failure)?;
            let request = read(&request)?;
            let now_ms = unix_now_ms();
            let issue = Issue {
                issuer_id: Component::generic(issuer_id.as_bytes()),
                validity: validity_of_days(now_ms, days),
                now_ms,
            };
            let made = Certificate::issue(&request, &signer, &issue).map_err(failure)?;
            write(cx, &made, output.as_deref())
        }
        Command::List => list(cx, &store),
        Command::Show { what } => {
            let path = Path::new(&what);
            // Names begin with `/`; such a text is a file only when there is one.
            let certificate = if path.exists() || !what.starts_with('/') {
                read(path)?
            } else {
                let name: Name = what.parse().map_err(|e| {
                    Failure::new(Exit::Usage, format!("{what} is neither a file nor a name")).why(e)
                })?;
                find(&store, Some(name.as_ref()))?
            };
            cx.print(&CertRow::from(&certificate), show)
        }
        Command::Install { file } => {
            let certificate = read(&file)?;
            store.add_certificate(&certificate).map_err(failure)?;
            cx.print(&CertRow::from(&certificate), |row| format!("installed {}", row.name))
        }
        Command::Serve { identities, vouch } => serve::run(&store, identities, &vouch, cx),
        Command::Revoke(args) => revoke::run(&args, &store, cx),
        Command::Request(args) => request::request(&args, &store, cx),
        Command::Renew(args) => request::renew(&args, &store, cx),
        Command::Authority(args) => authority::run(&args, &store, cx),
        Command::Status => status::run(&store, cx),
        Command::Export { name, output } => {
            let certificate = find(&store, name.as_ref().map(Name::as_ref))?;
            write(cx, &certificate, output.as_deref())
        }
    }
}

fn list(cx: &Context, store: &KeyStore) -> anyhow::Result<()> {
    let all = store.certificates().map_err(failure)?;
    let rows: Vec<_> = all.iter().map(CertRow::from).collect();
    cx.print(&rows, |rows| {
        if rows.is_empty() {
            return "no certificates; `onym key new IDENTITY` makes a key and one".into();
        }
        let row = |r: &CertRow| {
            let state = if r.valid_now { "" } else { "  NOT VALID NOW" };
            vec![r.name.clone(), format!("{} to {}{state}", r.not_before, r.not_after)]
        };
        crate::human::table(&["CERTIFICATE", "VALID"], &rows.iter().map(row).collect::<Vec<_>>())
    })
}

#[derive(Serialize)]
struct CertRow {
    name: String,
    key: String,
    identity: String,
    issuer: Option<String>,
    self_signed: bool,
    key_type: &'static str,
    key_digest: String,
    signature_type: u64,
    not_before: String,
    not_after: String,
    valid_now: bool,
}

impl From<&Certificate> for CertRow {
    fn from(certificate: &Certificate) -> Self {
        let validity = certificate.validity();
        Self {
            name: certificate.name().to_string(),
            key: certificate.key_name().to_string(),
            identity: certificate.identity().to_string(),
            issuer: certificate.issuer().map(|n| n.to_string()),
            self_signed: certificate.is_self_signed(),
            key_type: certificate.public_key().key_type().word(),
            key_digest: digest::hex(&certificate.public_key().key_digest()),
            signature_type: certificate.signature_type(),
            not_before: date(validity.not_before.0),
            not_after: date(validity.not_after.0),
            valid_now: certificate.check_valid_at(unix_now_ms()).is_ok(),
        }
    }
}

/// Seconds since the Unix epoch as people read them, UTC.
fn date(unix_s: i64) -> String {
    Timestamp::from_second(unix_s).map_or_else(|_| unix_s.to_string(), |t| t.to_string())
}

fn show(row: &CertRow) -> String {
    let state = if row.valid_now { "valid now" } else { "NOT VALID NOW" };
    let issuer = match &row.issuer {
        _ if row.self_signed => "itself",
        Some(issuer) => issuer,
        None => "unknown (the key locator is no name)",
    };
    format!(
        "{}\n  identity    {}\n  key         {} ({})\n  key digest  {}\n  signed by   {issuer} (signature type {})\n  valid       {} to {} ({state})",
        row.name,
        row.identity,
        row.key,
        row.key_type,
        row.key_digest,
        row.signature_type,
        row.not_before,
        row.not_after,
    )
}

fn self_sign(cx: &Context, store: &KeyStore, name: Option<&Name>, days: u32) -> anyhow::Result<()> {
    let key_name = store.resolve(name.map(Name::as_ref)).map_err(failure)?;
    let key = store.key(key_name.as_ref()).map_err(failure)?;
    let now_ms = unix_now_ms();
    let made = Certificate::self_signed_for(
        key_name.as_ref(),
        &key,
        now_ms,
        validity_of_days(now_ms, days),
    );
    let made = made.map_err(failure)?;
    store.add_certificate(&made).map_err(failure)?;
    cx.print(&CertRow::from(&made), show)
}

/// The certificate that `what` names, or the preferred one of the key that it means.
pub(crate) fn find(store: &KeyStore, what: Option<NameRef<'_>>) -> anyhow::Result<Certificate> {
    if let Some(certificate) = what.and_then(|name| store.certificate(name).ok()) {
        return Ok(certificate);
    }
    let key = store.resolve(what).map_err(failure)?;
    let mut all = store.certificates_of(key.as_ref()).map_err(failure)?;
    if all.is_empty() {
        let failure = Failure::new(Exit::NotFound, format!("{key} has no certificate"));
        return Err(failure.next(format!("`onym cert self-sign {key}` makes one")).into());
    }
    Ok(all.swap_remove(0))
}

fn read(path: &Path) -> anyhow::Result<Certificate> {
    Certificate::from_text(&read_text(path)?).map_err(|e| {
        Failure::new(Exit::Failed, format!("{} holds no certificate", path.display()))
            .why(e)
            .next("expected is base64 of one Data packet, as `onym cert export` writes it")
            .into()
    })
}

fn write(cx: &Context, certificate: &Certificate, output: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = output else {
        return if cx.json {
            cx.print(&CertRow::from(certificate), |_| String::new())
        } else {
            crate::output::write_line(&certificate.to_text())
        };
    };
    crate::target::write(path, certificate.to_text().as_bytes())?;
    cx.print(&CertRow::from(certificate), |row| format!("wrote {} to {}", row.name, path.display()))
}
