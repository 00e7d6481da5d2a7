//! The four stages.

use super::hub_name;
use super::lookup::{Resolver, home_of, nearest};
use crate::exit::{Exit, Failure};
use crate::node_words as words;
use crate::output::{self, Context};
use crate::session;
use crate::stop::{self, Stop};
use onym_client::blocking::Client;
use onym_client::{Request, mgmt};
use onym_sys::netdev;
use onym_wire::faceuri::FaceUri;
use onym_wire::mgmt::{
    ControlParameters, FaceQueryFilter, LinkType, ORIGIN_AUTOCONF, Persistency, ROUTE_CHILD_INHERIT,
};
use onym_wire::tlv::Element;
use onym_wire::{Name, types};
use serde::Serialize;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Cost of the routes to a hub.
const COST: u64 = 100;
/// Routes by which a hub is looked for end by themselves.
const LOOK_MS: u64 = 30_000;
const LOOK_TIME: Duration = Duration::from_secs(4);
/// With --stay: time between two searches, and between two looks at the interfaces.
const AGAIN: Duration = Duration::from_secs(3600);
const FAILED_AGAIN: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Go on, and search again each hour, when the network changes, and a minute after a failure.
    #[arg(long)]
    stay: bool,
    /// URL (http) of the service that knows the nearest hub, for the third stage; without it that stage
    /// is left out.
    #[arg(long, value_name = "URL")]
    fch: Option<String>,
    /// Identity whose home network is looked up in the fourth stage; without it that stage is left out.
    #[arg(long, value_name = "NAME")]
    identity: Option<Name>,
    /// Name server that is asked, instead of those of /etc/resolv.conf.
    #[arg(long, value_name = "ADDRESS:PORT")]
    resolver: Option<SocketAddr>,
    /// Domain that is searched, instead of those of /etc/resolv.conf; may be given more than once.
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,
}

/// A hub.
#[derive(Debug, Serialize)]
struct Found {
    /// How it was found.
    stage: &'static str,
    uri: String,
    face: u64,
}

pub(super) fn run(args: &Args, cx: &Context) -> anyhow::Result<()> {
    if !args.stay {
        return once(args, cx);
    }
    let stop = stop::on_signal()?;
    while !stop.is_set() {
        let before = netdev::interfaces().unwrap_or_default();
        let wait = match once(args, cx) {
            Ok(()) => AGAIN,
            Err(error) => {
                output::tell(format_args!("onym: {error:#}"));
                FAILED_AGAIN
            }
        };
        rest(&stop, wait, &before);
    }
    Ok(())
}

/// Waits, until the network changes.
fn rest(stop: &Stop, wait: Duration, before: &[netdev::Interface]) {
    let until = Instant::now() + wait;
    while Instant::now() < until && !stop.is_set() {
        std::thread::sleep(STEP);
        if netdev::interfaces().is_ok_and(|now| now != before) {
            return;
        }
    }
}

fn once(args: &Args, cx: &Context) -> anyhow::Result<()> {
    let mut client = session::open(cx)?;
    let (stage, uri) = search(args, &mut client)?;
    // A hub that was found and cannot be reached ends the search: it is the one to use here.
    let face = connect(&mut client, &uri)?;
    let found = Found { stage, uri, face };
    cx.event(&found, |f| format!("{} by {}: face {}", f.uri, f.stage, f.face))
}

fn search(args: &Args, client: &mut Client) -> anyhow::Result<(&'static str, String)> {
    if let Some(uri) = multicast(client)? {
        return Ok(("multicast", uri));
    }
    let mut resolver = Resolver::of_system();
    if let Some(server) = args.resolver {
        resolver.servers = vec![server];
    }
    if !args.domain.is_empty() {
        resolver.domains.clone_from(&args.domain);
    }
    let mut names = resolver.domains.iter().map(|domain| format!("_ndn._udp.{domain}"));
    if let Some(uri) = names.find_map(|name| resolver.service(&name)) {
        return Ok(("dns", uri));
    }
    let mut why = Vec::new();
    if let Some(url) = &args.fch {
        match nearest(url) {
            Ok(uri) => return Ok(("fch", uri)),
            Err(error) => why.push(format!("{url}: {error}")),
        }
    }
    if let Some(identity) = &args.identity {
        match home_of(identity).and_then(|name| resolver.service(&name)) {
            Some(uri) => return Ok(("home", uri)),
            None => why.push(format!("{identity} has no home hub in the DNS")),
        }
    }
    why.push("nobody answers on the multicast faces, and no search domain names one".to_owned());
    Err(Failure::new(Exit::NotFound, "no hub is found")
        .why(why.join("; "))
        .next("is `onym hub serve` running there? name a service with --fch, or a hub by hand: `onym route add / --via URI`")
        .into())
}

/// Who answers on a link with several peers.
fn multicast(client: &mut Client) -> anyhow::Result<Option<String>> {
    let filter =
        FaceQueryFilter { link_type: Some(LinkType::MultiAccess), ..FaceQueryFilter::default() };
    let faces = mgmt::faces_query(client, &filter).map_err(session::failure)?;
    if faces.is_empty() {
        return Ok(None);
    }
    let name = hub_name();
    for face in &faces {
        let route = ControlParameters {
            name: Some(name.clone()),
            face_id: Some(face.face_id),
            origin: Some(ORIGIN_AUTOCONF),
            cost: Some(1),
            expiration_period_ms: Some(LOOK_MS),
            ..ControlParameters::default()
        };
        client.command(["rib", "register"], &route).map_err(session::failure)?;
    }
    let strategy = "/localhost/nfd/strategy/multicast".parse().ok();
    let choice = ControlParameters { name: Some(name.clone()), strategy, ..Default::default() };
    client.command(["strategy-choice", "set"], &choice).map_err(session::failure)?;
    let request = Request {
        can_be_prefix: true,
        must_be_fresh: true,
        lifetime: LOOK_TIME,
        ..Request::new(name)
    };
    let Ok(packet) = client.request(&request) else { return Ok(None) };
    let uri = Element::parse_as(packet.data().content, types::URI).ok();
    let uri = uri.and_then(|uri| std::str::from_utf8(uri.value).ok()?.parse::<FaceUri>().ok());
    Ok(uri.map(|uri| uri.to_string()))
}

/// A face to the hub, and everything without another way to it.
fn connect(client: &mut Client, uri: &str) -> anyhow::Result<u64> {
    let wanted = ControlParameters {
        uri: Some(words::canonical_uri(uri)?),
        face_persistency: Some(Persistency::Persistent),
        ..ControlParameters::default()
    };
    let created = mgmt::create_face(client, &wanted).map_err(session::failure)?;
    let face = created.face.face_id.unwrap_or(0);
    for prefix in ["/", "/localhop/nfd"] {
        let route = ControlParameters {
            name: Some(prefix.parse()?),
            face_id: Some(face),
            origin: Some(ORIGIN_AUTOCONF),
            cost: Some(COST),
            flags: Some(ROUTE_CHILD_INHERIT),
            ..ControlParameters::default()
        };
        client.command(["rib", "register"], &route).map_err(session::failure)?;
    }
    Ok(face)
}
