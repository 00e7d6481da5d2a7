//! The ways of a name, followed node by node.
//!
//! A request with HopLimit n is answered by the n-th node. Where a node would ask several others,
//! requests with legs look at each of them: the node sends them on by the face that is named.

use super::end::End;
use super::hop::{Hop, Next};
use super::link::Link;
use crate::session;
use crate::stop::Stop;
use onym_client::blocking::Client;
use onym_client::{Error, Request, Unanswered};
use onym_crypto::{Entropy as _, SystemEntropy};
use onym_wire::push::Id;
use onym_wire::trace::{self, Kind, LEGS_MAX, Leg, Publication, Reply};
use onym_wire::{NackReason, Name};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Hops without an answer after which a way is given up.
const SILENT_MAX: u8 = 3;
/// Requests of one trace.
const REQUESTS_MAX: usize = 400;
/// Requests that are sent without a pause; nodes take 20 at once from a face, and 20 a second.
const REQUESTS_FREE: usize = 12;
/// The pause before each further one.
const PAUSE: Duration = Duration::from_millis(60);
/// The largest HopLimit of a ping.
const PING_HOPS: u8 = 64;

/// One hop, as it is told.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Told<'a> {
    Hop {
        hop: u8,
        /// How many ways were taken apart before: 0 for the one that begins here.
        depth: usize,
        rtt_ms: f64,
        #[serde(flatten)]
        told: &'a Hop,
    },
    Silent {
        hop: u8,
        depth: usize,
    },
    /// A node asks several others; this way goes by `face`.
    Branch {
        depth: usize,
        node: &'a str,
        face: u32,
        uri: &'a str,
    },
}

impl Told<'_> {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Hop { hop, depth, rtt_ms, told } => {
                let from = match (told.face, &told.uri) {
                    (Some(face), Some(uri)) => format!(" (from face {face} {uri})"),
                    _ => String::new(),
                };
                let (indent, node) = ("  ".repeat(*depth), &told.node);
                format!("{indent}{hop:>2}  {node}  {rtt_ms:.3} ms  {}{from}", told.decision())
            }
            Self::Silent { hop, depth } => format!("{}{hop:>2}  *", "  ".repeat(*depth)),
            Self::Branch { depth, node, face, uri } => {
                format!("{}by face {face} {uri} of {node}:", "  ".repeat(*depth))
            }
        }
    }
}

/// What came of one request.
enum Answer {
    Hop(Box<Hop>, f64),
    Nack(NackReason),
    Silence,
}

/// What is followed.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Name(Name),
    /// An item of the push half.
    Item(Id),
}

/// A way under examination.
#[derive(Clone, Default)]
struct Way {
    /// What the next node is asked about.
    target: Name,
    /// What the way to the last node and back took.
    rtt_ms: f64,
    /// Hops of the first leg, which begins at this node's own forwarder.
    first: u8,
    /// The further legs.
    legs: Vec<Leg>,
    depth: usize,
    /// The nodes passed.
    nodes: Vec<String>,
    /// The face by which the last of them sends it on.
    by: Option<Next>,
}

impl Way {
    /// One hop further, as the nodes themselves send it on.
    fn step(&mut self) {
        match self.legs.last_mut() {
            Some(leg) => leg.hops = leg.hops.saturating_add(1),
            None => self.first = self.first.saturating_add(1),
        }
    }

    fn hop(&self) -> u8 {
        self.legs.iter().fold(self.first, |sum, leg| sum.saturating_add(leg.hops))
    }

    /// The way that goes on by a face of the last node.
    fn branch(&self, next: &Next) -> Self {
        let mut way = self.clone();
        way.legs.push(Leg { face: next.face, hops: 1 });
        (way.depth, way.by) = (self.depth + 1, Some(next.clone()));
        way
    }
}

/// A trace.
pub(crate) struct Walk<'a> {
    client: Client,
    what: &'a What,
    timeout: Duration,
    hops_max: u8,
    stop: &'a Stop,
    requests: usize,
    /// Whether the name of the last request that was answered was in the form of the patch of NFD.
    is_of_nfd: bool,
    seen: Vec<String>,
    /// Nodes that answered.
    pub(crate) hops: usize,
    pub(crate) ends: Vec<End>,
    /// Those that were crossed.
    pub(crate) links: Vec<Link>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        client: Client,
        what: &'a What,
        timeout: Duration,
        hops_max: u8,
        stop: &'a Stop,
    ) -> Self {
        let (seen, ends, links) = (Vec::new(), Vec::new(), Vec::new());
        let (requests, is_of_nfd, hops) = (0, false, 0);
        Self { client, what, timeout, hops_max, stop, requests, is_of_nfd, seen, hops, ends, links }
    }

    /// Follows all ways, one after the other.
    pub(crate) fn run(
        &mut self,
        tell: &mut dyn FnMut(&Told<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let target = match self.what {
            What::Name(name) => name.clone(),
            What::Item(id) => Publication { item: id.octets(), frame: None }.to_target(),
        };
        let mut ways = vec![Way { target, first: 1, ..Way::default() }];
        while let Some(way) = ways.pop() {
            if let (Some(node), Some(by)) = (way.nodes.last(), &way.by)
                && way.depth > 0
            {
                let (depth, face, uri) = (way.depth, by.face, by.uri.as_str());
                tell(&Told::Branch { depth, node, face, uri })?;
            }
            let branches = self.follow(way, tell)?;
            ways.extend(branches.into_iter().rev());
        }
        Ok(())
    }

    /// Follows one way to its end, or to where it parts; the ways from there.
    fn follow(
        &mut self,
        mut way: Way,
        tell: &mut dyn FnMut(&Told<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Way>> {
        let mut silent = 0;
        loop {
            let (hop, depth) = (way.hop(), way.depth);
            if hop > self.hops_max {
                return self.end(End::TooFar { hops: self.hops_max });
            }
            if self.requests >= REQUESTS_MAX {
                return self.end(End::TooMany);
            }
            let (told, rtt_ms) = match self.ask(&way)? {
                Answer::Hop(told, rtt_ms) => (told, rtt_ms),
                Answer::Nack(reason) => {
                    let after = way.nodes.last().cloned();
                    return self.end(match after {
                        // It came to a forwarder twice.
                        Some(before) if reason == NackReason::DUPLICATE => {
                            End::Loop { node: None, before }
                        }
                        after => End::Nack { after, reason: reason.to_string() },
                    });
                }
                Answer::Silence => {
                    tell(&Told::Silent { hop, depth })?;
                    silent += 1;
                    if silent == SILENT_MAX {
                        let (after, by) = (way.nodes.last().cloned(), way.by);
                        return self.end(End::Silent { after, by });
                    }
                    way.step();
                    continue;
                }
            };
            silent = 0;
            self.hops += 1;
            tell(&Told::Hop { hop, depth, rtt_ms, told: &told })?;
            if let (Some(from), Some(by)) = (way.nodes.last(), &way.by) {
                self.links.push(Link {
                    from: from.clone(),
                    face: by.face,
                    uri: by.uri.clone(),
                    to: told.node.clone(),
                    delay_ms: (rtt_ms - way.rtt_ms).max(0.0) / 2.0,
                    copies: 0,
                });
            }
            way.rtt_ms = rtt_ms;
            if let Some(end) = self.end_at(&way, &told) {
                return self.end(end);
            }
            way.nodes.push(told.node.clone());
            let onward: Vec<&Next> = told.onward().collect();
            if let (What::Item(id), Some(frame)) = (self.what, &told.frame) {
                let frame = Some(frame.as_slice());
                way.target = Publication { item: id.octets(), frame }.to_target();
            }
            match onward.as_slice() {
                // Names are followed by routes, and publications by faces.
                [_] if way.legs.len() < LEGS_MAX && matches!(self.what, What::Item(_)) => {
                    return Ok(vec![way.branch(onward[0])]);
                }
                // It told the code alone.
                [] if told.is_told() => return self.end(End::at(&told)),
                [] => way.by = None,
                [one] => way.by = Some((*one).clone()),
                several => {
                    if way.legs.len() >= LEGS_MAX {
                        return self.end(End::TooMany);
                    }
                    return Ok(several.iter().map(|next| way.branch(next)).collect());
                }
            }
            way.step();
        }
    }

    /// How the way ends at this node, if it does.
    fn end_at(&mut self, way: &Way, told: &Hop) -> Option<End> {
        let node = told.node.clone();
        // The first version of the patch of NFD tells what a forwarder decides only where hops are left,
        // and so at the second request that comes to it; before that it says that hops ended there.
        if told.is_end() && !told.is_told() && way.nodes.last() == Some(&node) {
            return Some(End::at(told));
        }
        if way.nodes.contains(&node) && told.has_own_name() {
            let before = way.nodes.last().cloned().unwrap_or_default();
            return Some(End::Loop { node: Some(node), before });
        }
        if self.seen.contains(&node) && way.depth > 0 && told.has_own_name() {
            return Some(End::Joined { node });
        }
        self.seen.push(node);
        if told.is_end() && told.onward().next().is_none() {
            return Some(End::at(told));
        }
        if told.is_end() {
            // One of several ways ends here.
            self.ends.push(End::at(told));
        }
        None
    }

    fn end(&mut self, end: End) -> anyhow::Result<Vec<Way>> {
        self.ends.push(end);
        Ok(Vec::new())
    }

    /// Asks the node at the end of the way, twice when it does not answer: the second time with a name
    /// of the other form. Our nodes take both forms for requests, others only one. A forwarder that takes
    /// neither forwards the request as an ordinary Interest, to which an application may return a Nack.
    fn ask(&mut self, way: &Way) -> anyhow::Result<Answer> {
        let (form, mut nack) = (self.is_of_nfd, None);
        for is_of_nfd in [form, !form] {
            match self.request(way, is_of_nfd)? {
                Answer::Silence => {}
                Answer::Nack(reason) => nack = nack.or(Some(reason)),
                answer @ Answer::Hop(..) => {
                    self.is_of_nfd = is_of_nfd;
                    return Ok(answer);
                }
            }
        }
        Ok(nack.map_or(Answer::Silence, Answer::Nack))
    }

    fn request(&mut self, way: &Way, is_of_nfd: bool) -> anyhow::Result<Answer> {
        self.requests += 1;
        if self.requests > REQUESTS_FREE {
            self.pause()?;
        }
        let mut nonce = [0; 4];
        SystemEntropy.fill(&mut nonce);
        let mut legs = Vec::new();
        way.legs.iter().for_each(|leg| leg.write(&mut legs));
        let name = match is_of_nfd {
            true => trace::request_of_nfd(&way.target, nonce),
            false => trace::request(Kind::Trace, &way.target, nonce),
        };
        let request = Request {
            must_be_fresh: true,
            lifetime: self.timeout,
            hop_limit: Some(way.first),
            parameters: (!legs.is_empty()).then_some(legs),
            ..Request::new(name)
        };
        let start = Instant::now();
        match self.client.request(&request) {
            Ok(packet) => {
                let rtt_ms = (start.elapsed().as_secs_f64() * 1e6).round() / 1e3;
                let reply = Reply::parse(packet.data().content);
                let hop = reply.map(|reply| Answer::Hop(Box::new(Hop::of(&reply)), rtt_ms));
                Ok(hop.unwrap_or(Answer::Silence))
            }
            Err(Error::Unanswered { why: Unanswered::Timeout, .. }) => Ok(Answer::Silence),
            Err(Error::Unanswered { why: Unanswered::Nack(reason), .. }) => {
                Ok(Answer::Nack(reason))
            }
            Err(error) => Err(session::failure(error)),
        }
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        let (end, stop) = (Instant::now() + PAUSE, self.stop);
        let mut over = || stop.is_set() || Instant::now() >= end;
        self.client.run(PAUSE, &mut over, &mut |_| {}).map_err(session::failure)?;
        if stop.is_set() { Err(session::failure(Error::Stopped)) } else { Ok(()) }
    }

    /// The smallest HopLimit with which a ping server under the name answers.
    pub(crate) fn pinged(&mut self, name: &Name) -> anyhow::Result<Option<u8>> {
        if !self.answers(name, PING_HOPS)? {
            return Ok(None);
        }
        let (mut silent, mut answers) = (0, PING_HOPS);
        while answers - silent > 1 {
            let middle = silent + (answers - silent) / 2;
            match self.answers(name, middle)? {
                true => answers = middle,
                false => silent = middle,
            }
        }
        Ok(Some(answers))
    }

    /// Whether a ping is answered, with the names of ndnping.
    fn answers(&mut self, prefix: &Name, hop_limit: u8) -> anyhow::Result<bool> {
        let mut number = [0; 8];
        SystemEntropy.fill(&mut number);
        let mut name = prefix.clone();
        name.append_generic("ping").append_generic(u64::from_be_bytes(number).to_string());
        let (lifetime, must_be_fresh) = (self.timeout, true);
        let hop_limit = Some(hop_limit);
        let request = Request { must_be_fresh, lifetime, hop_limit, ..Request::new(name) };
        match self.client.request(&request) {
            Ok(_) => Ok(true),
            Err(Error::Unanswered { .. }) => Ok(false),
            Err(error) => Err(session::failure(error)),
        }
    }
}
