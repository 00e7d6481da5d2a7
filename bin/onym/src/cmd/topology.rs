//! `onym topology`: the map of a domain of the push half, and the trees in it.

mod deploy;

use crate::exit::{Exit, Failure};
use crate::output::{Context, write_line};
use crate::push_picture::{Picture, Style};
use crate::push_words::{self, texts, word};
use onym_wire::push::Path;
use serde_json::Value;
use std::fmt::Write as _;

/// Show the map and the trees of the push half, and lay out networks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym topology map
  onym topology map --dot | neato -Tpdf > map.pdf
  onym topology tree /1/2                 the tree of an item, with its filter
  onym topology tree /1/2 --dot           the same in the map of the domain, in DOT
  onym topology tree /1/2 --dot --names chain/domain.json
  onym topology deploy chain.toml -o chain/")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// The nodes and links that the topology manager knows.
    Map {
        #[command(flatten)]
        style: Style,
    },
    /// Compute the configuration of every node of a domain from one description.
    Deploy(deploy::Args),
    /// The multicast trees of an item.
    Tree {
        /// Identifier of the item.
        id: Path,
        #[command(flatten)]
        style: Style,
    },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match args.command {
        Command::Map { style } => {
            let told = manager(push_words::dataset(cx, "topology", None)?)?;
            match Picture::map(&told, None).in_style(&style)? {
                Some(picture) => write_line(&picture),
                None => cx.print(&told, map),
            }
        }
        Command::Deploy(args) => deploy::run(&args, cx),
        Command::Tree { id, style } => {
            let told = manager(push_words::dataset(cx, "topology", Some(&id.id))?)?;
            let found = told["matches"].as_array().is_some_and(|m| !m.is_empty());
            if !found {
                return Err(Failure::new(
                    Exit::NotFound,
                    format!("{id} has no dissemination tree on this node"),
                )
                .why("it has no publisher or no subscriber, or another topology manager serves it")
                .next("see `onym explain --push ID`")
                .into());
            }
            let tree = &told["matches"][0]["trees"][0];
            match Picture::map(&told, Some(tree)).in_style(&style)? {
                Some(picture) => write_line(&picture),
                None => cx.print(&told["matches"], trees),
            }
        }
    }
}

/// Fails with a sentence when the node is no topology manager.
fn manager(told: Value) -> anyhow::Result<Value> {
    if told["manager"] == true {
        return Ok(told);
    }
    let managers = texts(&told["managers"]).join(", ");
    Err(Failure::new(Exit::NotFound, "the node is not a topology manager")
        .next(format!("ask one of: {managers}"))
        .into())
}

fn map(told: &Value) -> String {
    let mut out = String::new();
    for node in told["nodes"].as_array().into_iter().flatten() {
        let roles = texts(&node["roles"]).join(", ");
        let _ = writeln!(out, "{} inside {} {roles}", word(node, "node"), node["inside"]);
        for link in node["links"].as_array().into_iter().flatten() {
            let (to, number, cost) = (word(link, "to"), &link["number"], &link["cost"]);
            let _ = writeln!(out, "  to {to} number {number} cost {cost}");
        }
    }
    for domain in told["domains"].as_array().into_iter().flatten() {
        let path = texts(&domain["path"]).join(", ");
        let _ = writeln!(out, "domain {} by way of {path}", word(domain, "domain"));
    }
    let _ = writeln!(out, "{} trees made since the start", told["trees_made"]);
    out
}

fn trees(matches: &Value) -> String {
    let mut out = String::new();
    for one in matches.as_array().into_iter().flatten() {
        let _ = writeln!(out, "{}", push_words::with_paths(one));
        let _ = writeln!(out, "  subscribers {}", texts(&one["subscribers"]).join(" "));
        for tree in one["trees"].as_array().into_iter().flatten() {
            let links: Vec<String> =
                tree["links"].as_array().into_iter().flatten().map(ToString::to_string).collect();
            let (root, hops) = (word(tree, "publisher"), &tree["hops"]);
            let _ = writeln!(out, "  from {root}: links {}, {hops} hops", links.join(" "));
            let _ = writeln!(out, "    {}", route(&tree["route"]));
        }
    }
    out
}

/// A forwarding part in words.
pub(crate) fn route(route: &Value) -> String {
    match route["form"].as_str() {
        Some(form @ ("flat" | "keyed")) => format!(
            "{form} filter, table {}, {} ones of 256: {}",
            route["table"],
            route["ones"],
            word(route, "filter")
        ),
        Some(form) => format!("{form}, {} stages", route["stages"]),
        None => "nothing leaves the publisher's node".to_owned(),
    }
}
