//! `onym console`: a node's page in a browser.

mod node;

use crate::exit::{Exit, Failure};
use crate::output::{self, Context};
use crate::secure::Own;
use crate::session;
use crate::stop::{self, Stop};
use anyhow::{Context as _, Result};
use node::Here;
use onym_console::{Console, Door};
use onym_http::entries::CODE_LIFE;
use onym_http::tls::ServerTls;
use onym_wire::Name;
use serde::Serialize;
use std::io::{BufRead as _, IsTerminal as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Look at a node in a browser, and change it.
///
/// Serves a page with the faces, routes, strategies, content store and verdicts of a node, its last
/// hour, live packets, explain and trace, the map of its network and the state of other nodes, and
/// prints an address that lets one browser in. The page may do what the user of this command may do:
/// the node decides. It ends with the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym console
  onym console --listen 127.0.0.1:0                another port, if this one is in use
  onym --node unix:///run/nfd/nfd.sock console
  onym console --lab results/                      and how far the laboratory is
  onym console --listen 192.0.2.1:7380 --tls-cert own.pem --tls-key own.key

The address is good once, within two minutes; Enter prints another one. On loopback,
only browsers of this user (and of root) are answered.")]
pub(crate) struct Args {
    /// Address of the page. Beyond loopback a certificate is required.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7380")]
    listen: SocketAddr,
    #[command(flatten)]
    own: Own,
    /// Folder of the laboratory's results (`results/` of `onym-lab`): the page shows how far its runs
    /// are, and their reports. It works without a node, too.
    #[arg(long, value_name = "FOLDER")]
    lab: Option<PathBuf>,
    /// Key that signs questions to other nodes about their state: an identity, key or certificate of
    /// the key store; without it its default. They answer keys of their `management.shown_to`.
    #[arg(long, value_name = "NAME")]
    key: Option<Name>,
}

/// How often a signal is looked for.
const LOOKS: Duration = Duration::from_millis(100);
/// Threads that wait for the node: questions, the viewer and tails, and a few that begin.
const THREADS_MAX: usize = 16;

/// An address for a browser.
#[derive(Debug, Serialize)]
struct Address {
    url: String,
    expires_s: u64,
}

pub(crate) fn run(args: Args, cx: &Context) -> Result<()> {
    if !args.listen.ip().is_loopback() && !args.own.is_there() {
        return Err(Failure::new(Exit::Usage, format!("{} is not loopback", args.listen))
            .why("what the page shows, and who may change the node, would travel unencrypted")
            .next("use --tls-cert FILE --tls-key FILE, or listen at 127.0.0.1 and forward the port by ssh -L")
            .into());
    }
    let tls = args.own.load(None)?;
    match &args.lab {
        // Whoever starts it hears at once that there is no node.
        None => drop(session::open(cx)?),
        Some(folder) if folder.is_dir() => {}
        Some(folder) => {
            return Err(Failure::new(Exit::Usage, format!("{}: no such folder", folder.display()))
                .next("name the folder of results of `onym-lab`, such as results/")
                .into());
        }
    }
    let stop = stop::on_signal()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(THREADS_MAX)
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(args, tls, cx, &stop));
    // Questions that are under way end with the process.
    runtime.shutdown_background();
    served
}

async fn serve(args: Args, tls: Option<ServerTls>, cx: &Context, stop: &Stop) -> Result<()> {
    let listener = tokio::net::TcpListener::bind(args.listen).await.map_err(|e| {
        Failure::new(Exit::Failed, format!("{}: cannot listen", args.listen))
            .why(e)
            .next("another console may run; choose another --listen, such as 127.0.0.1:0")
    })?;
    let door = Door { address: listener.local_addr()?, has_tls: tls.is_some() };
    let mut console = Console::new(Arc::new(Here::new(cx, stop, args.key)), door);
    if let Some(folder) = args.lab {
        console = console.with_lab(folder);
    }
    tell(&console, cx)?;
    offer_more(&console, cx)?;
    let ended = async {
        while !stop.is_set() {
            tokio::time::sleep(LOOKS).await;
        }
    };
    tokio::select! {
        () = onym_http::server::serve_by(listener, tls, console.router()) => {}
        () = ended => {}
    }
    Ok(())
}

fn tell(console: &Console, cx: &Context) -> Result<()> {
    let address = Address { url: console.address(), expires_s: CODE_LIFE.as_secs() };
    cx.event(&address, |address| address.url.clone())
}

/// Whether lines may be read: a program in the background that reads from its terminal is stopped.
fn may_read() -> bool {
    let stdin = std::io::stdin();
    match rustix::termios::tcgetpgrp(&stdin) {
        Ok(group) => group == rustix::process::getpgrp(),
        Err(_) => !stdin.is_terminal(),
    }
}

/// Prints another address at each line that somebody types.
fn offer_more(console: &Console, cx: &Context) -> Result<()> {
    output::tell("onym: open this address in a browser; Enter prints another one, Ctrl-C ends");
    if !may_read() {
        return Ok(());
    }
    let (console, cx) = (console.clone(), cx.clone());
    let more = move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() || tell(&console, &cx).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("onym-console".into())
        .spawn(more)
        .context("cannot start a thread")?;
    Ok(())
}
