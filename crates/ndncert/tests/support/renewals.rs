//! Many nodes whose certificates are renewed by possession, in virtual time, over the real state
//! machines of clients and authority.

use super::{NOW_MS, Seeded, anchor, copy, key};
use onym_crypto::cert::validity_of_days;
use onym_crypto::{Certificate, Issue, PrivateKey, Signer};
use onym_ndncert::authority::Kind;
use onym_ndncert::message::Parameter;
use onym_ndncert::{Authority, Enrolment, Now, Progress, Reply, Settings, client, renew};
use onym_wire::{Component, InterestBuilder, Name};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::time::{Duration, Instant};

const DAY_S: u64 = 86_400;

/// What happens to the nodes.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) nodes: u32,
    /// Validity of every certificate, in days.
    pub(crate) days: u32,
    /// All were issued within so many seconds.
    pub(crate) issued_within_s: u64,
    /// The authority is away on these days.
    pub(crate) away: Range<u64>,
    /// Days that are looked at.
    pub(crate) until_day: u64,
    pub(crate) seed: u64,
}

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) tries: u64,
    pub(crate) renewed: u64,
    /// Certificates that ended before they were renewed.
    pub(crate) expired: u64,
    /// Tries that the authority did not answer because it had too many.
    pub(crate) throttled: u64,
    /// Most tries in a second, a minute, an hour.
    pub(crate) peak_s: u64,
    pub(crate) peak_min: u64,
    pub(crate) peak_hour: u64,
    /// Time of the processor that the authority took.
    pub(crate) authority: Duration,
}

struct Node {
    name: Name,
    key: PrivateKey,
    certificate: Certificate,
    seed: u64,
    failures: u32,
}

fn now(second: u64) -> Now {
    Now { unix_ms: NOW_MS + second * 1000, tick_ms: second * 1000 }
}

fn second_of(unix_s: i64) -> u64 {
    u64::try_from(unix_s).unwrap().saturating_sub(NOW_MS / 1000)
}

/// An authority with its own clock of costs.
struct Desk {
    authority: Authority,
    entropy: Seeded,
    took: Duration,
}

impl Desk {
    #[allow(clippy::disallowed_methods, reason = "what the authority costs is measured")]
    fn ask(&mut self, at: Now, interest: &[u8]) -> Option<Vec<u8>> {
        let begun = Instant::now();
        let reply = self.authority.receive(at, interest, &mut self.entropy);
        self.took += begun.elapsed();
        while self.authority.poll_order().is_some() {}
        match reply {
            Reply::Data(data) => Some(data),
            _ => None,
        }
    }

    /// A renewed certificate; nothing when the authority does not answer.
    fn renew(
        &mut self,
        node: &Node,
        second: u64,
        anchor: &Certificate,
        days: u32,
    ) -> Option<Certificate> {
        let (at, entropy) = (now(second), &mut Seeded(node.seed ^ second));
        let mut validity = validity_of_days(at.unix_ms, days);
        validity.not_before.0 += 1;
        validity.not_after.0 -= 1;
        let (key, name) = (copy(&node.key), node.name.as_ref());
        let mut enrolment =
            Enrolment::new(anchor.clone(), key, name, validity, at.unix_ms).unwrap();
        let new = enrolment.begin(at.unix_ms, entropy).unwrap();
        let offered = self.ask(at, &new)?;
        enrolment.began(&offered, entropy).unwrap();
        let mut parameters = vec![Parameter::new("issued-cert", node.certificate.wire())];
        loop {
            let step = enrolment.challenge("possession", parameters, at.unix_ms, entropy).unwrap();
            let reply = self.ask(at, &step)?;
            match enrolment.challenged(&reply).unwrap() {
                Progress::Asked(reply) => parameters = client::proof(&reply, &node.key).unwrap(),
                Progress::Issued { name, .. } => {
                    let mut interest = Vec::new();
                    InterestBuilder::new(name.as_ref()).write(&mut interest);
                    let data = self.ask(at, &interest)?;
                    return Some(enrolment.accept(name.as_ref(), &data, at.unix_ms).unwrap());
                }
            }
        }
    }
}

/// Most of what is in any period of so many seconds that begins at a multiple of it.
fn peak(by_second: &BTreeMap<u64, u64>, period: u64) -> u64 {
    let mut all = BTreeMap::<u64, u64>::new();
    for (second, count) in by_second {
        *all.entry(second / period).or_default() += count;
    }
    all.into_values().max().unwrap_or(0)
}

pub(crate) fn run(plan: &Plan) -> Seen {
    let root = key();
    let certificate = anchor("/ca", &root);
    let signer = Signer::key(root, certificate.name().to_name());
    let settings = Settings {
        max_validity_s: u64::from(plan.days) * DAY_S,
        challenges: vec![Kind::Possession],
        ..Settings::default()
    };
    let authority = Authority::new(certificate.clone(), signer.clone(), settings, now(0)).unwrap();
    let mut desk = Desk { authority, entropy: Seeded(plan.seed), took: Duration::ZERO };
    let mut nodes = Vec::new();
    let mut due = BinaryHeap::new();
    for number in 0..plan.nodes {
        let name: Name = format!("/ca/{number}/KEY/1").parse().unwrap();
        let (key, at) = (key(), u64::from(number) * plan.issued_within_s / u64::from(plan.nodes));
        let now_ms = now(at).unix_ms;
        let request = Certificate::self_signed(name.as_ref(), &key, now_ms).unwrap();
        let validity = validity_of_days(now_ms, plan.days);
        let issue = Issue { issuer_id: Component::generic(b"NDNCERT"), now_ms, validity };
        let certificate = Certificate::issue(&request, &signer, &issue).unwrap();
        // As a router of the daemon chooses it: by its key.
        let digest = certificate.public_key().key_digest();
        let seed = u64::from_be_bytes(*digest.first_chunk().unwrap()) ^ plan.seed;
        due.push(Reverse((second_of(renew::due(validity, seed)), number)));
        nodes.push(Node { name, key, certificate, seed, failures: 0 });
    }
    let mut seen = Seen::default();
    let mut by_second = BTreeMap::<u64, u64>::new();
    while let Some(Reverse((second, number))) = due.pop() {
        if second > plan.until_day * DAY_S {
            break;
        }
        let node = &mut nodes[usize::try_from(number).unwrap()];
        seen.tries += 1;
        *by_second.entry(second).or_default() += 1;
        let old = node.certificate.validity();
        seen.expired += u64::from(second > second_of(old.not_after.0));
        let away = plan.away.contains(&(second / DAY_S));
        let throttled = desk.authority.counters().silent;
        let renewed = if away { None } else { desk.renew(node, second, &certificate, plan.days) };
        seen.throttled += desk.authority.counters().silent - throttled;
        let next = match renewed {
            Some(new) => {
                seen.renewed += 1;
                node.failures = 0;
                node.certificate = new;
                second_of(renew::due(node.certificate.validity(), node.seed))
            }
            None => {
                node.failures += 1;
                let seed = node.seed.rotate_left(node.failures % 64) ^ second;
                second + renew::retry_after(old, node.failures, seed)
            }
        };
        due.push(Reverse((next, number)));
    }
    seen.peak_s = peak(&by_second, 1);
    seen.peak_min = peak(&by_second, 60);
    seen.peak_hour = peak(&by_second, 3600);
    seen.authority = desk.took;
    seen
}
