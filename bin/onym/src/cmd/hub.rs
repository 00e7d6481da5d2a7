//! `onym hub`: the node's way to the rest of a network, found and offered as nfd-autoconfig does.

mod find;
mod lookup;

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::{session, stop};
use clap::Subcommand;
use onym_client::{Answer, Incoming, RouteOptions};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::signer::write_digest_data;
use onym_wire::data::DataBuilder;
use onym_wire::faceuri::FaceUri;
use onym_wire::{Name, tlv, types};
use serde::Serialize;

/// Find a hub of the network, or be one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym hub find
  onym hub find --stay
  onym hub serve udp4://192.0.2.1:6363")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find a hub and route everything to it that has no other way.
    ///
    /// Four stages, the next one when a stage finds nothing: an Interest on the multicast faces of the
    /// node; SRV records `_ndn._udp` in the search domains; the service that knows the nearest hub
    /// (--fch); SRV records of the home network of an identity. The hub gets a face, and the routes `/`
    /// and `/localhop/nfd` of origin autoconf at cost 100.
    #[command(after_help = "Examples:
  onym hub find
  onym hub find --fch http://fch.example.net:80/ --identity /example/alice
  onym hub find --stay")]
    Find(find::Args),
    /// Tell whoever looks for a hub on the multicast faces of the node to come to this URI.
    #[command(after_help = "Example:\n  onym hub serve udp4://192.0.2.1:6363")]
    Serve(Serve),
}

#[derive(Debug, clap::Args)]
struct Serve {
    /// FaceUri of this node, as others reach it.
    uri: String,
}

/// `/localhop/ndn-autoconf/hub`.
fn hub_name() -> Name {
    let mut name = Name::new();
    name.append_generic("localhop").append_generic("ndn-autoconf").append_generic("hub");
    name
}

/// How long caches take the answer as fresh.
const FRESHNESS_MS: u64 = 3_600_000;

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { uri: String },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match args.command {
        Command::Find(args) => find::run(&args, cx),
        Command::Serve(args) => serve(&args, cx),
    }
}

fn serve(args: &Serve, cx: &Context) -> anyhow::Result<()> {
    let wrong = |why: &str| {
        Failure::new(Exit::Usage, format!("{} is no place to come to", args.uri))
            .why(why)
            .next("write an address and port, such as udp4://192.0.2.1:6363")
    };
    let uri: FaceUri =
        args.uri.parse().map_err(|e: onym_wire::faceuri::FaceUriError| wrong(e.why))?;
    let uri = uri.canonical().ok_or_else(|| wrong("others cannot look up its host"))?;
    let stop = stop::on_signal()?;
    let mut client = session::open_forever(cx)?;
    let mut content = Vec::new();
    tlv::put_tlv(&mut content, types::URI, uri.to_string().as_bytes());
    let prefix = hub_name();
    let mut name = prefix.clone();
    name.append_version(unix_now_ms());
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        let interest = incoming.interest();
        if interest.name != name
            && !(interest.can_be_prefix && interest.name.is_prefix_of(name.as_ref()))
        {
            return Answer::Nothing;
        }
        let builder =
            DataBuilder { freshness_ms: FRESHNESS_MS, ..DataBuilder::new(name.as_ref(), &content) };
        write_digest_data(&builder, out);
        Answer::Written
    };
    client.respond(prefix.clone(), Box::new(respond)).map_err(|e| session::failure(e.into()))?;
    client.register(prefix, RouteOptions::default()).map_err(session::failure)?;
    cx.event(&Line::Ready { uri: uri.to_string() }, |Line::Ready { uri }| {
        format!("ready: who looks for a hub is told {uri}\n")
    })?;
    session::serve_until(&mut client, &stop)
}
