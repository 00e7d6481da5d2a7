//! `onym chat GROUP`: a chat without a server.

use crate::exit::{Exit, Failure};
use crate::input::Input;
use crate::output::{Context, tell};
use crate::plain;
use crate::session;
use crate::stop::{self, Stop};
use anyhow::Context as _;
use onym_client::ClientOptions;
use onym_client::aio::{Believe, Client, Group};
use onym_crypto::{Signer, edge};
use onym_sync::alo::{AloConfig, AloEvent, Serves, Snapshots};
use onym_sync::svs::InnerName;
use onym_wire::Name;
use serde::Serialize;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often the request to end is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Octets of a line, at most.
const LINE_OCTETS_MAX: u64 = 8000;
/// Lines that were read and not published yet, at most; then reading waits.
const LINES_MAX: usize = 16;
/// Publications between two snapshots for members that join by them.
const THRESHOLD: u64 = 10;

/// Who signs the vectors of a group, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Named {
    /// After the group: every implementation takes it.
    Group,
    /// After the member: for ndnd with a trust schema.
    Member,
}

/// Chat in a group: publish lines, print those of others
///
/// Each line of standard input is published, by State Vector Sync. There is no server: members tell each other what there is (version 3 of the protocol) and fetch it
/// from whoever has it. Members of ndnd's library and of NDNts take part: vectors are under
/// /GROUP/32=svs/v=3, lines under /GROUP/MEMBER/t=BOOT/seq=N/v=0/seg=0. Without --secret-file nobody
/// proves who speaks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym chat /example/chat --as /alice
  onym chat /example/chat --secret-file chat.secret --last 100
  echo 'done' | onym chat /example/chat --as /builder --stay 30

The end of standard input does not end the chat: Ctrl-C does, or --stay.")]
pub(crate) struct Args {
    /// Name of the group.
    group: Name,
    /// Name of this member; without it a random guest.
    #[arg(long = "as", value_name = "NAME")]
    member: Option<Name>,
    /// Earlier lines of each member to print.
    #[arg(long, value_name = "N", default_value_t = 10)]
    last: u64,
    /// File with a secret that all members share (HMAC): lines of others are not believed.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// How signed vectors are named.
    #[arg(long, value_name = "WHAT", default_value = "group")]
    named: Named,
    /// Exit this many seconds after the end of standard input; without it at Ctrl-C.
    #[arg(long, value_name = "SECONDS")]
    stay: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { group: String, member: String },
    Message { member: String, boot: u64, seq: u64, text: String },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let member = args.member.clone().map_or_else(guest, Ok)?;
    if args.group.is_empty() || member.is_empty() {
        return Err(Failure::new(Exit::Usage, "group and member must have a name")
            .next("such as `onym chat /example/chat --as /alice`")
            .into());
    }
    let secret = args.secret_file.as_deref().map(secret).transpose()?;
    let signer = match &secret {
        None => Signer::digest(),
        Some(secret) => Signer::hmac(secret, member.clone()),
    };
    let boot = edge::unix_now_ms() / 1000;
    let fetched = Snapshots::None { last: args.last };
    let mut config = AloConfig::new(args.group.clone(), member.clone(), boot, signer, fetched);
    config.serves = Serves { latest: Some(THRESHOLD), history: Some(THRESHOLD) };
    if args.named == Named::Group {
        config.svs.inner = InnerName::Group;
    }
    let believe = secret.map_or(Believe::Anybody, Believe::Secret);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(chat(&args, cx, &stop, &member, config, believe))
}

async fn chat(
    args: &Args,
    cx: &Context,
    stop: &Stop,
    member: &Name,
    config: AloConfig,
    believe: Believe,
) -> anyhow::Result<()> {
    let options = ClientOptions { node: cx.node.clone(), ..ClientOptions::default() };
    let client = Client::open(options).map_err(session::failure)?;
    let mut group = client.join(config, believe).await.map_err(session::failure)?;
    group.subscribe(Name::new()).await.map_err(session::failure)?;
    let ready = Line::Ready { group: args.group.to_string(), member: member.to_string() };
    cx.event(&ready, text)?;
    let mut typed = typed(stop)?;
    let (mut is_open, mut end) = (true, None);
    while !stop.is_set() && end.is_none_or(|end| tokio::time::Instant::now() < end) {
        tokio::select! {
            line = typed.recv(), if is_open => match line {
                Some(line) => publish(&group, line).await?,
                None => {
                    is_open = false;
                    let stay = args.stay.map(Duration::from_secs);
                    end = stay.map(|stay| tokio::time::Instant::now() + stay);
                }
            },
            event = group.next() => match event {
                Some(event) => show(cx, event)?,
                None => {
                    return Err(Failure::new(Exit::NoNode, "the connection to the node was lost")
                        .next("look at the node's log; start it again")
                        .into());
                }
            },
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    Ok(())
}

async fn publish(group: &Group, line: String) -> anyhow::Result<()> {
    let content = line.into_bytes();
    group.publish(content.clone(), content).await.map_err(session::failure)?;
    Ok(())
}

fn show(cx: &Context, event: AloEvent) -> anyhow::Result<()> {
    match event {
        AloEvent::Publication { node, boot, seq, content } => {
            let text_of = String::from_utf8_lossy(&content).into_owned();
            let line = Line::Message { member: node.to_string(), boot, seq, text: text_of };
            cx.event(&line, text)?;
        }
        AloEvent::Unreachable { node, failures: 2, .. } => {
            tell(format_args!("onym: lines of {node} cannot be fetched; trying again"));
        }
        AloEvent::OwnAhead { seq } => {
            tell(format_args!("onym: somebody else uses our name, and is at line {seq}"));
        }
        _ => {}
    }
    Ok(())
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { group, member } => format!("ready: {member} in {group}"),
        // One line of ours, whatever is in it.
        Line::Message { member, text, .. } => {
            format!("{}: {}", plain::line(member), plain::line(text))
        }
    }
}

/// Lines of standard input, read by a thread.
fn typed(stop: &Stop) -> anyhow::Result<mpsc::Receiver<String>> {
    let (lines, typed) = mpsc::channel(LINES_MAX);
    let mut input = BufReader::new(Input::open(None, stop)?);
    thread::spawn(move || {
        loop {
            let mut line = Vec::new();
            match input.by_ref().take(LINE_OCTETS_MAX).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if !line.is_empty() && lines.blocking_send(line.to_owned()).is_err() {
                return;
            }
        }
    });
    Ok(typed)
}

fn guest() -> anyhow::Result<Name> {
    let name = format!("/guest/{:04x}", edge::random_u64() & 0xffff);
    name.parse().map_err(|error| anyhow::anyhow!("{name}: {error}"))
}

/// The secret in `path`, without the end of its line.
fn secret(path: &Path) -> anyhow::Result<Vec<u8>> {
    let octets =
        std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let secret = octets.trim_ascii_end().to_vec();
    if secret.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("{} contains no secret", path.display()))
            .next("create one with `head -c 32 /dev/urandom | base64`")
            .into());
    }
    Ok(secret)
}
