//! `onym answer ID`: serve requests of the push half with a command or a text.

use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use crate::push_words::{self, failure};
use crate::stop;
use onym_client::push::call::{Request, Server};
use onym_wire::push::{Path, Strategy};
use serde_json::json;
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often the signal to stop is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long the last replies may wait for the way to their clients.
const LEAVE: Duration = Duration::from_secs(5);
/// Octets of what a command wrote on its standard error that a client gets as the reason.
const REASON_MAX: u64 = 1024;

/// Serve requests of the push half.
///
/// For each request the command runs once, one after the other: it gets the request on standard
/// input, and what it writes is the reply. A command that fails refuses the request with what it
/// wrote on standard error. It has no limit of time: put `timeout` in front of it. Whoever reaches
/// the node may ask.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym answer /services/sort -- sort -u
  onym answer /services/time -- timeout 5 date
  onym answer /services/motto --text 'per aspera ad astra'
  onym answer /services/sort --count 1 -- sort -u    one request, then end")]
pub(crate) struct Args {
    /// Identifier of the service: words or labels, such as /services/sort.
    #[arg(value_name = "ID")]
    path: Path,
    /// Reply with this text.
    #[arg(long, required_unless_present = "command", conflicts_with = "command")]
    text: Option<String>,
    /// How requests and replies are disseminated.
    #[arg(
        long,
        default_value = "domain-local",
        value_parser = push_words::strategies_of_scopes()
    )]
    strategy: Strategy,
    /// Exit after this many requests.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
    /// Give up after this many seconds without a request.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Program that makes the reply, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut app = push_words::open(cx, "onym answer")?;
    app.stop_when(stop.flag());
    push_words::scopes_above(&mut app, &args.path, args.strategy)?;
    let most = app.info().length_max;
    let mut server = Server::new(app, &args.path, args.strategy).map_err(failure)?;
    let patience = args.timeout.map(Duration::from_secs);
    let (mut last, mut count) = (Instant::now(), 0);
    while !stop.is_set() && args.count.is_none_or(|most| count < most) {
        let Some(request) = server.request(Some(LOOK)).map_err(failure)? else {
            if patience.is_some_and(|patience| last.elapsed() >= patience) {
                let what = format!("nobody asked {}", args.path);
                return Err(Failure::new(Exit::NotFound, what)
                    .next("ask with `onym call`, or wait longer with --timeout")
                    .into());
            }
            continue;
        };
        (last, count) = (Instant::now(), count + 1);
        let reply = match &args.text {
            Some(text) => Ok(text.clone().into_bytes()),
            None => made_by(&args.command, &request, most),
        };
        told(cx, &args.path, &request, &reply)?;
        match reply {
            Ok(reply) => server.reply(request, &reply),
            Err(why) => server.refuse(request, &why),
        }
        .map_err(failure)?;
    }
    server.leave(LEAVE).map_err(failure)
}

/// Says what became of a request.
fn told(
    cx: &Context,
    path: &Path,
    request: &Request,
    reply: &Result<Vec<u8>, String>,
) -> anyhow::Result<()> {
    let client = request.client();
    let (octets, refused) = (reply.as_ref().ok().map(Vec::len), reply.as_ref().err());
    let told = json!({
        "id": path.id.to_string(), "path": push_words::with_words(path, &path.id),
        "client": client.to_string(), "asked": request.payload.len(), "octets": octets,
        "refused": refused,
    });
    cx.event(&told, |_| {
        let asked = human::count(request.payload.len() as u64, "octet");
        match reply {
            Ok(reply) => {
                let octets = human::count(reply.len() as u64, "octet");
                format!("{client}: {asked} asked, {octets} replied")
            }
            Err(why) => format!("{client}: {asked} asked, refused: {why}"),
        }
    })
}

/// What the command makes of a request, or why it does not.
fn made_by(command: &[OsString], request: &Request, most: u64) -> Result<Vec<u8>, String> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let pipe = Stdio::piped;
    let child =
        Command::new(program).args(arguments).stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn();
    // Which program it is concerns nobody else.
    let mut child = child.map_err(|_| "the command of the service cannot be started".to_owned())?;
    let made = talk(&mut child, &request.payload, most);
    if made.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let (reply, reason) = made?;
    if status.success() {
        return Ok(reply);
    }
    let reason = String::from_utf8_lossy(&reason).trim().to_owned();
    Err(if reason.is_empty() { format!("the command ended with {status}") } else { reason })
}

/// Hands over the request; what came on standard output and error.
fn talk(child: &mut Child, payload: &[u8], most: u64) -> Result<(Vec<u8>, Vec<u8>), String> {
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) = pipes else {
        return Err("the command has no pipes".into());
    };
    thread::scope(|scope| {
        // It need not read all of it, nor any.
        scope.spawn(move || {
            let _ = stdin.write_all(payload);
        });
        let reason = scope.spawn(move || {
            let mut reason = Vec::new();
            let _ = (&mut stderr).take(REASON_MAX).read_to_end(&mut reason);
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            reason
        });
        let mut reply = Vec::new();
        let read = (&mut stdout).take(most.saturating_add(1)).read_to_end(&mut reply);
        if reply.len() as u64 > most {
            // The threads end with it.
            let _ = child.kill();
            return Err(format!("the reply is longer than {most} octets"));
        }
        read.map_err(|error| error.to_string())?;
        Ok((reply, reason.join().unwrap_or_default()))
    })
}
