//! What an exchange costs by what the tables hold, within this thread: no sockets, no other thread.
//!
//! An exchange is an Interest that is sent on and the Data that answers it by its token, in turns of
//! 32 packets with one time each, as a shard has them. The packets of a block are made before its
//! clock starts. Names have eight components, in the order of a file's segments or at random; with
//! a full store each exchange evicts a packet.

use crate::report::{Report, median};
use anyhow::{Result, ensure};
use clap::Args;
use onym_forward::{Config, FaceInfo, Forwarder, Verdict};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet, Transmit};
use onym_sys::thread::thread_cpu_time;
use onym_tables::cs::CsConfig;
use onym_tables::fib::NextHop;
use onym_tables::pit::Token;
use onym_tables::{FaceId, Rng, Tick};
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

/// Exchanges by the size of the tables.
#[derive(Debug, Args)]
pub struct TablesArgs {
    /// Packets that the content store holds.
    #[arg(long, value_delimiter = ',', default_values_t = [512, 65_536, 1_000_000])]
    pub store: Vec<u32>,
    /// Pending Interests, and routes, of the large tables.
    #[arg(long, value_delimiter = ',', num_args = 2, default_values_t = [500_000, 1_000_000])]
    pub large: Vec<u32>,
    /// Exchanges of a round.
    #[arg(long, default_value_t = 200_000)]
    pub exchanges: u32,
    /// Rounds; a row is their median.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Only cases that contain this word: `store`, `asked`, `pit`, `fib`, `all`.
    #[arg(long, default_value = "")]
    pub only: String,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
}

const DOWN: FaceId = FaceId(256);
const UP: FaceId = FaceId(257);
/// Exchanges of a block, and of a turn.
const BLOCK: u32 = 2048;
const TURN: usize = 16;
const TURN_TIME: Duration = Duration::from_micros(5);
/// One Interest in so many has CanBePrefix, where that is measured.
const ASKED_EVERY: u32 = 1000;

/// In which order names come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Sequential,
    Random,
}

impl Names {
    const fn word(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }
}

/// What the tables hold.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    store: u32,
    /// Interests that wait while an exchange takes place: it ends the one that waits longest.
    pending: u32,
    routes: u32,
}

const SMALL: Sizes = Sizes { store: 512, pending: 16, routes: 1 };

/// The prefix of route `n`: four components.
fn route(n: u32) -> Name {
    let mut name = Name::new();
    for part in ["edu", "university", "lab"] {
        name.append_generic(part);
    }
    name.append_generic(format!("p{n}"));
    name
}

/// A name of eight components under one of `routes` routes, as the segments of many files.
fn name(n: u32, routes: u32) -> Name {
    let mut name = route(n.wrapping_mul(0x9e37_79b9) % routes);
    name.append_generic((n / 1000).to_string()).append_generic("measurements.bin");
    name.append_version(1_700_000_000_000).append_segment(u64::from(n % 1000));
    name
}

fn interest(name: &Name, nonce: u32, can_be_prefix: bool, must_be_fresh: bool) -> Buf {
    let mut out = Vec::new();
    let nonce = Some(nonce.wrapping_mul(0x9e37_79b9).to_be_bytes());
    let asked = InterestBuilder::new(name.as_ref());
    InterestBuilder { nonce, can_be_prefix, must_be_fresh, ..asked }.write(&mut out);
    Buf::copy_from(&out)
}

fn packet(face: FaceId, bytes: Buf, pit_token: Token) -> Packet {
    Packet { face, bytes, lp: LpIn { pit_token, ..LpIn::default() } }
}

fn data(name: &Name) -> Result<Buf> {
    let (mut out, content) = (Vec::new(), [0x5a; 100]);
    DataBuilder { freshness_ms: 10_000, ..DataBuilder::new(name.as_ref(), &content) }.write(
        &mut out,
        &SignatureInfo::default(),
        |_| Ok::<_, std::fmt::Error>([0; 32]),
    )?;
    Ok(Buf::copy_from(&out))
}

/// CPU seconds of turns.
#[derive(Debug, Default)]
struct Turns {
    all: f64,
    worst: f64,
}

impl Turns {
    fn add(&mut self, began: Duration) {
        let took = (thread_cpu_time() - began).as_secs_f64();
        self.all += took;
        self.worst = self.worst.max(took);
    }
}

struct Core {
    sizes: Sizes,
    names: Names,
    fw: Forwarder,
    out: Outbox,
    now: Tick,
    rng: Rng,
    next: u32,
    /// The number of each pending name, and our token for it.
    pending: VecDeque<(u32, Token)>,
    /// Data that came, and those of them that satisfied an Interest.
    answered: u64,
    satisfied: u64,
}

impl Core {
    /// Tables that hold what `sizes` says.
    fn new(sizes: Sizes, names: Names) -> Result<Self> {
        let cs = CsConfig {
            packets_max: sizes.store as usize,
            bytes_max: usize::MAX,
            ..CsConfig::default()
        };
        let fw = Forwarder::new(Config {
            cs,
            // One face alone gets three quarters of the PIT.
            pit_entries_max: 2 * sizes.pending as usize + 65_536,
            pit_octets_max: 4 << 30,
            fib_entries_max: sizes.routes as usize,
            ..Config::default()
        });
        let (out, now, rng) = (Outbox::default(), Tick::from_ms(1), Rng::new(1));
        let pending = VecDeque::new();
        let (next, answered, satisfied) = (0, 0, 0);
        let mut core = Self { sizes, names, fw, out, now, rng, next, pending, answered, satisfied };
        core.fw.face_add(DOWN, FaceInfo::point_to_point());
        core.fw.face_add(UP, FaceInfo::point_to_point());
        for n in 0..sizes.routes {
            let hop = NextHop { face: UP, cost: 0 };
            core.fw.fib_add(core.now, route(n).as_ref(), hop, &mut core.out)?;
        }
        // Of names that come at random some come twice, and wait or are kept once.
        while core.pending.len() < sizes.pending as usize
            || core.fw.cs().len() < sizes.store as usize
        {
            core.block(&mut Turns::default())?;
        }
        Ok(core)
    }

    fn receive(&mut self, face: FaceId, bytes: Buf, pit_token: Token) -> Verdict {
        self.fw.receive(self.now, packet(face, bytes, pit_token), &mut self.out)
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        if self.names == Names::Random { self.rng.next_u32() } else { self.next }
    }

    /// [`BLOCK`] exchanges; the clock runs while packets are handled only.
    fn block(&mut self, turns: &mut Turns) -> Result<()> {
        let routes = self.sizes.routes;
        let numbers: Vec<u32> = (0..BLOCK).map(|_| self.number()).collect();
        let asked: Vec<Buf> = numbers
            .iter()
            .map(|n| interest(&name(*n, routes), self.rng.next_u32(), false, false))
            .collect();
        let most = self.sizes.pending as usize;
        let waiting = self.pending.iter().map(|(n, _)| n).chain(&numbers);
        let answered = (self.pending.len() + numbers.len()).saturating_sub(most);
        let answers: Vec<Buf> =
            waiting.take(answered).map(|n| data(&name(*n, routes))).collect::<Result<_>>()?;
        let (mut asked, mut answers) = (numbers.into_iter().zip(asked), answers.into_iter());
        while asked.len() > 0 {
            self.now = self.now + TURN_TIME;
            let ending = (self.pending.len() + TURN).saturating_sub(most);
            let tokens = self.pending.drain(..ending.min(self.pending.len()));
            let came = |((_, token), bytes)| packet(UP, bytes, token);
            // An answer is taken for a token that is there only.
            let came: Vec<Packet> = tokens.zip(answers.by_ref()).map(came).collect();
            let (numbers, up): (Vec<u32>, Vec<Packet>) =
                asked.by_ref().take(TURN).map(|(n, b)| (n, packet(DOWN, b, Token::new()))).unzip();
            let began = thread_cpu_time();
            if self.fw.foresees() {
                let batch = up.iter().chain(&came).map(|p| (&*p.bytes, &*p.lp.pit_token));
                self.fw.foresee(batch);
            }
            for (n, packet) in numbers.into_iter().zip(up) {
                self.fw.receive(self.now, packet, &mut self.out);
                let sent = self.out.items.first().and_then(Transmit::as_pull);
                let token = sent.map_or_else(Token::new, |(_, lp)| lp.pit_token.clone());
                self.pending.push_back((n, token));
                self.out.clear();
            }
            self.answered += came.len() as u64;
            for packet in came {
                let verdict = self.fw.receive(self.now, packet, &mut self.out);
                self.satisfied += u64::from(verdict == Verdict::Satisfied);
                self.out.clear();
            }
            self.fw.handle_timeout(self.now, &mut self.out);
            self.out.clear();
            turns.add(began);
        }
        Ok(())
    }

    /// Seconds of an exchange.
    fn exchange(&mut self, exchanges: u32) -> Result<f64> {
        let mut turns = Turns::default();
        let blocks = exchanges.div_ceil(BLOCK);
        for _ in 0..blocks {
            self.block(&mut turns)?;
        }
        self.check()?;
        Ok(turns.all / f64::from(blocks * BLOCK))
    }

    /// Whether exchanges were what they are meant to be. Of names at random some come twice, and wait
    /// once.
    fn check(&self) -> Result<()> {
        let Self { answered, satisfied, .. } = self;
        ensure!(satisfied * 100 >= answered * 99, "{satisfied} of {answered} Data satisfied");
        let pending = self.fw.pit_len();
        ensure!(pending <= self.sizes.pending as usize + TURN, "{pending} are pending");
        Ok(())
    }

    /// Exchanges as before; of a thousand Interests one has CanBePrefix, half of these MustBeFresh,
    /// and all names are under what it asks for; commands erase 256 packets each. Seconds of an
    /// exchange, of a turn that such an Interest or command opens, and of the worst of these.
    fn asked(&mut self, exchanges: u32) -> Result<[f64; 3]> {
        let (mut plain, mut asked) = (Turns::default(), Turns::default());
        let mut count = 0_u32;
        for number in 0..exchanges.div_ceil(BLOCK) {
            self.block(&mut plain)?;
            for n in 0..BLOCK / ASKED_EVERY {
                self.now = self.now + TURN_TIME;
                let prefix = route(0);
                let ask = interest(&prefix, self.rng.next_u32(), true, n % 2 == 0);
                let began = thread_cpu_time();
                if n == 0 && number % 4 == 3 {
                    let erased = name(self.rng.next_u32(), 1).as_ref().prefix(5).to_name();
                    self.fw.cs_erase(erased.as_ref(), 256);
                } else {
                    self.receive(DOWN, ask, Token::new());
                }
                self.fw.handle_timeout(self.now, &mut self.out);
                self.out.clear();
                asked.add(began);
                count += 1;
            }
        }
        self.check()?;
        let each = (plain.all + asked.all) / f64::from(exchanges.div_ceil(BLOCK) * BLOCK);
        Ok([each, asked.all / f64::from(count.max(1)), asked.worst])
    }
}

/// Prints the table and writes the rows.
///
/// # Errors
/// When a packet cannot be made, or the file cannot be written.
pub fn run(args: &TablesArgs) -> Result<()> {
    let mut report = Report::default();
    println!("{:44} {:>12}", "case", "ns");
    let mut line = |case: &str, metric: &'static str, seconds: f64| {
        println!("{case:44} {:>12.0}", seconds * 1e9);
        report.add("tables", case, "onym", metric, seconds);
    };
    let ask = |what: &str| what.contains(&args.only);
    let rounds = |core: &mut Core| -> Result<f64> {
        let all =
            (0..args.rounds).map(|_| core.exchange(args.exchanges)).collect::<Result<Vec<_>>>()?;
        Ok(median(&all))
    };
    for &store in &args.store {
        for names in [Names::Sequential, Names::Random] {
            let case = format!("store={store},names={}", names.word());
            if ask(&case) {
                let mut core = Core::new(Sizes { store, ..SMALL }, names)?;
                line(&case, "latency_mean_s", rounds(&mut core)?);
            }
        }
        let case = format!("store={store},names=random,asked=prefix");
        if ask(&case) {
            let mut core = Core::new(Sizes { store, ..SMALL }, Names::Random)?;
            let [each, asked, worst] = core.asked(args.exchanges)?;
            line(&case, "latency_mean_s", each);
            line(&format!("{case},turn=asked"), "latency_mean_s", asked);
            line(&format!("{case},turn=worst"), "latency_max_s", worst);
        }
    }
    let [pending, routes] = [args.large[0], args.large[1]];
    let store = args.store.iter().copied().max().unwrap_or(SMALL.store);
    for (case, sizes) in [
        ("all=small".to_owned(), SMALL),
        (format!("pit={pending}"), Sizes { store: 0, pending, ..SMALL }),
        (format!("fib={routes}"), Sizes { store: 0, routes, ..SMALL }),
        ("all=large".to_owned(), Sizes { store, pending, routes }),
    ] {
        if ask(&case) {
            let mut core = Core::new(sizes, Names::Random)?;
            line(&case, "latency_mean_s", rounds(&mut core)?);
        }
    }
    report.write(&args.json)
}
