//! `onym gateway`: names for HTTP clients, HTTP servers as named data, and a broker for MQTT clients.

mod http;
mod mqtt;
mod origin;

use crate::output::Context;
use crate::{stop, supervised};
use std::time::Duration;

/// Bridges: names by HTTP, an HTTP server as named data, publications by MQTT.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym gateway http --listen 127.0.0.1:8080
  onym gateway origin http://127.0.0.1:8000 /alice/web
  onym gateway mqtt

The gateway between push and pull is a part of the daemon: `gateway.map` of its configuration.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Http(http::Args),
    Mqtt(mqtt::Args),
    Origin(origin::Args),
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match args.command {
        Command::Http(args) => http::run(&args, cx),
        Command::Mqtt(args) => mqtt::run(&args, cx),
        Command::Origin(args) => origin::run(&args, cx),
    }
}

/// How often it is looked whether the program shall end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs `serving` on a thread of this program.
fn within_runtime(serving: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serving)
}

/// Serves until a signal; supervisors are told.
async fn until_stopped(serving: impl Future<Output = ()>) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    supervised::tell_ready();
    let mut alive = supervised::Alive::new();
    let end = async {
        while !stop.is_set() {
            alive.beat();
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = serving => {}
        () = end => supervised::tell_stop(),
    }
    Ok(())
}
