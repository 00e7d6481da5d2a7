//! Daemons that route, and what tests ask of them.

use crate::support::{Place, Running, wait_until};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// A port that was free a moment ago.
pub(crate) fn port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A daemon that routes as `/net/NAME`, with links to `to`.
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) port: u16,
    pub(crate) daemon: Running,
    sets: Vec<String>,
}

impl Node {
    /// Kills the daemon and starts it again, with all that it keeps.
    pub(crate) fn again(&mut self) {
        self.daemon.kill();
        let sets: Vec<&str> = self.sets.iter().map(String::as_str).collect();
        self.daemon = self.place.daemon(&sets);
    }

    pub(crate) fn folder(&self) -> String {
        self.place.path("routing").display().to_string()
    }

    /// What its router shows.
    pub(crate) fn status(&self) -> serde_json::Value {
        let shown = self.place.run(&["--json", "route", "status"]);
        serde_json::from_str(&shown.out).unwrap_or_default()
    }
}

pub(crate) fn node(name: &str, to: &[u16], more: &[&str]) -> Node {
    let (place, port) = (Place::new(), port());
    let links: Vec<String> =
        to.iter().map(|port| format!("{{uri=\"udp4://127.0.0.1:{port}\"}}")).collect();
    let folder = place.path("routing");
    let mut sets = vec![
        format!("faces.udp.listen=127.0.0.1:{port}"),
        "faces.udp.multicast=[]".to_owned(),
        "routing.network=/net".to_owned(),
        format!("routing.router=/net/{name}"),
        format!("routing.folder={}", folder.display()),
        format!("routing.neighbour=[{}]", links.join(",")),
        "routing.announce=all".to_owned(),
    ];
    sets.extend(more.iter().map(ToString::to_string));
    let all: Vec<&str> = sets.iter().map(String::as_str).collect();
    let daemon = place.daemon(&all);
    Node { place, port, daemon, sets }
}

pub(crate) const INSECURE: &[&str] = &["routing.insecure=true"];
/// Hellos each second, and the dead interval that is the default.
pub(crate) const PATIENT: &[&str] = &[
    "routing.insecure=true",
    "routing.advertise_interval_ms=1000",
    "routing.dead_interval_ms=30000",
];
/// Silent neighbours are dead after three seconds.
pub(crate) const QUICK: &[&str] = &[
    "routing.insecure=true",
    "routing.advertise_interval_ms=1000",
    "routing.dead_interval_ms=3000",
];

pub(crate) fn reaches(node: &Node, router: &str, neighbour: &str) -> bool {
    let shown = node.place.run(&["--json", "route", "table"]);
    let Ok(table) = serde_json::from_str::<serde_json::Value>(&shown.out) else { return false };
    table
        .as_array()
        .into_iter()
        .flatten()
        .any(|row| row["router"] == router && row["hops"][0][0] == neighbour)
}

pub(crate) fn took(what: &str, done: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    wait_until(what, done);
    start.elapsed()
}

pub(crate) fn prefixes(node: &Node) -> String {
    node.place.run(&["route", "prefixes"]).out
}
