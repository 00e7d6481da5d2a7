//! Nodes that start and die, links that fail, clocks that are set.

use super::{BOOT, FACE, Kind, Plain, RouterNetwork, router_names};
use onym_crypto::Signer;
use onym_route::{Border, Config, Export, Link, Router};
use onym_wire::Name;

impl RouterNetwork {
    /// Starts a node, or starts it again with the next bootstrap time.
    ///
    /// # Panics
    /// Never: names and exports are made here.
    pub fn start(&mut self, node: usize) {
        let own_ms = self.unix_ms(node);
        let stored = Some(self.nodes[node].boot);
        self.nodes[node].boot = onym_route::router::next_boot(own_ms / 1000, stored);
        let kind = if self.setting.plain.contains(&node) {
            let config = self.config(node, self.networks[node][0]);
            Kind::Plain(Box::new(Plain::new(self.now, config)))
        } else {
            Kind::Ours(Box::new(self.make_border(node, own_ms)))
        };
        self.nodes[node].kind = Some(kind);
        self.nodes[node].forwarder.restart();
        self.changed.extend(0..self.nodes.len());
        self.serve(node);
    }

    fn make_border(&self, node: usize, unix_ms: u64) -> Border {
        let router = |network: &usize| {
            let config = self.config(node, *network);
            Router::new(self.now, config, Signer::digest(), unix_ms)
                .expect("invariant: names are made here")
        };
        let routers: Vec<Router> = self.networks[node].iter().map(router).collect();
        let here: Vec<Name> = routers.iter().map(|r| r.names().network.clone()).collect();
        let is_here = |export: &&Export| here.contains(&export.from) && here.contains(&export.to);
        let mut exports: Vec<Export> =
            self.setting.exports.iter().filter(is_here).cloned().collect();
        if self.setting.exports.is_empty() {
            let pairs = here.iter().flat_map(|from| here.iter().map(move |to| (from, to)));
            let all = pairs.filter(|(from, to)| from != to);
            exports = all.map(|(from, to)| Export::all(from.clone(), to.clone())).collect();
        }
        Border::new(self.now, routers, exports)
            .expect("invariant: exports are between its networks")
    }

    fn config(&self, node: usize, network: usize) -> Config {
        let boot = self.nodes[node].boot;
        let seed = self.setting.seed
            ^ (node as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ (network as u64).rotate_left(48)
            ^ boot;
        let names = router_names(network, node).expect("invariant: names are made here");
        let mut config = Config::new(names.network, names.router, boot, seed);
        config.cost_by = self.setting.cost_by;
        config.table = self.setting.table;
        config.prefixes = self.setting.prefixes;
        let links = self.links_of[node].iter().filter(|link| self.links[**link].network == network);
        config.links =
            links.map(|link| Link { uri: format!("sim://{link}"), mtu: None, cost: 1 }).collect();
        config
    }

    /// The clock of `node`.
    fn unix_ms(&self, node: usize) -> u64 {
        let real = BOOT * 1000 + self.now.0 / 1_000_000;
        real.saturating_add_signed(self.nodes[node].clock_ahead_ms)
    }

    /// Sets the clock of a node, which may be running.
    pub fn set_clock(&mut self, node: usize, ahead_ms: i64) {
        self.nodes[node].clock_ahead_ms = ahead_ms;
        let (now, unix_ms) = (self.now, self.unix_ms(node));
        self.each(node, |router| router.set_clock(now, unix_ms));
    }

    /// A node dies without a word; its neighbours see their faces go down.
    pub fn kill(&mut self, node: usize) {
        self.kill_unseen(node);
        for link in self.links_of[node].clone() {
            let other = self.other_end(node, link);
            if self.links[link].up {
                self.face_down(other, link);
            }
        }
    }

    /// A node dies without a word, and nobody sees it.
    pub fn kill_unseen(&mut self, node: usize) {
        self.nodes[node].kind = None;
        self.nodes[node].forwarder.restart();
        self.changed.extend(0..self.nodes.len());
    }

    /// A link stops, and both ends see it.
    pub fn cut(&mut self, link: usize) {
        self.links[link].up = false;
        let (a, b) = self.links[link].ends;
        self.face_down(a, link);
        self.face_down(b, link);
    }

    /// A link works again, and both ends see it.
    pub fn mend(&mut self, link: usize) {
        self.links[link].up = true;
        let ((a, b), now) = (self.links[link].ends, self.now);
        self.each(a, |router| router.retry_links(now));
        self.each(b, |router| router.retry_links(now));
    }

    /// Every node tries its links again at once.
    pub fn retry_all(&mut self) {
        let now = self.now;
        (0..self.len()).for_each(|node| self.each(node, |router| router.retry_links(now)));
    }

    fn face_down(&mut self, node: usize, link: usize) {
        if matches!(self.nodes[node].kind, Some(Kind::Plain(_))) {
            // Its faces are UDP, which nothing brings down.
            return;
        }
        let face = FACE + link as u64;
        self.nodes[node].forwarder.face_down(face);
        self.changed.extend(0..self.nodes.len());
        let now = self.now;
        self.each(node, |router| router.face_down(now, face));
    }

    /// A node says goodbye and ends.
    pub fn stop(&mut self, node: usize) {
        let now = self.now;
        self.each(node, |router| router.stop(now));
        self.nodes[node].kind = None;
        self.nodes[node].forwarder.restart();
        self.changed.extend(0..self.nodes.len());
    }

    /// The forwarder of a node starts again: faces and routes are gone, and its routers see that.
    pub fn restart_forwarder(&mut self, node: usize) {
        let now = self.now;
        self.nodes[node].forwarder.restart();
        self.changed.extend(0..self.nodes.len());
        self.each(node, |router| router.forwarder_restarted(now));
    }
}
