//! `onym access`: who may read.

mod serve;

use crate::exit::{Exit, Failure};
use crate::key_files::{failure, read_text};
use crate::output::{self, Context};
use crate::secrecy::{self, refused};
use clap::Subcommand;
use onym_access::envelope::ReadingKey;
use onym_access::{Card, Form, Group, Member, names};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::{Kept, KeyStore};
use onym_crypto::{Certificate, Entropy as _, SystemEntropy, cert};
use onym_wire::{Component, Name, NameRef};
use serde::Serialize;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Say who may read what is published.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym access key /alice -o alice.card                    whoever is to read hands this over
  onym access grant /film/NAC/friends alice.card          the owner lets her in
  onym access serve                                       the owner gives the group's keys out
  onym put /film/one one.mkv --for /film/NAC/friends --key /film
  onym get /film/one -o one.mkv --anchor film.ndncert     decrypts for who was let in
  onym access revoke /film/NAC/friends /alice             from now on she reads nothing new

Content is encrypted with a key of its own, that with the key of the group, that with the key of each
member. Whoever leaves keeps what was read; the group has another key from then on.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key for reading, and write its card for owners of groups.
    #[command(after_help = "Example:\n  onym access key /alice -o alice.card

The card is signed by the identity's own key. An identity that has a reading key gets a new card for it.")]
    Key {
        /// Identity that reads; without it the default identity.
        identity: Option<Name>,
        /// Days that the card is valid.
        #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
        /// Make another key, even if the identity has one.
        #[arg(long)]
        new: bool,
        /// File to write; without it standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Let somebody read: from the group's present key on.
    #[command(after_help = "Examples:
  onym access grant /film/NAC/friends alice.card
  onym access grant /film/NAC/friends alice.card --by alice.ndncert
  onym access grant /film/NAC/old bob-rsa.ndncert --nac    as the C++ library and NDNts encrypt

The group is made when there is none. A card, or an issued certificate, must be signed by a certificate
that is in the key store or named by --by.")]
    Grant {
        /// Group: /PREFIX/NAC/DATASET.
        group: Name,
        /// File of a card (`onym access key`) or, for groups of RSA keys, of a certificate.
        member: PathBuf,
        /// File or name of the certificate that signed it.
        #[arg(long, value_name = "CERT")]
        by: Option<String>,
        /// Identity or key that signs the group's keys; without it PREFIX.
        #[arg(long, value_name = "NAME")]
        key: Option<Name>,
        /// Make a group of RSA keys, as the C++ library and NDNts have it.
        #[arg(long)]
        nac: bool,
    },
    /// Let somebody read nothing new: the group gets another key.
    #[command(after_help = "Examples:
  onym access revoke /film/NAC/friends /alice
  onym access revoke /film/NAC/friends /alice/KEY/%01%02")]
    Revoke {
        /// Group.
        group: Name,
        /// Key of the member, or an identity that has one key only in the group.
        member: Name,
    },
    /// List groups with their members, and own keys for reading.
    #[command(after_help = "Example:\n  onym access list --json")]
    List {
        /// Group; without it all of the key store.
        group: Option<Name>,
    },
    /// Give the keys of groups to their members, until interrupted.
    #[command(after_help = "Examples:
  onym access serve
  onym access serve /film/NAC/friends

Changes by grant and revoke count within a second.")]
    Serve {
        /// Groups; without any, all of the key store.
        groups: Vec<Name>,
    },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let store = KeyStore::of_user().map_err(failure)?;
    match args.command.unwrap_or(Command::List { group: None }) {
        Command::Key { identity, days, new, output } => {
            key(cx, &store, identity.as_ref(), days, new, output.as_deref())
        }
        Command::Grant { group, member, by, key, nac } => {
            let form = if nac { Form::Nac } else { Form::Authenticated };
            let member = member_of(&store, &member, by.as_deref())?;
            grant(cx, &store, &group, member, key, form)
        }
        Command::Revoke { group, member } => revoke(cx, &store, &group, &member),
        Command::List { group } => list(cx, &store, group.as_ref()),
        Command::Serve { groups } => serve::run(&store, groups, cx),
    }
}

#[derive(Serialize)]
struct KeyRow {
    key: String,
    card: String,
    file: Option<String>,
}

/// The reading key of `identity` in the store.
fn reading_of(
    store: &KeyStore,
    identity: NameRef<'_>,
) -> anyhow::Result<Option<(Name, ReadingKey)>> {
    for file in store.all_kept(Kept::Reading).map_err(failure)? {
        let (name, key) = secrecy::read_reading(&file)?;
        if cert::identity_of_key(name.as_ref()).is_ok_and(|of| of == identity) {
            return Ok(Some((name, key)));
        }
    }
    Ok(None)
}

fn key(
    cx: &Context,
    store: &KeyStore,
    identity: Option<&Name>,
    days: u32,
    new: bool,
    output: Option<&Path>,
) -> anyhow::Result<()> {
    let signing = store.resolve(identity.map(Name::as_ref)).map_err(failure)?;
    let identity = cert::identity_of_key(signing.as_ref()).map_err(failure)?;
    let signer = store.signer(Some(signing.as_ref())).map_err(failure)?;
    let kept = if new { None } else { reading_of(store, identity)? };
    let (name, reading) = match kept {
        Some(kept) => kept,
        None => {
            let mut number = [0; 8];
            SystemEntropy.fill(&mut number);
            let name = onym_wire::cert::key_name(identity, Component::generic(&number));
            let made = ReadingKey::generate().map_err(refused)?;
            store
                .change_kept(Kept::Reading, name.as_ref(), |_| {
                    Ok::<_, onym_crypto::Error>(secrecy::write_reading(name.as_ref(), &made))
                })
                .map_err(failure)?;
            (name, made)
        }
    };
    let (now_ms, validity) = secrecy::days(days);
    let card = Card::issue(name.as_ref(), reading.public(), &signer, validity, now_ms);
    let card = card.map_err(refused)?;
    let Some(path) = output else {
        if cx.json {
            let card = card.name().to_string();
            return cx
                .print(&KeyRow { key: name.to_string(), card, file: None }, |_| String::new());
        }
        return output::write_line(&card.to_text());
    };
    crate::target::write(path, card.to_text().as_bytes())?;
    let file = Some(path.display().to_string());
    let row = KeyRow { key: name.to_string(), card: card.name().to_string(), file };
    cx.print(&row, |row| {
        format!("wrote the card of {} to {}", row.key, row.file.as_deref().unwrap_or_default())
    })
}

/// Whom a file is about, after its signature was checked.
fn member_of(store: &KeyStore, file: &Path, by: Option<&str>) -> anyhow::Result<Member> {
    let text = read_text(file)?;
    let now_ms = unix_now_ms();
    let issuer = |locator: Option<NameRef<'_>>| match by {
        Some(by) => Ok(super::get::certificate("--by", by)?),
        None => issuer_in(store, locator),
    };
    if let Ok(card) = Card::from_text(&text) {
        let issuer = issuer(card.issuer())?;
        let of = issuer.identity();
        if of != card.identity() {
            let what = format!("{of} does not sign cards of {}", card.identity());
            return Err(Failure::new(Exit::Refused, what).into());
        }
        checked(&issuer, now_ms)?;
        card.verify(issuer.public_key(), now_ms).map_err(refused)?;
        return Ok(Member::from(&card));
    }
    let certificate = Certificate::from_text(&text).map_err(|e| {
        Failure::new(
            Exit::Failed,
            format!("{} is neither a card nor a certificate", file.display()),
        )
        .why(e)
        .next("expected is what `onym access key` writes, or `onym cert export` of an RSA key")
    })?;
    checked(&certificate, now_ms)?;
    if certificate.is_self_signed() {
        // It says what the file says: who handed it over is trusted.
        certificate.verify(certificate.public_key()).map_err(failure)?;
    } else {
        let issuer = issuer(certificate.issuer())?;
        checked(&issuer, now_ms)?;
        certificate.verify(issuer.public_key()).map_err(failure)?;
    }
    Member::try_from(&certificate).map_err(refused)
}

fn checked(certificate: &Certificate, now_ms: u64) -> anyhow::Result<()> {
    certificate.check_valid_at(now_ms).map_err(failure)
}

/// The certificate of the store that `locator` names.
fn issuer_in(store: &KeyStore, locator: Option<NameRef<'_>>) -> anyhow::Result<Certificate> {
    let unknown = || {
        let who = locator.map_or("nobody".to_owned(), |name| name.to_string());
        Failure::new(Exit::Refused, format!("it is signed by {who}, whose certificate is not here"))
            .next("name it: --by CERT, or `onym cert install` it")
    };
    let key = locator.and_then(cert::key_of_locator).ok_or_else(unknown)?;
    let all = store.certificates_of(key).map_err(failure)?;
    let valid = all.into_iter().find(|c| c.check_valid_at(unix_now_ms()).is_ok());
    Ok(valid.ok_or_else(unknown)?)
}

#[derive(Serialize)]
struct GroupRow {
    group: String,
    form: &'static str,
    owner: String,
    /// The number of its present key.
    key: u64,
    members: Vec<String>,
}

impl From<&Group> for GroupRow {
    fn from(group: &Group) -> Self {
        Self {
            group: group.name().to_string(),
            form: group.form().word(),
            owner: group.owner().to_string(),
            key: group.number(),
            members: group.members().map(|name| name.to_string()).collect(),
        }
    }
}

fn show(row: &GroupRow) -> String {
    let mut text =
        format!("{} ({}, key {}, signed by {})", row.group, row.form, row.key, row.owner);
    for member in &row.members {
        text += &format!("\n  {member}");
    }
    text
}

/// Changes a group of the store.
fn change(
    store: &KeyStore,
    name: &Name,
    change: impl FnOnce(Option<Group>) -> anyhow::Result<Group>,
) -> anyhow::Result<GroupRow> {
    /// Errors of the store and of the change in one.
    struct Any(anyhow::Error);
    impl From<onym_crypto::Error> for Any {
        fn from(error: onym_crypto::Error) -> Self {
            Self(failure(error))
        }
    }
    let mut row = None;
    let changed = store.change_kept(Kept::Group, name.as_ref(), |file| {
        let group = file.map(|file| Group::read(&file)).transpose().map_err(|e| Any(refused(e)))?;
        let group = change(group).map_err(Any)?;
        row = Some(GroupRow::from(&group));
        group.write().map_err(|e| Any(refused(e)))
    });
    changed.map_err(|Any(error)| error)?;
    row.ok_or_else(|| anyhow::anyhow!("the group was not written"))
}

fn grant(
    cx: &Context,
    store: &KeyStore,
    name: &Name,
    member: Member,
    key: Option<Name>,
    form: Form,
) -> anyhow::Result<()> {
    let who = member.key_name().to_string();
    let row = change(store, name, |group| {
        let mut group = match group {
            Some(group) => group,
            None => made(store, name, key, form)?,
        };
        group.grant(member).map_err(refused)?;
        Ok(group)
    })?;
    cx.print(&row, |row| format!("{who} may read what is for {}", row.group))
}

/// A new group, if its keys can be signed.
fn made(store: &KeyStore, name: &Name, key: Option<Name>, form: Form) -> anyhow::Result<Group> {
    let prefix = names::prefix_of(name.as_ref());
    let prefix = prefix.ok_or_else(|| refused(onym_access::Error::Name(name.clone())))?;
    let owner = key.unwrap_or_else(|| prefix.to_name());
    store.signer(Some(owner.as_ref())).map_err(|error| {
        Failure::new(Exit::Failed, format!("{owner} cannot sign the keys of {name}"))
            .why(error)
            .next(format!("`onym key new {prefix}` makes a key, or name another with --key"))
    })?;
    Group::new(form, name.as_ref(), owner, unix_now_ms()).map_err(refused)
}

fn revoke(cx: &Context, store: &KeyStore, name: &Name, member: &Name) -> anyhow::Result<()> {
    let mut left = member.clone();
    let row = change(store, name, |group| {
        let mut group = group.ok_or_else(|| absent(name))?;
        left = one_member(&group, member)?;
        group.revoke(left.as_ref(), unix_now_ms()).map_err(refused)?;
        Ok(group)
    })?;
    cx.print(&row, |row| {
        format!("{left} reads nothing new of {}; the group's key is {} now", row.group, row.key)
    })
}

fn absent(name: &Name) -> Failure {
    Failure::new(Exit::NotFound, format!("the key store has no group {name}"))
        .next("see `onym access list`; `onym access grant` makes one")
}

/// The key of the member that `what` means.
fn one_member(group: &Group, what: &Name) -> anyhow::Result<Name> {
    let of = |key: &NameRef<'_>| {
        *key == *what || cert::identity_of_key(*key).is_ok_and(|identity| identity == *what)
    };
    let fits: Vec<Name> = group.members().filter(of).map(NameRef::to_name).collect();
    match fits.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let what = format!("{what} is no member of {}", group.name());
            Err(Failure::new(Exit::NotFound, what).next("see `onym access list`").into())
        }
        more => {
            let what = format!("{what} has {} keys in the group", more.len());
            Err(Failure::new(Exit::Usage, what).next("name one; `onym access list`").into())
        }
    }
}

#[derive(Serialize)]
struct Listing {
    groups: Vec<GroupRow>,
    reading_keys: Vec<String>,
}

fn list(cx: &Context, store: &KeyStore, only: Option<&Name>) -> anyhow::Result<()> {
    let mut groups = Vec::new();
    for file in store.all_kept(Kept::Group).map_err(failure)? {
        let group = Group::read(&file).map_err(refused)?;
        if only.is_none_or(|only| group.name() == *only) {
            groups.push(GroupRow::from(&group));
        }
    }
    if let (Some(only), true) = (only, groups.is_empty()) {
        return Err(absent(only).into());
    }
    groups.sort_by(|a, b| a.group.cmp(&b.group));
    let readings: Vec<Zeroizing<String>> = store.all_kept(Kept::Reading).map_err(failure)?;
    let names = readings.iter().map(|file| Ok(secrecy::read_reading(file)?.0.to_string()));
    let listing = Listing { groups, reading_keys: names.collect::<anyhow::Result<_>>()? };
    cx.print(&listing, |listing| {
        let mut lines: Vec<String> = listing.groups.iter().map(show).collect();
        if only.is_none() {
            lines.extend(listing.reading_keys.iter().map(|key| format!("reads as {key}")));
        }
        if lines.is_empty() {
            return "no groups; `onym access key` makes a key for reading, `grant` a group".into();
        }
        lines.join("\n")
    })
}
