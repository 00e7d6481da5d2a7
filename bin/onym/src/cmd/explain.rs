//! `onym explain NAME`: what the node would do with an Interest, and which table decides.

use crate::cmd::{topology, trace};
use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::push_words;
use crate::session;
use crate::stop::{self, Stop};
use onym_client::blocking::Client;
use onym_client::{Error, mgmt};
use onym_wire::name::Name;
use onym_wire::push::Path;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Explain what the node would do with an Interest or a publication.
///
/// Nothing is sent for the name, and nothing changes. The answer is that for an Interest from an
/// application on the node's own machine. With --across trace requests are sent (see `onym trace`),
/// and the answer is who would end the Interest, wherever that is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym explain /example/file
  onym explain /example/file/v=1/seg=0 --json
  onym explain --across /example/file              which node ends it, why, and what to do
  onym explain --push /1/2                         who subscribed, which filter, which links
  onym --node udp4://192.0.2.1:6363 explain /a     refused: only applications of its machine may ask")]
pub(crate) struct Args {
    /// Name of the Interest; with --push the identifier of an item or scope, such as /1/2.
    name: String,
    /// Explain a publication of the push half.
    #[arg(long)]
    push: bool,
    /// Follow the name from node to node.
    #[arg(long, conflicts_with = "push")]
    across: bool,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if args.push {
        return push(&args.name, cx);
    }
    let wrong = |e| Failure::new(Exit::Usage, format!("{} is not a name", args.name)).why(e);
    let asked: Name = args.name.parse().map_err(wrong)?;
    if args.across {
        return across(&asked, cx);
    }
    cx.print(&asked_of(&mut session::open(cx)?, &asked)?, text)
}

/// What the node would do with an Interest for `asked`.
pub(crate) fn asked_of(client: &mut Client, asked: &Name) -> anyhow::Result<Value> {
    let mut wire = Vec::new();
    asked.as_ref().write_tlv(&mut wire);
    let mut name = Name::new();
    name.append_generic("localhost").append_generic("onym");
    name.append_generic("explain").append_generic(&wire);
    let content = mgmt::fetch_dataset(client, name).map_err(|error| match error {
        Error::Unanswered { .. } | Error::NoAnswer { .. } | Error::Fetch(_) => {
            Failure::new(Exit::NotFound, "the node does not answer `explain`")
                .why(error)
                .next("ask an onym node over its Unix socket; see also `onym route list`")
                .into()
        }
        other => session::failure(other),
    })?;
    Ok(serde_json::from_slice(&content)?)
}

/// Who ends an Interest for the name, in whichever node.
fn across(name: &Name, cx: &Context) -> anyhow::Result<()> {
    let (_, told) = found_across(name, cx, &stop::on_signal()?)?;
    cx.print(&told, |told| {
        let ends = told["ends"].as_array().into_iter().flatten();
        ends.map(|end| format!("{}\n", word(end, "sentence"))).collect()
    })
}

/// The hops of a name, and who ends an Interest for it.
pub(crate) fn found_across(
    name: &Name,
    cx: &Context,
    stop: &Stop,
) -> anyhow::Result<(Vec<Value>, Value)> {
    let mut hops = Vec::new();
    let found = trace::follow_name(name, cx, stop, &mut |told| {
        hops.push(serde_json::to_value(told)?);
        Ok(())
    })?;
    let text = name.to_string();
    let each = found.ends.iter().map(
        |end| json!({ "end": end, "reached": end.is_reached(), "sentence": end.sentence(&text) }),
    );
    let told = json!({
        "name": text, "nodes": found.hops, "ends": each.collect::<Vec<_>>(),
        "pinged": found.pinged,
    });
    Ok((hops, told))
}

/// What became, and would become, of a publication.
fn push(id: &str, cx: &Context) -> anyhow::Result<()> {
    let wrong = |e| Failure::new(Exit::Usage, format!("{id} is not an identifier")).why(e);
    let path: Path = id.parse().map_err(wrong)?;
    let told = push_words::dataset(cx, "explain", Some(&path.id))?;
    cx.print(&told, push_text)
}

fn push_text(told: &Value) -> String {
    let mut out = format!("{}\n", word(told, "sentence"));
    let words = told["path"].as_str().map(|path| format!(", in words {path}")).unwrap_or_default();
    let _ = writeln!(out, "  identifier    {}{words}", word(told, "id"));
    let _ = writeln!(out, "  rendezvous    {}", word(told, "rendezvous"));
    let (here, graph) = (&told["here"], &told["graph"]);
    if here.is_object() {
        let started = here["publishers"].as_array().into_iter().flatten();
        let started = started.filter(|p| p["started"] == true).count();
        let publishers = here["publishers"].as_array().map_or(0, Vec::len);
        let subscribers = here["subscribers"].as_array().map_or(0, Vec::len);
        let _ = writeln!(
            out,
            "  applications  {publishers} publish ({started} started), {subscribers} subscribed"
        );
        if let Some(behind) = here["behind"].as_str() {
            let _ = writeln!(out, "  who is behind {behind}");
        }
        if let Some(retained) = here["retained"].as_object() {
            let (count, most) = (&retained["publications"], &retained["most"]);
            let age = retained["lifetime_ms"].as_u64();
            let age = age.map(|ms| format!(", each for {ms} ms")).unwrap_or_default();
            let _ = writeln!(
                out,
                "  retained      {count} of at most {most} for late subscribers{age}"
            );
            if let Some(ms) = retained["deadline_ms"].as_u64() {
                let _ = writeln!(out, "  deadline      the next one within {ms} ms");
            }
            if let Some(priority) = retained["priority"].as_u64().filter(|priority| *priority > 0) {
                let _ = writeln!(out, "  priority      {priority} of 7");
            }
        }
        if here["matched"] == true {
            let _ = writeln!(out, "  sent by       {}", topology::route(&here["route"]));
            let _ = writeln!(out, "  hops          {}", here["hops"]);
        }
    }
    if graph.is_object() {
        for who in ["publishers", "subscribers"] {
            let _ = writeln!(out, "  {who:13} {}", push_words::texts(&graph[who]).join(" "));
        }
    }
    for one in told["matches"].as_array().into_iter().flatten() {
        for tree in one["trees"].as_array().into_iter().flatten() {
            out.push_str(&tree_text(tree));
        }
    }
    if told["matches"].is_null() {
        let managers = push_words::texts(&told["managers"]).join(" ");
        let _ = writeln!(out, "  the tree      is known to {managers}");
    }
    out
}

/// A multicast tree: its links, and what else its filter matches.
fn tree_text(tree: &Value) -> String {
    let paths = tree["path"].as_array().into_iter().flatten();
    let links: Vec<String> = paths
        .map(|l| format!("{} ({} to {})", l["number"], word(l, "from"), word(l, "to")))
        .collect();
    let mut out =
        format!("  tree from     {}: links {}\n", word(tree, "publisher"), links.join(", "));
    let _ = writeln!(out, "  filter        {}", topology::route(&tree["route"]));
    let beside = &tree["beside"];
    match (tree["false_positives"].as_f64(), tree["strays_expected"].as_f64()) {
        (Some(rate), Some(expected)) => {
            let _ = writeln!(
                out,
                "  beside it     {beside} links and nodes, each matches with probability {rate:.2e}: \
                 {expected:.2e} expected"
            );
        }
        _ => _ = writeln!(out, "  beside it     {beside} links and nodes"),
    }
    if let Some(strays) = tree["strays"].as_array() {
        let strays = if strays.is_empty() { "none".to_owned() } else { list(strays) };
        let _ = writeln!(out, "  of them match {strays}");
    }
    out
}

fn word<'a>(told: &'a Value, member: &str) -> &'a str {
    told[member].as_str().unwrap_or("-")
}

fn text(told: &Value) -> String {
    let mut out = format!("{}\n", word(told, "sentence"));
    let _ = writeln!(out, "  verdict    {}", word(told, "verdict"));
    let _ = writeln!(out, "  decided by {}", word(told, "decides"));
    let _ = writeln!(out, "  scope      {}", word(told, "scope"));
    let _ = writeln!(out, "  shard      {}", told["shard"]);
    let _ = writeln!(out, "  cached     {}", if told["cached"] == true { "yes" } else { "no" });
    let pending = match told["pending"].as_array() {
        Some(faces) => {
            format!("asked for by faces {}, asked of faces {}", list(faces), asked(told))
        }
        None => "no".to_owned(),
    };
    let _ = writeln!(out, "  pending    {pending}");
    let _ = writeln!(out, "  route      {}", word(told, "fib_prefix"));
    for hop in told["next_hops"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "             {}", hop_text(hop, &told["chosen"]));
    }
    let strategy = (word(told, "strategy"), word(told, "strategy_prefix"));
    let _ = writeln!(out, "  strategy   {} for {}", strategy.0, strategy.1);
    let discovery = word(&told["discovery"], "sentence");
    let _ = writeln!(out, "  if it may be a prefix: {discovery}");
    out
}

fn asked(told: &Value) -> String {
    told["asked"].as_array().map_or_else(String::new, |faces| list(faces))
}

fn list(faces: &[Value]) -> String {
    let each: Vec<String> = faces.iter().map(ToString::to_string).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

fn hop_text(hop: &Value, chosen: &Value) -> String {
    let mut text = format!("face {} cost {} {}", hop["face"], hop["cost"], word(hop, "uri"));
    if hop["up"] == false {
        text.push_str(", down");
    }
    if let Some(why) = hop["barred"].as_str() {
        let _ = write!(text, ", not used: {why}");
    } else if chosen.as_array().is_some_and(|list| list.contains(&hop["face"])) {
        text.push_str(", chosen");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_happens_first_and_then_what_each_table_holds() {
        let told = json!({
            "sentence": "sent on", "verdict": "forwarded", "decides": "strategy", "scope": "global",
            "shard": 1, "cached": false, "pending": null, "asked": [], "fib_prefix": "/a",
            "next_hops": [
                { "face": 257, "cost": 0, "uri": "udp4://192.0.2.1:6363", "up": true, "barred": null },
                { "face": 258, "cost": 9, "uri": "tcp4://192.0.2.2:6363", "up": false,
                  "barred": "the face is closed" },
            ],
            "strategy": "/s", "strategy_prefix": "/", "chosen": [257],
            "discovery": { "sentence": "the same" },
        });
        let text = text(&told);
        assert!(text.starts_with("sent on\n"), "{text}");
        assert!(text.contains("face 257 cost 0 udp4://192.0.2.1:6363, chosen"), "{text}");
        assert!(
            text.contains("face 258 cost 9 tcp4://192.0.2.2:6363, down, not used: the face is")
        );
        assert!(text.contains("strategy   /s for /"), "{text}");
    }
}
