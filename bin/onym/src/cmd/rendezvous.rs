//! `onym rendezvous`: the push half of a node and its information graph.

use crate::cmd::scope;
use crate::output::{Context, write_line};
use crate::push_picture::{Picture, Style};
use crate::push_words::{self, texts, word};
use onym_wire::push::Path;
use serde_json::Value;
use std::fmt::Write as _;

/// Show the rendezvous of the push half: its state and its information graph.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym rendezvous status
  onym rendezvous graph
  onym rendezvous graph --dot | dot -Tpdf > graph.pdf
  onym rendezvous graph /1 --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// The push half of the node: roles, links, applications, counters.
    Status,
    /// The scopes and items with who publishes and who subscribed.
    Graph {
        /// Only what is below this identifier.
        id: Option<Path>,
        #[command(flatten)]
        style: Style,
    },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match args.command {
        Command::Status => {
            let told = push_words::dataset(cx, "status", None)?;
            cx.print(&told, status)
        }
        Command::Graph { id, style } => {
            let told = push_words::dataset(cx, "graph", id.as_ref().map(|path| &path.id))?;
            match Picture::graph(&told).in_style(&style)? {
                Some(picture) => write_line(&picture),
                None => cx.print(&told, scope::list),
            }
        }
    }
}

fn status(told: &Value) -> String {
    let roles = texts(&told["roles"]);
    let roles = if roles.is_empty() { "none".to_owned() } else { roles.join(", ") };
    let mut out = format!("node {}, roles: {roles}\n", word(told, "node"));
    for home in told["homes"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "  {} at {}", texts(&home["roles"]).join(", "), word(home, "node"));
    }
    out.push_str("links\n");
    for link in told["links"].as_array().into_iter().flatten() {
        let neighbour = match (link["neighbour"].as_str(), link["domain"].as_str()) {
            (Some(neighbour), _) => neighbour.to_owned(),
            (None, Some(domain)) => format!("domain {domain}"),
            (None, None) => "nobody heard".to_owned(),
        };
        let (uri, number, cost) = (word(link, "uri"), &link["number"], &link["cost"]);
        let _ = writeln!(out, "  {uri} to {neighbour}, number {number}, cost {cost}");
    }
    let apps = told["apps"].as_array().map_or(0, Vec::len);
    let _ = writeln!(out, "applications {apps}");
    for (title, member) in [
        ("frames", "verdicts"),
        ("dropped", "dropped"),
        ("publications", "publications"),
        ("retained", "retained"),
        ("cache", "cache"),
    ] {
        let _ = writeln!(out, "{title}");
        for (name, count) in told[member].as_object().into_iter().flatten() {
            let _ = writeln!(out, "  {name:24} {count}");
        }
    }
    let _ = writeln!(out, "missed by slow applications {}", told["missed"]);
    out
}
