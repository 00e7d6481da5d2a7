//! Checks of value ranges that types do not express.

mod routing;

use super::{Config, ConfigError, OneOrMany};
use crate::subnet::Subnet;
use onym_wire::mgmt::Persistency;
use onym_wire::push::{Id, Label, Strategy};
use std::net::SocketAddr;

/// Collects the place of the value under test.
struct Check<'a> {
    origin: &'a str,
}

impl Check<'_> {
    fn that(
        &self,
        good: bool,
        key: &str,
        value: &dyn std::fmt::Display,
        allowed: &str,
    ) -> Result<(), ConfigError> {
        if good {
            return Ok(());
        }
        Err(ConfigError::Value {
            origin: self.origin.to_owned(),
            key: key.to_owned(),
            value: format!("`{value}`"),
            allowed: allowed.to_owned(),
        })
    }

    fn addresses(&self, key: &str, list: &OneOrMany) -> Result<(), ConfigError> {
        for item in &list.0 {
            let allowed = "allowed is a list of address:port, such as [\"127.0.0.1:6363\", \
                           \"[::]:6363\"]; port 0 takes a free one";
            self.that(item.parse::<SocketAddr>().is_ok(), key, item, allowed)?;
        }
        Ok(())
    }

    fn peers(&self, key: &str, list: &OneOrMany) -> Result<(), ConfigError> {
        for item in &list.0 {
            let good = matches!(item.as_str(), "local" | "any") || Subnet::parse(item).is_some();
            let allowed = "allowed are local, any and subnets such as 192.0.2.0/24";
            self.that(good, key, item, allowed)?;
        }
        Ok(())
    }

    fn between(&self, key: &str, value: usize, min: usize, max: usize) -> Result<(), ConfigError> {
        let allowed = format!("allowed is {min} to {max}");
        self.that((min..=max).contains(&value), key, &value, &allowed)
    }
}

impl Config {
    /// Checks every value that its type does not bound; `origin` names the file in errors.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for the first value that is wrong.
    pub fn check(&self, origin: &str) -> Result<(), ConfigError> {
        let check = Check { origin };
        check.between("shards", self.shards.into(), 0, 64)?;
        self.check_faces(&check)?;
        self.check_tables(&check)?;
        self.check_lists(&check)?;
        self.check_trust(&check)?;
        self.check_push(&check)?;
        self.check_gateway(&check)?;
        self.check_routing(&check)?;
        self.check_trace(&check)?;
        self.check_telemetry(&check)?;
        check.addresses("metrics.listen", &self.metrics.listen)
    }

    fn check_trace(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.peers("trace.from", &self.trace.from)?;
        let name = &self.trace.name;
        let good = name.is_empty() || (crate::names::parses(name) && name != "/");
        check.that(good, "trace.name", name, "allowed is a name, such as /example/router")
    }

    fn check_telemetry(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        let telemetry = &self.telemetry;
        check.peers("telemetry.trusted", &telemetry.trusted)?;
        let url = &telemetry.collector;
        let place = url.strip_prefix("http://").map(|place| place.trim_end_matches('/'));
        let good = place.is_some_and(|place| {
            let (host, port) = place.rsplit_once(':').unwrap_or_default();
            let is_odd = |c: char| c.is_whitespace() || c.is_control() || "/?#@".contains(c);
            !host.is_empty() && !host.contains(is_odd) && port.parse::<u16>().is_ok_and(|p| p > 0)
        });
        let allowed = "allowed is http://address:port, such as http://127.0.0.1:4318";
        check.that(url.is_empty() || good, "telemetry.collector", url, allowed)?;
        let rate = telemetry.spans_per_second as usize;
        check.between("telemetry.spans_per_second", rate, 1, 1_000_000)
    }

    fn check_faces(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        let faces = &self.faces;
        check.addresses("faces.udp.listen", &faces.udp.listen)?;
        check.addresses("faces.tcp.listen", &faces.tcp.listen)?;
        check.addresses("faces.websocket.listen", &faces.websocket.listen)?;
        let (tls, quic) = (&faces.websocket, &faces.quic);
        check.addresses("faces.websocket.tls_listen", &tls.tls_listen)?;
        check.addresses("faces.quic.listen", &quic.listen)?;
        for (list, allowed, files) in [
            (
                &tls.tls_listen,
                "needed with tls_listen is a PEM file",
                [
                    ("faces.websocket.tls_certificate", &tls.tls_certificate),
                    ("faces.websocket.tls_key", &tls.tls_key),
                ],
            ),
            (
                &quic.listen,
                "needed with listen is a PEM file",
                [("faces.quic.certificate", &quic.certificate), ("faces.quic.key", &quic.key)],
            ),
        ] {
            let is_on = !list.0.is_empty();
            for (key, file) in files {
                check.that(!is_on || file.is_some(), key, &"", allowed)?;
            }
        }
        for origin in &faces.websocket.origins.0 {
            let allowed = "allowed are loopback, any, null and scheme://host[:port], such as \
                           https://app.example";
            let good = onym_face::websocket::Gate::is_origin(origin);
            check.that(good, "faces.websocket.origins", origin, allowed)?;
        }
        for host in &faces.websocket.hosts.0 {
            let allowed = "allowed are any and host names without port, such as node.example";
            let good = onym_face::websocket::Gate::is_host(host);
            check.that(good, "faces.websocket.hosts", host, allowed)?;
        }
        check.addresses("faces.udp.multicast", &faces.udp.multicast)?;
        for group in &faces.udp.multicast.0 {
            let multicast = group.parse::<SocketAddr>().is_ok_and(|a| a.ip().is_multicast());
            let allowed = "allowed are multicast groups, such as 224.0.23.170:56363";
            check.that(multicast, "faces.udp.multicast", group, allowed)?;
        }
        for subnet in &faces.tcp.local.0 {
            let allowed = "allowed is address/length, such as 127.0.0.0/8";
            let good = Subnet::parse(subnet).is_some();
            check.that(good, "faces.tcp.local", subnet, allowed)?;
        }
        check.between("faces.udp.mtu", faces.udp.mtu, 64, 8800)?;
        check.between("faces.count_max", faces.count_max as usize, 1, 1 << 24)?;
        check.between("faces.queue_bytes_max", faces.queue_bytes_max, 8800, 1 << 30)?;
        let hold = usize::try_from(faces.hold_ms).unwrap_or(usize::MAX);
        check.between("faces.hold_ms", hold, 0, 600_000)?;
        let ring = faces.shm.ring_bytes;
        let good = ring.is_power_of_two() && (65_536..=1 << 26).contains(&ring);
        let allowed = "allowed is a power of two from 65536 to 67108864";
        check.that(good, "faces.shm.ring_bytes", &ring, allowed)?;
        check.between("faces.shm.count_max", faces.shm.count_max, 0, 1 << 16)?;
        let mac = &faces.ether.multicast;
        let good = mac.split(':').filter(|p| p.len() == 2 && u8::from_str_radix(p, 16).is_ok());
        let good = good.count() == 6 && mac.len() == 17;
        check.that(good, "faces.ether.multicast", mac, "allowed is a MAC address xx:xx:xx:xx:xx:xx")
    }

    fn check_tables(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.between("pit.entries_max", self.pit.entries_max, 64, 1 << 26)?;
        check.between("pit.bytes_max", self.pit.bytes_max, 1 << 16, 1 << 40)?;
        check.between("cs.packets_max", self.cs.packets_max, 0, 1 << 26)?;
        let disk = &self.cs.disk;
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        check.between("cs.disk.bytes_max", number(disk.bytes_max), 16 << 20, 1 << 44)?;
        check.between("cs.disk.packets_max", number(disk.packets_max), 1024, 1 << 28)?;
        check.between("cs.disk.wait_ms", number(disk.wait_ms), 1, 4000)?;
        check.between("cs.disk.prefixes", disk.prefixes.len(), 0, 64)?;
        for prefix in &disk.prefixes {
            let allowed = "allowed are prefixes that begin with `/`";
            check.that(crate::names::parses(prefix), "cs.disk.prefixes", prefix, allowed)?;
        }
        check.between("fib.routes_max", self.fib.routes_max, 16, 1 << 26)?;
        check.between("tables.dead_nonces_max", self.tables.dead_nonces_max, 1024, 1 << 26)?;
        check.between("reassembly.partial_max", self.reassembly.partial_max, 1, 65_536)?;
        check.between("reassembly.bytes_max", self.reassembly.bytes_max, 8800, 1 << 30)
    }

    fn check_push(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        let push = &self.push;
        let good = push.node.is_empty() || push.node.parse::<Label>().is_ok();
        check.that(good, "push.node", &push.node, "allowed are 1 to 16 hexadecimal digits")?;
        let is_label = |text: &str| text.is_empty() || text.parse::<Label>().is_ok();
        let allowed = "allowed are 1 to 16 hexadecimal digits";
        check.that(is_label(&push.domain), "push.domain", &push.domain, allowed)?;
        let is_drawn = push.inside == 0 || push.link.iter().any(|link| link.number == 0);
        let good = push.scheme == super::PushScheme::K || !push.enabled || !is_drawn;
        let allowed = "with `bits`, push.inside and the number of each push.link must be given";
        check.that(good, "push.scheme", &"bits", allowed)?;
        let is_found = push.scheme == super::PushScheme::K && push.routing_links;
        let good = push.discover == super::PushDiscover::Off || is_found;
        let allowed = "who is found is a link with the scheme `k` and push.routing_links";
        check.that(good, "push.discover", &"on", allowed)?;
        check.between("push.k", push.k.into(), 1, 16)?;
        check.between("push.tables", push.tables.into(), 1, 8)?;
        check.between("push.fill_max", push.fill_max as usize, 1, 256)?;
        let epoch = usize::try_from(push.epoch_s).unwrap_or(usize::MAX);
        check.between("push.epoch_s", epoch, 2, 86_400 * 365)?;
        check.between("push.frame_bytes_max", push.frame_bytes_max, 512, 8800)?;
        check.between("push.publication_bytes_max", push.publication_bytes_max, 8192, 1 << 30)?;
        check.between("push.cache_bytes_max", push.cache_bytes_max, 0, 1 << 36)?;
        check.between("push.retained_bytes_max", push.retained_bytes_max, 0, 1 << 36)?;
        check.between("push.apps_max", push.apps_max, 1, 1 << 24)?;
        check.between("push.app_queue_bytes_max", push.app_queue_bytes_max, 65_536, 1 << 30)?;
        let hold = usize::try_from(push.hold_ms).unwrap_or(usize::MAX);
        check.between("push.hold_ms", hold, 0, 600_000)?;
        check.between("push.vertices_max", push.vertices_max, 1, 1 << 26)?;
        check.between("push.graph_bytes_max", push.graph_bytes_max, 1 << 16, 1 << 40)?;
        check.between("push.link_state_bytes_max", push.link_state_bytes_max, 1 << 16, 1 << 40)?;
        let lease = usize::try_from(push.etcd_lease_ms).unwrap_or(usize::MAX);
        check.between("push.etcd_lease_ms", lease, 1000, 600_000)?;
        let good = push.etcd.is_empty() || (push.state.is_empty() && !push.node.is_empty());
        let allowed = "needs push.node, the same at each start, and goes without push.state";
        check.that(good, "push.etcd", &push.etcd.join(", "), allowed)?;
        let good = !push.trust_control || !(push.trust.is_empty() || push.sign_key.is_empty());
        let allowed =
            "needs push.trust, which says whose are obeyed, and push.sign_key for its own";
        check.that(good, "push.trust_control", &push.trust_control, allowed)?;
        for (i, link) in push.link.iter().enumerate() {
            let allowed = "allowed is a face URI, such as udp4://192.0.2.1:6363";
            let parses = link.face.parse::<onym_wire::FaceUri>().is_ok();
            check.that(parses, &format!("push.link[{i}].face"), &link.face, allowed)?;
            let key = format!("push.link[{i}].domain");
            let good =
                link.domain.is_empty() || (is_label(&link.domain) && !push.domain.is_empty());
            let allowed = "allowed are 1 to 16 hexadecimal digits, with push.domain set";
            check.that(good, &key, &link.domain, allowed)?;
        }
        Ok(())
    }

    fn check_gateway(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        let gateway = &self.gateway;
        let has_socket = self.push.enabled && !self.faces.unix.path.0.is_empty();
        let good = gateway.map.is_empty() || has_socket;
        let allowed = "the gateway needs push.enabled and a faces.unix.path";
        check.that(good, "gateway.map", &gateway.map.len(), allowed)?;
        let good = gateway.key.is_empty() || crate::names::parses(&gateway.key);
        check.that(good, "gateway.key", &gateway.key, "allowed is a name, such as /example")?;
        check.between("gateway.items_max", gateway.items_max, 1, 1 << 20)?;
        check.between("gateway.interests_max", gateway.interests_max, 1, 1 << 24)?;
        check.between("gateway.kept_bytes_max", gateway.kept_bytes_max, 8192, 1 << 36)?;
        for (i, map) in gateway.map.iter().enumerate() {
            let key = |field: &str| format!("gateway.map[{i}].{field}");
            let good = crate::names::parses(&map.prefix) && map.prefix != "/";
            let allowed = "allowed is a name with a component, such as /example/push";
            check.that(good, &key("prefix"), &map.prefix, allowed)?;
            let id = |text: &str| text.parse::<Id>().ok().filter(|id| !id.is_empty());
            let scope = id(&map.scope);
            let allowed = "allowed is the identifier of a scope, such as /1";
            check.that(scope.is_some(), &key("scope"), &map.scope, allowed)?;
            let matched = [Strategy::NODE_LOCAL, Strategy::DOMAIN_LOCAL, Strategy::INTER_DOMAIN];
            let good = Strategy::named(&map.strategy).is_some_and(|s| matched.contains(&s));
            let allowed = "allowed are node-local, domain-local, inter-domain";
            check.that(good, &key("strategy"), &map.strategy, allowed)?;
            for item in &map.items {
                let below = |item: &Id| {
                    scope.as_ref().is_some_and(|s| item.starts_with(s) && item.len() > s.len())
                };
                let allowed = "allowed are identifiers beneath the scope";
                check.that(id(item).is_some_and(|i| below(&i)), &key("items"), item, allowed)?;
            }
        }
        Ok(())
    }

    fn check_trust(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        for (i, entry) in self.trust.iter().enumerate() {
            let (key, name) = (format!("trust[{i}].name"), &entry.name);
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let allowed = "allowed are letters, digits, - and _";
            check.that(!name.is_empty() && name.chars().all(is_word), &key, name, allowed)?;
            let is_first = self.trust[..i].iter().all(|other| other.name != *name);
            check.that(is_first, &key, name, "another entry has this name")?;
        }
        for (i, entry) in self.cs.verify.iter().enumerate() {
            let key = |field: &str| format!("cs.verify[{i}].{field}");
            let allowed = "allowed are prefixes that begin with `/`";
            let is_name = crate::names::parses(&entry.prefix);
            check.that(is_name, &key("prefix"), &entry.prefix, allowed)?;
            check.between(&key("sample_percent"), entry.sample_percent.into(), 0, 100)?;
        }
        Ok(())
    }

    fn check_lists(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        for (prefix, strategy) in &self.strategy {
            let allowed = "allowed are prefixes that begin with `/`";
            check.that(crate::names::parses(prefix), "strategy", prefix, allowed)?;
            let problem = crate::names::strategy_problem(strategy);
            let key = format!("strategy.\"{prefix}\"");
            let why = problem.as_deref().unwrap_or_default();
            let allowed = format!("{why}; {}", crate::names::STRATEGIES_ALLOWED);
            check.that(problem.is_none(), &key, strategy, &allowed)?;
        }
        for (i, face) in self.face.iter().enumerate() {
            let key = |field: &str| format!("face[{i}].{field}");
            let allowed =
                "allowed is a face URI, such as udp4://192.0.2.1:6363, tcp4://…, ether://[…]";
            let parses = face.uri.parse::<onym_wire::FaceUri>().is_ok();
            check.that(parses, &key("uri"), &face.uri, allowed)?;
            let good = face.persistency != Persistency::OnDemand;
            let allowed =
                "allowed are `persistent` and `permanent`: on-demand faces are made by peers";
            check.that(good, &key("persistency"), &"on-demand", allowed)?;
            if let Some(mtu) = face.mtu {
                check.between(&key("mtu"), mtu, 64, 8800)?;
            }
            let loss = face.fault.as_ref().map_or(0.0, |f| f.loss);
            check.that(
                (0.0..=1.0).contains(&loss),
                &key("fault.loss"),
                &loss,
                "allowed is 0 to 1",
            )?;
        }
        for (i, route) in self.route.iter().enumerate() {
            let key = format!("route[{i}].prefix");
            let allowed = "allowed is a name, such as /example/a";
            check.that(crate::names::parses(&route.prefix), &key, &route.prefix, allowed)?;
            let parses = route.via.parse::<onym_wire::FaceUri>().is_ok();
            let allowed = "allowed is a face URI, such as udp4://192.0.2.1:6363";
            check.that(parses, &format!("route[{i}].via"), &route.via, allowed)?;
        }
        for region in &self.forward.network_regions.0 {
            let allowed = "allowed are names, such as /region/a";
            let good = crate::names::parses(region);
            check.that(good, "forward.network_regions", region, allowed)?;
        }
        Ok(())
    }
}
