//! Content distribution as the paper of that name has it: clients and servers around one router.
//!
//! Eight clients, each with a window of its own, ask for contents; `diversity` says how many
//! different ones there are. Every content lives on one of the servers, which answers at once. All
//! clients and servers are one thread, each with a face of its own to the router; what the router
//! can carry is told by its CPU seconds, whether or not this thread can saturate it.

use crate::link::{Ends, connect_tcp, connect_unix, register};
use crate::proc;
use anyhow::{Context, Result, ensure};
use clap::Args;
use onym_face::Face;
use onym_frame::RxFrame;
use onym_wire::data::{Data, DataBuilder};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::lp::{LpHeader, LpPacket};
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Clients and servers around one router.
#[derive(Debug, Args)]
pub struct DistributeArgs {
    /// TCP address of the router.
    #[arg(long, conflicts_with = "unix", required_unless_present = "unix")]
    pub tcp: Option<SocketAddr>,
    /// Unix socket of the router.
    #[arg(long)]
    pub unix: Option<PathBuf>,
    /// Clients, and as many servers.
    #[arg(long, default_value_t = 8)]
    pub clients: u32,
    /// Different contents that are asked for.
    #[arg(long, default_value_t = 1)]
    pub diversity: u32,
    /// Components of a name, at least 2.
    #[arg(long, default_value_t = 4)]
    pub components: usize,
    /// Octets of content in a packet.
    #[arg(long, default_value_t = 1024)]
    pub payload: usize,
    /// Interests that each client has in flight (31 is the default of `ccncatchunks2`).
    #[arg(long, default_value_t = 31)]
    pub window: u32,
    /// Seconds before the measurement; with `fill` the most that it may take.
    #[arg(long, default_value_t = 0.5)]
    pub warm_up: f64,
    /// Data that servers send before the measurement, so that a content store of this size is full:
    /// of other contents than those that are measured, one for each client.
    #[arg(long)]
    pub fill: Option<u64>,
    /// Seconds that are measured; with `packets` the most that it may take.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Data that clients receive in the measurement: the same work on a slow machine as on a fast.
    #[arg(long, conflicts_with = "segments")]
    pub packets: Option<u64>,
    /// Segments that each client fetches, once; then times of downloads are told, and `seconds` is
    /// the most that it may take.
    #[arg(long)]
    pub segments: Option<u32>,
    /// Milliseconds between the starts of one client and the next; with `segments`.
    #[arg(long, default_value_t = 0)]
    pub stagger_ms: u64,
    /// The router's process.
    #[arg(long)]
    pub watch: u32,
    /// Core to run on.
    #[arg(long)]
    pub core: Option<usize>,
}

/// What one run measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DistributeResult {
    /// Seconds that it took.
    pub seconds: f64,
    /// Data that clients received.
    pub received: u64,
    /// Data that servers sent.
    pub served: u64,
    /// Octets of content that clients received.
    pub content_octets: u64,
    /// Octets of whole Data packets that clients received.
    pub packet_octets: u64,
    /// Nacks received.
    pub nacks: u64,
    /// CPU seconds of the router.
    pub router_cpu_s: f64,
    /// CPU seconds of this program.
    pub own_cpu_s: f64,
    /// Resident octets of the router at the end.
    pub router_rss: u64,
    /// Of each client: from its first Interest to its last Data, in seconds; empty without
    /// `segments`, `null` for one that did not end in time.
    pub download_s: Vec<Option<f64>>,
    /// From the first Interest of any client to the last Data of the last one; with `segments`.
    pub distribution_s: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Client {
    /// When it begins; its first Interest leaves then.
    begin: Instant,
    next: u32,
    received: u32,
    waiting: u32,
    first: Option<Instant>,
    last: Option<Instant>,
}

struct Run<'a> {
    args: &'a DistributeArgs,
    /// Clients first, then servers.
    ends: Ends,
    /// Names of the contents, without a segment: those that are measured, then those of the fill.
    contents: Vec<Name>,
    clients: Vec<Client>,
    /// Whether the store is filled: each client asks for a content that nobody else asks for.
    is_filling: bool,
    payload: Vec<u8>,
    nonce: u32,
    scratch: Vec<u8>,
    packet: Vec<u8>,
    result: DistributeResult,
}

/// How a name begins: with three components there is no place for the site, with two none for the
/// server, and each content has a route of its own.
fn prefix(components: usize, server: u32, content: u32) -> Name {
    let mut name = Name::new();
    if components > 3 {
        name.append_generic("wustl.edu");
    }
    if components > 2 {
        name.append_generic(format!("server{server:02}"));
    } else {
        name.append_generic(format!("content{content:03}"));
    }
    name
}

/// The name of a content without its segment.
fn content_name(args: &DistributeArgs, content: u32) -> Name {
    let mut name = prefix(args.components, content % args.clients, content);
    for level in 4..args.components {
        name.append_generic(format!("level{:02}", level - 4));
    }
    if args.components > 2 {
        name.append_generic(format!("content{content:03}"));
    }
    name
}

/// Registers everything that a server has.
fn serve_all(mut face: Box<dyn Face>, args: &DistributeArgs, server: u32) -> Result<Box<dyn Face>> {
    if args.components > 2 {
        return register(face, &prefix(args.components, server, 0));
    }
    for content in (server..args.diversity + args.clients).step_by(args.clients as usize) {
        face = register(face, &prefix(args.components, server, content))?;
    }
    Ok(face)
}

/// Runs and returns what was measured.
///
/// # Errors
/// When the router does not answer, closes a face, or carries nothing for ten seconds.
pub fn run(args: &DistributeArgs) -> Result<DistributeResult> {
    if let Some(core) = args.core {
        onym_sys::thread::pin_to_core(core)?;
    }
    ensure!(args.components >= 2, "--components: at least 2, not {}", args.components);
    ensure!(args.clients > 0 && args.diversity > 0, "--clients and --diversity: at least 1");
    let connect = || -> Result<Box<dyn Face>> {
        match (&args.tcp, &args.unix) {
            (Some(address), _) => connect_tcp(*address),
            (None, Some(path)) => connect_unix(path),
            (None, None) => anyhow::bail!("--tcp or --unix is needed"),
        }
    };
    let mut faces = Vec::new();
    for _ in 0..args.clients {
        faces.push(connect()?);
    }
    for server in 0..args.clients {
        faces.push(serve_all(connect()?, args, server)?);
    }
    let now = Instant::now();
    let client = |n: u32| Client {
        begin: now + Duration::from_millis(args.stagger_ms) * n,
        next: 0,
        received: 0,
        waiting: 0,
        first: None,
        last: None,
    };
    let mut run = Run {
        args,
        ends: Ends::new(faces)?,
        contents: (0..args.diversity + args.clients).map(|n| content_name(args, n)).collect(),
        clients: (0..args.clients).map(client).collect(),
        is_filling: false,
        payload: vec![0x5a; args.payload],
        nonce: std::process::id(),
        scratch: Vec::new(),
        packet: Vec::new(),
        result: DistributeResult::default(),
    };
    if args.segments.is_none() {
        let fill = args.fill.unwrap_or(u64::MAX);
        run.is_filling = args.fill.is_some();
        run.drive(Duration::from_secs_f64(args.warm_up), |run| run.result.served >= fill)?;
        if run.is_filling {
            run.is_filling = false;
            // All begin their contents together; the fill's last Data still come, a window of each.
            run.clients.iter_mut().for_each(|client| client.next = 0);
        }
    }
    run.measure()
}

impl Run<'_> {
    fn measure(mut self) -> Result<DistributeResult> {
        self.result = DistributeResult::default();
        let (router, own) =
            (proc::cpu_seconds(self.args.watch)?, onym_sys::thread::process_cpu_time());
        let start = Instant::now();
        let (segments, packets) = (self.args.segments, self.args.packets.unwrap_or(u64::MAX));
        self.drive(Duration::from_secs_f64(self.args.seconds), |run| {
            let got_all = |n| run.clients.iter().all(|client| client.received >= n);
            run.result.received >= packets || segments.is_some_and(got_all)
        })?;
        self.result.seconds = start.elapsed().as_secs_f64();
        self.result.router_cpu_s = proc::cpu_seconds(self.args.watch)? - router;
        self.result.own_cpu_s =
            onym_sys::thread::process_cpu_time().saturating_sub(own).as_secs_f64();
        self.result.router_rss = proc::resident_octets(self.args.watch)?;
        if let Some(segments) = self.args.segments {
            let done = |c: &Client| (c.received >= segments).then_some((c.first?, c.last?));
            let ends: Vec<_> = self.clients.iter().map(done).collect();
            let spans = ends.iter().map(|end| end.map(|(a, b)| (b - a).as_secs_f64()));
            self.result.download_s = spans.collect();
            let whole: Option<Vec<_>> = ends.into_iter().collect();
            self.result.distribution_s = whole.and_then(|ends| {
                let first = ends.iter().map(|(first, _)| *first).min()?;
                Some((ends.iter().map(|(_, last)| *last).max()? - first).as_secs_f64())
            });
        }
        Ok(self.result)
    }

    fn drive(&mut self, time: Duration, is_done: impl Fn(&Self) -> bool) -> Result<()> {
        let end = Instant::now() + time;
        let mut frames = Vec::new();
        let mut moved = Instant::now();
        loop {
            let now = Instant::now();
            if now >= end || is_done(self) {
                return Ok(());
            }
            self.fill(now);
            self.ends.flush()?;
            self.ends.wait(Some(end.min(now + Duration::from_millis(5))))?;
            let before = self.result.received;
            for i in 0..self.ends.ends.len() {
                self.ends.receive(i, &mut frames)?;
                if i < self.clients.len() {
                    self.consume(i, &mut frames)?;
                } else {
                    self.serve(i, &mut frames)?;
                }
            }
            if self.result.received > before {
                moved = now;
            }
            let is_stalled = now.duration_since(moved) > Duration::from_secs(10);
            ensure!(!is_stalled, "the router carried nothing for ten seconds");
        }
    }

    /// The name of a client's `n`-th Interest.
    fn name(&self, client: u32, n: u32) -> Name {
        let diversity = self.args.diversity;
        // More contents than clients: each takes turns among several.
        let turns = if self.is_filling { 1 } else { diversity.div_ceil(self.args.clients) };
        let content = match self.is_filling {
            true => diversity + client,
            false => (client + self.args.clients * (n % turns)) % diversity,
        };
        let mut name = self.contents[content as usize].clone();
        name.append_segment(u64::from(n / turns));
        name
    }

    /// Keeps every client's window full.
    fn fill(&mut self, now: Instant) {
        for i in 0..self.clients.len() {
            while self.clients[i].waiting < self.args.window
                && self.clients[i].begin <= now
                && self.args.segments.is_none_or(|n| self.clients[i].next < n)
            {
                let client = u32::try_from(i).expect("invariant: few clients");
                let name = self.name(client, self.clients[i].next);
                self.nonce = self.nonce.wrapping_add(0x9e37_79b9);
                self.packet.clear();
                let nonce = Some(self.nonce.to_be_bytes());
                InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }
                    .write(&mut self.packet);
                self.ends.ends[i].push(&self.packet, None);
                let client = &mut self.clients[i];
                client.first.get_or_insert(now);
                client.next += 1;
                client.waiting += 1;
            }
        }
    }

    fn consume(&mut self, i: usize, frames: &mut Vec<RxFrame>) -> Result<()> {
        for frame in frames.drain(..) {
            let lp = LpPacket::parse(&frame.bytes)?;
            if lp.nack.is_some() {
                self.result.nacks += 1;
            }
            let client = &mut self.clients[i];
            client.waiting = client.waiting.saturating_sub(1);
            let Some(packet) = lp.fragment else { continue };
            if lp.nack.is_none() {
                client.received += 1;
                client.last = Some(Instant::now());
                self.result.received += 1;
                self.result.packet_octets += packet.len() as u64;
                self.result.content_octets += Data::parse(packet)?.content.len() as u64;
            }
        }
        Ok(())
    }

    fn serve(&mut self, i: usize, frames: &mut Vec<RxFrame>) -> Result<()> {
        for frame in frames.drain(..) {
            let lp = LpPacket::parse(&frame.bytes)?;
            let Some(packet) = lp.fragment else { continue };
            let interest = Interest::parse(packet).context("the router sent no Interest")?;
            self.packet.clear();
            let builder = DataBuilder {
                freshness_ms: 10_000,
                ..DataBuilder::new(interest.name, &self.payload)
            };
            // The signature is not computed: nobody on the way looks at it.
            builder.write(&mut self.packet, &SignatureInfo::default(), |_| {
                Ok::<_, std::fmt::Error>([0; 32])
            })?;
            self.result.served += 1;
            self.scratch.clear();
            let header = LpHeader { pit_token: lp.pit_token.unwrap_or(&[]), ..LpHeader::default() };
            header.write(&mut self.scratch, self.packet.len());
            self.scratch.extend_from_slice(&self.packet);
            self.ends.ends[i].push(&self.scratch, None);
        }
        Ok(())
    }
}
