//! `onym key`: the keys of this user.

mod foreign;
mod guarded;

use crate::exit::{Exit, Failure};
use crate::key_files::failure;
use crate::output::Context;
use crate::passphrase;
use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::{KeyInfo, KeyStore, TokenPlace};
use onym_crypto::{Certificate, Entropy as _, KeyType, PrivateKey, SystemEntropy};
use onym_wire::{Name, NameRef};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

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
    #[command(after_help = "Examples:
  onym key new /alice
  onym key new /alice --protect                         encrypted under a passphrase
  onym key new /alice --token desk --module /usr/lib/x86_64-linux-gnu/pkcs11/libtpm2_pkcs11.so

Who signs with a protected key is asked for the passphrase, or PIN; where there is no terminal, the first
line of the file that ONYM_KEY_PASSPHRASE_FILE, or ONYM_TOKEN_PIN_FILE, names is taken.")]
    New {
        /// Identity, such as /alice.
        identity: Name,
        /// Kind of key.
        #[arg(long = "type", value_enum, default_value_t = Kind::Ecdsa)]
        kind: Kind,
        /// Encrypt it under a passphrase.
        #[arg(long, conflicts_with = "token")]
        protect: bool,
        /// Make it in the token of this label (PKCS#11, TPM 2.0), which it never leaves; P-256.
        #[arg(long, value_name = "LABEL", requires = "module")]
        token: Option<String>,
        /// The shared library of the token, such as /usr/lib/softhsm/libsofthsm2.so.
        #[arg(long, value_name = "FILE", requires = "token")]
        module: Option<PathBuf>,
        #[command(flatten)]
        passphrase: passphrase::Args,
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
    /// Encrypt a key of the key store under a passphrase, or under another one.
    #[command(after_help = "Examples:\n  onym key protect /alice\n  onym key protect /alice --off")]
    Protect {
        /// Identity or key.
        name: Name,
        /// Take the passphrase off: the file's mode alone protects the key then.
        #[arg(long)]
        off: bool,
        #[command(flatten)]
        passphrase: passphrase::Args,
    },
    /// Keep a protected key in the kernel's keyring for a while: this user's programs sign with it
    /// without being asked.
    #[command(after_help = "Example:\n  onym key unlock /alice --hours 8")]
    Unlock {
        /// Identity or key.
        name: Name,
        /// For so long; a restart of the machine ends it, too.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=720))]
        hours: u32,
    },
    /// Take a key out of the kernel's keyring.
    #[command(after_help = "Example:\n  onym key lock /alice")]
    Lock {
        /// Identity or key.
        name: Name,
    },
    /// Write a key for another machine or implementation; encrypted (SafeBag) unless told otherwise.
    #[command(after_help = "Examples:
  onym key export /alice -o alice.safebag               for ndnsec, python-ndn and NDNts
  onym key export /alice --as ndnd -o keys/alice.key    NOT encrypted
  onym key export /alice --as tpm -o FILE               NOT encrypted; the file's name is told")]
    Export {
        /// Identity, key or certificate; without it the default identity.
        name: Option<Name>,
        /// Form.
        #[arg(long = "as", value_enum, default_value = "safebag")]
        form: foreign::As,
        /// File to write; without it standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        passphrase: passphrase::Args,
    },
    /// Read keys and certificates of a file or folder, which stays as it is.
    #[command(after_help = "Examples:
  onym key import alice.safebag        SafeBag of ndnsec, python-ndn, NDNts or onym
  onym key import alice.key            key file of ndnd
  onym key import ~/.ndn               pib.db and ndnsec-key-file of ndn-cxx and python-ndn
  onym key import ndnd-keys/           folder of ndnd")]
    Import {
        /// File or folder to read; `-` for standard input.
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
        Command::New { identity, kind, protect, token, module, passphrase, id } => {
            let name = key_name(&identity, id);
            let at =
                token.zip(module).map(|(token, module)| guarded::in_token(&name, token, module));
            let secret = match protect {
                true => Some(Zeroizing::new(passphrase.read_new("Passphrase for the key: ")?)),
                false => None,
            };
            new(cx, &store, &name, kind.into(), secret, at)
        }
        Command::Protect { name, off, passphrase } => {
            let secret = match off {
                true => None,
                false => Some(Zeroizing::new(passphrase.read_new("New passphrase: ")?)),
            };
            guarded::protect(cx, &store, &name, secret)
        }
        Command::Unlock { name, hours } => guarded::unlock(cx, &store, &name, hours),
        Command::Lock { name } => guarded::lock(cx, &store, &name),
        Command::List => list(cx, &store),
        Command::Delete { name } => delete(cx, &store, &name),
        Command::Default { name } => default(cx, &store, name.as_ref()),
        Command::Export { name, form, output, passphrase } => {
            foreign::export(cx, &store, name.as_ref(), form, output.as_deref(), &passphrase)
        }
        Command::Import { file, passphrase } => foreign::import(cx, &store, &file, &passphrase),
    }
}

#[derive(Serialize)]
struct KeyRow {
    name: String,
    r#type: &'static str,
    /// How the private half is kept.
    protection: &'static str,
    default: bool,
    default_of_identity: bool,
    certificates: Vec<String>,
}

impl From<&KeyInfo> for KeyRow {
    fn from(info: &KeyInfo) -> Self {
        Self {
            name: info.name.to_string(),
            r#type: info.key_type.word(),
            protection: info.protection.word(),
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

/// The name of a new key.
fn key_name(identity: &Name, id: Option<String>) -> Name {
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
    name
}

fn new(
    cx: &Context,
    store: &KeyStore,
    name: &Name,
    kind: KeyType,
    secret: Option<Zeroizing<String>>,
    at: Option<TokenPlace>,
) -> anyhow::Result<()> {
    let key = match &at {
        None => PrivateKey::generate(kind).map_err(failure)?,
        Some(at) => guarded::made_in_token(name, kind, at)?,
    };
    let certificate =
        Certificate::self_signed(name.as_ref(), &key, unix_now_ms()).map_err(failure)?;
    match (&at, secret) {
        (Some(at), _) => store.add_token_key(name.as_ref(), at, key.spki()),
        (None, None) => store.add_key(name.as_ref(), &key),
        (None, Some(secret)) => {
            store.add_protected_key(name.as_ref(), &key, &secret, &mut SystemEntropy)
        }
    }
    .map_err(failure)?;
    store.add_certificate(&certificate).map_err(failure)?;
    cx.print(&row(store, name.as_ref())?, |row| {
        let note = if row.default { " (default)" } else { "" };
        format!("{}{note}\n  certificate {}", row.name, row.certificates.join("\n  certificate "))
    })
}

/// Tells who else reads or changes what only its owner should.
fn tell_loose(store: &KeyStore) -> anyhow::Result<()> {
    for found in store.loose().map_err(failure)? {
        let (path, mode, wanted) = (found.path.display(), found.mode, found.wanted);
        crate::output::tell(format_args!(
            "onym: others reach {path} (mode {mode:o}): chmod {wanted:o}"
        ));
    }
    Ok(())
}

fn list(cx: &Context, store: &KeyStore) -> anyhow::Result<()> {
    tell_loose(store)?;
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
            let how = match row.protection {
                "mode" => String::new(),
                how => format!("  ({how})"),
            };
            let _ = writeln!(text, "{mark} {:<8}{}{how}", row.r#type, row.name);
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
