//! Ten domains with loops among them: whatever is lost, is cut off or dies between them, what is
//! published arrives in order or is told as missed, and goes another way as soon as the silence of a
//! link is noticed (spec/push.md, P-59, P-80, P-81).

mod push_heard;

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_wire::push::{Id, Kind, Label, Role, Strategy};
use push_heard::Heard;
use std::time::Duration;

const DOMAINS: usize = 10;
const PUBLISHER: AppId = AppId(1);
const STRATEGY: Strategy = Strategy::INTER_DOMAIN;
/// Time between publications of an item.
const TICK: Duration = Duration::from_millis(100);
/// Items beneath /1: the domain that publishes it, its label, and who subscribes to it everywhere.
const ITEMS: [(usize, &str, AppId); 2] = [(0, "/2", AppId(2)), (5, "/3", AppId(3))];

fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

/// The rendezvous and topology manager of a domain; behind it stand its two border nodes.
const fn home(domain: usize) -> usize {
    domain * 3
}

struct Federation {
    net: PushNetwork,
    /// Links between domains.
    between: Vec<(usize, usize, usize)>,
    published: [u32; 2],
    heard: Vec<[Heard; 2]>,
}

impl Federation {
    fn new(seed: u64) -> Self {
        let mut net = PushNetwork::new(seed);
        let (delay, loss_ppm) = (Duration::from_millis(2), 3000);
        let link = LinkConfig { delay, loss_ppm, ..LinkConfig::default() };
        for domain in 0..DOMAINS {
            for n in 0..3 {
                let both = Role::RENDEZVOUS.and(Role::TOPOLOGY);
                let role = if n == 0 { both } else { Role::default() };
                net.add_node((home(domain) + n) as u64 + 1, role, |config| {
                    config.domain = Some(Label::from_u64(0xD0 + domain as u64));
                });
            }
            for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                net.link(home(domain) + a, home(domain) + b, link);
            }
        }
        // A ring, and chords: every domain is reached without any one border node.
        let ring = (0..DOMAINS).map(|d| (d, (d + 1) % DOMAINS));
        let chords = [(0, 3), (2, 6), (4, 8), (7, 1)];
        let mut between = Vec::new();
        for (a, b) in ring.chain(chords) {
            between.push((net.link(home(a) + 2, home(b) + 1, link), a, b));
        }
        net.run_for(Duration::from_secs(10));
        let heard = (0..DOMAINS).map(|_| <[Heard; 2]>::default()).collect();
        Self { net, between, published: [0; 2], heard }
    }

    fn ask(&mut self, domain: usize, app: AppId, kind: Kind, child: &str, prefix: &str) {
        let request = Request { kind, id: id(child), prefix: id(prefix), strategy: STRATEGY };
        self.net.request(home(domain), app, 0, &request);
    }

    /// Both items are published, and everybody subscribed to them.
    fn matched(seed: u64) -> Self {
        let mut all = Self::new(seed);
        all.ask(0, PUBLISHER, Kind::PUBLISH_SCOPE, "/1", "/");
        all.net.run_for(Duration::from_secs(2));
        for (domain, item, _) in ITEMS {
            all.ask(domain, PUBLISHER, Kind::PUBLISH_ITEM, item, "/1");
        }
        all.net.run_for(Duration::from_secs(2));
        for (_, item, app) in ITEMS {
            (0..DOMAINS).for_each(|d| all.ask(d, app, Kind::SUBSCRIBE_ITEM, item, "/1"));
        }
        all.net.run_for(Duration::from_secs(3));
        for domain in 0..DOMAINS {
            for (_, item, app) in ITEMS {
                let status = all.net.event(home(domain), app);
                let is_ok = matches!(status, Some(Event::Status { status, .. }) if status.0 == 0);
                assert!(is_ok, "seed {seed}, domain {domain}, {item}: {status:?}");
            }
        }
        all
    }

    /// Publishes for so long, and takes what comes.
    fn goes_on(&mut self, seconds: u64, what: &str) {
        for _ in 0..seconds * 10 {
            for (at, (domain, item, _)) in ITEMS.into_iter().enumerate() {
                let payload = self.published[at].to_be_bytes();
                let item = id(&format!("/1{item}"));
                let data = Data::new(item, STRATEGY, &payload);
                let sent = self.net.publish(home(domain), PUBLISHER, &data).expect("up");
                assert!(sent.is_ok(), "{what}: {sent:?}");
                self.published[at] += 1;
            }
            self.net.run_for(TICK);
            self.take(what);
        }
    }

    fn take(&mut self, what: &str) {
        for (domain, heard) in self.heard.iter_mut().enumerate() {
            for ((_, item, app), heard) in ITEMS.into_iter().zip(heard) {
                while let Some(event) = self.net.event(home(domain), app) {
                    heard.take(&event, &format!("{what}, {item} in domain {domain}"));
                }
            }
        }
        for (domain, ..) in ITEMS {
            while self.net.event(home(domain), PUBLISHER).is_some() {}
        }
    }

    /// These domains are up to a second behind what is published, and no more.
    fn is_up_to_date(&self, item: usize, domains: impl Iterator<Item = usize>, what: &str) {
        for domain in domains {
            let (heard, published) = (&self.heard[domain][item], self.published[item]);
            let is_near = heard.next.is_some_and(|next| next + 10 >= published);
            assert!(is_near, "{what}: item {item} in domain {domain}: {published}, {heard:?}");
        }
    }

    fn all_are_up_to_date(&self, what: &str) {
        (0..ITEMS.len()).for_each(|item| self.is_up_to_date(item, 0..DOMAINS, what));
    }
}

#[test]
fn ten_domains_get_everything_in_order_or_hear_what_they_missed_whatever_dies_between_them() {
    let seed = 7;
    let mut all = Federation::matched(seed);
    all.goes_on(2, "at first");
    all.all_are_up_to_date("at first");
    for domain in 0..DOMAINS {
        let border = home(domain) + 1 + domain % 2;
        let what = format!("without node {border} of domain {domain}");
        all.net.crash(border);
        // Noticed within 3.5 s, and told from domain to domain.
        all.goes_on(5, &what);
        all.all_are_up_to_date(&what);
        all.net.restart(border);
        all.goes_on(3, &format!("with node {border} again"));
    }
    // Two halves that hear nothing of each other.
    let is_first = |domain: usize| domain < DOMAINS / 2;
    let cut: Vec<usize> =
        all.between.iter().filter(|(_, a, b)| is_first(*a) != is_first(*b)).map(|l| l.0).collect();
    cut.iter().for_each(|link| all.net.link_down(*link));
    all.goes_on(8, "in two halves");
    all.is_up_to_date(0, (0..DOMAINS).filter(|d| is_first(*d)), "the first half");
    all.is_up_to_date(1, (0..DOMAINS).filter(|d| !is_first(*d)), "the second half");
    cut.iter().for_each(|link| all.net.link_up(*link));
    all.goes_on(6, "whole again");
    all.all_are_up_to_date("whole again");
    all.net.run_for(Duration::from_secs(5));
    all.take("at the end");
    for (domain, heard) in all.heard.iter().enumerate() {
        for (at, heard) in heard.iter().enumerate() {
            let what = format!("item {at} in domain {domain}: {heard:?}");
            assert_eq!(heard.next, Some(all.published[at]), "{what}");
            assert!(heard.got > all.published[at] / 2, "{what}");
        }
    }
}
