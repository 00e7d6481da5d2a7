//! `onym status`: the state of the node in one report.

use crate::cmd::{cs, face, fib, kernel, route, strategy};
use crate::human;
use crate::node_shown::{self, Shown};
use crate::output::Context;
use crate::session;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::mgmt::ForwarderStatus;
use onym_wire::name::Name;
use serde::Serialize;
use serde_json::Value;

/// Show the state of the node.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym status
  onym status --all           also faces, routes, forwarding table, strategies
  onym status --all --json
  onym status --of /net/b     another node, by its name, where that shows its state to you
  onym status --kernel")]
pub(crate) struct Args {
    /// The kernel stack of this network namespace (nnet.ko) instead of a node.
    #[arg(long)]
    kernel: bool,
    /// Everything, as `nfdc status report` shows it.
    #[arg(short, long)]
    all: bool,
    /// The state of another node, which is asked by its name over the network. It answers the keys
    /// that its `management.shown_to` lists. Its answer is neither encrypted nor proven to be its own.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["kernel", "all"])]
    of: Option<Name>,
    /// Key that signs the question: an identity, key or certificate of the key store; without it
    /// its default.
    #[arg(long, value_name = "NAME", requires = "of")]
    key: Option<Name>,
}

#[derive(Debug, Serialize)]
struct General {
    version: String,
    started: String,
    now: String,
    uptime_ms: u64,
    fib_entries: u64,
    pit_entries: u64,
    measurements_entries: u64,
    cs_entries: u64,
    name_tree_entries: u64,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    satisfied_interests: u64,
    unsatisfied_interests: u64,
}

/// The node, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    general: General,
    content_store: cs::Shown,
    /// What an Onym node says of itself beyond the management protocol; other forwarders do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Value>,
    #[serde(flatten)]
    rest: Option<Rest>,
}

#[derive(Debug, Serialize)]
struct Rest {
    channels: Vec<String>,
    faces: Vec<face::Shown>,
    fib: Vec<fib::Shown>,
    routes: Vec<route::Shown>,
    strategies: Vec<strategy::Shown>,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if args.kernel {
        let which = if args.all { kernel::Shown::All } else { kernel::Shown::Counted };
        return kernel::status(cx, which);
    }
    if let Some(node) = &args.of {
        let signer = node_shown::signer(args.key.as_ref())?;
        let shown = node_shown::ask(&mut session::open(cx)?, node, &signer)?;
        return cx.print(&shown, Shown::text);
    }
    let mut client = session::open(cx)?;
    let mut report = brief(&mut client)?;
    if args.all {
        report.rest = Some(rest(&mut client).map_err(session::failure)?);
    }
    cx.print(&report, text)
}

/// The report without what --all adds.
pub(crate) fn brief(client: &mut Client) -> anyhow::Result<Report> {
    let general = mgmt::status(client).map_err(session::failure)?;
    let content_store = mgmt::cs_info(client).map_err(session::failure)?;
    let ours = general.nfd_version.starts_with("onym");
    let node = if ours { Some(session::node_status(client)?) } else { None };
    let content_store = cs::Shown::of(&content_store);
    Ok(Report { general: general_of(general), content_store, node, rest: None })
}

fn rest(client: &mut Client) -> Result<Rest, onym_client::Error> {
    Ok(Rest {
        channels: mgmt::channels(client)?.into_iter().map(|c| c.local_uri).collect(),
        faces: mgmt::faces(client)?.iter().map(face::Shown::of).collect(),
        fib: mgmt::fib(client)?.iter().map(fib::Shown::of).collect(),
        routes: mgmt::rib(client)?.iter().flat_map(route::Shown::of).collect(),
        strategies: mgmt::strategies(client)?.iter().map(strategy::Shown::of).collect(),
    })
}

fn general_of(s: ForwarderStatus) -> General {
    General {
        version: s.nfd_version,
        started: human::moment_ms(s.start_timestamp_ms),
        now: human::moment_ms(s.current_timestamp_ms),
        uptime_ms: s.current_timestamp_ms.saturating_sub(s.start_timestamp_ms),
        fib_entries: s.fib_entries,
        pit_entries: s.pit_entries,
        measurements_entries: s.measurements_entries,
        cs_entries: s.cs_entries,
        name_tree_entries: s.name_tree_entries,
        in_interests: s.in_interests,
        in_data: s.in_data,
        in_nacks: s.in_nacks,
        out_interests: s.out_interests,
        out_data: s.out_data,
        out_nacks: s.out_nacks,
        satisfied_interests: s.satisfied_interests,
        unsatisfied_interests: s.unsatisfied_interests,
    }
}

fn text(report: &Report) -> String {
    let g = &report.general;
    let mut text = format!(
        "General\n  version       {}\n  started       {}\n  up for        {}\n  \
         FIB entries   {}\n  PIT entries   {}\n  CS entries    {}\n  measurements  {}\n  \
         in            {} Interests, {} Data, {} Nacks\n  out           {} Interests, {} Data, {} Nacks\n  \
         satisfied     {}\n  unsatisfied   {}\n",
        g.version,
        g.started,
        human::duration_ms(g.uptime_ms),
        g.fib_entries,
        g.pit_entries,
        g.cs_entries,
        g.measurements_entries,
        g.in_interests,
        g.in_data,
        g.in_nacks,
        g.out_interests,
        g.out_data,
        g.out_nacks,
        g.satisfied_interests,
        g.unsatisfied_interests,
    );
    section(&mut text, "Content store", &cs::info_text(&report.content_store));
    if let Some(node) = &report.node {
        let sections =
            [("Dropped", "dropped"), ("Frames dropped", "frames_dropped"), ("Not sent", "unsent")];
        for (title, key) in sections {
            section(&mut text, title, &counts_text(&node[key]));
        }
    }
    if let Some(rest) = &report.rest {
        section(&mut text, "Channels", &rest.channels.join("\n"));
        section(&mut text, "Faces", &face::list_text(&rest.faces));
        section(&mut text, "Routes", &route::list_text(&rest.routes));
        section(&mut text, "Forwarding table", &fib::list_text(&rest.fib));
        section(&mut text, "Strategies", &strategy::list_text(&rest.strategies));
    }
    text
}

/// Counts by reason, a line each.
fn counts_text(counts: &Value) -> String {
    let Some(counts) = counts.as_object().filter(|counts| !counts.is_empty()) else {
        return "nothing".to_owned();
    };
    counts.iter().map(|(reason, count)| format!("{reason:28} {count}\n")).collect()
}

fn section(text: &mut String, title: &str, body: &str) {
    text.push_str(title);
    text.push('\n');
    for line in body.lines() {
        text.push_str("  ");
        text.push_str(line);
        text.push('\n');
    }
}
