//! `onym network`: creates a network and adds machines to it.

mod invitation;
mod join;

pub(crate) use join::{is_due, renew_router};

use crate::exit::{Exit, Failure};
use crate::invitations::Book;
use crate::key_files::failure;
use crate::network_folder::{self as files, authority, make, write_key, write_new};
use crate::output::Context;
use clap::Subcommand;
use invitation::Invitation;
use onym_crypto::cert::validity_of_days;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::{
    Certificate, Entropy as _, Issue, KeyType, PrivateKey, Signer, SystemEntropy, digest,
};
use onym_ndncert::Secret;
use onym_wire::{Component, Name, NameRef, cert};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Days that the certificate of the first router is valid.
const ROUTER_DAYS: u32 = 365;
/// Random octets of a token.
const TOKEN_LEN: usize = 20;

/// Begin a network, and bring machines in.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym network init /example                       anchor, authority, schema, the first router's keys
  onym cert authority --folder DIR                 answers machines that join
  onym network invite /example/b --neighbour udp4://192.0.2.1:6363 -o b.invitation
  onym network join b.invitation                   on the other machine, once")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Begin a network: its anchor and authority, a trust schema, the first router's keys and
    /// configuration.
    #[command(after_help = "Example:\n  onym network init /example --router /example/a")]
    Init {
        /// Name of the network, one to three components.
        network: Name,
        /// Name of the first router: the network and one more component; without it the host's.
        #[arg(long, value_name = "NAME")]
        router: Option<Name>,
        #[command(flatten)]
        place: Place,
    },
    /// Invite a machine: a file with a token that is good once.
    #[command(after_help = "Example:
  onym network invite /example/b --neighbour udp4://192.0.2.1:6363 -o b.invitation

Whoever has the file can become that router: send it as you would send a password.")]
    Invite {
        /// Name of the router: the network and one more component.
        router: Name,
        /// Address at which the machine reaches the network; the first one that answers is used.
        #[arg(long, value_name = "URI", required = true)]
        neighbour: Vec<String>,
        /// Hours for which the invitation is valid.
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8760))]
        hours: u32,
        /// File to write; without it standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        place: Place,
    },
    /// Join a network by an invitation: key, certificate, schema and configuration of a router.
    #[command(after_help = "Example:\n  onym network join b.invitation")]
    Join {
        /// File of the invitation; `-` for standard input.
        invitation: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Renew the certificate of this machine's router when it is due, by the one that it has.
    #[command(after_help = "Example:
  onym network renew                               for routers that run without the daemon

A running router takes the new certificate within seconds, and serves the old one beside it until that
ends. `onym daemon` with [routing] renews by itself.")]
    Renew {
        /// Renew it even if it is not due.
        #[arg(long)]
        now: bool,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// Folder of the keys; without it that of `routing.folder`.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Place {
    fn folder(&self) -> PathBuf {
        let folder = self.folder.clone().unwrap_or_else(super::daemon::routing::usual_folder);
        // The configuration names it: a daemon may start elsewhere.
        std::path::absolute(&folder).unwrap_or(folder)
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match args.command {
        Command::Init { network, router, place } => init(&network, router, &place.folder(), cx),
        Command::Invite { router, neighbour, hours, output, place } => {
            let wanted = Wanted { router, neighbour, hours };
            invite(&wanted, output.as_deref(), &place.folder(), cx)
        }
        Command::Join { invitation, place } => join::join(&invitation, &place.folder(), cx),
        Command::Renew { now, place } => {
            let when = if now { join::When::Now } else { join::When::Due };
            join::renew(when, &place.folder(), cx)
        }
    }
}

/// A key name of `identity` with a random number.
fn key_name(identity: &Name) -> Name {
    let mut number = [0; 8];
    SystemEntropy.fill(&mut number);
    cert::key_name(identity.as_ref(), Component::generic(&number))
}

/// The identity that signs for a router.
fn routing_identity(router: &Name) -> Name {
    let mut identity = router.clone();
    identity.append_keyword("DV");
    identity
}

/// Refuses names that are no router of `network`.
fn check_names(network: &Name, router: &Name) -> anyhow::Result<()> {
    let under = network.as_ref().is_prefix_of(router.as_ref());
    let plain =
        router.components().all(|c| c.is_generic() && c.value != b"KEY" && c.value != b"CA");
    if !(1..=3).contains(&network.len()) || !under || router.len() != network.len() + 1 || !plain {
        let what = format!("{router} is not a router of the network {network}");
        return Err(Failure::new(Exit::Usage, what)
            .why("a network has one to three components, a router one more, none is KEY or CA")
            .next("write such as `/example` and `/example/a`")
            .into());
    }
    Ok(())
}

/// The network that a router belongs to.
fn network_of(router: &Name) -> Name {
    router.as_ref().drop_last(1).to_name()
}

#[derive(Debug, Serialize)]
struct Begun {
    network: String,
    router: String,
    folder: String,
    anchor: String,
    config: String,
}

fn init(network: &Name, router: Option<Name>, folder: &Path, cx: &Context) -> anyhow::Result<()> {
    let router = router.unwrap_or_else(|| super::daemon::routing::of_host(network));
    check_names(network, &router)?;
    make(folder)?;
    for file in [files::ANCHOR, files::AUTHORITY_KEY, files::ROUTER_KEY, files::CONFIG] {
        absent(&folder.join(file))?;
    }
    let now_ms = unix_now_ms();
    let key = PrivateKey::generate(KeyType::Ecdsa).map_err(failure)?;
    let name = key_name(network);
    let anchor = Certificate::self_signed(name.as_ref(), &key, now_ms).map_err(failure)?;
    write_key(&folder.join(files::AUTHORITY_KEY), &key)?;
    write_new(&folder.join(files::ANCHOR), anchor.to_text().as_bytes(), 0o644)?;
    let own = PrivateKey::generate(KeyType::Ecdsa).map_err(failure)?;
    let name = key_name(&routing_identity(&router));
    let signer = Signer::key(key, anchor.name().to_name());
    let certificate = router_certificate(name.as_ref(), &own, &signer, now_ms)?;
    write_key(&folder.join(files::ROUTER_KEY), &own)?;
    write_new(&folder.join(files::ROUTER_CERT), certificate.to_text().as_bytes(), 0o644)?;
    write_new(&folder.join(files::SCHEMA), schema(network).as_bytes(), 0o644)?;
    let config = config(network, &router, folder, &[]);
    write_new(&folder.join(files::CONFIG), config.as_bytes(), 0o644)?;
    let begun = Begun {
        network: network.to_string(),
        router: router.to_string(),
        folder: folder.display().to_string(),
        anchor: anchor.name().to_string(),
        config: folder.join(files::CONFIG).display().to_string(),
    };
    cx.print(&begun, |begun| {
        let folder = &begun.folder;
        format!(
            "{} begins in {folder}\n  anchor    {}\n  router    {}\nNext:\n  onym daemon --config {}\n  \
             onym cert authority --folder {folder}\n  onym network invite {}/NAME --neighbour URI -o FILE \
             --folder {folder}\nKeep {folder}/{} safe: who has it is the authority.",
            begun.network,
            begun.anchor,
            begun.router,
            begun.config,
            begun.network,
            files::AUTHORITY_KEY
        )
    })
}

/// The certificate of a router's key, by the authority on this machine.
fn router_certificate(
    key_name: NameRef<'_>,
    key: &PrivateKey,
    authority: &Signer,
    now_ms: u64,
) -> anyhow::Result<Certificate> {
    let request = Certificate::self_signed(key_name, key, now_ms).map_err(failure)?;
    let validity = validity_of_days(now_ms, ROUTER_DAYS);
    let issue = Issue { issuer_id: Component::generic(b"NA"), validity, now_ms };
    Certificate::issue(&request, authority, &issue).map_err(failure)
}

/// Refuses to go on over a file of before.
fn absent(path: &Path) -> anyhow::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, format!("{} exists already", path.display()))
        .why("the folder belongs to a network")
        .next("choose another folder with --folder, or move this one away")
        .into())
}

/// Who may sign what: the anchor signs certificates of members and routers, a member what is under
/// its own name.
fn schema(network: &Name) -> String {
    let quoted = |c: Component<'_>| {
        let mut one = Name::new();
        one.push(c);
        let uri = one.to_string();
        format!("\"{}\"", uri.trim_start_matches('/'))
    };
    let net: Vec<String> = network.components().map(quoted).collect();
    let mut text = format!(
        "// {network}: certificates are signed by the anchor; a member signs what is under its name.\n\
         #KEY: \"KEY\"/_/_/_\n#net: {net}\n#anchor: #net/#KEY\n#member: #net/m/#KEY <= #anchor\n\
         #router: #net/m/\"32=DV\"/#KEY <= #anchor\n",
        net = net.join("/")
    );
    for depth in 1..=8 {
        let _ = writeln!(text, "#data: #net/m{} <= #member", "/_".repeat(depth));
    }
    text
}

/// What a daemon needs to route.
fn config(network: &Name, router: &Name, folder: &Path, neighbours: &[String]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!(
        "[routing]\nnetwork = {}\nrouter = {}\nfolder = {}\n# What any application registers is announced.\nannounce = \"all\"\n",
        quoted(&network.to_string()),
        quoted(&router.to_string()),
        quoted(&folder.display().to_string())
    );
    for uri in neighbours {
        let _ = write!(text, "\n[[routing.neighbour]]\nuri = {}\n", quoted(uri));
    }
    text
}

struct Wanted {
    router: Name,
    neighbour: Vec<String>,
    hours: u32,
}

#[derive(Debug, Serialize)]
struct Invited {
    router: String,
    until: String,
    file: Option<String>,
}

fn invite(
    wanted: &Wanted,
    output: Option<&Path>,
    folder: &Path,
    cx: &Context,
) -> anyhow::Result<()> {
    let (anchor, _) = authority(folder)?;
    let network = anchor.identity().to_name();
    check_names(&network, &wanted.router)?;
    let mut random = [0; TOKEN_LEN];
    SystemEntropy.fill(&mut random);
    let token = Secret::new(digest::hex(&random));
    let now_s = unix_now_ms() / 1000;
    let until_s = now_s + u64::from(wanted.hours) * 3600;
    let identity = routing_identity(&wanted.router);
    let added = Book::new(folder).add(&identity, token.reveal().as_bytes(), until_s, now_s);
    added.map_err(|e| Failure::new(Exit::Failed, "the invitation cannot be saved").why(e))?;
    let invitation = Invitation {
        router: wanted.router.clone(),
        token,
        until_s,
        anchor,
        schema: crate::key_files::read_text(&folder.join(files::SCHEMA)).unwrap_or_default(),
        neighbours: wanted.neighbour.clone(),
    };
    let text = invitation.write();
    let Some(path) = output else {
        // What was asked for, and nowhere else.
        return crate::output::write_raw(text.as_bytes());
    };
    write_new(path, text.as_bytes(), 0o600)?;
    let told = Invited {
        router: wanted.router.to_string(),
        until: crate::human::moment_ms(until_s * 1000),
        file: Some(path.display().to_string()),
    };
    cx.print(&told, |told| {
        let file = told.file.as_deref().unwrap_or_default();
        format!("{} may join by {file} until {}, once", told.router, told.until)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_trust::lvs::{Functions, Mode, Schema, compile};
    use onym_trust::{Policy as _, Subject};

    #[test]
    fn the_schema_of_a_network_lets_members_sign_what_is_theirs() {
        for network in ["/example", "/org/example%22/lab"] {
            let name: Name = network.parse().unwrap();
            let model = compile(&schema(&name), Mode::Strict).unwrap();
            let schema = Schema::new(model, Functions::default()).unwrap();
            let may = |packet: &str, key: &str| {
                let [packet, key]: [Name; 2] =
                    [packet, key].map(|uri| format!("{network}{uri}").parse().unwrap());
                schema.check(&Subject::data(packet.as_ref()), key.as_ref()).is_allowed()
            };
            assert!(may("/b/film/v=1/seg=0", "/b/KEY/k/NDNCERT/v=1"));
            assert!(!may("/c/film/v=1/seg=0", "/b/KEY/k/NDNCERT/v=1"));
            assert!(may("/b/KEY/k/NDNCERT/v=1", "/KEY/1/self/v=1"));
            assert!(may("/b/32=DV/KEY/k/NDNCERT/v=1", "/KEY/1/self/v=1"));
            assert!(!may("/b/film", "/KEY/1/self/v=1"), "the anchor signs certificates only");
            assert!(!may("/b/film", "/b/32=DV/KEY/k/NDNCERT/v=1"), "a router's key routes only");
        }
    }

    #[test]
    fn a_configuration_is_what_a_daemon_reads() {
        let [network, router]: [Name; 2] = ["/e\"x", "/e\"x/a"].map(|uri| {
            let mut name = Name::new();
            uri.split('/').skip(1).for_each(|part| {
                name.append_generic(part);
            });
            name
        });
        let text = config(&network, &router, Path::new("/var/a b\\c"), &["udp4://h:1".into()]);
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(read["routing"]["router"].as_str().unwrap().parse::<Name>().unwrap(), router);
        assert_eq!(read["routing"]["folder"].as_str(), Some("/var/a b\\c"));
        assert_eq!(read["routing"]["neighbour"][0]["uri"].as_str(), Some("udp4://h:1"));
        assert!(check_names(&network, &router).is_ok() && network_of(&router) == network);
        assert!(check_names(&network, &network).is_err());
        assert!(check_names(&Name::new(), &network).is_err());
    }
}
