//! `onym gateway mqtt`: a broker's face, so that MQTT clients publish and subscribe.

use crate::output::Context;
use crate::{push_words, stop, supervised};
use anyhow::Context as _;
use onym_mqtt::{Bridge, Limits, Stopped};
use onym_wire::push::{Path, Strategy};
use serde::Serialize;
use std::net::TcpListener;

/// Serve MQTT clients as a broker does: what they publish and subscribe to are items of the push half.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym gateway mqtt
  onym gateway mqtt --listen 192.0.2.1:1883 --scope /plant --strategy inter-domain

The topic sensors/roof is the item /mqtt/sensors/roof/~value, at every node of the domain: a bridge
beside each node, or one for many. What is to be retained is the item ~retained beside it. MQTT
3.1.1 and 5; subscribers get QoS 0, 1 or 2, as they ask. A client without clean session (3.1.1) or
with a Session Expiry Interval (5) has its session when it comes back: its filters, and the QoS 1 and
2 that it did not acknowledge. Sessions are in memory: they end with the bridge. There are no
passwords: who reaches the address may publish and subscribe, and has the session of whom it says to
be.")]
pub(crate) struct Args {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1883")]
    listen: String,
    /// The scope above all topics.
    #[arg(long, value_name = "PATH", default_value = "/mqtt")]
    scope: Path,
    /// How far topics reach.
    #[arg(long, value_name = "NAME", default_value = "domain-local", value_parser = push_words::strategies_of_scopes())]
    strategy: Strategy,
    /// Most connections; further ones wait.
    #[arg(long, value_name = "N", default_value_t = Limits::default().clients)]
    clients_max: usize,
    /// Most octets of a packet; a longer one ends its connection.
    #[arg(long, value_name = "OCTETS", default_value_t = Limits::default().packet)]
    packet_max: usize,
    /// Octets that wait for a client, and as many that it has not acknowledged; publications beyond are dropped and counted.
    #[arg(long, value_name = "OCTETS", default_value_t = Limits::default().queue)]
    queue_max: usize,
    /// Most topics that clients publish, and as many that they subscribed to.
    #[arg(long, value_name = "N", default_value_t = Limits::default().topics)]
    topics_max: usize,
    /// Most sessions without connection; the oldest of the address that has most end.
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions)]
    sessions_max: usize,
    /// Octets of such a session; publications beyond are dropped and counted.
    #[arg(long, value_name = "OCTETS", default_value_t = Limits::default().session)]
    session_octets_max: usize,
    /// Longest time that a session is kept without connection; 0: none is.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().age)]
    session_age: u32,
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready {
        address: String,
    },
    Stopped {
        dropped: u64,
        unacknowledged: u64,
        unsent: u64,
        unfollowed: u64,
        forgotten: u64,
        unretained: u64,
    },
}

pub(super) fn run(args: &Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let app = push_words::open(cx, "onym gateway mqtt")?;
    let cannot = || format!("cannot listen at {}", args.listen);
    let listener = TcpListener::bind(&args.listen).with_context(cannot)?;
    let limits = Limits {
        clients: args.clients_max,
        packet: args.packet_max,
        queue: args.queue_max,
        topics: args.topics_max,
        sessions: args.sessions_max,
        session: args.session_octets_max,
        age: args.session_age,
        ..Limits::default()
    };
    let bridge = Bridge::new(listener, app, &args.scope, args.strategy, limits);
    let bridge = bridge.map_err(push_words::failure)?;
    let address = bridge.address()?.to_string();
    cx.event(&Line::Ready { address }, |line| match line {
        Line::Ready { address } => format!("ready: mqtt://{address}\n"),
        Line::Stopped { .. } => String::new(),
    })?;
    supervised::tell_ready();
    let stopped = bridge.serve(&stop.flag());
    supervised::tell_stop();
    let stopped = stopped.map_err(push_words::failure)?;
    let Stopped { dropped, unacknowledged, unsent, unfollowed, forgotten, unretained } = stopped;
    let told = Line::Stopped { dropped, unacknowledged, unsent, unfollowed, forgotten, unretained };
    cx.event(&told, |line| match line {
        Line::Stopped { dropped, unacknowledged, unsent, unfollowed, forgotten, unretained } => format!(
            "{dropped} publications dropped for slow clients, {unacknowledged} not acknowledged when \
             sessions ended, {unsent} nobody was subscribed to in time, {unfollowed} topics beyond \
             the bound, {forgotten} sessions ended early, {unretained} retained messages forgotten\n"
        ),
        Line::Ready { .. } => String::new(),
    })
}
