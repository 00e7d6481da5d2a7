//! `onym key`: the keys of this user.

use crate::exit::{Exit, Failure};
use crate::key_files::{failure, read_text};
use crate::output::Context;
use crate::passphrase;
use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::foreign::{self, Item};
use onym_crypto::store::{KeyInfo, KeyStore};
use onym_crypto::{Certificate, Entropy as _, KeyType, PrivateKey, SafeBag, SystemEntropy, text};
use onym_wire::{Name, NameRef};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Generate and manage keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym key new /alice                       a P-256 key and its self-signed certificate
  onym key new /alice --type ed25519
  onym key list
  onym key default /alice
  onym key export /alice -o alice.safebag   encrypted under a passphrase; ndnsec import reads it
  onym key import alice.safebag
  onym key delete /alice

Keys are files under $ONYM_KEYSTORE, else $XDG_DATA_HOME/onym/keys, else ~/.local/share/onym/keys.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Generate a key and a self-signed certificate for it.
    #[command(after_help = "Example:\n  onym key new /alice")]
    New {
        /// Identity, such as /alice.
        identity: Name,
        /// Kind of key.
        #[arg(long = "type", value_enum, default_value_t = Kind::Ecdsa)]
        kind: Kind,
        /// Key id, the last component of the key's name; without it 8 random octets.
        #[arg(long, value_name = "TEXT")]
        id: Option<String>,
    },
    /// List keys and their certificates.
    #[command(after_help = "Example:\n  onym key list --json")]
    List,
    /// Delete keys and their certificates.
    #[command(after_help = "Example:\n  onym key delete /alice/KEY/%01%02")]
    Delete {
        /// Key, or an identity that has one key only.
        name: Name,
    },
    /// Show or set the default identity.
    #[command(after_help = "Example:\n  onym key default /alice")]
    Default {
        /// Identity or key; without it the present default is shown.
        name: Option<Name>,
    },
    /// Write a key and its certificate to an encrypted file (SafeBag).
    #[command(after_help = "Example:\n  onym key export /alice -o alice.safebag")]
    Export {
        /// Identity, key or certificate; without it the default identity.
        name: Option<Name>,
        /// File to write; without it standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        passphrase: passphrase::Args,
    },
    /// Read a key and its certificate from an encrypted file (SafeBag), or from a key file of ndnd,
    /// which is not encrypted and stays as it is.
    #[command(
        after_help = "Examples:\n  onym key import alice.safebag\n  onym key import alice.key"
    )]
    Import {
        /// File to read; `-` for standard input.
        file: PathBuf,
        #[command(flatten)]
        passphrase: passphrase::Args,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// P-256; every implementation verifies it.
    Ecdsa,
    /// Ed25519; ndn-cxx does not verify it.
    Ed25519,
    /// RSA with 2048 bits.
    Rsa,
}

impl From<Kind> for KeyType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Ecdsa => Self::Ecdsa,
            Kind::Ed25519 => Self::Ed25519,
            Kind::Rsa => Self::Rsa,
        }
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let store = KeyStore::of_user().map_err(failure)?;
    match args.command.unwrap_or(Command::List) {
        Command::New { identity, kind, id } => new(cx, &store, &identity, kind.into(), id),
        Command::List => list(cx, &store),
        Command::Delete { name } => delete(cx, &store, &name),
        Command::Default { name } => default(cx, &store, name.as_ref()),
        Command::Export { name, output, passphrase } => {
            export(cx, &store, name.as_ref(), output.as_deref(), &passphrase)
        }
        Command::Import { file, passphrase } => import(cx, &store, &file, &passphrase),
    }
}

#[derive(Serialize)]
struct KeyRow {
    name: String,
    r#type: &'static str,
    default: bool,
    default_of_identity: bool,
    certificates: Vec<String>,
}

impl From<&KeyInfo> for KeyRow {
    fn from(info: &KeyInfo) -> Self {
        Self {
            name: info.name.to_string(),
            r#type: info.key_type.word(),
            default: info.is_default,
            default_of_identity: info.is_default_of_identity,
            certificates: info.certificates.iter().map(ToString::to_string).collect(),
        }
    }
}

fn row(store: &KeyStore, key: NameRef<'_>) -> anyhow::Result<KeyRow> {
    let keys = store.keys().map_err(failure)?;
    let info = keys.iter().find(|k| k.name == key).context("the key is not in the store")?;
    Ok(info.into())
}

fn new(
    cx: &Context,
    store: &KeyStore,
    identity: &Name,
    kind: KeyType,
    id: Option<String>,
) -> anyhow::Result<()> {
    let mut name = identity.clone();
    name.append_generic("KEY");
    match id {
        Some(id) => name.append_generic(id),
        None => {
            let mut random = [0; 8];
            SystemEntropy.fill(&mut random);
            name.append_generic(random)
        }
    };
    let key = PrivateKey::generate(kind).map_err(failure)?;
    let certificate =
        Certificate::self_signed(name.as_ref(), &key, unix_now_ms()).map_err(failure)?;
    store.add_key(name.as_ref(), &key).map_err(failure)?;
    store.add_certificate(&certificate).map_err(failure)?;
    cx.print(&row(store, name.as_ref())?, |row| {
        let note = if row.default { " (default)" } else { "" };
        format!("{}{note}\n  certificate {}", row.name, row.certificates.join("\n  certificate "))
    })
}

fn list(cx: &Context, store: &KeyStore) -> anyhow::Result<()> {
    let keys = store.keys().map_err(failure)?;
    let rows: Vec<KeyRow> = keys.iter().map(Into::into).collect();
    cx.print(&rows, |rows| {
        if rows.is_empty() {
            return format!("no keys in {}; `onym key new /NAME` makes one", store.dir().display());
        }
        let mut text = String::new();
        for row in rows {
            let mark = match (row.default, row.default_of_identity) {
                (true, _) => '*',
                (false, true) => '+',
                (false, false) => ' ',
            };
            let _ = writeln!(text, "{mark} {:<8}{}", row.r#type, row.name);
            for certificate in &row.certificates {
                let _ = writeln!(text, "          {certificate}");
            }
        }
        text + "(* signs by default, + is the default key of its identity)"
    })
}

fn delete(cx: &Context, store: &KeyStore, name: &Name) -> anyhow::Result<()> {
    let key = store.resolve(Some(name.as_ref())).map_err(failure)?;
    if key != *name {
        let keys = store.keys().map_err(failure)?;
        let of_identity = keys.iter().filter(|k| name.as_ref().is_prefix_of(k.name.as_ref()));
        let same = of_identity.filter(|k| k.name.len() == name.len() + 2).count();
        if same > 1 {
            let failure = Failure::new(Exit::Usage, format!("{name} has {same} keys"));
            return Err(failure.next("name the key; `onym key list` shows them").into());
        }
    }
    store.delete_key(key.as_ref()).map_err(failure)?;
    cx.print(&serde_json::json!({ "deleted": key.to_string() }), |_| format!("deleted {key}"))
}

fn default(cx: &Context, store: &KeyStore, name: Option<&Name>) -> anyhow::Result<()> {
    let key = match name {
        Some(name) => store.set_default(name.as_ref()),
        None => store.resolve(None),
    };
    let row = row(store, key.map_err(failure)?.as_ref())?;
    cx.print(&row, |row| row.name.clone())
}

fn export(
    cx: &Context,
    store: &KeyStore,
    name: Option<&Name>,
    output: Option<&Path>,
    passphrase: &passphrase::Args,
) -> anyhow::Result<()> {
    let key_name = store.resolve(name.map(Name::as_ref)).map_err(failure)?;
    let key = store.key(key_name.as_ref()).map_err(failure)?;
    let named = name.and_then(|n| store.certificate(n.as_ref()).ok());
    let certificate = match named {
        Some(certificate) => certificate,
        None => {
            let mut all = store.certificates_of(key_name.as_ref()).map_err(failure)?;
            if all.is_empty() {
                let failure =
                    Failure::new(Exit::NotFound, format!("{key_name} has no certificate"));
                let next = format!("`onym cert self-sign {key_name}` makes one");
                return Err(failure.next(next).into());
            }
            all.swap_remove(0)
        }
    };
    let secret = passphrase.read_new("Passphrase for the exported key: ")?;
    let bag = SafeBag::seal(certificate, &key, secret.as_bytes(), &mut SystemEntropy);
    let bag_text = text::encode(bag.map_err(failure)?.wire());
    let Some(path) = output else { return crate::output::write_line(&bag_text) };
    write_private(path, &bag_text)?;
    let row = serde_json::json!({ "key": key_name.to_string(), "file": path });
    cx.print(&row, |_| format!("exported {key_name} to {}", path.display()))
}

/// Writes a file that only its owner reads; an existing one is left alone.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = opened.map_err(|e| {
        Failure::new(Exit::Failed, format!("cannot write {}", path.display()))
            .why(e)
            .next("choose another file; an existing one is not overwritten")
    })?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a key is of no use, and would be in the way of the next attempt.
        let _ = std::fs::remove_file(path);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Takes the keys and certificates of ndnd's PEM blocks.
fn import_ndnd(cx: &Context, store: &KeyStore, text: &str) -> anyhow::Result<()> {
    let items = foreign::ndnd(text.as_bytes()).map_err(failure)?;
    let mut keys = Vec::new();
    for item in &items {
        if let Item::Key(name, key) = item {
            store.add_key(name.as_ref(), key).map_err(failure)?;
            keys.push(name.clone());
        }
    }
    for item in &items {
        if let Item::Certificate(certificate) = item {
            store.add_certificate(certificate).map_err(failure)?;
        }
    }
    let rows =
        keys.iter().map(|key| row(store, key.as_ref())).collect::<anyhow::Result<Vec<_>>>()?;
    cx.print(&rows, |rows| {
        let lines: Vec<String> = rows.iter().map(|row| format!("imported {}", row.name)).collect();
        lines.join("\n")
    })
}

fn import(
    cx: &Context,
    store: &KeyStore,
    file: &Path,
    passphrase: &passphrase::Args,
) -> anyhow::Result<()> {
    let text = read_text(file)?;
    if text.contains("-----BEGIN NDN KEY-----") {
        return import_ndnd(cx, store, &text);
    }
    let bag = text::decode(&text).and_then(|wire| SafeBag::parse(&wire)).map_err(failure)?;
    let secret = passphrase.read("Passphrase of the file: ")?;
    let key = store.import(&bag, secret.as_bytes()).map_err(failure)?;
    cx.print(&row(store, key.as_ref())?, |row| format!("imported {}", row.name))
}
