//! Random networks of push nodes.

use onym_pubsub::AppId;
use onym_pubsub::node::Config;
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_tables::Rng;
use onym_wire::push::{Id, Role};
use std::collections::BTreeSet;
use std::time::Duration;

pub(crate) const PUBLISHER: AppId = AppId(1);
pub(crate) const SUBSCRIBER: AppId = AppId(2);

pub(crate) fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

/// A connected random graph: every new node has `degree` links to earlier ones. Its links, too.
pub(crate) fn random(
    seed: u64,
    nodes: usize,
    degree: u64,
    change: impl Fn(&mut Config),
) -> (PushNetwork, Rng, Vec<(usize, usize)>) {
    let mut rng = Rng::new(seed);
    let mut net = PushNetwork::new(seed);
    let homes = [rng.below(nodes as u64) as usize, rng.below(nodes as u64) as usize];
    for n in 0..nodes {
        let mut role = Role::default();
        for (home, r) in homes.into_iter().zip([Role::RENDEZVOUS, Role::TOPOLOGY]) {
            role = if home == n { role.and(r) } else { role };
        }
        net.add_node(n as u64 + 1, role, &change);
    }
    let mut links = Vec::new();
    for n in 1..nodes {
        let mut ends = BTreeSet::new();
        for _ in 0..degree {
            ends.insert(rng.below(n as u64) as usize);
        }
        for end in ends {
            let delay = Duration::from_millis(1 + rng.below(5));
            net.link(n, end, LinkConfig { delay, ..LinkConfig::default() });
            links.push((n, end));
        }
    }
    net.run_for(Duration::from_secs(3));
    (net, rng, links)
}
