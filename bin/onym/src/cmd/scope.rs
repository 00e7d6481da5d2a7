//! `onym scope`: scopes of the push half.

use crate::output::Context;
use crate::push_words::{self, failure, texts, word};
use crate::stop;
use onym_wire::push::{Kind, Path, Strategy};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// How often the signal to stop is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Publish scopes of the push half, and list what a rendezvous knows.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym scope publish /1/2           until stopped, with the scopes above it
  onym scope list
  onym scope list /1 --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Publish a scope and those above it, until stopped.
    Publish {
        /// Identifier: words or labels of 1 to 16 hexadecimal digits, such as /sensors/roof or /1/2.
        id: Path,
        /// How the scope, and everything beneath it, is disseminated.
        #[arg(long, default_value = "domain-local", value_parser = push_words::strategies_of_scopes())]
        strategy: Strategy,
    },
    /// List the scopes and items that the rendezvous of the node knows.
    List {
        /// Only what is below this identifier.
        id: Option<Path>,
    },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match args.command {
        Command::Publish { id, strategy } => publish(&id, strategy, cx),
        Command::List { id } => {
            let told = push_words::dataset(cx, "graph", id.as_ref().map(|path| &path.id))?;
            cx.print(&told, list)
        }
    }
}

fn publish(id: &Path, strategy: Strategy, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut app = push_words::open(cx, "onym scope")?;
    app.stop_when(stop.flag());
    push_words::scopes_above(&mut app, id, strategy)?;
    push_words::ask(&mut app, Kind::PUBLISH_SCOPE, id, strategy)?;
    let told = json!({ "published": id.id.to_string(), "path": push_words::with_words(id, &id.id), "strategy": strategy.to_string() });
    cx.event(&told, |_| format!("{id} is published until this command ends"))?;
    while !stop.is_set() {
        app.event(Some(LOOK)).map_err(failure)?;
    }
    app.leave().map_err(failure)
}

/// One line for each scope and item.
pub(crate) fn list(told: &Value) -> String {
    let mut out = String::new();
    for vertex in told["vertices"].as_array().into_iter().flatten() {
        let kind = if vertex["scope"] == true { "scope" } else { "item " };
        let ids = push_words::with_paths(vertex);
        let _ = write!(out, "{kind} {ids} {}", word(vertex, "strategy"));
        for who in ["publishers", "subscribers"] {
            let nodes = texts(&vertex[who]);
            if !nodes.is_empty() {
                let _ = write!(out, ", {who} {}", nodes.join(" "));
            }
        }
        out.push('\n');
    }
    if told["rendezvous"] == false {
        // Its own graph has what stays within the node only.
        let nodes = texts(&told["rendezvous_nodes"]);
        let whom = if nodes.is_empty() {
            "no rendezvous node is known to it: see `onym rendezvous status`".to_owned()
        } else {
            format!(
                "what a domain publishes is known to {}: ask there with --node",
                nodes.join(" and ")
            )
        };
        let _ = writeln!(out, "this node is no rendezvous; {whom}");
    } else if out.is_empty() {
        out.push_str("nothing is published or subscribed to at this rendezvous\n");
    }
    out
}
