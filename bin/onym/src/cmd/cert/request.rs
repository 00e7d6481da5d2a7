//! `onym cert request` and `onym cert renew`: certificates from an authority.

use super::{CertRow, Challenge, failure, read, show};
use crate::enrol::{self, Proof, Record, Wanted};
use crate::exit::{Exit, Failure};
use crate::output::{self, Context};
use crate::{session, stop};
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_crypto::store::KeyStore;
use onym_crypto::{Certificate, Entropy as _, KeyType, PrivateKey, SystemEntropy};
use onym_ndncert::message::Parameter;
use onym_ndncert::{Secret, renew};
use onym_wire::{Component, Name, cert};
use serde::Serialize;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File of the authority's certificate.
    authority: PathBuf,
    /// Identity to certify; without it the authority proposes one.
    #[arg(long = "for", value_name = "NAME")]
    identity: Option<Name>,
    /// How to show a right to the name.
    #[arg(long, value_enum, default_value = "pin")]
    challenge: Challenge,
    /// Mail address: where `--challenge email` sends its code, and whom to ask for a name for.
    #[arg(long, value_name = "ADDRESS", required_if_eq("challenge", "email"))]
    email: Option<String>,
    /// Domain of the TXT record of `--challenge dns`.
    #[arg(long, value_name = "DOMAIN", required_if_eq("challenge", "dns"))]
    domain: Option<String>,
    /// Certificate of the key store that `--challenge possession` shows; default: the identity's.
    #[arg(long, value_name = "NAME")]
    with: Option<Name>,
    /// File whose first line is the code; without it the code is asked for.
    #[arg(long, value_name = "FILE")]
    code_file: Option<PathBuf>,
    /// Validity, in days; without it as long as the authority grants.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: Option<u32>,
    /// Generate a new key even if the identity has one.
    #[arg(long)]
    new_key: bool,
}

/// The key of `identity` in the store, else a new one: its name, the key, and whether it is new.
fn key_for(
    store: &KeyStore,
    identity: &Name,
    wants_new: bool,
) -> anyhow::Result<(Name, PrivateKey, bool)> {
    if !wants_new && let Ok(name) = store.resolve(Some(identity.as_ref())) {
        let key = store.key(name.as_ref()).map_err(failure)?;
        return Ok((name, key, false));
    }
    let mut number = [0; 8];
    SystemEntropy.fill(&mut number);
    let name = cert::key_name(identity.as_ref(), Component::generic(&number));
    // The kind of key that every authority takes.
    let key = PrivateKey::generate(KeyType::Ecdsa).map_err(failure)?;
    Ok((name, key, true))
}

pub(super) fn request(args: &Args, store: &KeyStore, cx: &Context) -> anyhow::Result<()> {
    let mut authority = read(&args.authority)?;
    let mut client = session::open(cx)?;
    let identity = match &args.identity {
        Some(identity) => identity.clone(),
        None => {
            let email = args.email.iter().map(|a| Parameter::new("email", a.as_bytes()));
            let domain = args.domain.iter().map(|d| Parameter::new("domain", d.as_bytes()));
            let known: Vec<_> = email.chain(domain).collect();
            let (other, name) = enrol::probe(&mut client, &authority, &known)?;
            if !other.identity().is_prefix_of(name.as_ref()) {
                let what = format!("the authority offers {name}, which is not under its own name");
                return Err(Failure::new(Exit::Refused, what)
                    .next("request a name with --for")
                    .into());
            }
            authority = other;
            name
        }
    };
    let (key_name, key, is_new) = key_for(store, &identity, args.new_key)?;
    let profile = enrol::profile(&mut client, &authority)?;
    let validity = enrol::validity(&profile, args.days);
    let shown = match args.challenge {
        Challenge::Possession => Some(proof_of(store, args.with.as_ref().unwrap_or(&identity))?),
        _ => None,
    };
    let mut ask_code = |status: &str| code(args.code_file.as_deref(), status, &identity);
    let mut ask_record = record;
    let proof = match (&shown, args.challenge) {
        (Some((certificate, key)), _) => Proof::Possession { certificate, key },
        (None, Challenge::Dns) => {
            let domain = args.domain.as_deref().unwrap_or_default();
            Proof::Record { domain, record: Record::default(), ask: &mut ask_record }
        }
        (None, challenge) => {
            let address = args.email.as_deref().filter(|_| challenge == Challenge::Email);
            Proof::Code { address, ask: &mut ask_code }
        }
    };
    let wanted = Wanted { key_name: key_name.as_ref(), key: key.clone(), validity };
    let issued = enrol::enrol(&mut client, &authority, wanted, proof)?;
    if is_new {
        store.add_key(key_name.as_ref(), &key).map_err(failure)?;
    }
    store.add_certificate(&issued).map_err(failure)?;
    cx.print(&CertRow::from(&issued), show)
}

/// The best certificate of `what` that another issued and that is valid, and its key.
fn proof_of(store: &KeyStore, what: &Name) -> anyhow::Result<(Certificate, PrivateKey)> {
    let key_name = store.resolve(Some(what.as_ref())).map_err(failure)?;
    let all = store.certificates_of(key_name.as_ref()).map_err(failure)?;
    let now_ms = unix_now_ms();
    let fits = |c: &Certificate| !c.is_self_signed() && c.check_valid_at(now_ms).is_ok();
    let Some(certificate) = all.into_iter().find(fits) else {
        let what = format!("{what} has no certificate that is valid now");
        return Err(Failure::new(Exit::NotFound, what)
            .next("an expired certificate proves nothing: start over with `--challenge pin`")
            .into());
    };
    Ok((certificate, store.key(key_name.as_ref()).map_err(failure)?))
}

/// The code, of a file or asked for; a file answers once.
fn code(file: Option<&Path>, status: &str, identity: &Name) -> anyhow::Result<Secret> {
    if let Some(file) = file {
        if status != "need-code" {
            return Err(Failure::new(Exit::Refused, "the code in the file is wrong").into());
        }
        let text = crate::key_files::read_text(file)?;
        return Ok(Secret::new(text.lines().next().unwrap_or_default().to_owned()));
    }
    let wrong = if status == "need-code" { "" } else { "That is not the code. " };
    output::ask(&format!("{wrong}Code of the authority for {identity}: "))?;
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        return Err(Failure::new(Exit::Usage, "no code was entered")
            .next("enter it at the prompt, or name a file with --code-file")
            .into());
    }
    Ok(Secret::new(line))
}

fn record(status: &str, record: &Record) -> anyhow::Result<()> {
    let Record { name, value } = record;
    let wrong = if status == "need-record" { "" } else { "the authority does not find it; " };
    output::tell(format_args!("{wrong}put this record into the zone:\n  {name} TXT \"{value}\""));
    output::ask("Then press Enter: ")?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

#[derive(Debug, clap::Args)]
pub(super) struct RenewArgs {
    /// File of the authority's certificate.
    authority: PathBuf,
    /// Identities; without any, all that have a certificate of this authority.
    identities: Vec<Name>,
    /// Renew certificates that are not due yet, too.
    #[arg(long, conflicts_with = "keep")]
    now: bool,
    /// Keep running, and renew each certificate when it is due.
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Renewed { certificate: String, not_after: String },
    NotDue { certificate: String, days_left: i64 },
    Failed { certificate: String, days_left: i64, why: String, again_in_s: u64 },
}

/// What is known of one key's renewals.
struct Renewal {
    key: Name,
    seed: u64,
    failures: u32,
    /// Not before this moment.
    after: Instant,
}

pub(super) fn renew(args: &RenewArgs, store: &KeyStore, cx: &Context) -> anyhow::Result<()> {
    let authority = read(&args.authority)?;
    let stop = stop::on_signal()?;
    let mut client = session::open_forever(cx)?;
    let mut known: Vec<Renewal> = Vec::new();
    loop {
        for certificate in issued_by(store, &authority, &args.identities)? {
            let key = certificate.key_name().to_name();
            let at = known.iter().position(|renewal| renewal.key == key).unwrap_or_else(|| {
                let after = Instant::now();
                known.push(Renewal { key, seed: random_u64(), failures: 0, after });
                known.len() - 1
            });
            let Some(renewal) = known.get_mut(at) else { continue };
            let line = one(&mut client, store, &authority, &certificate, renewal, args.now);
            match line {
                Some(line @ Line::NotDue { .. }) if args.keep => drop(line),
                Some(line) => cx.event(&line, text)?,
                None => {}
            }
        }
        if !args.keep {
            let failed = known.iter().any(|renewal| renewal.failures > 0);
            let failed =
                failed.then(|| Failure::new(Exit::Failed, "some certificates were not renewed"));
            return failed.map_or(Ok(()), |failure| Err(failure.into()));
        }
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            if stop.is_set() {
                return Ok(());
            }
            let turn = Instant::now() + Duration::from_millis(500);
            client.step(turn).map_err(session::failure)?;
        }
    }
}

/// The newest certificate of each key that `authority` issued.
fn issued_by(
    store: &KeyStore,
    authority: &Certificate,
    identities: &[Name],
) -> anyhow::Result<Vec<Certificate>> {
    let mut found: Vec<Certificate> = Vec::new();
    for key in store.keys().map_err(failure)? {
        let all = store.certificates_of(key.name.as_ref()).map_err(failure)?;
        let mut fits = all.into_iter().filter(|c| {
            let wanted = identities.is_empty() || identities.iter().any(|i| c.identity() == *i);
            wanted && !c.is_self_signed() && c.verify(authority.public_key()).is_ok()
        });
        found.extend(fits.next());
    }
    if found.is_empty() {
        let what = format!("the key store has no certificate of {}", authority.identity());
        return Err(Failure::new(Exit::NotFound, what).next("see `onym cert status`").into());
    }
    Ok(found)
}

/// Renews one certificate if it is due; nothing while a failed try rests.
fn one(
    client: &mut onym_client::blocking::Client,
    store: &KeyStore,
    authority: &Certificate,
    old: &Certificate,
    renewal: &mut Renewal,
    now: bool,
) -> Option<Line> {
    let now_s = i64::try_from(unix_now_ms() / 1000).unwrap_or(i64::MAX);
    let days_left = (old.validity().not_after.0 - now_s).div_euclid(86_400);
    let certificate = old.name().to_string();
    if !now && now_s < renew::due(old.validity(), renewal.seed) {
        return Some(Line::NotDue { certificate, days_left });
    }
    if Instant::now() < renewal.after {
        return None;
    }
    match renewed(client, store, authority, old) {
        Ok(new) => {
            renewal.failures = 0;
            let not_after = super::date(new.validity().not_after.0);
            Some(Line::Renewed { certificate: new.name().to_string(), not_after })
        }
        Err(error) => {
            renewal.failures += 1;
            let wait = renew::retry_after(old.validity(), renewal.failures, random_u64());
            renewal.after = Instant::now() + Duration::from_secs(wait);
            let why = format!("{error:#}");
            Some(Line::Failed { certificate, days_left, why, again_in_s: wait })
        }
    }
}

/// A new certificate of the same key, by possession of the old one; it is stored beside it.
fn renewed(
    client: &mut onym_client::blocking::Client,
    store: &KeyStore,
    authority: &Certificate,
    old: &Certificate,
) -> anyhow::Result<Certificate> {
    let key = store.key(old.key_name()).map_err(failure)?;
    let profile = enrol::profile(client, authority)?;
    let days = (old.validity().not_after.0 - old.validity().not_before.0) / 86_400;
    let days = u32::try_from(days).ok().filter(|days| *days > 0);
    let validity = enrol::validity(&profile, days);
    let proof = Proof::Possession { certificate: old, key: &key };
    let wanted = Wanted { key_name: old.key_name(), key: key.clone(), validity };
    let new = enrol::enrol(client, authority, wanted, proof)?;
    store.add_certificate(&new).map_err(failure)?;
    Ok(new)
}

fn text(line: &Line) -> String {
    match line {
        Line::Renewed { certificate, not_after } => {
            format!("renewed: {certificate}, valid to {not_after}")
        }
        Line::NotDue { certificate, days_left } => {
            format!("not due: {certificate} has {days_left} days left")
        }
        Line::Failed { certificate, days_left, why, again_in_s } => format!(
            "NOT RENEWED: {certificate} has {days_left} days left: {why}; again in {again_in_s} s"
        ),
    }
}
