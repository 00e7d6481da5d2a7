//! `onym trace NAME`: the path of a name, hop by hop (RFC 9507).

pub(crate) mod end;
pub(crate) mod hop;
mod link;
pub(crate) mod walk;

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::session;
use crate::stop::{self, Stop};
use end::End;
use link::Link;
use onym_wire::Name;
use onym_wire::push::Path;
use serde::Serialize;
use std::time::Duration;
use walk::{Told, Walk, What};

/// Show the path of a name hop by hop, with what each node decides.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym trace /example/file
  onym trace /example/file --json
  onym trace /ndn/edu/example --timeout 4000 --hops 20
  onym trace --push /1/2                  the tree of an item, at the node of its publisher

Sends trace requests of RFC 9507, with one hop more each time. A node tells its name, the face that
the request came by, what it would do with an Interest for the name, and why; where a node would ask
several others, each way is followed, and the ways are shown as a tree. The times are those of the
whole way there and back.
A hop that does not answer is asked once more, with a name in the form that the NFD patch for RFC 9507
takes for a trace request.
A `*` is a hop that did not answer: a forwarder without RFC 9507, or one that does not let this node
trace (`trace.from` of its configuration). The hops behind it are counted all the same. When the end
of the way did not answer, the hops to a ping server under the name are counted, if there is one.
The name itself is not asked for. Exit code 0 when a way ends at an application, a content store
or a node of this name, else 5.
With --push the tree of an item of the push half is followed from this node, which is that of
its publisher: each node tells which of its links the filter has and how many applications get
it. Each link is shown with its delay, half of what the way there and back takes longer, and
with the copies of a publication that it carries: more than one where the filter leads to a
node twice.")]
pub(crate) struct Args {
    /// The name; with --push the identifier of an item, such as /1/2.
    name: String,
    /// Follow a publication of the push half.
    #[arg(long)]
    push: bool,
    /// Hops to go at most.
    #[arg(short = 'm', long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..=200))]
    hops: u8,
    /// How long to wait for the answer of a hop, in milliseconds.
    #[arg(short = 'o', long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    timeout: u64,
}

/// What is said at the end.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Summary<'a> {
    Summary {
        name: String,
        hops: usize,
        ends: &'a [End],
        pinged: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        links: Option<&'a [Link]>,
    },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let mut tell = |told: &Told<'_>| cx.event(told, Told::text);
    let what = args.what()?;
    let found = follow(&what, &args, cx, &stop::on_signal()?, &mut tell)?;
    let (name, ends) = (args.name.clone(), found.ends.as_slice());
    let links = args.push.then_some(&found.links[..]);
    let summary = Summary::Summary { name, hops: found.hops, ends, pinged: found.pinged, links };
    cx.event(&summary, text)?;
    if ends.iter().any(End::is_reached) {
        return Ok(());
    }
    let what = format!("no way of {} was followed to its end", args.name);
    Err(Failure::new(Exit::NotFound, what).next("see what each way ends with, above").into())
}

impl Args {
    /// What is followed.
    fn what(&self) -> anyhow::Result<What> {
        let wrong = |kind, why: &dyn std::fmt::Display| {
            Failure::new(Exit::Usage, format!("{} is not {kind}", self.name)).why(why)
        };
        if self.push {
            let path: Path = self.name.parse().map_err(|e| wrong("an identifier", &e))?;
            return Ok(What::Item(path.id));
        }
        Ok(What::Name(self.name.parse().map_err(|e| wrong("a name", &e))?))
    }
}

/// What a trace found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) hops: usize,
    pub(crate) ends: Vec<End>,
    /// Hops to a ping server under the name, where the end did not answer.
    pub(crate) pinged: Option<u8>,
    /// Links of the tree of a publication.
    links: Vec<Link>,
}

/// Whoever is told each hop.
type Tell<'a> = &'a mut dyn FnMut(&Told<'_>) -> anyhow::Result<()>;

/// Follows the ways of a name; `tell` is told each hop.
fn follow(
    what: &What,
    args: &Args,
    cx: &Context,
    stop: &Stop,
    tell: Tell<'_>,
) -> anyhow::Result<Found> {
    let client = session::open(cx)?;
    let timeout = Duration::from_millis(args.timeout);
    let mut walk = Walk::new(client, what, timeout, args.hops, stop);
    walk.run(tell)?;
    let is_lost = walk.ends.iter().any(|end| matches!(end, End::Silent { .. }));
    let pinged = match what {
        What::Name(name) if is_lost => walk.pinged(name)?,
        _ => None,
    };
    let links = link::counted(walk.links);
    Ok(Found { hops: walk.hops, ends: walk.ends, pinged, links })
}

/// As [`follow`], with the usual bounds.
pub(crate) fn follow_name(
    name: &Name,
    cx: &Context,
    stop: &Stop,
    tell: Tell<'_>,
) -> anyhow::Result<Found> {
    let args = Args { name: name.to_string(), push: false, hops: 30, timeout: 1000 };
    follow(&What::Name(name.clone()), &args, cx, stop, tell)
}

fn text(summary: &Summary<'_>) -> String {
    let Summary::Summary { ends, pinged, name, links, .. } = summary;
    if let Some(links) = links {
        let links = links.iter().map(Link::text);
        return links.chain(ends.iter().map(End::of_item)).collect::<Vec<_>>().join("\n");
    }
    let mut lines: Vec<String> = ends.iter().map(|end| end.sentence(name)).collect();
    if ends.iter().any(|end| matches!(end, End::Silent { .. })) {
        lines.push(match pinged {
            Some(hops) => format!(
                "a ping server under {name} answers with a hop limit of {hops}: {hops} forwarders \
                 lie on the way, this node's and the server's among them"
            ),
            None => format!(
                "nothing answers pings under {name}, so how far the way goes cannot be said"
            ),
        });
    }
    lines.join("\n")
}
