//! The values of routing.

use super::Check;
use crate::config::{Config, ConfigError, Routing};
use onym_wire::Name;

/// Networks of one node, at most.
const AREAS_MAX: usize = 16;
/// Prefixes that summarise others, at most, for each pair of networks.
const SUMMARIES_MAX: usize = 256;
/// Prefixes that routers of a network may announce, at most.
const ACCEPT_MAX: usize = 256;
const NETWORK: &str = "allowed is a name of one to three components, such as /example";

impl Config {
    pub(super) fn check_routing(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        let routing = &self.routing;
        if routing.network.is_empty() {
            let none = routing.area.is_empty() && routing.export.is_empty();
            let allowed = "further networks need a first one: set routing.network";
            return check.that(none, "routing.network", &routing.network, allowed);
        }
        let has_socket = !self.faces.unix.path.0.is_empty();
        let allowed = "routing needs a faces.unix.path";
        check.that(has_socket, "routing.network", &routing.network, allowed)?;
        let network = check.network("routing.network", &routing.network)?;
        check.router("routing.router", &network, &routing.router)?;
        check.accept("routing.accept", &routing.accept)?;
        let good = matches!(routing.announce.as_str(), "client" | "all");
        check.that(good, "routing.announce", &routing.announce, "allowed are client, all")?;
        let (rtt, loss) = (routing.cost_rtt_ms, routing.cost_loss_percent);
        check.that(rtt <= 600_000, "routing.cost_rtt_ms", &rtt, "allowed is 0 to 600000")?;
        check.that(loss <= 100, "routing.cost_loss_percent", &loss, "allowed is 0 to 100")?;
        let resolve = routing.resolve_interval_ms;
        let allowed = "allowed is 1000 to 86400000";
        let good = (1000..=86_400_000).contains(&resolve);
        check.that(good, "routing.resolve_interval_ms", &resolve, allowed)?;
        let interval = routing.advertise_interval_ms;
        let good = (100..=600_000).contains(&interval);
        let allowed = "allowed is 100 to 600000";
        check.that(good, "routing.advertise_interval_ms", &interval, allowed)?;
        let dead = routing.dead_interval_ms;
        let good = (2 * interval..=10 * 600_000).contains(&dead);
        let allowed = "allowed is twice the interval to 6000000";
        check.that(good, "routing.dead_interval_ms", &dead, allowed)?;
        check_border(check, routing, network)
    }
}

/// Further networks, and what one hears of another.
fn check_border(check: &Check<'_>, routing: &Routing, first: Name) -> Result<(), ConfigError> {
    let count = routing.area.len();
    let allowed = format!("allowed are {} further networks", AREAS_MAX - 1);
    check.that(count < AREAS_MAX, "routing.area", &count, &allowed)?;
    let mut networks = vec![first];
    let mut links: Vec<&str> = routing.neighbour.iter().map(|n| n.uri.as_str()).collect();
    for (i, area) in routing.area.iter().enumerate() {
        let key = |field: &str| format!("routing.area[{i}].{field}");
        let network = check.network(&key("network"), &area.network)?;
        let is_new = !networks.contains(&network);
        check.that(is_new, &key("network"), &area.network, "the node is in it already")?;
        check.router(&key("router"), &network, &area.router)?;
        check.accept(&key("accept"), &area.accept)?;
        networks.push(network);
        for link in &area.neighbour {
            let is_new = !links.contains(&link.uri.as_str());
            check.that(is_new, &key("neighbour"), &link.uri, "a link is in one network")?;
            links.push(&link.uri);
        }
    }
    let mut pairs = Vec::new();
    for (i, export) in routing.export.iter().enumerate() {
        let key = |field: &str| format!("routing.export[{i}].{field}");
        let mut ends = Vec::new();
        for (field, text) in [("from", &export.from), ("to", &export.to)] {
            let network = text.parse::<Name>().ok().filter(|name| networks.contains(name));
            let allowed = "allowed is a network of this node: routing.network, or that of a \
                           routing.area";
            check.that(network.is_some(), &key(field), text, allowed)?;
            ends.push(network);
        }
        let is_pair = ends[0] != ends[1] && !pairs.contains(&ends);
        let allowed = "allowed is another network than `from`, and one entry for both";
        check.that(is_pair, &key("to"), &export.to, allowed)?;
        pairs.push(ends);
        let count = export.summary.len();
        let allowed = format!("allowed are {SUMMARIES_MAX} summaries");
        check.that(count <= SUMMARIES_MAX, &key("summary"), &count, &allowed)?;
        for summary in &export.summary {
            let good = crate::names::parses(&summary.prefix);
            let allowed = "allowed is a name, such as /example/site";
            check.that(good, &key("summary.prefix"), &summary.prefix, allowed)?;
        }
    }
    Ok(())
}

impl Check<'_> {
    fn accept(&self, key: &str, names: &[String]) -> Result<(), ConfigError> {
        let allowed = format!("allowed are {ACCEPT_MAX} names");
        self.that(names.len() <= ACCEPT_MAX, key, &names.len(), &allowed)?;
        let allowed = "allowed are names, such as /example/site";
        names.iter().try_for_each(|name| self.that(crate::names::parses(name), key, name, allowed))
    }

    fn network(&self, key: &str, text: &str) -> Result<Name, ConfigError> {
        let name = text.parse::<Name>().ok().filter(|name| (1..=3).contains(&name.len()));
        self.that(name.is_some(), key, &text, NETWORK)?;
        Ok(name.unwrap_or_default())
    }

    /// A router of `network`; empty for the usual name.
    fn router(&self, key: &str, network: &Name, text: &str) -> Result<(), ConfigError> {
        let is_under = text.parse::<Name>().is_ok_and(|router| {
            router.len() == network.len() + 1 && network.as_ref().is_prefix_of(router.as_ref())
        });
        let allowed = "allowed is the network and one more component";
        self.that(text.is_empty() || is_under, key, &text, allowed)
    }
}
